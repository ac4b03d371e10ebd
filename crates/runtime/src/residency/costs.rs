//! What contexts cost by procedure: operations, requests, octets and time (`pith status`, `make bench-residency`).
//!
//! The engine counts totals. A write counts for the procedure that changed the context, a read for the procedure whose write of the
//! same document follows. Requests and time that several documents have in common are divided among them evenly, octets in proportion to their
//! size. What remains of the totals is of no procedure: contexts that are restored, or read and not changed.

use super::{DocumentKey, Statistics};
use foldhash::fast::FixedState;
use pith_nf::kit::ProcedureName;
use std::collections::{HashMap, VecDeque};

/// The costs of one procedure.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Documents replaced, updated or deleted.
    pub writes: f64,
    /// Documents read.
    pub reads: f64,
    /// System calls of a file, requests on the wire of Redis.
    pub requests: f64,
    /// Octets written, as stored.
    pub octets_written: f64,
    /// Octets read, as stored.
    pub octets_read: f64,
    /// Time in the engine, nanoseconds.
    pub ns: f64,
}

/// The costs of all procedures.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Costs([Cost; ProcedureName::ALL.len()]);

/// The costs of one shard, and what is not divided yet.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    costs: Costs,
    /// Totals that are divided, or in `read`.
    counted: Statistics,
    /// Writes that the engine accepted and has not counted yet, in order: procedure and size.
    written: VecDeque<(ProcedureName, u32)>,
    /// Reads of documents that were not written since.
    read: HashMap<DocumentKey, u32, FixedState>,
    /// Reads that are of no procedure yet.
    pool: Cost,
}

impl Cost {
    const fn is_zero(&self) -> bool {
        self.writes == 0.0 && self.reads == 0.0
    }

    fn add(&mut self, other: &Self) {
        self.writes += other.writes;
        self.reads += other.reads;
        self.requests += other.requests;
        self.octets_written += other.octets_written;
        self.octets_read += other.octets_read;
        self.ns += other.ns;
    }

    fn part(&self, part: f64) -> Self {
        Self {
            writes: self.writes * part,
            reads: self.reads * part,
            requests: self.requests * part,
            octets_written: self.octets_written * part,
            octets_read: self.octets_read * part,
            ns: self.ns * part,
        }
    }
}

impl Costs {
    /// The sum of two.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| own.add(other));
        self
    }

    /// The procedures that have cost anything.
    pub fn procedures(&self) -> impl Iterator<Item = (ProcedureName, Cost)> {
        let all = ProcedureName::ALL.into_iter().zip(self.0);
        all.filter(|(procedure, cost)| *procedure != ProcedureName::Other && !cost.is_zero())
    }

    fn of(&mut self, procedure: ProcedureName) -> Option<&mut Cost> {
        self.0.get_mut(procedure as usize)
    }
}

impl Accounts {
    /// The engine accepted a write.
    pub fn note_write(&mut self, procedure: ProcedureName, octets: usize) {
        self.written.push_back((procedure, u32::try_from(octets).unwrap_or(u32::MAX)));
    }

    /// A document was read.
    pub fn note_read(&mut self, document: DocumentKey) {
        *self.read.entry(document).or_default() += 1;
    }

    /// A procedure changed a document: it was read for that.
    pub fn note_change(&mut self, document: DocumentKey, procedure: ProcedureName) {
        if self.read.is_empty() {
            return;
        }
        let Some(reads) = self.read.remove(&document).filter(|_| self.pool.reads > 0.0) else { return };
        let part = (f64::from(reads) / self.pool.reads).min(1.0);
        let share = self.pool.part(part);
        self.pool = self.pool.part(1.0 - part);
        self.costs.of(procedure).into_iter().for_each(|cost| cost.add(&share));
    }

    /// A document that was read is no longer needed.
    pub fn forget(&mut self, document: DocumentKey) {
        self.read.remove(&document);
    }

