//! Inputs and outputs of a radio network.

use crate::gnb::{self, UeKey};
use crate::journey::Progress;
pub use crate::prefix::DelegatedPrefix;
use crate::ue;
use std::net::{SocketAddr, SocketAddrV4};

/// One input of a radio network.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum Input<'a> {
    /// An association of a gNB is established.
    N2Up {
        gnb: usize,
        /// Its number at the gNB.
        association: u8,
        /// Number of outbound streams.
        outbound_streams: u16,
    },
    /// An association of a gNB is lost.
    N2Down { gnb: usize, association: u8 },
    /// An NGAP PDU was received.
    N2 { gnb: usize, association: u8, stream: u16, pdu: &'a [u8] },
    /// A GTP-U datagram was received.
    N3 { from: SocketAddr, datagram: &'a [u8] },
    /// A UE has an IP packet to send.
    Packet {
        ue: UeKey,
        /// PDU session identity.
        session: u8,
        packet: &'a [u8],
    },
    /// An input of a UE that is not part of its plan.
    Ue { ue: UeKey, input: ue::Input<'a> },
    /// An input of a gNB that is not part of a plan.
    Gnb { gnb: usize, input: gnb::Input<'a> },
    /// The time of [`super::Ran::next_timeout`] is reached.
    Timeout,
}

/// One output of a radio network.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Output {
    /// Send an NGAP PDU.
    N2 { gnb: usize, association: u8, stream: u16, pdu: Vec<u8> },
    /// Establish an association with that number of a gNB.
    Associate { gnb: usize, association: u8, endpoint: SocketAddr },
    /// End an association of a gNB.
    Disassociate { gnb: usize, association: u8 },
    /// Send a GTP-U datagram.
    N3 { to: SocketAddr, datagram: Vec<u8> },
    /// An IP packet for a UE that does not answer its own pings or streams.
    Packet {
        ue: UeKey,
        /// PDU session identity.
        session: u8,
        packet: Vec<u8>,
    },
    /// A host of the data network sends a UDP datagram to a UE: the packet that pages it.
    FromNetwork {
        to: SocketAddrV4,
        /// Payload of the datagram.
        data: Vec<u8>,
    },
    /// The UPF has delegated a prefix to a UE.
    Delegated {
        ue: UeKey,
        /// PDU session identity.
        session: u8,
        prefix: DelegatedPrefix,
    },
    /// An event that the tester of a gNB observes.
    GnbEvent { gnb: usize, event: gnb::Event },
    /// An event that the user of a UE observes.
    UeEvent { ue: UeKey, event: ue::Event },
}

/// Progress of the UEs of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Number of UEs.
    pub ues: usize,
    /// UEs that have started and not ended.
    pub under_way: usize,
    /// UEs that completed their plan.
    pub done: usize,
    /// UEs that failed.
    pub failed: usize,
}

impl Tally {
    /// Whether every UE has ended.
    pub fn is_over(&self) -> bool {
        self.done + self.failed == self.ues
    }

    pub(super) fn move_on(&mut self, before: Progress, after: Progress) {
        if let Some(place) = self.place(before) {
            *place -= 1;
        }
        if let Some(place) = self.place(after) {
            *place += 1;
        }
    }

    fn place(&mut self, progress: Progress) -> Option<&mut usize> {
        match progress {
            Progress::Waiting => None,
            Progress::Under(_) => Some(&mut self.under_way),
            Progress::Done => Some(&mut self.done),
            Progress::Failed => Some(&mut self.failed),
        }
    }
}
