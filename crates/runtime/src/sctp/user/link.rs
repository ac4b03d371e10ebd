//! A socket for SCTP packets, over raw IP or UDP, with many packets per system call.
#![allow(unsafe_code)]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use libc::{c_int, cmsghdr, iovec, mmsghdr, msghdr, sockaddr_storage};

use super::filter::{self, Framing};
use crate::sctp::poll::{bind, check, decode_address, encode_address, family, new_socket, set_option};

/// Packets read or written by one system call.
pub(super) const BATCH: usize = 64;
/// Longest packet: the limit of IP.
const MAX_PACKET: usize = 65_536;
/// Kernel buffer of a link in each direction; thousands of associations share it.
const SOCKET_BUFFER: c_int = 8 << 20;
/// Room for one control message with an `in6_pktinfo`, in words.
const CONTROL_WORDS: usize = 6;

/// A socket of one address family.
pub(super) struct Link {
    fd: OwnedFd,
    /// The bound address; unspecified for all addresses.
    pub bound: SocketAddr,
    raw: bool,
}

impl Link {
    /// A link for all SCTP packets to this host over IPv4 or IPv6.
    pub fn raw(ipv4: bool) -> io::Result<Self> {
        let any = if ipv4 { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
        let fd = new_socket(family(any), libc::SOCK_RAW, libc::IPPROTO_SCTP)?;
        Self::prepare(Self { fd, bound: SocketAddr::new(any, 0), raw: true })
    }

    /// A link for SCTP packets in UDP to `address`; with port 0 the system chooses a port.
    pub fn udp(address: SocketAddr) -> io::Result<Self> {
        let fd = new_socket(family(address.ip()), libc::SOCK_DGRAM, 0)?;
        if address.is_ipv6() {
            set_option(fd.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, &1)?;
        }
        bind(fd.as_fd(), address)?;
        Self::prepare(Self { fd, bound: address, raw: false })
    }

    /// Sets large buffers, fragmentation of long packets by the network, and reporting of local addresses.
    fn prepare(self) -> io::Result<Self> {
        for (forced, plain) in
            [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
        {
            set_option(self.as_fd(), libc::SOL_SOCKET, forced, &SOCKET_BUFFER)
                .or_else(|_| set_option(self.as_fd(), libc::SOL_SOCKET, plain, &SOCKET_BUFFER))?;
        }
        let options = match self.bound {
            SocketAddr::V4(_) => [
                (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT),
                (libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
            ],
            SocketAddr::V6(_) => [
                (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DONT),
                (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
            ],
        };
        for (level, name, value) in options {
            set_option(self.as_fd(), level, name, &value)?;
        }
        Ok(self)
    }

    /// Whether packets are sent without UDP.
    pub fn is_raw(&self) -> bool {
        self.raw
    }

    /// Filters packets for other ports out of a raw link.
    pub fn restrict(&self, ports: &[u16], blocks: &[u16]) -> io::Result<()> {
        let framing = if self.bound.is_ipv4() { Framing::Ipv4 } else { Framing::Bare };
        filter::attach(self.as_fd(), framing, ports, blocks)
    }

    /// Reads up to [`BATCH`] packets without blocking; returns their number.
    pub fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.prepare();
        // SAFETY: `prepare` has pointed every header at buffers of the batch, which it outlives.
        let count = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                batch.headers.as_mut_ptr(),
                BATCH as u32,
                0,
                std::ptr::null_mut(),
            )
        };
        let count = check(count).map(|count| count as usize);
        batch.filled = count.as_ref().map_or(1, |count| *count);
        count
    }

    /// The packet at `index` of a batch read from this link; `None` if it is unusable.
    pub fn packet<'a>(&self, batch: &'a ReceiveBatch, index: usize) -> Option<Packet<'a>> {
        let header = batch.headers.get(index)?;
        if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            return None;
        }
        let bytes = batch.buffers.get(index)?.get(..header.msg_len as usize)?;
        let payload = if self.raw && self.bound.is_ipv4() { after_ipv4_header(bytes)? } else { bytes };
        let mut remote = decode_address(batch.names.get(index)?)?;
        if self.raw {
            remote.set_port(0);
        }
        Some(Packet { local: local_address(&header.msg_hdr)?, remote, payload })
    }

    /// Writes packets until the kernel accepts no more; returns the number accepted.
    pub fn send(&self, packets: &[Packet<'_>], batch: &mut SendBatch) -> io::Result<usize> {
        let count = batch.prepare(packets);
        // SAFETY: `prepare` has pointed `count` headers at the packets and at buffers of the batch.
        let sent =
            unsafe { libc::sendmmsg(self.fd.as_raw_fd(), batch.headers.as_mut_ptr(), count as u32, 0) };
        check(sent).map(|sent| sent as usize)
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// An SCTP packet with its addresses; the remote port is the UDP port, or 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet<'a> {
    pub local: IpAddr,
    pub remote: SocketAddr,
    pub payload: &'a [u8],
}

fn after_ipv4_header(bytes: &[u8]) -> Option<&[u8]> {
    let words = bytes.first()? & 0x0f;
    bytes.get(usize::from(words) * 4..)
}

/// The destination address of a packet, from its control message.
fn local_address(header: &msghdr) -> Option<IpAddr> {
    // SAFETY: the kernel has filled the control buffer that `header` points at, and set its length.
    unsafe {
        let message = libc::CMSG_FIRSTHDR(header).as_ref()?;
        let data = libc::CMSG_DATA(message);
        match (message.cmsg_level, message.cmsg_type) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into())
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

/// Buffers for reading a batch.
pub(super) struct ReceiveBatch {
    headers: Vec<mmsghdr>,
    vectors: Vec<iovec>,
    names: Vec<sockaddr_storage>,
    controls: Vec<[u64; CONTROL_WORDS]>,
    buffers: Vec<Box<[u8]>>,
    /// Headers that the kernel has filled, which are prepared before the next call.
    filled: usize,
}

// SAFETY: the pointers in headers and vectors are used within a call that borrows the batch, and none of what they point at is moved or
// reallocated.
unsafe impl Send for ReceiveBatch {}

impl ReceiveBatch {
    pub fn new() -> Self {
        // SAFETY: all-zero bytes are valid for these C structures.
        let (header, vector, name) = unsafe { (std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed()) };
        Self {
            headers: vec![header; BATCH],
            vectors: vec![vector; BATCH],
            names: vec![name; BATCH],
            controls: vec![[0; CONTROL_WORDS]; BATCH],
            buffers: (0..BATCH).map(|_| vec![0; MAX_PACKET].into_boxed_slice()).collect(),
            filled: BATCH,
        }
    }

    /// Prepares the headers that the last call has filled: the kernel leaves others as they are.
    fn prepare(&mut self) {
        for i in 0..self.filled {
            let buffer = &mut self.buffers[i];
            self.vectors[i] = iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            let header = &mut self.headers[i].msg_hdr;
            header.msg_name = (&raw mut self.names[i]).cast();
            header.msg_namelen = size_of::<sockaddr_storage>() as u32;
            header.msg_iov = &raw mut self.vectors[i];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut self.controls[i]).cast();
            header.msg_controllen = size_of::<[u64; CONTROL_WORDS]>();
            header.msg_flags = 0;
        }
    }
}

/// Buffers for writing a batch.
pub(super) struct SendBatch {
    headers: Vec<mmsghdr>,
    vectors: Vec<iovec>,
    names: Vec<sockaddr_storage>,
    controls: Vec<[u64; CONTROL_WORDS]>,
}

// SAFETY: the pointers in headers and vectors are written and used within one call that borrows the batch.
unsafe impl Send for SendBatch {}

impl SendBatch {
    pub fn new() -> Self {
        // SAFETY: all-zero bytes are valid for these C structures.
        let (header, vector, name) = unsafe { (std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed()) };
        Self {
            headers: vec![header; BATCH],
            vectors: vec![vector; BATCH],
            names: vec![name; BATCH],
            controls: vec![[0; CONTROL_WORDS]; BATCH],
        }
    }

    fn prepare(&mut self, packets: &[Packet<'_>]) -> usize {
        let count = packets.len().min(BATCH);
        for (i, packet) in packets.iter().take(count).enumerate() {
            let (name, name_length) = encode_address(packet.remote);
            self.names[i] = name;
            self.vectors[i] =
                iovec { iov_base: packet.payload.as_ptr().cast_mut().cast(), iov_len: packet.payload.len() };
            let header = &mut self.headers[i].msg_hdr;
            header.msg_name = (&raw mut self.names[i]).cast();
            header.msg_namelen = name_length;
            header.msg_iov = &raw mut self.vectors[i];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut self.controls[i]).cast();
            header.msg_controllen = write_source(&mut self.controls[i], packet.local);
        }
        count
    }
}

/// Writes the control message that sets a packet's source address; returns its length.
fn write_source(control: &mut [u64; CONTROL_WORDS], local: IpAddr) -> usize {
    match local {
        IpAddr::V4(v4) => {
            let info = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr { s_addr: u32::from_ne_bytes(v4.octets()) },
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            write_control(control, libc::IPPROTO_IP, libc::IP_PKTINFO, info)
        }
        IpAddr::V6(v6) => {
            let info =
                libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr: v6.octets() }, ipi6_ifindex: 0 };
            write_control(control, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info)
        }
    }
}

fn write_control<T: Copy>(control: &mut [u64; CONTROL_WORDS], level: c_int, kind: c_int, value: T) -> usize {
    const { assert!(size_of::<cmsghdr>() + size_of::<T>() <= size_of::<[u64; CONTROL_WORDS]>()) };
    let message = control.as_mut_ptr().cast::<cmsghdr>();
    let length = size_of::<T>() as u32;
    // SAFETY: the control buffer is aligned for the header and, as asserted above, holds header and value.
    unsafe {
        (*message).cmsg_len = libc::CMSG_LEN(length) as usize;
        (*message).cmsg_level = level;
        (*message).cmsg_type = kind;
        libc::CMSG_DATA(message).cast::<T>().write_unaligned(value);
        libc::CMSG_SPACE(length) as usize
    }
}
