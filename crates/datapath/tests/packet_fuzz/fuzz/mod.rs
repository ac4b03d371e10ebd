//! A fuzzer of frames for a whole UPF: GTP-U and user packets of both IP versions and in both directions,
//! with options, fragments, extension headers, wrong lengths and checksums, and damaged octets, for sessions
//! of all kinds.
//!
//! ```text
//!   packet of a seed and a number ─▶ frames ─▶ wire ─▶ UPF ─▶ what comes out  ─▶ arrivals: each as it has to, no others
//!                    └─▶ oracle: a verdict ──────────────────▶ counters, usage ─▶ ledger: each within its bounds
//! ```
//!
//! Packets are sent in rounds, each with a valid packet in both directions of an undisturbed session. A round
//! ends when all expected packets were received, every counter is within its bounds, and every received
//! packet was sent, dropped by name or is queued.

mod arrivals;
mod case;
mod cast;
mod inner;
mod lasting;
mod ledger;
mod nat;
mod octets;
mod opening;
mod oracle;
mod reader;
mod stage;
mod translation;
mod tunnel;
mod wire;

use crate::support::cpumap_time;
use arrivals::Arrivals;
use case::Case;
use cast::{Cast, Manner, Member};
use ledger::{Ledger, Values};
use nat::Nat;
use octets::hex;
use oracle::Side;
use pith_upf::contract::{Counters, Datapath};
pub use stage::PathUnderTest;
use stage::Stage;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Packets of a round: fewer than a veth's ring of 256.
const ROUND: u64 = 128;
/// Packets between two controls of the same session.
const CONTROL_EVERY: usize = 32;
/// Packets after which all sessions change their kind.
const EPOCH: u64 = 256 * ROUND;
/// Time without counter changes before rules change: a packet in transit would be handled by the new rules.
const QUIET: Duration = Duration::from_millis(100);
/// Longer than a round takes on a busy machine, unless it stalls.
const PATIENCE: Duration = Duration::from_secs(20);
/// Packets listed in a failure report.
const SUSPECTS: usize = 12;

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    pub under_test: PathUnderTest,
    pub seed: u64,
    /// The first packet; rounded down to the start of its round.
    pub from: u64,
    pub packets: u64,
    /// Packets between two live upgrades; 0: there are none.
    pub upgrade_every: u64,
}

/// The result of a run.
#[derive(Debug)]
pub struct Report {
    pub packets: u64,
    pub time: Duration,
    /// Frames lost by the fuzzer's own kernel.
    pub lost: u64,
    pub counters: Counters,
    /// Live upgrades.
    pub upgrades: u64,
}

/// Runs the fuzzer in a network namespace of the calling thread's own. `None` without the privilege to create
/// one; an error states the fault, the packet, and the command to repeat it.
pub fn run(order: Order, tell: impl FnMut(&Report)) -> Option<Result<Report, String>> {
    let stage = Stage::set(order.under_test)?;
    Some(Fuzzer::new(order, stage).run(tell))
}

struct Fuzzer {
    order: Order,
    stage: Stage,
    links: [[u8; 6]; 2],
    arrivals: Arrivals,
    ledger: Ledger,
    epoch: Option<u64>,
    /// Packets lost by kernels at the last check.
    lost: u64,
    forgiven: u64,
    /// The counters after the last round.
    before: Values,
    upgrades: u64,
    /// The packet from which on the next upgrade is due.
    next_upgrade: u64,
}

impl Fuzzer {
    fn new(order: Order, mut stage: Stage) -> Self {
        let links = [Side::Radio, Side::Network].map(|side| stage.link(side));
        let lost = stage.lost_by_kernel();
        let (arrivals, ledger) = (Arrivals::default(), Ledger::new());
        Self {
            order,
            stage,
            links,
            arrivals,
            ledger,
            epoch: None,
            lost,
            forgiven: 0,
            before: ledger::none(),
            upgrades: 0,
            next_upgrade: order.from + order.upgrade_every,
        }
    }

