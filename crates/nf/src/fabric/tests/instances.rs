//! Blocks that pass between instance 1 and others of its set. The shard is shard 0 of instance 1.

use super::*;
use crate::fabric::MoveError;
use crate::kit::{
    Input, MovedConnection, N2Effect, N2Input, Outbox, Passage, PassedContext, PassedPart, SetInstances,
};
use pith_sbi::nsmf_pdusession::ReleaseSmContext;
use pith_sbi::nudm_uecm::{DeregistrationData, DeregistrationNotification, DeregistrationReason};
use pith_sbi::{ProblemMore, Uri};
use pith_types::{AmfUeNgapId, BlockId, BlockMove, ContextId, InstanceId, OwnerMap, RanUeNgapId};
use std::sync::Arc;

/// An AMF that has one connection, until the gNB has released it.
struct OneConnection {
    is_connected: bool,
    resumed: Arc<std::sync::atomic::AtomicU32>,
}

impl NetworkFunction for OneConnection {
    fn handle(&mut self, _now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Timer(_) => self.is_connected = false,
            Input::Request { reply, .. } => reply.answer(Response::NoContent, out),
            Input::Reply { .. } => out.log(Level::Error, || "reply to a context that has ended".into()),
            _ => {}
        }
    }

    fn connections_of(&self, block: BlockId) -> Vec<MovedConnection> {
        let connection = || (crate::kit::GnbHandle(7), AmfUeNgapId::new(block, 1), RanUeNgapId(1));
        (self.is_connected && block == BLOCK).then(connection).into_iter().collect()
    }

    fn make_idle(&mut self, _now: Instant, _block: BlockId, out: &mut Outbox) {
        out.log(Level::Error, || "UE CONTEXT RELEASE COMMAND".into());
    }

    fn resume_adopted(&mut self, _now: Instant, _out: &mut Outbox) {
        self.resumed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    fn pass_block(&mut self, _now: Instant, block: BlockId, _out: &mut Outbox) -> PassedPart {
        let id = ContextId { block, number: 7 };
        let context =
            PassedContext { id, key: KEY, document: crate::testing::empty_document(), stored: None };
        PassedPart { contexts: vec![context], rest: None }
    }
}

const BLOCK: BlockId = BlockId::new(5).unwrap();

/// The key of the context in the shard's table.
const KEY: u64 = 42;

const ONE: InstanceId = InstanceId(1);
const TWO: InstanceId = InstanceId(2);

fn owner(instance: InstanceId) -> BlockOwner {
    BlockOwner { instance, shard: ShardId(0) }
}

fn change(version: u64, to: InstanceId) -> BlockMove {
    BlockMove { block: BLOCK, to: owner(to), version }
}

/// A shard of instance 1, with all blocks of that owner.
fn rig(of: InstanceId, is_connected: bool) -> (Rig, Arc<std::sync::atomic::AtomicU32>) {
    let resumed = Arc::default();
    let amf = OneConnection { is_connected, resumed: Arc::clone(&resumed) };
    let functions: Vec<(Nf, Box<dyn NetworkFunction>)> = vec![(Nf::Amf, Box::new(amf))];
    let mut config = rig_config();
    (config.shard, config.shards, config.owner) = (0, 1, owner(ONE));
    config.owners = Arc::new(OwnerMap::of_instance(of, 1));
    let mut rig =
        Rig { shard: Shard::new(functions, Agent::new(config), Level::Error), now: Instant::default() };
    rig.handle(ShardInput::Start);
    (rig, resumed)
}

fn set(living: &[InstanceId]) -> ShardInput {
    let roots = [(ONE, own_root()), (TWO, far())].into();
    let living = living.iter().copied().collect();
    ShardInput::Instances(Arc::new(SetInstances {
        roots,
        living,
        is_uncertain: false,
        homes: Arc::default(),
    }))
}

fn request(exchange: u64) -> ShardInput {
    let id = ContextId { block: BLOCK, number: 7 };
    let sm_context_ref = References::new(&ReferenceKey::new([1; 32])).of_id(id);
    let request = ReleaseSmContext { sm_context_ref, body: Default::default() }.into();
    ShardInput::Request { from: Caller::Remote { exchange, client: None }, nf: Nf::Amf, request }
}

