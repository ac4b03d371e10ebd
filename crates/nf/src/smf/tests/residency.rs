//! Sessions that outlive the process (TS 23.527 4.3.2).

use super::super::procedure::State;
use super::super::{Smf, SmfConfig};
use super::world::*;
use crate::kit::{Instant, Level, NetworkFunction, Outbox, Rng, StoreScope, Timer, Tracking};
use crate::testing::{self, Bench, Stored};
use pith_nas::GsmCause;
use pith_nas::gsm::{GsmBody, PduSessionReleaseComplete};
use pith_pfcp::Message;
use pith_pfcp::ie::{ApplyAction, Cause as N4Cause, FTeid, PfcpSeReqFlags};
use pith_sbi::Operation;
use pith_sbi::nsmf_pdusession::UpCnxState;

pub(super) fn tracked(mut world: World) -> World {
    world.bench.nf.track_contexts(Tracking::default());
    world
}

pub(super) fn stored(world: &mut World) -> Stored {
    let mut stored = Stored::default();
    stored.store(&mut world.bench.nf, StoreScope::Changed);
    stored
}

/// The next process, whose SMF has no UPFs yet.
pub(super) fn restarted(world: &World, stored: &Stored, config: SmfConfig) -> World {
    let mut next = World::with(config.clone(), &[]);
    let mut smf = Smf::new(testing::identity(), config, Rng::from_number(2));
    smf.track_contexts(Tracking::default());
    stored.restore(world.bench.now, &mut smf, false);
    next.bench = Bench::new(smf);
    next.reference.clone_from(&world.reference);
    let mut out = Outbox::new(Level::Debug);
    next.bench.nf.resume_contexts(world.bench.now, &mut out);
    let seen = next.bench.take(out);
    next.follow(seen);
    next
}

pub(super) fn established() -> (World, Stored) {
    let mut world = tracked(World::new());
    world.establish();
    world.gnb_answers();
    let stored = stored(&mut world);
    assert_eq!(stored.writes, 1);
    (world, stored)
}

pub(super) fn establishment(world: &World) -> pith_pfcp::message::SessionEstablishmentRequest {
    let Some(Message::SessionEstablishmentRequest(request)) = world.n4.last() else { panic!() };
    request.clone()
}

#[test]
fn a_session_is_established_again_with_its_address_and_f_teid() {
    let (world, stored) = established();
    let before = world.user_plane().unwrap().anchor;
    let address = world.bench.nf.sessions.iter().next().unwrap().1.address;
    let mut next = restarted(&world, &stored, config());
    assert_eq!(next.take_ladder(), "", "it waits for its UPF");
    assert_eq!(next.bench.nf.audit().addresses, 1);
    next.associate(UPF, "upf");
    assert_eq!(next.take_ladder(), "upf <- SessionEstablishmentRequest");
    let request = establishment(&next);
    assert_eq!(request.pfcp_se_req_flags, Some(PfcpSeReqFlags::RESTI));
    let f_teid = request.create_pdrs[0].pdi.local_f_teid;
    assert_eq!(f_teid, Some(FTeid::new(before.tunnel.teid.0, before.tunnel.address)));
    // The AMF is another process, which did not end: the gNB has its tunnel.
    assert_eq!(request.create_fars[1].apply_action, ApplyAction::FORW);
    let (_, session) = next.bench.nf.sessions.iter().next().unwrap();
    assert!(matches!(session.state(), State::Established(_)), "{}", session.state().name());
    assert_eq!(
        (session.address, session.state().user_plane().unwrap().anchor.tunnel),
        (address, before.tunnel)
    );
    next.deactivate();
    assert_eq!(next.take_ladder(), "upf <- SessionModificationRequest\namf <- 200");
    next.release_by_amf();
    assert_eq!(next.bench.nf.audit(), Default::default());
}

