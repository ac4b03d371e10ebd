//! Release of a session (TS 38.413 9.3.4.12, 9.3.4.21).

use super::{cause_transfer, decode, encode};
use crate::convert::Write;
use crate::error::NgapError;
use crate::types::Cause;
use oxirush_ngap::ngap as wire;

cause_transfer! {
    /// PDU Session Resource Release Command Transfer (TS 38.413 9.3.4.12).
    ReleaseCommandTransfer = PDUSessionResourceReleaseCommandTransfer(None)
}

/// PDU Session Resource Release Response Transfer (TS 38.413 9.3.4.21): that it was released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseResponseTransfer;

impl ReleaseResponseTransfer {
    /// Decodes the octets of an item that was released.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        decode::<wire::PDUSessionResourceReleaseResponseTransfer>(octets).map(|_| Self)
    }

    /// The octets for an item that was released.
    pub fn encode(self) -> Vec<u8> {
        encode(&wire::PDUSessionResourceReleaseResponseTransfer::new(None)).unwrap_or_default()
    }
}
