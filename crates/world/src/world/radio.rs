//! The radio: UEs, their radio connections, and losses.
//!
//! NAS messages of a connection keep their order; one may be lost. A release always arrives, though
//! possibly late, because a radio failure is always detected.

use super::history::History;
use super::n2::nf_instant;
use super::violation::Reporter;
use super::{Channel, SimEvent, TimerId, World};
use crate::dice::Dice;
use crate::network;
use crate::plan::Plan;
use pith_crypto::Algorithm;
use pith_crypto::keys::{Opc, SubscriberKey};
use pith_crypto::milenage::Milenage;
use pith_crypto::sqn::{Sqn, UsimSequence};
use pith_nas::ie::UeSecurityCapability;
use pith_nas::{GmmMessage, SecurityHeaderType};
use pith_nf::kit::{AuthenticationMethod, SubscribedDnn, Subscriber};
use pith_ngap::{CauseRadioNetwork, RrcEstablishmentCause, SecurityCapabilities};
use pith_ran::gnb::{Cell, Input as GnbInput, UeKey};
use pith_ran::ue::{Concealment, Input, Output, Service, Settings, Subscription, Ue};
use pith_types::{FiveGSTmsi, Pei};
use std::sync::Arc;

/// A UE and its radio connection.
pub(super) struct SimUe {
    pub ue: Ue,
    pub subscriber: Subscriber,
    pub pei: String,
    pub service: Service,
    /// The gNB that it camps on.
    pub gnb: usize,
    /// Its radio connection, as far as the UE knows.
    pub connection: Option<u64>,
    /// Its next NAS message is lost.
    pub loses_next: bool,
    /// What it had, and lost.
    pub history: History,
}

/// A signal from a UE.
#[derive(Debug)]
pub(super) enum Uplink {
    Connect { nas: Vec<u8>, cause: RrcEstablishmentCause, s_tmsi: Option<FiveGSTmsi> },
    Nas(Vec<u8>),
    Lost,
}

/// A signal to a UE.
#[derive(Debug)]
pub(super) enum Downlink {
    Nas(Vec<u8>),
    Security { k_gnb: [u8; 32], capabilities: SecurityCapabilities },
    HandedOver { key: [u8; 32], chaining_count: u8, cell: Cell },
    UserPlane { session: u8, up: bool },
    Released,
}

/// The UEs of a plan, with null scheme, profile A and profile B in turn.
pub(super) fn ues(plan: &Plan, dice: &mut Dice) -> Vec<SimUe> {
    let settings = |number: usize| Settings {
        plmn: network::plmn(),
        security_capability: UeSecurityCapability::of_5gs_and_eps(0xf0, 0x70, 0xf0, 0x70),
        requested_nssai: network::slices(),
        service: plan.services.of_ue(plan.seed, number, plan.acts > 0),
        reachability: plan.services.reachability_of_ue(plan.seed, number),
        follow_on_request: true,
    };
    let keys = network::public_keys();
    let sim_ue = |number: usize| {
        let concealment = match keys.get((number + plan.seed as usize) % 3) {
            Some((key_id, key)) => Concealment::Ecies { key_id: *key_id, key: key.clone() },
            None => Concealment::Null,
        };
        let mut sim_ue = sim_ue(number, Arc::new(settings(number)), concealment, method(plan, number), dice);
        if plan.services.ladn {
            subscribe_ladn(&mut sim_ue.subscriber);
        }
        sim_ue
    };
    (0..plan.ues).map(sim_ue).collect()
}

/// Every third subscriber uses EAP-AKA'; which ones differs from world to world.
const fn method(plan: &Plan, number: usize) -> AuthenticationMethod {
    match (number + plan.seed as usize / 3) % 3 {
        1 => AuthenticationMethod::EapAkaPrime,
        _ => AuthenticationMethod::FiveGAka,
    }
}

