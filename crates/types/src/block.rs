//! Ids that contain their block. Each id space is divided into blocks; the [`crate::OwnerMap`] says which shard of which
//! instance has a block now.
//!
//! ```text
//!  AMF-UE-NGAP-ID  40 bits   block 10 | connection 30
//!  5G-TMSI         32 bits   block 10 | UE 22
//!  SEID            64 bits   block 10 | session 54
//!  context id      42 bits   block 10 | context 32      in references of resources and callbacks
//! ```
//!
//! A gateway or a peer NF routes a message by the id alone, without a look-up of the UE. An id stays what it is when its block
//! passes to another owner, and after a restart.
//!
//! The block of a 5G-TMSI is in its high bits: the low ones select the UE's paging occasion (5G-S-TMSI mod 1024, TS 38.304
//! 7.1) and are to be evenly distributed.

use crate::{FiveGTmsi, ParseError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One instance of an NF in its set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct InstanceId(pub u8);

/// One shard of an instance, 0 to 63.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct ShardId(pub u8);

impl ShardId {
    /// Maximum number of shards of an instance.
    pub const LIMIT: usize = 64;
}

/// One block of each id space: 10 bits of every id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(u16);

impl BlockId {
    /// Bits of a block in an id.
    const BITS: u32 = 10;

    /// Number of blocks.
    pub const COUNT: u16 = 1 << Self::BITS;

    /// `None` if there is no block with that number.
    pub const fn new(number: u16) -> Option<Self> {
        if number < Self::COUNT { Some(Self(number)) } else { None }
    }

    /// All blocks.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }

    /// The number, below [`BlockId::COUNT`].
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The block in the low bits.
    const fn of_low_bits(bits: u64) -> Self {
        Self(bits as u16 & (Self::COUNT - 1))
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// The name of a context (a UE, a session, an authentication, a policy association) for other NFs and in documents.
///
/// Its text is that of the number in lower-case hexadecimal digits: the block, then eight digits of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContextId {
    /// The block.
    pub block: BlockId,
    /// The context in that block.
    pub number: u32,
}

impl ContextId {
    /// The id as one number.
    pub const fn to_u64(self) -> u64 {
        (self.block.0 as u64) << 32 | self.number as u64
    }

    /// The inverse of [`ContextId::to_u64`]; `None` if the number has more than 42 bits.
    pub const fn from_u64(value: u64) -> Option<Self> {
        if value >> (32 + BlockId::BITS) != 0 {
            return None;
        }
        Some(Self { block: BlockId::of_low_bits(value >> 32), number: value as u32 })
    }
}

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:09x}", self.to_u64())
    }
}

impl FromStr for ContextId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let is_hex = |octet: u8| matches!(octet, b'0'..=b'9' | b'a'..=b'f');
        let value = Some(text).filter(|text| (9..=11).contains(&text.len()) && text.bytes().all(is_hex));
        let id = value.and_then(|text| u64::from_str_radix(text, 16).ok()).and_then(Self::from_u64);
        id.ok_or_else(|| {
            ParseError::new(text, "a context id of 9 to 11 hexadecimal digits, such as 1f00000001")
        })
    }
}

/// The UE's id on N2, assigned by the AMF (TS 38.413 9.3.3.1), 40 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AmfUeNgapId(u64);

impl AmfUeNgapId {
    /// The largest value.
    pub const MAX: u64 = (1 << 40) - 1;

    /// Bits of the owner's part.
    const OWN_BITS: u32 = 40 - BlockId::BITS;

    /// The largest owner's part.
    pub const MAX_OWN: u32 = (1 << Self::OWN_BITS) - 1;

    /// `None` if the value has more than 40 bits.
    pub const fn from_wire(value: u64) -> Option<Self> {
        if value <= Self::MAX { Some(Self(value)) } else { None }
    }

    /// The id of the connection with that number (30 bits) in that block.
    pub const fn new(block: BlockId, connection: u32) -> Self {
        Self((block.0 as u64) << Self::OWN_BITS | (connection & Self::MAX_OWN) as u64)
    }

    /// Its block.
    pub const fn block(self) -> BlockId {
        BlockId::of_low_bits(self.0 >> Self::OWN_BITS)
    }

