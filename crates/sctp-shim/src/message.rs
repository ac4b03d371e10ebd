//! Messages between the program and the engine: frames on a Unix socket pair.
//!
//! A frame is a header of [`HEADER`] bytes (kind, padding, stream in 2 bytes, PPID in 4, native byte order)
//! and the message. The program's `sendmsg` and `recvmsg` use its own descriptor, so the kernel implements
//! blocking, polling and closing.

use std::io;
use std::mem::size_of;
use std::os::fd::RawFd;
use std::sync::Arc;

use libc::{c_int, cmsghdr, iovec, msghdr};

use crate::handle::{Handle, Subscriptions};
use crate::real::real;
use crate::{abi, connect_to};

/// Length of a frame's header.
pub(crate) const HEADER: usize = 8;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Data = 0,
    /// To the program: a notification.
    Notification = 1,
    /// To the engine: end the association gracefully.
    Shutdown = 2,
    /// To the engine: abort the association.
    Abort = 3,
    /// To the program: the descriptor of an accepted association.
    Accepted = 4,
}

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub kind: Kind,
    pub stream: u16,
    /// Host byte order.
    pub ppid: u32,
}

impl Frame {
    /// A frame other than data.
    pub fn of(kind: Kind) -> Self {
        Self { kind, stream: 0, ppid: 0 }
    }

    pub fn encode(self) -> [u8; HEADER] {
        let [s0, s1] = self.stream.to_ne_bytes();
        let [p0, p1, p2, p3] = self.ppid.to_ne_bytes();
        [self.kind as u8, 0, s0, s1, p0, p1, p2, p3]
    }

    pub fn decode(bytes: [u8; HEADER]) -> Option<Self> {
        let [kind, _, s0, s1, ppid @ ..] = bytes;
        let kind = match kind {
            0 => Kind::Data,
            1 => Kind::Notification,
            2 => Kind::Shutdown,
            3 => Kind::Abort,
            4 => Kind::Accepted,
            _ => return None,
        };
        Some(Self { kind, stream: u16::from_ne_bytes([s0, s1]), ppid: u32::from_ne_bytes(ppid) })
    }
}

/// Sends a frame without a message to the engine.
pub(crate) fn send_order(fd: RawFd, kind: Kind) -> io::Result<usize> {
    let bytes = Frame::of(kind).encode();
    let mut vector = iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let header = abi::message_header(&mut vector, std::ptr::null_mut(), 0);
    // SAFETY: the header points at `bytes`, which outlive the call.
    abi::check(unsafe { real_sendmsg(fd, &raw const header, libc::MSG_NOSIGNAL) })
}

/// Sends a message of the program; first connects if the program gives a peer for an unconnected socket.
///
/// # Safety
/// `message` must point to memory as `sendmsg(2)` requires.
pub(crate) unsafe fn send(
    fd: RawFd,
    handle: &Arc<Handle>,
    message: &msghdr,
    flags: c_int,
) -> io::Result<usize> {
    if handle.is_fresh() {
        // SAFETY: as above.
        let peer = unsafe { abi::read_address(message.msg_name.cast(), message.msg_namelen) };
        connect_to(fd, handle, peer.map_err(|_| io::ErrorKind::NotConnected)?)?;
    }
    // SAFETY: as above.
    let (frame, order) = unsafe { send_information(message) };
    if order != Kind::Data {
        return send_order(fd, order).map(|_| 0);
    }
    let encoded = frame.encode();
    let first = iovec { iov_base: encoded.as_ptr().cast_mut().cast(), iov_len: HEADER };
    // SAFETY: as above.
    let vectors = unsafe { with_first(first, message) };
    let mut framed = *message;
    (framed.msg_name, framed.msg_namelen) = (std::ptr::null_mut(), 0);
    (framed.msg_control, framed.msg_controllen) = (std::ptr::null_mut(), 0);
    (framed.msg_iov, framed.msg_iovlen) = (vectors.as_ptr().cast_mut(), vectors.len());
    // SAFETY: the header points at the caller's buffers, `encoded` and `vectors`, which outlive the call.
    let sent = abi::check(unsafe { real_sendmsg(fd, &raw const framed, flags | libc::MSG_NOSIGNAL) })?;
    Ok(sent.saturating_sub(HEADER))
}

/// Reads stream, PPID and flags from the control messages of a `sendmsg`.
///
/// # Safety
/// `message` must point to memory as `sendmsg(2)` requires.
unsafe fn send_information(message: &msghdr) -> (Frame, Kind) {
    let mut frame = Frame::of(Kind::Data);
    let mut flags = 0;
    // SAFETY: as above; the offsets are those of `struct sctp_sndrcvinfo` and `struct sctp_sndinfo`.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = control.as_ref() {
            let data = libc::CMSG_DATA(header);
            let ppid_at = match (header.cmsg_level, header.cmsg_type) {
                (libc::IPPROTO_SCTP, abi::SCTP_SNDRCV) => Some((4, 8)),
                (libc::IPPROTO_SCTP, abi::SCTP_SNDINFO) => Some((2, 4)),
                _ => None,
            };
            if let Some((flags_at, ppid_at)) = ppid_at {
                frame.stream = data.cast::<u16>().read_unaligned();
                flags = data.add(flags_at).cast::<u16>().read_unaligned();
                frame.ppid = u32::from_be(data.add(ppid_at).cast::<u32>().read_unaligned());
            }
            control = libc::CMSG_NXTHDR(message, control);
        }
    }
    let order = match flags {
        f if f & abi::SCTP_ABORT != 0 => Kind::Abort,
        f if f & abi::SCTP_EOF != 0 => Kind::Shutdown,
        _ => Kind::Data,
    };
    (frame, order)
}

