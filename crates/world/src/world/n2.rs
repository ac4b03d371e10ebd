//! N2: gNBs, their SCTP associations, and the gateway. Messages keep their order on a stream; an
//! association may break.

use super::violation::Reporter;
use super::{Channel, SimEvent, TimerId, World};
use crate::network::{self, UPFS, amf_end};
use crate::plan::{Plan, Residency};
use pith_nf::fabric::ShardInput;
use pith_nf::gateway::n2::{N2GatewayEffect, N2GatewayInput, NGAP_PPID};
use pith_nf::kit::{Inspect, N2Effect, Nf, Tnla};
use pith_ngap::transfer::Tunnel;
use pith_ngap::{Message, NgSetupResponse};
use pith_ran::Instant as RanInstant;
use pith_ran::gnb::{Bearer, Gnb, Input, Output, Settings, UeKey};
use pith_types::FiveGSTmsi;
use pith_upf::contract::{Action, Destination, Far, Session, Tunnel as UpfTunnel};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// SCTP streams of an association.
const STREAMS: u16 = 4;

/// An endpoint of a gNB, and its associations with an AMF. A gNB has one for each AMF of a set, and the endpoints of a gNB are consecutive, as in
/// `pith_ran::Ran`.
pub(super) struct SimGnb {
    pub gnb: Gnb,
    /// Its associations, by their numbers at the gNB.
    pub associations: BTreeMap<u8, u64>,
    /// The UEs of the gNB's radio connections. A UE may have left a connection that the gNB still
    /// has, so a connection takes the place of a UE for the gNB.
    pub connections: BTreeMap<UeKey, usize>,
    /// Those of which the gNB has requested the release: the AMF takes no message of the UE after its command, which the gNB may not have yet.
    pub releasing: BTreeSet<UeKey>,
    /// Tunnels of sessions with radio bearers.
    pub bearers: BTreeMap<(UeKey, u8), Bearer>,
}

/// The endpoints of all gNBs of a plan.
pub(super) fn gnbs(plan: &Plan) -> Vec<SimGnb> {
    let sim_gnb = |number: usize| {
        let id = number / plan.amfs() + 1;
        let settings = Settings {
            name: format!("gnb{id}"),
            plmn: network::plmn(),
            id: id as u32,
            tac: network::tai_of_area(plan.tracking_area_of_gnb(number)).tac,
            slices: network::all_slices(plan),
            n3: IpAddr::V4(Ipv4Addr::new(10, 3, 1, number as u8 + 1)),
            first_teid: 1,
            retains_ues: plan.retaining & 1 << (id - 1) != 0,
            joins_by_ng_setup: plan.joins_by_ng_setup,
        };
        let mut gnb = Gnb::new(settings);
        gnb.share_ran_ids((number % plan.amfs()) as u32, plan.amfs() as u32);
        SimGnb {
            gnb,
            associations: BTreeMap::new(),
            connections: BTreeMap::new(),
            releasing: BTreeSet::new(),
            bearers: BTreeMap::new(),
        }
    };
    (0..plan.gnbs * plan.amfs()).map(sim_gnb).collect()
}

impl World {
    pub(super) fn ran_now(&self) -> RanInstant {
        RanInstant::from_nanos(self.now.as_micros() * 1000)
    }

    /// The process of the AMFs.
    pub(super) fn amf_process(&self) -> usize {
        self.processes.iter().position(|process| process.nfs.contains(&Nf::Amf)).unwrap_or(0)
    }

    /// The process of the AMF to which an endpoint belongs.
    pub(super) fn amf_of(&self, gnb: usize) -> usize {
        if self.plan.instances > 0 {
            return gnb % self.plan.instances;
        }
        let area = self.plan.area_of_gnb(gnb);
        let hosts_amf = |process: &usize| self.processes[*process].nfs.contains(&Nf::Amf);
        (0..self.processes.len()).filter(hosts_amf).nth(area).unwrap_or(0)
    }

