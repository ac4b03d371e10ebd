//! Data volumes that a gNB reports of a secondary RAT (TS 38.413 9.3.1.112, 9.3.1.114, 9.3.4.23).

use super::{decode, encode};
use crate::error::NgapError;
use oxirush_ngap::ngap as wire;

/// The data volume of a session over a secondary RAT: the sum of all periods (Secondary RAT Usage Information).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SecondaryRatUsage {
    /// Octets in uplink direction. A sum above 2^64 - 1 counts as that.
    pub uplink: u64,
    /// Octets in downlink direction, as `uplink`.
    pub downlink: u64,
}

impl SecondaryRatUsage {
    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            uplink: self.uplink.saturating_add(other.uplink),
            downlink: self.downlink.saturating_add(other.downlink),
        }
    }

    /// The volumes of the session, or of its flows if the report has none of the session: both would be counted twice.
    pub(super) fn read(information: &wire::SecondaryRATUsageInformation<'_>) -> Self {
        let of_list = |list: &wire::VolumeTimedReportList| {
            let item = |item: &wire::VolumeTimedReportItem| Self {
                uplink: item.usage_count_ul,
                downlink: item.usage_count_dl,
            };
            list.0.iter().map(item).fold(Self::default(), Self::plus)
        };
        if let Some(report) = &information.pdu_session_usage_report {
            return of_list(&report.pdu_session_timed_report_list);
        }
        let flows = information.qos_flows_usage_report_list.iter().flat_map(|list| &list.0);
        flows.map(|flow| of_list(&flow.qos_flows_timed_report_list)).fold(Self::default(), Self::plus)
    }

    /// A report of the session for one period of NR, whose begin and end the simulator does not know: zero.
    pub(super) fn write(self) -> wire::SecondaryRATUsageInformation<'static> {
        let volume = wire::VolumeTimedReportItem::new([0; 4], [0; 4], self.uplink, self.downlink, None);
        let list = wire::VolumeTimedReportList(vec![volume]);
        let report = wire::PDUSessionUsageReport::new(wire::PDUSessionUsageReportRATType::nr, list, None);
        wire::SecondaryRATUsageInformation::new(Some(report), None, None)
    }
}

/// Secondary RAT Data Usage Report Transfer (TS 38.413 9.3.4.23).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SecondaryRatUsageTransfer {
    /// The volume; `None` if the transfer has no Secondary RAT Usage Information.
    pub usage: Option<SecondaryRatUsage>,
}

impl SecondaryRatUsageTransfer {
    /// Decodes the octets of an item.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let transfer: wire::SecondaryRATDataUsageReportTransfer<'_> = decode(octets)?;
        Ok(Self { usage: transfer.secondary_rat_usage_information.as_ref().map(SecondaryRatUsage::read) })
    }

    /// The octets for an item.
    pub fn encode(&self) -> Vec<u8> {
        let usage = self.usage.map(SecondaryRatUsage::write);
        encode(&wire::SecondaryRATDataUsageReportTransfer::new(usage, None)).unwrap_or_default()
    }
}
