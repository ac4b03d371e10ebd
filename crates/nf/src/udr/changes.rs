//! Changed subscribers: the UDR notifies the UDM, which notifies AMF and SMFs (Nudr_DM_Notify, TS 29.504 5.2.2.8; TS 23.502 4.5.1).
//!
//! ```text
//!  operator ─> database                   a row for each changed or deleted subscriber that has documents of NFs
//!  start, Order::NotifyChanges            the rows are read
//!         DataChangeNotification ─> UDM   204: AMF and SMFs have answered
//!         the same after [`AGAIN`]        then the row is deleted
//! ```
//!
//! The documents of a deleted subscriber, which name the AMF and the SMFs, stay as long as the row ([`crate::udm`] notifies the AMF).
//! The second notification is for an NF that read the data before the change and subscribed after it, or that was killed before it had stored
//! what it was notified of; it changes nothing otherwise. A notification that fails is repeated, with pauses that double. After the last attempt
//! the row stays until the next start, or until the subscriber is changed again.

use crate::kit::{
    Duration, Instant, Level, Outbox, StoreError, StoreRequest, StoreResponse, Tag, Target, Timer,
};
use pith_sbi::nudr_dr::{DataChangeNotification, DataChangeNotify};
use pith_sbi::{ApiRoot, Cause, NfType, Problem, Reply};
use pith_types::Supi;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The owner in the tags of its calls and database requests: no key of a request.
pub(super) const OWNER: u64 = u64::MAX - 3;

/// The step of the request for changed subscribers, and that of the deletion of rows. Calls have later ones.
const READ: u32 = 0;
const FORGET: u32 = 1;

/// Rows that one request reads.
const BATCH: u32 = 128;

/// Changes in memory at most; further ones stay in the database until there is room.
const MOST_KNOWN: usize = 1 << 16;

/// Notifications without an answer at once.
const MOST_PENDING: usize = 32;

/// Pause between the first and the second notification of a change.
pub(super) const AGAIN: Duration = Duration::from_secs(30);

/// Pause after the first failure, which doubles with each further one up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(512);

/// Failed attempts after which a change waits for the next start: some two hours.
const MOST_FAILURES: u32 = 24;

/// A changed subscriber.
#[derive(Debug, Clone)]
struct Change {
    /// The number of its row.
    number: u64,
    supi: Supi,
    /// Attempts that failed since the last one that did not.
    failures: u32,
    is_notified: bool,
}

/// Changes that the UDM is to be notified of.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Only one shard of a process notifies.
    is_enabled: bool,
    /// The row that was read last.
    last: u64,
    is_reading: bool,
    /// There may be further rows.
    has_more: bool,
    /// To be sent now.
    ready: VecDeque<Change>,
    /// To be sent at that time.
    due: BTreeMap<(Instant, u64), Change>,
    /// Sent, by the step of the call.
    pending: BTreeMap<u32, Change>,
    /// Rows to be deleted.
    done: Vec<u64>,
    /// The step of the last call.
    step: u32,
}

impl Changes {
    pub(super) const fn enable(&mut self) {
        self.is_enabled = true;
    }

    /// Rows were added, or the UDR has started.
    pub(super) fn read(&mut self, out: &mut Outbox) {
        self.has_more = self.is_enabled;
        self.read_more(out);
    }

    fn read_more(&mut self, out: &mut Outbox) {
        let known = self.ready.len() + self.due.len() + self.pending.len();
        if self.has_more && !self.is_reading && known < MOST_KNOWN {
            (self.is_reading, self.has_more) = (true, false);
            out.store(Tag::new(OWNER, READ), StoreRequest::Changed { after: self.last, limit: BATCH });
        }
    }

