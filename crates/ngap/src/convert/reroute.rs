//! Lists of slices in octet strings of a fixed length (TS 38.413 9.3.3.27).
//!
//! SST and SD of each slice, in the Configured NSSAI also those of the home network: so 16 and 8 slices fill the octets. Unused entries
//! are zero, and an SD of 0xFFFFFF means none.

use super::{Bad, Read, Write};
use crate::nas_transport::AmfInformationReroute;
use oxirush_ngap::ngap as wire;
use pith_types::Snssai;

/// SST and SD.
const SLICE: usize = 4;

/// A slice with its slice of the home network.
const MAPPED_SLICE: usize = 2 * SLICE;

fn read(octets: &[u8], entry: usize) -> Vec<Snssai> {
    let slice = |octets: &[u8]| match *octets {
        [sst, a, b, c, ..] if [sst, a, b, c] != [0; SLICE] => {
            Some(Snssai { sst, sd: ([a, b, c] != [0xff; 3]).then_some([a, b, c]) })
        }
        _ => None,
    };
    octets.chunks_exact(entry).filter_map(slice).collect()
}

/// The octets; slices that do not fit are left out. `None` without slices.
fn write<const OCTETS: usize>(slices: &[Snssai], entry: usize) -> Option<[u8; OCTETS]> {
    let mut octets = [0; OCTETS];
    for (slice, place) in slices.iter().zip(octets.chunks_exact_mut(entry)) {
        let [a, b, c] = slice.sd.unwrap_or([0xff; 3]);
        place[..SLICE].copy_from_slice(&[slice.sst, a, b, c]);
    }
    (!slices.is_empty()).then_some(octets)
}

convert!(
    AmfInformationReroute,
    wire::SourceToTargetAMFInformationReroute,
    |w| {
        let configured = w.configured_nssai.map(|it| read(&it.0, MAPPED_SLICE));
        let in_plmn = w.rejected_nssai_in_plmn.map(|it| read(&it.0, SLICE));
        let in_ta = w.rejected_nssai_in_ta.map(|it| read(&it.0, SLICE));
        Ok(AmfInformationReroute {
            configured: configured.unwrap_or_default(),
            rejected_in_plmn: in_plmn.unwrap_or_default(),
            rejected_in_ta: in_ta.unwrap_or_default(),
        })
    },
    |own| {
        wire::SourceToTargetAMFInformationReroute::new(
            write(&own.configured, MAPPED_SLICE).map(wire::ConfiguredNSSAI),
            write(&own.rejected_in_plmn, SLICE).map(wire::RejectedNSSAIinPLMN),
            write(&own.rejected_in_ta, SLICE).map(wire::RejectedNSSAIinTA),
            None,
        )
    }
);
