//! Sessions as dialogues: the SMF's requests, the datapath's calls, the responses.

use crate::support::*;
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_pfcp::rules::*;
use pith_pfcp::{Change, IeType, Message};
use pith_upf::Notice;
use pith_upf::contract::{self, Action, Destination, Direction, Rates, Source, Teid, Tunnel};

#[test]
fn an_establishment_becomes_rules_of_the_datapath() {
    let (world, seid, teid) = World::with_session(pdu_session());
    let session = world.installed(seid);
    assert_eq!(session.ue, contract::UeAddress::v4(UE));
    let (uplink, downlink) = (&session.pdrs[0], &session.pdrs[1]);
    assert_eq!(uplink.source, Source::Tunnel { teid: Teid(teid), direction: Direction::Uplink });
    assert_eq!((downlink.source, downlink.far), (Source::Network, contract::FarId(2)));
    assert_eq!(session.fars[0].action, Action::Forward(Destination::Network));
    assert_eq!(session.fars[1].action, Action::Buffer { notify: true, packets: None });
    assert_eq!(session.qers[0].mbr, Some(Rates { uplink: 10_000_000, downlink: 20_000_000 }));
    assert_eq!(session.qers[0].qfi, Some(contract::Qfi(1)));
}

/// TS 23.501 5.8.2.10: from the source gNB of a handover to the target. The interface type says that they are downlink packets, or the FAR does.
#[test]
fn packets_that_gnbs_forward_are_downlink_packets_of_the_access_side() {
    for interface_type in [Some(InterfaceType::N3DataForwarding), None] {
        let mut pdi = Pdi::new(SourceInterface::Access);
        pdi.source_interface_type = interface_type;
        pdi.local_f_teid = Some(FTeid::Choose { ipv4: true, ipv6: false, choose_id: None });
        let mut parameters = ForwardingParameters::new(DestinationInterface::Access);
        parameters.outer_header_creation = Some(OuterHeaderCreation::gtpu(78, GNB.into()));
        let mut far = CreateFar::new(FarId(1), ApplyAction::FORW);
        far.forwarding_parameters = Some(parameters);
        let mut pdr = CreatePdr::new(PdrId(1), Precedence(255), pdi);
        pdr.far_id = Some(FarId(1));
        let request = SessionEstablishmentRequest {
            create_pdrs: vec![pdr],
            create_fars: vec![far],
            create_qers: vec![],
            ..pdu_session()
        };
        let (world, seid, teid) = World::with_session(request);
        let session = world.installed(seid);
        assert_eq!(
            session.pdrs[0].source,
            Source::Tunnel { teid: Teid(teid), direction: Direction::Downlink }
        );
        let to = Tunnel { peer: GNB.into(), teid: Teid(78), dscp: None };
        assert_eq!(session.fars[0].action, Action::Forward(Destination::Tunnel(to)));
        assert!(session.ue.is_empty());
    }
}

#[test]
fn an_establishment_response_names_the_sessions_endpoints() {
    let mut world = World::associated();
    let sent = world.ask(0, pdu_session());
    assert_eq!(sent.header.seid, Some(0x5111), "addressed to the CP F-SEID");
    let Message::SessionEstablishmentResponse(response) = sent.message else { panic!() };
    assert_eq!(response.up_f_seid.expect("UP F-SEID").ipv4, Some([192, 168, 4, 1].into()));
    assert_eq!(response.created_pdrs.len(), 1, "only PDR 1 asked for an F-TEID");
    let created = &response.created_pdrs[0];
    assert_eq!(created.pdr_id, PdrId(1));
    assert!(matches!(
        created.local_f_teids[..],
        [FTeid::Allocated { teid: 1.., ipv4: Some(N3), ipv6: None }]
    ));
}

