//! Every message reads back as it was written, and a peek sees the ids that decoding sees.

use pith_ngap::transfer::{
    Arp, GbrQos, QosFlow, ReleaseCommandTransfer, ReleaseResponseTransfer, SessionType, SetupRequestTransfer,
    SetupResponseTransfer, SetupUnsuccessfulTransfer, Tunnel,
};
use pith_ngap::*;
use pith_types::{
    Ambr, AmfUeNgapId, BitRate, FiveGSTmsi, FiveGTmsi, Guami, NrCellIdentity, Plmn, RanUeNgapId, Snssai, Tac,
    Tai, Teid,
};

fn plmn() -> Plmn {
    "999/70".parse().unwrap()
}

fn amf() -> AmfUeNgapId {
    AmfUeNgapId::from_wire(0x12_3456_789a).unwrap()
}

const USER_INACTIVITY: Cause = Cause::RadioNetwork(CauseRadioNetwork::user_inactivity);

const RAN: RanUeNgapId = RanUeNgapId(0xdead_beef);

fn tai() -> Tai {
    Tai { plmn_id: plmn(), tac: Tac::new(1) }
}

fn location() -> UserLocation {
    UserLocation { cell_plmn: plmn(), cell: NrCellIdentity::new(0x1_0000_0010), tai: tai() }
}

fn guami() -> Guami {
    Guami { plmn_id: plmn(), amf_id: "02a07f".parse().unwrap() }
}

fn ambr() -> Ambr {
    Ambr { uplink: BitRate::mbps(100), downlink: BitRate::mbps(1000) }
}

fn slices() -> Vec<Snssai> {
    vec!["1".parse().unwrap(), "2-0a0b0c".parse().unwrap()]
}

fn s_tmsi() -> FiveGSTmsi {
    FiveGSTmsi { amf_set: 0x281, amf_pointer: 0x3f, tmsi: FiveGTmsi(0xf012_3456) }
}

fn transfer() -> Vec<SessionTransfer> {
    vec![SessionTransfer { pdu_session_id: 5, transfer: vec![1, 2, 3] }]
}

fn setup_items() -> Vec<SetupItem> {
    let item =
        |id, nas_pdu| SetupItem { pdu_session_id: id, nas_pdu, snssai: slices()[1], transfer: vec![0, 9] };
    vec![item(1, Some(vec![0x7e, 2])), item(255, None)]
}

/// Encodes, decodes, and compares; and compares the ids with those of a peek.
fn check(message: impl Into<Message>, encoded: Vec<u8>) {
    let message = message.into();
    assert!(!encoded.is_empty(), "{} does not encode", message.name());
    assert_eq!(Message::decode(&encoded).as_ref(), Ok(&message));
    assert!(peek(&encoded).is_some());
}

macro_rules! check_all {
    ($($message:expr,)*) => { $({ let message = $message; let encoded = message.encode(); check(message, encoded); })* };
}

