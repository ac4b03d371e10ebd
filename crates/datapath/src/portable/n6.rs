//! Towards the data network: a batch of packets, coalesced, into a TUN queue.

use crate::packet::{Coalescer, Flow, Frame, VnetHeader};
use crate::rules::WorkerCounters;
use crate::sys::TunQueue;
use pith_upf::contract::DropReason;
use std::io::{self, IoSlice};
use std::ops::Range;

/// The batch of one worker. Packets are ranges of the arena that they were received into.
#[derive(Debug)]
pub struct N6Batch {
    coalescer: Coalescer,
}

impl N6Batch {
    /// Empty; `udp`: whether TUN takes trains of UDP datagrams.
    pub fn new(udp: bool) -> Self {
        Self { coalescer: Coalescer::new(udp) }
    }

    /// Takes a packet.
    pub fn push(&mut self, arena: &[u8], packet: Range<usize>, flow: &Flow) {
        self.coalescer.offer(arena, packet, flow);
    }

    /// Writes everything, in order.
    pub fn flush(&mut self, arena: &[u8], tun: &TunQueue, counters: &WorkerCounters) {
        for frame in self.coalescer.frames() {
            account(write_frame(frame, arena, tun), frame.packets(), frame_len(frame), counters);
        }
        self.coalescer.clear();
    }
}

/// Writes one packet at once.
pub fn write_packet(packet: &[u8], tun: &TunQueue, counters: &WorkerCounters) {
    let written = tun.write(&[IoSlice::new(&VnetHeader::NONE), IoSlice::new(packet)]);
    account(written, 1, packet.len(), counters);
}

fn write_frame(frame: &Frame, arena: &[u8], tun: &TunQueue) -> io::Result<usize> {
    let bytes = |range: &Range<usize>| arena.get(range.clone()).unwrap_or_default();
    match frame.head(arena) {
        None => {
            let packet = frame.single().unwrap_or_default();
            tun.write(&[IoSlice::new(&VnetHeader::NONE), IoSlice::new(bytes(&packet))])
        }
        Some((head, length)) => {
            let head = head.get(..length).unwrap_or_default();
            let payloads = frame.payloads().iter().map(|range| IoSlice::new(bytes(range)));
            let parts: Vec<_> = std::iter::once(IoSlice::new(head)).chain(payloads).collect();
            tun.write(&parts)
        }
    }
}

/// Bytes of the packets that a frame stands for.
fn frame_len(frame: &Frame) -> usize {
    match frame.single() {
        Some(packet) => packet.len(),
        None => frame.payloads().iter().map(|payload| payload.len() + frame.header_len()).sum(),
    }
}

fn account(written: io::Result<usize>, packets: usize, bytes: usize, counters: &WorkerCounters) {
    match written {
        Ok(_) => counters.n6_out.count(packets, bytes),
        Err(_) => counters.drops.count_many(DropReason::N6SendFailed, packets),
    }
}
