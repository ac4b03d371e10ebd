//! A kernel SCTP socket in one-to-one style: a listener or an association.
#![allow(unsafe_code)]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, cmsghdr, iovec, msghdr, pollfd, sockaddr_storage, socklen_t};

use super::uapi;
use crate::sctp::SctpConfig;
use crate::sctp::association::{Change, MessageSocket, Received, Streams};
use crate::sctp::config::millis;
use crate::sctp::poll::{
    bind, check, check_len, decode_address, encode_address, family, new_socket, set_option, set_option_bytes,
};

/// Room for one control message with an `sctp_rcvinfo`, in words.
const CONTROL_WORDS: usize = 8;
/// Associations that may be pending for accept.
const BACKLOG: c_int = 1024;

/// A kernel socket. Dropping it closes it, with an ABORT if its association is up.
pub(super) struct Socket(OwnedFd);

impl Socket {
    /// Opens a socket with the options of `config`; accepted sockets inherit them.
    pub fn open(address: SocketAddr, config: &SctpConfig) -> io::Result<Self> {
        let socket = Self(new_socket(family(address.ip()), libc::SOCK_STREAM, libc::IPPROTO_SCTP)?);
        if address.is_ipv6() {
            set_option(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, &1)?;
        }
        socket.prepare()?;
        socket.set_buffers(config)?;
        socket.set_timing(config)?;
        Ok(socket)
    }

    /// Sets: abort on close, no Nagle delay, association events and message information.
    fn prepare(&self) -> io::Result<()> {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        set_option(self.as_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &linger)?;
        self.set_sctp(uapi::SCTP_NODELAY, &1_i32)?;
        self.set_sctp(uapi::SCTP_RECVRCVINFO, &1_i32)?;
        // The first fields of `struct sctp_event_subscribe`: data_io_event off, association_event on.
        self.set_sctp(uapi::SCTP_EVENTS, &[0_u8, 1])
    }

    fn set_buffers(&self, config: &SctpConfig) -> io::Result<()> {
        let as_int = |bytes: usize| c_int::try_from(bytes).unwrap_or(c_int::MAX);
        set_option(self.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &as_int(config.receive_buffer))?;
        set_option(self.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, &as_int(config.send_buffer))
    }

    fn set_timing(&self, config: &SctpConfig) -> io::Result<()> {
        let (initial, max, min) =
            (millis(config.rto_initial), millis(config.rto_max), millis(config.rto_min));
        self.set_sctp(uapi::SCTP_RTOINFO, &uapi::sctp_rtoinfo { assoc_id: 0, initial, max, min })?;
        let asocmaxrxt = config.max_retransmissions;
        self.set_sctp(uapi::SCTP_ASSOCINFO, &uapi::sctp_assocparams { asocmaxrxt, ..Default::default() })?;
        let sack = uapi::sctp_sack_info { assoc_id: 0, delay: millis(config.sack_delay), freq: 2 };
        self.set_sctp(uapi::SCTP_DELAYED_SACK, &sack)?;
        let path = uapi::sctp_paddrparams {
            hbinterval: millis(config.heartbeat),
            pathmaxrxt: config.max_retransmissions,
            flags: halves(uapi::SPP_HB_ENABLE),
            ..Default::default()
        };
        self.set_sctp(uapi::SCTP_PEER_ADDR_PARAMS, &path)?;
        let init = uapi::sctp_initmsg {
            num_ostreams: config.outbound_streams,
            max_instreams: config.max_inbound_streams,
            max_attempts: config.max_init_attempts,
            max_init_timeo: u16::try_from(millis(config.rto_max)).unwrap_or(u16::MAX),
        };
        self.set_sctp(uapi::SCTP_INITMSG, &init)
    }

    fn set_sctp<T: Copy>(&self, name: c_int, value: &T) -> io::Result<()> {
        set_option(self.as_fd(), libc::IPPROTO_SCTP, name, value)
    }

    pub fn bind(&self, address: SocketAddr) -> io::Result<()> {
        bind(self.as_fd(), address)
    }

