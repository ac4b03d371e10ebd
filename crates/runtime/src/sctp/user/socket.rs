//! A usrsctp socket: a listener or an association.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr::{NonNull, null, null_mut};

use libc::socklen_t;

use super::path::PathId;
use super::stack::{Wake, on_upcall};
use super::sys;
use crate::sctp::SctpConfig;
use crate::sctp::association::{Change, MessageSocket, Received, Streams};
use crate::sctp::config::millis;
use crate::sctp::poll::{check, check_len};

/// Packet size without IP and UDP headers, so that packets fit through tunnels without fragmentation.
const PATH_MTU: u32 = 1400;

/// A usrsctp socket. Dropping it closes it, with an ABORT if its association is up.
pub(super) struct Socket(NonNull<sys::socket>);

// SAFETY: usrsctp locks each socket itself and binds none of them to a thread.
unsafe impl Send for Socket {}

impl Socket {
    /// Opens a socket with the options of `config`; accepted sockets inherit them.
    pub fn open(config: &SctpConfig) -> io::Result<Self> {
        // SAFETY: no callbacks and no data are passed.
        let so = unsafe {
            sys::usrsctp_socket(
                sys::AF_CONN,
                libc::SOCK_STREAM,
                libc::IPPROTO_SCTP,
                null(),
                null(),
                0,
                null_mut(),
            )
        };
        let socket = Self(NonNull::new(so).ok_or_else(io::Error::last_os_error)?);
        socket.prepare()?;
        socket.set_buffers(config)?;
        socket.set_timing(config)?;
        Ok(socket)
    }

    /// Makes the socket non-blocking and abort on close.
    fn prepare(&self) -> io::Result<()> {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        // SAFETY: the socket is open.
        check(unsafe { sys::usrsctp_set_non_blocking(self.0.as_ptr(), 1) })?;
        self.set(libc::SOL_SOCKET, libc::SO_LINGER, &linger)?;
        self.set_sctp(sys::SCTP_NODELAY, &1_i32)?;
        self.set_sctp(sys::SCTP_RECVRCVINFO, &1_i32)?;
        let event = sys::sctp_event { assoc_id: sys::SCTP_FUTURE_ASSOC, kind: sys::SCTP_ASSOC_CHANGE, on: 1 };
        self.set_sctp(sys::SCTP_EVENT, &event)
    }

