//! QoS flows (TS 38.413 9.3.1.12, 9.3.1.19, 9.3.1.10).

use oxirush_ngap::ngap as wire;
use pith_types::{Ambr, BitRate};

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
    /// May pre-empt other flows.
    pub may_preempt: bool,
    /// May be pre-empted.
    pub preemptable: bool,
}

/// A QoS flow with a standardised 5QI (TS 38.413 9.3.1.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QosFlow {
    /// QoS Flow Identifier, 0 to 63.
    pub qfi: u8,
    /// 5QI (TS 23.501 table 5.7.4-1).
    pub five_qi: u8,
    /// Allocation and retention priority.
    pub arp: Arp,
    /// Bit rates of a GBR flow.
    pub gbr: Option<GbrQos>,
    /// Reflective QoS Attribute: packets may have the RQI, which the gNB sends to the UE (TS 23.501 5.7.2.3).
    pub reflective: bool,
}

/// The flow of that identifier, if its parameters name a 5QI.
pub(super) fn read(qfi: u64, parameters: &wire::QosFlowLevelQosParameters) -> Option<QosFlow> {
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
        qfi: u8::try_from(qfi).ok()?,
        five_qi: u8::try_from(five_qi).ok()?,
        arp: Arp {
            priority_level: arp.priority_level_arp.0,
            may_preempt: arp.pre_emption_capability == wire::PreEmptionCapability::may_trigger_pre_emption,
            preemptable: arp.pre_emption_vulnerability == wire::PreEmptionVulnerability::pre_emptable,
        },
        gbr: parameters.gbr_qos_information.as_ref().map(gbr),
        reflective: parameters.reflective_qos_attribute == Some(wire::ReflectiveQosAttribute::subject_to),
    })
}

/// The parameters of the flow.
pub(super) fn write(flow: &QosFlow) -> wire::QosFlowLevelQosParameters {
    let descriptor =
        wire::NonDynamic5QIDescriptor::new(wire::FiveQI(flow.five_qi.into()), None, None, None, None);
    let arp = wire::AllocationAndRetentionPriority::new(
        wire::PriorityLevelARP(flow.arp.priority_level),
        if flow.arp.may_preempt {
            wire::PreEmptionCapability::may_trigger_pre_emption
        } else {
            wire::PreEmptionCapability::shall_not_trigger_pre_emption
        },
        if flow.arp.preemptable {
            wire::PreEmptionVulnerability::pre_emptable
        } else {
            wire::PreEmptionVulnerability::not_pre_emptable
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
    let reflective = flow.reflective.then_some(wire::ReflectiveQosAttribute::subject_to);
    wire::QosFlowLevelQosParameters::new(characteristics, arp, gbr, reflective, None, None)
}
