//! QoS enforcement: gates, rates and markings.

use crate::error::IeFault;
use crate::group::Ie;
use crate::ie::address::{bit, flags};
use crate::ie::macros::{flags_ie, number_ie};
use crate::wire::Reader;

number_ie! {
    /// QER Correlation ID: relates QERs of several sessions (TS 29.244 8.2.10).
    pub struct QerCorrelationId(u32);
}

/// Gate Status (TS 29.244 8.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GateStatus {
    /// The uplink gate.
    pub uplink: Gate,
    /// The downlink gate.
    pub downlink: Gate,
}

/// The state of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// Packets are forwarded.
    Open,
    /// Packets are discarded.
    Closed,
}

impl GateStatus {
    /// Both directions pass.
    pub const OPEN: GateStatus = GateStatus { uplink: Gate::Open, downlink: Gate::Open };
}

impl Gate {
    /// Values 2 and 3 are for future use and treated as closed.
    fn from_bits(bits: u8) -> Self {
        if bits & 0b11 == 0 { Gate::Open } else { Gate::Closed }
    }

    fn bits(self) -> u8 {
        match self {
            Gate::Open => 0,
            Gate::Closed => 1,
        }
    }
}

impl Ie for GateStatus {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        Ok(GateStatus { uplink: Gate::from_bits(octet >> 2), downlink: Gate::from_bits(octet) })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.uplink.bits() << 2 | self.downlink.bits());
    }
}

/// MBR or GBR: bit rates of both directions (TS 29.244 8.2.8, 8.2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BitRates {
    /// Uplink, in kbit/s; 40 bits.
    pub uplink: u64,
    /// Downlink, in kbit/s; 40 bits.
    pub downlink: u64,
}

/// The highest rate that fits 40 bits.
const MAX_RATE: u64 = (1 << 40) - 1;

fn rate(value: &mut Reader<'_>) -> Result<u64, IeFault> {
    let octets = value.array::<5>()?;
    Ok(octets.into_iter().fold(0, |rate, octet| rate << 8 | u64::from(octet)))
}

impl Ie for BitRates {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        Ok(BitRates { uplink: rate(value)?, downlink: rate(value)? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        for rate in [self.uplink, self.downlink] {
            out.extend(rate.min(MAX_RATE).to_be_bytes().into_iter().skip(3));
        }
    }
}

macro_rules! small_number {
    ($($(#[$doc:meta])* pub struct $name:ident: mask $mask:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u8);

        impl Ie for $name {
            fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
                value.u8().map(|octet| $name(octet & $mask))
            }

            fn encode(&self, out: &mut Vec<u8>) {
                out.push(self.0 & $mask);
            }
        }
    )*};
}

small_number! {
    /// QFI: a QoS flow, 0 to 63 (TS 29.244 8.2.89).
    pub struct Qfi: mask 0x3f;
    /// Paging Policy Indicator, 0 to 7 (TS 29.244 8.2.116).
    pub struct PagingPolicyIndicator: mask 0x07;
}

flags_ie! {
    /// RQI: reflective QoS is requested (TS 29.244 8.2.88).
    pub struct Rqi: u8, min 1 {
        /// Reflective QoS is active.
        RQI = 5/1,
    }

    /// QER Control Indications (TS 29.244 8.2.174).
    pub struct QerControlIndications: u8, min 1 {
        /// Report the rate control status when the session is released.
        RCSR = 5/1,
    }

    /// QER Indications (TS 29.244 8.2.216).
    pub struct QerIndications: u8, min 1 {
        /// Insert the downlink MBS QFI sequence number.
        IQFISN = 5/1,
    }
}

/// A number of packets in a unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RateLimit {
    /// The unit: 0 minute, 1 six minutes, 2 hour, 3 day, 4 week; other values are treated as 0.
    pub time_unit: u8,
    /// Packets in the unit.
    pub packets: u16,
}

fn rate_limit(value: &mut Reader<'_>) -> Result<RateLimit, IeFault> {
    Ok(RateLimit { time_unit: value.u8()? & 0x07, packets: value.u16()? })
}

