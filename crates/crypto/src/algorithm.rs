//! The authentication functions f1 to f5* of a subscriber, for either algorithm.

use std::fmt;

use crate::keys::{Ck, Ik, ManagementField, Rand, equal_in_constant_time, hex_octet};
use crate::milenage::Milenage;
use crate::sqn::Sqn;
use crate::tuak::Tuak;

/// RES or XRES: 4 to 16 octets (TS 33.102 6.3.7); 4, 8 or 16 with TS 35.206 and 35.231.
#[derive(Clone)]
pub struct Res {
    octets: [u8; 16],
    len: usize,
}

impl Res {
    fn new(res: &[u8]) -> Self {
        let mut octets = [0; 16];
        let len = res.len().min(octets.len());
        octets[..len].copy_from_slice(&res[..len]);
        Self { octets, len }
    }

    /// RES sent by a UE, or XRES sent by a UDM: 4 to 16 octets.
    pub fn from_octets(res: &[u8]) -> Option<Self> {
        (4..=16).contains(&res.len()).then(|| Self::new(res))
    }

    /// RES or XRES from hexadecimal digits, upper or lower case.
    pub fn from_hex(digits: &str) -> Option<Self> {
        let pairs = digits.as_bytes().chunks(2);
        let octets: Option<Vec<u8>> = pairs.map(|pair| hex_octet(pair.try_into().ok()?)).collect();
        Self::from_octets(&octets?)
    }

    /// The octets in cleartext.
    pub fn as_bytes(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

impl fmt::Debug for Res {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Res(..)")
    }
}

impl PartialEq for Res {
    fn eq(&self, other: &Self) -> bool {
        equal_in_constant_time(self.as_bytes(), other.as_bytes())
    }
}

impl Eq for Res {}

/// Outputs of f2 to f5 for one RAND.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// RES, by f2.
    pub res: Res,
    /// CK, by f3.
    pub ck: Ck,
    /// IK, by f4.
    pub ik: Ik,
    /// AK, by f5.
    pub ak: [u8; 6],
}

/// Length of TUAK's RES.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResLength {
    /// 4 octets.
    Bits32,
    /// 8 octets.
    Bits64,
    /// 16 octets.
    Bits128,
}

/// The functions of one subscriber, with its keys.
#[derive(Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "made for one authentication; a box would cost it an allocation"
)]
pub enum Algorithm {
    /// Milenage (TS 35.206); RES has 8 octets.
    Milenage(Milenage),
    /// TUAK (TS 35.231).
    Tuak(Tuak, ResLength),
}

impl Algorithm {
    /// MAC-A, which authenticates the network in AUTN.
    pub fn f1(&self, rand: &Rand, sqn: Sqn, amf: ManagementField) -> [u8; 8] {
        match self {
            Self::Milenage(milenage) => milenage.f1(rand, sqn, amf),
            Self::Tuak(tuak, _) => tuak.f1::<8>(rand, sqn, amf),
        }
    }

    /// MAC-S, which authenticates the USIM in AUTS.
    pub fn f1_star(&self, rand: &Rand, sqn: Sqn, amf: ManagementField) -> [u8; 8] {
        match self {
            Self::Milenage(milenage) => milenage.f1_star(rand, sqn, amf),
            Self::Tuak(tuak, _) => tuak.f1_star::<8>(rand, sqn, amf),
        }
    }

    /// RES, CK, IK and AK.
    pub fn f2345(&self, rand: &Rand) -> Response {
        match self {
            Self::Milenage(milenage) => {
                let out = milenage.f2345(rand);
                Response { res: Res::new(&out.res), ck: out.ck, ik: out.ik, ak: out.ak }
            }
            Self::Tuak(tuak, ResLength::Bits32) => tuak_response::<4>(tuak, rand),
            Self::Tuak(tuak, ResLength::Bits64) => tuak_response::<8>(tuak, rand),
            Self::Tuak(tuak, ResLength::Bits128) => tuak_response::<16>(tuak, rand),
        }
    }

    /// AK for resynchronisation.
    pub fn f5_star(&self, rand: &Rand) -> [u8; 6] {
        match self {
            Self::Milenage(milenage) => milenage.f5_star(rand),
            Self::Tuak(tuak, _) => tuak.f5_star(rand),
        }
    }
}

fn tuak_response<const RES: usize>(tuak: &Tuak, rand: &Rand) -> Response {
    let out = tuak.f2345::<RES, 16, 16>(rand);
    Response { res: Res::new(&out.res), ck: Ck::new(*out.ck), ik: Ik::new(*out.ik), ak: out.ak }
}
