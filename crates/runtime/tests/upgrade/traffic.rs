//! A constant stream of numbered packets of a UE, up and down.

use super::support::*;
use pith_pfcp::gtpu::{GTPU_PORT, Packet};
use std::fmt;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Octets of the UE's packets: an IPv4 and a UDP header, and a payload that begins with the packet's number.
pub const INNER: usize = 28 + PAYLOAD;
const PAYLOAD: usize = 100;
/// Packets sent without a pause.
const MOST_AT_ONCE: u64 = 64;
/// Packets in each direction that open the connection.
const OPENING: u64 = 10;
/// Time for the last packets to arrive.
const LAST: Duration = Duration::from_millis(500);

/// Packets of one direction.
#[derive(Debug, Default, Clone, Copy)]
pub struct Sum {
    pub sent: u64,
    pub received: u64,
    /// Those received after a later one.
    pub late: u64,
}

impl Sum {
    pub fn lost(&self) -> u64 {
        self.sent - self.received
    }
}

/// Packets of both directions.
pub struct Sums {
    pub up: Sum,
    pub down: Sum,
}

impl fmt::Display for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, sum) in [("up", &self.up), ("down", &self.down)] {
            let (lost, Sum { sent, received, late }) = (sum.lost(), *sum);
            let octets = sent * INNER as u64;
            write!(
                f,
                "{name}: {sent} packets sent ({octets} octets), {received} received, {lost} lost, {late} out of order; "
            )?;
        }
        Ok(())
    }
}

pub struct Traffic {
    ends: Arc<AtomicBool>,
    closes: Arc<AtomicBool>,
    senders: [JoinHandle<u64>; 2],
    receivers: [JoinHandle<(u64, u64)>; 2],
}

impl Traffic {
    /// Begins to send `rate` packets a second in each direction.
    pub fn start(radio: &Host, data: &Host, teid: u32, rate: u64) -> Self {
        let gnb = radio.run(|| UdpSocket::bind((GNB, GTPU_PORT)).unwrap());
        let server = data.run(|| UdpSocket::bind((SERVER, 7000)).unwrap());
        for socket in [&gnb, &server] {
            receive_much(socket);
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        let up = move |number: u64| gpdu(teid, &udp(UE, SERVER, 7000, &payload(number)));
        let ue = open_connection(&gnb, &server, &up(0));
        let (ends, closes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let clone = |socket: &UdpSocket| socket.try_clone().unwrap();
        let receivers = [
            receiver(clone(&server), Arc::clone(&closes), number_of),
            receiver(clone(&gnb), Arc::clone(&closes), |octets| {
                number_of(Packet::decode(octets).ok()?.payload.get(28..)?)
            }),
        ];
        let senders = [
            sender(gnb, (UPF, GTPU_PORT).into(), rate, Arc::clone(&ends), up),
            sender(server, ue, rate, Arc::clone(&ends), payload),
        ];
        Self { ends, closes, senders, receivers }
    }

    /// Ends the stream, and returns the sums; the packets that opened the connection count, too.
    pub fn end(self) -> Sums {
        self.ends.store(true, Relaxed);
        let [up, down] = self.senders.map(|thread| thread.join().unwrap());
        thread::sleep(LAST);
        self.closes.store(true, Relaxed);
        let [(up_received, up_late), (down_received, down_late)] =
            self.receivers.map(|thread| thread.join().unwrap());
        Sums {
            up: Sum { sent: up + OPENING, received: up_received + OPENING, late: up_late },
            down: Sum { sent: down + OPENING, received: down_received + OPENING, late: down_late },
        }
    }
}

/// Exchanges the first packets, one at a time: with NAT they take the kernel's stack, and later ones overtake them. Returns the source
/// that the server sees, perhaps after NAT.
fn open_connection(gnb: &UdpSocket, server: &UdpSocket, packet: &[u8]) -> SocketAddr {
    let mut ue = None;
    for _ in 0..OPENING {
        gnb.send_to(packet, (UPF, GTPU_PORT)).unwrap();
        let from = server.recv_from(&mut [0; 2048]).expect("an uplink packet").1;
        server.send_to(&payload(0), from).unwrap();
        gnb.recv(&mut [0; 2048]).expect("a downlink packet");
        ue = Some(from);
    }
    ue.expect("at least one packet")
}

fn payload(number: u64) -> Vec<u8> {
    let mut payload = number.to_be_bytes().to_vec();
    payload.resize(PAYLOAD, 0x55);
    payload
}

fn number_of(payload: &[u8]) -> Option<u64> {
    payload.first_chunk().map(|number| u64::from_be_bytes(*number))
}

fn sender(
    socket: UdpSocket,
    to: SocketAddr,
    rate: u64,
    ends: Arc<AtomicBool>,
    packet: impl Fn(u64) -> Vec<u8> + Send + 'static,
) -> JoinHandle<u64> {
    thread::spawn(move || {
        let (mut begun, mut sent) = (Instant::now(), 0);
        while !ends.load(Relaxed) {
            let due = begun.elapsed().as_micros() as u64 * rate / 1_000_000;
            begun = Instant::now();
            // A thread that was not scheduled for long does not send all at once.
            for _ in 0..due.clamp(1, MOST_AT_ONCE) {
                sent += 1;
                socket.send_to(&packet(sent), to).unwrap();
            }
            thread::sleep(Duration::from_micros(1_000_000 / rate));
        }
        sent
    })
}

/// Counts packets, and those that are late.
fn receiver(
    socket: UdpSocket,
    closes: Arc<AtomicBool>,
    number: impl Fn(&[u8]) -> Option<u64> + Send + 'static,
) -> JoinHandle<(u64, u64)> {
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    thread::spawn(move || {
        let (mut received, mut late, mut last, mut buffer) = (0, 0, 0, [0; 2048]);
        while !closes.load(Relaxed) {
            let Ok(length) = socket.recv(&mut buffer) else { continue };
            let Some(number) = number(&buffer[..length]) else { continue };
            received += 1;
            late += u64::from(number < last);
            last = last.max(number);
        }
        (received, late)
    })
}
