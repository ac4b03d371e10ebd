//! NG Setup after a restart: connections that the gNB retains, and those that it does not (TS 38.413 8.7.1.2).

use super::world::{GNB, OTHER_GNB, Phone, World, config, supi, transfer, transfers};
use crate::amf::{Amf, AmfConfig};
use crate::kit::{
    Deregister, Effect, Fate, GnbHandle, Input, N2Input, NetworkFunction, Outbox, ResetUe,
    RetainedConnections, Rng, StoreScope, Timer, Tracking,
};
use crate::testing::Stored;
use pith_nas::GmmMessage;
use pith_nas::gmm::{DeregistrationAcceptUeTerminated, UlNasTransport};
use pith_nas::ie::{PayloadContainerType, ServiceType};
use pith_ngap::{Message, PathSwitchRequest, PduSessionResourceNotify, UeContextReleaseRequest};
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::nsmf_pdusession::{SmContextUpdatedData, UpCnxState};
use pith_sbi::{Operation, Response};
use pith_types::{ContextId, RanUeNgapId};

/// The handle of the gNB's association with the next process.
const AGAIN: GnbHandle = GnbHandle(17);

/// A connected UE with a session, whose context is stored.
fn registered(tracking: Tracking) -> (World, Phone, Stored) {
    let (mut world, mut phone, mut stored) = (World::new(), Phone::default(), Stored::default());
    world.amf.track_contexts(tracking);
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    stored.store(&mut world.amf, StoreScope::Changed);
    world.take_ladder();
    (world, phone, stored)
}

fn restart(world: &mut World, stored: &Stored, tracking: Tracking, is_stale: bool) {
    let mut amf = Amf::new(config(), Rng::from_number(2));
    amf.reload_contexts();
    amf.track_contexts(tracking);
    stored.restore(world.now, &mut amf, is_stale);
    world.set_up.clear();
    world.replace_amf(amf);
}

fn restarted() -> (World, Phone) {
    let (mut world, phone, stored) = registered(Tracking::default());
    restart(&mut world, &stored, Tracking::default(), false);
    (world, phone)
}

/// The gNB that served the UE, with another association.
fn return_gnb(world: &mut World, retains_ues: bool) {
    world.set_up_gnb(AGAIN, World::gnb_info(GNB), retains_ues);
}

fn set_up(world: &mut World) -> RetainedConnections {
    let [(gnb, connections)] = &std::mem::take(&mut world.set_up)[..] else { panic!("{:?}", world.set_up) };
    assert_eq!(*gnb, AGAIN);
    connections.clone()
}

fn ids(phone: &Phone) -> Vec<(pith_types::AmfUeNgapId, pith_types::RanUeNgapId)> {
    vec![(phone.amf_id.unwrap(), phone.ran_id)]
}

#[test]
fn a_retained_ue_stays_connected_and_no_smf_is_asked() {
    let (mut world, mut phone) = restarted();
    return_gnb(&mut world, true);
    assert_eq!(
        set_up(&mut world),
        RetainedConnections { kept: ids(&phone), ended: Vec::new(), targets: Vec::new() }
    );
    assert_eq!(world.take_ladder(), "");
    phone.gnb = AGAIN;
    phone.send(&mut world, phone.deregistration_request(false));
    let GmmMessage::DeregistrationAcceptUeOriginating(_) = phone.receive(&mut world) else { panic!() };
    assert_eq!(world.amf.audit().registered, 0);
    phone.released(&mut world);
    world.expire(Timer::AbsentGnbs);
    world.assert_empty();
}

/// A shard has panicked before the gNBs of the former process had returned: it knows none of them.
fn take_over(world: &mut World, stored: &Stored) {
    let mut amf = Amf::new(config(), Rng::from_number(2));
    amf.reload_contexts();
    amf.track_contexts(Tracking::default());
    amf.begin_take_over();
    for (id, document) in &stored.documents {
        amf.take_over_context(world.now, *id, document, Fate::GoesOn).unwrap();
    }
    world.set_up.clear();
    world.replace_amf(amf);
}

