//! NG Setup and its failures, the way of UE-associated messages, reset, rubbish.

use super::*;
use pith_ngap::{
    CauseMisc, CauseNas, GlobalRanNodeId, NgReset, NgSetupRequest, ResetScope, SupportedTa,
    UplinkNasTransport, UserLocation,
};
use pith_types::{FiveGTmsi, NrCellIdentity, Tac};

const GNB: GnbHandle = GnbHandle(7);

fn plmn() -> Plmn {
    "999/70".parse().unwrap()
}

fn gateway() -> N2Gateway {
    let slice = Snssai::of_sst(1);
    let tai = Tai { plmn_id: plmn(), tac: Tac::new(1) };
    let mut gateway = N2Gateway::new(N2Config {
        amf_name: "pith".into(),
        guamis: vec![Guami { plmn_id: plmn(), amf_id: "020040".parse().unwrap() }],
        relative_capacity: 255,
        plmns: vec![(plmn(), vec![slice])],
        tais: vec![tai],
        instance: InstanceId(0),
        shards: 2,
    });
    gateway.handle(N2GatewayInput::Up { gnb: GNB, peer: "10.0.0.2:38412".into() });
    gateway
}

fn setup_request(plmn: &str, tac: u32, sst: u8) -> Vec<u8> {
    let plmn: Plmn = plmn.parse().unwrap();
    NgSetupRequest {
        global_ran_node_id: GlobalRanNodeId::Gnb { plmn, id: 1, bits: 24 },
        ran_node_name: Some("gnb-1".into()),
        supported_tas: vec![SupportedTa {
            tac: Tac::new(tac),
            plmns: vec![(plmn, vec![Snssai::of_sst(sst)])],
        }],
        default_paging_drx: None,
    }
    .encode()
    .unwrap()
}

fn receive(gateway: &mut N2Gateway, pdu: Vec<u8>) -> Vec<N2GatewayEffect> {
    let input = N2GatewayInput::Message { gnb: GNB, stream: 3, ppid: NGAP_PPID, pdu: pdu.into() };
    gateway.handle(input).filter(|effect| !matches!(effect, N2GatewayEffect::Event(_))).collect()
}

fn set_up() -> N2Gateway {
    let mut gateway = gateway();
    receive(&mut gateway, setup_request("999/70", 1, 1));
    gateway
}

/// The one message that goes back to the gNB.
fn answer(effects: &[N2GatewayEffect]) -> Message {
    let sent = effects.iter().filter_map(|effect| match effect {
        N2GatewayEffect::Send { stream: 0, pdu, .. } => Some(Message::decode(pdu).unwrap()),
        _ => None,
    });
    let mut sent: Vec<_> = sent.collect();
    assert_eq!(sent.len(), 1, "{effects:?}");
    sent.remove(0)
}

fn uplink(id: u64) -> Vec<u8> {
    UplinkNasTransport {
        amf_ue_ngap_id: AmfUeNgapId::from_wire(id).unwrap(),
        ran_ue_ngap_id: RanUeNgapId(1),
        nas_pdu: vec![0x7e],
        location: None,
    }
    .encode()
    .unwrap()
}

fn initial(s_tmsi: Option<FiveGSTmsi>) -> Vec<u8> {
    let tai = Tai { plmn_id: plmn(), tac: Tac::new(1) };
    pith_ngap::InitialUeMessage {
        ran_ue_ngap_id: RanUeNgapId(1),
        nas_pdu: vec![0x7e],
        location: UserLocation { cell_plmn: plmn(), cell: NrCellIdentity::new(1), tai },
        establishment_cause: None,
        s_tmsi,
        ue_context_request: None,
        allowed_nssai: None,
    }
    .encode()
    .unwrap()
}

fn shards_of(effects: &[N2GatewayEffect]) -> Vec<u8> {
    let shard = |effect: &N2GatewayEffect| match effect {
        N2GatewayEffect::ToShard { shard, .. } => Some(shard.0),
        _ => None,
    };
    effects.iter().filter_map(shard).collect()
}

#[test]
fn ng_setup_tells_the_gnb_and_every_shard() {
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
    assert_eq!(refused("999/70", 2, 1), Cause::Misc(CauseMisc::unknown_PLMN_or_SNPN));
    assert_eq!(refused("999/70", 1, 9), Cause::RadioNetwork(CauseRadioNetwork::slice_not_supported));
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
    gateway.handle(N2GatewayInput::Up { gnb: anew, peer: "10.0.0.2:40000".into() });
    let pdu = setup_request("999/70", 1, 1).into();
    let effects: Vec<_> =
        gateway.handle(N2GatewayInput::Message { gnb: anew, stream: 0, ppid: NGAP_PPID, pdu }).collect();
    let down = |effect: &&N2GatewayEffect| {
        matches!(effect, N2GatewayEffect::ToShard { input: N2Input::GnbDown { gnb: GNB }, .. })
    };
    assert_eq!(effects.iter().filter(down).count(), 2);
    assert_eq!(gateway.gnbs().map(|(gnb, _)| gnb).collect::<Vec<_>>(), [anew]);
    let late = receive(&mut gateway, initial(None));
    assert!(matches!(answer(&late), Message::ErrorIndication(_)), "the earlier one has to set up again");
    assert_eq!(gateway.handle(N2GatewayInput::Down { gnb: GNB }).count(), 0, "it was told already");
}

