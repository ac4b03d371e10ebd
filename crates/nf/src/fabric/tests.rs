//! Routing of SBI calls: registration, discovery, bindings. The tests act as the NRF, except for
//! the last ones.

mod instances;
mod owner;
mod passage;
mod sessions_of_others;
mod take_over;

use super::*;
use crate::kit::{
    Caller, Duration, Identity, Input, Instant, Level, NetworkFunction, Nf, Outbox, ReferenceKey, References,
    Rng, StoreRequest, StoreResponse, Tag, Target, Timer, TimerKey,
};
use crate::nrf::{Nrf, NrfConfig};
use crate::testing::{self, CALLER, instance, plmn, supi};
use crate::udm::{Udm, UdmConfig};
use crate::udr::Udr;
use pith_sbi::common::{DateTime, PlmnIdNid, ServingPlmnId};
use pith_sbi::nnrf_accesstoken::{AccessTokenErrorCode, AccessTokenRsp, refused};
use pith_sbi::nnrf_nfdiscovery::SearchResult;
use pith_sbi::nnrf_nfmanagement::{
    NfProfile, NfStatusNotify, NotificationData, NotificationEventType, SubscriptionData,
};
use pith_sbi::nsmf_pdusession::{PostSmContexts, SmContextCreateData};
use pith_sbi::nudm_uecm::GetThreeGppRegistration;
use pith_sbi::nudr_dr::QueryAmData;
use pith_sbi::{ApiRoot, Cause, Created, Operation, Problem, Reply, Request, Response, Scheme, Uri};
use pith_types::{BlockOwner, InstanceId, ShardId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// This process.
fn own_root() -> Arc<ApiRoot> {
    Arc::new(ApiRoot::new(Scheme::Http, "127.0.0.1:7000"))
}

fn far() -> Arc<ApiRoot> {
    Arc::new(ApiRoot::new(Scheme::Http, "10.0.0.9:80"))
}

fn nrf_root() -> Arc<ApiRoot> {
    Arc::new(ApiRoot::new(Scheme::Http, "10.0.0.1:80"))
}

fn profile_at(nf: Nf, number: u128, api_root: Arc<ApiRoot>) -> NfProfile {
    let identity = Identity { instance_id: instance(number), api_root, ..testing::identity() };
    profile(nf, &identity, &ProfileConfig::default())
}

fn function(nf: Nf) -> Box<dyn NetworkFunction> {
    let identity = testing::identity();
    match nf {
        Nf::Nrf => Box::new(Nrf::new(own_root(), NrfConfig::default())),
        Nf::Udr => Box::new(Udr::new(own_root())),
        _ => {
            let config = UdmConfig { identity, plmn: plmn(), home_network_keys: vec![] };
            Box::new(Udm::new(config, Rng::from_number(1)))
        }
    }
}

fn owner_of(shard: u8) -> BlockOwner {
    BlockOwner { instance: InstanceId(0), shard: ShardId(shard) }
}

/// The configuration of the first of two shards.
fn rig_config() -> AgentConfig {
    AgentConfig {
        shard: 0,
        shards: 2,
        owner: owner_of(0),
        owners: testing::sparse_owners(2),
        own_root: own_root(),
        hosted: Vec::new(),
        nrf: nrf_root(),
        fixed: BTreeMap::new(),
        forced_http: BTreeSet::new(),
        protected: BTreeSet::new(),
        references: References::new(&ReferenceKey::new([1; 32])),
    }
}

/// A shard that hosts given NFs, and its effects.
struct Rig {
    shard: Shard,
    now: Instant,
}

impl Rig {
    fn new(hosted: &[Nf], change: impl FnOnce(&mut AgentConfig)) -> Self {
        let registered =
            hosted.iter().zip(1..).map(|(nf, n)| Hosted { nf: *nf, profile: profile_at(*nf, n, own_root()) });
        let mut config = AgentConfig { hosted: registered.collect(), ..rig_config() };
        change(&mut config);
        let functions = hosted.iter().map(|nf| (*nf, function(*nf))).collect();
        Self { shard: Shard::new(functions, Agent::new(config), Level::Error), now: Instant::default() }
    }

    fn handle(&mut self, input: ShardInput) -> Vec<ShardEffect> {
        let mut effects = Vec::new();
        self.shard.handle(self.now, input, &mut effects);
        effects
    }

    fn reply(&mut self, nf: Nf, tag: Tag, reply: Reply) -> Vec<ShardEffect> {
        self.handle(ShardInput::Reply { nf, tag, from: None, reply })
    }

    /// Sends the UDM a request that needs the UDR.
    fn ask(&mut self) -> Vec<ShardEffect> {
        let request = GetThreeGppRegistration { ue_id: supi() }.into();
        self.handle(ShardInput::Request { from: CALLER, nf: Nf::Udm, request })
    }

    /// Sends the request, and answers the discovery with UDRs at those roots.
    fn ask_and_find(&mut self, roots: &[Arc<ApiRoot>], validity_s: u32) -> Vec<ShardEffect> {
        let asked = self.ask();
        let (tag, ..) = search(&asked).expect("the NRF is asked");
        self.reply(Nf::Agent, tag, found(roots, validity_s))
    }

    /// Expires the agent's timer.
    fn heart_beat_timer(&mut self) -> Vec<ShardEffect> {
        let key = TimerKey { owner: 0, timer: Timer::NrfHeartBeat };
        self.handle(ShardInput::Timer { nf: Nf::Agent, key })
    }
}

fn found(roots: &[Arc<ApiRoot>], validity_s: u32) -> Reply {
    let profiles = roots.iter().zip(10..).map(|(root, n)| profile_at(Nf::Udr, n, Arc::clone(root)));
    let mut result = SearchResult::new(profiles.collect::<Vec<_>>());
    result.validity_period = Some(validity_s);
    Ok(Response::SearchResult(Box::new(result)))
}

/// Calls over HTTP/2: tag, destination, operation.
fn http(effects: &[ShardEffect]) -> Vec<(Tag, &ApiRoot, Operation)> {
    let calls = effects.iter().filter_map(|effect| match effect {
        ShardEffect::HttpCall { tag, root, request, .. } => Some((*tag, &**root, request.operation())),
        _ => None,
    });
    calls.collect()
}

fn search(effects: &[ShardEffect]) -> Option<(Tag, &ApiRoot, Operation)> {
    http(effects).into_iter().find(|(.., operation)| *operation == Operation::SearchNfInstances)
}

/// Requests an SM context when a timer expires, and logs the instance to which the request goes.
struct Requesting;

impl NetworkFunction for Requesting {
    fn handle(&mut self, _now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Timer(_) => {
                let callback = Uri::new(&own_root(), "/namf-callback/v1/x");
                let access = pith_sbi::common::AccessType::ThreeGppAccess;
                let body = SmContextCreateData::new(instance(1), PlmnIdNid::from(plmn()), access, callback);
                out.call(Tag::new(7, 3), Target::any(), PostSmContexts { body }.into());
            }
            Input::Routed { tag, instance } => {
                out.log(Level::Error, || format!("{} {} {instance}", tag.owner, tag.step));
            }
            _ => {}
        }
    }
}