#[test]
fn a_gnb_that_is_away_when_a_shard_is_taken_over_releases_its_ues() {
    let (mut world, phone, stored) = registered(Tracking::default());
    take_over(&mut world, &stored);
    let mut out = Outbox::default();
    world.amf.finish_take_over(world.now, &mut out);
    let is_timer =
        |effect: &Effect| matches!(effect, Effect::StartTimer { key, .. } if key.timer == Timer::AbsentGnbs);
    assert!(out.effects().iter().any(is_timer), "until then: {out:?}");
    return_gnb(&mut world, true);
    let connections = set_up(&mut world);
    assert_eq!((connections.kept, connections.ended), (Vec::new(), ids(&phone)));
    assert_eq!((world.amf.audit().registered, world.amf.audit().connected), (1, 0));
}

#[test]
fn without_retention_the_gnb_waits_until_the_user_plane_is_inactive() {
    let (mut world, _) = restarted();
    world.script.insert(Operation::UpdateSmContext, None);
    return_gnb(&mut world, false);
    assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext");
    assert_eq!(world.amf.audit().connected, 0, "CM-IDLE");
    assert_eq!(world.set_up, [], "the UPF may still send to the gNB's former TEID");
    world.reply_to(Operation::UpdateSmContext, Ok(Response::NoContent));
    assert_eq!(set_up(&mut world), RetainedConnections::default());
}

#[test]
fn a_gnb_on_another_host_takes_no_ue_over() {
    let (mut world, _) = restarted();
    let mut info = World::gnb_info(GNB);
    info.host = World::gnb_info(OTHER_GNB).host;
    world.set_up_gnb(AGAIN, info, true);
    assert_eq!(set_up(&mut world), RetainedConnections::default());
    assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext");
    assert_eq!(world.amf.audit().connections, 0);
}

#[test]
fn a_gnb_with_another_id_takes_no_ue_over_and_the_ue_waits_for_its_own() {
    let (mut world, _) = restarted();
    world.set_up_gnb(AGAIN, World::gnb_info(OTHER_GNB), true);
    assert_eq!(set_up(&mut world), RetainedConnections::default());
    assert_eq!((world.amf.audit().connected, world.take_ladder().as_str()), (1, ""));
    world.expire(Timer::AbsentGnbs);
    assert_eq!(world.take_ladder(), "      AbsentGnbs\nsmf  <- UpdateSmContext");
    assert_eq!(world.amf.audit().connected, 0);
    world.set_up.clear();
    world.set_up_gnb(GNB, World::gnb_info(GNB), true);
    assert_eq!(world.set_up, [(GNB, RetainedConnections::default())], "too late");
}

#[test]
fn outdated_documents_keep_no_connection() {
    let (mut world, phone, stored) = registered(Tracking::default());
    restart(&mut world, &stored, Tracking::default(), true);
    assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext");
    return_gnb(&mut world, true);
    assert_eq!(
        set_up(&mut world),
        RetainedConnections { kept: Vec::new(), ended: ids(&phone), targets: Vec::new() }
    );
}

#[test]
fn documents_that_lag_keep_no_connection() {
    for tracking in [
        Tracking { is_late: true, ..Tracking::default() },
        Tracking { by_procedure: true, ..Tracking::default() },
    ] {
        let (mut world, phone, stored) = registered(tracking);
        restart(&mut world, &stored, tracking, false);
        return_gnb(&mut world, true);
        assert_eq!(
            set_up(&mut world),
            RetainedConnections { kept: Vec::new(), ended: ids(&phone), targets: Vec::new() }
        );
        assert_eq!(world.amf.audit().connected, 0);
    }
}

/// A UE whose gNB has not answered INITIAL CONTEXT SETUP REQUEST.
fn in_context_setup() -> (World, Phone, Stored) {
    let (mut world, mut phone, mut stored) = registered(Tracking::default());
    phone.release(&mut world);
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::ServiceAccept(_) = phone.receive(&mut world) else { panic!() };
    stored.store(&mut world.amf, StoreScope::Changed);
    (world, phone, stored)
}