#[test]
fn nothing_but_ng_setup_is_taken_before_it() {
    let effects = receive(&mut gateway(), initial(None));
    let Message::ErrorIndication(indication) = answer(&effects) else { panic!() };
    let cause = CauseProtocol::message_not_compatible_with_receiver_state;
    assert_eq!(indication.cause, Some(Cause::Protocol(cause)));
}

#[test]
fn a_known_ue_goes_to_the_shard_in_its_id() {
    let mut gateway = set_up();
    for shard in [0, 1] {
        let id = AmfUeNgapId::new(InstanceId(0), ShardId(shard), 5).value();
        assert_eq!(shards_of(&receive(&mut gateway, uplink(id))), [shard]);
    }
}

#[test]
fn an_id_of_nobody_is_told_so() {
    for id in [AmfUeNgapId::new(InstanceId(0), ShardId(2), 5), AmfUeNgapId::new(InstanceId(1), ShardId(0), 5)]
    {
        let effects = receive(&mut set_up(), uplink(id.value()));
        let Message::ErrorIndication(indication) = answer(&effects) else { panic!() };
        assert_eq!(indication.amf_ue_ngap_id, Some(id));
        assert_eq!(indication.cause, Some(Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID)));
    }
}

#[test]
fn a_new_ue_goes_to_the_owner_of_its_s_tmsi_or_to_the_least_loaded_shard() {
    let mut gateway = set_up();
    let of = |amf_set, shard| FiveGSTmsi {
        amf_set,
        amf_pointer: 0,
        tmsi: FiveGTmsi::new(InstanceId(0), ShardId(shard), 1),
    };
    for _ in 0..3 {
        assert_eq!(shards_of(&receive(&mut gateway, initial(Some(of(1, 1))))), [1]);
    }
    gateway.set_loads([500, 0]);
    assert_eq!(shards_of(&receive(&mut gateway, initial(None))), [1]);
    gateway.set_loads([0, 500]);
    assert_eq!(shards_of(&receive(&mut gateway, initial(Some(of(2, 1))))), [0], "another AMF gave it");
    assert_eq!(shards_of(&receive(&mut gateway, initial(Some(of(1, 9))))), [0], "there is no such shard");
}

#[test]
fn new_ues_spread_over_equally_loaded_shards() {
    let mut gateway = set_up();
    gateway.set_loads([3, 1]);
    let shards: Vec<u8> = (0..4).flat_map(|_| shards_of(&receive(&mut gateway, initial(None)))).collect();
    assert_eq!(shards, [0, 1, 0, 1]);
}

#[test]
fn a_partial_reset_reaches_the_owners_and_is_acknowledged() {
    let id = AmfUeNgapId::new(InstanceId(0), ShardId(1), 5);
    let connection = pith_ngap::NgConnection { amf_ue_ngap_id: Some(id), ran_ue_ngap_id: None };
    let reset =
        NgReset { cause: Cause::Nas(CauseNas::unspecified), scope: ResetScope::Part(vec![connection]) };
    let effects = receive(&mut set_up(), reset.encode().unwrap());
    assert_eq!(shards_of(&effects), [1]);
    let Message::NgResetAcknowledge(acknowledge) = answer(&effects) else { panic!() };
    assert_eq!(acknowledge.connections, Some(vec![connection]));
}

#[test]
fn a_gnb_that_is_gone_is_told_to_every_shard_and_sent_nothing() {
    let mut gateway = set_up();
    let effects: Vec<_> = gateway.handle(N2GatewayInput::Down { gnb: GNB }).collect();
    assert_eq!(shards_of(&effects), [0, 1]);
    let send = N2Effect::Send { gnb: GNB, stream: 1, pdu: Bytes::new() };
    assert_eq!(gateway.handle(N2GatewayInput::Shard(send)).count(), 0);
}

#[test]
fn rubbish_is_answered_and_breaks_nothing() {
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
    assert!(matches!(answer(&receive(&mut gateway, good)), Message::NgSetupResponse(_)));
}

#[test]
fn another_payload_protocol_is_not_read() {
    let pdu = setup_request("999/70", 1, 1).into();
    let input = N2GatewayInput::Message { gnb: GNB, stream: 0, ppid: 18, pdu };
    let mut gateway = gateway();
    let effects: Vec<_> = gateway.handle(input).collect();
    assert!(matches!(effects.as_slice(), [N2GatewayEffect::Event(_)]));
}