/// The AMF learns the SMF's instance when the request is sent, not from the first message that claims to be the SMF's.
#[test]
fn an_amf_is_informed_of_the_smf_to_which_its_request_goes() {
    let mut rig = Rig::new(&[], |_| {});
    rig.shard.add_for_test(Nf::Amf, Box::new(Requesting));
    let key = TimerKey { owner: 0, timer: Timer::T3513 };
    let asked = rig.handle(ShardInput::Timer { nf: Nf::Amf, key });
    let (tag, ..) = search(&asked).expect("the NRF is asked");
    let mut result = SearchResult::new(vec![profile_at(Nf::Smf, 10, far())]);
    result.validity_period = Some(60);
    let sent = rig.reply(Nf::Agent, tag, Ok(Response::SearchResult(Box::new(result))));
    assert!(http(&sent).iter().any(|(.., operation)| *operation == Operation::PostSmContexts));
    let logged = sent.iter().filter_map(|effect| match effect {
        ShardEffect::Event { event, .. } => Some(event.text.clone()),
        _ => None,
    });
    assert_eq!(logged.collect::<Vec<_>>(), [format!("7 3 {}", instance(10))]);
}

/// Destinations of calls to the UDR over HTTP/2.
fn udr_calls(effects: &[ShardEffect]) -> Vec<&ApiRoot> {
    let query = |operation| operation == Operation::QueryAmfContextThreeGpp;
    http(effects).into_iter().filter(|(.., o)| query(*o)).map(|(_, root, _)| root).collect()
}

