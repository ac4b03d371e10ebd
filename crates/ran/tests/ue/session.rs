//! PDU sessions (TS 24.501 clause 6).

use crate::network::*;
use pith_nas::gmm::DlNasTransport;
use pith_nas::gsm::*;
use pith_nas::ie::*;
use pith_nas::{GmmCause, GmmMessage, GsmBody, GsmCause, GsmMessage};
use pith_ran::ue::{Event, Input, SessionFailure, SessionRequest};
use pith_types::{Ambr, BitRate, Snssai};
use std::net::Ipv4Addr;
use std::time::Duration;

fn registered() -> Pair {
    let mut pair = Pair::new();
    pair.register();
    pair.events.clear();
    pair
}

/// A UE that has requested session 1, and its PTI.
fn asking() -> (Pair, u8) {
    let mut pair = registered();
    pair.input(Input::EstablishSession(session_request(1)));
    let pti = pair.session_message().pti;
    (pair, pti)
}

#[test]
fn a_request_contains_slice_dnn_and_type() {
    let mut pair = registered();
    pair.input(Input::EstablishSession(session_request(1)));
    let GmmMessage::UlNasTransport(transport) = pair.ciphered() else { panic!() };
    assert_eq!(transport.pdu_session_id, Some(1));
    assert_eq!(transport.request_type, Some(RequestType::InitialRequest));
    assert_eq!(transport.snssai, Some(Snssai::of_sst(1).into()));
    assert_eq!(transport.dnn, Some("internet".parse().unwrap()));
    let message = GsmMessage::decode(&transport.payload_container).unwrap();
    let GsmBody::PduSessionEstablishmentRequest(request) = message.body else { panic!() };
    assert_eq!(request.pdu_session_type, Some(PduSessionType::Ipv4));
}

#[test]
fn an_accepted_session_has_address_flow_and_rate() {
    let mut pair = registered();
    pair.establish(1);
    let session = pair.ue.sessions().next().unwrap();
    assert_eq!(session.ipv4, Some(Ipv4Addr::new(10, 45, 0, 2)));
    assert_eq!((session.default_qfi, session.ambr.uplink), (9, BitRate::mbps(50)));
    assert_eq!(pair.events, [Event::SessionEstablished(1)]);
}

#[test]
fn a_reject_ends_the_procedure() {
    let (mut pair, pti) = asking();
    let reject = PduSessionEstablishmentReject::new(GsmCause::MissingOrUnknownDnn);
    pair.give_session(&GsmMessage::new(1, pti, reject));
    assert_eq!(pair.events, [Event::SessionFailed(1, SessionFailure::Cause(27))]);
    pair.assert_clean();
}

#[test]
fn a_wrong_pti_gets_status_47() {
    let (mut pair, pti) = asking();
    pair.give_session(&GsmMessage::new(1, pti + 1, establishment_accept()));
    assert_eq!(pair.violation(), "TS 24.501 7.3.1");
    let GsmBody::GsmStatus(status) = pair.session_message().body else { panic!() };
    assert_eq!(status.cause, GsmCause::PtiMismatch);
    assert_eq!(pair.ue.sessions().count(), 0);
}

#[test]
fn an_unusable_session_is_released() {
    let cases: [fn(&mut PduSessionEstablishmentAccept); 9] = [
        |accept| accept.pdu_address = None,
        |accept| accept.pdu_address = Some(Ipv4Addr::UNSPECIFIED.into()),
        |accept| accept.pdu_session_type = PduSessionType::Ipv6,
        |accept| accept.qos_rules.0[0].default = false,
        |accept| accept.qos_rules.0[0].id = 0,
        |accept| accept.qos_rules.0[0].packet_filters.clear(),
        |accept| accept.qos_rules.0.push(accept.qos_rules.0[0].clone()),
        |accept| {
            let second = QosRule { default: false, ..accept.qos_rules.0[0].clone() };
            accept.qos_rules.0.push(second);
        },
        |accept| {
            let second = QosRule { default: false, id: 2, ..accept.qos_rules.0[0].clone() };
            accept.qos_rules.0.push(second);
        },
    ];
    for (case, spoil) in cases.into_iter().enumerate() {
        let (mut pair, pti) = asking();
        let mut accept = establishment_accept();
        spoil(&mut accept);
        pair.give_session(&GsmMessage::new(1, pti, accept));
        assert_eq!(pair.violation(), "TS 24.501 6.4.1.3", "case {case}");
        assert_eq!(pair.events, [Event::SessionFailed(1, SessionFailure::NotUsable)], "case {case}");
        let GsmBody::PduSessionReleaseRequest(_) = pair.session_message().body else { panic!() };
    }
}

