//! Changed session management subscription data (TS 23.502 4.3.3.2 step 1b).

use super::super::SmfConfig;
use super::policy::{enforced, notify, rule};
use super::residency::{restarted, stored, tracked};
use super::world::*;
use crate::kit::{Duration, Timer};
use crate::testing::{ambr, instance, plmn, root};
use pith_nas::gsm::{
    PduSessionModificationCommandReject, PduSessionModificationComplete, PduSessionReleaseComplete,
};
use pith_nas::{GsmBody, GsmCause};
use pith_ngap::transfer::ModifyRequestTransfer;
use pith_sbi::common::{Arp, DateTime, SubscribedDefaultQos};
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::npcf_smpolicycontrol::{
    PolicyControlRequestTrigger, SessionRule, SmPolicyDecision, SmPolicyUpdateContextData,
};
use pith_sbi::nsmf_pdusession::UpCnxState;
use pith_sbi::nudm_sdm::{DnnConfiguration, ModificationNotification, SdmChangeNotification, SmSubsData};
use pith_sbi::nudm_uecm::SmfRegistration;
use pith_sbi::{Cause, NfType, Operation, Problem, Request, Response, Uri};
use pith_types::Snssai;

/// The UDM has these data.
pub(super) fn provision(world: &mut World, change: impl FnOnce(&mut DnnConfiguration)) {
    let SmSubsData::Individual(mut slices) = subscription() else { panic!() };
    change(slices[0].dnn_configurations.get_mut("internet").unwrap());
    let data = SmSubsData::Individual(slices);
    world.script.insert(Operation::GetSmData, Some(Ok(Response::SmData(Box::new(data)))));
}

/// The PCF authorises that rate.
fn authorise(world: &mut World, mbps: u64) {
    let mut decision = SmPolicyDecision::default();
    let mut rule = SessionRule::new("default");
    rule.auth_sess_ambr = Some(ambr(mbps));
    decision.sess_rules.insert("default".into(), Some(rule));
    let decision = Response::SmPolicyDecision(Box::new(decision));
    world.script.insert(Operation::UpdateSmPolicy, Some(Ok(decision)));
}

/// The subscription has that session-AMBR, which the PCF authorises.
fn subscribe(world: &mut World, mbps: u64) {
    provision(world, |configuration| configuration.session_ambr = Some(ambr(mbps)));
    authorise(world, mbps);
}

/// The subscription no longer has the data network.
fn unsubscribe(world: &mut World) {
    world.script.insert(Operation::GetSmData, problem(Cause::DataNotFound));
}

pub(super) fn notified(world: &mut World) {
    let uri = SdmChangeNotification::callback_uri(&root("smf"), &NfType::Smf, &world.reference);
    let seen =
        world.bench.request(SdmChangeNotification { uri, body: ModificationNotification::new(vec![]) });
    world.follow(seen);
}

/// What the session has and knows: authorised and subscribed AMBR in Mbit/s, and whether a change is in progress.
fn known(world: &World) -> (u64, u64, bool) {
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    let mbps = |ambr: pith_types::Ambr| ambr.downlink.bps() / 1_000_000;
    (mbps(session.qos.ambr), mbps(session.subscribed.ambr), session.subscription_change.is_some())
}

const QUESTIONS: &str = "udm <- GetSmData\npcf <- UpdateSmPolicy";
const CHANGE: &str = "upf <- SessionModificationRequest\namf <- N1N2MessageTransfer";

#[test]
fn the_smf_subscribes_to_the_data_of_each_session() {
    let mut world = World::new();
    world.script.insert(Operation::SdmSubscribe, None);
    world.establish();
    let Request::SdmSubscribe(request) = &world.open[0].1 else { panic!() };
    let body = &request.body;
    assert_eq!(&*body.monitored_resource_uris[0].0, "/nudm-sdm/v2/imsi-999700000000001/sm-data");
    assert_eq!((body.implicit_unsubscribe, body.single_nssai), (Some(true), Some(Snssai::of_sst(1))));
    assert_eq!(body.callback_reference.id(), world.reference);
}

