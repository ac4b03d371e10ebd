//! What a datapath hands over to that of another process, so that no packet is lost in between (docs/adr/0028).
//!
//! ```text
//!  running                                      successor
//!  handles ── descriptors ───────────────────▶  take_over: workers wait, no program is attached
//!                                               install …
//!  hold: no packet is read from sockets or TUN
//!                                               activate: its program replaces the running one
//!  drain: last packets; then counters are final
//!         ── queued packets ─────────────────▶  go_on: workers read
//!                                               own_system
//!  leave: nothing is removed
//! ```
//!
//! Both processes have the same sockets and TUN queues meanwhile: whatever arrives there waits for the one that reads. The XDP
//! program of either forwards throughout. If the successor ends before `leave`, the running datapath resumes.

use pith_upf::contract::SessionId;
use std::os::fd::OwnedFd;

/// What a datapath's successor continues to use.
#[derive(Debug)]
pub struct Handles {
    /// The start of the datapath's clock, in nanoseconds of the monotonic clock.
    pub clock: u64,
    /// One for each worker.
    pub workers: Vec<WorkerHandles>,
    /// The attachments of the XDP program.
    pub links: Vec<LinkHandle>,
    /// Former values of the kernel's settings that were changed: to be restored at the end.
    pub settings: Vec<(String, String)>,
    /// Sessions with queued packets: later ones must not overtake these.
    pub queueing: Vec<SessionId>,
}

/// A worker's sockets on N3, and its queue of the TUN interface.
#[derive(Debug)]
pub struct WorkerHandles {
    /// The sockets, each bound to an address.
    pub sockets: Vec<OwnedFd>,
    /// The queue.
    pub tun: OwnedFd,
    /// Whether the queue is read by io_uring.
    pub batched: bool,
}

/// An attachment of an XDP program.
#[derive(Debug)]
pub struct LinkHandle {
    /// The device's index.
    pub device: u32,
    /// Whether it is at the generic hook.
    pub generic: bool,
    /// The attachment.
    pub link: OwnedFd,
}

/// A queued packet: held for an idle UE, or above a rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedOctets {
    /// Its session.
    pub session: SessionId,
    /// The TEID of the tunnel that it arrived by; `None`: from the data network.
    pub teid: Option<u32>,
    /// The QFI that it arrived with.
    pub qfi: Option<u8>,
    /// The inner packet.
    pub octets: Vec<u8>,
}
