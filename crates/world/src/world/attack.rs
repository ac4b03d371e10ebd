//! An attacker of the network with a gNB, a UE and a host, beside the honest ones. The attacker observes all
//! messages that arrived over N2 and N4, and may send any message. Honest UEs must not be affected.

use super::{SimEvent, World};
use crate::network::{self, upf_n4};
use pith_nf::gateway::n2::{N2GatewayInput, NGAP_PPID};
use pith_nf::gateway::n4::N4GatewayInput;
use pith_nf::kit::Tnla;
use pith_ngap::{Message, RrcEstablishmentCause};
use pith_ran::gnb::{Input as GnbInput, UeKey};
use pith_types::FiveGSTmsi;
use pith_upf::Input as UpfInput;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// The association of the attacker's gNB.
const GNB: Tnla = Tnla(u64::MAX);
/// First number of the radio connections of the attacker's UE.
const UES: u32 = 1 << 31;
/// Address of the attacker's host.
const HOST: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 66, 6, 6)), 8805);
/// Number of observed messages kept of each kind.
const MEMORY: usize = 64;

/// An action of an attacker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttackAction {
    /// Its gNB sends a PDU on that stream.
    Ngap(u16, Vec<u8>),
    /// The association of its gNB breaks and is established again.
    Reassociate,
    /// Its UE connects to that gNB of the network.
    Connect(usize, Vec<u8>, Option<FiveGSTmsi>),
    /// Its UE sends a NAS message on its connection to that gNB.
    Nas(usize, Vec<u8>),
    /// Its UE releases the connection.
    Leave(usize),
    /// A datagram to the UPF: from its host, or (for an inside attacker) with the address of an SMF.
    ToUpf(Vec<u8>),
    /// A datagram to the SMF: from its host, or (for an inside attacker) with the address of the UPF.
    ToSmf(Vec<u8>),
}

/// Decides the actions of an attacker.
pub trait Attacker {
    /// The next action, if any.
    fn next_action(&mut self, observed: &ObservedMessages) -> Option<AttackAction>;

    /// Whether it sends with the address of a network function. Then UEs may be affected, but
    /// nothing may hang.
    fn is_inside(&self) -> bool {
        false
    }
}

/// The last messages that it observed.
#[derive(Debug, Default)]
pub struct ObservedMessages {
    /// NGAP PDUs in both directions, including those to its own gNB.
    pub ngap: VecDeque<Vec<u8>>,
    /// PFCP datagrams in both directions.
    pub pfcp: VecDeque<Vec<u8>>,
}

impl ObservedMessages {
    fn keep(list: &mut VecDeque<Vec<u8>>, octets: &[u8]) {
        if list.len() == MEMORY {
            list.pop_front();
        }
        list.push_back(octets.to_vec());
    }
}

/// The attacker of a world, and its knowledge.
#[derive(Default)]
pub(super) struct AttackerState {
    attacker: Option<Box<dyn Attacker>>,
    observed: ObservedMessages,
    /// Number of radio connections of its UE so far.
    connections: u32,
    until: pith_nf::kit::Instant,
    /// Whether its gNB got the path of a UE (PATH SWITCH REQUEST ACKNOWLEDGE).
    has_switched: bool,
}

impl AttackerState {
    /// The radio connection of its UE.
    fn ue(&self) -> UeKey {
        UeKey(UES + self.connections)
    }

    pub fn is_inside(&self) -> bool {
        self.attacker.as_ref().is_some_and(|attacker| attacker.is_inside())
    }

    /// Whether its gNB has got the path of a UE.
    pub const fn has_switched(&self) -> bool {
        self.has_switched
    }

    /// Records an NGAP PDU that arrived.
    pub fn observe_ngap(&mut self, pdu: &[u8]) {
        if self.attacker.is_some() {
            ObservedMessages::keep(&mut self.observed.ngap, pdu);
        }
    }

    /// Records an NGAP PDU to an association.
    pub fn observe_ngap_to(&mut self, association: u64, pdu: &[u8]) {
        self.observe_ngap(pdu);
        let is_own = self.attacker.is_some() && association == GNB.0;
        let is_switched = |pdu| matches!(Message::decode(pdu), Ok(Message::PathSwitchRequestAcknowledge(_)));
        self.has_switched |= is_own && is_switched(pdu);
    }

