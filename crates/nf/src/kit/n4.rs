//! Between the SMF and the N4 gateway.

use super::Tag;
use pith_pfcp::Message;
use pith_types::Seid;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// One UPF as long as its PFCP association lives; never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UpfHandle(pub u64);

/// A request of a UPF that waits for an answer (TS 29.244 6.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct N4Transaction {
    /// From which UPF.
    pub upf: UpfHandle,
    /// Whence it came, and where the answer goes (TS 29.244 4.2.3).
    pub from: SocketAddr,
    /// Its sequence number.
    pub sequence: u32,
}

/// What PFCP Association Setup told of a UPF (TS 29.244 7.4.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpfInfo {
    /// The name in the configuration.
    pub name: String,
    /// Where its PFCP entity is.
    pub address: IpAddr,
    /// Where this SMF's PFCP entity is: the address in the CP F-SEID.
    pub local_address: IpAddr,
}

/// Why a request to a UPF has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum N4Error {
    /// N1 transmissions went unanswered (TS 29.244 6.4).
    #[error("the UPF did not answer")]
    NoAnswer,
    /// The UPF wants fewer new sessions (TS 29.244 6.2.4).
    #[error("the UPF is overloaded")]
    Overloaded,
    /// It does not fit into a datagram.
    #[error("the request does not fit into a datagram")]
    TooLong,
    /// There is no association with that UPF, or it ended meanwhile.
    #[error("no PFCP association with the UPF")]
    NoAssociation,
}

/// What the gateway hands to the SMF of a shard.
#[derive(Debug)]
pub enum N4Input {
    /// The answer to a request of this SMF, or that there is none.
    Response {
        /// As given with the request.
        tag: Tag,
        /// The answer.
        result: Result<Message, N4Error>,
    },
    /// A UPF asks about a session of this shard: a Session Report Request.
    Request {
        /// What to answer.
        transaction: N4Transaction,
        /// This SMF's SEID of the session.
        seid: Seid,
        /// What is asked.
        message: Message,
    },
    /// A PFCP association with a UPF stands; or the UPF tells anew what it can do (TS 29.244 6.2.7.3).
    UpfUp {
        /// Its handle from now on.
        upf: UpfHandle,
        /// What it told.
        info: Arc<UpfInfo>,
    },
    /// A UPF told of its load (TS 29.244 6.2.3).
    UpfLoad {
        /// Which.
        upf: UpfHandle,
        /// In percent.
        percent: u8,
    },
    /// A UPF asks to be released: no new sessions there (TS 29.244 6.2.7.3.2).
    UpfLeaves {
        /// Which.
        upf: UpfHandle,
    },
    /// The association ended, or the UPF restarted: its sessions are gone.
    UpfDown {
        /// Which.
        upf: UpfHandle,
    },
}

/// What an SMF asks of the gateway.
#[derive(Debug)]
pub enum N4Effect {
    /// Send a request, retransmitted until answered; one [`N4Input::Response`] follows.
    Request {
        /// Comes back with the response.
        tag: Tag,
        /// To which UPF.
        upf: UpfHandle,
        /// The UPF's SEID of the session, 0 when it has given none yet (TS 29.244 7.2.2.4.2).
        seid: Seid,
        /// What is asked.
        message: Message,
    },
    /// Answer a request of a UPF.
    Answer {
        /// Which.
        transaction: N4Transaction,
        /// The UPF's SEID of the session, 0 when it is not known.
        seid: Seid,
        /// The answer.
        message: Message,
    },
}
