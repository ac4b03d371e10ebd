//! Sends a batch of packets, coalesced, to the data network by a TUN queue.

use super::packet_out::PacketOut;
use crate::fib::Fib;
use crate::packet::{Coalescer, Flow, Frame, VnetHeader};
use crate::rules::WorkerCounters;
use crate::sys::TunQueue;
use pith_upf::contract::DropReason;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;

/// The batch of one worker. Packets are ranges of the arena that received them.
#[derive(Debug)]
pub struct N6Batch {
    coalescer: Coalescer,
    /// If packets may bypass the kernel's forwarding.
    pub packet_out: Option<PacketOut>,
}

impl N6Batch {
    /// `udp`: whether TUN accepts trains of UDP datagrams.
    pub fn new(udp: bool) -> Self {
        Self { coalescer: Coalescer::new(udp), packet_out: None }
    }

    /// Replaces the routes of the packet socket.
    pub fn set_fib(&mut self, fib: Arc<Fib>) {
        if let Some(out) = &mut self.packet_out {
            out.set_fib(fib);
        }
    }

    pub fn push(&mut self, arena: &[u8], packet: Range<usize>, flow: &Flow) {
        self.coalescer.offer(arena, packet, flow);
    }

    /// Writes all packets, in order.
    pub fn flush(&mut self, arena: &[u8], tun: &mut TunQueue, counters: &WorkerCounters) {
        let frames = self.coalescer.frames();
        if frames.is_empty() {
            return;
        }
        match &mut self.packet_out {
            None => write_frames(&frames.iter().collect::<Vec<_>>(), arena, tun, counters),
            Some(out) => {
                let by_kernel = out.send(frames, arena, counters);
                let by_kernel: Vec<_> = by_kernel.into_iter().filter_map(|at| frames.get(at)).collect();
                write_frames(&by_kernel, arena, tun, counters);
            }
        }
        self.coalescer.clear();
    }
}

fn write_frames(frames: &[&Frame], arena: &[u8], tun: &mut TunQueue, counters: &WorkerCounters) {
    let bytes = |range: Range<usize>| IoSlice::new(arena.get(range).unwrap_or_default());
    let heads: Vec<_> = frames.iter().map(|frame| frame.head(arena)).collect();
    let mut parts = Vec::with_capacity(frames.len() * 2);
    let mut ends = Vec::with_capacity(frames.len());
    for (frame, head) in frames.iter().zip(&heads) {
        match head {
            None => {
                parts.extend([IoSlice::new(&VnetHeader::NONE), bytes(frame.single().unwrap_or_default())])
            }
            Some((head, length)) => {
                parts.push(IoSlice::new(head.get(..*length).unwrap_or_default()));
                parts.extend(frame.payloads().iter().cloned().map(bytes));
            }
        }
        ends.push(parts.len());
    }
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let message = |(start, end): (usize, &usize)| parts.get(start..*end).unwrap_or_default();
    let messages: Vec<_> = starts.zip(&ends).map(message).collect();
    tun.write_each(&messages, |at, result| {
        if let Some(frame) = frames.get(at) {
            account(result, frame.packets(), frame.octets(), counters);
        }
    });
}

fn account(written: io::Result<usize>, packets: usize, bytes: usize, counters: &WorkerCounters) {
    match written {
        Ok(_) => counters.n6_out.count(packets, bytes),
        Err(_) => counters.drops.count_many(DropReason::N6SendFailed, packets),
    }
}
