//! Sends a batch of G-PDUs into tunnels, grouped into trains of one size and peer. Each train is one message
//! (UDP_SEGMENT); a system call sends several messages.
//!
//! ```text
//! arena    │ intake: a slot for each packet or train read from TUN │ packets, segment headers, … │
//!                    a train is sent from its slot; a packet moves on, so that the slot is free
//! datagram │ GTP-U header, packet │, or │ GTP-U header, segment headers │ payload │: pieces of the arena
//! ```

use crate::packet::VnetHeader;
use crate::rules::WorkerCounters;
use crate::sys::{GtpuSocket, MAX_SEGMENTS, Outgoing, TunQueue, VNET_HEADER_LEN};
use pith_upf::contract::DropReason;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::ops::Range;

/// Space before a packet for the GTP-U header; the virtio-net header fits, too.
pub const HEADROOM: usize = 32;
/// Packets or trains read from TUN in one call.
const SLOTS: usize = 12;
/// Bytes of a slot: the longest packet and its headroom; an odd number of cache lines, so that slots don't
/// all start in the same cache sets.
const SLOT: usize = HEADROOM + 65_536 + 96;
/// Bytes of all slots.
const INTAKE: usize = SLOTS * SLOT;
/// Bytes of the arena: after the slots, space for hundreds of packets or the headers of all slots' segments.
const ARENA: usize = INTAKE + (256 << 10);
/// Space for a single packet.
const ROOM: usize = HEADROOM + 65_536;
/// Longest train; it must fit into an IP packet.
const LONGEST_TRAIN: usize = 65_000;
/// Trains that are searched backwards for one of the same peer.
const LOOK_BACK: usize = 8;

/// The batch of one worker.
#[derive(Debug)]
pub struct N3Batch {
    arena: Box<[u8]>,
    used: usize,
    trains: Vec<Train>,
    count: usize,
    gathers: bool,
    asked: usize,
}

#[derive(Debug)]
struct Train {
    peer: SocketAddr,
    tos: u8,
    /// Bytes of each datagram; the last may be shorter.
    size: usize,
    datagrams: usize,
    length: usize,
    /// Bytes of the inner packets.
    inner: usize,
    open: bool,
    pieces: Vec<Range<usize>>,
}

/// A datagram to send: one or two ranges of the arena.
#[derive(Debug, Clone)]
pub struct Gpdu {
    pub peer: SocketAddr,
    /// Type of service or traffic class of the outer header.
    pub tos: u8,
    /// The GTP-U header and the octets directly after it.
    pub head: Range<usize>,
    /// The rest; may be empty.
    pub tail: Range<usize>,
    /// Bytes of the inner packet.
    pub inner: usize,
}

impl Gpdu {
    fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }
}

impl N3Batch {
    pub fn new() -> Self {
        Self {
            arena: vec![0; ARENA].into_boxed_slice(),
            used: INTAKE,
            trains: Vec::new(),
            count: 0,
            gathers: true,
            asked: 1,
        }
    }

    /// Whether a packet of any length fits before a flush.
    pub fn has_room(&self) -> bool {
        self.used + ROOM <= self.arena.len()
    }

    /// Reads packets from TUN into the slots; `read` are their positions, after the virtio-net header.
    /// Returns whether there may be more. It requests as many packets as the last read returned, or twice as
    /// many if that was all that it requested, so that a single packet costs one read.
    pub fn read_from(&mut self, tun: &mut TunQueue, read: &mut Vec<Range<usize>>) -> bool {
        let from = HEADROOM - VNET_HEADER_LEN;
        let slots = self.arena.chunks_exact_mut(SLOT).take(self.asked);
        let rooms = slots.filter_map(|slot| slot.get_mut(from..from + VNET_HEADER_LEN + 65_536));
        tun.read_each(rooms, |slot, result| {
            if let Ok(length) = result {
                let start = slot * SLOT + HEADROOM;
                read.push(start..start + length.saturating_sub(VNET_HEADER_LEN));
            }
        });
        let all = read.len() == self.asked;
        self.asked = if all { (self.asked * 2).min(SLOTS) } else { read.len().max(1) };
        all
    }

