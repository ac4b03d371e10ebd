//! Modification of a session, and what a gNB notifies of its flows (TS 38.413 9.3.4.3 to 9.3.4.7,
//! 9.3.4.13, 9.3.4.17, 9.3.4.22).

use super::{
    FlowTunnel, QosFlow, SecondaryRatUsage, Tunnel, bad, cause_transfer, decode, encode, extension,
    flow_list, qos, read_additional, read_failed, read_pairs, read_per_tunnel, tunnel, write_additional,
    write_failed, write_pairs, write_per_tunnel,
};
use crate::convert::Write;
use crate::error::NgapError;
use crate::types::Cause;
use oxirush_ngap::ngap as wire;
use oxirush_ngap::{build_ngap_ie, extract_ngap_ies};
use pith_types::{Ambr, BitRate};

/// PDU Session Resource Modify Request Transfer (TS 38.413 9.3.4.3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModifyRequestTransfer {
    /// A new session AMBR.
    pub session_ambr: Option<Ambr>,
    /// Flows that are new or have new parameters.
    pub flows: Vec<QosFlow>,
    /// QFIs of flows to release, with causes.
    pub to_release: Vec<(u8, Cause)>,
    /// Tunnels with a new end at the UPF, at most 4 (UL NG-U UP TNL Modify List).
    pub tunnels: Vec<TunnelChange>,
}

/// The two ends of a tunnel: one with a new end at the UPF (UL NG-U UP TNL Modify Item), or an additional one (UP Transport Layer
/// Information Pair Item).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunnelChange {
    /// The UPF's new end.
    pub uplink: Tunnel,
    /// The gNB's end, which identifies the tunnel.
    pub downlink: Tunnel,
}

impl ModifyRequestTransfer {
    /// Decodes the octets of a modify item.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let read = || -> Result<_, oxirush_ngap::Error> {
            let transfer: wire::PDUSessionResourceModifyRequestTransfer = wire::decode_open_type(octets)?;
            extract_ngap_ies!(transfer, PDUSessionResourceModifyRequestTransfer,
                opt ambr: Ambr = PDUSessionAggregateMaximumBitRate(rate) => Ambr {
                    downlink: BitRate(rate.pdu_session_aggregate_maximum_bit_rate_dl.0),
                    uplink: BitRate(rate.pdu_session_aggregate_maximum_bit_rate_ul.0),
                },
                opt flows: wire::QosFlowAddOrModifyRequestList = QosFlowAddOrModifyRequestList(list) => list,
                opt to_release: wire::QosFlowListWithCause = QosFlowToReleaseList(list) => list,
                opt tunnels: Vec<Option<TunnelChange>> =
                    UL_NGU_UP_TNLModifyList(list) => list.0.iter().map(read_change).collect(),
            );
            Ok((ambr, flows, to_release, tunnels))
        };
        let (session_ambr, flows, to_release, tunnels) =
            read().map_err(|error| NgapError::transfer_syntax(&error))?;
        let flows = flows.map(|list| list.0).unwrap_or_default();
        let flows: Option<Vec<_>> = flows.iter().map(read_flow).collect();
        Ok(Self {
            session_ambr,
            flows: flows.ok_or_else(|| bad("a QoS flow without 5QI"))?,
            to_release: read_failed(to_release),
            tunnels: (tunnels.into_iter().flatten().collect::<Option<_>>())
                .ok_or_else(|| bad("no N3 tunnel of GTP-U"))?,
        })
    }

    /// The octets for a modify item.
    pub fn encode(&self) -> Vec<u8> {
        self.build().unwrap_or_default()
    }

    fn build(&self) -> Result<Vec<u8>, oxirush_ngap::Error> {
        let mut ies = Vec::with_capacity(4);
        if let Some(ambr) = self.session_ambr {
            let rate = |rate: BitRate| wire::BitRate(rate.bps());
            let ambr =
                wire::PDUSessionAggregateMaximumBitRate::new(rate(ambr.downlink), rate(ambr.uplink), None);
            ies.push(build_ngap_ie!(
                PDUSessionResourceModifyRequestTransfer,
                PDUSessionAggregateMaximumBitRate(ambr)
            )?);
        }
        if !self.tunnels.is_empty() {
            let tunnels = wire::ULNGUUPTNLModifyList(self.tunnels.iter().map(write_change).collect());
            ies.push(build_ngap_ie!(
                PDUSessionResourceModifyRequestTransfer,
                UL_NGU_UP_TNLModifyList(tunnels)
            )?);
        }
        if !self.flows.is_empty() {
            let flows = wire::QosFlowAddOrModifyRequestList(self.flows.iter().map(write_flow).collect());
            ies.push(build_ngap_ie!(
                PDUSessionResourceModifyRequestTransfer,
                QosFlowAddOrModifyRequestList(flows)
            )?);
        }
        if let Some(flows) = write_failed(&self.to_release) {
            ies.push(build_ngap_ie!(PDUSessionResourceModifyRequestTransfer, QosFlowToReleaseList(flows))?);
        }
        encode(&wire::PDUSessionResourceModifyRequestTransfer::new(wire::ProtocolIEContainer(ies)))
    }
}

