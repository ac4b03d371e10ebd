//! A classifier is inserted into an established session, and removed again.

use super::super::*;
use super::handover;
use super::upfs::{breakout, downlink_to, uplink_sent_to_gnb};
use super::world::*;
use crate::kit::{N4Error, Timer};
use pith_nas::gsm::PduSessionReleaseComplete;
use pith_ngap::transfer::{ModifyRequestTransfer, ModifyResponseTransfer, Tunnel, TunnelChange};
use pith_pfcp::Message;
use pith_pfcp::ie::{ApplyAction, Cause as N4Cause, PfcpSmReqFlags, ReportType};
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use pith_sbi::{Cause, Operation, Problem};

const BRANCH: &str =
    "edge <- SessionEstablishmentRequest\nupf <- SessionModificationRequest\namf <- N1N2MessageTransfer";

/// Two UPFs, of which `edge` is no anchor, and no configured breakout.
pub(super) fn plain() -> SmfConfig {
    let mut config = breakout();
    config.breakouts.clear();
    config
}

pub(super) fn established() -> World {
    let mut world = World::with(plain(), &["upf", "edge"]);
    world.establish();
    world.gnb_answers();
    world.take_ladder();
    world
}

/// A session with a classifier.
pub(super) fn branched() -> World {
    let mut world = established();
    assert_eq!(world.branch("edge"), None);
    world.gnb_modifies(true);
    world.take_ladder();
    world
}

const GNB: fn() -> Tunnel = || Tunnel { address: "10.0.0.2".parse().unwrap(), teid: pith_types::Teid(0x42) };

impl World {
    fn order(&mut self, order: &Order) -> Option<String> {
        let (mut list, mut out) = (Vec::new(), Outbox::new(Level::Debug));
        self.bench.nf.operate(Instant::default(), order, &mut out, &mut list);
        let seen = self.bench.take(out);
        self.follow(seen);
        assert_eq!(list.len(), 1, "this shard has the session");
        list[0]["refusal"].as_str().map(str::to_owned)
    }

    pub fn branch(&mut self, upf: &str) -> Option<String> {
        let destinations = vec![("192.0.2.0".parse().unwrap(), 24)];
        let supi = crate::testing::supi();
        self.order(&Order::Branch { supi, pdu_session_id: 5, upf: upf.into(), destinations })
    }

    pub fn unbranch(&mut self) -> Option<String> {
        self.order(&Order::Unbranch { supi: crate::testing::supi(), pdu_session_id: 5 })
    }

    pub fn gnb_modifies(&mut self, done: bool) {
        self.update(|data| {
            data.n2_sm_info_type =
                Some(if done { N2SmInfoType::PduResModRsp } else { N2SmInfoType::PduResModFail });
            data.n2_sm_info = Some(ModifyResponseTransfer::default().encode().into());
        });
    }

    fn front(&self) -> Option<UpfHandle> {
        self.user_plane()?.front.as_ref().map(|front| front.session.upf)
    }
}

/// The tunnel change that was last sent to the gNB.
fn tunnel_change(world: &World) -> TunnelChange {
    let transfer = world.transfers.last().unwrap();
    assert_eq!(transfer.skip_ind, Some(true), "an idle UE is not paged for it");
    let container = transfer.n2_info_container.clone().unwrap();
    let content = container.sm_info.unwrap().n2_info_content.unwrap();
    ModifyRequestTransfer::decode(&content.ngap_data.content).unwrap().tunnels[0]
}

/// Whether the last modification sends an End Marker.
fn end_marker(world: &World) -> bool {
    let Some(Message::SessionModificationRequest(request)) = world.n4.last() else { panic!() };
    let parameters = request.update_fars[0].update_forwarding_parameters.as_ref().unwrap();
    parameters.pfcp_sm_req_flags == Some(PfcpSmReqFlags::SNDEM)
}

