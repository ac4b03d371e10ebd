//! EAP packets of EAP-AKA', encoded and decoded as a server (RFC 3748 4, RFC 4187 8 to 11, RFC 9048 3).
//!
//! ```text
//!  0      1            2        4      5         6          8
//!  Code | Identifier | Length | Type | Subtype | reserved | attributes
//!                                                           Type | words of 4 octets | value
//! ```
//!
//! All lengths in a UE's packet are checked. Its content is not used before AT_MAC is verified.

mod request;
mod response;
#[cfg(test)]
mod tests;

pub(super) use request::{
    Challenge, FAILURE_BEFORE_AUTHENTICATION, challenge, failure, notification, success,
};
pub(super) use response::{EapError, Response};

/// Codes of EAP packets (RFC 3748 4).
mod code {
    pub const REQUEST: u8 = 1;
    pub const RESPONSE: u8 = 2;
    pub const SUCCESS: u8 = 3;
    pub const FAILURE: u8 = 4;
}

/// Types of EAP (RFC 3748 5, RFC 9048 6.1).
mod method {
    pub const NAK: u8 = 3;
    pub const AKA_PRIME: u8 = 50;
}

/// Subtypes (RFC 4187 11).
mod subtype {
    pub const CHALLENGE: u8 = 1;
    pub const AUTHENTICATION_REJECT: u8 = 2;
    pub const SYNCHRONIZATION_FAILURE: u8 = 4;
    pub const NOTIFICATION: u8 = 12;
    pub const CLIENT_ERROR: u8 = 14;
}

/// Attributes (RFC 4187 11, RFC 9048 6.2).
mod attribute {
    pub const AT_RAND: u8 = 1;
    pub const AT_AUTN: u8 = 2;
    pub const AT_RES: u8 = 3;
    pub const AT_AUTS: u8 = 4;
    pub const AT_MAC: u8 = 11;
    pub const AT_NOTIFICATION: u8 = 12;
    pub const AT_CLIENT_ERROR_CODE: u8 = 22;
    pub const AT_KDF_INPUT: u8 = 23;
    pub const AT_KDF: u8 = 24;
    /// Types from here on may be skipped if they are unknown (RFC 4187 8.1).
    pub const FIRST_SKIPPABLE: u8 = 128;
}

/// The key derivation function of RFC 9048 3.3, the only one defined.
const KDF_AKA_PRIME: u16 = 1;

/// Octets before the attributes.
const HEADER: usize = 8;

/// Octets of AT_MAC's value, after two reserved octets (RFC 4187 10.15).
const MAC: usize = 16;
