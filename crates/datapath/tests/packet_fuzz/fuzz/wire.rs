//! Sockets for whole frames, and frames for a program without a wire.

#![allow(unsafe_code)]

use crate::support::run;
use libbpf_rs::libbpf_sys;
use std::ffi::CString;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// The index of an interface of this namespace.
fn index(interface: &str) -> u32 {
    let name = CString::new(interface).unwrap();
    // SAFETY: the name ends with a zero byte and lives during the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    assert_ne!(index, 0, "{interface}");
    index
}

/// The MAC of an interface of this namespace.
pub fn link_of(interface: &str) -> [u8; 6] {
    let line = run(&format!("ip -o link show {interface}"));
    let text = line.split("link/ether ").nth(1).expect("a link address");
    let octets: Vec<u8> = text[..17].split(':').map(|octet| u8::from_str_radix(octet, 16).unwrap()).collect();
    octets.try_into().expect("six octets")
}

/// A packet socket of an interface of this namespace, for sending frames or for receiving all frames.
/// `UdpSocket` is used only for its `send` and `recv`.
pub fn open(interface: &str, receives: bool) -> UdpSocket {
    let protocol = if receives { (libc::ETH_P_ALL as u16).to_be() } else { 0 };
    // SAFETY: takes no pointers; the descriptor that it answers is new and ours alone.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol.into());
        assert!(fd >= 0, "a packet socket");
        UdpSocket::from(OwnedFd::from_raw_fd(fd))
    };
    // SAFETY: all zero is a valid address; it is readable for its size, as is the option's value.
    unsafe {
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = index(interface) as i32;
        let one: libc::c_int = 1;
        let fd = socket.as_raw_fd();
        let ignored =
            libc::setsockopt(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, (&raw const one).cast(), 4);
        let bound = libc::bind(fd, (&raw const address).cast(), size_of_val(&address) as _);
        assert_eq!((ignored, bound), (0, 0), "{}", std::io::Error::last_os_error());
    }
    socket
}

/// Sends a frame, and repeats it while the wire is full.
pub fn send(socket: &UdpSocket, frame: &[u8]) {
    while let Err(error) = socket.send(frame) {
        assert_eq!(error.raw_os_error(), Some(libc::ENOBUFS), "{error}: {} octets", frame.len());
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Waits until something is received by one of these, or the time is up.
pub fn wait<'a>(sockets: impl Iterator<Item = &'a UdpSocket>, most: Duration) {
    let entry =
        |socket: &UdpSocket| libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut polled: Vec<_> = sockets.map(entry).collect();
    // SAFETY: the entries live during the call, and there are so many.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as _, most.as_millis() as _) };
}

/// Frames lost by a packet socket since the last call.
pub fn lost_of(socket: &UdpSocket) -> u64 {
    let mut statistics = [0u32; 2];
    let mut length = size_of_val(&statistics) as libc::socklen_t;
    // SAFETY: the value is writable for the length given.
    unsafe {
        let value = statistics.as_mut_ptr().cast();
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            value,
            &raw mut length,
        );
    }
    statistics[1].into()
}

/// Packets that the kernel lost in this thread's namespace: at interfaces, and at full sockets. Losses of CPU
/// backlogs are counted for all namespaces together.
pub fn lost_here() -> u64 {
    interfaces_lost() + sockets_lost() + backlogs_lost()
}

/// At full interfaces, including TUN and the ends of veths. Their receive drops are unwanted packets.
fn interfaces_lost() -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let sent = |line: &str| line.split_once(':')?.1.split_whitespace().nth(11)?.parse::<u64>().ok();
    table.lines().filter_map(sent).sum()
}

fn sockets_lost() -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap_or_default();
    let mut lines = table.lines().filter(|line| line.starts_with("Udp:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    let full = pairs.filter(|(name, _)| ["RcvbufErrors", "MemErrors"].contains(name));
    full.filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
}

fn backlogs_lost() -> u64 {
    let table = std::fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
    let dropped = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    table.lines().filter_map(dropped).sum()
}

/// An interface's program, which is given frames by BPF_PROG_TEST_RUN and sends them on.
pub struct Live {
    program: OwnedFd,
    interface: u32,
}

/// `struct xdp_md`.
#[repr(C)]
#[derive(Default)]
struct Context {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress: u32,
    queue: u32,
    egress: u32,
}

impl Live {
    /// Of an interface of this namespace.
    pub fn of(interface: &str) -> Self {
        let interface = index(interface);
        let mut id = 0;
        // SAFETY: the id is writable; the descriptor that is answered is new and ours alone.
        let program = unsafe {
            assert_eq!(libbpf_sys::bpf_xdp_query_id(interface as i32, 0, &raw mut id), 0);
            let fd = libbpf_sys::bpf_prog_get_fd_by_id(id);
            assert!(fd >= 0, "the program of {interface}");
            OwnedFd::from_raw_fd(fd)
        };
        Self { program, interface }
    }

    pub fn run(&self, frame: &[u8]) {
        let mut context =
            Context { data_end: frame.len() as u32, ingress: self.interface, ..Context::default() };
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
            data_in: frame.as_ptr().cast(),
            data_size_in: frame.len() as u32,
            ctx_in: (&raw mut context).cast(),
            ctx_size_in: size_of::<Context>() as u32,
            repeat: 1,
            flags: libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES,
            ..Default::default()
        };
        // SAFETY: the options say their own size; frame and context live during the call and are only read.
        let result =
            unsafe { libbpf_sys::bpf_prog_test_run_opts(self.program.as_raw_fd(), &raw mut options) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    }
}