#[test]
fn a_classifier_is_inserted_step_by_step() {
    let mut world = established();
    assert_eq!(world.branch("edge"), None);
    assert_eq!(world.take_ladder(), BRANCH, "downlink first");
    assert_eq!((downlink_to(&world), end_marker(&world)), (tunnel_of(EDGE, 2), true));
    assert_eq!(tunnel_change(&world), TunnelChange { uplink: tunnel_of(EDGE, 1), downlink: GNB() });
    world.gnb_modifies(true);
    assert_eq!(world.take_ladder(), "amf <- 204");
    assert_eq!((world.front(), world.bench.timers.len()), (Some(EDGE), 0));
    world.deactivate();
    assert_eq!(world.take_ladder(), "edge <- SessionModificationRequest\namf <- 200");
    assert_eq!(uplink_sent_to_gnb(&mut world), tunnel_of(EDGE, 1));
}

/// The AMF would send the target gNB the request afterwards, with the tunnel of the source gNB, and waits for the SMF meanwhile.
#[test]
fn a_path_switch_that_waits_for_a_classifier_gets_its_endpoint() {
    let mut world = established();
    world.upf = None;
    world.branch("edge");
    handover::switch(&mut world);
    assert_eq!(world.take_ladder(), "edge <- SessionEstablishmentRequest");
    world.upf_answers_late();
    let ladder = world.take_ladder();
    assert!(!ladder.contains("N1N2MessageTransfer") && ladder.ends_with("amf <- 200"), "{ladder}");
    assert_eq!(handover::switched_uplink(&world), Some(tunnel_of(EDGE, 1)));
}

/// UPFs that have not deleted a session that has left the path. Until then its block does not pass to another shard.
fn leaving(world: &World) -> Vec<UpfHandle> {
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    let leaving: Vec<_> = session.leaving.iter().map(|at| at.upf).collect();
    assert_eq!(world.bench.nf.is_unsettled_session(session.id), !leaving.is_empty());
    leaving
}

#[test]
fn a_classifier_is_removed_step_by_step() {
    let mut world = branched();
    assert_eq!(world.unbranch(), None);
    assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
    assert_eq!(tunnel_change(&world), TunnelChange { uplink: tunnel_of(UPF, 0), downlink: GNB() });
    world.gnb_modifies(true);
    assert_eq!(world.take_ladder(), "amf <- 204\nupf <- SessionModificationRequest");
    assert_eq!((downlink_to(&world), end_marker(&world)), (GNB(), true));
    assert_eq!(world.branch("edge").as_deref(), Some("the session is changing: try again in a moment"));
    world.silent.insert(EDGE);
    world.expire(Timer::PathGrace);
    assert_eq!(world.take_ladder(), "edge <- SessionDeletionRequest", "after packets in transit have passed");
    assert_eq!((world.front(), world.bench.nf.audit().n4_sessions), (None, 1));
    assert_eq!(leaving(&world), [EDGE], "the document names the session until the UPF has deleted it");
    world.upf_answers_late();
    assert_eq!(leaving(&world), []);
    assert_eq!(world.branch("edge"), None, "the classifier can be inserted again");
}

/// The request names the gNB's tunnel: in a handover that of the source gNB, which the target does not have.
#[test]
fn a_classifier_is_removed_after_the_handover() {
    let mut world = branched();
    handover::required(&mut world);
    handover::prepared(&mut world);
    world.take_ladder();
    assert_eq!(world.unbranch(), None);
    assert_eq!(world.take_ladder(), "");
    handover::completed(&mut world);
    assert_eq!(
        world.take_ladder(),
        "edge <- SessionModificationRequest\namf <- 200\namf <- N1N2MessageTransfer"
    );
    assert_eq!(tunnel_change(&world), TunnelChange { uplink: tunnel_of(UPF, 0), downlink: handover::TARGET });
}

/// HANDOVER REQUIRED crosses the request, and a gNB that hands the UE over need not answer.
#[test]
fn a_handover_is_prepared_while_the_gnb_is_to_switch_the_uplink() {
    for is_refused in [false, true] {
        let mut world = branched();
        if is_refused {
            let problem = Problem::new(Cause::TemporaryRejectHandoverOngoing);
            world.script.insert(Operation::N1N2MessageTransfer, Some(Err(Box::new(problem))));
        }
        world.unbranch();
        assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
        world.script.clear();
        handover::required(&mut world);
        handover::prepared(&mut world);
        assert_eq!(world.take_ladder(), "amf <- 200\namf <- 200");
        handover::completed(&mut world);
        world.take_ladder();
        assert_eq!(tunnel_change(&world).downlink, handover::TARGET);
        world.gnb_modifies(true);
        assert_eq!(world.take_ladder(), "amf <- 204\nupf <- SessionModificationRequest");
        assert_eq!(world.front(), None);
    }
}