/// Packet Rate of cellular IoT (TS 29.244 8.2.63).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PacketRate {
    /// Uplink.
    pub uplink: Option<RateLimit>,
    /// Downlink.
    pub downlink: Option<RateLimit>,
    /// Uplink, additional; with `uplink` only.
    pub additional_uplink: Option<RateLimit>,
    /// Downlink, additional; with `downlink` only.
    pub additional_downlink: Option<RateLimit>,
}

impl Ie for PacketRate {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        let (uplink, downlink, additional) = (bit(octet, 1), bit(octet, 2), bit(octet, 3));
        Ok(PacketRate {
            uplink: value.when(uplink, rate_limit)?,
            downlink: value.when(downlink, rate_limit)?,
            additional_uplink: value.when(uplink && additional, rate_limit)?,
            additional_downlink: value.when(downlink && additional, rate_limit)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let additional = self.additional_uplink.is_some() || self.additional_downlink.is_some();
        out.push(flags([(1, self.uplink.is_some()), (2, self.downlink.is_some()), (3, additional)]));
        let limits = [self.uplink, self.downlink, self.additional_uplink, self.additional_downlink];
        for RateLimit { time_unit, packets } in limits.into_iter().flatten() {
            out.push(time_unit & 0x07);
            out.extend(packets.to_be_bytes());
        }
    }
}

/// Packet Rate Status: the rest of a packet rate (TS 29.244 8.2.139).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PacketRateStatus {
    /// Uplink packets, and additional ones, that may still be sent.
    pub uplink: Option<(u16, Option<u16>)>,
    /// Downlink packets, and additional ones, that may still be sent.
    pub downlink: Option<(u16, Option<u16>)>,
    /// End of validity: a 64 bit NTP timestamp.
    pub validity_time: Option<u64>,
}

impl Ie for PacketRateStatus {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        let (uplink, downlink, additional) = (bit(octet, 1), bit(octet, 2), bit(octet, 3));
        let remaining = |value: &mut Reader<'_>| Ok((value.u16()?, value.when(additional, Reader::u16)?));
        Ok(PacketRateStatus {
            uplink: value.when(uplink, remaining)?,
            downlink: value.when(downlink, remaining)?,
            validity_time: value.when(uplink || downlink, Reader::u64)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let directions = [self.uplink, self.downlink];
        let additional = directions.iter().flatten().any(|(_, additional)| additional.is_some());
        out.push(flags([(1, self.uplink.is_some()), (2, self.downlink.is_some()), (3, additional)]));
        for (packets, more) in directions.into_iter().flatten() {
            out.extend(packets.to_be_bytes());
            out.extend(more.iter().flat_map(|more| more.to_be_bytes()));
        }
        out.extend(self.validity_time.iter().flat_map(|time| time.to_be_bytes()));
    }
}

/// DL Flow Level Marking (TS 29.244 8.2.66).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DlFlowLevelMarking {
    /// ToS or traffic class, and its mask.
    pub tos_traffic_class: Option<[u8; 2]>,
    /// Service class indicator, as octets 2 and 3 of the GTP-U extension header.
    pub service_class_indicator: Option<[u8; 2]>,
}

impl Ie for DlFlowLevelMarking {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        let tos_traffic_class = value.when(bit(octet, 1), Reader::array)?;
        Ok(DlFlowLevelMarking {
            tos_traffic_class,
            service_class_indicator: value.when(bit(octet, 2), Reader::array)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(flags([(1, self.tos_traffic_class.is_some()), (2, self.service_class_indicator.is_some())]));
        out.extend(self.tos_traffic_class.iter().chain(&self.service_class_indicator).flatten());
    }
}

/// DSCP to PPI Mapping Information (TS 29.244 8.2.214).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DscpToPpiMapping {
    /// The paging policy indicator to insert, 0 to 7.
    pub ppi: PagingPolicyIndicator,
    /// The DSCPs that are mapped, at most 63.
    pub dscps: Vec<u8>,
}

impl Ie for DscpToPpiMapping {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let ppi = PagingPolicyIndicator::decode(value)?;
        Ok(DscpToPpiMapping { ppi, dscps: value.take_rest().iter().map(|dscp| dscp & 0x3f).collect() })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.ppi.encode(out);
        out.extend(self.dscps.iter().map(|dscp| dscp & 0x3f));
    }
}
