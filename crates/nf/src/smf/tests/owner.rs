//! The NFs whose requests for a session are accepted, and the callbacks that are: TS 33.501 13.1, TS 23.502 4.2.2.2.2 step 17.

use super::world::*;
use crate::kit::{Caller, Nf, Tag};
use crate::testing::{client, instance, root};
use pith_sbi::namf_communication::{
    N1N2MessageTransferCause, N1N2MsgTxfrFailureNotification, N1N2TransferFailureNotification,
};
use pith_sbi::npcf_smpolicycontrol::{SmPolicyNotification, SmPolicyUpdateNotify};
use pith_sbi::nsmf_pdusession::{
    HoState, N2SmInfoType, ReleaseSmContext, SmContextReleaseData, SmContextUpdateData, UpCnxState,
    UpdateSmContext,
};
use pith_sbi::nudm_uecm::{DeregistrationData, DeregistrationNotification, DeregistrationReason};
use pith_sbi::{NfType, Request, Uri};

fn established() -> World {
    let mut world = World::new();
    world.bench.caller = client(2);
    world.establish();
    world.gnb_answers();
    world
}

fn release(world: &World) -> ReleaseSmContext {
    ReleaseSmContext { sm_context_ref: world.reference.clone(), body: SmContextReleaseData::default() }
}

#[test]
fn the_amf_that_created_a_session_owns_it_until_another_amf_serves_the_ue() {
    let mut world = established();
    world.bench.caller = client(3);
    let mut body = SmContextUpdateData::default();
    body.up_cnx_state = Some(UpCnxState::Deactivated);
    let update = UpdateSmContext { sm_context_ref: world.reference.clone(), body };
    assert_eq!(world.bench.request(update).problem().status, 403);
    let end = release(&world);
    assert_eq!(world.bench.request(end.clone()).problem().status, 403);
    assert_eq!(world.bench.nf.audit().contexts, 1);

    // The UE has moved: the new AMF sends its id, and requests of the former one are refused.
    world.update(|data| data.serving_nf_id = Some(instance(3)));
    world.bench.caller = client(2);
    assert_eq!(world.bench.request(end).problem().status, 403);
    world.bench.caller = client(3);
    world.release_by_amf();
    assert_eq!(world.bench.nf.audit().contexts, 0);
}

/// The former AMF is in the SMF's process, and has not got the report of the new one.
#[test]
fn the_amf_of_the_smfs_process_does_not_release_a_session_of_another_amf() {
    let mut world = World::new();
    world.establish();
    world.gnb_answers();
    world.update(|data| data.serving_nf_id = Some(instance(3)));
    world.release_by_amf();
    assert_eq!(world.bench.nf.audit().contexts, 0, "it has named itself, but is the same process");

    let mut world = established();
    world.bench.caller = Caller::Local { nf: Nf::Amf, tag: Tag::new(1, 1) };
    let end = release(&world);
    assert_eq!(world.bench.request(end).problem().status, 403);
    assert_eq!(world.bench.nf.audit().contexts, 1);
}

/// It may name itself with any request: messages for the UE go to it from then on.
#[test]
fn an_amf_that_names_itself_with_another_request_gets_the_messages() {
    for state in [UpCnxState::Deactivated, UpCnxState::Activating] {
        let mut world = established();
        world.bench.caller = client(3);
        world.update(|data| {
            data.serving_nf_id = Some(instance(3));
            data.sm_context_status_uri =
                Some(Uri::callback(&root("amf3"), &NfType::Amf, "sm-context-status", "1"));
            data.up_cnx_state = Some(state.clone());
        });
        let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
        assert_eq!((session.amf.instance, &session.amf.root), (instance(3), &root("amf3")), "{state:?}");
        assert_eq!(session.amf.status_uri.root, root("amf3"));
    }
}

/// TS 29.502 5.2.2.3.4.2 to 5.2.2.3.4.5: the target AMF has only the reference of the SM context. It names itself, and may do no more than
/// prepare the handover until the UE has arrived.
#[test]
fn the_target_amf_of_a_handover_owns_the_session_when_the_ue_has_arrived() {
    let mut world = established();
    let reference = world.reference.clone();
    let update = |change: &dyn Fn(&mut SmContextUpdateData)| {
        let mut body = SmContextUpdateData::default();
        change(&mut body);
        UpdateSmContext { sm_context_ref: reference.clone(), body }
    };
    let preparing = |target| {
        update(&move |data| {
            data.ho_state = Some(HoState::Preparing);
            data.target_serving_nf_id = target;
            data.n2_sm_info_type = Some(N2SmInfoType::HandoverRequired);
        })
    };
    let deactivate = update(&|data| data.up_cnx_state = Some(UpCnxState::Deactivated));
    let end = release(&world);
    let completed = |callback: &str| {
        let uri = Uri::callback(&root("amf3"), &NfType::Amf, "sm-context-status", callback);
        update(&move |data| {
            data.ho_state = Some(HoState::Completed);
            data.serving_nf_id = Some(instance(3));
            data.sm_context_status_uri = Some(uri.clone());
        })
    };
    let status = |world: &mut World, request: Request| world.bench.request(request).problem().status;
    world.bench.caller = client(3);
    assert_eq!(status(&mut world, preparing(None).into()), 403, "it does not name itself");
    assert_eq!(status(&mut world, completed("1").into()), 403, "it has prepared nothing");
    let seen = world.bench.request(preparing(Some(instance(3))));
    world.follow(seen);
    assert!(matches!(world.answers.last(), Some(Ok(_))), "{:?}", world.answers.last());
    for refused in [Request::from(deactivate), end.clone().into()] {
        assert_eq!(status(&mut world, refused), 403, "the session is the source AMF's");
    }
    world.bench.caller = client(4);
    assert_eq!(status(&mut world, update(&|data| data.ho_state = Some(HoState::Prepared)).into()), 403);
    world.bench.caller = client(3);
    super::handover::prepared(&mut world);
    assert!(matches!(world.answers.last(), Some(Ok(_))), "{:?}", world.answers.last());
    let seen = world.bench.request(completed("1"));
    world.follow(seen);
    assert!(matches!(world.answers.last(), Some(Ok(_))), "{:?}", world.answers.last());
    world.bench.caller = client(2);
    assert_eq!(status(&mut world, end.into()), 403, "the session is the target AMF's");
    world.bench.caller = client(3);
    world.release_by_amf();
    assert_eq!(world.bench.nf.audit().contexts, 0);
}

