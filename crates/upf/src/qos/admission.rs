//! Admission control of guaranteed bit rates (GBR), within a session and for the whole UPF.

use crate::contract::{Direction, Qer, QerId, Rates, Session};

/// The guaranteed rate of a QER is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionRejection {
    /// The GBR exceeds the MBR of the same QER.
    AboveMaximum(QerId),
    /// The sum of this and other guaranteed rates exceeds the MBR of a QER without GBR (an AMBR) that the same PDRs reference.
    AboveAggregate(QerId),
    /// The sum of all guaranteed rates of the UPF would exceed the UPF's capacity.
    AboveCapacity(QerId),
}

impl AdmissionRejection {
    /// The rejected QER.
    pub const fn qer(self) -> QerId {
        let (Self::AboveMaximum(qer) | Self::AboveAggregate(qer) | Self::AboveCapacity(qer)) = self;
        qer
    }
}

const BOTH: [Direction; 2] = [Direction::Uplink, Direction::Downlink];

/// The sum of the guaranteed rates of a session's GBR QERs, after a check against the session's MBRs. A QER counts in a
/// direction only if a PDR of that direction references it.
pub fn guaranteed_rates(session: &Session) -> Result<Rates, AdmissionRejection> {
    for direction in BOTH {
        let exceeds_mbr =
            |qer: &&Qer| qer.mbr.is_some_and(|mbr| guaranteed(qer, direction) > mbr.of(direction));
        if let Some(qer) = session.qers.iter().find(exceeds_mbr) {
            return Err(AdmissionRejection::AboveMaximum(qer.id));
        }
        let aggregates = session.qers.iter().filter(|qer| qer.gbr.is_none());
        for aggregate in aggregates {
            check_aggregate(session, aggregate, direction)?;
        }
    }
    let sum = |direction| total(session, direction, |_| true);
    Ok(Rates { uplink: sum(Direction::Uplink), downlink: sum(Direction::Downlink) })
}

/// Checks the guaranteed rates of the PDRs that reference an aggregate QER against its MBR.
fn check_aggregate(
    session: &Session,
    aggregate: &Qer,
    direction: Direction,
) -> Result<(), AdmissionRejection> {
    let Some(maximum) = aggregate.mbr.map(|mbr| mbr.of(direction)) else { return Ok(()) };
    let references_aggregate = |qers: &[QerId]| qers.contains(&aggregate.id);
    if total(session, direction, references_aggregate) <= maximum {
        return Ok(());
    }
    let last = gbr_qers(session, direction, references_aggregate).last();
    last.map_or(Ok(()), |qer| Err(AdmissionRejection::AboveAggregate(qer.id)))
}

/// The GBR QERs that PDRs of the direction reference, if `selects` is true for the QERs of such a PDR.
fn gbr_qers(
    session: &Session,
    direction: Direction,
    selects: impl Fn(&[QerId]) -> bool,
) -> impl Iterator<Item = &Qer> {
    session.qers.iter().filter(move |qer| {
        let mut pdrs = session.pdrs.iter().filter(|pdr| pdr.source.direction() == direction);
        guaranteed(qer, direction) > 0 && pdrs.any(|pdr| pdr.qers.contains(&qer.id) && selects(&pdr.qers))
    })
}

/// The sum of the guaranteed rates of [`gbr_qers`].
fn total(session: &Session, direction: Direction, selects: impl Fn(&[QerId]) -> bool) -> u64 {
    gbr_qers(session, direction, selects).fold(0, |sum, qer| sum.saturating_add(guaranteed(qer, direction)))
}

fn guaranteed(qer: &Qer, direction: Direction) -> u64 {
    qer.gbr.map_or(0, |gbr| gbr.of(direction))
}

/// The guaranteed rates that a UPF has admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmittedRates {
    /// Limit of the sum; `None` without a limit.
    capacity: Option<Rates>,
    /// Sum over all sessions.
    admitted: Rates,
}

impl AdmittedRates {
    /// No admitted rates; their sum is limited by `capacity`, if that is known.
    pub const fn new(capacity: Option<Rates>) -> Self {
        Self { capacity, admitted: Rates { uplink: 0, downlink: 0 } }
    }

    /// Checks whether the rates `after` of a session can be admitted in place of `before`. A rate that is not higher is always
    /// admitted.
    pub fn check(&self, before: Rates, after: Rates, session: &Session) -> Result<(), AdmissionRejection> {
        let Some(capacity) = self.capacity else { return Ok(()) };
        let fits = |direction: Direction| {
            let (before, after) = (before.of(direction), after.of(direction));
            let others = self.admitted.of(direction).saturating_sub(before);
            after <= before || others.saturating_add(after) <= capacity.of(direction)
        };
        let Some(direction) = BOTH.into_iter().find(|direction| !fits(*direction)) else { return Ok(()) };
        let last = gbr_qers(session, direction, |_| true).last();
        last.map_or(Ok(()), |qer| Err(AdmissionRejection::AboveCapacity(qer.id)))
    }

    /// Replaces the rates `before` of a session by `after`.
    pub fn replace(&mut self, before: Rates, after: Rates) {
        let replaced = |sum: u64, before: u64, after: u64| sum.saturating_sub(before).saturating_add(after);
        self.admitted.uplink = replaced(self.admitted.uplink, before.uplink, after.uplink);
        self.admitted.downlink = replaced(self.admitted.downlink, before.downlink, after.downlink);
    }

    /// The sum of the admitted rates.
    pub const fn sum(&self) -> Rates {
        self.admitted
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

    /// A session with a downlink PDR for each (GBR, MBR). Each PDR references a GBR QER, and QER 100, which has the AMBR.
    fn session(ambr: u64, flows: &[(u64, u64)]) -> Session {
        let qer = |id, gbr, mbr| Qer { id: QerId(id), gates: Gates::OPEN, mbr, gbr, qfi: None, rqi: false };
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
    fn guaranteed_rates_are_summed_in_directions_with_a_pdr() {
        let rates = guaranteed_rates(&session(10, &[(2, 5), (4, 7)])).unwrap();
        assert_eq!(rates, Rates { uplink: 0, downlink: 6 }, "no uplink PDR references the QERs");
    }

    #[test]
    fn a_guaranteed_rate_above_the_mbr_or_the_ambr_is_rejected() {
        assert_eq!(
            guaranteed_rates(&session(10, &[(2, 5), (8, 7)])),
            Err(AdmissionRejection::AboveMaximum(QerId(2)))
        );
        assert_eq!(
            guaranteed_rates(&session(10, &[(5, 5), (6, 7)])),
            Err(AdmissionRejection::AboveAggregate(QerId(2)))
        );
    }

    #[test]
    fn the_sum_of_admitted_rates_stays_within_the_capacity() {
        let mut admitted = AdmittedRates::new(both(10));
        let (small, large) = (session(10, &[(4, 4)]), session(10, &[(7, 7)]));
        let [four, seven] = [&small, &large].map(|session| guaranteed_rates(session).unwrap());
        assert_eq!(admitted.check(NONE, four, &small), Ok(()));
        admitted.replace(NONE, four);
        assert_eq!(admitted.check(NONE, seven, &large), Err(AdmissionRejection::AboveCapacity(QerId(1))));
        assert_eq!(admitted.check(four, seven, &large), Ok(()), "replaces the rate of 4");
        admitted.replace(four, NONE);
        assert_eq!(admitted.check(NONE, seven, &large), Ok(()));
        assert_eq!(AdmittedRates::new(None).check(NONE, seven, &large), Ok(()), "no capacity limit");
    }
}
