//! N2 handover between two AMFs: answers that are late or lost, and messages that cross each other.

use super::context_transfer::{AREA_CHANGE, carry, comes};
use super::deregistration::notified;
use super::handover_between_amfs::*;
use super::n2_handover::{acknowledge, answer, failure, refuse, states, updates};
use super::world::*;
use crate::amf::session::PduSession;
use crate::kit::{Input, N2Input, Target, Timer};
use pith_nas::GmmMessage;
use pith_nas::gmm::RegistrationComplete;
use pith_nas::ie::{RegistrationKind, ServiceType};
use pith_sbi::common::UeContextId;
use pith_sbi::namf_communication as namf;
use pith_sbi::nsmf_pdusession::{HoState, N2SmInfoType, SmContextUpdateData as Update, UpCnxState};
use pith_sbi::{Cause as SbiCause, Operation, Problem, Reply, Request, Response};
use pith_types::{FiveGGuti, RanUeNgapId};
use std::sync::Arc;

#[test]
fn an_answer_that_the_source_amf_cannot_use_releases_the_target() {
    let mut amfs = Amfs::new(&[5]);
    let request = amfs.requested(&[5]);
    acknowledge(&mut amfs.target, request.amf_ue_ngap_id, &[5], &[]);
    answer(&mut amfs.target, Some(N2SmInfoType::HandoverCmd));
    let Some(Ok(Response::UeContextCreated(mut created))) = amfs.target.answers.pop() else { panic!() };
    created.body.pdu_session_list[0].pdu_session_id = 9;
    amfs.source.script.insert(Operation::ReleaseUeContext, None);
    let reply: Reply = Ok(Response::UeContextCreated(created));
    amfs.source.reply(amfs.creation.take().unwrap(), reply);
    failure(&mut amfs.source);
    release_at_target(&mut amfs);
    assert_stays(amfs);
}

/// The context that the first answer names is that of the second handover, as the target AMF has one of the UE.
#[test]
fn a_late_answer_of_a_cancelled_handover_does_not_end_the_next_one() {
    for is_answered in [false, true] {
        let mut amfs = Amfs::new(&[5]);
        let request = amfs.requested(&[5]);
        acknowledge(&mut amfs.target, request.amf_ue_ngap_id, &[5], &[]);
        answer(&mut amfs.target, Some(N2SmInfoType::HandoverCmd));
        let first = (amfs.creation.take().unwrap(), amfs.target.answers.pop().unwrap());
        cancel(&mut amfs);
        amfs.source.script.insert(Operation::ReleaseUeContext, None);
        let second = amfs.require(&[5]);
        let late = |amfs: &mut Amfs| {
            amfs.source.reply(first.0, first.1.clone());
            assert!(amfs.source.calls.is_empty(), "no release: {:?}", amfs.source.calls);
        };
        if !is_answered {
            late(&mut amfs);
        }
        amfs.create(*second);
        let _ = take_message!(amfs.target, OTHER_GNB, UeContextReleaseCommand);
        while states(&amfs.target).contains(&Some(HoState::Cancelled)) {
            answer(&mut amfs.target, None);
        }
        answer(&mut amfs.target, Some(N2SmInfoType::PduResSetupReq));
        let id = take_message!(amfs.target, OTHER_GNB, HandoverRequest).amf_ue_ngap_id;
        acknowledge(&mut amfs.target, id, &[5], &[]);
        answer(&mut amfs.target, Some(N2SmInfoType::HandoverCmd));
        amfs.created();
        let _ = take_message!(amfs.source, GNB, HandoverCommand);
        if is_answered {
            late(&mut amfs);
        }
        let notification = amfs.notified(id);
        assert_eq!(amfs.source.request(*notification), Ok(Response::NoContent));
    }
}

