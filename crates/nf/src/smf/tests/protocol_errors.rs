//! 5GSM messages with an unknown, erroneous or unforeseen PTI, identity, type or information element (TS 24.501 7.2 to 7.5).

use super::flows::{awaiting_complete, gnb_modifies, is_settled, listening, n2, qfis, reported, voice};
use super::policy::{notify, rule};
use super::world::*;
use crate::kit::Timer;
use pith_nas::gsm::{
    GsmStatus, PduSessionEstablishmentRequest, PduSessionModificationRequest, PduSessionReleaseComplete,
    PduSessionReleaseRequest,
};
use pith_nas::ie::IntegrityProtectionMaximumDataRate;
use pith_nas::{GsmBody, GsmCause, GsmMessage};
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use pith_sbi::{Cause, Operation, Request};

/// The cause of 5GSM STATUS, the last message to the UE.
fn status(world: &World, pti: u8) -> GsmCause {
    let message = world.n1.last().unwrap();
    assert_eq!((message.pdu_session_id, message.pti), (5, pti));
    let GsmBody::GsmStatus(status) = &message.body else { panic!("{message:?}") };
    status.cause
}

fn request() -> PduSessionEstablishmentRequest {
    PduSessionEstablishmentRequest::new(IntegrityProtectionMaximumDataRate::FULL)
}

/// The UE sends these octets.
fn sends(world: &mut World, octets: &str) {
    let octets = hex::decode(octets).unwrap();
    world.update(|data| data.n1_sm_msg = Some(octets.into()));
}

/// TS 24.501 7.3.1 c.
#[test]
fn requests_without_a_pti_get_5gsm_status_81() {
    let mut world = World::new();
    world.post(GsmMessage::new(5, 0, request()).encode());
    assert_eq!(status(&world, 0), GsmCause::InvalidPtiValue);
    assert_eq!(world.refusal(), &Cause::N1SmError);
    world.is_quiet();
    let bodies: [GsmBody; 3] = [
        PduSessionModificationRequest::new().into(),
        PduSessionReleaseRequest::new().into(),
        request().into(),
    ];
    for body in bodies {
        let mut world = World::established();
        world.uplink_with(0, body);
        assert_eq!(status(&world, 0), GsmCause::InvalidPtiValue);
        assert_eq!(world.take_ladder(), "amf <- 200", "and nothing else happens");
    }
}

/// TS 24.501 7.3.1 d.
#[test]
fn messages_with_the_reserved_pti_are_ignored() {
    let mut world = World::new();
    world.post(GsmMessage::new(5, 255, request()).encode());
    assert_eq!(world.refusal(), &Cause::N1SmError);
    assert!(world.n1.is_empty(), "{:?}", world.n1);
    world.is_quiet();
    let mut world = World::established();
    let sent = world.n1.len();
    world.uplink_with(255, PduSessionModificationRequest::new());
    world.uplink_with(255, PduSessionReleaseRequest::new());
    assert_eq!(world.take_ladder(), "amf <- 204\namf <- 204");
    assert_eq!(world.n1.len(), sent);
}

/// TS 24.501 7.3.1 a.
#[test]
fn a_release_complete_with_another_pti_gets_5gsm_status_47() {
    let mut world = World::established();
    world.uplink_with(9, PduSessionReleaseComplete::new());
    assert_eq!(status(&world, 9), GsmCause::PtiMismatch, "no release is in progress");
    world.uplink_with(9, PduSessionReleaseRequest::new());
    for other in [8, 0] {
        world.uplink_with(other, PduSessionReleaseComplete::new());
        assert_eq!(status(&world, other), GsmCause::PtiMismatch);
        assert_eq!(world.bench.nf.audit().contexts, 1, "the release goes on");
    }
    world.uplink_with(9, PduSessionReleaseComplete::new());
    world.is_quiet();
}

/// TS 24.501 7.3.2: UL NAS TRANSPORT names session 5, the request in it session 6.
#[test]
fn an_establishment_of_another_session_is_rejected() {
    let mut world = World::new();
    world.post(GsmMessage::new(6, 1, request()).encode());
    assert_eq!(world.reject(), GsmCause::InvalidPduSessionIdentity);
    assert_eq!(world.n1.last().unwrap().pdu_session_id, 6);
    assert_eq!(world.refusal(), &Cause::N1SmError);
    world.is_quiet();
}

/// TS 24.501 7.5.3: a request that can't be processed has its reject.
#[test]
fn requests_with_an_unknown_ie_that_requires_comprehension_are_rejected() {
    let mut world = World::established();
    sends(&mut world, "2e0509c90f01ff");
    let answer = world.n1.last().unwrap().clone();
    let GsmBody::PduSessionModificationReject(reject) = answer.body else { panic!("{answer:?}") };
    assert_eq!((answer.pti, reject.cause), (9, GsmCause::InvalidMandatoryInformation));
    sends(&mut world, "2e050ad10f01ff");
    let answer = world.n1.last().unwrap().clone();
    let GsmBody::PduSessionReleaseReject(reject) = answer.body else { panic!("{answer:?}") };
    assert_eq!((answer.pti, reject.cause), (10, GsmCause::InvalidMandatoryInformation));
    sends(&mut world, "2e0500d10f01ff");
    assert_eq!(status(&world, 0), GsmCause::InvalidPtiValue, "a PTI is missing, too");
    assert_eq!(world.bench.nf.audit().contexts, 1);
}