    fn run(mut self, mut tell: impl FnMut(&Report)) -> Result<Report, String> {
        let (begin, first) = (Instant::now(), self.order.from / ROUND);
        let rounds = self.order.packets.div_ceil(ROUND);
        for round in first..first + rounds {
            self.round(round * ROUND)?;
            let packets = (round + 1 - first) * ROUND;
            if packets.is_multiple_of(EPOCH * 4) || round + 1 == first + rounds {
                tell(&self.report(packets, begin.elapsed()));
            }
        }
        if self.order.under_test == PathUnderTest::Spread && cpumap_time(1) == Duration::ZERO {
            return Err("no packet was given to another CPU".into());
        }
        Ok(self.report(rounds * ROUND, begin.elapsed()))
    }

    fn report(&self, packets: u64, time: Duration) -> Report {
        Report {
            packets,
            time,
            lost: self.forgiven,
            counters: self.stage.upf.counters(),
            upgrades: self.upgrades,
        }
    }

    /// Sends a round and waits for all its results.
    fn round(&mut self, first: u64) -> Result<(), String> {
        if self.epoch != Some(first / EPOCH) {
            self.change(first)?;
        }
        self.arrivals.begin_round();
        let cast = &self.stage.cast;
        let mut cases: Vec<_> = (first..first + ROUND)
            .map(|number| Case::of(self.order.seed, number, cast, &self.links))
            .collect();
        // Among the others, so that an overtaken one is noticed.
        for at in (0..ROUND).rev().step_by(CONTROL_EVERY) {
            let controls = Case::controls(first + at, cast, &self.links);
            let at = at as usize;
            drop(cases.splice(at..at, controls));
        }
        self.send(cases, first)
    }

    fn send(&mut self, cases: Vec<Case>, first: u64) -> Result<(), String> {
        for case in &cases {
            self.ledger.add(&case.verdict);
            self.arrivals.expect(&case.verdict, case.number);
        }
        let (one_half, other_half) = cases.split_at(cases.len() / 2);
        self.send_frames(one_half);
        self.upgrade_if_due(first);
        self.send_frames(other_half);
        self.stage.upf.poll_events(&mut Vec::new());
        self.settle(first, &cases)
    }

    fn send_frames(&self, cases: &[Case]) {
        for case in cases {
            case.frames.iter().for_each(|frame| self.stage.send(case.from, frame));
        }
    }

    /// Amid a round, while packets wait everywhere.
    fn upgrade_if_due(&mut self, first: u64) {
        if self.order.upgrade_every == 0 || first < self.next_upgrade {
            return;
        }
        // The successor advertises itself to UEs again.
        self.ledger.permit_advertisements(self.stage.cast.members.len() as u64);
        self.stage.upgrade();
        self.upgrades += 1;
        self.next_upgrade = first + self.order.upgrade_every;
    }

    /// With NAT, every connection begins, or lasts on, while all sessions are open: its public end is known then.
    fn open_connections(&mut self, first: u64) -> Result<(), String> {
        if let Some(nat) = &mut self.stage.cast.nat {
            nat.compare().map_err(|wrong| self.failure(first, &[], &wrong, |_| false))?;
        }
        let cast = self.stage.cast.clone();
        let Some(begun) = &cast.nat else { return Ok(()) };
        self.stage.cast = cast.opened();
        self.install();
        for step in lasting::Step::ALL {
            for part in 0..lasting::CONNECTIONS {
                let cast = &self.stage.cast;
                let cases = opening::opening(first, step, part, cast, begun, &self.links);
                self.send(cases, first)?;
            }
        }
        self.stage.cast = Cast { nat: self.stage.cast.nat.take(), ..cast };
        Ok(())
    }

