//! What SMF and gNB tell each other of a PDU session: the AMF passes it on unread
//! (TS 38.413 9.3.4).

use crate::convert::{Read, Write};
use crate::error::NgapError;
use crate::types::Cause;
use oxirush_ngap::ngap as wire;
use oxirush_ngap::{AsnType, BitString, Decode, Encode, build_ngap_ie, extract_ngap_ies};
use pith_types::{Ambr, BitRate, Teid};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An end of an N3 tunnel (TS 38.413 9.3.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tunnel {
    /// Where to send to.
    pub address: IpAddr,
    /// With which TEID.
    pub teid: Teid,
}

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

/// Bit rates of a GBR QoS flow (TS 38.413 9.3.1.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GbrQos {
    /// Maximum flow bit rates.
    pub maximum: Ambr,
    /// Guaranteed flow bit rates.
    pub guaranteed: Ambr,
}

/// Allocation and retention priority (TS 38.413 9.3.1.19).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arp {
    /// 1 (highest) to 15.
    pub priority_level: u8,
    /// It may take resources of others.
    pub may_preempt: bool,
    /// Others may take its resources.
    pub preemptable: bool,
}

/// A QoS flow with a standardised 5QI (TS 38.413 9.3.1.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QosFlow {
    /// QoS Flow Identifier, 0 to 63.
    pub qfi: u8,
    /// 5QI (TS 23.501 table 5.7.4-1).
    pub five_qi: u8,
    /// Who goes first.
    pub arp: Arp,
    /// Its bit rates, of a GBR flow.
    pub gbr: Option<GbrQos>,
}

/// PDU Session Resource Setup Request Transfer (TS 38.413 9.3.4.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupRequestTransfer {
    /// Session-AMBR; must be there if a flow is not GBR.
    pub session_ambr: Option<Ambr>,
    /// The UPF's end of the N3 tunnel.
    pub uplink: Tunnel,
    /// What the session carries.
    pub session_type: SessionType,
    /// Its QoS flows.
    pub flows: Vec<QosFlow>,
}

/// PDU Session Resource Setup Response Transfer (TS 38.413 9.3.4.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupResponseTransfer {
    /// The gNB's end of the N3 tunnel.
    pub downlink: Tunnel,
    /// QFIs of the flows that were set up.
    pub flows: Vec<u8>,
    /// QFIs of the flows that were not, and why.
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
                req uplink: Option<Tunnel> = UL_NGU_UP_TNLInformation(info) => tunnel(&info),
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
        let uplink = write_tunnel(&self.uplink);
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
        let per_tunnel = transfer.dl_qos_flow_per_tnl_information;
        let flows = per_tunnel.associated_qos_flow_list.0.iter().map(|flow| flow.qos_flow_identifier.0 as u8);
        let failed = transfer.qos_flow_failed_to_setup_list.map(|list| list.0).unwrap_or_default();
        Ok(Self {
            downlink: tunnel(&per_tunnel.up_transport_layer_information)
                .ok_or_else(|| bad("no N3 tunnel of GTP-U"))?,
            flows: flows.collect(),
            failed: failed.into_iter().filter_map(failed_flow).collect(),
        })
    }

    /// The octets for an item that was set up.
    pub fn encode(&self) -> Vec<u8> {
        let flow =
            |qfi: &u8| wire::AssociatedQosFlowItem::new(wire::QosFlowIdentifier((*qfi).into()), None, None);
        let flows = wire::AssociatedQosFlowList(self.flows.iter().map(flow).collect());
        let per_tunnel = wire::QosFlowPerTNLInformation::new(write_tunnel(&self.downlink), flows, None);
        let failed = |(qfi, cause): &(u8, Cause)| {
            wire::QosFlowWithCauseItem::new(wire::QosFlowIdentifier((*qfi).into()), cause.write(), None)
        };
        let failed: Vec<_> = self.failed.iter().map(failed).collect();
        let failed = (!failed.is_empty()).then_some(wire::QosFlowListWithCause(failed));
        let transfer =
            wire::PDUSessionResourceSetupResponseTransfer::new(per_tunnel, None, None, failed, None);
        encode(&transfer).unwrap_or_default()
    }
}

/// PDU Session Resource Setup Unsuccessful Transfer (TS 38.413 9.3.4.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetupUnsuccessfulTransfer {
    /// Why.
    pub cause: Cause,
}

impl SetupUnsuccessfulTransfer {
    /// Decodes the octets of an item that was not set up.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let transfer: wire::PDUSessionResourceSetupUnsuccessfulTransfer = decode(octets)?;
        Ok(Self { cause: Cause::read(transfer.cause).map_err(|bad_cause| bad(bad_cause.0))? })
    }

    /// The octets for an item that was not set up.
    pub fn encode(&self) -> Vec<u8> {
        let transfer = wire::PDUSessionResourceSetupUnsuccessfulTransfer::new(self.cause.write(), None, None);
        encode(&transfer).unwrap_or_default()
    }
}

/// PDU Session Resource Release Command Transfer (TS 38.413 9.3.4.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseCommandTransfer {
    /// Why.
    pub cause: Cause,
}

impl ReleaseCommandTransfer {
    /// Decodes the octets of an item to release.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        let transfer: wire::PDUSessionResourceReleaseCommandTransfer = decode(octets)?;
        Ok(Self { cause: Cause::read(transfer.cause).map_err(|bad_cause| bad(bad_cause.0))? })
    }

    /// The octets for an item to release.
    pub fn encode(&self) -> Vec<u8> {
        let transfer = wire::PDUSessionResourceReleaseCommandTransfer::new(self.cause.write(), None);
        encode(&transfer).unwrap_or_default()
    }
}

