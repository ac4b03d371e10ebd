//! Set-up of a session (TS 38.413 9.3.4.1, 9.3.4.2, 9.3.4.16).

use super::{
    FlowTunnel, QosFlow, Tunnel, bad, cause_transfer, decode, encode, qos, read_additional, read_failed,
    read_per_tunnel, tunnel, write_additional, write_failed, write_per_tunnel,
};
use crate::convert::Write;
use crate::error::NgapError;
use crate::types::Cause;
use oxirush_ngap::ngap as wire;
use oxirush_ngap::{build_ngap_ie, extract_ngap_ies};
use pith_types::{Ambr, BitRate};

/// PDU Session Type (TS 38.413 9.3.1.52).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionType {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// IPv4 and IPv6.
    Ipv4v6,
    /// Ethernet.
    Ethernet,
    /// Anything else.
    Unstructured,
}

/// PDU Session Resource Setup Request Transfer (TS 38.413 9.3.4.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupRequestTransfer {
    /// Session-AMBR; mandatory with a non-GBR flow.
    pub session_ambr: Option<Ambr>,
    /// The UPF's end of the N3 tunnel.
    pub uplink: Tunnel,
    /// The PDU session type.
    pub session_type: SessionType,
    /// Its QoS flows.
    pub flows: Vec<QosFlow>,
}

/// PDU Session Resource Setup Response Transfer (TS 38.413 9.3.4.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupResponseTransfer {
    /// The gNB's end of the N3 tunnel.
    pub downlink: Tunnel,
    /// QFIs of the flows that were set up in that tunnel.
    pub flows: Vec<u8>,
    /// Tunnels of flows that other gNBs take, at most 3 (Additional DL QoS Flow per TNL Information).
    pub additional: Vec<FlowTunnel>,
    /// QFIs of the failed flows, with causes.
    pub failed: Vec<(u8, Cause)>,
}

impl SetupRequestTransfer {
    /// Decodes the octets of a setup item.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let read = || -> Result<_, oxirush_ngap::Error> {
            let transfer: wire::PDUSessionResourceSetupRequestTransfer = wire::decode_open_type(octets)?;
            extract_ngap_ies!(transfer, PDUSessionResourceSetupRequestTransfer,
                lax ambr: Ambr = PDUSessionAggregateMaximumBitRate(rate) => Ambr {
                    downlink: BitRate(rate.pdu_session_aggregate_maximum_bit_rate_dl.0),
                    uplink: BitRate(rate.pdu_session_aggregate_maximum_bit_rate_ul.0),
                },
                req uplink: Option<Tunnel> = UL_NGU_UP_TNLInformation(info) => tunnel::address_and_teid(&info),
                req kind: wire::PDUSessionType = PDUSessionType(kind) => kind,
                req flows: Vec<Option<QosFlow>> = QosFlowSetupRequestList(list) => list.0.iter().map(read_flow).collect(),
            );
            Ok((ambr, uplink, kind, flows))
        };
        let (session_ambr, uplink, kind, flows) =
            read().map_err(|error| NgapError::transfer_syntax(&error))?;
        let flows: Option<Vec<_>> = flows.into_iter().collect();
        Ok(Self {
            session_ambr,
            uplink: uplink.ok_or_else(|| bad("no N3 tunnel of GTP-U"))?,
            session_type: session_type(kind),
            flows: flows.ok_or_else(|| bad("a QoS flow without 5QI"))?,
        })
    }

    /// The octets for a setup item.
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
                PDUSessionResourceSetupRequestTransfer,
                PDUSessionAggregateMaximumBitRate(ambr)
            )?);
        }
        let uplink = tunnel::write(&self.uplink);
        ies.push(build_ngap_ie!(PDUSessionResourceSetupRequestTransfer, UL_NGU_UP_TNLInformation(uplink))?);
        let kind = wire_session_type(self.session_type);
        ies.push(build_ngap_ie!(PDUSessionResourceSetupRequestTransfer, PDUSessionType(kind))?);
        let flows = wire::QosFlowSetupRequestList(self.flows.iter().map(write_flow).collect());
        ies.push(build_ngap_ie!(PDUSessionResourceSetupRequestTransfer, QosFlowSetupRequestList(flows))?);
        let transfer = wire::PDUSessionResourceSetupRequestTransfer::new(wire::ProtocolIEContainer(ies));
        encode(&transfer)
    }
}

impl SetupResponseTransfer {
    /// Decodes the octets of an item that was set up.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let transfer: wire::PDUSessionResourceSetupResponseTransfer<'_> = decode(octets)?;
        let FlowTunnel { tunnel: downlink, flows } =
            read_per_tunnel(&transfer.dl_qos_flow_per_tnl_information)?;
        let additional = read_additional(transfer.additional_dl_qos_flow_per_tnl_information)?;
        let failed = read_failed(transfer.qos_flow_failed_to_setup_list);
        Ok(Self { downlink, flows, additional, failed })
    }

    /// The octets for an item that was set up.
    pub fn encode(&self) -> Vec<u8> {
        let per_tunnel = write_per_tunnel(&self.downlink, &self.flows);
        let (additional, failed) = (write_additional(&self.additional), write_failed(&self.failed));
        let transfer =
            wire::PDUSessionResourceSetupResponseTransfer::new(per_tunnel, additional, None, failed, None);
        encode(&transfer).unwrap_or_default()
    }
}

cause_transfer! {
    /// PDU Session Resource Setup Unsuccessful Transfer (TS 38.413 9.3.4.16).
    SetupUnsuccessfulTransfer = PDUSessionResourceSetupUnsuccessfulTransfer(None, None)
}

fn read_flow(item: &wire::QosFlowSetupRequestItem) -> Option<QosFlow> {
    qos::read(item.qos_flow_identifier.0, &item.qos_flow_level_qos_parameters)
}

fn write_flow(flow: &QosFlow) -> wire::QosFlowSetupRequestItem {
    wire::QosFlowSetupRequestItem::new(wire::QosFlowIdentifier(flow.qfi.into()), qos::write(flow), None, None)
}

const fn session_type(kind: wire::PDUSessionType) -> SessionType {
    match kind {
        wire::PDUSessionType::ipv6 => SessionType::Ipv6,
        wire::PDUSessionType::ipv4v6 => SessionType::Ipv4v6,
        wire::PDUSessionType::ethernet => SessionType::Ethernet,
        wire::PDUSessionType::unstructured => SessionType::Unstructured,
        _ => SessionType::Ipv4,
    }
}

const fn wire_session_type(kind: SessionType) -> wire::PDUSessionType {
    match kind {
        SessionType::Ipv4 => wire::PDUSessionType::ipv4,
        SessionType::Ipv6 => wire::PDUSessionType::ipv6,
        SessionType::Ipv4v6 => wire::PDUSessionType::ipv4v6,
        SessionType::Ethernet => wire::PDUSessionType::ethernet,
        SessionType::Unstructured => wire::PDUSessionType::unstructured,
    }
}
