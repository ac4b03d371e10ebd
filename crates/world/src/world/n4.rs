//! N4: PFCP datagrams between SMF processes and UPFs, over a network that loses, duplicates and reorders.

use super::{SimEvent, TimerId, World};
use crate::network::{UPFS, smf_n4, upf_n4};
use crate::user_plane::UserPlane;
use pith_nf::fabric::ShardInput;
use pith_nf::gateway::n4::{N4GatewayEffect, N4GatewayInput};
use pith_nf::kit::{N4Effect, N4Error, N4Input, TimerKey};
use pith_pfcp::message::AssociationSetupRequest;
use pith_pfcp::{Header, Message, MessageType};
use pith_types::ShardId;
use pith_upf::contract::SessionId;
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

    pub(super) fn to_n4_gateway(&mut self, process: usize, upf: usize, octets: Vec<u8>) {
        self.enemy.observe_pfcp(&octets);
        if let Some(session) = established(&octets) {
            self.unheard_sessions.insert((upf, session), false);
        }
        self.n4_gateway(process, N4GatewayInput::Datagram { from: upf_n4(upf), octets });
    }

    pub(super) fn n4_gateway(&mut self, process: usize, input: N4GatewayInput) {
        let Some(gateway) = &mut self.processes[process].n4 else { return };
        let effects: Vec<_> = gateway.handle(input).collect();
        for effect in effects {
            match effect {
                N4GatewayEffect::Send { to, octets } => self.send_to_upf(process, to, octets),
                N4GatewayEffect::ToShard { shard, input } => {
                    // What the UPF did without being able to report it is unknown to the SMF.
                    self.watch.may_leak |=
                        matches!(&input, N4Input::Response { result: Err(N4Error::NoAnswer), .. });
                    self.send_to_shard(process, usize::from(shard.0), ShardInput::N4(Box::new(input)));
                }
                N4GatewayEffect::StartTimer { key, after } => {
                    self.start_timer(TimerId::N4Gateway { process, key }, after);
                }
                N4GatewayEffect::StopTimer(key) => self.timers.stop(TimerId::N4Gateway { process, key }),
                N4GatewayEffect::Event(event) => self.record("N4GW", "N4GW", event.text),
            }
        }
    }

    fn send_to_upf(&mut self, process: usize, to: SocketAddr, octets: Vec<u8>) {
        let Some(upf) = (0..self.upfs.len()).find(|upf| upf_n4(*upf) == to) else { return };
        let octets = if self.plan.upfs_retain { octets } else { without_retention(octets) };
        self.record("SMF", name(upf), pfcp_name(&octets));
        self.datagram(|octets| SimEvent::ToUpf { upf, peer: smf_n4(process), octets }, octets);
    }

    /// A datagram is delivered once, twice or never; each copy has its own delay.
    fn datagram(&mut self, event: impl Fn(Vec<u8>) -> SimEvent, octets: Vec<u8>) {
        let copies = 1 + usize::from(self.fault_occurs(self.plan.faults.pfcp_duplication));
        for _ in 0..copies {
            if !self.fault_occurs(self.plan.faults.pfcp_loss) {
                let most = if self.faulty && !self.plan.is_faultless() { 200 } else { 2 };
                let after = self.dice.millis(1, most);
                self.at(after, event(octets.clone()));
            }
        }
    }

    pub(super) fn to_upf(&mut self, upf: usize, peer: SocketAddr, octets: &[u8]) {
        self.enemy.observe_pfcp(octets);
        self.upf_input(upf, Input::Datagram { peer, octets });
    }

    pub(super) fn upf_tick(&mut self, upf: usize) {
        self.upf_input(upf, Input::Tick);
    }

    /// Passes an input to a UPF, and carries out its outputs.
    pub(super) fn upf_input(&mut self, upf: usize, input: Input<'_>) {
        let effects = self.upfs[upf].handle(self.now, input);
        self.upf_effects(upf, effects);
    }

    /// A downlink packet arrives for a random UE.
    pub(super) fn downlink_packet(&mut self) {
        let (upf, at) = (self.dice.index(self.upfs.len()), self.dice.index(64));
        // Of the forwarded packets, every other one is sent to a gNB that has lost the tunnel.
        let effects = self.upfs[upf].downlink_packet(self.now, at, at % 2 == 1);
        self.upf_effects(upf, effects);
    }

    /// A downlink packet arrives for the first session of that UE; `lost`: its gNB has lost the tunnel.
    pub(super) fn downlink_packet_for(&mut self, ue: usize, lost: bool) {
        let Some(address) = self.ues[ue].ue.sessions().find_map(|session| session.ipv4) else { return };
        let has_session = |upf: &usize| self.upfs[*upf].datapath.session_of(address).is_some();
        let mut upfs: Vec<_> = (0..self.upfs.len()).filter(has_session).collect();
        if lost {
            // The last one is next to the gNB.
            upfs = upfs.last().copied().into_iter().collect();
        }
        for upf in upfs {
            let Some(at) = self.upfs[upf].datapath.session_of(address) else { continue };
            let effects = self.upfs[upf].downlink_packet(self.now, at, lost);
            self.upf_effects(upf, effects);
        }
    }

    /// The gNB loses the tunnel of the first session, and a downlink packet arrives; returns the
    /// tunnel afterwards.
    pub(super) fn lose_tunnel(&mut self) {
        let effects = self.upfs[0].downlink_packet(self.now, 0, true);
        self.upf_effects(0, effects);
    }

    pub(super) fn restart_upf(&mut self, upf: usize) {
        self.upfs[upf] = UserPlane::start(upf, self.plan.instances > 0, self.now);
        self.set_wake_up(TimerId::Upf(upf), None);
    }

    fn upf_effects(&mut self, upf: usize, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send { peer, octets } => self.send_from_upf(upf, peer, octets),
                Effect::Notice(notice) if notice.severity() >= pith_upf::Severity::Warn => {
                    self.record(name(upf), name(upf), notice.to_string());
                }
                Effect::Notice(_) => {}
            }
        }
        let next = self.upfs[upf].next_timeout();
        self.set_wake_up(TimerId::Upf(upf), next);
    }

    fn send_from_upf(&mut self, upf: usize, peer: SocketAddr, octets: Vec<u8>) {
        self.record(name(upf), "SMF", pfcp_name(&octets));
        let process = (0..self.processes.len()).find(|process| smf_n4(*process) == peer);
        if let Some(process) = process {
            if let Some(session) = established(&octets) {
                self.unheard_sessions.entry((upf, session)).or_insert(true);
            }
            self.datagram(|octets| SimEvent::ToN4Gateway { process, upf, octets }, octets);
        }
    }
}

