//! DRX and MICO mode: what the UE requests, and what it does not accept (TS 24.501 5.5.1.2).

use crate::network::*;
use pith_nas::GmmMessage;
use pith_nas::gmm::RegistrationAccept;
use pith_nas::ie::{DrxParameters, ExtendedDrxParameters, GprsTimer3, MicoIndication, RegistrationKind};
use pith_ngap::PagingDrx;
use pith_ran::ue::{Input, PagedWith, RequestedReachability};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

fn wishes() -> RequestedReachability {
    RequestedReachability {
        drx: Some(DrxParameters::T64),
        edrx: Some(5),
        mico: true,
        active_time: Some(MINUTE),
    }
}

fn granted() -> RegistrationAccept {
    RegistrationAccept {
        negotiated_drx_parameters: Some(DrxParameters::T64),
        negotiated_extended_drx_parameters: Some(extended(3)),
        mico_indication: Some(MicoIndication::default()),
        t3324: Some(GprsTimer3::at_least(MINUTE)),
        ..registration_accept()
    }
}

const fn extended(value: u8) -> ExtendedDrxParameters {
    ExtendedDrxParameters { paging_time_window: 3, value, further: Vec::new() }
}

/// Registers, with that answer.
fn registered(requested: RequestedReachability, accept: RegistrationAccept) -> Pair {
    let mut pair = Pair::requesting(requested);
    pair.secure();
    pair.give_ciphered(accept);
    let GmmMessage::RegistrationComplete(_) = pair.ciphered() else { panic!() };
    pair
}

#[test]
fn what_the_ue_wants_is_in_the_complete_request() {
    let request = Pair::requesting(wishes()).secure();
    assert_eq!(request.requested_drx_parameters, Some(DrxParameters::T64));
    assert_eq!(request.requested_extended_drx_parameters, Some(extended(5)));
    assert_eq!(request.mico_indication, Some(MicoIndication::default()));
    assert_eq!(request.t3324.unwrap().duration(), Some(MINUTE));
    let other = Pair::new().secure();
    assert!(other.requested_drx_parameters.is_none() && other.mico_indication.is_none());
    assert!(other.requested_extended_drx_parameters.is_none() && other.t3324.is_none());
}

#[test]
fn a_page_with_the_negotiated_drx_is_answered() {
    let mut pair = registered(wishes(), granted());
    pair.release_connection();
    pair.input(Input::Paging(PagedWith { drx: Some(PagingDrx::v64), is_extended: true }));
    assert_eq!(pair.connections, 2);
    pair.assert_clean();
}

#[test]
fn a_page_without_the_negotiated_drx_is_a_violation() {
    let mut pair = registered(wishes(), granted());
    pair.release_connection();
    pair.input(Input::Paging(PagedWith { drx: Some(PagingDrx::v64), is_extended: false }));
    assert_eq!(pair.violation(), "TS 38.413 8.5.1.2");
}

#[test]
fn a_page_in_mico_mode_without_active_time_is_a_violation() {
    let requested = RequestedReachability { mico: true, ..Default::default() };
    let accept = RegistrationAccept { mico_indication: Some(Default::default()), ..registration_accept() };
    let mut pair = registered(requested, accept);
    pair.assert_clean();
    pair.release_connection();
    pair.input(Input::Paging(PagedWith::default()));
    assert_eq!(pair.violation(), "TS 23.501 5.4.1.3");
}

#[test]
fn a_ue_accepts_nothing_that_it_has_not_requested() {
    let accepts = [
        RegistrationAccept { negotiated_drx_parameters: Some(DrxParameters::T64), ..registration_accept() },
        RegistrationAccept { negotiated_extended_drx_parameters: Some(extended(3)), ..registration_accept() },
        RegistrationAccept { mico_indication: Some(MicoIndication::default()), ..registration_accept() },
        RegistrationAccept { t3324: Some(GprsTimer3::at_least(MINUTE)), ..registration_accept() },
    ];
    for accept in accepts {
        assert_eq!(registered(RequestedReachability::default(), accept).violation(), "TS 24.501 5.5.1.2.4");
    }
    let longer = RegistrationAccept { negotiated_extended_drx_parameters: Some(extended(9)), ..granted() };
    assert_eq!(registered(wishes(), longer).violation(), "TS 24.501 5.5.1.2.4");
    let silent = RegistrationAccept { negotiated_drx_parameters: None, ..granted() };
    assert_eq!(registered(wishes(), silent).violation(), "TS 24.501 5.5.1.2.4");
}

/// Also outside of the areas that it knows the UE is registered.
#[test]
fn the_whole_network_is_the_registration_area_in_mico_mode() {
    let requested = RequestedReachability { mico: true, ..Default::default() };
    let mico_indication = Some(MicoIndication { all_plmn_area: true, strictly_periodic: false });
    let accept = RegistrationAccept { mico_indication, tai_list: None, ..registration_accept() };
    let mut pair = registered(requested, accept);
    pair.assert_clean();
    pair.release_connection();
    pair.input(Input::Camp(pith_types::Tai { tac: pith_types::Tac::new(2), ..tai() }));
    assert_eq!(pair.connections, 1);
    assert_eq!(pair.ue.state(), pith_ran::ue::State::Registered);
}

#[test]
fn a_periodic_update_requests_extended_drx_and_not_the_ue_specific_one() {
    let mut pair = registered(wishes(), granted());
    pair.release_connection();
    pair.advance(MINUTE);
    pair.advance(60 * MINUTE);
    let octets = pair.octets();
    let opened = pair.security.as_mut().unwrap().unprotect(&octets).unwrap();
    let GmmMessage::RegistrationRequest(outer) = GmmMessage::decode(&opened.plain).unwrap() else { panic!() };
    assert_eq!(outer.registration_type.kind, RegistrationKind::PeriodicUpdating);
    assert_eq!(outer.requested_drx_parameters, None);
}
