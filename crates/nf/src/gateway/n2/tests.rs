//! NG Setup and its failures, routing of UE-associated messages, reset, malformed messages.

use super::*;
use crate::testing::{block, sparse_owners, with_unknown_ie};
use pith_ngap::{
    CauseMisc, CauseNas, GlobalRanNodeId, NgReset, NgSetupRequest, ResetScope, SupportedTa,
    UplinkNasTransport, UserLocation,
};
use pith_types::{FiveGTmsi, NrCellIdentity, Tac};

/// A gNB, and the number of its first association.
pub(super) const GNB: GnbHandle = GnbHandle(7);

/// The AMF's end of associations.
pub(super) fn local() -> SocketAddr {
    "10.0.0.5:38412".parse().unwrap()
}

pub(super) fn plmn() -> Plmn {
    "999/70".parse().unwrap()
}

pub(super) fn gateway() -> N2Gateway {
    let slice = Snssai::of_sst(1);
    let tai = Tai { plmn_id: plmn(), tac: Tac::new(1) };
    let mut gateway = N2Gateway::new(N2Config {
        amf_name: "pith".into(),
        guamis: vec![Guami { plmn_id: plmn(), amf_id: "020040".parse().unwrap() }],
        relative_capacity: 255,
        plmns: vec![(plmn(), vec![slice])],
        tais: vec![tai],
        instance: InstanceId(0),
        owners: sparse_owners(2),
        shards: 2,
        permitted_gnbs: Vec::new(),
        associations_per_address: 1024,
        endpoints: Vec::new(),
        setup_wait: Duration::ZERO,
    });
    up(&mut gateway, GNB, "10.0.0.2:38412");
    gateway
}

pub(super) fn up(gateway: &mut N2Gateway, gnb: GnbHandle, peer: &str) -> Vec<N2GatewayEffect> {
    let peer = peer.parse().unwrap();
    gateway
        .handle(N2GatewayInput::Up { tnla: Tnla(gnb.0), peer, local: local(), alternatives: Vec::new() })
        .collect()
}

pub(super) fn setup_request(plmn: &str, tac: u32, sst: u8) -> Vec<u8> {
    setup_request_with(plmn, tac, sst, None)
}

pub(super) fn setup_request_with(
    plmn: &str,
    tac: u32,
    sst: u8,
    ue_retention: Option<pith_ngap::UeRetentionInformation>,
) -> Vec<u8> {
    let plmn: Plmn = plmn.parse().unwrap();
    NgSetupRequest {
        global_ran_node_id: GlobalRanNodeId::Gnb { plmn, id: 1, bits: 24 },
        ran_node_name: Some("gnb-1".into()),
        supported_tas: vec![SupportedTa {
            tac: Tac::new(tac),
            plmns: vec![(plmn, vec![Snssai::of_sst(sst)])],
        }],
        default_paging_drx: None,
        ue_retention,
    }
    .encode()
    .unwrap()
}

pub(super) fn receive(gateway: &mut N2Gateway, pdu: Vec<u8>) -> Vec<N2GatewayEffect> {
    receive_from(gateway, GNB, pdu)
}

pub(super) fn receive_from(gateway: &mut N2Gateway, gnb: GnbHandle, pdu: Vec<u8>) -> Vec<N2GatewayEffect> {
    let input = N2GatewayInput::Message { tnla: Tnla(gnb.0), stream: 3, ppid: NGAP_PPID, pdu: pdu.into() };
    gateway.handle(input).filter(|effect| !matches!(effect, N2GatewayEffect::Event(_))).collect()
}

pub(super) fn set_up() -> N2Gateway {
    let mut gateway = gateway();
    receive(&mut gateway, setup_request("999/70", 1, 1));
    gateway
}

/// NG Setup of a gNB with the gNB ID 2, from another address.
pub(super) fn other_setup(gateway: &mut N2Gateway) -> Vec<N2GatewayEffect> {
    let other = GnbHandle(8);
    up(gateway, other, "10.0.0.3:38412");
    let Ok(Message::NgSetupRequest(mut request)) = Message::decode(&setup_request("999/70", 1, 1)) else {
        panic!()
    };
    request.global_ran_node_id = GlobalRanNodeId::Gnb { plmn: plmn(), id: 2, bits: 24 };
    receive_from(gateway, other, request.encode().unwrap())
}

pub(super) fn set_up_other(gateway: &mut N2Gateway) -> GnbHandle {
    other_setup(gateway);
    GnbHandle(8)
}

/// The one message that is sent to the gNB.
pub(super) fn answer(effects: &[N2GatewayEffect]) -> Message {
    let sent = effects.iter().filter_map(|effect| match effect {
        N2GatewayEffect::Send { stream: 0, pdu, .. } => Some(Message::decode(pdu).unwrap()),
        _ => None,
    });
    let mut sent: Vec<_> = sent.collect();
    assert_eq!(sent.len(), 1, "{effects:?}");
    sent.remove(0)
}

pub(super) fn uplink(id: u64) -> Vec<u8> {
    UplinkNasTransport {
        amf_ue_ngap_id: AmfUeNgapId::from_wire(id).unwrap(),
        ran_ue_ngap_id: RanUeNgapId(1),
        nas_pdu: vec![0x7e],
        location: None,
    }
    .encode()
    .unwrap()
}

pub(super) fn initial(s_tmsi: Option<FiveGSTmsi>) -> Vec<u8> {
    initial_with(1, vec![0x7e], s_tmsi)
}

pub(super) fn initial_with(ran: u32, nas_pdu: Vec<u8>, s_tmsi: Option<FiveGSTmsi>) -> Vec<u8> {
    let tai = Tai { plmn_id: plmn(), tac: Tac::new(1) };
    pith_ngap::InitialUeMessage {
        ran_ue_ngap_id: RanUeNgapId(ran),
        nas_pdu,
        location: UserLocation { cell_plmn: plmn(), cell: NrCellIdentity::new(1), tai },
        establishment_cause: None,
        s_tmsi,
        amf_set_id: None,
        ue_context_request: None,
        allowed_nssai: None,
        reroute: None,
    }
    .encode()
    .unwrap()
}

