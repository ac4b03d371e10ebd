//! Sessions with an IPv6 prefix shorter than 64 bits (TS 23.501 5.8.2.2.4; TS 29.244 8.2.62).

use crate::support::*;
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_pfcp::{IeType, Message};
use pith_upf::contract::UeAddress;
use std::net::{IpAddr, Ipv6Addr};

/// A session with this IPv6 prefix of 64 bits; `bits` and `length` as the SMF says them.
pub fn session(
    cp_seid: u64,
    prefix: &str,
    bits: Option<u8>,
    length: Option<u8>,
) -> SessionEstablishmentRequest {
    let prefix: Ipv6Addr = prefix.parse().unwrap();
    let mut request = pdu_session_of(cp_seid, UE);
    request.pdn_type = Some(PdnType::Ipv6);
    for (pdr, end) in request.create_pdrs.iter_mut().zip([PacketEnd::Source, PacketEnd::Destination]) {
        pdr.pdi.ue_ip_addresses = vec![UeIpAddress {
            prefix_delegation_bits: bits,
            prefix_len: length,
            ..UeIpAddress::new(prefix.into(), end)
        }];
    }
    request
}

fn refusal(world: &mut World, request: SessionEstablishmentRequest) -> (Cause, Option<IeType>) {
    let Message::SessionEstablishmentResponse(response) = world.ask(0, request).message else { panic!() };
    (response.cause, response.offending_ie.map(|ie| ie.0))
}

const REFUSED: (Cause, Option<IeType>) =
    (Cause::RuleCreationModificationFailure, Some(IeType::UE_IP_ADDRESS));

#[test]
fn the_datapath_gets_the_bits_of_prefix_delegation() {
    for (bits, length, delegation) in [
        (None, None, 0),
        (Some(8), None, 8),
        (Some(0), None, 0),
        (Some(16), None, 16),
        (None, Some(56), 8),
        (None, Some(64), 0),
        (None, Some(128), 0),
    ] {
        let (world, seid, _) = World::with_session(session(1, "2001:db8:45:101::", bits, length));
        let prefix = "2001:db8:45:101::".parse().unwrap();
        assert_eq!(
            world.installed(seid).ue,
            UeAddress { delegation, ..UeAddress::v6(prefix) },
            "{bits:?} {length:?}"
        );
    }
    for (bits, length) in
        [(Some(17), None), (Some(255), None), (None, Some(47)), (None, Some(0)), (Some(8), Some(56))]
    {
        let request = session(1, "2001:db8:45:100::", bits, length);
        assert_eq!(refusal(&mut World::associated(), request), REFUSED, "{bits:?} {length:?}");
    }
}

#[test]
fn all_rules_have_the_same_prefix() {
    let mut request = session(1, "2001:db8:45:100::", Some(8), None);
    request.create_pdrs[1].pdi.ue_ip_addresses[0].prefix_delegation_bits = Some(4);
    assert_eq!(refusal(&mut World::associated(), request), REFUSED);
}

#[test]
fn a_prefix_is_wholly_in_a_pool_and_without_the_gateway() {
    let served = || {
        let mut world = World::configured(|config| {
            config.ue_pools = vec![pith_upf::contract::AddressRange {
                address: "2001:db8:45::".parse().unwrap(),
                prefix: 50,
            }];
            config.own_addresses = vec!["2001:db8:45::1".parse().unwrap()];
        });
        world.associate(AssociationSetupRequest::new(smf_node(), ntp(5)));
        world
    };
    served().establish(session(1, "2001:db8:45:100::", Some(8), None));
    for (prefix, bits) in [("2001:db8:45:1::", 8), ("2001:db8:45:100::", 15), ("2001:db8:46:100::", 8)] {
        assert_eq!(refusal(&mut served(), session(1, prefix, Some(bits), None)), REFUSED, "{prefix} {bits}");
    }
}

#[test]
fn a_prefix_that_overlaps_replaces_the_smfs_former_session() {
    let (mut world, wide, _) = World::with_session(session(1, "2001:db8:45:100::", Some(8), None));
    let of = |world: &World, address: &str| {
        world.upf.session_of_ue(address.parse::<IpAddr>().unwrap()).map(|it| it.0)
    };
    assert_eq!(of(&world, "2001:db8:45:1ff::9"), Some(wide));
    assert_eq!((of(&world, "2001:db8:45:200::9"), of(&world, "2001:db8:45:ff::9")), (None, None));
    let (beside, _) = world.establish(session(2, "2001:db8:45:200::", Some(8), None));
    assert_eq!(world.upf.session_count(), 2);
    // One prefix of 64 bits of it.
    let (within, _) = world.establish(session(3, "2001:db8:45:17f::", None, None));
    assert_eq!((of(&world, "2001:db8:45:17f::1"), of(&world, "2001:db8:45:100::1")), (Some(within), None));
    assert_eq!(of(&world, "2001:db8:45:2ab::1"), Some(beside));
    // Both are in this one.
    let (all, _) = world.establish(session(4, "2001:db8:45::", Some(16), None));
    assert_eq!((world.upf.session_count(), of(&world, "2001:db8:45:2ab::1")), (1, Some(all)));
    world.delete(all);
    assert_eq!(of(&world, "2001:db8:45::1"), None);
}
