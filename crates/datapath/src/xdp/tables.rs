//! Sessions in the BPF program's tables.
//!
//! The program finds a session by a key: a TEID, or an address of the UE. The look-up tables ([`Lookup`]) map
//! each key to a slot: the index of the session's block in `sessions`. To replace rules without a gap, the new
//! rules are written to the spare block, and each key is mapped to it by one store. When no CPU processes a
//! packet that may have found the old rules, the new rules are copied to the session's own block, and the keys
//! are mapped to that again.

use super::XdpError;
use super::compile::Compiled;
use super::lookup::{Key, Lookup};
use super::program::{Program, Sizes};
use crate::rules::Rules;
use crate::sys::MapMemory;
use crate::sys::layout::{Action, Cpu, Matches, NO_INDEX, Session};
use pith_upf::contract::{Counters, DropReason, Traffic};
use std::sync::Arc;
use std::sync::atomic::{Ordering, Ordering::Release};
use std::sync::atomic::{Ordering::Relaxed, fence};
use std::time::{Duration, Instant};

/// The longest time for one packet before a CPU counts as stuck.
const STUCK_AFTER: Duration = Duration::from_millis(500);

/// A session that was copied to the program's tables.
#[derive(Debug)]
pub struct Mirrored {
    slot: u32,
    matches: Option<u32>,
    keys: Vec<Key>,
    /// Whether any rule sends its packets to user space.
    pub user_space: bool,
    /// Whether the program can apply the rules: it can select the rule of each packet, and has room for the filters.
    pub by_program: bool,
    /// Keeps the session's block allocated.
    pub rules: Arc<Rules>,
}

#[derive(Debug)]
pub struct Tables {
    sessions: MapMemory<Session>,
    /// The spare block, for rules that are being published.
    spare: u32,
    filters: MapMemory<Matches>,
    free_filters: Vec<u32>,
    cpus: MapMemory<Cpu>,
    lookup: Lookup,
}

impl Tables {
    /// For a program that was just loaded.
    pub fn of(program: &Program, sizes: Sizes) -> Result<Self, XdpError> {
        Ok(Self {
            sessions: program.sessions()?,
            spare: sizes.session_blocks(),
            filters: program.memory("filters", 1)?,
            free_filters: (0..sizes.filters()).rev().collect(),
            cpus: program.memory("cpus", 1)?,
            lookup: Lookup::of(program)?,
        })
    }

    /// Publishes a session's rules in place of `before`. `None` for a session without a block, which user
    /// space handles alone.
    pub fn publish(
        &mut self,
        compiled: Compiled,
        rules: Arc<Rules>,
        action: Action,
        before: Option<Mirrored>,
    ) -> Option<Mirrored> {
        let slot = rules.state.block()?.index();
        let Compiled { session, matches, keys, user_space } = compiled;
        let matches = self.fill_matches(matches);
        let by_program = session.action.load(Relaxed) == Action::Forward as u32 && matches.is_ok();
        let image = Image { session: &session, matches, action };
        if let Some(before) = before {
            self.put(self.spare, &image, 0);
            self.map_keys(&keys, self.spare);
            let (own, spare) = (before.slot, self.spare);
            before.keys.iter().for_each(|key| self.remove_key(*key, own));
            self.settle();
            self.free_filters.extend(before.matches);
            self.put(slot, &image, self.last_packet(&before));
            self.map_keys(&keys, slot);
            self.settle();
            self.copy_packet_state(spare, slot);
        } else {
            self.put(slot, &image, 0);
            self.map_keys(&keys, slot);
        }
        Some(Mirrored { slot, matches: matches.ok().flatten(), keys, user_space, by_program, rules })
    }

    /// Writes filters to a free entry of `filters`. `Err`: no entry is free.
    fn fill_matches(&mut self, matches: Option<Matches>) -> Result<Option<u32>, ()> {
        let Some(matches) = matches else { return Ok(None) };
        let index = self.free_filters.pop().ok_or(())?;
        self.filters.put(index, matches);
        Ok(Some(index))
    }

    /// Writes rules to a block that no packet can find.
    fn put(&mut self, slot: u32, image: &Image<'_>, last_packet: u64) {
        self.sessions.put(slot, image.session(last_packet));
        fence(Release);
    }

    /// Copies the fields that the program set while it used another block for the session.
    fn copy_packet_state(&self, from: u32, to: u32) {
        let (Some(from), Some(to)) = (self.session(from), self.session(to)) else { return };
        to.last_packet.fetch_max(from.last_packet.load(Relaxed), Relaxed);
        to.to_user.fetch_max(from.to_user.load(Relaxed), Relaxed);
        if from.action.load(Relaxed) == Action::ToUser as u32 {
            to.action.store(Action::ToUser as u32, Release);
        }
    }

    fn map_keys(&mut self, keys: &[Key], slot: u32) {
        for key in keys {
            let sessions = &self.sessions;
            if let Err(error) = self.lookup.map(*key, slot, |slot| is_other(sessions, slot, *key)) {
                tracing::warn!(%error, "the fast path's tables have no room for a session");
            }
        }
    }