pub(super) fn shards_of(effects: &[N2GatewayEffect]) -> Vec<u8> {
    let shard = |effect: &N2GatewayEffect| match effect {
        N2GatewayEffect::ToShard { shard, .. } => Some(shard.0),
        _ => None,
    };
    effects.iter().filter_map(shard).collect()
}

#[test]
fn ng_setup_is_answered_and_reported_to_every_shard() {
    let mut gateway = gateway();
    let effects = receive(&mut gateway, setup_request("999/70", 1, 1));
    assert!(matches!(answer(&effects), Message::NgSetupResponse(_)));
    assert_eq!(shards_of(&effects), [0, 1]);
    assert_eq!(gateway.gnbs().count(), 1);
}

#[test]
fn ng_setup_fails_without_common_network_area_or_slice() {
    let refused = |plmn, tac, sst| match answer(&receive(&mut gateway(), setup_request(plmn, tac, sst))) {
        Message::NgSetupFailure(failure) => failure.cause,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused("001/01", 1, 1), Cause::Misc(CauseMisc::unknown_PLMN_or_SNPN));
    assert_eq!(refused("999/70", 2, 1), Cause::Misc(CauseMisc::unspecified), "there is no cause for a TAC");
    assert_eq!(refused("999/70", 1, 9), Cause::RadioNetwork(CauseRadioNetwork::slice_not_supported));
}

/// How many RAN-UE-NGAP-IDs of the gNB are recorded.
fn ran_ids(gateway: &N2Gateway) -> usize {
    gateway.interfaces[&GNB].ran_ids.len()
}

#[test]
fn after_a_reset_no_ran_ue_ngap_id_of_the_gnb_is_recorded() {
    let whole = NgReset { cause: Cause::Misc(CauseMisc::unspecified), scope: ResetScope::NgInterface };
    for reset in [whole.encode().unwrap(), setup_request("999/70", 1, 1)] {
        let mut gateway = set_up();
        (1..=3).for_each(|ran| drop(receive(&mut gateway, initial_with(ran, vec![0x7e], None))));
        assert_eq!(ran_ids(&gateway), 3);
        receive(&mut gateway, reset);
        assert_eq!(ran_ids(&gateway), 0);
        let effects = receive(&mut gateway, initial_with(1, vec![0x7e], None));
        assert_eq!(effects.len(), 1, "no shard closes an earlier connection: {effects:?}");
    }
}

#[test]
fn ng_setup_again_resets_all_ues_of_the_gnb() {
    let effects = receive(&mut set_up(), setup_request("999/70", 1, 1));
    let resets = effects.iter().filter(|effect| {
        matches!(effect, N2GatewayEffect::ToShard { input: N2Input::Reset { ues: None, .. }, .. })
    });
    assert_eq!(resets.count(), 2);
}

#[test]
fn ng_setup_on_a_new_association_ends_the_gnbs_earlier_one() {
    let mut gateway = set_up();
    let anew = GnbHandle(8);
    up(&mut gateway, anew, "10.0.0.2:40000");
    let pdu = setup_request("999/70", 1, 1).into();
    let effects: Vec<_> = gateway
        .handle(N2GatewayInput::Message { tnla: Tnla(anew.0), stream: 0, ppid: NGAP_PPID, pdu })
        .collect();
    let down = |effect: &&N2GatewayEffect| {
        matches!(effect, N2GatewayEffect::ToShard { input: N2Input::GnbDown { gnb: GNB }, .. })
    };
    assert_eq!(effects.iter().filter(down).count(), 2);
    assert_eq!(gateway.gnbs().map(|(gnb, _)| gnb).collect::<Vec<_>>(), [anew]);
    assert!(effects.contains(&N2GatewayEffect::Close { tnla: Tnla(GNB.0) }));
    assert_eq!(receive(&mut gateway, initial(None)), [], "the earlier association is over");
    assert_eq!(gateway.handle(N2GatewayInput::Down { tnla: Tnla(GNB.0) }).count(), 0, "it was told already");
}

/// The cause of the NG SETUP FAILURE, and the operator's log line.
pub(super) fn refusal(gateway: &mut N2Gateway, gnb: GnbHandle, pdu: Vec<u8>) -> (Cause, String) {
    let input = N2GatewayInput::Message { tnla: Tnla(gnb.0), stream: 0, ppid: NGAP_PPID, pdu: pdu.into() };
    let effects: Vec<_> = gateway.handle(input).collect();
    let text = effects.iter().find_map(|effect| match effect {
        N2GatewayEffect::Event(event) => Some(event.text.clone()),
        _ => None,
    });
    let Message::NgSetupFailure(failure) = answer(&effects) else { panic!("{effects:?}") };
    assert!(failure.time_to_wait.is_some());
    (failure.cause, text.expect("a line for the operator"))
}

#[test]
fn a_gnb_id_in_use_is_refused_from_another_address() {
    let mut gateway = set_up();
    let thief = GnbHandle(8);
    up(&mut gateway, thief, "10.0.0.66:38412");
    let (cause, text) = refusal(&mut gateway, thief, setup_request("999/70", 1, 1));
    assert_eq!(cause, Cause::Misc(CauseMisc::unspecified));
    assert!(text.contains("from 10.0.0.66:38412 refused"), "{text}");
    assert!(text.contains("in use by gnb-1 at 10.0.0.2:38412"), "{text}");
    assert_eq!(gateway.gnbs().map(|(gnb, _)| gnb).collect::<Vec<_>>(), [GNB]);
    let id = AmfUeNgapId::new(block(0), 5).value();
    assert_eq!(shards_of(&receive(&mut gateway, uplink(id))), [0], "its UEs are still served");

    gateway.handle(N2GatewayInput::Down { tnla: Tnla(GNB.0) });
    let effects = receive_from(&mut gateway, thief, setup_request("999/70", 1, 1));
    assert!(matches!(answer(&effects), Message::NgSetupResponse(_)), "the ID is free");
}

