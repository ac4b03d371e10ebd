//! A GTP-U socket: several datagrams in one system call, and trains of equal-sized datagrams in one buffer
//! (UDP_GRO when receiving, UDP_SEGMENT when sending).

use super::check;
use pith_upf::qos::Ecn;
use std::io::{self, IoSlice};
use std::mem::{MaybeUninit, size_of, size_of_val, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Maximum number of buffers filled by one [`receive`](GtpuSocket::receive).
pub const RECEIVE_SLOTS: usize = 16;
/// Bytes of a buffer: the longest train of datagrams, and an odd number of cache lines, so that buffers don't all start in the
/// same cache sets.
pub const RECEIVE_SLOT: usize = 65_536 + 5 * 64;
/// Maximum number of datagrams that the kernel accepts in a train (the smallest UDP_MAX_SEGMENTS).
pub const MAX_SEGMENTS: usize = 64;

/// Messages of one sendmmsg.
const SEND_BATCH: usize = 32;
/// Requested kernel buffer for each direction, in bytes.
const KERNEL_BUFFER: libc::c_int = 4 << 20;
/// Longest time that a full device queue may block a worker, in microseconds.
const SEND_TIMEOUT: libc::suseconds_t = 100_000;
/// Datagrams without a checksum are accepted over IPv6 (include/uapi/linux/udp.h).
const UDP_NO_CHECK6_RX: libc::c_int = 102;
/// Words of ancillary data: a segment size and a type of service, each a header (two words) and a word.
const CONTROL_WORDS: usize = 8;

/// A received buffer: datagrams of `segment` bytes from one peer; the last may be shorter.
#[derive(Debug, Clone)]
pub struct Datagram {
    /// Its position in the arena given to `receive`.
    pub range: Range<usize>,
    /// Bytes of each datagram in it.
    pub segment: usize,
    pub peer: SocketAddr,
    /// ECN field of their outer headers.
    pub ecn: Ecn,
}

/// A buffer to send to one peer.
#[derive(Debug, Clone)]
pub struct Outgoing {
    pub peer: SocketAddr,
    /// Type of service or traffic class.
    pub tos: u8,
    /// Length of the datagrams that it is split into; `None`: it is one datagram.
    pub segment: Option<u16>,
    /// Its parts, among those given to `send`.
    pub parts: Range<usize>,
}

/// A UDP socket on a GTP-U address; several share the port, and the kernel distributes peers over them.
#[derive(Debug)]
pub struct GtpuSocket {
    socket: UdpSocket,
    address: SocketAddr,
}

impl GtpuSocket {
    /// Binds to `address`. Sockets of the same address must be opened by the same user.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        // SAFETY: takes no pointers; the descriptor it answers is new and ours alone.
        let fd = unsafe {
            OwnedFd::from_raw_fd(check(libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?)
        };
        let option = |level, name, value: libc::c_int| set_option(fd.as_fd(), level, name, &value);
        option(libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        // With the privilege that TUN requires, beyond the system's maximum; without it, up to the maximum.
        for (forced, plain) in
            [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
        {
            option(libc::SOL_SOCKET, forced, KERNEL_BUFFER)
                .or_else(|_| option(libc::SOL_SOCKET, plain, KERNEL_BUFFER))?;
        }
        let timeout = libc::timeval { tv_sec: 0, tv_usec: SEND_TIMEOUT };
        set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDTIMEO, &timeout)?;
        // Without it (before Linux 5.0) datagrams are received one by one.
        let _ = option(libc::SOL_UDP, libc::UDP_GRO, 1);
        if address.is_ipv4() {
            option(libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
        } else {
            option(libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
            // Tunnels may be without (RFC 6935, RFC 6936); `bpf/spread.h` takes it out.
            option(libc::SOL_UDP, UDP_NO_CHECK6_RX, 1)?;
        }
        // A tunnel packet above the interface's MTU is fragmented by IP instead of dropped. The path MTU counts for nothing: by
        // a forged ICMP error anyone could lower it to 552 octets for all packets to a gNB.
        if address.is_ipv4() {
            option(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_OMIT)?;
        } else {
            option(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_OMIT)?;
            option(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
        }
        let name = SocketAddress::from(address);
        // SAFETY: `name` is readable for the length given.
        check(unsafe { libc::bind(fd.as_raw_fd(), name.as_ptr(), name.len) })?;
        Ok(Self { socket: UdpSocket::from(fd), address })
    }

    /// A socket that another process has bound. Datagrams in it may be pending.
    pub fn inherit(socket: OwnedFd) -> io::Result<Self> {
        let socket = UdpSocket::from(socket);
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }

    /// Its descriptor, for another process.
    pub fn share(&self) -> io::Result<OwnedFd> {
        self.socket.as_fd().try_clone_to_owned()
    }

    /// Fills `arena`, which has [`RECEIVE_SLOTS`] slots of [`RECEIVE_SLOT`] bytes, with received datagrams
    /// and appends them to `received`; `WouldBlock` if there are none.
    pub fn receive(&self, arena: &mut [u8], received: &mut Vec<Datagram>) -> io::Result<()> {
        // SAFETY: all zero is a valid value of each of these plain C structures.
        let (mut headers, mut parts, mut names, mut controls) = unsafe {
            (
                zeroed::<[libc::mmsghdr; RECEIVE_SLOTS]>(),
                zeroed::<[libc::iovec; RECEIVE_SLOTS]>(),
                zeroed::<[libc::sockaddr_in6; RECEIVE_SLOTS]>(),
                zeroed::<[[u64; CONTROL_WORDS]; RECEIVE_SLOTS]>(),
            )
        };
        let slots = arena.chunks_exact_mut(RECEIVE_SLOT).take(RECEIVE_SLOTS).enumerate();
        let mut count = 0;
        for (at, slot) in slots {
            parts[at] = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
            let header = &mut headers[at].msg_hdr;
            header.msg_name = (&raw mut names[at]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in6>() as _;
            header.msg_iov = &raw mut parts[at];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut controls[at]).cast();
            header.msg_controllen = size_of_val(&controls[at]) as _;
            count = at + 1;
        }
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: the first `count` headers point at slots of `arena`, and at names and controls on this
        // stack, all writable for the lengths they give and alive during the call.
        let filled = check(unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                headers.as_mut_ptr(),
                count as _,
                flags as _,
                std::ptr::null_mut(),
            )
        })?;
        for (at, header) in headers.iter().enumerate().take(filled as usize) {
            let len = header.msg_len as usize;
            let Some(peer) = socket_addr(&names[at]) else { continue };
            let (segment, ecn) = read_control(&header.msg_hdr);
            let segment = segment.unwrap_or(len).max(1);
            let start = at * RECEIVE_SLOT;
            received.push(Datagram { range: start..start + len, segment, peer, ecn });
        }
        Ok(())
    }

    /// Sends `messages` in order, as many as one call accepts, and returns how many; an error is that of the
    /// first.
    pub fn send(&self, messages: &[Outgoing], parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut headers = [MaybeUninit::<libc::mmsghdr>::zeroed(); SEND_BATCH];
        let mut names = [const { MaybeUninit::<SocketAddress>::uninit() }; SEND_BATCH];
        let mut controls = [[0u64; CONTROL_WORDS]; SEND_BATCH];
        let mut count = 0;
        for (at, message) in messages.iter().enumerate().take(SEND_BATCH) {
            let parts = parts.get(message.parts.clone()).unwrap_or_default();
            let name = names[at].write(message.peer.into());
            // SAFETY: all zero is a valid `mmsghdr`.
            let header = unsafe { &mut headers[at].assume_init_mut().msg_hdr };
            header.msg_name = name.as_ptr().cast_mut().cast();
            header.msg_namelen = name.len;
            header.msg_iov = parts.as_ptr().cast_mut().cast();
            header.msg_iovlen = parts.len() as _;
            write_control(header, &mut controls[at], message);
            count = at + 1;
        }
        // SAFETY: the first `count` headers were written above. What they point at is alive during the
        // call and only read by it: `IoSlice` has the layout of `iovec`, names and controls are on this
        // stack.
        let sent = check(unsafe {
            libc::sendmmsg(self.socket.as_raw_fd(), headers.as_mut_ptr().cast(), count as _, 0)
        })?;
        Ok(sent as usize)
    }

    pub fn send_to(&self, datagram: &[u8], peer: SocketAddr) -> io::Result<usize> {
        self.socket.send_to(datagram, peer)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Another handle of the same socket.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: self.socket.try_clone()?, address: self.address })
    }
}

impl AsFd for GtpuSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

pub(super) fn set_option<T>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: `value` is readable for its size.
    check(unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const *value).cast(), size_of::<T>() as _)
    })?;
    Ok(())
}

