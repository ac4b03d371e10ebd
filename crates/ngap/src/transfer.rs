//! Transfers of PDU sessions between SMF and gNB, transparent to the AMF (TS 38.413 9.3.4).

mod extension;
mod handover;
mod modify;
mod path_switch;
mod qos;
mod release;
mod secondary_rat;
mod setup;
mod tunnel;

pub use handover::{
    AdditionalTarget, HandoverCommandTransfer, HandoverPreparationUnsuccessfulTransfer,
    HandoverRequestAcknowledgeTransfer, HandoverRequiredTransfer,
    HandoverResourceAllocationUnsuccessfulTransfer,
};
pub use modify::{
    ModifyConfirmTransfer, ModifyIndicationTransfer, ModifyIndicationUnsuccessfulTransfer,
    ModifyRequestTransfer, ModifyResponseTransfer, ModifyUnsuccessfulTransfer, NotifyReleasedTransfer,
    NotifyTransfer, TunnelChange,
};
pub use oxirush_ngap::ngap::NotificationCause;
pub use path_switch::{
    PathSwitchRequestAcknowledgeTransfer, PathSwitchRequestSetupFailedTransfer, PathSwitchRequestTransfer,
    PathSwitchRequestUnsuccessfulTransfer,
};
pub use qos::{Arp, GbrQos, QosFlow};
pub use release::{ReleaseCommandTransfer, ReleaseResponseTransfer};
pub use secondary_rat::{SecondaryRatUsage, SecondaryRatUsageTransfer};
pub use setup::{SessionType, SetupRequestTransfer, SetupResponseTransfer, SetupUnsuccessfulTransfer};
pub use tunnel::{FlowTunnel, Tunnel};

use crate::convert::{Read, Write};
use crate::error::NgapError;
use crate::types::Cause;
use oxirush_ngap::ngap as wire;
use oxirush_ngap::{AsnType, Decode, Encode};

fn decode<'a, T: AsnType + Decode<'a>>(octets: &'a [u8]) -> Result<T, NgapError> {
    wire::decode_open_type(octets).map_err(|error| NgapError::transfer_syntax(&error))
}

fn encode<T: AsnType + Encode>(transfer: &T) -> Result<Vec<u8>, oxirush_ngap::Error> {
    wire::encode_open_type(transfer).map(|octets| octets.to_vec())
}

fn bad(text: &str) -> NgapError {
    NgapError::TransferSyntax(text.to_owned())
}

fn read_cause(cause: wire::Cause) -> Result<Cause, NgapError> {
    Cause::read(cause).map_err(|bad_cause| bad(bad_cause.0))
}

/// QFIs of failed or released flows, with causes.
fn read_failed(list: Option<wire::QosFlowListWithCause>) -> Vec<(u8, Cause)> {
    let item = |item: wire::QosFlowWithCauseItem| {
        Some((item.qos_flow_identifier.0 as u8, Cause::read(item.cause).ok()?))
    };
    list.map(|list| list.0).unwrap_or_default().into_iter().filter_map(item).collect()
}

fn write_failed(flows: &[(u8, Cause)]) -> Option<wire::QosFlowListWithCause> {
    let item = |(qfi, cause): &(u8, Cause)| {
        wire::QosFlowWithCauseItem::new(wire::QosFlowIdentifier((*qfi).into()), cause.write(), None)
    };
    (!flows.is_empty()).then(|| wire::QosFlowListWithCause(flows.iter().map(item).collect()))
}

/// A tunnel to the gNB and its flows; the mapping direction of flows is not kept.
fn read_per_tunnel(per_tunnel: &wire::QosFlowPerTNLInformation<'_>) -> Result<FlowTunnel, NgapError> {
    let flows = &per_tunnel.associated_qos_flow_list.0;
    let flows = flows.iter().map(|flow| flow.qos_flow_identifier.0 as u8).collect();
    Ok(FlowTunnel { tunnel: tunnel::read(&per_tunnel.up_transport_layer_information)?, flows })
}

