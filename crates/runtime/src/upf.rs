//! The UPF of a process: a thread for UPF-C, which runs the pure [`Upf`], and a datapath with its own
//! workers. Operators' queries are answered between two batches of PFCP messages.

mod busy;
mod handover;
mod inspect;
mod n4;
mod question;
mod succession;
mod trace;
mod warnings;

pub use handover::{Predecessor, Settings, Succeedable, TakeOverError, settings, socket_beside};
pub use question::{Name, Page, Question, SeidText, TeidText};
pub use trace::TraceRequest;

use crate::api::ApiError;
use crate::clock::{Clock, thread_cpu_time};
use crate::gate::Gate;
use crate::wait::{Sleeper, Waker, waker};
use busy::Busy;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use handover::{Estate, Prepared, Successors, now};
use n4::{Batch, N4};
use pith_datapath::{DatapathConfig, Host, PathReport, StartError, UserPlane, monotonic};
use pith_upf::contract::{Datapath, Event};
use pith_upf::{Effect, HostAddresses, Input, Severity, Upf};
use serde_json::Value;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use succession::Succession;
use tokio::sync::oneshot;
use trace::Traces;
use warnings::Warnings;

/// Longest and shortest interval between checks of UPF-C's timers.
const TICK: Duration = Duration::from_millis(250);
const SHORTEST_TICK: Duration = Duration::from_millis(5);

/// Time within which SMFs release their sessions at a graceful shutdown.
const GRACE: Duration = Duration::from_secs(1);