fn reply(effects: &[ShardEffect]) -> &Reply {
    let [ShardEffect::Answer { reply, .. }] = effects else { panic!("{effects:?}") };
    reply
}

#[test]
fn an_adopted_block_is_resumed_and_gateways_route_to_it() {
    let (mut rig, resumed) = rig(TWO, false);
    let effects = rig.handle(ShardInput::Adopt(vec![change(9, ONE)]));
    assert_eq!(resumed.load(std::sync::atomic::Ordering::Relaxed), 1);
    assert_eq!(rig.shard.owners().owner(BLOCK), owner(ONE));
    let moved = Passage::Moved { change: change(9, ONE), has: Vec::new() };
    let is_told = |it: &ShardEffect| matches!(it, ShardEffect::N2(N2Effect::Passage(it)) if *it == moved);
    assert!(effects.iter().any(is_told), "{effects:?}");
    assert!(matches!(effects.last(), Some(ShardEffect::OwnersChanged(it)) if *it == change(9, ONE)));
}

#[test]
fn a_block_is_released_when_its_ues_are_idle() {
    let (mut rig, _) = rig(ONE, true);
    rig.handle(ShardInput::Move(change(2, TWO)));
    let mut effects = Vec::new();
    rig.shard.complete_move(rig.now, &mut effects);
    assert!(matches!(effects[..], [ShardEffect::Event { .. }]), "the gNB is to release the UE: {effects:?}");
    rig.handle(ShardInput::Timer { nf: Nf::Amf, key: TimerKey { owner: 0, timer: Timer::T3550 } });
    effects.clear();
    rig.shard.complete_move(rig.now, &mut effects);
    let hold = Passage::Hold { block: BLOCK, shard: ShardId(0) };
    assert!(matches!(&effects[..], [ShardEffect::N2(N2Effect::Passage(it))] if *it == hold), "{effects:?}");
    rig.handle(ShardInput::N2(N2Input::Held { block: BLOCK }));
    effects.clear();
    rig.shard.complete_move(rig.now, &mut effects);
    let released = effects.iter().any(|it| matches!(it, ShardEffect::Released(it) if *it == change(2, TWO)));
    assert!(released, "{effects:?}");
    let ended = |it: &ShardEffect| matches!(it, ShardEffect::MoveEnded { result: Ok(()), .. });
    assert!(effects.iter().any(ended));
    assert_eq!(rig.shard.owners().owner(BLOCK), owner(TWO));
}

/// It may be all that knows a resource that was created.
#[test]
fn a_reply_for_a_context_that_another_instance_has_is_handled() {
    for is_of_former_run in [false, true] {
        let (mut rig, _) = rig(ONE, false);
        rig.handle(ShardInput::Move(change(2, TWO)));
        rig.shard.complete_move(rig.now, &mut Vec::new());
        rig.handle(ShardInput::N2(N2Input::Held { block: BLOCK }));
        rig.shard.complete_move(rig.now, &mut Vec::new());
        assert_eq!(rig.shard.owners().owner(BLOCK), owner(TWO));
        if is_of_former_run {
            rig.shard.begin_run(1);
        }
        let effects = rig.reply(Nf::Amf, Tag::new(KEY, 3), Ok(Response::NoContent));
        assert!(matches!(effects[..], [ShardEffect::Event { .. }]), "{effects:?}");
    }
}

#[test]
fn a_block_whose_ue_stays_connected_is_not_released() {
    let (mut rig, _) = rig(ONE, true);
    rig.handle(ShardInput::Move(change(2, TWO)));
    let key = TimerKey { owner: 2, timer: Timer::BlockMove };
    let effects = rig.handle(ShardInput::Timer { nf: Nf::Agent, key });
    let is_busy =
        |it: &ShardEffect| matches!(it, ShardEffect::MoveEnded { result: Err(MoveError::Busy), .. });
    assert!(effects.iter().any(is_busy), "{effects:?}");
    assert_eq!(rig.shard.owners().owner(BLOCK), owner(ONE));
}