#[test]
fn a_session_that_is_restored_while_the_smf_serves_keeps_its_address() {
    let (world, stored) = established();
    let address = world.bench.nf.sessions.iter().next().unwrap().1.address;
    let id = *stored.documents.keys().next().unwrap();
    let mut smf = Smf::new(testing::identity(), config(), Rng::from_number(2));
    smf.track_contexts(Tracking::default());
    smf.begin_restoring(&[id.block].into());
    let mut next = World::with(config(), &[]);
    next.bench = Bench::new(smf);
    let resume = |next: &mut World, what: fn(&mut Smf, Instant, &mut Outbox)| {
        let mut out = Outbox::new(Level::Debug);
        what(&mut next.bench.nf, next.bench.now, &mut out);
        let seen = next.bench.take(out);
        next.follow(seen);
    };
    resume(&mut next, |smf, now, out| smf.resume_contexts(now, out));
    next.associate(UPF, "upf");
    assert_eq!(next.take_ladder(), "");
    stored.restore(next.bench.now, &mut next.bench.nf, false);
    resume(&mut next, |smf, now, out| smf.resume_restored(now, true, out));
    assert_eq!(next.take_ladder(), "upf <- SessionEstablishmentRequest", "its UPF is associated");
    next.bench.nf.note_restored(id.block);
    resume(&mut next, |smf, now, out| smf.finish_restoring(now, out));
    assert_eq!(next.bench.nf.sessions.iter().next().unwrap().1.address, address);
    assert_eq!(next.bench.nf.audit().addresses, 1);
    let (network, prefix) = config().data_networks[0].pool;
    let next_address = next.bench.nf.shared.pools.allocate((network.into(), prefix));
    assert_ne!(next_address, address.v4.map(std::net::IpAddr::V4), "it is not allocated again");
}

#[test]
fn a_upf_that_refuses_the_former_f_teid_allocates_another() {
    let (world, stored) = established();
    let mut next = restarted(&world, &stored, config());
    next.upf = None;
    next.associate(UPF, "upf");
    let (tag, upf, message) = next.open_n4.remove(0);
    next.upf = Some(Ok(N4Cause::RequestAccepted));
    next.upf_answers(tag, upf, &message, Ok(N4Cause::PfcpSessionRestorationFailure));
    let request = establishment(&next);
    assert_eq!(request.pfcp_se_req_flags, None);
    assert!(matches!(request.create_pdrs[0].pdi.local_f_teid, Some(FTeid::Choose { .. })));
    assert_eq!(request.create_fars[1].apply_action, ApplyAction::BUFF | ApplyAction::NOCP);
    assert!(next.user_plane().unwrap().gnb.is_none(), "the gNB has the former endpoint");
}

#[test]
fn a_session_that_the_upf_refuses_ends() {
    let (world, stored) = established();
    let mut next = restarted(&world, &stored, config());
    next.upf = Some(Ok(N4Cause::NoResourcesAvailable));
    next.associate(UPF, "upf");
    assert!(next.take_ladder().ends_with("amf <- N1N2MessageTransfer"), "the gNB may have its resources");
    next.uplink(PduSessionReleaseComplete::new());
    assert!(next.take_ladder().contains("amf <- SmContextStatusNotify"));
    assert_eq!(next.bench.nf.audit(), Default::default());
}

#[test]
fn an_activation_before_the_upf_is_associated_is_refused_and_the_session_stays() {
    let (world, stored) = established();
    let mut next = restarted(&world, &stored, config());
    next.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    assert_eq!(next.take_ladder(), "amf <- 504");
    next.associate(UPF, "upf");
    next.take_ladder();
    next.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    assert_eq!(next.take_ladder(), "amf <- 200");
}

#[test]
fn an_activation_while_the_session_is_restored_is_answered_afterwards() {
    let (world, stored) = established();
    let mut next = restarted(&world, &stored, config());
    next.upf = None;
    next.associate(UPF, "upf");
    next.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    assert_eq!(next.take_ladder(), "upf <- SessionEstablishmentRequest");
    let (tag, upf, message) = next.open_n4.remove(0);
    next.upf_answers(tag, upf, &message, Ok(N4Cause::RequestAccepted));
    assert_eq!(next.take_ladder(), "amf <- 200");
}

#[test]
fn a_session_that_was_being_set_up_or_released_ends() {
    let mut world = tracked(World::new());
    world.upf = None;
    world.establish();
    let stored = stored(&mut world);
    assert_eq!(stored.writes, 1, "it has a policy association");
    let next = restarted(&world, &stored, config());
    let ladder = next.ladder.join("\n");
    assert!(
        ladder.contains("pcf <- DeleteSmPolicy") && ladder.contains("amf <- SmContextStatusNotify"),
        "{ladder}"
    );
    assert_eq!(next.bench.nf.audit(), Default::default());
}