/// The reason why the UPF cannot start.
#[derive(Debug, thiserror::Error)]
pub enum UpfError {
    /// The datapath cannot be set up.
    #[error("user plane: {0}; check the section 'upf' of the configuration")]
    Datapath(#[from] StartError),
    /// N4 cannot be served.
    #[error("user plane: {0}")]
    Io(#[from] io::Error),
    /// A running UPF cannot be taken over.
    #[error(transparent)]
    TakeOver(#[from] TakeOverError),
}

/// The answer to a query.
pub type Answer = Result<Value, ApiError>;

type Asked = (Question, oneshot::Sender<Answer>);

/// Sends queries to a running UPF, from any thread.
#[derive(Clone)]
pub struct UpfHandle {
    inbox: Sender<Asked>,
    waker: Waker,
    report: Arc<PathReport>,
}

impl UpfHandle {
    /// Which path packets take, and why.
    pub fn path_report(&self) -> &PathReport {
        &self.report
    }

    /// Sends a query; the answer follows, or the channel closes if the UPF has ended.
    pub fn query(&self, question: Question) -> oneshot::Receiver<Answer> {
        let (reply, answer) = oneshot::channel();
        // A UPF that has ended drops the query.
        let _ = self.inbox.send((question, reply));
        self.waker.wake();
        answer
    }
}

/// A running UPF.
pub struct UpfThread {
    closing: Arc<AtomicBool>,
    handle: UpfHandle,
    /// Gets the result of a take-over.
    taken: Option<Receiver<Result<(), TakeOverError>>>,
    thread: JoinHandle<()>,
}

impl UpfThread {
    /// Sets up the datapath and starts the thread of UPF-C. For `restoration` from the first association on, unknown TEIDs get
    /// no Error Indication, nor from the first packet on until then.
    pub fn start(
        clock: Clock,
        upf: Upf,
        n4: UdpSocket,
        datapath: DatapathConfig,
        restoration: Duration,
        gate: Gate,
    ) -> Result<Self, UpfError> {
        Self::start_succeedable(clock, upf, n4, datapath, restoration, gate, None)
    }

    /// The same, for a process that another one may succeed.
    pub fn start_succeedable(
        clock: Clock,
        upf: Upf,
        n4: UdpSocket,
        datapath: DatapathConfig,
        restoration: Duration,
        gate: Gate,
        succeedable: Option<Succeedable>,
    ) -> Result<Self, UpfError> {
        let refuses_unknown = restoration.is_zero();
        let (datapath, report) = UserPlane::start_and_report(DatapathConfig { refuses_unknown, ..datapath })?;
        let zero = monotonic().saturating_sub(clock.now().as_micros().saturating_mul(1000));
        let silence = (!restoration.is_zero()).then(|| Succession::new(restoration));
        let successors = succeedable.and_then(|process| awaited(process, false));
        let n4 = N4::new(n4)?;
        let (shell, asked) = Shell::new()?;
        let mut driver = Driver::new((upf, n4, datapath), asked, (zero, silence), successors);
        Self::run(shell, report, None, move |sleeper, closing| {
            if gate.wait() {
                driver.run(sleeper, closing);
            }
            driver.end();
        })
    }

    /// Takes a running UPF over, and starts the thread of UPF-C. [`Self::await_take_over`] returns the result.
    pub fn take_over(
        predecessor: Predecessor,
        (config, seed): (pith_upf::Config, [u8; 32]),
        datapath: &DatapathConfig,
        restoration: Duration,
        gate: Gate,
        succeedable: Succeedable,
    ) -> Result<Self, UpfError> {
        let mut prepared = predecessor.prepare(config, seed, datapath)?;
        let report = prepared.report.clone();
        let (taking, taken) = bounded(1);
        let (shell, asked) = Shell::new()?;
        Self::run(shell, report, Some(taken), move |sleeper, closing| {
            let swapped = if gate.wait() { prepared.swap() } else { Err(not_started()) };
            // In both cases the receiver may have given up.
            if swapped.is_err() {
                prepared.datapath.leave();
                let _ = taking.send(swapped);
                return;
            }
            let mut driver = Driver::succeeding(prepared, asked, restoration, succeedable);
            let _ = taking.send(Ok(()));
            driver.run(sleeper, closing);
            driver.end();
        })
    }

    fn run(
        Shell { sleeper, waker, inbox }: Shell,
        report: PathReport,
        taken: Option<Receiver<Result<(), TakeOverError>>>,
        work: impl FnOnce(&Sleeper, &AtomicBool) + Send + 'static,
    ) -> Result<Self, UpfError> {
        let closing = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&closing);
        let thread = thread::Builder::new().name("upf".into()).spawn(move || work(&sleeper, &seen))?;
        let handle = UpfHandle { inbox, waker, report: Arc::new(report) };
        Ok(Self { closing, handle, taken, thread })
    }

    /// After the gate was opened: waits until a take-over has succeeded or failed.
    pub fn await_take_over(&self) -> Result<(), UpfError> {
        match &self.taken {
            None => Ok(()),
            Some(taken) => {
                let lost = || io::Error::other("the UPF's thread has ended");
                Ok(taken.recv().map_err(|_| lost())??)
            }
        }
    }

    /// A handle for queries.
    pub fn handle(&self) -> UpfHandle {
        self.handle.clone()
    }

    /// Notifies the SMFs, takes down the datapath, and ends.
    pub fn close(self) {
        self.closing.store(true, Ordering::SeqCst);
        self.handle.waker.wake();
        if self.thread.join().is_err() {
            tracing::error!("the UPF's thread panicked: this is a bug in Pith, please report it");
        }
    }
}

/// The thread's means to wait, and what wakes it.
struct Shell {
    sleeper: Sleeper,
    waker: Waker,
    inbox: Sender<Asked>,
}

impl Shell {
    /// A shell, and where queries arrive.
    fn new() -> io::Result<(Self, Receiver<Asked>)> {
        let (waker, sleeper) = waker()?;
        let (inbox, asked) = unbounded();
        Ok((Self { sleeper, waker, inbox }, asked))
    }
}

fn awaited(process: Succeedable, replaces: bool) -> Option<Successors> {
    let awaited = Successors::await_on(process, replaces);
    let awaited = awaited.inspect_err(|error| {
        tracing::error!(%error, "user plane: this process cannot be upgraded without a restart");
    });
    awaited.ok()
}

fn not_started() -> TakeOverError {
    io::Error::other("the new process does not start").into()
}

struct Driver {
    /// The time at which UPF-C's clock was 0, in nanoseconds of the monotonic clock.
    zero: u64,
    succession: Succession,
    /// While unknown TEIDs get no Error Indication.
    silence: Option<Succession>,
    upf: Upf,
    n4: N4,
    datapath: UserPlane,
    asked: Receiver<Asked>,
    traces: Traces,
    effects: Vec<Effect>,
    warnings: Warnings,
    notes: Warnings,
    /// Addresses of SMFs with an association.
    smfs: Vec<IpAddr>,
    /// The host's addresses that UPF-C knows.
    host: Option<Arc<Host>>,
    /// Events to handle first.
    events: Vec<Event>,
    /// Processes that may take over.
    successors: Option<Successors>,
    /// Whether one has.
    succeeded: bool,
}

impl Driver {
    fn new(
        (upf, n4, datapath): (Upf, N4, UserPlane),
        asked: Receiver<Asked>,
        (zero, silence): (u64, Option<Succession>),
        successors: Option<Successors>,
    ) -> Self {
        Self {
            zero,
            succession: Succession::new(succession::OF_XDP),
            silence,
            upf,
            n4,
            datapath,
            asked,
            traces: Traces::default(),
            effects: Vec::new(),
            warnings: Warnings::default(),
            notes: Warnings::default(),
            smfs: Vec::new(),
            host: None,
            events: Vec::new(),
            successors,
            succeeded: false,
        }
    }

    /// The driver of a UPF that has taken over another one: from now on it owns the system's settings, and awaits its own successors.
    fn succeeding(
        mut prepared: Prepared,
        asked: Receiver<Asked>,
        restoration: Duration,
        mut succeedable: Succeedable,
    ) -> Self {
        prepared.own_system();
        (std::mem::replace(&mut succeedable.begun, Box::new(|| ())))();
        let successors = awaited(succeedable, true);
        let Prepared { zero, restoring, upf, datapath, n4, events, datagrams, .. } = prepared;
        let silence = restoring.then(|| Succession::new(restoration));
        let mut driver = Self::new((upf, n4, datapath), asked, (zero, silence), successors);
        driver.handle_datagrams(&datagrams);
        Self { events, ..driver }
    }

    fn run(&mut self, sleeper: &Sleeper, closing: &AtomicBool) {
        let mut batch = Batch::new();
        let mut events = std::mem::take(&mut self.events);
        let mut busy = Busy::begin(self.now(), thread_cpu_time());
        let mut are_served = false;
        while !closing.load(Ordering::SeqCst) {
            self.follow_host();
            let is_empty = self.read(&mut batch);
            busy.note_read(self.now(), is_empty);
            self.datapath.poll_events(&mut events);
            for event in events.drain(..) {
                self.handle(Input::Event(event));
            }
            self.handle(Input::Tick);
            self.close_controllers();
            self.tend_succession();
            self.answer_questions();
            self.n4.flush();
            if are_served && self.serve_successors() {
                return;
            }
            let successors = self.successors.iter().flat_map(Successors::descriptors);
            let descriptors: Vec<_> =
                [self.n4.as_fd(), self.datapath.events_ready()].into_iter().chain(successors).collect();
            let asked = &self.asked;
            let is_busy = || closing.load(Ordering::SeqCst) || !asked.is_empty();
            let readable = sleeper.sleep(&descriptors, Some(self.until_tick(self.now())), is_busy);
            are_served = (2..descriptors.len()).any(|at| readable.has(at));
            if let Some(percent) = busy.measure(self.now(), thread_cpu_time) {
                self.handle(Input::Busy { percent });
            }
        }
        // Messages that SMFs sent before the end are still handled, such as a release of the association.
        self.read(&mut batch);
        self.handle(Input::Shutdown { graceful: GRACE });
        self.n4.flush();
    }

    /// Returns whether another process has taken over.
    fn serve_successors(&mut self) -> bool {
        let now = self.now();
        let Self { upf, datapath, n4, zero, silence, successors, .. } = self;
        let Some(successors) = successors else { return false };
        let restoring = silence.is_some();
        let unhandled = Vec::new();
        let n4 = n4.socket();
        let mut estate = Estate { upf, datapath, n4, zero: *zero, now, restoring, unhandled };
        self.succeeded = successors.serve(&mut estate);
        let unhandled = estate.unhandled;
        self.handle_datagrams(&unhandled);
        self.succeeded
    }

    /// Handles datagrams that waited during an upgrade.
    fn handle_datagrams(&mut self, datagrams: &[(SocketAddr, Vec<u8>)]) {
        for (peer, octets) in datagrams {
            self.handle(Input::Datagram { peer: *peer, octets });
        }
        self.n4.flush();
    }

    /// Stops the datapath, or leaves it to the process that has taken over.
    fn end(self) {
        if self.succeeded {
            self.datapath.leave();
            if let Some(successors) = self.successors {
                successors.end();
            }
        } else {
            self.datapath.stop();
            self.successors.into_iter().for_each(Successors::close);
        }
    }

    /// Notifies UPF-C of the host's addresses, to which no tunnel may lead.
    fn follow_host(&mut self) {
        let host = self.datapath.host();
        if self.host.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &host)) {
            let Host { local, broadcast, .. } = &*host;
            self.upf.set_host(HostAddresses { local: local.clone(), broadcast: broadcast.clone() });
            self.host = Some(host);
        }
    }