    /// The endpoint at which a UE connects to the gNB with that one: the AMF of its AMF Set and Pointer, another one of the set if that is
    /// gone, and any for a UE without an identity (TS 23.501 6.3.5).
    pub(super) fn select_endpoint(&mut self, gnb: usize, s_tmsi: Option<&FiveGSTmsi>) -> usize {
        let amfs = self.plan.amfs();
        if amfs == 1 {
            return gnb;
        }
        let first = gnb / amfs * amfs;
        let up: Vec<usize> = (first..first + amfs).filter(|at| self.gnbs[*at].gnb.is_up()).collect();
        let has_pointer = |at: &&usize| {
            let mut guamis = self.gnbs[**at].gnb.amf().guamis.iter();
            s_tmsi.is_some_and(|s_tmsi| {
                guamis.any(|guami| {
                    (guami.amf_id.set, guami.amf_id.pointer) == (s_tmsi.amf_set, s_tmsi.amf_pointer)
                })
            })
        };
        let selected = up.iter().find(has_pointer).copied();
        selected.unwrap_or_else(|| match up.len() {
            0 => first,
            // That UE is to be passed on.
            _ if self.plan.reallocates => up[0],
            number => up[self.dice.index(number)],
        })
    }

    /// A gNB establishes an association, or tries again later.
    pub(super) fn associate(&mut self, gnb: usize, number: u8) {
        if self.gnbs[gnb].associations.contains_key(&number) {
            return;
        }
        let process = self.amf_of(gnb);
        if !self.processes[process].is_running() || self.paused_until(process).is_some() {
            let after = self.dice.seconds(1, 2);
            return self.at(after, SimEvent::Associate { gnb, number });
        }
        self.numbered += 1;
        let association = self.numbered;
        self.gnbs[gnb].associations.insert(number, association);
        let peer = SocketAddr::from(([10, 3, 1, gnb as u8 + 1], 38412));
        let (tnla, local) = (Tnla(association), amf_end(number));
        self.n2_gateway(process, N2GatewayInput::Up { tnla, peer, local, alternatives: Vec::new() });
        self.gnb_input(gnb, Input::AssociationUp { association: number, outbound_streams: STREAMS });
    }

    /// The process at the other end of the association was killed.
    pub(super) fn association_lost(&mut self, gnb: usize, association: u64) {
        if let Some((at, number)) = self.association(association).filter(|(at, _)| *at == gnb) {
            self.disassociate(at, number);
        }
    }

    /// The association ends on both sides.
    pub(super) fn disassociate(&mut self, gnb: usize, number: u8) {
        if !self.gnbs[gnb].associations.contains_key(&number) {
            return;
        }
        self.end_association(gnb, number);
        let after = self.dice.seconds(1, 3);
        self.at(after, SimEvent::Associate { gnb, number });
    }

    fn end_association(&mut self, gnb: usize, number: u8) {
        let Some(association) = self.gnbs[gnb].associations.remove(&number) else { return };
        let process = self.amf_of(gnb);
        self.n2_gateway(process, N2GatewayInput::Down { tnla: Tnla(association) });
        self.gnb_input(gnb, Input::AssociationDown { association: number });
    }

    /// The gateway ended an association and has removed it.
    fn closed_by_gateway(&mut self, association: u64) {
        if let Some((gnb, number)) = self.association(association) {
            self.disassociate(gnb, number);
        }
    }

    pub(super) fn gnb_of(&self, association: u64) -> Option<usize> {
        self.association(association).map(|(gnb, _)| gnb)
    }

    /// The gNB of an association, and its number there.
    fn association(&self, association: u64) -> Option<(usize, u8)> {
        let mut gnbs = self.gnbs.iter().enumerate();
        gnbs.find_map(|(gnb, sim_gnb)| {
            let (number, _) = sim_gnb.associations.iter().find(|(_, it)| **it == association)?;
            Some((gnb, *number))
        })
    }

    pub(super) fn to_gnb(&mut self, association: u64, stream: u16, pdu: &[u8]) {
        if let Some((gnb, number)) = self.association(association) {
            self.gnb_input(gnb, Input::Pdu { association: number, stream, octets: pdu });
        }
    }

