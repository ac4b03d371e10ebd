//! The run: one thread that waits for SCTP, GTP-U, TUN interfaces and time.
//!
//! ```text
//!   N2 (SCTP) ──┐                  ┌──> N2
//!   N3 (UDP)  ──┼── Ran::handle ───┼──> N3
//!   TUN, time ──┘                  └──> TUN, progress, report
//! ```

use super::build;
use super::cli::RunOptions;
use super::links::{DataNetwork, Incoming, LinkId, N2, N3, address_towards};
use super::progress::Progress;
use super::report::Report;
use super::tuns::Tuns;
use super::watch::Watch;
use anyhow::{Context, Result};
use pith_ran::gnb::UeKey;
use pith_ran::ran::{DelegatedPrefix, Input, Output};
use pith_ran::{Instant, Ran, gnb, ue};
use pith_runtime::signals::Signals;
use pith_runtime::wait::{Sleeper, Waker, waker};
use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time for a watched core to finish its work after NG Setup, and after the last UE.
pub(super) const REST: Duration = Duration::from_millis(50);

/// Maximum wait of a holding run before it checks the clock again.
const HOLD_TURN: Duration = Duration::from_secs(60);

/// Time for the associations to end gracefully.
const SHUTDOWN: Duration = Duration::from_secs(1);

/// Runs and reports; returns whether the run passed.
pub fn run(options: &RunOptions) -> Result<bool> {
    let stop = Stop::on_signal()?;
    let mut run = Run::new(options)?;
    run.connect_gnbs(&stop)?;
    let watched = run.run_watched(&stop)?;
    let services = run.run_services(&stop)?;
    let steps = run.run_steps(&stop)?;
    run.run_commands(&stop)?;
    run.await_end_markers(&stop)?;
    run.ran.count_unfinished();
    let mut report = Report::new(&run.ran, options.gnbs, options.packet.into(), run.elapsed());
    report.watched_cpu_ms = watched.map(|watched| watched.cpu.as_secs_f64() * 1e3);
    report.watched_rss_mb = watched.map(|watched| watched.resident_kb as f64 / 1024.0);
    report.services = services;
    report.steps = steps;
    run.progress.clear();
    publish(options, &report)?;
    run.write_timeline()?;
    if options.hold {
        run.hold(&stop)?;
    }
    run.close();
    Ok(report.passed)
}

fn publish(options: &RunOptions, report: &Report) -> Result<()> {
    let to_stdout = options.json.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if let Some(path) = options.json.as_ref().filter(|_| !to_stdout) {
        let json = serde_json::to_string_pretty(report)?;
        fs::write(path, json + "\n").with_context(|| format!("writing {}", path.display()))?;
    }
    match (to_stdout, options.quiet) {
        (true, _) => println!("{}", serde_json::to_string(report)?),
        (false, false) => print!("{}", report.table()),
        (false, true) => {}
    }
    Ok(())
}

/// Termination signals such as Ctrl-C, and the wait for them.
pub(super) struct Stop {
    asked: Arc<AtomicBool>,
    /// A thread has input for the run.
    woken: Arc<AtomicBool>,
    waker: Waker,
    sleeper: Sleeper,
}

/// Wakes a run from another thread.
pub(super) struct Alarm(Arc<AtomicBool>, Waker);

impl Alarm {
    pub(super) fn ring(&self) {
        self.0.store(true, Ordering::SeqCst);
        self.1.wake();
    }
}

impl Stop {
    fn on_signal() -> Result<Self> {
        let (waker, sleeper) = waker()?;
        let asked = Arc::new(AtomicBool::new(false));
        let (signals, alarm) = (Signals::hold()?, Alarm(Arc::clone(&asked), waker.clone()));
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            signals.wait();
            alarm.ring();
        })?;
        Ok(Self { asked, woken: Arc::new(AtomicBool::new(false)), waker, sleeper })
    }

    /// Wakes the run.
    pub(super) fn alarm(&self) -> Alarm {
        Alarm(Arc::clone(&self.woken), self.waker.clone())
    }

    /// Forgets the alarm: a wait for input looks for it before each sleep.
    fn take_wake_up(&self) {
        self.woken.store(false, Ordering::SeqCst);
    }

    fn is_busy(&self) -> bool {
        self.is_asked() || self.woken.load(Ordering::SeqCst)
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }
}