#[test]
fn the_gnbs_tunnel_opens_the_downlink() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let request = SessionModificationRequest {
        update_fars: vec![to_gnb(GNB, 77)],
        ..SessionModificationRequest::new()
    };
    assert_eq!(world.modify(seid, request).cause, Cause::RequestAccepted);
    let tunnel = Tunnel { peer: GNB.into(), teid: Teid(77), dscp: None };
    assert_eq!(world.installed(seid).fars[1].action, Action::Forward(Destination::Tunnel(tunnel)));
}

#[test]
fn a_handover_sends_an_end_marker_to_the_old_gnb_after_the_rules_changed() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let mut update = to_gnb(GNB, 77);
    let move_to = |update| SessionModificationRequest {
        update_fars: vec![update],
        ..SessionModificationRequest::new()
    };
    world.modify(seid, move_to(update));
    world.quiet();
    update = to_gnb([192, 168, 3, 100].into(), 78);
    let parameters = update.update_forwarding_parameters.as_mut().expect("parameters");
    parameters.pfcp_sm_req_flags = Some(PfcpSmReqFlags::SNDEM);
    world.modify(seid, move_to(update));
    assert_eq!(world.datapath.ladder, ["install", "end marker 192.168.3.99 77"]);
}

#[test]
fn an_end_marker_is_not_sent_when_the_tunnel_stays() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let mut update = to_gnb(GNB, 77);
    let parameters = update.update_forwarding_parameters.as_mut().expect("parameters");
    parameters.pfcp_sm_req_flags = Some(PfcpSmReqFlags::SNDEM);
    for _ in 0..2 {
        let request = SessionModificationRequest {
            update_fars: vec![update.clone()],
            ..SessionModificationRequest::new()
        };
        world.modify(seid, request);
    }
    assert_eq!(world.datapath.ladder, ["install", "install", "install"]);
}

#[test]
fn going_idle_keeps_the_forwarding_parameters_for_later() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let action = |apply_action| UpdateFar { apply_action: Some(apply_action), ..UpdateFar::new(FarId(2)) };
    for update in [to_gnb(GNB, 77), action(ApplyAction::BUFF | ApplyAction::NOCP)] {
        world.modify(
            seid,
            SessionModificationRequest { update_fars: vec![update], ..SessionModificationRequest::new() },
        );
    }
    assert_eq!(world.installed(seid).fars[1].action, Action::Buffer { notify: true, packets: None });
    let request = SessionModificationRequest {
        update_fars: vec![action(ApplyAction::FORW)],
        ..SessionModificationRequest::new()
    };
    world.modify(seid, request);
    assert!(matches!(world.installed(seid).fars[1].action, Action::Forward(Destination::Tunnel(_))));
}

#[test]
fn a_deleted_session_leaves_nothing_behind() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    assert_eq!(world.upf.teids_in_use(), 1);
    let sent = world.ask(seid, SessionDeletionRequest::new());
    assert_eq!(sent.header.seid, Some(0x5111));
    let Message::SessionDeletionResponse(response) = sent.message else { panic!() };
    assert_eq!((response.cause, response.usage_reports.len()), (Cause::RequestAccepted, 0));
    assert!(world.datapath.sessions.is_empty());
    assert_eq!((world.upf.sessions().count(), world.upf.teids_in_use()), (0, 0));
}

#[test]
fn a_session_that_is_unknown_is_not_found() {
    let mut world = World::associated();
    let sent = world.ask(0xdead, SessionDeletionRequest::new());
    let Message::SessionDeletionResponse(response) = sent.message else { panic!() };
    assert_eq!((response.cause, sent.header.seid), (Cause::SessionContextNotFound, Some(0)));
    let sent = world.ask(0xdead, SessionModificationRequest::new());
    let Message::SessionModificationResponse(response) = sent.message else { panic!() };
    assert_eq!((response.cause, sent.header.seid), (Cause::SessionContextNotFound, Some(0)));
}

