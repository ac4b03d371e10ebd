//! Kernel SCTP sockets on user-space SCTP, for unmodified programs. See README.md.
//!
//! ```text
//!   program ── socket, connect, sendmsg … ──> lib (these functions instead of libc's)
//!      ▲                                        │ commands
//!      │ a Unix socket pair for each socket     ▼
//!      └── frames: header, message ───────── engine (a thread with an SctpTransport)
//! ```
//!
//! Every function first checks whether the descriptor is an SCTP socket of this library, and otherwise calls
//! libc's.
#![allow(unsafe_code)]

mod abi;
mod engine;
mod handle;
mod message;
mod options;
mod real;

use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

use libc::{c_int, c_void, msghdr, size_t, sockaddr, socklen_t, ssize_t};

use handle::Handle;
use real::real;

/// Converts a result to C: -1 and `errno` for an error.
fn answer(result: io::Result<c_int>) -> c_int {
    result.unwrap_or_else(|error| {
        abi::set_errno(&error);
        -1
    })
}

/// The same for calls that return a length.
fn answer_length(result: io::Result<usize>) -> ssize_t {
    match result {
        Ok(length) => length as ssize_t,
        Err(error) => {
            abi::set_errno(&error);
            -1
        }
    }
}

/// The handle of a descriptor, if it is this library's.
fn ours(fd: RawFd) -> Option<Arc<Handle>> {
    if engine::is_this_thread() { None } else { handle::find(fd) }
}

/// `socket(2)`: creates a handle for SCTP if the kernel does not support it.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: the caller's arguments, unchanged.
    let fd = unsafe { real!(socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int) };
    let is_sctp =
        protocol == libc::IPPROTO_SCTP && matches!(kind & 0xf, libc::SOCK_STREAM | libc::SOCK_SEQPACKET);
    if fd >= 0 || !is_sctp || engine::is_this_thread() {
        return fd;
    }
    answer(handle::create(domain, kind))
}

/// `close(2)`: the engine ends the association when the socket pair is closed.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    if ours(fd).is_some() {
        handle::forget(fd);
    }
    // SAFETY: the caller's arguments, unchanged.
    unsafe { real!(close(fd: c_int) -> c_int) }
}

/// `bind(2)`: stores the address.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn bind(fd: c_int, name: *const sockaddr, length: socklen_t) -> c_int {
    let Some(handle) = ours(fd) else {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe { real!(bind(fd: c_int, name: *const sockaddr, length: socklen_t) -> c_int) };
    };
    // SAFETY: the caller vouches for `length` bytes at `name`.
    let address = unsafe { abi::read_address(name, length) };
    answer(address.map(|address| {
        handle.set_local(address);
        0
    }))
}

/// `connect(2)`: waits for the association, unless the socket is non-blocking.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn connect(fd: c_int, name: *const sockaddr, length: socklen_t) -> c_int {
    let Some(handle) = ours(fd) else {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe { real!(connect(fd: c_int, name: *const sockaddr, length: socklen_t) -> c_int) };
    };
    // SAFETY: the caller vouches for `length` bytes at `name`.
    let address = unsafe { abi::read_address(name, length) };
    answer(address.and_then(|address| connect_to(fd, &handle, address)))
}

fn connect_to(fd: RawFd, handle: &Arc<Handle>, remote: SocketAddr) -> io::Result<c_int> {
    let wait = !abi::is_non_blocking(fd);
    engine::connect(handle, remote, wait)?;
    if wait { Ok(0) } else { Err(io::Error::from_raw_os_error(libc::EINPROGRESS)) }
}

/// `listen(2)`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn listen(fd: c_int, backlog: c_int) -> c_int {
    match ours(fd) {
        Some(handle) => answer(engine::listen(&handle).map(|()| 0)),
        // SAFETY: the caller's arguments, unchanged.
        None => unsafe { real!(listen(fd: c_int, backlog: c_int) -> c_int) },
    }
}

/// `accept(2)`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept(fd: c_int, name: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: the caller's arguments, unchanged.
    unsafe { accept4(fd, name, length, 0) }
}

/// `accept4(2)`: a listener's socket pair carries the descriptors of accepted associations.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    name: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    if ours(fd).is_none() {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe {
            real!(accept4(fd: c_int, name: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int)
        };
    }
    answer(message::accepted(fd).and_then(|accepted| {
        abi::apply_flags(accepted, flags)?;
        let peer = handle::find(accepted).and_then(|h| h.peer());
        // SAFETY: the caller vouches for `*length` writable bytes at `name`.
        unsafe { abi::write_address(peer, name, length) };
        Ok(accepted)
    }))
}

/// `getsockname(2)`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getsockname(fd: c_int, name: *mut sockaddr, length: *mut socklen_t) -> c_int {
    let Some(handle) = ours(fd) else {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe {
            real!(getsockname(fd: c_int, name: *mut sockaddr, length: *mut socklen_t) -> c_int)
        };
    };
    // SAFETY: the caller vouches for `*length` writable bytes at `name`.
    unsafe { abi::write_address(Some(handle.local_or_any()), name, length) };
    0
}

/// `getpeername(2)`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getpeername(fd: c_int, name: *mut sockaddr, length: *mut socklen_t) -> c_int {
    let Some(handle) = ours(fd) else {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe {
            real!(getpeername(fd: c_int, name: *mut sockaddr, length: *mut socklen_t) -> c_int)
        };
    };
    let Some(peer) = handle.peer() else { return answer(Err(io::ErrorKind::NotConnected.into())) };
    // SAFETY: the caller vouches for `*length` writable bytes at `name`.
    unsafe { abi::write_address(Some(peer), name, length) };
    0
}

