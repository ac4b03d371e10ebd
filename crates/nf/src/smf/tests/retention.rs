//! Sessions that UPFs have retained while the SMF was started again (TS 29.244 6.2.6.2.2).

use super::super::procedure::State;
use super::residency::{established, restarted, stored, tracked};
use super::world::*;
use crate::kit::{N4Effect, N4Error, N4Input, Timer};
use crate::testing::Stored;
use pith_nas::gsm::PduSessionReleaseComplete;
use pith_pfcp::Message;
use pith_pfcp::ie::{ApplyAction, Cause as N4Cause, FSeid, PfcpSeReqFlags, ReportType};
use pith_pfcp::message::SessionModificationRequest;
use pith_sbi::Operation;

/// The last request: a modification.
fn modification(world: &World) -> &SessionModificationRequest {
    let Some(Message::SessionModificationRequest(request)) = world.n4.last() else { panic!() };
    request
}

fn is_established(world: &World) -> bool {
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    matches!(session.state(), State::Established(_))
}

/// A session with a classifier, as it is in the store.
pub(super) fn stored_with_classifier() -> (World, Stored) {
    let mut world = tracked(World::with(super::branching::plain(), &["upf", "edge"]));
    world.establish();
    world.gnb_answers();
    world.branch("edge");
    world.gnb_modifies(true);
    let stored = stored(&mut world);
    (world, stored)
}

#[test]
fn a_retained_session_is_confirmed_and_keeps_its_upf_session() {
    let (world, stored) = established();
    let before = world.user_plane().unwrap().anchor;
    let mut next = restarted(&world, &stored, config());
    next.associate_retaining(UPF, "upf");
    assert_eq!(next.take_ladder(), "upf <- SessionModificationRequest\ngateway <- confirmed upf");
    let request = modification(&next);
    assert_eq!(request.update_fars[0].apply_action, Some(ApplyAction::FORW));
    assert_eq!(request.update_qers.len(), 2, "the rates and the default flow");
    let (_, session) = next.bench.nf.sessions.iter().next().unwrap();
    assert_eq!(request.cp_f_seid, Some(FSeid::new(session.seid.0, "10.0.0.4".parse().unwrap())));
    assert!(request.node_id.is_some(), "another SMF of the set may have controlled it");
    assert_eq!(session.state().user_plane().unwrap().anchor, before);
    assert!(is_established(&next));
}

#[test]
fn an_idle_session_is_buffered_and_reported_again() {
    let mut world = tracked(World::new());
    world.establish();
    world.gnb_answers();
    world.deactivate();
    let stored = stored(&mut world);
    let mut next = restarted(&world, &stored, config());
    next.upf = None;
    next.associate_retaining(UPF, "upf");
    assert_eq!(modification(&next).update_fars[0].apply_action, Some(ApplyAction::BUFF | ApplyAction::NOCP));
    assert_eq!(modification(&next).pfcp_sm_req_flags, None, "buffered packets stay");
    next.take_ladder();
    next.script.insert(Operation::N1N2MessageTransfer, None);
    next.report(ReportType::DLDR);
    assert_eq!(next.take_ladder(), "upf <- SessionReportResponse", "the session is being confirmed");
    next.upf_answers_late();
    assert_eq!(next.take_ladder(), "amf <- N1N2MessageTransfer\ngateway <- confirmed upf");
}

#[test]
fn a_report_before_the_association_is_restored_does_not_end_the_session_at_the_upf() {
    let (world, stored) = stored_with_classifier();
    let mut next = restarted(&world, &stored, super::branching::plain());
    next.associate_retaining(UPF, "upf");
    assert_eq!(next.take_ladder(), "", "the classifier's UPF is awaited");
    next.report(ReportType::DLDR);
    let Some(Message::SessionReportResponse(response)) = next.n4.last() else { panic!() };
    assert_eq!(response.cause, N4Cause::RequestAccepted);
}

