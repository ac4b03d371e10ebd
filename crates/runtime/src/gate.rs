//! A gate that threads wait at until the process may serve: its sockets are open and its privileges are given up.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Open,
    /// The process did not start.
    Abandoned,
}

/// Where a thread waits.
#[derive(Debug, Clone)]
pub struct Gate(Arc<(Mutex<State>, Condvar)>);

/// Opens the gate; threads end if it is dropped without.
#[derive(Debug)]
pub struct Opener(Gate);

impl Gate {
    /// One that is closed, and what opens it.
    pub fn closed() -> (Self, Opener) {
        let gate = Self(Arc::new((Mutex::new(State::Closed), Condvar::new())));
        (gate.clone(), Opener(gate))
    }

    /// One that is open.
    pub fn opened() -> Self {
        let (gate, opener) = Self::closed();
        opener.open();
        gate
    }

    /// Waits until it is open; false if it never will be.
    pub(crate) fn wait(&self) -> bool {
        let (state, changed) = &*self.0;
        let state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = changed.wait_while(state, |state| *state == State::Closed);
        *state.unwrap_or_else(PoisonError::into_inner) == State::Open
    }

    fn become_state(&self, new: State) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == State::Closed {
            *state = new;
        }
        drop(state);
        changed.notify_all();
    }
}

impl Opener {
    /// Lets all through.
    pub fn open(self) {
        self.0.become_state(State::Open);
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.0.become_state(State::Abandoned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_wait_until_it_is_open_and_end_if_it_never_will_be() {
        let (gate, opener) = Gate::closed();
        let waits = std::thread::spawn(move || gate.wait());
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!waits.is_finished());
        opener.open();
        assert!(waits.join().unwrap());
        let (gate, opener) = Gate::closed();
        drop(opener);
        assert!(!gate.wait() && Gate::opened().wait());
    }
}
