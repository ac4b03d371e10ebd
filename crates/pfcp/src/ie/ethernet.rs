//! Filters and reports of Ethernet PDU sessions.

use crate::error::IeFault;
use crate::group::Ie;
use crate::ie::address::{bit, flags};
use crate::ie::macros::{flags_ie, number_ie};
use crate::wire::{Reader, put_octets8};

number_ie! {
    /// Ethertype (TS 29.244 8.2.96).
    pub struct Ethertype(u16);
    /// Ethernet Filter ID: one filter in several PDRs (TS 29.244 8.2.98).
    pub struct EthernetFilterId(u32);
}

flags_ie! {
    /// Ethernet Filter Properties (TS 29.244 8.2.99).
    pub struct EthernetFilterProperties: u8, min 1 {
        /// The filter applies to both directions.
        BIDE = 5/1,
    }

    /// Ethernet PDU Session Information (TS 29.244 8.2.102).
    pub struct EthernetPduSessionInformation: u8, min 1 {
        /// All downlink traffic of the Ethernet PDU session.
        ETHI = 5/1,
    }

    /// Proxying (TS 29.244 8.2.97).
    pub struct Proxying: u8, min 1 {
        /// The UPF answers ARP.
        ARP = 5/1,
        /// The UPF answers IPv6 neighbour solicitations.
        INS = 5/2,
    }
}

/// A 48 bit MAC address.
pub type Mac = [u8; 6];

/// MAC address, or a range, to match (TS 29.244 8.2.93).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MacAddress {
    /// The source, or the lowest.
    pub source: Option<Mac>,
    /// The destination, or the lowest.
    pub destination: Option<Mac>,
    /// The highest source of a range.
    pub upper_source: Option<Mac>,
    /// The highest destination of a range.
    pub upper_destination: Option<Mac>,
}

impl Ie for MacAddress {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        Ok(MacAddress {
            source: value.when(bit(octet, 1), Reader::array)?,
            destination: value.when(bit(octet, 2), Reader::array)?,
            upper_source: value.when(bit(octet, 3), Reader::array)?,
            upper_destination: value.when(bit(octet, 4), Reader::array)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let fields = [self.source, self.destination, self.upper_source, self.upper_destination];
        let [source, destination, upper_source, upper_destination] = fields.map(|field| field.is_some());
        out.push(flags([(1, source), (2, destination), (3, upper_source), (4, upper_destination)]));
        out.extend(fields.into_iter().flatten().flatten());
    }
}

/// C-TAG or S-TAG: a VLAN tag, or the fields of a tag to match (TS 29.244 8.2.94, 8.2.95).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// VLAN identifier, 12 bits.
    pub vid: Option<u16>,
    /// Drop eligible indicator.
    pub dei: Option<bool>,
    /// Priority code point, 3 bits.
    pub pcp: Option<u8>,
}

impl VlanTag {
    pub(crate) fn octets(&self) -> [u8; 3] {
        let vid = self.vid.unwrap_or(0) & 0x0fff;
        let dei = if self.dei == Some(true) { 0x08 } else { 0 };
        let first = flags([(1, self.pcp.is_some()), (2, self.dei.is_some()), (3, self.vid.is_some())]);
        [first, ((vid >> 8) as u8) << 4 | dei | (self.pcp.unwrap_or(0) & 0x07), vid as u8]
    }
}

impl Ie for VlanTag {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let [octet, high, low] = value.array()?;
        Ok(VlanTag {
            vid: bit(octet, 3).then(|| u16::from_be_bytes([high >> 4, low])),
            dei: bit(octet, 2).then(|| bit(high, 4)),
            pcp: bit(octet, 1).then_some(high & 0x07),
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.octets());
    }
}

/// MAC Addresses Detected or Removed (TS 29.244 8.2.103, 8.2.104).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MacAddresses {
    /// The addresses, at most 255.
    pub addresses: Vec<Mac>,
    /// Their C-TAG.
    pub c_tag: Option<VlanTag>,
    /// Their S-TAG.
    pub s_tag: Option<VlanTag>,
}

/// A VLAN tag after its length, which is 0 if there is none; older functions omit the length, too.
fn tag(value: &mut Reader<'_>) -> Result<Option<VlanTag>, IeFault> {
    if value.is_empty() {
        return Ok(None);
    }
    let field = value.octets8()?;
    (!field.is_empty()).then(|| VlanTag::decode(&mut Reader::new(&field, 0))).transpose()
}

impl Ie for MacAddresses {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let count = value.u8()?;
        let addresses = (0..count).map(|_| value.array()).collect::<Result<_, _>>()?;
        Ok(MacAddresses { addresses, c_tag: tag(value)?, s_tag: tag(value)? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let count = self.addresses.len().min(0xff);
        out.push(count as u8);
        out.extend(self.addresses.iter().take(count).flatten());
        for tag in [&self.c_tag, &self.s_tag] {
            put_octets8(out, tag.map(|tag| tag.octets()).as_ref().map_or(&[], |octets| &octets[..]));
        }
    }
}