#[test]
fn a_upf_that_does_not_know_the_session_gets_it_again() {
    for (cause, deletes) in
        [(N4Cause::SessionContextNotFound, false), (N4Cause::RuleCreationModificationFailure, true)]
    {
        let (world, stored) = established();
        let mut next = restarted(&world, &stored, config());
        next.upf = None;
        next.associate_retaining(UPF, "upf");
        next.take_ladder();
        let (tag, upf, message) = next.open_n4.remove(0);
        next.upf = Some(Ok(N4Cause::RequestAccepted));
        next.upf_answers(tag, upf, &message, Ok(cause));
        let deletion = if deletes { "upf <- SessionDeletionRequest\n" } else { "" };
        let ladder = format!("{deletion}upf <- SessionEstablishmentRequest\ngateway <- confirmed upf");
        assert_eq!(next.take_ladder(), ladder);
        let establishment = next.n4.iter().rev().find_map(|message| match message {
            Message::SessionEstablishmentRequest(request) => Some(request),
            _ => None,
        });
        assert_eq!(establishment.unwrap().pfcp_se_req_flags, Some(PfcpSeReqFlags::RESTI));
        assert!(is_established(&next));
    }
}

/// Another SMF of the set had it, to which the UPF still counts it: the deletion may overtake the request that takes the session over.
#[test]
fn a_session_that_ends_before_its_upf_has_confirmed_it_is_deleted_as_one_of_the_set() {
    let (world, stored) = established();
    for is_confirmed in [false, true] {
        let mut next = restarted(&world, &stored, config());
        next.upf = Some(Ok(N4Cause::RequestAccepted)).filter(|_| is_confirmed);
        next.associate_sharing(UPF, "upf");
        assert_eq!(next.take_ladder(), "upf <- SessionModificationRequest");
        next.release_by_amf();
        let deletion = next.n4.iter().rev().find_map(|message| match message {
            Message::SessionDeletionRequest(request) => Some(request),
            _ => None,
        });
        assert_eq!(deletion.unwrap().node_id.is_some(), !is_confirmed);
    }
}

#[test]
fn a_session_that_ends_before_its_upf_is_asked_is_deleted_as_one_of_the_set() {
    let (world, stored) = established();
    let mut next = restarted(&world, &stored, config());
    next.release_by_amf();
    assert!(!next.take_ladder().contains("upf"));
    next.associate_sharing(UPF, "upf");
    assert_eq!(next.take_ladder(), "upf <- SessionDeletionRequest");
    let Some(Message::SessionDeletionRequest(request)) = next.n4.last() else { panic!() };
    assert!(request.node_id.is_some());
}

#[test]
fn a_upf_that_does_not_answer_ends_the_session() {
    let (world, stored) = established();
    let mut next = restarted(&world, &stored, config());
    next.upf = Some(Err(N4Error::NoAnswer));
    next.associate_retaining(UPF, "upf");
    assert_eq!(
        next.take_ladder(),
        "upf <- SessionModificationRequest\nupf <- SessionDeletionRequest\nupf <- SessionEstablishmentRequest\namf <- N1N2MessageTransfer\ngateway <- confirmed upf"
    );
    next.uplink(PduSessionReleaseComplete::new());
    assert!(next.take_ladder().contains("amf <- SmContextStatusNotify"));
    assert_eq!(next.bench.nf.audit(), Default::default());
}

#[test]
fn both_upfs_of_a_session_confirm_it() {
    let (world, stored) = stored_with_classifier();
    for (retains, rest) in [
        (true, "edge <- SessionModificationRequest\ngateway <- confirmed upf\ngateway <- confirmed edge"),
        (
            false,
            "edge <- SessionEstablishmentRequest\nupf <- SessionModificationRequest\namf <- N1N2MessageTransfer\ngateway <- confirmed upf",
        ),
    ] {
        let mut next = restarted(&world, &stored, super::branching::plain());
        if retains {
            next.associate_retaining(EDGE, "edge")
        } else {
            next.associate(EDGE, "edge")
        }
        assert_eq!(next.take_ladder(), "", "the anchor is not associated");
        next.associate_retaining(UPF, "upf");
        assert_eq!(
            sorted(&next.take_ladder()),
            sorted(&format!("upf <- SessionModificationRequest\n{rest}"))
        );
        assert_eq!(next.user_plane().unwrap().front.as_ref().unwrap().session.upf, EDGE);
    }
}