fn rejected(world: &mut World, request: SessionEstablishmentRequest) -> SessionEstablishmentResponse {
    world.quiet();
    let sent = world.ask(0, request);
    let Message::SessionEstablishmentResponse(response) = sent.message else { panic!() };
    assert!(!response.cause.is_acceptance() && response.up_f_seid.is_none(), "{response:?}");
    assert_eq!(sent.header.seid, Some(0x5111));
    assert_eq!(world.datapath.ladder, Vec::<String>::new(), "nothing is installed");
    assert_eq!((world.upf.sessions().count(), world.upf.teids_in_use()), (0, 0), "nothing is kept");
    assert!(matches!(world.notices[..], [Notice::Rejected { .. }]), "{:?}", world.notices);
    response
}

#[test]
fn without_an_association_there_is_no_session() {
    let response = rejected(&mut World::new(), pdu_session());
    assert_eq!(response.cause, Cause::NoEstablishedPfcpAssociation);
}

#[test]
fn a_pdr_whose_far_is_missing_is_named_in_the_rejection() {
    let mut request = pdu_session();
    request.create_fars.pop();
    let response = rejected(&mut World::associated(), request);
    assert_eq!(response.cause, Cause::RuleCreationModificationFailure);
    assert_eq!(response.failed_rule_id, Some(FailedRuleId::Pdr(PdrId(2))));
    assert_eq!(response.offending_ie, Some(OffendingIe(IeType::FAR_ID)));
}

#[test]
fn a_rule_that_comes_twice_is_named_in_the_rejection() {
    let mut request = pdu_session();
    request.create_qers.push(ambr());
    let response = rejected(&mut World::associated(), request);
    assert_eq!(response.failed_rule_id, Some(FailedRuleId::Qer(QerId(1))));
}

#[test]
fn an_apply_action_that_contradicts_itself_is_incorrect() {
    let mut request = pdu_session();
    request.create_fars[1].apply_action = ApplyAction::DROP | ApplyAction::FORW;
    let response = rejected(&mut World::associated(), request);
    assert_eq!(response.cause, Cause::MandatoryIeIncorrect);
    assert_eq!(response.failed_rule_id, Some(FailedRuleId::Far(FarId(2))));
    assert_eq!(response.offending_ie, Some(OffendingIe(IeType::APPLY_ACTION)));
}

#[test]
fn an_sdf_filter_that_is_not_understood_is_named_in_the_rejection() {
    let mut request = pdu_session();
    request.create_pdrs[0].pdi.sdf_filters = vec![SdfFilter::from_description("permit everything")];
    let response = rejected(&mut World::associated(), request);
    assert_eq!(response.failed_rule_id, Some(FailedRuleId::Pdr(PdrId(1))));
    assert_eq!(response.offending_ie, Some(OffendingIe(IeType::SDF_FILTER)));
}

#[test]
fn unsupported_rule_elements_are_rejected() {
    let mut request = pdu_session();
    request.create_pdrs[1].pdi.application_id = Some(ApplicationId(b"web".to_vec()));
    let response = rejected(&mut World::associated(), request);
    assert_eq!(
        (response.cause, response.offending_ie),
        (Cause::ServiceNotSupported, Some(OffendingIe(IeType::APPLICATION_ID)))
    );
    let mut request = pdu_session();
    request.pdn_type = Some(PdnType::Ethernet);
    assert_eq!(rejected(&mut World::associated(), request).cause, Cause::ServiceNotSupported);
    let mut request = pdu_session();
    let parameters = request.create_fars[0].forwarding_parameters.as_mut().expect("parameters");
    parameters.forwarding_policy = Some(ForwardingPolicy(b"gold".to_vec()));
    assert_eq!(rejected(&mut World::associated(), request).cause, Cause::InvalidForwardingPolicy);
}

#[test]
fn an_f_teid_chosen_by_the_smf_is_rejected() {
    let mut request = pdu_session();
    request.create_pdrs[0].pdi.local_f_teid = Some(FTeid::new(99, N3.into()));
    let response = rejected(&mut World::associated(), request);
    assert_eq!(response.cause, Cause::InvalidFTeidAllocationOption);
    assert_eq!(response.failed_rule_id, Some(FailedRuleId::Pdr(PdrId(1))));
}

