//! The UPF's tunnel endpoint identifiers, and which session has which (TS 29.244 5.5.3).

use std::collections::HashMap;

use crate::contract::{SessionId, Teid};

/// All TEIDs in use. They are unique over all addresses of the UPF, and none is 0.
#[derive(Debug)]
pub struct Teids {
    owners: HashMap<Teid, SessionId>,
    next: u32,
}

impl Teids {
    /// None in use. `seed` says where to start, so that a UPF that restarts does not at once give out what packets
    /// on their way still name.
    pub fn new(seed: u64) -> Self {
        // Knuth's multiplicative hash spreads seeds that follow each other.
        Teids { owners: HashMap::new(), next: (seed as u32).wrapping_mul(2_654_435_761) }
    }

    /// Gives `session` a TEID; `None` if none is left.
    pub fn allocate(&mut self, session: SessionId) -> Option<Teid> {
        if self.owners.len() >= u32::MAX as usize {
            return None;
        }
        loop {
            self.next = self.next.wrapping_add(1);
            let teid = Teid(self.next);
            if self.claim(teid, session) {
                return Some(teid);
            }
        }
    }

    /// Gives `session` this TEID, unless another session has it or it is 0.
    pub fn claim(&mut self, teid: Teid, session: SessionId) -> bool {
        teid.0 != 0 && *self.owners.entry(teid).or_insert(session) == session
    }

    /// The session that has this TEID.
    pub fn owner(&self, teid: Teid) -> Option<SessionId> {
        self.owners.get(&teid).copied()
    }

    /// Takes a TEID back.
    pub fn free(&mut self, teid: Teid) {
        self.owners.remove(&teid);
    }

    /// How many are in use.
    pub fn len(&self) -> usize {
        self.owners.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_teid_has_one_owner_until_it_is_free() {
        let mut teids = Teids::new(7);
        let teid = teids.allocate(SessionId(1)).expect("one");
        assert!(!teids.claim(teid, SessionId(2)));
        assert!(teids.claim(teid, SessionId(1)), "its owner may name it again");
        teids.free(teid);
        assert!(teids.claim(teid, SessionId(2)));
    }

    #[test]
    fn allocation_passes_over_zero_and_what_is_in_use() {
        let mut teids = Teids { owners: HashMap::new(), next: u32::MAX - 1 };
        assert!(teids.claim(Teid(1), SessionId(9)));
        let given: Vec<_> = (0..2).filter_map(|_| teids.allocate(SessionId(1))).collect();
        assert_eq!(given, [Teid(u32::MAX), Teid(2)]);
        assert!(!teids.claim(Teid(0), SessionId(1)));
    }
}