/// Receives a message or a notification for the program.
///
/// # Safety
/// `message` must point to memory as `recvmsg(2)` requires.
pub(crate) unsafe fn receive(
    fd: RawFd,
    handle: &Handle,
    message: &mut msghdr,
    flags: c_int,
) -> io::Result<usize> {
    let mut encoded = [0; HEADER];
    let first = iovec { iov_base: encoded.as_mut_ptr().cast(), iov_len: HEADER };
    // SAFETY: as above.
    let mut vectors = unsafe { with_first(first, message) };
    let mut framed = *message;
    (framed.msg_name, framed.msg_namelen) = (std::ptr::null_mut(), 0);
    (framed.msg_control, framed.msg_controllen) = (std::ptr::null_mut(), 0);
    (framed.msg_iov, framed.msg_iovlen) = (vectors.as_mut_ptr(), vectors.len());
    // SAFETY: the header points at the caller's buffers, `encoded` and `vectors`, which outlive the call.
    let length = abi::check(unsafe { real_recvmsg(fd, &raw mut framed, flags) })?;
    if length == 0 {
        (message.msg_flags, message.msg_controllen) = (0, 0);
        return handle.take_error().map_or(Ok(0), |errno| Err(io::Error::from_raw_os_error(errno)));
    }
    let frame = Frame::decode(encoded).ok_or(io::ErrorKind::InvalidData)?;
    let end = if framed.msg_flags & libc::MSG_TRUNC == 0 { libc::MSG_EOR } else { 0 };
    let notification = if frame.kind == Kind::Notification { abi::MSG_NOTIFICATION } else { 0 };
    message.msg_flags = end | notification;
    // SAFETY: as above.
    unsafe { write_information(frame, handle, message) };
    Ok(length.saturating_sub(HEADER))
}

/// Writes the peer and the control messages that the program has subscribed to.
///
/// # Safety
/// `message` must point to memory as `recvmsg(2)` requires.
unsafe fn write_information(frame: Frame, handle: &Handle, message: &mut msghdr) {
    // SAFETY: as above.
    unsafe { abi::write_address(handle.peer(), message.msg_name.cast(), &raw mut message.msg_namelen) };
    let Subscriptions { data_io, receive_info, .. } = handle.subscriptions();
    let mut bytes = Vec::new();
    if frame.kind == Kind::Data && receive_info {
        push_control(&mut bytes, abi::SCTP_RCVINFO, &abi::receive_info(frame.stream, frame.ppid));
    }
    if frame.kind == Kind::Data && data_io {
        push_control(&mut bytes, abi::SCTP_SNDRCV, &abi::send_receive_info(frame.stream, frame.ppid));
    }
    if bytes.len() > message.msg_controllen {
        message.msg_flags |= libc::MSG_CTRUNC;
        bytes.clear();
    }
    // SAFETY: the caller has `msg_controllen` bytes of room, which is enough.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), message.msg_control.cast(), bytes.len()) };
    message.msg_controllen = bytes.len();
}

/// Appends a control message of level SCTP.
fn push_control(bytes: &mut Vec<u8>, kind: c_int, data: &[u8]) {
    let length = size_of::<cmsghdr>() + data.len();
    bytes.extend(length.to_ne_bytes());
    bytes.extend(libc::IPPROTO_SCTP.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(size_of::<usize>()), 0);
}

/// The buffers of a message, preceded by another one.
///
/// # Safety
/// `message` must point to the number of buffers that it contains.
unsafe fn with_first(first: iovec, message: &msghdr) -> Vec<iovec> {
    let mut vectors = vec![first];
    if !message.msg_iov.is_null() {
        // SAFETY: as above.
        vectors.extend_from_slice(unsafe { std::slice::from_raw_parts(message.msg_iov, message.msg_iovlen) });
    }
    vectors
}

/// The descriptor of the next accepted association of a listener.
pub(crate) fn accepted(fd: RawFd) -> io::Result<RawFd> {
    let mut bytes = [0_u8; HEADER + 4];
    let mut vector = iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut header = abi::message_header(&mut vector, std::ptr::null_mut(), 0);
    // SAFETY: the header points at `bytes`, which outlive the call.
    let length = abi::check(unsafe { real_recvmsg(fd, &raw mut header, 0) })?;
    let [.., a, b, c, d] = bytes;
    if length == bytes.len() {
        Ok(RawFd::from_ne_bytes([a, b, c, d]))
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

/// libc's `sendmsg`.
unsafe fn real_sendmsg(fd: c_int, header: *const msghdr, flags: c_int) -> isize {
    // SAFETY: the caller's arguments, unchanged.
    unsafe { real!(sendmsg(fd: c_int, header: *const msghdr, flags: c_int) -> isize) }
}

/// libc's `recvmsg`.
unsafe fn real_recvmsg(fd: c_int, header: *mut msghdr, flags: c_int) -> isize {
    // SAFETY: the caller's arguments, unchanged.
    unsafe { real!(recvmsg(fd: c_int, header: *mut msghdr, flags: c_int) -> isize) }
}
