//! Exclusive access to usrsctp, and the results of its two callbacks.
//!
//! usrsctp has global state, so that a process has at most one [`Stack`]. Its callbacks run inside its own
//! calls with its locks held and must not call back. Therefore they only record packets to send and sockets
//! to serve, which the endpoint takes when the call has returned.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use super::packet::{self, Ports};
use super::path::PathId;
use super::sys;

/// Buckets of usrsctp's hash tables (by tag, and by port), sized for thousands of associations.
const HASH_BUCKETS: u32 = 4096;
/// Messages that may be queued in one association in each direction; its buffers limit the bytes.
const MAX_CHUNKS_ON_QUEUE: u32 = 8192;
/// Seconds for a graceful shutdown, after which an ABORT is sent.
const SHUTDOWN_GUARD_S: u32 = 15;
/// Packets sent before the first acknowledgement (RFC 6928 allows 10 for TCP).
const INITIAL_CWND_PACKETS: u32 = 10;

static IN_USE: AtomicBool = AtomicBool::new(false);
static INITIALISED: Once = Once::new();
static COLLECTED: Mutex<Collected> = Mutex::new(Collected {
    packets: PacketQueue::new(),
    woken: Woken { list: Vec::new(), marked: Vec::new() },
});

fn collected() -> MutexGuard<'static, Collected> {
    COLLECTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Results of the callbacks since they were last taken.
struct Collected {
    packets: PacketQueue,
    woken: Woken,
}

/// Packets to send, stored consecutively in one buffer.
#[derive(Default)]
pub(super) struct PacketQueue {
    bytes: Vec<u8>,
    packets: Vec<(PathId, Range<usize>)>,
}

impl PacketQueue {
    const fn new() -> Self {
        Self { bytes: Vec::new(), packets: Vec::new() }
    }

    pub fn push(&mut self, path: PathId, packet: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(packet);
        packet::seal(&mut self.bytes[start..]);
        self.packets.push((path, start..self.bytes.len()));
    }

    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.packets.clear();
    }

    pub fn iter(&self) -> impl Iterator<Item = (PathId, &[u8])> {
        self.packets.iter().map(|(path, range)| (*path, &self.bytes[range.clone()]))
    }
}

/// The socket that an upcall concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// The association in this slot.
    Association(u32),
    /// The listener with this index.
    Listener(u32),
}

impl Wake {
    const LISTENER: u32 = 1 << 31;

    /// The value that usrsctp passes to the upcall.
    pub fn as_arg(self) -> *mut c_void {
        without_provenance_mut(match self {
            Self::Association(slot) => slot as usize,
            Self::Listener(index) => (index | Self::LISTENER) as usize,
        })
    }

    fn from_word(word: u32) -> Self {
        match word & Self::LISTENER {
            0 => Self::Association(word),
            _ => Self::Listener(word & !Self::LISTENER),
        }
    }
}

/// Upcalls in order of arrival, each socket once.
struct Woken {
    list: Vec<u32>,
    marked: Vec<bool>,
}

impl Woken {
    fn mark(&mut self, word: u32) {
        match Wake::from_word(word) {
            Wake::Association(slot) => {
                let slot = slot as usize;
                if slot >= self.marked.len() {
                    self.marked.resize(slot + 1, false);
                }
                if !std::mem::replace(&mut self.marked[slot], true) {
                    self.list.push(word);
                }
            }
            Wake::Listener(_) if self.list.last() != Some(&word) => self.list.push(word),
            Wake::Listener(_) => {}
        }
    }

    fn take(&mut self, into: &mut Vec<Wake>) {
        for word in self.list.drain(..) {
            let wake = Wake::from_word(word);
            if let Wake::Association(slot) = wake {
                self.marked[slot as usize] = false;
            }
            into.push(wake);
        }
    }
}

unsafe extern "C" fn on_output(
    addr: *mut c_void,
    packet: *mut c_void,
    length: usize,
    _tos: u8,
    _df: u8,
) -> c_int {
    let Some(path) = PathId::from_addr(addr) else { return libc::EHOSTUNREACH };
    // SAFETY: usrsctp passes a buffer of `length` bytes that lives until this returns.
    let packet = unsafe { std::slice::from_raw_parts(packet.cast::<u8>(), length) };
    collected().packets.push(path, packet);
    0
}

pub(super) unsafe extern "C" fn on_upcall(_so: *mut sys::socket, arg: *mut c_void, _flags: c_int) {
    collected().woken.mark(arg.addr() as u32);
}

/// Exclusive access to usrsctp.
pub(super) struct Stack(());

impl Stack {
    /// `None` while another `Stack` exists.
    pub fn acquire() -> Option<Self> {
        if IN_USE.swap(true, Ordering::AcqRel) {
            return None;
        }
        INITIALISED.call_once(initialise);
        Some(Self(()))
    }