/// The duration of the timer that was started.
fn timer(effects: &[ShardEffect]) -> Option<Duration> {
    effects.iter().find_map(|effect| match effect {
        ShardEffect::StartTimer { after, .. } => Some(*after),
        _ => None,
    })
}

fn answer(effects: &[ShardEffect]) -> Option<&Reply> {
    effects.iter().find_map(|effect| match effect {
        ShardEffect::Answer { to, reply, .. } if *to == CALLER => Some(reply),
        _ => None,
    })
}

fn is_ready(effects: &[ShardEffect]) -> bool {
    effects.iter().any(|effect| matches!(effect, ShardEffect::Ready))
}

fn registered(heart_beat_s: u32) -> Reply {
    let mut body = profile_at(Nf::Udm, 1, own_root());
    body.heart_beat_timer = Some(heart_beat_s);
    let location = Uri::new(&nrf_root(), "/nnrf-nfm/v1/nf-instances/1");
    Ok(Response::NfProfileCreated(Box::new(Created { location, body })))
}

/// A shard with a UDM that is registered.
fn registered_udm() -> Rig {
    let mut rig = Rig::new(&[Nf::Udm], |_| {});
    let started = rig.handle(ShardInput::Start);
    let effects = rig.reply(Nf::Agent, http(&started)[0].0, registered(5));
    assert!(is_ready(&effects));
    assert_eq!(timer(&effects), Some(Duration::from_secs(5)), "as often as the NRF wants");
    rig
}

#[test]
fn a_shard_registers_and_is_ready_when_the_nrf_has_answered() {
    let mut rig = Rig::new(&[Nf::Udm], |_| {});
    let started = rig.handle(ShardInput::Start);
    assert!(matches!(http(&started)[..], [(_, root, Operation::RegisterNfInstance)] if *root == *nrf_root()));
    assert!(!is_ready(&started) && !rig.shard.is_ready());
    registered_udm();
}

#[test]
fn registration_is_tried_again_until_the_nrf_answers() {
    let mut rig = Rig::new(&[Nf::Udm], |_| {});
    let mut effects = rig.handle(ShardInput::Start);
    for delay in [200, 400, 800, 1600, 2000, 2000] {
        effects = rig.reply(Nf::Agent, http(&effects)[0].0, Err(Problem::timed_out().into()));
        assert_eq!(timer(&effects), Some(Duration::from_millis(delay)));
        assert!(!is_ready(&effects));
        effects = rig.heart_beat_timer();
        assert_eq!(http(&effects)[0].2, Operation::RegisterNfInstance);
    }
    assert!(is_ready(&rig.reply(Nf::Agent, http(&effects)[0].0, registered(5))));
}

#[test]
fn an_instance_sends_heart_beats_and_registers_again_if_unknown() {
    let mut rig = registered_udm();
    let beat = rig.heart_beat_timer();
    assert_eq!(http(&beat)[0].2, Operation::UpdateNfInstance);
    let effects = rig.reply(Nf::Agent, http(&beat)[0].0, Ok(Response::NoContent));
    assert_eq!(timer(&effects), Some(Duration::from_secs(5)));
    let beat = rig.heart_beat_timer();
    let effects = rig.reply(Nf::Agent, http(&beat)[0].0, Err(Problem::of_status(404).into()));
    assert_eq!(http(&effects)[0].2, Operation::RegisterNfInstance);
}

/// The authority of the NRF.
fn connection_lost() -> ShardInput {
    ShardInput::ConnectionLost { authority: nrf_root().authority.clone() }
}

#[test]
fn an_nrf_that_restarts_has_the_instance_back_at_once() {
    let mut rig = registered_udm();
    let lost = ShardInput::ConnectionLost { authority: far().authority.clone() };
    assert_eq!(timer(&rig.handle(lost)), None, "of another NF");
    assert_eq!(timer(&rig.handle(connection_lost())), Some(Duration::from_millis(200)));
    for delay in [200, 400, 800] {
        let beat = rig.heart_beat_timer();
        assert_eq!(http(&beat)[0].2, Operation::UpdateNfInstance);
        let effects = rig.reply(Nf::Agent, http(&beat)[0].0, Err(Problem::not_reachable("down").into()));
        assert_eq!(timer(&effects), Some(Duration::from_millis(delay)), "not only at the next heart-beat");
    }
    let beat = rig.heart_beat_timer();
    let effects = rig.reply(Nf::Agent, http(&beat)[0].0, Err(Problem::of_status(404).into()));
    assert_eq!(http(&effects)[0].2, Operation::RegisterNfInstance);
    let effects = rig.reply(Nf::Agent, http(&effects)[0].0, registered(5));
    assert_eq!(timer(&effects), Some(Duration::from_secs(5)));
}

