//! Service requests of random idle UEs, after all UEs have completed their profile.

use super::run::{Run, Stop};
use super::watch::Watch;
use anyhow::Result;
use pith_ran::gnb::UeKey;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Random UEs that are tried for each request: a UE that still has its user plane requests nothing.
const ATTEMPTS: usize = 16;

/// Time for the last requests to be answered.
const PATIENCE: Duration = Duration::from_secs(10);

/// Service requests of a run. Their latency is the report's `service_ms`.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Services {
    /// Requests of UEs.
    pub requested: u64,
    /// Requests that were due while none of the random UEs was idle.
    pub skipped: u64,
    /// From the first request to the last.
    pub seconds: f64,
    /// Requests a second.
    pub per_second: f64,
    /// CPU time of the watched process, if there is one, in milliseconds for each request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watched_cpu_ms_per_request: Option<f64>,
}

impl Run<'_> {
    /// Lets random UEs request service at the rate of the options, if these have one.
    pub(super) fn run_services(&mut self, stop: &Stop) -> Result<Option<Services>> {
        let Some(rate) = self.options.services else { return Ok(None) };
        let watch = self.options.watch_cpu.map(Watch::begin).transpose()?;
        let mut random = ChaCha8Rng::seed_from_u64(self.options.seed);
        let (interval, began) = (Duration::from_secs_f64(1.0 / rate), Instant::now());
        let (mut requested, mut skipped, mut due) = (0, 0, began);
        let end = began + Duration::from_secs(self.options.service_seconds);
        while due < end && self.is_running(stop) {
            while due <= Instant::now() && due < end {
                due += interval;
                if self.visit_one(&mut random) { requested += 1 } else { skipped += 1 }
            }
            self.act()?;
            self.turn(stop, due.saturating_duration_since(Instant::now()))?;
        }
        let seconds = began.elapsed().as_secs_f64();
        let last = Instant::now() + PATIENCE;
        while self.ran.tally().under_way > 0 && Instant::now() < last && self.is_running(stop) {
            self.turn(stop, Duration::from_millis(10))?;
        }
        let spent = watch.map(|watch| watch.spent()).transpose()?;
        let of_one = |spent: Duration| spent.as_secs_f64() * 1e3 / f64::max(requested as f64, 1.0);
        let per_second = requested as f64 / seconds.max(f64::MIN_POSITIVE);
        let watched_cpu_ms_per_request = spent.map(of_one);
        Ok(Some(Services { requested, skipped, seconds, per_second, watched_cpu_ms_per_request }))
    }

    /// Lets a random UE that is idle request service.
    fn visit_one(&mut self, random: &mut ChaCha8Rng) -> bool {
        let (now, ues) = (self.now(), self.options.ues);
        (0..ATTEMPTS).any(|_| self.ran.visit(now, UeKey(random.next_u32() % ues), &mut self.outputs))
    }
}
