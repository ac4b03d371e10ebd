//! Addresses and interfaces that a UPF does not serve: rules that contain them are rejected, never applied
//! otherwise (TS 29.244 5.2.1A, 5.2.3, 7.6, 8.2.1).

use std::net::{IpAddr, Ipv4Addr};

use crate::support::*;
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_pfcp::rules::*;
use pith_pfcp::{IeType, Message};
use pith_upf::GtpuAddress;
use pith_upf::contract::{Action, AddressRange, Destination};

fn answer(world: &mut World, request: SessionEstablishmentRequest) -> SessionEstablishmentResponse {
    let Message::SessionEstablishmentResponse(response) = world.ask(0, request).message else { panic!() };
    response
}

/// The rejection of a session, of which nothing remains.
fn refusal(request: SessionEstablishmentRequest) -> (Cause, Option<IeType>) {
    refusal_of(&mut World::associated(), request)
}

fn refusal_of(world: &mut World, request: SessionEstablishmentRequest) -> (Cause, Option<IeType>) {
    let response = answer(world, request);
    assert!(!response.cause.is_acceptance(), "{response:?}");
    assert_eq!((world.upf.sessions().count(), world.upf.teids_in_use()), (0, 0));
    assert!(world.datapath.sessions.is_empty());
    (response.cause, response.offending_ie.map(|offending| offending.0))
}

const FAILED: Cause = Cause::RuleCreationModificationFailure;

/// A session with this uplink destination.
fn uplink_to(interface: DestinationInterface, instance: Option<&str>) -> SessionEstablishmentRequest {
    let mut request = pdu_session();
    request.create_fars[0].forwarding_parameters = Some(ForwardingParameters {
        network_instance: instance.map(NetworkInstance::from_dnn),
        ..ForwardingParameters::new(interface)
    });
    request
}

#[test]
fn a_far_for_an_interface_that_the_upf_does_not_have_is_refused() {
    let interface = Some(IeType::DESTINATION_INTERFACE);
    for (destination, cause) in [
        (DestinationInterface::CpFunction, FAILED),
        (DestinationInterface::LiFunction, Cause::ServiceNotSupported),
        (DestinationInterface::FiveGVnInternal, Cause::ServiceNotSupported),
        (DestinationInterface::Unknown(9), Cause::MandatoryIeIncorrect),
    ] {
        assert_eq!(refusal(uplink_to(destination, None)), (cause, interface), "{destination:?}");
    }
    for destination in [DestinationInterface::Core, DestinationInterface::SgiLanN6Lan] {
        let (world, seid, _) = World::with_session(uplink_to(destination, Some("Internet")));
        assert_eq!(world.installed(seid).fars[0].action, Action::Forward(Destination::Network));
        assert_eq!(refusal(uplink_to(destination, Some("ims"))), (FAILED, Some(IeType::NETWORK_INSTANCE)));
    }
    let (world, seid, _) = World::with_session(uplink_to(DestinationInterface::Access, Some("n3")));
    assert_eq!(world.installed(seid).fars[0].action, Action::Drop, "no gNB is known yet");
}

#[test]
fn an_update_to_such_an_interface_leaves_the_rule_as_it_was() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let before = world.installed(seid);
    let parameters = UpdateForwardingParameters {
        destination_interface: Some(DestinationInterface::Unknown(6)),
        ..UpdateForwardingParameters::new()
    };
    let update = UpdateFar { update_forwarding_parameters: Some(parameters), ..UpdateFar::new(FarId(1)) };
    let request =
        SessionModificationRequest { update_fars: vec![update], ..SessionModificationRequest::new() };
    let response = world.modify(seid, request);
    assert_eq!(response.offending_ie, Some(OffendingIe(IeType::DESTINATION_INTERFACE)));
    assert_eq!(world.installed(seid), before);
}

/// The UPF has N3 at 192.168.3.1, N4 at 192.168.4.1, and a gateway in its pool.
fn served() -> World {
    let mut world = World::configured(|config| {
        config.ue_pools = vec![AddressRange { address: [10, 45, 0, 0].into(), prefix: 16 }];
        config.own_addresses = vec![[10, 45, 0, 1].into()];
    });
    world.associate(AssociationSetupRequest::new(smf_node(), ntp(0)));
    world
}

