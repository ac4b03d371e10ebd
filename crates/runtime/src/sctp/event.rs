//! What a transport tells its owner.

use std::net::{IpAddr, SocketAddr};

use super::AssociationId;

/// Something that happened to an association. Per association: one `Up`, then messages, then one `Down`;
/// an association that this side began and that fails has a `Down` only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SctpEvent {
    /// The association is established.
    Up {
        /// Which one; new for an association that a listener accepted.
        association: AssociationId,
        /// The peer's address and SCTP port.
        peer: SocketAddr,
        /// Further addresses of a multi-homed peer, as the peer names them.
        alternatives: Vec<IpAddr>,
        /// Own address and SCTP port: a listener's, or the one picked by `connect`.
        local: SocketAddr,
        /// Streams the peer sends on.
        inbound_streams: u16,
        /// Streams to send on: 0 up to, not including, this.
        outbound_streams: u16,
    },
    /// A whole message, in order within its stream.
    Message {
        /// Where it came from.
        association: AssociationId,
        /// The stream it came on.
        stream: u16,
        /// Payload protocol identifier as the peer set it, host byte order.
        ppid: u32,
        /// At most `max_message` bytes.
        payload: Vec<u8>,
    },
    /// There is room again after `SendError::Backpressure`.
    SendReady {
        /// Which association to go on with.
        association: AssociationId,
    },
    /// The association is gone, its id void.
    Down {
        /// Which one.
        association: AssociationId,
        /// Why.
        reason: DownReason,
    },
}

/// Why an association ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DownReason {
    /// A graceful shutdown by either side is complete.
    #[error("shut down")]
    Shutdown,
    /// The peer sent an ABORT, or the stack aborted because the peer broke the protocol.
    #[error("aborted")]
    Aborted,
    /// The peer refused the association.
    #[error("refused by the peer")]
    Refused,
    /// The peer stopped answering, or never did.
    #[error("peer unreachable")]
    Unreachable,
    /// The peer lost its state and began anew; the `Up` of the new association follows (RFC 9260 clause 5.2).
    #[error("restarted by the peer")]
    Restarted,
    /// The peer sent a message longer than `max_message` and was aborted.
    #[error("message too long")]
    MessageTooLong,
}

impl DownReason {
    /// From the error that a stack leaves on the socket of a lost association.
    pub(super) fn from_errno(errno: i32) -> Self {
        match errno {
            0 => Self::Shutdown,
            libc::ECONNREFUSED => Self::Refused,
            libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH => Self::Unreachable,
            _ => Self::Aborted,
        }
    }
}
