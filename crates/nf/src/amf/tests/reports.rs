//! Reports of a UE's gNB, what an operator requests from gNBs, and what the AMF relays (TS 38.413 8.3.4.3, 8.3.5, 8.4.9, 8.7.4, 8.12, 8.15).

use super::world::{GNB, Phone, World, location, supi, transfers};
use crate::kit::{Effect, GnbInfo, Input, Inspect, Level, N2Effect, N2Input, NetworkFunction, Order, Outbox};
use pith_ngap::{
    Cause, CauseRadioNetwork, LocationEvent, LocationReport, LocationReportingFailureIndication,
    LocationRequest, Message, RrcInactiveTransitionReport, RrcState, SecondaryRatDataUsageReport,
    UeContextModificationFailure, UserLocation,
};
use pith_types::{NrCellIdentity, Tac, Tai};
use serde_json::Value;
use std::sync::Arc;

fn registered() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    world.take_ladder();
    (world, phone)
}

fn at(cell: u64) -> UserLocation {
    UserLocation { cell: NrCellIdentity::new(cell), ..location() }
}

fn cell(world: &World) -> Value {
    let mut list = Vec::new();
    world.amf.inspect(Inspect::Ues, &mut list);
    list[0]["cell"].clone()
}

fn shown(cell: u64) -> Value {
    serde_json::to_value(NrCellIdentity::new(cell)).unwrap()
}

#[test]
fn each_report_of_the_gnb_changes_the_location_of_the_ue() {
    let (mut world, phone) = registered();
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (phone.amf_id.unwrap(), phone.ran_id);
    let request = Some(LocationRequest { event: LocationEvent::direct });
    let report = LocationReport { amf_ue_ngap_id, ran_ue_ngap_id, location: Some(at(7)), request };
    world.ngap(GNB, "LocationReport", report.encode());
    assert_eq!(cell(&world), shown(7));
    let report = RrcInactiveTransitionReport {
        amf_ue_ngap_id,
        ran_ue_ngap_id,
        state: Some(RrcState::inactive),
        location: Some(at(8)),
    };
    world.ngap(GNB, "RrcInactiveTransitionReport", report.encode());
    assert_eq!(cell(&world), shown(8));
    let report = SecondaryRatDataUsageReport {
        amf_ue_ngap_id,
        ran_ue_ngap_id,
        sessions: Some(transfers(&[5])),
        handover: None,
        location: Some(at(9)),
    };
    world.ngap(GNB, "SecondaryRatDataUsageReport", report.encode());
    assert_eq!(cell(&world), shown(9));
    let elsewhere = Tai { tac: Tac::new(0xffff), ..location().tai };
    let location = Some(UserLocation { tai: elsewhere, ..at(10) });
    let report = LocationReport { amf_ue_ngap_id, ran_ue_ngap_id, location, request };
    world.ngap(GNB, "LocationReport", report.encode());
    assert_eq!(cell(&world), shown(9), "the gNB does not serve that tracking area");
    assert!(!world.take_ladder().contains("<-"), "reports are not answered");
}

#[test]
fn failures_leave_location_and_connection_as_they_are() {
    let (mut world, phone) = registered();
    let before = cell(&world);
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (phone.amf_id.unwrap(), phone.ran_id);
    let cause = Some(Cause::RadioNetwork(CauseRadioNetwork::unspecified));
    let failure = LocationReportingFailureIndication { amf_ue_ngap_id, ran_ue_ngap_id, cause };
    world.ngap(GNB, "LocationReportingFailureIndication", failure.encode());
    let failure = UeContextModificationFailure { amf_ue_ngap_id, ran_ue_ngap_id, cause, diagnostics: None };
    world.ngap(GNB, "UeContextModificationFailure", failure.encode());
    assert_eq!(cell(&world), before);
    assert_eq!(world.amf.audit().connected, 1);
    assert!(!world.take_ladder().contains("<-"), "failures are not answered");
}

#[test]
fn an_operator_locates_a_connected_ue() {
    let (mut world, mut phone) = registered();
    let answer = world.order(&Order::Locate { supi: supi() });
    assert_eq!(answer[0]["refusal"], Value::Null);
    let Message::LocationReportingControl(control) = world.next() else { panic!() };
    assert_eq!((control.amf_ue_ngap_id, control.ran_ue_ngap_id), (phone.amf_id.unwrap(), phone.ran_id));
    assert_eq!(control.request, Some(LocationRequest { event: LocationEvent::direct }));
    phone.release(&mut world);
    let answer = world.order(&Order::Locate { supi: supi() });
    assert!(answer[0]["refusal"].as_str().unwrap().contains("CM-IDLE"), "{answer:?}");
    let unknown = "imsi-999700000000099".parse().unwrap();
    assert!(world.order(&Order::Locate { supi: unknown }).is_empty());
}

#[test]
fn an_operator_resets_a_gnb_by_id_or_name() {
    let (mut world, _) = registered();
    let info = GnbInfo { name: "north".into(), ..World::gnb_info(GNB) };
    world.input(Input::N2(N2Input::GnbUp { gnb: GNB, info: Arc::new(info.clone()) }));
    for (named, number) in [(&*info.global_id, 1), ("north", 1), ("south", 0), ("", 0)] {
        let (mut out, mut list) = (Outbox::new(Level::Debug), Vec::new());
        world.amf.operate(world.now, &Order::ResetGnb { gnb: named.to_owned() }, &mut out, &mut list);
        let is_reset =
            |effect: &&Effect| matches!(effect, Effect::N2(N2Effect::Reset { gnb }) if *gnb == GNB);
        let resets = out.effects().iter().filter(is_reset).count();
        assert_eq!((resets, list.len()), (number, number), "{named}");
    }
}
