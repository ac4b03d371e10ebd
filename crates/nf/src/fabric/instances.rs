//! Blocks of ids that pass between the instances of a set: processes that host the same NFs over one store (TS 23.501 5.21.2 to 5.21.4).
//!
//! ```text
//!  store: owner map ──> shell ── Adopt ──> shard    the former owner is dead, or has released the block
//!         documents ──────────────────────>         contexts are restored as after a restart, while the shard serves others
//!                                          ── Moved ──> gateways, OwnersChanged ──> other shards
//! ```
//!
//! Contexts pass only by their documents: UEs are in CM-IDLE, as their N2 associations are those of the former owner, and sessions are
//! established at their UPFs again.

use super::shard::{Shard, ShardEffect};
use crate::kit::{Instant, N2Effect, N4Effect, Nf, Passage};
use pith_types::BlockMove;
use std::sync::Arc;

impl Shard {
    /// The shard has these blocks from now on: before their contexts are restored.
    pub fn begin_adoption(&mut self, changes: &[BlockMove]) {
        let mut owners = None;
        for change in changes {
            let current = owners.as_ref().unwrap_or_else(|| self.owners().as_ref());
            if let Some(changed) = current.moved(*change) {
                owners = Some(changed);
            }
        }
        let Some(owners) = owners else { return };
        self.set_owners(Arc::new(owners));
        for change in changes {
            self.functions.iter_mut().for_each(|(_, function)| function.adopt_block(change.block));
        }
    }

    /// The contexts of these blocks are restored: NFs resume them, and gateways and other shards route by the new map.
    pub(super) fn adopt(&mut self, now: Instant, changes: &[BlockMove], out: &mut Vec<ShardEffect>) {
        self.begin_adoption(changes);
        for each in 0..self.functions.len() {
            let (nf, function) = &mut self.functions[each];
            let nf = *nf;
            function.resume_adopted(now, &mut self.outbox);
            self.route(now, nf, out);
        }
        for change in changes.iter().copied() {
            if self.hosts(Nf::Amf) {
                out.push(ShardEffect::N2(N2Effect::Passage(Passage::Moved { change, has: Vec::new() })));
            }
            if self.hosts(Nf::Smf) {
                out.push(ShardEffect::N4(Box::new(N4Effect::Passage(Passage::Moved { change, has: () }))));
            }
            out.push(ShardEffect::OwnersChanged(change));
        }
    }
}
