//! A block passes from one shard to another: what arrives for it meanwhile waits here, in order.
//!
//! ```text
//!  owner    ── Hold ──> messages for the block wait ── Held ──> owner     nothing more follows for it
//!  owner    ── contexts ──────────────────────────────────────> new owner
//!  new owner ── Moved ─> owner map, RAN-UE-NGAP-IDs; pending messages are routed again
//! ```
//!
//! NG RESET and the end of an association reach all shards at once, and so the new owner perhaps before it has the contexts: for these it
//! gets them once more, limited to the connections of the block.

use super::{N2Gateway, N2GatewayEffect};
use crate::kit::{GnbHandle, MovedConnection, N2Input, Passage, ResetUe, TnlaBinding};
use bytes::Bytes;
use pith_types::{BlockId, BlockMove, BlockOwner, OwnerMap, ShardId};
use std::collections::VecDeque;
use std::sync::Arc;

/// Messages that wait for one block, beyond which the block stays where it is. More are dropped only if its owner has passed it already.
const MOST_WAITING: usize = 1024;

/// Octets of these messages.
const MOST_OCTETS: usize = 1 << 20;

/// Messages that wait for a block.
#[derive(Debug)]
pub(super) struct HeldBlock {
    block: BlockId,
    /// Its owner so far.
    shard: ShardId,
    waiting: VecDeque<(GnbHandle, TnlaBinding, Bytes)>,
    octets: usize,
    /// Connections that ended: all of that gNB, or those named.
    resets: Vec<(GnbHandle, Option<Vec<ResetUe>>)>,
    /// The owner was asked to keep the block.
    is_given_up: bool,
}

impl N2Gateway {
    pub(super) fn passage(&mut self, passage: Passage<Vec<MovedConnection>>) {
        match passage {
            Passage::Hold { block, shard } => {
                self.held.push(HeldBlock {
                    block,
                    shard,
                    waiting: VecDeque::new(),
                    octets: 0,
                    resets: Vec::new(),
                    is_given_up: false,
                });
                self.out.push(N2GatewayEffect::ToShard { shard, input: N2Input::Held { block } });
            }
            Passage::Release { block } => {
                self.take_held(block).into_iter().for_each(|held| self.route_again(held.waiting));
            }
            Passage::Moved { change, has } => self.moved(change, &has),
        }
    }

    fn moved(&mut self, change: BlockMove, connections: &[MovedConnection]) {
        if let Some(owners) = self.config.owners.moved(change) {
            self.config.owners = Arc::new(owners);
        }
        let shard = change.to.shard;
        for (gnb, amf, ran) in connections {
            if let Some(interface) = self.interfaces.get_mut(gnb) {
                interface.ran_ids.move_to(*ran, (*amf, shard));
            }
        }
        self.resume_elsewhere(change.block);
        let Some(held) = self.take_held(change.block) else { return };
        for (gnb, ues) in held.resets {
            let is_over = |(of, amf, ran): &&MovedConnection| {
                let is_named = |ue: &ResetUe| ue.amf.map_or(ue.ran == Some(*ran), |named| named == *amf);
                *of == gnb && ues.as_ref().is_none_or(|ues| ues.iter().any(is_named))
            };
            let over = connections.iter().filter(is_over);
            let ues: Vec<_> =
                over.map(|(_, amf, ran)| ResetUe { amf: Some(*amf), ran: Some(*ran) }).collect();
            if !ues.is_empty() {
                let input = N2Input::Reset { gnb, ues: Some(ues) };
                self.out.push(N2GatewayEffect::ToShard { shard, input });
            }
        }
        self.route_again(held.waiting);
    }

    fn take_held(&mut self, block: BlockId) -> Option<HeldBlock> {
        let at = self.held.iter().position(|held| held.block == block)?;
        Some(self.held.remove(at))
    }

    fn route_again(&mut self, waiting: VecDeque<(GnbHandle, TnlaBinding, Bytes)>) {
        for (gnb, binding, pdu) in waiting {
            self.route_held(gnb, binding, &pdu);
        }
    }

    /// A shard has panicked: the blocks that it was about to pass stay. One that it has passed, according to its map, still waits for the
    /// new owner.
    pub(super) fn release_all_of(&mut self, shard: ShardId, owners: &OwnerMap) {
        let own = BlockOwner { instance: self.config.instance, shard };
        let stays = |held: &HeldBlock| held.shard == shard && owners.owner(held.block) == own;
        while let Some(at) = self.held.iter().position(stays) {
            let held = self.held.remove(at);
            self.route_again(held.waiting);
        }
    }

    /// Keeps a message for a block that is being passed; returns whether it did.
    pub(super) fn hold(&mut self, block: BlockId, gnb: GnbHandle, binding: TnlaBinding, pdu: &Bytes) -> bool {
        let Some(held) = self.held.iter_mut().find(|held| held.block == block) else { return false };
        if held.waiting.len() < 2 * MOST_WAITING && held.octets < 2 * MOST_OCTETS {
            held.octets += pdu.len();
            held.waiting.push_back((gnb, binding, pdu.clone()));
        }
        let is_full = held.waiting.len() > MOST_WAITING || held.octets > MOST_OCTETS;
        if is_full && !std::mem::replace(&mut held.is_given_up, true) {
            let shard = held.shard;
            self.out.push(N2GatewayEffect::ToShard { shard, input: N2Input::GiveUp { block } });
        }
        true
    }

    /// As `hold`, for a message that names a connection of that shard only by its RAN-UE-NGAP-ID.
    pub(super) fn hold_of_shard(
        &mut self,
        shard: ShardId,
        gnb: GnbHandle,
        binding: TnlaBinding,
        pdu: &Bytes,
    ) -> bool {
        let block = self.held.iter().find(|held| held.shard == shard).map(|held| held.block);
        block.is_some_and(|block| self.hold(block, gnb, binding, pdu))
    }

    /// Connections end, of a shard or of all.
    pub(super) fn note_reset(&mut self, shard: Option<ShardId>, gnb: GnbHandle, ues: Option<&[ResetUe]>) {
        for held in &mut self.held {
            if shard.is_none_or(|shard| shard == held.shard) {
                held.resets.push((gnb, ues.map(<[_]>::to_vec)));
            }
        }
    }
}

#[cfg(test)]
mod tests;