#[test]
fn a_gnb_may_reconnect_from_its_alternative_address_but_not_claim_a_foreign_one() {
    let request = || setup_request("999/70", 1, 1);
    let addresses = |list: &[&str]| list.iter().map(|address| address.parse().unwrap()).collect();
    let (one, other) = (GnbHandle(8), GnbHandle(9));
    let mut gateway = gateway();
    let peer = "10.0.1.2:38412".parse().unwrap();
    let alternatives = addresses(&["10.0.2.2"]);
    gateway.handle(N2GatewayInput::Up { tnla: Tnla(one.0), peer, local: local(), alternatives });
    receive_from(&mut gateway, one, request());
    let peer = "10.0.0.66:38412".parse().unwrap();
    gateway.handle(N2GatewayInput::Up {
        tnla: Tnla(other.0),
        peer,
        local: local(),
        alternatives: addresses(&["10.0.1.2"]),
    });
    refusal(&mut gateway, other, request());
    up(&mut gateway, GnbHandle(10), "10.0.2.2:38412");
    let effects = receive_from(&mut gateway, GnbHandle(10), request());
    assert!(matches!(answer(&effects), Message::NgSetupResponse(_)));
}

#[test]
fn with_a_list_only_permitted_gnbs_connect() {
    let mut gateway = gateway();
    let id = "999/70-GNB-000001".to_owned();
    gateway.config.permitted_gnbs = vec![
        PermittedGnb { id, addresses: vec!["10.0.0.3".parse().unwrap()] },
        PermittedGnb { id: "999/70-gnb-000002".into(), addresses: vec!["10.0.0.2".parse().unwrap()] },
    ];
    let (cause, text) = refusal(&mut gateway, GNB, setup_request("999/70", 1, 1));
    assert_eq!(cause, Cause::Misc(CauseMisc::om_intervention));
    assert!(text.contains("'amf.n2.gnbs' does not permit this gNB ID at 10.0.0.2"), "{text}");
    let permitted = GnbHandle(8);
    up(&mut gateway, permitted, "10.0.0.3:38412");
    let effects = receive_from(&mut gateway, permitted, setup_request("999/70", 1, 1));
    assert!(matches!(answer(&effects), Message::NgSetupResponse(_)));
    let stranger = GnbHandle(9);
    assert!(
        up(&mut gateway, stranger, "10.0.0.66:38412")
            .contains(&N2GatewayEffect::Close { tnla: Tnla(stranger.0) })
    );
}

#[test]
fn associations_of_one_address_are_limited_and_other_addresses_connect() {
    let mut gateway = gateway();
    gateway.config.associations_per_address = 3;
    let peer = |port: u64| format!("10.0.0.66:{port}");
    let is_closed = |effects: Vec<N2GatewayEffect>| {
        effects.iter().any(|effect| matches!(effect, N2GatewayEffect::Close { .. }))
    };
    let closed: Vec<bool> =
        (100..106).map(|gnb| is_closed(up(&mut gateway, GnbHandle(gnb), &peer(gnb)))).collect();
    assert_eq!(closed, [false, false, false, true, true, true]);
    assert!(!is_closed(up(&mut gateway, GnbHandle(8), "10.0.0.67:38412")), "another address");
    gateway.handle(N2GatewayInput::Down { tnla: Tnla(GnbHandle(100).0) });
    assert!(!is_closed(up(&mut gateway, GnbHandle(106), &peer(106))), "its share has room again");
    let v6 = |host: u64| format!("[2001:db8::{host:x}]:38412");
    let closed: Vec<bool> =
        (200..204).map(|gnb| is_closed(up(&mut gateway, GnbHandle(gnb), &v6(gnb)))).collect();
    assert_eq!(closed, [false, false, false, true], "the addresses of an IPv6 network share");
}

#[test]
fn only_an_association_without_ng_setup_times_out() {
    let seconds = |seconds: u64| Instant::from_micros(seconds * 1_000_000);
    let mut gateway = set_up();
    assert_eq!(gateway.next_deadline(), None);
    let silent = GnbHandle(8);
    gateway.advance(seconds(100));
    up(&mut gateway, silent, "10.0.0.66:38412");
    assert_eq!(gateway.next_deadline(), Some(seconds(160)));
    assert_eq!(gateway.advance(seconds(159)).count(), 0);
    let effects: Vec<_> = gateway.advance(seconds(160)).collect();
    assert!(effects.contains(&N2GatewayEffect::Close { tnla: Tnla(silent.0) }), "{effects:?}");
    assert_eq!(gateway.next_deadline(), None);
    assert_eq!(gateway.gnbs().count(), 1);
}

#[test]
fn a_peer_with_too_many_messages_before_ng_setup_is_disconnected() {
    let mut gateway = gateway();
    let answered = (0..20).map(|_| receive(&mut gateway, vec![0xff; 9]));
    let effects: Vec<_> = answered.flatten().collect();
    let sent = effects.iter().filter(|effect| matches!(effect, N2GatewayEffect::Send { .. })).count();
    assert_eq!(sent, 16);
    assert!(effects.contains(&N2GatewayEffect::Close { tnla: Tnla(GNB.0) }));
}

