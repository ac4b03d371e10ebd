//! Frees the memory of tables that a flood has enlarged.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

/// Entries for which a table always keeps capacity.
pub(super) const SPARE: usize = 1024;

/// Whether a table is less than a quarter full, so that it should shrink to twice its entries. Until it is that empty
/// again it loses half of its entries, so the cost of shrinking is constant for each removal.
pub(crate) const fn is_oversized(capacity: usize, len: usize) -> bool {
    capacity > 4 * len + SPARE
}

/// Shrinks a table that is less than a quarter full.
pub(crate) fn shrink<K: Eq + Hash, V, S: BuildHasher>(table: &mut HashMap<K, V, S>) {
    if is_oversized(table.capacity(), table.len()) {
        table.shrink_to(2 * table.len());
    }
}