/// PDU Session Resource Release Response Transfer (TS 38.413 9.3.4.21): that it was released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseResponseTransfer;

impl ReleaseResponseTransfer {
    /// Decodes the octets of an item that was released.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        decode::<wire::PDUSessionResourceReleaseResponseTransfer>(octets).map(|_| Self)
    }

    /// The octets for an item that was released.
    pub fn encode(self) -> Vec<u8> {
        encode(&wire::PDUSessionResourceReleaseResponseTransfer::new(None)).unwrap_or_default()
    }
}

fn decode<'a, T: AsnType + Decode<'a>>(octets: &'a [u8]) -> Result<T, NgapError> {
    wire::decode_open_type(octets).map_err(|error| NgapError::transfer_syntax(&error))
}

fn encode<T: AsnType + Encode>(transfer: &T) -> Result<Vec<u8>, oxirush_ngap::Error> {
    wire::encode_open_type(transfer).map(|octets| octets.to_vec())
}

fn bad(text: &str) -> NgapError {
    NgapError::TransferSyntax(text.to_owned())
}

fn failed_flow(item: wire::QosFlowWithCauseItem) -> Option<(u8, Cause)> {
    Some((item.qos_flow_identifier.0 as u8, Cause::read(item.cause).ok()?))
}

/// A tunnel of GTP-U; of a node with both address families, the IPv4 one (TS 38.414 5.1).
fn tunnel(info: &wire::UPTransportLayerInformation<'_>) -> Option<Tunnel> {
    let wire::UPTransportLayerInformation::gTPTunnel(tunnel) = info else { return None };
    let octets = tunnel.transport_layer_address.0.as_octets();
    let address = match octets.len() {
        4 | 20 => IpAddr::from(*octets.first_chunk::<4>()?),
        16 => IpAddr::from(*octets.first_chunk::<16>()?),
        _ => return None,
    };
    Some(Tunnel { address, teid: Teid(u32::from_be_bytes(tunnel.gtp_teid.0)) })
}

fn write_tunnel(tunnel: &Tunnel) -> wire::UPTransportLayerInformation<'static> {
    let octets = match tunnel.address {
        IpAddr::V4(address) => Ipv4Addr::octets(&address).to_vec(),
        IpAddr::V6(address) => Ipv6Addr::octets(&address).to_vec(),
    };
    let address = wire::TransportLayerAddress(BitString::from_octets(octets));
    let teid = wire::GTPTEID(tunnel.teid.0.to_be_bytes());
    wire::UPTransportLayerInformation::gTPTunnel(wire::GTPTunnel::new(address, teid, None))
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

fn read_flow(item: &wire::QosFlowSetupRequestItem) -> Option<QosFlow> {
    let parameters = &item.qos_flow_level_qos_parameters;
    let five_qi = match &parameters.qos_characteristics {
        wire::QosCharacteristics::nonDynamic5QI(descriptor) => descriptor.five_qi.0,
        wire::QosCharacteristics::dynamic5QI(descriptor) => descriptor.five_qi.as_ref()?.0,
        _ => return None,
    };
    let arp = &parameters.allocation_and_retention_priority;
    let gbr = |gbr: &wire::GBRQosInformation| GbrQos {
        maximum: Ambr {
            downlink: BitRate(gbr.maximum_flow_bit_rate_dl.0),
            uplink: BitRate(gbr.maximum_flow_bit_rate_ul.0),
        },
        guaranteed: Ambr {
            downlink: BitRate(gbr.guaranteed_flow_bit_rate_dl.0),
            uplink: BitRate(gbr.guaranteed_flow_bit_rate_ul.0),
        },
    };
    Some(QosFlow {
        qfi: item.qos_flow_identifier.0 as u8,
        five_qi: u8::try_from(five_qi).ok()?,
        arp: Arp {
            priority_level: arp.priority_level_arp.0,
            may_preempt: arp.pre_emption_capability == wire::PreEmptionCapability::may_trigger_pre_emption,
            preemptable: arp.pre_emption_vulnerability == wire::PreEmptionVulnerability::pre_emptable,
        },
        gbr: parameters.gbr_qos_information.as_ref().map(gbr),
    })
}

fn write_flow(flow: &QosFlow) -> wire::QosFlowSetupRequestItem {
    let descriptor =
        wire::NonDynamic5QIDescriptor::new(wire::FiveQI(flow.five_qi.into()), None, None, None, None);
    let arp = wire::AllocationAndRetentionPriority::new(
        wire::PriorityLevelARP(flow.arp.priority_level),
        match flow.arp.may_preempt {
            true => wire::PreEmptionCapability::may_trigger_pre_emption,
            false => wire::PreEmptionCapability::shall_not_trigger_pre_emption,
        },
        match flow.arp.preemptable {
            true => wire::PreEmptionVulnerability::pre_emptable,
            false => wire::PreEmptionVulnerability::not_pre_emptable,
        },
        None,
    );
    let rate = |rate: BitRate| wire::BitRate(rate.bps());
    let gbr = flow.gbr.map(|gbr| {
        let (maximum, guaranteed) = (gbr.maximum, gbr.guaranteed);
        wire::GBRQosInformation::new(
            rate(maximum.downlink),
            rate(maximum.uplink),
            rate(guaranteed.downlink),
            rate(guaranteed.uplink),
            None,
            None,
            None,
            None,
        )
    });
    let characteristics = wire::QosCharacteristics::nonDynamic5QI(descriptor);
    let parameters = wire::QosFlowLevelQosParameters::new(characteristics, arp, gbr, None, None, None);
    wire::QosFlowSetupRequestItem::new(wire::QosFlowIdentifier(flow.qfi.into()), parameters, None, None)
}
