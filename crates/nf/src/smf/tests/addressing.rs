//! Static UE addresses and framed routes of the subscription (TS 23.501 5.8.2.2.1, 5.6.14).

use super::super::*;
use super::residency;
use super::subscription_change::{notified, provision};
use super::world::*;
use pith_nas::GsmCause;
use pith_nas::gsm::PduSessionReleaseComplete;
use pith_nas::ie::PduSessionType as Kind;
use pith_nas::{GsmBody, ie::PduAddress};
use pith_pfcp::Message;
use pith_pfcp::ie::{Cause as N4Cause, Choice};
use pith_pfcp::message::SessionEstablishmentRequest;
use pith_sbi::common::PduSessionType;
use pith_sbi::nsmf_pdusession::UpCnxState;
use pith_sbi::nudm_sdm::{DnnConfiguration, FrameRouteInfo, IpAddress};
use pith_sbi::{Cause, Operation, Request};
use std::net::Ipv4Addr;

const STATIC: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 200);

/// A pool of 10.45.0.0/24 with the static range 10.45.0.192/26, and one of prefixes.
fn with_ranges() -> SmfConfig {
    let mut config = config();
    config.data_networks[0].pool.1 = 24;
    config.data_networks[0].pool6 = Some(("2001:db8:45::".parse().unwrap(), 48));
    config.data_networks[0].static_ranges =
        vec![("10.45.0.192".parse().unwrap(), 26), ("2001:db8:45:ff00::".parse().unwrap(), 56)];
    config
}

fn world(change: impl FnOnce(&mut DnnConfiguration)) -> World {
    let mut world = World::with(with_ranges(), &["upf"]);
    subscribe(&mut world, change);
    world
}

fn subscribe(world: &mut World, change: impl FnOnce(&mut DnnConfiguration)) {
    provision(world, |configuration| {
        configuration.pdu_session_types.allowed_session_types =
            vec![PduSessionType::Ipv4, PduSessionType::Ipv6, PduSessionType::Ipv4v6];
        change(configuration);
    });
}

fn fixed(address: Ipv4Addr) -> impl FnOnce(&mut DnnConfiguration) {
    move |configuration| configuration.static_ip_address = vec![IpAddress::Ipv4(address)]
}

fn route(text: &str) -> FrameRouteInfo {
    let mut route = FrameRouteInfo::default();
    *(if text.contains(':') { &mut route.ipv6_prefix } else { &mut route.ipv4_mask }) = Some(text.into());
    route
}

fn with_route(configuration: &mut DnnConfiguration) {
    configuration.static_ip_address = vec![IpAddress::Ipv4(STATIC)];
    configuration.ipv4_frame_route_list = vec![route("192.168.7.0/24")];
    configuration.ipv6_frame_route_list = vec![route("2001:db8:5::/48")];
}

fn request(world: &mut World, kind: Kind) {
    world.post(establishment(|request| request.pdu_session_type = Some(kind)));
}

fn address(world: &World) -> PduAddress {
    match &world.n1.last().unwrap().body {
        GsmBody::PduSessionEstablishmentAccept(accept) => accept.pdu_address.unwrap(),
        other => panic!("{other:?}"),
    }
}

fn sent(world: &World) -> &SessionEstablishmentRequest {
    let requests = world.n4.iter().rev().filter_map(|message| match message {
        Message::SessionEstablishmentRequest(request) => Some(request),
        _ => None,
    });
    requests.into_iter().next().expect("a request to the UPF")
}

/// A session with static addresses and framed routes.
pub(super) fn with_routes() -> World {
    let mut world = world(|configuration| {
        with_route(configuration);
        let prefix = IpAddress::Ipv6Prefix("2001:db8:45:ff07::/64".into());
        configuration.static_ip_address.push(prefix);
    });
    request(&mut world, Kind::Ipv4v6);
    world.gnb_answers();
    world
}

#[test]
fn a_ue_gets_its_static_address_and_others_get_none_of_the_range() {
    let mut world = world(fixed(STATIC));
    request(&mut world, Kind::Ipv4);
    assert_eq!(address(&world).ipv4, Some(STATIC));
    for pdr in &sent(&world).create_pdrs {
        assert_eq!(pdr.pdi.ue_ip_addresses[0].ipv4, Some(Choice::Given(STATIC)));
    }
    subscribe(&mut world, |_| {});
    for id in 6..16 {
        world.supi = format!("imsi-9997000000001{id:02}").parse().unwrap();
        request(&mut world, Kind::Ipv4);
        let other = address(&world).ipv4.unwrap();
        assert!(other.octets()[3] < 192, "{other}");
    }
}

