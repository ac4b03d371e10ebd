//! Panics of shards: gateways, gNBs, UPFs and other shards continue. A shard whose contexts are not stored loses them.

use super::process::Process;
use super::{TimerId, World};
use crate::plan::Residency;
use pith_nf::fabric::ShardInput;
use pith_nf::gateway::n4::N4Gateway;
use pith_nf::kit::{N2Input, Nf};

/// Of the inputs that may cause the panic, this many do, per mille: so that it also happens in the middle of procedures.
const CHANCE: u32 = 300;

impl World {
    /// Whether the shard panics while it handles this input. Notes what must not be lost.
    pub(super) fn panics_at(&mut self, process: usize, input: &ShardInput) -> bool {
        let is_candidate = match input {
            ShardInput::N2(N2Input::Pdu { .. } | N2Input::Reset { .. })
            | ShardInput::N4(_)
            | ShardInput::Reply { .. }
            | ShardInput::Stored { .. }
            | ShardInput::Request { .. }
            | ShardInput::Move(_)
            | ShardInput::Block(_)
            | ShardInput::ForContext { .. } => true,
            ShardInput::Timer { nf, .. } => matches!(nf, Nf::Amf | Nf::Smf),
            _ => false,
        };
        // Not when faults are over: with `procedural` and `soft` the last change may be lost. Nor while the store does not answer: the next
        // run could read no contexts (docs/state.md).
        if !self.faulty
            || !self.server.answers(process)
            || self.panicking != Some(process)
            || !is_candidate
            || !self.dice.chance(CHANCE)
        {
            return false;
        }
        self.panicking = None;
        if self.processes[process].is_stored() {
            self.note_before_crash(process);
            // As in kills: the UPF may keep a session whose address and F-TEID the SMF requests again.
            self.watch.may_leak |= self.plan.residency == Residency::Soft;
        } else {
            self.watch.killed.extend(self.processes[process].nfs.iter().copied());
        }
        true
    }

    /// A shard has panicked in a turn, whose effects and changes are lost. Its next run takes its contexts over, and gets the messages again whose
    /// transactions were not over.
    pub(super) fn panic(&mut self, place: (usize, usize)) {
        let (process, shard) = place;
        self.record("fault", "world", format!("panic of shard {shard} of process {process}"));
        let n4 = self.processes[process].n4.as_ref();
        self.watch.may_leak |= n4.is_some_and(N4Gateway::is_confirming);
        self.journal().open_calls.retain(|((of, at, _), _)| (*of, *at) != place);
        let is_of_shard = |timer: &&TimerId| matches!(timer, TimerId::Nf { process, shard, .. } if (*process, *shard) == place);
        let timers: Vec<_> = self.timers.keys().filter(is_of_shard).copied().collect();
        for timer in timers {
            self.timers.stop(timer);
        }
        let mut host = self.make_shard(place);
        let Process { shard_hosts, documents, stores, take_overs, panics, .. } = &mut self.processes[process];
        *panics += 1;
        host.shard.begin_run(*panics);
        let take_over = &mut take_overs[shard];
        let gives_up = take_over.panicked(None);
        take_over.begin_run(&mut host.shard);
        let mut effects = take_over.answers(&host.shard);
        if let Some(documents) = documents {
            documents.track(&mut host.shard);
            documents.note_start(shard);
        }
        if let Some(stores) = stores {
            stores.start_run(shard, &mut host.shard);
        }
        for input in take_over.connections() {
            host.shard.handle(self.now, input, &mut effects);
        }
        let fate = |key| take_over.fate(key).filter(|_| !gives_up);
        let taken = match (documents, stores) {
            (Some(documents), _) => documents.take_over(self.now, shard, &mut host.shard, fate),
            (None, Some(stores)) => stores.take_over(self.now, shard, &mut host.shard, fate),
            (None, None) => Ok(()),
        };
        host.shard.handle(self.now, ShardInput::Start, &mut effects);
        host.shard.resume_contexts(self.now, &mut effects);
        take_over.resumed(&mut host.shard);
        shard_hosts[shard] = host;
        if let Err(error) = taken {
            self.watch.fail(format!("not taken over: {error}"));
        }
        if self.is_restoring((process, shard)) {
            // Some of the shard's contexts are not restored yet.
            self.before_crash.remove(&process);
        } else if let Err(failure) = self.check_restored(process) {
            self.watch.fail(failure.what);
        }
        let Process { shard_hosts, take_overs, .. } = &mut self.processes[process];
        let (host, take_over) = (&mut shard_hosts[shard], &mut take_overs[shard]);
        while let Some(input) = take_over.next(&mut host.shard) {
            host.shard.handle(self.now, input, &mut effects);
            take_over.handled(&host.shard);
        }
        let blocks = take_over.unannounced();
        host.shard.finish_take_over(self.now, &blocks, &mut effects);
        self.read_contexts(place, &mut effects);
        self.end_turn(place, effects);
    }
}
