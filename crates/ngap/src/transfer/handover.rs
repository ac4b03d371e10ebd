//! Handover of a session (TS 38.413 9.3.4.10, 9.3.4.11, 9.3.4.14, 9.3.4.18, 9.3.4.19).

use super::{
    Tunnel, cause_transfer, decode, encode, extension, flow_list, read_failed, tunnel, write_failed,
};
use crate::convert::Write;
use crate::error::NgapError;
use crate::types::Cause;
use oxirush_ngap::ngap as wire;

/// Handover Required Transfer (TS 38.413 9.3.4.14), from the source gNB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HandoverRequiredTransfer {
    /// A direct path for data forwarding exists.
    pub direct_forwarding_path: bool,
}

impl HandoverRequiredTransfer {
    /// Decodes the octets of an item.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let transfer: wire::HandoverRequiredTransfer = decode(octets)?;
        Ok(Self { direct_forwarding_path: transfer.direct_forwarding_path_availability.is_some() })
    }

    /// The octets for an item.
    pub fn encode(&self) -> Vec<u8> {
        let available = wire::DirectForwardingPathAvailability::direct_path_available;
        let path = self.direct_forwarding_path.then_some(available);
        encode(&wire::HandoverRequiredTransfer::new(path, None)).unwrap_or_default()
    }
}

/// Handover Request Acknowledge Transfer (TS 38.413 9.3.4.11), from the target gNB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoverRequestAcknowledgeTransfer {
    /// The target gNB's end of the N3 tunnel.
    pub downlink: Tunnel,
    /// The tunnel for forwarded downlink data.
    pub forwarding: Option<Tunnel>,
    /// QFIs of the flows that were set up, and whether their data may be forwarded.
    pub flows: Vec<(u8, bool)>,
    /// Tunnels of flows that other gNBs take, at most 3 (Additional DL UP TNL Information for HO List).
    pub additional: Vec<AdditionalTarget>,
    /// QFIs of the failed flows, with causes.
    pub failed: Vec<(u8, Cause)>,
}

/// An additional tunnel after the handover (Additional DL UP TNL Information for HO Item).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdditionalTarget {
    /// The gNB's end of the N3 tunnel.
    pub downlink: Tunnel,
    /// The tunnel for forwarded downlink data.
    pub forwarding: Option<Tunnel>,
    /// QFIs of its flows, and whether their data may be forwarded.
    pub flows: Vec<(u8, bool)>,
}

fn read_flows(list: wire::QosFlowListWithDataForwarding) -> Vec<(u8, bool)> {
    let flow = |item: wire::QosFlowItemWithDataForwarding| {
        (item.qos_flow_identifier.0 as u8, item.data_forwarding_accepted.is_some())
    };
    list.0.into_iter().map(flow).collect()
}

fn write_flows(flows: &[(u8, bool)]) -> wire::QosFlowListWithDataForwarding {
    let accepted = wire::DataForwardingAccepted::data_forwarding_accepted;
    let flow = |(qfi, forwarded): &(u8, bool)| {
        let qfi = wire::QosFlowIdentifier((*qfi).into());
        wire::QosFlowItemWithDataForwarding::new(qfi, forwarded.then_some(accepted), None)
    };
    wire::QosFlowListWithDataForwarding(flows.iter().map(flow).collect())
}

impl AdditionalTarget {
    fn read(item: wire::AdditionalDLUPTNLInformationForHOItem<'_>) -> Result<Self, NgapError> {
        let forwarding = item.additional_dl_forwarding_up_tnl_information.as_ref();
        Ok(Self {
            downlink: tunnel::read(&item.additional_dl_ngu_up_tnl_information)?,
            forwarding: forwarding.map(tunnel::read).transpose()?,
            flows: read_flows(item.additional_qos_flow_setup_response_list),
        })
    }