/// The answer is lost, or has no `Location`: the target AMF has a context, which the source AMF knows by the name in its request.
#[test]
fn a_context_that_may_have_been_created_without_an_answer_is_released() {
    let invalid = || Problem::new(SbiCause::UnspecifiedNfFailure);
    for failure_of in [Problem::timed_out, invalid] {
        let mut amfs = Amfs::new(&[5]);
        let request = amfs.requested(&[5]);
        acknowledge(&mut amfs.target, request.amf_ue_ngap_id, &[5], &[]);
        answer(&mut amfs.target, Some(N2SmInfoType::HandoverCmd));
        amfs.source.script.insert(Operation::ReleaseUeContext, None);
        let from = Arc::clone(&target_config().identity.api_root);
        let (tag, reply) = (amfs.creation.take().unwrap(), Err(Box::new(failure_of())));
        amfs.source.input(Input::Reply { tag, from: Some(Arc::clone(&from)), reply });
        failure(&mut amfs.source);
        let (_, target, _) = &amfs.source.calls[0];
        assert_eq!(*target, Target::Root(from));
        release_at_target(&mut amfs);
        assert_stays(amfs);
    }
}

#[test]
fn a_target_amf_that_refuses_has_nothing_to_release() {
    let mut amfs = Amfs::new(&[5]);
    amfs.require(&[5]);
    let refusal = crate::amf::mobility::n2_handover::HandoverError::NotTakenOver.problem();
    let from = Some(Arc::clone(&target_config().identity.api_root));
    amfs.source.input(Input::Reply { tag: amfs.creation.take().unwrap(), from, reply: Err(refusal.into()) });
    failure(&mut amfs.source);
    assert!(!amfs.source.take_ladder().contains("ReleaseUeContext"));
    assert_stays(amfs);
}

/// HANDOVER NOTIFY reaches the target AMF before ReleaseUEContext: the UE is there, and SMFs know that AMF.
#[test]
fn a_ue_that_arrives_before_the_cancellation_is_the_target_amfs() {
    let mut amfs = Amfs::new(&[5, 6]);
    let (id, _) = amfs.commanded(&[5]);
    amfs.source.script.insert(Operation::ReleaseUeContext, None);
    cancel(&mut amfs);
    let notification = amfs.notified(id);
    let (_, release) = take_call(&mut amfs.source, Operation::ReleaseUeContext);
    assert_eq!(amfs.target.request(release).unwrap_err().status, 404, "the UE is here");
    amfs.source.take_ladder();
    assert_eq!(amfs.source.request(*notification.clone()), Ok(Response::NoContent));
    let ladder = amfs.source.take_ladder();
    assert!(!ladder.contains("ReleaseSmContext"), "the sessions are the target AMF's: {ladder}");
    confirm_release(&mut amfs.source);
    assert_eq!(amfs.source.amf.audit().contexts, 0);
    assert_eq!(amfs.target.amf.audit().registered, 1);
    assert_eq!(amfs.source.request(*notification).unwrap_err().status, 404, "repeated");
}

/// The source AMF has withdrawn a handover a short time ago.
pub(super) fn withdrawn() -> World {
    let mut amfs = Amfs::new(&[5]);
    amfs.commanded(&[5]);
    amfs.source.script.insert(Operation::ReleaseUeContext, None);
    cancel(&mut amfs);
    amfs.source
}

/// An AMF that got the callback URI of an earlier handover can't end the UE's registration after a later one was withdrawn.
#[test]
fn a_report_of_a_handover_before_the_withdrawn_one_is_refused() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    amfs.source.script.insert(Operation::ReleaseUeContext, None);
    cancel(&mut amfs);
    let earlier = amfs.notified(id);
    let withdrawn = amfs.source.amf.ues.iter().next().map(|(key, _)| key).unwrap();
    amfs.source.amf.ues.get_mut(withdrawn).unwrap().withdrawn.as_mut().unwrap().number.0 += 1;
    assert_eq!(amfs.source.request(*earlier).unwrap_err().status, 404);
    assert_eq!(amfs.source.amf.audit().registered, 1);
}