#[test]
fn warnings_about_one_address_are_limited_across_reconnects() {
    let seconds = |seconds: u64| Instant::from_micros(seconds * 1_000_000);
    let mut gateway = gateway();
    let flood = |gateway: &mut N2Gateway, peer: &str| {
        let mut warnings = Vec::new();
        for number in 100..200 {
            let gnb = GnbHandle(number);
            let mut effects = up(gateway, gnb, peer);
            for _ in 0..20 {
                let pdu = Bytes::from_static(&[0xff; 9]);
                let input = N2GatewayInput::Message { tnla: Tnla(gnb.0), stream: 0, ppid: NGAP_PPID, pdu };
                effects.extend(gateway.handle(input));
            }
            warnings.extend(effects.into_iter().filter_map(|effect| match effect {
                N2GatewayEffect::Event(event) => Some(event.text),
                _ => None,
            }));
        }
        warnings
    };
    let warnings = flood(&mut gateway, "10.0.0.66:38412");
    assert_eq!(warnings.len(), 21);
    assert_eq!(warnings[20], "further warnings about 10.0.0.66 are suppressed for 10 s");
    assert_eq!(flood(&mut gateway, "10.0.0.67:38412").len(), 21, "another address has its own");
    gateway.advance(seconds(10));
    assert_eq!(flood(&mut gateway, "10.0.0.66:38412").len(), 21);
    gateway.advance(seconds(40));
    assert_eq!(gateway.admission.shares.len(), 1, "only the address with an association is remembered");
}

#[test]
fn many_silent_associations_do_not_keep_a_gnb_out() {
    let mut gateway = gateway();
    let peer =
        |number: u64| format!("10.{}.{}.{}:38412", number >> 16 & 255, number >> 8 & 255, number & 255);
    for number in 100..20_000 {
        up(&mut gateway, GnbHandle(number), &peer(1 << 16 | number));
    }
    assert!(gateway.associations.len() <= 4096);
    let honest = GnbHandle(50_000);
    up(&mut gateway, honest, "10.0.0.3:38412");
    let effects = receive_from(&mut gateway, honest, setup_request("999/70", 1, 1));
    assert!(matches!(answer(&effects), Message::NgSetupResponse(_)));
}

#[test]
fn a_refused_ng_setup_is_logged_with_both_sides_in_one_line() {
    for (request, what) in [
        (
            setup_request("001/01", 0x00ab, 1),
            "no common PLMN: the gNB has PLMN 001/01 TAC 0x0000ab (171) slices 1; the AMF has PLMN 999/70 TAC 0x000001 (1) slices 1; change the gNB's PLMN or 'network.plmns'",
        ),
        (
            setup_request("999/70", 256, 1),
            "no common tracking area: the gNB has PLMN 999/70 TAC 0x000100 (256) slices 1; the AMF has PLMN 999/70 TAC 0x000001 (1) slices 1; change the gNB's TAC or 'network.tracking_areas'",
        ),
        (
            setup_request("999/70", 1, 9),
            "no common slice: the gNB has PLMN 999/70 TAC 0x000001 (1) slices 9; the AMF has PLMN 999/70 TAC 0x000001 (1) slices 1; change the gNB's slices or 'network.slices'",
        ),
    ] {
        let (_, text) = refusal(&mut gateway(), GNB, request);
        let plmn = if what.contains("common PLMN") { "001/01" } else { "999/70" };
        let who = format!("NG Setup of gNB gnb-1 ({plmn}-gnb-000001) from 10.0.0.2:38412 refused: ");
        assert_eq!(text, who + what);
    }
}

#[test]
fn only_ng_setup_is_accepted_before_ng_setup() {
    let effects = receive(&mut gateway(), initial(None));
    let Message::ErrorIndication(indication) = answer(&effects) else { panic!() };
    let cause = CauseProtocol::message_not_compatible_with_receiver_state;
    assert_eq!(indication.cause, Some(Cause::Protocol(cause)));
}

/// TS 38.413 10.3.4.2, ignore and notify.
#[test]
fn an_ie_that_is_ignored_is_notified_in_the_response() {
    let request = with_unknown_ie(&setup_request("999/70", 1, 1));
    let mut gateway = gateway();
    let Message::NgSetupResponse(response) = answer(&receive(&mut gateway, request)) else { panic!() };
    let listed = format!("{:?}", response.diagnostics.unwrap());
    assert!(listed.contains("65534") && listed.contains("not_understood"), "{listed}");
    let Message::NgSetupResponse(response) = answer(&receive(&mut gateway, setup_request("999/70", 1, 1)))
    else {
        panic!()
    };
    assert_eq!(response.diagnostics, None, "it is said once");
}

#[test]
fn an_unknown_procedure_is_notified_if_it_wants_to_be() {
    for (criticality, is_answered) in [(0, true), (0x40, false), (0x80, true)] {
        let effects = receive(&mut set_up(), vec![0, 250, criticality, 3, 0, 0, 0]);
        assert_eq!(!effects.is_empty(), is_answered, "{effects:?}");
        if is_answered {
            let Message::ErrorIndication(indication) = answer(&effects) else { panic!() };
            let cause = match criticality {
                0 => CauseProtocol::abstract_syntax_error_reject,
                _ => CauseProtocol::abstract_syntax_error_ignore_and_notify,
            };
            assert_eq!(indication.cause, Some(Cause::Protocol(cause)));
        }
    }
}

#[test]
fn a_message_of_a_known_ue_is_routed_by_its_id() {
    let mut gateway = set_up();
    for shard in [0, 1] {
        let id = AmfUeNgapId::new(block(shard), 5).value();
        assert_eq!(shards_of(&receive(&mut gateway, uplink(id))), [shard]);
    }
}

#[test]
fn an_unknown_id_gets_an_error_indication() {
    for id in [AmfUeNgapId::new(block(2), 5), AmfUeNgapId::new(block(255), 5)] {
        let effects = receive(&mut set_up(), uplink(id.value()));
        let Message::ErrorIndication(indication) = answer(&effects) else { panic!() };
        assert_eq!(indication.amf_ue_ngap_id, Some(id));
        assert_eq!(indication.cause, Some(Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID)));
    }
}