#[test]
fn subscriptions_that_the_nrf_lost_are_made_again() {
    let mut rig = registered_udm();
    let effects = rig.ask_and_find(&[far()], 60);
    let tag = call_of(&effects, Operation::CreateSubscription).expect("a subscription");
    rig.reply(Nf::Agent, tag, subscribed(600));
    let beat = rig.heart_beat_timer();
    let effects = rig.reply(Nf::Agent, http(&beat)[0].0, Err(Problem::of_status(404).into()));
    assert!(call_of(&effects, Operation::CreateSubscription).is_some());
}

#[test]
fn a_shard_that_stops_deregisters() {
    let mut rig = registered_udm();
    let effects = rig.handle(ShardInput::Stop);
    assert_eq!(http(&effects)[0].2, Operation::DeregisterNfInstance);
    assert!(effects.iter().any(|effect| matches!(effect, ShardEffect::StopTimer { .. })));
}

#[test]
fn calls_share_one_discovery_and_its_result_is_reused() {
    let mut rig = Rig::new(&[Nf::Udm], |_| {});
    let first = rig.ask();
    let (tag, ..) = search(&first).expect("the first asks the NRF");
    assert!(rig.ask().is_empty(), "the second waits for the same answer");
    let effects = rig.reply(Nf::Agent, tag, found(&[far()], 60));
    assert_eq!(udr_calls(&effects), [&*far(), &*far()]);
    let third = rig.ask();
    assert_eq!((udr_calls(&third), search(&third)), (vec![&*far()], None));
}

#[test]
fn a_discovery_result_is_used_for_its_validity_period() {
    let mut rig = Rig::new(&[Nf::Udm], |_| {});
    rig.ask_and_find(&[far()], 60);
    rig.now = rig.now + Duration::from_secs(60);
    assert!(search(&rig.ask()).is_some());
}

#[test]
fn calls_are_sent_even_if_the_discovery_result_may_not_be_stored() {
    let mut rig = Rig::new(&[Nf::Udm], |_| {});
    let effects = rig.ask_and_find(&[far()], 0);
    assert_eq!((udr_calls(&effects), search(&effects)), (vec![&*far()], None));
}

#[test]
fn a_notification_of_the_nrf_invalidates_a_result() {
    let mut rig = Rig::new(&[Nf::Udm], |_| {});
    let effects = rig.ask_and_find(&[far()], 60);
    let subscribed = http(&effects).iter().any(|(.., o)| *o == Operation::CreateSubscription);
    assert!(subscribed, "the agent has itself told of changes");
    let at = Uri::new(&nrf_root(), "/nnrf-nfm/v1/nf-instances/10");
    let body = NotificationData::new(NotificationEventType::NfDeregistered, at);
    let mut notify = |path: &str| {
        let request = NfStatusNotify { uri: Uri::new(&own_root(), path), body: body.clone() }.into();
        let told = rig.handle(ShardInput::Request { from: CALLER, nf: Nf::Agent, request });
        answer(&told).expect("an answer").clone()
    };
    let guessed = notify("/nudm-callback/v1/nf-status/UDR").unwrap_err();
    assert_eq!(guessed.status, 404, "nobody was given that URI");
    let reference = References::new(&ReferenceKey::new([1; 32])).of_name("000000000-UDR");
    let told = notify(&format!("/nudm-callback/v1/nf-status/{reference}"));
    assert_eq!(told, Ok(Response::NoContent));
    assert!(search(&rig.ask()).is_some());
}

/// The tag of the first call of that operation.
fn call_of(effects: &[ShardEffect], wanted: Operation) -> Option<Tag> {
    http(effects).into_iter().find(|(.., operation)| *operation == wanted).map(|(tag, ..)| tag)
}