    fn set_buffers(&self, config: &SctpConfig) -> io::Result<()> {
        let as_int = |bytes: usize| c_int::try_from(bytes).unwrap_or(c_int::MAX);
        self.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &as_int(config.receive_buffer))?;
        self.set(libc::SOL_SOCKET, libc::SO_SNDBUF, &as_int(config.send_buffer))
    }

    fn set_timing(&self, config: &SctpConfig) -> io::Result<()> {
        let assoc_id = sys::SCTP_FUTURE_ASSOC;
        let (initial, max, min) =
            (millis(config.rto_initial), millis(config.rto_max), millis(config.rto_min));
        self.set_sctp(sys::SCTP_RTOINFO, &sys::sctp_rtoinfo { assoc_id, initial, max, min })?;
        let asocmaxrxt = config.max_retransmissions;
        self.set_sctp(sys::SCTP_ASSOCINFO, &sys::sctp_assocparams { asocmaxrxt, ..Default::default() })?;
        let sack = sys::sctp_sack_info { assoc_id, delay: millis(config.sack_delay), freq: 2 };
        self.set_sctp(sys::SCTP_DELAYED_SACK, &sack)?;
        self.set_sctp(sys::SCTP_PEER_ADDR_PARAMS, &path_parameters(config))?;
        let init = sys::sctp_initmsg {
            num_ostreams: config.outbound_streams,
            max_instreams: config.max_inbound_streams,
            max_attempts: config.max_init_attempts,
            max_init_timeo: u16::try_from(millis(config.rto_max)).unwrap_or(u16::MAX),
        };
        self.set_sctp(sys::SCTP_INITMSG, &init)
    }

    fn set_sctp<T: Copy>(&self, name: c_int, value: &T) -> io::Result<()> {
        self.set(libc::IPPROTO_SCTP, name, value)
    }

    fn set<T: Copy>(&self, level: c_int, name: c_int, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as socklen_t;
        // SAFETY: pointer and length are those of `value`, which usrsctp copies.
        let result = unsafe {
            sys::usrsctp_setsockopt(self.0.as_ptr(), level, name, (&raw const *value).cast(), length)
        };
        check(result).map(drop)
    }

    fn option<T: Copy>(&self, level: c_int, name: c_int) -> io::Result<T> {
        // SAFETY: T is one of the plain C structures of `sys`, or an integer; all zeros are valid for them.
        let mut value: T = unsafe { std::mem::zeroed() };
        let mut length = size_of::<T>() as socklen_t;
        // SAFETY: pointer and length are those of `value`.
        let result = unsafe {
            sys::usrsctp_getsockopt(self.0.as_ptr(), level, name, (&raw mut value).cast(), &raw mut length)
        };
        check(result).map(|_| value)
    }

    /// Has usrsctp record `wake` whenever there may be something to read, or room to write.
    pub fn wake_as(&self, wake: Wake) -> io::Result<()> {
        // SAFETY: the callback is a function, its argument a number.
        check(unsafe { sys::usrsctp_set_upcall(self.0.as_ptr(), Some(on_upcall), wake.as_arg()) }).map(drop)
    }

    /// Binds a local port, on all paths.
    pub fn bind(&self, port: u16) -> io::Result<()> {
        let mut name = conn_address(null_mut(), port);
        // SAFETY: `name` is an address of this length.
        check(unsafe { sys::usrsctp_bind(self.0.as_ptr(), &raw mut name, NAME_LENGTH) }).map(drop)
    }

    pub fn listen(&self, backlog: c_int) -> io::Result<()> {
        // SAFETY: the socket is open.
        check(unsafe { sys::usrsctp_listen(self.0.as_ptr(), backlog) }).map(drop)
    }

    /// Accepts the next association of a listener: its socket, path and remote port.
    pub fn accept(&self) -> Option<(Self, PathId, u16)> {
        let mut name = conn_address(null_mut(), 0);
        let mut length = NAME_LENGTH;
        // SAFETY: `name` and `length` describe room for one address.
        let so = unsafe { sys::usrsctp_accept(self.0.as_ptr(), &raw mut name, &raw mut length) };
        let socket = Self(NonNull::new(so)?);
        socket.prepare().ok()?;
        Some((socket, PathId::from_addr(name.addr)?, u16::from_be(name.port)))
    }

    /// Starts an association.
    pub fn connect(&self, path: PathId, port: u16) -> io::Result<()> {
        let mut name = conn_address(path.as_addr(), port);
        // SAFETY: `name` is an address of this length.
        match check(unsafe { sys::usrsctp_connect(self.0.as_ptr(), &raw mut name, NAME_LENGTH) }) {
            Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => Err(e),
            _ => Ok(()),
        }
    }

    /// The tags of the association; `None` if there is none.
    pub fn tags(&self) -> Option<Tags> {
        let values: sys::sctp_get_nonce_values =
            self.option(libc::IPPROTO_SCTP, sys::SCTP_GET_NONCE_VALUES).ok()?;
        Some(Tags { local: values.local_tag, peer: values.peers_tag })
    }

    /// Inbound and outbound streams of an established association.
    pub fn streams(&self) -> io::Result<Streams> {
        let status: sys::sctp_status = self.option(libc::IPPROTO_SCTP, sys::SCTP_STATUS)?;
        Ok(Streams { inbound: status.instrms, outbound: status.outstrms })
    }
}

/// The verification tags of an association (RFC 9260 clause 8.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tags {
    /// In packets from the peer.
    pub local: u32,
    /// In packets to the peer; 0 until its INIT ACK.
    pub peer: u32,
}

impl MessageSocket for Socket {
    fn receive(&self, buffer: &mut [u8]) -> Received {
        let mut info = sys::sctp_rcvinfo::default();
        let mut info_length = size_of::<sys::sctp_rcvinfo>() as socklen_t;
        let (mut info_type, mut flags) = (0, 0);
        // SAFETY: pointers and lengths are those of `buffer` and `info`.
        let result = unsafe {
            sys::usrsctp_recvv(
                self.0.as_ptr(),
                buffer.as_mut_ptr().cast::<c_void>(),
                buffer.len(),
                null_mut(),
                null_mut(),
                (&raw mut info).cast(),
                &raw mut info_length,
                &raw mut info_type,
                &raw mut flags,
            )
        };
        match check_len(result) {
            Ok(0) => Received::Closed,
            Ok(length) if flags & sys::MSG_NOTIFICATION != 0 => notification(&buffer[..length]),
            Ok(length) if info_type == sys::SCTP_RECVV_RCVINFO => Received::Data {
                length,
                stream: info.sid,
                ppid: u32::from_be(info.ppid),
                complete: flags & sys::MSG_EOR != 0,
            },
            Ok(_) => Received::Nothing,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Received::WouldBlock,
            Err(e) => Received::Failed(failure(&e)),
        }
    }