#[test]
fn a_connection_with_a_context_setup_in_progress_is_released_by_the_gnb() {
    let (mut world, phone, stored) = in_context_setup();
    restart(&mut world, &stored, Tracking::default(), false);
    return_gnb(&mut world, true);
    assert_eq!(
        set_up(&mut world),
        RetainedConnections { kept: Vec::new(), ended: ids(&phone), targets: Vec::new() }
    );
    assert_eq!(world.amf.audit().connected, 0);
}

/// The next process has stored the UE in CM-IDLE, and ends as well, or its shard panics, before the gNB returns.
#[test]
fn a_connection_that_was_not_kept_is_released_by_the_gnb_also_after_two_crashes() {
    for panics in [false, true] {
        let (mut world, phone, mut stored) = in_context_setup();
        restart(&mut world, &stored, Tracking::default(), false);
        stored.store(&mut world.amf, StoreScope::Changed);
        if panics {
            take_over(&mut world, &stored);
        } else {
            restart(&mut world, &stored, Tracking::default(), false);
        }
        stored.store(&mut world.amf, StoreScope::Changed);
        return_gnb(&mut world, true);
        let ended = ids(&phone);
        assert_eq!(set_up(&mut world), RetainedConnections { kept: Vec::new(), ended, targets: Vec::new() });
        // Then the documents do not name it any longer.
        stored.store(&mut world.amf, StoreScope::Changed);
        restart(&mut world, &stored, Tracking::default(), false);
        return_gnb(&mut world, true);
        assert_eq!(set_up(&mut world), RetainedConnections::default());
    }
}

#[test]
fn a_ue_that_came_back_elsewhere_is_released_by_its_gnb() {
    let (mut world, mut phone) = restarted();
    let former = ids(&phone);
    world.set_up_gnb(OTHER_GNB, World::gnb_info(OTHER_GNB), false);
    world.set_up.clear();
    phone.gnb = OTHER_GNB;
    let nas = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(nas);
    phone.connect(&mut world, nas);
    let GmmMessage::ServiceAccept(_) = phone.receive(&mut world) else { panic!() };
    return_gnb(&mut world, true);
    assert_eq!(
        set_up(&mut world),
        RetainedConnections { kept: Vec::new(), ended: former, targets: Vec::new() }
    );
    let audit = world.amf.audit();
    assert_eq!((audit.connected, audit.connections), (1, 1));
}

#[test]
fn messages_for_a_ue_whose_gnb_is_away_are_sent_when_it_returns() {
    let (mut world, mut phone) = restarted();
    let reply = world.request(transfer(5, Some(b"5GSM"), None));
    assert!(reply.is_ok(), "{reply:?}");
    assert_eq!(world.downlinks.len(), 0);
    return_gnb(&mut world, true);
    phone.gnb = AGAIN;
    let GmmMessage::DlNasTransport(_) = phone.receive(&mut world) else { panic!() };
}

#[test]
fn a_gnb_that_sets_up_again_in_the_same_run_waits_for_its_former_ues() {
    let (mut world, _, _) = registered(Tracking::default());
    world.set_up.clear();
    world.script.insert(Operation::UpdateSmContext, None);
    world.input(Input::N2(N2Input::GnbDown { gnb: GNB }));
    return_gnb(&mut world, true);
    assert_eq!(world.set_up, [], "nothing is retained over a lost association");
    world.reply_to(Operation::UpdateSmContext, Ok(Response::NoContent));
    assert_eq!(set_up(&mut world), RetainedConnections::default());
}

#[test]
fn the_next_process_after_two_crashes_still_knows_the_connection() {
    let (mut world, phone, mut stored) = registered(Tracking::default());
    for _ in 0..2 {
        restart(&mut world, &stored, Tracking::default(), false);
        stored.store(&mut world.amf, StoreScope::Changed);
    }
    return_gnb(&mut world, true);
    assert_eq!(set_up(&mut world).kept, ids(&phone));
    assert_eq!(world.amf.audit().supis, 1);
    let of = world.amf.shared.index.find_supi(&supi());
    assert!(of.is_some());
    assert!(!world.downlinks.iter().any(|(_, message)| matches!(message, Message::Paging(_))));
}

