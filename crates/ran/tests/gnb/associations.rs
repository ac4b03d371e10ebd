//! Several associations with an AMF (TS 38.412 7, TS 23.501 5.21.1).

use crate::amf::*;
use pith_ngap::*;
use pith_ran::Instant;
use pith_ran::gnb::{Event, Input, Output, Settings, UeKey};
use std::net::SocketAddr;
use std::time::Duration;

fn acknowledge() -> Vec<u8> {
    RanConfigurationUpdateAcknowledge { diagnostics: None }.encode().unwrap()
}

/// A gNB with an association that has joined, and a UE on the first one.
fn joined() -> Pair {
    let mut pair = Pair::with_context();
    pair.input(Input::AssociationUp { association: 1, outbound_streams: 8 });
    pair.sent.clear();
    pair.give_over(1, 0, &acknowledge());
    assert_eq!(std::mem::take(&mut pair.events), [Event::AssociationJoined]);
    pair.assert_clean();
    pair
}

/// The association of the UE's next message.
fn uplink(pair: &mut Pair) -> u8 {
    pair.input(Input::Uplink { ue: UE, nas: vec![0x7e] });
    assert!(matches!(pair.message(), Message::UplinkNasTransport(_)));
    pair.association
}

#[test]
fn a_further_association_joins_by_ran_configuration_update() {
    let mut pair = Pair::up();
    pair.input(Input::AssociationUp { association: 1, outbound_streams: 8 });
    let Message::RanConfigurationUpdate(update) = pair.message() else { panic!() };
    assert_eq!(update.global_ran_node_id, Some(GlobalRanNodeId::Gnb { plmn: plmn(), id: 1, bits: 32 }));
    assert_eq!(pair.association, 1);
    pair.give_over(1, 3, &downlink(vec![1]).encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.413 8.7.2.2", "it has not joined");
    pair.give_over(1, 0, &acknowledge());
    pair.give_over(1, 0, &acknowledge());
    assert_eq!(pair.violation(), "TS 38.413 10.4", "it has joined already");
}

#[test]
fn associations_wait_for_ng_setup_over_the_first_one() {
    let mut pair = Pair::new();
    pair.input(Input::AssociationUp { association: 0, outbound_streams: 8 });
    assert!(matches!(pair.message(), Message::NgSetupRequest(_)));
    pair.input(Input::AssociationUp { association: 1, outbound_streams: 8 });
    assert_eq!(pair.sent, []);
    pair.give(0, ng_setup_response().encode().unwrap());
    assert!(matches!(pair.message(), Message::RanConfigurationUpdate(_)));
    assert_eq!(pair.association, 1);
    pair.assert_clean();
}

#[test]
fn a_further_association_may_join_by_ng_setup() {
    let mut pair = Pair::of(Settings { joins_by_ng_setup: true, ..settings() });
    pair.input(Input::AssociationUp { association: 0, outbound_streams: 8 });
    pair.give(0, ng_setup_response().encode().unwrap());
    pair.sent.clear();
    pair.input(Input::AssociationUp { association: 1, outbound_streams: 8 });
    let Message::NgSetupRequest(request) = pair.message() else { panic!() };
    assert_eq!(request.ue_retention, Some(UeRetentionInformation::ues_retained));
    let retained = NgSetupResponse { ue_retention: request.ue_retention, ..ng_setup_response() };
    pair.give_over(1, 0, &retained.encode().unwrap());
    assert_eq!(pair.events, [Event::Up, Event::AssociationJoined]);
    pair.assert_clean();
}

#[test]
fn a_refused_association_tries_again_after_time_to_wait() {
    let mut pair = Pair::up();
    pair.input(Input::AssociationUp { association: 1, outbound_streams: 8 });
    pair.sent.clear();
    let cause = Cause::Misc(CauseMisc::unspecified);
    let failure =
        RanConfigurationUpdateFailure { cause, time_to_wait: Some(TimeToWait::v1s), diagnostics: None };
    pair.give_over(1, 0, &failure.encode().unwrap());
    assert_eq!(pair.events, [Event::JoinRejected(cause)]);
    let due = pair.gnb.next_timeout().unwrap();
    assert_eq!(due - pair.now, Duration::from_secs(1));
    pair.now = due;
    pair.input(Input::Timeout);
    assert!(matches!(pair.message(), Message::RanConfigurationUpdate(_)));
}

#[test]
fn an_ng_setup_that_is_refused_for_a_further_association_is_repeated_after_time_to_wait() {
    let mut pair = Pair::of(Settings { joins_by_ng_setup: true, ..settings() });
    pair.input(Input::AssociationUp { association: 0, outbound_streams: 8 });
    pair.give(0, ng_setup_response().encode().unwrap());
    let cause = Cause::Misc(CauseMisc::control_processing_overload);
    for (association, wait) in [(1, TimeToWait::v10s), (2, TimeToWait::v1s)] {
        pair.input(Input::AssociationUp { association, outbound_streams: 8 });
        let failure = NgSetupFailure { cause, time_to_wait: Some(wait), diagnostics: None };
        pair.give_over(association, 0, &failure.encode().unwrap());
    }
    pair.sent.clear();
    for (second, association) in [(1, 2), (10, 1)] {
        let due = pair.gnb.next_timeout().unwrap();
        assert_eq!(due - Instant::START, Duration::from_secs(second));
        pair.now = due;
        pair.input(Input::Timeout);
        assert!(matches!(pair.message(), Message::NgSetupRequest(_)));
        assert_eq!(pair.association, association);
    }
    assert_eq!(pair.gnb.next_timeout(), None);
    pair.assert_clean();
}

/// AMF CONFIGURATION UPDATE with an endpoint.
fn adds(address: &str) -> Vec<u8> {
    let endpoint = CpTransportLayer { address: address.parse().unwrap(), port: None };
    AmfConfigurationUpdate {
        amf_name: None,
        served_guamis: None,
        relative_amf_capacity: None,
        plmn_support: None,
        tnla_to_add: Some(vec![AmfTnlaToAdd { endpoint, usage: None, weight: 9 }]),
        tnla_to_update: None,
        tnla_to_remove: None,
    }
    .encode()
    .unwrap()
}

/// The addresses with an association, and those without, in the next message, an acknowledge.
fn acknowledged(pair: &mut Pair) -> [Vec<String>; 2] {
    let (_, Message::AmfConfigurationUpdateAcknowledge(answer)) = pair.sent.remove(0) else { panic!() };
    let set_up = answer.tnla_set_up.unwrap_or_default();
    let failed = answer.tnla_failed.unwrap_or_default();
    let text = |endpoint: &CpTransportLayer| endpoint.address.to_string();
    [set_up.iter().map(text).collect(), failed.iter().map(|it| text(&it.endpoint)).collect()]
}

#[test]
fn each_amf_configuration_update_is_acknowledged_in_order() {
    let mut pair = Pair::up();
    pair.give(0, adds("10.0.1.5"));
    pair.give(0, adds("10.0.2.5"));
    pair.input(Input::AssociationDown { association: 2 });
    assert_eq!(pair.sent, [], "the first one has no answer yet");
    pair.input(Input::AssociationDown { association: 1 });
    assert_eq!(acknowledged(&mut pair), [vec![], vec!["10.0.1.5".to_owned()]]);
    assert_eq!(acknowledged(&mut pair), [vec![], vec!["10.0.2.5".to_owned()]]);
    pair.assert_clean();
}

#[test]
fn an_endpoint_without_an_unused_association_is_named_as_failed() {
    let mut pair = Pair::up();
    for association in 0..=u8::MAX {
        pair.gnb.note_endpoint(association, SocketAddr::new([10, 1, 0, association].into(), 38412));
    }
    pair.give(0, adds("10.0.1.5"));
    assert_eq!(acknowledged(&mut pair), [vec![], vec!["10.0.1.5".to_owned()]]);
    pair.assert_clean();
}

#[test]
fn the_binding_of_a_ue_follows_the_amfs_messages() {
    let mut pair = joined();
    assert_eq!(uplink(&mut pair), 0);
    pair.give_over(1, 5, &downlink(vec![7]).encode().unwrap());
    assert_eq!(uplink(&mut pair), 1);
    pair.assert_clean();
    pair.give_over(1, 6, &downlink(vec![7]).encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.412 7", "another stream of the same association");
}

#[test]
fn ues_of_a_lost_association_use_another_one() {
    let mut pair = joined();
    pair.input(Input::AssociationDown { association: 0 });
    assert_eq!(std::mem::take(&mut pair.events), [Event::AssociationLost]);
    assert!(pair.out.is_empty(), "the UE stays: {:?}", pair.out);
    assert_eq!(uplink(&mut pair), 1);
    pair.input(Input::AssociationUp { association: 0, outbound_streams: 8 });
    assert!(matches!(pair.message(), Message::RanConfigurationUpdate(_)), "it joins again");
    pair.input(Input::AssociationDown { association: 1 });
    assert!(pair.out.contains(&Output::Released { ue: UE }), "no association has joined");
    assert!(matches!(pair.message(), Message::NgSetupRequest(_)));
    assert_eq!(pair.association, 0);
    pair.assert_clean();
}

#[test]
fn after_ue_tnla_binding_release_request_the_ue_takes_another_association() {
    let mut pair = joined();
    let request = UeTnlaBindingReleaseRequest { amf_ue_ngap_id: amf_id(), ran_ue_ngap_id: RAN };
    pair.give(STREAM, request.encode().unwrap());
    assert_eq!(pair.sent, [], "it has no answer");
    assert_eq!(uplink(&mut pair), 1);
    pair.give_over(1, 5, &request.encode().unwrap());
    assert_eq!(uplink(&mut pair), 0);
    pair.input(Input::AssociationDown { association: 1 });
    pair.give(STREAM, request.encode().unwrap());
    assert_eq!(uplink(&mut pair), 0, "there is no other");
    pair.assert_clean();
}

#[test]
fn endpoints_of_amf_configuration_update_are_added_weighted_and_removed() {
    let mut pair = Pair::up();
    let end = |address: &str| CpTransportLayer { address: address.parse().unwrap(), port: None };
    let socket = |address: &str| SocketAddr::new(address.parse().unwrap(), 38412);
    pair.gnb.note_endpoint(0, socket("10.0.0.5"));
    let update = |add: &[&str], weights: &[(&str, u8)], remove: &[&str]| {
        let add = add.iter().map(|it| AmfTnlaToAdd { endpoint: end(it), usage: None, weight: 9 });
        let weights = weights.iter().map(|(address, weight)| AmfTnlaToUpdate {
            endpoint: end(address),
            usage: None,
            weight: Some(*weight),
        });
        let remove = remove.iter().map(|it| AmfTnlaToRemove { endpoint: end(it), ran: None });
        AmfConfigurationUpdate {
            amf_name: None,
            served_guamis: None,
            relative_amf_capacity: None,
            plmn_support: None,
            tnla_to_add: Some(add.collect::<Vec<_>>()).filter(|list| !list.is_empty()),
            tnla_to_update: Some(weights.collect::<Vec<_>>()).filter(|list| !list.is_empty()),
            tnla_to_remove: Some(remove.collect::<Vec<_>>()).filter(|list| !list.is_empty()),
        }
        .encode()
        .unwrap()
    };
    pair.give(0, update(&["10.0.1.5", "10.0.2.5"], &[], &[]));
    let added = |association, address| Output::AddAssociation { association, endpoint: socket(address) };
    assert_eq!(std::mem::take(&mut pair.out), [added(1, "10.0.1.5"), added(2, "10.0.2.5")]);
    assert_eq!(pair.sent, [], "not before both are known");
    pair.input(Input::AssociationUp { association: 1, outbound_streams: 8 });
    assert!(matches!(pair.message(), Message::RanConfigurationUpdate(_)));
    pair.input(Input::AssociationDown { association: 2 });
    let Message::AmfConfigurationUpdateAcknowledge(answer) = pair.message() else { panic!() };
    assert_eq!(answer.tnla_set_up, Some(vec![end("10.0.1.5")]));
    let failed = answer.tnla_failed.unwrap_or_default();
    assert_eq!(failed.iter().map(|it| it.endpoint).collect::<Vec<_>>(), [end("10.0.2.5")]);
    pair.give_over(1, 0, &acknowledge());

    pair.give(0, update(&[], &[("10.0.0.5", 0)], &[]));
    pair.message();
    for ue in 1..6 {
        let cause = RrcEstablishmentCause::mo_Signalling;
        pair.input(Input::Connect { ue: UeKey(100 + ue), nas: vec![0x7e, 0, 0x41], cause, s_tmsi: None });
        pair.message();
        assert_eq!(pair.association, 1, "no UE begins at an endpoint with the weight 0 (TS 23.502 4.2.7.1)");
    }
    pair.give_over(1, 0, &update(&[], &[], &["10.0.0.5"]));
    assert!(pair.out.contains(&Output::RemoveAssociation { association: 0 }));
    pair.assert_clean();
}
