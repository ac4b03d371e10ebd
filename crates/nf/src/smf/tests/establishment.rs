//! Establishments: the ladder, every reason to reject, and failures.

use super::super::*;
use super::world::*;
use crate::kit::{N4Error, Timer};
use crate::testing::ambr;
use pith_nas::gsm::{PduSessionReleaseComplete, PduSessionReleaseRequest};
use pith_nas::ie::{PduSessionType, SscMode};
use pith_nas::{GsmBody, GsmCause, GsmMessage};
use pith_ngap::transfer::SetupUnsuccessfulTransfer;
use pith_ngap::{Cause as NgapCause, CauseRadioNetwork};
use pith_pfcp::Message;
use pith_pfcp::ie::{ApplyAction, Cause as N4Cause};
use pith_sbi::common::AccessType;
use pith_sbi::nsmf_pdusession::{N2SmInfoType, RequestType, SmContextCreateData, UpCnxState};
use pith_sbi::nudm_sdm::SmSubsData;
use pith_sbi::{Cause, Operation, Response};

#[test]
fn a_session_is_established_step_by_step() {
    let mut world = World::new();
    world.establish();
    world.gnb_answers();
    assert_eq!(
        world.take_ladder(),
        "\
udm <- GetSmData
amf <- 201
udm <- RegisterSmf
pcf <- CreateSmPolicy
udm <- SdmSubscribe
upf <- SessionEstablishmentRequest
amf <- N1N2MessageTransfer
upf <- SessionModificationRequest
amf <- 200"
    );
    let GsmBody::PduSessionEstablishmentAccept(accept) = &world.n1[0].body else { panic!() };
    assert_eq!((accept.session_ambr, accept.cause), (ambr(200), None));
    assert_eq!(downlink_action(&world), ApplyAction::FORW);
    let audit = SmfAudit { contexts: 1, addresses: 1, n4_sessions: 1, policies: 1 };
    assert_eq!(world.bench.nf.audit(), audit);
    assert!(world.bench.timers.is_empty(), "no timer runs");
}

#[test]
fn a_upf_that_accepts_without_f_teid_gets_a_session_deletion_request() {
    let mut world = World::new();
    world.upf = None;
    world.establish();
    let (tag, upf, request) = world.open_n4.remove(0);
    world.upf = Some(Ok(N4Cause::RequestAccepted));
    let Message::SessionEstablishmentResponse(mut response) =
        n4_answer(upf, &request, N4Cause::RequestAccepted)
    else {
        panic!()
    };
    response.created_pdrs.clear();
    world.take_ladder();
    world.n4_input(N4Input::Response { tag, result: Ok(Message::SessionEstablishmentResponse(response)) });
    assert!(world.take_ladder().starts_with("upf <- SessionDeletionRequest"), "{:?}", world.ladder);
    assert_eq!(world.reject(), GsmCause::InsufficientResources);
    world.is_quiet();
}

/// TS 29.502 6.1.6.3.3: SUSPENDED is for the user plane of a UE with CIoT 5GS optimisation, which is not supported.
#[test]
fn a_user_plane_is_not_suspended_and_has_no_unknown_state() {
    for state in [UpCnxState::Suspended, UpCnxState::from("BOGUS")] {
        let mut world = World::established();
        world.update(|data| data.up_cnx_state = Some(state));
        assert_eq!(world.refusal(), &Cause::OptionalIeIncorrect);
        assert_eq!(world.take_ladder().lines().count(), 1, "nothing changes");
        assert_eq!(world.bench.nf.audit().contexts, 1);
    }
}

#[test]
fn a_subscription_without_session_ambr_gets_that_of_the_data_network() {
    let mut world = World::new();
    let mut data = subscription();
    let SmSubsData::Individual(slices) = &mut data else { panic!("{data:?}") };
    slices[0].dnn_configurations.values_mut().for_each(|configuration| configuration.session_ambr = None);
    world.script.insert(Operation::GetSmData, Some(Ok(Response::SmData(Box::new(data)))));
    world.establish();
    let GsmBody::PduSessionEstablishmentAccept(accept) = &world.n1[0].body else { panic!() };
    assert_eq!(accept.session_ambr, ambr(50));
}

