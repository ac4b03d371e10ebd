//! Usage measurement: what to measure, when to report, and what was measured.

use crate::error::IeFault;
use crate::group::Ie;
use crate::ie::address::bit;
use crate::ie::macros::{flags_ie, number_ie};
use crate::wire::Reader;

number_ie! {
    /// UR-SEQN: numbers the usage reports of a URR, from 0 (TS 29.244 8.2.71).
    pub struct UrSeqn(u32);
    /// Query URR Reference (TS 29.244 8.2.90).
    pub struct QueryUrrReference(u32);
    /// Event Threshold or Quota, and the Subsequent ones: a number of events (TS 29.244 8.2.106, 8.2.107, 8.2.112, 8.2.113).
    pub struct EventCount(u32);
    /// Number of Reports (TS 29.244 8.2.133).
    pub struct NumberOfReports(u16);
}

flags_ie! {
    /// Measurement Method (TS 29.244 8.2.40).
    pub struct MeasurementMethod: u8, min 1 {
        /// The duration of the traffic.
        DURAT = 5/1,
        /// Its volume.
        VOLUM = 5/2,
        /// Events.
        EVENT = 5/3,
    }

    /// Reporting Triggers: when a URR reports (TS 29.244 8.2.19). Octet 7 came with Release 16.
    pub struct ReportingTriggers: u32, min 2, sent 3 {
        /// Periodically.
        PERIO = 5/1,
        /// A volume threshold is reached.
        VOLTH = 5/2,
        /// A time threshold is reached.
        TIMTH = 5/3,
        /// No packet was received for the quota holding time.
        QUHTI = 5/4,
        /// Traffic starts.
        START = 5/5,
        /// Traffic stops.
        STOPT = 5/6,
        /// Dropped downlink traffic reaches a threshold.
        DROTH = 5/7,
        /// A linked URR reports.
        LIUSA = 5/8,
        /// The volume quota is used up.
        VOLQU = 6/1,
        /// The time quota is used up.
        TIMQU = 6/2,
        /// An envelope closes.
        ENVCL = 6/3,
        /// New MAC addresses.
        MACAR = 6/4,
        /// An event threshold is reached.
        EVETH = 6/5,
        /// The event quota is used up.
        EVEQU = 6/6,
        /// IP multicast join or leave.
        IPMJL = 6/7,
        /// The quota validity time ends.
        QUVTI = 6/8,
        /// An End Marker is received.
        REEMR = 7/1,
        /// No packet was received for the user plane inactivity time.
        UPINT = 7/2,
    }

    /// Usage Report Trigger: why a URR reported (TS 29.244 8.2.41). The bits are not those of [`ReportingTriggers`].
    pub struct UsageReportTrigger: u32, min 2, sent 3 {
        /// Periodically.
        PERIO = 5/1,
        /// A volume threshold is reached.
        VOLTH = 5/2,
        /// A time threshold is reached.
        TIMTH = 5/3,
        /// No packet was received for the quota holding time.
        QUHTI = 5/4,
        /// Traffic started.
        START = 5/5,
        /// Traffic stopped.
        STOPT = 5/6,
        /// Dropped downlink traffic reached a threshold.
        DROTH = 5/7,
        /// The CP function queried the URR.
        IMMER = 5/8,
        /// The volume quota is used up.
        VOLQU = 6/1,
        /// The time quota is used up.
        TIMQU = 6/2,
        /// A linked URR reported.
        LIUSA = 6/3,
        /// The session, the URR or its last PDR was removed.
        TERMR = 6/4,
        /// The monitoring time has passed.
        MONIT = 6/5,
        /// An envelope closed.
        ENVCL = 6/6,
        /// New MAC addresses.
        MACAR = 6/7,
        /// An event threshold is reached.
        EVETH = 6/8,
        /// The event quota is used up.
        EVEQU = 7/1,
        /// The UP function ends the session.
        TEBUR = 7/2,
        /// IP multicast join or leave.
        IPMJL = 7/3,
        /// The quota validity time ended.
        QUVTI = 7/4,
        /// An End Marker was received.
        EMRRE = 7/5,
        /// No packet was received for the user plane inactivity time.
        UPINT = 7/6,
    }

    /// Measurement Information (TS 29.244 8.2.68).
    pub struct MeasurementInformation: u8, min 1 {
        /// Measure before QoS enforcement.
        MBQE = 5/1,
        /// Measuring is paused.
        INAM = 5/2,
        /// Only the Application ID is reported of a detected application.
        RADI = 5/3,
        /// Time metering starts at once.
        ISTM = 5/4,
        /// Measure packets as well as octets.
        MNOP = 5/5,
        /// Send the start of a pause of charging.
        SSPOC = 5/6,
        /// A pause of charging applies to the URR.
        ASPOC = 5/7,
        /// INAM pauses and resumes measuring.
        CIAM = 5/8,
    }

    /// Usage Information (TS 29.244 8.2.59).
    pub struct UsageInformation: u8, min 1 {
        /// Before the monitoring time.
        BEF = 5/1,
        /// After the monitoring time.
        AFT = 5/2,
        /// After QoS enforcement.
        UAE = 5/3,
        /// Before QoS enforcement.
        UBE = 5/4,
    }
}