/// The timer has expired at the source AMF, where the UE has established another session since, and is to be handed over once more.
#[test]
fn a_ue_that_arrives_late_is_the_target_amfs_without_later_sessions() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    amfs.source.script.insert(Operation::ReleaseUeContext, None);
    amfs.source.expire(Timer::Handover);
    amfs.source.script.remove(&Operation::UpdateSmContext);
    amfs.phone.establish(&mut amfs.source, 6);
    amfs.source.script.insert(Operation::CreateUeContext, None);
    amfs.require(&[5]);
    let notification = amfs.notified(id);
    amfs.source.take_ladder();
    assert_eq!(amfs.source.request(*notification), Ok(Response::NoContent));
    let ladder = amfs.source.take_ladder();
    assert_eq!(ladder.matches("ReleaseSmContext").count(), 1, "{ladder}");
    confirm_release(&mut amfs.source);
    assert_eq!(amfs.source.amf.audit().contexts, 0);
}

/// TS 29.518 6.1.3.2.2: a source AMF may name the UE by its own 5G-GUTI, or by the PEI.
#[test]
fn a_source_amf_may_name_the_ue_by_its_5g_guti_or_pei() {
    let pei: pith_types::Pei = "imeisv-1234567890123456".parse().unwrap();
    let guti =
        FiveGGuti { guami: config().guami, tmsi: pith_types::FiveGTmsi::new(crate::testing::block(0), 7) };
    for name in [UeContextId::FiveGGuti(guti), UeContextId::Pei(pei.clone())] {
        let mut amfs = Amfs::new(&[5]);
        let mut request = amfs.require(&[5]);
        request.body.ue_context.pei = Some(pei.clone());
        request.ue_context_id = name.clone();
        amfs.create(*request.clone());
        answer(&mut amfs.target, Some(N2SmInfoType::PduResSetupReq));
        let mut of_smf = transfer(5, Some(b"5GSM"), None);
        of_smf.ue_context_id = name.clone();
        let refusal = amfs.target.request(of_smf).unwrap_err();
        assert_eq!(refusal.cause(), Some(&SbiCause::TemporaryRejectHandoverOngoing));
        let body = namf::UeContextRelease::new(pith_sbi::common::NgApCause::new(0_u32, 5_u32));
        let release = namf::ReleaseUeContext { ue_context_id: name.clone(), body };
        assert_eq!(amfs.target.request(release.clone()), Ok(Response::NoContent));
        let refusal = amfs.target.request(release).unwrap_err();
        assert_eq!((refusal.status, refusal.cause()), (404, Some(&SbiCause::ContextNotFound)));
        assert_eq!(amfs.target.amf.audit().contexts, 0);
        let mut other = request;
        other.body.ue_context.pei = Some("imeisv-1234567890123457".parse().unwrap());
        amfs.target.answers.clear();
        amfs.create(*other);
        let is_pei = matches!(name, UeContextId::Pei(_));
        assert_eq!(amfs.target.answers.pop().is_some_and(|answer| answer.is_err()), is_pei);
    }
}

/// N2InfoNotify is lost, and sent again after the UE's registration at the target AMF.
#[test]
fn the_udms_notification_before_the_report_leaves_the_sessions_to_the_target_amf() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    let report = amfs.notified(id);
    notified(&mut amfs.source, "UE_REGISTRATION_AREA_CHANGE");
    assert_eq!(amfs.source.amf.audit().sessions, 1);
    assert_eq!(amfs.source.request(*report), Ok(Response::NoContent));
    confirm_release(&mut amfs.source);
    let ladder = amfs.source.take_ladder();
    assert!(!ladder.contains("ReleaseSmContext") && !ladder.contains("ReleaseUeContext"), "{ladder}");
    amfs.source.assert_empty();
}