fn sim_ue(
    number: usize,
    settings: Arc<Settings>,
    concealment: Concealment,
    method: AuthenticationMethod,
    dice: &mut Dice,
) -> SimUe {
    let supi: pith_types::Supi =
        format!("imsi-99970{:010}", number + 1).parse().expect("15 digits are an IMSI");
    let (k, opc) = keys(number);
    let subscription = Subscription {
        supi: supi.clone(),
        home: network::plmn(),
        routing_indicator: "0".into(),
        concealment,
        algorithm: algorithm(number).into(),
        sequence: UsimSequence::starting_at(Sqn::new(0)),
        seed: dice.fork().octets(),
    };
    let imeisv: Pei =
        format!("imeisv-43708161258{:05}", number + 1).parse().expect("16 digits are an IMEISV");
    let service = settings.service;
    let mut subscriber = Subscriber::with_defaults(supi, k, opc);
    subscriber.authentication.method = method;
    let pei = imeisv.to_string();
    let ue = Ue::new(settings, subscription, imeisv, network::tai());
    SimUe {
        ue,
        subscriber,
        pei,
        service,
        gnb: 0,
        connection: None,
        loses_next: false,
        history: History::default(),
    }
}

fn subscribe_ladn(subscriber: &mut Subscriber) {
    let dnns = &mut subscriber.slices[0].dnns;
    let ladn = SubscribedDnn { dnn: network::ladn(), ..dnns[0].clone() };
    dnns.push(ladn);
}

/// K and OPc of a UE.
const fn keys(ue: usize) -> ([u8; 16], [u8; 16]) {
    ([ue as u8 + 1; 16], [0x5a; 16])
}

/// The authentication functions of a UE's USIM.
pub(super) fn algorithm(ue: usize) -> Algorithm {
    let (k, opc) = keys(ue);
    Algorithm::Milenage(Milenage::new(&SubscriberKey::new(k), &Opc::new(opc)))
}

impl World {
    pub(super) fn ue_timeout(&mut self, ue: usize) {
        self.ue_input(ue, Input::Timeout);
    }

    /// Passes an input to a UE, and carries out its outputs.
    pub(super) fn ue_input(&mut self, ue: usize, input: Input<'_>) {
        let now = self.ran_now();
        let mut outputs = Vec::new();
        self.ues[ue].ue.handle(now, input, &mut outputs);
        self.ues[ue].history.note_refusal(&outputs);
        self.ues[ue].history.note_releases(&outputs, self.now);
        for output in outputs {
            self.ue_output(ue, output);
        }
        let next = self.ues[ue].ue.next_timeout().map(nf_instant);
        self.set_wake_up(TimerId::Ue(ue), next);
        self.note_history(ue);
    }

    /// The UE is switched off out of coverage: its request to deregister is lost.
    pub(super) fn vanish(&mut self, ue: usize) {
        self.ues[ue].loses_next = true;
        self.ue_input(ue, Input::Deregister { switch_off: true });
    }

    fn ue_output(&mut self, ue: usize, output: Output) {
        match output {
            Output::Connect { nas, cause, s_tmsi } => self.connect(ue, nas, cause, s_tmsi),
            Output::Send(nas) => {
                self.record(name(ue), "AMF", nas_name(&nas));
                self.send_uplink(ue, Uplink::Nas(nas));
            }
            Output::Release => {
                self.send_uplink(ue, Uplink::Lost);
                self.ues[ue].connection = None;
            }
            Output::Event(event) => self.record(name(ue), name(ue), format!("({event:?})")),
            Output::Violation(violation) => self.watch.violation(Reporter::Ue(ue), &violation, self.now),
        }
    }

    /// A UE connects to a gNB of its choice.
    fn connect(&mut self, ue: usize, nas: Vec<u8>, cause: RrcEstablishmentCause, s_tmsi: Option<FiveGSTmsi>) {
        self.record(name(ue), "AMF", nas_name(&nas));
        self.numbered += 1;
        let amfs = self.plan.amfs();
        let area = self.plan.tracking_area_of_gnb(self.ues[ue].gnb);
        let is_here = |gnb: &usize| self.plan.tracking_area_of_gnb(*gnb) == area;
        let here: Vec<usize> = (0..self.gnbs.len()).step_by(amfs).filter(is_here).collect();
        let gnb = here[self.dice.index(here.len())];
        let gnb = self.select_endpoint(gnb, s_tmsi.as_ref());
        self.ues[ue].connection = Some(self.numbered);
        self.ues[ue].gnb = gnb;
        self.send_uplink(ue, Uplink::Connect { nas, cause, s_tmsi });
    }

    fn send_uplink(&mut self, ue: usize, signal: Uplink) {
        let Some(connection) = self.ues[ue].connection else { return };
        let gnb = self.ues[ue].gnb;
        let loses = std::mem::take(&mut self.ues[ue].loses_next);
        if !matches!(signal, Uplink::Lost) && (loses || self.fault_occurs(self.plan.faults.radio_loss)) {
            self.ues[ue].history.note_lost_uplink(self.now);
            return self.record(name(ue), "air", "(lost)");
        }
        let after = self.dice.millis(1, 10);
        self.in_order(Channel::Air { ue, up: true }, after, SimEvent::Uplink { ue, gnb, connection, signal });
    }