    fn settle(&mut self, first: u64, cases: &[Case]) -> Result<(), String> {
        let mut begin = Instant::now();
        loop {
            self.receive(first)?;
            let values = self.stage.values();
            let conserved = ledger::is_conserved(&self.ledger, &values);
            if self.arrivals.outstanding() == 0 && conserved && self.ledger.missing(&values).is_empty() {
                self.check(first, cases, &values)?;
                self.before = values;
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                self.forgive(first, cases, &values)?;
                begin = Instant::now();
            }
            self.stage.wait(Duration::from_millis(1));
        }
    }

    fn receive(&mut self, first: u64) -> Result<(), String> {
        let (stage, arrivals) = (&mut self.stage, &mut self.arrivals);
        let mut wrong = None;
        let mut nat = stage.cast.nat.take();
        stage.receive(|side, octets| {
            if let Err(why) = take(arrivals, nat.as_mut(), side, octets) {
                wrong.get_or_insert_with(|| (format!("{why}: at the {side:?} arrived"), octets.to_vec()));
            }
        });
        stage.cast.nat = nat;
        let Some((what, octets)) = wrong else { return Ok(()) };
        // A packet contains its number; it may be of an earlier round.
        let numbers = octets.windows(8).map(|window| window.try_into().map_or(0, u64::from_be_bytes));
        let recent = first.saturating_sub(EPOCH)..first + ROUND;
        let made = |number| {
            Case::of(
                self.order.seed,
                number,
                &Cast::of(number / EPOCH, self.stage.cast.nat.clone()),
                &self.links,
            )
        };
        let mut cases: Vec<_> = numbers.filter(|number| recent.contains(number)).map(made).collect();
        if cases.is_empty() {
            // A remainder may be too short to contain the number.
            let like = |case: &Case| case.frames.iter().any(|frame| has_part_of(frame, &octets));
            cases = (first..first + ROUND).map(made).filter(like).collect();
        }
        Err(self.failure(first, &cases, &format!("{what} {}", hex(&octets)), |_| true))
    }

    fn check(&self, first: u64, cases: &[Case], values: &Values) -> Result<(), String> {
        match self.ledger.beyond(values).first() {
            None => Ok(()),
            Some(wrong) => {
                let concerned = |case: &Case| ledger::concerns(&case.verdict, wrong.key);
                Err(self.failure(first, cases, &wrong.name(), concerned))
            }
        }
    }

    /// After that time a missing result is a fault, unless a kernel reports lost packets.
    fn forgive(&mut self, first: u64, cases: &[Case], values: &Values) -> Result<(), String> {
        let lost = self.stage.lost_by_kernel();
        if lost > self.lost {
            eprintln!("{} frames were lost by the kernel about packet {first}", lost - self.lost);
            self.forgiven += lost - self.lost;
            self.lost = lost;
            self.arrivals.forgive();
            self.ledger.forgive(values);
            return Ok(());
        }
        let missing = self.arrivals.missing();
        let wrong = self.ledger.missing(values);
        let names: Vec<_> = wrong.iter().map(ledger::Wrong::name).collect();
        let what = format!(
            "a stall: packets {missing:?} did not come out; {names:?}; conserved: {}; in this round {:?}",
            ledger::is_conserved(&self.ledger, values),
            Ledger::changes(&self.before, values)
        );
        let concerned = |case: &Case| {
            missing.contains(&case.number)
                || wrong.iter().any(|wrong| ledger::concerns(&case.verdict, wrong.key))
        };
        Err(self.failure(first, cases, &what, concerned))
    }

    fn failure(&self, first: u64, cases: &[Case], what: &str, concerned: impl Fn(&Case) -> bool) -> String {
        let Order { under_test, seed, upgrade_every, .. } = self.order;
        let suspects: Vec<_> = cases.iter().filter(|case| concerned(case)).map(Case::text).collect();
        let told = suspects.iter().take(SUSPECTS).cloned().collect::<Vec<_>>().join("\n");
        let name = under_test.name();
        format!(
            "{what}\n{told}\n({} of the round concern it)\nsee it again: \
             make fuzz-user ARGS=\"{name} --seed {seed} --from {first} --packets {ROUND}\"{}",
            suspects.len(),
            if upgrade_every > 0 {
                format!(" (after {} live upgrades)", self.upgrades)
            } else {
                String::new()
            }
        )
    }

