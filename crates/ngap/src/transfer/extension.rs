//! IE extensions of transfers: IEs that later releases have added (TS 38.413 9.4.5, `-ExtIEs`).

use crate::error::NgapError;
use oxirush_ngap::ngap as wire;
use oxirush_ngap::{AsnType, Decode, Encode};

/// id-SecondaryRATUsageInformation.
pub(super) const SECONDARY_RAT_USAGE: u16 = 144;
/// id-AdditionalDLUPTNLInformationForHOList.
pub(super) const ADDITIONAL_DL_FOR_HANDOVER: u16 = 153;
/// id-AdditionalNGU-UP-TNLInformation.
pub(super) const ADDITIONAL_TUNNEL_PAIRS: u16 = 154;
/// id-AdditionalDLQosFlowPerTNLInformation.
pub(super) const ADDITIONAL_DL_FLOWS: u16 = 155;

type Container = wire::ProtocolExtensionContainer<'static>;

/// The extension with that id, if the container has it. All are of criticality 'ignore'.
pub(super) fn find<'a, T: AsnType + Decode<'a>>(
    container: Option<&'a Container>,
    id: u16,
) -> Result<Option<T>, NgapError> {
    let fields = container.map(|container| container.0.as_slice()).unwrap_or_default();
    let field = fields.iter().find(|field| field.id.0 == id);
    field.map(|field| super::decode(&field.extension_value)).transpose()
}

/// A container with these extensions; `None` if there are none.
pub(super) fn container<const N: usize>(
    fields: [Option<wire::ProtocolExtensionField<'static>>; N],
) -> Option<Container> {
    let fields: Vec<_> = fields.into_iter().flatten().collect();
    (!fields.is_empty()).then_some(wire::ProtocolExtensionContainer(fields))
}

/// The extension with that id.
pub(super) fn field<T: AsnType + Encode>(
    id: u16,
    value: &T,
) -> Option<wire::ProtocolExtensionField<'static>> {
    let octets = super::encode(value).ok()?;
    Some(wire::ProtocolExtensionField::new(id, wire::Criticality::ignore, octets.into()))
}
