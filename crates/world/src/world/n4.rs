//! N4: PFCP datagrams between SMF processes and the UPF, over a network that loses, repeats and reorders.

use super::{Alarm, Happening, World};
use crate::network::{UPF_N4, smf_n4};
use crate::user_plane::UserPlane;
use pith_nf::fabric::ShardInput;
use pith_nf::gateway::n4::{N4GatewayEffect, N4GatewayInput};
use pith_nf::kit::{N4Effect, N4Error, N4Input, TimerKey};
use pith_pfcp::Header;
use pith_types::ShardId;
use pith_upf::{Effect, Input};
use std::net::SocketAddr;

impl World {
    pub(super) fn start_n4(&mut self, process: usize) {
        self.n4_gateway(process, N4GatewayInput::Start);
    }

    pub(super) fn n4_timer(&mut self, process: usize, key: TimerKey) {
        self.n4_gateway(process, N4GatewayInput::Timer(key));
    }

    pub(super) fn n4_effect(&mut self, process: usize, shard: usize, effect: N4Effect) {
        self.n4_gateway(process, N4GatewayInput::Shard { shard: ShardId(shard as u8), effect });
    }

    pub(super) fn to_n4_gateway(&mut self, process: usize, octets: Vec<u8>) {
        self.enemy.hear_pfcp(&octets);
        self.n4_gateway(process, N4GatewayInput::Datagram { from: UPF_N4, octets });
    }

    pub(super) fn n4_gateway(&mut self, process: usize, input: N4GatewayInput) {
        let Some(gateway) = &mut self.processes[process].n4 else { return };
        let effects: Vec<_> = gateway.handle(input).collect();
        for effect in effects {
            match effect {
                N4GatewayEffect::Send { octets, .. } => {
                    self.rung("SMF", "UPF", pfcp_name(&octets));
                    self.datagram(|octets| Happening::ToUpf { peer: smf_n4(process), octets }, octets);
                }
                N4GatewayEffect::ToShard { shard, input } => {
                    // What the UPF did and could not tell, the SMF does not know of.
                    self.watch.may_leak |=
                        matches!(&input, N4Input::Response { result: Err(N4Error::NoAnswer), .. });
                    self.send_to_shard(process, usize::from(shard.0), ShardInput::N4(Box::new(input)));
                }
                N4GatewayEffect::StartTimer { key, after } => {
                    self.set_alarm(Alarm::N4Gateway { process, key }, after);
                }
                N4GatewayEffect::StopTimer(key) => self.alarms.stop(Alarm::N4Gateway { process, key }),
                N4GatewayEffect::Event(event) => self.rung("N4GW", "N4GW", event.text),
            }
        }
    }

    /// A datagram comes once, twice or never; each copy takes its own time.
    fn datagram(&mut self, happening: impl Fn(Vec<u8>) -> Happening, octets: Vec<u8>) {
        let copies = 1 + usize::from(self.strikes(self.plan.faults.pfcp_duplication));
        for _ in 0..copies {
            if !self.strikes(self.plan.faults.pfcp_loss) {
                let most = if self.faulty && !self.plan.is_faultless() { 200 } else { 2 };
                let after = self.dice.millis(1, most);
                self.at(after, happening(octets.clone()));
            }
        }
    }

    pub(super) fn to_upf(&mut self, peer: SocketAddr, octets: &[u8]) {
        self.enemy.hear_pfcp(octets);
        let effects = self.upf.handle(self.now, Input::Datagram { peer, octets });
        self.upf_effects(effects);
    }

    pub(super) fn upf_tick(&mut self) {
        let effects = self.upf.handle(self.now, Input::Tick);
        self.upf_effects(effects);
    }

    /// A packet comes for a UE, any of them.
    pub(super) fn downlink_packet(&mut self) {
        let at = self.dice.index(64);
        let effects = self.upf.downlink_packet(self.now, at);
        self.upf_effects(effects);
    }

    pub(super) fn restart_upf(&mut self) {
        self.upf = UserPlane::start(self.now);
        self.set_own_alarm(Alarm::Upf, None);
    }

    pub(super) fn upf_effects(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send { peer, octets } => self.send_from_upf(peer, octets),
                Effect::Notice(notice) if notice.severity() >= pith_upf::Severity::Warn => {
                    self.rung("UPF", "UPF", notice.to_string());
                }
                Effect::Notice(_) => {}
            }
        }
        let next = self.upf.next_timeout();
        self.set_own_alarm(Alarm::Upf, next);
    }

    fn send_from_upf(&mut self, peer: SocketAddr, octets: Vec<u8>) {
        self.rung("UPF", "SMF", pfcp_name(&octets));
        let process = (0..self.processes.len()).find(|process| smf_n4(*process) == peer);
        if let Some(process) = process {
            self.datagram(|octets| Happening::ToN4Gateway { process, octets }, octets);
        }
    }
}

fn pfcp_name(octets: &[u8]) -> String {
    Header::decode(octets).map_or("(not PFCP)".into(), |(header, _)| header.message_type.to_string())
}