    fn write(&self) -> wire::AdditionalDLUPTNLInformationForHOItem<'static> {
        wire::AdditionalDLUPTNLInformationForHOItem::new(
            tunnel::write(&self.downlink),
            write_flows(&self.flows),
            self.forwarding.as_ref().map(tunnel::write),
            None,
        )
    }
}

impl HandoverRequestAcknowledgeTransfer {
    /// Decodes the octets of an item that was admitted.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let transfer: wire::HandoverRequestAcknowledgeTransfer<'_> = decode(octets)?;
        let id = extension::ADDITIONAL_DL_FOR_HANDOVER;
        let additional: Option<wire::AdditionalDLUPTNLInformationForHOList<'_>> =
            extension::find(transfer.ie_extensions.as_ref(), id)?;
        let additional = additional.map(|list| list.0).unwrap_or_default().into_iter();
        Ok(Self {
            downlink: tunnel::read(&transfer.dl_ngu_up_tnl_information)?,
            forwarding: transfer.dl_forwarding_up_tnl_information.as_ref().map(tunnel::read).transpose()?,
            flows: read_flows(transfer.qos_flow_setup_response_list),
            additional: additional.map(AdditionalTarget::read).collect::<Result<_, _>>()?,
            failed: read_failed(transfer.qos_flow_failed_to_setup_list),
        })
    }

    /// The octets for an item that was admitted.
    pub fn encode(&self) -> Vec<u8> {
        let additional = self.additional.iter().map(AdditionalTarget::write).collect();
        let additional = wire::AdditionalDLUPTNLInformationForHOList(additional);
        let additional = (!self.additional.is_empty()).then_some(additional);
        let additional =
            additional.and_then(|list| extension::field(extension::ADDITIONAL_DL_FOR_HANDOVER, &list));
        let transfer = wire::HandoverRequestAcknowledgeTransfer::new(
            tunnel::write(&self.downlink),
            self.forwarding.as_ref().map(tunnel::write),
            None,
            write_flows(&self.flows),
            write_failed(&self.failed),
            None,
            extension::container([additional]),
        );
        encode(&transfer).unwrap_or_default()
    }
}

/// Handover Command Transfer (TS 38.413 9.3.4.10), to the source gNB.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HandoverCommandTransfer {
    /// The tunnel for forwarded downlink data.
    pub forwarding: Option<Tunnel>,
    /// QFIs of the flows whose data is forwarded.
    pub flows: Vec<u8>,
}

flow_list!(read_forwarded write_forwarded QosFlowToBeForwardedList QosFlowToBeForwardedItem);

impl HandoverCommandTransfer {
    /// Decodes the octets of an item that moves.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let transfer: wire::HandoverCommandTransfer<'_> = decode(octets)?;
        Ok(Self {
            forwarding: transfer.dl_forwarding_up_tnl_information.as_ref().map(tunnel::read).transpose()?,
            flows: transfer.qos_flow_to_be_forwarded_list.map(read_forwarded).unwrap_or_default(),
        })
    }

    /// The octets for an item that moves.
    pub fn encode(&self) -> Vec<u8> {
        let forwarding = self.forwarding.as_ref().map(tunnel::write);
        let flows = (!self.flows.is_empty()).then(|| write_forwarded(&self.flows));
        encode(&wire::HandoverCommandTransfer::new(forwarding, flows, None, None)).unwrap_or_default()
    }
}

cause_transfer! {
    /// Handover Preparation Unsuccessful Transfer (TS 38.413 9.3.4.18), to the source gNB.
    HandoverPreparationUnsuccessfulTransfer = HandoverPreparationUnsuccessfulTransfer(None)
}

cause_transfer! {
    /// Handover Resource Allocation Unsuccessful Transfer (TS 38.413 9.3.4.19), from the target gNB.
    HandoverResourceAllocationUnsuccessfulTransfer =
        HandoverResourceAllocationUnsuccessfulTransfer(None, None)
}
