//! What arrives while a block passes from shard 0 to shard 1.

use super::super::tests::{GNB, receive, set_up, uplink};
use super::*;
use crate::gateway::n2::N2GatewayInput;
use crate::kit::{N2Effect, Tnla};
use crate::testing::block;
use pith_types::{AmfUeNgapId, BlockOwner, InstanceId, RanUeNgapId};

fn tell(gateway: &mut N2Gateway, passage: Passage<Vec<MovedConnection>>) -> Vec<N2GatewayEffect> {
    gateway.handle(N2GatewayInput::Shard(N2Effect::Passage(passage))).collect()
}

fn id(connection: u32) -> AmfUeNgapId {
    AmfUeNgapId::new(block(0), connection)
}

fn moved(has: Vec<MovedConnection>) -> Passage<Vec<MovedConnection>> {
    let to = BlockOwner { instance: InstanceId(0), shard: ShardId(1) };
    Passage::Moved { change: BlockMove { block: block(0), to, version: 2 }, has }
}

fn to_shards(effects: &[N2GatewayEffect]) -> Vec<(u8, String)> {
    let to_shard = |effect: &N2GatewayEffect| match effect {
        N2GatewayEffect::ToShard { shard, input } => {
            let name = format!("{input:?}");
            Some((shard.0, name.split([' ', '{']).next().unwrap_or_default().to_owned()))
        }
        _ => None,
    };
    effects.iter().filter_map(to_shard).collect()
}

fn begin(gateway: &mut N2Gateway) {
    let held = tell(gateway, Passage::Hold { block: block(0), shard: ShardId(0) });
    assert_eq!(to_shards(&held), [(0, "Held".into())], "the owner learns that nothing more follows");
}

#[test]
fn messages_for_the_block_wait_and_reach_the_new_owner_in_order() {
    let mut gateway = set_up();
    assert_eq!(to_shards(&receive(&mut gateway, uplink(id(5).value()))), [(0, "Pdu".into())]);
    begin(&mut gateway);
    for connection in [5, 6, 5] {
        assert_eq!(to_shards(&receive(&mut gateway, uplink(id(connection).value()))), []);
    }
    let other = AmfUeNgapId::new(block(1), 9).value();
    assert_eq!(
        to_shards(&receive(&mut gateway, uplink(other))),
        [(1, "Pdu".into())],
        "other blocks don't wait"
    );
    let effects = tell(&mut gateway, moved(vec![(GNB, id(5), RanUeNgapId(1))]));
    let pdu = |connection: u32| N2GatewayEffect::ToShard {
        shard: ShardId(1),
        input: N2Input::Pdu {
            gnb: GNB,
            binding: TnlaBinding { tnla: Some(Tnla(GNB.0)), stream: 3 },
            pdu: uplink(id(connection).value()).into(),
        },
    };
    assert_eq!(effects, [pdu(5), pdu(6), pdu(5)]);
    assert_eq!(to_shards(&receive(&mut gateway, uplink(id(5).value()))), [(1, "Pdu".into())]);
}

#[test]
fn a_block_that_stays_gets_what_waited() {
    let mut gateway = set_up();
    begin(&mut gateway);
    receive(&mut gateway, uplink(id(5).value()));
    let effects = tell(&mut gateway, Passage::Release { block: block(0) });
    assert_eq!(to_shards(&effects), [(0, "Pdu".into())]);
    assert_eq!(to_shards(&receive(&mut gateway, uplink(id(5).value()))), [(0, "Pdu".into())]);
}

#[test]
fn the_new_owner_learns_what_ended_while_the_block_passed() {
    let mut gateway = set_up();
    begin(&mut gateway);
    gateway.handle(N2GatewayInput::Down { tnla: Tnla(GNB.0) }).for_each(drop);
    let effects = tell(&mut gateway, moved(vec![(GNB, id(5), RanUeNgapId(1))]));
    let ues = vec![ResetUe { amf: Some(id(5)), ran: Some(RanUeNgapId(1)) }];
    let input = N2Input::Reset { gnb: GNB, ues: Some(ues) };
    assert_eq!(effects, [N2GatewayEffect::ToShard { shard: ShardId(1), input }]);
}

#[test]
fn the_owner_keeps_a_block_for_which_too_much_arrives() {
    let mut gateway = set_up();
    begin(&mut gateway);
    let mut asked = Vec::new();
    for _ in 0..3 * MOST_WAITING {
        asked.extend(to_shards(&receive(&mut gateway, uplink(id(5).value()))));
    }
    assert_eq!(asked, [(0, "GiveUp".into())], "once");
    let effects = tell(&mut gateway, Passage::Release { block: block(0) });
    assert_eq!(to_shards(&effects).len(), 2 * MOST_WAITING, "the bound");
}

/// The shard continues after a panic; it has passed the block or not.
fn taken_over(gateway: &mut N2Gateway, has_passed: bool) -> Vec<N2GatewayEffect> {
    let to = BlockOwner { instance: InstanceId(0), shard: ShardId(1) };
    let passed = BlockMove { block: block(0), to, version: 2 };
    let owners = crate::testing::sparse_owners(2);
    let owners = if has_passed { Arc::new(owners.moved(passed).unwrap()) } else { owners };
    let effect = N2Effect::TakenOver { shard: ShardId(0), owners, connections: Vec::new() };
    gateway.handle(N2GatewayInput::Shard(effect)).collect()
}

#[test]
fn a_panic_of_the_former_owner_does_not_end_the_wait_for_the_new_one() {
    let mut gateway = set_up();
    receive(&mut gateway, uplink(id(5).value()));
    begin(&mut gateway);
    receive(&mut gateway, uplink(id(5).value()));
    assert_eq!(taken_over(&mut gateway, true), [], "neither the message nor a reset of the connection");
    let effects = tell(&mut gateway, moved(vec![(GNB, id(5), RanUeNgapId(1))]));
    assert_eq!(to_shards(&effects), [(1, "Pdu".into())]);
}

#[test]
fn a_block_that_the_former_owner_did_not_pass_stays_after_its_panic() {
    let mut gateway = set_up();
    begin(&mut gateway);
    receive(&mut gateway, uplink(id(5).value()));
    let effects = taken_over(&mut gateway, false);
    assert!(to_shards(&effects).contains(&(0, "Pdu".into())), "{effects:?}");
}
