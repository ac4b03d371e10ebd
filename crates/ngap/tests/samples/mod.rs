//! Sample messages of every kind, for tests of octets. Their transfers are valid, so that other dissectors
//! accept them.

use pith_ngap::transfer::*;
use pith_ngap::*;
use pith_types::{
    Ambr, AmfUeNgapId, BitRate, FiveGSTmsi, FiveGTmsi, Guami, NrCellIdentity, Plmn, RanUeNgapId, Snssai, Tac,
    Tai, Teid,
};

const RAN: RanUeNgapId = RanUeNgapId(0xdead_beef);
const USER_INACTIVITY: Cause = Cause::RadioNetwork(CauseRadioNetwork::user_inactivity);
const CAUSE: Cause = Cause::RadioNetwork(CauseRadioNetwork::handover_desirable_for_radio_reason);

fn amf() -> AmfUeNgapId {
    AmfUeNgapId::from_wire(0x12_3456_789a).unwrap()
}

fn plmn() -> Plmn {
    "999/70".parse().unwrap()
}

fn tai() -> Tai {
    Tai { plmn_id: plmn(), tac: Tac::new(1) }
}

fn location() -> UserLocation {
    UserLocation { cell_plmn: plmn(), cell: NrCellIdentity::new(0x1_0000_0010), tai: tai() }
}

/// An end of an association.
fn end(address: &str, port: Option<u16>) -> CpTransportLayer {
    CpTransportLayer { address: address.parse().unwrap(), port }
}

fn guami() -> Guami {
    Guami { plmn_id: plmn(), amf_id: "02a07f".parse().unwrap() }
}

fn ambr() -> Ambr {
    Ambr { uplink: BitRate::mbps(100), downlink: BitRate::mbps(1000) }
}

fn slice() -> Snssai {
    "2-0a0b0c".parse().unwrap()
}

fn slices() -> Vec<Snssai> {
    vec!["1".parse().unwrap(), slice()]
}

fn s_tmsi() -> FiveGSTmsi {
    FiveGSTmsi { amf_set: 0x281, amf_pointer: 0x3f, tmsi: FiveGTmsi(0xf012_3456) }
}

/// A REGISTRATION REQUEST.
fn nas() -> Vec<u8> {
    hex::decode("7e004179000d0199f9070000000000000000102e02f0f0").unwrap()
}

fn tunnel() -> Tunnel {
    Tunnel { address: "192.0.2.1".parse().unwrap(), teid: Teid(0x0102_0304) }
}

fn flow(qfi: u8) -> QosFlow {
    let arp = Arp { priority_level: 8, may_preempt: false, preemptable: true };
    QosFlow { qfi, five_qi: 9, arp, gbr: None, reflective: false }
}

fn setup_request() -> Vec<u8> {
    SetupRequestTransfer {
        session_ambr: Some(ambr()),
        uplink: tunnel(),
        session_type: SessionType::Ipv4,
        flows: vec![flow(1)],
    }
    .encode()
}

fn setup_items() -> Vec<SetupItem> {
    let item =
        |id, nas_pdu| SetupItem { pdu_session_id: id, nas_pdu, snssai: slice(), transfer: setup_request() };
    vec![item(1, Some(nas())), item(15, None)]
}

/// One session with that transfer.
fn one(transfer: Vec<u8>) -> Vec<SessionTransfer> {
    vec![SessionTransfer { pdu_session_id: 5, transfer }]
}

fn setup_response() -> Vec<SessionTransfer> {
    one(SetupResponseTransfer { downlink: tunnel(), flows: vec![1], additional: vec![], failed: vec![] }
        .encode())
}

fn setup_failed() -> Vec<SessionTransfer> {
    one(SetupUnsuccessfulTransfer { cause: CAUSE }.encode())
}