    /// Closes the SMFs' addresses to UEs.
    fn close_controllers(&mut self) {
        let smfs = || self.upf.associations().map(|(_, address)| address.ip());
        if !smfs().eq(self.smfs.iter().copied()) {
            self.smfs = smfs().collect();
            self.datapath.set_controllers(self.smfs.clone());
        }
    }

    /// Ends the sessions of the previous process after the time for SMFs to restore them.
    fn tend_succession(&mut self) {
        let now = self.now();
        let back = self.upf.associations().next().is_some();
        if self.silence.as_mut().is_some_and(|silence| silence.is_over(now, back)) {
            self.silence = None;
            self.datapath.refuse_unknown(true);
        }
        if !self.datapath.succeeds() {
            return;
        }
        if self.succession.is_over(self.now(), back) {
            tracing::info!("user plane: sessions of the previous process that no SMF restored have ended");
            self.datapath.dismiss_predecessor();
        }
    }

    /// Time until the next timer is due.
    fn until_tick(&self, now: Duration) -> Duration {
        self.upf.next_timeout().map_or(TICK, |due| due.saturating_sub(now).clamp(SHORTEST_TICK, TICK))
    }

    /// Handles pending datagrams; returns whether the socket is empty.
    fn read(&mut self, batch: &mut Batch) -> bool {
        let is_empty = self.n4.receive(batch);
        for (peer, octets) in batch.iter() {
            self.handle(Input::Datagram { peer, octets });
        }
        self.n4.flush();
        is_empty
    }

