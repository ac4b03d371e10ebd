//! Several UPFs: selection, and sessions through two of them.

use super::super::*;
use super::world::*;
use crate::kit::{N4Error, N4Transaction};
use pith_nas::gsm::PduSessionReleaseComplete;
use pith_ngap::transfer::{SetupRequestTransfer, Tunnel};
use pith_pfcp::Message;
use pith_pfcp::ie::{ApplyAction, Cause as N4Cause, FSeid, ReportType};
use pith_pfcp::message::{SessionEstablishmentRequest, SessionReportRequest};
use pith_sbi::Response;
use pith_sbi::nsmf_pdusession::UpCnxState;
use pith_types::{Tac, Teid};
use std::collections::BTreeMap;

fn service(name: &str, change: impl FnOnce(&mut UpfService)) -> UpfService {
    let mut service = UpfService::of_all(name);
    change(&mut service);
    service
}

fn with(services: Vec<UpfService>) -> SmfConfig {
    let mut config = config();
    config.data_networks[0].pool.1 = 24;
    config.upfs = services;
    config
}

/// The anchor serves area 2, the UE is in area 1, which the edge serves.
pub(super) fn far_anchor() -> SmfConfig {
    with(vec![
        service("upf", |upf| upf.tracking_areas = Some(vec![Tac::new(2)])),
        service("edge", |upf| upf.data_networks = Some(vec![])),
    ])
}

/// Both serve the UE's area; packets for 192.0.2.0/24 leave at the edge.
pub(super) fn breakout() -> SmfConfig {
    let mut config = with(vec![service("edge", |upf| upf.data_networks = Some(vec![]))]);
    let destinations = vec![("192.0.2.0".parse().unwrap(), 24)];
    let dnn = config.data_networks[0].dnn.clone();
    config.breakouts = vec![Breakout { dnn, upf: "edge".into(), destinations }];
    config
}

/// Number of the UE's sessions 5 to 14 that each UPF anchors.
fn anchors(config: SmfConfig, prepare: impl FnOnce(&mut World)) -> BTreeMap<u64, usize> {
    let mut world = World::with(config, &["upf", "edge"]);
    prepare(&mut world);
    for id in 5..15 {
        world.pdu_session_id = id;
        world.establish();
    }
    let mut anchors = BTreeMap::new();
    for (_, session) in world.bench.nf.sessions.iter() {
        *anchors.entry(session.state().user_plane().unwrap().anchor.upf.0).or_default() += 1;
    }
    anchors
}

fn establishments(world: &World) -> Vec<&SessionEstablishmentRequest> {
    let requests = world.n4.iter().filter_map(|message| match message {
        Message::SessionEstablishmentRequest(request) => Some(request),
        _ => None,
    });
    requests.collect()
}

/// The endpoint to which the last modification sends downlink packets.
pub(super) fn downlink_to(world: &World) -> Tunnel {
    let Some(Message::SessionModificationRequest(request)) = world.n4.last() else { panic!() };
    let parameters = request.update_fars[0].update_forwarding_parameters.as_ref().unwrap();
    let Some(pith_pfcp::Change::Set(header)) = parameters.outer_header_creation else { panic!() };
    let address = header.ipv4.unwrap().into();
    Tunnel { address, teid: pith_types::Teid(header.teid.unwrap()) }
}

/// The uplink tunnel that the gNB receives when the user plane is activated.
pub(super) fn uplink_sent_to_gnb(world: &mut World) -> Tunnel {
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    let Some(Ok(Response::SmContextUpdated(data))) = world.answers.last() else { panic!() };
    SetupRequestTransfer::decode(&data.n2_sm_info.as_ref().unwrap().content).unwrap().uplink
}

#[test]
fn upfs_of_equal_weight_get_sessions_in_turn() {
    assert_eq!(anchors(with(vec![]), |_| {}), BTreeMap::from([(3, 5), (4, 5)]));
}

#[test]
fn a_heavier_upf_gets_more_sessions() {
    let config = with(vec![service("edge", |upf| upf.weight = 4)]);
    assert_eq!(anchors(config, |_| {}), BTreeMap::from([(3, 2), (4, 8)]));
}