/// The datagram as a UPF sees it that does not support the retention of sessions (TS 29.244 7.4.4.1: the information is optional).
fn without_retention(octets: Vec<u8>) -> Vec<u8> {
    let Ok((header, Message::AssociationSetupRequest(request))) = Message::decode(&octets) else {
        return octets;
    };
    let request = AssociationSetupRequest { session_retention_information: None, ..request };
    let mut without = Vec::new();
    match Message::AssociationSetupRequest(request).encode(0, header.sequence, &mut without) {
        Ok(()) => without,
        Err(_) => octets,
    }
}

/// The session that a UPF has established, according to that response.
fn established(octets: &[u8]) -> Option<SessionId> {
    let (header, _) = Header::decode(octets).ok()?;
    if header.message_type != MessageType::SESSION_ESTABLISHMENT_RESPONSE {
        return None;
    }
    let Ok((_, Message::SessionEstablishmentResponse(response))) = Message::decode(octets) else {
        return None;
    };
    response.up_f_seid.map(|seid| SessionId(seid.seid))
}

/// A UPF in ladders.
fn name(upf: usize) -> String {
    UPFS[upf].to_uppercase()
}

fn pfcp_name(octets: &[u8]) -> String {
    Header::decode(octets).map_or("(not PFCP)".into(), |(header, _)| header.message_type.to_string())
}
