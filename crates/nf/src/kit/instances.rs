//! The instances of the process's set, as a shard knows them.

use pith_sbi::ApiRoot;
use pith_types::{BlockId, InstanceId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Instances that host the same NFs over one store; empty if there is no set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetInstances {
    /// The apiRoot of each instance, also of one that is gone: contexts name it.
    pub roots: BTreeMap<InstanceId, Arc<ApiRoot>>,
    /// The instances that live.
    pub living: BTreeSet<InstanceId>,
    /// The store of the set does not answer, or has not answered for long enough since: an instance of `living` may be gone.
    pub is_uncertain: bool,
    /// The home of each block: the instance whose AMF Pointer 5G-GUTIs of the block have, so that a gNB selects that AMF. Another
    /// instance has the block only as long as its home is gone.
    pub homes: Arc<[InstanceId]>,
}

impl SetInstances {
    /// The home of a block, if it is known.
    pub fn home(&self, block: BlockId) -> Option<InstanceId> {
        self.homes.get(usize::from(block.number())).copied()
    }

    /// Whether an instance is gone, or may be: its blocks have another owner as soon as the store answers. Without a set, none is.
    pub fn may_be_gone(&self, instance: InstanceId) -> bool {
        !self.roots.is_empty() && (self.is_uncertain || !self.living.contains(&instance))
    }

    /// Whether an instance has that apiRoot.
    pub fn has_root(&self, root: &ApiRoot) -> bool {
        self.roots.values().any(|of| **of == *root)
    }

    /// The apiRoot of an instance that lives.
    pub fn root_of_living(&self, instance: InstanceId) -> Option<&Arc<ApiRoot>> {
        self.roots.get(&instance).filter(|_| self.living.contains(&instance))
    }

    /// The instance that has an apiRoot, and lives.
    pub fn is_living(&self, root: &ApiRoot) -> bool {
        self.roots.iter().any(|(instance, of)| **of == *root && self.living.contains(instance))
    }
}