#[test]
fn a_loaded_upf_gets_fewer_sessions() {
    let load = |world: &mut World| world.n4_input(N4Input::UpfLoad { upf: UPF, percent: 82 });
    assert_eq!(anchors(with(vec![]), load), BTreeMap::from([(3, 2), (4, 8)]));
}

#[test]
fn priority_is_compared_before_load() {
    let config = with(vec![service("edge", |upf| upf.priority = 1)]);
    let load = |world: &mut World| world.n4_input(N4Input::UpfLoad { upf: EDGE, percent: 100 });
    assert_eq!(anchors(config, load), BTreeMap::from([(4, 10)]));
}

#[test]
fn a_upf_that_is_down_gets_none() {
    let config = with(vec![service("edge", |upf| upf.priority = 1)]);
    let down = |world: &mut World| world.n4_input(N4Input::UpfDown { upf: EDGE });
    assert_eq!(anchors(config, down), BTreeMap::from([(3, 10)]));
}

#[test]
fn a_upf_that_requested_its_release_gets_no_new_sessions_and_keeps_its_sessions() {
    let config = with(vec![service("edge", |upf| upf.priority = 1)]);
    let leaves = |world: &mut World| {
        world.pdu_session_id = 4;
        world.establish();
        world.n4_input(N4Input::UpfLeaves { upf: EDGE });
        world.associate(EDGE, "edge"); // It tells new features; it leaves all the same.
    };
    assert_eq!(anchors(config, leaves), BTreeMap::from([(3, 10), (4, 1)]));
}

#[test]
fn a_upf_that_requested_its_release_is_no_local_anchor_of_new_sessions() {
    let mut world = World::with(breakout(), &["upf", "edge"]);
    world.n4_input(N4Input::UpfLeaves { upf: EDGE });
    world.establish();
    assert_eq!(world.bench.nf.audit().n4_sessions, 1);
}

#[test]
fn a_upf_of_another_network_slice_or_area_is_not_chosen() {
    let elsewhere: [fn(&mut UpfService); 3] = [
        |upf| upf.data_networks = Some(vec!["ims".parse().unwrap()]),
        |upf| upf.slices = Some(vec![pith_types::Snssai::of_sst(7)]),
        |upf| upf.tracking_areas = Some(vec![Tac::new(9)]),
    ];
    for change in elsewhere {
        let config = with(vec![service("edge", change)]);
        assert_eq!(anchors(config, |_| {}), BTreeMap::from([(3, 10)]));
    }
}

#[test]
fn if_a_upf_refuses_or_does_not_answer_another_one_is_selected() {
    for refusal in [Ok(N4Cause::NoResourcesAvailable), Err(N4Error::Overloaded), Err(N4Error::NoAnswer)] {
        let mut world = World::with(with(vec![service("upf", |upf| upf.priority = 1)]), &["upf", "edge"]);
        world.refusing.insert(UPF, refusal);
        world.establish();
        world.gnb_answers();
        let ladder = world.take_ladder();
        assert!(
            ladder.contains("upf <- SessionEstablishmentRequest\nedge <- SessionEstablishmentRequest\namf"),
            "{ladder}"
        );
        assert_eq!(
            world.bench.nf.audit(),
            SmfAudit { contexts: 1, addresses: 1, n4_sessions: 1, policies: 1 }
        );
    }
}

#[test]
fn if_a_upf_is_lost_before_it_answers_another_one_is_selected() {
    let mut world = World::with(with(vec![service("upf", |upf| upf.priority = 1)]), &["upf", "edge"]);
    world.silent.insert(UPF);
    world.establish();
    world.take_ladder();
    world.n4_input(N4Input::UpfDown { upf: UPF });
    assert_eq!(world.take_ladder(), "edge <- SessionEstablishmentRequest\namf <- N1N2MessageTransfer");
    world.gnb_answers();
    assert_eq!(world.bench.nf.audit(), SmfAudit { contexts: 1, addresses: 1, n4_sessions: 1, policies: 1 });
}

