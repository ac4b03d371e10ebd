//! The range of bit rates of QoS flows.

use pith_types::BitRate;

/// The highest bit rate that NGAP can encode, 4 Tbit/s (TS 38.413 9.3.1.4).
pub(crate) const MAX_RATE: BitRate = BitRate(4_000_000_000_000);
