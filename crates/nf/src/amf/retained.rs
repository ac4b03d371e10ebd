//! Security contexts of UEs that are no longer registered (TS 33.501 6.8.1.1.1): a UE that registers again by its 5G-GUTI,
//! in a message that passes the integrity check, needs no authentication. Bounded in number and in time.

use super::security::SecurityContext;
use crate::kit::{Duration, Instant};
use pith_crypto::keys::KAmf;
use pith_nas::ie::UeSecurityCapability;
use pith_nas::security::Algorithms;
use pith_nas::{NasCount, Unprotected};
use pith_types::{FiveGGuti, FiveGTmsi, Pei, Supi};
use std::collections::{HashMap, VecDeque};

/// How many security contexts are kept, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Contexts at most; over it the oldest is dropped.
    pub contexts: usize,
    /// Since the registration ended.
    pub time: Duration,
}

/// A UE that is known though it is not registered.
#[derive(Debug)]
pub(crate) struct KnownUe {
    /// Who it is.
    pub supi: Supi,
    /// Its equipment.
    pub pei: Option<Pei>,
    /// What it was given last.
    pub guti: FiveGGuti,
    /// Its native security context.
    pub security: SecurityContext,
}

/// The same in the table: NAS keys are derived again when they are needed.
#[derive(Debug)]
struct Entry {
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

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    by_tmsi: HashMap<FiveGTmsi, Box<Entry>>,
    by_supi: HashMap<Supi, FiveGTmsi>,
    /// 5G-TMSI and number of each entry, the oldest first; those of entries that are gone are skipped.
    order: VecDeque<(FiveGTmsi, u64)>,
    next: u64,
}

/// Stale items in [`Retained::order`] beside as many as there are entries, before they are cleared out.
const STALE: usize = 64;

impl Retained {
    /// Keeps the security context of a UE. One whose COUNTs are near their end is of no use (TS 24.501 4.4.3.5).
    pub fn keep(&mut self, ue: KnownUe, now: Instant, retention: Retention) {
        let KnownUe { supi, pei, guti, security } = ue;
        self.forget(&supi);
        if security.nas.is_near_wrap() || retention.contexts == 0 {
            return;
        }
        let number = self.next;
        self.next += 1;
        self.by_supi.insert(supi.clone(), guti.tmsi);
        self.order.push_back((guti.tmsi, number));
        let entry = Entry {
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
            until: now + retention.time,
            number,
        };
        self.by_tmsi.insert(guti.tmsi, Box::new(entry));
        self.clear_out(now, retention.contexts);
    }

    /// Drops what is too old or too much, and gives memory back.
    fn clear_out(&mut self, now: Instant, most: usize) {
        while let Some((tmsi, number)) = self.order.front().copied() {
            let entry = self.by_tmsi.get(&tmsi).filter(|entry| entry.number == number);
            match entry {
                Some(entry) if entry.until > now && self.by_tmsi.len() <= most => break,
                Some(_) => self.remove(tmsi),
                None => {}
            }
            self.order.pop_front();
        }
        if self.order.len() > 2 * self.by_tmsi.len() + STALE {
            let entries = &self.by_tmsi;
            self.order
                .retain(|(tmsi, number)| entries.get(tmsi).is_some_and(|entry| entry.number == *number));
        }
        super::table::shrink(&mut self.by_tmsi);
        super::table::shrink(&mut self.by_supi);
    }

    fn remove(&mut self, tmsi: FiveGTmsi) {
        if let Some(entry) = self.by_tmsi.remove(&tmsi) {
            self.by_supi.remove(&entry.supi);
        }
    }

    /// Forgets a subscriber: it has another security context now, or none any more.
    pub fn forget(&mut self, supi: &Supi) {
        if let Some(tmsi) = self.by_supi.remove(supi) {
            self.by_tmsi.remove(&tmsi);
        }
    }

    /// Takes out the UE of that 5G-TMSI if its security context vouches for the message, with the message.
    pub fn take(&mut self, tmsi: FiveGTmsi, pdu: &[u8], now: Instant) -> Option<(KnownUe, Unprotected)> {
        let entry = self.by_tmsi.get(&tmsi).filter(|entry| entry.until > now)?;
        let mut security = entry.security();
        let message = security.nas.unprotect(pdu).ok()?;
        let entry = self.by_tmsi.remove(&tmsi)?;
        self.by_supi.remove(&entry.supi);
        let Entry { supi, pei, guti, .. } = *entry;
        Some((KnownUe { supi, pei, guti, security }, message))
    }

    /// Whether a 5G-TMSI is that of a UE that may come back.
    pub fn has(&self, tmsi: FiveGTmsi) -> bool {
        self.by_tmsi.contains_key(&tmsi)
    }

    /// How many there are.
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
