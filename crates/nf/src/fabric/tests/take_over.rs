//! What a shard keeps for a run after a panic.

use super::*;
use crate::fabric::{Keeps, MoveError, TakeOver};
use crate::kit::{Fate, GnbHandle, GnbInfo, N2Effect, N2Input, Passage, PassedBlock, StoredKey};
use pith_ngap::GlobalRanNodeId;
use pith_types::{BlockId, BlockMove, ContextId};
use std::sync::Mutex;

/// An AMF that counts a PDU as one of the UE that its first octet names. A UE whose PDU has a second octet waits for another NF.
#[derive(Default)]
struct Ues {
    touched: Vec<ContextId>,
    waiting: Arc<Mutex<BTreeSet<u64>>>,
}

fn id(number: u64) -> ContextId {
    ContextId::from_u64(number).unwrap()
}

fn key(number: u64) -> StoredKey {
    StoredKey { nf: Nf::Amf, id: id(number) }
}

impl NetworkFunction for Ues {
    fn handle(&mut self, _now: Instant, input: Input, _out: &mut Outbox) {
        if let Input::N2(N2Input::Pdu { pdu, .. }) = input {
            let ue = u64::from(pdu[0]);
            self.touched.push(id(ue));
            if pdu.len() > 1 {
                self.waiting.lock().unwrap().insert(ue);
            } else {
                self.waiting.lock().unwrap().remove(&ue);
            }
        }
    }

    fn has_contexts(&self) -> bool {
        true
    }

    fn touched(&self) -> usize {
        self.touched.len()
    }

    fn touched_at(&self, number: usize) -> Option<ContextId> {
        self.touched.get(number).copied()
    }

    fn take_touched(&mut self, list: &mut Vec<ContextId>) {
        list.append(&mut self.touched);
    }

    fn is_in_transaction(&self, id: ContextId) -> bool {
        self.waiting.lock().unwrap().contains(&id.to_u64())
    }
}

struct Kept {
    rig: Rig,
    take_over: TakeOver,
}

impl Kept {
    fn new() -> Self {
        let mut rig = Rig::new(&[], |_| {});
        rig.shard.add_for_test(Nf::Amf, Box::new(Ues::default()));
        Self { rig, take_over: TakeOver::new(Keeps::All) }
    }

    fn begin(&mut self, pdu: &[u8]) {
        let pdu = pdu.to_vec().into();
        let input = ShardInput::N2(N2Input::Pdu {
            gnb: GnbHandle(1),
            binding: crate::kit::TnlaBinding::unbound(1),
            pdu,
        });
        self.take_over.begin(&mut self.rig.shard, &input);
        self.rig.handle(input);
    }

    fn pdu(&mut self, pdu: &[u8]) {
        self.begin(pdu);
        self.take_over.handled(&self.rig.shard);
    }

    fn end_turn(&mut self) {
        self.take_over.end_turn(&mut self.rig.shard);
    }

    /// The first octets of the messages that the next run gets, in order.
    fn again(&mut self) -> Vec<u8> {
        let mut again = Vec::new();
        while let Some(input) = self.take_over.next(&mut self.rig.shard) {
            let ShardInput::N2(N2Input::Pdu { pdu, .. }) = &input else { panic!("{input:?}") };
            again.push(pdu[0]);
            self.rig.handle(input);
            self.take_over.handled(&self.rig.shard);
        }
        again
    }
}

#[test]
fn messages_are_kept_until_their_transactions_are_over() {
    let mut kept = Kept::new();
    for pdu in [&[1][..], &[2, 2], &[3, 3]] {
        kept.pdu(pdu);
    }
    kept.end_turn();
    kept.pdu(&[3]);
    kept.end_turn();
    kept.pdu(&[4]);
    kept.begin(&[5]);
    assert!(!kept.take_over.panicked(None));
    assert_eq!(kept.again(), [2, 4, 5], "2 waits for another NF; the turn of 4 and 5 has not left");
}

#[test]
fn the_message_that_causes_a_panic_is_delivered_once_more() {
    let mut kept = Kept::new();
    kept.begin(&[1]);
    kept.take_over.panicked(Some(key(1)));
    assert_eq!(kept.take_over.fate(key(1)), Some(Fate::GoesOn));
    assert!(kept.take_over.next(&mut kept.rig.shard).is_some());
    kept.take_over.panicked(Some(key(1)));
    assert!(kept.again().is_empty());
    assert_eq!(kept.take_over.fate(key(1)), Some(Fate::Ends), "the second panic in a row");
    kept.take_over.panicked(Some(key(1)));
    assert_eq!(kept.take_over.fate(key(1)), None, "not even its end succeeds");
    assert_eq!(kept.take_over.fate(key(2)), Some(Fate::GoesOn));
}

