//! Established sessions: replaced, released, idle, lost.

use super::super::*;
use super::world::*;
use crate::kit::{N4Error, Timer};
use pith_nas::gsm::{PduSessionReleaseComplete, PduSessionReleaseRequest};
use pith_nas::{GsmBody, GsmCause};
use pith_ngap::transfer::Tunnel;
use pith_pfcp::ie::{ApplyAction, Cause as N4Cause, FTeid, PfcpSmReqFlags, ReportType};
use pith_sbi::namf_communication::{
    N1N2MessageTransferCause, N1N2MessageTransferReqData, N1N2MsgTxfrFailureNotification,
    N1N2TransferFailureNotification, NgapIeType,
};
use pith_sbi::nsmf_pdusession::{N2SmInfoType, UpCnxState};
use pith_sbi::nudm_uecm::{DeregistrationData, DeregistrationNotification, DeregistrationReason};
use pith_sbi::{Cause, NfType, Operation, Request, Response, Uri};
use pith_types::Teid;

#[test]
fn a_session_that_the_ue_forgot_is_replaced() {
    let mut world = World::established();
    let old = world.reference.clone();
    world.establish();
    assert!(world.take_ladder().starts_with(
        "upf <- SessionDeletionRequest
pcf <- DeleteSmPolicy
udm <- GetSmData"
    ));
    assert_ne!(world.reference, old);
    assert_eq!(world.bench.nf.audit().contexts, 1);
}

#[test]
fn the_pending_answer_to_the_amf_is_sent_even_if_the_session_is_replaced() {
    let mut world = World::new();
    world.script.insert(Operation::GetSmData, None);
    world.establish();
    world.establish();
    assert_eq!(world.answers.len(), 1, "the first");
    assert_eq!(world.refusal(), &Cause::ContextNotFound);
}

#[test]
fn a_ue_releases_its_session() {
    let mut world = World::established();
    world.uplink(PduSessionReleaseRequest::new());
    assert_eq!(world.take_ladder(), "upf <- SessionDeletionRequest\namf <- 200");
    let command = world.n1.last().unwrap();
    assert!(matches!(command.body, GsmBody::PduSessionReleaseCommand(_)));
    assert_eq!(command.pti, 9, "that of the request");
    world.uplink(PduSessionReleaseComplete::new());
    assert_eq!(
        world.take_ladder(),
        "amf <- 204\namf <- SmContextStatusNotify\npcf <- DeleteSmPolicy\nudm <- SmfDeregistration"
    );
    world.is_quiet();
}

#[test]
fn the_release_command_is_retransmitted_four_times_and_then_the_session_ends() {
    let mut world = World::established();
    world.uplink(PduSessionReleaseRequest::new());
    world.take_ladder();
    for _ in 0..4 {
        world.expire(Timer::T3592);
        assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
        assert!(matches!(world.n1.last().unwrap().body, GsmBody::PduSessionReleaseCommand(_)));
    }
    world.expire(Timer::T3592);
    assert!(world.take_ladder().starts_with("amf <- SmContextStatusNotify"));
    world.is_quiet();
}

#[test]
fn the_amf_releases_a_session_without_the_ue() {
    let mut world = World::established();
    world.release_by_amf();
    assert_eq!(
        world.take_ladder(),
        "upf <- SessionDeletionRequest\npcf <- DeleteSmPolicy\nudm <- SmfDeregistration\namf <- 204"
    );
    world.is_quiet();
    world.release_by_amf();
    assert_eq!(world.refusal(), &Cause::ContextNotFound);
}

#[test]
fn the_user_plane_is_deactivated_and_activated_again() {
    let mut world = World::established();
    world.deactivate();
    assert_eq!(world.take_ladder(), "upf <- SessionModificationRequest\namf <- 200");
    assert_eq!(downlink_action(&world), ApplyAction::BUFF | ApplyAction::NOCP);
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    let Some(Ok(Response::SmContextUpdated(data))) = world.answers.last() else { panic!() };
    assert_eq!(data.n2_sm_info_type, Some(N2SmInfoType::PduResSetupReq));
    world.gnb_answers();
    assert_eq!(downlink_action(&world), ApplyAction::FORW);
}

