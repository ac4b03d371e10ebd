//! A block passes from shard 0 to shard 1.

use super::*;
use crate::fabric::{Keeps, MoveError, TakeOver};
use crate::kit::{Input, N2Effect, N2Input, Outbox, Passage, PassedContext, PassedPart};
use pith_sbi::nsmf_pdusession::ReleaseSmContext;
use pith_types::{BlockId, BlockMove, ContextId, InstanceId, OwnerMap};
use std::sync::Arc;

/// An AMF with one context, for which a request to another NF is pending or not.
struct OneContext {
    id: Option<ContextId>,
    is_pending: bool,
}

impl NetworkFunction for OneContext {
    fn handle(&mut self, _now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Timer(_) => self.is_pending = false,
            Input::Request { reply, .. } => reply.answer(Response::NoContent, out),
            _ => {}
        }
    }

    fn unsettled(&self, block: BlockId) -> Option<ContextId> {
        self.id.filter(|id| id.block == block && self.is_pending)
    }

    fn is_unsettled(&self, id: ContextId) -> bool {
        self.unsettled(id.block).is_some()
    }

    fn pass_block(&mut self, _now: Instant, block: BlockId, _out: &mut Outbox) -> PassedPart {
        let passed = self.id.take_if(|id| id.block == block);
        let context =
            |id| PassedContext { id, key: KEY, document: crate::testing::empty_document(), stored: None };
        PassedPart { contexts: passed.into_iter().map(context).collect(), rest: None }
    }
}

const BLOCK: u16 = 5;

/// The key of the context in the shard's table.
const KEY: u64 = 42;

fn block() -> BlockId {
    BlockId::new(BLOCK).unwrap()
}

fn change(version: u64, shard: u8) -> BlockMove {
    BlockMove { block: block(), to: owner_of(shard), version }
}

/// Shard 0 of two, with half of the blocks.
fn rig(is_pending: bool) -> Rig {
    let amf = OneContext { id: Some(ContextId { block: block(), number: 7 }), is_pending };
    let functions: Vec<(Nf, Box<dyn NetworkFunction>)> = vec![(Nf::Amf, Box::new(amf))];
    let mut config = rig_config();
    (config.shard, config.shards, config.owner) = (0, 2, owner_of(0));
    config.owners = Arc::new(OwnerMap::of_instance(InstanceId(0), 2));
    let mut rig =
        Rig { shard: Shard::new(functions, Agent::new(config), Level::Error), now: Instant::default() };
    rig.handle(ShardInput::Start);
    rig
}

/// The effects at the end of a turn.
fn end_turn(rig: &mut Rig) -> Vec<ShardEffect> {
    let mut effects = Vec::new();
    rig.shard.complete_move(rig.now, &mut effects);
    effects
}

fn passed(effects: &[ShardEffect]) -> Option<u16> {
    effects.iter().find_map(|effect| match effect {
        ShardEffect::PassOn { shard, input } if matches!(**input, ShardInput::Block(_)) => Some(*shard),
        _ => None,
    })
}

fn ended(effects: &[ShardEffect]) -> Vec<(u64, Result<(), MoveError>)> {
    let ended = |effect: &ShardEffect| match effect {
        ShardEffect::MoveEnded { change, result } => Some((change.version, *result)),
        _ => None,
    };
    effects.iter().filter_map(ended).collect()
}

fn held() -> ShardInput {
    ShardInput::N2(N2Input::Held { block: block() })
}

#[test]
fn a_block_passes_when_the_gateway_holds_it_and_nothing_is_pending() {
    let mut rig = rig(true);
    let begun = rig.handle(ShardInput::Move(change(2, 1)));
    let hold = Passage::Hold { block: block(), shard: owner_of(0).shard };
    assert!(
        begun.iter().any(|it| matches!(it, ShardEffect::N2(N2Effect::Passage(passage)) if *passage == hold))
    );
    assert_eq!(passed(&end_turn(&mut rig)), None, "the gateway has not answered");
    rig.handle(held());
    assert_eq!(passed(&end_turn(&mut rig)), None, "a request is pending");
    rig.handle(ShardInput::Timer { nf: Nf::Amf, key: TimerKey { owner: 0, timer: Timer::T3550 } });
    assert_eq!(passed(&end_turn(&mut rig)), Some(1));
    // The former owner answers nothing: requests follow the block.
    let id = ContextId { block: block(), number: 7 };
    let sm_context_ref = References::new(&ReferenceKey::new([1; 32])).of_id(id);
    let request = ReleaseSmContext { sm_context_ref, body: Default::default() }.into();
    let from = Caller::Remote { exchange: 3, client: None };
    let effects = rig.handle(ShardInput::Request { from, nf: Nf::Amf, request });
    assert!(
        matches!(
            effects[..],
            [ShardEffect::Forward { shard: 1, from: Caller::Remote { exchange: 3, .. }, .. }]
        ),
        "{effects:?}"
    );
    assert_eq!(ended(&rig.handle(ShardInput::Move(change(3, 1)))), [(3, Err(MoveError::NotOwner))]);
}