#[test]
fn a_request_for_a_block_of_another_instance_is_redirected_to_it() {
    let (mut rig, _) = rig(TWO, false);
    assert!(reply(&rig.handle(request(1))).is_ok(), "without a set");
    rig.handle(set(&[ONE, TWO]));
    let effects = rig.handle(request(2));
    let problem = reply(&effects).as_ref().unwrap_err();
    assert_eq!(problem.status, 307);
    let Some(ProblemMore::Redirect(Uri { root, path })) = &problem.more else { panic!("{problem:?}") };
    assert_eq!(*root, far());
    assert!(path.starts_with("/nsmf-pdusession/v1/sm-contexts/5"), "{path}");
    rig.handle(set(&[ONE]));
    assert_eq!(reply(&rig.handle(request(3))).as_ref().unwrap_err().status, 503, "until it is taken over");
    rig.handle(ShardInput::Adopt(vec![change(9, ONE)]));
    assert!(reply(&rig.handle(request(4))).is_ok());
}

/// A context that an instance had which is gone names that instance's apiRoot.
#[test]
fn calls_to_an_instance_that_is_gone_are_for_the_owner_of_the_block() {
    let (mut rig, _) = rig(ONE, false);
    let id = ContextId { block: BLOCK, number: 7 };
    let sm_context_ref = References::new(&ReferenceKey::new([1; 32])).of_id(id);
    let call = |target| crate::fabric::agent::Call {
        nf: Nf::Amf,
        tag: Tag::new(1, 1),
        target,
        request: ReleaseSmContext { sm_context_ref: sm_context_ref.clone(), body: Default::default() }.into(),
    };
    let route = |rig: &mut Rig| rig.shard.agent.route(Instant::default(), &call(Target::Root(far())));
    assert_eq!(route(&mut rig), Ok(crate::fabric::agent::Route::Http(far())));
    rig.handle(set(&[ONE]));
    assert_eq!(route(&mut rig), Ok(crate::fabric::agent::Route::Local(Nf::Smf)));
}

/// Notifies an AMF when a timer expires, and records the status of the answer.
struct Notifying(Request, Arc<std::sync::atomic::AtomicU16>);

