//! Events of a transport.

use std::net::{IpAddr, SocketAddr};

use super::AssociationId;

/// An event of an association. Each association has one `Up`, then messages, then one `Down`. An association
/// that this side started and that fails has only a `Down`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SctpEvent {
    /// The association is established.
    Up {
        /// The association; a new id if a listener accepted it.
        association: AssociationId,
        /// The peer's address and SCTP port.
        peer: SocketAddr,
        /// Further addresses of a multi-homed peer.
        alternatives: Vec<IpAddr>,
        /// Own address and SCTP port: those of the listener, or those chosen by `connect`.
        local: SocketAddr,
        /// Number of streams that the peer sends on.
        inbound_streams: u16,
        /// Number of streams for sending, numbered from 0.
        outbound_streams: u16,
    },
    /// A complete message, in order within its stream.
    Message {
        /// The association that received it.
        association: AssociationId,
        /// The stream that it arrived on.
        stream: u16,
        /// Payload protocol identifier set by the peer, in host byte order.
        ppid: u32,
        /// The message, at most `max_message` bytes.
        payload: Vec<u8>,
    },
    /// The send buffer has room again after `SendError::Backpressure`.
    SendReady {
        /// The association.
        association: AssociationId,
    },
    /// The association has ended; its id is no longer valid.
    Down {
        /// The association.
        association: AssociationId,
        /// The reason.
        reason: DownReason,
    },
}

/// The reason for the end of an association.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DownReason {
    /// A graceful shutdown by either side has completed.
    #[error("shut down")]
    Shutdown,
    /// The peer sent an ABORT, or the stack aborted because of a protocol violation.
    #[error("aborted")]
    Aborted,
    /// The peer refused the association.
    #[error("refused by the peer")]
    Refused,
    /// The peer stopped answering, or never answered.
    #[error("peer unreachable")]
    Unreachable,
    /// The peer lost its state and restarted; the `Up` of the new association follows (RFC 9260 clause 5.2).
    #[error("restarted by the peer")]
    Restarted,
    /// The peer sent a message longer than `max_message` and was aborted.
    #[error("message too long")]
    MessageTooLong,
}

impl DownReason {
    /// The reason for the error that a stack leaves on the socket of a lost association.
    pub(super) fn from_errno(errno: i32) -> Self {
        match errno {
            0 => Self::Shutdown,
            libc::ECONNREFUSED => Self::Refused,
            libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH => Self::Unreachable,
            _ => Self::Aborted,
        }
    }
}