#[test]
fn missing_or_unusual_ies_are_violations() {
    let cases: [(fn(&mut PduSessionEstablishmentAccept), &str); 6] = [
        (|accept| accept.snssai = None, "TS 24.501 6.4.1.3"),
        (|accept| accept.snssai = Some(Snssai::of_sst(2).into()), "TS 24.501 6.4.1.3"),
        (|accept| accept.dnn = None, "TS 24.501 6.4.1.3"),
        (|accept| accept.ssc_mode = SscMode::Mode2, "TS 24.501 6.4.1.3"),
        (|accept| accept.session_ambr.uplink = BitRate(0), "TS 24.501 9.11.4.14"),
        (
            |accept| {
                accept.qos_rules = QosRules(vec![QosRule::match_all(1, 1)]);
                accept.qos_flow_descriptions = None;
            },
            "TS 24.501 6.4.1.3",
        ),
    ];
    for (spoil, clause) in cases {
        let (mut pair, pti) = asking();
        let mut accept = establishment_accept();
        spoil(&mut accept);
        pair.give_session(&GsmMessage::new(1, pti, accept));
        assert_eq!(pair.violation(), clause);
        assert_eq!(pair.events, [Event::SessionEstablished(1)]);
    }
}

#[test]
fn a_request_is_sent_five_times() {
    let (mut pair, _) = asking();
    for _ in 0..4 {
        pair.advance(Duration::from_secs(16));
    }
    assert_eq!(pair.sent.len(), 4);
    pair.advance(Duration::from_secs(16));
    assert_eq!(pair.events, [Event::SessionFailed(1, SessionFailure::NoAnswer)]);
}

#[test]
fn a_request_that_the_amf_does_not_forward_fails_with_its_cause() {
    let mut pair = registered();
    pair.input(Input::EstablishSession(session_request(1)));
    let GmmMessage::UlNasTransport(sent) = pair.ciphered() else { panic!() };
    let mut back = DlNasTransport::new(PayloadContainerType::N1SmInformation, sent.payload_container);
    back.pdu_session_id = Some(1);
    back.cause = Some(GmmCause::DnnNotSupportedOrNotSubscribedInTheSlice);
    pair.give_ciphered(back);
    assert_eq!(pair.events, [Event::SessionFailed(1, SessionFailure::NotForwarded(91))]);
    pair.assert_clean();
}

#[test]
fn inner_and_outer_session_identity_must_match() {
    let (mut pair, pti) = asking();
    let message = GsmMessage::new(1, pti, establishment_accept());
    let mut transport = DlNasTransport::new(PayloadContainerType::N1SmInformation, message.encode());
    transport.pdu_session_id = Some(2);
    pair.give_ciphered(transport);
    assert_eq!(pair.violation(), "TS 24.501 5.4.5.3.2");
    assert_eq!(pair.ue.sessions().count(), 0);
}

#[test]
fn the_ue_releases_a_session_with_request_command_complete() {
    let mut pair = registered();
    pair.establish(1);
    pair.input(Input::ReleaseSession(1));
    let request = pair.session_message();
    let GsmBody::PduSessionReleaseRequest(_) = request.body else { panic!() };
    let command = PduSessionReleaseCommand::new(GsmCause::RegularDeactivation);
    pair.give_session(&GsmMessage::new(1, request.pti, command));
    let complete = pair.session_message();
    assert_eq!((complete.body.name(), complete.pti), ("PduSessionReleaseComplete", request.pti));
    assert_eq!(pair.events.last(), Some(&Event::SessionReleased(1)));
    pair.assert_clean();
}

