//! Path switch of a session (TS 38.413 9.3.4.8, 9.3.4.9, 9.3.4.15, 9.3.4.20).

use super::{Tunnel, cause_transfer, decode, encode, flow_list, tunnel};
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
}

flow_list!(read_accepted write_accepted QosFlowAcceptedList QosFlowAcceptedItem);

impl PathSwitchRequestTransfer {
    /// Decodes the octets of an item to be switched.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let transfer: wire::PathSwitchRequestTransfer<'_> = decode(octets)?;
        Ok(Self {
            downlink: tunnel::read(&transfer.dl_ngu_up_tnl_information)?,
            flows: read_accepted(transfer.qos_flow_accepted_list),
        })
    }

    /// The octets for an item to be switched.
    pub fn encode(&self) -> Vec<u8> {
        let downlink = tunnel::write(&self.downlink);
        let flows = write_accepted(&self.flows);
        let transfer = wire::PathSwitchRequestTransfer::new(downlink, None, None, flows, None);
        encode(&transfer).unwrap_or_default()
    }
}

/// Path Switch Request Acknowledge Transfer (TS 38.413 9.3.4.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathSwitchRequestAcknowledgeTransfer {
    /// The UPF's end of the N3 tunnel, if it has changed.
    pub uplink: Option<Tunnel>,
}

impl PathSwitchRequestAcknowledgeTransfer {
    /// Decodes the octets of an item that was switched.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let transfer: wire::PathSwitchRequestAcknowledgeTransfer<'_> = decode(octets)?;
        let uplink = transfer.ul_ngu_up_tnl_information.as_ref().map(tunnel::read).transpose()?;
        Ok(Self { uplink })
    }

    /// The octets for an item that was switched.
    pub fn encode(&self) -> Vec<u8> {
        let uplink = self.uplink.as_ref().map(tunnel::write);
        encode(&wire::PathSwitchRequestAcknowledgeTransfer::new(uplink, None, None)).unwrap_or_default()
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
