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
    /// The store of contexts does not answer for some seconds.
    Outage,
    /// The store of contexts has no room for changes for some seconds.
    FullStore,
    /// The store of contexts loses what it acknowledged last, and says so.
    StoreLoss,
    /// As `StoreLoss`, and a process ends at the same time: a power failure.
    PowerFailure(usize),
    /// A shard of a process panics at one of its next inputs.
    Panic(usize),
    /// A block of a process passes to another shard.
    Move(usize),
    /// An instance of the set stops for a while.
    Pause(usize),
    /// An instance of the set does not reach the store of contexts for a while.
    CutOff(usize),
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
        for _ in 0..faults.outages {
            self.draw_time(time, Fault::Outage);
        }
        for _ in 0..faults.full_stores {
            self.draw_time(time, Fault::FullStore);
        }
        for _ in 0..faults.store_losses {
            self.draw_time(time, Fault::StoreLoss);
        }
        for _ in 0..faults.power_failures {
            let process = self.dice.index(self.processes.len());
            self.draw_time(time, Fault::PowerFailure(process));
        }
        for _ in 0..faults.panics {
            let process = self.dice.index(self.processes.len());
            self.draw_time(time, Fault::Panic(process));
        }
        for _ in 0..self.plan.moves {
            let process = self.dice.index(self.processes.len());
            self.draw_time(time, Fault::Move(process));
        }
        for _ in 0..faults.pauses {
            let process = self.dice.index(self.plan.instances);
            self.draw_time(time, Fault::Pause(process));
        }
        for _ in 0..faults.cut_offs {
            let process = self.dice.index(self.plan.instances);
            self.draw_time(time, Fault::CutOff(process));
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
            Fault::AssociationLost(gnb) => {
                let number = match self.plan.associations {
                    1 => 0,
                    several => self.dice.index(several.into()) as u8,
                };
                self.disassociate(gnb, number);
            }
            Fault::UpfRestart(upf) => self.restart_upf(upf),
            // A process that starts reads no contexts from a store that does not answer.
            Fault::Crash(_) | Fault::PowerFailure(_) | Fault::StoreLoss | Fault::Panic(_)
                if self.server.fails() =>
            {
                self.at(Duration::from_secs(10), SimEvent::Break(fault));
            }
            Fault::Kill(process) | Fault::Crash(process) => self.kill(process),
            Fault::Move(process) => self.move_block(process),
            Fault::Outage | Fault::FullStore => self.begin_outage(fault),
            Fault::StoreLoss => self.lose_writes(),
            Fault::PowerFailure(process) => {
                self.lose_writes();
                self.kill(process);
            }
            Fault::Panic(process) => self.panicking = Some(process),
            Fault::Pause(process) => self.pause(process),
            Fault::CutOff(process) => self.cut_off(process),
        }
    }

    /// Documents that are not written again count as outdated: their UEs are authenticated, or register, again. Resources that a
    /// lost document recorded have no owner.
    fn lose_writes(&mut self) {
        let time = self.dice.millis(0, 1000);
        self.server.lose(time);
        self.watch.may_leak = true;
        self.watch.has_lost_documents = true;
        self.before_crash.clear();
        self.store_back = self.now + Duration::from_secs(5);
    }

    fn begin_outage(&mut self, fault: Fault) {
        // A process that starts in an outage reads no contexts.
        if self.processes.iter().any(|process| !process.is_running()) {
            return self.at(Duration::from_secs(10), SimEvent::Break(fault));
        }
        if !self.server.fails() {
            self.begin_unstored(0..self.processes.len());
            match fault {
                Fault::FullStore => self.server.set_full(true),
                _ => self.server.set_gone(true),
            }
            let after = self.dice.millis(100, 20_000);
            self.at(after, SimEvent::StoreIsBack);
        }
    }

    pub(super) fn store_is_back(&mut self) {
        self.server.set_gone(false);
        self.server.set_full(false);
        self.end_unstored();
        // An attempt is made each second.
        self.store_back = self.now + Duration::from_secs(5);
    }

    fn kill(&mut self, process: usize) {
        if !self.processes[process].is_running() {
            return;
        }
        let is_stored = self.processes[process].is_stored();
        if self.is_in_set(process) {
            // Its UEs are at another instance afterwards.
            self.note_if_behind(process);
        } else if is_stored {
            self.note_before_crash(process);
        } else {
            self.watch.killed.extend(self.processes[process].nfs.iter().copied());
        }
        let ends_n2 = self.processes[process].n2.is_some();
        self.kill_process(process);
        if ends_n2 {
            self.end_associations_of(process, Duration::ZERO);
        }
        let after = if self.is_in_set(process) {
            // Within its lease, or later.
            self.dice.millis(100, self.plan.lease.as_millis() as u64 * 3)
        } else {
            self.dice.seconds(1, 5)
        };
        self.at(after, SimEvent::Start { process });
    }
}