#[test]
fn who_asks_for_ipv4v6_is_told_that_only_ipv4_is_allowed() {
    let mut world = World::new();
    world.post(establishment(|request| request.pdu_session_type = Some(PduSessionType::Ipv4v6)));
    let GsmBody::PduSessionEstablishmentAccept(accept) = &world.n1[0].body else { panic!() };
    assert_eq!(accept.cause, Some(GsmCause::PduSessionTypeIpv4OnlyAllowed));
}

/// TS 23.003 9A.
#[test]
fn a_dnn_with_the_operator_identifier_of_the_network_is_found_by_its_network_identifier() {
    let mut world = World::new();
    world.post_to("internet.mnc070.mcc999.gprs", establishment(|_| {}));
    let GsmBody::PduSessionEstablishmentAccept(accept) = &world.n1[0].body else { panic!() };
    assert_eq!(accept.dnn.as_ref().unwrap().as_str(), "internet");
}

#[test]
fn requests_that_can_not_be_served_are_rejected_at_once() {
    let refused = |dnn, n1| {
        let mut world = World::new();
        world.post_to(dnn, n1);
        assert_eq!(world.ladder.len(), 1, "no NF is called: {:?}", world.ladder);
        world.is_quiet();
        (world.reject(), world.refusal().clone())
    };
    let of_type = |kind| establishment(|request| request.pdu_session_type = Some(kind));
    let ssc_mode_3 = establishment(|request| request.ssc_mode = Some(SscMode::Mode3));
    let release = GsmMessage::new(5, 1, PduSessionReleaseRequest::new()).encode();
    let cases = [
        (
            refused("ims", establishment(|_| {})),
            GsmCause::MissingOrUnknownDnnInASlice,
            Cause::DnnNotSupported,
        ),
        (
            refused("internet.mnc001.mcc001.gprs", establishment(|_| {})),
            GsmCause::MissingOrUnknownDnnInASlice,
            Cause::DnnNotSupported,
        ),
        (
            refused("internet", of_type(PduSessionType::Ethernet)),
            GsmCause::PduSessionTypeIpv4OnlyAllowed,
            Cause::PdutypeNotSupported,
        ),
        (refused("internet", ssc_mode_3), GsmCause::NotSupportedSscMode, Cause::SscNotSupported),
        (
            refused("internet", release),
            GsmCause::MessageTypeNotCompatibleWithTheProtocolState,
            Cause::N1SmError,
        ),
    ];
    for (seen, gsm, cause) in cases {
        assert_eq!(seen, (gsm, cause));
    }
}

/// TS 24.501 9.4.
#[test]
fn a_request_without_a_session_identity_is_refused() {
    for id in [Some(0), None] {
        let mut world = World::new();
        let mut request = establishment(|_| {});
        request[1] = 0;
        world.post_with("internet", request, |data| data.pdu_session_id = id);
        assert_eq!(world.refusal(), &Cause::MandatoryIeIncorrect);
        assert_eq!(world.reject(), GsmCause::InvalidPduSessionIdentity);
        world.is_quiet();
    }
}

/// TS 29.502 6.1.6.2.2 `anType`.
#[test]
fn a_session_over_another_access_is_refused() {
    let mut world = World::new();
    let other = |data: &mut SmContextCreateData| data.an_type = AccessType::NonThreeGppAccess;
    world.post_with("internet", establishment(|_| {}), other);
    assert_eq!(world.refusal(), &Cause::MandatoryIeIncorrect);
    assert_eq!(world.reject(), GsmCause::RequestRejectedUnspecified);
    world.is_quiet();
}