    /// The virtio-net header of a packet that was read.
    pub fn vnet_header(&self, packet: &Range<usize>) -> VnetHeader {
        let bytes = self.bytes(packet.start - VNET_HEADER_LEN..packet.start);
        bytes.first_chunk().map(VnetHeader::decode).unwrap_or_default()
    }

    /// Copies a packet out of its slot; the caller has checked for room.
    pub fn move_out(&mut self, packet: Range<usize>) -> Range<usize> {
        let start = self.used + HEADROOM;
        let end = start + packet.len();
        self.arena.copy_within(packet, start);
        self.used = end;
        start..end
    }

    /// Copies a packet into the arena and returns its position. The caller has checked for room.
    pub fn copy_in(&mut self, packet: &[u8]) -> Option<Range<usize>> {
        let start = self.used + HEADROOM;
        let range = start..start + packet.len();
        self.arena.get_mut(range.clone())?.copy_from_slice(packet);
        self.used = range.end;
        Some(range)
    }

    /// Allocates space for the headers of a segment, with `HEADROOM` bytes before it for GTP-U.
    pub fn take_header_room(&mut self, length: usize) -> Option<Range<usize>> {
        let start = self.used + HEADROOM;
        let range = start..start + length;
        (range.end <= self.arena.len()).then(|| self.used = range.end)?;
        Some(range)
    }

    /// Whether there is no space for the headers of another segment.
    pub fn headers_full(&self, length: usize) -> bool {
        self.used + HEADROOM + length > self.arena.len()
    }

    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.arena.get(range).unwrap_or_default()
    }

    pub fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        self.arena.get_mut(range).unwrap_or_default()
    }

    /// The slots, the offset of the rest, and the rest.
    pub fn split(&mut self) -> (&mut [u8], usize, &mut [u8]) {
        let (slots, rest) = self.arena.split_at_mut(INTAKE);
        (slots, INTAKE, rest)
    }

    /// Adds a datagram whose parts are in the arena.
    pub fn push(&mut self, gpdu: Gpdu) {
        let trains = self.trains.get_mut(..self.count).unwrap_or_default();
        let last = trains.iter_mut().rev().take(LOOK_BACK).find(|train| train.peer == gpdu.peer);
        match last {
            Some(train) if self.gathers && train.takes(&gpdu) => train.add(gpdu),
            _ => self.open(gpdu),
        }
    }

    fn open(&mut self, gpdu: Gpdu) {
        if self.count == self.trains.len() {
            self.trains.push(Train::empty(gpdu.peer));
        }
        if let Some(train) = self.trains.get_mut(self.count) {
            train.begin(gpdu);
            self.count += 1;
        }
    }

    /// Sends all datagrams in order and frees the arena after the slots.
    pub fn flush(&mut self, sockets: &[GtpuSocket], counters: &WorkerCounters) {
        let trains = self.trains.get(..self.count).unwrap_or_default();
        if !trains.is_empty() {
            let mut refused = false;
            for run in trains.chunk_by(|a, b| a.peer.is_ipv4() == b.peer.is_ipv4()) {
                match socket_for(run, sockets) {
                    Some(socket) => refused |= send_run(run, &self.arena, socket, counters),
                    None => run.iter().for_each(|train| train.failed(counters)),
                }
            }
            self.gathers &= !refused;
        }
        self.count = 0;
        self.used = INTAKE;
    }
}

impl Train {
    fn empty(peer: SocketAddr) -> Self {
        Self { peer, tos: 0, size: 0, datagrams: 0, length: 0, inner: 0, open: false, pieces: Vec::new() }
    }

    fn begin(&mut self, gpdu: Gpdu) {
        (self.peer, self.tos, self.size) = (gpdu.peer, gpdu.tos, gpdu.len());
        (self.datagrams, self.length, self.inner, self.open) = (0, 0, 0, true);
        self.pieces.clear();
        self.add(gpdu);
    }

