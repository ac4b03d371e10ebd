//! SCTP for N2 (TS 38.412): one interface, [`SctpTransport`], with three implementations.
//!
//! | mode | stack | packets travel as | needs |
//! |---|---|---|---|
//! | `kernel` | Linux | IP protocol 132 | the `sctp` module |
//! | `raw` | usrsctp, in this process | IP protocol 132 | `CAP_NET_RAW`, and a kernel without SCTP |
//! | `udp:PORT` | usrsctp, in this process | UDP (RFC 6951) | nothing |
//!
//! A transport has no threads: its owner waits until [`SctpTransport::poll_fd`] is readable or
//! [`SctpTransport::next_deadline`] has passed, then calls [`SctpTransport::process`] and handles the events.
//!
//! ```text
//!   owner (thread `edge`, or the simulator)
//!     │ listen, connect, send, pause_reading          ▲ SctpEvent: Up, Message, SendReady, Down
//!     ▼                                               │
//!   kernel::KernelTransport            user::UserTransport
//!     one socket an association          usrsctp <── checked packets ── link (recvmmsg)
//!                                                └── out-queue ───────> link (sendmmsg)
//! ```
//!
//! A slow owner loses nothing: while an association is paused, its receive window closes and the peer must
//! wait. A [`SctpTransport::send`] that does not fit into the send buffer is refused; `SendReady` follows
//! when there is room.

mod association;
mod config;
mod event;
mod former;
mod kernel;
mod mode;
mod poll;
mod table;
mod user;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::Instant;

pub use config::SctpConfig;
pub use event::{DownReason, SctpEvent};
pub use former::{FormerPeer, ParseFormerPeerError};
pub use kernel::KernelTransport;
pub use mode::{ParseSctpModeError, SctpMode, UDP_ENCAPSULATION_PORT};
pub(crate) use poll::{decode_address, encode_address};
pub use table::AssociationId;
pub use user::{Encapsulation, IngressCounters, UserTransport};

/// Payload protocol identifier of NGAP (TS 38.412 clause 7, IANA).
pub const NGAP_PPID: u32 = 60;

/// SCTP port of an AMF for NGAP (TS 38.412 clause 7, IANA).
pub const NGAP_PORT: u16 = 38412;

/// An SCTP endpoint with any number of listeners and associations, run by its owner's loop.
pub trait SctpTransport: Send {
    /// The stack in use and why it was chosen, for the log.
    fn description(&self) -> &str;

    /// Readable whenever [`process`](Self::process) has work to do. The descriptor never changes.
    fn poll_fd(&self) -> BorrowedFd<'_>;

    /// The latest time for the next call of [`process`](Self::process), whether readable or not.
    fn next_deadline(&self) -> Option<Instant>;

    /// Accepts associations on `local`; an unspecified address means all addresses of its family.
    fn listen(&mut self, local: SocketAddr) -> Result<(), SctpError> {
        self.listen_on(&[local])
    }

    /// Accepts associations that use all of these addresses with one port: multi-homing (RFC 9260 6.4),
    /// supported by the kernel's SCTP only.
    fn listen_on(&mut self, local: &[SocketAddr]) -> Result<(), SctpError>;

    /// Starts an association; its `Up` or `Down` follows as an event. `local` sets the own address (not the
    /// port); without it, the route decides.
    fn connect(&mut self, local: Option<IpAddr>, remote: SocketAddr) -> Result<AssociationId, SctpError>;

    /// Queues one complete message, in order within its stream.
    fn send(
        &mut self,
        association: AssociationId,
        stream: u16,
        ppid: u32,
        payload: &[u8],
    ) -> Result<(), SendError>;

    /// Sends queued packets now. Call it after a batch of sends; `process` flushes too.
    fn flush(&mut self);

    /// Stops reading, so that the window closes and the peer waits. Messages already in `events` remain
    /// valid.
    fn pause_reading(&mut self, association: AssociationId);

