//! Simulated worlds with an attacker: its gNB, UE or host, or the address of an NF. Honest UEs register,
//! establish sessions, go idle and return all the time, and must fulfil the invariants of `pith-world`.
//!
//! The first two octets are the world's seed; the rest chooses the attacker's actions.

use super::choices::Choices;
use crate::corpus::{Seed, read};
use crate::mutate::Mutator;
use crate::target::{CheckFailed, Shape};
use pith_nas::GmmMessage;
use pith_ngap::{
    Cause, CauseRadioNetwork, InitialUeMessage, Message, NgConnection, NgReset, Peek, ResetScope,
    UeContextReleaseComplete, UeContextReleaseRequest, UplinkNasTransport, UserLocation, peek,
};
use pith_types::{AmfUeNgapId, FiveGSTmsi, NrCellIdentity, RanUeNgapId, Tac, Tai};
use pith_world::{AttackAction, Attacker, Faults, ObservedMessages, Plan, World};
use std::collections::VecDeque;
use std::sync::LazyLock;

static NGAP: LazyLock<Vec<Seed>> = LazyLock::new(|| read("ngap").unwrap_or_default());
static NAS: LazyLock<Vec<Seed>> = LazyLock::new(|| read("nas-gmm").unwrap_or_default());
static PFCP: LazyLock<Vec<Seed>> = LazyLock::new(|| read("pfcp").unwrap_or_default());

/// id-NGSetup (TS 38.413 9.4.7).
const NG_SETUP: u8 = 21;

/// The position of an attacker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttackerPosition {
    Ue,
    Gnb,
    Host,
    Inside,
}

struct Script {
    stand: AttackerPosition,
    octets: VecDeque<u8>,
}

/// The attacker has a UE.
pub fn ue(input: &[u8]) -> Result<(), CheckFailed> {
    attack(AttackerPosition::Ue, input)
}

/// The attacker has a gNB.
pub fn gnb(input: &[u8]) -> Result<(), CheckFailed> {
    attack(AttackerPosition::Gnb, input)
}

/// The attacker has a host in the N4 network.
pub fn host(input: &[u8]) -> Result<(), CheckFailed> {
    attack(AttackerPosition::Host, input)
}

/// The attacker sends PFCP with the addresses of SMF and UPF.
pub fn inside(input: &[u8]) -> Result<(), CheckFailed> {
    attack(AttackerPosition::Inside, input)
}

fn attack(stand: AttackerPosition, input: &[u8]) -> Result<(), CheckFailed> {
    let mut choices = Choices::new(input);
    let seed = choices.below(1 << 16) as u64;
    let mut plan = Plan::of_seed(seed);
    plan.faults = Faults::default();
    // The bound of memory is for few UEs: each step looks at all of them.
    plan.ues = plan.ues.min(6);
    plan.processes = vec![pith_nf::kit::Nf::ALL.to_vec()];
    let mut world = World::new(plan);
    let octets = input.iter().skip(2).copied().collect();
    world.attack_by(Box::new(Script { stand, octets }));
    world.run_phases().map(|_| ()).map_err(|failure| CheckFailed(failure.to_string()))
}

impl Attacker for Script {
    fn next_action(&mut self, observed: &ObservedMessages) -> Option<AttackAction> {
        // Each action has eight octets of choices.
        let chosen: Vec<u8> = (0..8).map_while(|_| self.octets.pop_front()).collect();
        let mut choices = Choices::new(&chosen);
        (!chosen.is_empty()).then(|| match self.stand {
            AttackerPosition::Ue => of_ue(observed, &mut choices),
            AttackerPosition::Gnb => of_gnb(observed, &mut choices),
            AttackerPosition::Host | AttackerPosition::Inside => of_host(observed, &mut choices),
        })
    }

    fn is_inside(&self) -> bool {
        self.stand == AttackerPosition::Inside
    }
}

fn of_ue(observed: &ObservedMessages, choices: &mut Choices<'_>) -> AttackAction {
    let (gnb, kind) = (choices.below(8), choices.below(8));
    match kind {
        0 => AttackAction::Leave(gnb),
        1..5 => {
            let s_tmsi = heard_s_tmsi(observed, choices);
            AttackAction::Connect(gnb, nas(observed, choices), s_tmsi)
        }
        _ => AttackAction::Nas(gnb, nas(observed, choices)),
    }
}

fn of_host(observed: &ObservedMessages, choices: &mut Choices<'_>) -> AttackAction {
    let to_upf = choices.below(2) == 0;
    let octets = datagram(observed, choices);
    if to_upf { AttackAction::ToUpf(octets) } else { AttackAction::ToSmf(octets) }
}

fn datagram(observed: &ObservedMessages, choices: &mut Choices<'_>) -> Vec<u8> {
    let heard = observed.pfcp.get(choices.below(observed.pfcp.len()));
    let heard = heard.filter(|_| choices.below(4) > 0);
    let octets =
        heard.cloned().or_else(|| choices.pick(&PFCP).map(|seed| seed.octets.clone())).unwrap_or_default();
    match choices.below(3) {
        0 => octets,
        _ => Mutator::new(Shape::Octets, &PFCP).mutate(&octets, &mut choices.random()),
    }
}

