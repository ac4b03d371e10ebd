//! Types for keys and challenge values, each with its length.
//!
//! A key has no `Debug` output, is compared in constant time, and is overwritten when dropped. Values sent in
//! cleartext (RAND, AUTN, AUTS) are plain types.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::{Zeroize, Zeroizing};

/// A text is not the hexadecimal form of a value of this length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {digits} hexadecimal digits")]
pub struct ParseHexError {
    /// Number of digits of the value.
    pub digits: usize,
}

/// Compares octet strings in constant time.
pub(crate) fn equal_in_constant_time(a: &[u8], b: &[u8]) -> bool {
    verify_slices_are_equal(a, b).is_ok()
}

/// Octets `FROM .. FROM + N` of a longer array; a range outside of it does not compile.
pub(crate) fn part<const FROM: usize, const N: usize, const LEN: usize>(octets: &[u8; LEN]) -> [u8; N] {
    const { assert!(FROM + N <= LEN) };
    std::array::from_fn(|i| octets[FROM + i])
}

fn from_hex<const N: usize>(text: &str) -> Result<[u8; N], ParseHexError> {
    let error = ParseHexError { digits: 2 * N };
    if text.len() != 2 * N {
        return Err(error);
    }
    let mut octets = [0; N];
    for (octet, pair) in octets.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *octet = hex_octet([pair[0], pair[1]]).ok_or(error)?;
    }
    Ok(octets)
}

/// The octet of two hexadecimal digits in either case.
pub(crate) fn hex_octet([high, low]: [u8; 2]) -> Option<u8> {
    Some(hex_digit(high)? << 4 | hex_digit(low)?)
}

fn hex_digit(character: u8) -> Option<u8> {
    let digit = char::from(character).to_digit(16)?;
    u8::try_from(digit).ok()
}

fn to_hex(octets: &[u8]) -> String {
    hex::encode(octets)
}

/// Methods of all values with a fixed length.
macro_rules! octets {
    ($name:ident, $length:literal) => {
        impl $name {
            /// Length in octets.
            pub const LEN: usize = $length;

            /// Creates a value from octets.
            pub const fn new(octets: [u8; $length]) -> Self {
                Self(octets)
            }

            /// The octets in cleartext.
            pub const fn as_bytes(&self) -> &[u8; $length] {
                &self.0
            }

            /// Lower-case hexadecimal digits in cleartext.
            pub fn to_hex(&self) -> String {
                to_hex(&self.0)
            }
        }

        impl From<[u8; $length]> for $name {
            fn from(octets: [u8; $length]) -> Self {
                Self(octets)
            }
        }

        impl TryFrom<&[u8]> for $name {
            type Error = std::array::TryFromSliceError;

            fn try_from(octets: &[u8]) -> Result<Self, Self::Error> {
                octets.try_into().map(Self)
            }
        }

        impl Serialize for $name {
            /// Serializes as hexadecimal digits in cleartext, the format of keys in TS 29.503 and TS 29.509.
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&Zeroizing::new(self.to_hex()))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Zeroizing::new(String::deserialize(deserializer)?);
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl FromStr for $name {
            type Err = ParseHexError;

            /// Parses hexadecimal digits in either case.
            fn from_str(text: &str) -> Result<Self, ParseHexError> {
                from_hex(text).map(Self)
            }
        }
    };
}

macro_rules! secrets {
    ($($(#[$doc:meta])* $name:ident[$length:literal];)*) => {$(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name([u8; $length]);

        octets!($name, $length);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                equal_in_constant_time(&self.0, &other.0)
            }
        }

        impl Eq for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                self.0.zeroize();
            }
        }
    )*};
}

macro_rules! public_values {
    ($($(#[$doc:meta])* $name:ident[$length:literal];)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name([u8; $length]);

        octets!($name, $length);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.to_hex())
            }
        }
    )*};
}