#[test]
fn a_changed_session_ambr_reaches_pcf_upf_gnb_and_ue() {
    let mut world = World::established();
    subscribe(&mut world, 80);
    world.script.insert(Operation::UpdateSmPolicy, None);
    notified(&mut world);
    assert_eq!(world.take_ladder(), format!("{QUESTIONS}\namf <- 204"));
    let (tag, Request::UpdateSmPolicy(update)) = world.open.remove(0) else { panic!() };
    let mut expected = SmPolicyUpdateContextData::default();
    expected.rep_policy_ctrl_req_triggers = vec![PolicyControlRequestTrigger::SeAmbrCh];
    expected.subs_sess_ambr = Some(ambr(80));
    assert_eq!(update.body, expected);
    authorise(&mut world, 80);
    let answer = world.script[&Operation::UpdateSmPolicy].clone().unwrap();
    let seen = world.bench.reply(tag, answer);
    world.follow(seen);
    assert_eq!(world.take_ladder(), CHANGE);
    assert_eq!(enforced(&world), 80_000);
    let GsmBody::PduSessionModificationCommand(command) = &world.n1.last().unwrap().body else { panic!() };
    assert_eq!(command.session_ambr, Some(ambr(80)));
    let n2 = world.transfers.last().unwrap().n2_info_container.clone().unwrap().sm_info.unwrap();
    let content = n2.n2_info_content.unwrap();
    assert_eq!(content.ngap_ie_type, Some(NgapIeType::PduResModReq));
    let transfer = ModifyRequestTransfer::decode(&content.ngap_data.content).unwrap();
    assert_eq!(transfer.session_ambr, Some(ambr(80)));
    assert_eq!(known(&world), (80, 80, true));
    world.uplink(PduSessionModificationComplete::new());
    assert_eq!(known(&world), (80, 80, false));
    world.take_ladder();
    notified(&mut world);
    assert_eq!(world.take_ladder(), "udm <- GetSmData\namf <- 204", "nothing is new");
}

/// A session for which the PCF is to authorise other subscribed QoS.
pub(super) fn awaiting_decision() -> World {
    let mut world = World::established();
    subscribe(&mut world, 80);
    world.script.insert(Operation::UpdateSmPolicy, None);
    notified(&mut world);
    world
}

#[test]
fn a_changed_default_qos_is_authorised_too() {
    let mut world = World::established();
    provision(&mut world, |configuration| {
        configuration.five_g_qos_profile = Some(SubscribedDefaultQos::new(7, Arp::of_priority(3)));
    });
    world.script.insert(Operation::UpdateSmPolicy, None);
    notified(&mut world);
    let (_, Request::UpdateSmPolicy(update)) = world.open.remove(0) else { panic!() };
    assert_eq!(update.body.rep_policy_ctrl_req_triggers, [PolicyControlRequestTrigger::DefQosCh]);
    assert_eq!(update.body.subs_def_qos.map(|qos| (qos.five_qi, qos.arp.priority_level)), Some((7, 3)));
    assert_eq!(update.body.subs_sess_ambr, None);
}

#[test]
fn a_pcf_may_authorise_something_else() {
    let mut world = World::established();
    notify(&mut world, rule(30, 9));
    world.uplink(PduSessionModificationComplete::new());
    subscribe(&mut world, 80);
    authorise(&mut world, 30);
    world.take_ladder();
    notified(&mut world);
    assert_eq!(world.take_ladder(), format!("{QUESTIONS}\namf <- 204"));
    assert_eq!(known(&world), (30, 80, false));
}

#[test]
fn what_the_pcf_does_not_answer_is_asked_with_the_next_notification() {
    let mut world = World::established();
    subscribe(&mut world, 80);
    world.script.insert(Operation::UpdateSmPolicy, problem(Cause::TimedOutRequest));
    notified(&mut world);
    assert_eq!(known(&world), (200, 200, true));
    world.script.insert(Operation::GetSmData, problem(Cause::TimedOutRequest));
    notified(&mut world);
    assert_eq!(known(&world), (200, 200, true));
    subscribe(&mut world, 80);
    world.take_ladder();
    notified(&mut world);
    assert_eq!(world.take_ladder(), format!("{QUESTIONS}\n{CHANGE}\namf <- 204"));
    world.uplink(PduSessionModificationComplete::new());
    world.take_ladder();
    world.expire(Timer::Reregistration);
    assert_eq!((world.take_ladder().as_str(), known(&world)), ("", (80, 80, false)));
}

