//! Several associations of a gNB.

use super::tests::*;
use super::*;
use crate::testing::block;
use pith_ngap::{
    AmfConfigurationUpdateAcknowledge, CauseMisc, CauseTransport, CpTransportLayer, FailedTnla,
    GlobalRanNodeId, NgReset, RanConfigurationUpdate, RanTnlAssociation, ResetScope, TimeToWait,
    TnlAssociationUsage, UeRetentionInformation,
};

/// The gNB's second association, and a third one.
const SECOND: GnbHandle = GnbHandle(20);
const THIRD: GnbHandle = GnbHandle(21);

fn tnla(association: GnbHandle) -> Tnla {
    Tnla(association.0)
}

/// RAN CONFIGURATION UPDATE with the Global RAN Node ID of that gNB.
fn update(id: u32, remove: &[RanTnlAssociation]) -> Vec<u8> {
    RanConfigurationUpdate {
        ran_node_name: None,
        supported_tas: None,
        default_paging_drx: None,
        global_ran_node_id: Some(GlobalRanNodeId::Gnb { plmn: plmn(), id, bits: 24 }),
        tnla_to_remove: Some(remove.to_vec()).filter(|list| !list.is_empty()),
    }
    .encode()
    .unwrap()
}

fn up_at(gateway: &mut N2Gateway, association: GnbHandle, peer: &str, local: &str) {
    let (peer, local) = (peer.parse().unwrap(), local.parse().unwrap());
    let up = N2GatewayInput::Up { tnla: tnla(association), peer, local, alternatives: Vec::new() };
    gateway.handle(up).for_each(drop);
}

/// A gNB with associations to two addresses of the AMF.
fn joined() -> N2Gateway {
    let mut gateway = set_up();
    up_at(&mut gateway, SECOND, "10.0.0.2:38413", "10.0.1.5:38412");
    let effects = receive_from(&mut gateway, SECOND, update(1, &[]));
    assert!(matches!(answer(&effects), Message::RanConfigurationUpdateAcknowledge(_)));
    gateway
}

/// The association that a message of a shard takes.
fn taken(gateway: &mut N2Gateway, binding: TnlaBinding) -> Option<Tnla> {
    let send = N2Effect::Send { gnb: GNB, binding, pdu: Bytes::from_static(b"pdu") };
    let effects: Vec<_> = gateway.handle(N2GatewayInput::Shard(send)).collect();
    match &effects[..] {
        [N2GatewayEffect::Send { tnla, .. }] => Some(*tnla),
        [] => None,
        _ => panic!("a message is doubled: {effects:?}"),
    }
}

fn bound(association: GnbHandle) -> TnlaBinding {
    TnlaBinding { tnla: Some(tnla(association)), stream: 3 }
}

fn down(gateway: &mut N2Gateway, association: GnbHandle) -> Vec<N2GatewayEffect> {
    gateway.handle(N2GatewayInput::Down { tnla: tnla(association) }).collect()
}

fn is_gnb_down(effects: &[N2GatewayEffect]) -> bool {
    effects.iter().any(|it| matches!(it, N2GatewayEffect::ToShard { input: N2Input::GnbDown { .. }, .. }))
}

/// The cause and the time of RAN CONFIGURATION UPDATE FAILURE.
fn refused(effects: &[N2GatewayEffect]) -> (Cause, Option<TimeToWait>) {
    let Message::RanConfigurationUpdateFailure(failure) = answer(effects) else { panic!("{effects:?}") };
    (failure.cause, failure.time_to_wait)
}

#[test]
fn an_association_joins_its_gnb_by_ran_configuration_update() {
    let mut gateway = joined();
    assert_eq!(gateway.gnbs().count(), 1);
    assert_eq!(gateway.associations_of(GNB), [tnla(GNB), tnla(SECOND)]);
    let id = AmfUeNgapId::new(block(1), 5).value();
    let effects = receive_from(&mut gateway, SECOND, uplink(id));
    let [N2GatewayEffect::ToShard { shard: ShardId(1), input: N2Input::Pdu { gnb, binding, .. } }] =
        &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!((*gnb, *binding), (GNB, bound(SECOND)), "shards know the gNB, and where the message arrived");
    assert_eq!(gateway.next_deadline(), None, "it is no longer without NG Setup");
}