/// TS 24.501 6.4.1.4.1: there is neither another access nor EPS. A session with the identity stays.
#[test]
fn a_session_that_is_to_be_transferred_does_not_exist() {
    for kind in [RequestType::ExistingPduSession, RequestType::ExistingEmergencyPduSession] {
        let mut world = World::new();
        let transfer = |data: &mut SmContextCreateData| data.request_type = Some(kind.clone());
        world.post_with("internet", establishment(|_| {}), transfer);
        assert_eq!(
            (world.reject(), world.refusal()),
            (GsmCause::PduSessionDoesNotExist, &Cause::ContextNotFound)
        );
        world.is_quiet();
        let mut world = World::established();
        let transfer = |data: &mut SmContextCreateData| data.request_type = Some(kind.clone());
        world.post_with("internet", establishment(|_| {}), transfer);
        assert_eq!(world.reject(), GsmCause::PduSessionDoesNotExist);
        assert_eq!(world.bench.nf.audit().contexts, 1);
    }
}

/// The same, if the AMF has forwarded the request to the SMF that has the session.
#[test]
fn a_session_of_this_access_is_not_transferred() {
    let mut world = World::established();
    let request = establishment(|_| {});
    world.update(|data| data.n1_sm_msg = Some(request.into()));
    assert_eq!(world.reject(), GsmCause::PduSessionDoesNotExist);
    assert_eq!(world.take_ladder(), "amf <- 200");
    assert_eq!(world.bench.nf.audit().contexts, 1);
}

#[test]
fn no_truncated_request_gets_a_session() {
    let whole = establishment(|request| request.pdu_session_type = Some(PduSessionType::Ipv4));
    for length in 0..6 {
        let mut world = World::new();
        world.post(whole[..length].to_vec());
        assert_eq!(world.refusal(), &Cause::N1SmError, "{length} octets");
        if length < 4 {
            assert!(world.n1.is_empty(), "too short for a message type: ignored");
        } else {
            world.reject();
        }
        world.is_quiet();
    }
}

/// TS 24.501 6.3.1: this SMF has no DN-AAA server.
#[test]
fn a_session_that_the_data_network_is_to_authenticate_is_rejected() {
    let mut world = World::new();
    let mut data = subscription();
    let SmSubsData::Individual(slices) = &mut data else { panic!("{data:?}") };
    slices[0].dnn_configurations.values_mut().for_each(|it| it.secondary_auth = Some(true));
    world.script.insert(Operation::GetSmData, Some(Ok(Response::SmData(Box::new(data)))));
    world.establish();
    assert_eq!(world.reject(), GsmCause::UserAuthenticationOrAuthorizationFailed);
    assert_eq!(world.refusal(), &Cause::SubscriptionDenied);
    world.is_quiet();
}

#[test]
fn udm_refusals_reach_the_ue_in_the_answer_to_the_amf() {
    let refused = |reply| {
        let mut world = World::new();
        world.script.insert(Operation::GetSmData, reply);
        world.establish();
        assert_eq!(world.ladder.len(), 2, "no other NF is called: {:?}", world.ladder);
        world.is_quiet();
        world.reject()
    };
    assert_eq!(refused(problem(Cause::DataNotFound)), GsmCause::RequestedServiceOptionNotSubscribed);
    assert_eq!(refused(problem(Cause::SystemFailure)), GsmCause::NetworkFailure);
    for (cause, gsm) in [
        (Cause::UserNotFound, GsmCause::UserAuthenticationOrAuthorizationFailed),
        (Cause::RoamingNotAllowed, GsmCause::UserAuthenticationOrAuthorizationFailed),
        (Cause::DnnNotAllowed, GsmCause::MissingOrUnknownDnn),
    ] {
        assert_eq!(refused(problem(cause)), gsm);
    }
    let empty = pith_sbi::nudm_sdm::SmSubsData::Individual(vec![]);
    let nothing = Some(Ok(Response::SmData(Box::new(empty))));
    assert_eq!(refused(nothing), GsmCause::RequestedServiceOptionNotSubscribed);
}