    fn takes(&self, gpdu: &Gpdu) -> bool {
        self.open
            && self.tos == gpdu.tos
            && gpdu.len() <= self.size
            && self.datagrams < MAX_SEGMENTS
            && self.length + gpdu.len() <= LONGEST_TRAIN
    }

    fn add(&mut self, gpdu: Gpdu) {
        self.open = gpdu.len() == self.size;
        self.datagrams += 1;
        self.length += gpdu.len();
        self.inner += gpdu.inner;
        self.pieces.push(gpdu.head);
        if !gpdu.tail.is_empty() {
            self.pieces.push(gpdu.tail);
        }
    }

    fn sent(&self, counters: &WorkerCounters) {
        counters.n3_out.count(self.datagrams, self.inner);
    }

    fn failed(&self, counters: &WorkerCounters) {
        counters.drops.count_many(DropReason::N3SendFailed, self.datagrams);
    }

    fn outgoing(&self, parts: Range<usize>) -> Outgoing {
        let segment = (self.datagrams > 1).then_some(self.size as u16);
        Outgoing { peer: self.peer, tos: self.tos, segment, parts }
    }
}

fn socket_for<'a>(run: &[Train], sockets: &'a [GtpuSocket]) -> Option<&'a GtpuSocket> {
    let v4 = run.first()?.peer.is_ipv4();
    sockets.iter().find(|socket| socket.address().is_ipv4() == v4)
}

/// Sends trains through one socket. Returns whether the kernel rejects trains altogether.
fn send_run(run: &[Train], arena: &[u8], socket: &GtpuSocket, counters: &WorkerCounters) -> bool {
    let mut parts = Vec::with_capacity(run.iter().map(|train| train.pieces.len()).sum());
    let mut messages = Vec::with_capacity(run.len());
    for train in run {
        let first = parts.len();
        parts.extend(
            train.pieces.iter().map(|piece| IoSlice::new(arena.get(piece.clone()).unwrap_or_default())),
        );
        messages.push(train.outgoing(first..parts.len()));
    }
    let (mut done, mut refused) = (0, false);
    while let (Some(rest), Some(train)) = (messages.get(done..), run.get(done)) {
        match socket.send(rest, &parts) {
            Ok(sent) => {
                run.iter().skip(done).take(sent).for_each(|train| train.sent(counters));
                done += sent.max(1);
            }
            Err(error) => {
                refused |= retry_apart(train, rest, &parts, socket, counters, &error);
                done += 1;
            }
        }
    }
    refused
}

/// Sends the datagrams of a train one by one, after the device or the path rejected the train. Returns
/// whether the kernel rejects trains altogether.
fn retry_apart(
    train: &Train,
    rest: &[Outgoing],
    parts: &[IoSlice<'_>],
    socket: &GtpuSocket,
    counters: &WorkerCounters,
    error: &io::Error,
) -> bool {
    let code = error.raw_os_error().unwrap_or(0);
    let Some(whole) = rest.first().filter(|message| message.segment.is_some()) else {
        train.failed(counters);
        return false;
    };
    if !matches!(code, libc::EMSGSIZE | libc::EINVAL | libc::EIO | libc::EOPNOTSUPP) {
        train.failed(counters);
        return false;
    }
    let inner = train.inner / train.datagrams.max(1);
    for message in datagrams(whole, parts, train.size) {
        match socket.send(std::slice::from_ref(&message), parts) {
            Ok(_) => counters.n3_out.count(1, inner),
            Err(_) => counters.drops.count(DropReason::N3SendFailed),
        }
    }
    matches!(code, libc::EIO | libc::EOPNOTSUPP)
}

/// The datagrams of a train, each as a message.
fn datagrams(whole: &Outgoing, parts: &[IoSlice<'_>], size: usize) -> Vec<Outgoing> {
    let mut messages = Vec::new();
    let (mut first, mut length) = (whole.parts.start, 0);
    for at in whole.parts.clone() {
        length += parts.get(at).map_or(0, |part| part.len());
        if length >= size || at + 1 == whole.parts.end {
            messages.push(Outgoing { segment: None, parts: first..at + 1, ..whole.clone() });
            (first, length) = (at + 1, 0);
        }
    }
    messages
}
