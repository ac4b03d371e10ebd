//! Sessions in the BPF program's tables.
//!
//! New rules go into a free slot; then each key is pointed to it, in one step; then the slot of the old rules
//! is free, once no CPU has a packet that may have found it.

use super::XdpError;
use super::compile::{Compiled, Keys};
use super::program::{Program, Sizes};
use crate::rules::Rules;
use crate::sys::MapMemory;
use crate::sys::layout::{Action, Cpu, Matches, NO_INDEX, Session};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use pith_upf::contract::{Counters, DropReason, Traffic};
use std::sync::Arc;
use std::sync::atomic::{Ordering, Ordering::Release};
use std::sync::atomic::{Ordering::Relaxed, fence};
use std::time::{Duration, Instant};

/// How long a CPU may take with a packet before it counts as stuck.
const PATIENCE: Duration = Duration::from_millis(500);

/// A session in the tables.
#[derive(Debug)]
pub struct Mirrored {
    slot: u32,
    matches: Option<u32>,
    keys: Keys,
    /// Whether user space has packets of it, by its rules.
    pub user_space: bool,
    /// What the slots of its meters and counters belong to.
    pub rules: Arc<Rules>,
}

/// The tables.
#[derive(Debug)]
pub struct Tables {
    sessions: MapMemory<Session>,
    free_sessions: Vec<u32>,
    filters: MapMemory<Matches>,
    free_filters: Vec<u32>,
    cpus: MapMemory<Cpu>,
    by_teid: MapHandle,
    by_v4: MapHandle,
    by_v6: MapHandle,
}

impl Tables {
    /// Of a program that was just loaded.
    pub fn of(program: &Program, sizes: Sizes) -> Result<Self, XdpError> {
        Ok(Self {
            sessions: program.memory("sessions", 1)?,
            free_sessions: (0..sizes.sessions()).rev().collect(),
            filters: program.memory("filters", 1)?,
            free_filters: (0..sizes.filters()).rev().collect(),
            cpus: program.memory("cpus", 1)?,
            by_teid: program.table("by_teid")?,
            by_v4: program.table("by_v4")?,
            by_v6: program.table("by_v6")?,
        })
    }

    /// Makes a session's rules those that packets meet, in place of `before`. Where the tables are full the
    /// session is user space's alone.
    pub fn publish(
        &mut self,
        mut compiled: Compiled,
        rules: Arc<Rules>,
        action: Action,
        before: Option<Mirrored>,
    ) -> Option<Mirrored> {
        let filled = self.fill(&mut compiled, action);
        let published = filled.and_then(|(slot, matches)| {
            let mirrored = Mirrored {
                slot,
                matches,
                keys: compiled.keys.clone(),
                user_space: compiled.user_space,
                rules,
            };
            self.point(mirrored)
        });
        if let Some(before) = before {
            let last = self.withdraw(before);
            if let Some(session) = published.as_ref().and_then(|new| self.session(new)) {
                session.last_packet.fetch_max(last, Relaxed);
            }
        }
        published
    }

    /// Puts a session and its filters into free slots.
    fn fill(&mut self, compiled: &mut Compiled, action: Action) -> Option<(u32, Option<u32>)> {
        let session = &mut compiled.session;
        let mut matches = None;
        let mut action = action;
        if let Some(block) = compiled.matches {
            matches = self.free_filters.pop();
            match matches {
                Some(index) => self.filters.put(index, block),
                None => action = Action::ToUser,
            }
        }
        let Some(slot) = self.free_sessions.pop() else {
            self.free_filters.extend(matches);
            return None;
        };
        session.matches = matches.unwrap_or(NO_INDEX);
        if session.action.load(Relaxed) == Action::Forward as u32 {
            session.action.store(action as u32, Relaxed);
        }
        self.sessions.put(slot, std::mem::take(session));
        fence(Release);
        Some((slot, matches))
    }