#[test]
fn a_change_of_resources_waits_for_the_gnb_or_ends_with_its_resources() {
    for retains_ues in [true, false] {
        let (mut world, _) = restarted();
        let reply = world.request(transfer(5, None, Some((NgapIeType::PduResModReq, b"modify"))));
        assert!(reply.is_ok(), "{reply:?}");
        world.downlinks.clear();
        return_gnb(&mut world, retains_ues);
        let sent: Vec<_> = world.downlinks.iter().map(|(_, message)| message.name()).collect();
        let expected: &[&str] = if retains_ues { &["PduSessionResourceModifyRequest"] } else { &[] };
        assert_eq!(sent, expected, "no paging either");
    }
}

/// SMFs may have switched the path of a UE to the target gNB when the process ended.
#[test]
fn a_ue_whose_path_is_being_switched_stays_connected_at_no_gnb() {
    let (mut world, phone, mut stored) = registered(Tracking::default());
    world.script.insert(Operation::UpdateSmContext, None);
    let id = phone.amf_id.unwrap();
    let request = PathSwitchRequest {
        ran_ue_ngap_id: RanUeNgapId(77),
        source_amf_ue_ngap_id: id,
        location: None,
        security_capabilities: None,
        sessions: transfers(&[5]),
        failed: None,
    };
    world.ngap(OTHER_GNB, "PathSwitchRequest", request.encode());
    stored.store(&mut world.amf, StoreScope::Changed);
    world.take_ladder();
    restart(&mut world, &stored, Tracking::default(), false);
    assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext", "the user plane is deactivated");
    world.set_up_gnb(AGAIN, World::gnb_info(OTHER_GNB), true);
    assert_eq!(world.set_up, [], "the UPF may send to the target gNB");
    world.reply_to(Operation::UpdateSmContext, Ok(Response::NoContent));
    assert_eq!(
        set_up(&mut world),
        RetainedConnections { kept: Vec::new(), ended: vec![(id, RanUeNgapId(77))], targets: vec![id] }
    );
}

#[test]
fn a_gnb_releases_a_deregistered_ue_for_which_it_may_not_have_got_the_command() {
    let (mut world, mut phone, mut stored) = registered(Tracking::default());
    let former = ids(&phone);
    world.script.insert(Operation::ReleaseSmContext, None);
    phone.send(&mut world, phone.deregistration_request(false));
    stored.store(&mut world.amf, StoreScope::Changed);
    restart(&mut world, &stored, Tracking::default(), false);
    return_gnb(&mut world, true);
    assert_eq!(world.set_up, [], "the SMF has not released the session");
    world.reply_to(Operation::ReleaseSmContext, Ok(Response::NoContent));
    assert_eq!(
        set_up(&mut world),
        RetainedConnections { kept: Vec::new(), ended: former, targets: Vec::new() }
    );
}

#[test]
fn a_gnb_whose_association_was_lost_before_the_process_ended_releases_its_ues() {
    for has_returned in [false, true] {
        let (mut world, phone, mut stored) = registered(Tracking::default());
        world.input(Input::N2(N2Input::GnbDown { gnb: GNB }));
        if has_returned {
            stored.store(&mut world.amf, StoreScope::Changed);
            world.set_up_gnb(GnbHandle(18), World::gnb_info(GNB), true);
        }
        stored.store(&mut world.amf, StoreScope::Changed);
        restart(&mut world, &stored, Tracking::default(), false);
        return_gnb(&mut world, true);
        let ended = if has_returned { Vec::new() } else { ids(&phone) };
        assert_eq!(set_up(&mut world), RetainedConnections { kept: Vec::new(), ended, targets: Vec::new() });
        assert_eq!(world.amf.audit().connected, 0);
    }
}

/// An AMF that does not retain UEs after a restart.
fn without_retention() -> (World, Phone, Stored) {
    let mut world = World::with(AmfConfig { retains_ues: false, ..config() });
    let (mut phone, mut stored) = (Phone::default(), Stored::default());
    world.amf.track_contexts(Tracking::default());
    phone.register(&mut world);
    stored.store(&mut world.amf, StoreScope::Changed);
    world.take_ladder();
    (world, phone, stored)
}

