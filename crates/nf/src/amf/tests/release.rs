//! AN release, NG RESET, and lost gNBs (TS 23.502 4.2.6; TS 38.413 8.3, 8.7.4).

use super::n2_handover::updates;
use super::world::{GNB, OTHER_GNB, Phone, World};
use crate::kit::{Input, N2Input, ResetUe, Timer};
use pith_nas::GmmMessage;
use pith_nas::gmm;
use pith_nas::ie::{PayloadContainerType, RegistrationKind, ServiceType};
use pith_ngap::{Cause, CauseRadioNetwork};
use pith_sbi::nsmf_pdusession::UpCnxState;
use pith_sbi::{Operation, Problem, Request, Response};
use pith_types::RanUeNgapId;

fn with_session() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    world.take_ladder();
    (world, phone)
}

#[test]
fn user_inactivity_takes_the_phone_to_idle() {
    let (mut world, mut phone) = with_session();
    world.script.insert(Operation::UpdateSmContext, None);
    phone.release(&mut world);
    assert_eq!(
        world.take_ladder(),
        "\
gnb1 -> UeContextReleaseRequest
gnb1 <- UeContextReleaseCommand
gnb1 -> UeContextReleaseComplete
smf  <- UpdateSmContext"
    );
    let Request::UpdateSmContext(update) = world.open_call(Operation::UpdateSmContext) else { panic!() };
    assert_eq!(update.body.up_cnx_state, Some(UpCnxState::Deactivated));
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.sessions, audit.connections), (1, 0, 1, 0));
    assert_eq!(world.running(), [Timer::MobileReachable]);
}

#[test]
fn an_unanswered_idle_report_is_retransmitted() {
    let (mut world, mut phone) = with_session();
    world.script.insert(Operation::UpdateSmContext, None);
    phone.release(&mut world);
    world.take_ladder();
    let most = world.amf.shared.config.max_retransmissions;
    for _ in 0..most {
        world.reply_to(Operation::UpdateSmContext, Err(Problem::timed_out().into()));
        assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext");
    }
    world.reply_to(Operation::UpdateSmContext, Err(Problem::timed_out().into()));
    assert_eq!(world.take_ladder(), "", "it hears nothing");
}

#[test]
fn an_unanswered_idle_report_is_retransmitted_after_a_message_of_the_ue() {
    let (mut world, mut phone) = with_session();
    world.script.insert(Operation::UpdateSmContext, None);
    phone.release(&mut world);
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    phone.receive(&mut world);
    let mut transport = gmm::UlNasTransport::new(PayloadContainerType::N1SmInformation, b"complete".to_vec());
    transport.pdu_session_id = Some(5);
    phone.send(&mut world, transport);
    world.take_ladder();
    // The report, which is the older call.
    world.reply_to(Operation::UpdateSmContext, Err(Problem::timed_out().into()));
    assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext");
    let Request::UpdateSmContext(update) = &world.calls.last().unwrap().2 else { panic!() };
    assert_eq!(update.body.up_cnx_state, Some(UpCnxState::Deactivated));
}

#[test]
fn a_superseded_report_is_not_retransmitted() {
    let (mut world, mut phone) = with_session();
    world.script.insert(Operation::UpdateSmContext, None);
    phone.release(&mut world);
    world.take_ladder();
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    assert_eq!(world.take_ladder(), "gnb1 -> InitialUeMessage\nsmf  <- UpdateSmContext");
    world.reply_to(Operation::UpdateSmContext, Err(Problem::timed_out().into()));
    assert!(!world.take_ladder().contains("smf"), "its user plane is being activated");
}

/// The SMF was killed, and answers neither the deactivation nor the activation that follows: its UPF still sends packets to the gNB's former tunnel.
#[test]
fn a_deactivation_that_gave_way_to_an_activation_is_repeated_if_that_fails() {
    for answers in [[0, 0], [1, 0]] {
        let (mut world, mut phone) = reconnecting();
        for at in answers {
            let (tag, ..) = world.calls.remove(at);
            world.reply(tag, Err(Problem::timed_out().into()));
        }
        let GmmMessage::ServiceAccept(accept) = phone.receive(&mut world) else { panic!() };
        assert!(accept.reactivation_result.is_some_and(|failed| failed.contains(5)));
        assert_eq!(states(&world), [UpCnxState::Deactivated], "{answers:?}");
        world.reply_to(Operation::UpdateSmContext, Ok(Response::NoContent));
        assert_eq!(states(&world), [], "the SMF has it");
    }
}

