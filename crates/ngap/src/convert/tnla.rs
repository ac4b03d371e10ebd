//! TNL associations (TS 38.413 9.3.2.6 to 9.3.2.10).

use super::{Bad, Read, Write};
use crate::tnla::{
    AmfTnlaToAdd, AmfTnlaToRemove, AmfTnlaToUpdate, CpTransportLayer, FailedTnla, RanTnlAssociation,
};
use oxirush_ngap::BitString;
use oxirush_ngap::ngap as wire;
use std::net::IpAddr;

/// id-EndpointIPAddressAndPort.
const ADDRESS_AND_PORT: u16 = 169;
/// id-TNLAssociationTransportLayerAddressNGRAN.
const ADDRESS_OF_NGRAN: u16 = 168;

fn read_address(address: &wire::TransportLayerAddress<'_>) -> Result<IpAddr, Bad> {
    let octets = address.0.as_octets();
    let read = match octets.len() {
        4 | 20 => octets.first_chunk::<4>().map(|octets| IpAddr::from(*octets)),
        16 => octets.first_chunk::<16>().map(|octets| IpAddr::from(*octets)),
        _ => None,
    };
    read.ok_or(Bad("Transport Layer Address that is no IP address"))
}

fn write_address(address: IpAddr) -> wire::TransportLayerAddress<'static> {
    let octets = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    wire::TransportLayerAddress(BitString::from_octets(octets))
}

fn read_end(end: &wire::CPTransportLayerInformation<'_>) -> Result<CpTransportLayer, Bad> {
    match end {
        wire::CPTransportLayerInformation::endpointIPAddress(address) => {
            Ok(CpTransportLayer { address: read_address(address)?, port: None })
        }
        wire::CPTransportLayerInformation::choice_Extensions(field) if field.id.0 == ADDRESS_AND_PORT => {
            let end: wire::EndpointIPAddressAndPort<'_> = wire::decode_open_type(&field.value)
                .map_err(|_| Bad("Endpoint IP Address and Port that can't be decoded"))?;
            let port = u16::from_be_bytes(end.port_number.0);
            Ok(CpTransportLayer { address: read_address(&end.endpoint_ip_address)?, port: Some(port) })
        }
        wire::CPTransportLayerInformation::choice_Extensions(_) => {
            Err(Bad("CP Transport Layer Information of an unknown kind"))
        }
    }
}

fn write_end(end: &CpTransportLayer) -> wire::CPTransportLayerInformation<'static> {
    let address = write_address(end.address);
    let Some(port) = end.port else {
        return wire::CPTransportLayerInformation::endpointIPAddress(address);
    };
    let end = wire::EndpointIPAddressAndPort::new(address, wire::PortNumber(port.to_be_bytes()), None);
    let octets = wire::encode_open_type(&end).map(|octets| octets.to_vec()).unwrap_or_default();
    let field = wire::ProtocolIEField::new(ADDRESS_AND_PORT, wire::Criticality::reject, octets.into());
    wire::CPTransportLayerInformation::choice_Extensions(field)
}

fn read_ran_end(
    extensions: Option<&wire::ProtocolExtensionContainer<'static>>,
) -> Result<Option<CpTransportLayer>, Bad> {
    let fields = extensions.map(|container| container.0.as_slice()).unwrap_or_default();
    let Some(field) = fields.iter().find(|field| field.id.0 == ADDRESS_OF_NGRAN) else { return Ok(None) };
    let end: wire::CPTransportLayerInformation<'_> = wire::decode_open_type(&field.extension_value)
        .map_err(|_| Bad("TNL Association Transport Layer Address NG-RAN that can't be decoded"))?;
    read_end(&end).map(Some)
}

fn write_ran_end(end: &CpTransportLayer) -> wire::ProtocolExtensionContainer<'static> {
    let octets = wire::encode_open_type(&write_end(end)).map(|octets| octets.to_vec()).unwrap_or_default();
    let criticality = wire::Criticality::reject;
    let field = wire::ProtocolExtensionField::new(ADDRESS_OF_NGRAN, criticality, octets.into());
    wire::ProtocolExtensionContainer(vec![field])
}

