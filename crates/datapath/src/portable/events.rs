//! What workers tell the control side: rare, so behind a lock.

use crate::sys::EventFd;
use pith_upf::contract::Event;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Events that peers can cause at will are dropped beyond this many.
const MOST_WAITING: usize = 65_536;

/// Events that wait, and a descriptor that is readable while some do.
#[derive(Debug)]
pub struct Events {
    waiting: Mutex<VecDeque<Event>>,
    ready: EventFd,
}

impl Events {
    /// None waiting.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { waiting: Mutex::new(VecDeque::new()), ready: EventFd::new()? })
    }

    /// Adds one.
    pub fn push(&self, event: Event) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MOST_WAITING && matches!(event, Event::ErrorIndication { .. }) {
            return;
        }
        if waiting.is_empty() {
            self.ready.signal();
        }
        waiting.push_back(event);
    }

    /// Moves all into `events`.
    pub fn drain_into(&self, events: &mut Vec<Event>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.is_empty() {
            self.ready.clear();
            events.extend(waiting.drain(..));
        }
    }

    /// What is readable while events wait.
    pub fn ready(&self) -> &EventFd {
        &self.ready
    }
}
