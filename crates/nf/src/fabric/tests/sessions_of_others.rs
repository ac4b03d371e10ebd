//! UE addresses are allocated when all shards of the process have restored their sessions.

use super::*;
use crate::fabric::{Keeps, Portion, TakeOver, Unrestored};
use crate::kit::Needs;
use pith_types::BlockId;

/// An SMF that needs all its contexts for each request.
struct Allocating;

impl NetworkFunction for Allocating {
    fn handle(&mut self, _now: Instant, input: Input, out: &mut Outbox) {
        if let Input::Request { reply, .. } = input {
            reply.answer(Response::NoContent, out);
        }
    }

    fn needs(&self, _input: &Input) -> Needs {
        Needs::All
    }
}

/// Shard 0 of three, which has sessions to restore.
fn rig(take_over: &mut TakeOver) -> Rig {
    let mut rig = Rig::new(&[], |_| {});
    rig.shard.add_for_test(Nf::Smf, Box::new(Allocating));
    let mut unrestored = Unrestored::default();
    unrestored.add_block(Nf::Smf, BlockId::new(5).unwrap());
    rig.shard.begin_restoring(&unrestored);
    take_over.await_sessions_of([1, 2].into_iter(), &mut rig.shard);
    rig
}

fn request(rig: &mut Rig) -> Vec<ShardEffect> {
    let request = GetThreeGppRegistration { ue_id: supi() }.into();
    rig.handle(ShardInput::Request { from: CALLER, nf: Nf::Smf, request })
}

fn is_announced(effects: &[ShardEffect]) -> bool {
    effects.iter().any(|effect| matches!(effect, ShardEffect::SessionsRestored))
}

#[test]
fn a_request_that_needs_an_address_waits_for_the_sessions_of_all_shards() {
    for own_last in [false, true] {
        let mut rig = rig(&mut TakeOver::new(Keeps::All));
        assert!(!is_announced(&rig.handle(ShardInput::Start)), "its own sessions are not restored");
        assert_eq!(answer(&request(&mut rig)), None);
        let mut answered = Vec::new();
        let inputs = |own: bool| -> Vec<ShardInput> {
            if own {
                vec![ShardInput::Restored(Portion::All(Nf::Smf))]
            } else {
                [1, 2].map(|shard| ShardInput::SessionsRestored { shard }).into()
            }
        };
        for input in inputs(!own_last).into_iter().chain(inputs(own_last)) {
            let is_own = matches!(input, ShardInput::Restored(_));
            let effects = rig.handle(input);
            assert_eq!(is_announced(&effects), is_own, "once");
            answered.push(answer(&effects).is_some());
        }
        assert_eq!(answered, [false, false, true]);
        assert!(answer(&request(&mut rig)).is_some(), "nothing is awaited any longer");
    }
}

#[test]
fn the_next_run_of_a_shard_waits_for_the_shards_that_are_left_and_is_awaited_again() {
    let mut take_over = TakeOver::new(Keeps::All);
    let mut former = rig(&mut take_over);
    let restored = ShardInput::SessionsRestored { shard: 1 };
    take_over.begin(&mut former.shard, &restored);
    former.handle(restored);
    take_over.panicked(None);
    let mut next = Rig::new(&[], |_| {});
    next.shard.add_for_test(Nf::Smf, Box::new(Allocating));
    take_over.begin_run(&mut next.shard);
    assert!(is_announced(&next.handle(ShardInput::Start)), "the former run has restored its sessions");
    assert_eq!(answer(&request(&mut next)), None);
    assert!(answer(&next.handle(ShardInput::SessionsRestored { shard: 2 })).is_some());
}