/// No PDU SESSION ESTABLISHMENT ACCEPT was sent, and none would be sent any longer: the UE may take the accept of an earlier request for that of this
/// one, and would keep the former session's address.
#[test]
fn a_session_that_was_being_set_up_at_its_second_upf_ends() {
    for waits_for in [EDGE, UPF] {
        let config = super::upfs::breakout();
        let mut world = tracked(World::with(config.clone(), &["upf", "edge"]));
        world.silent.insert(EDGE);
        world.establish();
        if waits_for == UPF {
            let (tag, upf, message) = world.open_n4.remove(0);
            world.silent.insert(UPF);
            world.upf_answers(tag, upf, &message, Ok(N4Cause::RequestAccepted));
        }
        let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
        let is_expected = match session.state() {
            State::AwaitingFrontEstablishment(_) => waits_for == EDGE,
            state => waits_for == UPF && matches!(state, State::AwaitingN9Modification(_)),
        };
        assert!(is_expected, "{}", session.state().name());
        let stored = stored(&mut world);
        let mut next = restarted(&world, &stored, config);
        let ladder = next.take_ladder();
        assert!(ladder.contains("amf <- SmContextStatusNotify"), "{ladder}");
        next.associate(UPF, "upf");
        next.associate(EDGE, "edge");
        let ladder = next.take_ladder();
        assert!(!ladder.contains("SessionEstablishmentRequest"), "{ladder}");
        assert_eq!(next.bench.nf.audit(), Default::default());
    }
}

/// Its UPF was removed from the configuration, or renamed: nothing would forward its packets.
#[test]
fn a_session_whose_upf_is_not_configured_is_released_and_its_ue_establishes_it_again() {
    let (world, stored) = established();
    let named = |name: &str| SmfConfig { peers: Some(vec![name.to_owned()]), ..config() };
    assert_eq!(restarted(&world, &stored, named("upf")).take_ladder(), "", "its UPF is awaited");
    let mut next = restarted(&world, &stored, named("upf9"));
    assert_eq!(next.take_ladder(), "amf <- N1N2MessageTransfer");
    let GsmBody::PduSessionReleaseCommand(command) = &next.n1.last().unwrap().body else { panic!() };
    assert_eq!(command.cause, GsmCause::ReactivationRequested);
    next.uplink(PduSessionReleaseComplete::new());
    assert_eq!(next.bench.nf.audit(), Default::default());
}

/// Its pool is another data network's now: packet filters and routes of that one would apply to it.
#[test]
fn a_session_whose_address_is_in_the_pool_of_another_data_network_is_released() {
    let (world, stored) = established();
    let mut other = config();
    let mut second = other.data_networks[0].clone();
    second.dnn = "other".parse().unwrap();
    other.data_networks[0].pool.0 = "10.99.0.0".parse().unwrap();
    other.data_networks.push(second);
    let mut next = restarted(&world, &stored, other);
    assert_eq!(next.take_ladder(), "amf <- N1N2MessageTransfer");
    assert_eq!(next.bench.nf.audit().addresses, 0);
    next.uplink(PduSessionReleaseComplete::new());
    assert_eq!(next.bench.nf.audit(), Default::default());
}

/// The pool of its address was removed from the configuration: the UE could not be reached.
#[test]
fn a_session_whose_address_is_in_no_pool_is_released_and_its_ue_establishes_it_again() {
    let (world, stored) = established();
    let mut other = config();
    other.data_networks[0].pool.0 = "10.99.0.0".parse().unwrap();
    let mut next = restarted(&world, &stored, other);
    assert_eq!(next.take_ladder(), "amf <- N1N2MessageTransfer");
    let GsmBody::PduSessionReleaseCommand(command) = &next.n1.last().unwrap().body else { panic!() };
    assert_eq!(command.cause, GsmCause::ReactivationRequested);
    assert_eq!(next.bench.nf.audit().addresses, 0);
    next.uplink(PduSessionReleaseComplete::new());
    let ladder = next.take_ladder();
    assert!(
        ladder.contains("pcf <- DeleteSmPolicy") && ladder.contains("amf <- SmContextStatusNotify"),
        "{ladder}"
    );
    assert_eq!(next.bench.nf.audit(), Default::default());
    // Established again, it has an address of the pool.
    next.associate(UPF, "upf");
    next.establish();
    assert_eq!(next.bench.nf.audit().addresses, 1);
}

#[test]
fn a_session_without_resources_is_not_stored() {
    let mut world = tracked(World::new());
    world.script.insert(Operation::GetSmData, None);
    world.establish();
    assert_eq!(stored(&mut world).writes, 0);
}

/// The document of the state before may be lost, too.
#[test]
fn after_a_loss_of_the_store_a_session_that_waits_for_its_upf_is_stored() {
    let (mut world, mut stored) = established();
    world.silent.insert(UPF);
    world.deactivate();
    stored.store(&mut world.bench.nf, StoreScope::Changed);
    assert_eq!(stored.writes, 1, "the UPF has not answered");
    world.bench.nf.store_all_contexts();
    stored.store(&mut world.bench.nf, StoreScope::Changed);
    assert_eq!(stored.writes, 2);
}