    pub(super) fn uplink(&mut self, ue: usize, gnb: usize, connection: u64, signal: Uplink) {
        let key = UeKey(connection as u32);
        let known = self.gnbs[gnb].connections.contains_key(&key);
        match signal {
            // The AMF has gone meanwhile: the gNB selects another one.
            Uplink::Connect { nas, cause, s_tmsi }
                if self.gnbs[gnb].associations.is_empty() && self.has_other_amf(gnb) =>
            {
                let other = self.select_endpoint(gnb, s_tmsi.as_ref());
                if self.ues[ue].connection == Some(connection) {
                    self.ues[ue].gnb = other;
                }
                self.uplink(ue, other, connection, Uplink::Connect { nas, cause, s_tmsi });
            }
            // No AMF serves the gNB: RRC REJECT with a wait time (TS 38.331 5.3.15.2).
            Uplink::Connect { .. } if self.gnbs[gnb].associations.is_empty() => {
                let after = self.dice.seconds(1, 2);
                let event = SimEvent::Downlink { ue, connection, signal: Downlink::Released };
                self.in_order(Channel::Air { ue, up: false }, after, event);
            }
            Uplink::Connect { nas, cause, s_tmsi } => {
                self.note_arrival(ue, self.amf_of(gnb), s_tmsi.as_ref());
                self.gnbs[gnb].connections.insert(key, ue);
                self.gnb_input(gnb, GnbInput::Connect { ue: key, nas, cause, s_tmsi });
            }
            Uplink::Nas(nas) if known => {
                if self.gnbs[gnb].releasing.contains(&key) {
                    self.watch.unheard.note(ue, self.now);
                }
                self.gnb_input(gnb, GnbInput::Uplink { ue: key, nas });
            }
            Uplink::Lost if known => self.gnb_input(gnb, GnbInput::RadioLost { ue: key }),
            // The UE was handed over to another gNB meanwhile.
            signal if !known && self.ues[ue].connection == Some(connection) && self.ues[ue].gnb != gnb => {
                let gnb = self.ues[ue].gnb;
                self.uplink(ue, gnb, connection, signal);
            }
            // The gNB has no such connection: the UE gets a release.
            Uplink::Nas(_) => {
                self.watch.unheard.note(ue, self.now);
                self.to_ue(ue, connection, Downlink::Released);
            }
            Uplink::Lost => {}
        }
    }

    /// Whether the gNB of an endpoint has an AMF at another one.
    fn has_other_amf(&self, gnb: usize) -> bool {
        let amfs = self.plan.amfs();
        let first = gnb / amfs * amfs;
        (first..first + amfs).any(|at| self.gnbs[at].gnb.is_up() && !self.gnbs[at].associations.is_empty())
    }

    /// Sends a NAS message from a gNB to a UE, and checks its COUNT.
    pub(super) fn nas_to_ue(&mut self, gnb: usize, connection: UeKey, nas: Vec<u8>) {
        let Some(ue) = self.gnbs[gnb].connections.get(&connection).copied() else { return };
        self.record("AMF", name(ue), nas_name(&nas));
        let supi = self.ues[ue].subscriber.supi.to_string();
        let process = self.amf_of(gnb);
        let keys = self.journal().keys_of(&supi, process);
        if !self.may_have_null_security(ue) {
            let is_late = self.ues[ue].connection.is_some_and(|newer| newer > u64::from(connection.0));
            self.watch.downlink_nas(ue, (connection.0.into(), is_late), (process, keys), &nas);
        }
        self.signal_to_ue(gnb, connection, Downlink::Nas(nas));
    }

    pub(super) fn signal_to_ue(&mut self, gnb: usize, connection: UeKey, signal: Downlink) {
        let Some(ue) = self.gnbs[gnb].connections.get(&connection).copied() else { return };
        if matches!(signal, Downlink::Nas(_)) && self.fault_occurs(self.plan.faults.radio_loss) {
            self.ues[ue].history.note_lost_downlink(self.now);
            return self.record("air", name(ue), "(lost)");
        }
        self.to_ue(ue, connection.0.into(), signal);
    }