/// The notification has been answered, and comes once: for example the NRF is not reachable when the data are to be requested.
#[test]
fn data_that_are_not_given_are_requested_again_after_some_time() {
    for failing in [Operation::GetSmData, Operation::UpdateSmPolicy] {
        for cause in [Cause::NfDiscoveryFailure, Cause::TimedOutRequest, Cause::NfCongestion] {
            let mut world = World::established();
            subscribe(&mut world, 80);
            let answer = world.script.insert(failing, problem(cause)).unwrap();
            notified(&mut world);
            world.take_ladder();
            world.expire(Timer::Reregistration);
            assert_eq!(known(&world), (200, 200, true), "not yet");
            world.script.insert(failing, answer);
            world.take_ladder();
            world.expire(Timer::Reregistration);
            assert_eq!(world.take_ladder(), format!("{QUESTIONS}\n{CHANGE}"));
            assert_eq!(enforced(&world), 80_000);
        }
    }
}

#[test]
fn an_association_that_the_pcf_does_not_know_authorises_nothing_else() {
    let mut world = World::established();
    subscribe(&mut world, 80);
    world.script.insert(Operation::UpdateSmPolicy, problem(Cause::PolicyAssociationNotFound));
    notified(&mut world);
    assert_eq!((known(&world), enforced(&world)), ((80, 80, true), 80_000));
}

#[test]
fn a_change_during_a_change_is_read_again() {
    let mut world = World::established();
    world.script.insert(Operation::GetSmData, None);
    notified(&mut world);
    notified(&mut world);
    assert_eq!(world.take_ladder(), "udm <- GetSmData\namf <- 204\nudm <- GetSmData\namf <- 204");
    subscribe(&mut world, 80);
    let answer = || Ok(Response::SmData(Box::new(subscription())));
    let (first, second) = (world.open[0].0, world.open[1].0);
    let seen = world.bench.reply(first, answer());
    assert!(seen.is_empty(), "the answer may be older than the second notification");
    let data = world.script[&Operation::GetSmData].clone().unwrap();
    let seen = world.bench.reply(second, data);
    world.follow(seen);
    assert_eq!(enforced(&world), 80_000);
}

/// It is not paged for that.
#[test]
fn an_idle_ue_gets_the_qos_when_its_user_plane_is_active() {
    let mut world = World::established();
    world.deactivate();
    subscribe(&mut world, 80);
    world.take_ladder();
    notified(&mut world);
    assert_eq!(world.take_ladder(), format!("{QUESTIONS}\namf <- 204"));
    assert_eq!(known(&world), (200, 80, true));
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    assert_eq!(world.take_ladder(), "amf <- 200");
    world.gnb_answers();
    let ladder = world.take_ladder();
    assert!(ladder.ends_with(CHANGE), "{ladder}");
    assert_eq!(enforced(&world), 80_000);
    world.uplink(PduSessionModificationComplete::new());
    assert_eq!(known(&world), (80, 80, false));
}

/// The UDM notifies each change twice.
#[test]
fn qos_that_waits_for_the_user_plane_outlives_a_second_notification_and_a_restart() {
    let mut world = tracked(World::established());
    world.deactivate();
    subscribe(&mut world, 80);
    notified(&mut world);
    notified(&mut world);
    assert_eq!(known(&world), (200, 80, true));
    world.script.insert(Operation::GetSmData, problem(Cause::TimedOutRequest));
    notified(&mut world);
    assert_eq!(known(&world), (200, 80, true));
    let stored = stored(&mut world);
    let mut next = restarted(&world, &stored, config());
    subscribe(&mut next, 80);
    next.associate(UPF, "upf");
    assert_eq!(known(&next), (200, 80, true));
    next.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    next.gnb_answers();
    assert_eq!(enforced(&next), 80_000);
    next.deactivate();
    subscribe(&mut next, 200);
    notified(&mut next);
    subscribe(&mut next, 80);
    notified(&mut next);
    next.take_ladder();
    next.uplink(PduSessionModificationComplete::new());
    assert_eq!(known(&next).0, 80);
}

/// The PCF's own change pages the UE, and has what waited.
#[test]
fn a_decision_for_an_idle_ue_has_the_subscribed_qos_that_waits() {
    let mut world = World::established();
    world.deactivate();
    subscribe(&mut world, 80);
    notified(&mut world);
    notify(&mut world, |decision| {
        let mut rule = SessionRule::new("r");
        rule.auth_sess_ambr = None;
        decision.sess_rules.insert("r".into(), Some(rule));
    });
    assert_eq!((known(&world).0, enforced(&world)), (80, 80_000));
}

