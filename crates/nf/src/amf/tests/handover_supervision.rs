//! A UE that another AMF has handed over: one AMF serves it, which the UDM knows, whether it registers there or not (TS 23.502 4.9.1.3.3); and the
//! network ends its registration during such a handover (TS 24.501 5.5.2.3).

use super::deregistration::notified;
use super::handover_between_amfs::*;
use super::n2_handover::{acknowledge, answer, failure};
use super::world::*;
use crate::kit::{Deregister, Timer};
use pith_nas::GmmMessage;
use pith_nas::gmm::{
    ConfigurationUpdateComplete, DeregistrationAcceptUeTerminated, DeregistrationRequestUeTerminated,
};
use pith_nas::ie::{RegistrationKind, ServiceType};
use pith_ngap::{Cause, CauseNas, CauseRadioNetwork, UeContextReleaseCommand};
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use pith_sbi::{Cause as SbiCause, Operation, Problem, Reply, Request, Response};

/// The UE is at the target AMF, whose registration in the UDM gets that reply, or none yet.
fn arrived(reply: Option<Reply>) -> (World, Phone) {
    let mut amfs = Amfs::new(&[5]);
    if let Some(Err(problem)) = &reply {
        amfs.target.script.insert(Operation::ThreeGppRegistration, Some(Err(problem.clone())));
    } else if reply.is_none() {
        amfs.target.script.insert(Operation::ThreeGppRegistration, None);
    }
    amfs.completed(&[5]);
    amfs.target.script.remove(&Operation::ThreeGppRegistration);
    amfs.target.script.remove(&Operation::UpdateSmContext);
    (amfs.target, amfs.phone)
}

fn requested(world: &mut World, phone: &mut Phone) -> Box<DeregistrationRequestUeTerminated> {
    let message = phone.receive(world);
    let GmmMessage::DeregistrationRequestUeTerminated(request) = message else { panic!("{message:?}") };
    request
}

#[test]
fn the_target_amf_registers_in_the_udm_when_the_ue_arrives() {
    let mut amfs = Amfs::new(&[5]);
    amfs.target.script.insert(Operation::ThreeGppRegistration, None);
    amfs.completed(&[5]);
    let Request::ThreeGppRegistration(request) = amfs.target.open_call(Operation::ThreeGppRegistration)
    else {
        panic!()
    };
    assert_eq!(request.body.initial_registration_ind, Some(false));
    assert_eq!(request.body.guami, target_config().guami);
    let key = amfs.target.amf.key_of(&supi());
    assert_eq!(request.body.dereg_callback_uri.id(), key);
}

/// TS 23.502 4.2.2.2.2 step 14d: the UE has registered initially elsewhere since, which the UDM says.
#[test]
fn a_ue_that_registers_elsewhere_since_is_not_kept_by_the_target_amf() {
    let (mut target, _) = arrived(Some(Ok(Response::NoContent)));
    target.take_ladder();
    notified(&mut target, "UE_INITIAL_REGISTRATION");
    let _: UeContextReleaseCommand = take_message!(target, OTHER_GNB, UeContextReleaseCommand);
    let ladder = target.take_ladder();
    assert!(!ladder.contains("UpdateThreeGppRegistration"), "the registration is the other AMF's: {ladder}");
    assert_eq!((target.amf.audit().contexts, target.running()), (0, vec![Timer::NgapGuard]));
}

#[test]
fn a_ue_that_does_not_follow_the_request_to_register_is_deregistered() {
    let (mut target, mut phone) = arrived(Some(Ok(Response::NoContent)));
    target.expire(Timer::Handover);
    let command = phone.take_guti(&mut target);
    assert!(command.allowed_nssai.is_some(), "a command with a 5G-GUTI alone requests no registration");
    phone.send(&mut target, ConfigurationUpdateComplete::new());
    phone.released(&mut target);
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(&mut target, nas);
    phone.receive(&mut target);
    phone.context_setup_response(&mut target, &[]);
    target.expire(Timer::Handover);
    assert!(requested(&mut target, &mut phone).deregistration_type.re_registration_required);
    assert!(!target.running().contains(&Timer::Handover), "it is not awaited any longer");
    phone.send(&mut target, DeregistrationAcceptUeTerminated::new());
    phone.released(&mut target);
    target.assert_empty();
}

#[test]
fn a_ue_that_registers_after_the_request_is_not_awaited_any_longer() {
    let (mut target, mut phone) = arrived(Some(Ok(Response::NoContent)));
    target.expire(Timer::Handover);
    phone.take_guti(&mut target);
    phone.send(&mut target, ConfigurationUpdateComplete::new());
    assert_eq!(phone.released(&mut target), Cause::Nas(CauseNas::normal_release));
    target.take_ladder();
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request);
    phone.connect(&mut target, nas);
    phone.accepted(&mut target);
    let ladder = target.take_ladder();
    for operation in ["ThreeGppRegistration", "GetDataSets", "SdmSubscribe", "CreateAmPolicyAssociation"] {
        assert!(ladder.contains(operation), "{operation}: {ladder}");
    }
    assert!(!target.running().contains(&Timer::Handover));
}

/// TS 23.502 4.2.2.3.3: the subscriber was deleted during the handover.
#[test]
fn a_ue_that_arrives_without_a_subscriber_is_deregistered() {
    let (mut target, mut phone) = arrived(Some(Err(Box::new(Problem::user_not_found()))));
    assert!(!requested(&mut target, &mut phone).deregistration_type.re_registration_required);
    target.take_ladder();
    phone.send(&mut target, DeregistrationAcceptUeTerminated::new());
    phone.released(&mut target);
    let ladder = target.take_ladder();
    assert!(ladder.contains("ReleaseSmContext"), "{ladder}");
    assert!(!ladder.contains("UpdateThreeGppRegistration"), "{ladder}");
    target.assert_empty();
}