#[test]
fn a_tunnel_peer_is_a_host_other_than_the_upf() {
    let mut world = served();
    let (seid, _) = world.establish(pdu_session());
    let before = world.installed(seid);
    for peer in [
        "127.0.0.1",
        "255.255.255.255",
        "224.0.0.1",
        "0.0.0.0",
        "192.168.3.1",
        "192.168.4.1",
        "10.45.0.1",
        "10.45.0.2",
    ] {
        let far = to_gnb(peer.parse().unwrap(), 7);
        let request =
            SessionModificationRequest { update_fars: vec![far], ..SessionModificationRequest::new() };
        let response = world.modify(seid, request);
        assert_eq!(response.cause, FAILED, "{peer}");
        assert_eq!(response.offending_ie, Some(OffendingIe(IeType::OUTER_HEADER_CREATION)), "{peer}");
        assert_eq!(response.failed_rule_id, Some(FailedRuleId::Far(FarId(2))));
    }
    let no_teid =
        SessionModificationRequest { update_fars: vec![to_gnb(GNB, 0)], ..SessionModificationRequest::new() };
    assert!(!world.modify(seid, no_teid).cause.is_acceptance(), "TEID 0 is that of signalling");
    assert_eq!(world.installed(seid), before);
    let right =
        SessionModificationRequest { update_fars: vec![to_gnb(GNB, 7)], ..SessionModificationRequest::new() };
    assert!(world.modify(seid, right).cause.is_acceptance());
}

#[test]
fn on_one_machine_a_gnb_is_at_loopback() {
    let n3 = Ipv4Addr::new(127, 0, 0, 7);
    let mut world = World::configured(|config| config.n3 = GtpuAddress { v4: Some(n3), v6: None });
    world.associate(AssociationSetupRequest::new(smf_node(), ntp(0)));
    let (seid, _) = world.establish(pdu_session());
    for (gnb, accepted) in [(Ipv4Addr::LOCALHOST, true), (n3, false)] {
        let request = SessionModificationRequest {
            update_fars: vec![to_gnb(gnb, 7)],
            ..SessionModificationRequest::new()
        };
        assert_eq!(world.modify(seid, request).cause.is_acceptance(), accepted, "{gnb}");
    }
}

#[test]
fn a_pdr_of_an_interface_that_the_upf_does_not_have_is_refused() {
    let from = |interface, instance: Option<&str>| {
        let mut request = pdu_session();
        request.create_pdrs[1].pdi.source_interface = interface;
        request.create_pdrs[1].pdi.network_instance = instance.map(NetworkInstance::from_dnn);
        refusal(request)
    };
    let interface = Some(IeType::SOURCE_INTERFACE);
    assert_eq!(from(SourceInterface::FiveGVnInternal, None), (Cause::ServiceNotSupported, interface));
    assert_eq!(from(SourceInterface::Unknown(7), None), (Cause::MandatoryIeIncorrect, interface));
    assert_eq!(from(SourceInterface::CpFunction, None), (FAILED, Some(IeType::F_TEID)));
    assert_eq!(from(SourceInterface::Core, Some("ims")), (FAILED, Some(IeType::NETWORK_INSTANCE)));
}

fn session_of(ue: &str) -> SessionEstablishmentRequest {
    let mut request = pdu_session();
    let ue: IpAddr = ue.parse().unwrap();
    for (pdr, end) in request.create_pdrs.iter_mut().zip([PacketEnd::Source, PacketEnd::Destination]) {
        pdr.pdi.ue_ip_addresses = vec![UeIpAddress::new(ue, end)];
    }
    request
}

#[test]
fn a_ue_has_an_address_of_the_pools_that_is_no_other_s() {
    let failed = (FAILED, Some(IeType::UE_IP_ADDRESS));
    for ue in [
        "127.0.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.5",
        "169.254.169.254",
        "192.168.4.2",
        "192.168.3.1",
        "fe80::1",
        "ff02::1",
        "::1",
    ] {
        assert_eq!(refusal(session_of(ue)), failed, "{ue}");
    }
    for ue in ["10.46.0.1", "10.45.0.1", "192.168.3.99"] {
        assert_eq!(refusal_of(&mut served(), session_of(ue)), failed, "{ue}");
    }
    served().establish(session_of("10.45.0.3"));
}

#[test]
fn uplink_to_n6_needs_the_address_of_the_ue() {
    let mut request = pdu_session();
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.pdi.ue_ip_addresses.clear());
    assert_eq!(refusal(request), (Cause::ConditionalIeMissing, Some(IeType::UE_IP_ADDRESS)));
}

#[test]
fn a_framed_route_excludes_core_addresses() {
    for route in ["192.168.0.0/16", "127.0.0.0/8", "10.45.9.0/24", "128.0.0.0/1"] {
        let mut request = pdu_session();
        request.create_pdrs[1].pdi.framed_routes = vec![FramedRoute(route.into())];
        assert_eq!(refusal_of(&mut served(), request), (FAILED, Some(IeType::FRAMED_ROUTE)), "{route}");
    }
    let mut many = pdu_session();
    let route = |number: u8| FramedRoute(format!("172.16.{number}.0/24").into_bytes());
    many.create_pdrs[1].pdi.framed_routes = (0..65).map(route).collect();
    assert_eq!(refusal(many), (Cause::NoResourcesAvailable, Some(IeType::FRAMED_ROUTE)));
}

