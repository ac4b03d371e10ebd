//! The source gNB is gone after HANDOVER COMMAND: the UE arrives at the target gNB nevertheless (TS 23.502 4.9.1.3.3).

use super::handover_between_amfs::{Amfs, deliver, take_call, take_message};
use super::n2_handover::{AT_TARGET, answer, commanded, notify, states, updates};
use super::world::*;
use crate::kit::{Input, N2Input, Timer};
use pith_nas::GmmMessage;
use pith_nas::ie::ServiceType;
use pith_ngap::UeContextReleaseCommand;
use pith_sbi::nsmf_pdusession::{HoState, UpCnxState};
use pith_sbi::{Operation, Request, Response};
use pith_types::{AmfUeNgapId, RanUeNgapId};

fn lose_source(world: &mut World) {
    world.input(Input::N2(N2Input::GnbDown { gnb: GNB }));
}

/// HANDOVER COMMAND was sent, and the source gNB's association is lost.
fn left_alone() -> (World, Phone, AmfUeNgapId) {
    let (mut world, phone, id) = commanded(&[5]);
    lose_source(&mut world);
    assert!(world.downlinks.is_empty(), "the target gNB keeps its resources: {:?}", world.downlinks);
    assert_eq!((states(&world), world.running()), (vec![], vec![Timer::Handover]));
    (world, phone, id)
}

#[test]
fn the_ue_arrives_at_the_target_gnb() {
    let (mut world, mut phone, id) = left_alone();
    assert!(world.request(transfer(5, Some(b"5GSM"), None)).is_ok());
    assert!(world.downlinks.is_empty(), "it waits for the UE, which is not paged: {:?}", world.downlinks);
    notify(&mut world, id);
    assert_eq!(states(&world), [Some(HoState::Completed)]);
    (phone.gnb, phone.ran_id, phone.amf_id) = (OTHER_GNB, AT_TARGET, Some(id));
    let GmmMessage::DlNasTransport(message) = phone.receive(&mut world) else { panic!("the 5GSM message") };
    assert_eq!(message.payload_container, b"5GSM");
    answer(&mut world, None);
    let audit = world.amf.audit();
    assert_eq!((audit.connected, audit.connections, audit.in_procedure), (1, 1, 0));
    phone.release(&mut world);
    assert_eq!((world.amf.audit().connections, world.amf.audit().connected), (0, 0));
}

/// Until the SMFs have switched the paths: UPFs would send packets to its former TEIDs (TS 38.413 8.7.1).
#[test]
fn the_source_gnb_is_set_up_again_when_the_ue_has_left_it() {
    let (mut world, _, id) = left_alone();
    world.set_up.clear();
    world.set_up_gnb(GNB, World::gnb_info(GNB), false);
    assert_eq!(world.set_up, []);
    notify(&mut world, id);
    assert_eq!(world.set_up, []);
    answer(&mut world, None);
    assert_eq!(world.set_up.iter().map(|(gnb, _)| *gnb).collect::<Vec<_>>(), [GNB]);
}

fn assert_idle(world: &mut World, id: AmfUeNgapId) {
    let command: UeContextReleaseCommand = take_message!(world, OTHER_GNB, UeContextReleaseCommand);
    assert_eq!(command.ids, pith_ngap::UeNgapIds::Pair(id, AT_TARGET));
    let last = |update: &pith_sbi::nsmf_pdusession::SmContextUpdateData| {
        (update.ho_state.clone(), update.up_cnx_state.clone())
    };
    let expected = [(Some(HoState::Cancelled), None), (None, Some(UpCnxState::Deactivated))];
    assert_eq!(updates(world).iter().map(last).collect::<Vec<_>>(), expected);
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.in_procedure), (1, 0, 0));
    assert_eq!(
        world.running(),
        [Timer::MobileReachable, Timer::NgapGuard],
        "of the UE, and of the connection"
    );
}

#[test]
fn a_ue_that_does_not_arrive_is_idle() {
    let (mut world, _, id) = left_alone();
    world.expire(Timer::Handover);
    assert_idle(&mut world, id);
}

#[test]
fn a_ue_is_idle_if_the_target_gnb_releases_it() {
    let (mut world, _, id) = left_alone();
    let request = pith_ngap::UeContextReleaseRequest {
        amf_ue_ngap_id: id,
        ran_ue_ngap_id: AT_TARGET,
        sessions: None,
        cause: None,
    };
    world.ngap(OTHER_GNB, "UeContextReleaseRequest", request.encode());
    assert_idle(&mut world, id);
}

#[test]
fn a_ue_that_connects_anew_ends_the_handover() {
    let (mut world, mut phone, id) = left_alone();
    (phone.gnb, phone.ran_id) = (OTHER_GNB, RanUeNgapId(5));
    let request = phone.service_request(ServiceType::Signalling);
    let request = phone.initial_nas(request);
    phone.connect(&mut world, request);
    let command: UeContextReleaseCommand = take_message!(world, OTHER_GNB, UeContextReleaseCommand);
    assert_eq!(command.ids, pith_ngap::UeNgapIds::Pair(id, AT_TARGET));
    assert_eq!(states(&world).first(), Some(&Some(HoState::Cancelled)));
    assert_eq!(world.amf.audit().connected, 1);
}

#[test]
fn the_ue_arrives_at_another_amf() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    lose_source(&mut amfs.source);
    assert!(amfs.source.calls.is_empty(), "no ReleaseUEContext: {:?}", amfs.source.calls);
    let notification = amfs.notified(id);
    assert_eq!(amfs.source.request(*notification), Ok(Response::NoContent));
    let audit = amfs.source.amf.audit();
    assert_eq!((audit.contexts, audit.sessions, audit.connections), (0, 0, 0));
    amfs.source.assert_empty();
}

#[test]
fn a_ue_that_does_not_arrive_at_the_other_amf_is_idle() {
    let mut amfs = Amfs::new(&[5]);
    amfs.commanded(&[5]);
    amfs.source.script.insert(Operation::ReleaseUeContext, None);
    lose_source(&mut amfs.source);
    amfs.source.expire(Timer::Handover);
    let (_, request) = take_call(&mut amfs.source, Operation::ReleaseUeContext);
    assert!(matches!(request, Request::ReleaseUeContext(_)));
    deliver(&mut amfs.target, request);
    assert_eq!(amfs.target.amf.audit().contexts, 0);
    let audit = amfs.source.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.in_procedure), (1, 0, 0));
    assert_eq!(updates(&amfs.source).last().unwrap().up_cnx_state, Some(UpCnxState::Deactivated));
}
