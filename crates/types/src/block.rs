//! Ids that contain their owner: each id space is divided into blocks, one for each (instance, shard).
//!
//! ```text
//!  AMF-UE-NGAP-ID  40 bits   instance 8 | shard 8 | UE 24
//!  5G-TMSI         32 bits   instance 4 | shard 6 | UE 22
//!  SEID            64 bits   instance 8 | shard 8 | session 48
//! ```
//!
//! A gateway or a peer NF routes a message by the id alone, without a look-up of the UE. The low bits are the
//! owner's: a table index and some bits of generation.

use crate::FiveGTmsi;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One instance of an NF in its set, 0 to 15.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct InstanceId(pub u8);

/// One shard of an instance, 0 to 63.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct ShardId(pub u8);

impl ShardId {
    /// Maximum number of shards of an instance: 6 bits of the 5G-TMSI contain the shard.
    pub const LIMIT: usize = 64;
}

/// The UE's id on N2, assigned by the AMF (TS 38.413 9.3.3.1), 40 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AmfUeNgapId(u64);

impl AmfUeNgapId {
    /// The largest value.
    pub const MAX: u64 = (1 << 40) - 1;

    /// `None` if the value has more than 40 bits.
    pub const fn from_wire(value: u64) -> Option<Self> {
        if value <= Self::MAX { Some(Self(value)) } else { None }
    }

    /// The id of the UE with that index (24 bits) in that block.
    pub const fn new(instance: InstanceId, shard: ShardId, ue: u32) -> Self {
        Self((instance.0 as u64) << 32 | (shard.0 as u64) << 24 | (ue as u64 & 0xff_ffff))
    }

    /// The instance that owns the UE.
    pub const fn instance(self) -> InstanceId {
        InstanceId((self.0 >> 32) as u8)
    }

    /// The shard of that instance.
    pub const fn shard(self) -> ShardId {
        ShardId((self.0 >> 24) as u8)
    }

    /// The owner's part, 24 bits.
    pub const fn ue(self) -> u32 {
        self.0 as u32 & 0xff_ffff
    }

    /// The value on the wire.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for AmfUeNgapId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AmfUeNgapId({:#x})", self.0)
    }
}

/// The UE's id on N2, assigned by its gNB (TS 38.413 9.3.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RanUeNgapId(pub u32);

/// Tunnel Endpoint Identifier of GTP-U (TS 29.281 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Teid(pub u32);

/// Session Endpoint Identifier of PFCP (TS 29.244 5.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Seid(pub u64);

impl Seid {
    /// The SEID of the session with that number (48 bits) in that block.
    pub const fn new(instance: InstanceId, shard: ShardId, session: u64) -> Self {
        Self((instance.0 as u64) << 56 | (shard.0 as u64) << 48 | (session & 0xffff_ffff_ffff))
    }

    /// The instance that owns the session.
    pub const fn instance(self) -> InstanceId {
        InstanceId((self.0 >> 56) as u8)
    }

    /// The shard of that instance.
    pub const fn shard(self) -> ShardId {
        ShardId((self.0 >> 48) as u8)
    }

    /// The owner's part, 48 bits.
    pub const fn session(self) -> u64 {
        self.0 & 0xffff_ffff_ffff
    }
}

impl FiveGTmsi {
    /// The 5G-TMSI with those low 22 bits in that block.
    pub const fn new(instance: InstanceId, shard: ShardId, ue: u32) -> Self {
        Self((instance.0 as u32 & 0xf) << 28 | (shard.0 as u32 & 0x3f) << 22 | (ue & 0x3f_ffff))
    }

    /// The instance that owns the UE.
    pub const fn instance(self) -> InstanceId {
        InstanceId((self.0 >> 28) as u8)
    }

    /// The shard of that instance.
    pub const fn shard(self) -> ShardId {
        ShardId((self.0 >> 22) as u8 & 0x3f)
    }

    /// The owner's part, 22 bits.
    pub const fn ue(self) -> u32 {
        self.0 & 0x3f_ffff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_contains_instance_and_shard() {
        let (instance, shard) = (InstanceId(9), ShardId(63));
        let ngap = AmfUeNgapId::new(instance, shard, 0xab_cdef);
        assert_eq!((ngap.instance(), ngap.shard(), ngap.ue()), (instance, shard, 0xab_cdef));
        let seid = Seid::new(instance, shard, 7);
        assert_eq!((seid.instance(), seid.shard(), seid.session()), (instance, shard, 7));
        let tmsi = FiveGTmsi::new(instance, shard, 0x3f_ffff);
        assert_eq!((tmsi.instance(), tmsi.shard(), tmsi.ue()), (instance, shard, 0x3f_ffff));
        assert_eq!(AmfUeNgapId::from_wire(1 << 40), None);
    }
}
