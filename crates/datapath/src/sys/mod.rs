//! The system calls that `std` lacks. All `unsafe` code of this crate is in this module; each block states
//! why it is sound.

#![allow(unsafe_code)]

mod clock;
mod event;
pub mod layout;
mod link;
mod mapping;
mod memory;
mod mount;
mod namespace;
mod netlink;
mod packet_socket;
mod plain_tun;
mod poll;
mod prefetch;
mod tun;
mod udp;
mod uring;
mod wake;
mod xdp;
mod xsk;
mod xsk_ring;

pub use clock::{kernel_ticks, monotonic, wait_for_grace_period};
pub use event::EventFd;
pub use link::{
    detach_link, is_bpf_fs, link_target, pin_link, pinned_link, replace_program, xdp_program_name,
};
pub use memory::MapMemory;
pub use mount::{mount_bpf_fs, unmount};
#[cfg(test)]
pub use namespace::enter_namespace;
pub use namespace::{effective_user, network_namespace};
pub use netlink::{NetlinkSocket, interface_index};
pub use packet_socket::{FrameOut, PacketSocket};
pub use plain_tun::PlainTun;
pub use poll::wait_readable;
pub use prefetch::prefetch;
pub use tun::{TunQueue, VNET_HEADER_LEN, steer_by_flow};
pub use udp::{Datagram, GtpuSocket, MAX_SEGMENTS, Outgoing, RECEIVE_SLOT, RECEIVE_SLOTS};
pub use uring::{RING, Ring};
pub use wake::{Gathered, Timer};
#[cfg(test)]
pub use xdp::run_program;
pub use xdp::{Hook, attach_xdp, driver_of, interface_addresses, link_address, strips_vlan_tags, vlan_of};
pub use xsk::{BEFORE, Losses, Xsk};

use std::io;

/// Converts the return value of a call that returns -1 on error and sets `errno`.
fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(answer)
}

/// As [`check`], for calls that return a length.
fn check_len(answer: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}