/// The request that made it the target AMF's session is lost.
#[test]
fn a_session_that_is_not_switched_is_announced_also_after_the_registration() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    amfs.notified(id);
    let Amfs { mut target, mut phone, .. } = amfs;
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    phone.send(&mut target, request);
    phone.accepted(&mut target);
    phone.send(&mut target, RegistrationComplete::new());
    refuse(&mut target);
    let updates = updates(&target);
    let Some(update) = updates.last() else { panic!() };
    assert!(
        update.serving_nf_id.is_some() && update.up_cnx_state == Some(UpCnxState::Deactivated),
        "{update:?}"
    );
}

/// The UE did not find the target gNB, and begins there again. The target AMF gets its context as from any AMF, but with COUNTs after those that it
/// may have used for the handover.
#[test]
fn a_ue_that_fails_to_arrive_registers_at_the_target_amf_with_its_sessions() {
    let mut amfs = Amfs::new(&[5]);
    amfs.commanded(&[5]);
    let Amfs { mut source, mut target, mut phone, .. } = amfs;
    (phone.gnb, phone.ran_id) = (OTHER_GNB, RanUeNgapId(77));
    comes(&mut target, &mut phone, RegistrationKind::MobilityUpdating);
    carry(&mut target, &mut source, Operation::UeContextTransfer);
    carry(&mut target, &mut source, Operation::RegistrationStatusUpdate);
    phone.accepted(&mut target);
    assert_eq!((target.amf.audit().registered, target.amf.audit().sessions), (1, 1));
    confirm_any_release(&mut source);
    let ladder = source.take_ladder();
    assert!(!ladder.contains("ReleaseSmContext"), "{ladder}");
    source.assert_empty();
}

/// As above, but the source AMF is killed. It has the UE connected after its restart, and the SMF takes no request of it any longer.
#[test]
fn a_ue_that_fails_to_arrive_has_its_sessions_deactivated_by_the_target_amf() {
    let mut amfs = Amfs::new(&[5]);
    amfs.commanded(&[5]);
    let Amfs { mut target, mut phone, .. } = amfs;
    target.calls.clear();
    (phone.gnb, phone.ran_id, phone.security) = (OTHER_GNB, RanUeNgapId(77), None);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request.clone());
    target.script.insert(Operation::UeContextTransfer, problem(SbiCause::TargetNfNotReachable));
    phone.connect(&mut target, nas);
    assert!(matches!(phone.receive(&mut target), GmmMessage::IdentityRequest(_)));
    phone.send(&mut target, pith_nas::gmm::IdentityResponse::new(Phone::suci()));
    phone.secure(&mut target, request);
    phone.accepted(&mut target);
    let updates = updates(&target);
    let of_user_plane: Vec<_> = updates.iter().filter(|it| it.ho_state.is_none()).collect();
    let [update] = of_user_plane[..] else { panic!("{updates:?}") };
    let is_announced = update.serving_nf_id.is_some() && update.sm_context_status_uri.is_some();
    assert!(is_announced && update.up_cnx_state == Some(UpCnxState::Deactivated), "{update:?}");
}