#[test]
fn a_new_ue_is_routed_by_its_s_tmsi_or_to_the_least_loaded_shard() {
    let mut gateway = set_up();
    let of = |amf_set, shard| FiveGSTmsi { amf_set, amf_pointer: 0, tmsi: FiveGTmsi::new(block(shard), 1) };
    let mut ran = 0;
    let mut comes = |gateway: &mut N2Gateway, s_tmsi| {
        ran += 1;
        shards_of(&receive(gateway, initial_with(ran, vec![0x7e], s_tmsi)))
    };
    for _ in 0..3 {
        assert_eq!(comes(&mut gateway, Some(of(1, 1))), [1]);
    }
    gateway.set_loads([500, 0]);
    assert_eq!(comes(&mut gateway, None), [1]);
    gateway.set_loads([0, 500]);
    assert_eq!(comes(&mut gateway, Some(of(2, 1))), [0], "another AMF assigned it");
    assert_eq!(comes(&mut gateway, Some(of(1, 9))), [0], "there is no such shard");
}

#[test]
fn new_ues_spread_over_equally_loaded_shards() {
    let mut gateway = set_up();
    gateway.set_loads([3, 1]);
    let comes = |ran| shards_of(&receive(&mut gateway, initial_with(ran, vec![0x7e], None)));
    let shards: Vec<u8> = (0..4).flat_map(comes).collect();
    assert_eq!(shards, [0, 1, 0, 1]);
}

#[test]
fn a_gnb_that_repeats_ng_setup_gets_no_work_done_for_each() {
    let mut gateway = gateway();
    let (mut resets, mut refusals) = (0, 0);
    for _ in 0..1000 {
        for effect in receive(&mut gateway, setup_request("999/70", 1, 1)) {
            match effect {
                N2GatewayEffect::ToShard { input: N2Input::Reset { .. }, .. } => resets += 1,
                N2GatewayEffect::Send { pdu, .. } => {
                    refusals += u32::from(matches!(Message::decode(&pdu), Ok(Message::NgSetupFailure(_))));
                }
                _ => {}
            }
        }
    }
    assert_eq!((resets, refusals), (31 * 2, 1000 - 32));
    gateway.advance(Instant::default() + crate::kit::Duration::from_secs(1));
    let accepted = receive(&mut gateway, setup_request("999/70", 1, 1));
    assert!(accepted.iter().any(|effect| matches!(effect, N2GatewayEffect::ToShard { .. })), "{accepted:?}");
}

/// TS 38.413 9.3.1.90: a TAC is unique in the list. Slices of a repeated one count, too.
#[test]
fn a_tracking_area_that_a_gnb_names_twice_is_listed_once() {
    let Ok(Message::NgSetupRequest(mut request)) = Message::decode(&setup_request("999/70", 1, 1)) else {
        panic!()
    };
    let again = SupportedTa { tac: Tac::new(1), plmns: vec![(plmn(), vec![Snssai::of_sst(1); 2])] };
    request.supported_tas.push(again);
    let mut gateway = gateway();
    let effects = receive(&mut gateway, request.encode().unwrap());
    assert!(effects.iter().any(|it| matches!(it, N2GatewayEffect::ToShard { .. })), "{effects:?}");
    let supported = gateway.gnbs().map(|(_, info)| info.supported.clone()).next().unwrap();
    assert_eq!(supported, [(Tai { plmn_id: plmn(), tac: Tac::new(1) }, vec![Snssai::of_sst(1)])]);
}

#[test]
fn a_partial_reset_reaches_the_owners_and_is_acknowledged() {
    let id = AmfUeNgapId::new(block(1), 5);
    let connection = pith_ngap::NgConnection { amf_ue_ngap_id: Some(id), ran_ue_ngap_id: None };
    let reset =
        NgReset { cause: Cause::Nas(CauseNas::unspecified), scope: ResetScope::Part(vec![connection]) };
    let effects = receive(&mut set_up(), reset.encode().unwrap());
    assert_eq!(shards_of(&effects), [1]);
    let Message::NgResetAcknowledge(acknowledge) = answer(&effects) else { panic!() };
    assert_eq!(acknowledge.connections, Some(vec![connection]));
}

#[test]
fn a_lost_gnb_is_reported_to_every_shard_and_gets_no_messages() {
    let mut gateway = set_up();
    let effects: Vec<_> = gateway.handle(N2GatewayInput::Down { tnla: Tnla(GNB.0) }).collect();
    assert_eq!(shards_of(&effects), [0, 1]);
    let send = N2Effect::Send { gnb: GNB, binding: TnlaBinding::unbound(1), pdu: Bytes::new() };
    assert_eq!(gateway.handle(N2GatewayInput::Shard(send)).count(), 0);
}

/// TS 38.413 10.5: an unknown IE of criticality reject, a repeated IE, a value that can't be decoded, and a valid one.
#[test]
fn an_error_indication_is_not_answered_by_one() {
    let pdus = [
        "00094007000001270f0000",
        "0009400f000002005540020001005540020001",
        "00094002ffff",
        "000940080000010055400100",
    ];
    for mut gateway in [set_up(), gateway()] {
        for pdu in pdus {
            let effects = receive(&mut gateway, hex::decode(pdu).unwrap());
            assert!(!effects.iter().any(|it| matches!(it, N2GatewayEffect::Send { .. })), "{pdu}");
        }
    }
}

#[test]
fn malformed_ngap_gets_an_error_indication() {
    let mut gateway = set_up();
    let Message::ErrorIndication(indication) = answer(&receive(&mut gateway, vec![0xff; 9])) else {
        panic!()
    };
    assert_eq!(indication.cause, Some(Cause::Protocol(CauseProtocol::transfer_syntax_error)));
    let good = setup_request("999/70", 1, 1);
    for at in 0..good.len() {
        for value in [0, 0x7f, 0xff] {
            let mut spoiled = good.clone();
            spoiled[at] = value;
            receive(&mut gateway, spoiled);
            receive(&mut gateway, good[..at].to_vec());
        }
    }
    // Some of these were NG SETUP REQUESTs, which are bounded.
    gateway.advance(Instant::default() + crate::kit::Duration::from_secs(10));
    assert!(matches!(answer(&receive(&mut gateway, good)), Message::NgSetupResponse(_)));
}