/// Another AMF has prepared a handover.
pub(super) fn prepared_by_another_amf() -> World {
    let mut world = established();
    world.bench.caller = client(3);
    world.update(|data| {
        data.ho_state = Some(HoState::Preparing);
        data.target_serving_nf_id = Some(instance(3));
    });
    super::handover::prepared(&mut world);
    world
}

/// TS 23.502 4.9.1.3.3 step 7.
#[test]
fn only_the_amf_that_prepared_a_handover_completes_it() {
    let mut world = prepared_by_another_amf();
    for (other, named) in [(2, None), (2, Some(2)), (4, Some(4))] {
        world.bench.caller = client(other);
        let mut body = SmContextUpdateData::default();
        (body.ho_state, body.serving_nf_id) = (Some(HoState::Completed), named.map(instance));
        let request = UpdateSmContext { sm_context_ref: world.reference.clone(), body };
        assert_eq!(world.bench.request(request).problem().status, 403, "{other}");
    }
    world.bench.caller = client(3);
    world.update(|data| (data.ho_state, data.serving_nf_id) = (Some(HoState::Completed), Some(instance(3))));
    assert!(matches!(world.answers.last(), Some(Ok(_))), "{:?}", world.answers.last());
    world.release_by_amf();
    assert_eq!(world.bench.nf.audit().contexts, 0);
}

/// The handover does not take place: what the target AMF sends afterwards is refused.
#[test]
fn a_target_amf_whose_handover_is_cancelled_has_no_part_in_the_session() {
    for by_source in [true, false] {
        let mut world = established();
        world.bench.caller = client(3);
        world.update(|data| {
            data.ho_state = Some(HoState::Preparing);
            data.target_serving_nf_id = Some(instance(3));
        });
        world.bench.caller = client(if by_source { 2 } else { 3 });
        super::handover::cancelled(&mut world);
        world.bench.caller = client(3);
        let mut body = SmContextUpdateData::default();
        (body.ho_state, body.serving_nf_id) = (Some(HoState::Completed), Some(instance(3)));
        let request = UpdateSmContext { sm_context_ref: world.reference.clone(), body };
        assert_eq!(world.bench.request(request).problem().status, 403);
        world.bench.caller = client(2);
        world.release_by_amf();
    }
}

/// TS 29.502 5.2.2.5: the AMF is notified if its session ends because another AMF requests one with the same identity.
#[test]
fn an_amf_is_notified_if_another_one_replaces_its_session() {
    let mut world = established();
    world.ladder.clear();
    world.bench.caller = client(3);
    world.establish();
    let notifications =
        |world: &World| world.ladder.iter().filter(|line| line.contains("SmContextStatusNotify")).count();
    assert_eq!(notifications(&world), 1, "{:?}", world.ladder);
    world.gnb_answers();
    world.ladder.clear();
    world.establish();
    assert_eq!(notifications(&world), 0, "the same AMF requested it: {:?}", world.ladder);
}

#[test]
fn references_cannot_be_guessed() {
    let mut world = established();
    let known = world.reference.clone();
    let last = if known.ends_with('0') { "1" } else { "0" };
    let other_mac = format!("{}{last}", &known[..known.len() - 1]);
    for guess in ["0", "0.0", "0.0000000000000000", &other_mac] {
        let uri = |name| Uri::callback(&root("smf"), &NfType::Smf, name, guess);
        let failure = N1N2MsgTxfrFailureNotification::new(
            N1N2MessageTransferCause::UeNotResponding,
            uri("n1-n2-failure"),
        );
        let ended = DeregistrationData::new(DeregistrationReason::SubscriptionWithdrawn);
        let requests: [Request; 4] = [
            ReleaseSmContext { sm_context_ref: guess.into(), body: SmContextReleaseData::default() }.into(),
            SmPolicyUpdateNotify { uri: uri("sm-policy"), body: SmPolicyNotification::default() }.into(),
            N1N2TransferFailureNotification { uri: uri("n1-n2-failure"), body: failure }.into(),
            DeregistrationNotification { uri: uri("dereg-notify"), body: ended }.into(),
        ];
        for request in requests {
            let seen = world.bench.request(request);
            assert_eq!(seen.problem().status, 404, "{guess}: {seen:?}");
        }
    }
    assert_eq!(world.bench.nf.audit().contexts, 1);
}
