//! SMFs that do not answer the request to switch the path of an N2 handover, such as one that restarts (TS 23.502 4.9.1.3.3 steps 7 to 10; TS 29.502
//! 5.2.2.3.4.4).

use super::handover_back::request_release;
use super::handover_between_amfs::{Amfs, take_message};
use super::n2_handover::{AT_TARGET, answer, commanded, notify, source_released, states, updates};
use super::panic::take_over;
use super::pdu_session::{release_response, status_notify};
use super::world::*;
use crate::kit::{Duration, Fate, Input, N2Input, NetworkFunction, StoreScope, Timer, Tracking};
use crate::testing::Stored;
use pith_nas::gmm::ConfigurationUpdateComplete;
use pith_nas::ie::ServiceType;
use pith_ngap::{CauseRadioNetwork, PduSessionResourceNotify};
use pith_sbi::nsmf_pdusession::{HoState, N2SmInfoType, SmContextUpdateData, UpCnxState};
use pith_sbi::{Cause, Operation, Problem};

const DOWN: Cause = Cause::TargetNfNotReachable;

fn fail(world: &mut World, cause: &Cause) {
    world.reply_to(Operation::UpdateSmContext, Err(Problem::new(cause.clone()).into()));
}

/// The UE is at the target gNB, and the SMF has failed the first request.
fn arrived(cause: &Cause) -> (World, Phone) {
    let (mut world, mut phone, id) = commanded(&[5]);
    notify(&mut world, id);
    (phone.gnb, phone.ran_id, phone.amf_id) = (OTHER_GNB, AT_TARGET, Some(id));
    assert_eq!(states(&world), [Some(HoState::Completed)]);
    fail(&mut world, cause);
    assert!(updates(&world).is_empty(), "after a pause only");
    assert!(world.downlinks.is_empty(), "the target gNB keeps its resources: {:?}", world.downlinks);
    (world, phone)
}

/// The pause is over.
fn repeats(world: &mut World) {
    world.expire(Timer::HandoverCompletion);
    assert_eq!(states(world), [Some(HoState::Completed)]);
}

/// Nothing is left of the handover but the release of the source gNB.
fn assert_over(world: &mut World, sessions: usize) {
    source_released(world);
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    assert!(!world.running().contains(&Timer::HandoverCompletion));
    let audit = world.amf.audit();
    assert_eq!((audit.connected, audit.in_procedure, audit.sessions), (1, 0, sessions));
}

#[test]
fn an_smf_that_is_down_is_requested_again_until_it_answers() {
    for cause in [DOWN, Cause::TimedOutRequest, Cause::NetworkFailure, Cause::NfCongestion] {
        let (mut world, _) = arrived(&cause);
        repeats(&mut world);
        fail(&mut world, &cause);
        repeats(&mut world);
        answer(&mut world, None);
        assert_over(&mut world, 1);
        assert!(updates(&world).is_empty(), "the user plane is active");
    }
}

/// The SMF sends the end of the session to the URI that it has.
#[test]
fn a_repeated_request_changes_no_callback_uri() {
    let (mut world, _) = arrived(&DOWN);
    let callback = world.amf.session_reference(&supi(), 5);
    repeats(&mut world);
    assert_eq!(world.amf.session_reference(&supi(), 5), callback);
    let [repeated] = &updates(&world)[..] else { panic!() };
    assert_eq!(repeated.serving_nf_id, Some(identity().instance_id));
    assert!(repeated.sm_context_status_uri.is_some());
}

#[test]
fn an_smf_that_returns_learns_the_target_amf() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    amfs.notified(id);
    let first = updates(&amfs.target);
    fail(&mut amfs.target, &DOWN);
    repeats(&mut amfs.target);
    let again = updates(&amfs.target);
    let named =
        |body: &SmContextUpdateData| (body.serving_nf_id, body.guami, body.sm_context_status_uri.clone());
    assert_eq!(named(&again[0]), named(&first[0]));
    assert!(again[0].serving_nf_id.is_some());
}

