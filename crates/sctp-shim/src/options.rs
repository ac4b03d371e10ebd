//! Socket options of level SCTP (`linux/sctp.h`), and the error of a socket.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use libc::c_int;

use crate::handle::Handle;
use crate::{abi, connect_to};

const SCTP_INITMSG: c_int = 2;
const SCTP_EVENTS: c_int = 11;
const SCTP_STATUS: c_int = 14;
const SCTP_RECVRCVINFO: c_int = 32;
const SCTP_SOCKOPT_BINDX_ADD: c_int = 100;
const SCTP_SOCKOPT_BINDX_REM: c_int = 101;
const SCTP_GET_PEER_ADDRS: c_int = 108;
const SCTP_GET_LOCAL_ADDRS: c_int = 109;
const SCTP_SOCKOPT_CONNECTX: c_int = 110;
const SCTP_EVENT: c_int = 127;

/// Event types of `struct sctp_event`.
const SCTP_DATA_IO_EVENT: u16 = 0x8000;
const SCTP_ASSOC_CHANGE: u16 = 0x8001;
const SCTP_SHUTDOWN_EVENT: u16 = 0x8005;

/// `setsockopt`; options that only tune the protocol are accepted and ignored.
pub(crate) fn set(fd: RawFd, handle: &Arc<Handle>, name: c_int, value: &[u8]) -> io::Result<c_int> {
    match name {
        SCTP_EVENTS => subscribe_all(handle, value),
        SCTP_EVENT => subscribe_one(handle, value),
        SCTP_RECVRCVINFO => handle.subscribe(|s| s.receive_info = value.iter().any(|&b| b != 0)),
        SCTP_SOCKOPT_BINDX_ADD => handle.set_local(abi::decode_address(value)?.0),
        SCTP_SOCKOPT_CONNECTX => {
            connect_to(fd, handle, abi::decode_address(value)?.0)?;
            return Ok(abi::ASSOCIATION_ID as c_int);
        }
        0..=SCTP_SOCKOPT_BINDX_REM => {}
        _ => return Err(io::Error::from_raw_os_error(libc::ENOPROTOOPT)),
    }
    Ok(0)
}

/// `struct sctp_event_subscribe`: a byte for each event; a short one leaves the others unchanged.
fn subscribe_all(handle: &Handle, value: &[u8]) {
    let on = |at: usize| value.get(at).map(|&b| b != 0);
    handle.subscribe(|s| {
        s.data_io = on(0).unwrap_or(s.data_io);
        s.association = on(1).unwrap_or(s.association);
        s.shutdown = on(5).unwrap_or(s.shutdown);
    });
}

/// `struct sctp_event`: association, type, on or off.
fn subscribe_one(handle: &Handle, value: &[u8]) {
    let &[_, _, _, _, t0, t1, on, ..] = value else { return };
    handle.subscribe(|s| match u16::from_ne_bytes([t0, t1]) {
        SCTP_DATA_IO_EVENT => s.data_io = on != 0,
        SCTP_ASSOC_CHANGE => s.association = on != 0,
        SCTP_SHUTDOWN_EVENT => s.shutdown = on != 0,
        _ => {}
    });
}

/// `getsockopt`, for the options handled here; `None` for those that the Unix socket handles.
pub(crate) fn query(handle: &Handle, level: c_int, name: c_int) -> Option<io::Result<Vec<u8>>> {
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => {
            Some(Ok(handle.take_error().unwrap_or(0).to_ne_bytes().to_vec()))
        }
        (libc::IPPROTO_SCTP, SCTP_STATUS) => Some(status(handle)),
        (libc::IPPROTO_SCTP, SCTP_INITMSG) => Some(Ok(vec![0; 8])),
        (libc::IPPROTO_SCTP, SCTP_GET_PEER_ADDRS) => Some(addresses(handle.peer())),
        (libc::IPPROTO_SCTP, SCTP_GET_LOCAL_ADDRS) => Some(addresses(handle.local())),
        (libc::IPPROTO_SCTP, _) => Some(Err(io::Error::from_raw_os_error(libc::ENOPROTOOPT))),
        _ => None,
    }
}

/// `struct sctp_status`: id, state, window, unacknowledged, pending, streams in and out, fragmentation point, and
/// `struct sctp_paddrinfo` of the peer.
fn status(handle: &Handle) -> io::Result<Vec<u8>> {
    const ESTABLISHED: u32 = 4;
    const ACTIVE: u32 = 2;
    let streams = handle.streams().ok_or(io::ErrorKind::InvalidInput)?;
    let mut bytes = [abi::ASSOCIATION_ID, ESTABLISHED, 262_144].map(u32::to_ne_bytes).concat();
    bytes.extend([0, 0, streams.inbound, streams.outbound].map(u16::to_ne_bytes).concat());
    bytes.extend(1400_u32.to_ne_bytes());
    bytes.extend(abi::ASSOCIATION_ID.to_ne_bytes());
    bytes.extend(handle.peer().map(abi::encode_address).unwrap_or_default());
    bytes.resize(24 + 4 + 128, 0);
    bytes.extend(ACTIVE.to_ne_bytes());
    bytes.resize(176, 0);
    Ok(bytes)
}

/// `struct sctp_getaddrs`: id, number, addresses.
fn addresses(address: Option<std::net::SocketAddr>) -> io::Result<Vec<u8>> {
    let address = address.ok_or(io::ErrorKind::NotConnected)?;
    let mut bytes = [abi::ASSOCIATION_ID, 1].map(u32::to_ne_bytes).concat();
    bytes.extend(abi::encode_address(address));
    Ok(bytes)
}
