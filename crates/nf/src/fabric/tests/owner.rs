//! Routing among the shards of a process.

use super::*;
use crate::kit::{Input, Outbox, Target};
use pith_sbi::namf_communication::{N1N2MessageTransfer, N1N2MessageTransferReqData};
use pith_sbi::nsmf_pdusession::{
    ResourceStatus, SmContextStatusNotification, SmContextStatusNotify, StatusInfo,
};
use pith_types::ContextId;

/// A reference to a context of a shard.
fn reference(shard: u8) -> String {
    let id = ContextId { block: testing::block(shard), number: 7 };
    References::new(&ReferenceKey::new([1; 32])).of_id(id)
}

/// An NF that calls the given operation when a timer expires, and has the contexts of no UE.
struct Probe(Option<(Target, Request)>);

impl NetworkFunction for Probe {
    fn handle(&mut self, _now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Timer(_) => {
                let (target, request) = self.0.take().expect("called once");
                out.call(Tag::new(1, 1), target, request);
            }
            Input::Request { reply, .. } => reply.answer(Response::NoContent, out),
            _ => {}
        }
    }

    fn has_context(&self, request: &Request) -> bool {
        !matches!(request, Request::N1N2MessageTransfer(_))
    }
}

/// A shard with an SMF that calls this, and an AMF.
fn shard_that_calls(shard: u16, shards: u16, target: Target, request: impl Into<Request>) -> Rig {
    let smf = Probe(Some((target, request.into())));
    let functions: Vec<(Nf, Box<dyn NetworkFunction>)> =
        vec![(Nf::Smf, Box::new(smf)), (Nf::Amf, Box::new(Probe(None)))];
    let mut config = rig_config();
    (config.shard, config.shards, config.owner) = (shard, shards, owner_of(shard as u8));
    config.owners = testing::sparse_owners(shards as u8);
    let shard = Shard::new(functions, Agent::new(config), Level::Error);
    let mut rig = Rig { shard, now: Instant::default() };
    assert!(is_ready(&rig.handle(ShardInput::Start)));
    rig
}

/// The effects of the SMF's call.
fn call(rig: &mut Rig) -> Vec<ShardEffect> {
    let key = TimerKey { owner: 0, timer: Timer::T3591 };
    rig.handle(ShardInput::Timer { nf: Nf::Smf, key })
}

fn transfer() -> N1N2MessageTransfer {
    N1N2MessageTransfer { ue_context_id: supi().into(), body: N1N2MessageTransferReqData::default() }
}

/// The shard and the number of shards that were asked, if a request is forwarded.
fn forwarded(effects: &[ShardEffect]) -> Option<(u16, u16)> {
    effects.iter().find_map(|effect| match effect {
        ShardEffect::Forward { shard, asked, nf: Nf::Amf, .. } => Some((*shard, *asked)),
        _ => None,
    })
}

#[test]
fn a_callback_is_routed_to_the_shard_that_owns_its_block() {
    let notify = |shard| {
        let uri = Uri::new(&own_root(), &format!("/namf-callback/v1/sm-context-status/{}", reference(shard)));
        let status = StatusInfo::new(ResourceStatus::Released);
        let request = SmContextStatusNotify { uri, body: SmContextStatusNotification::new(status) };
        call(&mut shard_that_calls(0, 2, Target::Root(own_root()), request))
    };
    assert!(notify(0).is_empty(), "it stays on the shard");
    let other = notify(1);
    assert!(
        matches!(
            &other[..],
            [ShardEffect::ShardCall {
                shard: 1,
                nf: Nf::Amf,
                from: Caller::Shard { shard: 0, nf: Nf::Smf, .. },
                ..
            }]
        ),
        "{other:?}"
    );
}

#[test]
fn a_request_by_supi_goes_to_the_context_that_the_caller_knows() {
    let context = Uri::new(&own_root(), &format!("/namf-callback/v1/sm-context-status/{}", reference(1)));
    let effects = call(&mut shard_that_calls(0, 2, Target::Context(context), transfer()));
    assert!(matches!(effects[..], [ShardEffect::ShardCall { shard: 1, nf: Nf::Amf, .. }]), "{effects:?}");
}

#[test]
fn a_request_by_supi_passes_all_shards_and_the_last_one_answers() {
    let mut first = shard_that_calls(1, 3, Target::Root(own_root()), transfer());
    let effects = call(&mut first);
    assert_eq!(forwarded(&effects), Some((2, 1)), "{effects:?}");
    let [ShardEffect::Forward { from, .. }] = effects[..] else { panic!("{effects:?}") };
    assert!(matches!(from, Caller::Shard { shard: 1, nf: Nf::Smf, .. }), "the answer returns to the caller");
    let forward = |shard, asked| {
        let mut rig = shard_that_calls(shard, 3, Target::Root(own_root()), transfer());
        rig.handle(ShardInput::Forwarded { from, nf: Nf::Amf, request: transfer().into(), asked })
    };
    assert_eq!(forwarded(&forward(2, 1)), Some((0, 2)));
    let last = forward(0, 2);
    assert!(matches!(&last[..], [ShardEffect::Answer { to, .. }] if *to == from), "{last:?}");
}