    /// The owner's part, 30 bits.
    pub const fn own(self) -> u32 {
        self.0 as u32 & Self::MAX_OWN
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
    /// Bits of the owner's part.
    const OWN_BITS: u32 = 64 - BlockId::BITS;

    /// The SEID of the session with that number (54 bits) in that block.
    pub const fn new(block: BlockId, session: u64) -> Self {
        Self((block.0 as u64) << Self::OWN_BITS | session & ((1 << Self::OWN_BITS) - 1))
    }

    /// Its block.
    pub const fn block(self) -> BlockId {
        BlockId::of_low_bits(self.0 >> Self::OWN_BITS)
    }

    /// The owner's part, 54 bits.
    pub const fn own(self) -> u64 {
        self.0 & ((1 << Self::OWN_BITS) - 1)
    }
}

impl FiveGTmsi {
    /// Bits of the owner's part.
    pub const OWN_BITS: u32 = 32 - BlockId::BITS;

    /// The 5G-TMSI with those low 22 bits in that block.
    pub const fn new(block: BlockId, ue: u32) -> Self {
        Self((block.0 as u32) << Self::OWN_BITS | ue & ((1 << Self::OWN_BITS) - 1))
    }

    /// Its block.
    pub const fn block(self) -> BlockId {
        BlockId::of_low_bits((self.0 >> Self::OWN_BITS) as u64)
    }

    /// The owner's part, 22 bits.
    pub const fn own(self) -> u32 {
        self.0 & ((1 << Self::OWN_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_contains_its_block() {
        for block in [0, 1, 0x155, BlockId::COUNT - 1] {
            let block = BlockId::new(block).unwrap();
            let ngap = AmfUeNgapId::new(block, 0x2bcd_ef01);
            assert_eq!((ngap.block(), ngap.own()), (block, 0x2bcd_ef01));
            assert_eq!(AmfUeNgapId::from_wire(ngap.value()), Some(ngap));
            let seid = Seid::new(block, 0x2a_0000_0000_0007);
            assert_eq!((seid.block(), seid.own()), (block, 0x2a_0000_0000_0007));
            let tmsi = FiveGTmsi::new(block, 0x3f_ffff);
            assert_eq!((tmsi.block(), tmsi.own()), (block, 0x3f_ffff));
            let id = ContextId { block, number: 0xfedc_ba98 };
            assert_eq!(ContextId::from_u64(id.to_u64()), Some(id));
        }
        assert_eq!(AmfUeNgapId::from_wire(1 << 40), None);
        assert_eq!(ContextId::from_u64(1 << 42), None);
        assert_eq!(BlockId::new(BlockId::COUNT), None);
    }

    #[test]
    fn a_number_that_is_too_large_leaves_the_block_as_it_is() {
        let block = BlockId::new(3).unwrap();
        assert_eq!(AmfUeNgapId::new(block, u32::MAX).block(), block);
        assert_eq!(Seid::new(block, u64::MAX).block(), block);
        assert_eq!(FiveGTmsi::new(block, u32::MAX).block(), block);
    }

    #[test]
    fn a_context_id_has_one_text() {
        for (block, number, text) in
            [(0, 1, "000000001"), (0x1f, 1, "1f00000001"), (0x3ff, 0xffff_ffff, "3ffffffffff")]
        {
            let id = ContextId { block: BlockId::new(block).unwrap(), number };
            assert_eq!(id.to_string(), text);
            assert_eq!(text.parse(), Ok(id));
        }
        for text in
            ["", "1", "00000001", "40000000000", "1F00000001", "+1f00000001", "1f0000000g", "0001f00000001"]
        {
            assert!(text.parse::<ContextId>().is_err(), "{text}");
        }
    }

    #[test]
    fn paging_occasions_are_even_within_a_block() {
        let block = BlockId::new(0x3ff).unwrap();
        let mut seen = [0; 1024];
        for ue in 0..4096 {
            seen[FiveGTmsi::new(block, ue).0 as usize % 1024] += 1;
        }
        assert!(seen.iter().all(|ues| *ues == 4), "5G-S-TMSI mod 1024 depends on the low bits only");
    }
}