/// QoS that is pending behind a command which the UE has not answered is older than QoS that waits for the user plane.
#[test]
fn qos_that_waits_for_the_user_plane_supersedes_what_is_pending() {
    let mut world = World::established();
    for mbps in [70, 80] {
        subscribe(&mut world, mbps);
        notified(&mut world);
    }
    assert_eq!(known(&world), (70, 80, true), "the UE has not answered the first command");
    world.deactivate();
    for _ in 0..2 {
        subscribe(&mut world, 90);
        notified(&mut world);
    }
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    world.gnb_answers();
    world.uplink(PduSessionModificationComplete::new());
    assert_eq!((known(&world), enforced(&world)), ((90, 90, true), 90_000));
    world.uplink(PduSessionModificationComplete::new());
    assert_eq!(known(&world), (90, 90, false));
}

/// The next command, which is pending, has the rates.
#[test]
fn a_command_that_the_ue_does_not_answer_does_not_supersede_what_is_pending() {
    let mut world = World::established();
    notify(&mut world, rule(70, 9));
    notify(&mut world, rule(80, 9));
    world.deactivate();
    (0..5).for_each(|_| world.expire(Timer::T3591));
    assert_eq!(known(&world).0, 80);
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    world.gnb_answers();
    (0..2).for_each(|_| world.uplink(PduSessionModificationComplete::new()));
    assert_eq!((known(&world).0, enforced(&world)), (80, 80_000));
}

/// Such as one in MICO mode: the command for a decision of the PCF does not reach it.
#[test]
fn an_unreachable_ue_gets_the_rates_when_its_user_plane_is_active() {
    let mut world = World::established();
    world.deactivate();
    subscribe(&mut world, 80);
    notified(&mut world);
    notify(&mut world, rule(80, 9));
    (0..5).for_each(|_| world.expire(Timer::T3591));
    assert!(world.bench.timers.is_empty());
    assert_eq!((known(&world), enforced(&world)), ((80, 80, true), 80_000));
    world.take_ladder();
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    world.gnb_answers();
    let ladder = world.take_ladder();
    assert!(ladder.ends_with(CHANGE), "{ladder}");
    world.uplink(PduSessionModificationComplete::new());
    assert_eq!(known(&world), (80, 80, false));
}

#[test]
fn a_connected_ue_releases_a_session_that_is_not_subscribed_any_longer() {
    let mut world = World::established();
    unsubscribe(&mut world);
    notified(&mut world);
    assert_eq!(
        world.take_ladder(),
        "udm <- GetSmData\nupf <- SessionDeletionRequest\namf <- N1N2MessageTransfer\namf <- 204"
    );
    let GsmBody::PduSessionReleaseCommand(command) = &world.n1.last().unwrap().body else { panic!() };
    assert_eq!(command.cause, GsmCause::RegularDeactivation);
    assert!(world.transfers.last().unwrap().n2_info_container.is_some());
    world.uplink(PduSessionReleaseComplete::new());
    world.is_quiet();
}

#[test]
fn the_session_of_an_idle_ue_that_is_not_subscribed_any_longer_ends_without_paging() {
    let mut world = World::established();
    world.deactivate();
    world.take_ladder();
    unsubscribe(&mut world);
    notified(&mut world);
    let ladder = world.take_ladder();
    assert!(ladder.contains("amf <- SmContextStatusNotify") && !ladder.contains("N1N2"), "{ladder}");
    world.is_quiet();
}

#[test]
fn a_ue_that_rejects_the_change_keeps_its_session() {
    let mut world = World::established();
    subscribe(&mut world, 80);
    notified(&mut world);
    world.uplink(PduSessionModificationCommandReject::new(GsmCause::RequestRejectedUnspecified));
    assert_eq!(known(&world), (80, 80, false));
}