#[test]
fn an_f_teid_that_a_restored_session_had_is_accepted_if_it_is_free() {
    let restore = |cp_seid, ue| {
        let mut request = pdu_session_of(cp_seid, ue);
        request.create_pdrs[0].pdi.local_f_teid = Some(FTeid::new(99, N3.into()));
        request.pfcp_se_req_flags = Some(PfcpSeReqFlags::RESTI);
        request
    };
    let (mut world, seid, _) = World::with_session(restore(1, UE));
    let source = Source::Tunnel { teid: Teid(99), direction: Direction::Uplink };
    assert_eq!(world.installed(seid).pdrs[0].source, source);
    let sent = world.ask(0, restore(2, [10, 45, 0, 3].into()));
    let Message::SessionEstablishmentResponse(response) = sent.message else { panic!() };
    assert_eq!(response.cause, Cause::PfcpSessionRestorationFailure);
    // Since a change of its configuration the UPF has another address.
    let mut former = pdu_session_of(3, [10, 45, 0, 4].into());
    former.create_pdrs[0].pdi.local_f_teid = Some(FTeid::new(98, std::net::IpAddr::from([192, 0, 2, 99])));
    former.pfcp_se_req_flags = Some(PfcpSeReqFlags::RESTI);
    let sent = world.ask(0, former);
    let Message::SessionEstablishmentResponse(response) = sent.message else { panic!() };
    assert_eq!(response.cause, Cause::PfcpSessionRestorationFailure);
    assert_eq!(world.upf.teids_in_use(), 1);
}

#[test]
fn a_choose_id_stands_for_one_f_teid() {
    let mut request = pdu_session();
    let choose = |choose_id| Some(FTeid::Choose { ipv4: true, ipv6: false, choose_id });
    for (id, choose_id) in [(3, Some(7)), (4, Some(7)), (5, Some(8)), (6, None)] {
        let mut pdr = uplink_pdr(UE);
        pdr.pdr_id = PdrId(id);
        pdr.pdi.local_f_teid = choose(choose_id);
        request.create_pdrs.push(pdr);
    }
    let mut world = World::associated();
    let sent = world.ask(0, request);
    let Message::SessionEstablishmentResponse(response) = sent.message else { panic!() };
    let teids: Vec<_> = response.created_pdrs.iter().map(|pdr| teid(pdr.local_f_teids[0])).collect();
    assert_eq!(teids.len(), 5);
    assert_eq!(teids[1], teids[2]);
    let different: std::collections::BTreeSet<_> = teids.iter().collect();
    assert_eq!((different.len(), world.upf.teids_in_use()), (4, 4));
}

#[test]
fn traffic_endpoints_are_shared_by_pdrs() {
    let mut request = pdu_session();
    let id = TrafficEndpointId(5);
    let addresses = std::mem::take(&mut request.create_pdrs[0].pdi.ue_ip_addresses);
    request.create_pdrs[0].pdi.local_f_teid = None;
    request.create_pdrs[0].pdi.traffic_endpoint_ids = vec![id];
    let endpoint = CreateTrafficEndpoint {
        local_f_teid: Some(CHOOSE),
        ue_ip_addresses: addresses,
        ..CreateTrafficEndpoint::new(id)
    };
    request.create_traffic_endpoints = vec![endpoint];
    let mut world = World::associated();
    let sent = world.ask(0, request);
    let Message::SessionEstablishmentResponse(response) = sent.message else { panic!() };
    let created = &response.created_traffic_endpoints[0];
    let seid = response.up_f_seid.expect("UP F-SEID").seid;
    let source = Source::Tunnel { teid: Teid(teid(created.local_f_teids[0])), direction: Direction::Uplink };
    assert_eq!(world.installed(seid).pdrs[0].source, source);
    let remove = SessionModificationRequest {
        remove_traffic_endpoints: vec![RemoveTrafficEndpoint::new(id)],
        ..SessionModificationRequest::new()
    };
    assert_eq!(world.modify(seid, remove).cause, Cause::RequestAccepted);
    assert_eq!(world.installed(seid).pdrs.len(), 1, "the PDR that referred to it is gone");
    assert_eq!(world.upf.teids_in_use(), 0);
}