pub(super) struct Run<'a> {
    pub(super) options: &'a RunOptions,
    pub(super) ran: Ran,
    pub(super) n2: N2,
    n3: N3,
    network: DataNetwork,
    tuns: Tuns,
    progress: Progress,
    began: std::time::Instant,
    /// Start of the UEs, after NG Setup.
    ues_began: Option<Instant>,
    ues_ended: Option<Instant>,
    /// The run is over, and the time limit no longer applies.
    pub(super) is_holding: bool,
    pub(super) outputs: Vec<Output>,
}

/// What the watched process used for the UEs.
#[derive(Debug, Clone, Copy)]
struct Watched {
    cpu: Duration,
    resident_kb: u64,
}

impl<'a> Run<'a> {
    fn new(options: &'a RunOptions) -> Result<Self> {
        let n3 = match options.n3.or(options.local_n2) {
            Some(address) => address,
            None => address_towards(options.first_amf())?,
        };
        let began = std::time::Instant::now();
        let ran = build::ran(options, n3)?;
        let run = Self {
            options,
            ran,
            n2: N2::connect(options)?,
            n3: N3::bind(n3)?,
            network: DataNetwork::open()?,
            tuns: Tuns::new(options.tun.clone()),
            progress: Progress::new(options.quiet),
            began,
            ues_began: None,
            ues_ended: None,
            is_holding: false,
            outputs: Vec::new(),
        };
        if !options.quiet {
            let amfs: Vec<_> = options.amf.iter().map(ToString::to_string).collect();
            eprintln!("{} gNBs to {} by {}", options.gnbs, amfs.join(" and "), run.n2.description());
        }
        Ok(run)
    }

    pub(super) fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    pub(super) fn is_late(&self) -> bool {
        self.began.elapsed() >= Duration::from_secs(self.options.timeout)
    }

    pub(super) fn is_running(&self, stop: &Stop) -> bool {
        (self.is_holding || !self.is_late()) && !stop.is_asked() && self.n2.is_open()
    }

    fn connect_gnbs(&mut self, stop: &Stop) -> Result<()> {
        let all = self.options.endpoints() as usize;
        while self.ran.endpoints_up() < all && !self.is_late() && !stop.is_asked() && self.n2.is_open() {
            self.turn(stop, Duration::MAX)?;
        }
        Ok(())
    }

    /// Runs the UEs; returns what the watched process used, if there is one.
    fn run_watched(&mut self, stop: &Stop) -> Result<Option<Watched>> {
        let Some(process) = self.options.watch_cpu else { return self.run_ues(stop).map(|()| None) };
        self.drain_events(stop, REST)?;
        let watch = Watch::begin(process)?;
        self.run_ues(stop)?;
        self.drain_events(stop, REST)?;
        Ok(Some(Watched { cpu: watch.spent()?, resident_kb: watch.resident_kb()? }))
    }

    /// Processes events for that time.
    pub(super) fn drain_events(&mut self, stop: &Stop, time: Duration) -> Result<()> {
        let end = std::time::Instant::now() + time;
        while std::time::Instant::now() < end && !stop.is_asked() && self.n2.is_open() {
            self.turn(stop, end.saturating_duration_since(std::time::Instant::now()))?;
        }
        Ok(())
    }

    /// Waits for the End Markers of handovers that were completed last.
    fn await_end_markers(&mut self, stop: &Stop) -> Result<()> {
        while let Some(due) = self.ran.end_markers_due().filter(|_| !stop.is_asked() && self.n2.is_open()) {
            let now = self.now();
            if due <= now {
                self.ran.handle(now, Input::Timeout, &mut self.outputs);
                self.ran.check_end_markers();
                return self.act();
            }
            self.drain_events(stop, (due - now).min(REST))?;
        }
        Ok(())
    }

    fn run_ues(&mut self, stop: &Stop) -> Result<()> {
        if self.ran.gnbs_up() == 0 {
            self.ran.count_failure("no gNB completed NG Setup");
            return Ok(());
        }
        let now = self.now();
        self.ues_began = Some(now);
        self.ran.begin(now, &mut self.outputs);
        self.act()?;
        while !self.ran.tally().is_over() && !self.is_late() && !stop.is_asked() && self.n2.is_open() {
            self.turn(stop, Duration::MAX)?;
        }
        self.ues_ended = Some(self.now());
        Ok(())
    }

