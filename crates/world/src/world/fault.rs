//! Faults of whole components: gNBs, associations, UPFs, processes.

use super::{SimEvent, World};
use pith_ran::gnb::Input;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A gNB loses its state and sends NG RESET.
    GnbReset(usize),
    /// The association of a gNB ends.
    AssociationLost(usize),
    /// A UPF restarts.
    UpfRestart(usize),
    /// A process ends, and restarts some seconds later.
    Kill(usize),
    /// A process whose contexts are stored ends, and restarts some seconds later.
    Crash(usize),
    /// A shard of a process panics at one of its next inputs.
    Panic(usize),
}

impl World {
    /// Draws the faults within that time.
    pub(super) fn draw_faults(&mut self, time: Duration) {
        let faults = self.plan.faults;
        for _ in 0..faults.resets {
            let gnb = self.dice.index(self.gnbs.len());
            self.draw_time(time, Fault::GnbReset(gnb));
        }
        for _ in 0..faults.breaks {
            let gnb = self.dice.index(self.gnbs.len());
            self.draw_time(time, Fault::AssociationLost(gnb));
        }
        for _ in 0..faults.upf_restarts {
            let upf = self.dice.index(self.upfs.len());
            self.draw_time(time, Fault::UpfRestart(upf));
        }
        for _ in 0..faults.crashes {
            let process = self.dice.index(self.processes.len());
            self.draw_time(time, Fault::Crash(process));
        }
        for _ in 0..faults.panics {
            let process = self.dice.index(self.processes.len());
            self.draw_time(time, Fault::Panic(process));
        }
        for _ in 0..faults.kills {
            let process = self.dice.index(self.processes.len());
            self.draw_time(time, Fault::Kill(process));
        }
    }

    fn draw_time(&mut self, time: Duration, fault: Fault) {
        let when = self.dice.millis(1000, time.as_millis() as u64);
        self.at(when, SimEvent::Break(fault));
    }

    pub(super) fn break_it(&mut self, fault: Fault) {
        self.record("fault", "world", format!("{fault:?}"));
        match fault {
            Fault::GnbReset(gnb) => self.gnb_input(gnb, Input::Reset),
            Fault::AssociationLost(gnb) => self.disassociate(gnb),
            Fault::UpfRestart(upf) => self.restart_upf(upf),
            Fault::Kill(process) | Fault::Crash(process) => self.kill(process),
            Fault::Panic(process) => self.panicking = Some(process),
        }
    }

    fn kill(&mut self, process: usize) {
        if !self.processes[process].is_running() {
            return;
        }
        if self.processes[process].documents.is_some() {
            self.note_before_crash();
        } else {
            self.watch.killed.extend(self.processes[process].nfs.iter().copied());
        }
        let ends_n2 = self.processes[process].n2.is_some();
        self.kill_process(process);
        if ends_n2 {
            (0..self.gnbs.len()).for_each(|gnb| self.disassociate(gnb));
        }
        let after = self.dice.seconds(1, 5);
        self.at(after, SimEvent::Start { process });
    }
}