/// The NRF's reply to the agent's subscription. `end_s`: its validity, in seconds after the start.
fn subscribed(end_s: i64) -> Reply {
    let callback = Uri::new(&own_root(), "/nudm-callback/v1/nf-status/UDR");
    let mut body = SubscriptionData::new(callback);
    body.subscription_id = Some("7".into());
    body.validity_time = Some(DateTime::from_unix_ms(end_s * 1000));
    let location = Uri::new(&nrf_root(), "/nnrf-nfm/v1/subscriptions/7");
    Ok(Response::SubscriptionDataCreated(Box::new(Created { location, body })))
}

#[test]
fn a_subscription_is_renewed_before_its_end_and_recreated_after_it() {
    let mut rig = Rig::new(&[Nf::Udm], |_| {});
    let effects = rig.ask_and_find(&[far()], 60);
    let tag = call_of(&effects, Operation::CreateSubscription).expect("a subscription");
    rig.reply(Nf::Agent, tag, subscribed(600));
    rig.now = rig.now + Duration::from_secs(300);
    let effects = rig.ask_and_find(&[far()], 60);
    assert_eq!(call_of(&effects, Operation::UpdateSubscription), None, "it stands for long");
    rig.now = rig.now + Duration::from_secs(200);
    let effects = rig.ask_and_find(&[far()], 60);
    let tag = call_of(&effects, Operation::UpdateSubscription).expect("a renewal");
    rig.reply(Nf::Agent, tag, Ok(Response::NoContent));
    rig.now = rig.now + Duration::from_secs(200);
    let effects = rig.ask_and_find(&[far()], 60);
    assert_eq!(call_of(&effects, Operation::UpdateSubscription), None, "it was renewed");
    rig.now = rig.now + Duration::from_secs(600);
    let effects = rig.ask_and_find(&[far()], 60);
    let tag = call_of(&effects, Operation::UpdateSubscription).expect("a renewal");
    rig.reply(Nf::Agent, tag, Err(Problem::of_status(404).into()));
    rig.now = rig.now + Duration::from_secs(60);
    let effects = rig.ask_and_find(&[far()], 60);
    assert!(call_of(&effects, Operation::CreateSubscription).is_some(), "the NRF had forgotten it");
}

#[test]
fn a_shard_that_stops_unsubscribes() {
    let mut rig = Rig::new(&[Nf::Udm], |_| {});
    let effects = rig.ask_and_find(&[far()], 60);
    let tag = call_of(&effects, Operation::CreateSubscription).expect("a subscription");
    rig.reply(Nf::Agent, tag, subscribed(600));
    let stopped = rig.handle(ShardInput::Stop);
    assert!(call_of(&stopped, Operation::RemoveSubscription).is_some());
}

#[test]
fn without_an_instance_a_call_fails_and_the_next_queries_again() {
    let mut rig = Rig::new(&[Nf::Udm], |_| {});
    let effects = rig.ask_and_find(&[], 60);
    let Some(Err(problem)) = answer(&effects) else { panic!("{effects:?}") };
    assert_eq!(problem.cause(), Some(&Cause::NfDiscoveryFailure));
    let asked = rig.ask();
    let (tag, ..) = search(&asked).unwrap();
    let effects = rig.reply(Nf::Agent, tag, Err(Problem::timed_out().into()));
    assert!(matches!(answer(&effects), Some(Err(_))), "an NRF that does not answer knows nobody");
}

#[test]
fn the_own_process_is_preferred_and_the_request_stays_on_the_shard() {
    let mut rig = Rig::new(&[Nf::Udm, Nf::Udr], |_| {});
    let effects = rig.ask_and_find(&[far(), own_root()], 60);
    assert!(effects.iter().any(|effect| matches!(effect, ShardEffect::Store { nf: Nf::Udr, .. })));
    assert!(udr_calls(&effects).is_empty());
}

#[test]
fn one_shard_registers_the_nfs_of_the_process() {
    let mut second = Rig::new(&[Nf::Udm], |config| config.shard = 1);
    let started = second.handle(ShardInput::Start);
    assert!(http(&started).is_empty() && is_ready(&started), "{started:?}");
}

