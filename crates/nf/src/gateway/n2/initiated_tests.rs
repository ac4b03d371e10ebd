//! What the AMF initiates with gNBs, what it relays between them, and what gNBs change after NG Setup.

use super::tests::{GNB, receive, set_up, set_up_other};
use super::*;
use pith_ngap::{
    AmfConfigurationUpdateAcknowledge, AmfConfigurationUpdateFailure, CauseMisc, CauseProtocol,
    GlobalRanNodeId, NgConnection, NgResetAcknowledge, RanConfigurationUpdate, ResetScope, SonTransfer,
    SupportedTa, TimeToWait, UplinkRanConfigurationTransfer,
};
use pith_types::Tac;

fn seconds(seconds: u64) -> Instant {
    Instant::from_micros(seconds * 1_000_000)
}

/// What is sent to gNBs.
fn sent(effects: impl IntoIterator<Item = N2GatewayEffect>) -> Vec<(GnbHandle, Message)> {
    let sent = effects.into_iter().filter_map(|effect| match effect {
        N2GatewayEffect::Send { tnla, stream: 0, pdu } => {
            Some((GnbHandle(tnla.0), Message::decode(&pdu).unwrap()))
        }
        _ => None,
    });
    sent.collect()
}

fn order(gateway: &mut N2Gateway, effect: N2Effect) -> Vec<N2GatewayEffect> {
    gateway.handle(N2GatewayInput::Shard(effect)).collect()
}

fn at(gateway: &mut N2Gateway, second: u64) -> Vec<(GnbHandle, Message)> {
    sent(gateway.advance(seconds(second)).collect::<Vec<_>>())
}

fn is_whole_reset(sent: &[(GnbHandle, Message)]) -> bool {
    let [(GNB, Message::NgReset(reset))] = sent else { return false };
    reset.scope == ResetScope::NgInterface && reset.cause == Cause::Misc(CauseMisc::om_intervention)
}

#[test]
fn a_reset_by_the_operator_closes_all_connections_and_is_sent_once() {
    let mut gateway = set_up();
    let effects = order(&mut gateway, N2Effect::Reset { gnb: GNB });
    let resets = effects.iter().filter(|effect| {
        matches!(effect, N2GatewayEffect::ToShard { input: N2Input::Reset { gnb: GNB, ues: None }, .. })
    });
    assert_eq!(resets.count(), 2, "each shard closes its connections");
    assert!(is_whole_reset(&sent(effects)));
    assert_eq!(order(&mut gateway, N2Effect::Reset { gnb: GNB }), [], "the order of the other shard");
    let acknowledge = NgResetAcknowledge { connections: None, diagnostics: None };
    receive(&mut gateway, acknowledge.encode().unwrap());
    assert_eq!(gateway.next_deadline(), None);
    assert!(is_whole_reset(&sent(order(&mut gateway, N2Effect::Reset { gnb: GNB }))), "another reset");
}

#[test]
fn an_unanswered_reset_is_repeated_twice() {
    let mut gateway = set_up();
    order(&mut gateway, N2Effect::Reset { gnb: GNB });
    let connection = NgConnection { amf_ue_ngap_id: None, ran_ue_ngap_id: Some(RanUeNgapId(1)) };
    let part = NgResetAcknowledge { connections: Some(vec![connection]), diagnostics: None };
    receive(&mut gateway, part.encode().unwrap());
    assert_eq!(at(&mut gateway, 9), []);
    assert!(is_whole_reset(&at(&mut gateway, 10)));
    assert!(is_whole_reset(&at(&mut gateway, 20)));
    assert_eq!(at(&mut gateway, 30), []);
    assert_eq!(gateway.next_deadline(), None);
}

#[test]
fn a_reset_of_a_gnb_that_is_gone_ends() {
    let mut gateway = set_up();
    order(&mut gateway, N2Effect::Reset { gnb: GNB });
    gateway.handle(N2GatewayInput::Down { tnla: Tnla(GNB.0) });
    assert_eq!(gateway.next_deadline(), None);
    assert_eq!(order(&mut gateway, N2Effect::Reset { gnb: GNB }), []);
}

#[test]
fn all_gnbs_learn_of_another_capacity() {
    let mut gateway = set_up();
    let other = set_up_other(&mut gateway);
    let updates = sent(order(&mut gateway, N2Effect::Capacity(10)));
    assert_eq!(updates.iter().map(|(gnb, _)| *gnb).collect::<Vec<_>>(), [GNB, other]);
    for (_, update) in &updates {
        let Message::AmfConfigurationUpdate(update) = update else { panic!("{update:?}") };
        assert_eq!(update.relative_amf_capacity, Some(10));
    }
    assert_eq!(order(&mut gateway, N2Effect::Capacity(10)), [], "the order of the other shard");
    receive(
        &mut gateway,
        AmfConfigurationUpdateAcknowledge { tnla_set_up: None, tnla_failed: None, diagnostics: None }
            .encode()
            .unwrap(),
    );
    gateway.handle(N2GatewayInput::Down { tnla: Tnla(other.0) });
    assert_eq!(gateway.next_deadline(), None);
}