fn read_change(item: &wire::ULNGUUPTNLModifyItem<'_>) -> Option<TunnelChange> {
    Some(TunnelChange {
        uplink: tunnel::address_and_teid(&item.ul_ngu_up_tnl_information)?,
        downlink: tunnel::address_and_teid(&item.dl_ngu_up_tnl_information)?,
    })
}

fn write_change(change: &TunnelChange) -> wire::ULNGUUPTNLModifyItem<'static> {
    let (uplink, downlink) = (tunnel::write(&change.uplink), tunnel::write(&change.downlink));
    wire::ULNGUUPTNLModifyItem::new(uplink, downlink, None)
}

fn read_flow(item: &wire::QosFlowAddOrModifyRequestItem) -> Option<QosFlow> {
    qos::read(item.qos_flow_identifier.0, item.qos_flow_level_qos_parameters.as_ref()?)
}

fn write_flow(flow: &QosFlow) -> wire::QosFlowAddOrModifyRequestItem {
    let qfi = wire::QosFlowIdentifier(flow.qfi.into());
    wire::QosFlowAddOrModifyRequestItem::new(qfi, Some(qos::write(flow)), None, None)
}

/// PDU Session Resource Modify Response Transfer (TS 38.413 9.3.4.4).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModifyResponseTransfer {
    /// The gNB's end of the N3 tunnel, if it has changed.
    pub downlink: Option<Tunnel>,
    /// The UPF's end of that tunnel.
    pub uplink: Option<Tunnel>,
    /// QFIs of the flows that were added or modified.
    pub flows: Vec<u8>,
    /// Tunnels of flows that other gNBs take, at most 3 (Additional DL QoS Flow per TNL Information).
    pub additional: Vec<FlowTunnel>,
    /// QFIs of the failed flows, with causes.
    pub failed: Vec<(u8, Cause)>,
}

flow_list!(read_modified write_modified QosFlowAddOrModifyResponseList QosFlowAddOrModifyResponseItem);

impl ModifyResponseTransfer {
    /// Decodes the octets of an item that was modified.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let transfer: wire::PDUSessionResourceModifyResponseTransfer<'_> = decode(octets)?;
        Ok(Self {
            downlink: transfer.dl_ngu_up_tnl_information.as_ref().map(tunnel::read).transpose()?,
            uplink: transfer.ul_ngu_up_tnl_information.as_ref().map(tunnel::read).transpose()?,
            flows: transfer.qos_flow_add_or_modify_response_list.map(read_modified).unwrap_or_default(),
            additional: read_additional(transfer.additional_dl_qos_flow_per_tnl_information)?,
            failed: read_failed(transfer.qos_flow_failed_to_add_or_modify_list),
        })
    }

    /// The octets for an item that was modified.
    pub fn encode(&self) -> Vec<u8> {
        let transfer = wire::PDUSessionResourceModifyResponseTransfer::new(
            self.downlink.as_ref().map(tunnel::write),
            self.uplink.as_ref().map(tunnel::write),
            (!self.flows.is_empty()).then(|| write_modified(&self.flows)),
            write_additional(&self.additional),
            write_failed(&self.failed),
            None,
        );
        encode(&transfer).unwrap_or_default()
    }
}

cause_transfer! {
    /// PDU Session Resource Modify Unsuccessful Transfer (TS 38.413 9.3.4.17).
    ModifyUnsuccessfulTransfer = PDUSessionResourceModifyUnsuccessfulTransfer(None, None)
}

/// PDU Session Resource Notify Transfer (TS 38.413 9.3.4.5).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotifyTransfer {
    /// QFIs of GBR flows, and whether their rates are fulfilled.
    pub flows: Vec<(u8, wire::NotificationCause)>,
    /// QFIs of flows that the gNB released, with causes.
    pub released: Vec<(u8, Cause)>,
}