    /// Lets an IPv6 socket use IPv4 addresses too; [`decode_address`] converts mapped addresses back.
    pub fn accept_both_families(&self) -> io::Result<()> {
        set_option(self.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, &0)
    }

    /// Binds further addresses with the port of the first. All associations of the listener use all
    /// addresses.
    pub fn add_addresses(&self, addresses: &[SocketAddr]) -> io::Result<()> {
        set_option_bytes(
            self.as_fd(),
            libc::IPPROTO_SCTP,
            uapi::SCTP_SOCKOPT_BINDX_ADD,
            &pack_addresses(addresses),
        )
    }

    pub fn listen(&self) -> io::Result<()> {
        // SAFETY: no pointers.
        check(unsafe { libc::listen(self.0.as_raw_fd(), BACKLOG) }).map(drop)
    }

    /// Accepts the next association of a listener; returns it and its peer.
    pub fn accept(&self) -> io::Result<(Self, SocketAddr)> {
        // SAFETY: all-zero bytes are a valid sockaddr_storage.
        let mut name: sockaddr_storage = unsafe { std::mem::zeroed() };
        let mut length = size_of::<sockaddr_storage>() as socklen_t;
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: `name` and `length` describe room for an address; the resulting descriptor has no other
        // owner.
        let socket = unsafe {
            let fd = libc::accept4(self.0.as_raw_fd(), (&raw mut name).cast(), &raw mut length, flags);
            Self(OwnedFd::from_raw_fd(check(fd)?))
        };
        socket.prepare()?;
        let peer = decode_address(&name).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok((socket, peer))
    }

    /// Starts an association.
    pub fn connect(&self, remote: SocketAddr) -> io::Result<()> {
        let (name, length) = encode_address(remote);
        // SAFETY: `name` holds an address of `length` bytes.
        match check(unsafe { libc::connect(self.0.as_raw_fd(), (&raw const name).cast(), length) }) {
            Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => Err(e),
            _ => Ok(()),
        }
    }

    /// Own address and port.
    pub fn local(&self) -> io::Result<SocketAddr> {
        // SAFETY: all-zero bytes are a valid sockaddr_storage.
        let mut name: sockaddr_storage = unsafe { std::mem::zeroed() };
        let mut length = size_of::<sockaddr_storage>() as socklen_t;
        // SAFETY: `name` and `length` describe room for an address.
        check(unsafe { libc::getsockname(self.0.as_raw_fd(), (&raw mut name).cast(), &raw mut length) })?;
        decode_address(&name).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }
}

impl Socket {
    /// The peer's addresses; none if the kernel does not report them.
    fn peers(&self) -> Vec<IpAddr> {
        let mut bytes = vec![0_u8; PEER_ADDRESSES];
        let mut length = PEER_ADDRESSES as socklen_t;
        // SAFETY: pointer and length are those of `bytes`.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_SCTP,
                uapi::SCTP_GET_PEER_ADDRS,
                bytes.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        check(result).map_or_else(|_| Vec::new(), |_| unpack_addresses(&bytes))
    }
}

/// Buffer for [`uapi::SCTP_GET_PEER_ADDRS`]: more addresses than an INIT of one packet can contain.
const PEER_ADDRESSES: usize = 8192;
/// Length of `assoc_id` and `addr_num` before the addresses.
const GETADDRS_HEADER: usize = 8;

/// Concatenates addresses, each with the length of its family.
fn pack_addresses(addresses: &[SocketAddr]) -> Vec<u8> {
    let mut packed = Vec::new();
    for address in addresses {
        let (storage, length) = encode_address(*address);
        // SAFETY: the storage holds an address of `length` bytes, all of them initialised.
        packed.extend_from_slice(unsafe {
            std::slice::from_raw_parts((&raw const storage).cast::<u8>(), length as usize)
        });
    }
    packed
}