/// The process ends at each step of a change: the next one does it again.
#[test]
fn a_change_that_a_restart_interrupts_begins_again() {
    for step in 0..4 {
        let mut world = tracked(World::established());
        subscribe(&mut world, 80);
        match step {
            0 => drop(world.script.insert(Operation::GetSmData, None)),
            1 => drop(world.script.insert(Operation::UpdateSmPolicy, None)),
            2 => world.upf = None,
            _ => {}
        }
        notified(&mut world);
        let stored = stored(&mut world);
        let mut next = restarted(&world, &stored, config());
        subscribe(&mut next, 80);
        next.associate(UPF, "upf");
        let ladder = next.take_ladder();
        assert!(ladder.contains("udm <- GetSmData") && ladder.ends_with(CHANGE), "{step}: {ladder}");
        assert_eq!(enforced(&next), 80_000);
        next.uplink(PduSessionModificationComplete::new());
        if next.take_ladder().ends_with(CHANGE) {
            // The former command was repeated first.
            assert!(step >= 2 && known(&next) == (80, 80, true), "{step}");
            next.uplink(PduSessionModificationComplete::new());
        }
        assert_eq!(known(&next), (80, 80, false), "{step}");
    }
}

/// The request, or its answer, may have been lost, and with it a notification.
#[test]
fn a_session_that_a_restart_interrupts_in_its_subscription_subscribes_again() {
    for answered in [true, false] {
        let mut world = tracked(World::new());
        if !answered {
            world.script.insert(Operation::SdmSubscribe, None);
        }
        world.establish();
        world.gnb_answers();
        let stored = stored(&mut world);
        let mut next = restarted(&world, &stored, config());
        next.associate(UPF, "upf");
        let ladder = next.take_ladder();
        let requests =
            "udm <- RetrieveSmfRegistration\nudm <- RegisterSmf\nudm <- SdmSubscribe\nudm <- GetSmData";
        assert_eq!((ladder.contains(requests), ladder.contains("udm")), (!answered, !answered), "{ladder}");
        assert!(!known(&next).2, "nothing has changed");
    }
}

#[test]
fn a_session_that_a_restart_interrupts_in_its_registration_registers_again() {
    for answered in [true, false] {
        let mut world = tracked(World::new());
        if !answered {
            world.script.insert(Operation::RegisterSmf, None);
        }
        world.establish();
        world.gnb_answers();
        let stored = stored(&mut world);
        let mut next = restarted(&world, &stored, config());
        next.associate(UPF, "upf");
        let ladder = next.take_ladder();
        let requests =
            "udm <- RetrieveSmfRegistration\nudm <- RegisterSmf\nudm <- SdmSubscribe\nudm <- GetSmData";
        assert_eq!((ladder.contains(requests), ladder.contains("udm")), (!answered, !answered), "{ladder}");
        assert!(!known(&next).2, "nothing has changed");
    }
}

/// The registration, with which the subscription ends, is answered after the session is established.
#[test]
fn a_session_subscribes_after_its_registration() {
    let mut world = World::new();
    world.script.insert(Operation::RegisterSmf, None);
    world.establish();
    assert!(!world.take_ladder().contains("SdmSubscribe"));
    let (tag, _) = world.open.remove(0);
    let seen = world.bench.reply(tag, Ok(Response::NoContent));
    world.follow(seen);
    assert_eq!(world.take_ladder(), "udm <- SdmSubscribe");
}

/// The registrations that the SMF has requested, and not got an answer for.
fn registrations(world: &World) -> Vec<SmfRegistration> {
    let of = |request: &Request| match request {
        Request::RegisterSmf(request) => Some(request.body.clone()),
        _ => None,
    };
    world.open.iter().filter_map(|(_, request)| of(request)).collect()
}

/// A session whose SMF ended before the UDM had answered its registration, and the time of that; and the SMF 100 s later.
fn restarted_while_registering() -> (World, DateTime) {
    let mut world = tracked(World::new());
    world.script.insert(Operation::RegisterSmf, None);
    world.establish();
    world.gnb_answers();
    let [first] = &registrations(&world)[..] else { panic!("one registration") };
    let stored = stored(&mut world);
    let mut next = restarted(&world, &stored, config());
    next.bench.now = world.bench.now + Duration::from_secs(100);
    next.script.insert(Operation::RegisterSmf, None);
    (next, first.registration_time.unwrap())
}

/// An established session whose registration the UDM has not answered.
pub(super) fn registering() -> World {
    let mut world = World::new();
    world.script.insert(Operation::RegisterSmf, None);
    world.establish();
    world.gnb_answers();
    world
}