#[test]
fn other_payload_protocols_are_ignored() {
    let pdu = setup_request("999/70", 1, 1).into();
    let input = N2GatewayInput::Message { tnla: Tnla(GNB.0), stream: 0, ppid: 18, pdu };
    let mut gateway = gateway();
    let effects: Vec<_> = gateway.handle(input).collect();
    assert!(matches!(effects.as_slice(), [N2GatewayEffect::Event(_)]));
}

/// REGISTRATION REQUEST, DEREGISTRATION REQUEST and SERVICE REQUEST of a UE with that 5G-TMSI, integrity protected.
fn initial_messages(tmsi: FiveGTmsi) -> [Vec<u8>; 3] {
    use pith_nas::ie::*;
    use pith_nas::{GmmMessage, gmm};
    let guti =
        pith_types::FiveGGuti { guami: Guami { plmn_id: plmn(), amf_id: "020040".parse().unwrap() }, tmsi };
    let identity = MobileIdentity::FiveGGuti(guti);
    let ksi = NgKsi::Native(0);
    let kind = RegistrationType { follow_on_request: false, kind: RegistrationKind::MobilityUpdating };
    let leaving = DeregistrationType {
        switch_off: false,
        re_registration_required: false,
        access: AccessType::ThreeGpp,
    };
    let s_tmsi = MobileIdentity::FiveGSTmsi(guti.s_tmsi());
    let messages: [GmmMessage; 3] = [
        gmm::RegistrationRequest::new(kind, ksi, identity.clone()).into(),
        gmm::DeregistrationRequestUeOriginating::new(leaving, ksi, identity).into(),
        gmm::ServiceRequest::new(ksi, ServiceType::Signalling, s_tmsi).into(),
    ];
    messages.map(|message| [vec![0x7e, 1, 9, 9, 9, 9, 0], message.encode()].concat())
}

#[test]
fn an_initial_ue_message_without_5g_s_tmsi_is_routed_by_its_nas_identity() {
    for shard in [0, 1] {
        for nas in initial_messages(FiveGTmsi::new(block(shard), 5)) {
            let mut gateway = set_up();
            gateway.set_loads(if shard == 0 { [1000, 0] } else { [0, 1000] });
            assert_eq!(shards_of(&receive(&mut gateway, initial_with(1, nas, None))), [shard]);
        }
    }
}

#[test]
fn a_ue_that_comes_from_eps_is_routed_by_its_native_guti() {
    use pith_nas::ie::*;
    use pith_nas::{GmmMessage, gmm};
    let guti = |amf_id: &str, shard| {
        let guami = Guami { plmn_id: plmn(), amf_id: amf_id.parse().unwrap() };
        MobileIdentity::FiveGGuti(FiveGGuti { guami, tmsi: FiveGTmsi::new(block(shard), 5) })
    };
    let kind = RegistrationType { follow_on_request: false, kind: RegistrationKind::MobilityUpdating };
    // Mapped from a 4G-GUTI, also one that looks like this AMF's.
    for mapped in [guti("800101", 0), guti("020040", 0)] {
        let mut request = gmm::RegistrationRequest::new(kind, NgKsi::Native(0), mapped);
        request.additional_guti = Some(guti("020040", 1));
        let nas = [vec![0x7e, 1, 9, 9, 9, 9, 0], GmmMessage::from(request).encode()].concat();
        let mut gateway = set_up();
        gateway.set_loads([0, 1000]);
        assert_eq!(shards_of(&receive(&mut gateway, initial_with(1, nas, None))), [1]);
    }
}

#[test]
fn a_reused_ran_ue_ngap_id_ends_its_connection_on_another_shard() {
    let mut gateway = set_up();
    gateway.set_loads([0, 1000]);
    assert_eq!(shards_of(&receive(&mut gateway, initial(None))), [0]);
    gateway.set_loads([1000, 0]);
    let effects = receive(&mut gateway, initial(None));
    assert_eq!(shards_of(&effects), [0, 1]);
    let [N2GatewayEffect::ToShard { input: N2Input::Reset { ues: Some(ues), .. }, .. }, _] =
        effects.as_slice()
    else {
        panic!("{effects:?}")
    };
    assert_eq!((ues.len(), ues[0].ran), (1, Some(RanUeNgapId(1))));
    let effects = receive(&mut gateway, initial_with(2, vec![0x7e], None));
    assert_eq!(shards_of(&effects), [1], "another id concerns nobody else");
}

#[test]
fn a_released_ran_ue_ngap_id_is_free() {
    let mut gateway = set_up();
    gateway.set_loads([0, 1000]);
    receive(&mut gateway, initial(None));
    let complete = pith_ngap::UeContextReleaseComplete {
        amf_ue_ngap_id: AmfUeNgapId::new(block(0), 1),
        ran_ue_ngap_id: RanUeNgapId(1),
        location: None,
        sessions: None,
        diagnostics: None,
    };
    receive(&mut gateway, complete.encode().unwrap());
    gateway.set_loads([1000, 0]);
    assert_eq!(shards_of(&receive(&mut gateway, initial(None))), [1]);
}

#[test]
fn an_error_indication_with_the_ran_ue_ngap_id_alone_finds_its_shard() {
    let mut gateway = set_up();
    gateway.set_loads([1000, 0]);
    receive(&mut gateway, initial(None));
    let indication = |ran| {
        ErrorIndication {
            amf_ue_ngap_id: None,
            ran_ue_ngap_id: Some(RanUeNgapId(ran)),
            cause: Some(Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID)),
            diagnostics: None,
            s_tmsi: None,
        }
        .encode()
        .unwrap()
    };
    assert_eq!(shards_of(&receive(&mut gateway, indication(1))), [1]);
    assert_eq!(shards_of(&receive(&mut gateway, indication(2))), [0_u8; 0]);
}

