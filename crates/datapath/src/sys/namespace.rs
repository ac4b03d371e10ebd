//! Network namespaces.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

/// A name of the calling thread's network namespace: its cookie, which no later one gets (Linux 5.14), or else the number of its file.
pub fn network_namespace() -> io::Result<String> {
    /// include/uapi/asm-generic/socket.h
    const SO_NETNS_COOKIE: libc::c_int = 71;
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let mut cookie = 0u64;
    let mut length = size_of_val(&cookie) as libc::socklen_t;
    let (level, value) = (libc::SOL_SOCKET, (&raw mut cookie).cast());
    // SAFETY: `value` is writable for `length`.
    let asked =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, SO_NETNS_COOKIE, value, &raw mut length) };
    if asked == 0 {
        return Ok(cookie.to_string());
    }
    Ok(format!("i{}", std::fs::metadata("/proc/thread-self/ns/net")?.ino()))
}

/// The effective user of this process.
pub fn effective_user() -> u32 {
    // SAFETY: takes nothing, and always succeeds.
    unsafe { libc::geteuid() }
}

/// Moves the calling thread into a network namespace of its own, which ends with the thread. `false`, with a
/// message, if that is not permitted.
#[cfg(test)]
pub fn enter_namespace() -> bool {
    // SAFETY: takes no pointers; changes the namespace of the calling thread only.
    let entered = unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0;
    if !entered {
        crate::skipped::skipped("no right to make a network namespace");
    }
    entered
}
