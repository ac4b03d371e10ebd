//! Predefined rules that an SMF activates by name (TS 29.244 5.19).

use crate::support::*;
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_pfcp::rules::*;
use pith_pfcp::{IeType, Message};
use pith_upf::contract::{self, Action, Rates};
use pith_upf::{PredefinedAction, PredefinedRule, PredefinedRules};

const SLOW: Rates = Rates { uplink: 1_000_000, downlink: 2_000_000 };

fn rule(name: &str, filter: &str, action: PredefinedAction, mbr: Option<Rates>) -> PredefinedRule {
    let filters = filter.parse::<contract::FlowDescription>().unwrap().filters;
    PredefinedRule { name: name.into(), filters, action, mbr }
}

/// A UPF with a rule that drops and one that limits rates, and an association.
fn world() -> World {
    let rules = vec![
        rule("no-video", "permit out 17 from 192.0.2.0/24 to assigned", PredefinedAction::Drop, None),
        rule("slow", "permit out 6 from any 80 to assigned", PredefinedAction::AsTheSessionSays, Some(SLOW)),
    ];
    let mut world = World::configured(|config| config.predefined = PredefinedRules(rules));
    let response = world.associate(AssociationSetupRequest::new(smf_node(), ntp(5)));
    assert!(response.up_function_features.unwrap().contains(UpFunctionFeatures::ADPDP));
    world
}

fn named(name: &str) -> PredefinedRulesName {
    PredefinedRulesName(name.into())
}

/// The PDU session with a PDR 3, evaluated first, that activates those rules.
fn activating(names: &[&str], far_id: Option<FarId>) -> SessionEstablishmentRequest {
    let mut request = pdu_session();
    let like = downlink_pdr(UE);
    request.create_pdrs.push(CreatePdr {
        far_id,
        activate_predefined_rules: names.iter().map(|name| named(name)).collect(),
        ..CreatePdr { pdr_id: PdrId(3), precedence: Precedence(10), ..like }
    });
    request
}

/// An update of PDR 3.
fn update(activate: &[&str], deactivate: &[&str]) -> SessionModificationRequest {
    SessionModificationRequest {
        update_pdrs: vec![UpdatePdr {
            activate_predefined_rules: activate.iter().map(|name| named(name)).collect(),
            deactivate_predefined_rules: deactivate.iter().map(|name| named(name)).collect(),
            ..UpdatePdr::new(PdrId(3))
        }],
        ..SessionModificationRequest::new()
    }
}

fn of_pdr_3(session: &contract::Session) -> Vec<&contract::Pdr> {
    session.pdrs.iter().filter(|pdr| pdr.id == contract::PdrId(3)).collect()
}

#[test]
fn each_activated_rule_matches_its_own_packets() {
    let mut world = world();
    let (seid, _) = world.establish(activating(&["no-video", "slow"], Some(FarId(2))));
    let session = world.installed(seid);
    let [video, slow] = of_pdr_3(&session)[..] else { panic!("{session:?}") };
    assert_eq!(video.filters[0].to_string(), "permit out 17 from 192.0.2.0/24 to assigned");
    let far = session.fars.iter().find(|far| far.id == video.far).unwrap();
    assert_eq!((far.action, video.precedence), (Action::Drop, 10));
    assert_eq!((slow.far, slow.qers[0]), (contract::FarId(2), contract::QerId(1)));
    let qer = session.qers.iter().find(|qer| qer.id == slow.qers[1]).unwrap();
    assert_eq!(qer.mbr, Some(SLOW));
}

#[test]
fn predefined_rules_are_activated_and_deactivated_by_updates() {
    let mut world = world();
    let (seid, _) = world.establish(activating(&["slow"], Some(FarId(2))));
    assert_eq!(world.modify(seid, update(&["no-video"], &["slow"])).cause, Cause::RequestAccepted);
    let session = world.installed(seid);
    assert_eq!(of_pdr_3(&session)[0].filters[0].protocol, Some(17));
    assert!(session.qers.iter().all(|qer| qer.mbr != Some(SLOW)), "nobody names it any more");
    let response = world.modify(seid, update(&[], &["slow"]));
    assert_eq!(response.cause, Cause::UnknownPredefinedRule);
    assert_eq!(response.offending_ie, Some(OffendingIe(IeType::DEACTIVATE_PREDEFINED_RULES)));
}

#[test]
fn a_rule_that_is_activated_twice_is_active_once() {
    let mut world = world();
    let (seid, _) = world.establish(activating(&["slow", "slow"], Some(FarId(2))));
    assert_eq!(world.modify(seid, update(&["slow", "slow"], &[])).cause, Cause::RequestAccepted);
    assert_eq!(world.modify(seid, update(&["no-video"], &["slow"])).cause, Cause::RequestAccepted);
    let session = world.installed(seid);
    let [video] = of_pdr_3(&session)[..] else { panic!("{session:?}") };
    assert_eq!(video.filters[0].protocol, Some(17));
}

#[test]
fn a_rule_with_a_far_needs_none_of_the_session_and_one_without_does() {
    let mut world = world();
    world.establish(activating(&["no-video"], None));
    let response = world.ask(0, activating(&["no-video", "slow"], None));
    let Message::SessionEstablishmentResponse(response) = response.message else { panic!() };
    assert_eq!(response.cause, Cause::RuleCreationModificationFailure);
    assert_eq!(response.failed_rule_id, Some(FailedRuleId::Pdr(PdrId(3))));
}

#[test]
fn predefined_fars_and_qers_have_ids_of_their_own() {
    let mut world = world();
    let mut request = pdu_session();
    request.create_pdrs[0].far_id = Some(FarId(0x8000_0001));
    request.create_pdrs[1].qer_ids.push(QerId(0x8000_0002));
    let (seid, _) = world.establish(request);
    let session = world.installed(seid);
    let far = session.fars.iter().find(|far| far.id == session.pdrs[0].far).unwrap();
    assert_eq!(far.action, Action::Drop);
    assert!(session.qers.iter().any(|qer| qer.mbr == Some(SLOW)));
    let mut request = pdu_session_of(0x5112, [10, 45, 0, 3].into());
    request.create_pdrs[0].far_id = Some(FarId(0x8000_0002));
    let Message::SessionEstablishmentResponse(response) = world.ask(0, request).message else { panic!() };
    assert_eq!(response.cause, Cause::RuleCreationModificationFailure, "that rule has no FAR");
}

#[test]
fn an_unknown_predefined_rule_is_rejected_with_its_cause() {
    let mut world = world();
    let response = world.ask(0, activating(&["no-such"], Some(FarId(2))));
    let Message::SessionEstablishmentResponse(response) = response.message else { panic!() };
    assert_eq!(response.cause, Cause::UnknownPredefinedRule);
    assert_eq!(response.offending_ie, Some(OffendingIe(IeType::ACTIVATE_PREDEFINED_RULES)));
    let response = World::new().associate(AssociationSetupRequest::new(smf_node(), ntp(5)));
    assert!(!response.up_function_features.unwrap().contains(UpFunctionFeatures::ADPDP));
}
