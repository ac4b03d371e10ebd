//! Bounds on every counter: the least and the most that the packets so far can have counted.

use super::cast::MEMBERS;
use super::oracle::{PossibleResult, Verdict};
use pith_datapath::UserPlane;
use pith_upf::contract::{Counters, Datapath, Direction, DropReason, Session, SessionId};

const N3_IN: usize = 0;
const N6_IN: usize = 1;
const N3_OUT: usize = 2;
const N6_OUT: usize = 3;
/// Dropped but never counted as received.
const UNCOUNTED: usize = 4;
const DROPPED: usize = 5;
const MEMBER: usize = DROPPED + DropReason::ALL.len();
const KEYS: usize = MEMBER + MEMBERS * 4;
/// Packets that the kernel itself sends to its TUN interface (multicast listener reports, router
/// solicitations).
const KERNELS_OWN: u64 = 100;
/// Bytes of the longest packet that the kernel generates or forwards.
const STRAY_LEN: u64 = 1500;

/// Packets of the kernel that may still be in transit.
const LATE: u64 = 64;

/// A value for each counter.
pub type Values = Vec<u64>;

#[derive(Debug)]
pub struct Ledger {
    low: Values,
    high: Values,
}

/// A counter outside its bounds.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    pub key: usize,
    pub value: u64,
    pub low: u64,
    pub high: u64,
}

impl Wrong {
    pub fn name(&self) -> String {
        let Self { key, value, low, high } = self;
        format!("{} is {value}, not within {low} to {high}", key_name(*key))
    }
}

fn key_name(key: usize) -> String {
    if key >= MEMBER {
        let what = ["uplink packets", "uplink bytes", "downlink packets", "downlink bytes"];
        return format!("session {}'s {}", (key - MEMBER) / 4 + 1, what[(key - MEMBER) % 4]);
    }
    match key {
        N3_IN => "n3_in".into(),
        N6_IN => "n6_in".into(),
        N3_OUT => "n3_out".into(),
        N6_OUT => "n6_out".into(),
        UNCOUNTED => "dropped more than came".into(),
        key => format!("dropped as {}", DropReason::ALL[key - DROPPED].name()),
    }
}

impl Ledger {
    pub fn new() -> Self {
        let mut ledger = Self { low: vec![0; KEYS], high: vec![0; KEYS] };
        ledger.high[N6_IN] += KERNELS_OWN;
        ledger.high[DROPPED + DropReason::UnknownUe as usize] += KERNELS_OWN;
        ledger
    }

    pub fn add(&mut self, verdict: &Verdict) {
        let tallies: Vec<_> = verdict.results.iter().map(tally).collect();
        match &tallies[..] {
            [only] => only.iter().for_each(|(key, amount)| {
                self.low[*key] += amount;
                self.high[*key] += amount;
            }),
            several => self.add_several(several),
        }
        if let Some((member, packets)) = verdict.stray {
            self.add_stray(member, packets);
        }
    }

    fn add_several(&mut self, tallies: &[Vec<(usize, u64)>]) {
        let mut keys: Vec<usize> = tallies.iter().flatten().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let of =
                |tally: &Vec<(usize, u64)>| tally.iter().filter(|(k, _)| *k == key).map(|(_, n)| n).sum();
            let amounts: Vec<u64> = tallies.iter().map(of).collect();
            self.low[key] += amounts.iter().min().unwrap_or(&0);
            self.high[key] += amounts.iter().max().unwrap_or(&0);
        }
    }

    fn add_stray(&mut self, member: usize, packets: u64) {
        let down = MEMBER + member * 4 + 2;
        [N6_IN, N3_OUT, down].iter().for_each(|key| self.high[*key] += packets);
        self.high[down + 1] += packets * STRAY_LEN;
        (DROPPED..MEMBER).for_each(|key| self.high[key] += packets);
    }

    /// As many sessions may get a Router Advertisement, as their downlink opens.
    pub fn permit_advertisements(&mut self, sessions: u64) {
        self.high[N3_OUT] += sessions;
        self.high[UNCOUNTED] += sessions;
        self.high[DROPPED + DropReason::RateExceeded as usize] += sessions;
        self.high[DROPPED + DropReason::GateClosed as usize] += sessions;
    }

    /// Counters above their upper bound.
    pub fn beyond(&self, values: &Values) -> Vec<Wrong> {
        self.wrong(values, |value, _, high| value > high)
    }

    /// Counters below their lower bound.
    pub fn missing(&self, values: &Values) -> Vec<Wrong> {
        self.wrong(values, |value, low, _| value < low)
    }

    fn wrong(&self, values: &Values, is_wrong: impl Fn(u64, u64, u64) -> bool) -> Vec<Wrong> {
        let bounds = self.low.iter().zip(&self.high).enumerate();
        let all = bounds.zip(values).map(|((key, (low, high)), value)| Wrong {
            key,
            value: *value,
            low: *low,
            high: *high,
        });
        all.filter(|wrong| is_wrong(wrong.value, wrong.low, wrong.high)).collect()
    }

    /// Takes the current counters as the lower bounds, once no packet is queued: later packets can hardly be
    /// earlier ones.
    pub fn tighten(&mut self, values: &Values) {
        for (key, (low, high)) in self.low.iter_mut().zip(&mut self.high).enumerate() {
            let late = if key >= MEMBER && key % 2 != MEMBER % 2 { LATE * STRAY_LEN } else { LATE };
            *low = (*low).max(values[key]);
            *high = (*high).min(values[key] + late);
        }
    }

    /// The counts since then.
    pub fn changes(before: &Values, after: &Values) -> Vec<String> {
        let changes = before.iter().zip(after).enumerate().filter(|(_, (before, after))| before != after);
        changes
            .map(|(key, (before, after))| format!("{} +{}", key_name(key), after.wrapping_sub(*before)))
            .collect()
    }

    /// Takes the current counters as exact, if the kernel lost packets.
    pub fn forgive(&mut self, values: &Values) {
        self.low.iter_mut().zip(values).for_each(|(low, value)| *low = (*low).min(*value));
    }
}