    /// Records a PFCP datagram that arrived.
    pub fn observe_pfcp(&mut self, octets: &[u8]) {
        if self.attacker.is_some() {
            ObservedMessages::keep(&mut self.observed.pfcp, octets);
        }
    }
}

impl World {
    /// Adds an attacker, which acts while faults are on.
    pub fn attack_by(&mut self, attacker: Box<dyn Attacker>) {
        self.enemy.attacker = Some(attacker);
    }

    pub(super) fn begin_attack(&mut self, time: Duration) {
        if self.enemy.attacker.is_some() {
            self.enemy.until = self.now + time;
            self.enemy_gnb_up();
            self.at(Duration::ZERO, SimEvent::Strike);
        }
    }

    /// Ends the attack, and releases its gNB and UE.
    pub(super) fn end_attack(&mut self) {
        if self.enemy.attacker.is_some() {
            self.n2_gateway(self.amf_process(), N2GatewayInput::Down { tnla: GNB });
            (0..self.gnbs.len()).for_each(|gnb| self.enemy_ue_leaves(gnb));
        }
    }

    fn enemy_ue_leaves(&mut self, gnb: usize) {
        let ue = self.enemy.ue();
        self.gnb_input(gnb, GnbInput::RadioLost { ue });
    }

    fn enemy_gnb_up(&mut self) {
        let up = N2GatewayInput::Up {
            tnla: GNB,
            peer: HOST,
            local: crate::network::amf_end(0),
            alternatives: Vec::new(),
        };
        self.n2_gateway(self.amf_process(), up);
        let setup = network::ng_setup_request("enemy", 0x66_6666);
        self.enemy_ngap(0, setup);
    }

    fn enemy_ngap(&mut self, stream: u16, pdu: Vec<u8>) {
        let input = N2GatewayInput::Message { tnla: GNB, stream, ppid: NGAP_PPID, pdu: pdu.into() };
        self.n2_gateway(self.amf_process(), input);
    }

    pub(super) fn next_action(&mut self) {
        if self.now >= self.enemy.until {
            return;
        }
        let Some(attacker) = &mut self.enemy.attacker else { return };
        let action = attacker.next_action(&self.enemy.observed);
        if let Some(action) = action {
            self.record("enemy", "world", format!("{:.40}", format!("{action:?}")));
            self.deal(action);
        }
        let after = self.dice.millis(20, 2000);
        self.at(after, SimEvent::Strike);
    }

    fn deal(&mut self, action: AttackAction) {
        let gnbs = self.gnbs.len();
        let inside = self.enemy.is_inside();
        match action {
            AttackAction::Ngap(stream, pdu) => self.enemy_ngap(stream, pdu),
            AttackAction::Reassociate => {
                self.n2_gateway(self.amf_process(), N2GatewayInput::Down { tnla: GNB });
                self.enemy_gnb_up();
            }
            AttackAction::Connect(gnb, nas, s_tmsi) => {
                (0..gnbs).for_each(|gnb| self.enemy_ue_leaves(gnb));
                self.enemy.connections += 1;
                let (ue, cause) = (self.enemy.ue(), RrcEstablishmentCause::mo_Signalling);
                self.gnb_input(gnb % gnbs, GnbInput::Connect { ue, nas, cause, s_tmsi });
            }
            AttackAction::Nas(gnb, nas) => {
                self.gnb_input(gnb % gnbs, GnbInput::Uplink { ue: self.enemy.ue(), nas })
            }
            AttackAction::Leave(gnb) => self.enemy_ue_leaves(gnb % gnbs),
            AttackAction::ToUpf(octets) => {
                let peer = if inside { network::smf_n4(self.smf_process()) } else { HOST };
                self.upf_input(0, UpfInput::Datagram { peer, octets: &octets });
            }
            AttackAction::ToSmf(octets) => {
                let from = if inside { upf_n4(0) } else { HOST };
                self.n4_gateway(self.smf_process(), N4GatewayInput::Datagram { from, octets });
            }
        }
    }

    fn smf_process(&self) -> usize {
        self.processes.iter().position(|process| process.n4.is_some()).unwrap_or(0)
    }
}