/// The gNB is lost, and the reply to the activation is late.
#[test]
fn a_deactivation_that_gave_way_to_an_activation_is_repeated_if_that_is_aborted() {
    let (mut world, _) = reconnecting();
    world.reply_to(Operation::UpdateSmContext, Err(Problem::timed_out().into()));
    assert_eq!(states(&world), [UpCnxState::Activating]);
    world.input(Input::N2(N2Input::GnbDown { gnb: GNB }));
    assert_eq!(states(&world), [UpCnxState::Activating, UpCnxState::Deactivated]);
}

#[test]
fn a_deactivation_that_gave_way_to_an_activation_is_not_repeated_after_it() {
    let (mut world, mut phone) = reconnecting();
    world.reply_to(Operation::UpdateSmContext, Err(Problem::timed_out().into()));
    let usual = world.usual(&world.calls[0].2.clone());
    world.reply_to(Operation::UpdateSmContext, usual);
    let GmmMessage::ServiceAccept(_) = phone.receive(&mut world) else { panic!() };
    assert_eq!(states(&world), []);
}

/// The UE registers again over another gNB, and its next context has the session.
#[test]
fn a_deactivation_that_gave_way_to_an_activation_is_repeated_after_a_take_over() {
    let (mut world, _) = reconnecting();
    world.reply_to(Operation::UpdateSmContext, Err(Problem::timed_out().into()));
    assert_eq!(states(&world), [UpCnxState::Activating]);
    let mut again = Phone { gnb: OTHER_GNB, ran_id: RanUeNgapId(70), ..Phone::default() };
    let request = again.registration_request(RegistrationKind::MobilityUpdating);
    let nas = again.initial_nas(request.clone());
    again.connect(&mut world, nas);
    again.authenticate(&mut world, request);
    assert_eq!(states(&world), [UpCnxState::Activating, UpCnxState::Deactivated]);
}

#[test]
fn a_deactivation_that_the_smf_has_refused_is_not_repeated_after_an_activation() {
    let (mut world, mut phone) = reconnecting();
    for problem in [Problem::mandatory_ie_incorrect("/upCnxState", "unknown"), Problem::timed_out()] {
        world.reply_to(Operation::UpdateSmContext, Err(problem.into()));
    }
    let GmmMessage::ServiceAccept(_) = phone.receive(&mut world) else { panic!() };
    assert_eq!(states(&world), []);
}

/// A phone with a session requests its user plane over another connection than before. The SMF has answered neither the deactivation nor the
/// activation.
fn reconnecting() -> (World, Phone) {
    let (mut world, mut phone) = with_session();
    world.script.insert(Operation::UpdateSmContext, None);
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    phone.released(&mut world);
    assert_eq!(states(&world), [UpCnxState::Deactivated, UpCnxState::Activating]);
    (world, phone)
}

/// The user planes that open requests to the SMF are about.
fn states(world: &World) -> Vec<UpCnxState> {
    updates(world).into_iter().filter_map(|update| update.up_cnx_state).collect()
}

#[test]
fn nothing_more_is_sent_over_a_connection_that_the_gnb_is_to_release() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    world.script.insert(Operation::CreateAmPolicyAssociation, None);
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    phone.secure(&mut world, request);
    let message = pith_ngap::UeContextReleaseRequest {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        sessions: None,
        cause: Some(Cause::RadioNetwork(CauseRadioNetwork::radio_connection_with_ue_lost)),
    };
    world.ngap(phone.gnb, "UeContextReleaseRequest", message.encode());
    assert!(world.take_ladder().ends_with("gnb1 <- UeContextReleaseCommand"));
    let refused = super::world::problem(pith_sbi::Cause::PolicyContextDenied).unwrap();
    world.reply_to(Operation::CreateAmPolicyAssociation, refused);
    assert!(!world.take_ladder().contains("gnb1 <-"));
}

#[test]
fn the_release_command_has_the_gnbs_cause() {
    let (mut world, mut phone) = with_session();
    let message = pith_ngap::UeContextReleaseRequest {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        sessions: Some(vec![5]),
        cause: Some(Cause::RadioNetwork(CauseRadioNetwork::radio_connection_with_ue_lost)),
    };
    world.ngap(GNB, "UeContextReleaseRequest", message.encode());
    let cause = phone.released(&mut world);
    assert_eq!(cause, Cause::RadioNetwork(CauseRadioNetwork::radio_connection_with_ue_lost));
}