fn sorted(ladder: &str) -> Vec<&str> {
    let mut lines: Vec<_> = ladder.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn sessions_are_unconfirmed_until_each_upf_has_answered() {
    let (world, stored) = established();
    let mut next = restarted(&world, &stored, config());
    next.upf = None;
    next.associate_retaining(EDGE, "edge");
    assert_eq!(next.take_ladder(), "gateway <- confirmed edge", "no session is there");
    next.associate_retaining(UPF, "upf");
    assert_eq!(next.take_ladder(), "upf <- SessionModificationRequest");
    next.upf_answers_late();
    assert_eq!(next.take_ladder(), "gateway <- confirmed upf");
}

#[test]
fn a_upf_that_restarts_while_it_is_asked_gets_the_session_again() {
    let (world, stored) = established();
    let mut next = restarted(&world, &stored, config());
    next.upf = None;
    next.associate_retaining(UPF, "upf");
    let (tag, _, _) = next.open_n4.remove(0);
    next.n4_input(N4Input::Response { tag, result: Err(N4Error::NoAssociation) });
    next.n4_input(N4Input::UpfRestarted { upf: UPF });
    next.take_ladder();
    next.associate(EDGE, "upf");
    assert_eq!(next.take_ladder(), "upf <- SessionEstablishmentRequest");
}

#[test]
fn a_classifier_whose_upf_is_not_associated_is_awaited_for_a_while() {
    let mut world = tracked(World::with(super::branching::plain(), &["upf", "edge"]));
    world.establish();
    world.gnb_answers();
    world.branch("edge");
    world.gnb_modifies(true);
    world.deactivate();
    let stored = stored(&mut world);
    let start = || {
        let mut next = restarted(&world, &stored, super::branching::plain());
        next.associate(UPF, "upf");
        assert_eq!(next.take_ladder(), "", "its UPF may be associated shortly");
        next
    };
    let mut next = start();
    next.associate(EDGE, "edge");
    assert!(next.take_ladder().contains("edge <- SessionEstablishmentRequest"));
    assert_eq!(next.bench.timers.len(), 0);
    assert!(next.user_plane().unwrap().front.is_some());
    let mut next = start();
    next.expire(Timer::SbiGuard);
    assert_eq!(next.take_ladder(), "upf <- SessionEstablishmentRequest");
    assert!(next.user_plane().unwrap().front.is_none());
    let mut next = start();
    next.update(|data| data.up_cnx_state = Some(pith_sbi::nsmf_pdusession::UpCnxState::Activating));
    assert_eq!(next.take_ladder(), "upf <- SessionEstablishmentRequest\namf <- 200", "the UE does not wait");
}

/// Another SMF of the set had the session there, or the UPF has retained it.
#[test]
fn a_classifier_that_was_left_out_has_no_session_when_its_upf_is_associated() {
    let (world, stored) = stored_with_classifier();
    let associations: [fn(&mut World); 2] =
        [|next| next.associate_sharing(EDGE, "edge"), |next| next.associate_retaining(EDGE, "edge")];
    let ways: [fn(&mut World); 2] = [
        |next| next.expire(Timer::SbiGuard),
        |next| {
            next.update(|data| data.up_cnx_state = Some(pith_sbi::nsmf_pdusession::UpCnxState::Activating));
        },
    ];
    for (associate, leave_out) in associations.into_iter().flat_map(|it| ways.map(|way| (it, way))) {
        let mut next = restarted(&world, &stored, super::branching::plain());
        next.associate(UPF, "upf");
        leave_out(&mut next);
        next.take_ladder();
        associate(&mut next);
        assert!(next.take_ladder().starts_with("edge <- SessionDeletionRequest"));
    }
}

/// An effect for the gateway, as a line of the ladder.
pub(super) fn line(effect: &N4Effect, name: impl Fn(crate::kit::UpfHandle) -> String) -> Option<String> {
    match effect {
        N4Effect::Confirmed { upf } => Some(format!("gateway <- confirmed {}", name(*upf))),
        _ => None,
    }
}
