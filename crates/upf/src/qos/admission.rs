//! Admission control of guaranteed rates, within a session and in the whole UPF.

use crate::contract::{Direction, Qer, QerId, Rates, Session};

/// Why a guaranteed rate is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The GBR exceeds the MBR of the same QER.
    AboveMaximum(QerId),
    /// With other guaranteed rates it exceeds the MBR of a QER without GBR that the same PDRs reference.
    AboveAggregate(QerId),
    /// With all guaranteed rates of the UPF it exceeds the UPF's limit.
    AboveCapacity(QerId),
}

impl Refusal {
    /// The rejected QER.
    pub const fn qer(self) -> QerId {
        let (Self::AboveMaximum(qer) | Self::AboveAggregate(qer) | Self::AboveCapacity(qer)) = self;
        qer
    }
}

const BOTH: [Direction; 2] = [Direction::Uplink, Direction::Downlink];

/// The guaranteed rates of a session's QERs, if they are consistent.
pub fn promised(session: &Session) -> Result<Rates, Refusal> {
    for direction in BOTH {
        let above = |qer: &&Qer| qer.mbr.is_some_and(|mbr| guaranteed(qer, direction) > mbr.of(direction));
        if let Some(qer) = session.qers.iter().find(above) {
            return Err(Refusal::AboveMaximum(qer.id));
        }
        let aggregates = session.qers.iter().filter(|qer| qer.gbr.is_none());
        aggregates.into_iter().try_for_each(|aggregate| check_aggregate(session, aggregate, direction))?;
    }
    let sum = |direction| total(session, direction, |_| true);
    Ok(Rates { uplink: sum(Direction::Uplink), downlink: sum(Direction::Downlink) })
}

fn check_aggregate(session: &Session, aggregate: &Qer, direction: Direction) -> Result<(), Refusal> {
    let Some(most) = aggregate.mbr.map(|mbr| mbr.of(direction)) else { return Ok(()) };
    let within = |qers: &[QerId]| qers.contains(&aggregate.id);
    if total(session, direction, within) <= most {
        return Ok(());
    }
    let last = named(session, direction, within).last();
    last.map_or(Ok(()), |qer| Err(Refusal::AboveAggregate(qer.id)))
}

/// GBR QERs of PDRs of a direction for which `wanted` is true.
fn named(
    session: &Session,
    direction: Direction,
    wanted: impl Fn(&[QerId]) -> bool,
) -> impl Iterator<Item = &Qer> {
    session.qers.iter().filter(move |qer| {
        let mut pdrs = session.pdrs.iter().filter(|pdr| pdr.source.direction() == direction);
        guaranteed(qer, direction) > 0 && pdrs.any(|pdr| pdr.qers.contains(&qer.id) && wanted(&pdr.qers))
    })
}

fn total(session: &Session, direction: Direction, wanted: impl Fn(&[QerId]) -> bool) -> u64 {
    named(session, direction, wanted).fold(0, |sum, qer| sum.saturating_add(guaranteed(qer, direction)))
}

fn guaranteed(qer: &Qer, direction: Direction) -> u64 {
    qer.gbr.map_or(0, |gbr| gbr.of(direction))
}

/// The guaranteed rates of a UPF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promises {
    capacity: Option<Rates>,
    given: Rates,
}

impl Promises {
    /// None guaranteed, up to `capacity`, if that is known.
    pub const fn new(capacity: Option<Rates>) -> Self {
        Self { capacity, given: Rates { uplink: 0, downlink: 0 } }
    }

    /// Checks whether `after` can be guaranteed in place of `before`. A lower rate always can.
    pub fn check(&self, before: Rates, after: Rates, session: &Session) -> Result<(), Refusal> {
        let Some(capacity) = self.capacity else { return Ok(()) };
        let fits = |direction: Direction| {
            let (before, after) = (before.of(direction), after.of(direction));
            let others = self.given.of(direction).saturating_sub(before);
            after <= before || others.saturating_add(after) <= capacity.of(direction)
        };
        let Some(direction) = BOTH.into_iter().find(|direction| !fits(*direction)) else { return Ok(()) };
        let last = named(session, direction, |_| true).last();
        last.map_or(Ok(()), |qer| Err(Refusal::AboveCapacity(qer.id)))
    }

    /// Replaces `before` by `after`.
    pub fn replace(&mut self, before: Rates, after: Rates) {
        let replaced =
            |given: u64, before: u64, after: u64| given.saturating_sub(before).saturating_add(after);
        self.given.uplink = replaced(self.given.uplink, before.uplink, after.uplink);
        self.given.downlink = replaced(self.given.downlink, before.downlink, after.downlink);
    }

    /// The sum of guaranteed rates.
    pub const fn given(&self) -> Rates {
        self.given
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::*;

    const NONE: Rates = Rates { uplink: 0, downlink: 0 };

    fn both(rate: u64) -> Option<Rates> {
        Some(Rates { uplink: rate, downlink: rate })
    }

    /// GBR flows of (GBR, MBR), whose downlink PDRs have QER 100, too, with an AMBR.
    fn session(ambr: u64, flows: &[(u64, u64)]) -> Session {
        let qer = |id, gbr, mbr| Qer { id: QerId(id), gates: Gates::OPEN, mbr, gbr, qfi: None };
        let pdr = |id: u16, qers| Pdr {
            id: PdrId(id),
            precedence: 1,
            source: Source::Network,
            filters: vec![],
            qfis: vec![],
            far: FarId(1),
            qers,
            urrs: vec![],
        };
        let mut qers: Vec<_> =
            (1..).zip(flows).map(|(id, (gbr, mbr))| qer(id, both(*gbr), both(*mbr))).collect();
        let pdrs = (1u16..).zip(flows).map(|(id, _)| pdr(id, vec![QerId(id.into()), QerId(100)])).collect();
        qers.push(qer(100, None, both(ambr)));
        Session { pdrs, qers, ..Session::new(SessionId(1)) }
    }

    #[test]
    fn promises_that_fit_are_summed_where_a_pdr_needs_them() {
        let rates = promised(&session(10, &[(2, 5), (4, 7)])).unwrap();
        assert_eq!(rates, Rates { uplink: 0, downlink: 6 }, "no uplink PDR names them");
    }

    #[test]
    fn a_guarantee_above_its_maximum_or_the_ambr_is_refused() {
        assert_eq!(promised(&session(10, &[(2, 5), (8, 7)])), Err(Refusal::AboveMaximum(QerId(2))));
        assert_eq!(promised(&session(10, &[(5, 5), (6, 7)])), Err(Refusal::AboveAggregate(QerId(2))));
    }

    #[test]
    fn guarantees_stay_within_the_capacity_and_are_freed() {
        let mut promises = Promises::new(both(10));
        let (small, large) = (session(10, &[(4, 4)]), session(10, &[(7, 7)]));
        let [four, seven] = [&small, &large].map(|session| promised(session).unwrap());
        assert_eq!(promises.check(NONE, four, &small), Ok(()));
        promises.replace(NONE, four);
        assert_eq!(promises.check(NONE, seven, &large), Err(Refusal::AboveCapacity(QerId(1))));
        assert_eq!(promises.check(four, seven, &large), Ok(()), "in place of the first");
        promises.replace(four, NONE);
        assert_eq!(promises.check(NONE, seven, &large), Ok(()));
        assert_eq!(Promises::new(None).check(NONE, seven, &large), Ok(()), "a capacity that is not known");
    }
}
