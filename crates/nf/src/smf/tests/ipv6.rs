//! PDU session types with IPv6: selection, addresses, rules and policies (TS 24.501 6.4.1.3; TS 23.501 5.8.2.2).

use super::super::*;
use super::residency;
use super::world::*;
use pith_nas::gsm::PduSessionEstablishmentAccept;
use pith_nas::ie::{DownlinkPco, PcoOption, PcoRequest, PduAddress, PduSessionType as Kind, UplinkPco};
use pith_nas::{GsmBody, GsmCause};
use pith_ngap::transfer::{SessionType, SetupRequestTransfer};
use pith_pfcp::Message;
use pith_pfcp::ie::{Choice, PdnType};
use pith_sbi::common::PduSessionType;
use pith_sbi::nudm_sdm::SmSubsData;
use pith_sbi::{Cause, Operation, Request, Response};

fn with_prefixes() -> SmfConfig {
    let mut config = config();
    config.data_networks[0].pool6 = Some(("2001:db8:45::".parse().unwrap(), 60));
    config.data_networks[0].dns.push("2001:db8::53".parse().unwrap());
    config
}

/// Sessions have a /56 of 2001:db8:44::/47.
fn with_delegation() -> SmfConfig {
    let mut config = with_prefixes();
    config.data_networks[0].pool6 = Some(("2001:db8:44::".parse().unwrap(), 47));
    config.data_networks[0].delegation = 8;
    config
}

/// A world whose subscription allows these types; the first one is the default.
fn world(types: &[PduSessionType]) -> World {
    world_with(with_prefixes(), types)
}

fn world_with(config: SmfConfig, types: &[PduSessionType]) -> World {
    let mut world = World::with(config, &["upf"]);
    let mut data = subscription();
    let SmSubsData::Individual(slices) = &mut data else { panic!("{data:?}") };
    for configuration in slices[0].dnn_configurations.values_mut() {
        configuration.pdu_session_types.default_session_type = types.first().cloned();
        configuration.pdu_session_types.allowed_session_types = types.to_vec();
    }
    world.script.insert(Operation::GetSmData, Some(Ok(Response::SmData(Box::new(data)))));
    world
}

fn both() -> World {
    world(&[PduSessionType::Ipv4, PduSessionType::Ipv6, PduSessionType::Ipv4v6])
}

fn request(world: &mut World, kind: Option<Kind>) {
    world.post(establishment(|request| {
        request.pdu_session_type = kind;
        let asks = [PcoRequest::DnsServerIpv4, PcoRequest::DnsServerIpv6, PcoRequest::Ipv4LinkMtu];
        request.extended_pco = Some(UplinkPco(asks.into()));
    }));
}

fn accept(world: &World) -> &PduSessionEstablishmentAccept {
    match &world.n1.last().unwrap().body {
        GsmBody::PduSessionEstablishmentAccept(accept) => accept,
        other => panic!("{other:?}"),
    }
}

/// The PDU session type of the accept, its cause, and the IP versions of its address.
fn selected(world: &mut World, kind: Option<Kind>) -> (Kind, Option<GsmCause>, bool, bool) {
    request(world, kind);
    let accept = accept(world);
    let PduAddress { ipv4, interface_id, .. } = accept.pdu_address.unwrap();
    (accept.pdu_session_type, accept.cause, ipv4.is_some(), interface_id.is_some())
}

#[test]
fn a_ue_gets_the_ip_versions_that_it_requests() {
    assert_eq!(selected(&mut both(), Some(Kind::Ipv4)), (Kind::Ipv4, None, true, false));
    assert_eq!(selected(&mut both(), Some(Kind::Ipv6)), (Kind::Ipv6, None, false, true));
    assert_eq!(selected(&mut both(), Some(Kind::Ipv4v6)), (Kind::Ipv4v6, None, true, true));
    assert_eq!(
        selected(&mut both(), None),
        (Kind::Ipv4, None, true, false),
        "the default of the subscription"
    );
    let mut by_default = world(&[PduSessionType::Ipv4v6]);
    assert_eq!(selected(&mut by_default, None), (Kind::Ipv4v6, None, true, true));
}