    fn elapsed(&self) -> Duration {
        self.ues_began.zip(self.ues_ended).map_or(Duration::ZERO, |(began, ended)| ended - began)
    }

    fn write_timeline(&self) -> Result<()> {
        let Some(path) = &self.options.timeline else { return Ok(()) };
        let start = SystemTime::now().duration_since(UNIX_EPOCH)?.saturating_sub(self.began.elapsed());
        let mut text = String::new();
        for (at, elapsed) in self.ran.statistics().timeline.iter().flatten() {
            let at = start + (*at - Instant::START);
            writeln!(text, "{:.6},{:.3}", at.as_secs_f64(), elapsed.as_secs_f64() * 1e3)?;
        }
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }

    /// Keeps the state, also after a failed run, so that it can be inspected.
    fn hold(&mut self, stop: &Stop) -> Result<()> {
        self.is_holding = true;
        if !self.options.quiet {
            eprintln!("holding; Ctrl-C ends");
        }
        self.progress.end();
        while !stop.is_asked() && self.n2.is_open() {
            self.turn(stop, Duration::MAX)?;
        }
        Ok(())
    }

    /// Waits for an event for at most `patience`, and handles it.
    pub(super) fn turn(&mut self, stop: &Stop, patience: Duration) -> Result<()> {
        let timeout = self.timeout().min(patience);
        let fds: Vec<_> = [self.n2.fd(), self.n3.fd()].into_iter().chain(self.tuns.fds()).collect();
        stop.sleeper.sleep(&fds, Some(timeout), || stop.is_busy());
        stop.take_wake_up();
        self.take_n2()?;
        self.take_packets()?;
        if self.ran.next_timeout().is_some_and(|at| at <= self.now()) {
            let now = self.now();
            self.ran.handle(now, Input::Timeout, &mut self.outputs);
            self.act()?;
        }
        self.progress.show(&self.ran, self.options.gnbs);
        Ok(())
    }

    /// The time until the next deadline.
    fn timeout(&self) -> Duration {
        let now = std::time::Instant::now();
        let sctp = self.n2.deadline().map(|at| at.saturating_duration_since(now));
        let ran = self.ran.next_timeout().map(|at| at - self.now());
        let progress = self.progress.due().map(|at| at.saturating_duration_since(now));
        let end = Duration::from_secs(self.options.timeout).saturating_sub(self.began.elapsed());
        let end = if self.is_holding { HOLD_TURN } else { end.max(Duration::from_millis(1)) };
        sctp.into_iter().chain(ran).chain(progress).chain([end]).min().unwrap_or(end)
    }

    fn take_n2(&mut self) -> Result<()> {
        let (now, reconnects) = (self.now(), self.options.reconnect);
        let (ran, outputs) = (&mut self.ran, &mut self.outputs);
        self.n2.process(|incoming| {
            let input = match incoming {
                Incoming::Up((gnb, association), outbound_streams) => {
                    Input::N2Up { gnb, association, outbound_streams }
                }
                Incoming::Pdu((gnb, association), stream, pdu) => Input::N2 { gnb, association, stream, pdu },
                Incoming::Down((gnb, association), reason) => {
                    if let Some(reason) = reason.filter(|_| !reconnects) {
                        ran.count_failure(&format!("N2 association: {reason}"));
                    }
                    Input::N2Down { gnb, association }
                }
            };
            ran.handle(now, input, outputs);
        });
        self.act()
    }

    fn take_packets(&mut self) -> Result<()> {
        let now = self.now();
        let (ran, outputs) = (&mut self.ran, &mut self.outputs);
        self.n3.receive(|from, datagram| ran.handle(now, Input::N3 { from, datagram }, outputs));
        self.tuns.read(|ue, session, packet| ran.handle(now, Input::Packet { ue, session, packet }, outputs));
        self.act()
    }