#[test]
fn an_unconfirmed_release_times_out() {
    let (mut world, phone) = with_session();
    let message = pith_ngap::UeContextReleaseRequest {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        sessions: None,
        cause: None,
    };
    world.ngap(GNB, "UeContextReleaseRequest", message.encode());
    world.expire(Timer::NgapGuard);
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.connections), (1, 0, 0));
}

#[test]
fn a_lost_gnb_ends_its_connections_but_no_registration() {
    let (mut world, _) = with_session();
    world.input(Input::N2(N2Input::GnbDown { gnb: GNB }));
    assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext");
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connections, audit.sessions), (1, 0, 1));
}

#[test]
fn a_registration_in_progress_is_aborted_with_its_gnb() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    world.input(Input::N2(N2Input::GnbDown { gnb: GNB }));
    world.assert_empty();
}

#[test]
fn a_reset_of_one_connection_leaves_the_others() {
    let (mut world, phone) = with_session();
    let reset = |ues| Input::N2(N2Input::Reset { gnb: GNB, ues });
    let unknown = ResetUe { amf: None, ran: Some(RanUeNgapId(999)) };
    world.input(reset(Some(vec![unknown])));
    assert_eq!(world.amf.audit().connections, 1);
    let contradictory = ResetUe { amf: phone.amf_id, ran: Some(RanUeNgapId(999)) };
    world.input(reset(Some(vec![contradictory])));
    assert_eq!(world.amf.audit().connections, 1);
    let known = ResetUe { amf: phone.amf_id, ran: None };
    world.input(reset(Some(vec![known])));
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connections), (1, 0));
}

#[test]
fn a_reset_of_everything_drops_all_connections_of_that_gnb() {
    let (mut world, _) = with_session();
    world.input(Input::N2(N2Input::Reset { gnb: super::world::OTHER_GNB, ues: None }));
    assert_eq!(world.amf.audit().connections, 1);
    world.input(Input::N2(N2Input::Reset { gnb: GNB, ues: None }));
    assert_eq!(world.amf.audit().connections, 0);
}

#[test]
fn a_reused_ran_id_ends_its_previous_connection() {
    let (mut world, mut phone) = with_session();
    phone.ran_id.0 -= 1;
    let mut other = Phone { ran_id: phone.ran_id, ..Phone::default() };
    let request = other.registration_request(RegistrationKind::Initial);
    let nas = other.initial_nas(request);
    other.connect(&mut world, nas);
    let audit = world.amf.audit();
    assert_eq!((audit.connections, audit.connected, audit.registered), (1, 1, 1));
}

#[test]
fn the_radio_capability_goes_to_the_next_gnb() {
    let (mut world, mut phone) = with_session();
    let message = pith_ngap::UeRadioCapabilityInfoIndication {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        ue_radio_capability: Some(b"bands".to_vec()),
    };
    world.ngap(GNB, "UeRadioCapabilityInfoIndication", message.encode());
    phone.release(&mut world);
    let request = phone.service_request(pith_nas::ie::ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let pith_ngap::Message::InitialContextSetupRequest(setup) = world.next() else { panic!() };
    assert_eq!(setup.ue_radio_capability.as_deref(), Some(&b"bands"[..]));
    assert_eq!(setup.masked_imeisv, Some([0x43, 0x70, 0x81, 0x61, 0x25, 0xff, 0xff, 0x51]));
}

/// Each lost connection causes requests to SMFs and rules at UPFs: tens of thousands are not handled at once.
#[test]
fn the_connections_of_a_lost_gnb_are_closed_in_batches() {
    for lost in [N2Input::GnbDown { gnb: GNB }, N2Input::Reset { gnb: GNB, ues: None }] {
        let mut world = World::new();
        for number in 0..300 {
            let mut phone = Phone::default();
            phone.ran_id = RanUeNgapId(number);
            let request = phone.registration_request(RegistrationKind::Initial);
            let nas = phone.initial_nas(request);
            phone.connect(&mut world, nas);
        }
        assert_eq!(world.amf.audit().connections, 300);
        world.input(Input::N2(lost));
        assert_eq!(world.amf.audit().connections, 300 - 64);
        (0..4).for_each(|_| world.expire(Timer::LostConnections));
        assert_eq!(world.amf.audit().connections, 0);
    }
}
