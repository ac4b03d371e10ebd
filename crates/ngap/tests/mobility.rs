//! Messages and transfers of handover, path switch, location and modification read back as they were
//! written, and follow the tables of TS 38.413.

use oxirush_ngap::ngap::NGAP_PDU;
use pith_ngap::transfer::*;
use pith_ngap::*;
use pith_types::{
    Ambr, AmfUeNgapId, BitRate, Guami, NrCellIdentity, Plmn, RanUeNgapId, Snssai, Tac, Tai, Teid,
};

const CAUSE: Cause = Cause::RadioNetwork(CauseRadioNetwork::handover_desirable_for_radio_reason);
const RAN: RanUeNgapId = RanUeNgapId(7);

fn amf() -> AmfUeNgapId {
    AmfUeNgapId::from_wire(42).unwrap()
}

fn plmn() -> Plmn {
    "999/70".parse().unwrap()
}

fn tai() -> Tai {
    Tai { plmn_id: plmn(), tac: Tac::new(1) }
}

fn location() -> UserLocation {
    UserLocation { cell_plmn: plmn(), cell: NrCellIdentity::new(0x10), tai: tai() }
}

fn ambr() -> Ambr {
    Ambr { uplink: BitRate::mbps(100), downlink: BitRate::mbps(200) }
}

fn slice() -> Snssai {
    "1-0a0b0c".parse().unwrap()
}

fn sessions() -> Vec<SessionTransfer> {
    vec![SessionTransfer { pdu_session_id: 5, transfer: vec![0, 1] }]
}

fn security() -> SecurityCapabilities {
    SecurityCapabilities {
        nr_encryption: 0xc000,
        nr_integrity: 0xc000,
        eutra_encryption: 0,
        eutra_integrity: 0,
    }
}

fn next_hop() -> NextHop {
    NextHop { chaining_count: 3, nh: [0xab; 32] }
}

fn restrictions() -> MobilityRestrictions {
    MobilityRestrictions {
        serving_plmn: plmn(),
        equivalent_plmns: vec!["208/93".parse().unwrap()],
        rat_restrictions: vec![(plmn(), 0x80)],
        forbidden_areas: vec![(plmn(), vec![Tac::new(9)])],
        service_areas: vec![ServiceArea {
            plmn: plmn(),
            allowed: vec![Tac::new(1), Tac::new(2)],
            not_allowed: vec![],
        }],
    }
}

/// The PDCP counts of one radio bearer with sequence numbers of 12 bits, all of them 0.
fn status() -> RanStatus {
    let octets = [0; 12];
    let status = RanStatus::decode(&octets).unwrap();
    assert_eq!(status.encode(), octets);
    status
}

/// Encodes, compares with the tables of the ASN.1, decodes and compares.
fn check(message: impl Into<Message>, encoded: Vec<u8>) {
    let message = message.into();
    let pdu = NGAP_PDU::decode(&encoded).unwrap();
    assert_eq!(pdu.check().unwrap(), [], "{}", message.name());
    assert_eq!(Message::decode(&encoded).as_ref(), Ok(&message));
    assert!(peek(&encoded).is_some());
}

macro_rules! check_all {
    ($($message:expr,)*) => { $({ let message = $message; let encoded = message.encode(); check(message, encoded); })* };
}

