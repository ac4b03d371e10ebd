//! An AF_XDP socket: frames that an XDP program redirects to user space, and frames sent past the kernel's
//! stack.
//!
//! ```text
//!   fill ──▶ kernel ──▶ rx ──▶ receive: copied out, and back into fill at once
//!   free ──▶ send ──▶ tx ──▶ kernel ──▶ completion ──▶ free
//! ```
//!
//! No frame stays with the caller, and each ring has room for all frames that can be in it. The kernel
//! therefore always has all receive frames except those in `rx`, and cannot run out of them permanently.

use super::mapping::Mapping;
use super::udp::set_option;
use super::xsk_ring::{Consumer, Producer};
use super::{check, check_len};
use std::io;
use std::mem::{size_of, zeroed};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Bytes of a frame's buffer; the kernel reserves 256 of them before a received frame.
pub const FRAME: usize = 2048;
/// Bytes before a received frame that may contain the program's metadata.
pub const BEFORE: usize = 32;
/// Maximum number of frames of one [`receive`](Xsk::receive).
pub const RECEIVED_AT_ONCE: usize = 64;
/// Receive frames: 10 ms at 400,000 packets a second, longer than a worker is usually kept from running.
const RECEIVE: u32 = 4096;
/// Entries of the fill ring: twice the frames, because the kernel publishes received frames before it
/// releases their fill entries (`xsk_flush`), and another core may read in between.
const FILL: u32 = 2 * RECEIVE;
/// Send frames.
const SEND: u32 = 512;
/// Consecutive failed calls before frames are left in `tx` until the next flush.
const MAX_CALLS: usize = 64;

/// A socket on one queue of an interface.
///
/// Copy mode, also with drivers that support zero copy: with zero copy the driver would receive all frames of
/// the queue into the socket's memory, and the kernel would have to copy the forwarded ones, which are the
/// majority.
#[derive(Debug)]
pub struct Xsk {
    fd: OwnedFd,
    frames: Mapping,
    fill: Producer<u64>,
    received: Consumer<libc::xdp_desc>,
    sending: Producer<libc::xdp_desc>,
    completed: Consumer<u64>,
    /// Buffers free for sending.
    free: Vec<u64>,
}

