//! The part of usrsctp 0.9.5 in use, as declared in its header `usrsctp.h` (Linux layouts).
#![allow(unsafe_code, non_camel_case_types)]

use std::ffi::{c_char, c_int, c_uint, c_void};

use libc::{socklen_t, ssize_t};

/// A usrsctp socket; opaque.
#[repr(C)]
pub(super) struct socket {
    _private: [u8; 0],
}

pub(super) const AF_CONN: c_int = 123;
pub(super) const MSG_NOTIFICATION: c_int = 0x2000;
pub(super) const MSG_EOR: c_int = 0x80; // of sys/socket.h, which the library is built with on Linux

pub(super) const SCTP_EVENT_WRITE: c_int = 0x0002;

pub(super) const SCTP_RTOINFO: c_int = 0x01;
pub(super) const SCTP_ASSOCINFO: c_int = 0x02;
pub(super) const SCTP_INITMSG: c_int = 0x03;
pub(super) const SCTP_NODELAY: c_int = 0x04;
pub(super) const SCTP_PEER_ADDR_PARAMS: c_int = 0x0a;
pub(super) const SCTP_DELAYED_SACK: c_int = 0x0f;
pub(super) const SCTP_EVENT: c_int = 0x1e;
pub(super) const SCTP_RECVRCVINFO: c_int = 0x1f;
pub(super) const SCTP_STATUS: c_int = 0x100;
pub(super) const SCTP_GET_NONCE_VALUES: c_int = 0x1105;

pub(super) const SCTP_FUTURE_ASSOC: u32 = 0;
pub(super) const SCTP_RECVV_RCVINFO: c_uint = 1;
pub(super) const SCTP_SENDV_SNDINFO: c_uint = 1;

pub(super) const SCTP_ASSOC_CHANGE: u16 = 1;
pub(super) const SCTP_COMM_UP: u16 = 1;
pub(super) const SCTP_COMM_LOST: u16 = 2;
pub(super) const SCTP_RESTART: u16 = 3;
pub(super) const SCTP_SHUTDOWN_COMP: u16 = 4;
pub(super) const SCTP_CANT_STR_ASSOC: u16 = 5;