    fn answer_questions(&mut self) {
        self.traces.update(self.now(), &mut self.datapath);
        while let Ok((question, reply)) = self.asked.try_recv() {
            // The receiver may no longer exist.
            let _ = reply.send(self.answer(question));
        }
    }

    fn answer(&mut self, question: Question) -> Answer {
        let now = self.now();
        let Self { upf, datapath, traces, .. } = self;
        match question {
            Question::Sessions(page) => Ok(inspect::sessions(upf, datapath, page)),
            Question::SessionNamed(name) => Ok(inspect::session_named(upf, datapath, name)),
            Question::Rules(name) => inspect::rules(upf, datapath, inspect::find(upf, name)?),
            Question::Flows(name) => Ok(inspect::flows(datapath, inspect::find(upf, name)?)),
            Question::Counters => Ok(inspect::counters(upf, datapath)),
            Question::BeginTrace(request) => traces.begin(now, upf, datapath, request),
            Question::ReadTrace { id, after } => traces.read(now, datapath, id, after),
            Question::EndTrace(id) => traces.end(datapath, id),
        }
    }

    fn now(&self) -> Duration {
        now(self.zero)
    }

    fn handle(&mut self, input: Input<'_>) {
        let now = self.now();
        self.upf.handle(now, input, &mut self.datapath, &mut self.effects);
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Send { peer, octets } => self.n4.send(peer, octets),
                Effect::Notice(notice) => match notice.severity() {
                    Severity::Debug => tracing::debug!("{notice}"),
                    Severity::Info => {
                        if self.notes.may_log(now) {
                            tracing::info!("{notice}");
                        }
                    }
                    Severity::Warn => {
                        if self.warnings.may_log(now) {
                            tracing::warn!("{notice}");
                        }
                    }
                    Severity::Error => tracing::error!("{notice}"),
                },
            }
        }
    }
}