#[test]
fn an_endpoint_that_is_to_be_added_is_added_with_its_last_weight() {
    let local: std::net::SocketAddr = "10.0.1.5:38412".parse().unwrap();
    let mut gateway = set_up();
    let usage = TnlAssociationUsage::both;
    gateway.config.endpoints.push(TnlEndpoint { address: local, usage, weight: None });
    order(&mut gateway, N2Effect::Capacity(10));
    // They wait for the answer to the update of the capacity.
    let endpoint = |weight| N2Effect::Endpoint { address: local.ip(), weight };
    for weight in [Some(5), Some(7)] {
        assert_eq!(sent(order(&mut gateway, endpoint(weight))), []);
    }
    let acknowledge =
        || AmfConfigurationUpdateAcknowledge { tnla_set_up: None, tnla_failed: None, diagnostics: None };
    let next = sent(receive(&mut gateway, acknowledge().encode().unwrap()));
    let [(GNB, Message::AmfConfigurationUpdate(update))] = &next[..] else { panic!("{next:?}") };
    let added = update.tnla_to_add.as_deref().unwrap_or_default();
    assert_eq!(added.iter().map(|it| it.weight).collect::<Vec<_>>(), [7]);
    assert_eq!(update.tnla_to_update, None);
    // It is removed and added again before the gNB gets either.
    for weight in [None, Some(9)] {
        assert_eq!(sent(order(&mut gateway, endpoint(weight))), []);
    }
    let next = sent(receive(&mut gateway, acknowledge().encode().unwrap()));
    let [(GNB, Message::AmfConfigurationUpdate(update))] = &next[..] else { panic!("{next:?}") };
    assert_eq!((&update.tnla_to_add, &update.tnla_to_remove), (&None, &None));
    let updated = update.tnla_to_update.as_deref().unwrap_or_default();
    assert_eq!(updated.iter().map(|it| it.weight).collect::<Vec<_>>(), [Some(9)]);
}

#[test]
fn a_refused_update_is_repeated_after_time_to_wait() {
    let mut gateway = set_up();
    order(&mut gateway, N2Effect::Capacity(10));
    let cause = Cause::Misc(CauseMisc::control_processing_overload);
    let failure =
        AmfConfigurationUpdateFailure { cause, time_to_wait: Some(TimeToWait::v20s), diagnostics: None };
    receive(&mut gateway, failure.encode().unwrap());
    assert_eq!(at(&mut gateway, 19), []);
    assert!(matches!(at(&mut gateway, 20)[..], [(GNB, Message::AmfConfigurationUpdate(_))]));
    receive(
        &mut gateway,
        AmfConfigurationUpdateAcknowledge { tnla_set_up: None, tnla_failed: None, diagnostics: None }
            .encode()
            .unwrap(),
    );
    assert_eq!(at(&mut gateway, 100), []);
}

#[test]
fn a_lasting_overload_reduces_signalling_in_steps_until_it_is_over() {
    let mut gateway = set_up();
    let (mut reductions, halves) = (Vec::new(), |half: u64| Instant::from_micros(half * 500_000));
    for half in 0..60 {
        for (_, message) in sent(gateway.advance(halves(half)).collect::<Vec<_>>()) {
            let Message::OverloadStart(start) = message else { panic!("{message:?}") };
            reductions.push((half / 2, start.traffic_load_reduction.unwrap()));
        }
        // Between two batches there is a moment without a full queue.
        gateway.set_overloaded(true);
        gateway.set_overloaded(false);
    }
    // A gNB that connects in the meantime.
    let other = set_up_other(&mut gateway);
    let until = gateway.next_deadline().unwrap();
    assert_eq!(until, halves(69));
    let stops = sent(gateway.advance(until).collect::<Vec<_>>());
    assert!(
        matches!(stops[..], [(GNB, Message::OverloadStop(_)), (gnb, Message::OverloadStop(_))] if gnb == other)
    );
    assert_eq!(gateway.next_deadline(), None);
    assert_eq!(reductions, [(1, 25), (6, 50), (11, 75), (16, 99)]);
}

#[test]
fn a_gnb_that_connects_during_an_overload_learns_of_it() {
    let mut gateway = set_up();
    gateway.set_overloaded(true);
    gateway.advance(Instant::from_micros(900_000));
    gateway.set_overloaded(true);
    assert!(matches!(at(&mut gateway, 1)[..], [(GNB, Message::OverloadStart(_))]));
    let answers = sent(super::tests::other_setup(&mut gateway));
    let [(_, Message::NgSetupResponse(_)), (_, Message::OverloadStart(start))] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(start.traffic_load_reduction, Some(25));
}