#[test]
fn an_association_joins_its_gnb_by_ng_setup_that_retains_ues() {
    let mut gateway = set_up();
    receive(&mut gateway, initial(None));
    up_at(&mut gateway, SECOND, "10.0.0.2:38413", "10.0.1.5:38412");
    let retains = Some(UeRetentionInformation::ues_retained);
    let effects = receive_from(&mut gateway, SECOND, setup_request_with("999/70", 1, 1, retains));
    let Message::NgSetupResponse(response) = answer(&effects) else { panic!("{effects:?}") };
    assert_eq!(response.ue_retention, retains);
    let is_reset = |it: &N2GatewayEffect| {
        matches!(it, N2GatewayEffect::ToShard { input: N2Input::Reset { .. } | N2Input::GnbDown { .. }, .. })
    };
    assert!(!effects.iter().any(is_reset), "the UEs stay");
    assert_eq!(gateway.associations_of(GNB), [tnla(GNB), tnla(SECOND)]);
    assert_eq!(gateway.interfaces[&GNB].ran_ids.len(), 1);
}

#[test]
fn ng_setup_without_retention_takes_the_place_of_all_associations() {
    let mut gateway = joined();
    up_at(&mut gateway, THIRD, "10.0.0.2:38414", "10.0.0.5:38412");
    let effects = receive_from(&mut gateway, THIRD, setup_request("999/70", 1, 1));
    for old in [GNB, SECOND] {
        assert!(effects.contains(&N2GatewayEffect::Close { tnla: tnla(old) }));
    }
    assert!(is_gnb_down(&effects));
    assert_eq!(gateway.associations_of(THIRD), [tnla(THIRD)]);
    assert!(matches!(answer(&effects), Message::NgSetupResponse(_)));
}

#[test]
fn ng_setup_again_over_one_of_several_associations_begins_the_interface_again() {
    let mut gateway = joined();
    let effects = receive_from(&mut gateway, SECOND, setup_request("999/70", 1, 1));
    assert!(effects.contains(&N2GatewayEffect::Close { tnla: tnla(GNB) }));
    assert!(!is_gnb_down(&effects), "the interface goes on without UEs");
    let resets = effects.iter().filter(|it| {
        matches!(it, N2GatewayEffect::ToShard { input: N2Input::Reset { ues: None, gnb: GNB }, .. })
    });
    assert_eq!(resets.count(), 2);
    assert_eq!(gateway.associations_of(GNB), [tnla(SECOND)]);
}

/// SCTP accepts nothing new for an association that is shut down.
#[test]
fn messages_of_a_ue_take_no_association_that_is_shut_down() {
    let mut gateway = joined();
    assert_eq!(taken(&mut gateway, bound(SECOND)), Some(tnla(SECOND)));
    let named = RanTnlAssociation {
        ran: CpTransportLayer { address: "10.0.0.2".parse().unwrap(), port: Some(38413) },
        amf: None,
    };
    let effects = receive(&mut gateway, update(1, &[named]));
    assert!(effects.contains(&N2GatewayEffect::ShutDown { tnla: tnla(SECOND) }), "{effects:?}");
    assert_eq!(taken(&mut gateway, bound(SECOND)), Some(tnla(GNB)));
}

#[test]
fn the_limit_of_procedures_is_that_of_all_associations_of_a_gnb() {
    let mut gateway = joined();
    let is_answered = |effects: &[N2GatewayEffect]| {
        matches!(answer(effects), Message::RanConfigurationUpdateAcknowledge(_))
    };
    let answered = (0..64).filter(|at| {
        let over = if at % 2 == 0 { GNB } else { SECOND };
        is_answered(&receive_from(&mut gateway, over, update(1, &[])))
    });
    let answered = answered.count();
    assert!((20..=32).contains(&answered), "{answered}");
    // A third one, and one that begins the interface again.
    up_at(&mut gateway, THIRD, "10.0.0.2:38414", "10.0.0.5:38412");
    receive_from(&mut gateway, THIRD, update(1, &[]));
    let overload = Cause::Misc(CauseMisc::control_processing_overload);
    assert_eq!(refused(&receive_from(&mut gateway, THIRD, update(1, &[]))).0, overload);
    let fourth = GnbHandle(22);
    up_at(&mut gateway, fourth, "10.0.0.2:38415", "10.0.0.5:38412");
    receive_from(&mut gateway, fourth, setup_request("999/70", 1, 1));
    assert_eq!(refused(&receive_from(&mut gateway, fourth, update(1, &[]))).0, overload);
}