    pub(super) fn release_ue(&mut self, gnb: usize, connection: UeKey) {
        self.gnbs[gnb].releasing.remove(&connection);
        if let Some(ue) = self.gnbs[gnb].connections.remove(&connection) {
            self.to_ue(ue, connection.0.into(), Downlink::Released);
        }
    }

    fn to_ue(&mut self, ue: usize, connection: u64, signal: Downlink) {
        let missed = matches!(signal, Downlink::Released) && self.fault_occurs(self.plan.faults.radio_loss);
        let after = if missed { self.dice.seconds(1, 8) } else { self.dice.millis(1, 10) };
        self.in_order(Channel::Air { ue, up: false }, after, SimEvent::Downlink { ue, connection, signal });
    }

    pub(super) fn downlink(&mut self, ue: usize, connection: u64, signal: Downlink) {
        if self.ues[ue].connection != Some(connection) {
            if matches!(signal, Downlink::Nas(_)) {
                self.ues[ue].history.note_missed_downlink(self.now);
            }
            return;
        }
        match signal {
            Downlink::Nas(nas) => self.ue_input(ue, Input::Nas(&nas)),
            Downlink::Security { k_gnb, capabilities } => {
                self.ue_input(ue, Input::SecurityActivated { k_gnb, capabilities });
            }
            Downlink::HandedOver { key, chaining_count, cell } => {
                self.ue_input(ue, Input::HandedOver { key, chaining_count, cell });
                let tai = self.gnbs[self.ues[ue].gnb].gnb.settings().tai();
                self.ue_input(ue, Input::Camp(tai));
            }
            Downlink::UserPlane { session, up } => self.ue_input(ue, Input::UserPlane { session, up }),
            Downlink::Released => {
                self.ues[ue].connection = None;
                self.ue_input(ue, Input::ConnectionReleased);
                // It may have left for a gNB at which it did not arrive.
                let tai = self.gnbs[self.ues[ue].gnb].gnb.settings().tai();
                self.ue_input(ue, Input::Camp(tai));
            }
        }
    }

    /// The radio of a UE fails; its gNB detects it later.
    pub(super) fn lose_radio(&mut self, ue: usize) {
        let Some(connection) = self.ues[ue].connection else { return };
        let gnb = self.ues[ue].gnb;
        let after = self.dice.seconds(0, 10);
        self.at(after, SimEvent::Uplink { ue, gnb, connection, signal: Uplink::Lost });
        self.downlink(ue, connection, Downlink::Released);
    }

    /// The endpoint of the next gNB at the same AMF.
    fn next_gnb(&self, endpoint: usize) -> usize {
        let areas = if self.plan.reallocates { 1 } else { self.plan.areas };
        (endpoint + self.plan.amfs() * areas) % self.gnbs.len()
    }

    /// A UE without a connection selects a cell of the next gNB, which may be in another area.
    pub(super) fn reselect(&mut self, ue: usize) {
        if self.ues[ue].connection.is_none() {
            self.ues[ue].gnb = (self.ues[ue].gnb + self.plan.amfs()) % self.gnbs.len();
            let tai = self.gnbs[self.ues[ue].gnb].gnb.settings().tai();
            self.ue_input(ue, Input::Camp(tai));
        }
    }

    /// The UE's gNB hands it over to the next one over Xn.
    pub(super) fn xn_handover(&mut self, ue: usize) {
        let Some(connection) = self.ues[ue].connection else { return };
        let (source, key) = (self.ues[ue].gnb, UeKey(connection as u32));
        let target = self.next_gnb(source);
        if target == source || !self.gnbs[target].gnb.is_up() {
            return;
        }
        let cell = self.gnbs[target].gnb.cell();
        let Some(handover) = self.gnbs[source].gnb.start_xn_handover(key, cell) else { return };
        self.gnbs[source].connections.remove(&key);
        self.gnbs[source].bearers.retain(|(of, _), _| *of != key);
        self.gnbs[target].connections.insert(key, ue);
        self.ues[ue].gnb = target;
        self.gnb_input(target, GnbInput::XnHandover(Box::new(handover)));
    }