/// A gNB that names invented RAN-UE-NGAP-IDs in NG RESET makes no work for the shards.
#[test]
fn a_partial_reset_by_ran_ue_ngap_ids_reaches_the_shards_that_have_them() {
    let mut gateway = set_up();
    gateway.set_loads([1000, 0]);
    receive(&mut gateway, initial(None));
    let by_ran = |id| pith_ngap::NgConnection { amf_ue_ngap_id: None, ran_ue_ngap_id: Some(RanUeNgapId(id)) };
    let mut reset = |ids: &[u32]| {
        let scope = ResetScope::Part(ids.iter().copied().map(by_ran).collect());
        let reset = NgReset { cause: Cause::Nas(CauseNas::unspecified), scope };
        let effects = receive(&mut gateway, reset.encode().unwrap());
        let ues = effects.iter().filter_map(|effect| match effect {
            N2GatewayEffect::ToShard { shard, input: N2Input::Reset { ues, .. } } => {
                Some((shard.0, ues.as_ref().map_or(0, Vec::len)))
            }
            _ => None,
        });
        ues.collect::<Vec<_>>()
    };
    assert_eq!(reset(&[1, 2, 3]), [(1, 1)], "only one of the ids has a connection");
    assert_eq!(reset(&[1]), Vec::new(), "which has ended");
}

#[test]
fn gnbs_in_one_ipv6_network_are_on_one_host() {
    let mut gateway = gateway();
    let hosts = ["192.0.2.1:9", "[2001:db8::1]:9", "[2001:db8::2:0:0:2]:9", "[2001:db8:0:1::1]:9"];
    let mut seen = Vec::new();
    for (peer, number) in hosts.into_iter().zip(10..) {
        let gnb = GnbHandle(number);
        up(&mut gateway, gnb, peer);
        let effects = receive_from(&mut gateway, gnb, setup_request("999/70", 1, 1));
        seen.extend(effects.iter().find_map(|effect| match effect {
            N2GatewayEffect::ToShard { input: N2Input::GnbUp { info, .. }, .. } => Some(info.host),
            _ => None,
        }));
        gateway.handle(N2GatewayInput::Down { tnla: Tnla(gnb.0) });
    }
    assert_eq!(seen.len(), 4);
    assert!(seen[1] == seen[2] && seen[0] != seen[1] && seen[2] != seen[3], "{seen:?}");
}

#[test]
fn after_a_panic_of_a_shard_the_gnb_releases_what_the_shard_does_not_have() {
    let mut gateway = set_up();
    let ids = |connection| AmfUeNgapId::new(block(0), connection);
    let shown = |gateway: &mut N2Gateway, ran: u32, connection: u32| {
        receive(gateway, initial_with(ran, Vec::new(), None));
        let association = gateway.interfaces.get_mut(&GNB).unwrap();
        association.ran_ids.assign(RanUeNgapId(ran), ShardId(0));
        association.ran_ids.note_amf_id(RanUeNgapId(ran), (ids(connection), ShardId(0)));
    };
    (1..=3).for_each(|ue| shown(&mut gateway, ue, 100 + ue));
    // A connection that began after the panic has shown no AMF-UE-NGAP-ID.
    gateway.interfaces.get_mut(&GNB).unwrap().ran_ids.assign(RanUeNgapId(4), ShardId(0));
    let kept = vec![(GNB, ids(101), RanUeNgapId(1)), (GNB, ids(109), RanUeNgapId(9))];
    let effect = N2Effect::TakenOver { shard: ShardId(0), owners: sparse_owners(2), connections: kept };
    let effects: Vec<_> = gateway.handle(N2GatewayInput::Shard(effect)).collect();
    let Message::NgReset(NgReset { scope: ResetScope::Part(reset), .. }) = answer(&effects) else { panic!() };
    let reset: Vec<_> = reset.iter().filter_map(|it| it.ran_ue_ngap_id.map(|ran| ran.0)).collect();
    assert_eq!(reset, [2, 3], "its UEs are in CM-IDLE, or begin again");
    let closed = effects.iter().find_map(|effect| match effect {
        N2GatewayEffect::ToShard { shard, input: N2Input::Reset { ues, .. } } => Some((shard.0, ues.clone())),
        _ => None,
    });
    let released = ResetUe { amf: Some(ids(109)), ran: Some(RanUeNgapId(9)) };
    assert_eq!(closed, Some((0, Some(vec![released]))), "the gNB has released it meanwhile");
    assert_eq!(ran_ids(&gateway), 2);
}

/// A gateway whose NG SETUP RESPONSE waits for both shards, and what a gNB's NG SETUP REQUEST has caused.
pub(super) fn waiting(retains_ues: bool) -> (N2Gateway, Vec<N2GatewayEffect>) {
    let mut gateway = gateway();
    gateway.config.setup_wait = Duration::from_secs(5);
    gateway.advance(Instant::from_micros(1_000_000)).for_each(drop);
    let proposed = retains_ues.then_some(pith_ngap::UeRetentionInformation::ues_retained);
    let effects = receive(&mut gateway, setup_request_with("999/70", 1, 1, proposed));
    (gateway, effects)
}

pub(super) fn answer_setup(
    gateway: &mut N2Gateway,
    shard: u8,
    kept: u32,
    ended: u32,
) -> Vec<N2GatewayEffect> {
    let id = |number| (AmfUeNgapId::new(block(shard), number), RanUeNgapId(u32::from(shard) * 100 + number));
    let connections = crate::kit::RetainedConnections {
        kept: (1..=kept).map(id).collect(),
        ended: (51..51 + ended).map(id).collect(),
        targets: Vec::new(),
    };
    let effect = N2Effect::SetUp { shard: ShardId(shard), gnb: GNB, connections };
    gateway.handle(N2GatewayInput::Shard(effect)).collect()
}