/// The source AMF has changed the key for the target AMF. The radio is lost, and the UE, which has the 5G-GUTI of the source AMF, begins again at the
/// target AMF. That asks the source AMF once more when the UE is authenticated; the sessions are in its own former context.
#[test]
fn a_ue_whose_old_amf_is_asked_twice_keeps_the_sessions_of_its_former_context() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    amfs.notified(id);
    answer(&mut amfs.target, None);
    let Amfs { mut target, mut phone, .. } = amfs;
    target.script.remove(&Operation::UpdateSmContext);
    target.script.insert(Operation::UeContextTransfer, None);
    (phone.ran_id, phone.amf_id) = (RanUeNgapId(77), None);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let mut nas = phone.initial_nas(request.clone());
    nas[4] ^= 1;
    phone.connect(&mut target, nas);
    let (tag, _) = take_call(&mut target, Operation::UeContextTransfer);
    let reply = Err(Problem::new(SbiCause::IntegrityCheckFail).into());
    target.input(Input::Reply { tag, from: Some(config().identity.api_root), reply });
    phone.security = None;
    assert!(matches!(phone.receive(&mut target), GmmMessage::IdentityRequest(_)));
    phone.send(&mut target, pith_nas::gmm::IdentityResponse::new(Phone::suci()));
    phone.secure(&mut target, request);
    let (tag, request) = take_call(&mut target, Operation::UeContextTransfer);
    let Request::UeContextTransfer(request) = request else { panic!("{request:?}") };
    assert_eq!(request.body.reason, namf::TransferReason::MobiRegUeValidated);
    target.reply(tag, Err(Problem::context_not_found().into()));
    phone.accepted(&mut target);
    let ladder = target.take_ladder();
    assert!(!ladder.contains("ReleaseSmContext"), "{ladder}");
    assert!(updates(&target).iter().all(|it| it.release.is_none()), "{:?}", updates(&target));
    let audit = target.amf.audit();
    assert_eq!((audit.contexts, audit.registered, audit.sessions), (1, 1, 1));
}

/// The target AMF has lost the UE, and a third one registers it, which does not know the source AMF. If AMFs are not known from each other, the SMF
/// would end a session that the target AMF has.
#[test]
fn the_source_amf_ends_sessions_that_no_amf_takes_if_amfs_are_identified() {
    for is_identified in [false, true] {
        let mut amfs = Amfs::new(&[5]);
        amfs.commanded(&[5]);
        let mut source = amfs.source;
        source.amf.shared.config.nfs_are_identified = is_identified;
        notified(&mut source, AREA_CHANGE);
        source.take_ladder();
        source.expire(Timer::TransferredContext);
        let ladder = source.take_ladder();
        assert_eq!(ladder.contains("ReleaseSmContext"), is_identified, "{ladder}");
    }
}

/// The UE goes on to a third gNB before the SMF has answered the target AMF's first request, which may be lost: the next one names the AMF, too.
#[test]
fn a_path_switch_before_the_sessions_are_switched_announces_the_target_amf() {
    let mut amfs = Amfs::new(&[5, 6]);
    let (id, _) = amfs.commanded(&[5, 6]);
    amfs.notified(id);
    let mut target = amfs.target;
    target.input(Input::N2(N2Input::GnbUp { gnb: GNB, info: World::gnb_info(GNB).into() }));
    let request = pith_ngap::PathSwitchRequest {
        ran_ue_ngap_id: RanUeNgapId(91),
        source_amf_ue_ngap_id: id,
        location: Some(location()),
        security_capabilities: None,
        sessions: transfers(&[5]),
        failed: Some(transfers(&[6])),
    };
    target.ngap(GNB, "PathSwitchRequest", request.encode());
    let updates = updates(&target);
    let names = |update: Option<&Update>| update.and_then(|it| it.guami) == Some(target_config().guami);
    assert!(names(updates.iter().find(|it| it.to_be_switched == Some(true))), "{updates:?}");
    assert!(names(updates.iter().find(|it| it.failed_to_be_switched == Some(true))), "{updates:?}");
    assert!(target.amf.ues.iter().all(|(_, ue)| ue.session(5).is_some_and(PduSession::has_user_plane)));
}

/// N2InfoNotify is late, and the UE returns to the source AMF: the SMF knows the target AMF as the UE's.
#[test]
fn a_ue_that_returns_to_the_source_amf_is_announced_again() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    amfs.notified(id);
    let Amfs { mut source, mut phone, .. } = amfs;
    (phone.gnb, phone.ran_id, phone.amf_id) = (GNB, RanUeNgapId(92), None);
    source.script.insert(Operation::ReleaseUeContext, None);
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(&mut source, nas);
    let updates = updates(&source);
    assert!(updates.iter().any(|it| it.guami == Some(config().guami)), "{updates:?}");
}