fn restart_without_retention(world: &mut World, stored: &Stored) {
    let mut amf = Amf::new(AmfConfig { retains_ues: false, ..config() }, Rng::from_number(2));
    amf.reload_contexts();
    amf.track_contexts(Tracking::default());
    stored.restore(world.now, &mut amf, false);
    (world.set_up, world.ladder) = Default::default();
    world.replace_amf(amf);
}

/// The gNB sets up its association again. The AMF sends NG SETUP RESPONSE after the last of `requests` requests to an SMF is answered.
fn assert_gnb_waits(world: &mut World, operation: Operation, requests: usize) {
    return_gnb(world, false);
    for _ in 0..requests {
        assert_eq!(world.set_up, [], "a UPF may still send to the gNB's former TEID");
        world.reply_to(operation, Ok(Response::NoContent));
    }
    assert_eq!(set_up(world).kept, []);
}

#[test]
fn a_gnb_waits_for_the_sessions_of_a_ue_that_the_former_run_deregistered() {
    let (mut world, mut phone, mut stored) = without_retention();
    phone.establish(&mut world, 5);
    world.operate(supi(), Deregister::Anew);
    phone.receive(&mut world);
    world.script.insert(Operation::ReleaseSmContext, None);
    phone.send(&mut world, DeregistrationAcceptUeTerminated::new());
    stored.store(&mut world.amf, StoreScope::Changed);
    let is_in_use = |id: &ContextId| world.amf.shared.index.retained.find(*id).is_none();
    assert!(stored.documents.keys().filter(|id| is_in_use(id)).all(|id| stored.first.contains(id)));
    restart_without_retention(&mut world, &stored);
    assert!(world.take_ladder().contains("ReleaseSmContext"));
    assert_gnb_waits(&mut world, Operation::ReleaseSmContext, 1);
}

#[test]
fn a_gnb_waits_for_the_sessions_of_a_ue_that_deregistered_before_its_association_was_lost() {
    let (mut world, mut phone, _) = without_retention();
    phone.establish(&mut world, 5);
    world.script.insert(Operation::ReleaseSmContext, None);
    phone.send(&mut world, phone.deregistration_request(false));
    world.input(Input::N2(N2Input::GnbDown { gnb: GNB }));
    world.set_up.clear();
    world.set_up_gnb(OTHER_GNB, World::gnb_info(OTHER_GNB), false);
    assert_eq!(std::mem::take(&mut world.set_up).len(), 1, "no UE had a user plane at the other gNB");
    assert_gnb_waits(&mut world, Operation::ReleaseSmContext, 1);
}

#[test]
fn a_user_plane_that_was_activated_in_a_transaction_is_deactivated() {
    let (mut world, mut phone, mut stored) = without_retention();
    world.script.insert(Operation::UpdateSmContext, None);
    phone.establish(&mut world, 5);
    stored.store(&mut world.amf, StoreScope::Changed);
    phone.establish(&mut world, 6);
    stored.store(&mut world.amf, StoreScope::Changed);
    assert!(stored.writes > 1, "although the SMF has not answered for the first session");
    restart_without_retention(&mut world, &stored);
    assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext\nsmf  <- UpdateSmContext");
    assert_gnb_waits(&mut world, Operation::UpdateSmContext, 2);
}

#[test]
fn a_deactivation_that_was_pending_is_repeated() {
    let (mut world, mut phone, mut stored) = without_retention();
    phone.establish(&mut world, 5);
    stored.store(&mut world.amf, StoreScope::Changed);
    world.script.insert(Operation::UpdateSmContext, None);
    phone.release(&mut world);
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::ServiceAccept(_) = phone.receive(&mut world) else { panic!() };
    stored.store(&mut world.amf, StoreScope::Changed);
    restart_without_retention(&mut world, &stored);
    assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext");
    assert_gnb_waits(&mut world, Operation::UpdateSmContext, 1);
}