pub(super) fn sent(effects: &[N2GatewayEffect]) -> Vec<Message> {
    let sent = effects.iter().filter_map(|effect| match effect {
        N2GatewayEffect::Send { pdu, .. } => Some(Message::decode(pdu).unwrap()),
        _ => None,
    });
    sent.collect()
}

#[test]
fn ng_setup_response_waits_for_every_shard() {
    let (mut gateway, effects) = waiting(false);
    assert_eq!(sent(&effects), []);
    let asked = N2Input::NgSetup { gnb: GNB, retains_ues: false };
    let is_asked = |effect: &&N2GatewayEffect| matches!(effect, N2GatewayEffect::ToShard { input, .. } if *input == asked);
    assert_eq!(effects.iter().filter(is_asked).count(), 2);
    assert_eq!(answer_setup(&mut gateway, 0, 0, 0), []);
    assert_eq!(answer_setup(&mut gateway, 0, 0, 0), [], "a shard answers once");
    let [Message::NgSetupResponse(response)] = &sent(&answer_setup(&mut gateway, 1, 0, 0))[..] else {
        panic!()
    };
    assert_eq!(response.ue_retention, None);
    let until = gateway.next_deadline().unwrap();
    assert_eq!(until, Instant::from_micros(1_500_000), "the response needs time");
    assert_eq!(gateway.advance(until).count(), 0);
    assert_eq!(gateway.next_deadline(), None);
}

#[test]
fn a_gnb_that_retains_ues_gets_the_ie_back_and_releases_those_that_the_amf_has_ended() {
    let (mut gateway, _) = waiting(true);
    assert_eq!(answer_setup(&mut gateway, 0, 0, 1), []);
    let sent = sent(&answer_setup(&mut gateway, 1, 2, 0));
    let [Message::NgSetupResponse(response), Message::NgReset(reset)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(response.ue_retention, Some(pith_ngap::UeRetentionInformation::ues_retained));
    let ResetScope::Part(connections) = &reset.scope else { panic!("{reset:?}") };
    assert_eq!(connections.len(), 1);
    assert_eq!(connections[0].ran_ue_ngap_id, Some(RanUeNgapId(51)));
    assert_eq!(ran_ids(&gateway), 2, "messages with the RAN-UE-NGAP-ID alone find the shard");
}

#[test]
fn retention_is_not_accepted_if_no_shard_has_a_connection() {
    let (mut gateway, _) = waiting(true);
    answer_setup(&mut gateway, 0, 0, 3);
    let sent = sent(&answer_setup(&mut gateway, 1, 0, 0));
    let [Message::NgSetupResponse(response)] = &sent[..] else { panic!("no NG RESET: {sent:?}") };
    assert_eq!(response.ue_retention, None);
}

#[test]
fn a_shard_that_does_not_answer_delays_ng_setup_for_a_bounded_time() {
    let (mut gateway, _) = waiting(true);
    answer_setup(&mut gateway, 0, 1, 0);
    let late = gateway.next_deadline().unwrap();
    assert_eq!(late, Instant::from_micros(6_000_000));
    let effects: Vec<_> = gateway.advance(late).collect();
    let [Message::NgSetupResponse(response)] = &sent(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!(response.ue_retention, None);
    let resets = |effect: &&N2GatewayEffect| {
        matches!(effect, N2GatewayEffect::ToShard { input: N2Input::Reset { ues: None, .. }, .. })
    };
    assert_eq!(effects.iter().filter(resets).count(), 2, "the shard that kept connections closes them");
    assert_eq!(answer_setup(&mut gateway, 1, 1, 0), [], "too late");
}

#[test]
fn a_gnb_that_leaves_during_ng_setup_is_forgotten() {
    let (mut gateway, _) = waiting(true);
    gateway.handle(N2GatewayInput::Down { tnla: Tnla(GNB.0) }).for_each(drop);
    assert_eq!(gateway.next_deadline(), None);
    answer_setup(&mut gateway, 0, 1, 0);
    assert_eq!(sent(&answer_setup(&mut gateway, 1, 1, 0)), []);
}

#[test]
fn messages_of_shards_follow_ng_setup_response() {
    let (mut gateway, _) = waiting(false);
    let page = || {
        N2GatewayInput::Shard(N2Effect::Send {
            gnb: GNB,
            binding: TnlaBinding::unbound(0),
            pdu: Bytes::from_static(b"page"),
        })
    };
    assert_eq!(gateway.handle(page()).count(), 0, "the gNB is not set up");
    answer_setup(&mut gateway, 0, 0, 0);
    assert_eq!(sent(&answer_setup(&mut gateway, 1, 0, 0)).len(), 1, "NG SETUP RESPONSE");
    assert_eq!(gateway.handle(page()).count(), 0, "another stream may overtake the response");
    let until = gateway.next_deadline().unwrap();
    let effects: Vec<_> = gateway.advance(until).collect();
    let [N2GatewayEffect::Send { pdu, .. }, N2GatewayEffect::Send { .. }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(&pdu[..], b"page");
    assert_eq!(gateway.handle(page()).count(), 1);
}

/// After a failure of a cell, some gNBs reset UE by UE (TS 38.413 8.7.4.2.2).
#[test]
fn resets_of_single_connections_are_all_carried_out() {
    let mut gateway = set_up();
    let mut answered = 0;
    for id in 0..4_000 {
        let connection =
            pith_ngap::NgConnection { amf_ue_ngap_id: None, ran_ue_ngap_id: Some(RanUeNgapId(id)) };
        let scope = ResetScope::Part(vec![connection]);
        let reset = NgReset { cause: Cause::Nas(CauseNas::unspecified), scope };
        answered += receive(&mut gateway, reset.encode().unwrap()).len();
    }
    assert!((1_000..=2_048).contains(&answered), "{answered}");
}