#[test]
fn a_udm_that_does_not_answer_ends_the_establishment() {
    let mut world = World::new();
    world.script.insert(Operation::GetSmData, None);
    world.establish();
    world.expire(Timer::SbiGuard);
    assert_eq!((world.reject(), world.answers.len()), (GsmCause::NetworkFailure, 1));
    world.is_quiet();
    let (tag, request) = world.open.remove(0);
    let late = world.bench.reply(tag, usual(&request));
    assert!(late.is_empty(), "the answer is too late");
}

/// A failure after the AMF was answered: the SMF sends the reject in a transfer, and notifies the AMF of the end.
fn fails_after_the_answer_to_the_amf(world: &mut World) -> GsmCause {
    world.take_ladder();
    world.establish();
    let ladder = world.take_ladder();
    assert!(ladder.contains("amf <- 201\n"), "{ladder}");
    assert!(ladder.contains("amf <- N1N2MessageTransfer\namf <- SmContextStatusNotify"), "{ladder}");
    assert!(ladder.ends_with("udm <- SmfDeregistration"), "{ladder}");
    world.reject()
}

#[test]
fn a_pcf_that_fails_rejects_the_session() {
    let mut world = World::new();
    world.script.insert(Operation::CreateSmPolicy, problem(Cause::SystemFailure));
    assert_eq!(fails_after_the_answer_to_the_amf(&mut world), GsmCause::NetworkFailure);
    world.is_quiet();
}

/// TS 29.524 table 5.2.2.2-1.
#[test]
fn what_a_pcf_refuses_has_its_5gsm_cause() {
    for (cause, gsm) in [
        (Cause::UserUnknown, GsmCause::UserAuthenticationOrAuthorizationFailed),
        (Cause::PolicyContextDenied, GsmCause::UserAuthenticationOrAuthorizationFailed),
        (Cause::ValidationConditionNotMet, GsmCause::UserAuthenticationOrAuthorizationFailed),
        (Cause::ErrorTrafficMappingInfoRejected, GsmCause::UserAuthenticationOrAuthorizationFailed),
        (Cause::ErrorInitialParameters, GsmCause::RequestRejectedUnspecified),
        (Cause::ErrorTriggerEvent, GsmCause::RequestRejectedUnspecified),
        (Cause::ErrorConflictingRequest, GsmCause::InsufficientResourcesForSpecificSliceAndDnn),
    ] {
        let mut world = World::new();
        world.script.insert(Operation::CreateSmPolicy, problem(cause));
        assert_eq!(fails_after_the_answer_to_the_amf(&mut world), gsm);
        world.is_quiet();
    }
}

#[test]
fn without_a_upf_the_session_is_rejected() {
    let mut world = World::new();
    world.n4_input(N4Input::UpfDown { upf: UPF });
    assert_eq!(fails_after_the_answer_to_the_amf(&mut world), GsmCause::InsufficientResources);
    world.is_quiet();
}

#[test]
fn a_upf_that_refuses_or_does_not_answer_leaves_nothing_behind() {
    for upf in [Ok(N4Cause::NoResourcesAvailable), Err(N4Error::NoAnswer)] {
        let mut world = World::new();
        world.upf = Some(upf);
        assert_eq!(fails_after_the_answer_to_the_amf(&mut world), GsmCause::InsufficientResources);
        world.is_quiet();
    }
}

#[test]
fn when_no_address_is_free_the_session_is_rejected_and_established_ones_remain() {
    let mut world = World::established();
    world.pdu_session_id = 6;
    assert_eq!(fails_after_the_answer_to_the_amf(&mut world), GsmCause::InsufficientResources);
    let audit = world.bench.nf.audit();
    assert_eq!((audit.contexts, audit.addresses), (1, 1), "the pool has one address");
}

/// The registration in the UDM is replaced: a request to delete the former one might arrive after that.
#[test]
fn a_session_that_replaces_another_keeps_the_registration() {
    let mut world = World::established();
    world.establish();
    assert!(!world.take_ladder().contains("SmfDeregistration"));
    world.release_by_amf();
    assert_eq!(world.take_ladder().matches("SmfDeregistration").count(), 1);
}