    pub(super) fn to_n2_gateway(&mut self, association: u64, stream: u16, pdu: Vec<u8>) {
        if let Some(endpoint) = self.gnb_of(association) {
            self.enemy.observe_ngap(&pdu);
            let tnla = Tnla(association);
            let input = N2GatewayInput::Message { tnla, stream, ppid: NGAP_PPID, pdu: pdu.into() };
            self.n2_gateway(self.amf_of(endpoint), input);
        }
    }

    pub(super) fn n2_effect(&mut self, process: usize, effect: N2Effect) {
        self.n2_gateway(process, N2GatewayInput::Shard(effect));
    }

    pub(super) fn n2_gateway(&mut self, process: usize, input: N2GatewayInput) {
        let Some(gateway) = &mut self.processes[process].n2 else { return };
        let mut effects: Vec<_> = gateway.advance(self.now).collect();
        effects.extend(gateway.handle(input));
        self.n2_gateway_effects(process, effects);
    }

    /// The gateway's deadline is reached.
    pub(super) fn n2_gateway_timeout(&mut self, process: usize) {
        let Some(gateway) = &mut self.processes[process].n2 else { return };
        let effects = gateway.advance(self.now).collect();
        self.n2_gateway_effects(process, effects);
    }

    fn n2_gateway_effects(&mut self, process: usize, effects: Vec<N2GatewayEffect>) {
        let is_late = effects.iter().any(|effect| matches!(effect, N2GatewayEffect::Event(event) if event.text.ends_with("deactivated yet")));
        for effect in effects {
            match effect {
                N2GatewayEffect::Send { tnla, stream, pdu } => {
                    if !is_late {
                        self.check_former_tunnels(tnla.0, &pdu);
                    }
                    self.send_to_gnb(tnla.0, stream, &pdu);
                }
                N2GatewayEffect::ToShard { shard, input } => {
                    self.send_to_shard(process, usize::from(shard.0), ShardInput::N2(input));
                }
                N2GatewayEffect::Close { tnla } | N2GatewayEffect::ShutDown { tnla } => {
                    self.closed_by_gateway(tnla.0);
                }
                N2GatewayEffect::Event(event) => self.record("N2GW", "N2GW", event.text),
            }
        }
        let next = self.processes[process].n2.as_ref().and_then(|gateway| gateway.next_deadline());
        self.set_wake_up(TimerId::N2Gateway { process }, next);
    }