/// The anchor has not answered when HANDOVER REQUIRED arrives.
#[test]
fn a_handover_is_prepared_before_the_gnb_is_to_switch_the_uplink() {
    let mut world = established();
    world.silent.insert(UPF);
    world.branch("edge");
    handover::required(&mut world);
    world.take_ladder();
    world.upf_answers_late();
    assert_eq!(world.take_ladder(), "amf <- 200", "the source gNB gets no request");
    handover::prepared(&mut world);
    handover::completed(&mut world);
    let ladder = world.take_ladder();
    assert!(!ladder.contains("N1N2MessageTransfer"), "the target gNB has the endpoint: {ladder}");
    assert_eq!((world.front(), world.transfers.len(), world.bench.timers.len()), (Some(EDGE), 1, 0));
}

#[test]
fn a_gnb_that_refuses_or_does_not_answer_leaves_the_session_unchanged() {
    for silent in [false, true] {
        let mut world = established();
        world.branch("edge");
        world.take_ladder();
        if silent {
            world.expire(Timer::SbiGuard);
        } else {
            world.gnb_modifies(false);
        }
        assert_eq!((downlink_to(&world), end_marker(&world)), (GNB(), true), "the downlink returns");
        let ladder = if silent {
            "upf <- SessionModificationRequest\namf <- N1N2MessageTransfer"
        } else {
            "amf <- 204\nupf <- SessionModificationRequest"
        };
        assert_eq!(world.take_ladder(), ladder, "a silent gNB may have switched");
        if silent {
            assert_eq!(tunnel_change(&world).uplink, tunnel_of(UPF, 0));
            world.gnb_modifies(true);
            world.take_ladder();
        }
        world.expire(Timer::PathGrace);
        assert_eq!(world.take_ladder(), "edge <- SessionDeletionRequest");
        assert_eq!((world.front(), world.bench.nf.audit().n4_sessions), (None, 1));
        assert_eq!(uplink_sent_to_gnb(&mut world), tunnel_of(UPF, 0));
    }
}

#[test]
fn a_gnb_that_does_not_answer_the_removal_of_a_classifier_gets_the_endpoint_in_force_again() {
    let mut world = branched();
    world.unbranch();
    world.take_ladder();
    world.expire(Timer::SbiGuard);
    assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer", "the gNB may have switched");
    assert_eq!(tunnel_change(&world).uplink, tunnel_of(EDGE, 1));
    world.gnb_modifies(true);
    assert_eq!((world.front(), world.bench.timers.len()), (Some(EDGE), 0));
}

#[test]
fn a_gnb_that_never_answers_loses_the_resources_of_the_session() {
    let mut world = branched();
    world.unbranch();
    world.take_ladder();
    world.expire(Timer::SbiGuard);
    assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer", "the endpoint in force");
    world.expire(Timer::SbiGuard);
    let to_anchor = "upf <- SessionModificationRequest\namf <- N1N2MessageTransfer";
    assert_eq!(world.take_ladder(), to_anchor, "the anchor's");
    world.expire(Timer::SbiGuard);
    let lost =
        "upf <- SessionModificationRequest\namf <- N1N2MessageTransfer\nedge <- SessionDeletionRequest";
    assert_eq!(world.take_ladder(), lost, "as if it had lost the tunnel");
    assert_eq!(downlink_action(&world), ApplyAction::BUFF | ApplyAction::NOCP);
    assert!(world.user_plane().unwrap().gnb.is_none());
    world.script.insert(Operation::N1N2MessageTransfer, None);
    world.expire(Timer::SbiGuard);
    assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer", "the user plane is set up again");
    assert_eq!(world.bench.timers.len(), 0, "nothing is repeated any longer");
}

#[test]
fn a_upf_that_requested_its_release_becomes_no_classifier() {
    let mut world = established();
    world.n4_input(N4Input::UpfLeaves { upf: EDGE });
    let refusal = "that UPF is going out of service: it accepts no new sessions";
    assert_eq!(world.branch("edge").as_deref(), Some(refusal));
}