#[test]
fn a_ue_is_told_why_it_gets_one_ip_version_of_two() {
    let only_v4 = Some(GsmCause::PduSessionTypeIpv4OnlyAllowed);
    let only_v6 = Some(GsmCause::PduSessionTypeIpv6OnlyAllowed);
    let mut v4 = world(&[PduSessionType::Ipv4]);
    assert_eq!(selected(&mut v4, Some(Kind::Ipv4v6)), (Kind::Ipv4, only_v4, true, false));
    let mut v6 = world(&[PduSessionType::Ipv6]);
    assert_eq!(selected(&mut v6, Some(Kind::Ipv4v6)), (Kind::Ipv6, only_v6, false, true));
}

#[test]
fn a_type_that_is_not_allowed_is_rejected_with_those_that_are() {
    let rejected = |mut world: World, kind| {
        request(&mut world, Some(kind));
        world.is_quiet();
        (world.reject(), world.refusal().clone())
    };
    let refused = Cause::PdutypeNotSupported;
    let v4 = || world(&[PduSessionType::Ipv4]);
    let v6 = || world(&[PduSessionType::Ipv6]);
    let without_prefixes = rejected(World::new(), Kind::Ipv6);
    assert_eq!(without_prefixes, (GsmCause::PduSessionTypeIpv4OnlyAllowed, refused.clone()));
    assert_eq!(rejected(v4(), Kind::Ipv6), (GsmCause::PduSessionTypeIpv4OnlyAllowed, refused.clone()));
    assert_eq!(rejected(v6(), Kind::Ipv4), (GsmCause::PduSessionTypeIpv6OnlyAllowed, refused.clone()));
    for kind in [Kind::Ethernet, Kind::Unstructured] {
        assert_eq!(rejected(both(), kind), (GsmCause::PduSessionTypeIpv4v6OnlyAllowed, refused.clone()));
    }
    assert_eq!(rejected(both(), Kind::from_code(7)), (GsmCause::UnknownPduSessionType, refused));
    let ethernet = world(&[PduSessionType::Ethernet]);
    let not_subscribed = GsmCause::RequestedServiceOptionNotSubscribed;
    assert_eq!(rejected(ethernet, Kind::Ipv4v6), (not_subscribed, Cause::SubscriptionDenied));
}

#[test]
fn upf_gnb_and_pcf_get_type_and_prefix() {
    let mut world = both();
    world.script.insert(Operation::CreateSmPolicy, None);
    request(&mut world, Some(Kind::Ipv4v6));
    let (tag, Request::CreateSmPolicy(policy)) = world.open.remove(0) else { panic!() };
    assert_eq!(policy.body.pdu_session_type, PduSessionType::Ipv4v6);
    assert_eq!(policy.body.ipv6_address_prefix.as_deref(), Some("2001:db8:45:1::/64"));
    assert_eq!(policy.body.ipv4_address, Some([10, 45, 0, 2].into()));
    let reply = usual(&Request::CreateSmPolicy(policy));
    let seen = world.bench.reply(tag, reply);
    world.follow(seen);
    let Some(Message::SessionEstablishmentRequest(request)) = world.n4.first() else { panic!() };
    assert_eq!(request.pdn_type, Some(PdnType::Ipv4v6));
    for pdr in &request.create_pdrs {
        let [ue] = pdr.pdi.ue_ip_addresses[..] else { panic!() };
        assert_eq!(ue.ipv4, Some(Choice::Given([10, 45, 0, 2].into())));
        assert_eq!(ue.ipv6, Some(Choice::Given("2001:db8:45:1::".parse().unwrap())));
    }
    let n2 = world.transfers[0].n2_info_container.as_ref().unwrap().sm_info.as_ref().unwrap();
    let transfer = &n2.n2_info_content.as_ref().unwrap().ngap_data.content;
    assert_eq!(SetupRequestTransfer::decode(transfer).unwrap().session_type, SessionType::Ipv4v6);
    let interface_id = [0x20, 0x01, 0x0d, 0xb8, 0x00, 0x45, 0x00, 0x01];
    assert_eq!(accept(&world).pdu_address.unwrap().interface_id, Some(interface_id));
    let servers = vec![
        PcoOption::DnsServerIpv4([9, 9, 9, 9].into()),
        PcoOption::DnsServerIpv6("2001:db8::53".parse().unwrap()),
        PcoOption::Ipv4LinkMtu(1400),
    ];
    assert_eq!(accept(&world).extended_pco, Some(DownlinkPco(servers)));
}