/// TS 29.244 8.2.88: the flag, not the presence of the IE, says whether packets have the RQI.
#[test]
fn the_rqi_of_a_qer_is_set_and_cleared() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    world.answers = true;
    let mut request = add_flow();
    request.create_qers[0].rqi = Some(Rqi::RQI);
    assert_eq!(world.modify(seid, request).cause, Cause::RequestAccepted);
    assert_eq!(world.installed(seid).qers.iter().map(|qer| qer.rqi).collect::<Vec<_>>(), [false, true]);
    for rqi in [Change::Set(Rqi::default()), Change::Remove] {
        for change in [Change::Set(Rqi::RQI), rqi] {
            let is_on = matches!(change, Change::Set(Rqi::RQI));
            let update = UpdateQer { rqi: Some(change), ..UpdateQer::new(QerId(2)) };
            let request =
                SessionModificationRequest { update_qers: vec![update], ..SessionModificationRequest::new() };
            assert_eq!(world.modify(seid, request).cause, Cause::RequestAccepted);
            assert_eq!(world.installed(seid).qers[1].rqi, is_on);
        }
    }
}

/// A QoS flow: PDRs 3 and 4, QER 2, towards the data network and the gNB.
pub fn add_flow() -> SessionModificationRequest {
    let mut uplink = uplink_pdr(UE);
    uplink.pdr_id = PdrId(3);
    uplink.precedence = Precedence(10);
    uplink.pdi.sdf_filters =
        vec![SdfFilter::from_description("permit out 17 from 198.51.100.7 5060 to assigned")];
    uplink.qer_ids = vec![QerId(2)];
    let qer = CreateQer {
        guaranteed_bitrate: Some(BitRates { uplink: 100, downlink: 100 }),
        qfi: Some(Qfi(2)),
        ..CreateQer::new(QerId(2), GateStatus::OPEN)
    };
    SessionModificationRequest {
        create_pdrs: vec![uplink],
        create_qers: vec![qer],
        ..SessionModificationRequest::new()
    }
}

#[test]
fn a_flow_is_added_and_removed() {
    let (mut world, seid, first) = World::with_session(pdu_session());
    let response = world.modify(seid, add_flow());
    assert_eq!(response.cause, Cause::RequestAccepted);
    assert_ne!(teid(response.created_pdrs[0].local_f_teids[0]), first);
    let session = world.installed(seid);
    let filter = &session.pdrs[2].filters[0];
    assert_eq!(filter.protocol, Some(17));
    assert_eq!(filter.remote.ports.map(|ports| ports.first), Some(5060));
    assert_eq!(session.qers[1].gbr, Some(Rates { uplink: 100_000, downlink: 100_000 }));
    assert_eq!(world.modify(seid, remove_flow()).cause, Cause::RequestAccepted);
    assert_eq!((world.installed(seid).pdrs.len(), world.upf.teids_in_use()), (2, 1));
}

pub fn remove_flow() -> SessionModificationRequest {
    SessionModificationRequest {
        remove_pdrs: vec![RemovePdr::new(PdrId(3))],
        remove_qers: vec![RemoveQer::new(QerId(2))],
        ..SessionModificationRequest::new()
    }
}

