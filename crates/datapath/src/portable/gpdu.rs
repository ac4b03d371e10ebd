//! The GTP-U header of a packet sent into a tunnel (TS 29.281 5.1, TS 38.415 5.5.2).

use crate::rules::Rule;
use pith_pfcp::gtpu::{DlPduSessionInformation, GpduHeader, UlPduSessionInformation};
use pith_upf::contract::{Direction, Qfi, Tunnel};

/// Writes the header of a G-PDU at the end of `room`, and returns its offset. The rule's QFI, or else the QFI
/// received from another UPF, is written to a PDU Session Container: of type downlink towards a gNB, of type
/// uplink towards a further UPF. The RQI is the rule's.
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
            let downlink = |Qfi(qfi)| DlPduSessionInformation { qfi, rqi: rule.rqi, ppi: None };
            GpduHeader { teid, pdu_session: qfi.map(downlink) }.write_at_end_of(room, packet_len)
        }
    }
}
