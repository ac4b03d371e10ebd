//! Path switch of a session (TS 38.413 9.3.4.8, 9.3.4.9, 9.3.4.15, 9.3.4.20).

use super::{
    FlowTunnel, Tunnel, TunnelChange, cause_transfer, decode, encode, extension, flow_list, read_additional,
    read_pairs, tunnel, write_additional, write_pairs,
};
use crate::convert::Write;
use crate::error::NgapError;
use crate::types::Cause;
use oxirush_ngap::ngap as wire;

/// Path Switch Request Transfer (TS 38.413 9.3.4.8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathSwitchRequestTransfer {
    /// The target gNB's end of the N3 tunnel.
    pub downlink: Tunnel,
    /// QFIs of the continued flows.
    pub flows: Vec<u8>,
    /// Tunnels of flows that other gNBs take, at most 3 (Additional DL QoS Flow per TNL Information).
    pub additional: Vec<FlowTunnel>,
}

flow_list!(read_accepted write_accepted QosFlowAcceptedList QosFlowAcceptedItem);

impl PathSwitchRequestTransfer {
    /// Decodes the octets of an item to be switched.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let transfer: wire::PathSwitchRequestTransfer<'_> = decode(octets)?;
        let additional = extension::find(transfer.ie_extensions.as_ref(), extension::ADDITIONAL_DL_FLOWS)?;
        Ok(Self {
            downlink: tunnel::read(&transfer.dl_ngu_up_tnl_information)?,
            flows: read_accepted(transfer.qos_flow_accepted_list),
            additional: read_additional(additional)?,
        })
    }

    /// The octets for an item to be switched.
    pub fn encode(&self) -> Vec<u8> {
        let downlink = tunnel::write(&self.downlink);
        let flows = write_accepted(&self.flows);
        let additional = write_additional(&self.additional);
        let additional = additional.and_then(|it| extension::field(extension::ADDITIONAL_DL_FLOWS, &it));
        let extensions = extension::container([additional]);
        let transfer = wire::PathSwitchRequestTransfer::new(downlink, None, None, flows, extensions);
        encode(&transfer).unwrap_or_default()
    }
}

/// Path Switch Request Acknowledge Transfer (TS 38.413 9.3.4.9).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathSwitchRequestAcknowledgeTransfer {
    /// The UPF's end of the N3 tunnel, if it has changed.
    pub uplink: Option<Tunnel>,
    /// The ends of further tunnels, at most 3 (Additional NG-U UP TNL Information).
    pub additional: Vec<TunnelChange>,
}

impl PathSwitchRequestAcknowledgeTransfer {
    /// Decodes the octets of an item that was switched.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let transfer: wire::PathSwitchRequestAcknowledgeTransfer<'_> = decode(octets)?;
        let uplink = transfer.ul_ngu_up_tnl_information.as_ref().map(tunnel::read).transpose()?;
        let pairs = extension::find(transfer.ie_extensions.as_ref(), extension::ADDITIONAL_TUNNEL_PAIRS)?;
        Ok(Self { uplink, additional: read_pairs(pairs)? })
    }

    /// The octets for an item that was switched.
    pub fn encode(&self) -> Vec<u8> {
        let uplink = self.uplink.as_ref().map(tunnel::write);
        let pairs = write_pairs(&self.additional);
        let pairs = pairs.and_then(|pairs| extension::field(extension::ADDITIONAL_TUNNEL_PAIRS, &pairs));
        let extensions = extension::container([pairs]);
        encode(&wire::PathSwitchRequestAcknowledgeTransfer::new(uplink, None, extensions)).unwrap_or_default()
    }
}

cause_transfer! {
    /// Path Switch Request Setup Failed Transfer (TS 38.413 9.3.4.15).
    PathSwitchRequestSetupFailedTransfer = PathSwitchRequestSetupFailedTransfer(None)
}

cause_transfer! {
    /// Path Switch Request Unsuccessful Transfer (TS 38.413 9.3.4.20).
    PathSwitchRequestUnsuccessfulTransfer = PathSwitchRequestUnsuccessfulTransfer(None)
}
