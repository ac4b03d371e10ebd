//! The UPF of a process: a thread for UPF-C, which drives the pure [`Upf`], over a datapath with workers of
//! its own.

use crate::clock::Clock;
use crate::wait::{Sleeper, Waker, waker};
use pith_datapath::{DatapathConfig, StartError, UserPlane};
use pith_upf::contract::{Datapath, Event};
use pith_upf::{Config, Effect, Input, Severity, Upf};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Datagrams read in a row before events get their turn.
const DATAGRAMS: usize = 64;

/// How often UPF-C looks at its timers.
const TICK: Duration = Duration::from_millis(250);

/// How long a UPF that goes lets its SMFs know.
const GRACE: Duration = Duration::from_secs(1);

/// Why there is no UPF.
#[derive(Debug, thiserror::Error)]
pub enum UpfError {
    /// The datapath can't be set up.
    #[error("user plane: {0}; 'upf' in the configuration says where it is to be")]
    Datapath(#[from] StartError),
    /// N4 can't be served.
    #[error("user plane: {0}")]
    Io(#[from] io::Error),
}

/// A running UPF.
pub struct UpfThread {
    closing: Arc<AtomicBool>,
    waker: Waker,
    thread: JoinHandle<()>,
}

impl UpfThread {
    /// Sets the datapath up and starts the thread.
    pub fn start(
        clock: Clock,
        config: Config,
        n4: UdpSocket,
        datapath: DatapathConfig,
    ) -> Result<Self, UpfError> {
        let datapath = UserPlane::start(datapath)?;
        let (waker, sleeper) = waker()?;
        n4.set_nonblocking(true)?;
        let closing = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&closing);
        let mut driver = Driver { clock, upf: Upf::new(config), n4, datapath, effects: Vec::new() };
        let thread = thread::Builder::new().name("upf".into()).spawn(move || {
            driver.run(&sleeper, &seen);
            driver.datapath.stop();
        })?;
        Ok(Self { closing, waker, thread })
    }

    /// Tells the SMFs, takes the datapath down, and ends.
    pub fn close(self) {
        self.closing.store(true, Ordering::SeqCst);
        self.waker.wake();
        if self.thread.join().is_err() {
            tracing::error!("the UPF's thread panicked: this is a bug in Pith, please report it");
        }
    }
}

struct Driver {
    clock: Clock,
    upf: Upf,
    n4: UdpSocket,
    datapath: UserPlane,
    effects: Vec<Effect>,
}

impl Driver {
    fn run(&mut self, sleeper: &Sleeper, closing: &AtomicBool) {
        let mut datagram = vec![0; 65_535];
        let mut events: Vec<Event> = Vec::new();
        while !closing.load(Ordering::SeqCst) {
            self.read(&mut datagram);
            self.datapath.poll_events(&mut events);
            for event in events.drain(..) {
                self.handle(Input::Event(event));
            }
            self.handle(Input::Tick);
            let descriptors = [self.n4.as_fd(), self.datapath.events_ready()];
            sleeper.sleep(&descriptors, Some(TICK), || closing.load(Ordering::SeqCst));
        }
        self.handle(Input::Shutdown { graceful: GRACE });
    }

    fn read(&mut self, buffer: &mut [u8]) {
        for _ in 0..DATAGRAMS {
            let Ok((length, peer)) = self.n4.recv_from(buffer) else { return };
            self.handle(Input::Datagram { peer, octets: buffer.get(..length).unwrap_or_default() });
        }
    }

    fn handle(&mut self, input: Input<'_>) {
        let now = Duration::from_micros(self.clock.now().as_micros());
        self.upf.handle(now, input, &mut self.datapath, &mut self.effects);
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Send { peer, octets } => {
                    // What is lost here is sent again after T1.
                    if let Err(error) = self.n4.send_to(&octets, peer) {
                        tracing::debug!(%peer, %error, "a PFCP datagram can't be sent");
                    }
                }
                Effect::Notice(notice) => match notice.severity() {
                    Severity::Debug => tracing::debug!("{notice}"),
                    Severity::Info => tracing::info!("{notice}"),
                    Severity::Warn => tracing::warn!("{notice}"),
                    Severity::Error => tracing::error!("{notice}"),
                },
            }
        }
    }
}