/// A socket address in C's representation.
struct SocketAddress {
    storage: libc::sockaddr_in6,
    len: libc::socklen_t,
}

impl SocketAddress {
    fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }
}

impl From<SocketAddr> for SocketAddress {
    fn from(address: SocketAddr) -> Self {
        // SAFETY: all zero is a valid value of both.
        let (mut v6, mut v4) = unsafe { (zeroed::<libc::sockaddr_in6>(), zeroed::<libc::sockaddr_in>()) };
        match address {
            SocketAddr::V6(address) => {
                v6.sin6_family = libc::AF_INET6 as _;
                v6.sin6_port = address.port().to_be();
                v6.sin6_addr.s6_addr = address.ip().octets();
                v6.sin6_scope_id = address.scope_id();
                Self { storage: v6, len: size_of::<libc::sockaddr_in6>() as _ }
            }
            SocketAddr::V4(address) => {
                v4.sin_family = libc::AF_INET as _;
                v4.sin_port = address.port().to_be();
                v4.sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
                // SAFETY: a `sockaddr_in6` is longer than a `sockaddr_in` and no less aligned.
                unsafe { (&raw mut v6).cast::<libc::sockaddr_in>().write(v4) };
                Self { storage: v6, len: size_of::<libc::sockaddr_in>() as _ }
            }
        }
    }
}

