//! The part of `linux/sctp.h` in use (Linux 3.17 and later).
#![allow(non_camel_case_types)]

use libc::c_int;

pub(super) const SCTP_RTOINFO: c_int = 0;
pub(super) const SCTP_ASSOCINFO: c_int = 1;
pub(super) const SCTP_INITMSG: c_int = 2;
pub(super) const SCTP_NODELAY: c_int = 3;
pub(super) const SCTP_PEER_ADDR_PARAMS: c_int = 9;
pub(super) const SCTP_EVENTS: c_int = 11;
/// Options from 100 carry packed socket addresses.
pub(super) const SCTP_SOCKOPT_BINDX_ADD: c_int = 100;
pub(super) const SCTP_GET_PEER_ADDRS: c_int = 108;
pub(super) const SCTP_DELAYED_SACK: c_int = 16;
pub(super) const SCTP_RECVRCVINFO: c_int = 32;

/// Control message types at level `IPPROTO_SCTP`.
pub(super) const SCTP_SNDINFO: c_int = 2;
pub(super) const SCTP_RCVINFO: c_int = 3;

pub(super) const MSG_NOTIFICATION: c_int = 0x8000;

pub(super) const SCTP_ASSOC_CHANGE: u16 = 0x8001;
pub(super) const SCTP_COMM_UP: u16 = 0;
pub(super) const SCTP_COMM_LOST: u16 = 1;
pub(super) const SCTP_RESTART: u16 = 2;
pub(super) const SCTP_SHUTDOWN_COMP: u16 = 3;
pub(super) const SCTP_CANT_STR_ASSOC: u16 = 4;

pub(super) const SPP_HB_ENABLE: u32 = 1;

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct sctp_rtoinfo {
    pub assoc_id: i32,
    pub initial: u32,
    pub max: u32,
    pub min: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct sctp_assocparams {
    pub assoc_id: i32,
    pub asocmaxrxt: u16,
    pub number_peer_destinations: u16,
    pub peer_rwnd: u32,
    pub local_rwnd: u32,
    pub cookie_life: u32,
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
pub(super) struct sctp_sack_info {
    pub assoc_id: i32,
    pub delay: u32,
    pub freq: u32,
}

/// The fields up to `spp_flags`: the form of kernels before 4.18, which later ones accept. The C structure is
/// packed to 4 bytes; `address` is declared in words, which has the same layout.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct sctp_paddrparams {
    pub assoc_id: i32,
    pub address: [u32; 32],
    pub hbinterval: u32,
    pub pathmaxrxt: u16,
    pub pathmtu: [u16; 2],
    pub sackdelay: [u16; 2],
    pub flags: [u16; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct sctp_sndinfo {
    pub sid: u16,
    pub flags: u16,
    /// Network byte order.
    pub ppid: u32,
    pub context: u32,
    pub assoc_id: i32,
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
    pub assoc_id: i32,
}

const _: () = {
    assert!(size_of::<sctp_paddrparams>() == 152);
    assert!(std::mem::offset_of!(sctp_paddrparams, pathmtu) == 138);
    assert!(std::mem::offset_of!(sctp_paddrparams, flags) == 146);
    assert!(size_of::<sctp_sndinfo>() == 16);
    assert!(size_of::<sctp_rcvinfo>() == 28);
};
