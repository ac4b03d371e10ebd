//! Load reports to SMFs that support them (TS 29.244 6.2.3, 6.2.4).

use crate::support::*;
use pith_pfcp::Message;
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_upf::Input;
use pith_upf::contract::Rates;

/// A UPF with room for ten sessions, and an SMF with these features.
fn world(features: CpFunctionFeatures) -> World {
    let mut world = World::configured(|config| {
        config.max_sessions = 10;
        config.guaranteed = Some(Rates { uplink: 1_000_000, downlink: 1_000_000 });
    });
    let setup = AssociationSetupRequest::new(smf_node(), ntp(5));
    world.associate(AssociationSetupRequest { cp_function_features: Some(features), ..setup });
    world
}

fn both() -> CpFunctionFeatures {
    CpFunctionFeatures::LOAD | CpFunctionFeatures::OVRL
}

fn establish(world: &mut World, last: u8) -> SessionEstablishmentResponse {
    let request = pdu_session_of(u64::from(last), [10, 45, 0, last].into());
    let Message::SessionEstablishmentResponse(response) = world.ask(0, request).message else { panic!() };
    response
}

/// Sequence number and metric.
fn load(response: &SessionEstablishmentResponse) -> (u32, u8) {
    let load = response.load_control_information.as_ref().expect("load");
    (load.sequence_number.0, load.metric.0)
}

#[test]
fn the_load_metric_is_that_of_the_most_used_resource() {
    let mut world = world(both());
    assert_eq!(load(&establish(&mut world, 2)), (1, 10), "one session of ten");
    assert_eq!(load(&establish(&mut world, 3)), (2, 20));
    world.input(Input::Busy { percent: 63 });
    assert_eq!(load(&establish(&mut world, 4)), (3, 60));
    world.input(Input::Busy { percent: 64 });
    assert_eq!(load(&establish(&mut world, 5)), (3, 60), "not worth a change");
}

#[test]
fn overload_asks_for_fewer_requests_until_it_is_over() {
    let mut world = world(both());
    assert_eq!(establish(&mut world, 2).overload_control_information, None);
    world.input(Input::Busy { percent: 95 });
    let overload = establish(&mut world, 3).overload_control_information.expect("overload");
    assert_eq!((overload.sequence_number.0, overload.reduction_metric.0), (1, 50));
    assert_eq!(overload.period_of_validity, CodedDuration::at_least(10));
    world.input(Input::Busy { percent: 20 });
    let overload = establish(&mut world, 4).overload_control_information.expect("its end");
    assert_eq!((overload.sequence_number.0, overload.reduction_metric.0), (2, 0));
}

#[test]
fn an_smf_without_load_control_gets_no_load_information() {
    let mut world = world(CpFunctionFeatures::OVRL);
    world.input(Input::Busy { percent: 100 });
    let response = establish(&mut world, 2);
    assert_eq!(response.load_control_information, None);
    assert_eq!(response.overload_control_information.expect("overload").reduction_metric, Metric(75));
    let deaf = &mut World::associated();
    deaf.input(Input::Busy { percent: 100 });
    assert_eq!(establish(deaf, 2).overload_control_information, None);
}