fn socket_addr(name: &libc::sockaddr_in6) -> Option<SocketAddr> {
    match libc::c_int::from(name.sin6_family) {
        libc::AF_INET6 => {
            let ip = Ipv6Addr::from(name.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(ip, u16::from_be(name.sin6_port), 0, name.sin6_scope_id).into())
        }
        libc::AF_INET => {
            // SAFETY: the kernel wrote a `sockaddr_in`, as the family says, and it fits in `name`.
            let v4 = unsafe { (&raw const *name).cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        _ => None,
    }
}

/// The size of the datagrams in a train (UDP_GRO), and the ECN field of its packets (IP_TOS, IPV6_TCLASS), from the ancillary
/// data. The kernel puts only packets of one type of service into a train.
fn read_control(header: &libc::msghdr) -> (Option<usize>, Ecn) {
    let (mut segment, mut ecn) = (None, Ecn::NotCapable);
    // SAFETY: `header` was filled by recvmmsg, so the macros walk well-formed entries within
    // `msg_controllen`; the entries of UDP_GRO and IPV6_TCLASS hold a C int, that of IP_TOS an octet.
    unsafe {
        let mut entry = libc::CMSG_FIRSTHDR(header);
        while let Some(found) = entry.as_ref() {
            let data = libc::CMSG_DATA(entry);
            match (found.cmsg_level, found.cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let size = data.cast::<libc::c_int>().read_unaligned();
                    segment = usize::try_from(size).ok().filter(|size| *size > 0);
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => ecn = Ecn::of_tos(data.read()),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    ecn = Ecn::of_tos(data.cast::<libc::c_int>().read_unaligned() as u8);
                }
                _ => {}
            }
            entry = libc::CMSG_NXTHDR(header, entry);
        }
    }
    (segment, ecn)
}

/// Writes the segment size and type of service, if set, into the ancillary data.
fn write_control(header: &mut libc::msghdr, control: &mut [u64; CONTROL_WORDS], message: &Outgoing) {
    let (level, kind) = match message.peer {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    };
    let mut used = 0;
    if let Some(segment) = message.segment {
        used += write_entry(control, used, libc::SOL_UDP, libc::UDP_SEGMENT, &segment.to_ne_bytes());
    }
    if message.tos != 0 {
        let tos = libc::c_int::from(message.tos);
        used += write_entry(control, used, level, kind, &tos.to_ne_bytes());
    }
    if used > 0 {
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = used as _;
    }
}

/// Writes one entry at offset `at` and returns its length; `data` is at most eight bytes.
fn write_entry(
    control: &mut [u64; CONTROL_WORDS],
    at: usize,
    level: libc::c_int,
    kind: libc::c_int,
    data: &[u8],
) -> usize {
    // SAFETY: pure arithmetic.
    let (len, space) =
        unsafe { (libc::CMSG_LEN(data.len() as _) as usize, libc::CMSG_SPACE(data.len() as _) as usize) };
    assert!(at + space <= size_of_val(control), "two entries of at most eight bytes fit");
    // SAFETY: the entry lies within `control`, which is aligned as `cmsghdr` is; `at` is a sum of
    // CMSG_SPACE, so this entry is aligned too.
    unsafe {
        let entry = control.as_mut_ptr().cast::<u8>().add(at).cast::<libc::cmsghdr>();
        (*entry).cmsg_len = len as _;
        (*entry).cmsg_level = level;
        (*entry).cmsg_type = kind;
        std::ptr::copy_nonoverlapping(data.as_ptr(), libc::CMSG_DATA(entry), data.len());
    }
    space
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_train_is_split_and_coalesced_again() {
        let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let from = GtpuSocket::bind(loopback(0)).unwrap();
        let to = GtpuSocket::bind(loopback(0)).unwrap();
        let peer = to.socket.local_addr().unwrap();
        let train = [[7u8; 100], [8; 100], [9; 100]].concat();
        let parts = [IoSlice::new(&train[..150]), IoSlice::new(&train[150..250])];
        let message = Outgoing { peer, tos: 46 << 2 | 2, segment: Some(100), parts: 0..2 };
        assert_eq!(from.send(&[message.clone(), message], &parts).unwrap(), 2);

        let mut arena = vec![0; RECEIVE_SLOTS * RECEIVE_SLOT];
        let mut received = Vec::new();
        while received.iter().map(|d: &Datagram| d.range.len()).sum::<usize>() < 500 {
            std::thread::sleep(Duration::from_millis(1));
            let _ = to.receive(&mut arena, &mut received);
        }
        assert_eq!((received[0].segment, received[0].ecn), (100, Ecn::Classic));
        assert_eq!(arena[received[0].range.clone()][..250], train[..250]);
        assert_eq!(received[0].peer, from.socket.local_addr().unwrap());
    }

    /// An ICMP error 'fragmentation needed' for a datagram from `source` to `peer` on the GTP-U port (RFC 1191 4).
    fn fragmentation_needed(source: Ipv4Addr, peer: Ipv4Addr, mtu: u16) -> Vec<u8> {
        let port = 2152u16.to_be_bytes();
        let ip = [
            &[0x45, 0, 5, 120, 0, 1, 0x40, 0, 64, 17, 0, 0][..],
            &source.octets(),
            &peer.octets(),
            &port,
            &port,
            &[5, 100, 0, 0],
        ];
        let mut message = [&[3, 4, 0, 0, 0, 0][..], &mtu.to_be_bytes(), &ip.concat()].concat();
        let sum: u32 = message.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        message[2..4].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
        message
    }

    #[test]
    fn a_forged_icmp_error_changes_no_path_mtu() {
        if !crate::sys::enter_namespace() {
            return;
        }
        let ip = |command: &str| {
            let output = std::process::Command::new("ip").args(command.split(' ')).output().unwrap();
            assert!(output.status.success(), "{command}");
            String::from_utf8(output.stdout).unwrap()
        };
        for command in [
            "link set lo up",
            "link add n3 type veth peer name radio",
            "addr add 192.0.2.1/24 dev n3",
            "link set n3 up",
            "link set radio up",
        ] {
            ip(command);
        }
        let (own, peer) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        let gtpu = GtpuSocket::bind((own, 2152).into()).unwrap();
        // SAFETY: takes no pointers; the descriptor it answers is new and owned here alone.
        let raw = unsafe {
            OwnedFd::from_raw_fd(
                check(libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)).unwrap(),
            )
        };
        let error = fragmentation_needed(own, peer, 552);
        UdpSocket::from(raw).send_to(&error, (own, 0)).unwrap();
        let route = ip("route get 192.0.2.2");
        assert!(route.contains("dev n3") && !route.contains("mtu"), "{route}");
        drop(gtpu);
    }

    #[test]
    fn socket_addresses_round_trip() {
        for text in ["192.0.2.1:2152", "[2001:db8::1]:2152"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(socket_addr(&SocketAddress::from(address).storage), Some(address));
        }
    }
}