/// TS 23.502 4.3.3.2: a new flow is known before the UE gets the command, and a removed one until the UE has got it for certain.
#[test]
fn packets_of_a_removed_flow_are_accepted_for_a_while() {
    let qfis = |qfis: &[u8]| qfis.iter().copied().map(contract::Qfi).collect::<Vec<_>>();
    let (mut world, seid, _) = World::with_session(pdu_session());
    world.answers = true;
    let uplink = |world: &World| world.installed(seid).uplink_qfis().map(Vec::from_iter);
    assert_eq!(uplink(&world), Some(qfis(&[1])));
    world.modify(seid, add_flow());
    assert_eq!(uplink(&world), Some(qfis(&[1, 2])));
    assert_eq!(world.installed(seid).former_qfis, []);
    world.modify(seid, remove_flow());
    world.wait(60);
    // Another change leaves it as it is.
    world.modify(seid, SessionModificationRequest::new());
    world.wait(59);
    assert_eq!(
        (uplink(&world), world.installed(seid).former_qfis.clone()),
        (Some(qfis(&[1, 2])), qfis(&[2]))
    );
    world.wait(2);
    assert_eq!((uplink(&world), world.installed(seid).former_qfis.clone()), (Some(qfis(&[1])), vec![]));
    // A flow that is back, and ends again, begins once more.
    world.modify(seid, add_flow());
    world.modify(seid, remove_flow());
    world.wait(60);
    world.modify(seid, add_flow());
    world.wait(70);
    assert_eq!((uplink(&world), world.installed(seid).former_qfis.clone()), (Some(qfis(&[1, 2])), vec![]));
}

/// TS 23.501 5.7.5.3: UEs use derived rules until the RQ timer expires.
#[test]
fn packets_of_a_removed_reflective_flow_are_accepted_for_hours() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    world.answers = true;
    let mut request = add_flow();
    request.create_qers[0].rqi = Some(Rqi::RQI);
    world.modify(seid, request);
    let off = UpdateQer { rqi: Some(Change::Remove), ..UpdateQer::new(QerId(2)) };
    world.modify(
        seid,
        SessionModificationRequest { update_qers: vec![off], ..SessionModificationRequest::new() },
    );
    world.modify(seid, remove_flow());
    world.wait(186 * 60);
    assert_eq!(world.installed(seid).former_qfis, [contract::Qfi(2)]);
    world.wait(3600);
    assert_eq!(world.installed(seid).former_qfis, []);
}

/// Nothing is verified where the SMF does not name the flow of an uplink PDR, nor by a UPF between gNB and anchor.
#[test]
fn uplink_flows_are_verified_by_an_anchor_that_knows_them() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let mut to_anchor = to_gnb(GNB, 77);
    to_anchor.far_id = FarId(1);
    let parameters = to_anchor.update_forwarding_parameters.as_mut().unwrap();
    parameters.destination_interface = Some(DestinationInterface::Core);
    let request =
        SessionModificationRequest { update_fars: vec![to_anchor], ..SessionModificationRequest::new() };
    assert_eq!(world.modify(seid, request).cause, Cause::RequestAccepted);
    assert_eq!(world.installed(seid).uplink_qfis(), None);

    let (mut world, seid, _) = World::with_session(pdu_session());
    let without = |id| UpdatePdr { qer_ids: Some(Vec::new()), ..UpdatePdr::new(PdrId(id)) };
    for (pdr, expected) in [(2, Some([contract::Qfi(1)].into())), (1, None)] {
        let request = SessionModificationRequest {
            update_pdrs: vec![without(pdr)],
            ..SessionModificationRequest::new()
        };
        assert_eq!(world.modify(seid, request).cause, Cause::RequestAccepted);
        assert_eq!(world.installed(seid).uplink_qfis(), expected);
    }
}