impl NetworkFunction for Notifying {
    fn handle(&mut self, _now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Timer(_) => out.call(Tag::new(1, 1), Target::Root(far()), self.0.clone()),
            Input::Reply { reply: Err(problem), .. } => {
                self.1.store(problem.status, std::sync::atomic::Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

fn deregistration_notification() -> Request {
    let body = DeregistrationData::new(DeregistrationReason::UeInitialRegistration);
    let uri = Uri::new(&far(), "/namf-callback/v1/dereg-notify/1");
    DeregistrationNotification { uri, body }.into()
}

fn other_amf() -> Arc<ApiRoot> {
    Arc::new(ApiRoot::new(Scheme::Http, "10.0.0.8:80"))
}

const AMF_SET: &str = "set001.region02.amfset.5gc.mnc070.mcc999";

/// An AMF does not answer a notification; the NRF returns these AMFs with their sets, and they do not answer either. The calls that follow.
fn calls_after_the_loss_of_an_amf(
    notification: Request,
    found: &[(Arc<ApiRoot>, &[&str])],
) -> Vec<Arc<ApiRoot>> {
    let (calls, status) = after_the_loss_of_an_amf(notification, found, &Problem::timed_out());
    assert_eq!(status, 504, "the AMF has said nothing");
    calls
}

/// As [`calls_after_the_loss_of_an_amf`], with the answer of the AMFs that the NRF returns; and the status that the UDM gets.
fn after_the_loss_of_an_amf(
    notification: Request,
    found: &[(Arc<ApiRoot>, &[&str])],
    answer: &Problem,
) -> (Vec<Arc<ApiRoot>>, u16) {
    let operation = notification.operation();
    let status = Arc::default();
    let udm = Notifying(notification, Arc::clone(&status));
    let functions: Vec<(Nf, Box<dyn NetworkFunction>)> = vec![(Nf::Udm, Box::new(udm))];
    let agent = Agent::new(rig_config());
    let mut rig = Rig { shard: Shard::new(functions, agent, Level::Error), now: Instant::default() };
    let key = TimerKey { owner: 0, timer: Timer::T3550 };
    let effects = rig.handle(ShardInput::Timer { nf: Nf::Udm, key });
    let (tag, root, _) = http(&effects)[0];
    assert_eq!(*root, *far());
    let effects = rig.reply(Nf::Udm, tag, Err(Problem::timed_out().into()));
    let (tag, ..) = search(&effects).expect("the NRF is asked for AMFs");
    let profile_of = |(number, (root, sets)): (u128, &(Arc<ApiRoot>, &[&str]))| {
        let mut profile = profile_at(Nf::Amf, number, Arc::clone(root));
        profile.nf_set_id_list = sets.iter().map(|set| Arc::from(*set)).collect();
        profile
    };
    let profiles: Vec<_> = (10..).zip(found).map(profile_of).collect();
    let found = Response::SearchResult(Box::new(SearchResult::new(profiles)));
    let mut roots = Vec::new();
    let mut effects = rig.reply(Nf::Agent, tag, Ok(found));
    while let Some((tag, root)) = http(&effects)
        .into_iter()
        .find(|(.., of_call)| *of_call == operation)
        .map(|(tag, root, _)| (tag, Arc::new(root.clone())))
    {
        roots.push(root);
        effects = rig.reply(Nf::Udm, tag, Err(answer.clone().into()));
        assert!(search(&effects).is_none(), "the NRF is asked once");
    }
    (roots, status.load(std::sync::atomic::Ordering::Relaxed))
}

#[test]
fn a_notification_is_sent_to_another_member_of_the_set_of_an_amf_that_is_gone() {
    let calls = |sets| {
        let found = [(far(), sets), (other_amf(), sets)];
        calls_after_the_loss_of_an_amf(deregistration_notification(), &found)
    };
    assert_eq!(calls(&[AMF_SET]), [other_amf()], "once");
    assert_eq!(calls(&[]), [far()], "an AMF that is in no set has no substitute");
}

/// Not as a notification that the AMF has refused, which would not be repeated.
#[test]
fn a_notification_for_an_amf_that_the_nrf_does_not_return_either_is_not_answered() {
    assert!(calls_after_the_loss_of_an_amf(deregistration_notification(), &[]).is_empty());
}

/// The AMF may have been deleted from the NRF.
#[test]
fn a_notification_is_sent_to_an_amf_of_any_set_if_that_of_the_one_that_is_gone_is_not_known() {
    let found: [(Arc<ApiRoot>, &[&str]); 1] = [(other_amf(), &[AMF_SET])];
    assert_eq!(calls_after_the_loss_of_an_amf(deregistration_notification(), &found), [other_amf()]);
}

/// The members of a set share their contexts (TS 23.501 5.21.2). After the 404 of another AMF the UDM would end the subscription of one that may
/// return.
#[test]
fn only_an_amf_that_is_known_to_be_of_the_set_knows_that_a_context_has_ended() {
    let of_set: &[&str] = &[AMF_SET];
    let of_any_set = vec![(other_amf(), of_set)];
    let of_its_set = vec![(far(), of_set), (other_amf(), of_set)];
    for (found, expected) in [(of_any_set, 504), (of_its_set, 404)] {
        let answer = Problem::context_not_found();
        let (calls, status) = after_the_loss_of_an_amf(deregistration_notification(), &found, &answer);
        assert_eq!((calls, status), (vec![other_amf()], expected));
    }
}

#[test]
fn the_profile_of_an_nf_in_a_set_names_the_set() {
    let set_of = |nf, is_in_set| {
        let guami = pith_types::Guami { plmn_id: plmn(), amf_id: "020040".parse().unwrap() };
        let (guamis, plmns) = (vec![guami], vec![plmn()]);
        let config = ProfileConfig { guamis, plmns, is_in_set, ..ProfileConfig::default() };
        profile(nf, &testing::identity(), &config).nf_set_id_list
    };
    let (mcc, mnc) = (plmn().mcc(), plmn().mnc());
    let amf = format!("set001.region02.amfset.5gc.mnc{mnc:0>3}.mcc{mcc}");
    assert_eq!(set_of(Nf::Amf, true), [amf.into()]);
    assert_eq!(set_of(Nf::Smf, true), [format!("set001.smfset.5gc.mnc{mnc:0>3}.mcc{mcc}").into()]);
    assert!(set_of(Nf::Amf, false).is_empty());
}