#[test]
fn the_network_releases_a_session_with_pti_0() {
    let mut pair = registered();
    pair.establish(1);
    let command = PduSessionReleaseCommand::new(GsmCause::NetworkFailure);
    pair.give_session(&GsmMessage::new(1, 0, command.clone()));
    assert_eq!(pair.session_message().body.name(), "PduSessionReleaseComplete");
    pair.assert_clean();
    pair.give_session(&GsmMessage::new(1, 0, command));
    assert_eq!(pair.violation(), "TS 24.501 7.3.2");
    let GsmBody::GsmStatus(status) = pair.session_message().body else { panic!() };
    assert_eq!(status.cause, GsmCause::InvalidPduSessionIdentity);
}

/// TS 24.501 6.4.1.2, 6.4.1.3, 6.3.2.2.
#[test]
fn the_rq_timer_is_for_ues_that_support_reflective_qos() {
    let timer = |seconds| Some(GprsTimer2::at_least(Duration::from_secs(seconds)));
    for reflective_qos in [true, false] {
        let mut pair = registered();
        pair.input(Input::EstablishSession(SessionRequest { reflective_qos, ..session_request(1) }));
        let message = pair.session_message();
        let GsmBody::PduSessionEstablishmentRequest(request) = message.body else { panic!() };
        let supports = request.gsm_capability.as_ref().is_some_and(GsmCapability::reflective_qos);
        assert_eq!(supports, reflective_qos);
        let mut accept = establishment_accept();
        accept.rq_timer = timer(30);
        pair.give_session(&GsmMessage::new(1, message.pti, accept));
        let mut command = PduSessionModificationCommand::new();
        command.rq_timer = timer(10);
        pair.give_session(&GsmMessage::new(1, 0, command));
        assert_eq!(pair.session_message().body.name(), "PduSessionModificationComplete");
        assert_eq!(pair.ue.sessions().next().unwrap().rq_timer, timer(10));
        let clauses: Vec<_> = pair.violations.iter().map(|violation| violation.clause).collect();
        let expected: &[&str] = if supports { &[] } else { &["TS 24.501 6.4.1.3", "TS 24.501 6.3.2.2"] };
        assert_eq!(clauses, expected);
    }
}

#[test]
fn a_modification_changes_rates() {
    let mut pair = registered();
    pair.establish(1);
    let mut command = PduSessionModificationCommand::new();
    command.session_ambr = Some(Ambr { uplink: BitRate::mbps(1), downlink: BitRate::mbps(2) });
    pair.give_session(&GsmMessage::new(1, 0, command));
    assert_eq!(pair.session_message().body.name(), "PduSessionModificationComplete");
    assert_eq!(pair.ue.sessions().next().unwrap().ambr.uplink, BitRate::mbps(1));
}

#[test]
fn a_modification_adds_a_flow_and_a_wrong_one_is_rejected() {
    let mut pair = registered();
    pair.establish(1);
    let with_precedence = |precedence| {
        let mut rule = QosRule::match_all(2, 2);
        rule.default = false;
        rule.precedence_and_qfi = Some(PrecedenceAndQfi { precedence, segregation: false, qfi: 2 });
        let mut command = PduSessionModificationCommand::new();
        command.qos_rules = Some(QosRules(vec![rule]));
        command.qos_flow_descriptions = Some(QosFlowDescriptions(vec![QosFlowDescription::non_gbr(2, 7)]));
        GsmMessage::new(1, 0, command)
    };
    pair.give_session(&with_precedence(20));
    assert_eq!(pair.session_message().body.name(), "PduSessionModificationComplete");
    assert_eq!(pair.ue.sessions().next().unwrap().flow_of(&[0x45; 20], pair.now), Some(2));
    pair.give_session(&with_precedence(255));
    assert_eq!(pair.violation(), "TS 24.501 6.3.2.4", "the default rule has it");
    let GsmBody::PduSessionModificationCommandReject(reject) = pair.session_message().body else { panic!() };
    assert_eq!(reject.cause, GsmCause::SemanticErrorInTheQosOperation);
    assert_eq!(pair.ue.sessions().next().unwrap().flow_of(&[0x45; 20], pair.now), Some(2), "as before");
}

