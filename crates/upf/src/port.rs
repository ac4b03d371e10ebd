//! Inputs and effects of a UPF-C.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use pith_pfcp::ie::NodeId;
use pith_pfcp::{Message, MessageType};

use crate::contract::{Datapath, Event, SessionId};

/// An input.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A datagram was received on the PFCP port.
    Datagram {
        /// The sender.
        peer: SocketAddr,
        /// Its octets.
        octets: &'a [u8],
    },
    /// The datapath reported an event.
    Event(Event),
    /// The time of [`Upf::next_timeout`](crate::Upf::next_timeout) was reached.
    Tick,
    /// UPF-C's share of its time that it was busy, in percent; reported periodically.
    Busy {
        /// 0 to 100.
        percent: u8,
    },
    /// The operator stops the UPF: the UPF requests SMFs to release their associations (TS 29.244 6.2.7.3).
    Shutdown {
        /// The time that SMFs have for it.
        graceful: Duration,
    },
}

/// An action to execute, in addition to the calls of the datapath.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send a datagram from the PFCP port.
    Send {
        /// The receiver.
        peer: SocketAddr,
        /// Its octets.
        octets: Vec<u8>,
    },
    /// Log a notice.
    Notice(Notice),
}

/// The severity of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Every request.
    Debug,
    /// A completed procedure.
    Info,
    /// A peer misbehaved.
    Warn,
    /// The operator must act.
    Error,
}

/// An event for the operator; its `Display` is the log text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An association was established.
    AssociationEstablished {
        /// The SMF.
        node: NodeId,
    },
    /// An association was released and its sessions deleted.
    AssociationReleased {
        /// The SMF.
        node: NodeId,
        /// Number of deleted sessions.
        sessions: usize,
    },
    /// An SMF restarted; its sessions were deleted.
    PeerRestarted {
        /// The SMF.
        node: NodeId,
        /// Number of deleted sessions.
        sessions: usize,
    },
    /// An SMF does not answer heartbeats.
    PathFailed {
        /// The SMF.
        node: NodeId,
    },
    /// An SMF answers heartbeats again.
    PathRecovered {
        /// The SMF.
        node: NodeId,
    },
    /// A session was established.
    SessionEstablished {
        /// Its id.
        session: SessionId,
    },
    /// Another SMF of its set controls a session.
    SessionMoved {
        /// Its id.
        session: SessionId,
        /// The SMF.
        node: NodeId,
    },
    /// A session was deleted.
    SessionDeleted {
        /// Its id.
        session: SessionId,
        /// The reason.
        reason: &'static str,
    },
    /// A peer that is not a permitted SMF sends requests.
    UnknownPeer {
        /// The last such peer.
        peer: SocketAddr,
        /// Number of messages since the last such notice.
        messages: u64,
    },
    /// A host sends G-PDUs of a session's tunnel, but is no peer: they are dropped.
    UnknownGtpuSource {
        /// The host.
        source: IpAddr,
        /// The peer of the session's downlink tunnel.
        peer: IpAddr,
    },
    /// A request was rejected.
    Rejected {
        /// The sender.
        peer: SocketAddr,
        /// The request's type.
        message_type: MessageType,
        /// The reason.
        reason: String,
    },
    /// A datagram was discarded without an answer.
    Discarded {
        /// The sender.
        peer: SocketAddr,
        /// The reason.
        reason: String,
    },
    /// A request of the UPF was not answered, or rejected.
    RequestFailed {
        /// The receiver.
        peer: SocketAddr,
        /// The request's type.
        message_type: MessageType,
        /// The reason.
        reason: &'static str,
    },
}

impl Notice {
    /// The severity.
    pub fn severity(&self) -> Severity {
        match self {
            Notice::SessionEstablished { .. }
            | Notice::SessionMoved { .. }
            | Notice::SessionDeleted { .. } => Severity::Debug,
            Notice::AssociationEstablished { .. }
            | Notice::AssociationReleased { .. }
            | Notice::PathRecovered { .. } => Severity::Info,
            Notice::PathFailed { .. } => Severity::Error,
            _ => Severity::Warn,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::AssociationEstablished { node } => write!(f, "association with SMF {node} established"),
            Notice::AssociationReleased { node, sessions } => {
                write!(f, "association with SMF {node} released, {sessions} sessions deleted")
            }
            Notice::PeerRestarted { node, sessions } => {
                write!(f, "SMF {node} restarted, {sessions} sessions deleted")
            }
            Notice::PathFailed { node } => {
                write!(
                    f,
                    "SMF {node} does not answer heartbeats; check that it runs and that UDP port 8805 is open"
                )
            }
            Notice::PathRecovered { node } => write!(f, "SMF {node} answers heartbeats again"),
            Notice::SessionEstablished { session } => write!(f, "session {:#x} established", session.0),
            Notice::SessionMoved { session, node } => {
                write!(f, "SMF {node} controls session {:#x}", session.0)
            }
            Notice::SessionDeleted { session, reason } => {
                write!(f, "session {:#x} deleted: {reason}", session.0)
            }
            Notice::UnknownPeer { peer, messages } => {
                write!(
                    f,
                    "PFCP from {peer} refused ({messages} messages), because it is not a permitted SMF; to permit it, \
                     add it to 'upf.smfs'"
                )
            }
            Notice::UnknownGtpuSource { source, peer } => {
                write!(
                    f,
                    "GTP-U of {source} for a tunnel whose peer is {peer} is dropped ('unknown_peer'): if that gNB sends \
                     from another address than it receives at, add {source} to 'upf.radios'"
                )
            }
            Notice::Rejected { peer, message_type, reason } => {
                write!(f, "{message_type} from {peer} rejected: {reason}")
            }
            Notice::Discarded { peer, reason } => write!(f, "datagram from {peer} discarded: {reason}"),
            Notice::RequestFailed { peer, message_type, reason } => {
                write!(f, "{message_type} to {peer} failed: {reason}")
            }
        }
    }
}

/// The context for handling one input.
pub(crate) struct Context<'a> {
    /// The time of the input, relative to [`Config::started`](crate::Config::started).
    pub now: Duration,
    pub datapath: &'a mut dyn Datapath,
    pub out: &'a mut Vec<Effect>,
}

impl Context<'_> {
    /// Encodes and sends a message, and returns its octets.
    pub fn send(&mut self, peer: SocketAddr, seid: u64, sequence: u32, message: &Message) -> Vec<u8> {
        let mut octets = Vec::with_capacity(256);
        let encoded = message.encode(seid, sequence, &mut octets);
        // It is kept for long: without spare capacity.
        let kept = octets.clone();
        match encoded {
            Ok(()) => self.out.push(Effect::Send { peer, octets }),
            Err(_) => self.notice(Notice::RequestFailed {
                peer,
                message_type: message.message_type(),
                reason: "the message is too long",
            }),
        }
        kept
    }

    pub fn notice(&mut self, notice: Notice) {
        self.out.push(Effect::Notice(notice));
    }
}