    /// When NG SETUP RESPONSE is sent to a gNB that retains no UEs, no UPF sends to its TEIDs: the gNB uses them again. Without documents, or with
    /// documents that lag or were lost, the core may not know of a tunnel, and it cannot change the rules of a UPF without an association.
    fn check_former_tunnels(&mut self, association: u64, pdu: &[u8]) {
        let has_upfs = self
            .processes
            .iter()
            .filter_map(|process| process.n4.as_ref())
            .all(|n4| n4.upfs().count() == self.plan.upfs);
        let lags = matches!(self.plan.residency, Residency::None | Residency::Procedural);
        // The sessions of an instance that was killed are those of another one, for which this AMF does not wait (ADR 0024).
        let has_set = self.plan.instances > 0;
        // The target AMF of a handover that is killed has no document of a UE that has not arrived: the tunnel over which the source gNB forwards
        // packets to its gNB ends with the source AMF's timer.
        let may_be_target = self.plan.areas > 1;
        let knows = has_upfs && !lags && !has_set && !may_be_target && !self.watch.has_lost_documents;
        let Ok(Message::NgSetupResponse(NgSetupResponse { ue_retention: None, .. })) = Message::decode(pdu)
        else {
            return;
        };
        let Some(gnb) = self.gnb_of(association).filter(|_| knows) else { return };
        let address = self.gnbs[gnb].gnb.settings().n3;
        // A secondary gNB keeps the tunnels of UEs of other gNBs.
        let is_lent = |to: &UpfTunnel| {
            let tunnel = Tunnel { address: to.peer, teid: pith_types::Teid(to.teid.0) };
            self.lent_tunnels.contains(&tunnel)
        };
        let to_gnb = |far: &Far| matches!(far.action, Action::Forward(Destination::Tunnel(to)) if to.peer == address && !is_lent(&to));
        // A session that has ended, or that never began, is being deleted: no request of the AMF waits for that.
        let is_deleting = self.processes.iter().filter_map(|it| it.n4.as_ref()).any(|n4| n4.is_deleting());
        let known = if is_deleting { self.inspected(Inspect::Sessions) } else { Vec::new() };
        let is_known = |upf: usize, address: Option<Ipv4Addr>| {
            let address = address.map_or(String::new(), |address| address.to_string());
            let is_there = |session: &Value| session["upf"] == UPFS[upf] || session["frontUpf"] == UPFS[upf];
            !is_deleting || known.iter().any(|it| it["ipv4"] == address.as_str() && is_there(it))
        };
        let sessions = self
            .upfs
            .iter()
            .enumerate()
            .flat_map(|(at, upf)| upf.datapath.sessions.values().map(move |it| (at, it)));
        // A forwarding tunnel of a handover of which the SMF got no response, and which it can't name to the UPF (TS 29.244 6.4, 7.2.2.4.2: N1
        // transmissions were lost). No packets arrive there: the source gNB got no endpoint.
        let is_unheard = |upf: usize, session: &Session| {
            let is_tunnel = session.ue.v4.is_none() && session.ue.v6.is_none();
            is_tunnel && self.unheard_sessions.get(&(upf, session.id)) == Some(&true)
        };
        let mut sending =
            sessions.filter(|(upf, session)| session.fars.iter().any(to_gnb) && !is_unheard(*upf, session));
        let must_wait = |upf, ue| is_known(upf, ue) && !self.has_amf_lost_session(ue);
        if let Some((_, session)) = sending.find(|(upf, session)| must_wait(*upf, session.ue.v4)) {
            let ue = session.ue.v4;
            self.watch.fail(format!("gNB{} is set up while packets for {ue:?} are sent to it", gnb + 1));
        }
    }

    /// Whether the AMF was killed before it wrote the session with that address, which its SMF has (`soft`, or the store took no changes;
    /// docs/state.md).
    fn has_amf_lost_session(&self, address: Option<Ipv4Addr>) -> bool {
        let may_be_lost = self.has_lost_creations() || self.watch.was_behind;
        let Some(address) = address.filter(|_| may_be_lost) else { return false };
        let sessions = self.inspected(Inspect::Sessions);
        let Some(session) = sessions.iter().find(|it| it["ipv4"] == address.to_string().as_str()) else {
            return false;
        };
        let ues = self.inspected(Inspect::Ues);
        let Some(owner) = self.ues.iter().find(|sim_ue| sim_ue.owns(session)) else { return false };
        let of_ue = ues.iter().filter(|ue| owner.owns(ue));
        let mut of_amf = of_ue.filter_map(|ue| ue["sessions"].as_array()).flatten();
        !of_amf.any(|it| it["id"] == session["pduSessionId"])
    }

    fn send_to_gnb(&mut self, association: u64, stream: u16, pdu: &[u8]) {
        self.enemy.observe_ngap_to(association, pdu);
        let Some(gnb) = self.gnb_of(association) else { return };
        self.record("AMF", format!("gNB{}", gnb + 1), ngap_name(pdu));
        let after = self.dice.millis(1, 5);
        let channel = Channel::N2 { association, stream, up: false };
        self.in_order(channel, after, SimEvent::ToGnb { association, stream, pdu: pdu.to_vec() });
    }

    pub(super) fn gnb_timeout(&mut self, gnb: usize) {
        self.gnb_input(gnb, Input::Timeout);
    }