/// `setsockopt(2)`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    match ours(fd) {
        Some(handle) if level == libc::IPPROTO_SCTP => {
            // SAFETY: the caller vouches for `length` bytes at `value`.
            let value = unsafe { abi::bytes(value, length as usize) };
            answer(options::set(fd, &handle, name, value))
        }
        // SAFETY: the caller's arguments, unchanged.
        _ => unsafe {
            real!(setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t) -> c_int)
        },
    }
}

/// `getsockopt(2)`.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    match ours(fd).and_then(|handle| options::query(&handle, level, name)) {
        // SAFETY: the caller vouches for `*length` writable bytes at `value`.
        Some(found) => answer(found.map(|bytes| unsafe { abi::write_option(&bytes, value, length) })),
        // SAFETY: the caller's arguments, unchanged.
        None => unsafe {
            real!(getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t) -> c_int)
        },
    }
}

/// `shutdown(2)`: ends the association gracefully.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shutdown(fd: c_int, how: c_int) -> c_int {
    match ours(fd) {
        Some(_) if how == libc::SHUT_RD => 0,
        Some(_) => answer(message::send_order(fd, message::Kind::Shutdown).map(|_| 0)),
        // SAFETY: the caller's arguments, unchanged.
        None => unsafe { real!(shutdown(fd: c_int, how: c_int) -> c_int) },
    }
}

/// `sendmsg(2)`, which libsctp's send functions call.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmsg(fd: c_int, header: *const msghdr, flags: c_int) -> ssize_t {
    let Some(handle) = ours(fd) else {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe { real!(sendmsg(fd: c_int, header: *const msghdr, flags: c_int) -> ssize_t) };
    };
    // SAFETY: the caller vouches for the header and all it points at.
    answer_length(unsafe { message::send(fd, &handle, &*header, flags) })
}

/// `recvmsg(2)`, which libsctp's receive functions call.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmsg(fd: c_int, header: *mut msghdr, flags: c_int) -> ssize_t {
    let Some(handle) = ours(fd) else {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe { real!(recvmsg(fd: c_int, header: *mut msghdr, flags: c_int) -> ssize_t) };
    };
    // SAFETY: the caller vouches for the header and all it points at.
    answer_length(unsafe { message::receive(fd, &handle, &mut *header, flags) })
}

/// `sendto(2)`: on stream 0, without a payload protocol identifier.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendto(
    fd: c_int,
    data: *const c_void,
    length: size_t,
    flags: c_int,
    name: *const sockaddr,
    name_length: socklen_t,
) -> ssize_t {
    let Some(handle) = ours(fd) else {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe {
            real!(sendto(fd: c_int, data: *const c_void, length: size_t, flags: c_int,
                name: *const sockaddr, name_length: socklen_t) -> ssize_t)
        };
    };
    let mut vector = libc::iovec { iov_base: data.cast_mut(), iov_len: length };
    let header = abi::message_header(&mut vector, name.cast_mut().cast(), name_length);
    // SAFETY: the caller vouches for `length` bytes at `data`, and for `name`.
    answer_length(unsafe { message::send(fd, &handle, &header, flags) })
}

/// `send(2)`: as [`sendto`].
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn send(
    fd: c_int,
    data: *const c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's arguments, unchanged.
    unsafe { sendto(fd, data, length, flags, std::ptr::null(), 0) }
}

/// `write(2)`: as [`sendto`].
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn write(fd: c_int, data: *const c_void, length: size_t) -> ssize_t {
    if ours(fd).is_some() {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe { send(fd, data, length, 0) };
    }
    // SAFETY: the caller's arguments, unchanged.
    unsafe { real!(write(fd: c_int, data: *const c_void, length: size_t) -> ssize_t) }
}

/// `recvfrom(2)`: the message without its ancillary information.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvfrom(
    fd: c_int,
    data: *mut c_void,
    length: size_t,
    flags: c_int,
    name: *mut sockaddr,
    name_length: *mut socklen_t,
) -> ssize_t {
    let Some(handle) = ours(fd) else {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe {
            real!(recvfrom(fd: c_int, data: *mut c_void, length: size_t, flags: c_int,
                name: *mut sockaddr, name_length: *mut socklen_t) -> ssize_t)
        };
    };
    let mut vector = libc::iovec { iov_base: data, iov_len: length };
    let mut header = abi::message_header(&mut vector, std::ptr::null_mut(), 0);
    // SAFETY: the caller vouches for `length` bytes at `data`, and for the room at `name`.
    unsafe {
        let result = message::receive(fd, &handle, &mut header, flags);
        abi::write_address(handle.peer(), name, name_length);
        answer_length(result)
    }
}

/// `recv(2)`: as [`recvfrom`].
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recv(fd: c_int, data: *mut c_void, length: size_t, flags: c_int) -> ssize_t {
    // SAFETY: the caller's arguments, unchanged.
    unsafe { recvfrom(fd, data, length, flags, std::ptr::null_mut(), std::ptr::null_mut()) }
}

/// `read(2)`: as [`recvfrom`].
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn read(fd: c_int, data: *mut c_void, length: size_t) -> ssize_t {
    if ours(fd).is_some() {
        // SAFETY: the caller's arguments, unchanged.
        return unsafe { recv(fd, data, length, 0) };
    }
    // SAFETY: the caller's arguments, unchanged.
    unsafe { real!(read(fd: c_int, data: *mut c_void, length: size_t) -> ssize_t) }
}