#[test]
fn a_context_whose_next_step_succeeds_is_no_suspect() {
    let mut kept = Kept::new();
    kept.begin(&[1]);
    kept.take_over.panicked(Some(key(1)));
    kept.take_over.resumed(&mut kept.rig.shard);
    assert_eq!(kept.again(), [1]);
    kept.end_turn();
    kept.begin(&[1]);
    kept.take_over.panicked(Some(key(1)));
    assert_eq!(kept.take_over.fate(key(1)), Some(Fate::GoesOn));
}

#[test]
fn panics_without_an_end_give_the_contexts_up() {
    let mut kept = Kept::new();
    let rounds = (1..100).find(|_| kept.take_over.panicked(None));
    assert_eq!(rounds, Some(17));
}

#[test]
fn what_is_kept_is_bounded_for_each_ue_and_gnb() {
    let mut kept = Kept::new();
    for _ in 0..20 {
        kept.pdu(&[1, 0]);
    }
    kept.end_turn();
    for ue in 2..=255 {
        kept.pdu(&[&[ue][..], &[0; 20_000]].concat());
        kept.end_turn();
    }
    kept.take_over.panicked(None);
    let again = kept.again();
    assert_eq!(again.iter().filter(|ue| **ue == 1).count(), 8);
    let others = again.len() - 8;
    assert!((40..60).contains(&others), "1 MiB of the gNB: {others} messages of 20 kB");
    // What a panic gives back is available again.
    kept.end_turn();
    assert!(!kept.again().contains(&2));
}

#[test]
fn callers_of_lost_requests_are_answered_and_gnbs_are_connected_again() {
    let mut kept = Kept::new();
    let info = Arc::new(GnbInfo {
        name: String::new(),
        global_id: "999/70-gnb-1".into(),
        node: GlobalRanNodeId::Gnb { plmn: plmn(), id: 1, bits: 32 },
        supported: Vec::new(),
        peer: String::new(),
        host: std::net::Ipv4Addr::LOCALHOST.into(),
    });
    let up = ShardInput::N2(N2Input::GnbUp { gnb: GnbHandle(4), info });
    kept.take_over.begin(&mut kept.rig.shard, &up);
    let request = GetThreeGppRegistration { ue_id: supi() }.into();
    let request = ShardInput::Request { from: CALLER, nf: Nf::Udm, request };
    kept.take_over.begin(&mut kept.rig.shard, &request);
    kept.take_over.handled(&kept.rig.shard);
    kept.end_turn();
    kept.take_over.panicked(None);
    let answers = kept.take_over.answers(&kept.rig.shard);
    let [ShardEffect::Answer { to: CALLER, reply: Err(problem), .. }] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(problem.status, 500);
    kept.take_over.note_answers(answers.iter());
    assert!(kept.take_over.answers(&kept.rig.shard).is_empty(), "once");
    let [ShardInput::N2(N2Input::GnbUp { gnb: GnbHandle(4), .. })] = &kept.take_over.connections()[..] else {
        panic!()
    };
}

#[test]
fn requests_of_the_turn_are_delivered_again() {
    let mut kept = Kept::new();
    let request = GetThreeGppRegistration { ue_id: supi() }.into();
    let request = ShardInput::Request { from: CALLER, nf: Nf::Udm, request };
    kept.take_over.begin(&mut kept.rig.shard, &request);
    kept.take_over.panicked(None);
    assert!(kept.take_over.answers(&kept.rig.shard).is_empty());
    let again = kept.take_over.next(&mut kept.rig.shard);
    assert!(matches!(again, Some(ShardInput::Request { from: CALLER, nf: Nf::Udm, .. })), "{again:?}");
    kept.take_over.panicked(None);
    assert_eq!(kept.take_over.answers(&kept.rig.shard).len(), 1, "not for the third time");
    assert!(kept.take_over.next(&mut kept.rig.shard).is_none());
}

