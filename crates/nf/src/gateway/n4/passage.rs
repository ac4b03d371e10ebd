//! A block passes from one shard to another: reports for its sessions wait meanwhile, in order (see the N2 gateway).
//!
//! Losses of UPFs reach all shards at once, and so the new owner perhaps before it has the sessions: it gets them once more.

use super::{Association, N4Gateway, N4GatewayEffect};
use crate::kit::{N4Input, N4Transaction, Passage, UpfLoss};
use pith_pfcp::Message;
use pith_types::{BlockId, BlockOwner, OwnerMap, Seid, ShardId};
use std::collections::VecDeque;
use std::sync::Arc;

/// Reports that wait for one block. A further one is not recorded: its UPF repeats it after T1.
const MOST_WAITING: usize = 1024;

/// Reports that wait for a block.
#[derive(Debug)]
pub(super) struct HeldBlock {
    block: BlockId,
    /// Its owner so far.
    shard: ShardId,
    waiting: VecDeque<(N4Transaction, Seid, Message)>,
    losses: Vec<UpfLoss>,
}

impl N4Gateway {
    pub(super) fn passage(&mut self, passage: Passage<()>) {
        match passage {
            Passage::Hold { block, shard } => {
                self.held.push(HeldBlock { block, shard, waiting: VecDeque::new(), losses: Vec::new() });
                self.out.push(N4GatewayEffect::ToShard { shard, input: N4Input::Held { block } });
            }
            Passage::Release { block } => {
                if let Some(held) = self.take_held(block) {
                    self.drain(held.shard, held.waiting);
                }
            }
            Passage::Moved { change, has: () } => {
                if let Some(owners) = self.config.owners.moved(change) {
                    self.config.owners = Arc::new(owners);
                }
                let shard = change.to.shard;
                let Some(held) = self.take_held(change.block) else { return };
                self.repeat_losses(shard, &held.losses);
                self.drain(shard, held.waiting);
            }
        }
    }

    fn take_held(&mut self, block: BlockId) -> Option<HeldBlock> {
        let at = self.held.iter().position(|held| held.block == block)?;
        Some(self.held.remove(at))
    }

    fn drain(&mut self, shard: ShardId, waiting: VecDeque<(N4Transaction, Seid, Message)>) {
        for (transaction, seid, message) in waiting {
            let input = N4Input::Request { transaction, seid, message };
            self.out.push(N4GatewayEffect::ToShard { shard, input });
        }
    }

    fn repeat_losses(&mut self, shard: ShardId, losses: &[UpfLoss]) {
        for loss in losses {
            let input = match *loss {
                UpfLoss::Restarted(upf) => N4Input::UpfRestarted { upf },
                UpfLoss::Down(upf) => N4Input::UpfDown { upf },
            };
            self.out.push(N4GatewayEffect::ToShard { shard, input });
        }
        let again = self.peers.iter().filter(|_| !losses.is_empty());
        let inputs: Vec<_> = again
            .filter_map(|peer| match &peer.association {
                Association::Up { handle, info, .. } => {
                    Some(N4Input::UpfUp { upf: *handle, info: Arc::clone(info) })
                }
                Association::Down => None,
            })
            .collect();
        self.out.extend(inputs.into_iter().map(|input| N4GatewayEffect::ToShard { shard, input }));
    }

    /// A shard has panicked: the blocks that it was about to pass stay. One that it has passed, according to its map, still waits for the
    /// new owner.
    pub(super) fn release_all_of(&mut self, shard: ShardId, owners: &OwnerMap) {
        let own = BlockOwner { instance: self.config.instance, shard };
        let stays = |held: &HeldBlock| held.shard == shard && owners.owner(held.block) == own;
        while let Some(at) = self.held.iter().position(stays) {
            let held = self.held.remove(at);
            self.drain(held.shard, held.waiting);
        }
    }

    /// The block of a session, if it is being passed.
    pub(super) fn held_block(&mut self, seid: Seid) -> Option<&mut HeldBlock> {
        self.held.iter_mut().find(|held| held.block == seid.block())
    }

    /// A UPF is lost.
    pub(super) fn note_loss(&mut self, input: &N4Input) {
        let loss = match input {
            N4Input::UpfRestarted { upf } => UpfLoss::Restarted(*upf),
            N4Input::UpfDown { upf } => UpfLoss::Down(*upf),
            _ => return,
        };
        self.held.iter_mut().for_each(|held| held.losses.push(loss));
    }
}

impl HeldBlock {
    pub(super) const fn block(&self) -> BlockId {
        self.block
    }

    /// Whether no further report can wait.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= MOST_WAITING
    }

    /// Keeps a report.
    pub(super) fn push(&mut self, transaction: N4Transaction, seid: Seid, message: Message) {
        self.waiting.push_back((transaction, seid, message));
    }
}
