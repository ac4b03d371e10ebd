//! Discovery results of the NRF, kept as long as they are valid (TS 29.510 5.3.2.2).

use super::agent::Call;
use super::profile::first_service;
use super::reselection;
use crate::kit::{Duration, Instant, Nf, Selection, Target};
use foldhash::fast::FixedState;
use pith_sbi::nnrf_nfdiscovery::SearchNfInstances;
use pith_sbi::nnrf_nfmanagement::{NfProfile, NfService, UriScheme};
use pith_sbi::{ApiRoot, NfInstanceId, NfType, Reply, Request, Response, Scheme, ServiceName, Uri};
use std::collections::HashMap;
use std::sync::Arc;

/// Validity of a result if the NRF sends none.
const VALIDITY: Duration = Duration::from_secs(30);

/// Maximum number of results: bounds the memory when there are many different queries.
const LIMIT: usize = 1024;

/// A discovery query.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Query {
    /// The NF type on whose behalf the NRF is queried: producers allow NF types, not processes.
    requester: Option<NfType>,
    pub(super) nf_type: NfType,
    service: ServiceName,
    selection: Selection,
    instance: Option<NfInstanceId>,
    /// AMFs that receive registrations of other AMFs: the call goes to the callback URI in the profile.
    is_registration: bool,
}

impl Query {
    /// The query for that call; `None` for a call to an apiRoot. A notification without one is for an instance of the NF type of its URI.
    pub(super) fn of(call: &Call) -> Option<Self> {
        let (selection, instance) = match &call.target {
            Target::Service(selection) => (selection.clone(), None),
            Target::Instance(instance) => (Selection::default(), Some(*instance)),
            Target::Root(_) | Target::Context(_) => return None,
        };
        let is_registration = matches!(call.request, Request::N1MessageNotify(_));
        if call.request.target_uri().is_some() && !is_registration {
            return Self::of_consumer(call);
        }
        let service = call.request.service();
        Some(Self {
            requester: call.nf.nf_type(),
            nf_type: service.producer()?,
            service,
            selection,
            instance,
            is_registration,
        })
    }

    /// The query for the instances of the NF type that gave out the callback URI of a notification.
    pub(super) fn of_consumer(call: &Call) -> Option<Self> {
        let nf_type = call.request.target_nf()?;
        let service = first_service(Nf::of_type(&nf_type)?)?;
        Some(Self {
            requester: call.nf.nf_type(),
            nf_type,
            service,
            selection: Selection::default(),
            instance: None,
            is_registration: false,
        })
    }

    /// The name of the NF type, if it can be a consumer.
    pub(super) fn nf_type_name(&self) -> Option<&'static str> {
        reselection::consumer(&self.nf_type)
    }

    fn query(&self, requester: NfType) -> Request {
        let mut query = SearchNfInstances::new(self.nf_type.clone(), requester);
        query.service_names = Some(vec![self.service.clone()]);
        query.snssais = self.selection.snssai.map(|slice| vec![slice]);
        query.nsi_list = self.selection.slice_instance.clone().map(|instance| vec![instance]);
        query.dnn = self.selection.dnn.clone();
        query.tai = self.selection.tai;
        query.guami = self.selection.guami;
        if let Some((region, set)) = self.selection.amf_set {
            query.amf_region_id = Some(format!("{region:02x}").into());
            query.amf_set_id = Some(format!("{set:03x}").into());
        }
        query.target_nf_instance_id = self.instance;
        query.into()
    }
}

/// An instance that matches a query.
#[derive(Debug)]
struct Candidate {
    root: Arc<ApiRoot>,
    instance: Instance,
    priority: u16,
    load: u8,
    chosen: u64,
}

/// An instance that the NRF returned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instance {
    pub id: NfInstanceId,
    /// Its profile announces that it reads embedded documents.
    pub reads_embedded: bool,
}

#[derive(Debug)]
struct Answer {
    candidates: Vec<Candidate>,
    until: Instant,
}

#[derive(Debug)]
struct PendingQuery {
    question: Query,
    waiting: Vec<Call>,
}

/// A query that the NRF has answered.
pub(super) struct QueryResult {
    pub(super) question: Query,
    /// Calls held for the result.
    pub(super) waiting: Vec<Call>,
    /// The NRF found no instance, or did not answer: the calls fail.
    pub(super) not_found: bool,
}

