//! Packets held for idle UEs: in order, bounded by session and in all, told of once.
//!
//! ```text
//!  empty ── hold: DownlinkData ──▶ holding ── install with Forward ──▶ due ── release ──▶ empty
//!    ▲                               │ install with Drop, discard, remove                   │
//!    └───────────────────────────────┴──────────────────────────────────────────────────────┘
//! ```
//!
//! New rules reach the workers one after the other, so two may disagree for a moment about whether a
//! session buffers. `generation`, under the lock, says which rules hold: a worker with older ones must
//! look again. From before new rules are published until a worker that has them has released what was
//! held, a release is `due`, and nobody forwards: what was held leaves first.

use super::compile::Origin;
use pith_upf::contract::{PdrId, Qfi};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bounds on what may be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferLimits {
    /// Packets of one session, where its BAR does not say.
    pub session_packets: usize,
    /// Packets of all sessions.
    pub packets: usize,
    /// Bytes of all sessions.
    pub bytes: usize,
}

impl Default for BufferLimits {
    /// 128 packets a session, 65,536 in all, 64 MiB in all.
    fn default() -> Self {
        Self { session_packets: 128, packets: 65_536, bytes: 64 << 20 }
    }
}

/// What all sessions hold together.
#[derive(Debug)]
pub struct Buffers {
    limits: BufferLimits,
    packets: AtomicUsize,
    bytes: AtomicUsize,
}

impl Buffers {
    /// Nothing held.
    pub fn new(limits: BufferLimits) -> Self {
        Self { limits, packets: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }
    }

    /// Packets held now.
    pub fn packets(&self) -> usize {
        self.packets.load(Relaxed)
    }

    /// Takes room for a packet, if there is any.
    fn reserve(&self, bytes: usize) -> bool {
        let packets = self.packets.fetch_add(1, Relaxed);
        let before = self.bytes.fetch_add(bytes, Relaxed);
        let fits = packets < self.limits.packets && before + bytes <= self.limits.bytes;
        if !fits {
            self.free(1, bytes);
        }
        fits
    }

    fn free(&self, packets: usize, bytes: usize) {
        self.packets.fetch_sub(packets, Relaxed);
        self.bytes.fetch_sub(bytes, Relaxed);
    }
}

/// A packet held, to meet the rules again when it is released.
#[derive(Debug, PartialEq, Eq)]
pub struct Held {
    /// The inner packet.
    pub packet: Box<[u8]>,
    /// Where it came from.
    pub origin: Origin,
    /// Its QoS flow, if it came by tunnel.
    pub qfi: Option<Qfi>,
}

/// Packets held, oldest first, each with the PDR that wanted it held.
pub type Queue = VecDeque<(PdrId, Held)>;

/// What became of a packet that rules want held.
#[derive(Debug, PartialEq, Eq)]
pub enum Buffered {
    /// It is held; the first of its PDR since the buffer was empty.
    First,
    /// It is held.
    Further,
    /// There is no room.
    Full,
    /// The rules that wanted it held are not the session's any more; here it is again.
    Outdated(Held),
}

/// What a session holds.
#[derive(Debug, Default)]
pub struct SessionBuffer {
    due: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    announced: u64,
    generation: u64,
    packets: Queue,
    told: Vec<PdrId>,
}

impl SessionBuffer {
    /// Whether held packets have to leave before others may.
    pub fn is_due(&self) -> bool {
        self.due.load(Relaxed)
    }

    /// Holds a packet for a PDR of rules of `generation`; `most` is the BAR's bound.
    pub fn hold(
        &self,
        all: &Buffers,
        generation: u64,
        most: Option<u16>,
        pdr: PdrId,
        held: Held,
    ) -> Buffered {
        let mut inner = self.lock();
        if generation < inner.generation {
            return Buffered::Outdated(held);
        }
        inner.generation = generation;
        let most = most.map_or(all.limits.session_packets, usize::from);
        if inner.packets.len() >= most || !all.reserve(held.packet.len()) {
            return Buffered::Full;
        }
        inner.packets.push_back((pdr, held));
        if inner.told.contains(&pdr) {
            return Buffered::Further;
        }
        inner.told.push(pdr);
        Buffered::First
    }

    /// Before rules of `generation` are published: from now on, whoever has them releases first, and who
    /// has not waits for them.
    pub fn announce(&self, generation: u64) {
        let mut inner = self.lock();
        inner.announced = generation;
        self.due.store(!inner.packets.is_empty(), Relaxed);
    }

    /// After rules were published: older ones hold nothing any more. Answers whether a release is due.
    pub fn adopt(&self, generation: u64) -> bool {
        let mut inner = self.lock();
        inner.generation = inner.generation.max(generation);
        let due = !inner.packets.is_empty();
        self.due.store(due, Relaxed);
        due
    }

