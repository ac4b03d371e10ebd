//! The C ABI: addresses, errno, flags, and the layouts of `linux/sctp.h`.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::RawFd;

use libc::{c_int, c_void, iovec, msghdr, sockaddr, socklen_t};

/// libc's, defined here because usrsctp's archive refers to it by a relocation that must be bound within this
/// library.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static in6addr_any: [u8; 16] = [0; 16];

pub(crate) const MSG_NOTIFICATION: c_int = 0x8000;
pub(crate) const SCTP_SNDRCV: c_int = 1;
pub(crate) const SCTP_SNDINFO: c_int = 2;
pub(crate) const SCTP_RCVINFO: c_int = 3;
/// Bits of `sinfo_flags` and `snd_flags`.
pub(crate) const SCTP_ABORT: u16 = 4;
pub(crate) const SCTP_EOF: u16 = 0x200;
/// The only association that a socket can have.
pub(crate) const ASSOCIATION_ID: u32 = 1;

pub(crate) fn set_errno(error: &io::Error) {
    let number = error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::NotConnected => libc::ENOTCONN,
        io::ErrorKind::InvalidInput => libc::EINVAL,
        io::ErrorKind::Unsupported => libc::EOPNOTSUPP,
        _ => libc::EIO,
    });
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() = number };
}

/// Converts -1 to the error in `errno`.
pub(crate) fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// A view of a caller's memory.
///
/// # Safety
/// `value` must point to `length` bytes, or be null.
pub(crate) unsafe fn bytes<'a>(value: *const c_void, length: usize) -> &'a [u8] {
    // SAFETY: as above.
    if value.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(value.cast(), length) } }
}

/// Reads an address in the caller's memory.
///
/// # Safety
/// `name` must point to `length` bytes, or be null.
pub(crate) unsafe fn read_address(name: *const sockaddr, length: socklen_t) -> io::Result<SocketAddr> {
    // SAFETY: as above.
    decode_address(unsafe { bytes(name.cast(), length as usize) }).map(|(address, _)| address)
}

/// The first address in `bytes`, and its length.
pub(crate) fn decode_address(bytes: &[u8]) -> io::Result<(SocketAddr, usize)> {
    let &[f0, f1, p0, p1, ref rest @ ..] = bytes else { return Err(io::ErrorKind::InvalidInput.into()) };
    let port = u16::from_be_bytes([p0, p1]);
    match (c_int::from(u16::from_ne_bytes([f0, f1])), rest) {
        (libc::AF_INET, &[a, b, c, d, ..]) => Ok(((Ipv4Addr::new(a, b, c, d), port).into(), 16)),
        (libc::AF_INET6, &[_, _, _, _, ref rest @ ..]) => {
            let ip = rest.first_chunk::<16>().ok_or(io::ErrorKind::InvalidInput)?;
            Ok(((Ipv6Addr::from(*ip), port).into(), 28))
        }
        _ => Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
    }
}

/// An address in C's representation.
pub(crate) fn encode_address(address: SocketAddr) -> Vec<u8> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut bytes = (family as u16).to_ne_bytes().to_vec();
    bytes.extend(address.port().to_be_bytes());
    match address {
        SocketAddr::V4(v4) => {
            bytes.extend(v4.ip().octets());
            bytes.resize(16, 0);
        }
        SocketAddr::V6(v6) => {
            bytes.extend([0; 4]);
            bytes.extend(v6.ip().octets());
            bytes.extend(v6.scope_id().to_ne_bytes());
        }
    }
    bytes
}

/// Writes an address to the caller's memory, cut to the space there, and its full length.
///
/// # Safety
/// `name` must point to `*length` writable bytes, unless either is null.
pub(crate) unsafe fn write_address(address: Option<SocketAddr>, name: *mut sockaddr, length: *mut socklen_t) {
    if name.is_null() || length.is_null() {
        return;
    }
    let bytes = address.map(encode_address).unwrap_or_default();
    // SAFETY: as above.
    unsafe {
        let room = (*length as usize).min(bytes.len());
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), name.cast(), room);
        *length = bytes.len() as socklen_t;
    }
}

/// Writes an option to the caller's memory, cut to the space there.
///
/// # Safety
/// `value` must point to `*length` writable bytes.
pub(crate) unsafe fn write_option(bytes: &[u8], value: *mut c_void, length: *mut socklen_t) -> c_int {
    // SAFETY: as above.
    unsafe {
        let room = (*length as usize).min(bytes.len());
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.cast(), room);
        *length = room as socklen_t;
    }
    0
}

/// A message header with one buffer and a name.
pub(crate) fn message_header(vector: &mut iovec, name: *mut c_void, name_length: socklen_t) -> msghdr {
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut header: msghdr = unsafe { std::mem::zeroed() };
    header.msg_name = name;
    header.msg_namelen = name_length;
    header.msg_iov = vector;
    header.msg_iovlen = 1;
    header
}

pub(crate) fn is_non_blocking(fd: RawFd) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::fcntl(fd, libc::F_GETFL) & libc::O_NONBLOCK != 0 }
}

/// Sets the flags of `accept4` on a descriptor.
pub(crate) fn apply_flags(fd: RawFd, flags: c_int) -> io::Result<()> {
    // SAFETY: no pointers.
    unsafe {
        if flags & libc::SOCK_NONBLOCK != 0 {
            let old = libc::fcntl(fd, libc::F_GETFL);
            check(libc::fcntl(fd, libc::F_SETFL, old | libc::O_NONBLOCK) as isize)?;
        }
        if flags & libc::SOCK_CLOEXEC != 0 {
            check(libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) as isize)?;
        }
    }
    Ok(())
}

/// `struct sctp_sndrcvinfo` of a received message.
pub(crate) fn send_receive_info(stream: u16, ppid: u32) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[0..2].copy_from_slice(&stream.to_ne_bytes());
    bytes[8..12].copy_from_slice(&ppid.to_be().to_ne_bytes());
    bytes[28..32].copy_from_slice(&ASSOCIATION_ID.to_ne_bytes());
    bytes
}

/// `struct sctp_rcvinfo` of a received message.
pub(crate) fn receive_info(stream: u16, ppid: u32) -> [u8; 28] {
    let mut bytes = [0; 28];
    bytes[0..2].copy_from_slice(&stream.to_ne_bytes());
    bytes[8..12].copy_from_slice(&ppid.to_be().to_ne_bytes());
    bytes[24..28].copy_from_slice(&ASSOCIATION_ID.to_ne_bytes());
    bytes
}

/// `struct sctp_assoc_change`.
pub(crate) fn association_change(state: u16, inbound: u16, outbound: u16) -> Vec<u8> {
    const SCTP_ASSOC_CHANGE: u16 = 0x8001;
    let mut bytes = [SCTP_ASSOC_CHANGE, 0].map(u16::to_ne_bytes).concat();
    bytes.extend(20_u32.to_ne_bytes());
    bytes.extend([state, 0, outbound, inbound].map(u16::to_ne_bytes).concat());
    bytes.extend(ASSOCIATION_ID.to_ne_bytes());
    bytes
}

/// `struct sctp_shutdown_event`.
pub(crate) fn shutdown_event() -> Vec<u8> {
    const SCTP_SHUTDOWN_EVENT: u16 = 0x8005;
    let mut bytes = [SCTP_SHUTDOWN_EVENT, 0].map(u16::to_ne_bytes).concat();
    bytes.extend(12_u32.to_ne_bytes());
    bytes.extend(ASSOCIATION_ID.to_ne_bytes());
    bytes
}