    /// Removes a key, unless it is mapped to another block meanwhile.
    fn remove_key(&mut self, key: Key, slot: u32) {
        if let Err(error) = self.lookup.remove(key, |found| found == slot) {
            tracing::error!(%error, "a session could not be removed from the fast path");
        }
    }

    /// Removes a session, except for keys that are mapped to other sessions meanwhile; returns the time of its
    /// last packet. Afterwards no packet finds its rules.
    pub fn withdraw(&mut self, mirrored: Mirrored) -> u64 {
        mirrored.keys.iter().for_each(|key| self.remove_key(*key, mirrored.slot));
        self.settle();
        self.free_filters.extend(mirrored.matches);
        self.last_packet(&mirrored)
    }

    /// Waits until every CPU has finished the packet that it was processing at the time of the call.
    pub fn settle(&self) {
        fence(Ordering::SeqCst);
        let deadline = Instant::now() + STUCK_AFTER;
        for cpu in self.cpus.firsts() {
            let epoch = cpu.epoch.load(Ordering::Acquire);
            while epoch % 2 == 1 && cpu.epoch.load(Ordering::Acquire) == epoch {
                if Instant::now() > deadline {
                    return tracing::error!("a CPU is stuck in the fast path");
                }
                std::hint::spin_loop();
            }
        }
    }

    fn session(&self, slot: u32) -> Option<&Session> {
        self.sessions.at(slot as usize).first()
    }

    /// Redirects a session's packets to user space, or forwards them by its rules again.
    pub fn set_action(&self, mirrored: &Mirrored, action: Action) {
        if let Some(session) = self.session(mirrored.slot) {
            session.action.store(action as u32, Release);
        }
    }

    /// The time of a session's last packet; 0: none.
    pub fn last_packet(&self, mirrored: &Mirrored) -> u64 {
        self.session(mirrored.slot).map_or(0, |session| session.last_packet.load(Relaxed))
    }

    /// The time of the last packet passed to user space; 0: none.
    pub fn last_to_user(&self, mirrored: &Mirrored) -> u64 {
        self.session(mirrored.slot).map_or(0, |session| session.to_user.load(Relaxed))
    }

    /// Adds the program's counters: forwarded uplink (`up`), downlink (`down`), from tunnel to tunnel (`across`), and
    /// packets that were dropped or redirected (`n3_rest`, `n6_rest`).
    pub fn add_counters(&self, counters: &mut Counters) {
        for cpu in self.cpus.firsts() {
            for (total, parts) in [
                (&mut counters.n3_in, &[&cpu.up, &cpu.across, &cpu.n3_rest][..]),
                (&mut counters.n6_out, &[&cpu.up]),
                (&mut counters.n6_in, &[&cpu.down, &cpu.n6_rest]),
                (&mut counters.n3_out, &[&cpu.down, &cpu.across]),
            ] {
                let Traffic { packets, bytes } = total;
                for (more_packets, more_bytes) in parts.iter().map(|part| part.load()) {
                    *packets += more_packets;
                    *bytes += more_bytes;
                }
            }
        }
        let dropped = |reason: DropReason| -> u64 {
            let counts = self.cpus.firsts().filter_map(|cpu| cpu.dropped.get(reason as usize));
            counts.map(|count| count.load(Relaxed)).sum()
        };
        counters.dropped = DropReason::ALL
            .iter()
            .map(|reason| (*reason, counters.dropped(*reason) + dropped(*reason)))
            .filter(|(_, count): &(_, u64)| *count > 0)
            .collect();
    }
}

/// Rules to be written to a block.
struct Image<'a> {
    session: &'a Session,
    matches: Result<Option<u32>, ()>,
    action: Action,
}

impl Image<'_> {
    /// The content of the block; its action is `ToUser` if the program has no room for the filters.
    fn session(&self, last_packet: u64) -> Session {
        let Session { flags, ue_v4, ue_v6, id, only, match_count, tenant, block, flows, peer, rules, .. } =
            *self.session;
        let mut action = self.session.action.load(Relaxed);
        if action == Action::Forward as u32 {
            action = if self.matches.is_ok() { self.action } else { Action::ToUser } as u32;
        }
        Session {
            action: action.into(),
            matches: self.matches.ok().flatten().unwrap_or(NO_INDEX),
            last_packet: last_packet.into(),
            flags,
            ue_v4,
            ue_v6,
            id,
            only,
            match_count,
            tenant,
            block,
            flows,
            peer,
            rules,
            ..Session::default()
        }
    }
}

/// Whether the session in a slot certainly has another key than this one. Only IPv6 prefixes need the test: an entry of
/// the direct-mapped table contains only 32 of their 64 bits.
fn is_other(sessions: &MapMemory<Session>, slot: u32, key: Key) -> bool {
    let Key::V6(prefix) = key else { return false };
    sessions.at(slot as usize).first().is_some_and(|session| session.ue_v6 != prefix)
}
