//! Framed routes are passed to the datapath; invalid ones are rejected.

use crate::support::*;
use pith_pfcp::IeType;
use pith_pfcp::Message;
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_pfcp::rules::*;
use pith_upf::contract::AddressRange;

fn routes(world: &World, seid: u64) -> Vec<String> {
    let shown = |range: &AddressRange| format!("{}/{}", range.address, range.prefix);
    world.installed(seid).framed_routes.iter().map(shown).collect()
}

#[test]
fn framed_routes_of_pdrs_and_endpoints_are_merged_without_duplicates() {
    let mut request = pdu_session();
    let v4 = || vec![FramedRoute(b"192.168.7.9/24 0.0.0.0 1".to_vec())];
    let pdi = &mut request.create_pdrs[0].pdi;
    pdi.framed_routes = v4();
    pdi.framed_ipv6_routes = vec![FramedIpv6Route(b"2001:db8:5::/48 :: 1".to_vec())];
    request.create_pdrs[1].pdi.framed_routes = v4();
    let (mut world, seid, _) = World::with_session(request);
    assert_eq!(routes(&world, seid), ["192.168.7.0/24", "2001:db8:5::/48"]);
    // They are removed with their PDRs.
    let remove = SessionModificationRequest {
        remove_pdrs: vec![RemovePdr::new(PdrId(1))],
        ..SessionModificationRequest::new()
    };
    assert_eq!(world.modify(seid, remove).cause, Cause::RequestAccepted);
    assert_eq!(routes(&world, seid), ["192.168.7.0/24"]);
}

#[test]
fn an_invalid_framed_route_is_the_offending_ie() {
    for text in ["everything", "0.0.0.0/0 0.0.0.0 1", "2001:db8::/32"] {
        let mut request = pdu_session();
        request.create_pdrs[0].pdi.framed_routes = vec![FramedRoute(text.into())];
        let mut world = World::associated();
        let sent = world.ask(0, request);
        let Message::SessionEstablishmentResponse(response) = sent.message else { panic!() };
        assert_eq!(response.cause, Cause::RuleCreationModificationFailure, "{text}");
        assert_eq!(response.offending_ie, Some(OffendingIe(IeType::FRAMED_ROUTE)), "{text}");
    }
}

fn with_routes(seid: u64, ue: &str, routes: &[&str]) -> SessionEstablishmentRequest {
    let mut request = pdu_session();
    request.cp_f_seid.seid = seid;
    let address = ue.parse().unwrap();
    for pdr in &mut request.create_pdrs {
        pdr.pdi.framed_routes = routes.iter().map(|route| FramedRoute(route.as_bytes().to_vec())).collect();
        pdr.pdi.ue_ip_addresses.iter_mut().for_each(|ue| ue.ipv4 = Some(Choice::Given(address)));
    }
    request
}

fn answer(world: &mut World, request: SessionEstablishmentRequest) -> (Cause, Option<OffendingIe>, u64) {
    let Message::SessionEstablishmentResponse(response) = world.ask(0, request).message else { panic!() };
    (response.cause, response.offending_ie, response.up_f_seid.map_or(0, |seid| seid.seid))
}

#[test]
fn a_framed_route_that_another_session_has_is_refused() {
    let mut world = World::associated();
    let (accepted, refused) = (Cause::RequestAccepted, Cause::RuleCreationModificationFailure);
    let (cause, _, first) = answer(
        &mut world,
        with_routes(0x11, "10.45.0.11", &["192.168.8.0/22", "192.168.9.0/24", "192.168.8.0/24"]),
    );
    assert_eq!(cause, accepted);
    for route in ["192.168.8.0/22", "192.168.9.128/25", "192.168.0.0/16", "192.168.11.255/32"] {
        let (cause, offending, _) =
            answer(&mut world, with_routes(0x12, "10.45.0.12", &["172.16.0.0/24", route]));
        assert_eq!((cause, offending), (refused, Some(OffendingIe(IeType::FRAMED_ROUTE))), "{route}");
    }
    let (cause, _, second) =
        answer(&mut world, with_routes(0x12, "10.45.0.12", &["192.168.12.0/24", "192.168.7.0/24"]));
    assert_eq!(cause, accepted, "networks beside those");
    // A change of the other session may not take one, either.
    let mut update = UpdatePdr::new(PdrId(1));
    update.pdi = Some(with_routes(0x12, "10.45.0.12", &["192.168.10.0/24"]).create_pdrs[0].pdi.clone());
    let change =
        SessionModificationRequest { update_pdrs: vec![update], ..SessionModificationRequest::new() };
    assert_eq!(world.modify(second, change).cause, refused);
    assert_eq!(routes(&world, second).len(), 2, "as before");
    world.ask(first, SessionDeletionRequest::new());
    assert_eq!(answer(&mut world, with_routes(0x13, "10.45.0.13", &["192.168.8.0/22"])).0, accepted);
}

#[test]
fn a_session_that_takes_the_address_of_a_stale_one_takes_its_framed_routes() {
    let mut world = World::associated();
    let request = |seid| with_routes(seid, "10.45.0.11", &["192.168.8.0/22"]);
    assert_eq!(answer(&mut world, request(0x11)).0, Cause::RequestAccepted);
    let (cause, _, seid) = answer(&mut world, request(0x12));
    assert_eq!(cause, Cause::RequestAccepted);
    assert_eq!(routes(&world, seid), ["192.168.8.0/22"]);
}