    /// Points a session's keys to its slot; gives the slot back where that fails.
    fn point(&mut self, mirrored: Mirrored) -> Option<Mirrored> {
        let value = mirrored.slot.to_ne_bytes();
        let update = |(table, key): (&MapHandle, Vec<u8>)| table.update(&key, &value, MapFlags::ANY);
        let result = self.keys(&mirrored.keys).into_iter().try_for_each(update);
        match result {
            Ok(()) => Some(mirrored),
            Err(error) => {
                tracing::warn!(%error, "a session does not fit into the fast path's tables");
                self.withdraw(mirrored);
                None
            }
        }
    }

    /// Takes rules out, but for keys that lead to others by now; answers when their last packet came.
    /// Afterwards no packet meets them.
    pub fn withdraw(&mut self, mirrored: Mirrored) -> u64 {
        let value = mirrored.slot.to_ne_bytes();
        for (table, key) in self.keys(&mirrored.keys) {
            if table.lookup(&key, MapFlags::ANY).is_ok_and(|found| found.is_some_and(|slot| slot == value))
                && let Err(error) = table.delete(&key)
            {
                tracing::error!(%error, "a session can't be taken out of the fast path");
            }
        }
        self.settle();
        let last = self.last_packet(&mirrored);
        self.free_sessions.push(mirrored.slot);
        self.free_filters.extend(mirrored.matches);
        last
    }

    fn keys(&self, keys: &Keys) -> Vec<(&MapHandle, Vec<u8>)> {
        let teids = keys.teids.iter().map(|teid| (&self.by_teid, teid.to_ne_bytes().to_vec()));
        let v4 = keys.v4.map(|v4| (&self.by_v4, v4.to_ne_bytes().to_vec()));
        let v6 = keys.v6.map(|v6| (&self.by_v6, v6.to_ne_bytes().to_vec()));
        teids.chain(v4).chain(v6).collect()
    }

    /// Waits until every CPU is done with the packet that it may have had when this was called.
    pub fn settle(&self) {
        fence(Ordering::SeqCst);
        let deadline = Instant::now() + PATIENCE;
        for cpu in self.cpus.values() {
            let epoch = cpu.epoch.load(Ordering::Acquire);
            while epoch % 2 == 1 && cpu.epoch.load(Ordering::Acquire) == epoch {
                if Instant::now() > deadline {
                    return tracing::error!("a CPU is stuck in the fast path");
                }
                std::hint::spin_loop();
            }
        }
    }

    fn session(&self, mirrored: &Mirrored) -> Option<&Session> {
        self.sessions.values().get(mirrored.slot as usize)
    }

    /// Gives a session to user space, or back to its rules.
    pub fn set_action(&self, mirrored: &Mirrored, action: Action) {
        if let Some(session) = self.session(mirrored) {
            session.action.store(action as u32, Release);
        }
    }

    /// When a session's last packet came; 0 for never.
    pub fn last_packet(&self, mirrored: &Mirrored) -> u64 {
        self.session(mirrored).map_or(0, |session| session.last_packet.load(Relaxed))
    }

    /// When user space was last given a packet of a session; 0 for never.
    pub fn last_to_user(&self, mirrored: &Mirrored) -> u64 {
        self.session(mirrored).map_or(0, |session| session.to_user.load(Relaxed))
    }

    /// Adds what the program has counted.
    pub fn add_counters(&self, counters: &mut Counters) {
        for cpu in self.cpus.values() {
            let traffic = [
                (&mut counters.n3_in, &cpu.n3_in),
                (&mut counters.n3_out, &cpu.n3_out),
                (&mut counters.n6_in, &cpu.n6_in),
                (&mut counters.n6_out, &cpu.n6_out),
            ];
            for (Traffic { packets, bytes }, counted) in traffic {
                let (more_packets, more_bytes) = counted.load();
                *packets += more_packets;
                *bytes += more_bytes;
            }
        }
        let dropped = |reason: DropReason| -> u64 {
            let counts = self.cpus.values().iter().filter_map(|cpu| cpu.dropped.get(reason as usize));
            counts.map(|count| count.load(Relaxed)).sum()
        };
        counters.dropped = DropReason::ALL
            .iter()
            .map(|reason| (*reason, counters.dropped(*reason) + dropped(*reason)))
            .filter(|(_, count): &(_, u64)| *count > 0)
            .collect();
    }
}