/// The cause is the same, and waiting does not help.
#[test]
fn an_update_for_another_gnb_is_not_repeated_as_soon_as_an_early_one() {
    let mut gateway = joined();
    set_up_other(&mut gateway);
    let (cause, wait) = refused(&receive(&mut gateway, update(2, &[])));
    assert_eq!(cause, Cause::Protocol(CauseProtocol::message_not_compatible_with_receiver_state));
    assert_eq!(wait, Some(TimeToWait::v10s));
    up_at(&mut gateway, THIRD, "10.0.0.2:38414", "10.0.0.5:38412");
    let (_, wait) = refused(&receive_from(&mut gateway, THIRD, update(9, &[])));
    assert_eq!(wait, Some(TimeToWait::v1s));
}

#[test]
fn a_gnb_joins_after_ng_setup_only() {
    let mut gateway = gateway();
    let (cause, wait) = refused(&receive(&mut gateway, update(1, &[])));
    assert_eq!(cause, Cause::Protocol(CauseProtocol::message_not_compatible_with_receiver_state));
    assert_eq!(
        wait,
        Some(TimeToWait::v1s),
        "its NG SETUP REQUEST may be in transit over another association"
    );
    receive(&mut gateway, setup_request("999/70", 1, 1));
    let (cause, _) = refused(&receive(&mut gateway, update(2, &[])));
    assert_eq!(
        cause,
        Cause::Protocol(CauseProtocol::message_not_compatible_with_receiver_state),
        "of another gNB"
    );
}

#[test]
fn an_association_from_another_address_does_not_join() {
    let mut gateway = joined();
    up_at(&mut gateway, THIRD, "10.0.0.66:38412", "10.0.0.5:38412");
    assert_eq!(
        refused(&receive_from(&mut gateway, THIRD, update(1, &[]))).0,
        Cause::Misc(CauseMisc::unspecified)
    );
    let retains = Some(UeRetentionInformation::ues_retained);
    let (cause, text) = refusal(&mut gateway, THIRD, setup_request_with("999/70", 1, 1, retains));
    assert_eq!(cause, Cause::Misc(CauseMisc::unspecified));
    assert!(text.contains("'amf.n2.gnbs'"), "{text}");
    assert_eq!(gateway.associations_of(GNB).len(), 2);
}

#[test]
fn a_gnb_joins_from_each_of_its_listed_addresses() {
    let mut gateway = gateway();
    let addresses = ["10.0.0.2", "10.0.7.2"].map(|it| it.parse().unwrap()).to_vec();
    gateway.config.permitted_gnbs = vec![
        PermittedGnb { id: "999/70-gnb-000001".into(), addresses },
        PermittedGnb { id: "999/70-gnb-000002".into(), addresses: vec!["10.0.0.3".parse().unwrap()] },
    ];
    receive(&mut gateway, setup_request("999/70", 1, 1));
    up_at(&mut gateway, SECOND, "10.0.7.2:38412", "10.0.0.5:38412");
    let effects = receive_from(&mut gateway, SECOND, update(1, &[]));
    assert!(matches!(answer(&effects), Message::RanConfigurationUpdateAcknowledge(_)));
    up_at(&mut gateway, THIRD, "10.0.0.3:38412", "10.0.0.5:38412");
    let (cause, _) = refused(&receive_from(&mut gateway, THIRD, update(1, &[])));
    assert_eq!(cause, Cause::Misc(CauseMisc::om_intervention), "the address of another gNB");
}

/// After a restart of the AMF, the gNB counts as the same host whichever association returns first.
#[test]
fn a_listed_gnb_is_one_host_at_each_address() {
    let addresses = ["10.0.0.2", "10.0.7.2"].map(|it| it.parse().unwrap()).to_vec();
    let hosts = ["10.0.0.2:1", "10.0.7.2:1"].map(|peer| {
        let mut gateway = gateway();
        gateway.config.permitted_gnbs =
            vec![PermittedGnb { id: "999/70-gnb-000001".into(), addresses: addresses.clone() }];
        up_at(&mut gateway, SECOND, peer, "10.0.0.5:38412");
        receive_from(&mut gateway, SECOND, setup_request("999/70", 1, 1));
        gateway.gnbs().next().map(|(_, info)| info.host)
    });
    assert!(hosts[0].is_some() && hosts[0] == hosts[1], "{hosts:?}");
}

