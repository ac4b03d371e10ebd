//! Authentication and key agreement: authentication vectors, their verification in the USIM, and
//! resynchronisation (TS 33.102 6.3.2, 6.3.3, 6.3.5).
//!
//! ```text
//! home network                                    USIM
//! generate(RAND, SQN, AMF) -> RAND, AUTN  ----->  check_challenge: MacFailure?
//!                                                 UsimSequence::accept(SQN): SyncFailure?
//! XRES                                    <-----  RES
//! check_auts -> SQN_MS                    <-----  auts(RAND, SQN_MS)
//! ```

use crate::algorithm::{Algorithm, Res};
use crate::keys::{Autn, Auts, Ck, Ik, ManagementField, Rand, equal_in_constant_time};
use crate::sqn::Sqn;

/// The MAC does not match the subscriber's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("MAC does not match")]
pub struct MacFailure;

/// An authentication vector of the home network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthenticationVector {
    /// Random challenge.
    pub rand: Rand,
    /// Authentication token.
    pub autn: Autn,
    /// Expected response.
    pub xres: Res,
    /// Cipher key.
    pub ck: Ck,
    /// Integrity key.
    pub ik: Ik,
}

/// The content of a challenge with a valid MAC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// Sequence number, whose freshness the caller must check.
    pub sqn: Sqn,
    /// Authentication management field, whose separation bit the caller must check.
    pub management_field: ManagementField,
    /// Response.
    pub res: Res,
    /// Cipher key.
    pub ck: Ck,
    /// Integrity key.
    pub ik: Ik,
}

/// Generates the vector for `rand` and `sqn` (TS 33.102 6.3.2).
pub fn generate(
    algorithm: &Algorithm,
    rand: Rand,
    sqn: Sqn,
    management_field: ManagementField,
) -> AuthenticationVector {
    let response = algorithm.f2345(&rand);
    let mac = algorithm.f1(&rand, sqn, management_field);
    AuthenticationVector {
        rand,
        autn: autn(sqn.xor(response.ak), management_field, mac),
        xres: response.res,
        ck: response.ck,
        ik: response.ik,
    }
}

fn autn(sqn_xor_ak: [u8; 6], management_field: ManagementField, mac: [u8; 8]) -> Autn {
    let mut autn = [0; 16];
    autn[..6].copy_from_slice(&sqn_xor_ak);
    autn[6..8].copy_from_slice(management_field.as_bytes());
    autn[8..].copy_from_slice(&mac);
    Autn::new(autn)
}

/// The USIM's check of the MAC. The caller must check the sequence number next (TS 33.102 6.3.3).
pub fn check_challenge(algorithm: &Algorithm, rand: &Rand, autn: &Autn) -> Result<Challenge, MacFailure> {
    let response = algorithm.f2345(rand);
    let sqn = Sqn::from_bytes(Sqn::from_bytes(autn.sqn_xor_ak()).xor(response.ak));
    let management_field = autn.management_field();
    if !equal_in_constant_time(&algorithm.f1(rand, sqn, management_field), &autn.mac()) {
        return Err(MacFailure);
    }
    Ok(Challenge { sqn, management_field, res: response.res, ck: response.ck, ik: response.ik })
}

/// The USIM's AUTS for a sequence number out of range, with AMF* = 0 (TS 33.102 6.3.3).
pub fn auts(algorithm: &Algorithm, rand: &Rand, sqn_ms: Sqn) -> Auts {
    let mac_s = algorithm.f1_star(rand, sqn_ms, ManagementField::RESYNCHRONISATION);
    let mut auts = [0; 14];
    auts[..6].copy_from_slice(&sqn_ms.xor(algorithm.f5_star(rand)));
    auts[6..].copy_from_slice(&mac_s);
    Auts::new(auts)
}

/// The home network's check of AUTS, with the RAND of its challenge; returns SQN_MS (TS 33.102 6.3.5).
pub fn check_auts(algorithm: &Algorithm, rand: &Rand, auts: &Auts) -> Result<Sqn, MacFailure> {
    let concealed = Sqn::from_bytes(auts.sqn_xor_ak());
    let sqn_ms = Sqn::from_bytes(concealed.xor(algorithm.f5_star(rand)));
    let mac_s = algorithm.f1_star(rand, sqn_ms, ManagementField::RESYNCHRONISATION);
    if equal_in_constant_time(&mac_s, &auts.mac_s()) { Ok(sqn_ms) } else { Err(MacFailure) }
}

#[cfg(test)]
mod tests;
