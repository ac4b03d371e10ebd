//! A queue of a TUN interface, with virtio-net headers and segmentation offload.

use super::{RING, Ring, check, check_len};
use libbpf_rs::{ObjectBuilder, PrintLevel};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Bytes of the virtio-net header before every packet read or written.
pub const VNET_HEADER_LEN: usize = 10;

/// One queue; queues of the same name belong to one interface, which exists as long as any of them.
///
/// Reads and writes are batched by io_uring if permitted, otherwise one system call each.
#[derive(Debug)]
pub struct TunQueue {
    file: File,
    segments_udp: bool,
    ring: Option<Ring>,
}

impl TunQueue {
    /// Opens a queue of interface `name`, which is created if it does not exist.
    pub fn open(name: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")?;
        attach(&file, name, libc::IFF_MULTI_QUEUE | libc::IFF_VNET_HDR)?;
        let mut queue = Self::of(file)?;
        queue.ring = Ring::new().ok().and_then(|ring| probe(ring, &queue.file));
        Ok(queue)
    }

    /// A queue that another process has opened. A probe would lose a packet in it: `batched` says whether that process found that
    /// the kernel reads by io_uring without waiting.
    pub fn inherit(queue: OwnedFd, batched: bool) -> io::Result<Self> {
        let mut queue = Self::of(File::from(queue))?;
        queue.ring = Ring::new().ok().filter(|_| batched);
        Ok(queue)
    }

    /// Whether reads and writes are batched by io_uring.
    pub fn is_batched(&self) -> bool {
        self.ring.is_some()
    }

    /// Its descriptor, for another process.
    pub fn share(&self) -> io::Result<OwnedFd> {
        self.file.as_fd().try_clone_to_owned()
    }

    fn of(file: File) -> io::Result<Self> {
        // USO requires Linux 6.2; without it each UDP datagram is a packet.
        const TCP: libc::c_uint = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
        const UDP: libc::c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;
        let segments_udp = set_offload(&file, TCP | UDP).is_ok();
        if !segments_udp {
            set_offload(&file, TCP)?;
        }
        Ok(Self { file, segments_udp, ring: None })
    }

    /// Whether frames of several UDP datagrams (virtio GSO type UDP_L4) are supported.
    pub fn segments_udp(&self) -> bool {
        self.segments_udp
    }

    /// Reads a virtio-net header and a packet into each buffer, and reports each length by index;
    /// `WouldBlock` for those that found the queue empty.
    pub fn read_each<'a>(
        &mut self,
        buffers: impl Iterator<Item = &'a mut [u8]>,
        mut done: impl FnMut(usize, io::Result<usize>),
    ) {
        let Some(ring) = &mut self.ring else {
            for (at, buffer) in buffers.enumerate() {
                let result = read(&self.file, buffer);
                let empty = result.is_err();
                done(at, result);
                if empty {
                    return;
                }
            }
            return;
        };
        if let Err(error) = ring.read_each(self.file.as_fd(), buffers, done) {
            self.give_ring_up(&error);
        }
    }

    /// Writes each message, a virtio-net header and a packet in parts, in order, and reports each result by
    /// index.
    pub fn write_each(
        &mut self,
        messages: &[&[IoSlice<'_>]],
        mut done: impl FnMut(usize, io::Result<usize>),
    ) {
        for (chunk, messages) in messages.chunks(RING).enumerate() {
            let written = match &mut self.ring {
                None => Err(io::ErrorKind::Unsupported.into()),
                Some(ring) => {
                    let messages = messages.iter().copied();
                    ring.write_each(self.file.as_fd(), messages, |at, result| done(chunk * RING + at, result))
                }
            };
            if let Err(error) = written {
                self.give_ring_up(&error);
                for (at, parts) in messages.iter().enumerate() {
                    done(chunk * RING + at, self.write(parts));
                }
            }
        }
    }

    /// Writes a virtio-net header and a packet, gathered from `parts`.
    pub fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let count = parts.len().min(libc::UIO_MAXIOV as usize) as libc::c_int;
        // SAFETY: `IoSlice` has the layout of `iovec`, and all parts are readable during the call.
        check_len(unsafe { libc::writev(self.file.as_raw_fd(), parts.as_ptr().cast(), count) })
    }

    fn give_ring_up(&mut self, error: &io::Error) {
        if self.ring.take().is_some() {
            tracing::warn!(%error, "io_uring failed: TUN is now read and written with one system call for each packet");
        }
    }
}

/// The ring, if the kernel reads from TUN by it without waiting (since Linux 6.4). The queue is still empty
/// here.
fn probe(mut ring: Ring, file: &File) -> Option<Ring> {
    let mut empty = false;
    let mut buffer = [0; 64];
    let check = |_, result: io::Result<usize>| {
        empty = result.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
    };
    ring.read_each(file.as_fd(), std::iter::once(&mut buffer[..]), check).ok()?;
    empty.then_some(ring)
}

fn read(file: &File, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `into` is writable for the length given.
    check_len(unsafe { libc::read(file.as_raw_fd(), into.as_mut_ptr().cast(), into.len()) })
}

impl AsFd for TunQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The compiled `bpf/steer.bpf.c`; empty if built without clang.
const STEER_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/steer.o"));