#[test]
fn a_block_whose_transaction_does_not_end_stays() {
    let mut rig = rig(true);
    rig.handle(ShardInput::Move(change(2, 1)));
    rig.handle(held());
    assert_eq!(passed(&end_turn(&mut rig)), None);
    let deadline = TimerKey { owner: 2, timer: Timer::BlockMove };
    let effects = rig.handle(ShardInput::Timer { nf: Nf::Agent, key: deadline });
    assert_eq!(ended(&effects), [(2, Err(MoveError::Busy))]);
    let release = Passage::Release { block: block() };
    assert!(
        effects
            .iter()
            .any(|it| matches!(it, ShardEffect::N2(N2Effect::Passage(passage)) if *passage == release))
    );
    rig.handle(ShardInput::Timer { nf: Nf::Amf, key: TimerKey { owner: 0, timer: Timer::T3550 } });
    assert_eq!(passed(&end_turn(&mut rig)), None, "it stays, also when the transaction is over");
}

#[test]
fn two_moves_at_once_follow_each_other_and_an_older_one_has_no_effect() {
    let mut rig = rig(false);
    rig.handle(ShardInput::Move(change(3, 1)));
    assert_eq!(ended(&rig.handle(ShardInput::Move(change(2, 1)))), [], "it waits for the first one");
    rig.handle(held());
    let effects = end_turn(&mut rig);
    assert_eq!(passed(&effects), Some(1));
    assert_eq!(ended(&effects), [(2, Err(MoveError::NotOwner))]);
    assert_eq!(rig.shard.owners().owned_since(block()), 3);
    // It returns with a later version.
    let back = crate::kit::PassedBlock { change: change(4, 0), parts: Vec::new() };
    let effects = rig.handle(ShardInput::Block(Box::new(back)));
    assert_eq!(ended(&effects), [(4, Ok(()))]);
    rig.handle(ShardInput::OwnersChanged(change(3, 1)));
    assert_eq!(rig.shard.owners().owner(block()), owner_of(0), "the change of the first move is late");
}

#[test]
fn some_blocks_stay() {
    let mut rig = rig(false);
    let first = BlockMove { block: BlockId::new(0).unwrap(), ..change(2, 1) };
    assert_eq!(ended(&rig.handle(ShardInput::Move(first))), [(2, Err(MoveError::FirstBlock))]);
    assert_eq!(ended(&rig.handle(ShardInput::Move(change(3, 0)))), [(3, Err(MoveError::SameShard))]);
    assert_eq!(ended(&rig.handle(ShardInput::Move(change(4, 2)))), [(4, Err(MoveError::NoSuchShard))]);
    rig.shard.keep_blocks();
    assert_eq!(ended(&rig.handle(ShardInput::Move(change(5, 1)))), [(5, Err(MoveError::SharedDocuments))]);
}

#[test]
fn late_replies_follow_a_context_that_passed_in_a_former_run() {
    let mut former = rig(false);
    let mut take_over = TakeOver::new(Keeps::All);
    take_over.begin(&mut former.shard, &ShardInput::Move(change(2, 1)));
    former.handle(ShardInput::Move(change(2, 1)));
    former.handle(held());
    assert_eq!(passed(&end_turn(&mut former)), Some(1));
    take_over.end_turn(&mut former.shard);
    for run in 1..=2 {
        take_over.panicked(None);
        let mut next = rig(false);
        next.shard.begin_run(run);
        take_over.begin_run(&mut next.shard);
        let late = Tag::new(KEY, 3);
        let effects = next.reply(Nf::Amf, late, Ok(Response::NoContent));
        let [ShardEffect::PassOn { shard: 1, input }] = &effects[..] else { panic!("{effects:?}") };
        let ShardInput::ForContext { id, input, .. } = &**input else { panic!("{input:?}") };
        assert_eq!(*id, ContextId { block: block(), number: 7 });
        assert!(matches!(**input, Input::Reply { tag, .. } if tag.step == 3));
        let of_this_run = Tag { run, ..late };
        assert!(next.reply(Nf::Amf, of_this_run, Ok(Response::NoContent)).is_empty(), "of another context");
    }
}

/// A reply may be all that knows a resource that was created.
#[test]
fn a_reply_that_is_lost_in_a_panic_is_delivered_again() {
    let id = ContextId { block: block(), number: 7 };
    let of_former_owner =
        || Input::Reply { tag: Tag::new(KEY, 3), from: None, reply: Ok(Response::NoContent) };
    let mut rig = rig(false);
    let mut take_over = TakeOver::new(Keeps::All);
    let input = ShardInput::ForContext { nf: Nf::Smf, id, input: Box::new(of_former_owner()) };
    take_over.begin(&mut rig.shard, &input);
    take_over.panicked(None);
    let Some(ShardInput::ForContext { nf: Nf::Smf, id: again, input }) = take_over.next(&mut rig.shard)
    else {
        panic!("it is lost")
    };
    assert_eq!(again, id);
    assert!(matches!(*input, Input::Reply { tag, reply: Ok(Response::NoContent), .. } if tag.step == 3));
    take_over.handled(&rig.shard);
    take_over.end_turn(&mut rig.shard);
    take_over.panicked(None);
    assert!(take_over.next(&mut rig.shard).is_none(), "its effects have left");
}