#[test]
fn an_amf_that_refuses_leaves_the_session_unchanged() {
    let mut world = established();
    world.script.insert(Operation::N1N2MessageTransfer, problem(Cause::TemporaryRejectRegistrationOngoing));
    world.branch("edge");
    assert_eq!(world.front(), None);
    let mut world = branched();
    world.script.insert(Operation::N1N2MessageTransfer, problem(Cause::TemporaryRejectRegistrationOngoing));
    world.unbranch();
    assert_eq!(world.front(), Some(EDGE), "the classifier is not removed either");
}

/// An AMF that is killed may have sent the request on to the gNB before.
#[test]
fn the_endpoint_in_force_is_sent_again_if_an_amf_does_not_answer() {
    let fails = |world: &mut World, cause: &Cause| {
        world.take_ladder();
        let (tag, _) = world.open.pop().unwrap();
        let seen = world.bench.reply(tag, problem(cause.clone()).unwrap());
        world.follow(seen);
        assert_eq!(world.take_ladder(), "", "{cause:?}: the gNB may answer");
        world.expire(Timer::SbiGuard);
    };
    for cause in [Cause::TimedOutRequest, Cause::TargetNfNotReachable, Cause::NetworkFailure] {
        let mut world = established();
        world.script.insert(Operation::N1N2MessageTransfer, None);
        world.branch("edge");
        fails(&mut world, &cause);
        assert_eq!(world.take_ladder(), "upf <- SessionModificationRequest\namf <- N1N2MessageTransfer");
        assert_eq!(tunnel_change(&world).uplink, tunnel_of(UPF, 0), "{cause:?}");
        let mut world = branched();
        world.script.insert(Operation::N1N2MessageTransfer, None);
        world.unbranch();
        fails(&mut world, &cause);
        assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
        assert_eq!(tunnel_change(&world).uplink, tunnel_of(EDGE, 1), "{cause:?}");
        world.gnb_modifies(true);
        assert_eq!((world.front(), world.bench.timers.len()), (Some(EDGE), 0));
    }
}

#[test]
fn a_upf_that_refuses_leaves_the_session_unchanged() {
    for refusal in [Ok(N4Cause::NoResourcesAvailable), Err(N4Error::NoAnswer)] {
        let mut world = established();
        world.refusing.insert(EDGE, refusal);
        world.branch("edge");
        assert_eq!(world.take_ladder(), "edge <- SessionEstablishmentRequest");
        assert_eq!((world.front(), world.bench.nf.audit().n4_sessions), (None, 1));
    }
}

#[test]
fn for_an_idle_ue_the_next_activation_sends_the_endpoint() {
    let mut world = established();
    world.deactivate();
    world.take_ladder();
    assert_eq!(world.branch("edge"), None);
    assert_eq!(
        world.take_ladder(),
        "edge <- SessionEstablishmentRequest\nupf <- SessionModificationRequest",
        "what the anchor keeps goes to the classifier, which keeps it"
    );
    let far = world.n4.iter().rev().find_map(|message| match message {
        Message::SessionEstablishmentRequest(request) => Some(request.create_fars[1].apply_action),
        _ => None,
    });
    assert_eq!(far, Some(ApplyAction::BUFF | ApplyAction::NOCP));
    assert_eq!(uplink_sent_to_gnb(&mut world), tunnel_of(EDGE, 1));
    world.gnb_answers();
    assert_eq!(world.take_ladder(), "amf <- 200\nedge <- SessionModificationRequest\namf <- 200");
}

#[test]
fn the_classifier_of_an_idle_ue_is_removed_when_the_ue_is_connected() {
    let mut world = branched();
    world.deactivate();
    world.take_ladder();
    assert_eq!(world.unbranch(), None);
    assert_eq!(
        (world.take_ladder().as_str(), world.front()),
        ("", Some(EDGE)),
        "the classifier may buffer packets"
    );
    assert_eq!(uplink_sent_to_gnb(&mut world), tunnel_of(EDGE, 1));
    world.gnb_answers();
    assert!(world.take_ladder().ends_with("amf <- N1N2MessageTransfer"));
    world.gnb_modifies(true);
    assert_eq!((downlink_to(&world), world.front()), (GNB(), None));
}