impl NotifyTransfer {
    /// Decodes the octets of an item.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let transfer: wire::PDUSessionResourceNotifyTransfer = decode(octets)?;
        let flows = transfer.qos_flow_notify_list.map(|list| list.0).unwrap_or_default();
        let flow =
            |item: wire::QosFlowNotifyItem| (item.qos_flow_identifier.0 as u8, item.notification_cause);
        Ok(Self {
            flows: flows.into_iter().map(flow).collect(),
            released: read_failed(transfer.qos_flow_released_list),
        })
    }

    /// The octets for an item.
    pub fn encode(&self) -> Vec<u8> {
        let flow = |(qfi, cause): &(u8, wire::NotificationCause)| {
            wire::QosFlowNotifyItem::new(wire::QosFlowIdentifier((*qfi).into()), *cause, None)
        };
        let flows = self.flows.iter().map(flow).collect();
        let flows = (!self.flows.is_empty()).then_some(wire::QosFlowNotifyList(flows));
        let released = write_failed(&self.released);
        encode(&wire::PDUSessionResourceNotifyTransfer::new(flows, released, None)).unwrap_or_default()
    }
}

cause_transfer! {
    /// PDU Session Resource Notify Released Transfer (TS 38.413 9.3.4.13).
    NotifyReleasedTransfer = PDUSessionResourceNotifyReleasedTransfer(None)
}

/// PDU Session Resource Modify Indication Transfer (TS 38.413 9.3.4.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModifyIndicationTransfer {
    /// A gNB's end of the N3 tunnel, and the flows in it.
    pub downlink: FlowTunnel,
    /// Further tunnels, at most 3, if the session is split between gNBs (Additional DL QoS Flow per TNL Information).
    pub additional: Vec<FlowTunnel>,
    /// The volume over a secondary RAT since the last report.
    pub usage: Option<SecondaryRatUsage>,
}

impl ModifyIndicationTransfer {
    /// Decodes the octets of an item.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let transfer: wire::PDUSessionResourceModifyIndicationTransfer<'_> = decode(octets)?;
        // Of criticality 'ignore': one that can't be decoded is left out (TS 38.413 10.3.4.2).
        let usage: Option<wire::SecondaryRATUsageInformation<'_>> =
            extension::find(transfer.ie_extensions.as_ref(), extension::SECONDARY_RAT_USAGE)
                .unwrap_or_default();
        Ok(Self {
            downlink: read_per_tunnel(&transfer.dl_qos_flow_per_tnl_information)?,
            additional: read_additional(transfer.additional_dl_qos_flow_per_tnl_information)?,
            usage: usage.as_ref().map(SecondaryRatUsage::read),
        })
    }

    /// The octets for an item.
    pub fn encode(&self) -> Vec<u8> {
        let per_tunnel = write_per_tunnel(&self.downlink.tunnel, &self.downlink.flows);
        let usage = self.usage.map(SecondaryRatUsage::write);
        let usage = usage.and_then(|usage| extension::field(extension::SECONDARY_RAT_USAGE, &usage));
        let transfer = wire::PDUSessionResourceModifyIndicationTransfer::new(
            per_tunnel,
            write_additional(&self.additional),
            extension::container([usage]),
        );
        encode(&transfer).unwrap_or_default()
    }
}

/// PDU Session Resource Modify Confirm Transfer (TS 38.413 9.3.4.7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModifyConfirmTransfer {
    /// QFIs of the continued flows.
    pub flows: Vec<u8>,
    /// The UPF's end of the N3 tunnel.
    pub uplink: Tunnel,
    /// The ends of further tunnels, at most 3 (Additional NG-U UP TNL Information).
    pub additional: Vec<TunnelChange>,
    /// QFIs of the failed flows, with causes.
    pub failed: Vec<(u8, Cause)>,
}

flow_list!(read_confirmed write_confirmed QosFlowModifyConfirmList QosFlowModifyConfirmItem);

impl ModifyConfirmTransfer {
    /// Decodes the octets of an item.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let transfer: wire::PDUSessionResourceModifyConfirmTransfer<'_> = decode(octets)?;
        Ok(Self {
            flows: read_confirmed(transfer.qos_flow_modify_confirm_list),
            uplink: tunnel::read(&transfer.ul_ngu_up_tnl_information)?,
            additional: read_pairs(transfer.additional_ng_u_up_tnl_information)?,
            failed: read_failed(transfer.qos_flow_failed_to_modify_list),
        })
    }

    /// The octets for an item.
    pub fn encode(&self) -> Vec<u8> {
        let transfer = wire::PDUSessionResourceModifyConfirmTransfer::new(
            write_confirmed(&self.flows),
            tunnel::write(&self.uplink),
            write_pairs(&self.additional),
            write_failed(&self.failed),
            None,
        );
        encode(&transfer).unwrap_or_default()
    }
}

cause_transfer! {
    /// PDU Session Resource Modify Indication Unsuccessful Transfer (TS 38.413 9.3.4.22).
    ModifyIndicationUnsuccessfulTransfer = PDUSessionResourceModifyIndicationUnsuccessfulTransfer(None)
}
