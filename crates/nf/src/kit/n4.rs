//! The interface between the SMF and the N4 gateway.

use super::{Passage, Tag};
use pith_pfcp::Message;
use pith_pfcp::ie::Cause;
use pith_types::{BlockId, OwnerMap, Seid};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Identifies a UPF while its PFCP association exists; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UpfHandle(pub u64);

/// A pending request of a UPF (TS 29.244 6.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct N4Transaction {
    pub upf: UpfHandle,
    /// Source address of the request, and destination of the answer (TS 29.244 4.2.3).
    pub from: SocketAddr,
    /// Its sequence number.
    pub sequence: u32,
}

/// Data of a UPF from PFCP Association Setup (TS 29.244 7.4.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpfInfo {
    /// The name in the configuration.
    pub name: String,
    /// Address of its PFCP entity.
    pub address: IpAddr,
    /// Address of this SMF's PFCP entity, used in the CP F-SEID.
    pub local_address: IpAddr,
    /// The UPF has retained the sessions of the process's former run (TS 29.244 6.2.6.2.2): each is confirmed, or established
    /// again if the UPF does not know it.
    pub has_retained: bool,
    /// SMF and UPF have the feature MPAS: a session that this SMF takes over from another one of its set may be at the UPF (TS 29.244
    /// 5.22.3).
    pub shares_sessions: bool,
}

/// Why a request to a UPF has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum N4Error {
    /// No response after N1 transmissions (TS 29.244 6.4). A change of a session was retransmitted until the UPF had answered a heartbeat, and N1
    /// times more.
    #[error("the UPF did not answer")]
    NoAnswer,
    /// The UPF requests a reduction of new sessions (TS 29.244 6.2.4).
    #[error("the UPF is overloaded")]
    Overloaded,
    /// The message does not fit into a datagram.
    #[error("the request does not fit into a datagram")]
    TooLong,
    /// There is no association with that UPF, or it has ended.
    #[error("no PFCP association with the UPF")]
    NoAssociation,
}

/// What the gateway delivers to the SMF of a shard.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum N4Input {
    /// The result of a request of this SMF.
    Response {
        /// As given with the request.
        tag: Tag,
        result: Result<Message, N4Error>,
    },
    /// A request of a UPF about a session of this shard: Session Report Request.
    Request {
        transaction: N4Transaction,
        /// This SMF's SEID of the session.
        seid: Seid,
        message: Message,
    },
    /// A PFCP association was established, or the UPF updated its features (TS 29.244 6.2.7.3).
    UpfUp {
        /// Its handle, valid until `UpfDown`.
        upf: UpfHandle,
        info: Arc<UpfInfo>,
    },
    /// Load information of a UPF (TS 29.244 6.2.3).
    UpfLoad { upf: UpfHandle, percent: u8 },
    /// A UPF requests its release: no new sessions there (TS 29.244 6.2.7.3.2).
    UpfLeaves { upf: UpfHandle },
    /// The UPF has lost its sessions and can be associated again: [`N4Input::UpfUp`] with another handle and the same name
    /// follows, or `UpfDown`.
    UpfRestarted { upf: UpfHandle },
    /// The association ended, and the UPF with its sessions is lost.
    UpfDown { upf: UpfHandle },
    /// As [`super::N2Input::Held`].
    Held { block: BlockId },
    /// As [`super::N2Input::GiveUp`].
    GiveUp { block: BlockId },
}

impl N4Input {
    /// Whether a UPF answers a change of a session with "Session context not found" (TS 29.244 8.2.1): it has lost the session, or
    /// another SMF of the set has it.
    pub fn shows_unknown_session(&self) -> bool {
        let Self::Response { result: Ok(Message::SessionModificationResponse(response)), .. } = self else {
            return false;
        };
        response.cause == Cause::SessionContextNotFound
    }
}

/// What an SMF requests from the gateway.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum N4Effect {
    /// Send a request, which is retransmitted until answered; one [`N4Input::Response`] follows.
    Request {
        /// Returned with the response.
        tag: Tag,
        upf: UpfHandle,
        /// The UPF's SEID of the session; 0 if the UPF has not allocated one yet (TS 29.244 7.2.2.4.2).
        seid: Seid,
        message: Message,
    },
    /// The SMF of the shard continues after a panic: what a request of the former run establishes or changes at a UPF may be out of
    /// date, so such requests are not retransmitted.
    TakenOver {
        /// The owner map as the shard has it: a block that it has passed is not its own.
        owners: Arc<OwnerMap>,
    },
    /// The shard has confirmed all sessions of the process's former run that it knows at a UPF which has retained them.
    Confirmed { upf: UpfHandle },
    /// A block passes to another shard.
    Passage(Passage<()>),
    /// Answer a request of a UPF.
    Answer {
        transaction: N4Transaction,
        /// The UPF's SEID of the session; 0 if it is not known.
        seid: Seid,
        message: Message,
    },
}