    /// Passes a checked packet to usrsctp.
    pub fn input(&mut self, path: PathId, packet: &[u8]) {
        // SAFETY: usrsctp copies the packet and never dereferences the address.
        unsafe { sys::usrsctp_conninput(path.as_addr(), packet.as_ptr().cast(), packet.len(), 0) }
    }

    /// Advances usrsctp's clock, and runs the timers that are due.
    pub fn advance(&mut self, elapsed_ms: u32) {
        // SAFETY: no pointers are passed; the stack is initialised.
        unsafe { sys::usrsctp_handle_timers(elapsed_ms) }
    }

    /// Registers a path as an address of this host, which associations need.
    pub fn register(&mut self, path: PathId) {
        // SAFETY: the address is an id and never dereferenced.
        unsafe { sys::usrsctp_register_address(path.as_addr()) }
    }

    /// Undoes [`register`](Self::register).
    pub fn deregister(&mut self, path: PathId) {
        // SAFETY: as above.
        unsafe { sys::usrsctp_deregister_address(path.as_addr()) }
    }

    /// Moves pending packets into `queue`, which must be empty.
    pub fn take_packets(&mut self, queue: &mut PacketQueue) {
        debug_assert!(queue.is_empty());
        std::mem::swap(&mut collected().packets, queue);
    }

    /// The own tag in the last pending INIT ACK on a path between these ports.
    pub fn offered_tag(&self, path: PathId, ports: Ports) -> Option<u32> {
        let collected = collected();
        let on_path = collected.packets.iter().filter(|(packet_path, _)| *packet_path == path);
        on_path.filter_map(|(_, bytes)| packet::tag_of_init_ack(bytes, ports)).last()
    }

    /// Whether packets are pending.
    pub fn has_packets(&self) -> bool {
        !collected().packets.is_empty()
    }

    /// Appends the sockets to serve.
    pub fn take_woken(&mut self, into: &mut Vec<Wake>) {
        collected().woken.take(into);
    }

    /// Schedules an association to be served (again).
    pub fn wake(&mut self, slot: u32) {
        collected().woken.mark(slot);
    }

    /// Whether sockets are pending.
    pub fn has_woken(&self) -> bool {
        !collected().woken.list.is_empty()
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let mut left = collected();
        left.packets.clear();
        left.woken.take(&mut Vec::new());
        IN_USE.store(false, Ordering::Release);
    }
}

/// Initialises usrsctp without threads and sockets, and without extensions that N2 does not use.
fn initialise() {
    // SAFETY: called once, before any other call; the callbacks are functions, which are always valid.
    unsafe {
        sys::usrsctp_tunable_set_sctp_hashtblsize(HASH_BUCKETS);
        sys::usrsctp_tunable_set_sctp_pcbtblsize(HASH_BUCKETS);
        sys::usrsctp_init_nothreads(0, on_output, None);
        sys::usrsctp_enable_crc32c_offload();
        sys::usrsctp_sysctl_set_sctp_auto_asconf(0);
        sys::usrsctp_sysctl_set_sctp_asconf_enable(0);
        sys::usrsctp_sysctl_set_sctp_auth_enable(0);
        sys::usrsctp_sysctl_set_sctp_ecn_enable(0);
        sys::usrsctp_sysctl_set_sctp_pr_enable(0);
        sys::usrsctp_sysctl_set_sctp_reconfig_enable(0);
        sys::usrsctp_sysctl_set_sctp_nrsack_enable(0);
        sys::usrsctp_sysctl_set_sctp_pktdrop_enable(0);
        sys::usrsctp_sysctl_set_sctp_max_chunks_on_queue(MAX_CHUNKS_ON_QUEUE);
        sys::usrsctp_sysctl_set_sctp_shutdown_guard_time_default(SHUTDOWN_GUARD_S);
        sys::usrsctp_sysctl_set_sctp_initial_cwnd(INITIAL_CWND_PACKETS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_woken_twice_is_taken_once_and_can_be_woken_again() {
        let mut woken = Woken { list: Vec::new(), marked: Vec::new() };
        let listener = Wake::Listener(0).as_arg().addr() as u32;
        for word in [3, 1, 3, listener, listener] {
            woken.mark(word);
        }
        let mut taken = Vec::new();
        woken.take(&mut taken);
        assert_eq!(taken, [Wake::Association(3), Wake::Association(1), Wake::Listener(0)]);
        woken.mark(3);
        woken.take(&mut taken);
        assert_eq!(taken.last(), Some(&Wake::Association(3)));
    }

    #[test]
    fn queued_packets_keep_their_path_and_get_a_checksum() {
        let path = PathId::first();
        let mut queue = PacketQueue::default();
        queue.push(path, &[7; 16]);
        queue.push(path, &[9; 20]);
        let packets: Vec<_> = queue.iter().collect();
        assert_eq!(packets.len(), 2);
        assert!(packets.iter().all(|(p, bytes)| *p == path && packet::checksum_holds(bytes)));
        assert_eq!(packets[1].1.len(), 20);
    }
}