    /// The result of a database request.
    pub(super) fn stored(
        &mut self,
        (now, root): (Instant, &Arc<ApiRoot>),
        step: u32,
        result: Result<StoreResponse, StoreError>,
        out: &mut Outbox,
    ) {
        match (step, result) {
            (READ, Ok(StoreResponse::Changed(rows))) => {
                self.is_reading = false;
                self.has_more |= rows.len() >= BATCH as usize;
                self.last = rows.last().map_or(self.last, |(number, _)| *number);
                let change = |(number, supi)| Change { number, supi, failures: 0, is_notified: false };
                self.ready.extend(rows.into_iter().map(change));
                self.send(now, root, out);
            }
            (READ, result) => {
                let why = result.err().map(|error| error.to_string()).unwrap_or_default();
                out.log(Level::Warn, || format!("changed subscribers can't be read: {why}"));
                (self.is_reading, self.has_more) = (false, true);
                out.start(OWNER, Timer::ChangedSubscribers, AGAIN);
            }
            // A row that stays is notified again after the next start.
            (_, result) => {
                if let Err(error) = result {
                    out.log(Level::Warn, || format!("changed subscribers are notified again later: {error}"));
                }
            }
        }
    }

    /// The timer has expired.
    pub(super) fn timeout(&mut self, now: Instant, root: &Arc<ApiRoot>, out: &mut Outbox) {
        let later = self.due.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut self.due, later);
        self.ready.extend(due.into_values());
        self.send(now, root, out);
    }

    /// Sends what is ready, deletes rows, and reads further ones.
    fn send(&mut self, now: Instant, root: &Arc<ApiRoot>, out: &mut Outbox) {
        while self.pending.len() < MOST_PENDING {
            let Some(change) = self.ready.pop_front() else { break };
            self.step = self.step.wrapping_add(1).max(FORGET + 1);
            out.call(Tag::new(OWNER, self.step), Target::any(), notification(root, &change.supi).into());
            self.pending.insert(self.step, change);
        }
        if self.done.len() >= BATCH as usize || (self.pending.is_empty() && !self.done.is_empty()) {
            let numbers = std::mem::take(&mut self.done);
            out.store(Tag::new(OWNER, FORGET), StoreRequest::ForgetChanged { numbers });
        }
        self.read_more(out);
        if let Some(((when, _), _)) = self.due.first_key_value() {
            out.start(OWNER, Timer::ChangedSubscribers, when.since(now));
        }
    }

    /// The UDM's answer.
    pub(super) fn notified(
        &mut self,
        (now, root): (Instant, &Arc<ApiRoot>),
        step: u32,
        reply: Reply,
        out: &mut Outbox,
    ) {
        let Some(mut change) = self.pending.remove(&step) else { return };
        match reply {
            Err(problem) if !is_final(&problem) => {
                change.failures += 1;
                self.on_failure(now, change, &problem, out);
            }
            _ if change.is_notified => self.done.push(change.number),
            _ => {
                (change.is_notified, change.failures) = (true, 0);
                self.due.insert((now + AGAIN, change.number), change);
            }
        }
        self.send(now, root, out);
    }

    fn on_failure(&mut self, now: Instant, change: Change, problem: &Problem, out: &mut Outbox) {
        if change.failures >= MOST_FAILURES {
            let supi = change.supi.masked();
            return out.log(Level::Warn, || {
                format!("{supi}: the NFs that serve the subscriber do not take its changed data; they are notified at the next start: {problem}")
            });
        }
        let pause = FIRST_PAUSE * 2_u32.pow(change.failures.min(16) - 1);
        self.due.insert((now + pause.min(LONGEST_PAUSE), change.number), change);
    }
}

/// Whether the next attempt has the same result: the UDM does not take notifications of this UDR. One that finds no UDM, or whose UDM finds no
/// UDR, has another result as soon as the NRF knows them.
fn is_final(problem: &Problem) -> bool {
    matches!(problem.status, 400 | 404 | 405 | 501) && !problem.is(&Cause::NfDiscoveryFailure)
}

/// The notification for the UDM that the agent discovers: the root of its URI is replaced by that of the UDM.
fn notification(root: &Arc<ApiRoot>, supi: &Supi) -> DataChangeNotification {
    let uri = DataChangeNotification::callback_uri(root, &NfType::Udm, supi.as_str());
    let mut body = DataChangeNotify::default();
    body.ue_id = Some(supi.clone());
    DataChangeNotification { uri, body }
}