#[test]
fn a_session_of_ipv6_has_no_parameters_of_ipv4_and_releases_its_prefix() {
    let mut world = both();
    request(&mut world, Some(Kind::Ipv6));
    let servers = vec![PcoOption::DnsServerIpv6("2001:db8::53".parse().unwrap())];
    assert_eq!(accept(&world).extended_pco, Some(DownlinkPco(servers)));
    assert_eq!(world.bench.nf.audit().addresses, 1);
    world.gnb_answers();
    world.release_by_amf();
    world.is_quiet();
    assert_eq!(world.bench.nf.audit(), SmfAudit::default());
}

/// TS 24.008 10.5.6.3: an IMS phone gets the P-CSCFs that it asks for, of the IP versions that the session has.
#[test]
fn a_ue_gets_the_p_cscfs_that_it_requests() {
    let v4 = PcoOption::PcscfIpv4([10, 9, 0, 1].into());
    let v6 = PcoOption::PcscfIpv6("2001:db8::5060".parse().unwrap());
    let cases = [
        (Kind::Ipv4v6, vec![PcoRequest::PcscfIpv4, PcoRequest::PcscfIpv6], vec![v4.clone(), v6.clone()]),
        (Kind::Ipv4v6, vec![PcoRequest::PcscfIpv4], vec![v4.clone()]),
        (Kind::Ipv6, vec![PcoRequest::PcscfIpv4, PcoRequest::PcscfIpv6], vec![v6]),
        (Kind::Ipv4, vec![PcoRequest::PcscfIpv4, PcoRequest::PcscfIpv6], vec![v4]),
    ];
    for (kind, asks, expected) in cases {
        let mut world = both();
        world.post(establishment(|request| {
            request.pdu_session_type = Some(kind);
            request.extended_pco = Some(UplinkPco(asks));
        }));
        assert_eq!(accept(&world).extended_pco, Some(DownlinkPco(expected)));
    }
}

#[test]
fn prefixes_of_all_sessions_differ_until_the_pool_is_used_up() {
    let mut world = both();
    let mut prefixes = std::collections::BTreeSet::new();
    for number in 0..14 {
        world.supi = format!("imsi-99970000000{number:04}").parse().unwrap();
        request(&mut world, Some(Kind::Ipv6));
        prefixes.insert(accept(&world).pdu_address.unwrap().interface_id.unwrap());
    }
    assert_eq!(prefixes.len(), 14);
    world.supi = "imsi-999700000009999".parse().unwrap();
    request(&mut world, Some(Kind::Ipv6));
    assert_eq!(world.reject(), GsmCause::InsufficientResources);
}