/// The target gNB has released the resources of the session: the SMF has no path to switch.
#[test]
fn an_smf_learns_the_target_amf_also_of_a_session_without_resources() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    amfs.notified(id);
    let first = updates(&amfs.target);
    fail(&mut amfs.target, &DOWN);
    let notify = PduSessionResourceNotify {
        amf_ue_ngap_id: id,
        ran_ue_ngap_id: AT_TARGET,
        notified: None,
        released: Some(transfers(&[5])),
    };
    amfs.target.ngap(OTHER_GNB, "PduSessionResourceNotify", notify.encode());
    for _ in 0..=config().max_retransmissions {
        let [report] = &updates(&amfs.target)[..] else { panic!("{:?}", updates(&amfs.target)) };
        assert_eq!(report.n2_sm_info_type, Some(N2SmInfoType::PduResNtyRel));
        assert_eq!(report.serving_nf_id, first[0].serving_nf_id);
        assert_eq!(report.sm_context_status_uri, first[0].sm_context_status_uri);
        fail(&mut amfs.target, &DOWN);
    }
    amfs.target.expire(Timer::HandoverCompletion);
    assert!(updates(&amfs.target).is_empty(), "{:?}", updates(&amfs.target));
    amfs.target.input(Input::N2(N2Input::GnbDown { gnb: OTHER_GNB }));
    let [next] = &updates(&amfs.target)[..] else { panic!("{:?}", updates(&amfs.target)) };
    assert!(next.serving_nf_id.is_some() && next.sm_context_status_uri.is_some());
    assert_eq!(next.up_cnx_state, Some(UpCnxState::Deactivated));
}

/// The session goes on without a user plane, until the UE requests service.
#[test]
fn a_session_whose_smf_stays_away_loses_its_user_plane_only() {
    for (cause, repetitions, wait) in [(DOWN, 4, 15), (Cause::TimedOutRequest, 2, 5)] {
        let (mut world, mut phone) = arrived(&cause);
        let began = world.now;
        for _ in 1..repetitions {
            repeats(&mut world);
            fail(&mut world, &cause);
            assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
        }
        repeats(&mut world);
        fail(&mut world, &cause);
        assert_eq!(world.now.since(began), Duration::from_secs(wait));
        let release = take_message!(world, OTHER_GNB, PduSessionResourceReleaseCommand);
        assert_eq!(release.sessions[0].pdu_session_id, 5);
        release_response(&mut world, &phone);
        let deactivated = Some(UpCnxState::Deactivated);
        assert_eq!(
            updates(&world).iter().map(|body| body.up_cnx_state.clone()).collect::<Vec<_>>(),
            [deactivated]
        );
        answer(&mut world, None);
        assert_over(&mut world, 1);
        phone.release(&mut world);
        let mut request = phone.service_request(ServiceType::Data);
        request.uplink_data_status = Some([5].into_iter().collect());
        let nas = phone.initial_nas(request);
        phone.connect(&mut world, nas);
        assert_eq!(updates(&world).last().unwrap().up_cnx_state, Some(UpCnxState::Activating));
    }
}

/// It has got neither COMPLETED nor what followed: it would refuse requests that do not name the AMF.
#[test]
fn an_smf_that_stays_away_learns_the_target_amf_with_the_next_request() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    amfs.notified(id);
    fail(&mut amfs.target, &DOWN);
    for _ in 0..4 {
        repeats(&mut amfs.target);
        fail(&mut amfs.target, &DOWN);
    }
    for _ in 0..=config().max_retransmissions {
        fail(&mut amfs.target, &DOWN);
    }
    assert!(updates(&amfs.target).is_empty());
    amfs.target.input(Input::N2(N2Input::GnbDown { gnb: OTHER_GNB }));
    let [next] = &updates(&amfs.target)[..] else { panic!("{:?}", updates(&amfs.target)) };
    assert!(next.serving_nf_id.is_some() && next.sm_context_status_uri.is_some());
    assert_eq!(next.up_cnx_state, Some(UpCnxState::Deactivated));
}