    /// Changes the rules of all sessions once no packet is queued: of those that hold packets, some release
    /// them and the others drop them.
    fn change(&mut self, first: u64) -> Result<(), String> {
        let begin = Instant::now();
        self.release();
        let mut quiet = (Instant::now(), self.stage.upf.counters());
        while quiet.1.buffered > 0 || quiet.0.elapsed() < QUIET {
            self.receive(first)?;
            let counters = self.stage.upf.counters();
            if counters != quiet.1 {
                quiet = (Instant::now(), counters);
            }
            if begin.elapsed() > PATIENCE {
                let what = format!("packets wait for ever: {:?}", self.stage.upf.counters());
                return Err(self.failure(first, &[], &what, |_| false));
            }
            self.stage.wait(Duration::from_millis(1));
            // The kernel may have delivered more.
            self.release();
        }
        self.ledger.tighten(&self.stage.values());
        self.stage.cast = Cast::of(first / EPOCH, self.stage.cast.nat.take());
        self.open_connections(first)?;
        self.install();
        self.epoch = Some(first / EPOCH);
        Ok(())
    }

    fn install(&mut self) {
        self.ledger.permit_advertisements(self.stage.cast.members.len() as u64);
        let upf = &self.stage.upf;
        let session = |member: &Member| member.session(ledger::used(upf, &member.session(0)));
        let sessions = self.stage.cast.members.iter().map(session).collect();
        self.stage.install(sessions);
    }
}

/// Compares what arrived, after undoing its translation, if any.
fn take(
    arrivals: &mut Arrivals,
    nat: Option<&mut Nat>,
    side: Side,
    octets: &[u8],
) -> Result<(), &'static str> {
    let is_v4 = octets.len() >= 20 && octets[0] >> 4 == 4;
    let Some(nat) = nat.filter(|_| side == Side::Network && is_v4) else {
        return arrivals.take(side, octets);
    };
    match arrivals.restore(nat, octets)? {
        Some(restored) => arrivals.take(side, &restored),
        None => arrivals.take_untranslated(octets),
    }
}

/// Whether two frames have a run of octets in common that is too long for chance.
fn has_part_of(frame: &[u8], other: &[u8]) -> bool {
    let telling = |run: &&[u8]| run.iter().collect::<std::collections::BTreeSet<_>>().len() > 6;
    other.windows(8).filter(telling).any(|run| frame.windows(8).any(|window| window == run))
}