/// A late reply to a call of the run that panicked must not be taken for one to a call of this run.
#[test]
fn replies_to_a_former_run_are_for_no_call_of_this_one() {
    let mut rig = Rig::new(&[], |_| {});
    rig.shard.add_for_test(Nf::Amf, Box::new(Requesting));
    let timer = || ShardInput::Timer { nf: Nf::Amf, key: TimerKey { owner: 0, timer: Timer::T3513 } };
    let former = rig.handle(timer());
    let (former, ..) = search(&former).expect("the NRF is asked");
    let mut next = Rig::new(&[], |_| {});
    next.shard.begin_run(1);
    next.shard.add_for_test(Nf::Amf, Box::new(Requesting));
    let asked = next.handle(timer());
    let (own, ..) = search(&asked).expect("the NRF is asked");
    assert_eq!((former.owner, former.step, former.run, own.run), (own.owner, own.step, 0, 1));
    let mut result = SearchResult::new(vec![profile_at(Nf::Smf, 10, far())]);
    result.validity_period = Some(60);
    let found = || Ok(Response::SearchResult(Box::new(result.clone())));
    assert!(http(&next.reply(Nf::Agent, former, found())).is_empty());
    let sent = next.reply(Nf::Agent, own, found());
    assert!(http(&sent).iter().any(|(.., operation)| *operation == Operation::PostSmContexts));
}

/// A block that shard 1 has passed to the shard.
fn block_input() -> ShardInput {
    let change = BlockMove { block: BlockId::new(1).unwrap(), to: owner_of(0), version: 2 };
    ShardInput::Block(Box::new(PassedBlock { change, parts: Vec::new() }))
}

fn versions(effects: &[ShardEffect]) -> Vec<u64> {
    let moved = |effect: &ShardEffect| match effect {
        ShardEffect::N2(N2Effect::Passage(Passage::Moved { change, .. })) => Some(change.version),
        _ => None,
    };
    effects.iter().filter_map(moved).collect()
}

#[test]
fn a_block_is_delivered_again_after_a_panic_of_its_new_owner() {
    for keeps in [Keeps::Nothing, Keeps::OfGnbs, Keeps::All] {
        let mut kept = Kept::new();
        kept.take_over = TakeOver::new(keeps);
        kept.take_over.begin(&mut kept.rig.shard, &block_input());
        kept.take_over.panicked(None);
        let mut next = Kept::new().rig;
        next.shard.begin_run(1);
        kept.take_over.begin_run(&mut next.shard);
        assert_eq!(next.shard.owners().owner(BlockId::new(1).unwrap()), owner_of(0), "{keeps:?}");
        let again = kept.take_over.next(&mut next.shard).expect("the block");
        assert_eq!(versions(&next.handle(again)), [2], "{keeps:?}: the gateways learn it");
        kept.take_over.handled(&next.shard);
        kept.take_over.end_turn(&mut next.shard);
        kept.take_over.panicked(None);
        assert!(kept.take_over.next(&mut next.shard).is_none(), "{keeps:?}: its effects have left");
    }
}

#[test]
fn a_block_that_panics_twice_is_announced_with_the_contexts_of_the_store() {
    let mut kept = Kept::new();
    kept.take_over.begin(&mut kept.rig.shard, &block_input());
    kept.take_over.panicked(None);
    assert!(kept.take_over.next(&mut kept.rig.shard).is_some());
    kept.take_over.panicked(None);
    assert!(kept.take_over.next(&mut kept.rig.shard).is_none());
    for _ in 0..2 {
        let mut effects = Vec::new();
        let blocks = kept.take_over.unannounced();
        kept.rig.shard.finish_take_over(kept.rig.now, &blocks, &mut effects);
        assert_eq!(versions(&effects), [2], "until the effects of a turn have left");
        kept.take_over.panicked(None);
    }
    kept.end_turn();
    assert_eq!(kept.take_over.unannounced(), []);
}

#[test]
fn a_move_that_a_panic_interrupts_ends() {
    let mut kept = Kept::new();
    let change = BlockMove { block: BlockId::new(0).unwrap(), to: owner_of(1), version: 2 };
    kept.take_over.begin(&mut kept.rig.shard, &ShardInput::Move(change));
    kept.take_over.panicked(None);
    let answers = kept.take_over.answers(&kept.rig.shard);
    let [ShardEffect::MoveEnded { change: of, result: Err(MoveError::Interrupted) }] = answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(of, change);
    kept.take_over.note_answers(answers.iter());
    assert!(kept.take_over.answers(&kept.rig.shard).is_empty(), "once");
}