    /// Passes an input to a gNB, and carries out its outputs.
    pub(super) fn gnb_input(&mut self, gnb: usize, input: Input<'_>) {
        let now = self.ran_now();
        let mut outputs = Vec::new();
        self.gnbs[gnb].gnb.handle(now, input, &mut outputs);
        for output in outputs {
            self.gnb_output(gnb, output);
        }
        let next = self.gnbs[gnb].gnb.next_timeout().map(nf_instant);
        self.set_wake_up(TimerId::Gnb(gnb), next);
    }

    fn gnb_output(&mut self, gnb: usize, output: Output) {
        match output {
            Output::Send { association, stream, pdu } => {
                self.send_from_gnb(gnb, (association, stream), pdu);
            }
            Output::AddAssociation { association, .. } => {
                let number = association;
                self.at(Duration::from_millis(1), SimEvent::Associate { gnb, number });
            }
            Output::RemoveAssociation { association } => self.end_association(gnb, association),
            Output::Violation(violation) => {
                self.watch.violation(Reporter::Gnb(gnb), &violation, self.now);
            }
            Output::Event(_) => {}
            Output::Paging { s_tmsi, with } => self.broadcast_paging(gnb, s_tmsi, with),
            Output::Nas { ue, nas } => self.nas_to_ue(gnb, ue, nas),
            Output::SecurityActivated { ue, k_gnb, capabilities } => {
                self.signal_to_ue(gnb, ue, super::radio::Downlink::Security { k_gnb, capabilities });
            }
            Output::HandedOver { ue, key, chaining_count, cell } => {
                self.signal_to_ue(gnb, ue, super::radio::Downlink::HandedOver { key, chaining_count, cell });
            }
            Output::Leaving { ue, cell, nas_container } => {
                self.leave_for(gnb, ue, cell, nas_container.as_deref());
            }
            // Packets of the worlds do not take the tunnels of gNBs that UEs have left.
            Output::ForwardingTunnel { .. } | Output::Forward { .. } => {}
            Output::PathSwitched { .. } | Output::HandoverFailed { .. } => {}
            Output::FlowsMoved { ue, moved, .. } => {
                let moved = moved.into_iter().map(|bearer| ((ue, bearer.session), bearer));
                self.gnbs[gnb].bearers.extend(moved);
            }
            Output::BearerUp { ue, bearer } => {
                self.gnbs[gnb].bearers.insert((ue, bearer.session), bearer);
                self.signal_to_ue(
                    gnb,
                    ue,
                    super::radio::Downlink::UserPlane { session: bearer.session, up: true },
                );
            }
            Output::BearerMoved { ue, bearer } => {
                self.gnbs[gnb].bearers.insert((ue, bearer.session), bearer);
            }
            Output::BearerDown { ue, bearer } => {
                self.gnbs[gnb].bearers.remove(&(ue, bearer.session));
                self.signal_to_ue(
                    gnb,
                    ue,
                    super::radio::Downlink::UserPlane { session: bearer.session, up: false },
                );
            }
            Output::Reroute { ue, amf_set, message } => self.reroute(gnb, ue, amf_set, message),
            Output::Redirect { old_amf, ran_id, stream, message } => {
                self.redirect(gnb, (&old_amf, ran_id), (stream, message));
            }
            Output::Released { ue } => self.release_ue(gnb, ue),
        }
    }

    fn send_from_gnb(&mut self, gnb: usize, (number, stream): (u8, u16), pdu: Vec<u8>) {
        let Some(association) = self.gnbs[gnb].associations.get(&number).copied() else { return };
        self.record(format!("gNB{}", gnb + 1), "AMF", ngap_name(&pdu));
        let after = self.dice.millis(1, 5);
        let channel = Channel::N2 { association, stream, up: true };
        self.in_order(channel, after, SimEvent::ToN2Gateway { association, stream, pdu });
    }
}

/// The RAN counts nanoseconds.
pub(super) fn nf_instant(instant: RanInstant) -> pith_nf::kit::Instant {
    pith_nf::kit::Instant::from_micros(instant.as_nanos().div_ceil(1000))
}

fn ngap_name(pdu: &[u8]) -> &'static str {
    Message::decode(pdu).map_or("(not NGAP)", |message| message.name())
}