#[test]
fn a_modification_that_fails_changes_nothing() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let before = world.installed(seid);
    world.quiet();
    let mut request = add_flow();
    request.update_fars = vec![to_gnb(GNB, 77)];
    request.update_qers = vec![UpdateQer::new(QerId(9))];
    let response = world.modify(seid, request);
    assert_eq!(response.cause, Cause::RuleCreationModificationFailure);
    assert_eq!(response.failed_rule_id, Some(FailedRuleId::Qer(QerId(9))));
    assert_eq!(world.datapath.ladder, Vec::<String>::new());
    assert_eq!((world.installed(seid), world.upf.teids_in_use()), (before, 1));
    // The first PDR that cannot be compiled, after an F-TEID was allocated for it.
    let mut request = add_flow();
    request.create_qers.clear();
    let response = world.modify(seid, request);
    assert_eq!(response.failed_rule_id, Some(FailedRuleId::Pdr(PdrId(3))));
    assert_eq!(world.upf.teids_in_use(), 1);
    assert_eq!(world.modify(seid, add_flow()).cause, Cause::RequestAccepted);
}

#[test]
fn removing_a_qer_takes_its_id_from_the_pdrs() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let remove = SessionModificationRequest {
        remove_qers: vec![RemoveQer::new(QerId(1))],
        ..SessionModificationRequest::new()
    };
    assert_eq!(world.modify(seid, remove).cause, Cause::RequestAccepted);
    assert!(world.installed(seid).pdrs.iter().all(|pdr| pdr.qers.is_empty()));
}

#[test]
fn removing_a_far_that_a_pdr_needs_is_rejected() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let remove = SessionModificationRequest {
        remove_fars: vec![RemoveFar::new(FarId(2))],
        ..SessionModificationRequest::new()
    };
    let response = world.modify(seid, remove);
    assert_eq!(response.failed_rule_id, Some(FailedRuleId::Pdr(PdrId(2))));
}

#[test]
fn a_parameter_is_removed_by_a_null_length() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let update = UpdateQer { maximum_bitrate: Some(Change::Remove), ..UpdateQer::new(QerId(1)) };
    world.modify(
        seid,
        SessionModificationRequest { update_qers: vec![update], ..SessionModificationRequest::new() },
    );
    assert_eq!(world.installed(seid).qers[0].mbr, None);
    let update = UpdatePdr { qer_ids: Some(Vec::new()), ..UpdatePdr::new(PdrId(1)) };
    world.modify(
        seid,
        SessionModificationRequest { update_pdrs: vec![update], ..SessionModificationRequest::new() },
    );
    assert!(world.installed(seid).pdrs[0].qers.is_empty());
}

#[test]
fn an_updated_pdi_may_name_the_f_teid_that_the_pdr_has() {
    let (mut world, seid, teid) = World::with_session(pdu_session());
    let mut pdi = uplink_pdr(UE).pdi;
    pdi.local_f_teid = Some(FTeid::new(teid, N3.into()));
    pdi.qfis = vec![Qfi(1)];
    let update = UpdatePdr { pdi: Some(pdi), ..UpdatePdr::new(PdrId(1)) };
    let request =
        SessionModificationRequest { update_pdrs: vec![update], ..SessionModificationRequest::new() };
    assert_eq!(world.modify(seid, request).cause, Cause::RequestAccepted);
    assert_eq!(world.installed(seid).pdrs[0].qfis, [contract::Qfi(1)]);
    assert_eq!(world.upf.teids_in_use(), 1);
}

#[test]
fn a_bidirectional_filter_is_found_by_its_id() {
    let mut request = pdu_session();
    let whole = SdfFilter {
        filter_id: Some(3),
        ..SdfFilter::from_description("permit out 6 from any 80 to assigned")
    };
    request.create_pdrs[0].pdi.sdf_filters = vec![SdfFilter { filter_id: Some(3), ..SdfFilter::default() }];
    request.create_pdrs[1].pdi.sdf_filters = vec![whole];
    let (world, seid, _) = World::with_session(request);
    let session = world.installed(seid);
    assert_eq!(session.pdrs[0].filters, session.pdrs[1].filters);
    assert_eq!(session.pdrs[0].filters[0].protocol, Some(6));
}

#[test]
fn a_bidirectional_filter_of_unknown_id_does_not_match_everything() {
    let mut request = pdu_session();
    request.create_pdrs[0].pdi.sdf_filters = vec![SdfFilter { filter_id: Some(3), ..SdfFilter::default() }];
    let response = rejected(&mut World::associated(), request);
    assert_eq!(response.offending_ie, Some(OffendingIe(IeType::SDF_FILTER)));
}

