//! A queue of a TUN interface, with virtio-net headers and segmentation offload.

use super::check;
use super::check_len;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Bytes of the virtio-net header before every packet read or written.
pub const VNET_HEADER_LEN: usize = 10;

/// One queue; queues of the same name belong to one interface, which lives as long as any of them.
#[derive(Debug)]
pub struct TunQueue {
    file: File,
    segments_udp: bool,
}

impl TunQueue {
    /// Opens a queue of interface `name`, which is made if there is none.
    pub fn open(name: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")?;
        attach(&file, name)?;
        // USO came with Linux 6.2; without it UDP goes packet by packet.
        const TCP: libc::c_uint = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
        const UDP: libc::c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;
        let segments_udp = set_offload(&file, TCP | UDP).is_ok();
        if !segments_udp {
            set_offload(&file, TCP)?;
        }
        Ok(Self { file, segments_udp })
    }

    /// Whether frames of many UDP datagrams (virtio GSO type UDP_L4) may pass.
    pub fn segments_udp(&self) -> bool {
        self.segments_udp
    }

    /// Reads a virtio-net header and a packet; `WouldBlock` when there is none.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        // SAFETY: `into` is writable for the length given.
        check_len(unsafe { libc::read(self.file.as_raw_fd(), into.as_mut_ptr().cast(), into.len()) })
    }

    /// Writes a virtio-net header and a packet, gathered from `parts`.
    pub fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let count = parts.len().min(libc::UIO_MAXIOV as usize) as libc::c_int;
        // SAFETY: `IoSlice` has the layout of `iovec`, and all parts are readable during the call.
        check_len(unsafe { libc::writev(self.file.as_raw_fd(), parts.as_ptr().cast(), count) })
    }
}

impl AsFd for TunQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn attach(file: &File, name: &str) -> io::Result<()> {
    // SAFETY: all zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() || name.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the name of an interface has 1 to 15 bytes",
        ));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_MULTI_QUEUE | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    Ok(())
}

fn set_offload(file: &File, features: libc::c_uint) -> io::Result<()> {
    let features = libc::c_ulong::from(features);
    // SAFETY: TUNSETOFFLOAD takes its flags by value.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD as _, features) })?;
    Ok(())
}