    fn send(&self, stream: u16, ppid: u32, payload: &[u8]) -> io::Result<()> {
        let mut info = sys::sctp_sndinfo { sid: stream, ppid: ppid.to_be(), ..Default::default() };
        // SAFETY: pointers and lengths are those of `payload`, which usrsctp copies, and of `info`.
        let sent = unsafe {
            sys::usrsctp_sendv(
                self.0.as_ptr(),
                payload.as_ptr().cast(),
                payload.len(),
                null_mut(),
                0,
                (&raw mut info).cast(),
                size_of::<sys::sctp_sndinfo>() as socklen_t,
                sys::SCTP_SENDV_SNDINFO,
                0,
            )
        };
        check_len(sent).map(drop)
    }

    fn shutdown(&self) -> io::Result<()> {
        // SAFETY: the socket is open.
        check(unsafe { sys::usrsctp_shutdown(self.0.as_ptr(), libc::SHUT_WR) }).map(drop)
    }

    fn is_writable(&self) -> bool {
        // SAFETY: the socket is open.
        unsafe { sys::usrsctp_get_events(self.0.as_ptr()) & sys::SCTP_EVENT_WRITE != 0 }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: the socket is open and not used afterwards. Upcalls still to come carry only a number.
        unsafe { sys::usrsctp_close(self.0.as_ptr()) }
    }
}

const NAME_LENGTH: socklen_t = size_of::<sys::sockaddr_conn>() as socklen_t;

fn conn_address(addr: *mut c_void, port: u16) -> sys::sockaddr_conn {
    sys::sockaddr_conn { family: sys::AF_CONN as u16, port: port.to_be(), addr }
}

/// The error number of a failed association. usrsctp reports "aborted" for a peer that no longer answers, and
/// "reset" for an ABORT of the peer.
fn failure(error: &io::Error) -> i32 {
    match error.raw_os_error() {
        Some(libc::ECONNABORTED) => libc::ETIMEDOUT,
        Some(errno) => errno,
        None => libc::EIO,
    }
}

/// Heartbeats, failure detection and packet size.
fn path_parameters(config: &SctpConfig) -> sys::sctp_paddrparams {
    sys::sctp_paddrparams {
        // SAFETY: all-zero bytes are a valid sockaddr_storage: no address, which means all addresses.
        address: unsafe { std::mem::zeroed() },
        assoc_id: sys::SCTP_FUTURE_ASSOC,
        hbinterval: millis(config.heartbeat),
        pathmtu: PATH_MTU,
        flags: sys::SPP_HB_ENABLE | sys::SPP_PMTUD_DISABLE,
        ipv6_flowlabel: 0,
        pathmaxrxt: config.max_retransmissions,
        dscp: 0,
    }
}

/// Reads `struct sctp_assoc_change`. Its fields are in host order: type, flags (u16), length (u32), state,
/// error, outbound streams, inbound streams (u16).
fn notification(bytes: &[u8]) -> Received {
    let field = |at: usize| bytes.get(at..at + 2).map_or(0, |b| u16::from_ne_bytes([b[0], b[1]]));
    if field(0) != sys::SCTP_ASSOC_CHANGE {
        return Received::Nothing;
    }
    let streams = Streams { outbound: field(12), inbound: field(14) };
    match field(8) {
        sys::SCTP_COMM_UP => Received::Change(Change::Up(streams)),
        sys::SCTP_RESTART => Received::Change(Change::Restart(streams)),
        sys::SCTP_COMM_LOST | sys::SCTP_CANT_STR_ASSOC => Received::Change(Change::Lost),
        sys::SCTP_SHUTDOWN_COMP => Received::Change(Change::ShutdownComplete),
        _ => Received::Nothing,
    }
}