#[test]
fn all_shards_renew_their_subscriptions_when_the_nrf_has_restarted() {
    let mut first = registered_udm();
    let beat = first.heart_beat_timer();
    let effects = first.reply(Nf::Agent, http(&beat)[0].0, Err(Problem::of_status(404).into()));
    assert!(effects.iter().any(|effect| matches!(effect, ShardEffect::NrfRestarted)), "{effects:?}");
    let mut second = Rig::new(&[Nf::Udm], |config| config.shard = 1);
    let effects = second.ask_and_find(&[far()], 60);
    let tag = call_of(&effects, Operation::CreateSubscription).expect("a subscription");
    second.reply(Nf::Agent, tag, subscribed(600));
    let effects = second.handle(ShardInput::NrfRestarted);
    assert!(call_of(&effects, Operation::CreateSubscription).is_some());
    assert!(!effects.iter().any(|effect| matches!(effect, ShardEffect::NrfRestarted)), "they know");
}

#[test]
fn an_nf_at_a_configured_address_is_not_discovered() {
    let mut rig = Rig::new(&[Nf::Udm], |config| {
        config.fixed.insert(Nf::Udr, far());
    });
    let effects = rig.ask();
    assert_eq!((udr_calls(&effects), search(&effects)), (vec![&*far()], None));
}

#[test]
fn a_call_carries_its_target_instance() {
    let meant = |effects: &[ShardEffect]| {
        effects.iter().find_map(|effect| match effect {
            ShardEffect::HttpCall { root, instance, .. } if **root == *far() => Some(*instance),
            _ => None,
        })
    };
    let mut rig = Rig::new(&[Nf::Udm], |_| {});
    assert_eq!(meant(&rig.ask_and_find(&[far()], 60)), Some(Some(instance(10))));
    let mut fixed = Rig::new(&[Nf::Udm], |config| {
        config.fixed.insert(Nf::Udr, far());
    });
    assert_eq!(meant(&fixed.ask()), Some(None), "the NRF was not asked");
}

#[test]
fn http_can_be_forced_even_within_a_shard() {
    let mut rig = Rig::new(&[Nf::Udm, Nf::Udr], |config| {
        config.forced_http.insert(Nf::Udr);
    });
    let effects = rig.ask_and_find(&[own_root()], 60);
    assert_eq!(udr_calls(&effects), [&*own_root()]);
}

#[test]
fn a_request_for_an_nf_that_is_not_hosted_is_refused() {
    let mut rig = Rig::new(&[Nf::Udm], |_| {});
    let request: Request = QueryAmData { ue_id: supi(), serving_plmn_id: ServingPlmnId(plmn()) }.into();
    let effects = rig.handle(ShardInput::Request { from: CALLER, nf: Nf::Udr, request });
    assert!(matches!(answer(&effects), Some(Err(problem)) if problem.status == 404));
}

#[test]
fn a_call_crosses_the_nfs_of_a_shard_without_leaving_it() {
    let mut rig = Rig::new(&[Nf::Nrf, Nf::Udr, Nf::Udm], |config| config.nrf = own_root());
    let started = rig.handle(ShardInput::Start);
    assert!(is_ready(&started), "the NRF of the shard answers at once");
    let effects = rig.ask();
    assert!(http(&effects).is_empty());
    let stored = effects.iter().find_map(|effect| match effect {
        ShardEffect::Store { tag, request, .. } => Some((*tag, request.clone())),
        _ => None,
    });
    let (tag, request) = stored.expect("UDM, NRF and UDR have done their part");
    assert!(matches!(request, StoreRequest::Document { supi: whose, .. } if whose == supi()));
    let nothing = Ok(StoreResponse::Document(None));
    let effects = rig.handle(ShardInput::Stored { nf: Nf::Udr, tag, result: nothing });
    let Some(Err(problem)) = answer(&effects) else { panic!("{effects:?}") };
    assert_eq!(problem.cause(), Some(&Cause::DataNotFound));
}

/// A shard whose UDM needs a token for the UDR.
fn with_tokens() -> Rig {
    Rig::new(&[Nf::Udm], |config| config.protected = [Nf::Udr].into())
}

fn token(text: &str) -> Reply {
    Ok(Response::AccessTokenRsp(Box::new(AccessTokenRsp {
        access_token: text.to_owned().into(),
        token_type: "Bearer".into(),
        expires_in: Some(3600),
        scope: None,
    })))
}

/// The token that is sent with a call to the UDR.
fn shown(effects: &[ShardEffect]) -> Option<&Bearer> {
    effects.iter().find_map(|effect| match effect {
        ShardEffect::HttpCall { bearer, .. } => bearer.as_ref(),
        _ => None,
    })
}

