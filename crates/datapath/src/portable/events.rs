//! Events from workers to the control thread. They are rare, so a lock protects them.

use crate::sys::EventFd;
use pith_upf::contract::Event;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Maximum number of pending events: peers can cause some kinds at will, and further ones are dropped.
const MAX_WAITING: usize = 65_536;

/// Pending events, and a descriptor that is readable while there are any.
#[derive(Debug)]
pub struct Events {
    waiting: Mutex<VecDeque<Event>>,
    ready: EventFd,
}

impl Events {
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { waiting: Mutex::new(VecDeque::new()), ready: EventFd::new()? })
    }

    pub fn push(&self, event: Event) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MAX_WAITING
            && matches!(event, Event::ErrorIndication { .. } | Event::UnknownPeer { .. })
        {
            return;
        }
        if waiting.is_empty() {
            self.ready.signal();
        }
        waiting.push_back(event);
    }

    /// Moves all events into `events`.
    pub fn drain_into(&self, events: &mut Vec<Event>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.is_empty() {
            self.ready.clear();
            events.extend(waiting.drain(..));
        }
    }

    /// The descriptor that is readable while events are pending.
    pub fn ready(&self) -> &EventFd {
        &self.ready
    }
}