#[test]
fn the_source_gnb_of_a_handover_waits_until_the_path_is_switched() {
    let (mut world, phone, _) = registered(Tracking::default());
    world.script.insert(Operation::UpdateSmContext, None);
    let request = PathSwitchRequest {
        ran_ue_ngap_id: RanUeNgapId(77),
        source_amf_ue_ngap_id: phone.amf_id.unwrap(),
        location: None,
        security_capabilities: None,
        sessions: transfers(&[5]),
        failed: None,
    };
    world.ngap(OTHER_GNB, "PathSwitchRequest", request.encode());
    world.set_up.clear();
    world.input(Input::N2(N2Input::GnbDown { gnb: GNB }));
    return_gnb(&mut world, false);
    assert_eq!(world.set_up, [], "a UPF may still send to the source gNB");
    world.script.insert(Operation::UpdateSmContext, Some(Ok(Response::NoContent)));
    world.reply_to(Operation::UpdateSmContext, Ok(Response::NoContent));
    assert_eq!(set_up(&mut world), RetainedConnections::default());
}

/// The gNB releases a part of its UEs by NG RESET, and then starts over.
#[test]
fn a_gnb_waits_for_ues_that_it_has_reset() {
    let (mut world, phone, _) = without_retention_connected();
    world.script.insert(Operation::UpdateSmContext, None);
    let ues = vec![ResetUe { amf: phone.amf_id, ran: None }];
    world.input(Input::N2(N2Input::Reset { gnb: GNB, ues: Some(ues) }));
    world.input(Input::N2(N2Input::GnbDown { gnb: GNB }));
    world.set_up.clear();
    assert_gnb_waits(&mut world, Operation::UpdateSmContext, 1);
}

fn without_retention_connected() -> (World, Phone, Stored) {
    let (mut world, mut phone, mut stored) = without_retention();
    phone.establish(&mut world, 5);
    stored.store(&mut world.amf, StoreScope::Changed);
    (world, phone, stored)
}

/// An SMF has deactivated a user plane, or the gNB was requested to release the UE, although the UE's transaction is not over.
#[test]
fn a_ue_that_is_leaving_its_gnb_when_the_process_ends_is_not_kept() {
    type Leave = fn(&mut World, &mut Phone);
    let ways: [(&str, bool, Leave); 4] = [
        ("the association ends", true, |world, _| world.input(Input::N2(N2Input::GnbDown { gnb: GNB }))),
        ("NG RESET", false, |world, phone| {
            let ues = vec![ResetUe { amf: phone.amf_id, ran: None }];
            world.input(Input::N2(N2Input::Reset { gnb: GNB, ues: Some(ues) }));
        }),
        ("the gNB releases resources", true, |world, phone| {
            let notify = PduSessionResourceNotify {
                amf_ue_ngap_id: phone.amf_id.unwrap(),
                ran_ue_ngap_id: phone.ran_id,
                notified: None,
                released: Some(transfers(&[5])),
            };
            world.ngap(GNB, "PduSessionResourceNotify", notify.encode());
        }),
        ("UE CONTEXT RELEASE COMMAND in a transaction", true, |world, phone| {
            let message = UlNasTransport::new(PayloadContainerType::N1SmInformation, b"modify".to_vec());
            phone.send(world, UlNasTransport { pdu_session_id: Some(5), ..message });
            let release = UeContextReleaseRequest {
                amf_ue_ngap_id: phone.amf_id.unwrap(),
                ran_ue_ngap_id: phone.ran_id,
                sessions: None,
                cause: None,
            };
            world.ngap(GNB, "UeContextReleaseRequest", release.encode());
            assert!(world.downlinks.iter().any(|(_, it)| matches!(it, Message::UeContextReleaseCommand(_))));
        }),
    ];
    for (way, has_ue, leave) in ways {
        let (mut world, mut phone, mut stored) = registered(Tracking::default());
        world.script.insert(Operation::UpdateSmContext, None);
        leave(&mut world, &mut phone);
        stored.store(&mut world.amf, StoreScope::Changed);
        world.take_ladder();
        restart(&mut world, &stored, Tracking::default(), false);
        assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext", "{way}: the deactivation is repeated");
        return_gnb(&mut world, true);
        assert_eq!(world.set_up, [], "{way}: the UPF may still send to the gNB");
        world.reply_to(Operation::UpdateSmContext, Ok(Response::NoContent));
        let ended = if has_ue { ids(&phone) } else { Vec::new() };
        let expected = RetainedConnections { ended, ..RetainedConnections::default() };
        assert_eq!(set_up(&mut world), expected, "{way}");
        assert_eq!(world.amf.audit().connected, 0, "{way}");
    }
}