    /// Gives `send` what is held, in order, and keeps what it gives back; does nothing if rules newer
    /// than `generation` are announced. Nobody else gets past the session's buffer until `send` is done,
    /// so it has to have the packets on their way by then.
    pub fn release(&self, all: &Buffers, generation: u64, send: impl FnOnce(Queue) -> Queue) {
        let mut inner = self.lock();
        if generation >= inner.announced {
            self.empty(&mut inner, all, send);
        }
    }

    fn empty(&self, inner: &mut Inner, all: &Buffers, send: impl FnOnce(Queue) -> Queue) {
        let before = size(&inner.packets);
        inner.packets = send(std::mem::take(&mut inner.packets));
        let after = size(&inner.packets);
        all.free(before.0.saturating_sub(after.0), before.1.saturating_sub(after.1));
        let Inner { packets, told, .. } = inner;
        told.retain(|pdr| packets.iter().any(|(of, _)| of == pdr));
        self.due.store(false, Relaxed);
    }

    /// Drops what is held, and answers how many packets that were.
    pub fn discard(&self, all: &Buffers) -> usize {
        let mut dropped = 0;
        self.empty(&mut self.lock(), all, |held| {
            dropped = held.len();
            VecDeque::new()
        });
        dropped
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic in `send` leaves an empty buffer, which is sound.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Packets and bytes.
fn size(packets: &Queue) -> (usize, usize) {
    (packets.len(), packets.iter().map(|(_, held)| held.packet.len()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(byte: u8) -> Held {
        Held { packet: Box::new([byte; 100]), origin: Origin::Network, qfi: None }
    }

    fn hold(buffer: &SessionBuffer, all: &Buffers, pdr: u16, byte: u8) -> Buffered {
        buffer.hold(all, 0, None, PdrId(pdr), held(byte))
    }

    fn limits(session_packets: usize, packets: usize, bytes: usize) -> Buffers {
        Buffers::new(BufferLimits { session_packets, packets, bytes })
    }

    #[test]
    fn the_first_packet_of_each_pdr_is_told_until_the_buffer_is_empty_again() {
        let (buffer, all) = (SessionBuffer::default(), limits(9, 9, 9000));
        let told = [1, 1, 2, 1].map(|pdr| hold(&buffer, &all, pdr, 0));
        assert_eq!(told, [Buffered::First, Buffered::Further, Buffered::First, Buffered::Further]);
        assert_eq!(buffer.discard(&all), 4);
        assert_eq!(hold(&buffer, &all, 1, 0), Buffered::First);
    }

    #[test]
    fn every_bound_holds_and_room_comes_back() {
        for all in [limits(2, 9, 9000), limits(9, 2, 9000), limits(9, 9, 200)] {
            let buffer = SessionBuffer::default();
            let outcomes = [0, 1, 2].map(|byte| hold(&buffer, &all, 1, byte));
            assert_eq!(outcomes, [Buffered::First, Buffered::Further, Buffered::Full]);
            assert_eq!(all.packets(), 2);
            assert_eq!(buffer.discard(&all), 2);
            assert_eq!((all.packets(), all.bytes.load(Relaxed)), (0, 0));
        }
        let (buffer, all) = (SessionBuffer::default(), limits(9, 9, 9000));
        assert_eq!(buffer.hold(&all, 0, Some(0), PdrId(1), held(1)), Buffered::Full);
    }

    #[test]
    fn packets_leave_in_order_and_what_is_given_back_stays() {
        let (buffer, all) = (SessionBuffer::default(), limits(9, 9, 9000));
        for byte in 0..4 {
            hold(&buffer, &all, 1, byte);
        }
        let mut sent = Vec::new();
        buffer.release(&all, 0, |mut packets| {
            sent.extend(packets.drain(..3).map(|(_, held)| held.packet[0]));
            packets
        });
        assert_eq!((sent, all.packets()), (vec![0, 1, 2], 1));
    }

    #[test]
    fn rules_of_another_generation_hold_nothing() {
        let (buffer, all) = (SessionBuffer::default(), limits(9, 9, 9000));
        hold(&buffer, &all, 1, 0);
        buffer.announce(5);
        assert!(buffer.is_due());
        buffer.release(&all, 4, |_| unreachable!("by rules that are no more"));
        assert!(buffer.is_due());
        assert!(buffer.adopt(5));
        assert_eq!(hold(&buffer, &all, 1, 1), Buffered::Outdated(held(1)));
        assert_eq!(buffer.hold(&all, 5, None, PdrId(1), held(1)), Buffered::Further);
        assert_eq!(buffer.hold(&all, 6, None, PdrId(1), held(1)), Buffered::Further);
        buffer.discard(&all);
        assert!(!buffer.is_due());
        assert!(!buffer.adopt(6));
        assert_eq!(buffer.hold(&all, 5, None, PdrId(1), held(1)), Buffered::Outdated(held(1)));
    }
}
