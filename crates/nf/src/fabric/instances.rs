//! Blocks of ids that pass between the instances of a set: processes that host the same NFs over one store (TS 23.501 5.21.2 to 5.21.4).
//!
//! ```text
//!  store: owner map ──> shell ── Adopt ──> shard    the former owner is dead, or has released the block
//!         documents ──────────────────────>         contexts are restored as after a restart, while the shard serves others
//!                                          ── Moved ──> gateways, OwnersChanged ──> other shards
//! ```
//!
//! A block that passes between two instances that live is drained first:
//!
//! ```text
//!  shell ── Move, to another instance ──> shard    releases the connections of the block's UEs, until there are none
//!                                         shard ── Hold ──> gateways, as for a move between shards
//!        <── Released ────────────────────         its transactions are over, and its documents are stored: its contexts leave memory
//!  shell ── replaces the owner map ──> store ──> the other instance adopts the block
//! ```
//!
//! Contexts pass only by their documents: UEs are in CM-IDLE, as their N2 associations are those of the former owner, and sessions are
//! established at their UPFs again.

use super::owner::block_of;
use super::shard::{Shard, ShardEffect};
use crate::kit::{Input, Instant, N2Effect, N4Effect, Nf, Passage, SetInstances};
use pith_sbi::{ApiRoot, Problem, ProblemMore, Request, Uri};
use pith_types::{BlockId, BlockMove};
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
        changes.iter().for_each(|change| self.announce_owner(*change, out));
    }

    /// Instances of the set have come or gone.
    pub(super) fn change_instances(&mut self, instances: &Arc<SetInstances>, out: &mut Vec<ShardEffect>) {
        self.functions.iter_mut().for_each(|(_, function)| function.change_instances(instances));
        self.agent.set_instances(Arc::clone(instances));
        if self.hosts(Nf::Amf) {
            out.push(ShardEffect::N2(N2Effect::Instances(Arc::clone(instances))));
        }
    }

    /// A request from outside for a context that another instance of the set has is redirected to that instance (TS 29.500 6.10.9): only
    /// the owner answers. Returns any other input.
    pub(super) fn redirect_if_elsewhere(
        &mut self,
        now: Instant,
        (nf, input, asked): (Nf, Input, u16),
        out: &mut Vec<ShardEffect>,
    ) -> Option<Input> {
        let Input::Request { reply, request } = input else { return Some(input) };
        let own = self.agent.owner().instance;
        let owner = block_of(&request).map(|block| self.owners().owner(block).instance);
        let elsewhere = owner.filter(|owner| *owner != own && asked == 0 && reply.is_remote());
        let Some(owner) = elsewhere.filter(|_| !self.agent.instances().roots.is_empty()) else {
            return Some(Input::Request { reply, request });
        };
        let problem = match self.agent.instances().root_of_living(owner) {
            Some(root) => redirection(root, &request),
            // Its blocks have another owner soon.
            None => later(),
        };
        reply.refuse(problem, &mut self.outbox);
        self.route(now, nf, out);
        None
    }

    /// Whether UEs of a block are connected.
    pub(super) fn has_connections(&self, block: BlockId) -> bool {
        self.functions.iter().any(|(_, function)| !function.connections_of(block).is_empty())
    }

    /// Releases the connections of a block that leaves for another instance; when there are none, it passes on like one that leaves for
    /// another shard.
    pub(super) fn make_idle(&mut self, now: Instant, out: &mut Vec<ShardEffect>) {
        let Some(change) = self.passages.idling else { return };
        if !self.has_connections(change.block) {
            self.passages.idling = None;
            return self.hold_block(change, out);
        }
        for each in 0..self.functions.len() {
            let (nf, function) = &mut self.functions[each];
            let nf = *nf;
            function.make_idle(now, change.block, &mut self.outbox);
            self.route(now, nf, out);
        }
    }

    /// The contexts of a block have left memory, and gateways route no longer to this shard.
    pub(super) fn released(&self, change: BlockMove, out: &mut Vec<ShardEffect>) {
        self.announce_owner(change, out);
        out.push(ShardEffect::Released(change));
        out.push(ShardEffect::MoveEnded { change, result: Ok(()) });
    }

    /// Gateways and the other shards learn the owner of a block.
    fn announce_owner(&self, change: BlockMove, out: &mut Vec<ShardEffect>) {
        if self.hosts(Nf::Amf) {
            out.push(ShardEffect::N2(N2Effect::Passage(Passage::Moved { change, has: Vec::new() })));
        }
        if self.hosts(Nf::Smf) {
            out.push(ShardEffect::N4(Box::new(N4Effect::Passage(Passage::Moved { change, has: () }))));
        }
        out.push(ShardEffect::OwnersChanged(change));
    }
}

fn redirection(root: &Arc<ApiRoot>, request: &Request) -> Problem {
    let http = request.to_http();
    let query = if http.query.is_empty() { String::new() } else { format!("?{}", http.query) };
    let mut problem = Problem::of_status(307);
    problem.more = Some(ProblemMore::Redirect(Uri::new(root, &format!("{}{query}", http.path))));
    problem
}

fn later() -> Problem {
    let mut problem = Problem::of_status(503).detail("the instance that has the context does not answer");
    problem.more = Some(ProblemMore::RetryAfter(1));
    problem
}
