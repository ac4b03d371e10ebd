//! Steering between accesses of a multi-access session.

use crate::error::IeFault;
use crate::group::Ie;
use crate::ie::address::{bit, flags};
use crate::ie::macros::{enum_ie, flags_ie, number_ie};
use crate::wire::Reader;

enum_ie! {
    /// Steering Functionality (TS 29.244 8.2.124).
    pub enum SteeringFunctionality: mask 0x0f {
        /// ATSSS-LL.
        AtsssLl = 0,
        /// MPTCP.
        Mptcp = 1,
    }

    /// Steering Mode (TS 29.244 8.2.125).
    pub enum SteeringMode: mask 0x0f {
        /// Active-standby.
        ActiveStandby = 0,
        /// Smallest delay.
        SmallestDelay = 1,
        /// Load balancing.
        LoadBalancing = 2,
        /// Priority based.
        PriorityBased = 3,
    }

    /// Priority of an access (TS 29.244 8.2.127).
    pub enum AccessPriority: mask 0x0f {
        /// Active.
        Active = 0,
        /// Standby.
        Standby = 1,
        /// There is no standby.
        NoStandby = 2,
        /// High.
        High = 3,
        /// Low.
        Low = 4,
    }
}

flags_ie! {
    /// Steering Mode Indicator (TS 29.244 8.2.197).
    pub struct SteeringModeIndicator: u8, min 1 {
        /// Autonomous load balancing is allowed.
        ALBI = 5/1,
        /// Assistance by the UE is allowed.
        UEAI = 5/2,
    }
}

number_ie! {
    /// Weight of an access in percent, 0 to 100 (TS 29.244 8.2.126).
    pub struct Weight(u8);
}

/// Thresholds of a steering mode (TS 29.244 8.2.196).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SteeringThresholds {
    /// Round trip time in milliseconds.
    pub rtt: Option<u16>,
    /// Packet loss rate in percent, 0 to 100.
    pub packet_loss_rate: Option<u8>,
}

impl Ie for SteeringThresholds {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        let rtt = value.when(bit(octet, 1), Reader::u16)?;
        Ok(SteeringThresholds { rtt, packet_loss_rate: value.when(bit(octet, 2), Reader::u8)? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(flags([(1, self.rtt.is_some()), (2, self.packet_loss_rate.is_some())]));
        out.extend(self.rtt.iter().flat_map(|rtt| rtt.to_be_bytes()));
        out.extend(self.packet_loss_rate);
    }
}

/// Access Availability Information (TS 29.244 8.2.153).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccessAvailabilityInformation {
    /// Access Type: 0 for 3GPP, 1 for non-3GPP.
    pub access_type: u8,
    /// Availability Status: 0 has become unavailable, 1 has become available.
    pub availability: u8,
}

impl Ie for AccessAvailabilityInformation {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        Ok(AccessAvailabilityInformation { access_type: octet & 0b11, availability: octet >> 2 & 0b11 })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push((self.availability & 0b11) << 2 | (self.access_type & 0b11));
    }
}