#[test]
fn the_number_of_associations_of_a_gnb_is_limited() {
    let mut gateway = set_up();
    for number in 100..100 + tnla::MOST as u64 {
        let further = GnbHandle(number);
        up_at(&mut gateway, further, "10.0.0.2:1", "10.0.1.5:38412");
        receive_from(&mut gateway, further, update(1, &[]));
    }
    assert_eq!(gateway.associations_of(GNB).len(), tnla::MOST);
    let last = GnbHandle(500);
    up_at(&mut gateway, last, "10.0.0.2:1", "10.0.1.5:38412");
    let overload = Cause::Misc(CauseMisc::control_processing_overload);
    assert_eq!(refused(&receive_from(&mut gateway, last, update(1, &[]))).0, overload);
    let retains = Some(UeRetentionInformation::ues_retained);
    assert_eq!(refusal(&mut gateway, last, setup_request_with("999/70", 1, 1, retains)).0, overload);
}

#[test]
fn messages_take_the_association_of_the_binding_or_another_one() {
    let mut gateway = joined();
    assert_eq!(taken(&mut gateway, bound(GNB)), Some(tnla(GNB)));
    assert_eq!(taken(&mut gateway, bound(SECOND)), Some(tnla(SECOND)));
    let effects = down(&mut gateway, GNB);
    assert!(!is_gnb_down(&effects), "the UEs stay");
    assert_eq!(taken(&mut gateway, bound(GNB)), Some(tnla(SECOND)));
    assert_eq!(taken(&mut gateway, TnlaBinding::unbound(0)), Some(tnla(SECOND)), "PAGING");
    assert!(is_gnb_down(&down(&mut gateway, SECOND)), "that was the last one");
    assert_eq!(taken(&mut gateway, bound(SECOND)), None);
}

#[test]
fn ues_of_a_lost_association_are_divided_between_the_others() {
    let mut gateway = joined();
    up_at(&mut gateway, THIRD, "10.0.0.2:38414", "10.0.2.5:38412");
    receive_from(&mut gateway, THIRD, update(1, &[]));
    down(&mut gateway, GNB);
    let streams = 1..=30;
    let of = |stream| TnlaBinding { tnla: Some(tnla(GNB)), stream };
    let second = streams.clone().filter(|it| taken(&mut gateway, of(*it)) == Some(tnla(SECOND))).count();
    assert!((8..=22).contains(&second), "{second} of 30");
    let again = streams.filter(|it| taken(&mut gateway, of(*it)) == Some(tnla(SECOND))).count();
    assert_eq!(second, again, "each UE has its own");
}

#[test]
fn an_association_in_doubt_is_not_used_until_the_gnb_sends_over_it() {
    let mut gateway = set_up();
    up_at(&mut gateway, SECOND, "10.0.0.2:38413", "10.0.0.5:38412");
    receive_from(&mut gateway, SECOND, update(1, &[]));
    assert_eq!(taken(&mut gateway, bound(GNB)), Some(tnla(SECOND)), "it may have replaced the first one");
    assert_eq!(taken(&mut gateway, TnlaBinding::unbound(0)), Some(tnla(SECOND)));
    receive(&mut gateway, uplink(AmfUeNgapId::new(block(0), 5).value()));
    assert_eq!(taken(&mut gateway, bound(GNB)), Some(tnla(GNB)));
}

#[test]
fn ng_reset_concerns_connections_over_all_associations() {
    let mut gateway = joined();
    receive(&mut gateway, initial_with(1, vec![0x7e], None));
    receive_from(&mut gateway, SECOND, initial_with(2, vec![0x7e], None));
    assert_eq!(gateway.interfaces[&GNB].ran_ids.len(), 2);
    let reset = NgReset { cause: Cause::Misc(CauseMisc::unspecified), scope: ResetScope::NgInterface };
    let effects = receive_from(&mut gateway, SECOND, reset.encode().unwrap());
    assert_eq!(gateway.interfaces[&GNB].ran_ids.len(), 0);
    let answered = effects.iter().find_map(|effect| match effect {
        N2GatewayEffect::Send { tnla, .. } => Some(*tnla),
        _ => None,
    });
    assert_eq!(answered, Some(tnla(SECOND)), "over the association of the request");
}

