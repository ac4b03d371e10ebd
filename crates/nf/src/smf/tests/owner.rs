//! The NFs whose requests for a session are accepted, and the callbacks that are: TS 33.501 13.1, TS 23.502 4.2.2.2.2 step 17.

use super::world::*;
use crate::testing::{client, instance, root};
use pith_sbi::namf_communication::{
    N1N2MessageTransferCause, N1N2MsgTxfrFailureNotification, N1N2TransferFailureNotification,
};
use pith_sbi::npcf_smpolicycontrol::{SmPolicyNotification, SmPolicyUpdateNotify};
use pith_sbi::nsmf_pdusession::{
    ReleaseSmContext, SmContextReleaseData, SmContextUpdateData, UpCnxState, UpdateSmContext,
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