#[test]
fn updates_during_an_n4_modification_are_pending() {
    let mut world = World::new();
    world.establish();
    world.upf = None;
    world.gnb_answers();
    world.deactivate();
    world.uplink(PduSessionReleaseRequest::new());
    world.take_ladder();
    world.upf_answers_late();
    assert_eq!(
        world.take_ladder(),
        "amf <- 200
upf <- SessionModificationRequest
amf <- 200
upf <- SessionDeletionRequest
amf <- 200"
    );
}

#[test]
fn pending_updates_are_answered_when_the_session_ends() {
    let mut world = World::established();
    world.upf = None;
    world.deactivate();
    world.gnb_answers();
    let before = world.answers.len();
    world.release_by_amf();
    assert_eq!(world.answers.len(), before + 3, "both updates and the release");
    world.is_quiet();
}

#[test]
fn a_upf_that_refuses_new_rules_ends_the_session() {
    let mut world = World::established();
    world.upf = Some(Ok(N4Cause::SessionContextNotFound));
    world.deactivate();
    assert_eq!(world.refusal(), &Cause::InsufficientResources);
    world.is_quiet();
}

#[test]
fn the_pending_answer_to_the_amf_is_sent_when_it_releases_the_session() {
    let mut world = World::established();
    world.upf = None;
    world.deactivate();
    let before = world.answers.len();
    world.release_by_amf();
    assert_eq!(world.answers.len(), before + 2, "the waiting update and the release");
    world.is_quiet();
}

#[test]
fn downlink_data_for_an_idle_ue_causes_paging() {
    let mut world = World::established();
    world.deactivate();
    world.take_ladder();
    world.script.insert(Operation::N1N2MessageTransfer, None);
    world.report(ReportType::DLDR);
    assert_eq!(world.take_ladder(), "upf <- SessionReportResponse\namf <- N1N2MessageTransfer");
    let Request::N1N2MessageTransfer(transfer) = &world.open[0].1 else { panic!() };
    assert!(transfer.body.n1_message_container.is_none() && transfer.body.n2_info_container.is_some());
    let uri = transfer.body.n1n2_failure_txf_notif_uri.as_ref().unwrap();
    assert_eq!(uri.id(), world.reference, "the URI for the failure notification");
}

#[test]
fn a_report_that_crosses_the_activation_of_the_user_plane_needs_nothing() {
    let mut world = World::established();
    world.deactivate();
    world.upf = None;
    world.gnb_answers();
    world.take_ladder();
    world.report(ReportType::DLDR);
    assert_eq!(world.take_ladder(), "upf <- SessionReportResponse", "the UPF does not have the tunnel yet");
    world.upf_answers_late();
    assert_eq!(world.take_ladder(), "amf <- 200");
    world.report(ReportType::DLDR);
    assert_eq!(world.take_ladder(), "upf <- SessionReportResponse", "the gNB keeps its resources");
    assert_eq!(downlink_action(&world), ApplyAction::FORW);
}

#[test]
fn packets_for_a_ue_that_does_not_answer_are_dropped_and_the_next_one_is_reported() {
    let mut world = World::established();
    world.deactivate();
    world.script.insert(Operation::N1N2MessageTransfer, None);
    world.report(ReportType::DLDR);
    let Request::N1N2MessageTransfer(transfer) = &world.open[0].1 else { panic!() };
    let uri = transfer.body.n1n2_failure_txf_notif_uri.clone().unwrap();
    world.take_ladder();
    not_delivered(&mut world, uri);
    assert_eq!(world.take_ladder(), "upf <- SessionModificationRequest\namf <- 204");
    let Some(Message::SessionModificationRequest(request)) = world.n4.last() else { panic!() };
    assert_eq!(request.pfcp_sm_req_flags, Some(PfcpSmReqFlags::DROBU));
    assert_eq!(downlink_action(&world), ApplyAction::BUFF | ApplyAction::NOCP);
    assert_eq!(world.bench.nf.audit().contexts, 1, "the session is still established");
}

#[test]
fn a_report_for_an_unknown_session_is_refused() {
    let mut world = World::new();
    world.report(ReportType::DLDR);
    let Some(Message::SessionReportResponse(response)) = world.n4.last() else { panic!() };
    assert_eq!(response.cause, N4Cause::SessionContextNotFound);
}