/// Reads `struct sctp_getaddrs`: association, number of addresses, packed addresses.
fn unpack_addresses(bytes: &[u8]) -> Vec<IpAddr> {
    let count = bytes.get(4..GETADDRS_HEADER).map_or(0, |n| u32::from_ne_bytes([n[0], n[1], n[2], n[3]]));
    let mut rest = bytes.get(GETADDRS_HEADER..).unwrap_or_default();
    let mut addresses = Vec::new();
    for _ in 0..count {
        let family = rest.get(..2).map_or(0, |f| c_int::from(u16::from_ne_bytes([f[0], f[1]])));
        let (at, length) = match family {
            libc::AF_INET => (4, size_of::<libc::sockaddr_in>()),
            libc::AF_INET6 => (8, size_of::<libc::sockaddr_in6>()),
            _ => return addresses,
        };
        let Some(name) = rest.get(..length) else { return addresses };
        let octets4 = name.get(at..at + 4).and_then(|octets| <[u8; 4]>::try_from(octets).ok());
        let octets6 = name.get(at..at + 16).and_then(|octets| <[u8; 16]>::try_from(octets).ok());
        let address = match family {
            libc::AF_INET => octets4.map(IpAddr::from),
            _ => octets6.map(|octets| IpAddr::from(octets).to_canonical()),
        };
        addresses.extend(address);
        rest = rest.get(length..).unwrap_or_default();
    }
    addresses
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl MessageSocket for Socket {
    fn receive(&self, buffer: &mut [u8]) -> Received {
        let mut control = [0_u64; CONTROL_WORDS];
        let mut vector = iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut header = message_header(&mut vector, &mut control, size_of::<[u64; CONTROL_WORDS]>());
        // SAFETY: the header points at `buffer` and `control`, which outlive the call.
        let result = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut header, 0) };
        match check_len(result) {
            Ok(0) => Received::Closed,
            Ok(length) if header.msg_flags & uapi::MSG_NOTIFICATION != 0 => {
                buffer.get(..length).map_or(Received::Nothing, notification)
            }
            Ok(length) => {
                let info = receive_info(&header).unwrap_or_default();
                let complete = header.msg_flags & libc::MSG_EOR != 0;
                Received::Data { length, stream: info.sid, ppid: u32::from_be(info.ppid), complete }
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Received::WouldBlock,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Received::Nothing,
            Err(e) if e.kind() == io::ErrorKind::NotConnected => Received::Closed,
            Err(e) => Received::Failed(e.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    fn send(&self, stream: u16, ppid: u32, payload: &[u8]) -> io::Result<()> {
        let info = uapi::sctp_sndinfo { sid: stream, ppid: ppid.to_be(), ..Default::default() };
        let mut control = [0_u64; CONTROL_WORDS];
        let control_length = write_send_info(&mut control, info);
        let mut vector = iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
        let header = message_header(&mut vector, &mut control, control_length);
        // SAFETY: the header points at `payload` and `control`, which outlive the call and are only read.
        check_len(unsafe { libc::sendmsg(self.0.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) })
            .map(drop)
    }

    fn shutdown(&self) -> io::Result<()> {
        // SAFETY: no pointers.
        check(unsafe { libc::shutdown(self.0.as_raw_fd(), libc::SHUT_WR) }).map(drop)
    }

    fn peer_addresses(&self) -> Vec<IpAddr> {
        self.peers()
    }

    fn is_writable(&self) -> bool {
        let mut poll = pollfd { fd: self.0.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: `poll` is one entry, and outlives the call.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 1 && poll.revents & libc::POLLOUT != 0 }
    }
}

/// A flag word that the C structure aligns to a half-word.
fn halves(word: u32) -> [u16; 2] {
    let [a, b, c, d] = word.to_ne_bytes();
    [u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d])]
}

fn message_header(vector: &mut iovec, control: &mut [u64; CONTROL_WORDS], control_length: usize) -> msghdr {
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut header: msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = control_length;
    header
}

fn receive_info(header: &msghdr) -> Option<uapi::sctp_rcvinfo> {
    // SAFETY: the kernel has filled the control buffer that `header` points at, and set its length.
    unsafe {
        let message = libc::CMSG_FIRSTHDR(header).as_ref()?;
        let ours = message.cmsg_level == libc::IPPROTO_SCTP && message.cmsg_type == uapi::SCTP_RCVINFO;
        ours.then(|| libc::CMSG_DATA(message).cast::<uapi::sctp_rcvinfo>().read_unaligned())
    }
}

fn write_send_info(control: &mut [u64; CONTROL_WORDS], info: uapi::sctp_sndinfo) -> usize {
    let message = control.as_mut_ptr().cast::<cmsghdr>();
    let length = size_of::<uapi::sctp_sndinfo>() as u32;
    // SAFETY: 16 bytes of header and 16 of value fit into the control buffer, which is aligned for both.
    unsafe {
        (*message).cmsg_len = libc::CMSG_LEN(length) as usize;
        (*message).cmsg_level = libc::IPPROTO_SCTP;
        (*message).cmsg_type = uapi::SCTP_SNDINFO;
        libc::CMSG_DATA(message).cast::<uapi::sctp_sndinfo>().write_unaligned(info);
        libc::CMSG_SPACE(length) as usize
    }
}

/// Reads `struct sctp_assoc_change`. Its fields are in host order: type, flags (u16), length (u32), state,
/// error, outbound streams, inbound streams (u16).
fn notification(bytes: &[u8]) -> Received {
    let field = |at: usize| bytes.get(at..at + 2).map_or(0, |b| u16::from_ne_bytes([b[0], b[1]]));
    if field(0) != uapi::SCTP_ASSOC_CHANGE {
        return Received::Nothing;
    }
    let streams = Streams { outbound: field(12), inbound: field(14) };
    match field(8) {
        uapi::SCTP_COMM_UP => Received::Change(Change::Up(streams)),
        uapi::SCTP_RESTART => Received::Change(Change::Restart(streams)),
        uapi::SCTP_COMM_LOST | uapi::SCTP_CANT_STR_ASSOC => Received::Change(Change::Lost),
        uapi::SCTP_SHUTDOWN_COMP => Received::Change(Change::ShutdownComplete),
        _ => Received::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An association change in the kernel's format.
    fn change(kind: u16, state: u16) -> Vec<u8> {
        let fields = [kind, 0, 20, 0, state, 0, 32, 64, 7, 0];
        fields.iter().flat_map(|f| f.to_ne_bytes()).collect()
    }

    #[test]
    fn association_changes_are_distinguished() {
        let up = notification(&change(uapi::SCTP_ASSOC_CHANGE, uapi::SCTP_COMM_UP));
        assert!(matches!(up, Received::Change(Change::Up(Streams { inbound: 64, outbound: 32 }))));
        let lost = notification(&change(uapi::SCTP_ASSOC_CHANGE, uapi::SCTP_COMM_LOST));
        assert!(matches!(lost, Received::Change(Change::Lost)));
        assert!(matches!(notification(&change(0x8002, 0)), Received::Nothing));
        assert!(matches!(notification(&[]), Received::Nothing));
    }

    #[test]
    fn addresses_of_both_families_round_trip_packed() {
        let addresses: Vec<SocketAddr> = ["10.0.0.1:38412", "[2001:db8::1]:38412", "[::ffff:10.0.1.1]:38412"]
            .map(|address| address.parse().unwrap())
            .into();
        let packed = pack_addresses(&addresses);
        assert_eq!(packed.len(), 16 + 28 + 28);
        let answer = [7_u32.to_ne_bytes().as_slice(), &3_u32.to_ne_bytes(), &packed].concat();
        let expected: [IpAddr; 3] =
            ["10.0.0.1", "2001:db8::1", "10.0.1.1"].map(|address| address.parse().unwrap());
        assert_eq!(unpack_addresses(&answer), expected);
        for length in 0..answer.len() {
            assert!(unpack_addresses(&answer[..length]).len() < 3);
        }
    }

    #[test]
    fn a_flag_word_keeps_its_bytes_in_halves() {
        let [a, b] = halves(0x0102_0304).map(u16::to_ne_bytes);
        assert_eq!([a[0], a[1], b[0], b[1]], 0x0102_0304_u32.to_ne_bytes());
    }
}