fn write_per_tunnel(tunnel: &Tunnel, flows: &[u8]) -> wire::QosFlowPerTNLInformation<'static> {
    let flow =
        |qfi: &u8| wire::AssociatedQosFlowItem::new(wire::QosFlowIdentifier((*qfi).into()), None, None);
    let flows = wire::AssociatedQosFlowList(flows.iter().map(flow).collect());
    wire::QosFlowPerTNLInformation::new(tunnel::write(tunnel), flows, None)
}

/// The additional tunnels of a session that is split between gNBs.
fn read_additional(
    list: Option<wire::QosFlowPerTNLInformationList<'_>>,
) -> Result<Vec<FlowTunnel>, NgapError> {
    let items = list.map(|list| list.0).unwrap_or_default();
    items.iter().map(|item| read_per_tunnel(&item.qos_flow_per_tnl_information)).collect()
}

fn write_additional(tunnels: &[FlowTunnel]) -> Option<wire::QosFlowPerTNLInformationList<'static>> {
    let item = |FlowTunnel { tunnel, flows }: &FlowTunnel| {
        wire::QosFlowPerTNLInformationItem::new(write_per_tunnel(tunnel, flows), None)
    };
    (!tunnels.is_empty()).then(|| wire::QosFlowPerTNLInformationList(tunnels.iter().map(item).collect()))
}

/// Pairs of tunnel ends of the UPF and of gNBs, for the additional tunnels of a session.
fn read_pairs(
    list: Option<wire::UPTransportLayerInformationPairList<'_>>,
) -> Result<Vec<TunnelChange>, NgapError> {
    let pair = |item: &wire::UPTransportLayerInformationPairItem<'_>| {
        Ok(TunnelChange {
            uplink: tunnel::read(&item.ul_ngu_up_tnl_information)?,
            downlink: tunnel::read(&item.dl_ngu_up_tnl_information)?,
        })
    };
    list.map(|list| list.0).unwrap_or_default().iter().map(pair).collect()
}

fn write_pairs(pairs: &[TunnelChange]) -> Option<wire::UPTransportLayerInformationPairList<'static>> {
    let item = |TunnelChange { uplink, downlink }: &TunnelChange| {
        let (uplink, downlink) = (tunnel::write(uplink), tunnel::write(downlink));
        wire::UPTransportLayerInformationPairItem::new(uplink, downlink, None)
    };
    (!pairs.is_empty()).then(|| wire::UPTransportLayerInformationPairList(pairs.iter().map(item).collect()))
}

/// A list type whose items are QoS flow identifiers.
macro_rules! flow_list {
    ($read:ident $write:ident $list:ident $item:ident) => {
        fn $read(list: wire::$list) -> Vec<u8> {
            list.0.into_iter().map(|item| item.qos_flow_identifier.0 as u8).collect()
        }

        fn $write(flows: &[u8]) -> wire::$list {
            let item = |qfi: &u8| wire::$item::new(wire::QosFlowIdentifier((*qfi).into()), None);
            wire::$list(flows.iter().map(item).collect())
        }
    };
}
use flow_list;

/// A transfer of which only the cause is kept.
macro_rules! cause_transfer {
    ($(#[$meta:meta])* $name:ident = $wire:ident ($($unused:expr),*)) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name {
            /// The cause.
            pub cause: Cause,
        }

        impl $name {
            /// Decodes the octets of an item.
            pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
                let transfer: wire::$wire = super::decode(octets)?;
                Ok(Self { cause: super::read_cause(transfer.cause)? })
            }

            /// The octets for an item.
            pub fn encode(&self) -> Vec<u8> {
                super::encode(&wire::$wire::new(self.cause.write() $(, $unused)*)).unwrap_or_default()
            }
        }
    };
}
use cause_transfer;
