//! The loop of most TUN-based UPFs: one packet a system call.

use super::net::{RADIO, UPF_N3, ue};
use super::support::{UPF_N6, run as command};
use pith_pfcp::gtpu::GTPU_PORT;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Thread names by direction.
pub const UP: &str = "one-up";
pub const DOWN: &str = "one-down";

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    up: AtomicU64,
    down: AtomicU64,
}

/// A thread for each direction.
pub struct OnePacket {
    shared: Arc<Shared>,
    threads: [JoinHandle<()>; 2],
}

impl OnePacket {
    pub fn start() -> Self {
        command("ip tuntap add one0 mode tun");
        command("ip addr add 10.45.0.1/16 dev one0");
        command("ip link set one0 up mtu 1400");
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        let tun = open_tun("one0");
        let socket = UdpSocket::bind((UPF_N3, GTPU_PORT)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let shared = Arc::new(Shared::default());
        let (up_tun, up_socket, up_shared) =
            (tun.try_clone().unwrap(), socket.try_clone().unwrap(), Arc::clone(&shared));
        let up = spawn(UP, move || one_up(up_tun, &up_socket, &up_shared));
        let down_shared = Arc::clone(&shared);
        let down = spawn(DOWN, move || one_down(tun, &socket, &down_shared));
        Self { shared, threads: [up, down] }
    }

    /// Packets so far, up and down.
    pub fn packets(&self) -> [u64; 2] {
        [self.shared.up.load(Relaxed), self.shared.down.load(Relaxed)]
    }

    pub fn stop(self) {
        self.shared.stop.store(true, Relaxed);
        let socket = UdpSocket::bind((UPF_N6, 0)).unwrap();
        let _ = socket.send_to(b"", (ue(0), 5000));
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        command("ip link del one0");
    }
}

fn spawn(name: &str, job: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    thread::Builder::new().name(name.into()).spawn(job).unwrap()
}

fn one_up(mut tun: File, socket: &UdpSocket, shared: &Shared) {
    let mut buffer = [0; 65_536];
    while !shared.stop.load(Relaxed) {
        let Ok((length, _)) = socket.recv_from(&mut buffer) else { continue };
        if buffer[..length].get(1) == Some(&255) && tun.write(&buffer[16..length]).is_ok() {
            shared.up.fetch_add(1, Relaxed);
        }
    }
}

fn one_down(mut tun: File, socket: &UdpSocket, shared: &Shared) {
    let mut buffer = [0; 65_536];
    while !shared.stop.load(Relaxed) {
        let Ok(length) = tun.read(&mut buffer[16..]) else { continue };
        buffer[..16].copy_from_slice(&[0x34, 255, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0x85, 1, 0, 9, 0]);
        buffer[2..4].copy_from_slice(&(length as u16 + 8).to_be_bytes());
        if socket.send_to(&buffer[..16 + length], (RADIO, GTPU_PORT)).is_ok() {
            shared.down.fetch_add(1, Relaxed);
        }
    }
}

fn open_tun(name: &str) -> File {
    let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun").unwrap();
    // SAFETY: all zero is a valid `ifreq`, which TUNSETIFF reads and writes.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as libc::c_char);
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        assert_eq!(libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request), 0);
    }
    file
}