    /// Resumes reading after [`pause_reading`](Self::pause_reading).
    fn resume_reading(&mut self, association: AssociationId);

    /// Ends an association gracefully: sent messages are delivered first, then `Down` follows.
    fn shutdown(&mut self, association: AssociationId);

    /// Ends an association immediately with an ABORT; no event follows.
    fn abort(&mut self, association: AssociationId);

    /// What another process needs to abort an association that a listener accepted, if this one ends without an ABORT. `None` if the
    /// kernel sends it.
    fn former_peer(&mut self, _association: AssociationId) -> Option<FormerPeer> {
        None
    }

    /// Aborts an association of a process that ended, so that its peer need not wait for an unanswered HEARTBEAT (RFC 9260 8.3). A peer
    /// that has no such association ignores it. Call it after [`listen`](Self::listen).
    fn abort_former(&mut self, _former: &FormerPeer) {}

    /// Processes packets, timers and messages, and appends the resulting events to `events`.
    fn process(&mut self, now: Instant, events: &mut Vec<SctpEvent>);
}

/// The reason why a listener or an association could not be created.
#[derive(Debug, thiserror::Error)]
pub enum SctpError {
    /// A system call failed; the text names the operation.
    #[error("SCTP: {doing}: {source}")]
    Io {
        /// The operation.
        doing: String,
        /// The error of the system.
        source: io::Error,
    },
    /// usrsctp keeps its state in globals, so that a process can have only one user-space transport at a
    /// time.
    #[error("SCTP: this process already has a user-space SCTP stack; share it")]
    EngineExists,
    /// All local ports for outgoing associations are in use, by this or other processes.
    #[error("SCTP: no free local port for another association")]
    NoFreePort,
    /// User-space SCTP supports one address per association.
    #[error(
        "SCTP: only the kernel's SCTP supports several addresses per association: load it ('modprobe sctp'), or configure one address"
    )]
    MultiHoming,
    /// The kernel's SCTP would answer packets meant for SCTP over raw IP.
    #[error(
        "SCTP: this kernel has SCTP, which aborts the associations of user-space SCTP over raw IP: choose 'kernel' or 'auto', or unload the kernel's ('modprobe -r sctp')"
    )]
    KernelInterferes,
    /// The limit [`SctpConfig::max_associations`] is reached.
    #[error("SCTP: the limit of {0} associations is reached")]
    TooManyAssociations(usize),
    /// The own and the remote address have different families.
    #[error("SCTP: cannot reach {remote} from {local}")]
    AddressFamily {
        /// The requested own address.
        local: IpAddr,
        /// The peer's address.
        remote: SocketAddr,
    },
}

impl SctpError {
    /// For `map_err`: adds the operation to an error.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }
}

/// The reason why a message was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The send buffer is full: keep the message until `SendReady`.
    #[error("the association's send buffer is full")]
    Backpressure,
    /// The association is not up.
    #[error("the association is closed")]
    Closed,
    /// The association has no such stream; it has `outbound_streams` of them.
    #[error("the association has no such stream")]
    NoSuchStream,
    /// The message is longer than [`SctpConfig::max_message`], or empty.
    #[error("the message is empty or too long")]
    Length,
}

/// Opens the transport of a mode; `Auto` selects the best one available.
pub fn open(mode: SctpMode, config: SctpConfig) -> Result<Box<dyn SctpTransport>, SctpError> {
    let choice = mode::choose(mode);
    Ok(match choice.mode {
        SctpMode::Kernel | SctpMode::Auto => Box::new(KernelTransport::open(config, choice.why)?),
        SctpMode::Raw if mode::kernel_answers() => return Err(SctpError::KernelInterferes),
        SctpMode::Raw => Box::new(UserTransport::open(Encapsulation::RawIp, config, choice.why)?),
        SctpMode::Udp(port) => {
            Box::new(UserTransport::open(Encapsulation::Udp { port }, config, choice.why)?)
        }
    })
}
