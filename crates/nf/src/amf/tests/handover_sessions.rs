//! PDU sessions that end during an N2 handover: the UE asks for another one with the identity (TS 23.502 4.3.2.2.1 step 2), of which the SMF's
//! and the target gNB's answers say nothing.

use super::handover_between_amfs::take_message;
use super::n2_handover::{
    AT_TARGET, acknowledge, answer, commanded, connected, ids, notify, requested, require, source_released,
    states, updates,
};
use super::world::*;
use crate::kit::{Input, N2Input};
use pith_ngap::{HandoverCommand, HandoverRequest};
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::nsmf_pdusession::{HoState, N2SmInfoType};

/// The UE requests another session with the identity 5. The source gNB is to release the resources of the first one.
fn replace(world: &mut World, phone: &mut Phone) {
    phone.send(world, establishment(5));
    let _ = take_message!(world, GNB, PduSessionResourceReleaseCommand);
}

#[test]
fn a_session_that_is_replaced_while_smfs_prepare_is_not_in_the_request() {
    let (mut world, mut phone) = connected(&[5, 6]);
    require(&mut world, &phone, &[5, 6]);
    replace(&mut world, &mut phone);
    answer(&mut world, Some(N2SmInfoType::PduResSetupReq));
    answer(&mut world, Some(N2SmInfoType::PduResSetupReq));
    let request: HandoverRequest = take_message!(world, OTHER_GNB, HandoverRequest);
    assert_eq!(request.sessions.iter().map(|item| item.pdu_session_id).collect::<Vec<_>>(), [6]);
}

#[test]
fn a_session_that_is_replaced_before_the_command_is_not_handed_over() {
    let (mut world, mut phone, request) = requested(&[5, 6]);
    let id = request.amf_ue_ngap_id;
    acknowledge(&mut world, id, &[5, 6], &[]);
    replace(&mut world, &mut phone);
    answer(&mut world, Some(N2SmInfoType::HandoverCmd));
    answer(&mut world, Some(N2SmInfoType::HandoverCmd));
    let command: HandoverCommand = take_message!(world, GNB, HandoverCommand);
    assert_eq!((ids(&command.sessions), ids(&command.to_release)), (vec![6], vec![5]));
    assert_released_at_target(&mut world, id);
    assert_eq!(states(&world), [Some(HoState::Completed)], "of session 6");
}

#[test]
fn a_session_that_is_replaced_after_the_command_is_released_at_the_target_gnb() {
    let (mut world, mut phone, id) = commanded(&[5]);
    replace(&mut world, &mut phone);
    assert_released_at_target(&mut world, id);
    source_released(&mut world);
    assert!(updates(&world).is_empty(), "the new session's SMF knows no handover: {:?}", updates(&world));
    // Its setup waits for the answer of the gNB.
    let setup = transfer(5, Some(b"accept"), Some((NgapIeType::PduResSetupReq, b"setup")));
    assert!(world.request(setup).is_ok());
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    (phone.gnb, phone.ran_id, phone.amf_id) = (OTHER_GNB, AT_TARGET, Some(id));
    super::pdu_session::release_response(&mut world, &phone);
    let setup = take_message!(world, OTHER_GNB, PduSessionResourceSetupRequest);
    assert_eq!(setup.sessions[0].transfer, b"setup");
}

fn assert_released_at_target(world: &mut World, id: pith_types::AmfUeNgapId) {
    notify(world, id);
    let release = take_message!(world, OTHER_GNB, PduSessionResourceReleaseCommand);
    assert_eq!((release.ran_ue_ngap_id, release.sessions[0].pdu_session_id), (AT_TARGET, 5));
}

/// The SMF's answer about the first session is late.
#[test]
fn a_session_that_is_replaced_while_paths_are_switched_has_no_user_plane_yet() {
    let (mut world, mut phone, id) = commanded(&[5]);
    notify(&mut world, id);
    (phone.gnb, phone.ran_id, phone.amf_id) = (OTHER_GNB, AT_TARGET, Some(id));
    phone.send(&mut world, establishment(5));
    let _ = take_message!(world, OTHER_GNB, PduSessionResourceReleaseCommand);
    source_released(&mut world);
    assert!(world.downlinks.is_empty(), "one command: {:?}", world.downlinks);
    answer(&mut world, None);
    super::pdu_session::release_response(&mut world, &phone);
    let setup = transfer(5, Some(b"accept"), Some((NgapIeType::PduResSetupReq, b"setup")));
    assert!(world.request(setup).is_ok());
    let setup = take_message!(world, OTHER_GNB, PduSessionResourceSetupRequest);
    assert_eq!(setup.sessions[0].transfer, b"setup");
}

/// The source gNB has not released the resources of the first session. The setup of the second one waits for that no longer.
#[test]
fn a_setup_that_waits_for_the_source_gnb_is_sent_to_the_target_gnb() {
    for is_source_lost in [false, true] {
        setup_follows(is_source_lost);
    }
}

fn setup_follows(is_source_lost: bool) {
    let (mut world, mut phone) = connected(&[5, 6]);
    replace(&mut world, &mut phone);
    let setup = transfer(5, Some(b"accept"), Some((NgapIeType::PduResSetupReq, b"setup")));
    assert!(world.request(setup).is_ok());
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    require(&mut world, &phone, &[6]);
    answer(&mut world, Some(N2SmInfoType::PduResSetupReq));
    let request: HandoverRequest = take_message!(world, OTHER_GNB, HandoverRequest);
    let id = request.amf_ue_ngap_id;
    acknowledge(&mut world, id, &[6], &[]);
    answer(&mut world, Some(N2SmInfoType::HandoverCmd));
    let _: HandoverCommand = take_message!(world, GNB, HandoverCommand);
    if is_source_lost {
        world.input(Input::N2(N2Input::GnbDown { gnb: GNB }));
    }
    notify(&mut world, id);
    let setup = take_message!(world, OTHER_GNB, PduSessionResourceSetupRequest);
    assert_eq!(setup.sessions[0].transfer, b"setup");
    assert_eq!(states(&world), [Some(HoState::Completed)], "of session 6");
}

/// The SMF may have lost the request to switch the path, and does not know this AMF if another one has served the UE: it would refuse
/// ReleaseSMContext.
#[test]
fn a_session_that_ends_while_its_path_is_switched_names_its_amf() {
    let (mut world, mut phone, id) = commanded(&[5]);
    notify(&mut world, id);
    (phone.gnb, phone.ran_id, phone.amf_id) = (OTHER_GNB, AT_TARGET, Some(id));
    phone.send(&mut world, establishment(5));
    let released = updates(&world).into_iter().find(|body| body.release == Some(true));
    assert_eq!(released.and_then(|body| body.serving_nf_id), Some(identity().instance_id));
}