#[test]
fn after_an_error_indication_of_the_gnb_its_resources_are_set_up_again() {
    let mut world = World::established();
    world.report_lost(GNB_TUNNEL);
    assert_eq!(
        world.take_ladder(),
        "upf <- SessionReportResponse\nupf <- SessionModificationRequest\namf <- N1N2MessageTransfer"
    );
    assert_eq!(downlink_action(&world), ApplyAction::BUFF | ApplyAction::NOCP);
    let released = world.transfers.last().unwrap();
    assert_eq!(released.skip_ind, Some(true), "an idle UE is not paged for a release");
    assert_eq!(kind(released), Some(NgapIeType::PduResRelCmd));
    world.report(ReportType::DLDR);
    assert_eq!(world.take_ladder(), "upf <- SessionReportResponse", "one thing after the other");
    world.update(|data| data.n2_sm_info_type = Some(N2SmInfoType::PduResRelRsp));
    assert_eq!(world.take_ladder(), "amf <- 204\namf <- N1N2MessageTransfer");
    assert_eq!(kind(world.transfers.last().unwrap()), Some(NgapIeType::PduResSetupReq));
    world.gnb_answers();
    assert_eq!(downlink_action(&world), ApplyAction::FORW);
    assert!(world.bench.timers.is_empty());
}

#[test]
fn an_error_indication_for_an_idle_ue_causes_paging() {
    let mut world = World::established();
    world.script.insert(Operation::N1N2MessageTransfer, problem(Cause::UeInCmIdleState));
    world.report_lost(GNB_TUNNEL);
    assert!(world.take_ladder().ends_with("amf <- N1N2MessageTransfer\namf <- N1N2MessageTransfer"));
    let [.., released, page] = &world.transfers[..] else { panic!() };
    assert_eq!(kind(released), Some(NgapIeType::PduResRelCmd));
    assert_eq!((kind(page), page.skip_ind), (Some(NgapIeType::PduResSetupReq), None));
}

#[test]
fn resources_are_set_up_again_even_if_the_gnb_does_not_confirm_their_release() {
    let mut world = World::established();
    world.report_lost(GNB_TUNNEL);
    world.take_ladder();
    world.expire(Timer::SbiGuard);
    assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
    assert_eq!(kind(world.transfers.last().unwrap()), Some(NgapIeType::PduResSetupReq));
}

#[test]
fn an_error_indication_while_the_session_changes_is_processed_afterwards() {
    let mut world = World::established();
    world.upf = None;
    world.gnb_answers();
    world.report_lost(GNB_TUNNEL);
    world.take_ladder();
    world.upf_answers_late();
    assert_eq!(
        world.take_ladder(),
        "amf <- 200\nupf <- SessionModificationRequest\namf <- N1N2MessageTransfer"
    );
}

#[test]
fn an_error_indication_for_another_tunnel_changes_nothing() {
    let mut world = World::established();
    world.report_lost(Tunnel { teid: Teid(0x43), ..GNB_TUNNEL });
    assert_eq!(world.take_ladder(), "upf <- SessionReportResponse");
}

fn kind(transfer: &N1N2MessageTransferReqData) -> Option<NgapIeType> {
    let container = transfer.n2_info_container.clone()?;
    container.sm_info?.n2_info_content?.ngap_ie_type
}

#[test]
fn the_sessions_of_a_lost_upf_end() {
    let mut world = World::established();
    world.deactivate();
    world.take_ladder();
    world.n4_input(N4Input::UpfDown { upf: UPF });
    assert_eq!(
        world.take_ladder(),
        "amf <- SmContextStatusNotify\npcf <- DeleteSmPolicy\nudm <- SmfDeregistration"
    );
    world.is_quiet();
}

/// A phone in CM-CONNECTED would otherwise send into a session that has ended.
#[test]
fn the_ue_of_an_active_session_of_a_lost_upf_is_requested_to_establish_it_again() {
    let mut world = World::established();
    world.n4_input(N4Input::UpfDown { upf: UPF });
    assert_eq!(
        world.take_ladder(),
        "amf <- N1N2MessageTransfer",
        "the UPF is gone: nothing is deleted there"
    );
    assert_eq!(kind(world.transfers.last().unwrap()), Some(NgapIeType::PduResRelCmd));
    let GsmBody::PduSessionReleaseCommand(command) = &world.n1.last().unwrap().body else { panic!() };
    assert_eq!(command.cause, GsmCause::ReactivationRequested);
    world.uplink(PduSessionReleaseComplete::new());
    assert_eq!(
        world.take_ladder(),
        "amf <- 204\namf <- SmContextStatusNotify\npcf <- DeleteSmPolicy\nudm <- SmfDeregistration"
    );
    world.is_quiet();
}