#[test]
fn an_unknown_type_gets_5gsm_status_97_and_one_that_is_not_expected_98() {
    let mut world = World::established();
    sends(&mut world, "2e0509d9");
    assert_eq!(status(&world, 9), GsmCause::MessageTypeNonExistentOrNotImplemented);
    // PDU SESSION AUTHENTICATION COMPLETE, with an EAP-Response.
    sends(&mut world, "2e0500c6000402010004");
    assert_eq!(status(&world, 0), GsmCause::MessageTypeNotCompatibleWithTheProtocolState);
    sends(&mut world, "2e0500c6");
    assert_eq!(status(&world, 0), GsmCause::InvalidMandatoryInformation, "without the EAP message");
    assert_eq!(world.bench.nf.audit().contexts, 1);
}

/// The gNB has resources of the session, but its answer can't be decoded: gNB and UE get commands to release it (TS 38.413 10.2).
#[test]
fn a_session_whose_setup_response_is_wrong_is_released_at_gnb_and_ue() {
    for is_established in [false, true] {
        let mut world = World::new();
        world.establish();
        if is_established {
            world.gnb_answers();
            world.deactivate();
        }
        world.script.insert(Operation::N1N2MessageTransfer, None);
        world.open.clear();
        world.update(|data| {
            data.n2_sm_info_type = Some(N2SmInfoType::PduResSetupRsp);
            data.n2_sm_info = Some(vec![0xff; 3].into());
        });
        assert_eq!(world.refusal(), &Cause::N2SmError);
        let transfer = world.open.iter().find_map(|(_, request)| match request {
            Request::N1N2MessageTransfer(transfer) => Some(&transfer.body),
            _ => None,
        });
        let body = transfer.expect("commands for UE and gNB");
        let n1 = &body.n1_message_container.as_ref().unwrap().n1_message_content.content;
        let command = GsmMessage::decode(n1).unwrap();
        let GsmBody::PduSessionReleaseCommand(release) = &command.body else { panic!("{command:?}") };
        assert_eq!(release.cause, GsmCause::InsufficientResources, "the UE does not try again at once");
        let n2 = body.n2_info_container.as_ref().unwrap().sm_info.as_ref().unwrap();
        let kind = n2.n2_info_content.as_ref().unwrap().ngap_ie_type.clone();
        assert_eq!(kind, Some(NgapIeType::PduResRelCmd));
    }
}

/// TS 24.501 6.5.3: as if it had rejected the command.
#[test]
fn a_modification_that_the_ue_answers_with_5gsm_status_ends() {
    let unknown_type = GsmCause::MessageTypeNonExistentOrNotImplemented;
    for cause in [GsmCause::PtiMismatch, GsmCause::InvalidPtiValue, unknown_type] {
        let mut world = listening();
        notify(&mut world, voice);
        gnb_modifies(&mut world, &[2], &[]);
        world.uplink_with(0, GsmStatus::new(cause));
        assert_eq!(reported(&world)[0].rule_reports[0].pcc_rule_ids, ["voice".into()]);
        assert_eq!(n2(&world).unwrap().to_release[0].0, 2);
        // The command that deletes the rule.
        world.uplink_with(0, GsmStatus::new(cause));
        assert!(is_settled(&world) && qfis(&world).is_empty());
        assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
        world.take_ladder();
        world.uplink_with(0, GsmStatus::new(cause));
        assert_eq!(world.take_ladder(), "amf <- 204", "no modification is in progress");
    }
}

#[test]
fn a_modification_of_a_session_that_the_ue_does_not_have_ends_with_the_session() {
    let mut world = World::established();
    notify(&mut world, rule(50, 9));
    world.uplink_with(0, GsmStatus::new(GsmCause::InvalidPduSessionIdentity));
    world.is_quiet();
}

#[test]
fn a_command_that_the_ue_can_not_process_is_sent_again() {
    let causes = [
        GsmCause::InvalidMandatoryInformation,
        GsmCause::MessageTypeNotCompatibleWithTheProtocolState,
        GsmCause::ConditionalIeError,
    ];
    for cause in causes {
        let mut world = awaiting_complete();
        world.take_ladder();
        world.uplink_with(0, GsmStatus::new(cause));
        // That of another procedure says nothing about the command.
        world.uplink_with(9, GsmStatus::new(GsmCause::InvalidPtiValue));
        assert_eq!(world.take_ladder(), "amf <- 204\namf <- 204");
        world.expire(Timer::T3591);
        assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
        assert_eq!(qfis(&world), [2]);
    }
}
