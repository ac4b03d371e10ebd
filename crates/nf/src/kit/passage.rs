//! The contexts of a block on their way from one shard to another ([`crate::fabric`] has the protocol).
//!
//! Documents are in the local form: gNBs and UPFs have the same handles in all shards of a process.

use super::document::Document;
use super::{Nf, UpfHandle};
use pith_types::{AmfUeNgapId, BlockId, BlockMove, ContextId, RanUeNgapId, ShardId};

/// A context that passes to another shard.
#[derive(Debug, Clone)]
pub struct PassedContext {
    /// Its name, which stays.
    pub id: ContextId,
    /// Its key in the table of the former owner: replies to its calls have this as their owner.
    pub key: u64,
    /// Its document in the local form.
    pub document: Document,
    /// If it has a document in a store: the lowest NAS COUNT that this does not reserve.
    pub stored: Option<u32>,
}

/// What an NF passes of a block.
#[derive(Debug, Clone, Default)]
pub struct PassedPart {
    /// The contexts.
    pub contexts: Vec<PassedContext>,
    /// What else belongs to the block, in a form that the NF chooses.
    pub rest: Option<Document>,
}

/// A block with its contexts.
#[derive(Debug, Clone)]
pub struct PassedBlock {
    /// The change of the owner map.
    pub change: BlockMove,
    /// What each NF passes.
    pub parts: Vec<(Nf, PassedPart)>,
}

/// What shards tell a gateway of the passage of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passage<Moved> {
    /// A shard is about to pass a block: what arrives for the block waits from now on. The gateway answers in the order of its inputs for
    /// that shard.
    Hold {
        /// The block.
        block: BlockId,
        /// Its owner.
        shard: ShardId,
    },
    /// The block stays: pending inputs are for its owner.
    Release {
        /// The block.
        block: BlockId,
    },
    /// The block has its new owner: pending inputs are for it, in order.
    Moved {
        /// The change of the owner map.
        change: BlockMove,
        /// What the new owner has.
        has: Moved,
    },
}

/// An NG connection of a block: gNB, and both ids.
pub type MovedConnection = (super::GnbHandle, AmfUeNgapId, RanUeNgapId);

/// What a UPF did while a block passed to a shard that may have learnt it before it had the sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpfLoss {
    /// [`super::N4Input::UpfRestarted`].
    Restarted(UpfHandle),
    /// [`super::N4Input::UpfDown`].
    Down(UpfHandle),
}

/// What happened to a UE address of another shard's block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressNews {
    /// Its session has ended.
    Released(std::net::IpAddr),
    /// A restored session has it.
    Used(std::net::IpAddr),
}
