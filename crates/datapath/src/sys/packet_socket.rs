//! A packet socket (AF_PACKET) that sends frames by the device's queueing discipline, with virtio-net headers.

use super::udp::set_option;
use super::{VNET_HEADER_LEN, check};
use std::io::{self, IoSlice};
use std::mem::{size_of, zeroed};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// The socket option by which each frame follows a virtio-net header.
const PACKET_VNET_HDR: libc::c_int = 15;
/// Maximum number of frames of one [`send`](PacketSocket::send).
const SEND_BATCH: usize = 64;
/// Requested kernel buffer, in bytes.
const KERNEL_BUFFER: libc::c_int = 4 << 20;

/// A frame to send: a virtio-net header of [`VNET_HEADER_LEN`] bytes, link header and packet.
#[derive(Debug, Clone)]
pub struct FrameOut {
    /// Interface index.
    pub device: u32,
    /// Whether it contains an IPv6 packet; otherwise an IPv4 packet.
    pub v6: bool,
    /// Its parts, among those given to `send`.
    pub parts: Range<usize>,
}

/// A socket that only sends.
#[derive(Debug)]
pub struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Needs CAP_NET_RAW.
    pub fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: takes no pointers; the descriptor it answers is new and ours alone. Protocol 0: it receives nothing.
        let fd = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0))?) };
        let on: libc::c_int = 1;
        set_option(fd.as_fd(), libc::SOL_PACKET, PACKET_VNET_HDR, &on)?;
        set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &KERNEL_BUFFER)
            .or_else(|_| set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, &KERNEL_BUFFER))?;
        Ok(Self(fd))
    }

    /// Sends `frames` in order, as many as one call accepts, and returns how many; an error is that of the first.
    pub fn send(&self, frames: &[FrameOut], parts: &[IoSlice<'_>]) -> io::Result<usize> {
        // SAFETY: all zero is a valid value of both plain C structures.
        let (mut headers, mut names) =
            unsafe { (zeroed::<[libc::mmsghdr; SEND_BATCH]>(), zeroed::<[libc::sockaddr_ll; SEND_BATCH]>()) };
        let mut count = 0;
        for ((frame, header), name) in frames.iter().zip(&mut headers).zip(&mut names) {
            let parts = parts.get(frame.parts.clone()).unwrap_or_default();
            debug_assert!(parts.first().is_some_and(|head| head.len() >= VNET_HEADER_LEN));
            let protocol = if frame.v6 { libc::ETH_P_IPV6 } else { libc::ETH_P_IP };
            name.sll_family = libc::AF_PACKET as libc::c_ushort;
            name.sll_protocol = (protocol as u16).to_be();
            name.sll_ifindex = frame.device as libc::c_int;
            let header = &mut header.msg_hdr;
            header.msg_name = (&raw mut *name).cast();
            header.msg_namelen = size_of::<libc::sockaddr_ll>() as _;
            header.msg_iov = parts.as_ptr().cast_mut().cast();
            header.msg_iovlen = parts.len() as _;
            count += 1;
        }
        // SAFETY: the first `count` headers were written above. What they point at is alive during the call and only read by it:
        // `IoSlice` has the layout of `iovec`, and names are on this stack.
        let sent = check(unsafe { libc::sendmmsg(self.0.as_raw_fd(), headers.as_mut_ptr(), count, 0) })?;
        Ok(sent as usize)
    }
}
