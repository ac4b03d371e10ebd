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
