//! The UPF's TEIDs and the sessions that own them (TS 29.244 5.5.3).

use std::collections::HashMap;

use crate::contract::{SessionId, Teid};
use crate::random::Random;

/// Maximum number of TEIDs: half of all values, so that a random one is free at the second try on average.
const MAX_TEIDS: usize = 1 << 31;

/// All TEIDs in use. They are unique over all addresses of the UPF, and none is 0. They are unpredictable (TS
/// 33.513 4.2.2.6), and a restarted UPF is unlikely to allocate a TEID that packets in transit still contain.
#[derive(Debug)]
pub struct Teids {
    owners: HashMap<Teid, SessionId>,
    random: Random,
}

impl Teids {
    pub fn new(random: Random) -> Self {
        Teids { owners: HashMap::new(), random }
    }

    /// Allocates a TEID for `session`; `None` if none is left.
    pub fn allocate(&mut self, session: SessionId) -> Option<Teid> {
        if self.owners.len() >= MAX_TEIDS {
            return None;
        }
        loop {
            let teid = Teid(self.random.next_u32());
            if !self.owners.contains_key(&teid) && self.claim(teid, session) {
                return Some(teid);
            }
        }
    }

    /// Assigns this TEID to `session`, unless another session has it or it is 0.
    pub fn claim(&mut self, teid: Teid, session: SessionId) -> bool {
        teid.0 != 0 && *self.owners.entry(teid).or_insert(session) == session
    }

    /// The session that owns this TEID.
    pub fn owner(&self, teid: Teid) -> Option<SessionId> {
        self.owners.get(&teid).copied()
    }

    /// Frees a TEID.
    pub fn free(&mut self, teid: Teid) {
        self.owners.remove(&teid);
    }

    /// The number of TEIDs in use.
    pub fn len(&self) -> usize {
        self.owners.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_teid_has_one_owner_until_it_is_free() {
        let mut teids = Teids::new(Random::from_seed([7; 32]));
        let teid = teids.allocate(SessionId(1)).expect("one");
        assert!(!teids.claim(teid, SessionId(2)));
        assert!(teids.claim(teid, SessionId(1)), "its owner may name it again");
        teids.free(teid);
        assert!(teids.claim(teid, SessionId(2)));
    }

    #[test]
    fn teids_are_unique_and_differ_between_runs() {
        let given = |seed| {
            let mut teids = Teids::new(Random::from_seed([seed; 32]));
            (0..1000).filter_map(|_| teids.allocate(SessionId(1))).collect::<HashSet<_>>()
        };
        let (first, second) = (given(1), given(2));
        assert!(first.len() == 1000 && first.is_disjoint(&second) && !first.contains(&Teid(0)));
        let follow = first.iter().filter(|teid| first.contains(&Teid(teid.0.wrapping_add(1)))).count();
        assert!(follow < 3, "one tells nothing of the next");
        assert!(!Teids::new(Random::from_seed([1; 32])).claim(Teid(0), SessionId(1)));
    }
}