#[test]
fn a_short_peak_is_no_overload() {
    let mut gateway = set_up();
    gateway.set_overloaded(true);
    for second in 1..20 {
        assert_eq!(at(&mut gateway, second), []);
    }
    assert_eq!(gateway.next_deadline(), None);
}

#[test]
fn ran_configuration_is_relayed_to_the_gnb_that_it_names() {
    let mut gateway = set_up();
    let other = set_up_other(&mut gateway);
    let plmn: Plmn = "999/70".parse().unwrap();
    let tai = Tai { plmn_id: plmn, tac: Tac::new(1) };
    let node = |id| (GlobalRanNodeId::Gnb { plmn, id, bits: 24 }, tai);
    for (target, reached) in [(2, Some(other)), (1, Some(GNB)), (3, None)] {
        let son = Some(SonTransfer::request_of_xn_addresses(node(target), node(1)));
        let transfer = UplinkRanConfigurationTransfer { son: son.clone() };
        let relayed = sent(receive(&mut gateway, transfer.encode().unwrap()));
        assert_eq!(relayed.first().map(|(gnb, _)| *gnb), reached);
        if let Some((_, message)) = relayed.into_iter().next() {
            let Message::DownlinkRanConfigurationTransfer(message) = message else { panic!("{message:?}") };
            assert_eq!(message.son, son);
        }
    }
    let without = UplinkRanConfigurationTransfer { son: None };
    assert_eq!(sent(receive(&mut gateway, without.encode().unwrap())), []);
}

/// Otherwise the target would take its Xn addresses for those of the other gNB, or send that one an answer to what it has not requested.
#[test]
fn ran_configuration_in_the_name_of_another_gnb_is_not_relayed() {
    let mut gateway = set_up();
    let other = set_up_other(&mut gateway);
    let plmn: Plmn = "999/70".parse().unwrap();
    let tai = Tai { plmn_id: plmn, tac: Tac::new(1) };
    let node = |id| (GlobalRanNodeId::Gnb { plmn, id, bits: 24 }, tai);
    for (target, source) in [(2, 2), (2, 3), (1, 2), (3, 2)] {
        let son = Some(SonTransfer::request_of_xn_addresses(node(target), node(source)));
        let answers = sent(receive(&mut gateway, UplinkRanConfigurationTransfer { son }.encode().unwrap()));
        let [(GNB, Message::ErrorIndication(error))] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!(error.cause, Some(Cause::Protocol(CauseProtocol::semantic_error)));
    }
    let son = Some(SonTransfer::request_of_xn_addresses(node(2), node(1)));
    let relayed = sent(receive(&mut gateway, UplinkRanConfigurationTransfer { son }.encode().unwrap()));
    assert!(matches!(relayed[..], [(gnb, Message::DownlinkRanConfigurationTransfer(_))] if gnb == other));
}

#[test]
fn after_a_configuration_update_shards_have_the_new_areas() {
    let mut gateway = set_up();
    let plmn: Plmn = "999/70".parse().unwrap();
    let update = |tac, sst| RanConfigurationUpdate {
        ran_node_name: Some("gnb-one".into()),
        supported_tas: Some(vec![SupportedTa {
            tac: Tac::new(tac),
            plmns: vec![
                ("001/01".parse().unwrap(), vec![Snssai::of_sst(1)]),
                (plmn, vec![Snssai::of_sst(sst)]),
            ],
        }]),
        default_paging_drx: None,
        global_ran_node_id: None,
        tnla_to_remove: None,
    };
    let effects = receive(&mut gateway, update(1, 1).encode().unwrap());
    let infos = effects.iter().filter_map(|effect| match effect {
        N2GatewayEffect::ToShard { input: N2Input::GnbUp { gnb: GNB, info }, .. } => Some(info),
        _ => None,
    });
    let served = vec![(Tai { plmn_id: plmn, tac: Tac::new(1) }, vec![Snssai::of_sst(1)])];
    let expected = ("gnb-one".to_owned(), served);
    let infos: Vec<_> = infos.map(|info| (info.name.clone(), info.supported.clone())).collect();
    assert_eq!(infos, [expected.clone(), expected], "the network that the AMF does not serve is left out");
    assert!(matches!(sent(effects)[..], [(GNB, Message::RanConfigurationUpdateAcknowledge(_))]));
    for faulty in [update(2, 1), update(1, 9)] {
        let refused = sent(receive(&mut gateway, faulty.encode().unwrap()));
        let [(GNB, Message::RanConfigurationUpdateFailure(failure))] = &refused[..] else {
            panic!("{refused:?}")
        };
        assert!(failure.time_to_wait.is_some());
        let unchanged: Vec<_> = gateway.gnbs().map(|(_, info)| info.supported[0].0.tac).collect();
        assert_eq!(unchanged, [Tac::new(1)]);
    }
}