#[test]
fn the_end_of_a_session_deletes_its_document() {
    let (mut world, mut stored) = established();
    world.release_by_amf();
    stored.store(&mut world.bench.nf, StoreScope::Required);
    assert!(stored.documents.is_empty());
}

#[test]
fn a_session_gets_its_front_upf_again() {
    let mut world = tracked(World::with(super::branching::plain(), &["upf", "edge"]));
    world.establish();
    world.gnb_answers();
    assert_eq!(world.branch("edge"), None);
    world.gnb_modifies(true);
    world.deactivate();
    let stored = stored(&mut world);
    let mut next = restarted(&world, &stored, super::branching::plain());
    next.associate(EDGE, "edge");
    assert_eq!(next.take_ladder(), "", "the anchor is not associated");
    next.associate(UPF, "upf");
    assert_eq!(
        next.take_ladder(),
        "\
upf <- SessionEstablishmentRequest
edge <- SessionEstablishmentRequest
upf <- SessionModificationRequest"
    );
    assert_eq!(next.user_plane().unwrap().front.as_ref().unwrap().session.upf, EDGE);
    let of_sessions = next.bench.timers.keys().filter(|key| key.timer == Timer::RestoredContexts).count();
    assert_eq!(of_sessions, 0);
}

/// The SMF was killed in a handover, and knows the former tunnel only. The gNB's uplink endpoint, the classifier's of the former run, is not there
/// any longer.
#[test]
fn a_gnb_that_refuses_the_endpoint_of_a_restored_classifier_gets_its_resources_again() {
    let mut world = tracked(World::with(super::branching::plain(), &["upf", "edge"]));
    world.establish();
    world.gnb_answers();
    assert_eq!(world.branch("edge"), None);
    world.gnb_modifies(true);
    let stored = stored(&mut world);
    let mut next = restarted(&world, &stored, super::branching::plain());
    next.associate(EDGE, "edge");
    next.associate(UPF, "upf");
    next.take_ladder();
    next.gnb_modifies(false);
    assert_eq!(
        next.take_ladder(),
        "\
amf <- 204
edge <- SessionModificationRequest
amf <- N1N2MessageTransfer",
        "downlink packets wait, and the gNB releases its resources"
    );
    let user_plane = next.user_plane().unwrap();
    assert_eq!((user_plane.gnb, user_plane.front.is_some()), (None, true));
}

/// The anchor waits for the classifier, which has restarted, too: it was established without an endpoint for downlink packets.
#[test]
fn an_anchor_whose_classifier_is_not_restored_sends_to_the_gnb() {
    let mut world = tracked(World::with(super::branching::plain(), &["upf", "edge"]));
    world.establish();
    world.gnb_answers();
    assert_eq!(world.branch("edge"), None);
    world.gnb_modifies(true);
    let stored = stored(&mut world);
    let mut next = restarted(&world, &stored, super::branching::plain());
    next.refusing.insert(EDGE, Ok(N4Cause::NoResourcesAvailable));
    next.associate(EDGE, "edge");
    next.associate(UPF, "upf");
    assert_eq!(
        next.take_ladder(),
        "\
upf <- SessionEstablishmentRequest
edge <- SessionEstablishmentRequest
upf <- SessionModificationRequest
amf <- N1N2MessageTransfer",
        "the gNB gets the anchor's endpoint"
    );
    assert_eq!(super::upfs::downlink_to(&next), GNB_TUNNEL);
    assert!(next.user_plane().unwrap().front.is_none());
}

/// The gNB of a lost association has no UE any longer; the AMF answers its NG Setup when the SMF has answered.
#[test]
fn a_deactivation_is_answered_when_no_upf_sends_to_the_gnb_any_longer() {
    let (world, stored) = established();
    let mut next = restarted(&world, &stored, config());
    next.update(|data| data.up_cnx_state = Some(UpCnxState::Deactivated));
    assert_eq!(next.take_ladder(), "", "a UPF that outlives the SMF may still send to the gNB");
    next.associate(UPF, "upf");
    let ladder = next.take_ladder();
    assert!(ladder.starts_with("upf <- SessionEstablishmentRequest\n"), "{ladder}");
    assert!(ladder.ends_with("\namf <- 200"), "{ladder}");
    assert_eq!(establishment_of(&next).create_fars[1].apply_action, ApplyAction::BUFF | ApplyAction::NOCP);
}

fn establishment_of(world: &World) -> pith_pfcp::message::SessionEstablishmentRequest {
    let mut requests = world.n4.iter().filter_map(|message| match message {
        Message::SessionEstablishmentRequest(request) => Some(request.clone()),
        _ => None,
    });
    requests.next_back().expect("a session is established again")
}
