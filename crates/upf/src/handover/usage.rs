//! Usage: what a session's counters say when the state is written, and what the former datapath counted after that until its last
//! packet. The successor's counters begin with the first, and get the second added.

use std::time::Duration;

use super::HandoverError;
use super::export::Counted;
use super::record::{UrrRecord, UsageRecord};
use crate::contract::{Datapath, SessionId, SessionUsage, UrrId, UrrUsage, Volume};
use crate::session::PACKET_AGE_ERROR;
use crate::upf::Upf;

impl Upf {
    /// Writes what was counted since the state was written, a record for each session with any.
    pub fn counted_since(
        &self,
        counted: &Counted,
        now: Duration,
        datapath: &dyn Datapath,
        mut put: impl FnMut(Vec<u8>),
    ) -> Result<(), HandoverError> {
        for (id, before) in &counted.0 {
            let total = usage_record(*id, &datapath.usage(*id).unwrap_or_default(), now);
            let more = since(total, before);
            if more.last_packet.is_some() || !more.urrs.is_empty() {
                put(serde_json::to_vec(&more)?);
            }
        }
        Ok(())
    }

    /// Adds what the former datapath counted, and checks the session's usage at the next tick: a threshold may be reached.
    pub fn add_counted(
        &mut self,
        now: Duration,
        record: &[u8],
        datapath: &mut dyn Datapath,
    ) -> Result<(), HandoverError> {
        let record: UsageRecord = serde_json::from_slice(record)?;
        let id = SessionId(record.seid);
        if self.sessions.get(id).is_none() {
            return Err(HandoverError::Incomplete);
        }
        datapath.add_usage(id, &usage(&record, now));
        self.sessions.set_due(id, Some(now));
        Ok(())
    }
}

/// The part of `total` that is not in `before`.
fn since(total: UsageRecord, before: &UsageRecord) -> UsageRecord {
    let more = |urr: &UrrRecord| {
        let counted = before.urrs.iter().find(|counted| counted.id == urr.id);
        let volume = urr.volume.since(&counted.map(|counted| counted.volume).unwrap_or_default());
        (volume != Volume::default()).then(|| UrrRecord { volume, ..urr.clone() })
    };
    let urrs = total.urrs.iter().filter_map(more).collect();
    let known = before.last_packet.map(|known| known + PACKET_AGE_ERROR);
    UsageRecord { seid: total.seid, last_packet: total.last_packet.filter(|last| Some(*last) > known), urrs }
}

/// As a record: with times instead of ages.
pub fn usage_record(session: SessionId, usage: &SessionUsage, now: Duration) -> UsageRecord {
    let time = |age: Option<Duration>| age.map(|age| now.saturating_sub(age));
    let record = |urr: &UrrUsage| UrrRecord {
        id: urr.id.0,
        volume: urr.volume,
        first_packet: time(urr.first_packet),
        last_packet: time(urr.last_packet),
    };
    UsageRecord {
        seid: session.0,
        last_packet: time(usage.last_packet),
        urrs: usage.urrs.iter().map(record).collect(),
    }
}

/// The usage of a record, with ages.
pub fn usage(record: &UsageRecord, now: Duration) -> SessionUsage {
    let age = |time: Option<Duration>| time.map(|time| now.saturating_sub(time));
    let of = |urr: &UrrRecord| UrrUsage {
        id: UrrId(urr.id),
        volume: urr.volume,
        first_packet: age(urr.first_packet),
        last_packet: age(urr.last_packet),
    };
    SessionUsage { urrs: record.urrs.iter().map(of).collect(), last_packet: age(record.last_packet) }
}
