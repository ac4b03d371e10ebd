//! The UPF of a process: a thread for UPF-C, which runs the pure [`Upf`], and a datapath with its own
//! workers. Operators' queries are answered between two batches of PFCP messages.

mod busy;
mod inspect;
mod n4;
mod question;
mod succession;
mod trace;
mod warnings;

pub use question::{Name, Page, Question, SeidText, TeidText};
pub use trace::TraceRequest;

use crate::api::ApiError;
use crate::clock::{Clock, thread_cpu_time};
use crate::gate::Gate;
use crate::wait::{Sleeper, Waker, waker};
use busy::Busy;
use crossbeam_channel::{Receiver, Sender, unbounded};
use n4::{Batch, N4};
use pith_datapath::{DatapathConfig, Host, PathReport, StartError, UserPlane};
use pith_upf::contract::{Datapath, Event};
use pith_upf::{Effect, HostAddresses, Input, Severity, Upf};
use serde_json::Value;
use std::io;
use std::net::{IpAddr, UdpSocket};
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
        let refuses_unknown = restoration.is_zero();
        let (datapath, report) = UserPlane::start_and_report(DatapathConfig { refuses_unknown, ..datapath })?;
        let (waker, sleeper) = waker()?;
        let closing = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&closing);
        let (inbox, asked) = unbounded();
        let mut driver = Driver {
            clock,
            succession: Succession::new(succession::OF_XDP),
            silence: (!restoration.is_zero()).then(|| Succession::new(restoration)),
            upf,
            n4: N4::new(n4)?,
            datapath,
            asked,
            traces: Traces::default(),
            effects: Vec::new(),
            warnings: Warnings::default(),
            notes: Warnings::default(),
            smfs: Vec::new(),
            host: None,
        };
        let thread = thread::Builder::new().name("upf".into()).spawn(move || {
            if gate.wait() {
                driver.run(&sleeper, &seen);
            }
            driver.datapath.stop();
        })?;
        Ok(Self { closing, handle: UpfHandle { inbox, waker, report: Arc::new(report) }, thread })
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

struct Driver {
    clock: Clock,
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
}

impl Driver {
    fn run(&mut self, sleeper: &Sleeper, closing: &AtomicBool) {
        let mut batch = Batch::new();
        let mut events: Vec<Event> = Vec::new();
        let mut busy = Busy::begin(self.now(), thread_cpu_time());
        while !closing.load(Ordering::SeqCst) {
            self.follow_host();
            if self.read(&mut batch) {
                busy.note_empty_queue(self.now());
            }
            self.datapath.poll_events(&mut events);
            for event in events.drain(..) {
                self.handle(Input::Event(event));
            }
            self.handle(Input::Tick);
            self.close_controllers();
            self.tend_succession();
            self.answer_questions();
            self.n4.flush();
            let descriptors = [self.n4.as_fd(), self.datapath.events_ready()];
            let asked = &self.asked;
            let is_busy = || closing.load(Ordering::SeqCst) || !asked.is_empty();
            sleeper.sleep(&descriptors, Some(self.until_tick(self.now())), is_busy);
            if let Some(percent) = busy.measure(self.now(), thread_cpu_time) {
                self.handle(Input::Busy { percent });
            }
        }
        // Messages that SMFs sent before the end are still handled, such as a release of the association.
        self.read(&mut batch);
        self.handle(Input::Shutdown { graceful: GRACE });
        self.n4.flush();
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
        Duration::from_micros(self.clock.now().as_micros())
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