#[test]
fn a_session_gets_a_shorter_prefix_whose_first_64_bits_the_ue_has() {
    let mut world = world_with(with_delegation(), &[PduSessionType::Ipv6]);
    world.script.insert(Operation::CreateSmPolicy, None);
    request(&mut world, Some(Kind::Ipv6));
    let (tag, Request::CreateSmPolicy(policy)) = world.open.remove(0) else { panic!() };
    assert_eq!(policy.body.ipv6_address_prefix.as_deref(), Some("2001:db8:44:100::/56"));
    let reply = usual(&Request::CreateSmPolicy(policy));
    let seen = world.bench.reply(tag, reply);
    world.follow(seen);
    let Some(Message::SessionEstablishmentRequest(establishment)) = world.n4.first() else { panic!() };
    for pdr in &establishment.create_pdrs {
        let [ue] = pdr.pdi.ue_ip_addresses[..] else { panic!() };
        assert_eq!(ue.ipv6, Some(Choice::Given("2001:db8:44:100::".parse().unwrap())));
        assert_eq!((ue.prefix_delegation_bits, ue.prefix_len), (Some(8), None));
    }
    let interface_id = [0x20, 0x01, 0x0d, 0xb8, 0x00, 0x44, 0x01, 0x00];
    assert_eq!(accept(&world).pdu_address.unwrap().interface_id, Some(interface_id));
    world.supi = "imsi-999700000009999".parse().unwrap();
    world.script.remove(&Operation::CreateSmPolicy);
    request(&mut world, Some(Kind::Ipv6));
    let interface_id = accept(&world).pdu_address.unwrap().interface_id.unwrap();
    assert_eq!(interface_id[6..], [2, 0], "the next /56");
}

/// A session with a shorter prefix than 64 bits.
pub(super) fn delegating() -> World {
    let mut world = world_with(with_delegation(), &[PduSessionType::Ipv4v6]);
    request(&mut world, Some(Kind::Ipv4v6));
    world.gnb_answers();
    world
}

#[test]
fn a_restored_session_keeps_the_length_of_its_prefix() {
    let mut world = residency::tracked(world_with(with_delegation(), &[PduSessionType::Ipv6]));
    request(&mut world, Some(Kind::Ipv6));
    world.gnb_answers();
    let stored = residency::stored(&mut world);
    let mut next = residency::restarted(&world, &stored, with_delegation());
    next.associate(UPF, "upf");
    let Some(Message::SessionEstablishmentRequest(establishment)) = next.n4.first() else { panic!() };
    let [ue] = establishment.create_pdrs[0].pdi.ue_ip_addresses[..] else { panic!() };
    assert_eq!(ue.prefix_delegation_bits, Some(8));
    assert_eq!(next.bench.nf.audit().addresses, 1);
    // Other sessions would get prefixes within it.
    let mut config = with_delegation();
    config.data_networks[0].delegation = 4;
    let mut next = residency::restarted(&world, &stored, config);
    next.associate(UPF, "upf");
    assert!(next.n4.iter().all(|sent| !matches!(sent, Message::SessionEstablishmentRequest(_))));
    assert_eq!(next.bench.nf.audit().addresses, 0);
}

#[test]
fn a_restored_session_has_its_type_and_prefix() {
    let mut world = residency::tracked(both());
    request(&mut world, Some(Kind::Ipv4v6));
    world.gnb_answers();
    let stored = residency::stored(&mut world);
    let shown = |smf: &Smf| {
        let (_, session) = smf.sessions.iter().next().unwrap();
        (session.ip, session.address, session.asks_dns6)
    };
    let before = shown(&world.bench.nf);
    assert!(before.1.v4.is_some() && before.1.v6.is_some() && before.2);
    let mut next = residency::restarted(&world, &stored, with_prefixes());
    next.associate(UPF, "upf");
    assert_eq!((shown(&next.bench.nf), next.bench.nf.audit().addresses), (before, 2));
    let Some(Message::SessionEstablishmentRequest(request)) = next.n4.first() else { panic!() };
    assert_eq!(request.pdn_type, Some(PdnType::Ipv4v6));
    let [ue] = request.create_pdrs[0].pdi.ue_ip_addresses[..] else { panic!() };
    assert_eq!(ue.ipv6, before.1.v6.map(Choice::Given));
}