#[test]
fn a_gnb_removes_associations_of_its_own_only() {
    let mut gateway = joined();
    let other = set_up_other(&mut gateway);
    let end = |address: &str, port| CpTransportLayer { address: address.parse().unwrap(), port };
    let items = [
        RanTnlAssociation { ran: end("10.0.0.2", None), amf: Some(end("10.0.1.5", None)) },
        RanTnlAssociation { ran: end("10.0.0.3", None), amf: None },
    ];
    let effects = receive(&mut gateway, update(1, &items));
    assert!(matches!(answer(&effects), Message::RanConfigurationUpdateAcknowledge(_)));
    let ended = effects.iter().filter_map(|effect| match effect {
        N2GatewayEffect::ShutDown { tnla } => Some(*tnla),
        _ => None,
    });
    let ended: Vec<_> = ended.collect();
    assert_eq!(ended, [tnla(SECOND)]);
    assert_eq!(taken(&mut gateway, TnlaBinding::unbound(3)), Some(tnla(GNB)), "nothing begins over it");
    assert!(!is_gnb_down(&down(&mut gateway, SECOND)));
    assert_eq!(gateway.associations_of(other).len(), 1);
}

#[test]
fn an_association_of_several_does_not_become_another_gnbs() {
    let mut gateway = joined();
    let Ok(Message::NgSetupRequest(mut request)) = Message::decode(&setup_request("999/70", 1, 1)) else {
        panic!()
    };
    request.global_ran_node_id = GlobalRanNodeId::Gnb { plmn: plmn(), id: 9, bits: 24 };
    let (cause, _) = refusal(&mut gateway, SECOND, request.encode().unwrap());
    assert_eq!(cause, Cause::Protocol(CauseProtocol::message_not_compatible_with_receiver_state));
    assert_eq!(gateway.associations_of(GNB).len(), 2);
}

#[test]
fn a_further_ng_setup_waits_with_the_first_one() {
    let (mut gateway, _) = waiting(true);
    up_at(&mut gateway, SECOND, "10.0.0.2:38413", "10.0.1.5:38412");
    let retains = Some(UeRetentionInformation::ues_retained);
    let effects = receive_from(&mut gateway, SECOND, setup_request_with("999/70", 1, 1, retains));
    assert_eq!(sent(&effects), []);
    answer_setup(&mut gateway, 0, 1, 0);
    let answers = sent(&answer_setup(&mut gateway, 1, 0, 0));
    let is_retained = |it: &Message| matches!(it, Message::NgSetupResponse(it) if it.ue_retention == retains);
    assert_eq!(answers.iter().filter(|it| is_retained(it)).count(), 2, "{answers:?}");
}

/// An AMF with endpoints at 10.0.0.5, 10.0.1.5 (weight 100) and 10.0.2.5 (no messages of UEs).
fn with_endpoints() -> N2Gateway {
    let mut gateway = gateway();
    let endpoint = |address: &str, usage, weight| TnlEndpoint {
        address: format!("{address}:38412").parse().unwrap(),
        usage,
        weight: Some(weight),
    };
    gateway.config.endpoints = vec![
        endpoint("10.0.0.5", TnlAssociationUsage::both, 200),
        endpoint("10.0.1.5", TnlAssociationUsage::both, 100),
        endpoint("10.0.2.5", TnlAssociationUsage::non_ue, 50),
    ];
    gateway
}

fn acknowledge(failed: Option<FailedTnla>) -> Vec<u8> {
    let tnla_failed = failed.map(|failed| vec![failed]);
    AmfConfigurationUpdateAcknowledge { tnla_set_up: None, tnla_failed, diagnostics: None }.encode().unwrap()
}

/// The address and weight of each endpoint to add, to update and to remove in the one AMF CONFIGURATION UPDATE.
fn changes(effects: &[N2GatewayEffect]) -> [Vec<(String, Option<u8>)>; 3] {
    let updates = sent(effects).into_iter().filter_map(|message| match message {
        Message::AmfConfigurationUpdate(update) => Some(update),
        _ => None,
    });
    let updates: Vec<_> = updates.collect();
    let [update] = &updates[..] else { panic!("{effects:?}") };
    let named = |end: &CpTransportLayer, weight| (end.address.to_string(), weight);
    [
        update.tnla_to_add.iter().flatten().map(|it| named(&it.endpoint, Some(it.weight))).collect(),
        update.tnla_to_update.iter().flatten().map(|it| named(&it.endpoint, it.weight)).collect(),
        update.tnla_to_remove.iter().flatten().map(|it| named(&it.endpoint, None)).collect(),
    ]
}

fn operate(gateway: &mut N2Gateway, address: &str, weight: Option<u8>) -> Vec<N2GatewayEffect> {
    let address = address.parse().unwrap();
    gateway.handle(N2GatewayInput::Shard(N2Effect::Endpoint { address, weight })).collect()
}

