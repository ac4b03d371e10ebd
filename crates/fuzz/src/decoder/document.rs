//! Documents of contexts: refused, or the same after packing and unpacking again.

use crate::target::{CheckFailed, ensure};
use pith_nf::amf::Amf;
use pith_nf::ausf::Ausf;
use pith_nf::kit::document::{Document, Names, UnpackError};
use pith_nf::kit::{GnbHandle, UpfHandle};
use pith_nf::nrf::Nrf;
use pith_nf::pcf::Pcf;
use pith_nf::smf::Smf;

/// The gNB and the UPFs of the corpus.
pub struct Known;

const GNB: &str = "999/70-gnb-1";
const UPFS: [&str; 2] = ["upf", "edge"];

impl Names for Known {
    fn gnb_name(&self, _: GnbHandle) -> Option<&str> {
        Some(GNB)
    }

    fn gnb(&self, name: &str) -> Option<GnbHandle> {
        (name == GNB).then_some(GnbHandle(1))
    }

    fn upf_name(&self, upf: UpfHandle) -> Option<&str> {
        UPFS.get(upf.0 as usize).copied()
    }

    fn upf(&self, name: &str) -> Option<UpfHandle> {
        UPFS.iter().position(|known| *known == name).map(|at| UpfHandle(at as u64))
    }
}

/// Unpacks a document as the NF that it names.
pub fn check(octets: &[u8]) -> Result<(), UnpackError> {
    match octets.get(3) {
        Some(2) => Smf::check_document(octets, &Known),
        Some(3) => Ausf::check_document(octets),
        Some(6) => Pcf::check_document(octets),
        Some(7) => Nrf::check_document(octets),
        _ => Amf::check_document(octets, &Known),
    }
}

/// The same, and packs it again.
pub fn repack(octets: &[u8]) -> Result<Document, UnpackError> {
    // The fourth octet is the NF.
    match octets.get(3) {
        Some(2) => Smf::repack(octets, &Known),
        Some(3) => Ausf::repack(octets),
        Some(6) => Pcf::repack(octets),
        Some(7) => Nrf::repack(octets),
        _ => Amf::repack(octets, &Known),
    }
}

/// What is unpacked and packed again stays the same.
pub fn unpack(input: &[u8]) -> Result<(), CheckFailed> {
    let Ok(first) = repack(input) else { return Ok(()) };
    let second = repack(first.octets());
    ensure(second.as_ref() == Ok(&first), || format!("unpacked again it differs: {:?}", second.err()))
}