/// A NAS message: observed or generated, unchanged or mutated.
fn nas(observed: &ObservedMessages, choices: &mut Choices<'_>) -> Vec<u8> {
    let start = choices.below(observed.ngap.len());
    let heard = (0..8).find_map(|step| nas_of(observed.ngap.get(start + step)?));
    let heard = heard.filter(|_| choices.below(4) > 0);
    let octets = heard.or_else(|| choices.pick(&NAS).map(|seed| seed.octets.clone())).unwrap_or_default();
    match choices.below(3) {
        0 => octets,
        1 => unprotected(&octets),
        _ => Mutator::new(Shape::Octets, &NAS).mutate(&octets, &mut choices.random()),
    }
}

/// The message within a protected one, if it can be read.
fn unprotected(octets: &[u8]) -> Vec<u8> {
    let inside = octets.get(7..).filter(|inside| GmmMessage::decode(inside).is_ok());
    inside.unwrap_or(octets).to_vec()
}

fn nas_of(pdu: &[u8]) -> Option<Vec<u8>> {
    match Message::decode(pdu).ok()? {
        Message::InitialUeMessage(message) => Some(message.nas_pdu),
        Message::UplinkNasTransport(message) => Some(message.nas_pdu),
        Message::DownlinkNasTransport(message) => Some(message.nas_pdu),
        _ => None,
    }
}

fn heard_s_tmsi(observed: &ObservedMessages, choices: &mut Choices<'_>) -> Option<FiveGSTmsi> {
    let start = choices.below(observed.ngap.len());
    observed.ngap.iter().skip(start).find_map(|pdu| peek(pdu)?.s_tmsi)
}

fn of_gnb(observed: &ObservedMessages, choices: &mut Choices<'_>) -> AttackAction {
    let stream = choices.below(4) as u16;
    let heard = observed.ngap.get(choices.below(observed.ngap.len()));
    let pdu = match choices.below(8) {
        0 => return AttackAction::Reassociate,
        1 => heard.cloned().unwrap_or_default(),
        2 | 3 => {
            let octets = heard.cloned().unwrap_or_default();
            Mutator::new(Shape::Octets, &NGAP).mutate(&octets, &mut choices.random())
        }
        4 => {
            let octets = choices.pick(&NGAP).map(|seed| seed.octets.clone()).unwrap_or_default();
            Mutator::new(Shape::Octets, &NGAP).mutate(&octets, &mut choices.random())
        }
        5 => initial_ue_message(observed, choices),
        _ => about_another(observed, heard.and_then(|pdu| peek(pdu)), choices),
    };
    // An attacker with another gNB's identity would be that gNB: IPsec prevents this (TS 33.501 9.2).
    let is_setup = peek(&pdu).is_some_and(|peek| peek.procedure_code == NG_SETUP);
    if is_setup { AttackAction::Reassociate } else { AttackAction::Ngap(stream, pdu) }
}

fn location() -> UserLocation {
    let plmn = "999/70".parse().expect("a constant that is a PLMN");
    UserLocation {
        cell_plmn: plmn,
        cell: NrCellIdentity::new(0x66),
        tai: Tai { plmn_id: plmn, tac: Tac::new(1) },
    }
}

fn initial_ue_message(observed: &ObservedMessages, choices: &mut Choices<'_>) -> Vec<u8> {
    let s_tmsi = heard_s_tmsi(observed, choices);
    InitialUeMessage {
        ran_ue_ngap_id: RanUeNgapId(choices.octet().into()),
        nas_pdu: nas(observed, choices),
        location: location(),
        establishment_cause: None,
        s_tmsi,
        amf_set_id: None,
        ue_context_request: Some(()),
        allowed_nssai: None,
        reroute: None,
    }
    .encode()
    .unwrap_or_default()
}

/// A message about an observed UE, which may belong to another gNB.
fn about_another(observed: &ObservedMessages, heard: Option<Peek<'_>>, choices: &mut Choices<'_>) -> Vec<u8> {
    let amf_ue_ngap_id = heard.and_then(|peek| peek.amf_ue_ngap_id).or_else(|| AmfUeNgapId::from_wire(1));
    let Some(amf_ue_ngap_id) = amf_ue_ngap_id else { return Vec::new() };
    let ran_ue_ngap_id =
        heard.and_then(|peek| peek.ran_ue_ngap_id).unwrap_or(RanUeNgapId(choices.octet().into()));
    let cause = Cause::RadioNetwork(CauseRadioNetwork::user_inactivity);
    match choices.below(5) {
        0 => UeContextReleaseRequest { amf_ue_ngap_id, ran_ue_ngap_id, sessions: None, cause: Some(cause) }
            .encode()
            .unwrap_or_default(),
        1 => UeContextReleaseComplete {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            location: None,
            sessions: None,
            diagnostics: None,
        }
        .encode()
        .unwrap_or_default(),
        2 => {
            let connection =
                NgConnection { amf_ue_ngap_id: Some(amf_ue_ngap_id), ran_ue_ngap_id: Some(ran_ue_ngap_id) };
            NgReset { cause, scope: ResetScope::Part(vec![connection]) }.encode().unwrap_or_default()
        }
        _ => {
            let nas_pdu = nas(observed, choices);
            UplinkNasTransport { amf_ue_ngap_id, ran_ue_ngap_id, nas_pdu, location: Some(location()) }
                .encode()
                .unwrap_or_default()
        }
    }
}
