//! Wake-up times: at most one entry for each gNB and UE.

use crate::clock::Instant;
use crate::gnb::UeKey;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// An owner of timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Entity {
    Gnb(usize),
    Ue(UeKey),
}

/// A heap of wake-up times. An entry that proves too early is reinserted with the later time, so
/// that restarting a timer does not touch the heap.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    heap: BinaryHeap<Reverse<(Instant, Entity)>>,
    /// The requested time, and the time of the entry in the heap.
    wanted: HashMap<Entity, (Option<Instant>, Instant)>,
}

impl Schedule {
    /// Sets or clears an entity's wake-up time.
    pub fn set_wake_up(&mut self, entity: Entity, at: Option<Instant>) {
        match (self.wanted.get_mut(&entity), at) {
            (Some((wanted, stands)), at) if at.is_none_or(|at| *stands <= at) => *wanted = at,
            (_, Some(at)) => {
                self.wanted.insert(entity, (Some(at), at));
                self.heap.push(Reverse((at, entity)));
            }
            (_, None) => {}
        }
    }

    /// The earliest time at which an entity may be due.
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes and returns an entity that is due by `now`.
    pub fn take_due(&mut self, now: Instant) -> Option<Entity> {
        while self.next().is_some_and(|at| at <= now) {
            let Reverse((at, entity)) = self.heap.pop()?;
            let Some((wanted, stands)) = self.wanted.get(&entity).copied() else { continue };
            if stands != at {
                continue;
            }
            self.wanted.remove(&entity);
            match wanted {
                Some(wanted) if wanted <= now => return Some(entity),
                later => self.set_wake_up(entity, later),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64) -> Instant {
        Instant::START + Duration::from_secs(seconds)
    }

    #[test]
    fn the_last_wake_up_time_counts() {
        let mut schedule = Schedule::default();
        let (gnb, ue) = (Entity::Gnb(0), Entity::Ue(UeKey(0)));
        schedule.set_wake_up(gnb, Some(at(5)));
        schedule.set_wake_up(gnb, Some(at(9)));
        schedule.set_wake_up(ue, Some(at(7)));
        schedule.set_wake_up(ue, Some(at(6)));
        assert_eq!(schedule.take_due(at(5)), None);
        assert_eq!(schedule.take_due(at(8)), Some(ue));
        assert_eq!(schedule.take_due(at(8)), None);
        assert_eq!(schedule.take_due(at(9)), Some(gnb));
        assert_eq!((schedule.take_due(at(99)), schedule.next()), (None, None));
    }

    #[test]
    fn a_cleared_wake_up_time_is_not_due() {
        let mut schedule = Schedule::default();
        schedule.set_wake_up(Entity::Gnb(0), Some(at(1)));
        schedule.set_wake_up(Entity::Gnb(0), None);
        assert_eq!(schedule.take_due(at(2)), None);
        schedule.set_wake_up(Entity::Gnb(0), Some(at(3)));
        assert_eq!(schedule.take_due(at(3)), Some(Entity::Gnb(0)));
    }
}
