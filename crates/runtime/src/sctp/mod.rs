//! SCTP for N2 (TS 38.412): one contract, [`SctpTransport`], and three ways to carry it.
//!
//! | mode | stack | packets travel as | needs |
//! |---|---|---|---|
//! | `kernel` | Linux | IP protocol 132 | the `sctp` module |
//! | `raw` | usrsctp, in this process | IP protocol 132 | `CAP_NET_RAW`, and a kernel without SCTP |
//! | `udp:PORT` | usrsctp, in this process | UDP (RFC 6951) | nothing |
//!
//! A transport is a value without threads: its owner waits until [`SctpTransport::poll_fd`] is readable or
//! [`SctpTransport::next_deadline`] has come, calls [`SctpTransport::process`] and acts on the events.
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
//! Nothing is lost when the owner is slow: while an association is paused its receive window closes and the
//! peer has to wait; a [`SctpTransport::send`] that does not fit is refused, and announced by `SendReady`.

mod association;
mod config;
mod event;
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
pub use kernel::KernelTransport;
pub use mode::{ParseSctpModeError, SctpMode, UDP_ENCAPSULATION_PORT};
pub use table::AssociationId;
pub use user::{Encapsulation, IngressCounters, UserTransport};

/// Payload protocol identifier of NGAP (TS 38.412 clause 7, IANA).
pub const NGAP_PPID: u32 = 60;

/// SCTP port of an AMF for NGAP (TS 38.412 clause 7, IANA).
pub const NGAP_PORT: u16 = 38412;

/// An SCTP endpoint: many listeners and associations, driven by its owner's loop.
pub trait SctpTransport: Send {
    /// What carries SCTP here, and why, for the log and the operator.
    fn description(&self) -> &str;

    /// Readable whenever [`process`](Self::process) has something to do; the same descriptor for life.
    fn poll_fd(&self) -> BorrowedFd<'_>;

    /// When [`process`](Self::process) must be called at the latest, readable or not.
    fn next_deadline(&self) -> Option<Instant>;

    /// Accepts associations on `local`; an unspecified address means all addresses of its family.
    fn listen(&mut self, local: SocketAddr) -> Result<(), SctpError> {
        self.listen_on(&[local])
    }

    /// Accepts associations that have all of these addresses, of one port: multi-homing (RFC 9260 6.4), which
    /// the kernel's SCTP has.
    fn listen_on(&mut self, local: &[SocketAddr]) -> Result<(), SctpError>;

    /// Begins an association; its `Up`, or `Down`, follows as an event.
    /// `local` fixes the own address (not the port); without it, the route decides.
    fn connect(&mut self, local: Option<IpAddr>, remote: SocketAddr) -> Result<AssociationId, SctpError>;

    /// Queues one message, whole or not at all, ordered within its stream.
    fn send(
        &mut self,
        association: AssociationId,
        stream: u16,
        ppid: u32,
        payload: &[u8],
    ) -> Result<(), SendError>;

    /// Hands queued packets to the network now. Call it after a batch of sends; `process` does it as well.
    fn flush(&mut self);

    /// Stops reading, so that the window closes and the peer waits. Messages already in `events` still count.
    fn pause_reading(&mut self, association: AssociationId);

    /// Reads again after [`pause_reading`](Self::pause_reading).
    fn resume_reading(&mut self, association: AssociationId);

    /// Ends an association gracefully: what was sent is delivered first, then `Down` follows.
    fn shutdown(&mut self, association: AssociationId);

    /// Ends an association at once with an ABORT; no event follows.
    fn abort(&mut self, association: AssociationId);

    /// Moves packets, timers and messages, and appends what happened to `events`.
    fn process(&mut self, now: Instant, events: &mut Vec<SctpEvent>);
}

/// Why a listener or an association could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SctpError {
    /// A system call failed; the text says which one, and for what.
    #[error("SCTP: {doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// usrsctp keeps its state in globals, so a process can hold one user-space transport at a time.
    #[error("SCTP: this process already has a user-space SCTP stack; share it")]
    EngineExists,
    /// Every local port for outgoing associations is taken, here or by other processes.
    #[error("SCTP: no free local port for another association")]
    NoFreePort,
    /// User-space SCTP has one address for each association.
    #[error(
        "SCTP: only the kernel's SCTP has several addresses in one association: load it ('modprobe sctp'), or name one address"
    )]
    MultiHoming,
    /// The kernel's SCTP answers the packets that raw IP is to answer.
    #[error(
        "SCTP: this kernel has SCTP, which aborts the associations of user-space SCTP over raw IP: choose 'kernel' or 'auto', or unload the kernel's ('modprobe -r sctp')"
    )]
    KernelInterferes,
    /// [`SctpConfig::max_associations`] is reached.
    #[error("SCTP: the limit of {0} associations is reached")]
    TooManyAssociations(usize),
    /// The own and the remote address are of different families.
    #[error("SCTP: cannot reach {remote} from {local}")]
    AddressFamily {
        /// The own address that was asked for.
        local: IpAddr,
        /// Where the association was to go.
        remote: SocketAddr,
    },
}

impl SctpError {
    /// For `map_err`: names what failed.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// No room now: keep the message, `SendReady` says when to try again.
    #[error("the association's send buffer is full")]
    Backpressure,
    /// The association is not up (any more, or yet).
    #[error("the association is closed")]
    Closed,
    /// The peer has no such stream; the association has `outbound_streams` of them.
    #[error("the association has no such stream")]
    NoSuchStream,
    /// Longer than [`SctpConfig::max_message`], or empty.
    #[error("the message is empty or too long")]
    Length,
}

/// Opens the transport that `mode` asks for; `Auto` takes the best one that works here.
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