/// Neither a transaction that leaves the user plane as it is nor a UE that has left its gNB according to its document is stored before the SMF
/// has answered.
#[test]
fn other_transactions_write_no_document_before_their_end() {
    let (mut world, mut phone, mut stored) = registered(Tracking::default());
    world.script.insert(Operation::UpdateSmContext, None);
    let before = stored.writes;
    let message = UlNasTransport::new(PayloadContainerType::N1SmInformation, b"modify".to_vec());
    phone.send(&mut world, UlNasTransport { pdu_session_id: Some(5), ..message });
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, before);
    world.reply_to(Operation::UpdateSmContext, Ok(Response::NoContent));
    let release = UeContextReleaseRequest {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        sessions: None,
        cause: None,
    };
    world.ngap(GNB, "UeContextReleaseRequest", release.encode());
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, before + 1, "the command");
    phone.released(&mut world);
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, before + 1, "the SMF has not answered");
}

/// The SMF answers a deactivation when the UE is connected again, and has resources: it is sent no second setup, which the gNB would refuse
/// (TS 38.413 8.2.1.4).
#[test]
fn a_late_answer_to_a_deactivation_does_not_hide_the_user_plane() {
    let resources = |world: &mut World| {
        let reply = world.request(transfer(5, None, Some((NgapIeType::PduResSetupReq, b"setup"))));
        assert!(reply.is_ok(), "{reply:?}");
    };
    for is_activated_by_ue in [true, false] {
        let (mut world, mut phone, _) = without_retention_connected();
        world.script.insert(Operation::UpdateSmContext, None);
        phone.release(&mut world);
        if is_activated_by_ue {
            let mut request = phone.service_request(ServiceType::Data);
            request.uplink_data_status = Some([5].into_iter().collect());
            let nas = phone.initial_nas(request);
            phone.connect(&mut world, nas);
            let (activation, _, body) = world.calls.pop().unwrap();
            let reply = world.usual(&body);
            world.reply(activation, reply);
        } else {
            // The setup is queued, and the UE is paged.
            resources(&mut world);
            world.downlinks.clear();
            let request = phone.service_request(ServiceType::MobileTerminatedServices);
            let nas = phone.initial_nas(request);
            phone.connect(&mut world, nas);
        }
        let GmmMessage::ServiceAccept(_) = phone.receive(&mut world) else { panic!() };
        let mut deactivated = SmContextUpdatedData::default();
        deactivated.up_cnx_state = Some(UpCnxState::Deactivated);
        let answer = Response::SmContextUpdated(Box::new(deactivated));
        world.reply_to(Operation::UpdateSmContext, Ok(answer));
        world.downlinks.clear();
        resources(&mut world);
        assert!(world.downlinks.is_empty(), "{is_activated_by_ue}: {:?}", world.downlinks);
    }
}

/// A document that may be behind says that the UE was idle; SMFs of other processes may have activated its user planes since.
#[test]
fn a_gnb_waits_for_user_planes_that_the_documents_may_not_show() {
    let soft = Tracking { is_late: true, ..Tracking::default() };
    let (mut world, mut phone, mut stored) = registered(soft);
    phone.release(&mut world);
    stored.store(&mut world.amf, StoreScope::Changed);
    world.script.insert(Operation::UpdateSmContext, None);
    restart(&mut world, &stored, soft, false);
    return_gnb(&mut world, false);
    assert_eq!(world.set_up, [], "the UPF may send to a TEID that the gNB uses again");
    world.reply_to(Operation::UpdateSmContext, Ok(Response::NoContent));
    assert_eq!(set_up(&mut world), RetainedConnections::default());
}