pub(super) const SPP_HB_ENABLE: u32 = 0x01;
pub(super) const SPP_PMTUD_DISABLE: u32 = 0x10;

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct sockaddr_conn {
    pub family: u16,
    /// Network byte order.
    pub port: u16,
    /// Identifies the peer; never dereferenced by usrsctp.
    pub addr: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct sctp_rcvinfo {
    pub sid: u16,
    pub ssn: u16,
    pub flags: u16,
    /// Network byte order.
    pub ppid: u32,
    pub tsn: u32,
    pub cumtsn: u32,
    pub context: u32,
    pub assoc_id: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct sctp_sndinfo {
    pub sid: u16,
    pub flags: u16,
    /// Network byte order.
    pub ppid: u32,
    pub context: u32,
    pub assoc_id: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct sctp_event {
    pub assoc_id: u32,
    pub kind: u16,
    pub on: u8,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct sctp_initmsg {
    pub num_ostreams: u16,
    pub max_instreams: u16,
    pub max_attempts: u16,
    pub max_init_timeo: u16,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct sctp_rtoinfo {
    pub assoc_id: u32,
    pub initial: u32,
    pub max: u32,
    pub min: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct sctp_assocparams {
    pub assoc_id: u32,
    pub peer_rwnd: u32,
    pub local_rwnd: u32,
    pub cookie_life: u32,
    pub asocmaxrxt: u16,
    pub number_peer_destinations: u16,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct sctp_paddrparams {
    pub address: libc::sockaddr_storage,
    pub assoc_id: u32,
    pub hbinterval: u32,
    pub pathmtu: u32,
    pub flags: u32,
    pub ipv6_flowlabel: u32,
    pub pathmaxrxt: u16,
    pub dscp: u8,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct sctp_sack_info {
    pub assoc_id: u32,
    pub delay: u32,
    pub freq: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct sctp_get_nonce_values {
    pub assoc_id: u32,
    /// Host byte order, as the other tag.
    pub peers_tag: u32,
    pub local_tag: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct sctp_paddrinfo {
    pub address: libc::sockaddr_storage,
    pub assoc_id: u32,
    pub state: i32,
    pub cwnd: u32,
    pub srtt: u32,
    pub rto: u32,
    pub mtu: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct sctp_status {
    pub assoc_id: u32,
    pub state: i32,
    pub rwnd: u32,
    pub unackdata: u16,
    pub penddata: u16,
    pub instrms: u16,
    pub outstrms: u16,
    pub fragmentation_point: u32,
    pub primary: sctp_paddrinfo,
}

/// Called for every outgoing packet: address, packet, length, type of service, don't fragment.
pub(super) type ConnOutput = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, u8, u8) -> c_int;
/// Called when a socket may have become readable or writable.
pub(super) type Upcall = unsafe extern "C" fn(*mut socket, *mut c_void, c_int);

unsafe extern "C" {
    pub(super) fn usrsctp_init_nothreads(
        port: u16,
        output: ConnOutput,
        debug: Option<unsafe extern "C" fn(*const c_char, ...)>,
    );
    pub(super) fn usrsctp_enable_crc32c_offload();
    pub(super) fn usrsctp_conninput(addr: *mut c_void, packet: *const c_void, length: usize, ecn: u8);
    pub(super) fn usrsctp_handle_timers(elapsed_ms: u32);
    pub(super) fn usrsctp_register_address(addr: *mut c_void);
    pub(super) fn usrsctp_deregister_address(addr: *mut c_void);

    pub(super) fn usrsctp_socket(
        domain: c_int,
        kind: c_int,
        protocol: c_int,
        receive: *const c_void,
        send: *const c_void,
        threshold: u32,
        info: *mut c_void,
    ) -> *mut socket;
    pub(super) fn usrsctp_close(so: *mut socket);
    pub(super) fn usrsctp_set_non_blocking(so: *mut socket, on: c_int) -> c_int;
    pub(super) fn usrsctp_set_upcall(so: *mut socket, upcall: Option<Upcall>, arg: *mut c_void) -> c_int;
    pub(super) fn usrsctp_get_events(so: *mut socket) -> c_int;
    pub(super) fn usrsctp_setsockopt(
        so: *mut socket,
        level: c_int,
        name: c_int,
        value: *const c_void,
        length: socklen_t,
    ) -> c_int;
    pub(super) fn usrsctp_getsockopt(
        so: *mut socket,
        level: c_int,
        name: c_int,
        value: *mut c_void,
        length: *mut socklen_t,
    ) -> c_int;
    pub(super) fn usrsctp_bind(so: *mut socket, name: *mut sockaddr_conn, length: socklen_t) -> c_int;
    pub(super) fn usrsctp_listen(so: *mut socket, backlog: c_int) -> c_int;
    pub(super) fn usrsctp_accept(
        so: *mut socket,
        name: *mut sockaddr_conn,
        length: *mut socklen_t,
    ) -> *mut socket;
    pub(super) fn usrsctp_connect(so: *mut socket, name: *mut sockaddr_conn, length: socklen_t) -> c_int;
    pub(super) fn usrsctp_shutdown(so: *mut socket, how: c_int) -> c_int;
    pub(super) fn usrsctp_sendv(
        so: *mut socket,
        data: *const c_void,
        length: usize,
        to: *mut c_void,
        to_count: c_int,
        info: *mut c_void,
        info_length: socklen_t,
        info_type: c_uint,
        flags: c_int,
    ) -> ssize_t;
    pub(super) fn usrsctp_recvv(
        so: *mut socket,
        buffer: *mut c_void,
        length: usize,
        from: *mut c_void,
        from_length: *mut socklen_t,
        info: *mut c_void,
        info_length: *mut socklen_t,
        info_type: *mut c_uint,
        flags: *mut c_int,
    ) -> ssize_t;

    pub(super) fn usrsctp_tunable_set_sctp_hashtblsize(value: u32) -> c_int;
    pub(super) fn usrsctp_tunable_set_sctp_pcbtblsize(value: u32) -> c_int;
    pub(super) fn usrsctp_sysctl_set_sctp_ecn_enable(value: u32) -> c_int;
    pub(super) fn usrsctp_sysctl_set_sctp_pr_enable(value: u32) -> c_int;
    pub(super) fn usrsctp_sysctl_set_sctp_auth_enable(value: u32) -> c_int;
    pub(super) fn usrsctp_sysctl_set_sctp_asconf_enable(value: u32) -> c_int;
    pub(super) fn usrsctp_sysctl_set_sctp_auto_asconf(value: u32) -> c_int;
    pub(super) fn usrsctp_sysctl_set_sctp_reconfig_enable(value: u32) -> c_int;
    pub(super) fn usrsctp_sysctl_set_sctp_nrsack_enable(value: u32) -> c_int;
    pub(super) fn usrsctp_sysctl_set_sctp_pktdrop_enable(value: u32) -> c_int;
    pub(super) fn usrsctp_sysctl_set_sctp_max_chunks_on_queue(value: u32) -> c_int;
    pub(super) fn usrsctp_sysctl_set_sctp_shutdown_guard_time_default(value: u32) -> c_int;
    pub(super) fn usrsctp_sysctl_set_sctp_initial_cwnd(value: u32) -> c_int;
}

// Checks the layouts above against those of the C header on 64-bit Linux.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<sockaddr_conn>() == 16);
    assert!(size_of::<sctp_rcvinfo>() == 28);
    assert!(size_of::<sctp_sndinfo>() == 16);
    assert!(size_of::<sctp_event>() == 8);
    assert!(size_of::<sctp_paddrparams>() == 152);
    assert!(size_of::<sctp_assocparams>() == 20);
    assert!(size_of::<sctp_paddrinfo>() == 152);
    assert!(size_of::<sctp_status>() == 176);
};
