//! What a radio network is told, and what it does.

use crate::gnb::{self, UeKey};
use crate::journey::Progress;
use crate::ue;
use std::net::SocketAddr;

/// One thing that happens to a radio network.
#[derive(Debug, Clone)]
pub enum Input<'a> {
    /// The association of a gNB stands.
    N2Up {
        /// Which gNB, counted from 0.
        gnb: usize,
        /// Streams to send on.
        outbound_streams: u16,
    },
    /// It is gone.
    N2Down {
        /// Which gNB.
        gnb: usize,
    },
    /// An NGAP PDU came.
    N2 {
        /// For which gNB.
        gnb: usize,
        /// On which stream.
        stream: u16,
        /// The PDU.
        pdu: &'a [u8],
    },
    /// A GTP-U datagram came.
    N3 {
        /// From whom.
        from: SocketAddr,
        /// The datagram.
        datagram: &'a [u8],
    },
    /// A UE has an IP packet to send.
    Packet {
        /// Which UE.
        ue: UeKey,
        /// In which PDU session.
        session: u8,
        /// The packet.
        packet: &'a [u8],
    },
    /// Something that no plan foresees happens to a UE.
    Ue {
        /// Which UE.
        ue: UeKey,
        /// What.
        input: ue::Input<'a>,
    },
    /// Something that no plan foresees happens to a gNB.
    Gnb {
        /// Which gNB.
        gnb: usize,
        /// What.
        input: gnb::Input<'a>,
    },
    /// The time of [`super::Ran::next_timeout`] has come.
    Timeout,
}

/// One thing that a radio network does.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Send an NGAP PDU.
    N2 {
        /// From which gNB.
        gnb: usize,
        /// On which stream.
        stream: u16,
        /// The PDU.
        pdu: Vec<u8>,
    },
    /// Send a GTP-U datagram.
    N3 {
        /// To whom.
        to: SocketAddr,
        /// The datagram.
        datagram: Vec<u8>,
    },
    /// An IP packet for a UE, none that it waited for itself.
    Packet {
        /// Which UE.
        ue: UeKey,
        /// In which PDU session.
        session: u8,
        /// The packet.
        packet: Vec<u8>,
    },
    /// Something that the tester of a gNB takes note of.
    GnbEvent {
        /// Which gNB.
        gnb: usize,
        /// What.
        event: gnb::Event,
    },
    /// Something that the user of a UE takes note of.
    UeEvent {
        /// Which UE.
        ue: UeKey,
        /// What.
        event: ue::Event,
    },
}

/// How far the UEs of a run are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// All of them.
    pub ues: usize,
    /// Those that have begun and not ended.
    pub under_way: usize,
    /// Those that went all the way.
    pub done: usize,
    /// Those that failed.
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