#[test]
fn handover() {
    let ids = (amf(), RAN);
    let target = TargetId::RanNode {
        node: GlobalRanNodeId::Gnb { plmn: plmn(), id: 0x12_3456, bits: 24 },
        tai: tai(),
    };
    let enb = TargetId::Enb { plmn: plmn(), id: 0x1234, bits: 20, tai_plmn: plmn(), tac: 7 };
    check_all! {
        HandoverRequired {
            amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, handover_type: HandoverType::intra5gs, cause: Some(CAUSE),
            target, direct_forwarding_path: Some(()), sessions: sessions(), source_to_target: vec![1, 2, 3],
        },
        HandoverRequired {
            amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, handover_type: HandoverType::fivegs_to_eps, cause: Some(CAUSE),
            target: enb, direct_forwarding_path: None, sessions: sessions(), source_to_target: vec![1],
        },
        HandoverCommand {
            amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, handover_type: HandoverType::intra5gs,
            nas_security_parameters: None, sessions: Some(sessions()), to_release: Some(sessions()),
            target_to_source: vec![4, 5], diagnostics: None,
        },
        HandoverPreparationFailure { amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, cause: Some(CAUSE), diagnostics: None },
        HandoverRequest {
            amf_ue_ngap_id: ids.0, handover_type: HandoverType::intra5gs, cause: Some(CAUSE), ue_ambr: ambr(),
            security_capabilities: security(), security_context: next_hop(), new_security_context: Some(()),
            nas_container: Some(vec![6, 7]),
            sessions: vec![HandoverItem { pdu_session_id: 5, snssai: slice(), transfer: vec![9] }],
            allowed_nssai: vec![slice()], masked_imeisv: Some([1; 8]), source_to_target: vec![1, 2, 3],
            mobility_restrictions: Some(restrictions()),
            guami: Guami { plmn_id: plmn(), amf_id: "02a07f".parse().unwrap() },
        },
        HandoverRequestAcknowledge {
            amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, admitted: Some(sessions()), failed: Some(sessions()),
            target_to_source: vec![8], diagnostics: None,
        },
        HandoverFailure { amf_ue_ngap_id: ids.0, cause: Some(CAUSE), diagnostics: None },
        HandoverNotify { amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, location: Some(location()) },
        HandoverCancel { amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, cause: Some(CAUSE) },
        HandoverCancelAcknowledge { amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, diagnostics: None },
        UplinkRanStatusTransfer { amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, status: status() },
        DownlinkRanStatusTransfer { amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, status: status() },
    }
}

#[test]
fn path_switch() {
    let request = PathSwitchRequest {
        ran_ue_ngap_id: RAN,
        source_amf_ue_ngap_id: amf(),
        location: Some(location()),
        security_capabilities: Some(security()),
        sessions: sessions(),
        failed: Some(sessions()),
    };
    let seen = peek(&request.encode()).unwrap();
    assert_eq!((seen.amf_ue_ngap_id, seen.ran_ue_ngap_id), (Some(amf()), Some(RAN)));
    check_all! {
        request,
        PathSwitchRequestAcknowledge {
            amf_ue_ngap_id: amf(), ran_ue_ngap_id: RAN, security_capabilities: Some(security()),
            security_context: next_hop(), new_security_context: None, switched: Some(sessions()),
            released: Some(sessions()), allowed_nssai: vec![slice()], diagnostics: None,
        },
        PathSwitchRequestFailure {
            amf_ue_ngap_id: amf(), ran_ue_ngap_id: RAN, released: Some(sessions()), diagnostics: None,
        },
    }
}

#[test]
fn location_modification_and_the_rest() {
    let request = Some(LocationRequest { event: LocationEvent::change_of_serve_cell });
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (amf(), RAN);
    check_all! {
        LocationReportingControl { amf_ue_ngap_id, ran_ue_ngap_id, request },
        LocationReportingFailureIndication { amf_ue_ngap_id, ran_ue_ngap_id, cause: Some(CAUSE) },
        LocationReport { amf_ue_ngap_id, ran_ue_ngap_id, location: Some(location()), request },
        PduSessionResourceModifyIndication { amf_ue_ngap_id, ran_ue_ngap_id, sessions: sessions(), location: None },
        PduSessionResourceModifyConfirm {
            amf_ue_ngap_id, ran_ue_ngap_id, confirmed: Some(sessions()), failed: Some(sessions()), diagnostics: None,
        },
        RerouteNasRequest {
            ran_ue_ngap_id, amf_ue_ngap_id: Some(amf_ue_ngap_id), ngap_message: vec![0, 15, 0x40, 0],
            amf_set_id: 0x3ff, allowed_nssai: Some(vec![slice()]),
        },
        AmfStatusIndication {
            unavailable_guamis: vec![Guami { plmn_id: plmn(), amf_id: "02a07f".parse().unwrap() }],
        },
    }
}