fn security() -> SecurityCapabilities {
    SecurityCapabilities {
        nr_encryption: 0xe000,
        nr_integrity: 0xe000,
        eutra_encryption: 0,
        eutra_integrity: 0x8000,
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

fn trace_id() -> NgRanTraceId {
    NgRanTraceId([0x99, 0xf9, 0x07, 0, 0, 1, 0x12, 0x34])
}

fn trace() -> TraceActivation {
    let [ipv4, ipv6] = ["192.0.2.9", "2001:db8::9"];
    TraceActivation {
        id: trace_id(),
        interfaces: TracedInterfaces::ALL,
        depth: TraceDepth::mediumWithoutVendorSpecificExtension,
        collection_entity: CollectionEntity {
            ipv4: Some(ipv4.parse().unwrap()),
            ipv6: Some(ipv6.parse().unwrap()),
        },
    }
}

/// The PDCP counts of one radio bearer with sequence numbers of 12 bits, all of them 0.
fn status() -> RanStatus {
    RanStatus::decode(&[0; 12]).unwrap()
}

macro_rules! messages {
    ($($message:expr,)*) => { vec![$($message.into()),*] };
}

/// All samples.
pub fn all() -> Vec<Message> {
    let parts = [
        interface(),
        nas_and_context(),
        sessions(),
        handover(),
        path_switch(),
        the_rest(),
        relayed(),
        traces(),
    ];
    parts.into_iter().flatten().collect()
}

/// Interface management and paging.
pub fn interface() -> Vec<Message> {
    let plmns = vec![(plmn(), slices())];
    let gnb = GlobalRanNodeId::Gnb { plmn: plmn(), id: 0x12_3456, bits: 24 };
    let tas = vec![SupportedTa { tac: Tac::new(1), plmns: plmns.clone() }];
    let cause = Cause::Misc(CauseMisc::unknown_PLMN_or_SNPN);
    let connections = vec![
        NgConnection { amf_ue_ngap_id: Some(amf()), ran_ue_ngap_id: None },
        NgConnection { amf_ue_ngap_id: None, ran_ue_ngap_id: Some(RAN) },
    ];
    messages! {
        NgSetupRequest {
            global_ran_node_id: gnb,
            ran_node_name: Some("gnb-1".into()),
            supported_tas: tas.clone(),
            default_paging_drx: Some(PagingDrx::v128),
            ue_retention: Some(UeRetentionInformation::ues_retained),
        },
        NgSetupRequest {
            global_ran_node_id: GlobalRanNodeId::NgEnb { plmn: plmn(), id: 0x12345, bits: 20 },
            ran_node_name: None,
            supported_tas: tas.clone(),
            default_paging_drx: Some(PagingDrx::v32),
            ue_retention: None,
        },
        NgSetupRequest {
            global_ran_node_id: GlobalRanNodeId::N3iwf { plmn: plmn(), id: 0x1234 },
            ran_node_name: None,
            supported_tas: tas.clone(),
            default_paging_drx: Some(PagingDrx::v256),
            ue_retention: None,
        },
        NgSetupResponse {
            amf_name: "pith".into(),
            served_guamis: vec![guami()],
            relative_amf_capacity: 255,
            plmn_support: plmns.clone(),
            diagnostics: None,
            ue_retention: None,
        },
        NgSetupResponse {
            amf_name: "pith".into(),
            served_guamis: vec![guami()],
            relative_amf_capacity: 255,
            plmn_support: plmns.clone(),
            diagnostics: None,
            ue_retention: Some(UeRetentionInformation::ues_retained),
        },
        NgSetupFailure { cause, time_to_wait: Some(TimeToWait::v10s), diagnostics: None },
        RanConfigurationUpdate {
            ran_node_name: None,
            supported_tas: Some(tas),
            default_paging_drx: None,
            global_ran_node_id: None,
            tnla_to_remove: None,
        },
        RanConfigurationUpdate {
            ran_node_name: None,
            supported_tas: None,
            default_paging_drx: None,
            global_ran_node_id: Some(GlobalRanNodeId::Gnb { plmn: plmn(), id: 1, bits: 24 }),
            tnla_to_remove: Some(vec![
                RanTnlAssociation { ran: end("10.0.0.2", None), amf: None },
                RanTnlAssociation { ran: end("2001:db8::2", Some(7)), amf: Some(end("10.0.0.6", None)) },
            ]),
        },
        RanConfigurationUpdateAcknowledge { diagnostics: None },
        RanConfigurationUpdateFailure { cause, time_to_wait: None, diagnostics: None },
        AmfConfigurationUpdate {
            amf_name: None,
            served_guamis: Some(vec![guami()]),
            relative_amf_capacity: Some(7),
            plmn_support: Some(plmns),
            tnla_to_add: None,
            tnla_to_remove: None,
            tnla_to_update: None,
        },
        AmfConfigurationUpdate {
            amf_name: None,
            served_guamis: None,
            relative_amf_capacity: None,
            plmn_support: None,
            tnla_to_add: Some(vec![AmfTnlaToAdd {
                endpoint: end("10.0.0.6", Some(38413)),
                usage: Some(TnlAssociationUsage::both),
                weight: 255,
            }]),
            tnla_to_remove: Some(vec![
                AmfTnlaToRemove { endpoint: end("2001:db8::7", None), ran: None },
                AmfTnlaToRemove { endpoint: end("10.0.0.8", None), ran: Some(end("10.0.0.2", Some(9))) },
            ]),
            tnla_to_update: Some(vec![AmfTnlaToUpdate {
                endpoint: end("10.0.0.5", None),
                usage: Some(TnlAssociationUsage::non_ue),
                weight: Some(0),
            }]),
        },
        AmfConfigurationUpdateAcknowledge { tnla_set_up: None, tnla_failed: None, diagnostics: None },
        AmfConfigurationUpdateAcknowledge {
            tnla_set_up: Some(vec![end("10.0.0.6", Some(38413))]),
            tnla_failed: Some(vec![FailedTnla { endpoint: end("10.0.0.9", None), cause }]),
            diagnostics: None,
        },
        AmfConfigurationUpdateFailure { cause, time_to_wait: None, diagnostics: None },
        NgReset { cause, scope: ResetScope::NgInterface },
        NgReset { cause, scope: ResetScope::Part(connections.clone()) },
        NgResetAcknowledge { connections: Some(connections), diagnostics: None },
        ErrorIndication { amf_ue_ngap_id: Some(amf()), ran_ue_ngap_id: None, cause: Some(cause), diagnostics: None, s_tmsi: None },
        OverloadStart { traffic_load_reduction: Some(50) },
        OverloadStop,
        Paging { s_tmsi: s_tmsi(), tais: vec![tai()] },
    }
}

/// NAS transport and UE contexts.
pub fn nas_and_context() -> Vec<Message> {
    let cause = Some(USER_INACTIVITY);
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (amf(), RAN);
    messages! {
        InitialUeMessage {
            ran_ue_ngap_id,
            nas_pdu: nas(),
            location: location(),
            establishment_cause: Some(RrcEstablishmentCause::mo_Signalling),
            s_tmsi: Some(s_tmsi()),
            amf_set_id: None,
            ue_context_request: Some(()),
            allowed_nssai: None,
            reroute: None,
        },
        DownlinkNasTransport { amf_ue_ngap_id, ran_ue_ngap_id, old_amf: None, nas_pdu: nas(), mobility_restrictions: Some(restrictions()), ue_ambr: None, allowed_nssai: Some(slices()) },
        UplinkNasTransport { amf_ue_ngap_id, ran_ue_ngap_id, nas_pdu: nas(), location: Some(location()) },
        NasNonDeliveryIndication { amf_ue_ngap_id, ran_ue_ngap_id, nas_pdu: Some(nas()), cause },
        InitialContextSetupRequest {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            old_amf: Some("amf1.example.org".into()),
            ue_ambr: Some(ambr()),
            guami: guami(),
            sessions: Some(setup_items()),
            allowed_nssai: slices(),
            security_capabilities: security(),
            security_key: [0xa5; 32],
            trace: Some(trace()),
            mobility_restrictions: Some(restrictions()),
            ue_radio_capability: Some(vec![1; 20]),
            rfsp_index: Some(256),
            masked_imeisv: Some([1, 2, 3, 4, 5, 0xff, 0xff, 8]),
            nas_pdu: Some(nas()),
        },
        InitialContextSetupResponse { amf_ue_ngap_id, ran_ue_ngap_id, setup: Some(setup_response()), failed: Some(setup_failed()), diagnostics: None },
        InitialContextSetupFailure { amf_ue_ngap_id, ran_ue_ngap_id, failed: None, cause, diagnostics: None },
        UeContextReleaseRequest { amf_ue_ngap_id, ran_ue_ngap_id, sessions: Some(vec![1, 5]), cause },
        UeContextReleaseCommand { ids: UeNgapIds::Pair(amf(), RAN), cause: USER_INACTIVITY },
        UeContextReleaseCommand { ids: UeNgapIds::Amf(amf()), cause: USER_INACTIVITY },
        UeContextReleaseComplete { amf_ue_ngap_id, ran_ue_ngap_id, location: Some(location()), sessions: Some(vec![1]), diagnostics: None },
        UeContextModificationRequest {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            security_key: Some([7; 32]),
            rfsp_index: None,
            ue_ambr: Some(ambr()),
            security_capabilities: Some(security()),
        },
        UeContextModificationResponse { amf_ue_ngap_id, ran_ue_ngap_id, diagnostics: None },
        UeContextModificationFailure { amf_ue_ngap_id, ran_ue_ngap_id, cause, diagnostics: None },
        UeRadioCapabilityInfoIndication { amf_ue_ngap_id, ran_ue_ngap_id, ue_radio_capability: Some(vec![4, 5]) },
        UeRadioCapabilityCheckRequest { amf_ue_ngap_id, ran_ue_ngap_id, ue_radio_capability: Some(vec![4, 5]) },
        UeRadioCapabilityCheckResponse { amf_ue_ngap_id, ran_ue_ngap_id, ims_voice_support: ImsVoiceSupport::not_supported, diagnostics: None },
        UeTnlaBindingReleaseRequest { amf_ue_ngap_id, ran_ue_ngap_id },
    }
}

/// PDU session resources.
pub fn sessions() -> Vec<Message> {
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (amf(), RAN);
    let modify = vec![ModifyItem { pdu_session_id: 1, nas_pdu: Some(nas()), transfer: modify_request() }];
    messages! {
        PduSessionResourceSetupRequest { amf_ue_ngap_id, ran_ue_ngap_id, nas_pdu: None, sessions: setup_items(), ue_ambr: Some(ambr()) },
        PduSessionResourceSetupResponse { amf_ue_ngap_id, ran_ue_ngap_id, setup: Some(setup_response()), failed: None, diagnostics: None },
        PduSessionResourceReleaseCommand { amf_ue_ngap_id, ran_ue_ngap_id, nas_pdu: Some(nas()), sessions: one(ReleaseCommandTransfer { cause: CAUSE }.encode()) },
        PduSessionResourceReleaseResponse { amf_ue_ngap_id, ran_ue_ngap_id, released: Some(one(ReleaseResponseTransfer.encode())), location: None, diagnostics: None },
        PduSessionResourceModifyRequest { amf_ue_ngap_id, ran_ue_ngap_id, sessions: modify },
        PduSessionResourceModifyResponse { amf_ue_ngap_id, ran_ue_ngap_id, modified: Some(one(modify_response())), failed: Some(one(ModifyUnsuccessfulTransfer { cause: CAUSE }.encode())), diagnostics: None },
        PduSessionResourceNotify { amf_ue_ngap_id, ran_ue_ngap_id, notified: Some(one(notified())), released: Some(one(NotifyReleasedTransfer { cause: CAUSE }.encode())) },
    }
}

fn modify_request() -> Vec<u8> {
    let to_release = vec![(9, CAUSE)];
    ModifyRequestTransfer { session_ambr: Some(ambr()), flows: vec![flow(2)], to_release, tunnels: vec![] }
        .encode()
}

fn modify_response() -> Vec<u8> {
    ModifyResponseTransfer { flows: vec![2], ..ModifyResponseTransfer::default() }.encode()
}

fn notified() -> Vec<u8> {
    NotifyTransfer { flows: vec![(3, NotificationCause::not_fulfilled)], released: vec![] }.encode()
}

/// Handover.
pub fn handover() -> Vec<Message> {
    let ids = (amf(), RAN);
    let target = TargetId::RanNode {
        node: GlobalRanNodeId::Gnb { plmn: plmn(), id: 0x12_3456, bits: 24 },
        tai: tai(),
    };
    let enb = TargetId::Enb { plmn: plmn(), id: 0x1234, bits: 20, tai_plmn: plmn(), tac: 7 };
    messages! {
        HandoverRequired {
            amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, handover_type: HandoverType::intra5gs, cause: Some(CAUSE),
            target, direct_forwarding_path: Some(()), sessions: one(HandoverRequiredTransfer { direct_forwarding_path: true }.encode()), source_to_target: vec![1, 2, 3],
        },
        HandoverRequired {
            amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, handover_type: HandoverType::fivegs_to_eps, cause: Some(CAUSE),
            target: enb, direct_forwarding_path: None, sessions: one(HandoverRequiredTransfer { direct_forwarding_path: true }.encode()), source_to_target: vec![1],
        },
        HandoverCommand {
            amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, handover_type: HandoverType::intra5gs,
            nas_security_parameters: None, sessions: Some(one(HandoverCommandTransfer::default().encode())),
            to_release: Some(one(HandoverPreparationUnsuccessfulTransfer { cause: CAUSE }.encode())),
            target_to_source: vec![4, 5], diagnostics: None,
        },
        HandoverPreparationFailure { amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, cause: Some(CAUSE), diagnostics: None },
        HandoverRequest {
            amf_ue_ngap_id: ids.0, handover_type: HandoverType::intra5gs, cause: Some(CAUSE), ue_ambr: ambr(),
            security_capabilities: security(), security_context: next_hop(), new_security_context: Some(()),
            nas_container: Some(vec![6, 7]),
            sessions: vec![HandoverItem { pdu_session_id: 5, snssai: slice(), transfer: setup_request() }],
            allowed_nssai: vec![slice()], trace: Some(trace()), masked_imeisv: Some([1; 8]), source_to_target: vec![1, 2, 3],
            mobility_restrictions: Some(restrictions()),
            guami: Guami { plmn_id: plmn(), amf_id: "02a07f".parse().unwrap() },
        },
        HandoverRequestAcknowledge {
            amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, admitted: Some(one(admitted())), failed: Some(one(HandoverResourceAllocationUnsuccessfulTransfer { cause: CAUSE }.encode())),
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

fn admitted() -> Vec<u8> {
    HandoverRequestAcknowledgeTransfer {
        downlink: tunnel(),
        forwarding: None,
        flows: vec![(1, true)],
        additional: vec![],
        failed: vec![],
    }
    .encode()
}

/// Path switch.
pub fn path_switch() -> Vec<Message> {
    let request = PathSwitchRequest {
        ran_ue_ngap_id: RAN,
        source_amf_ue_ngap_id: amf(),
        location: Some(location()),
        security_capabilities: Some(security()),
        sessions: one(
            PathSwitchRequestTransfer { downlink: tunnel(), flows: vec![1], additional: vec![] }.encode()
        ),
        failed: Some(one(PathSwitchRequestSetupFailedTransfer { cause: CAUSE }.encode())),
    };
    messages! {
        request,
        PathSwitchRequestAcknowledge {
            amf_ue_ngap_id: amf(), ran_ue_ngap_id: RAN, security_capabilities: Some(security()),
            security_context: next_hop(), new_security_context: None, switched: Some(one(PathSwitchRequestAcknowledgeTransfer { uplink: Some(tunnel()), additional: vec![] }.encode())),
            released: Some(one(PathSwitchRequestUnsuccessfulTransfer { cause: CAUSE }.encode())), allowed_nssai: vec![slice()], diagnostics: None,
        },
        PathSwitchRequestFailure {
            amf_ue_ngap_id: amf(), ran_ue_ngap_id: RAN, released: Some(one(PathSwitchRequestUnsuccessfulTransfer { cause: CAUSE }.encode())), diagnostics: None,
        },
    }
}

/// Location, modification by the gNB, reroute, AMF status.
pub fn the_rest() -> Vec<Message> {
    let request = Some(LocationRequest { event: LocationEvent::change_of_serve_cell });
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (amf(), RAN);
    messages! {
        LocationReportingControl { amf_ue_ngap_id, ran_ue_ngap_id, request },
        LocationReportingFailureIndication { amf_ue_ngap_id, ran_ue_ngap_id, cause: Some(CAUSE) },
        LocationReport { amf_ue_ngap_id, ran_ue_ngap_id, location: Some(location()), request },
        PduSessionResourceModifyIndication { amf_ue_ngap_id, ran_ue_ngap_id, sessions: one(ModifyIndicationTransfer { downlink: FlowTunnel { tunnel: tunnel(), flows: vec![1] }, additional: vec![], usage: None }.encode()), location: None },
        PduSessionResourceModifyConfirm {
            amf_ue_ngap_id, ran_ue_ngap_id, confirmed: Some(one(ModifyConfirmTransfer { flows: vec![1], uplink: tunnel(), additional: vec![], failed: vec![] }.encode())), failed: Some(one(ModifyIndicationUnsuccessfulTransfer { cause: CAUSE }.encode())), diagnostics: None,
        },
        RerouteNasRequest {
            ran_ue_ngap_id, amf_ue_ngap_id: Some(amf_ue_ngap_id), ngap_message: vec![0, 15, 0x40, 0],
            amf_set_id: 0x3ff, allowed_nssai: Some(vec![slice()]), reroute: Some(reroute()),
        },
        InitialUeMessage {
            ran_ue_ngap_id, nas_pdu: nas(), location: location(),
            establishment_cause: Some(RrcEstablishmentCause::mo_Signalling), s_tmsi: None,
            amf_set_id: Some(0x3ff), ue_context_request: None, allowed_nssai: Some(vec![slice()]),
            reroute: Some(reroute()),
        },
        DownlinkNasTransport {
            amf_ue_ngap_id, ran_ue_ngap_id, old_amf: Some("amf1.example.org".into()), nas_pdu: nas(),
            mobility_restrictions: None, ue_ambr: None, allowed_nssai: None,
        },
        AmfStatusIndication {
            unavailable_guamis: vec![Guami { plmn_id: plmn(), amf_id: "02a07f".parse().unwrap() }],
        },
    }
}

fn reroute() -> AmfInformationReroute {
    AmfInformationReroute {
        configured: vec![slice(), Snssai::of_sst(1)],
        rejected_in_plmn: vec![Snssai::of_sst(7)],
        rejected_in_ta: vec![],
    }
}

/// What the AMF relays between gNBs, and reports of a gNB.
pub fn relayed() -> Vec<Message> {
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (amf(), RAN);
    let node = |id| (GlobalRanNodeId::Gnb { plmn: plmn(), id, bits: 24 }, tai());
    let son = Some(SonTransfer::request_of_xn_addresses(node(2), node(1)));
    let status = EarlyRanStatus::decode(&[0; 7]).unwrap();
    messages! {
        RrcInactiveTransitionReport {
            amf_ue_ngap_id, ran_ue_ngap_id, state: Some(RrcState::inactive), location: Some(location()),
        },
        SecondaryRatDataUsageReport {
            amf_ue_ngap_id, ran_ue_ngap_id, sessions: Some(one(vec![0])), handover: Some(HandoverFlag::handover_preparation), location: Some(location()),
        },
        UplinkRanEarlyStatusTransfer { amf_ue_ngap_id, ran_ue_ngap_id, status: status.clone() },
        DownlinkRanEarlyStatusTransfer { amf_ue_ngap_id, ran_ue_ngap_id, status },
        UplinkRanConfigurationTransfer { son: son.clone() },
        DownlinkRanConfigurationTransfer { son },
    }
}

/// Traces of UEs.
pub fn traces() -> Vec<Message> {
    let (amf_ue_ngap_id, ran_ue_ngap_id, trace_id) = (amf(), RAN, Some(trace_id()));
    let ipv6_only = CollectionEntity { ipv4: None, ..trace().collection_entity };
    messages![
        TraceStart { amf_ue_ngap_id, ran_ue_ngap_id, activation: Some(trace()) },
        TraceFailureIndication { amf_ue_ngap_id, ran_ue_ngap_id, trace: trace_id, cause: Some(CAUSE) },
        DeactivateTrace { amf_ue_ngap_id, ran_ue_ngap_id, trace: trace_id },
        CellTrafficTrace {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            trace: trace_id,
            cell: Some(NrCgi { plmn: plmn(), cell: NrCellIdentity::new(0x1_0000_0010) }),
            collection_entity: Some(ipv6_only),
            privacy: Some(PrivacyIndicator::logged_MDT),
            collection_entity_uri: Some("https://tce.example/traces".into()),
        },
    ]
}
