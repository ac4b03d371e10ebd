//! Those who wish the network ill: a gNB, a UE and a host of theirs, beside the honest ones. They hear everything
//! that is said over N2 and N4 once it has arrived, and may say anything themselves. Honest UEs must not notice.

use super::{Happening, World};
use crate::network::{self, upf_n4};
use pith_nf::gateway::n2::{N2GatewayInput, NGAP_PPID};
use pith_nf::gateway::n4::N4GatewayInput;
use pith_nf::kit::GnbHandle;
use pith_ngap::RrcEstablishmentCause;
use pith_ran::gnb::{Input as GnbInput, UeKey};
use pith_types::FiveGSTmsi;
use pith_upf::Input as UpfInput;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// The association of their gNB.
const GNB: GnbHandle = GnbHandle(u64::MAX);
/// Radio connections of their UE are numbered from here.
const UES: u32 = 1 << 31;
/// Where their host is.
const HOST: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 66, 6, 6)), 8805);
/// As much as they remember of each kind of message.
const MEMORY: usize = 64;

/// What they do at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blow {
    /// Their gNB sends a PDU, on that stream.
    Ngap(u16, Vec<u8>),
    /// The association of their gNB breaks, and comes again.
    Reassociate,
    /// Their UE begins a radio connection with that gNB, of those that there are.
    Connect(usize, Vec<u8>, Option<FiveGSTmsi>),
    /// Their UE sends a NAS message on its connection with that gNB.
    Nas(usize, Vec<u8>),
    /// Their UE goes away.
    Leave(usize),
    /// A datagram to the UPF: from their host, or (for those inside) in the name of an SMF.
    ToUpf(Vec<u8>),
    /// A datagram to the SMF: from their host, or (for those inside) in the name of the UPF.
    ToSmf(Vec<u8>),
}

/// Who decides what they do.
pub trait Attacker {
    /// What to do next, if anything.
    fn strike(&mut self, overheard: &Overheard) -> Option<Blow>;

    /// Whether they send with the address of an honest function. Then much may happen to UEs, but nothing hangs.
    fn is_inside(&self) -> bool {
        false
    }
}

/// What they heard last.
#[derive(Debug, Default)]
pub struct Overheard {
    /// NGAP PDUs, of both directions; those to their own gNB too.
    pub ngap: VecDeque<Vec<u8>>,
    /// PFCP datagrams, of both directions.
    pub pfcp: VecDeque<Vec<u8>>,
}

impl Overheard {
    fn keep(list: &mut VecDeque<Vec<u8>>, octets: &[u8]) {
        if list.len() == MEMORY {
            list.pop_front();
        }
        list.push_back(octets.to_vec());
    }
}

/// The attacker of a world, and what they know.
#[derive(Default)]
pub(super) struct Enemy {
    attacker: Option<Box<dyn Attacker>>,
    overheard: Overheard,
    /// Radio connections that their UE has had.
    connections: u32,
    until: pith_nf::kit::Instant,
}

impl Enemy {
    /// The radio connection of their UE.
    fn ue(&self) -> UeKey {
        UeKey(UES + self.connections)
    }

    pub fn is_inside(&self) -> bool {
        self.attacker.as_ref().is_some_and(|attacker| attacker.is_inside())
    }

    /// An NGAP PDU arrived somewhere.
    pub fn hear_ngap(&mut self, pdu: &[u8]) {
        if self.attacker.is_some() {
            Overheard::keep(&mut self.overheard.ngap, pdu);
        }
    }

    /// A PFCP datagram arrived somewhere.
    pub fn hear_pfcp(&mut self, octets: &[u8]) {
        if self.attacker.is_some() {
            Overheard::keep(&mut self.overheard.pfcp, octets);
        }
    }
}

impl World {
    /// Lets someone attack while faults are on.
    pub fn attack_by(&mut self, attacker: Box<dyn Attacker>) {
        self.enemy.attacker = Some(attacker);
    }

    pub(super) fn begin_attack(&mut self, time: Duration) {
        if self.enemy.attacker.is_some() {
            self.enemy.until = self.now + time;
            self.enemy_gnb_up();
            self.at(Duration::ZERO, Happening::Strike);
        }
    }

    /// They leave, and whatever holds on to their gNB and UE is let go.
    pub(super) fn end_attack(&mut self) {
        if self.enemy.attacker.is_some() {
            self.n2_gateway(self.amf_process(), N2GatewayInput::Down { gnb: GNB });
            (0..self.stations.len()).for_each(|gnb| self.enemy_ue_leaves(gnb));
        }
    }

    fn enemy_ue_leaves(&mut self, gnb: usize) {
        let ue = self.enemy.ue();
        self.gnb_input(gnb, GnbInput::RadioLost { ue });
    }

    fn enemy_gnb_up(&mut self) {
        let up = N2GatewayInput::Up { gnb: GNB, peer: HOST, alternatives: Vec::new() };
        self.n2_gateway(self.amf_process(), up);
        let setup = network::ng_setup_request("enemy", 0x66_6666);
        self.enemy_ngap(0, setup);
    }

    fn enemy_ngap(&mut self, stream: u16, pdu: Vec<u8>) {
        let input = N2GatewayInput::Message { gnb: GNB, stream, ppid: NGAP_PPID, pdu: pdu.into() };
        self.n2_gateway(self.amf_process(), input);
    }

    pub(super) fn strike(&mut self) {
        if self.now >= self.enemy.until {
            return;
        }
        let Some(attacker) = &mut self.enemy.attacker else { return };
        let blow = attacker.strike(&self.enemy.overheard);
        if let Some(blow) = blow {
            self.rung("enemy", "world", format!("{:.40}", format!("{blow:?}")));
            self.deal(blow);
        }
        let after = self.dice.millis(20, 2000);
        self.at(after, Happening::Strike);
    }

    fn deal(&mut self, blow: Blow) {
        let gnbs = self.stations.len();
        let inside = self.enemy.is_inside();
        match blow {
            Blow::Ngap(stream, pdu) => self.enemy_ngap(stream, pdu),
            Blow::Reassociate => {
                self.n2_gateway(self.amf_process(), N2GatewayInput::Down { gnb: GNB });
                self.enemy_gnb_up();
            }
            Blow::Connect(gnb, nas, s_tmsi) => {
                (0..gnbs).for_each(|gnb| self.enemy_ue_leaves(gnb));
                self.enemy.connections += 1;
                let (ue, cause) = (self.enemy.ue(), RrcEstablishmentCause::mo_Signalling);
                self.gnb_input(gnb % gnbs, GnbInput::Connect { ue, nas, cause, s_tmsi });
            }
            Blow::Nas(gnb, nas) => self.gnb_input(gnb % gnbs, GnbInput::Uplink { ue: self.enemy.ue(), nas }),
            Blow::Leave(gnb) => self.enemy_ue_leaves(gnb % gnbs),
            Blow::ToUpf(octets) => {
                let peer = if inside { network::smf_n4(self.smf_process()) } else { HOST };
                self.upf_input(0, UpfInput::Datagram { peer, octets: &octets });
            }
            Blow::ToSmf(octets) => {
                let from = if inside { upf_n4(0) } else { HOST };
                self.n4_gateway(self.smf_process(), N4GatewayInput::Datagram { from, octets });
            }
        }
    }

    fn smf_process(&self) -> usize {
        self.processes.iter().position(|process| process.n4.is_some()).unwrap_or(0)
    }
}