/// Another SM context that the UE has got meanwhile has a later one.
#[test]
fn a_session_registers_again_with_the_time_of_its_first_registration() {
    let (mut next, first) = restarted_while_registering();
    next.associate(UPF, "upf");
    let [again] = &registrations(&next)[..] else { panic!("one registration") };
    assert_eq!(again.registration_time, Some(first));
}

/// The UE has established the session again meanwhile, at another SMF.
#[test]
fn a_session_that_another_sm_context_has_replaced_during_a_restart_ends() {
    let registered = |time: DateTime, after: i64, reference: &str| {
        let mut registration = SmfRegistration::new(instance(8), 5, Snssai::of_sst(1), plmn());
        let callback = Uri::callback(&root("smf-8"), &NfType::Smf, "dereg-notify", reference);
        registration.dereg_callback_uri = Some(callback);
        registration.registration_time = Some(DateTime::from_unix_ms(time.unix_ms() + after));
        Some(Ok(Response::SmfRegistration(Box::new(registration))))
    };
    for (after, is_own, ends) in [(90_000, false, true), (-90_000, false, false), (90_000, true, false)] {
        let (mut next, first) = restarted_while_registering();
        let reference =
            if is_own { next.reference.clone() } else { "1f00000007.0123456789abcdef".to_owned() };
        next.script.insert(Operation::RetrieveSmfRegistration, registered(first, after, &reference));
        next.associate(UPF, "upf");
        let ladder = next.take_ladder();
        let registers = ladder.contains("udm <- RetrieveSmfRegistration\nudm <- RegisterSmf");
        assert_eq!((registers, registrations(&next).len()), (!ends, usize::from(!ends)), "{ladder}");
        let is_released = ladder.contains("amf <- SmContextStatusNotify");
        assert_eq!((is_released, ladder.contains("SmfDeregistration")), (ends, false), "{ladder}");
        assert_eq!(next.bench.nf.audit().contexts, usize::from(!ends));
    }
}

/// The request was repeated after the other context had been registered.
#[test]
fn a_session_whose_registration_is_refused_for_a_later_sm_context_ends() {
    for is_established in [true, false] {
        let mut world = World::new();
        world.script.insert(Operation::RegisterSmf, None);
        if !is_established {
            world.script.insert(Operation::CreateSmPolicy, None);
        }
        world.establish();
        world.take_ladder();
        let (tag, _) = world.open.remove(0);
        let seen = world.bench.reply(tag, Err(Problem::new(Cause::LateOverlappingRequest).into()));
        world.follow(seen);
        let ladder = world.take_ladder();
        assert!(ladder.contains("amf <- SmContextStatusNotify"), "{ladder}");
        assert!(!ladder.contains("SdmSubscribe") && !ladder.contains("SmfDeregistration"), "{ladder}");
        assert_eq!(world.bench.nf.audit().contexts, 0);
    }
}

/// The UDM is not reachable for longer than the request is repeated. The session registers with the next activation of its user plane.
#[test]
fn a_session_whose_registration_or_subscription_is_not_answered_registers_with_the_next_activation() {
    for operation in [Operation::RegisterSmf, Operation::SdmSubscribe] {
        for cause in [Cause::TimedOutRequest, Cause::TargetNfNotReachable, Cause::NfDiscoveryFailure] {
            let mut world = World::new();
            world.script.insert(operation, None);
            world.establish();
            world.gnb_answers();
            world.script.remove(&operation);
            world.take_ladder();
            let (tag, _) = world.open.remove(0);
            let seen = world.bench.reply(tag, Err(Problem::new(cause).into()));
            world.follow(seen);
            assert_eq!(world.take_ladder(), "", "{operation:?}");
            world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
            world.gnb_answers();
            assert!(!world.take_ladder().contains("udm"), "it was active");
            world.deactivate();
            assert!(!world.take_ladder().contains("udm"));
            world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
            world.gnb_answers();
            let ladder = world.take_ladder();
            let requests =
                "RetrieveSmfRegistration\nudm <- RegisterSmf\nudm <- SdmSubscribe\nudm <- GetSmData";
            assert!(ladder.contains(requests), "{ladder}");
            assert!(!known(&world).2, "nothing has changed");
        }
    }
}

