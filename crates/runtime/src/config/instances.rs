//! The settings of a process in a set of instances.

use super::section::section;
use super::text::Period;

section! {
    /// Several processes that host the same NFs over one store, and share their UEs (AMF Set, NF Set: TS 23.501 5.21).
    NfSet {
        /// Number of this process in the set, 1 to 63, for each another one; it is also its AMF Pointer. 0: there is no set. All
        /// processes of a set have the same 'network', 'amf.region', 'amf.set', key files and reference key, and 'state.engine: redis'.
        instance: u8 = 0,
        /// If this process does not answer for this time, the others serve its UEs: 500 ms to 60 s.
        lease: Period = Period::seconds(3),
    }
}

impl NfSet {
    /// Whether the process is in a set.
    pub const fn is_used(&self) -> bool {
        self.instance != 0
    }
}
