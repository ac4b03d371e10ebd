//! The transparent containers between the gNBs of an N2 handover (TS 38.413 9.3.1.29, 9.3.1.30).
//!
//! Each has a message of RRC of a future version (TS 38.331 11.2.2: HandoverPreparationInformation and HandoverCommand with
//! `criticalExtensionsFuture`), as simulated gNBs have no RRC. What they need to know follows in the same octet string.

use super::UeKey;
use super::handover::Cell;
use pith_types::Plmn;

/// A message of RRC with `criticalExtensionsFuture`, which has no content: the choice is its only bit.
const RRC: u8 = 0x80;

/// The first octet of either container: no extensions, no optional IEs.
const HEAD: u8 = 0;

/// From the source gNB: the UE, the target cell, and the cell in which the UE was (UE History Information).
pub(super) fn source_to_target(UeKey(ue): UeKey, plmn: Plmn, target: u32, source: u32) -> Vec<u8> {
    let rrc = [&[RRC][..], &ue.to_be_bytes()].concat();
    let mut octets = vec![HEAD, rrc.len() as u8];
    octets.extend(rrc);
    // The choice of an NR cell.
    octets.push(0);
    octets.extend(nr_cell(plmn, target));
    // After the cell, the low four bits of its last octet say that one cell follows: of NG-RAN, of NR.
    octets.extend([0, 0]);
    octets.extend(nr_cell(plmn, source));
    // Its size, from those four bits on: very small. Then the seconds that the UE was there, of two octets.
    octets.extend([0, 0, 0]);
    octets
}

/// The UE of the container.
pub(super) fn ue_of(container: &[u8]) -> Option<UeKey> {
    let ue = rrc_of(container)?.try_into().ok()?;
    Some(UeKey(u32::from_be_bytes(ue)))
}

/// The longest NAS container that a gNB passes on: the length of RRC is one octet.
pub(super) const MAX_NAS_CONTAINER: usize = 64;

/// From the target gNB: its cell, and the AMF's NAS container for the UE, if there is one.
pub(super) fn target_to_source(Cell { pci, arfcn }: Cell, nas_container: Option<&[u8]>) -> Vec<u8> {
    let nas_container = nas_container.unwrap_or_default();
    let rrc = [&[RRC][..], &pci.to_be_bytes(), &arfcn.to_be_bytes(), nas_container].concat();
    [&[HEAD, rrc.len() as u8][..], &rrc].concat()
}

/// The cell and the NAS container in the container.
pub(super) fn command_in(container: &[u8]) -> Option<(Cell, Option<Vec<u8>>)> {
    let (pci, rest) = rrc_of(container)?.split_first_chunk()?;
    let (arfcn, nas_container) = rest.split_first_chunk()?;
    let cell = Cell { pci: u16::from_be_bytes(*pci), arfcn: u32::from_be_bytes(*arfcn) };
    Some((cell, (!nas_container.is_empty()).then(|| nas_container.to_vec())))
}

/// What follows the message of RRC in a container.
fn rrc_of(container: &[u8]) -> Option<&[u8]> {
    let [HEAD, length, rest @ ..] = container else { return None };
    rest.get(..usize::from(*length))?.strip_prefix(&[RRC])
}

/// PLMN identity and NR cell identity, of 36 bits, of a gNB's only cell.
fn nr_cell(plmn: Plmn, gnb: u32) -> [u8; 8] {
    let [a, b, c] = plmn.to_bcd();
    let [d, e, f, g] = gnb.to_be_bytes();
    [a, b, c, d, e, f, g, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As tshark 4.0 reads it: UE 1, from the cell 00000020 0 to the cell 00000021 0 of 999/70.
    const SOURCE_TO_TARGET: &str = "000580000000010099f9070000002100000099f9070000002000000000";

    #[test]
    fn containers_round_trip() {
        let plmn = "999/70".parse().unwrap();
        let container = source_to_target(UeKey(0x0102_0304), plmn, 0x21, 0x20);
        assert_eq!(ue_of(&container), Some(UeKey(0x0102_0304)));
        let cell = Cell { pci: 33, arfcn: 620_033 };
        assert_eq!(command_in(&target_to_source(cell, None)), Some((cell, None)));
        let longest = vec![7; MAX_NAS_CONTAINER];
        assert_eq!(command_in(&target_to_source(cell, Some(&longest))), Some((cell, Some(longest))));
        assert_eq!(hex::encode(source_to_target(UeKey(1), plmn, 0x21, 0x20)), SOURCE_TO_TARGET);
    }

    #[test]
    fn containers_that_were_changed_are_refused() {
        for octets in
            [&[][..], &[0], &[0, 5, 0x80, 1, 2, 3], &[0, 5, 0x81, 1, 2, 3, 4], &[4, 5, 0x80, 1, 2, 3, 4]]
        {
            assert_eq!((ue_of(octets), command_in(octets)), (None, None), "{octets:02x?}");
        }
    }
}