/// TS 23.527 4.3.2: with the same address and F-TEID; UE and gNB notice nothing.
#[test]
fn a_restarted_upf_gets_its_sessions_again() {
    let mut world = World::established();
    let tunnel = world.user_plane().unwrap().anchor.tunnel;
    world.n4_input(N4Input::UpfRestarted { upf: UPF });
    assert_eq!(world.take_ladder(), "");
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    assert_eq!(world.take_ladder(), "", "answered when the UPF has the session");
    world.associate(UpfHandle(9), "upf");
    assert_eq!(world.take_ladder(), "upf <- SessionEstablishmentRequest\namf <- 200");
    let Some(Message::SessionEstablishmentRequest(request)) = world.n4.last() else { panic!() };
    assert_eq!(request.create_pdrs[0].pdi.local_f_teid, Some(FTeid::new(tunnel.teid.0, tunnel.address)));
    assert_eq!(request.create_fars[1].apply_action, ApplyAction::FORW, "the gNB has its tunnel");
    world.gnb_answers();
    assert_eq!(world.take_ladder(), "upf <- SessionModificationRequest\namf <- 200");
}

#[test]
fn a_change_that_a_restarted_upf_did_not_answer_is_in_force_when_it_returns() {
    let mut world = World::established();
    world.upf = None;
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Deactivated));
    let (tag, ..) = world.open_n4.remove(0);
    assert_eq!(world.take_ladder(), "upf <- SessionModificationRequest");
    world.n4_input(N4Input::Response { tag, result: Err(N4Error::NoAssociation) });
    world.n4_input(N4Input::UpfRestarted { upf: UPF });
    assert_eq!(world.take_ladder(), "amf <- 200");
    // It restarts once more.
    world.associate(UpfHandle(9), "upf");
    let (tag, ..) = world.open_n4.remove(0);
    world.n4_input(N4Input::Response { tag, result: Err(N4Error::NoAssociation) });
    world.n4_input(N4Input::UpfRestarted { upf: UpfHandle(9) });
    world.upf = Some(Ok(N4Cause::RequestAccepted));
    world.associate(UpfHandle(10), "upf");
    assert_eq!(world.take_ladder(), "upf <- SessionEstablishmentRequest\nupf <- SessionEstablishmentRequest");
    let Some(Message::SessionEstablishmentRequest(request)) = world.n4.last() else { panic!() };
    assert_eq!(request.create_fars[1].apply_action, ApplyAction::BUFF | ApplyAction::NOCP);
}

#[test]
fn the_sessions_of_a_restarted_upf_that_does_not_return_end() {
    let mut world = World::established();
    world.deactivate();
    world.take_ladder();
    world.n4_input(N4Input::UpfRestarted { upf: UPF });
    world.n4_input(N4Input::UpfDown { upf: UPF });
    assert_eq!(
        world.take_ladder(),
        "amf <- SmContextStatusNotify\npcf <- DeleteSmPolicy\nudm <- SmfDeregistration"
    );
    world.is_quiet();
}

/// Each end of a session needs calls to other NFs: the tens of thousands of sessions of a UPF are not ended at once.
#[test]
fn the_sessions_of_a_lost_upf_are_ended_in_batches() {
    const SESSIONS: usize = 300;
    let mut config = config();
    config.data_networks[0].pool = ("10.45.0.0".parse().unwrap(), 16);
    let mut world = World::with(config, &["upf"]);
    for number in 0..SESSIONS {
        world.supi = format!("imsi-99970{number:010}").parse().unwrap();
        world.establish();
        world.gnb_answers();
        world.deactivate();
    }
    assert_eq!(world.bench.nf.audit().contexts, SESSIONS);
    world.take_ladder();
    world.n4_input(N4Input::UpfDown { upf: UPF });
    assert_eq!(world.bench.nf.audit().contexts, SESSIONS - 128);
    world.expire(Timer::LostSessions);
    world.expire(Timer::LostSessions);
    assert_eq!(world.take_ladder().matches("SmContextStatusNotify").count(), SESSIONS);
    world.is_quiet();
}