/// Results, and calls held for pending queries.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Each call to another NF hashes its query. UEs control little of it, and `LIMIT` bounds the cost of collisions,
    /// so a fast hash is safe.
    answers: HashMap<Query, Answer, FixedState>,
    /// The instance of each NF type at an apiRoot: NFs of a process share their apiRoot, and an NF that
    /// registers the apiRoot of another must not displace it.
    instances: HashMap<(Arc<ApiRoot>, NfType), Instance>,
    asked: HashMap<u64, PendingQuery>,
    numbered: u64,
    /// The NF Sets of instances of the last result.
    sets: Vec<(Arc<ApiRoot>, Vec<Arc<str>>)>,
    /// Where AMFs receive registrations of other AMFs, by the root of that URI.
    registration_callbacks: HashMap<Arc<ApiRoot>, Uri>,
}

impl Cache {
    /// An instance of this process, if there is one; among equals the one with the best priority, then the least loaded and
    /// least used.
    pub(super) fn choose(
        &mut self,
        now: Instant,
        question: &Query,
        distance: impl Fn(&ApiRoot) -> u8,
    ) -> Option<Arc<ApiRoot>> {
        let answer = self.answers.get_mut(question)?;
        if answer.until <= now {
            self.answers.remove(question);
            return None;
        }
        let rank = |c: &&mut Candidate| (distance(&c.root), c.priority, c.load, c.chosen);
        let best = answer.candidates.iter_mut().min_by_key(rank)?;
        best.chosen += 1;
        Some(Arc::clone(&best.root))
    }

    /// The instances of a result.
    pub(super) fn known(&self, now: Instant, question: &Query) -> Vec<Arc<ApiRoot>> {
        let answer = self.answers.get(question).filter(|answer| answer.until > now);
        let roots = answer.map(|answer| answer.candidates.iter().map(|found| Arc::clone(&found.root)));
        roots.into_iter().flatten().collect()
    }

    /// The NF Sets of the instances of the last result, since the last call.
    pub(super) fn take_sets(&mut self) -> Vec<(Arc<ApiRoot>, Vec<Arc<str>>)> {
        std::mem::take(&mut self.sets)
    }

    /// Holds a call until its query is answered; returns the query unless it is pending.
    pub(super) fn ask(&mut self, question: Query, call: Call, requester: NfType) -> Option<(u64, Request)> {
        if let Some(asked) = self.asked.values_mut().find(|asked| asked.question == question) {
            asked.waiting.push(call);
            return None;
        }
        self.numbered += 1;
        let requester = question.requester.clone().unwrap_or(requester);
        let query = question.query(requester);
        self.asked.insert(self.numbered, PendingQuery { question, waiting: vec![call] });
        Some((self.numbered, query))
    }

    /// Stores a result; returns the calls held for it. `is_own`: whether an apiRoot is that of this process, or of its set.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        id: u64,
        reply: Reply,
        is_own: impl Fn(&ApiRoot) -> bool,
    ) -> Option<QueryResult> {
        let PendingQuery { question, waiting } = self.asked.remove(&id)?;
        let found = match reply {
            Ok(Response::SearchResult(result)) => {
                let validity =
                    result.validity_period.map_or(VALIDITY, |s| Duration::from_secs(s.max(1).into()));
                let of_set = |profile: &NfProfile| {
                    let root = candidate(profile, &question)?.root;
                    Some((root, profile.nf_set_id_list.clone()))
                };
                self.sets = result.nf_instances.iter().filter_map(of_set).collect();
                let is_wanted = |found: &Candidate| !(question.selection.is_other && is_own(&found.root));
                let candidates = result.nf_instances.iter().filter_map(|p| candidate(p, &question));
                let candidates = candidates.filter(is_wanted).collect();
                if question.is_registration {
                    self.note_registration_callbacks(&result.nf_instances, &question);
                }
                Answer { candidates, until: now + validity }
            }
            _ => Answer { candidates: Vec::new(), until: now },
        };
        let not_found = found.candidates.is_empty();
        if self.answers.len() >= LIMIT {
            self.answers.clear();
        }
        if self.instances.len() >= LIMIT {
            self.instances.clear();
        }
        let nf_type = &question.nf_type;
        let known =
            found.candidates.iter().map(|found| ((Arc::clone(&found.root), nf_type.clone()), found.instance));
        self.instances.extend(known);
        // The held calls look up this result next: without it they would query again, for ever.
        if !not_found {
            self.answers.insert(question.clone(), found);
        }
        Some(QueryResult { question, waiting, not_found })
    }

    /// Notes where these AMFs receive registrations of other AMFs.
    fn note_registration_callbacks(&mut self, profiles: &[NfProfile], question: &Query) {
        if self.registration_callbacks.len() >= LIMIT {
            self.registration_callbacks.clear();
        }
        let callback = |profile| registration_callback(profile, offered(profile, question)?);
        for uri in profiles.iter().filter_map(callback) {
            self.registration_callbacks.insert(Arc::clone(&uri.root), uri);
        }
    }

    /// Where the AMF with that root receives registrations of other AMFs.
    pub(super) fn registration_callback(&self, root: &Arc<ApiRoot>) -> Option<&Uri> {
        self.registration_callbacks.get(root)
    }

    /// The instance of that NF type that the NRF returned for that apiRoot.
    pub(super) fn instance_at(&self, root: &Arc<ApiRoot>, nf_type: &NfType) -> Option<Instance> {
        self.instances.get(&(Arc::clone(root), nf_type.clone())).copied()
    }

    /// Deletes results for an NF type whose instances changed.
    pub(super) fn forget(&mut self, nf_type: &NfType) {
        self.answers.retain(|question, _| question.nf_type != *nf_type);
    }

    /// Deletes all results: instances of an unknown type changed.
    pub(super) fn forget_all(&mut self) {
        self.answers.clear();
    }
}