    /// Divides what the engine has counted since the last call. `is_idle`: it has completed all writes.
    pub fn settle(&mut self, now: &Statistics, is_idle: bool) -> &Costs {
        let former = std::mem::replace(&mut self.counted, *now);
        let since = |of: fn(&Statistics) -> u64| of(now).saturating_sub(of(&former)) as f64;
        let reads = since(|it| it.reads);
        if reads > 0.0 {
            self.pool.add(&Cost {
                reads,
                requests: since(|it| it.read_requests),
                octets_read: since(|it| it.octets_read),
                ns: since(|it| it.read_ns),
                ..Cost::default()
            });
        }
        let writes = now.writes.saturating_sub(former.writes) as usize;
        if writes > 0 {
            let done = self.written.drain(..writes.min(self.written.len()));
            let done: Vec<_> = done.collect();
            let size: f64 = done.iter().map(|(_, size)| f64::from(*size)).sum();
            let count = done.len().max(1) as f64;
            let requests = since(|it| it.requests) - since(|it| it.read_requests);
            let (octets, ns) = (since(|it| it.octets_written), since(|it| it.write_ns));
            for (procedure, own) in done {
                let cost = Cost {
                    writes: 1.0,
                    requests: requests / count,
                    octets_written: octets * f64::from(own) / size.max(1.0),
                    ns: ns / count,
                    ..Cost::default()
                };
                self.costs.of(procedure).into_iter().for_each(|sum| sum.add(&cost));
            }
        }
        if is_idle {
            // Writes that were refused.
            self.written.clear();
        }
        &self.costs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::residency::DocumentKind;

    fn key(number: u32) -> DocumentKey {
        DocumentKey::new(DocumentKind::Amf, 1, number).unwrap()
    }

    fn cost(costs: &Costs, procedure: ProcedureName) -> Cost {
        costs.procedures().find(|(of, _)| *of == procedure).map(|(_, cost)| cost).unwrap_or_default()
    }

    #[test]
    fn a_batch_is_divided_among_the_procedures_of_its_documents() {
        let mut accounts = Accounts::default();
        accounts.note_write(ProcedureName::Registration, 300);
        accounts.note_write(ProcedureName::SessionEstablishment, 100);
        let totals =
            Statistics { writes: 2, requests: 1, octets_written: 800, write_ns: 20, ..Statistics::default() };
        let costs = *accounts.settle(&totals, true);
        let expected =
            Cost { writes: 1.0, requests: 0.5, octets_written: 600.0, ns: 10.0, ..Cost::default() };
        assert_eq!(cost(&costs, ProcedureName::Registration), expected);
        assert_eq!(cost(&costs, ProcedureName::SessionEstablishment).octets_written, 200.0);
    }

    #[test]
    fn a_read_counts_for_the_procedure_that_changes_the_document_next() {
        let mut accounts = Accounts::default();
        accounts.note_read(key(1));
        accounts.note_read(key(2));
        let mut totals =
            Statistics { reads: 2, requests: 2, read_requests: 2, octets_read: 100, ..Statistics::default() };
        accounts.settle(&totals, false);
        accounts.note_change(key(1), ProcedureName::ServiceRequest);
        accounts.note_write(ProcedureName::ServiceRequest, 50);
        (totals.writes, totals.requests) = (1, 3);
        let costs = *accounts.settle(&totals, true);
        let expected = Cost { writes: 1.0, reads: 1.0, requests: 2.0, octets_read: 50.0, ..Cost::default() };
        assert_eq!(cost(&costs, ProcedureName::ServiceRequest), expected);
        assert_eq!(costs.procedures().count(), 1, "the other read is of no procedure");
    }

    #[test]
    fn a_refused_write_counts_for_no_procedure() {
        let mut accounts = Accounts::default();
        accounts.note_write(ProcedureName::Registration, 300);
        accounts.settle(&Statistics { failures: 1, ..Statistics::default() }, true);
        accounts.note_write(ProcedureName::AnRelease, 300);
        let costs = *accounts.settle(&Statistics { writes: 1, failures: 1, ..Statistics::default() }, true);
        let names: Vec<_> = costs.procedures().map(|(procedure, _)| procedure).collect();
        assert_eq!(names, [ProcedureName::AnRelease]);
    }
}
