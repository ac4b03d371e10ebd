//! Packets of traced sessions, from workers to the control thread.

use super::{Now, Origin, Rule, Rules};
use crate::packet::Flow;
use pith_upf::contract::{Direction, Fate, Qfi, TracedPacket};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of pending packets; further packets are only counted.
const MAX_PENDING: usize = 4096;

/// How a packet was received.
#[derive(Debug, Clone, Copy)]
pub struct Ingress<'a> {
    pub origin: Origin,
    /// The packet's QFI, if it was received from a tunnel.
    pub qfi: Option<Qfi>,
    pub flow: &'a Flow,
}

/// Traced packets that the control thread has not read yet. A worker takes the lock only for packets of traced
/// sessions.
#[derive(Debug, Default)]
pub struct Tracer {
    waiting: Mutex<Vec<(Now, TracedPacket)>>,
    missed: AtomicU64,
}

impl Tracer {
    /// Records a packet, its rule if any, and its fate.
    pub fn note(&self, now: Now, rules: &Rules, rule: Option<&Rule>, ingress: Ingress<'_>, fate: Fate) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MAX_PENDING {
            self.missed.fetch_add(1, Relaxed);
            return;
        }
        waiting.push((now, describe(rules, rule, ingress, fate)));
    }

    /// Moves all packets into `packets`, oldest first; returns how many were lost for lack of room.
    pub fn drain_into(&self, now: Now, packets: &mut Vec<TracedPacket>) -> u64 {
        let mut waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.sort_by_key(|(at, _)| *at);
        let age = |at: Now| Duration::from_nanos(now.0.saturating_sub(at.0));
        packets.extend(waiting.into_iter().map(|(at, packet)| TracedPacket { age: age(at), ..packet }));
        self.missed.swap(0, Relaxed)
    }
}

fn describe(rules: &Rules, rule: Option<&Rule>, ingress: Ingress<'_>, fate: Fate) -> TracedPacket {
    let Ingress { origin, qfi, flow } = ingress;
    let by_origin = match origin {
        Origin::Tunnel(_) => Direction::Uplink,
        Origin::Network => Direction::Downlink,
    };
    TracedPacket {
        session: rules.state.id,
        age: Duration::ZERO,
        direction: rule.map_or(by_origin, Rule::direction),
        length: flow.length,
        qfi: qfi.or(rule.and_then(|rule| rule.qfi)),
        pdr: rule.map(|rule| rule.pdr),
        source: flow.source,
        destination: flow.destination,
        protocol: flow.protocol,
        ports: flow.ports,
        fate,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Pools, Sessions};
    use super::*;
    use crate::packet::samples::udp_v4;
    use pith_upf::contract::{DropReason, Session, SessionId, UeAddress};
    use pith_upf::qos::Enforcement;

    #[test]
    fn packets_are_read_in_order_and_packets_beyond_the_bound_are_counted() {
        let none = Session {
            id: SessionId(1),
            ue: UeAddress::default(),
            framed_routes: vec![],
            pdrs: vec![],
            fars: vec![],
            qers: vec![],
            urrs: vec![],
            former_qfis: vec![],
        };
        let rules = Sessions::new(Pools::on_heap(1), Enforcement::Shape).install(&none).rules;
        let tracer = Tracer::default();
        let flow = Flow::of(&udp_v4(b"x")).unwrap();
        let ingress = Ingress { origin: Origin::Network, qfi: None, flow: &flow };
        let note = |at| tracer.note(Now(at), &rules, None, ingress, Fate::Dropped(DropReason::NoRule));
        note(2_000);
        note(1_000);
        (0..MAX_PENDING).for_each(|_| note(3_000));
        let mut packets = Vec::new();
        assert_eq!(tracer.drain_into(Now(3_000), &mut packets), 2);
        let ages: Vec<_> = packets.iter().take(3).map(|packet| packet.age.as_nanos()).collect();
        assert_eq!((packets.len(), ages), (MAX_PENDING, vec![2_000, 1_000, 0]));
        assert_eq!((tracer.drain_into(Now(3_000), &mut packets), packets.len()), (0, MAX_PENDING));
    }
}