/// The user plane of a UE that sends all the time is never activated again.
#[test]
fn a_session_whose_registration_is_not_answered_registers_again_after_some_time() {
    for is_active in [true, false] {
        let mut world = World::new();
        world.script.insert(Operation::SdmSubscribe, None);
        world.establish();
        world.gnb_answers();
        world.script.remove(&Operation::SdmSubscribe);
        if !is_active {
            world.deactivate();
        }
        let (tag, _) = world.open.remove(0);
        let seen = world.bench.reply(tag, Err(Problem::new(Cause::TimedOutRequest).into()));
        world.follow(seen);
        world.take_ladder();
        world.expire(Timer::Reregistration);
        assert_eq!(
            world.take_ladder(),
            "udm <- RetrieveSmfRegistration\nudm <- RegisterSmf\nudm <- SdmSubscribe\nudm <- GetSmData"
        );
        assert!(!known(&world).2, "nothing has changed");
        assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
    }
}

/// A session whose registration has replaced that of another SM context. It is subscribed, and nothing has changed.
fn having_replaced(mut world: World) -> World {
    world.script.insert(Operation::RegisterSmf, Some(Ok(Response::NoContent)));
    world.establish();
    world.gnb_answers();
    world.script.remove(&Operation::RegisterSmf);
    let ladder = world.take_ladder();
    assert_eq!((ladder.contains("SdmSubscribe"), known(&world).2), (true, false), "{ladder}");
    world
}

const VERIFICATION: &str = "udm <- RetrieveSmfRegistration";

/// The former SM context has deregistered late, or has repeated its request: the UDM can't know which of the contexts of an SMF requests it.
#[test]
fn a_session_that_has_replaced_another_one_registers_again_if_that_has_deregistered_late() {
    let mut world = having_replaced(World::new());
    // The UDM does not notify it.
    subscribe(&mut world, 80);
    world.script.insert(Operation::RetrieveSmfRegistration, problem(Cause::DataNotFound));
    world.expire(Timer::RegistrationCheck);
    let requests = "udm <- RegisterSmf\nudm <- SdmSubscribe";
    assert_eq!(world.take_ladder(), format!("{VERIFICATION}\n{requests}\n{QUESTIONS}\n{CHANGE}"));
    assert_eq!(enforced(&world), 80_000);
    world.uplink(PduSessionModificationComplete::new());
    assert_eq!(known(&world), (80, 80, false));
    assert!(!world.bench.timers.keys().any(|key| key.timer == Timer::RegistrationCheck));
}

#[test]
fn a_session_whose_registration_is_new_is_not_checked() {
    let mut world = World::new();
    world.establish();
    world.gnb_answers();
    assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
}

#[test]
fn a_session_that_has_replaced_another_one_goes_on_with_its_registration_or_ends_if_a_further_one_has_it() {
    // A UDM may leave the callback URI out.
    for (is_own, has_callback) in [(true, true), (true, false), (false, true)] {
        let mut world = having_replaced(World::new());
        let reference =
            if is_own { world.reference.clone() } else { "1f00000007.0123456789abcdef".to_owned() };
        let mut registration = SmfRegistration::new(instance(8), 5, Snssai::of_sst(1), plmn());
        let callback = Uri::callback(&root("smf-8"), &NfType::Smf, "dereg-notify", &reference);
        registration.dereg_callback_uri = has_callback.then_some(callback);
        let registered = Response::SmfRegistration(Box::new(registration));
        world.script.insert(Operation::RetrieveSmfRegistration, Some(Ok(registered)));
        world.expire(Timer::RegistrationCheck);
        let ladder = world.take_ladder();
        if is_own {
            assert_eq!((ladder.as_str(), known(&world).2), (VERIFICATION, false));
            assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
        } else {
            assert!(ladder.contains("amf <- SmContextStatusNotify"), "{ladder}");
            assert!(!ladder.contains("SmfDeregistration"), "{ladder}");
            assert_eq!(world.bench.nf.audit().contexts, 0);
        }
    }
}

/// Neither a change nor a UDM that does not answer keeps the session from checking its registration.
#[test]
fn a_registration_is_checked_after_a_change_and_again_if_the_udm_does_not_answer() {
    let mut world = having_replaced(World::new());
    subscribe(&mut world, 80);
    notified(&mut world);
    world.take_ladder();
    world.expire(Timer::RegistrationCheck);
    assert_eq!((world.take_ladder().as_str(), known(&world).2), ("", true), "the UE has not answered");
    world.uplink(PduSessionModificationComplete::new());
    world.take_ladder();
    world.script.insert(Operation::RetrieveSmfRegistration, problem(Cause::TimedOutRequest));
    for _ in 0..2 {
        world.expire(Timer::RegistrationCheck);
        assert_eq!((world.take_ladder().as_str(), known(&world).2), (VERIFICATION, false));
    }
}