#[test]
fn a_static_address_counts_for_its_ip_version() {
    let prefix = IpAddress::Ipv6Prefix("2001:db8:45:ff07::/64".into());
    let mut of_v6 = world(|configuration| configuration.static_ip_address = vec![prefix.clone()]);
    request(&mut of_v6, Kind::Ipv4);
    assert_eq!(address(&of_v6).ipv4.map(|v4| v4.octets()[3] < 192), Some(true), "a dynamic address");
    of_v6.release_by_amf();
    request(&mut of_v6, Kind::Ipv4v6);
    let expected = Some([0x20, 0x01, 0x0d, 0xb8, 0, 0x45, 0xff, 7]);
    assert_eq!(address(&of_v6).interface_id, expected, "the interface identifier is made of the prefix");
    let mut both = world(|configuration| {
        configuration.static_ip_address = vec![IpAddress::Ipv4(STATIC), prefix];
    });
    request(&mut both, Kind::Ipv4v6);
    assert_eq!((address(&both).ipv4, address(&both).interface_id), (Some(STATIC), expected));
    let [ue] = sent(&both).create_pdrs[0].pdi.ue_ip_addresses[..] else { panic!() };
    assert_eq!(ue.ipv6, Some(Choice::Given("2001:db8:45:ff07::".parse().unwrap())));
    assert_eq!(both.bench.nf.audit().addresses, 2);
    both.release_by_amf();
    both.is_quiet();
}

#[test]
fn a_static_address_that_another_session_has_is_refused_until_it_is_free() {
    let mut world = world(fixed(STATIC));
    request(&mut world, Kind::Ipv4);
    world.gnb_answers();
    let first = world.reference.clone();
    world.supi = "imsi-999700000009999".parse().unwrap();
    request(&mut world, Kind::Ipv4);
    assert_eq!(world.reject(), GsmCause::InsufficientResources);
    assert_eq!(world.bench.nf.audit().contexts, 1);
    world.reference = first;
    world.release_by_amf();
    request(&mut world, Kind::Ipv4);
    assert_eq!(address(&world).ipv4, Some(STATIC));
}

#[test]
fn an_address_outside_the_static_range_is_refused() {
    let of = |text: &str| -> Vec<IpAddress> {
        vec![if text.contains('/') {
            IpAddress::Ipv6Prefix(text.into())
        } else {
            IpAddress::Ipv4(text.parse().unwrap())
        }]
    };
    for text in [
        "10.45.0.7",
        "10.46.0.200",
        "10.45.0.255",
        "2001:db8:45:1::/64",
        "2001:db8:46:ff00::/64",
        "2001:db8:45:ff00::/60",
        "2001:db8:45:ff00::/65",
    ] {
        let mut world = world(|configuration| configuration.static_ip_address = of(text));
        request(&mut world, Kind::Ipv4v6);
        let outcome = (world.reject(), world.refusal().clone());
        assert_eq!(outcome, (GsmCause::RequestRejectedUnspecified, Cause::SubscriptionDenied), "{text}");
        world.is_quiet();
    }
}

#[test]
fn framed_routes_are_in_all_rules_with_the_ues_address() {
    let mut world = world(with_route);
    request(&mut world, Kind::Ipv4v6);
    let pdrs = &sent(&world).create_pdrs;
    assert_eq!(pdrs.len(), 2);
    for pdr in pdrs {
        let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
        let v4: Vec<_> = pdr.pdi.framed_routes.iter().map(|route| text(&route.0)).collect();
        let v6: Vec<_> = pdr.pdi.framed_ipv6_routes.iter().map(|route| text(&route.0)).collect();
        assert_eq!((v4, v6), (vec!["192.168.7.0/24 0.0.0.0 1".into()], vec!["2001:db8:5::/48 :: 1".into()]));
    }
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    let shown = world.bench.nf.describe(&session);
    assert_eq!(shown["framedRoutes"], serde_json::json!(["192.168.7.0/24", "2001:db8:5::/48"]));
    assert_eq!(shown["staticAddress"], true);
    // Of a session without IPv6, those of IPv4.
    let mut of_v4 = self::world(with_route);
    request(&mut of_v4, Kind::Ipv4);
    let pdi = &sent(&of_v4).create_pdrs[0].pdi;
    assert_eq!((pdi.framed_routes.len(), pdi.framed_ipv6_routes.len()), (1, 0));
}

#[test]
fn a_framed_route_over_a_pool_of_ues_is_refused() {
    for text in ["10.45.0.128/25", "10.0.0.0/8", "2001:db8:45:7::/64", "10.45.0.1/24"] {
        let mut world = world(|configuration| {
            configuration.ipv4_frame_route_list = vec![route(text)];
        });
        request(&mut world, Kind::Ipv4v6);
        assert_eq!(world.reject(), GsmCause::RequestRejectedUnspecified, "{text}");
        world.is_quiet();
    }
}

#[test]
fn a_upf_that_refuses_the_routes_ends_the_session_and_frees_the_address() {
    let mut world = world(with_route);
    world.upf = Some(Ok(N4Cause::RuleCreationModificationFailure));
    request(&mut world, Kind::Ipv4);
    assert_eq!(world.reject(), GsmCause::InsufficientResources);
    assert_eq!(world.bench.nf.audit().addresses, 0);
}

