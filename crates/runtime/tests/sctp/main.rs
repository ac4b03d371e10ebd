//! User-space SCTP between two processes on loopback, over UDP and, where permitted, over raw IP.
//!
//! A process can have only one usrsctp, so that each test holds a lock while it has a transport. The peer is
//! this test program, started again as `peer::run`.

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

/// Port of the server, different for each test run.
fn port() -> u16 {
    30_000 + (std::process::id() % 8_000) as u16
}

/// Address of the server.
fn server() -> SocketAddr {
    ([127, 0, 0, 1], port()).into()
}

/// SCTP over UDP, on a port derived from [`port`].
fn udp() -> SctpMode {
    SctpMode::Udp(port() - 10_000)
}

/// Lock that a test holds while it has a transport.
fn exclusively() -> MutexGuard<'static, ()> {
    ONE_TRANSPORT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a test in every mode that this machine supports.
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

/// Whether the system permits an SCTP socket of this type.
#[allow(unsafe_code)]
fn socket_is_permitted(kind: libc::c_int) -> bool {
    // SAFETY: no pointers; the descriptor is closed.
    unsafe {
        let fd = libc::socket(libc::AF_INET, kind, libc::IPPROTO_SCTP);
        fd >= 0 && libc::close(fd) == 0
    }
}
