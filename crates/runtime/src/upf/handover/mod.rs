//! Upgrade of a running UPF: a new process takes its sessions, sockets and XDP program over (docs/adr/0028).
//!
//! ```text
//!  running process (give.rs)                             successor (take.rs)
//!              ◀── Hello: versions, settings ───────────
//!  Accept, descriptors ─────────────────────────────────▶  loads its XDP program
//!              ◀── Begin ───────────────────────────────
//!  answers heartbeats only, State … StateEnd ───────────▶  installs all sessions
//!              ◀── Ready ───────────────────────────────
//!  reads no more packets, Held ────────────────────────▶  replaces the XDP program
//!              ◀── Swapped ─────────────────────────────
//!  Packet … PacketsEnd, Counted …, Datagram … CountedEnd ▶  reads packets, adds usage
//!              ◀── Done ────────────────────────────────   serves N4
//!  ends, and leaves the system as it is
//! ```
//!
//! If the successor ends before Done, the running process goes on. After Swapped neither gives up for lack of time: only the end of the
//! other is certain.

mod channel;
mod give;
mod meanwhile;
mod message;
mod take;

pub(super) use give::{Estate, Successors};
pub use message::{Settings, settings};
pub use take::{Predecessor, TakeOverError};
pub(super) use take::{Prepared, now};

use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// How this process can be succeeded.
pub struct Succeedable {
    /// The socket on which it awaits successors.
    pub socket: PathBuf,
    /// The settings that a successor must share.
    pub settings: Settings,
    /// The TCP listener of the API, to be handed over.
    pub api: Option<TcpListener>,
    /// Called when this process has become the owner of what it took over.
    pub begun: Box<dyn FnOnce() + Send>,
    /// Called when a successor has taken over: ends the process.
    pub ended: Box<dyn FnOnce() + Send>,
}

/// The socket of a UPF whose API has that socket.
pub fn socket_beside(api: &Path) -> PathBuf {
    let mut name = api.file_name().unwrap_or_default().to_owned();
    name.push(".upgrade");
    api.with_file_name(name)
}
