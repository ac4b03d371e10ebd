//! The datagrams of one traffic step: a steady stream to an echo service (RFC 862).

use super::profile::TrafficPlan;
use crate::clock::Instant;
use std::time::Duration;

/// Octets of data in a probe: its number and its time of sending.
pub const PROBE: usize = 16;
/// Maximum number of probes sent at once after a late wake-up.
const BURST: u64 = 64;

/// Datagrams sent and returned. Numbers continue from one step to the next.
#[derive(Debug, Default)]
pub(crate) struct TrafficRun {
    plan: Option<TrafficPlan>,
    began: Instant,
    /// The number of the first probe of this step.
    first: u64,
    sent: u64,
    last_sent: Instant,
    /// One bit for each probe of this step, set when it is returned.
    came: Vec<u64>,
    received: u64,
}

/// State of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Running.
    Running,
    /// Over.
    Over { received: u64 },
}

impl TrafficRun {
    pub fn begin(&mut self, now: Instant, plan: TrafficPlan) {
        let first = self.first + self.sent;
        *self = Self { plan: Some(plan), began: now, first, last_sent: now, ..Self::default() };
    }

    /// The time of the next probe, or at which the last one counts as lost.
    pub fn next_timeout(&self) -> Option<Instant> {
        let plan = self.plan?;
        Some(if self.sent < plan.count() { self.due(plan, self.sent) } else { self.last_sent + plan.timeout })
    }

    fn due(&self, plan: TrafficPlan, number: u64) -> Instant {
        let nanos = u128::from(number) * plan.gap().as_nanos();
        self.began + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The numbers of the probes that are due.
    pub fn take_due(&mut self, now: Instant) -> std::ops::Range<u64> {
        let start = self.first + self.sent;
        let Some(plan) = self.plan else { return start..start };
        let end = self.sent + BURST;
        while self.sent < plan.count().min(end) && self.due(plan, self.sent) <= now {
            self.sent += 1;
            self.last_sent = now;
        }
        start..self.first + self.sent
    }

    /// Records a returned probe; false if it was not sent in this step or was returned before.
    pub fn take_echo(&mut self, number: u64) -> bool {
        let Some(at) = number.checked_sub(self.first).filter(|at| self.plan.is_some() && *at < self.sent)
        else {
            return false;
        };
        let (word, bit) = ((at / 64) as usize, 1 << (at % 64));
        if self.came.len() <= word {
            self.came.resize(word + 1, 0);
        }
        let Some(bits) = self.came.get_mut(word) else { return false };
        let is_new = *bits & bit == 0;
        *bits |= bit;
        self.received += u64::from(is_new);
        is_new
    }

    /// The state; `Over` is returned once.
    pub fn state(&mut self, now: Instant) -> Stream {
        let Some(plan) = self.plan else { return Stream::Running };
        let all_sent = self.sent == plan.count();
        let is_over = all_sent && (self.received == self.sent || self.last_sent + plan.timeout <= now);
        if !is_over {
            return Stream::Running;
        }
        self.plan = None;
        Stream::Over { received: self.received }
    }
}

/// Writes a probe's number and time into its data.
pub(crate) fn write_probe(data: &mut [u8], number: u64, now: Instant) {
    let head = number.to_be_bytes().into_iter().chain(now.as_nanos().to_be_bytes());
    data.iter_mut().zip(head).for_each(|(place, octet)| *place = octet);
}

/// The number of a returned probe, and its time of sending.
pub(crate) fn read_probe(data: &[u8]) -> Option<(u64, Instant)> {
    let (number, rest) = data.split_first_chunk()?;
    let sent = Instant::from_nanos(u64::from_be_bytes(*rest.first_chunk()?));
    Some((u64::from_be_bytes(*number), sent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddrV4};

    /// 125 octets each ms: 1 Mbit/s.
    const PLAN: TrafficPlan = TrafficPlan {
        target: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7),
        bits_per_second: 1_000_000,
        size: 125,
        duration: Duration::from_millis(10),
        timeout: Duration::from_secs(1),
    };

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    #[test]
    fn a_stream_keeps_its_rate_after_a_late_wake_up() {
        let mut run = TrafficRun::default();
        run.begin(at(5), PLAN);
        assert_eq!((run.take_due(at(5)), run.next_timeout()), (0..1, Some(at(6))));
        assert_eq!(run.take_due(at(9)), 1..5);
        assert_eq!(run.take_due(at(500)), 5..10, "ten in 10 ms, and no more");
        assert_eq!(run.next_timeout(), Some(at(1500)));
    }

    #[test]
    fn a_probe_counts_once_and_the_stream_ends_when_all_are_returned_or_late() {
        let mut run = TrafficRun::default();
        run.begin(at(0), PLAN);
        run.take_due(at(9));
        assert!(run.take_echo(3) && !run.take_echo(3) && !run.take_echo(10));
        assert_eq!(run.state(at(1008)), Stream::Running);
        assert_eq!(run.state(at(1009)), Stream::Over { received: 1 });
        run.begin(at(2000), PLAN);
        assert_eq!(run.take_due(at(2009)), 10..20);
        assert!(!run.take_echo(4), "of the step before");
        (10..20).for_each(|number| assert!(run.take_echo(number)));
        assert_eq!(run.state(at(2010)), Stream::Over { received: 10 });
    }

    #[test]
    fn a_probe_round_trips() {
        let mut data = [0xee; 20];
        write_probe(&mut data, 7, at(3));
        assert_eq!(read_probe(&data), Some((7, at(3))));
        assert_eq!(read_probe(&data[..PROBE - 1]), None);
    }
}