impl Xsk {
    /// Opens a socket on a queue of an interface. Needs CAP_NET_RAW; a queue has one such socket.
    pub fn open(interface: u32, queue: u32) -> io::Result<Self> {
        // SAFETY: takes no pointers; the descriptor it answers is new and ours alone.
        let fd = unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_XDP, kind, 0))?)
        };
        let frames = Mapping::anonymous((RECEIVE + SEND) as usize * FRAME)?;
        register(fd.as_fd(), &frames)?;
        for (ring, entries) in [
            (libc::XDP_UMEM_FILL_RING, FILL),
            (libc::XDP_UMEM_COMPLETION_RING, SEND),
            (libc::XDP_RX_RING, RECEIVE),
            (libc::XDP_TX_RING, SEND),
        ] {
            set_option(fd.as_fd(), libc::SOL_XDP, ring, &entries)?;
        }
        // SAFETY: plain numbers.
        let at: libc::xdp_mmap_offsets = unsafe { option(fd.as_fd(), libc::XDP_MMAP_OFFSETS)? };
        let (fill, completion) = (libc::XDP_UMEM_PGOFF_FILL_RING, libc::XDP_UMEM_PGOFF_COMPLETION_RING);
        let mut socket = Self {
            frames,
            fill: Producer::map(fd.as_fd(), fill as libc::off_t, at.fr, FILL)?,
            received: Consumer::map(fd.as_fd(), libc::XDP_PGOFF_RX_RING, at.rx, RECEIVE)?,
            sending: Producer::map(fd.as_fd(), libc::XDP_PGOFF_TX_RING, at.tx, SEND)?,
            completed: Consumer::map(fd.as_fd(), completion as libc::off_t, at.cr, SEND)?,
            free: (RECEIVE..RECEIVE + SEND).map(place).collect(),
            fd,
        };
        for frame in 0..RECEIVE {
            socket.fill.push(place(frame));
        }
        socket.fill.publish();
        socket.bind(interface, queue)?;
        Ok(socket)
    }

    fn bind(&self, interface: u32, queue: u32) -> io::Result<()> {
        let name = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as _,
            sxdp_flags: libc::XDP_COPY,
            sxdp_ifindex: interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        // SAFETY: `name` is readable for the length given.
        let answer = unsafe {
            libc::bind(self.fd.as_raw_fd(), (&raw const name).cast(), size_of::<libc::sockaddr_xdp>() as _)
        };
        check(answer).map(drop)
    }

    /// Copies received frames into `arena`, in slots of [`FRAME`] bytes, and appends their positions to
    /// `frames`. The [`BEFORE`] bytes before a frame contain the program's metadata, or zero. Returns whether
    /// there may be more.
    pub fn receive(&mut self, arena: &mut [u8], frames: &mut Vec<Range<usize>>) -> bool {
        let mut count = 0;
        for slot in arena.chunks_exact_mut(FRAME).take(RECEIVED_AT_ONCE) {
            let Some(descriptor) = self.received.pop() else { break };
            let start = count * FRAME;
            let bytes = self.bytes_mut(&descriptor);
            if let Some(slot) = slot.get_mut(..bytes.len()) {
                slot.copy_from_slice(bytes);
                frames.push(start + BEFORE.min(slot.len())..start + slot.len());
            }
            // So that the next frame in this buffer does not appear to have this metadata.
            bytes.iter_mut().take(BEFORE).for_each(|byte| *byte = 0);
            let returned = self.fill.push(descriptor.addr - descriptor.addr % FRAME as u64);
            debug_assert!(returned, "the ring has room for all frames that are received into");
            count += 1;
        }
        self.received.publish();
        self.fill.publish();
        count == RECEIVED_AT_ONCE
    }

    /// A received frame and the bytes before it; empty if the kernel's descriptor were out of bounds.
    fn bytes_mut(&mut self, descriptor: &libc::xdp_desc) -> &mut [u8] {
        let (start, length) = self.frames.bounds();
        let (frame, bytes) = (descriptor.addr as usize, descriptor.len as usize);
        let (Some(at), Some(end)) = (frame.checked_sub(BEFORE), frame.checked_add(bytes)) else {
            return &mut [];
        };
        if end > length {
            return &mut [];
        }
        // SAFETY: within the mapping, as was just checked; the kernel does not touch a frame between `rx` and
        // `fill`, into which it goes only after this borrow, nor the bytes before it, which are of its place.
        unsafe { std::slice::from_raw_parts_mut(start.add(at), end - at) }
    }

    /// Queues a frame for sending, in two parts. `false` if it is too long or no buffer is free: flush and
    /// retry.
    pub fn send(&mut self, head: &[u8], body: &[u8]) -> bool {
        if head.len() + body.len() > FRAME {
            return false;
        }
        if self.free.is_empty() {
            self.reap();
        }
        let Some(at) = self.free.pop() else { return false };
        let (start, _) = self.frames.bounds();
        // SAFETY: `at` is the start of a place of FRAME bytes within the mapping, which neither the kernel nor
        // anybody else has: it came from `free`. The parts are elsewhere.
        unsafe {
            let to = start.add(at as usize);
            std::ptr::copy_nonoverlapping(head.as_ptr(), to, head.len());
            std::ptr::copy_nonoverlapping(body.as_ptr(), to.add(head.len()), body.len());
        }
        let len = (head.len() + body.len()) as u32;
        let taken = self.sending.push(libc::xdp_desc { addr: at, len, options: 0 });
        debug_assert!(taken, "the ring has room for all frames that are sent from");
        taken
    }

    /// Makes the kernel send the queued frames, as far as the device's queue has room.
    pub fn flush(&mut self) {
        self.sending.publish();
        let mut calls = 0;
        while self.sending.pending() > 0 && calls < MAX_CALLS {
            // SAFETY: no data and no name are given.
            let sent = unsafe {
                let (none, no_name) = (std::ptr::null(), std::ptr::null());
                libc::sendto(self.fd.as_raw_fd(), none, 0, libc::MSG_DONTWAIT, no_name, 0)
            };
            // EAGAIN: more frames than one call sends; other errors: the device cannot send now.
            let go_on = match check_len(sent) {
                Ok(_) => true,
                Err(error) => matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR | libc::EBUSY)),
            };
            if !go_on {
                break;
            }
            calls += 1;
        }
        self.reap();
    }

    /// Reclaims buffers of sent frames.
    fn reap(&mut self) {
        while let Some(at) = self.completed.pop() {
            self.free.push(at - at % FRAME as u64);
        }
        self.completed.publish();
    }

    /// A handle for another thread to read the socket's drop count.
    pub fn losses(&self) -> io::Result<Losses> {
        self.fd.try_clone().map(Losses)
    }
}

impl AsFd for Xsk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The count of frames that the kernel could not deliver to a socket.
#[derive(Debug)]
pub struct Losses(OwnedFd);

impl Losses {
    /// Frames redirected by the program that found no buffer.
    pub fn count(&self) -> u64 {
        // SAFETY: plain numbers.
        let counted = unsafe { option::<libc::xdp_statistics>(self.0.as_fd(), libc::XDP_STATISTICS) };
        counted.map_or(0, |counted| counted.rx_dropped + counted.rx_ring_full)
    }
}

fn place(frame: u32) -> u64 {
    u64::from(frame) * FRAME as u64
}

/// Registers the frame memory with the kernel.
fn register(fd: BorrowedFd<'_>, frames: &Mapping) -> io::Result<()> {
    let (start, length) = frames.bounds();
    let registration = libc::xdp_umem_reg {
        addr: start as u64,
        len: length as u64,
        chunk_size: FRAME as u32,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    set_option(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &registration)
}

/// Reads an option of AF_XDP.
///
/// # Safety
///
/// Any bytes must be a valid `T`.
unsafe fn option<T>(fd: BorrowedFd<'_>, name: libc::c_int) -> io::Result<T> {
    // SAFETY: as the caller says.
    let mut value: T = unsafe { zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is writable for the length given.
    check(unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, name, (&raw mut value).cast(), &raw mut length)
    })?;
    Ok(value)
}