fn named(address: &str, weight: Option<u8>) -> (String, Option<u8>) {
    (address.to_owned(), weight)
}

#[test]
fn gnbs_learn_of_further_endpoints_after_ng_setup() {
    let mut gateway = with_endpoints();
    let [add, update, remove] = changes(&receive(&mut gateway, setup_request("999/70", 1, 1)));
    assert_eq!(add, [named("10.0.1.5", Some(100)), named("10.0.2.5", Some(50))]);
    assert_eq!((update, remove), (vec![named("10.0.0.5", Some(200))], vec![]));
    let address = "10.0.2.5".parse().unwrap();
    let cause = Cause::Transport(CauseTransport::transport_resource_unavailable);
    let failed = FailedTnla { endpoint: CpTransportLayer { address, port: None }, cause };
    let input = N2GatewayInput::Message {
        tnla: tnla(GNB),
        stream: 0,
        ppid: NGAP_PPID,
        pdu: acknowledge(Some(failed)).into(),
    };
    let effects: Vec<_> = gateway.handle(input).collect();
    let [N2GatewayEffect::Event(event)] = &effects[..] else { panic!("{effects:?}") };
    assert!(event.text.contains("no association with the N2 endpoint 10.0.2.5"), "{}", event.text);
    assert_eq!(gateway.next_deadline(), None, "the failure is accepted, not repeated");
}

#[test]
fn messages_of_ues_avoid_endpoints_for_other_messages() {
    let mut gateway = with_endpoints();
    receive(&mut gateway, setup_request("999/70", 1, 1));
    for (association, local) in [(SECOND, "10.0.1.5:38412"), (THIRD, "10.0.2.5:38412")] {
        up_at(&mut gateway, association, "10.0.0.2:38413", local);
        receive_from(&mut gateway, association, update(1, &[]));
    }
    down(&mut gateway, GNB);
    for stream in 1..30 {
        let binding = TnlaBinding { tnla: Some(tnla(GNB)), stream };
        assert_eq!(taken(&mut gateway, binding), Some(tnla(SECOND)));
    }
    down(&mut gateway, SECOND);
    assert_eq!(taken(&mut gateway, bound(GNB)), Some(tnla(THIRD)), "rather than not at all");
}

#[test]
fn with_weight_0_ues_leave_an_endpoint() {
    let mut gateway = with_endpoints();
    receive(&mut gateway, setup_request("999/70", 1, 1));
    receive(&mut gateway, acknowledge(None));
    up_at(&mut gateway, SECOND, "10.0.0.2:38413", "10.0.1.5:38412");
    receive_from(&mut gateway, SECOND, update(1, &[]));
    let effects = operate(&mut gateway, "10.0.1.5", Some(0));
    assert_eq!(changes(&effects)[1], [named("10.0.1.5", Some(0))]);
    let released = effects.iter().filter_map(|effect| match effect {
        N2GatewayEffect::ToShard { shard, input: N2Input::ReleaseBindings { gnb: GNB, tnla } } => {
            Some((shard.0, *tnla))
        }
        _ => None,
    });
    assert_eq!(released.collect::<Vec<_>>(), [(0, tnla(SECOND)), (1, tnla(SECOND))]);
    assert_eq!(operate(&mut gateway, "10.0.1.5", Some(0)), [], "the order of the other shard");
    for stream in 1..30 {
        assert_eq!(taken(&mut gateway, TnlaBinding::unbound(stream)), Some(tnla(GNB)));
    }
    assert_eq!(taken(&mut gateway, bound(SECOND)), Some(tnla(SECOND)), "until the UE is bound elsewhere");
}

#[test]
fn an_endpoint_is_removed_and_added_again_one_update_after_the_other() {
    let mut gateway = with_endpoints();
    receive(&mut gateway, setup_request("999/70", 1, 1));
    assert_eq!(sent(&operate(&mut gateway, "10.0.1.5", None)), [], "the gNB has not answered");
    operate(&mut gateway, "10.0.2.5", Some(7));
    let [add, update, remove] = changes(&receive(&mut gateway, acknowledge(None)));
    assert_eq!((add, update), (vec![], vec![named("10.0.2.5", Some(7))]));
    assert_eq!(remove, [named("10.0.1.5", None)]);
    assert_eq!(receive(&mut gateway, acknowledge(None)), []);
    assert_eq!(changes(&operate(&mut gateway, "10.0.1.5", Some(9)))[0], [named("10.0.1.5", Some(9))]);
}