#[test]
fn a_call_waits_for_its_access_token_and_the_next_reuses_it() {
    let mut rig = with_tokens();
    let asked = rig.ask_and_find(&[far()], 60);
    assert!(udr_calls(&asked).is_empty(), "not without a token");
    let [.., (tag, root, Operation::AccessTokenRequest)] = http(&asked)[..] else { panic!("{asked:?}") };
    assert_eq!(*root, *nrf_root());
    let sent = rig.reply(Nf::Agent, tag, token("first"));
    assert_eq!(udr_calls(&sent), [&*far()]);
    assert_eq!(shown(&sent).map(|bearer| &*bearer.token), Some("first"));
    let next = rig.ask();
    assert_eq!(udr_calls(&next), [&*far()]);
    assert_eq!(shown(&next).map(|bearer| &*bearer.token), Some("first"));
}

#[test]
fn a_token_that_the_producer_refuses_is_renewed_once() {
    let mut rig = with_tokens();
    let asked = rig.ask_and_find(&[far()], 60);
    let sent = rig.reply(Nf::Agent, http(&asked).last().unwrap().0, token("first"));
    let call = |effect: &ShardEffect| match effect {
        ShardEffect::HttpCall { nf, tag, root, request, bearer: Some(bearer), .. } => {
            let (root, request) = (Arc::clone(root), Box::new(request.clone()));
            Some(ShardInput::TokenRefused { nf: *nf, tag: *tag, root, request, bearer: bearer.clone() })
        }
        _ => None,
    };
    let refused = sent.iter().find_map(call).unwrap();
    let again = rig.handle(refused);
    let [(tag, _, Operation::AccessTokenRequest)] = http(&again)[..] else { panic!("{again:?}") };
    let sent = rig.reply(Nf::Agent, tag, token("second"));
    assert_eq!(udr_calls(&sent), [&*far()]);
    let bearer = shown(&sent).unwrap();
    assert_eq!((&*bearer.token, bearer.renewed), ("second", true), "refused again, the call fails");
}

#[test]
fn a_call_for_which_the_nrf_gives_no_token_fails() {
    let mut rig = with_tokens();
    let asked = rig.ask_and_find(&[far()], 60);
    let tag = http(&asked).last().unwrap().0;
    let failed = rig.reply(Nf::Agent, tag, Err(refused(AccessTokenErrorCode::UnauthorizedClient)));
    assert!(matches!(answer(&failed), Some(Err(_))), "{failed:?}");
}

/// Not every NRF can read the scopes; without tokens it does not get them.
#[test]
fn a_profile_has_scopes_only_if_tokens_are_used() {
    let scopes = |oauth2| {
        let config = ProfileConfig { oauth2, ..ProfileConfig::default() };
        let profile = profile(Nf::Udr, &testing::identity(), &config);
        profile.services().map(|service| service.allowed_operations_per_nf_type.len()).sum::<usize>()
    };
    assert!(scopes(true) > 0);
    assert_eq!(scopes(false), 0);
}

#[test]
fn an_nrf_in_cleartext_gets_each_service_at_both_addresses() {
    let config = ProfileConfig { plain: Some("10.0.0.7:80".parse().unwrap()), ..ProfileConfig::default() };
    let api_root = Arc::new(ApiRoot::new(Scheme::Https, "10.0.0.7:7777").with_prefix("/a"));
    let profile = profile(Nf::Amf, &Identity { api_root, ..testing::identity() }, &config);
    let services = profile.services();
    let roots: Vec<_> = services.filter_map(|service| Some(service.api_root()?.to_string())).collect();
    assert_eq!(
        roots,
        ["http://10.0.0.7:80/a", "https://10.0.0.7:7777/a"],
        "as an NF without TLS may read it"
    );
}

/// They are moved several times for each input. The compiler calls `memcpy` for larger ones.
#[test]
fn inputs_and_effects_have_at_most_128_octets() {
    let sizes = [
        size_of::<super::ShardInput>(),
        size_of::<super::ShardEffect>(),
        size_of::<crate::kit::Input>(),
        size_of::<crate::kit::Effect>(),
        size_of::<super::agent::Call>(),
        size_of::<super::absent::Queued>(),
        size_of::<super::agent::Route>(),
    ];
    assert!(sizes.iter().all(|size| *size <= 128), "{sizes:?}");
}