#[test]
fn transfers() {
    let tunnel = Tunnel { address: "192.0.2.1".parse().unwrap(), teid: Teid(0x1234_5678) };
    let other = Tunnel { address: "2001:db8::1".parse().unwrap(), teid: Teid(1) };
    let failed = vec![(9, CAUSE)];
    let arp = Arp { priority_level: 8, may_preempt: false, preemptable: true };
    let gbr = GbrQos { maximum: ambr(), guaranteed: ambr() };
    let flow = QosFlow { qfi: 3, five_qi: 1, arp, gbr: Some(gbr) };
    macro_rules! back {
        ($($name:ident $value:expr;)*) => { $({
            let (value, octets): ($name, _) = { let value = $value; let octets = value.encode(); (value, octets) };
            assert!(!octets.is_empty(), stringify!($name));
            assert_eq!($name::decode(&octets), Ok(value), stringify!($name));
        })* };
    }
    back! {
        ModifyRequestTransfer ModifyRequestTransfer {
            session_ambr: Some(ambr()), flows: vec![flow], to_release: failed.clone(),
        };
        ModifyResponseTransfer ModifyResponseTransfer {
            downlink: Some(tunnel), uplink: Some(other), flows: vec![3, 4], failed: failed.clone(),
        };
        ModifyUnsuccessfulTransfer ModifyUnsuccessfulTransfer { cause: CAUSE };
        NotifyTransfer NotifyTransfer {
            flows: vec![(3, NotificationCause::not_fulfilled)], released: failed.clone(),
        };
        NotifyReleasedTransfer NotifyReleasedTransfer { cause: CAUSE };
        ModifyIndicationTransfer ModifyIndicationTransfer { downlink: tunnel, flows: vec![1] };
        ModifyConfirmTransfer ModifyConfirmTransfer { flows: vec![1], uplink: other, failed: failed.clone() };
        ModifyIndicationUnsuccessfulTransfer ModifyIndicationUnsuccessfulTransfer { cause: CAUSE };
        PathSwitchRequestTransfer PathSwitchRequestTransfer { downlink: other, flows: vec![1, 2] };
        PathSwitchRequestAcknowledgeTransfer PathSwitchRequestAcknowledgeTransfer { uplink: Some(tunnel) };
        PathSwitchRequestAcknowledgeTransfer PathSwitchRequestAcknowledgeTransfer { uplink: None };
        PathSwitchRequestSetupFailedTransfer PathSwitchRequestSetupFailedTransfer { cause: CAUSE };
        PathSwitchRequestUnsuccessfulTransfer PathSwitchRequestUnsuccessfulTransfer { cause: CAUSE };
        HandoverRequiredTransfer HandoverRequiredTransfer { direct_forwarding_path: true };
        HandoverRequiredTransfer HandoverRequiredTransfer { direct_forwarding_path: false };
        HandoverRequestAcknowledgeTransfer HandoverRequestAcknowledgeTransfer {
            downlink: tunnel, forwarding: Some(other), flows: vec![(1, true), (2, false)], failed,
        };
        HandoverCommandTransfer HandoverCommandTransfer { forwarding: Some(tunnel), flows: vec![1] };
        HandoverPreparationUnsuccessfulTransfer HandoverPreparationUnsuccessfulTransfer { cause: CAUSE };
        HandoverResourceAllocationUnsuccessfulTransfer HandoverResourceAllocationUnsuccessfulTransfer { cause: CAUSE };
    }
}

#[test]
fn the_next_hop_is_not_shown() {
    assert!(!format!("{:?}", next_hop()).contains("171"));
}
