//! User-space SCTP between two processes on loopback, in UDP and, where permitted, over raw IP.
//!
//! usrsctp is one to a process, so each test holds a lock while it has a transport, and its peer is this very
//! program, started again as `peer::run`.

mod node;
mod packet;
mod peer;

mod hostile;
mod lifetime;
mod messages;

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
    for mode in [udp(), SctpMode::Raw] {
        if mode == SctpMode::Raw && !raw_ip_is_permitted() {
            println!("skipped over raw IP: not permitted to open a raw socket");
            continue;
        }
        println!("mode {mode}");
        test(mode);
    }
}

#[allow(unsafe_code)]
fn raw_ip_is_permitted() -> bool {
    // SAFETY: no pointers; a descriptor that was made is closed.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_SCTP);
        fd >= 0 && libc::close(fd) == 0
    }
}
