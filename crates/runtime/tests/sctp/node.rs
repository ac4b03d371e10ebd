//! A transport and its events, run by the test that owns it.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use pith_runtime::sctp::{
    self, AssociationId, DownReason, SctpConfig, SctpEvent, SctpMode, SctpTransport, SendError,
};

/// Time limit for any event.
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Node {
    pub transport: Box<dyn SctpTransport>,
    pub events: Vec<SctpEvent>,
}

impl Node {
    pub fn new(mode: SctpMode, config: SctpConfig) -> Self {
        let transport = sctp::open(mode, config).expect("a transport");
        Self { transport, events: Vec::new() }
    }

    /// Waits until the transport is readable, or its deadline, or `until`, then processes it.
    pub fn turn(&mut self, until: Instant) {
        let deadline = self.transport.next_deadline().map_or(until, |d| d.min(until));
        wait_readable(&*self.transport, deadline.saturating_duration_since(Instant::now()));
        self.transport.process(Instant::now(), &mut self.events);
    }

    pub fn run_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.turn(until);
        }
    }

    /// Waits for the first event that `pick` accepts; other events are kept.
    pub fn wait_for<T>(&mut self, what: &str, mut pick: impl FnMut(&SctpEvent) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.events.iter().enumerate().find_map(|(i, e)| Some((i, pick(e)?)));
            if let Some((index, value)) = found {
                self.events.remove(index);
                return value;
            }
            assert!(Instant::now() < until, "waited in vain for {what}; seen: {:?}", self.events);
            self.turn(until);
        }
    }

    pub fn connect(&mut self, remote: SocketAddr) -> AssociationId {
        self.connect_from(None, remote)
    }

    pub fn connect_from(&mut self, local: Option<IpAddr>, remote: SocketAddr) -> AssociationId {
        let id = self.transport.connect(local, remote).expect("a connection attempt");
        self.up(id);
        id
    }

    /// Waits until an association is up; returns its own address.
    pub fn up(&mut self, id: AssociationId) -> SocketAddr {
        self.wait_for("Up", |e| match e {
            SctpEvent::Up { association, local, .. } if *association == id => Some(*local),
            _ => None,
        })
    }

    pub fn down(&mut self, id: AssociationId) -> DownReason {
        self.wait_for("Down", |e| match e {
            SctpEvent::Down { association, reason } if *association == id => Some(*reason),
            _ => None,
        })
    }

    /// The next message of an association: stream, PPID and payload.
    pub fn message(&mut self, id: AssociationId) -> (u16, u32, Vec<u8>) {
        self.wait_for("Message", |e| match e {
            SctpEvent::Message { association, stream, ppid, payload } if *association == id => {
                Some((*stream, *ppid, payload.clone()))
            }
            _ => None,
        })
    }

    /// Sends a message, waiting for room if needed.
    pub fn send(&mut self, id: AssociationId, stream: u16, ppid: u32, payload: &[u8]) {
        while let Err(error) = self.transport.send(id, stream, ppid, payload) {
            assert_eq!(error, SendError::Backpressure);
            self.wait_for("SendReady", |e| matches!(e, SctpEvent::SendReady { .. }).then_some(()));
        }
        self.transport.flush();
    }
}

#[allow(unsafe_code)]
fn wait_readable(transport: &dyn SctpTransport, timeout: Duration) {
    let mut poll = libc::pollfd { fd: transport.poll_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let timeout = libc::timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
    // SAFETY: one entry and a timeout, both of which outlive the call.
    unsafe { libc::ppoll(&raw mut poll, 1, &raw const timeout, std::ptr::null()) };
}