#[test]
fn addresses_are_of_the_pool_of_the_upf() {
    let pool = ("internet".parse().unwrap(), ("10.46.0.0".parse().unwrap(), 24), 2);
    let own = service("edge", |upf| {
        upf.pools = vec![pool];
        upf.priority = 1;
    });
    let mut world = World::with(with(vec![own]), &["upf", "edge"]);
    world.establish();
    let address = world.bench.nf.sessions.iter().next().unwrap().1.address;
    assert_eq!(address.v4, Some("10.46.0.2".parse().unwrap()));
    world.release_by_amf();
    world.is_quiet();
}

#[test]
fn an_intermediate_upf_is_inserted_if_the_gnb_does_not_reach_the_anchor() {
    let mut world = World::with(far_anchor(), &["upf", "edge"]);
    world.establish();
    assert!(
        world.take_ladder().ends_with(
            "upf <- SessionEstablishmentRequest
edge <- SessionEstablishmentRequest
upf <- SessionModificationRequest
amf <- N1N2MessageTransfer"
        ),
        "the anchor first: the other one is told its tunnel"
    );
    assert_eq!(downlink_to(&world), tunnel_of(EDGE, 2), "to the N9 tunnel");
    let [anchor, front] = establishments(&world)[..] else { panic!() };
    assert_ne!(anchor.cp_f_seid, front.cp_f_seid, "a SEID for each");
    let to_anchor = front.create_fars[0].forwarding_parameters.as_ref().unwrap().outer_header_creation;
    let n9 = tunnel_of(UPF, 0);
    assert_eq!(to_anchor, Some(pith_pfcp::ie::OuterHeaderCreation::gtpu(n9.teid.0, n9.address)));
    assert_eq!(front.create_pdrs.len(), 2, "no local breakout");
    world.gnb_answers();
    assert_eq!(world.take_ladder(), "edge <- SessionModificationRequest\namf <- 200");
    assert_eq!(world.bench.nf.audit().n4_sessions, 2);
}

#[test]
fn a_chain_is_deactivated_activated_and_released_at_its_ends() {
    let mut world = World::with(far_anchor(), &["upf", "edge"]);
    world.establish();
    world.gnb_answers();
    world.take_ladder();
    world.deactivate();
    assert_eq!(world.take_ladder(), "edge <- SessionModificationRequest\namf <- 200", "it buffers packets");
    assert_eq!(downlink_action(&world), ApplyAction::BUFF | ApplyAction::NOCP);
    assert_eq!(uplink_sent_to_gnb(&mut world), tunnel_of(EDGE, 1));
    world.gnb_answers();
    world.release_by_amf();
    assert!(
        world
            .take_ladder()
            .contains("upf <- SessionDeletionRequest\nedge <- SessionDeletionRequest\npcf <- DeleteSmPolicy")
    );
    world.is_quiet();
}

#[test]
fn the_upf_that_buffers_packets_causes_paging() {
    let mut world = World::with(far_anchor(), &["upf", "edge"]);
    world.establish();
    world.gnb_answers();
    world.deactivate();
    world.take_ladder();
    let FSeid { seid, .. } = establishments(&world)[1].cp_f_seid;
    let message = Message::SessionReportRequest(SessionReportRequest::new(ReportType::DLDR));
    let transaction = N4Transaction { upf: EDGE, from: ([127, 0, 0, 9], 8805).into(), sequence: 1 };
    world.n4_input(N4Input::Request { transaction, seid: Seid(seid), message });
    assert_eq!(world.take_ladder(), "edge <- SessionReportResponse\namf <- N1N2MessageTransfer");
}

#[test]
fn a_chain_that_can_not_be_established_leaves_nothing_behind() {
    for refusal in [Ok(N4Cause::NoResourcesAvailable), Err(N4Error::NoAnswer)] {
        let mut world = World::with(far_anchor(), &["upf", "edge"]);
        world.refusing.insert(EDGE, refusal);
        world.establish();
        let ladder = world.take_ladder();
        assert!(
            ladder.contains("edge <- SessionEstablishmentRequest\nupf <- SessionDeletionRequest"),
            "{ladder}"
        );
        world.is_quiet();
    }
}

