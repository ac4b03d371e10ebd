//! Identifies the receiver of another thread's answer.

use pith_nf::kit::{Nf, Tag};

/// A call of an NF of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShardToken {
    /// The shard.
    pub shard: u16,
    /// The NF.
    pub nf: Nf,
    /// The call's tag within the NF.
    pub tag: Tag,
}