#[test]
fn a_gnb_with_an_older_endpoint_gets_the_new_one() {
    let mut world = established();
    world.deactivate();
    assert_eq!(uplink_sent_to_gnb(&mut world), tunnel_of(UPF, 0));
    world.branch("edge");
    world.take_ladder();
    world.gnb_answers();
    assert_eq!(
        world.take_ladder(),
        "edge <- SessionModificationRequest\namf <- 200\namf <- N1N2MessageTransfer"
    );
    assert_eq!(tunnel_change(&world), TunnelChange { uplink: tunnel_of(EDGE, 1), downlink: GNB() });
}

#[test]
fn after_a_deactivation_during_the_switch_the_next_activation_sends_the_endpoint() {
    let mut world = established();
    world.branch("edge");
    world.take_ladder();
    world.deactivate();
    assert_eq!(world.take_ladder(), "edge <- SessionModificationRequest\namf <- 200");
    assert_eq!(uplink_sent_to_gnb(&mut world), tunnel_of(EDGE, 1));
    let mut world = branched();
    world.unbranch();
    world.take_ladder();
    world.deactivate();
    assert_eq!(
        world.take_ladder(),
        "upf <- SessionModificationRequest\nupf <- SessionModificationRequest\namf <- 200\nedge <- SessionDeletionRequest",
        "the classifier has no gNB to send to"
    );
    assert_eq!(uplink_sent_to_gnb(&mut world), tunnel_of(UPF, 0));
    let mut world = established();
    world.script.insert(Operation::N1N2MessageTransfer, problem(Cause::UeInCmIdleState));
    world.branch("edge");
    assert_eq!(world.front(), Some(EDGE));
    assert_eq!(downlink_action(&world), ApplyAction::BUFF | ApplyAction::NOCP, "the UE is idle");
    assert!(world.bench.timers.is_empty());
}

#[test]
fn errors_of_branching_give_the_reason() {
    let mut world = established();
    assert!(world.branch("other").unwrap().contains("no UPF of that name"));
    assert!(world.branch("upf").unwrap().contains("anchor"));
    assert!(world.unbranch().unwrap().contains("no classifier"));
    let mut world = branched();
    assert!(world.branch("edge").unwrap().contains("already"));
}

#[test]
fn a_session_that_ends_while_it_changes_leaves_nothing_behind() {
    let mut world = established();
    world.branch("edge");
    world.release_by_amf();
    assert!(world.take_ladder().contains("upf <- SessionDeletionRequest\nedge <- SessionDeletionRequest"));
    world.is_quiet();
    let mut world = branched();
    world.unbranch();
    world.gnb_modifies(true);
    world.release_by_amf();
    assert!(world.take_ladder().contains("edge <- SessionDeletionRequest"));
    world.is_quiet();
    let mut world = established();
    world.upf = None;
    world.branch("edge");
    world.release_by_amf();
    world.take_ladder();
    world.upf_answers_late();
    assert_eq!(world.take_ladder(), "edge <- SessionDeletionRequest");
    world.is_quiet();
}

#[test]
fn a_session_that_loses_its_classifier_continues_through_the_anchor() {
    let mut world = branched();
    world.n4_input(N4Input::UpfDown { upf: EDGE });
    assert_eq!(world.take_ladder(), "upf <- SessionModificationRequest\namf <- N1N2MessageTransfer");
    assert_eq!(downlink_to(&world), GNB());
    assert_eq!(tunnel_change(&world).uplink, tunnel_of(UPF, 0));
    assert_eq!(world.bench.nf.audit().n4_sessions, 1);
    world.n4_input(N4Input::UpfDown { upf: UPF });
    world.uplink(PduSessionReleaseComplete::new());
    world.is_quiet();
}