#[test]
fn reports_go_to_a_permitted_smf_only() {
    for (seid, address) in [(1, [10, 66, 6, 6]), (1, [127, 0, 0, 1]), (1, [255; 4]), (0, [192, 168, 4, 2])] {
        let mut request = pdu_session();
        request.cp_f_seid = FSeid::new(seid, address.into());
        assert_eq!(refusal(request), (Cause::MandatoryIeIncorrect, Some(IeType::F_SEID)));
    }
    let (mut world, seid, _) = World::with_session(pdu_session());
    let elsewhere = SessionModificationRequest {
        cp_f_seid: Some(FSeid::new(9, [10, 66, 6, 6].into())),
        ..SessionModificationRequest::new()
    };
    assert_eq!(world.modify(seid, elsewhere).offending_ie, Some(OffendingIe(IeType::F_SEID)));
}

#[test]
fn an_unknown_pdn_type_is_refused() {
    for pdn_type in [0, 6, 7] {
        let request = SessionEstablishmentRequest { pdn_type: Some(pdn_type.into()), ..pdu_session() };
        assert_eq!(refusal(request), (Cause::MandatoryIeIncorrect, Some(IeType::PDN_TYPE)));
    }
}

/// An empty IE would widen the rule if it were treated as absent.
#[test]
fn an_empty_detection_ie_is_rejected() {
    let request = |change: fn(&mut SessionEstablishmentRequest)| {
        let mut request = pdu_session();
        change(&mut request);
        encode(0, 77, request)
    };
    let to_gnb = request(|request| {
        let parameters = request.create_fars[0].forwarding_parameters.as_mut().unwrap();
        parameters.outer_header_creation = Some(OuterHeaderCreation::gtpu(7, GNB.into()));
    });
    let filtered = request(|request| {
        let flow_description = Some(b"permit out ip from any to assigned".to_vec());
        request.create_pdrs[0].pdi.sdf_filters = vec![SdfFilter { flow_description, ..SdfFilter::default() }];
    });
    for (octets, ie_type, path) in [
        (&to_gnb, IeType::OUTER_HEADER_CREATION, &[IeType::CREATE_FAR, IeType::FORWARDING_PARAMETERS][..]),
        (&filtered, IeType::SDF_FILTER, &[IeType::CREATE_PDR, IeType::PDI]),
        (&filtered, IeType::F_TEID, &[IeType::CREATE_PDR, IeType::PDI]),
        (&filtered, IeType::UE_IP_ADDRESS, &[IeType::CREATE_PDR, IeType::PDI]),
        (&filtered, IeType::PDN_TYPE, &[]),
    ] {
        let mut world = World::associated();
        let mut octets =
            octets[..4].iter().copied().chain(emptied(&octets[4..16], &octets[16..], path, ie_type));
        let mut octets: Vec<u8> = octets.by_ref().collect();
        let length = octets.len() as u16 - 4;
        octets[2..4].copy_from_slice(&length.to_be_bytes());
        let Message::SessionEstablishmentResponse(response) = &world.send(&octets)[0].message else {
            panic!()
        };
        assert_eq!(response.cause, Cause::InvalidLength, "{ie_type}");
        assert_eq!(response.offending_ie, Some(OffendingIe(ie_type)));
    }
}

/// The IEs after a header, with the first IE of that type in those groups emptied.
fn emptied(header: &[u8], ies: &[u8], path: &[IeType], ie_type: IeType) -> Vec<u8> {
    let mut done = false;
    [header, &empty_first(ies, path, ie_type, &mut done)].concat()
}

fn empty_first(mut ies: &[u8], path: &[IeType], ie_type: IeType, done: &mut bool) -> Vec<u8> {
    let mut out = Vec::new();
    while ies.len() >= 4 {
        let kind = IeType(u16::from_be_bytes([ies[0], ies[1]]));
        let length = usize::from(u16::from_be_bytes([ies[2], ies[3]]));
        let (value, rest) = ies[4..].split_at(length);
        let value = match path.split_first() {
            None if kind == ie_type && !*done => {
                *done = true;
                Vec::new()
            }
            Some((group, inner)) if kind == *group => empty_first(value, inner, ie_type, done),
            _ => value.to_vec(),
        };
        out.extend(kind.0.to_be_bytes());
        out.extend((value.len() as u16).to_be_bytes());
        out.extend(value);
        ies = rest;
    }
    out
}
