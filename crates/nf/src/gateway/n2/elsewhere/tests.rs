//! INITIAL UE MESSAGEs of UEs of another AMF.

use super::super::tests::{initial, receive, set_up, shards_of};
use super::*;
use crate::gateway::n2::N2GatewayInput;
use crate::kit::{N2Effect, Passage, Tnla};
use crate::testing::block;
use pith_types::{BlockMove, BlockOwner, FiveGSTmsi, FiveGTmsi, InstanceId, OwnerMap, ShardId};
use std::sync::Arc;

const NONE: [u8; 0] = [];
const PATIENCE: Duration = Duration::from_secs(4);

/// Instance 0 of a set with AMF Pointer 0; another one has block 1.
fn gateway() -> N2Gateway {
    let mut gateway = set_up().sharing_blocks(PATIENCE);
    let own = BlockOwner { instance: InstanceId(0), shard: ShardId(0) };
    let owners = OwnerMap::new(1, |_| own).moved(change(1, 2)).unwrap();
    gateway.config.owners = Arc::new(owners);
    gateway.advance(Instant::default());
    gateway
}

fn change(instance: u8, version: u64) -> BlockMove {
    let to = BlockOwner { instance: InstanceId(instance), shard: ShardId(1) };
    BlockMove { block: block(1), to, version }
}

/// A UE of block 1, to which the AMF with Pointer 9 has given its 5G-GUTI.
fn message(ue: u32) -> Vec<u8> {
    initial(Some(FiveGSTmsi { amf_set: 1, amf_pointer: 9, tmsi: FiveGTmsi::new(block(1), ue) }))
}

fn moved(gateway: &mut N2Gateway) -> Vec<N2GatewayEffect> {
    let passage = Passage::Moved { change: change(0, 3), has: Vec::new() };
    gateway.handle(N2GatewayInput::Shard(N2Effect::Passage(passage))).collect()
}

#[test]
fn a_ue_waits_until_its_block_has_passed_to_this_amf() {
    let mut gateway = gateway();
    assert_eq!(shards_of(&receive(&mut gateway, message(7))), NONE);
    assert_eq!(shards_of(&moved(&mut gateway)), [1]);
    assert_eq!(shards_of(&receive(&mut gateway, message(7))), [1], "further ones are routed at once");
}

#[test]
fn a_ue_that_has_waited_too_long_tries_again_and_is_unknown_the_fourth_time() {
    let mut gateway = gateway();
    receive(&mut gateway, message(7));
    let mut due = gateway.next_deadline().unwrap();
    assert_eq!(due, Instant::default() + PATIENCE);
    for _ in 0..TIMES {
        let effects: Vec<_> = gateway.advance(due).collect();
        let [N2GatewayEffect::Send { pdu, .. }] = effects.as_slice() else { panic!("{effects:?}") };
        let Ok(pith_ngap::Message::ErrorIndication(error)) = pith_ngap::Message::decode(pdu) else {
            panic!()
        };
        assert_eq!((error.amf_ue_ngap_id, error.ran_ue_ngap_id.is_some()), (None, true));
        receive(&mut gateway, message(7));
        due = due + PATIENCE;
    }
    let effects: Vec<_> = gateway.advance(due).collect();
    assert_eq!(shards_of(&effects).len(), 1, "its gNB has no association with the other AMF");
    assert_eq!(shards_of(&moved(&mut gateway)), NONE);
    let later = due + AGAIN;
    gateway.advance(later);
    assert!(
        gateway
            .elsewhere
            .sends_back(later, FiveGSTmsi { amf_set: 1, amf_pointer: 9, tmsi: FiveGTmsi::new(block(1), 7) })
    );
}

/// What a shard knows of the set: instance 1 has the block of the UE.
fn set(gateway: &mut N2Gateway, living: &[u8], is_uncertain: bool) {
    let root = |instance: u8| Arc::new(format!("http://10.0.0.{instance}:80").parse().unwrap());
    let roots = (0..2).map(|instance| (InstanceId(instance), root(instance))).collect();
    let living = living.iter().map(|instance| InstanceId(*instance)).collect();
    let instances = Arc::new(SetInstances { roots, living, is_uncertain, homes: Arc::default() });
    assert!(gateway.handle(N2GatewayInput::Shard(N2Effect::Instances(instances))).next().is_none());
}

/// The UE sends its message `times` times. Each time the gateway keeps it for its patience, and then answers ERROR INDICATION.
fn is_sent_back(gateway: &mut N2Gateway, due: &mut Instant, times: usize) {
    for _ in 0..times {
        assert_eq!(shards_of(&receive(gateway, message(7))), NONE);
        *due = *due + PATIENCE;
        let effects: Vec<_> = gateway.advance(*due).collect();
        assert!(matches!(&effects[..], [N2GatewayEffect::Send { .. }]), "{effects:?}");
    }
}

#[test]
fn a_ue_is_sent_back_as_long_as_its_amf_may_be_gone_and_its_block_has_no_other_owner() {
    let (mut gateway, mut due) = (gateway(), Instant::default());
    // The store does not answer.
    set(&mut gateway, &[0, 1], true);
    is_sent_back(&mut gateway, &mut due, 3 * usize::from(TIMES));
    // It answers, and the other AMF's lease has ended. The store refuses to change the owner map.
    set(&mut gateway, &[0], false);
    is_sent_back(&mut gateway, &mut due, 3 * usize::from(TIMES));
    // The other AMF has returned.
    set(&mut gateway, &[0, 1], false);
    is_sent_back(&mut gateway, &mut due, TIMES.into());
    receive(&mut gateway, message(7));
    let effects: Vec<_> = gateway.advance(due + PATIENCE).collect();
    assert_eq!(shards_of(&effects).len(), 1, "its gNB has no association with that AMF");
    // The block passes in the end.
    set(&mut gateway, &[0], false);
    receive(&mut gateway, message(8));
    assert_eq!(shards_of(&moved(&mut gateway)).last(), Some(&1));
}

#[test]
fn without_a_set_other_pointers_are_of_unknown_ues() {
    let mut gateway = set_up();
    assert_eq!(shards_of(&receive(&mut gateway, message(7))).len(), 1);
}

#[test]
fn what_waits_ends_with_its_association_and_is_bounded() {
    let mut gateway = gateway();
    for ue in 0..MOST_WAITING as u32 {
        assert_eq!(shards_of(&receive(&mut gateway, message(ue))), NONE);
    }
    assert_eq!(shards_of(&receive(&mut gateway, message(7))).len(), 1, "no room");
    gateway.handle(N2GatewayInput::Down { tnla: Tnla(super::super::tests::GNB.0) });
    assert_eq!((gateway.elsewhere.waiting.len(), gateway.elsewhere.octets), (0, 0));
}