/// Both conversions of a list.
macro_rules! convert_ends {
    ($own:ty, $list:ident, $item:ident, $read:expr, $write:expr) => {
        impl Read<wire::$list<'_>> for Vec<$own> {
            fn read(wire: wire::$list<'_>) -> Result<Self, Bad> {
                let read: fn(wire::$item<'_>) -> Result<$own, Bad> = $read;
                wire.0.into_iter().map(read).collect()
            }
        }
        impl<'a> Write<'a, wire::$list<'a>> for Vec<$own> {
            fn write(&'a self) -> wire::$list<'a> {
                let write: fn(&$own) -> wire::$item<'static> = $write;
                wire::$list(self.iter().map(write).collect())
            }
        }
    };
}

convert_ends!(
    AmfTnlaToAdd,
    AMFTNLAssociationToAddList,
    AMFTNLAssociationToAddItem,
    |w| Ok(AmfTnlaToAdd {
        endpoint: read_end(&w.amf_tnl_association_address)?,
        usage: w.tnl_association_usage,
        weight: w.tnl_address_weight_factor.0,
    }),
    |own| {
        let weight = wire::TNLAddressWeightFactor(own.weight);
        wire::AMFTNLAssociationToAddItem::new(write_end(&own.endpoint), own.usage, weight, None)
    }
);
convert_ends!(
    AmfTnlaToUpdate,
    AMFTNLAssociationToUpdateList,
    AMFTNLAssociationToUpdateItem,
    |w| Ok(AmfTnlaToUpdate {
        endpoint: read_end(&w.amf_tnl_association_address)?,
        usage: w.tnl_association_usage,
        weight: w.tnl_address_weight_factor.map(|weight| weight.0),
    }),
    |own| {
        let weight = own.weight.map(wire::TNLAddressWeightFactor);
        wire::AMFTNLAssociationToUpdateItem::new(write_end(&own.endpoint), own.usage, weight, None)
    }
);
convert_ends!(
    AmfTnlaToRemove,
    AMFTNLAssociationToRemoveList,
    AMFTNLAssociationToRemoveItem,
    |w| Ok(AmfTnlaToRemove {
        endpoint: read_end(&w.amf_tnl_association_address)?,
        ran: read_ran_end(w.ie_extensions.as_ref())?,
    }),
    |own| {
        let extensions = own.ran.as_ref().map(write_ran_end);
        wire::AMFTNLAssociationToRemoveItem::new(write_end(&own.endpoint), extensions)
    }
);
convert_ends!(
    CpTransportLayer,
    AMFTNLAssociationSetupList,
    AMFTNLAssociationSetupItem,
    |w| read_end(&w.amf_tnl_association_address),
    |own| wire::AMFTNLAssociationSetupItem::new(write_end(own), None)
);
convert_ends!(
    FailedTnla,
    TNLAssociationList,
    TNLAssociationItem,
    |w| Ok(FailedTnla { endpoint: read_end(&w.tnl_association_address)?, cause: Read::read(w.cause)? }),
    |own| wire::TNLAssociationItem::new(write_end(&own.endpoint), own.cause.write(), None)
);
convert_ends!(
    RanTnlAssociation,
    NGRANTNLAssociationToRemoveList,
    NGRANTNLAssociationToRemoveItem,
    |w| Ok(RanTnlAssociation {
        ran: read_end(&w.tnl_association_transport_layer_address)?,
        amf: w.tnl_association_transport_layer_address_amf.as_ref().map(read_end).transpose()?,
    }),
    |own| {
        let amf = own.amf.as_ref().map(write_end);
        wire::NGRANTNLAssociationToRemoveItem::new(write_end(&own.ran), amf, None)
    }
);
