//! The echoes of one ping step.

use super::profile::PingPlan;
use crate::clock::Instant;
use std::time::Duration;

/// Echo requests sent and replies pending. Sequence numbers continue from one step to the next.
#[derive(Debug, Default)]
pub(crate) struct PingRun {
    plan: Option<PingPlan>,
    sent: u32,
    next_sequence: u16,
    next_at: Instant,
    /// Sequence number and time of each request without a reply, oldest first.
    outstanding: Vec<(u16, Instant)>,
    lost: u32,
}

impl PingRun {
    pub fn begin(&mut self, now: Instant, plan: PingPlan) {
        *self = Self { plan: Some(plan), next_at: now, next_sequence: self.next_sequence, ..Self::default() };
    }

    /// The time of the next request, or at which the oldest one counts as lost.
    pub fn next_timeout(&self) -> Option<Instant> {
        let plan = self.plan?;
        let sends = (self.sent < plan.count).then_some(self.next_at);
        let loses = self.outstanding.first().map(|(_, sent)| *sent + plan.timeout);
        sends.into_iter().chain(loses).min()
    }

    /// The sequence number of a request that is due.
    pub fn next_to_send(&mut self, now: Instant) -> Option<u16> {
        let plan = self.plan.filter(|plan| self.sent < plan.count && self.next_at <= now)?;
        let sequence = self.next_sequence;
        self.next_sequence = sequence.wrapping_add(1);
        self.sent += 1;
        self.next_at = now + plan.interval;
        self.outstanding.push((sequence, now));
        Some(sequence)
    }

    /// Round-trip time of a pending reply; `None` for a duplicate.
    pub fn take_reply(&mut self, now: Instant, sequence: u16) -> Option<Duration> {
        let at = self.outstanding.iter().position(|(outstanding, _)| *outstanding == sequence)?;
        let (_, sent) = self.outstanding.remove(at);
        Some(now - sent)
    }

    /// Number of lost replies, once all requests are sent and none is pending.
    pub fn lost(&mut self, now: Instant) -> Option<u32> {
        let plan = self.plan?;
        let late = self.outstanding.iter().take_while(|(_, sent)| *sent + plan.timeout <= now).count();
        self.outstanding.drain(..late);
        self.lost += late as u32;
        if self.sent < plan.count || !self.outstanding.is_empty() {
            return None;
        }
        self.plan = None;
        Some(self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    const PLAN: PingPlan = PingPlan {
        target: IpAddr::V4(Ipv4Addr::LOCALHOST),
        count: 2,
        interval: Duration::from_millis(100),
        size: 56,
        timeout: Duration::from_secs(1),
    };

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    #[test]
    fn requests_keep_their_distance_and_replies_are_taken_once() {
        let mut run = PingRun::default();
        run.begin(at(0), PLAN);
        assert_eq!((run.next_to_send(at(0)), run.next_to_send(at(0))), (Some(0), None));
        assert_eq!(run.next_timeout(), Some(at(100)));
        assert_eq!(run.take_reply(at(3), 0), Some(Duration::from_millis(3)));
        assert_eq!(run.take_reply(at(4), 0), None);
        assert_eq!(run.lost(at(4)), None, "there is one to send");
        assert_eq!(run.next_to_send(at(100)), Some(1));
        assert_eq!(run.take_reply(at(101), 1), Some(Duration::from_millis(1)));
        assert_eq!(run.lost(at(101)), Some(0));
        assert_eq!(run.next_timeout(), None);
    }

    #[test]
    fn a_reply_that_is_late_counts_as_lost() {
        let mut run = PingRun::default();
        run.begin(at(0), PingPlan { count: 1, ..PLAN });
        run.next_to_send(at(0));
        assert_eq!((run.next_timeout(), run.lost(at(999))), (Some(at(1000)), None));
        assert_eq!(run.lost(at(1000)), Some(1));
        assert_eq!(run.take_reply(at(1001), 0), None);
    }
}
