//! The header of a packet that leaves by tunnel (TS 29.281 5.1, TS 38.415 5.5.2).

use crate::rules::Rule;
use pith_pfcp::gtpu::{DlPduSessionInformation, GpduHeader, UlPduSessionInformation};
use pith_upf::contract::{Direction, Qfi, Tunnel};

/// Writes the header of a G-PDU into the end of `room`, and answers where it starts there. The QFI that the rule
/// marks with, or else the one that the packet came with from another UPF, goes into a PDU Session Container: of
/// downlink type towards a gNB, of uplink type to a further UPF.
pub fn write_header(
    room: &mut [u8],
    tunnel: &Tunnel,
    (rule, came_with): (&Rule, Option<Qfi>),
    packet_len: usize,
) -> Option<usize> {
    let teid = tunnel.teid.0;
    match (rule.direction(), rule.qfi.or(came_with)) {
        (Direction::Uplink, Some(Qfi(qfi))) => {
            let information = UlPduSessionInformation { qfi, qos_monitoring: None };
            let header = information.gpdu_header(teid, packet_len)?;
            let start = room.len().checked_sub(header.len())?;
            room.get_mut(start..)?.copy_from_slice(&header);
            Some(start)
        }
        (_, qfi) => {
            let downlink = |Qfi(qfi)| DlPduSessionInformation { qfi, rqi: false, ppi: None };
            GpduHeader { teid, pdu_session: qfi.map(downlink) }.write_at_end_of(room, packet_len)
        }
    }
}