#[test]
fn a_chain_that_is_released_while_it_is_set_up_leaves_nothing_behind() {
    let mut world = World::with(far_anchor(), &["upf", "edge"]);
    world.upf = None;
    world.establish();
    let (tag, upf, message) = world.open_n4.remove(0);
    world.upf_answers(tag, upf, &message, Ok(N4Cause::RequestAccepted));
    world.take_ladder();
    world.release_by_amf();
    assert!(world.take_ladder().starts_with("upf <- SessionDeletionRequest"), "the anchor at once");
    world.upf_answers_late();
    assert_eq!(world.take_ladder(), "edge <- SessionDeletionRequest", "the other once it has answered");
    world.is_quiet();
}

#[test]
fn a_session_ends_if_either_upf_of_its_chain_is_lost() {
    for (lost, other) in [(UPF, "edge"), (EDGE, "upf")] {
        let mut world = World::with(far_anchor(), &["upf", "edge"]);
        world.establish();
        world.gnb_answers();
        world.take_ladder();
        world.n4_input(N4Input::UpfDown { upf: lost });
        let ladder = world.take_ladder();
        assert!(ladder.contains(&format!("{other} <- SessionDeletionRequest")), "{ladder}");
        world.uplink(PduSessionReleaseComplete::new());
        world.is_quiet();
    }
}

/// TS 23.527 5.3.3: the other UPF of a chain has lost the session.
#[test]
fn a_upf_that_does_not_know_its_n9_tunnel_ends_the_session() {
    for (reporting, lost, name) in [(UPF, tunnel_of(EDGE, 2), "edge"), (EDGE, tunnel_of(UPF, 0), "upf")] {
        let mut world = World::with(far_anchor(), &["upf", "edge"]);
        world.establish();
        world.gnb_answers();
        world.take_ladder();
        let at = usize::from(reporting == EDGE);
        let seid = Seid(establishments(&world)[at].cp_f_seid.seid);
        world.report_lost_by(reporting, seid, Tunnel { teid: Teid(0x42), ..lost });
        assert_eq!(world.bench.nf.audit().n4_sessions, 2, "a tunnel that is none of the session's");
        world.take_ladder();
        world.report_lost_by(reporting, seid, lost);
        let ladder = world.take_ladder();
        assert!(ladder.contains(&format!("{name} <- SessionDeletionRequest")), "{ladder}");
        assert!(ladder.contains("amf <- N1N2MessageTransfer"), "{ladder}");
        for upf in ["upf", "edge"] {
            assert_eq!(ladder.matches(&format!("{upf} <- SessionDeletionRequest")).count(), 1, "{ladder}");
        }
        world.uplink(PduSessionReleaseComplete::new());
        world.is_quiet();
    }
}

#[test]
fn local_breakout_inserts_a_classifier_before_the_anchor() {
    let mut world = World::with(breakout(), &["upf", "edge"]);
    world.establish();
    world.gnb_answers();
    let [_, front] = establishments(&world)[..] else { panic!() };
    let filters = front.create_pdrs.iter().flat_map(|pdr| &pdr.pdi.sdf_filters);
    let texts: Vec<_> = filters.filter_map(|filter| filter.flow_description.clone()).collect();
    assert_eq!(texts, [b"permit out ip from 192.0.2.0/24 to assigned".to_vec()]);
    assert_eq!(front.create_pdrs.len(), 4);
}

#[test]
fn without_a_classifier_all_packets_go_to_the_anchor() {
    let mut world = World::with(breakout(), &["upf", "edge"]);
    world.refusing.insert(EDGE, Ok(N4Cause::NoResourcesAvailable));
    world.establish();
    world.gnb_answers();
    assert_eq!(world.bench.nf.audit().n4_sessions, 1);
    let mut world = World::with(breakout(), &["upf"]);
    world.establish();
    world.gnb_answers();
    assert_eq!(world.bench.nf.audit().n4_sessions, 1);
}
