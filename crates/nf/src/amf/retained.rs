//! Security contexts of deregistered UEs (TS 33.501 6.8.1.1.1): a UE that registers again by its 5G-GUTI, in
//! a message that passes the integrity check, needs no authentication. Limited in number and time.
//!
//! If contexts are stored, each has a document of its own, under an id of its own, until it is used, replaced or too old.

use super::security::SecurityContext;
use crate::kit::document::pack_struct;
use crate::kit::{Duration, Instant};
use pith_crypto::keys::KAmf;
use pith_nas::ie::UeSecurityCapability;
use pith_nas::security::Algorithms;
use pith_nas::{NasCount, Unprotected};
use pith_types::{BlockId, ContextId, FiveGGuti, FiveGTmsi, Pei, Supi};
use std::collections::{HashMap, VecDeque};

/// Limits of the retained security contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Maximum number; beyond it the oldest is deleted.
    pub contexts: usize,
    /// Maximum age, from the end of the registration.
    pub time: Duration,
}

/// A deregistered UE whose security context is retained.
#[derive(Debug)]
pub(crate) struct KnownUe {
    pub supi: Supi,
    pub pei: Option<Pei>,
    /// Its last 5G-GUTI.
    pub guti: FiveGGuti,
    pub security: SecurityContext,
}

/// A deregistered UE that passes to another shard with the block of its 5G-TMSI.
#[derive(Debug)]
pub(crate) struct PassedUe {
    /// The id of its document, as a number.
    id: Option<u64>,
    supi: Supi,
    pei: Option<Pei>,
    guti: FiveGGuti,
    security: SecurityContext,
    /// Microseconds for which it is still retained.
    left: u64,
}

pack_struct!(PassedUe { id, supi, pei, guti, security, left });

/// A table entry of a [`KnownUe`], without the NAS keys, which are derived again when needed.
#[derive(Debug)]
struct Entry {
    /// The name of its document, if contexts are stored.
    id: Option<ContextId>,
    supi: Supi,
    pei: Option<Pei>,
    guti: FiveGGuti,
    ng_ksi: u8,
    k_amf: KAmf,
    capability: UeSecurityCapability,
    algorithms: Algorithms,
    next_to_send: Option<NasCount>,
    last_received: Option<NasCount>,
    unconfirmed: u32,
    until: Instant,
    number: u64,
}

/// All retained security contexts.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    by_tmsi: HashMap<FiveGTmsi, Box<Entry>>,
    by_supi: HashMap<Supi, FiveGTmsi>,
    /// 5G-TMSI and number of each entry, oldest first; numbers of deleted entries are skipped.
    order: VecDeque<(FiveGTmsi, u64)>,
    next: u64,
    /// The entries with a document.
    by_id: HashMap<ContextId, FiveGTmsi>,
    /// Ids of entries that are new, and of those that have ended.
    changes: Vec<ContextId>,
}

/// Stale items permitted in [`Retained::order`], in addition to one for each entry, before the list
/// is cleaned.
const STALE: usize = 64;

impl Retained {
    /// Retains the security context of a UE. A context whose COUNTs are almost exhausted is not
    /// retained (TS 24.501 4.4.3.5). `id` is the name of its document, if contexts are stored.
    pub fn keep(&mut self, ue: KnownUe, id: Option<ContextId>, now: Instant, retention: Retention) {
        self.changes.extend(id);
        self.insert(ue, id, now + retention.time, retention);
        self.clear_out(now, retention.contexts);
    }

    /// Takes an entry back from its document.
    pub fn restore(&mut self, ue: KnownUe, id: ContextId, until: Instant, retention: Retention) {
        self.insert(ue, Some(id), until, retention);
    }

    /// All documents are read.
    pub fn resume(&mut self, now: Instant, retention: Retention) {
        let entries = &self.by_tmsi;
        let until = |(tmsi, _): &(FiveGTmsi, u64)| entries.get(tmsi).map(|entry| entry.until);
        self.order.make_contiguous().sort_by_key(until);
        self.clear_out(now, retention.contexts);
    }

    /// Whether entries with documents are new or have ended.
    pub const fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// The ids of entries that are new or have ended since the last call.
    pub fn take_changes(&mut self) -> Vec<ContextId> {
        std::mem::take(&mut self.changes)
    }

    /// The UE whose document has that id, and until when its security context is retained.
    pub fn find(&self, id: ContextId) -> Option<(KnownUe, Instant)> {
        let entry = self.by_tmsi.get(self.by_id.get(&id)?)?;
        let (supi, pei, guti) = (entry.supi.clone(), entry.pei.clone(), entry.guti);
        Some((KnownUe { supi, pei, guti, security: entry.security() }, entry.until))
    }

    /// The COUNT of the next downlink message of the UE whose document has that id.
    pub fn next_count(&self, id: ContextId) -> Option<NasCount> {
        self.by_tmsi.get(self.by_id.get(&id)?)?.next_to_send
    }

    /// Number of entries with a document.
    pub fn stored(&self) -> usize {
        self.by_id.len()
    }