#[test]
fn an_abandoned_establishment_is_deleted_at_the_upf_once_it_answers() {
    let mut world = World::new();
    world.upf = None;
    world.establish();
    world.release_by_amf();
    world.take_ladder();
    world.upf_answers_late();
    assert_eq!(world.take_ladder(), "upf <- SessionDeletionRequest");
    world.is_quiet();
}

#[test]
fn the_amf_is_notified_once_of_an_abandoned_establishment() {
    let mut world = World::new();
    world.upf = None;
    world.establish();
    world.release_by_amf();
    world.take_ladder();
    world.n4_input(N4Input::UpfDown { upf: UPF });
    assert_eq!(world.take_ladder(), "");
    world.is_quiet();
}

/// The AMF notifies that the UE did not answer the paging.
pub(super) fn not_delivered(world: &mut World, uri: Uri) {
    let body = N1N2MsgTxfrFailureNotification::new(N1N2MessageTransferCause::UeNotResponding, uri.clone());
    let seen = world.bench.request(N1N2TransferFailureNotification { uri, body });
    world.follow(seen);
}

/// The UDM withdraws the session.
pub(super) fn withdraw(world: &mut World) {
    deregistered(world, DeregistrationReason::SubscriptionWithdrawn);
}

fn deregistered(world: &mut World, reason: DeregistrationReason) {
    let uri = Uri::callback(&crate::testing::root("smf"), &NfType::Smf, "dereg-notify", &world.reference);
    let body = DeregistrationData::new(reason);
    let seen = world.bench.request(DeregistrationNotification { uri, body });
    world.follow(seen);
}

#[test]
fn a_withdrawn_session_is_released() {
    let mut world = World::established();
    withdraw(&mut world);
    assert_eq!(world.take_ladder(), "upf <- SessionDeletionRequest\namf <- N1N2MessageTransfer\namf <- 204");
    assert!(matches!(world.n1.last().unwrap().body, GsmBody::PduSessionReleaseCommand(_)));
    withdraw(&mut world);
    assert_eq!(world.take_ladder(), "amf <- 204", "once is enough");
    world.uplink(PduSessionReleaseComplete::new());
    world.is_quiet();
}

/// The UE has established it again, over an AMF that did not know this session; its registration in the UDM is that of the other.
#[test]
fn a_session_that_another_context_has_ends_without_messages_to_the_ue() {
    let mut world = World::established();
    deregistered(&mut world, DeregistrationReason::DuplicatePduSession);
    let ladder = world.take_ladder();
    assert!(ladder.contains("amf <- SmContextStatusNotify") && ladder.contains("DeleteSmPolicy"), "{ladder}");
    assert!(!ladder.contains("SmfDeregistration") && !ladder.contains("N1N2"), "{ladder}");
    assert_eq!(world.bench.nf.audit().contexts, 0);
}

#[test]
fn a_session_withdrawn_while_it_changes_is_released_afterwards() {
    let mut world = World::established();
    world.upf = None;
    world.deactivate();
    withdraw(&mut world);
    assert_eq!(world.take_ladder(), "upf <- SessionModificationRequest\namf <- 204");
    world.upf_answers_late();
    assert_eq!(world.take_ladder(), "amf <- 200\nupf <- SessionDeletionRequest\namf <- N1N2MessageTransfer");
    assert!(matches!(world.n1.last().unwrap().body, GsmBody::PduSessionReleaseCommand(_)));
}

#[test]
fn a_session_withdrawn_during_its_establishment_is_released_afterwards() {
    let mut world = World::new();
    world.establish();
    withdraw(&mut world);
    world.take_ladder();
    world.gnb_answers();
    assert_eq!(
        world.take_ladder(),
        "upf <- SessionModificationRequest\namf <- 200\nupf <- SessionDeletionRequest\namf <- N1N2MessageTransfer"
    );
    world.uplink(PduSessionReleaseComplete::new());
    world.is_quiet();
}
