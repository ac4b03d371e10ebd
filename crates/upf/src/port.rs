//! What goes into a UPF-C and what comes out.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use pith_pfcp::ie::NodeId;
use pith_pfcp::{Message, MessageType};

use crate::contract::{Datapath, Event, SessionId};

/// Something that happened.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A datagram came to the PFCP port.
    Datagram {
        /// Who sent it.
        peer: SocketAddr,
        /// Its octets.
        octets: &'a [u8],
    },
    /// The datapath saw something.
    Event(Event),
    /// The time of [`Upf::next_timeout`](crate::Upf::next_timeout) has come.
    Tick,
    /// How much of its time UPF-C is at work, in percent: told from time to time.
    Busy {
        /// 0 to 100.
        percent: u8,
    },
    /// The operator stops the UPF: SMFs are asked to release their associations (TS 29.244 6.2.7.3).
    Shutdown {
        /// How long they have.
        graceful: Duration,
    },
}

/// Something to do, beyond what was done to the datapath.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send a datagram from the PFCP port.
    Send {
        /// To whom.
        peer: SocketAddr,
        /// Its octets.
        octets: Vec<u8>,
    },
    /// Tell the operator.
    Notice(Notice),
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Every request.
    Debug,
    /// A procedure that was completed.
    Info,
    /// A peer misbehaved.
    Warn,
    /// The operator has to act.
    Error,
}

/// What the operator may want to know; its text is its `Display`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An association stands.
    AssociationEstablished {
        /// The SMF.
        node: NodeId,
    },
    /// An association is gone, and its sessions with it.
    AssociationReleased {
        /// The SMF.
        node: NodeId,
        /// Sessions deleted.
        sessions: usize,
    },
    /// An SMF restarted; its sessions are deleted.
    PeerRestarted {
        /// The SMF.
        node: NodeId,
        /// Sessions deleted.
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
    /// A session stands.
    SessionEstablished {
        /// Its id.
        session: SessionId,
    },
    /// A session is gone.
    SessionDeleted {
        /// Its id.
        session: SessionId,
        /// Why.
        reason: &'static str,
    },
    /// Somebody who is no permitted SMF sends requests.
    Stranger {
        /// The last one.
        peer: SocketAddr,
        /// How many messages came since the last such notice.
        messages: u64,
    },
    /// A request was rejected.
    Rejected {
        /// Who sent it.
        peer: SocketAddr,
        /// What it was.
        message_type: MessageType,
        /// Why.
        reason: String,
    },
    /// A datagram was discarded without answer.
    Discarded {
        /// Who sent it.
        peer: SocketAddr,
        /// Why.
        reason: String,
    },
    /// A request of the UPF's was not answered, or rejected.
    RequestFailed {
        /// To whom it was sent.
        peer: SocketAddr,
        /// What it was.
        message_type: MessageType,
        /// Why.
        reason: &'static str,
    },
}

impl Notice {
    /// How much it matters.
    pub fn severity(&self) -> Severity {
        match self {
            Notice::SessionEstablished { .. } | Notice::SessionDeleted { .. } => Severity::Debug,
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
            Notice::SessionDeleted { session, reason } => {
                write!(f, "session {:#x} deleted: {reason}", session.0)
            }
            Notice::Stranger { peer, messages } => {
                write!(
                    f,
                    "PFCP of {peer}, which is no SMF that may use this UPF, is refused ({messages} messages); to \
                     permit it, add it to 'upf.smfs'"
                )
            }
            Notice::Rejected { peer, message_type, reason } => {
                write!(f, "{message_type} of {peer} rejected: {reason}")
            }
            Notice::Discarded { peer, reason } => write!(f, "datagram of {peer} discarded: {reason}"),
            Notice::RequestFailed { peer, message_type, reason } => {
                write!(f, "{message_type} to {peer} failed: {reason}")
            }
        }
    }
}

/// What the handling of one input works with.
pub(crate) struct Turn<'a> {
    /// The time of the input, from the point that [`Config::started`](crate::Config::started) tells.
    pub now: Duration,
    /// Where packets move.
    pub datapath: &'a mut dyn Datapath,
    /// Where effects go.
    pub out: &'a mut Vec<Effect>,
}

impl Turn<'_> {
    /// Encodes and sends a message, and returns its octets.
    pub fn send(&mut self, peer: SocketAddr, seid: u64, sequence: u32, message: &Message) -> Vec<u8> {
        let mut octets = Vec::with_capacity(256);
        match message.encode(seid, sequence, &mut octets) {
            Ok(()) => self.out.push(Effect::Send { peer, octets: octets.clone() }),
            Err(_) => self.notice(Notice::RequestFailed {
                peer,
                message_type: message.message_type(),
                reason: "the message is too long",
            }),
        }
        octets
    }

    /// Tells the operator.
    pub fn notice(&mut self, notice: Notice) {
        self.out.push(Effect::Notice(notice));
    }
}