#[test]
fn an_amf_that_can_not_reach_the_ue_ends_the_session() {
    let mut world = World::new();
    world.script.insert(Operation::N1N2MessageTransfer, problem(Cause::UeNotReachable));
    world.establish();
    assert!(world.take_ladder().ends_with(
        "amf <- N1N2MessageTransfer
amf <- SmContextStatusNotify
upf <- SessionDeletionRequest
pcf <- DeleteSmPolicy
udm <- SmfDeregistration"
    ));
    world.is_quiet();
}

/// TS 38.413 8.2.1.2: a gNB delivers the accept with the resources that it sets up.
#[test]
fn a_ue_whose_session_the_gnb_refuses_gets_a_reject() {
    for transfer in [Some(NgapCause::RadioNetwork(CauseRadioNetwork::radio_resources_not_available)), None] {
        let mut world = World::new();
        world.establish();
        world.take_ladder();
        let transfer = transfer.map(|cause| SetupUnsuccessfulTransfer { cause }.encode());
        world.update(|data| {
            data.n2_sm_info_type = Some(N2SmInfoType::PduResSetupFail);
            data.n2_sm_info = transfer.map(Into::into);
        });
        let end = "amf <- SmContextStatusNotify\nupf <- SessionDeletionRequest\npcf <- DeleteSmPolicy\nudm <- SmfDeregistration";
        assert_eq!(world.take_ladder(), format!("amf <- 204\namf <- N1N2MessageTransfer\n{end}"));
        assert_eq!(world.reject(), GsmCause::InsufficientResources);
        assert_eq!(world.n1.last().unwrap().pti, 1, "that of its request");
        assert!(world.transfers.last().unwrap().n2_info_container.is_none());
        world.is_quiet();
    }
}

/// It may have got the accept: the gNB does not answer, or its answer says nothing of the session.
#[test]
fn a_ue_of_whose_session_the_gnb_says_nothing_is_commanded_to_release_it() {
    for is_reported in [false, true] {
        let mut world = World::new();
        world.establish();
        if is_reported {
            let cause = NgapCause::RadioNetwork(CauseRadioNetwork::release_due_to_5gc_generated_reason);
            world.update(|data| {
                data.n2_sm_info_type = Some(N2SmInfoType::PduResSetupFail);
                data.n2_sm_info = Some(SetupUnsuccessfulTransfer { cause }.encode().into());
            });
        } else {
            world.expire(Timer::SbiGuard);
        }
        let GsmBody::PduSessionReleaseCommand(release) = &world.n1.last().unwrap().body else { panic!() };
        assert_eq!(release.cause, GsmCause::InsufficientResources);
        assert_eq!(world.n1.last().unwrap().pti, 0);
        assert!(world.transfers.last().unwrap().n2_info_container.is_none(), "the gNB has nothing");
        world.uplink(PduSessionReleaseComplete::new());
        world.is_quiet();
    }
}

#[test]
fn a_session_is_always_on_if_the_ue_requests_that() {
    for on in [true, false] {
        let mut world = World::new();
        world.post(establishment(|request| {
            request.always_on_requested = on.then_some(pith_nas::ie::AlwaysOn { on: true });
        }));
        let GsmBody::PduSessionEstablishmentAccept(accept) = &world.n1.last().unwrap().body else { panic!() };
        assert_eq!(accept.always_on, on.then_some(pith_nas::ie::AlwaysOn { on: true }));
    }
}

/// TS 24.501 table 9.11.4.11.1; 7 is reserved.
#[test]
fn an_unused_session_type_is_ipv4v6() {
    for (code, is_accepted) in [(0, true), (6, true), (7, false)] {
        let mut world = World::new();
        world.post(establishment(|request| request.pdu_session_type = Some(PduSessionType::from_code(code))));
        let accept =
            matches!(world.n1.last().map(|it| &it.body), Some(GsmBody::PduSessionEstablishmentAccept(_)));
        assert_eq!(accept, is_accepted, "{code}");
    }
}