#[test]
fn interface_management() {
    let plmns = vec![(plmn(), slices())];
    let gnb = GlobalRanNodeId::Gnb { plmn: plmn(), id: 0x12_3456, bits: 24 };
    let tas = vec![SupportedTa { tac: Tac::new(1), plmns: plmns.clone() }];
    let cause = Cause::Misc(CauseMisc::unknown_PLMN_or_SNPN);
    let connections = vec![
        NgConnection { amf_ue_ngap_id: Some(amf()), ran_ue_ngap_id: None },
        NgConnection { amf_ue_ngap_id: None, ran_ue_ngap_id: Some(RAN) },
    ];
    check_all! {
        NgSetupRequest {
            global_ran_node_id: gnb,
            ran_node_name: Some("gnb-1".into()),
            supported_tas: tas.clone(),
            default_paging_drx: Some(PagingDrx::v128),
        },
        NgSetupResponse {
            amf_name: "pith".into(),
            served_guamis: vec![guami()],
            relative_amf_capacity: 255,
            plmn_support: plmns.clone(),
            diagnostics: None,
        },
        NgSetupFailure { cause, time_to_wait: Some(TimeToWait::v10s), diagnostics: None },
        RanConfigurationUpdate { ran_node_name: None, supported_tas: Some(tas), default_paging_drx: None },
        RanConfigurationUpdateAcknowledge { diagnostics: None },
        RanConfigurationUpdateFailure { cause, time_to_wait: None, diagnostics: None },
        AmfConfigurationUpdate {
            amf_name: None,
            served_guamis: Some(vec![guami()]),
            relative_amf_capacity: Some(7),
            plmn_support: Some(plmns),
        },
        AmfConfigurationUpdateAcknowledge { diagnostics: None },
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

#[test]
fn nas_transport_and_ue_context() {
    let cause = Some(USER_INACTIVITY);
    let capabilities = SecurityCapabilities {
        nr_encryption: 0xe000,
        nr_integrity: 0xe000,
        eutra_encryption: 0,
        eutra_integrity: 0x8000,
    };
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (amf(), RAN);
    check_all! {
        InitialUeMessage {
            ran_ue_ngap_id,
            nas_pdu: vec![0x7e, 0, 0x41],
            location: location(),
            establishment_cause: Some(RrcEstablishmentCause::mo_Signalling),
            s_tmsi: Some(s_tmsi()),
            ue_context_request: Some(()),
            allowed_nssai: None,
        },
        DownlinkNasTransport { amf_ue_ngap_id, ran_ue_ngap_id, nas_pdu: vec![0x7e; 300], ue_ambr: None, allowed_nssai: Some(slices()) },
        UplinkNasTransport { amf_ue_ngap_id, ran_ue_ngap_id, nas_pdu: vec![0x7e], location: Some(location()) },
        NasNonDeliveryIndication { amf_ue_ngap_id, ran_ue_ngap_id, nas_pdu: Some(vec![0x7e]), cause },
        InitialContextSetupRequest {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            ue_ambr: Some(ambr()),
            guami: guami(),
            sessions: Some(setup_items()),
            allowed_nssai: slices(),
            security_capabilities: capabilities,
            security_key: [0xa5; 32],
            ue_radio_capability: Some(vec![1; 20]),
            rfsp_index: Some(256),
            masked_imeisv: Some([1, 2, 3, 4, 5, 0xff, 0xff, 8]),
            nas_pdu: Some(vec![0x7e, 2]),
        },
        InitialContextSetupResponse { amf_ue_ngap_id, ran_ue_ngap_id, setup: Some(transfer()), failed: Some(transfer()), diagnostics: None },
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
            security_capabilities: Some(capabilities),
        },
        UeContextModificationResponse { amf_ue_ngap_id, ran_ue_ngap_id, diagnostics: None },
        UeContextModificationFailure { amf_ue_ngap_id, ran_ue_ngap_id, cause, diagnostics: None },
        UeRadioCapabilityInfoIndication { amf_ue_ngap_id, ran_ue_ngap_id, ue_radio_capability: Some(vec![4, 5]) },
    }
}

#[test]
fn pdu_session_resources() {
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (amf(), RAN);
    let modify = vec![ModifyItem { pdu_session_id: 1, nas_pdu: Some(vec![0x7e]), transfer: vec![1] }];
    check_all! {
        PduSessionResourceSetupRequest { amf_ue_ngap_id, ran_ue_ngap_id, nas_pdu: None, sessions: setup_items(), ue_ambr: Some(ambr()) },
        PduSessionResourceSetupResponse { amf_ue_ngap_id, ran_ue_ngap_id, setup: Some(transfer()), failed: None, diagnostics: None },
        PduSessionResourceReleaseCommand { amf_ue_ngap_id, ran_ue_ngap_id, nas_pdu: Some(vec![0x7e]), sessions: transfer() },
        PduSessionResourceReleaseResponse { amf_ue_ngap_id, ran_ue_ngap_id, released: Some(transfer()), location: None, diagnostics: None },
        PduSessionResourceModifyRequest { amf_ue_ngap_id, ran_ue_ngap_id, sessions: modify },
        PduSessionResourceModifyResponse { amf_ue_ngap_id, ran_ue_ngap_id, modified: Some(transfer()), failed: Some(transfer()), diagnostics: None },
        PduSessionResourceNotify { amf_ue_ngap_id, ran_ue_ngap_id, notified: Some(transfer()), released: Some(transfer()) },
    }
}

#[test]
fn transfers() {
    let tunnel = Tunnel { address: "10.0.0.1".parse().unwrap(), teid: Teid(0x0102_0304) };
    let arp = Arp { priority_level: 8, may_preempt: false, preemptable: true };
    let gbr = Some(GbrQos { maximum: ambr(), guaranteed: ambr() });
    let flows =
        vec![QosFlow { qfi: 1, five_qi: 9, arp, gbr: None }, QosFlow { qfi: 63, five_qi: 1, arp, gbr }];
    let request = SetupRequestTransfer {
        session_ambr: Some(ambr()),
        uplink: tunnel,
        session_type: SessionType::Ipv4v6,
        flows,
    };
    assert_eq!(SetupRequestTransfer::decode(&request.encode()), Ok(request));
    let cause = Cause::Transport(CauseTransport::unspecified);
    let six = Tunnel { address: "2001:db8::1".parse().unwrap(), teid: Teid(1) };
    let response = SetupResponseTransfer { downlink: six, flows: vec![1, 63], failed: vec![(2, cause)] };
    assert_eq!(SetupResponseTransfer::decode(&response.encode()), Ok(response));
    let unsuccessful = SetupUnsuccessfulTransfer { cause };
    assert_eq!(SetupUnsuccessfulTransfer::decode(&unsuccessful.encode()), Ok(unsuccessful));
    let command = ReleaseCommandTransfer { cause };
    assert_eq!(ReleaseCommandTransfer::decode(&command.encode()), Ok(command));
    assert_eq!(
        ReleaseResponseTransfer::decode(&ReleaseResponseTransfer.encode()),
        Ok(ReleaseResponseTransfer)
    );
    assert!(SetupRequestTransfer::decode(&[0, 0]).is_err());
}