secrets! {
    /// The subscriber's permanent key K (TS 33.102 6.3.2), 128 bits.
    SubscriberKey[16];
    /// A 256-bit K, for TUAK (TS 35.231).
    SubscriberKey256[32];
    /// OP, the operator's Milenage constant (TS 35.206 4.1).
    Op[16];
    /// OPc, derived from OP and the subscriber's key (TS 35.206 4.1).
    Opc[16];
    /// TOP, the operator's TUAK constant (TS 35.231).
    Top[32];
    /// TOPc, derived from TOP and the subscriber's key (TS 35.231).
    Topc[32];
    /// CK, the cipher key (TS 33.102 6.3.2), or CK' where stated.
    Ck[16];
    /// IK, the integrity key (TS 33.102 6.3.2), or IK' where stated.
    Ik[16];
    /// RES* and XRES*: the response to a 5G AKA challenge (TS 33.501 A.4).
    ResStar[16];
    /// HRES* and HXRES*, compared by the SEAF (TS 33.501 A.5).
    HresStar[16];
    /// K_AUSF, stored at the AUSF (TS 33.501 6.2.1).
    KAusf[32];
    /// K_SEAF, the anchor key (TS 33.501 6.2.1).
    KSeaf[32];
    /// K_AMF (TS 33.501 6.2.1).
    KAmf[32];
    /// K_gNB, and K_NG-RAN* after a handover (TS 33.501 6.2.1).
    KGnb[32];
    /// NH, the next hop parameter (TS 33.501 6.9.2.1.1).
    Nh[32];
    /// K_NASint (TS 33.501 A.8).
    KNasInt[16];
    /// K_NASenc (TS 33.501 A.8).
    KNasEnc[16];
    /// K_encr of EAP-AKA' (RFC 9048 3.3).
    KEncr[16];
    /// K_aut of EAP-AKA' (RFC 9048 3.3).
    KAut[32];
    /// K_re of EAP-AKA' (RFC 9048 3.3).
    KRe[32];
    /// The master session key of EAP-AKA' (RFC 9048 3.3).
    Msk[64];
    /// The extended master session key of EAP-AKA' (RFC 9048 3.3).
    Emsk[64];
}

public_values! {
    /// RAND, the random challenge.
    Rand[16];
    /// AUTN: SQN xor AK, AMF, MAC (TS 33.102 6.3.2).
    Autn[16];
    /// AUTS: SQN_MS xor AK, MAC-S (TS 33.102 6.3.3).
    Auts[14];
    /// AMF, the authentication management field of AUTN (TS 33.102 Annex F and H).
    ManagementField[2];
}

impl ManagementField {
    /// AMF*, used in the computation of MAC-S (TS 33.102 6.3.3).
    pub const RESYNCHRONISATION: Self = Self([0, 0]);

    /// Whether the separation bit is set, as required in a vector for E-UTRAN or 5G (TS 33.102 Annex H).
    pub const fn separation_bit(self) -> bool {
        self.0[0] & 0x80 != 0
    }
}

impl Autn {
    /// SQN xor AK, an input of key derivations.
    pub fn sqn_xor_ak(&self) -> [u8; 6] {
        part::<0, 6, 16>(&self.0)
    }

    /// The authentication management field.
    pub fn management_field(&self) -> ManagementField {
        ManagementField(part::<6, 2, 16>(&self.0))
    }

    /// MAC, which authenticates the network.
    pub fn mac(&self) -> [u8; 8] {
        part::<8, 8, 16>(&self.0)
    }
}

impl Auts {
    /// SQN_MS xor AK.
    pub fn sqn_xor_ak(&self) -> [u8; 6] {
        part::<0, 6, 14>(&self.0)
    }

    /// MAC-S, which authenticates the USIM.
    pub fn mac_s(&self) -> [u8; 8] {
        part::<6, 8, 14>(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_nothing_under_debug() {
        assert_eq!(format!("{:?}", KAmf::new([0x5a; 32])), "KAmf(..)");
        assert_eq!(format!("{:?}", SubscriberKey::new([1; 16])), "SubscriberKey(..)");
    }

    #[test]
    fn hexadecimal_of_either_case_parses_and_nothing_else() {
        let key: SubscriberKey = "465B5CE8B199B49FAA5F0A2EE238A6BC".parse().unwrap();
        assert_eq!(key.to_hex(), "465b5ce8b199b49faa5f0a2ee238a6bc");
        assert_eq!("8000".parse(), Ok(ManagementField::new([0x80, 0])));
        for wrong in ["", "800", "80000", "80+0", "80é", "gggg"] {
            assert_eq!(wrong.parse::<ManagementField>(), Err(ParseHexError { digits: 4 }), "{wrong}");
        }
    }

    #[test]
    fn json_carries_hexadecimal_digits() {
        let json = serde_json::to_string(&KSeaf::new([0xa5; 32])).unwrap();
        assert_eq!(json, format!("\"{}\"", "a5".repeat(32)));
        assert_eq!(serde_json::from_str::<KSeaf>(&json).unwrap(), KSeaf::new([0xa5; 32]));
        let error = serde_json::from_str::<KSeaf>("\"a5\"").unwrap_err();
        assert!(error.to_string().starts_with("expected 64 hexadecimal digits"), "{error}");
    }

    #[test]
    fn the_separation_bit_is_bit_0_of_the_management_field() {
        assert!(ManagementField::new([0x80, 0]).separation_bit());
        assert!(!ManagementField::new([0x7f, 0xff]).separation_bit());
    }
}
