//! Cryptography of the 5G system, as pure functions of small values.
//!
//! From the subscriber's key to a protected NAS message:
//!
//! ```text
//! K, OPc | TOPc   algorithm (milenage, tuak)  f1..f5*
//!   SQN           sqn                         generation, freshness, resynchronisation
//!   RAND, AUTN    aka                         vector, challenge check, AUTS
//!   CK, IK        kdf, eap_aka_prime          K_AUSF, RES*, K_SEAF, K_AMF, K_NAS*, K_gNB, NH
//!   K_NASint/enc  nas                         128-NIA0..3, 128-NEA0..3
//! SUCI            suci                        ECIES profiles A and B
//! access token    jws                         ES256, RS256, RS512
//! ```
//!
//! The README describes guarantees and requirements.

pub mod aka;
pub mod algorithm;
pub mod eap_aka_prime;
pub mod jws;
pub mod kdf;
pub mod keys;
pub mod milenage;
pub mod name_mac;
pub mod nas;
pub mod number_order;
pub mod sqn;
pub mod suci;
pub mod tuak;
#[cfg(test)]
mod vectors;

pub use algorithm::Algorithm;
