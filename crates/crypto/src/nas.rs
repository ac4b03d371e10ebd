//! 128-NIA0 to 3 and 128-NEA0 to 3 for NAS (TS 33.501 Annex D, TS 33.401 Annex B).
//!
//! Create [`NasMac`] and [`NasCipher`] once per security context: they contain the expanded key, so that
//! messages need no key expansion.

mod ciphering;
mod integrity;
mod snow3g;
mod uea2_uia2;

pub use ciphering::NasCipher;
pub use integrity::NasMac;

/// Direction of a message, an input of every algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Direction {
    /// From the UE.
    Uplink = 0,
    /// To the UE.
    Downlink = 1,
}

/// The identity of an unsupported algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown security algorithm {0}")]
pub struct UnknownAlgorithm(pub u8);

/// 5G integrity protection algorithms (TS 33.501 5.11.1.2); the value is the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum IntegrityAlgorithm {
    /// Null.
    Nia0 = 0,
    /// SNOW 3G.
    Nia1 = 1,
    /// AES-CMAC.
    Nia2 = 2,
    /// ZUC.
    Nia3 = 3,
}

/// 5G ciphering algorithms (TS 33.501 5.11.1.1); the value is the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CipheringAlgorithm {
    /// Null.
    Nea0 = 0,
    /// SNOW 3G.
    Nea1 = 1,
    /// AES-CTR.
    Nea2 = 2,
    /// ZUC.
    Nea3 = 3,
}

impl TryFrom<u8> for IntegrityAlgorithm {
    type Error = UnknownAlgorithm;

    fn try_from(identity: u8) -> Result<Self, UnknownAlgorithm> {
        match identity {
            0 => Ok(Self::Nia0),
            1 => Ok(Self::Nia1),
            2 => Ok(Self::Nia2),
            3 => Ok(Self::Nia3),
            _ => Err(UnknownAlgorithm(identity)),
        }
    }
}

impl TryFrom<u8> for CipheringAlgorithm {
    type Error = UnknownAlgorithm;

    fn try_from(identity: u8) -> Result<Self, UnknownAlgorithm> {
        match identity {
            0 => Ok(Self::Nea0),
            1 => Ok(Self::Nea1),
            2 => Ok(Self::Nea2),
            3 => Ok(Self::Nea3),
            _ => Err(UnknownAlgorithm(identity)),
        }
    }
}

/// The inputs of a message in addition to key and octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageInput {
    /// COUNT: 8 zero bits, NAS overflow counter, NAS sequence number (TS 24.501 4.4.3.1).
    pub count: u32,
    /// BEARER, 5 bits: the NAS connection, 1 for 3GPP access, 2 for non-3GPP access (TS 33.501 6.4.3.1,
    /// 6.4.4).
    pub bearer: u8,
    /// DIRECTION.
    pub direction: Direction,
}

impl MessageInput {
    /// COUNT || BEARER || DIRECTION || 0..0, 64 bits: the start of the input of 128-NEA2 and 128-NIA2 (TS
    /// 33.401 B.1.3, B.2.3).
    fn to_bytes(self) -> [u8; 8] {
        let [a, b, c, d] = self.count.to_be_bytes();
        [a, b, c, d, (self.bearer & 0x1f) << 3 | (self.direction as u8) << 2, 0, 0, 0]
    }
}

#[cfg(test)]
mod tests;
