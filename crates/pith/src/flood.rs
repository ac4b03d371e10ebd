//! Limits repeated warnings in the log: each callsite may log a number of warnings per second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Largest number of warnings of a callsite in a window.
const MOST: u32 = 20;

/// Length of a window, which begins with a callsite's first warning.
const WINDOW: Duration = Duration::from_secs(1);

/// Suppresses warnings beyond [`MOST`] per [`WINDOW`] and then logs their number. Errors are never
/// suppressed.
#[derive(Clone, Default)]
pub struct Flood {
    windows: Arc<Mutex<HashMap<Identifier, CallsiteWindow>>>,
}

struct CallsiteWindow {
    metadata: &'static Metadata<'static>,
    since: Instant,
    seen: u32,
}

impl<S: Subscriber> Layer<S> for Flood {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        *event.metadata().level() != Level::WARN || self.admit(event.metadata(), Instant::now())
    }
}

impl Flood {
    /// Whether to log a warning. The first suppressed one starts a thread that logs the number at the end of
    /// the window.
    fn admit(&self, metadata: &'static Metadata<'static>, now: Instant) -> bool {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let new = CallsiteWindow { metadata, since: now, seen: 0 };
        let window = windows.entry(metadata.callsite()).or_insert(new);
        if window.seen <= MOST && now.duration_since(window.since) >= WINDOW {
            (window.since, window.seen) = (now, 0);
        }
        window.seen = window.seen.saturating_add(1);
        if window.seen == MOST + 1 {
            let flood = self.clone();
            let callsite = metadata.callsite();
            thread::spawn(move || {
                thread::sleep(WINDOW);
                flood.log_suppressed(&callsite);
            });
        }
        window.seen <= MOST
    }

    fn log_suppressed(&self, callsite: &Identifier) {
        if let Some((file, line, more)) = self.take(callsite) {
            tracing::warn!("{more} further warnings of {file}:{line} were suppressed");
        }
    }

    /// Removes a callsite's window; returns file, line and the number of suppressed warnings. The next warning is
    /// logged again.
    fn take(&self, callsite: &Identifier) -> Option<(&'static str, u32, u32)> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let window = windows.remove(callsite)?;
        let metadata = window.metadata;
        Some((metadata.file().unwrap_or("?"), metadata.line().unwrap_or(0), window.seen.saturating_sub(MOST)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(octets)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_first_warnings_are_logged_and_further_ones_counted() {
        let (page, flood) = (Page::default(), Flood::default());
        let writer = page.clone();
        let log = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry().with(log).with(flood.clone());
        tracing::subscriber::with_default(subscriber, || {
            for number in 0..1000 {
                tracing::warn!("rubbish {number}");
                tracing::error!("broken");
            }
            tracing::warn!("something else");
        });
        let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
        assert_eq!((count("rubbish"), count("broken"), count("something else")), (20, 1000, 1));
        let left_out: Vec<u32> = {
            let callsites: Vec<Identifier> = flood.windows.lock().unwrap().keys().cloned().collect();
            callsites.iter().filter_map(|callsite| flood.take(callsite)).map(|(_, _, more)| more).collect()
        };
        assert_eq!(left_out.iter().sum::<u32>(), 980);
    }
}
