//! Events of the BPF program: URRs that reached a limit, sessions with packets that must be queued.

use super::XdpError;
use super::program::Program;
use crate::sys::layout::{SHAPED, UsageEvent};
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use pith_upf::contract::{Event, SessionId, UrrId, Volume};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError};

/// The program's ring buffer.
#[derive(Debug)]
pub struct Events {
    ring: RingBuffer<'static>,
    read: Arc<Mutex<Vec<UsageEvent>>>,
}

impl Events {
    pub fn new(program: &Program) -> Result<Self, XdpError> {
        let read = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&read);
        let table = program.table("events")?;
        let mut builder = RingBufferBuilder::new();
        builder.add(&table, move |octets: &[u8]| {
            into.lock().unwrap_or_else(PoisonError::into_inner).extend(UsageEvent::decode(octets));
            0
        })?;
        let ring = builder.build()?;
        Ok(Self { ring, read })
    }

    /// A descriptor that is readable while the ring has entries.
    pub fn ready(&self) -> RawFd {
        self.ring.epoll_fd()
    }

    /// Moves events for UPF-C into `events`; returns the sessions that the program moved to user space.
    pub fn drain_into(&self, events: &mut Vec<Event>) -> Vec<SessionId> {
        self.ring.consume_raw();
        let read = std::mem::take(&mut *self.read.lock().unwrap_or_else(PoisonError::into_inner));
        let (shaped, usage): (Vec<_>, Vec<_>) = read.into_iter().partition(|event| event.urr == SHAPED);
        events.extend(usage.into_iter().map(usage_event));
        shaped.into_iter().map(|event| SessionId(event.session)).collect()
    }
}

fn usage_event(event: UsageEvent) -> Event {
    let ([uplink, downlink], [uplink_packets, downlink_packets]) = (event.bytes, event.packets);
    Event::Usage {
        session: SessionId(event.session),
        urr: UrrId(event.urr as u32),
        volume: Volume { uplink, downlink, uplink_packets, downlink_packets },
    }
}