    /// The UE's gNB requires a handover to the next one.
    pub(super) fn n2_handover(&mut self, ue: usize) {
        let Some(connection) = self.ues[ue].connection else { return };
        let (source, key) = (self.ues[ue].gnb, UeKey(connection as u32));
        let mut target = self.next_gnb(source);
        if self.plan.areas > 1 && !self.plan.reallocates && (target == source || self.dice.chance(700)) {
            target = (source + 1) % self.gnbs.len();
        }
        if target != source {
            let (node, tai) = (self.gnbs[target].gnb.node(), self.gnbs[target].gnb.settings().tai());
            self.gnb_input(source, GnbInput::RequireHandover { ue: key, node, tai });
        }
    }

    /// The UE's gNB moves the downlink of the UE's sessions to the next gNB, or to itself (dual connectivity).
    pub(super) fn move_flows(&mut self, ue: usize, secondary: bool) {
        let Some(connection) = self.ues[ue].connection else { return };
        let (master, key) = (self.ues[ue].gnb, UeKey(connection as u32));
        let target = if secondary { self.next_gnb(master) } else { master };
        let of_ue =
            self.gnbs[master].bearers.keys().filter(|(of, _)| *of == key).map(|(_, session)| *session);
        let mut sessions: Vec<u8> = of_ue.collect();
        sessions.sort_unstable();
        let mut tunnels = Vec::with_capacity(sessions.len());
        for session in sessions {
            let tunnel = self.gnbs[target].gnb.open_tunnel();
            self.lent_tunnels.insert(tunnel);
            tunnels.push((session, tunnel));
        }
        self.gnb_input(master, GnbInput::MoveFlows { ue: key, tunnels });
    }

    /// A UE leaves its gNB for a cell that is prepared for it. A UE that has no such connection any longer does not arrive. The handover command
    /// releases the radio bearers of sessions that are not handed over (TS 38.413 8.4.1.2, TS 38.331 5.3.5.6.4).
    pub(super) fn leave_for(&mut self, source: usize, key: UeKey, cell: Cell, nas_container: Option<&[u8]>) {
        let Some(ue) = self.gnbs[source].connections.remove(&key) else { return };
        let of_ue = self.gnbs[source].bearers.extract_if(.., |(of, _), _| *of == key);
        let left: Vec<u8> = of_ue.map(|((_, session), _)| session).collect();
        let amfs = self.plan.amfs();
        let of_amf = (source % amfs..self.gnbs.len()).step_by(amfs);
        let target = of_amf.into_iter().find(|at| self.gnbs[*at].gnb.cell() == cell);
        let Some(target) = target.filter(|_| self.ues[ue].connection == Some(key.0.into())) else { return };
        // A container that the UE does not accept is a violation.
        self.ue_input(ue, Input::HandoverCommand { nas_container });
        self.gnbs[target].connections.insert(key, ue);
        self.ues[ue].gnb = target;
        self.gnb_input(target, GnbInput::Arrive { ue: key });
        for session in left {
            if !self.gnbs[target].bearers.contains_key(&(key, session)) {
                self.to_ue(ue, key.0.into(), Downlink::UserPlane { session, up: false });
            }
        }
    }

    /// The gNB detects the inactivity of a UE.
    pub(super) fn end_for_inactivity(&mut self, ue: usize) {
        let gnb = self.ues[ue].gnb;
        if let Some(connection) = self.ues[ue].connection {
            let (key, cause) = (UeKey(connection as u32), CauseRadioNetwork::user_inactivity);
            self.gnbs[gnb].releasing.insert(key);
            self.gnb_input(gnb, GnbInput::ReleaseContext { ue: key, cause });
        }
    }
}

pub(super) fn name(ue: usize) -> String {
    format!("UE{}", ue + 1)
}

/// The name of a NAS message, if it can be decoded: with 5G-EA0 all can.
fn nas_name(nas: &[u8]) -> String {
    let inside = match nas.get(1).map(|octet| SecurityHeaderType::from_octet(*octet)) {
        Some(SecurityHeaderType::Plain) => Some(nas),
        _ => nas.get(7..),
    };
    let message = inside.and_then(|octets| GmmMessage::decode(octets).ok());
    match message {
        Some(GmmMessage::UlNasTransport(transport)) => gsm_name(&transport.payload_container),
        Some(GmmMessage::DlNasTransport(transport)) => gsm_name(&transport.payload_container),
        Some(message) => message.name().into(),
        None => "(ciphered)".into(),
    }
}

fn gsm_name(octets: &[u8]) -> String {
    pith_nas::GsmMessage::decode(octets).map_or("(5GSM)".into(), |message| message.body.name().into())
}