/// Timers end with the process.
#[test]
fn a_registration_that_has_replaced_another_one_is_checked_after_a_restart() {
    let mut world = having_replaced(tracked(World::new()));
    let stored = stored(&mut world);
    let mut next = restarted(&world, &stored, config());
    next.script.insert(Operation::RetrieveSmfRegistration, problem(Cause::DataNotFound));
    next.associate(UPF, "upf");
    let ladder = next.take_ladder();
    let requests = format!("{VERIFICATION}\nudm <- RegisterSmf\nudm <- SdmSubscribe\nudm <- GetSmData");
    assert!(ladder.contains(&requests), "{ladder}");
    assert!(!known(&next).2, "nothing has changed");
}

/// At once if no UDM is known: then the session registers when it is established.
#[test]
fn a_registration_that_no_udm_answers_is_repeated_once_for_each_activation() {
    let mut world = World::new();
    world.script.insert(Operation::RegisterSmf, problem(Cause::NfDiscoveryFailure));
    world.establish();
    world.gnb_answers();
    let ladder = world.take_ladder();
    assert_eq!(
        (ladder.matches("RegisterSmf").count(), ladder.contains("SdmSubscribe")),
        (2, false),
        "{ladder}"
    );
    world.script.insert(Operation::RetrieveSmfRegistration, problem(Cause::TimedOutRequest));
    for _ in 0..2 {
        world.deactivate();
        world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
        world.gnb_answers();
        let ladder = world.take_ladder();
        assert_eq!(ladder.matches("udm").count(), 1, "{ladder}");
    }
}

/// TS 29.503 table 6.2.6.2.4-1: `smfSetId`.
#[test]
fn the_smf_registers_with_its_set() {
    for set_id in [None, Some("set001.smfset.5gc.mnc070.mcc999".into())] {
        let mut world = World::with(SmfConfig { set_id: set_id.clone(), ..config() }, &["upf"]);
        world.script.insert(Operation::RegisterSmf, None);
        world.establish();
        assert_eq!(registrations(&world)[0].smf_set_id, set_id);
    }
}

#[test]
fn a_session_whose_registration_is_refused_for_good_subscribes() {
    let mut world = World::new();
    world.script.insert(Operation::RegisterSmf, problem(Cause::DnnNotAllowed));
    world.establish();
    assert!(world.take_ladder().contains("udm <- RegisterSmf\npcf <- CreateSmPolicy\nudm <- SdmSubscribe"));
    assert!(!known(&world).2);
}

/// Its context is there until the UPF has answered.
#[test]
fn a_session_that_has_ended_does_not_subscribe() {
    let mut world = World::new();
    world.script.insert(Operation::RegisterSmf, None);
    world.silent.insert(UPF);
    world.establish();
    world.release_by_amf();
    let ladder = world.take_ladder();
    assert!(ladder.contains("udm <- SmfDeregistration"), "{ladder}");
    let (tag, _) = world.open.remove(0);
    let seen = world.bench.reply(tag, Ok(Response::NoContent));
    world.follow(seen);
    assert_eq!(world.take_ladder(), "");
    world.upf_answers_late();
    world.is_quiet();
}

/// The notification says that the UDM has the subscription.
#[test]
fn a_change_before_the_answer_to_the_subscription_is_applied() {
    let mut world = World::new();
    world.script.insert(Operation::SdmSubscribe, None);
    world.establish();
    world.gnb_answers();
    subscribe(&mut world, 80);
    notified(&mut world);
    let (tag, _) = world.open.remove(0);
    let seen = world.bench.reply(tag, Ok(Response::NoContent));
    world.follow(seen);
    world.uplink(PduSessionModificationComplete::new());
    assert_eq!(known(&world), (80, 80, false));
}

#[test]
fn a_notification_for_an_unknown_session_is_refused() {
    let mut world = World::established();
    world.release_by_amf();
    world.take_ladder();
    notified(&mut world);
    assert_eq!(world.take_ladder(), "amf <- 404");
}