#[test]
fn in_idle_a_service_request_comes_first() {
    let mut pair = registered();
    pair.release_connection();
    pair.input(Input::EstablishSession(session_request(1)));
    let octets = pair.octets();
    let opened = pair.security.as_mut().unwrap().unprotect(&octets).unwrap();
    let GmmMessage::ServiceRequest(request) = GmmMessage::decode(&opened.plain).unwrap() else { panic!() };
    assert_eq!(request.service_type, ServiceType::Signalling);
    pair.give_ciphered(pith_nas::gmm::ServiceAccept::new());
    assert_eq!(pair.session_message().body.name(), "PduSessionEstablishmentRequest");
    pair.assert_clean();
}

/// TS 24.501 5.6.1.1 c: the connection is lost before the answer, and the AMF never got the request.
#[test]
fn a_request_whose_connection_was_lost_is_sent_again_after_a_service_request() {
    let (mut pair, _) = asking();
    pair.release_connection();
    pair.advance(Duration::from_secs(16));
    let octets = pair.octets();
    let opened = pair.security.as_mut().unwrap().unprotect(&octets).unwrap();
    assert!(matches!(GmmMessage::decode(&opened.plain).unwrap(), GmmMessage::ServiceRequest(_)));
    pair.give_ciphered(pith_nas::gmm::ServiceAccept::new());
    let request = pair.session_message();
    assert_eq!(request.body.name(), "PduSessionEstablishmentRequest");
    pair.give_session(&GsmMessage::new(1, request.pti, establishment_accept()));
    assert_eq!(pair.events, [Event::Idle, Event::ServiceAccepted, Event::SessionEstablished(1)]);
    pair.assert_clean();
}

#[test]
fn a_slice_that_is_not_allowed_is_not_requested() {
    let mut pair = registered();
    let mut request = session_request(1);
    request.snssai = Some(Snssai::of_sst(9));
    pair.input(Input::EstablishSession(request));
    assert_eq!(pair.events, [Event::SessionFailed(1, SessionFailure::NotPossible)]);
    assert!(pair.sent.is_empty());
}

/// TS 24.501 6.4.2.2, 6.4.2.3, 6.4.2.6.
#[test]
fn a_ue_revokes_its_support_of_reflective_qos_until_the_network_accepts() {
    let mut pair = registered();
    pair.input(Input::EstablishSession(SessionRequest { reflective_qos: true, ..session_request(1) }));
    let pti = pair.session_message().pti;
    pair.give_session(&GsmMessage::new(1, pti, establishment_accept()));
    pair.input(Input::RevokeReflectiveQos(1));
    let message = pair.session_message();
    let GsmBody::PduSessionModificationRequest(request) = message.body else { panic!() };
    assert!(request.gsm_capability.is_some_and(|capability| !capability.reflective_qos()));
    assert!(pair.ue.running_timers().contains(&"T3581"));
    assert!(pair.ue.sessions().next().unwrap().reflective_qos, "not accepted yet");
    // A modification of the network does not end that of the UE.
    pair.give_session(&GsmMessage::new(1, 0, PduSessionModificationCommand::new()));
    assert_eq!(pair.session_message().body.name(), "PduSessionModificationComplete");
    assert!(pair.ue.running_timers().contains(&"T3581"));
    for _ in 0..2 {
        pair.give_session(&GsmMessage::new(1, message.pti, PduSessionModificationCommand::new()));
        assert_eq!(pair.session_message().body.name(), "PduSessionModificationComplete", "also if repeated");
        assert!(!pair.ue.sessions().next().unwrap().reflective_qos);
        assert!(!pair.ue.running_timers().contains(&"T3581"));
    }
    pair.assert_clean();
    pair.input(Input::RevokeReflectiveQos(1));
    assert!(pair.sent.is_empty(), "there is nothing to revoke");
    pair.give_session(&GsmMessage::new(1, 99, PduSessionModificationCommand::new()));
    assert_eq!(pair.violation(), "TS 24.501 7.3.1");
}

/// TS 24.501 5.4.5.2.2, 5.6.1.2.1.
#[test]
fn a_normally_registered_ue_requests_an_emergency_session() {
    let mut pair = registered();
    let request = SessionRequest { dnn: None, snssai: None, is_emergency: true, ..session_request(4) };
    pair.input(Input::EstablishSession(request));
    let GmmMessage::UlNasTransport(transport) = pair.ciphered() else { panic!() };
    assert_eq!(transport.request_type, Some(RequestType::InitialEmergencyRequest));
    assert!(!pair.ue.has_emergency_session());
    pair.assert_clean();
}