/// The SMF has the session no longer.
#[test]
fn a_session_that_is_not_found_is_not_switched() {
    let (mut world, _) = arrived(&DOWN);
    repeats(&mut world);
    fail(&mut world, &Cause::ContextNotFound);
    let _ = take_message!(world, OTHER_GNB, PduSessionResourceReleaseCommand);
    assert_over(&mut world, 0);
}

#[test]
fn a_session_that_ends_meanwhile_is_not_switched() {
    let (mut world, _) = arrived(&DOWN);
    status_notify(&mut world, 5).unwrap();
    let _ = take_message!(world, OTHER_GNB, PduSessionResourceReleaseCommand);
    assert_over(&mut world, 0);
}

/// The source gNB has reported an error about the UPF's packets: the SMF has the session set up again (TS 23.527 5.3.2.1).
#[test]
fn a_session_that_is_set_up_meanwhile_is_not_switched() {
    let (mut world, phone) = arrived(&DOWN);
    world.request(transfer(5, None, Some((NgapIe::PduResSetupReq, b"setup")))).unwrap();
    let _ = take_message!(world, OTHER_GNB, PduSessionResourceReleaseCommand);
    release_response(&mut world, &phone);
    let _ = take_message!(world, OTHER_GNB, PduSessionResourceSetupRequest);
    world.expire(Timer::HandoverCompletion);
    assert!(states(&world).iter().all(Option::is_none), "{:?}", updates(&world));
    assert_over(&mut world, 1);
}

#[test]
fn a_phone_that_leaves_meanwhile_has_its_session_deactivated() {
    let (mut world, mut phone) = arrived(&DOWN);
    phone.release(&mut world);
    let [deactivation] = &updates(&world)[..] else { panic!("{:?}", updates(&world)) };
    assert_eq!(
        (deactivation.up_cnx_state.clone(), &deactivation.ho_state),
        (Some(UpCnxState::Deactivated), &None)
    );
    assert_eq!(deactivation.serving_nf_id, Some(identity().instance_id), "it may not know this AMF");
    assert!(!world.running().contains(&Timer::HandoverCompletion));
    answer(&mut world, None);
    let audit = world.amf.audit();
    assert_eq!((audit.connected, audit.in_procedure, audit.sessions), (0, 0, 1));
}

/// The request to switch the path has been repeated.
#[test]
fn the_deactivation_after_that_is_repeated_as_any_other() {
    let (mut world, mut phone) = arrived(&Cause::TimedOutRequest);
    repeats(&mut world);
    fail(&mut world, &Cause::TimedOutRequest);
    phone.release(&mut world);
    for _ in 0..=config().max_retransmissions {
        assert_eq!(updates(&world).len(), 1, "{:?}", updates(&world));
        fail(&mut world, &DOWN);
    }
    assert!(updates(&world).is_empty(), "{:?}", updates(&world));
}

/// It has no 5G-GUTI of the target AMF yet.
#[test]
fn an_inactive_phone_gets_a_5g_guti_meanwhile() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    amfs.notified(id);
    fail(&mut amfs.target, &DOWN);
    let Amfs { mut target, mut phone, .. } = amfs;
    request_release(&mut target, &phone, CauseRadioNetwork::user_inactivity);
    phone.take_guti(&mut target);
    phone.send(&mut target, ConfigurationUpdateComplete::new());
    phone.released(&mut target);
    let audit = target.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.tmsis), (1, 0, 1));
}

/// Before the repetition, the request counts as one that is not answered.
#[test]
fn a_process_that_ends_meanwhile_has_the_session_deactivated() {
    let (mut world, _) = arrived(&DOWN);
    let mut stored = Stored::default();
    world.amf.store_all_contexts();
    stored.store(&mut world.amf, StoreScope::Changed);
    take_over(&mut world, &stored, Tracking::default(), Fate::GoesOn);
    let [deactivation] = &updates(&world)[..] else { panic!("{:?}", updates(&world)) };
    assert_eq!(deactivation.up_cnx_state, Some(UpCnxState::Deactivated));
    assert_eq!(deactivation.serving_nf_id, Some(identity().instance_id));
    assert!(!world.running().contains(&Timer::HandoverCompletion));
    assert_eq!(world.amf.audit().sessions, 1);
}