#[test]
fn a_ue_address_given_anew_ends_the_session_that_the_smf_forgot() {
    let (mut world, old, _) = World::with_session(pdu_session());
    let (new, _) = world.establish(pdu_session_of(0x5222, UE));
    assert_ne!(old, new);
    assert_eq!(world.upf.sessions().map(|id| id.0).collect::<Vec<_>>(), [new]);
    assert_eq!(world.datapath.sessions.len(), 1);
}

#[test]
fn a_ue_address_of_another_smf_is_refused() {
    let (mut world, old, _) = World::with_session(pdu_session());
    let other = NodeId::Fqdn("smf2.example".into());
    world.ask(0, AssociationSetupRequest::new(other.clone(), ntp(0)));
    let request = SessionEstablishmentRequest { node_id: other, ..pdu_session_of(0x5222, UE) };
    let sent = world.ask(0, request);
    let Message::SessionEstablishmentResponse(response) = sent.message else { panic!() };
    assert_eq!(response.offending_ie, Some(OffendingIe(IeType::UE_IP_ADDRESS)));
    assert_eq!(world.upf.sessions().map(|id| id.0).collect::<Vec<_>>(), [old]);
    assert_eq!(world.upf.teids_in_use(), 1);
}

#[test]
fn a_rejected_session_leaves_the_owner_of_its_other_address() {
    let (mut world, own, _) = World::with_session(pdu_session());
    let other = NodeId::Fqdn("smf2.example".into());
    world.associate(AssociationSetupRequest::new(other.clone(), ntp(0)));
    let v6 = |mut request: SessionEstablishmentRequest, keep_v4: bool| {
        let address = UeIpAddress::new("2001:db8::1".parse().unwrap(), PacketEnd::Destination);
        let addresses = &mut request.create_pdrs[1].pdi.ue_ip_addresses;
        addresses.retain(|_| keep_v4);
        addresses.push(address);
        request
    };
    let mut of_other = v6(pdu_session_of(0x5222, UE), false);
    of_other.create_pdrs[0].pdi.ue_ip_addresses.clear();
    of_other.node_id = other;
    let (of_other, _) = world.establish(of_other);
    let sent = world.ask(0, v6(pdu_session_of(0x5333, UE), true));
    let Message::SessionEstablishmentResponse(response) = sent.message else { panic!() };
    assert_eq!(response.offending_ie, Some(OffendingIe(IeType::UE_IP_ADDRESS)));
    let mut left: Vec<_> = world.upf.sessions().map(|id| id.0).collect();
    left.sort_unstable();
    assert_eq!(left, [own, of_other], "neither went");
}

#[test]
fn the_smf_may_change_its_endpoint() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let cp = FSeid::new(0x6111, [192, 168, 4, 2].into());
    let sent = world
        .ask(seid, SessionModificationRequest { cp_f_seid: Some(cp), ..SessionModificationRequest::new() });
    assert_eq!(sent.header.seid, Some(0x6111));
    assert_eq!(world.ask(seid, SessionDeletionRequest::new()).header.seid, Some(0x6111));
}

#[test]
fn buffered_packets_are_dropped_on_demand() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    world.quiet();
    let flags = Some(PfcpSmReqFlags::DROBU);
    world.modify(
        seid,
        SessionModificationRequest { pfcp_sm_req_flags: flags, ..SessionModificationRequest::new() },
    );
    assert_eq!(world.datapath.ladder, ["discard buffered", "install"]);
}

#[test]
fn a_session_has_a_limited_number_of_rules() {
    let mut request = pdu_session();
    request.create_qers = (0..300).map(|id| CreateQer::new(QerId(id), GateStatus::OPEN)).collect();
    assert_eq!(rejected(&mut World::associated(), request).cause, Cause::NoResourcesAvailable);
}
