//! Steps of all UEs at once after their profile: of `--then`, and of `--commands`, which reads them from standard input.

use super::run::{REST, Run, Stop};
use super::watch::Watch;
use anyhow::Result;
use pith_ran::gnb::UeKey;
use pith_ran::journey::Step;
use pith_ran::statistics::Summary;
use serde::Serialize;
use std::io::{Write as _, stdin, stdout};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Maximum time for a step of `--commands`.
const PATIENCE: Duration = Duration::from_secs(60);

/// A step that all UEs, or one, began at the same time.
#[derive(Debug, Clone, Serialize)]
pub struct StepReport {
    /// The procedure.
    pub step: &'static str,
    /// UEs that began it: those that had completed all before.
    pub ues: usize,
    /// UEs that completed it.
    pub ok: usize,
    /// UEs that did not.
    pub failed: usize,
    /// From the start to the end of the last UE.
    pub seconds: f64,
    /// From the start of each UE's step to its end.
    pub ms: Summary,
    /// CPU time of the watched process, if there is one, in milliseconds for each UE: until 50 ms after the last UE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watched_cpu_ms_per_ue: Option<f64>,
}

/// A line of `--commands`: steps, and the number of the UE if it is only one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Order {
    steps: Vec<Step>,
    ue: Option<UeKey>,
}

impl FromStr for Order {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let steps = words.next().unwrap_or_default().split(',').map(str::parse).collect::<Result<_, _>>();
        let steps = steps.map_err(|error: <Step as FromStr>::Err| error.to_string())?;
        let number = |word: &str| word.parse::<u32>().ok().and_then(|number| number.checked_sub(1));
        let ue = words.next().map(|word| number(word).ok_or("a UE is a number from 1 up")).transpose()?;
        match words.next() {
            None => Ok(Self { steps, ue: ue.map(UeKey) }),
            Some(_) => Err("a line has steps, and the number of a UE".to_owned()),
        }
    }
}

impl Run<'_> {
    /// The steps of `--then`.
    pub(super) fn run_steps(&mut self, stop: &Stop) -> Result<Vec<StepReport>> {
        let mut reports = Vec::new();
        for step in &self.options.then {
            reports.push(self.run_step(stop, *step, None)?);
        }
        Ok(reports)
    }

    /// The steps that standard input says, until it ends; each result is a line of JSON on standard output.
    pub(super) fn run_commands(&mut self, stop: &Stop) -> Result<()> {
        if !self.options.commands {
            return Ok(());
        }
        self.is_holding = true;
        let (tally, registration) = (self.ran.tally(), self.ran.statistics().registration.summary());
        let profile = serde_json::json!({
            "step": "profile", "ues": tally.ues, "ok": tally.done, "registration_ms": registration
        });
        print_line(&profile)?;
        let lines = read_lines(stop)?;
        while !stop.is_asked() && self.n2.is_open() {
            match lines.try_recv() {
                Ok(line) => self.run_command(stop, &line)?,
                Err(TryRecvError::Empty) => self.turn(stop, Duration::MAX)?,
                Err(TryRecvError::Disconnected) => break,
            }
        }
        self.is_holding = false;
        Ok(())
    }

    fn run_command(&mut self, stop: &Stop, line: &str) -> Result<()> {
        match line.parse::<Order>() {
            Ok(order) => {
                for step in order.steps {
                    print_line(&self.run_step(stop, step, order.ue)?)?;
                }
                Ok(())
            }
            Err(error) => print_line(&serde_json::json!({ "error": error })),
        }
    }

    /// Lets all UEs, or one, begin a step, and waits until they have ended it, and [`REST`] longer.
    fn run_step(&mut self, stop: &Stop, step: Step, only: Option<UeKey>) -> Result<StepReport> {
        let watch = self.options.watch_cpu.map(Watch::begin).transpose()?;
        let completed = |run: &Self| {
            let procedure = run.ran.statistics().procedures.get(step.name());
            procedure.map_or(0, |procedure| procedure.completed.len())
        };
        let (before, done_before, began) = (completed(self), self.ran.tally().done, Instant::now());
        let now = self.now();
        let all = only.map_or(0..self.options.ues, |UeKey(ue)| ue..ue + 1);
        let begins = |ue: &u32| self.ran.perform(now, UeKey(*ue), [step].into(), &mut self.outputs);
        let ues = all.filter(begins).count();
        self.act()?;
        while self.ran.tally().under_way > 0 && self.is_running(stop) && began.elapsed() < PATIENCE {
            self.turn(stop, PATIENCE.saturating_sub(began.elapsed()))?;
        }
        let seconds = began.elapsed().as_secs_f64();
        self.drain_events(stop, REST)?;
        let spent = watch.map(|watch| watch.spent()).transpose()?;
        // The UEs that did not begin it count as done, or as failed before.
        // One that ended an earlier step late is not of this one.
        let ok = (self.ran.tally().done + ues).saturating_sub(done_before).min(ues);
        let procedure = self.ran.statistics().procedures.get(step.name());
        let ms = procedure.map(|procedure| procedure.completed.summary_from(before)).unwrap_or_default();
        let of_one = |spent: Duration| spent.as_secs_f64() * 1e3 / f64::max(ues as f64, 1.0);
        let watched_cpu_ms_per_ue = spent.map(of_one);
        Ok(StepReport { step: step.name(), ues, ok, failed: ues - ok, seconds, ms, watched_cpu_ms_per_ue })
    }
}

/// The lines of standard input, which a thread reads.
fn read_lines(stop: &Stop) -> Result<Receiver<String>> {
    let (sender, receiver) = channel();
    let alarm = stop.alarm();
    std::thread::Builder::new().name("commands".into()).spawn(move || {
        for line in stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
            alarm.ring();
        }
        drop(sender);
        alarm.ring();
    })?;
    Ok(receiver)
}

fn print_line(value: &impl Serialize) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{}", serde_json::to_string(value)?)?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_ran::journey::{HandoverPath, HandoverTarget};

    #[test]
    fn a_line_has_steps_and_possibly_a_ue() {
        let next = |path| Step::Handover(path, HandoverTarget::Next);
        let steps = vec![next(HandoverPath::Xn), Step::BecomeIdle];
        assert_eq!("xn,idle".parse(), Ok(Order { steps, ue: None }));
        let steps = vec![next(HandoverPath::N2)];
        assert_eq!(" n2  3 ".parse(), Ok(Order { steps, ue: Some(UeKey(2)) }));
        for bad in ["", "x2", "xn,", "xn 0", "xn one", "xn 1 2", "xn 4294967296"] {
            assert!(bad.parse::<Order>().is_err(), "{bad}");
        }
    }
}
