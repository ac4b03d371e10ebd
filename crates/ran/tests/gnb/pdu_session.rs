//! PDU session resources (TS 38.413 8.2).

use crate::amf::*;
use pith_ngap::transfer::*;
use pith_ngap::*;
use pith_ran::gnb::{Bearer, Output, QosFlows};
use pith_types::{Ambr, BitRate, Snssai, Teid};

fn ambr() -> Ambr {
    Ambr { uplink: BitRate::mbps(50), downlink: BitRate::mbps(100) }
}

fn transfer() -> SetupRequestTransfer {
    SetupRequestTransfer {
        session_ambr: Some(ambr()),
        uplink: Tunnel { address: "10.0.0.9".parse().unwrap(), teid: Teid(0xabc) },
        session_type: SessionType::Ipv4,
        flows: vec![QosFlow {
            qfi: 9,
            five_qi: 9,
            arp: Arp { priority_level: 8, may_preempt: false, preemptable: true },
            gbr: None,
            reflective: false,
        }],
    }
}

fn item(id: u8, transfer: &SetupRequestTransfer) -> SetupItem {
    SetupItem {
        pdu_session_id: id,
        nas_pdu: Some(vec![id]),
        snssai: Snssai::of_sst(1),
        transfer: transfer.encode(),
    }
}

fn setup(sessions: Vec<SetupItem>) -> PduSessionResourceSetupRequest {
    PduSessionResourceSetupRequest {
        amf_ue_ngap_id: amf_id(),
        ran_ue_ngap_id: RAN,
        nas_pdu: None,
        sessions,
        ue_ambr: Some(ambr()),
    }
}

pub fn bearer(session: u8, downlink: u32) -> Bearer {
    Bearer {
        session,
        uplink: transfer().uplink,
        downlink: Teid(downlink),
        n3: settings().n3,
        qfi: 9,
        flows: [9].into_iter().collect(),
        reflective: QosFlows::default(),
        ambr: Some(ambr()),
    }
}

fn response(pair: &mut Pair) -> PduSessionResourceSetupResponse {
    let Message::PduSessionResourceSetupResponse(response) = pair.message() else { panic!() };
    response
}

/// A gNB whose UE has session 1.
pub fn with_session() -> Pair {
    let mut pair = Pair::with_context();
    pair.give(STREAM, setup(vec![item(1, &transfer())]).encode().unwrap());
    pair.sent.clear();
    pair.out.clear();
    pair.assert_clean();
    pair
}

#[test]
fn a_session_gets_a_tunnel_and_then_its_nas_message() {
    let mut pair = Pair::with_context();
    pair.give(STREAM, setup(vec![item(1, &transfer()), item(2, &transfer())]).encode().unwrap());
    let expected = [
        Output::BearerUp { ue: UE, bearer: bearer(1, 0x100) },
        Output::BearerUp { ue: UE, bearer: bearer(2, 0x101) },
        Output::Nas { ue: UE, nas: vec![1] },
        Output::Nas { ue: UE, nas: vec![2] },
    ];
    assert_eq!(pair.out, expected);
    let setup = response(&mut pair).setup.unwrap();
    let first = SetupResponseTransfer::decode(&setup[0].transfer).unwrap();
    assert_eq!(first.downlink, Tunnel { address: settings().n3, teid: Teid(0x100) });
    assert_eq!(first.flows, [9]);
    pair.assert_clean();
}

#[test]
fn abnormal_sessions_fail_alone_without_nas_delivery() {
    let cases: [fn(&mut SetupRequestTransfer); 4] = [
        |transfer| transfer.session_ambr = None,
        |transfer| transfer.flows[0].five_qi = 1,
        |transfer| transfer.uplink.teid = Teid(0),
        |transfer| transfer.uplink.address = "0.0.0.0".parse().unwrap(),
    ];
    for (case, spoil) in cases.into_iter().enumerate() {
        let mut pair = Pair::with_context();
        let mut bad = transfer();
        spoil(&mut bad);
        pair.give(STREAM, setup(vec![item(1, &bad), item(2, &transfer())]).encode().unwrap());
        let response = response(&mut pair);
        assert_eq!(response.failed.unwrap()[0].pdu_session_id, 1, "case {case}");
        assert_eq!(response.setup.unwrap()[0].pdu_session_id, 2, "case {case}");
        assert_eq!(pair.out[1..], [Output::Nas { ue: UE, nas: vec![2] }]);
        assert_eq!(pair.violation(), "TS 38.413 8.2.1.4");
    }
}

