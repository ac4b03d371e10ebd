//! User-space SCTP between two processes on loopback, in UDP and, where permitted, over raw IP.
//!
//! usrsctp is one to a process, so each test holds a lock while it has a transport, and its peer is this very
//! program, started again as `peer::run`.

mod node;
mod packet;
mod peer;
#[path = "../../../../tests/skipped.rs"]
mod skipped;

mod hostile;
mod lifetime;
mod messages;
mod multi_homing;

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pith_runtime::sctp::SctpMode;

static ONE_TRANSPORT: Mutex<()> = Mutex::new(());

/// Port of the server, another for each run of the tests.
fn port() -> u16 {
    30_000 + (std::process::id() % 8_000) as u16
}

/// Where the server listens.
fn server() -> SocketAddr {
    ([127, 0, 0, 1], port()).into()
}

/// SCTP in UDP, on a port that goes with [`port`].
fn udp() -> SctpMode {
    SctpMode::Udp(port() - 10_000)
}

/// Held by a test for as long as it has a transport.
fn exclusively() -> MutexGuard<'static, ()> {
    ONE_TRANSPORT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a test in every mode that works here.
fn in_each_mode(test: impl Fn(SctpMode)) {
    let _guard = exclusively();
    for (mode, works) in [
        (udp(), true),
        (SctpMode::Raw, socket_is_permitted(libc::SOCK_RAW) && !socket_is_permitted(libc::SOCK_STREAM)),
        (SctpMode::Kernel, socket_is_permitted(libc::SOCK_STREAM)),
    ] {
        if works {
            println!("mode {mode}");
            test(mode);
        } else {
            skipped::case_skipped(&format!("mode {mode} does not work on this machine"));
        }
    }
}

/// Whether the system makes an SCTP socket of this type.
#[allow(unsafe_code)]
fn socket_is_permitted(kind: libc::c_int) -> bool {
    // SAFETY: no pointers; a descriptor that was made is closed.
    unsafe {
        let fd = libc::socket(libc::AF_INET, kind, libc::IPPROTO_SCTP);
        fd >= 0 && libc::close(fd) == 0
    }
}