    /// Carries out the outputs of the radio network.
    pub(super) fn act(&mut self) -> Result<()> {
        let (mut outputs, mut failed) = (std::mem::take(&mut self.outputs), Vec::new());
        for output in outputs.drain(..) {
            match output {
                Output::N2 { gnb, association, stream, pdu } => self.n2.send((gnb, association), stream, pdu),
                Output::Associate { gnb, association, endpoint } => {
                    if let Err(error) = self.n2.associate((gnb, association), endpoint) {
                        failed
                            .push(((gnb, association), format!("N2 association with {endpoint}: {error:#}")));
                    }
                }
                Output::Disassociate { gnb, association } => self.n2.disassociate((gnb, association)),
                Output::N3 { to, datagram } => self.n3.send(to, &datagram),
                Output::FromNetwork { to, data } => self.network.send(to, &data),
                Output::GnbEvent { gnb, event } => self.tell(gnb, &event),
                Output::Packet { ue, packet, .. } => self.tuns.write(ue, &packet),
                Output::UeEvent { ue, event } => self.follow_session(ue, event)?,
                Output::Delegated { ue, session, prefix } => self.show_prefix(ue, session, &prefix),
            }
        }
        self.outputs = outputs;
        self.n2.flush();
        if failed.is_empty() { Ok(()) } else { self.lose(failed) }
    }

    /// Associations could not be begun: they are lost.
    fn lose(&mut self, failed: Vec<(LinkId, String)>) -> Result<()> {
        let now = self.now();
        for ((gnb, association), why) in failed {
            self.ran.count_failure(&why);
            self.ran.handle(now, Input::N2Down { gnb, association }, &mut self.outputs);
        }
        self.act()
    }

    /// Creates or removes the TUN interface when a session is established or released.
    fn follow_session(&mut self, ue: UeKey, event: ue::Event) -> Result<()> {
        match event {
            ue::Event::SessionEstablished(id) => {
                let session = self.ran.ue(ue).and_then(|ue| ue.sessions().find(|session| session.id == id));
                session.map_or(Ok(()), |session| self.tuns.open(ue, id, (session.ipv4, session.link_local())))
            }
            ue::Event::SessionReleased(_) => {
                self.tuns.close(ue);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn show_prefix(&mut self, ue: UeKey, session: u8, prefix: &DelegatedPrefix) {
        if !self.options.quiet {
            self.progress.clear();
            eprintln!("UE {}, session {session}: delegated prefix {prefix}", ue.0 + 1);
        }
    }

    fn tell(&mut self, gnb: usize, event: &gnb::Event) {
        let trouble = match event {
            gnb::Event::SetupRejected(cause) => format!("NG Setup rejected: {cause}"),
            gnb::Event::JoinRejected(cause) => format!("a further association is rejected: {cause}"),
            gnb::Event::SetupUnanswered if !self.options.reconnect => "NG Setup not answered".to_owned(),
            _ => return,
        };
        self.ran.count_failure(&trouble);
        if !self.options.quiet {
            self.progress.clear();
            eprintln!("gNB {}: {trouble}", gnb + 1);
        }
    }

    /// Ends the associations, so that the core detects the end at once.
    fn close(&mut self) {
        self.n2.shutdown();
        let end = std::time::Instant::now() + SHUTDOWN;
        while self.n2.is_open() && std::time::Instant::now() < end {
            let wait = Duration::from_millis(20);
            pith_runtime::wait::wait_readable(&[self.n2.fd()], Some(wait));
            self.n2.process(|_| {});
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cli::{Cli, Command};
    use super::*;
    use clap::Parser;

    /// AMF CONFIGURATION UPDATE names an endpoint to which this host has no association.
    #[test]
    fn an_association_that_cannot_be_begun_is_lost_and_the_run_goes_on() {
        let arguments = "pith-ran run --test-network --amf 127.77.0.5 --n3 127.77.0.8 --local-n2 127.77.0.8 --sctp udp:49899";
        let Command::Run(options) = Cli::try_parse_from(arguments.split(' ')).unwrap().command else {
            panic!("the command is `run`")
        };
        let mut run = Run::new(&options).unwrap();
        let endpoint = "[2001:db8::5]:38412".parse().unwrap();
        run.outputs.push(Output::Associate { gnb: 0, association: 1, endpoint });
        run.act().unwrap();
        let failures = &run.ran.statistics().failures;
        assert!(failures.iter().any(|(what, _)| what.contains("N2 association with [2001:db8::5]:38412")));
        assert!(run.n2.is_open(), "the first association goes on");
    }
}