/// Whether a verdict involves a counter.
pub fn concerns(verdict: &Verdict, key: usize) -> bool {
    let stray = verdict.stray.is_some_and(|(member, _)| {
        let down = MEMBER + member * 4 + 2;
        key < MEMBER || key == down || key == down + 1
    });
    stray || verdict.results.iter().any(|result| tally(result).iter().any(|(own, _)| *own == key))
}

fn tally(result: &PossibleResult) -> Vec<(usize, u64)> {
    let PossibleResult { n3_in, n6_in, n3_out, n6_out, .. } = result;
    let mut tally = vec![(N3_IN, *n3_in), (N6_IN, *n6_in), (N3_OUT, *n3_out), (N6_OUT, *n6_out)];
    tally.retain(|(_, amount)| *amount > 0);
    if let Some(reason) = result.dropped {
        tally.push((DROPPED + reason as usize, 1));
    }
    if result.uncounted {
        tally.push((UNCOUNTED, 1));
    }
    for charge in &result.charges {
        let at = MEMBER + charge.member * 4 + if charge.direction == Direction::Uplink { 0 } else { 2 };
        tally.extend([(at, 1), (at + 1, charge.octets as u64)]);
    }
    tally
}

/// The counters of a datapath. `UNCOUNTED` is the number of packets dropped or sent beyond those received;
/// queued packets are not included.
pub fn values(upf: &UserPlane) -> (Values, Counters) {
    let counters = upf.counters();
    let mut values = vec![0; KEYS];
    values[N3_IN] = counters.n3_in.packets;
    values[N6_IN] = counters.n6_in.packets;
    values[N3_OUT] = counters.n3_out.packets;
    values[N6_OUT] = counters.n6_out.packets;
    counters.dropped.iter().for_each(|(reason, count)| values[DROPPED + *reason as usize] = *count);
    let dropped: u64 = values[DROPPED..MEMBER].iter().sum();
    let gone = values[N3_OUT] + values[N6_OUT] + dropped + counters.buffered;
    values[UNCOUNTED] = gone.wrapping_sub(values[N3_IN] + values[N6_IN]);
    for member in 0..MEMBERS {
        let Some(usage) = upf.usage(SessionId(member as u64 + 1)) else { continue };
        let volume = usage.urrs.first().map(|urr| urr.volume).unwrap_or_default();
        let own = [volume.uplink_packets, volume.uplink, volume.downlink_packets, volume.downlink];
        values[MEMBER + member * 4..][..4].copy_from_slice(&own);
    }
    (values, counters)
}

/// Adds the counters of a former datapath, without the usage of sessions, which its successor continues.
pub fn add(values: &mut Values, former: &Values) {
    values
        .iter_mut()
        .zip(former)
        .take(MEMBER)
        .for_each(|(value, former)| *value = value.wrapping_add(*former));
}

/// Zero counters.
pub fn none() -> Values {
    vec![0; KEYS]
}

/// Whether every received packet was sent, dropped by name or is queued, as far as these counters can tell:
/// packets never counted as received are between the bounds.
pub fn is_conserved(ledger: &Ledger, values: &Values) -> bool {
    let excess = values[UNCOUNTED];
    (ledger.low[UNCOUNTED]..=ledger.high[UNCOUNTED]).contains(&excess)
}

/// The bytes used by a session.
pub fn used(upf: &UserPlane, session: &Session) -> u64 {
    let usage = upf.usage(session.id);
    usage.and_then(|usage| Some(usage.urrs.first()?.volume.total())).unwrap_or(0)
}