/// TS 23.527 5.3.3.
#[test]
fn a_classifier_that_does_not_know_its_n9_tunnel_is_taken_out() {
    let mut world = branched();
    world.report_lost(tunnel_of(EDGE, 2));
    assert_eq!(
        world.take_ladder(),
        "upf <- SessionReportResponse\nedge <- SessionDeletionRequest\nupf <- SessionModificationRequest\n\
         amf <- N1N2MessageTransfer"
    );
    assert_eq!(downlink_to(&world), GNB());
    assert_eq!(tunnel_change(&world).uplink, tunnel_of(UPF, 0));
    assert_eq!((world.front(), world.bench.nf.audit().n4_sessions), (None, 1));
    world.release_by_amf();
    world.is_quiet();
}

/// The classifier's UPF is lost: all packets take the anchor, and nothing is left behind.
fn continues_through_the_anchor(mut world: World) {
    world.n4_input(N4Input::UpfDown { upf: EDGE });
    world.upf_answers_late();
    assert_eq!(downlink_to(&world), GNB());
    assert_eq!((world.front(), world.bench.nf.audit().n4_sessions), (None, 1));
    assert_eq!(tunnel_change(&world).uplink, tunnel_of(UPF, 0), "the gNB was told last");
    world.gnb_modifies(true);
    assert_eq!(uplink_sent_to_gnb(&mut world), tunnel_of(UPF, 0));
    world.release_by_amf();
    world.is_quiet();
}

#[test]
fn a_classifier_lost_during_the_uplink_switch_leaves_the_session_to_the_anchor() {
    let mut world = established();
    assert_eq!(world.branch("edge"), None);
    continues_through_the_anchor(world);
    let mut world = branched();
    assert_eq!(world.unbranch(), None);
    continues_through_the_anchor(world);
}

#[test]
fn a_classifier_lost_during_the_downlink_switch_leaves_the_session_to_the_anchor() {
    let mut world = branched();
    world.silent.insert(UPF);
    world.unbranch();
    world.gnb_modifies(true);
    continues_through_the_anchor(world);
    let mut world = established();
    world.silent.insert(UPF);
    world.branch("edge");
    world.n4_input(N4Input::UpfDown { upf: EDGE });
    world.upf_answers_late();
    assert_eq!((downlink_to(&world), world.transfers.len()), (GNB(), 1), "the gNB has heard of nothing");
    assert_eq!((world.front(), world.bench.nf.audit().n4_sessions), (None, 1));
}

#[test]
fn a_session_outlives_a_upf_that_is_lost_before_it_answers() {
    let mut world = established();
    world.silent.insert(EDGE);
    world.branch("edge");
    world.take_ladder();
    world.n4_input(N4Input::UpfDown { upf: EDGE });
    assert_eq!((world.take_ladder().as_str(), world.front()), ("", None));
    let (tag, ..) = world.open_n4.pop().unwrap();
    world.n4_input(N4Input::Response { tag, result: Err(N4Error::NoAssociation) });
    assert_eq!(world.bench.nf.audit().n4_sessions, 1, "nor does the gateway's word end it");
    assert_eq!(uplink_sent_to_gnb(&mut world), tunnel_of(UPF, 0));
}

#[test]
fn a_classifier_that_fails_the_next_activation_is_removed() {
    let mut world = branched();
    world.deactivate();
    assert_eq!(uplink_sent_to_gnb(&mut world), tunnel_of(EDGE, 1));
    world.silent.insert(EDGE);
    world.gnb_answers();
    world.take_ladder();
    let (tag, ..) = world.open_n4.pop().unwrap();
    world.n4_input(N4Input::Response { tag, result: Err(N4Error::NoAnswer) });
    assert_eq!(
        world.take_ladder(),
        "upf <- SessionModificationRequest\namf <- 200\namf <- N1N2MessageTransfer",
        "the anchor takes over, and the gNB is told"
    );
    assert_eq!((downlink_to(&world), tunnel_change(&world).uplink), (GNB(), tunnel_of(UPF, 0)));
}

#[test]
fn packets_buffered_while_a_session_changes_cause_paging() {
    let mut world = established();
    world.deactivate();
    world.silent.insert(EDGE);
    world.branch("edge");
    world.report(ReportType::DLDR);
    assert!(!world.take_ladder().contains("N1N2MessageTransfer"));
    let (tag, ..) = world.open_n4.pop().unwrap();
    world.n4_input(N4Input::Response { tag, result: Err(N4Error::NoAnswer) });
    assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer", "the anchor reports them once");
}