/// Octets of both directions: Volume Threshold, Volume Quota and the Subsequent ones (TS 29.244 8.2.13, 8.2.50).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Volume {
    /// Both together.
    pub total: Option<u64>,
    /// Uplink.
    pub uplink: Option<u64>,
    /// Downlink.
    pub downlink: Option<u64>,
}

fn counters<const N: usize>(value: &mut Reader<'_>) -> Result<[Option<u64>; N], IeFault> {
    let octet = value.u8()?;
    let mut counters = [None; N];
    for (number, counter) in (1..).zip(&mut counters) {
        *counter = value.when(bit(octet, number), Reader::u64)?;
    }
    Ok(counters)
}

fn put_counters(out: &mut Vec<u8>, counters: &[Option<u64>]) {
    let present = (0..).zip(counters).filter(|(_, counter)| counter.is_some());
    out.push(present.fold(0u8, |octet, (number, _)| octet | 1 << number));
    out.extend(counters.iter().flatten().flat_map(|counter| counter.to_be_bytes()));
}

impl Ie for Volume {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let [total, uplink, downlink] = counters(value)?;
        Ok(Volume { total, uplink, downlink })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_counters(out, &[self.total, self.uplink, self.downlink]);
    }
}

/// Volume Measurement (TS 29.244 8.2.44).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VolumeMeasurement {
    /// Octets of both directions.
    pub total: Option<u64>,
    /// Octets uplink.
    pub uplink: Option<u64>,
    /// Octets downlink.
    pub downlink: Option<u64>,
    /// Packets of both directions.
    pub total_packets: Option<u64>,
    /// Packets uplink.
    pub uplink_packets: Option<u64>,
    /// Packets downlink.
    pub downlink_packets: Option<u64>,
}

impl Ie for VolumeMeasurement {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let [total, uplink, downlink, total_packets, uplink_packets, downlink_packets] = counters(value)?;
        Ok(VolumeMeasurement { total, uplink, downlink, total_packets, uplink_packets, downlink_packets })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let octets = [self.total, self.uplink, self.downlink];
        let packets = [self.total_packets, self.uplink_packets, self.downlink_packets];
        put_counters(out, &[octets, packets].concat());
    }
}

/// Dropped DL Traffic Threshold (TS 29.244 8.2.49).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DroppedDlTrafficThreshold {
    /// Packets.
    pub packets: Option<u64>,
    /// Octets.
    pub octets: Option<u64>,
}

impl Ie for DroppedDlTrafficThreshold {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let [packets, octets] = counters(value)?;
        Ok(DroppedDlTrafficThreshold { packets, octets })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_counters(out, &[self.packets, self.octets]);
    }
}

/// Time Quota Mechanism (TS 29.244 8.2.81).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeQuotaMechanism {
    /// Base Time Interval Type: 0 continuous, 1 discrete time period.
    pub interval_type: u8,
    /// Base Time Interval, in seconds (TS 32.299 7.2.29).
    pub interval: u32,
}

impl Ie for TimeQuotaMechanism {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        Ok(TimeQuotaMechanism { interval_type: value.u8()? & 0b11, interval: value.u32()? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.interval_type & 0b11);
        out.extend(self.interval.to_be_bytes());
    }
}

/// Multiplier: digits times a power of ten (TS 29.244 8.2.84).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Multiplier {
    /// The digits.
    pub digits: i64,
    /// The exponent of ten.
    pub exponent: i32,
}

impl Ie for Multiplier {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let digits = value.array().map(i64::from_be_bytes)?;
        Ok(Multiplier { digits, exponent: value.array().map(i32::from_be_bytes)? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.digits.to_be_bytes());
        out.extend(self.exponent.to_be_bytes());
    }
}

/// Additional Usage Reports Information (TS 29.244 8.2.91).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdditionalUsageReports {
    /// AURI: more reports follow.
    WillFollow,
    /// Number of reports in Session Report Requests, at most 32767.
    Total(u16),
}

impl Ie for AdditionalUsageReports {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        Ok(match value.u16()? {
            number if number >> 15 == 1 => AdditionalUsageReports::WillFollow,
            number => AdditionalUsageReports::Total(number),
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let number = match self {
            AdditionalUsageReports::WillFollow => 1 << 15,
            AdditionalUsageReports::Total(number) => number & 0x7fff,
        };
        out.extend(number.to_be_bytes());
    }
}