#[test]
fn a_session_is_not_set_up_twice() {
    let mut pair = with_session();
    pair.give(STREAM, setup(vec![item(1, &transfer())]).encode().unwrap());
    let failed = response(&mut pair).failed.unwrap();
    let cause = SetupUnsuccessfulTransfer::decode(&failed[0].transfer).unwrap().cause;
    assert_eq!(cause, Cause::RadioNetwork(CauseRadioNetwork::multiple_PDU_session_ID_instances));
    assert_eq!(pair.violation(), "TS 38.413 8.2.1.4");
}

#[test]
fn a_session_in_an_unsupported_slice_fails() {
    let mut pair = Pair::with_context();
    pair.give(
        STREAM,
        setup(vec![SetupItem { snssai: Snssai::of_sst(2), ..item(1, &transfer()) }]).encode().unwrap(),
    );
    assert!(response(&mut pair).failed.is_some());
    assert_eq!(pair.violation(), "TS 38.413 8.2.1.2");
}

#[test]
fn sessions_without_as_security_are_violations() {
    let mut pair = Pair::with_ue();
    pair.give(STREAM, setup(vec![item(1, &transfer())]).encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.413 8.2.1.1");
}

#[test]
fn sessions_of_a_context_setup_need_the_ue_ambr() {
    let mut pair = Pair::with_ue();
    let mut request = initial_context_setup();
    request.sessions = Some(vec![item(1, &transfer())]);
    pair.give(STREAM, request.encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.413 9.2.2.1");
    let Message::InitialContextSetupResponse(response) = pair.message() else { panic!() };
    assert_eq!(response.setup.unwrap().len(), 1);
}

#[test]
fn a_release_command_takes_the_tunnel_down() {
    let mut pair = with_session();
    let transfer = ReleaseCommandTransfer { cause: Cause::Nas(CauseNas::normal_release) }.encode();
    let command = PduSessionResourceReleaseCommand {
        amf_ue_ngap_id: amf_id(),
        ran_ue_ngap_id: RAN,
        nas_pdu: Some(vec![5]),
        sessions: vec![SessionTransfer { pdu_session_id: 1, transfer }],
    };
    pair.give(STREAM, command.encode().unwrap());
    assert_eq!(
        pair.out,
        [Output::BearerDown { ue: UE, bearer: bearer(1, 0x100) }, Output::Nas { ue: UE, nas: vec![5] }]
    );
    let Message::PduSessionResourceReleaseResponse(response) = pair.message() else { panic!() };
    assert_eq!(response.released.unwrap()[0].pdu_session_id, 1);
    pair.assert_clean();
    pair.give(STREAM, command.encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.413 8.2.2.4");
}

#[test]
fn a_modify_response_lists_the_modified_sessions() {
    let mut pair = with_session();
    let transfer = ModifyRequestTransfer { session_ambr: Some(ambr()), ..Default::default() }.encode();
    let modify = |id| PduSessionResourceModifyRequest {
        amf_ue_ngap_id: amf_id(),
        ran_ue_ngap_id: RAN,
        sessions: vec![ModifyItem { pdu_session_id: id, nas_pdu: Some(vec![6]), transfer: transfer.clone() }],
    };
    pair.give(STREAM, modify(1).encode().unwrap());
    assert_eq!(pair.out, [Output::Nas { ue: UE, nas: vec![6] }]);
    let Message::PduSessionResourceModifyResponse(response) = pair.message() else { panic!() };
    assert_eq!(response.modified.unwrap()[0].pdu_session_id, 1);
    pair.assert_clean();
    pair.give(STREAM, modify(9).encode().unwrap());
    let Message::PduSessionResourceModifyResponse(response) = pair.message() else { panic!() };
    assert_eq!(response.failed.unwrap()[0].pdu_session_id, 9);
    assert_eq!(pair.violation(), "TS 38.413 8.2.3.4");
}

#[test]
fn a_tunnel_can_change_its_upf_endpoint() {
    let mut pair = with_session();
    let uplink = Tunnel { address: "10.0.0.9".parse().unwrap(), teid: Teid(0x77) };
    let change = |downlink| {
        let tunnels = vec![TunnelChange { uplink, downlink }];
        let transfer = ModifyRequestTransfer { tunnels, ..Default::default() }.encode();
        let request = PduSessionResourceModifyRequest {
            amf_ue_ngap_id: amf_id(),
            ran_ue_ngap_id: RAN,
            sessions: vec![ModifyItem { pdu_session_id: 1, nas_pdu: None, transfer }],
        };
        request.encode().unwrap()
    };
    let own = Tunnel { address: settings().n3, teid: Teid(0x100) };
    pair.give(STREAM, change(own));
    let moved = Bearer { uplink, ..bearer(1, 0x100) };
    assert_eq!(pair.out, [Output::BearerMoved { ue: UE, bearer: moved }]);
    let Message::PduSessionResourceModifyResponse(response) = pair.message() else { panic!() };
    assert_eq!(response.modified.unwrap()[0].pdu_session_id, 1);
    pair.assert_clean();
    pair.give(STREAM, change(Tunnel { teid: Teid(0x999), ..own }));
    let Message::PduSessionResourceModifyResponse(response) = pair.message() else { panic!() };
    assert_eq!(response.failed.unwrap()[0].pdu_session_id, 1);
    assert_eq!(pair.violation(), "TS 38.413 8.2.3.2");
}

#[test]
fn flows_are_added_and_released() {
    let mut pair = with_session();
    let modify = |flows: &[u8], released: &[u8]| {
        let arp = Arp { priority_level: 3, may_preempt: false, preemptable: true };
        let flow = |qfi: &u8| QosFlow { qfi: *qfi, five_qi: 7, arp, gbr: None, reflective: false };
        let cause = Cause::Nas(CauseNas::normal_release);
        let transfer = ModifyRequestTransfer {
            flows: flows.iter().map(flow).collect(),
            to_release: released.iter().map(|qfi| (*qfi, cause)).collect(),
            ..Default::default()
        };
        let request = PduSessionResourceModifyRequest {
            amf_ue_ngap_id: amf_id(),
            ran_ue_ngap_id: RAN,
            sessions: vec![ModifyItem { pdu_session_id: 1, nas_pdu: None, transfer: transfer.encode() }],
        };
        request.encode().unwrap()
    };
    for (flows, released, expected) in [(&[2][..], &[][..], &[2, 9][..]), (&[], &[2], &[9])] {
        pair.give(STREAM, modify(flows, released));
        let bearer = Bearer { flows: expected.iter().copied().collect(), ..bearer(1, 0x100) };
        assert_eq!(std::mem::take(&mut pair.out), [Output::BearerMoved { ue: UE, bearer }]);
        let Message::PduSessionResourceModifyResponse(_) = pair.message() else { panic!() };
        pair.assert_clean();
    }
    pair.give(STREAM, modify(&[], &[9]));
    assert_eq!(pair.violation(), "TS 38.413 8.2.3.2", "the default flow");
}

/// The last parameters of a flow replace the former ones (TS 38.413 8.2.3.2).
#[test]
fn a_flow_gets_and_loses_the_reflective_qos_attribute() {
    let mut pair = with_session();
    let arp = Arp { priority_level: 3, may_preempt: false, preemptable: true };
    let mut modify = |reflective: bool, gbr: Option<GbrQos>| {
        let flow = QosFlow { qfi: 9, five_qi: if gbr.is_some() { 1 } else { 9 }, arp, gbr, reflective };
        let transfer = ModifyRequestTransfer { flows: vec![flow], ..Default::default() };
        let request = PduSessionResourceModifyRequest {
            amf_ue_ngap_id: amf_id(),
            ran_ue_ngap_id: RAN,
            sessions: vec![ModifyItem { pdu_session_id: 1, nas_pdu: None, transfer: transfer.encode() }],
        };
        pair.give(STREAM, request.encode().unwrap());
        pair.message();
        let bearers: Vec<_> = std::mem::take(&mut pair.out)
            .into_iter()
            .filter_map(|output| match output {
                Output::BearerMoved { bearer, .. } => Some(bearer.reflective.has(9)),
                _ => None,
            })
            .collect();
        (bearers, pair.violations.len())
    };
    assert_eq!(modify(true, None), (vec![true], 0));
    assert_eq!(modify(true, None), (vec![], 0));
    assert_eq!(modify(false, None), (vec![false], 0));
    let rates = Ambr { uplink: BitRate::kbps(64), downlink: BitRate::kbps(64) };
    let gbr = GbrQos { maximum: rates, guaranteed: rates };
    assert_eq!(modify(true, Some(gbr)).1, 1, "not of a GBR flow");
}

#[test]
fn release_of_the_context_takes_tunnels_down_and_lists_them() {
    let mut pair = with_session();
    let cause = Cause::RadioNetwork(CauseRadioNetwork::user_inactivity);
    let command = UeContextReleaseCommand { ids: UeNgapIds::Pair(amf_id(), RAN), cause };
    pair.give(STREAM, command.encode().unwrap());
    let Message::UeContextReleaseComplete(complete) = pair.message() else { panic!() };
    assert_eq!(complete.sessions, Some(vec![1]));
    assert_eq!(
        pair.out,
        [Output::BearerDown { ue: UE, bearer: bearer(1, 0x100) }, Output::Released { ue: UE }]
    );
}