/// Makes a program of Pith choose the queue of a packet by its flow alone. Otherwise a packet that is written to another queue moves its flow
/// there, until some seconds later, and packets on their way in the former queue may be overtaken.
pub fn steer_by_flow(queue: BorrowedFd<'_>) -> io::Result<()> {
    if STEER_OBJECT.is_empty() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "built without clang"));
    }
    libbpf_rs::set_print(Some((PrintLevel::Info, |_, line| tracing::debug!("{}", line.trim()))));
    let loaded = ObjectBuilder::default().open_memory(STEER_OBJECT).and_then(|open| open.load());
    let object = loaded.map_err(|error| {
        let is_refused = error.kind() == libbpf_rs::ErrorKind::PermissionDenied;
        io::Error::new(if is_refused { io::ErrorKind::PermissionDenied } else { io::ErrorKind::Other }, error)
    })?;
    let program = object.progs().next().ok_or(io::ErrorKind::NotFound)?;
    let descriptor: libc::c_int = program.as_fd().as_raw_fd();
    // SAFETY: TUNSETSTEERINGEBPF reads one descriptor; the interface keeps the program.
    check(unsafe { libc::ioctl(queue.as_raw_fd(), TUNSETSTEERINGEBPF, &raw const descriptor) })?;
    Ok(())
}

/// `_IOR('T', 224, int)`.
const TUNSETSTEERINGEBPF: libc::Ioctl = 0x8004_54e0;

/// Makes the file a queue of TUN interface `name`, without protocol information.
pub(super) fn attach(file: &File, name: &str, flags: libc::c_int) -> io::Result<()> {
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
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | flags;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::enter_namespace;
    use std::io::ErrorKind::{PermissionDenied, Unsupported};
    use std::net::UdpSocket;
    use std::process::Command;

    /// UDP from 10.9.0.2:6000 to 10.9.0.1:5000, without checksum, behind a virtio-net header.
    fn answer() -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0x26, 0xce, 10, 9, 0, 2, 10, 9, 0, 1];
        packet.extend([0x17, 0x70, 0x13, 0x88, 0, 8, 0, 0]);
        [vec![0; VNET_HEADER_LEN], packet].concat()
    }

    #[test]
    fn flows_of_both_versions_are_spread_and_fragments_stay_together() {
        if !enter_namespace() {
            return;
        }
        let queues = [TunQueue::open("steered").unwrap(), TunQueue::open("steered").unwrap()];
        for command in [
            "link set steered up",
            "address add 10.9.0.1/24 dev steered",
            "address add fd09::1/64 dev steered nodad",
        ] {
            assert!(Command::new("ip").args(command.split(' ')).status().unwrap().success());
        }
        if let Err(error) = steer_by_flow(queues[0].as_fd()) {
            assert!(matches!(error.kind(), PermissionDenied | Unsupported), "{error}");
            return crate::skipped::skipped(&format!("the program cannot be loaded: {error}"));
        }
        // The payload of each queue's packets.
        let received = |version: u8| {
            let mut packet = vec![0; 70_000];
            queues.each_ref().map(|queue| {
                let mut count = 0;
                while let Ok(length) = read(&queue.file, &mut packet) {
                    let is_datagram = length > VNET_HEADER_LEN + 1000;
                    count += usize::from(packet[VNET_HEADER_LEN] >> 4 == version && is_datagram);
                }
                count
            })
        };
        let send = |from: &str, to: &str, octets: usize| {
            UdpSocket::bind(from).unwrap().send_to(&vec![0; octets], to).unwrap();
        };
        (0..64).for_each(|flow| send("10.9.0.1:0", &format!("10.9.0.2:{}", 6000 + flow), 1100));
        let [one, other] = received(4);
        assert!(one + other == 64 && one.min(other) > 10, "{one} and {other}");
        (0..64).for_each(|flow| send("[fd09::1]:0", &format!("[fd09::2]:{}", 6000 + flow), 1100));
        let [one, other] = received(6);
        assert!(one + other == 64 && one.min(other) > 10, "{one} and {other}");
        send("10.9.0.1:0", "10.9.0.2:6000", 6000);
        let [one, other] = received(4);
        assert!(one.max(other) >= 4 && one.min(other) == 0, "fragments: {one} and {other}");
    }

    #[test]
    fn a_flow_stays_in_its_queue_whatever_is_written_to_another() {
        if !enter_namespace() {
            return;
        }
        let queues = [TunQueue::open("steered").unwrap(), TunQueue::open("steered").unwrap()];
        for command in ["link set steered up", "address add 10.9.0.1/24 dev steered"] {
            assert!(Command::new("ip").args(command.split(' ')).status().unwrap().success());
        }
        let sender = UdpSocket::bind("10.9.0.1:5000").unwrap();
        let queue_of_next = || {
            sender.send_to(b"down", "10.9.0.2:6000").unwrap();
            let mut packet = [0; 2048];
            let mut next = |at: usize| {
                while let Ok(length) = read(&queues[at].file, &mut packet) {
                    if packet[VNET_HEADER_LEN..length].first() == Some(&0x45) {
                        return true;
                    }
                }
                false
            };
            (0..2).find(|at| next(*at)).expect("the packet is in one of them")
        };
        let moves = || {
            let before = queue_of_next();
            queues[1 - before].write(&[IoSlice::new(&answer())]).unwrap();
            before != queue_of_next()
        };
        assert!(moves(), "the kernel's own way");
        match steer_by_flow(queues[0].as_fd()) {
            Ok(()) => assert!(!moves() && !moves()),
            Err(error) if matches!(error.kind(), PermissionDenied | Unsupported) => {
                crate::skipped::skipped(&format!("the program cannot be loaded: {error}"));
            }
            Err(error) => panic!("{error}"),
        }
    }
}
