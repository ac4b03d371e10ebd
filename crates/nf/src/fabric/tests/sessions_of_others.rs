//! UE addresses are allocated when all shards of the process have restored their sessions.

use super::*;
use crate::fabric::{Keeps, Portion, TakeOver, Unrestored};
use crate::kit::{AddressNews, Needs};
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

/// As the driver of a shard with stored contexts starts it.
fn start(rig: &mut Rig) -> Vec<ShardEffect> {
    let mut effects = rig.handle(ShardInput::Start);
    rig.shard.resume_contexts(rig.now, &mut effects);
    effects
}

fn is_announced(effects: &[ShardEffect]) -> bool {
    effects.iter().any(|effect| matches!(effect, ShardEffect::SessionsRestored))
}

#[test]
fn a_request_that_needs_an_address_waits_for_the_sessions_of_all_shards() {
    for own_last in [false, true] {
        let mut rig = rig(&mut TakeOver::new(Keeps::All));
        assert!(!is_announced(&start(&mut rig)), "its own sessions are not restored");
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
    assert!(is_announced(&start(&mut next)), "the former run has restored its sessions");
    assert_eq!(answer(&request(&mut next)), None);
    assert!(answer(&next.handle(ShardInput::SessionsRestored { shard: 2 })).is_some());
}

/// An SMF that has a session with an address of a block of shard 1, which it resumes with its other contexts.
struct Borrowing {
    block: Option<BlockId>,
    has_resumed: bool,
}

impl NetworkFunction for Borrowing {
    fn handle(&mut self, _now: Instant, _input: Input, _out: &mut Outbox) {}

    fn resume_contexts(&mut self, _now: Instant, _out: &mut Outbox) {
        self.has_resumed = true;
    }

    fn take_address_news(&mut self) -> Vec<(BlockId, AddressNews)> {
        let used = AddressNews::Used("10.0.0.1".parse().unwrap());
        self.block.take_if(|_| self.has_resumed).map(|block| (block, used)).into_iter().collect()
    }
}

/// All contexts are read before the first input (`stateless`, `shared`, `embedded`; a run after a panic).
#[test]
fn others_learn_of_addresses_before_they_learn_that_the_sessions_are_restored() {
    let mut rig = Rig::new(&[], |_| {});
    let block = rig.shard.owners().blocks_of(owner_of(1)).next();
    assert!(block.is_some());
    rig.shard.add_for_test(Nf::Smf, Box::new(Borrowing { block, has_resumed: false }));
    TakeOver::new(Keeps::All).await_sessions_of([1].into_iter(), &mut rig.shard);
    let order = start(&mut rig).into_iter().filter_map(|effect| match effect {
        ShardEffect::SessionsRestored => Some("restored"),
        ShardEffect::PassOn { input, .. } if matches!(*input, ShardInput::Address { .. }) => Some("address"),
        _ => None,
    });
    assert_eq!(order.collect::<Vec<_>>(), ["address", "restored"]);
}

/// An SMF that records the news of addresses.
struct Recording(Arc<std::sync::Mutex<Vec<AddressNews>>>);

impl NetworkFunction for Recording {
    fn handle(&mut self, _now: Instant, _input: Input, _out: &mut Outbox) {}

    fn note_address(&mut self, news: AddressNews) {
        self.0.lock().unwrap().push(news);
    }
}

#[test]
fn the_run_after_a_panic_knows_the_addresses_of_its_turn() {
    let mut take_over = TakeOver::new(Keeps::All);
    let mut former = Rig::new(&[], |_| {});
    let used = AddressNews::Used("10.0.0.1".parse().unwrap());
    let block = former.shard.owners().blocks_of(owner_of(0)).next().unwrap();
    take_over.begin(&mut former.shard, &ShardInput::Address { block, news: used });
    take_over.panicked(None);
    let mut next = Rig::new(&[], |_| {});
    let known = Arc::new(std::sync::Mutex::new(Vec::new()));
    next.shard.add_for_test(Nf::Smf, Box::new(Recording(Arc::clone(&known))));
    take_over.begin_run(&mut next.shard);
    assert_eq!(*known.lock().unwrap(), [used]);
}