/// The UDM can't be reached at that time: the UE's registration makes the AMF known.
#[test]
fn a_ue_that_arrives_while_the_udm_does_not_answer_registers_as_usual() {
    for reply in [Some(Err(Box::new(Problem::timed_out()))), None] {
        let (mut target, mut phone) = arrived(reply);
        let late = target.calls.iter().position(|(.., it)| it.operation() == Operation::ThreeGppRegistration);
        let late = late.map(|at| target.calls.remove(at).0);
        let request = phone.registration_request(RegistrationKind::MobilityUpdating);
        phone.send(&mut target, request);
        phone.accepted(&mut target);
        if let Some(tag) = late {
            target.reply(tag, Err(Box::new(Problem::user_not_found())));
        }
        phone.send(&mut target, pith_nas::gmm::RegistrationComplete::new());
        target.take_ladder();
        let request = phone.deregistration_request(true);
        phone.send(&mut target, request);
        assert!(target.take_ladder().contains("UpdateThreeGppRegistration"), "it is registered in the UDM");
        phone.released(&mut target);
        target.assert_empty();
    }
}

/// TS 24.501 5.5.2.3.1. HANDOVER COMMAND was not sent: the source gNB gets HANDOVER PREPARATION FAILURE, and the target AMF releases its context.
#[test]
fn a_ue_is_deregistered_while_another_amf_prepares_its_handover() {
    for reason in [Deregister::Anew, Deregister::Withdrawn] {
        let mut amfs = Amfs::new(&[5]);
        let request = amfs.requested(&[5]);
        assert_eq!(amfs.source.operate(supi(), reason).len(), 1);
        failure(&mut amfs.source);
        let request_to_ue = requested(&mut amfs.source, &mut amfs.phone);
        let is_anew = reason == Deregister::Anew;
        assert_eq!(request_to_ue.deregistration_type.re_registration_required, is_anew);
        acknowledge(&mut amfs.target, request.amf_ue_ngap_id, &[5], &[]);
        answer(&mut amfs.target, Some(N2SmInfoType::HandoverCmd));
        amfs.source.script.insert(Operation::ReleaseUeContext, None);
        amfs.created();
        assert!(amfs.source.downlinks.is_empty(), "no HANDOVER COMMAND: {:?}", amfs.source.downlinks);
        release_at_target(&mut amfs);
        amfs.phone.send(&mut amfs.source, DeregistrationAcceptUeTerminated::new());
        amfs.phone.released(&mut amfs.source);
        amfs.source.assert_empty();
    }
}

/// The UE may have got HANDOVER COMMAND: the target AMF does not take it, and the UE is deregistered, with an answer or without.
#[test]
fn a_ue_is_deregistered_while_it_moves_to_another_amf() {
    for answers in [true, false] {
        let mut amfs = Amfs::new(&[5]);
        amfs.commanded(&[5]);
        amfs.source.script.insert(Operation::ReleaseUeContext, None);
        assert_eq!(amfs.source.operate(supi(), Deregister::Anew).len(), 1);
        assert!(requested(&mut amfs.source, &mut amfs.phone).deregistration_type.re_registration_required);
        release_at_target(&mut amfs);
        if answers {
            amfs.phone.send(&mut amfs.source, DeregistrationAcceptUeTerminated::new());
        } else {
            (0..5).for_each(|_| amfs.source.expire(Timer::T3522));
            amfs.source
                .downlinks
                .retain(|(_, it)| matches!(it, pith_ngap::Message::UeContextReleaseCommand(_)));
        }
        amfs.phone.released(&mut amfs.source);
        amfs.source.assert_empty();
    }
}

/// It is not lost with the UE's context.
#[test]
fn a_ue_that_is_being_deregistered_is_not_handed_over_to_another_amf() {
    let mut amfs = Amfs::new(&[5]);
    amfs.source.operate(supi(), Deregister::Anew);
    requested(&mut amfs.source, &mut amfs.phone);
    let message = super::n2_handover::required(&amfs.phone, &[5]);
    amfs.source.ngap(GNB, "HandoverRequired", message.encode());
    assert_eq!(failure(&mut amfs.source), CauseRadioNetwork::interaction_with_other_procedure);
}

/// The UDM's notification takes the same way.
#[test]
fn a_withdrawn_subscription_ends_a_handover_to_another_amf() {
    let mut amfs = Amfs::new(&[5]);
    amfs.commanded(&[5]);
    amfs.source.script.insert(Operation::ReleaseUeContext, None);
    notified(&mut amfs.source, "SUBSCRIPTION_WITHDRAWN");
    assert!(!requested(&mut amfs.source, &mut amfs.phone).deregistration_type.re_registration_required);
    release_at_target(&mut amfs);
    amfs.phone.send(&mut amfs.source, DeregistrationAcceptUeTerminated::new());
    amfs.phone.released(&mut amfs.source);
    amfs.source.assert_empty();
}

/// A REGISTRATION of the target AMF that the UDM refuses for another reason does not end the registration.
#[test]
fn a_ue_whose_arrival_the_udm_refuses_for_another_reason_stays() {
    let (target, _) = arrived(problem(SbiCause::UnspecifiedNfFailure));
    assert_eq!(target.amf.audit().registered, 1);
    assert!(target.running().contains(&Timer::Handover), "its registration is awaited");
}
