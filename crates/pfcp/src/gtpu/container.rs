//! The PDU Session Container between UPF and NG-RAN (TS 38.415 5.5.2, 5.5.3).

use super::header::ExtensionHeader;

/// PDU Session Information of either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PduSessionInformation {
    /// Downlink: to the gNB.
    Downlink(DlPduSessionInformation),
    /// Uplink: from the gNB.
    Uplink(UlPduSessionInformation),
}

/// DL PDU SESSION INFORMATION, PDU type 0 (TS 38.415 5.5.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DlPduSessionInformation {
    /// The QFI, 0 to 63.
    pub qfi: u8,
    /// RQI: the UE shall derive an uplink filter from this packet.
    pub rqi: bool,
    /// PPI: paging policy indicator, 0 to 7, if PPP is set.
    pub ppi: Option<u8>,
}

/// UL PDU SESSION INFORMATION, PDU type 1 (TS 38.415 5.5.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UlPduSessionInformation {
    /// The QFI, 0 to 63.
    pub qfi: u8,
    /// QoS monitoring time stamps, each a 64 bit NTP timestamp, if QMP is set.
    pub qos_monitoring: Option<QosMonitoringTimes>,
}

/// The time stamps of a QoS monitoring packet (TS 38.415 5.5.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QosMonitoringTimes {
    /// Send time of the downlink packet at the UPF, repeated.
    pub dl_sent: u64,
    /// Its receive time at the gNB.
    pub dl_received: u64,
    /// Send time of the uplink packet at the gNB.
    pub ul_sent: u64,
}

const PDU_TYPE_DL: u8 = 0;
const PDU_TYPE_UL: u8 = 1;

/// QMP, in the first octet of either type.
const QMP: u8 = 0x08;
const PPP: u8 = 0x80;
const RQI: u8 = 0x40;
const QFI_MASK: u8 = 0x3f;

impl PduSessionInformation {
    /// Decodes the content of the extension header; `None` if it is too short or of another PDU type.
    pub fn decode(content: &[u8]) -> Option<PduSessionInformation> {
        let (&[first, second], rest) = content.split_first_chunk::<2>()?;
        match first >> 4 {
            PDU_TYPE_DL => DlPduSessionInformation::decode(second, rest).map(PduSessionInformation::Downlink),
            PDU_TYPE_UL => {
                UlPduSessionInformation::decode(first, second, rest).map(PduSessionInformation::Uplink)
            }
            _ => None,
        }
    }

    /// The QFI.
    pub fn qfi(&self) -> u8 {
        match self {
            PduSessionInformation::Downlink(information) => information.qfi,
            PduSessionInformation::Uplink(information) => information.qfi,
        }
    }
}

impl DlPduSessionInformation {
    fn decode(second: u8, rest: &[u8]) -> Option<Self> {
        let ppi = match second & PPP {
            0 => None,
            _ => Some(rest.first()? >> 5),
        };
        Some(DlPduSessionInformation { qfi: second & QFI_MASK, rqi: second & RQI != 0, ppi })
    }

    /// Writes the optional fields of the GTP-U header and the extension header: 8 octets, or 12 with a PPI.
    pub(super) fn write(&self, room: &mut [u8]) {
        let container = ExtensionHeader::PDU_SESSION_CONTAINER;
        let rqi = if self.rqi { RQI } else { 0 };
        let second = rqi | self.qfi & QFI_MASK;
        let with_ppi =
            |ppi: u8| [0, 0, 0, container, 2, PDU_TYPE_DL << 4, PPP | second, ppi << 5, 0, 0, 0, 0];
        let without_ppi = [0, 0, 0, container, 1, PDU_TYPE_DL << 4, second, 0];
        match self.ppi {
            None => room.iter_mut().zip(without_ppi).for_each(|(place, octet)| *place = octet),
            Some(ppi) => room.iter_mut().zip(with_ppi(ppi)).for_each(|(place, octet)| *place = octet),
        }
    }
}

impl UlPduSessionInformation {
    fn decode(first: u8, second: u8, rest: &[u8]) -> Option<Self> {
        let qos_monitoring = match first & QMP {
            0 => None,
            _ => Some(QosMonitoringTimes::decode(rest.first_chunk()?)),
        };
        Some(UlPduSessionInformation { qfi: second & QFI_MASK, qos_monitoring })
    }

    /// The content of the extension header without padding, for simulated gNBs.
    pub fn encode(&self) -> Vec<u8> {
        let qmp = if self.qos_monitoring.is_some() { QMP } else { 0 };
        let mut out = vec![PDU_TYPE_UL << 4 | qmp, self.qfi & QFI_MASK];
        if let Some(QosMonitoringTimes { dl_sent, dl_received, ul_sent }) = self.qos_monitoring {
            out.extend([dl_sent, dl_received, ul_sent].into_iter().flat_map(u64::to_be_bytes));
        }
        out
    }

    /// The whole GTP-U header of an uplink G-PDU to `teid`, without monitoring, for `payload_len` octets; for
    /// simulated gNBs. `None` if the payload is too long.
    pub fn gpdu_header(&self, teid: u32, payload_len: usize) -> Option<[u8; 16]> {
        let [high, low] = u16::try_from(payload_len.checked_add(8)?).ok()?.to_be_bytes();
        let [a, b, c, d] = teid.to_be_bytes();
        let container = ExtensionHeader::PDU_SESSION_CONTAINER;
        let qfi = self.qfi & QFI_MASK;
        Some([0x34, 255, high, low, a, b, c, d, 0, 0, 0, container, 1, PDU_TYPE_UL << 4, qfi, 0])
    }
}

impl QosMonitoringTimes {
    fn decode(octets: &[u8; 24]) -> Self {
        let (times, _) = octets.as_chunks::<8>();
        let time = |index: usize| times.get(index).copied().map_or(0, u64::from_be_bytes);
        QosMonitoringTimes { dl_sent: time(0), dl_received: time(1), ul_sent: time(2) }
    }
}