impl Fuzzer {
    fn release(&mut self) {
        for member in self.stage.cast.members.iter().filter(|member| member.manner == Manner::Idle) {
            if member.index % 2 == 0 {
                let open = Member { manner: Manner::Open, ..member.clone() };
                self.stage.upf.install(Arc::new(open.session(0)));
            } else {
                self.stage.upf.discard_buffered(member.id());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(count: u64) -> (Cast, Vec<Case>) {
        let cast = Cast::of(0, None);
        let links = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 3]];
        let cases = (0..count).map(|number| Case::of(1, number, &cast, &links)).collect();
        (cast, cases)
    }

    #[test]
    fn most_packets_have_one_fate_and_all_fates_occur() {
        let (_, cases) = cases(20_000);
        let sure = cases.iter().filter(|case| case.verdict.results.len() == 1).count();
        assert!(sure > 12_000, "{sure}");
        let certain: Vec<_> = cases.iter().filter_map(|case| case.verdict.output()).collect();
        for side in [Side::Radio, Side::Network] {
            assert!(certain.iter().filter(|output| output.side == side).count() > 1500);
        }
        use pith_upf::contract::DropReason::*;
        for reason in [
            MalformedGtpu,
            UnsupportedGtpu,
            UnknownTeid,
            MalformedInner,
            SpoofedSource,
            NoRule,
            UnknownQfi,
            RuleDrop,
            GateClosed,
            TtlExceeded,
            ClosedDestination,
            UnknownPeer,
            LostCongestion,
        ] {
            let surely =
                |case: &&Case| matches!(&case.verdict.results[..], [only] if only.dropped == Some(reason));
            assert!(cases.iter().any(|case| surely(&case)), "{reason:?}");
        }
    }

    #[test]
    fn a_packet_that_comes_changed_or_twice_or_not_at_all_is_noticed() {
        let (_, cases) = cases(500);
        for case in &cases {
            let Some(output) = case.verdict.output() else { continue };
            let mut arrivals = Arrivals::default();
            arrivals.begin_round();
            arrivals.expect(&case.verdict, case.number);
            assert_eq!(arrivals.missing(), [case.number]);
            let mut changed = output.octets.clone();
            *changed.last_mut().unwrap() ^= 1;
            assert!(arrivals.take(output.side, &changed).is_err(), "{}", case.text());
            assert!(arrivals.take(output.side, &output.octets).is_ok());
            assert!(arrivals.missing().is_empty());
            assert!(arrivals.take(output.side, &output.octets).is_err());
        }
    }

    /// A control of a session as NAT sends it.
    fn translated(case: &Case, port: u16) -> Vec<u8> {
        let mut packet = case.verdict.output().unwrap().octets.clone();
        let places = translation::places(&packet).unwrap();
        translation::translate(&mut packet, places, translation::SOURCE, crate::support::UPF_N6, port);
        packet
    }

    #[test]
    fn nat_that_leaks_damages_or_mixes_connections_is_noticed() {
        let (mut cast, mut arrivals) = (Cast::of(0, Some(Nat::default())), Arrivals::default());
        let links = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 3]];
        arrivals.begin_round();
        let controls: Vec<_> = (0..2).flat_map(|number| Case::controls(number, &cast, &links)).collect();
        controls.iter().for_each(|case| arrivals.expect(&case.verdict, case.number));
        let ups: Vec<_> = controls.iter().filter(|case| case.from == Side::Radio).collect();
        let [one, other, one_later, _] = ups[..] else { panic!("{}", ups.len()) };
        let nat = cast.nat.as_mut().unwrap();
        let mut arrives = |packet: &[u8]| take(&mut arrivals, Some(&mut *nat), Side::Network, packet);
        let leaked = &one.verdict.output().unwrap().octets;
        assert!(arrives(leaked).is_err());
        let mut damaged = translated(one, 40_000);
        *damaged.last_mut().unwrap() ^= 1;
        assert!(arrives(&damaged).is_err());
        assert_eq!(arrives(&translated(one, 40_000)), Ok(()));
        assert!(arrives(&translated(one, 40_000)).is_err(), "twice");
        assert!(arrives(&translated(other, 40_000)).is_err(), "two connections from one port");
        assert!(arrives(&translated(one_later, 40_001)).is_err(), "one connection from two ports");
    }

    #[test]
    fn a_count_too_high_or_too_low_is_noticed() {
        let (_, cases) = cases(500);
        let mut ledger = Ledger::new();
        let none = vec![0; 1000];
        assert!(ledger.missing(&none).is_empty());
        cases.iter().for_each(|case| ledger.add(&case.verdict));
        let missing = ledger.missing(&none);
        assert!(missing.len() > 20);
        let mut many = none;
        missing.iter().for_each(|wrong| many[wrong.key] = wrong.high);
        assert!(ledger.missing(&many).is_empty() && ledger.beyond(&many).is_empty());
        many[missing[0].key] += 1;
        assert_eq!(ledger.beyond(&many)[0].key, missing[0].key);
    }
}
