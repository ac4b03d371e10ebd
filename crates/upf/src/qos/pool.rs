//! Memory of queued packets: nodes in one block, linked into queues. The block grows when it is full; nodes are used again,
//! so queueing allocates memory only until the block has its final size.

use super::{Ecn, Time};

const NONE: u32 = u32::MAX;

/// The engine's data of a queued packet.
#[derive(Debug, Clone, Copy)]
pub struct QueuedInfo {
    /// Time of queueing.
    pub since: Time,
    /// Bytes of the inner packet.
    pub bytes: u32,
    /// A hash of its 5-tuple.
    pub tuple: u32,
    /// Index of its flow in the session.
    pub flow: u16,
    /// Its ECN field.
    pub ecn: Ecn,
}

#[derive(Debug)]
struct Node<P> {
    /// `None` if the node is free.
    packet: Option<P>,
    info: QueuedInfo,
    next: u32,
}

/// All queued packets of an engine.
#[derive(Debug)]
pub struct Pool<P> {
    nodes: Vec<Node<P>>,
    free: u32,
}

impl<P> Pool<P> {
    pub fn new() -> Self {
        Self { nodes: Vec::new(), free: NONE }
    }

    fn insert(&mut self, packet: P, info: QueuedInfo) -> u32 {
        let node = Node { packet: Some(packet), info, next: NONE };
        let index = self.free;
        match self.nodes.get_mut(index as usize) {
            Some(free) => {
                self.free = free.next;
                *free = node;
                index
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        }
    }

    fn remove(&mut self, index: u32) -> Option<(P, QueuedInfo, u32)> {
        let free = self.free;
        let node = self.nodes.get_mut(index as usize)?;
        let packet = node.packet.take()?;
        let next = std::mem::replace(&mut node.next, free);
        self.free = index;
        Some((packet, node.info, next))
    }
}

/// A queue of packets of a pool, oldest first.
#[derive(Debug, Clone, Copy)]
pub struct Fifo {
    head: u32,
    tail: u32,
    packets: u32,
    bytes: u32,
}

impl Default for Fifo {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, packets: 0, bytes: 0 }
    }
}

impl Fifo {
    /// Number of packets.
    pub fn packets(&self) -> usize {
        self.packets as usize
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes as usize
    }

    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Adds a packet.
    pub fn push<P>(&mut self, pool: &mut Pool<P>, packet: P, info: QueuedInfo) {
        let index = pool.insert(packet, info);
        match pool.nodes.get_mut(self.tail as usize) {
            Some(last) => last.next = index,
            None => self.head = index,
        }
        self.tail = index;
        self.packets += 1;
        self.bytes += info.bytes;
    }

    /// The oldest packet's data.
    pub fn front<P>(&self, pool: &Pool<P>) -> Option<QueuedInfo> {
        Some(pool.nodes.get(self.head as usize)?.info)
    }

    /// Removes the oldest packet.
    pub fn pop<P>(&mut self, pool: &mut Pool<P>) -> Option<(P, QueuedInfo)> {
        let (packet, info, next) = pool.remove(self.head)?;
        self.head = next;
        if next == NONE {
            self.tail = NONE;
        }
        self.packets -= 1;
        self.bytes -= info.bytes;
        Some((packet, info))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_of_one_pool_keep_their_order_and_nodes_are_used_again() {
        let (mut pool, mut queues) = (Pool::new(), [Fifo::default(); 2]);
        for round in 0..10 {
            for n in 0..6u32 {
                let info = QueuedInfo { since: Time(0), bytes: n, tuple: 0, flow: 0, ecn: Ecn::NotCapable };
                queues[n as usize % 2].push(&mut pool, n + round, info);
            }
            assert_eq!((queues[1].packets(), queues[1].bytes()), (3, 9));
            for (queue, first) in queues.iter_mut().zip(0..) {
                let taken: Vec<_> =
                    std::iter::from_fn(|| queue.pop(&mut pool)).map(|(n, _)| n - round).collect();
                assert_eq!(taken, [first, first + 2, first + 4]);
                assert!(queue.is_empty() && queue.front(&pool).is_none());
            }
        }
        assert_eq!(pool.nodes.len(), 6);
    }
}