    fn insert(&mut self, ue: KnownUe, id: Option<ContextId>, until: Instant, retention: Retention) {
        let KnownUe { supi, pei, guti, security } = ue;
        self.forget(&supi);
        if security.nas.is_near_wrap() || retention.contexts == 0 {
            return;
        }
        self.by_id.extend(id.map(|id| (id, guti.tmsi)));
        let number = self.next;
        self.next += 1;
        self.by_supi.insert(supi.clone(), guti.tmsi);
        self.order.push_back((guti.tmsi, number));
        let entry = Entry {
            id,
            supi,
            pei,
            guti,
            ng_ksi: security.ng_ksi,
            capability: security.capability,
            algorithms: security.nas.algorithms(),
            next_to_send: security.nas.next_to_send(),
            last_received: security.nas.last_received(),
            unconfirmed: security.unconfirmed,
            k_amf: security.k_amf,
            until,
            number,
        };
        self.by_tmsi.insert(guti.tmsi, Box::new(entry));
    }

    /// Deletes entries beyond the limits, and frees memory.
    fn clear_out(&mut self, now: Instant, most: usize) {
        while let Some((tmsi, number)) = self.order.front().copied() {
            let entry = self.by_tmsi.get(&tmsi).filter(|entry| entry.number == number);
            match entry {
                Some(entry) if entry.until > now && self.by_tmsi.len() <= most => break,
                Some(_) => drop(self.remove(tmsi)),
                None => {}
            }
            self.order.pop_front();
        }
        if self.order.len() > 2 * self.by_tmsi.len() + STALE {
            let entries = &self.by_tmsi;
            self.order
                .retain(|(tmsi, number)| entries.get(tmsi).is_some_and(|entry| entry.number == *number));
        }
        crate::kit::shrink(&mut self.by_tmsi);
        crate::kit::shrink(&mut self.by_supi);
        crate::kit::shrink(&mut self.by_id);
    }

    /// Removes and returns the UEs with a 5G-TMSI of that block.
    pub fn pass(&mut self, block: BlockId, now: Instant) -> Vec<PassedUe> {
        let of_block = self.by_tmsi.iter().filter(|(tmsi, _)| tmsi.block() == block);
        let mut tmsis: Vec<_> = of_block.map(|(tmsi, entry)| (entry.number, *tmsi)).collect();
        tmsis.sort_unstable();
        let mut passed = Vec::new();
        for (_, tmsi) in tmsis {
            let Some(entry) = self.by_tmsi.remove(&tmsi) else { continue };
            self.by_supi.remove(&entry.supi);
            if let Some(id) = &entry.id {
                self.by_id.remove(id);
            }
            let (security, left) = (entry.security(), entry.until.since(now).as_micros());
            let Entry { id, supi, pei, guti, .. } = *entry;
            let (id, left) = (id.map(ContextId::to_u64), left.try_into().unwrap_or(u64::MAX));
            passed.push(PassedUe { id, supi, pei, guti, security, left });
        }
        passed
    }

    /// Retains a UE that another shard has passed; returns the id of its document.
    pub fn take_passed(&mut self, ue: PassedUe, now: Instant, retention: Retention) -> Option<ContextId> {
        let PassedUe { id, supi, pei, guti, security, left } = ue;
        let time = Duration::from_micros(left).min(retention.time);
        let id = id.and_then(ContextId::from_u64);
        self.keep(KnownUe { supi, pei, guti, security }, id, now, Retention { time, ..retention });
        id
    }

    fn remove(&mut self, tmsi: FiveGTmsi) -> Option<Box<Entry>> {
        let entry = self.by_tmsi.remove(&tmsi)?;
        self.by_supi.remove(&entry.supi);
        if let Some(id) = entry.id {
            self.by_id.remove(&id);
            self.changes.push(id);
        }
        Some(entry)
    }

    /// Deletes a subscriber's entry: a newer security context replaces it, or it must no longer be used.
    pub fn forget(&mut self, supi: &Supi) {
        if let Some(tmsi) = self.by_supi.get(supi) {
            self.remove(*tmsi);
        }
    }

    /// Removes and returns the UE with that 5G-TMSI, the id of its document, and the decoded message, if its security context verifies the
    /// message.
    pub fn take(
        &mut self,
        tmsi: FiveGTmsi,
        pdu: &[u8],
        now: Instant,
    ) -> Option<(KnownUe, Option<ContextId>, Unprotected)> {
        let entry = self.by_tmsi.get(&tmsi).filter(|entry| entry.until > now)?;
        let mut security = entry.security();
        let message = security.nas.unprotect(pdu).ok()?;
        let entry = self.remove(tmsi)?;
        let Entry { id, supi, pei, guti, .. } = *entry;
        Some((KnownUe { supi, pei, guti, security }, id, message))
    }

    /// Whether the 5G-TMSI belongs to a retained UE.
    pub fn has(&self, tmsi: FiveGTmsi) -> bool {
        self.by_tmsi.contains_key(&tmsi)
    }

    pub fn len(&self) -> usize {
        self.by_tmsi.len()
    }
}

impl Entry {
    fn security(&self) -> SecurityContext {
        let mut security =
            SecurityContext::new(self.ng_ksi, self.k_amf.clone(), self.capability, self.algorithms);
        security.nas.resume(self.next_to_send, self.last_received);
        security.unconfirmed = self.unconfirmed;
        security
    }
}
