//! The CPU time of another process from the scheduler's statistics: what the UEs of a run cost a core.

use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// A process that is watched.
pub struct Watch {
    process: u32,
    threads: PathBuf,
    before: Duration,
}

impl Watch {
    /// Starts the measurement. Fails if there is no such process, or its threads are not accessible.
    pub fn begin(process: u32) -> Result<Self> {
        let threads = PathBuf::from(format!("/proc/{process}/task"));
        let before = time_on_cpu(&threads)?;
        Ok(Self { process, threads, before })
    }

    /// Resident memory now, in kB.
    pub fn resident_kb(&self) -> Result<u64> {
        resident_kb(self.process)
    }

    /// The CPU time since then; threads that have ended are not counted.
    pub fn spent(&self) -> Result<Duration> {
        Ok(time_on_cpu(&self.threads)?.saturating_sub(self.before))
    }
}

/// Resident memory of a process, in kB.
fn resident_kb(process: u32) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("no process at {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.with_context(|| format!("{path} has no VmRSS"))
}

/// The sum over all threads of the first number in `schedstat`, nanoseconds (Linux, scheduler/sched-stats).
fn time_on_cpu(threads: &PathBuf) -> Result<Duration> {
    let listed = fs::read_dir(threads).with_context(|| format!("no process at {}", threads.display()))?;
    // A thread may end between being listed and being read.
    let texts =
        listed.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok());
    let nanoseconds = texts.filter_map(|text| text.split(' ').next()?.parse::<u64>().ok());
    Ok(Duration::from_nanos(nanoseconds.sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_a_process_is_measured() {
        let watch = Watch::begin(std::process::id()).unwrap();
        let began = std::time::Instant::now();
        let mut spent = Duration::ZERO;
        while spent == Duration::ZERO && began.elapsed() < Duration::from_secs(60) {
            spent = watch.spent().unwrap();
        }
        assert!(spent > Duration::ZERO && watch.resident_kb().unwrap() > 0);
        assert!(Watch::begin(u32::MAX).is_err());
    }
}