/// The service of an instance that a query is for. An NF may offer a service in cleartext, too, for those that have nothing better.
fn offered<'a>(profile: &'a NfProfile, question: &Query) -> Option<&'a NfService> {
    let offered = profile.services().filter(|offered| offered.service_name == question.service);
    offered.min_by_key(|offered| offered.scheme != UriScheme::Https)
}

/// Where an AMF receives registrations of other AMFs. They have keys, so a callback URI in cleartext does not replace TLS, which the service
/// has; and an NF without TLS gets only services in cleartext. If the schemes differ, the callback is at the address of the service.
fn registration_callback(profile: &NfProfile, offered: &NfService) -> Option<Uri> {
    let callback = profile.registration_callback()?;
    let is_cleartext = offered.scheme == UriScheme::Http;
    if is_cleartext == (callback.root.scheme == Scheme::Http) {
        return Some(callback.clone());
    }
    Some(Uri::new(&Arc::new(offered.api_root()?), &callback.path))
}

fn candidate(profile: &NfProfile, question: &Query) -> Option<Candidate> {
    let offered = offered(profile, question)?;
    let root = if question.is_registration {
        registration_callback(profile, offered)?.root
    } else {
        Arc::new(offered.api_root()?)
    };
    Some(Candidate {
        root,
        instance: Instance { id: profile.nf_instance_id, reads_embedded: profile.reads_embedded() },
        priority: offered.priority.or(profile.priority).unwrap_or(0),
        load: offered.load.or(profile.load).unwrap_or(0),
        chosen: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::{ProfileConfig, profile};
    use crate::kit::{Identity, Nf};
    use crate::testing::{self, instance};
    use pith_sbi::nnrf_nfdiscovery::SearchResult;

    /// A handover to another AMF (TS 23.502 4.9.1.3.2 step 2) does not lead back to this process, and not to its set.
    #[test]
    fn an_instance_of_another_process_is_discovered_by_tracking_area() {
        let mut cache = Cache::default();
        let tai = pith_types::Tai { plmn_id: testing::plmn(), tac: pith_types::Tac::new(7) };
        let question = Query {
            requester: None,
            nf_type: NfType::Amf,
            service: ServiceName::NamfComm,
            selection: Selection { tai: Some(tai), is_other: true, ..Selection::default() },
            instance: None,
            is_registration: false,
        };
        let Request::SearchNfInstances(query) = question.query(NfType::Amf) else { panic!() };
        assert_eq!(query.tai, Some(tai));
        let at = |number: u128| {
            let root = ApiRoot::new(pith_sbi::Scheme::Http, &format!("192.0.2.{number}:80"));
            let (instance_id, api_root) = (instance(number), Arc::new(root));
            let identity = Identity { instance_id, api_root, ..testing::identity() };
            profile(Nf::Amf, &identity, &ProfileConfig::default())
        };
        let own = at(1).services().next().unwrap().api_root().unwrap();
        for (found, expected) in [(vec![at(1)], None), (vec![at(1), at(2)], Some("192.0.2.2:80"))] {
            cache.asked.insert(1, PendingQuery { question: question.clone(), waiting: Vec::new() });
            let reply = Ok(Response::SearchResult(Box::new(SearchResult::new(found))));
            let result = cache.answered(Instant::default(), 1, reply, |root| *root == own).unwrap();
            assert_eq!(result.not_found, expected.is_none());
            let chosen = cache.choose(Instant::default(), &question, |_| 0);
            assert_eq!(chosen.map(|root| root.authority.to_string()).as_deref(), expected);
        }
    }

    /// An NF that registers the apiRoot of another NF does not make calls to that NF fail.
    #[test]
    fn an_apiroot_has_an_instance_for_each_nf_type() {
        let (mut cache, root) = (Cache::default(), testing::root("udm"));
        let at = |nf, number| {
            let identity = Identity {
                instance_id: instance(number),
                api_root: Arc::new(ApiRoot::new(pith_sbi::Scheme::Http, "192.0.2.1:80")),
                ..testing::identity()
            };
            profile(nf, &identity, &ProfileConfig::default())
        };
        let mut learn = |nf: Nf, service: ServiceName, number| {
            let question = Query {
                requester: None,
                nf_type: nf.nf_type().unwrap(),
                service,
                selection: Selection::default(),
                instance: None,
                is_registration: false,
            };
            cache.asked.insert(1, PendingQuery { question, waiting: Vec::new() });
            let found = SearchResult::new(vec![at(nf, number)]);
            cache.answered(Instant::default(), 1, Ok(Response::SearchResult(Box::new(found))), |_| false);
        };
        learn(Nf::Udm, ServiceName::NudmSdm, 1);
        learn(Nf::Amf, ServiceName::NamfComm, 2);
        let shared = Arc::new(at(Nf::Udm, 1).services().next().unwrap().api_root().unwrap());
        assert_eq!(cache.instance_at(&shared, &NfType::Udm).map(|it| it.id), Some(instance(1)));
        assert_eq!(cache.instance_at(&shared, &NfType::Amf).map(|it| it.id), Some(instance(2)));
        assert!(cache.instance_at(&root, &NfType::Udm).is_none());
    }

    /// The callback of an AMF's default notification subscription is used with the scheme of the service that was chosen: no keys go in
    /// cleartext to an AMF with TLS, and an AMF without TLS gets none with https.
    #[test]
    fn a_registration_goes_to_the_callback_by_the_scheme_of_the_service() {
        let question = Query {
            requester: None,
            nf_type: NfType::Amf,
            service: ServiceName::NamfComm,
            selection: Selection { amf_set: Some((3, 2)), is_other: true, ..Selection::default() },
            instance: None,
            is_registration: true,
        };
        let at = |scheme| {
            let api_root = Arc::new(ApiRoot::new(scheme, "192.0.2.1:443"));
            let identity = Identity { instance_id: instance(1), api_root, ..testing::identity() };
            let plain = "192.0.2.1:80".parse().ok().filter(|_| scheme == Scheme::Https);
            profile(Nf::Amf, &identity, &ProfileConfig { plain, ..ProfileConfig::default() })
        };
        let uri_of = |profile: NfProfile| {
            let mut cache = Cache::default();
            cache.asked.insert(1, PendingQuery { question: question.clone(), waiting: Vec::new() });
            let reply = Ok(Response::SearchResult(Box::new(SearchResult::new(vec![profile]))));
            cache.answered(Instant::default(), 1, reply, |_| false).unwrap();
            let root = cache.choose(Instant::default(), &question, |_| 0).unwrap();
            cache.registration_callback(&root).unwrap().to_string()
        };
        let path = "namf-callback/v1/n1-message/default";
        let secure = format!("https://192.0.2.1:443/{path}");
        assert_eq!(uri_of(at(Scheme::Https)), secure);
        // As an NRF returns it to an NF without TLS.
        let mut without_tls = at(Scheme::Https);
        without_tls.nf_services.retain(|service| service.scheme == UriScheme::Http);
        assert_eq!(uri_of(without_tls), format!("http://192.0.2.1:80/{path}"));
        let mut weaker = at(Scheme::Https);
        let subscriptions = &mut weaker.default_notification_subscriptions;
        subscriptions[0].callback_uri = format!("http://192.0.2.9:80/{path}").parse().unwrap();
        assert_eq!(uri_of(weaker), secure);
    }
}
