//! Buffering of packets, and reports of buffered packets.

use crate::error::IeFault;
use crate::group::Ie;
use crate::ie::address::{bit, flags};
use crate::ie::macros::{flags_ie, number_ie};
use crate::ie::qos::Qfi;
use crate::wire::Reader;

number_ie! {
    /// Suggested Buffering Packets Count (TS 29.244 8.2.100).
    pub struct SuggestedBufferingPacketsCount(u8);
    /// DL Data Packets Size, in octets (TS 29.244 8.2.173).
    pub struct DlDataPacketsSize(u16);
}

flags_ie! {
    /// MT-EDT Control Information (TS 29.244 8.2.172).
    pub struct MtEdtControlInformation: u8, min 1 {
        /// Report the size of downlink data packets.
        RDSI = 5/1,
    }

    /// Data Status (TS 29.244 8.2.179).
    pub struct DataStatus: u8, min 1 {
        /// The first downlink packet was discarded.
        DROP = 5/1,
        /// The first downlink packet was buffered.
        BUFF = 5/2,
    }
}

/// DL Buffering Suggested Packet Count: one or two octets long (TS 29.244 8.2.30).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DlBufferingSuggestedPacketCount(pub u16);

impl Ie for DlBufferingSuggestedPacketCount {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        match *value.take_rest() {
            [count] => Ok(DlBufferingSuggestedPacketCount(count.into())),
            [high, low] => Ok(DlBufferingSuggestedPacketCount(u16::from_be_bytes([high, low]))),
            _ => Err(IeFault::InvalidLength),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self.0.to_be_bytes() {
            [0, count] => out.push(count),
            octets => out.extend(octets),
        }
    }
}

/// Downlink Data Service Information: distinguishes services for paging (TS 29.244 8.2.27).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DownlinkDataServiceInformation {
    /// Paging Policy Indication: the DSCP of the packet, 6 bits.
    pub paging_policy_indication: Option<u8>,
    /// The QoS flow.
    pub qfi: Option<Qfi>,
}

impl Ie for DownlinkDataServiceInformation {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        let paging_policy_indication = value.when(bit(octet, 1), Reader::u8)?.map(|dscp| dscp & 0x3f);
        Ok(DownlinkDataServiceInformation {
            paging_policy_indication,
            qfi: value.when(bit(octet, 2), Qfi::decode)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(flags([(1, self.paging_policy_indication.is_some()), (2, self.qfi.is_some())]));
        out.extend(self.paging_policy_indication.map(|dscp| dscp & 0x3f));
        out.extend(self.qfi.map(|qfi| qfi.0));
    }
}
