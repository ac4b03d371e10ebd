//! Values of traces (TS 38.413 9.3.1.14).

use super::{Bad, Read, Write};
use crate::trace::{CollectionEntity, NgRanTraceId, NrCgi, TraceActivation, TracedInterfaces};
use oxirush_ngap::ngap as wire;
use oxirush_ngap::{BitString, Bits};
use pith_types::NrCellIdentity;
use std::borrow::Cow;

convert!(NgRanTraceId, wire::NGRANTraceID, |w| Ok(Self(w.0)), |own| wire::NGRANTraceID(own.0));
convert!(wire::PrivacyIndicator, wire::PrivacyIndicator, Ok, |own| *own);
convert!(
    NrCgi,
    wire::NGRANCGI,
    |w| match w {
        wire::NGRANCGI::nR_CGI(cgi) => Ok(Self {
            plmn: Read::read(cgi.plmn_identity)?,
            cell: NrCellIdentity::new(cgi.nr_cell_identity.0.value()),
        }),
        _ => Err(Bad("NG-RAN CGI that is not of NR")),
    },
    |own| {
        let cell = wire::NRCellIdentity(Bits::low(own.cell.value(), 36));
        wire::NGRANCGI::nR_CGI(wire::NRCGI::new(own.plmn.write(), cell, None))
    }
);

/// An address has 32 bits, 128, or 160: IPv4, then IPv6 (TS 38.414 5.1).
impl Read<wire::TransportLayerAddress<'_>> for CollectionEntity {
    fn read(wire: wire::TransportLayerAddress<'_>) -> Result<Self, Bad> {
        let bits = wire.0;
        if !bits.len().is_multiple_of(8) {
            return Err(Bad("Transport Layer Address that is no IP address"));
        }
        let octets = bits.as_octets();
        let (ipv4, ipv6) = match octets.len() {
            4 => (octets.first_chunk::<4>(), None),
            16 => (None, octets.first_chunk::<16>()),
            20 => (octets.first_chunk::<4>(), octets.last_chunk::<16>()),
            _ => return Err(Bad("Transport Layer Address that is no IP address")),
        };
        Ok(Self { ipv4: ipv4.map(|it| (*it).into()), ipv6: ipv6.map(|it| (*it).into()) })
    }
}

impl<'a> Write<'a, wire::TransportLayerAddress<'a>> for CollectionEntity {
    fn write(&'a self) -> wire::TransportLayerAddress<'a> {
        let mut octets = Vec::with_capacity(20);
        octets.extend(self.ipv4.iter().flat_map(|it| it.octets()));
        octets.extend(self.ipv6.iter().flat_map(|it| it.octets()));
        wire::TransportLayerAddress(BitString::from_octets(octets))
    }
}

impl Read<wire::TraceActivation<'_>> for TraceActivation {
    fn read(wire: wire::TraceActivation<'_>) -> Result<Self, Bad> {
        Ok(Self {
            id: Read::read(wire.ngran_trace_id)?,
            interfaces: TracedInterfaces(wire.interfaces_to_trace.0.value() as u8),
            depth: wire.trace_depth,
            collection_entity: Read::read(wire.trace_collection_entity_ip_address)?,
        })
    }
}

impl<'a> Write<'a, wire::TraceActivation<'a>> for TraceActivation {
    fn write(&'a self) -> wire::TraceActivation<'a> {
        wire::TraceActivation::new(
            self.id.write(),
            wire::InterfacesToTrace(Bits::low(self.interfaces.0.into(), 8)),
            self.depth,
            self.collection_entity.write(),
            None,
        )
    }
}

impl Read<wire::URIAddress<'_>> for String {
    fn read(wire: wire::URIAddress<'_>) -> Result<Self, Bad> {
        Ok(wire.0.into_owned())
    }
}

impl<'a> Write<'a, wire::URIAddress<'a>> for String {
    fn write(&'a self) -> wire::URIAddress<'a> {
        wire::URIAddress(Cow::Borrowed(self))
    }
}