#[test]
fn a_restored_session_has_its_static_address_and_routes() {
    let mut world = residency::tracked(world(with_route));
    request(&mut world, Kind::Ipv4);
    world.gnb_answers();
    let stored = residency::stored(&mut world);
    let mut next = residency::restarted(&world, &stored, with_ranges());
    next.associate(UPF, "upf");
    let pdi = &sent(&next).create_pdrs[1].pdi;
    assert_eq!(pdi.ue_ip_addresses[0].ipv4, Some(Choice::Given(STATIC)));
    assert_eq!(pdi.framed_routes.len(), 1);
    assert_eq!(next.bench.nf.audit().addresses, 1);
    subscribe(&mut next, fixed(STATIC));
    next.supi = "imsi-999700000009999".parse().unwrap();
    request(&mut next, Kind::Ipv4);
    assert_eq!(next.reject(), GsmCause::InsufficientResources, "the restored session has it");
}

#[test]
fn a_restored_session_whose_address_is_of_the_other_kind_now_ends() {
    let ends = |world: &mut World, config: SmfConfig| {
        request(world, Kind::Ipv4);
        world.gnb_answers();
        let stored = residency::stored(world);
        let mut next = residency::restarted(world, &stored, config);
        next.associate(UPF, "upf");
        !next.n4.iter().any(|sent| matches!(sent, Message::SessionEstablishmentRequest(_)))
            && next.bench.nf.audit().addresses == 0
    };
    let mut without = with_ranges();
    without.data_networks[0].static_ranges.clear();
    assert!(ends(&mut residency::tracked(world(fixed(STATIC))), without), "there is no static range");
    let mut with_more = with_ranges();
    with_more.data_networks[0].static_ranges.push(("10.45.0.0".parse().unwrap(), 25));
    assert!(ends(&mut residency::tracked(world(|_| {})), with_more), "it has a dynamic address");
    assert!(!ends(&mut residency::tracked(world(fixed(STATIC))), with_ranges()));
}

#[test]
fn a_changed_static_address_or_route_makes_the_ue_establish_the_session_again() {
    for change in
        [with_route as fn(&mut DnnConfiguration), |it| it.static_ip_address = vec![IpAddress::Ipv4(STATIC)]]
    {
        let mut world = world(|_| {});
        request(&mut world, Kind::Ipv4);
        world.gnb_answers();
        subscribe(&mut world, change);
        notified(&mut world);
        let GsmBody::PduSessionReleaseCommand(command) = &world.n1.last().unwrap().body else { panic!() };
        assert_eq!(command.cause, GsmCause::ReactivationRequested);
        world.update(|data| data.up_cnx_state = Some(UpCnxState::Deactivated));
        world.uplink(PduSessionReleaseComplete::new());
        request(&mut world, Kind::Ipv4);
        assert_eq!(address(&world).ipv4, Some(STATIC));
    }
    // Of another IP version, or the same.
    let mut world = world(fixed(STATIC));
    request(&mut world, Kind::Ipv4);
    world.gnb_answers();
    world.take_ladder();
    subscribe(&mut world, |configuration| {
        configuration.static_ip_address =
            vec![IpAddress::Ipv6Prefix("2001:db8:45:ff07::/64".into()), IpAddress::Ipv4(STATIC)];
    });
    notified(&mut world);
    assert_eq!(world.take_ladder(), "udm <- GetSmData\namf <- 204");
}

#[test]
fn a_static_address_of_a_upfs_own_pool_selects_that_upf() {
    let mut config = with_ranges();
    let dnn = config.data_networks[0].dnn.clone();
    let mut edge = UpfService::of_all("edge");
    edge.pools = vec![(dnn, ("10.46.0.0".parse().unwrap(), 24), 2)];
    edge.priority = 200;
    config.upfs = vec![edge];
    config.data_networks[0].static_ranges.push(("10.46.0.64".parse().unwrap(), 26));
    let anchor = |address: [u8; 4]| {
        let mut world = World::with(config.clone(), &["upf", "edge"]);
        subscribe(&mut world, fixed(address.into()));
        request(&mut world, Kind::Ipv4);
        assert_eq!(self::address(&world).ipv4, Some(address.into()));
        world.user_plane().unwrap().anchor.upf
    };
    assert_eq!(anchor([10, 45, 0, 200]), UPF);
    assert_eq!(anchor([10, 46, 0, 70]), EDGE);
}

#[test]
fn the_pcf_gets_the_static_address() {
    let mut world = world(fixed(STATIC));
    world.script.insert(Operation::CreateSmPolicy, None);
    request(&mut world, Kind::Ipv4);
    let (_, Request::CreateSmPolicy(create)) = world.open.last().unwrap() else { panic!() };
    assert_eq!(create.body.ipv4_address, Some(STATIC));
}
