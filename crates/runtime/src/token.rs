//! Whom an answer from another thread is for.

use pith_nf::kit::{Nf, Tag};

/// One call of one NF of one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShardToken {
    /// Which shard.
    pub shard: u16,
    /// Which of its NFs.
    pub nf: Nf,
    /// Which of the NF's calls.
    pub tag: Tag,
}
