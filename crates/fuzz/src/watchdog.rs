//! Watchdog for hanging targets: after ten seconds the input is written to a file and the process ends.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

const PATIENCE: u32 = 10;

#[derive(Default)]
struct Current {
    number: u64,
    input: Vec<u8>,
}

/// The input that is running.
#[derive(Clone, Default)]
pub struct Watchdog(Arc<Mutex<Current>>);

impl Watchdog {
    /// Starts the watchdog; a hanging input is written to that file.
    pub fn start(file: PathBuf) -> Self {
        let watchdog = Self::default();
        let watched = watchdog.clone();
        thread::spawn(move || watched.watch(&file));
        watchdog
    }

    /// No input is running.
    pub fn rest(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).number = 0;
    }

    /// This input is running now.
    pub fn note(&self, input: &[u8]) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        current.number += 1;
        current.input.clear();
        current.input.extend_from_slice(input);
    }

    fn watch(&self, file: &std::path::Path) {
        let (mut last, mut seconds) = (0, 0);
        loop {
            thread::sleep(Duration::from_secs(1));
            let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            seconds = if current.number == last && last > 0 { seconds + 1 } else { 0 };
            last = current.number;
            if seconds == PATIENCE {
                let written = std::fs::write(file, &current.input);
                eprintln!("an input does not terminate: {} ({written:?})", file.display());
                std::process::exit(2);
            }
        }
    }
}
