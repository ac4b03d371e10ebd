//! Another instance of an NF Set, if the one that gave out a callback URI does not answer (TS 29.500 6.5.3; TS 23.527 6).
//!
//! ```text
//!  notification ──> apiRoot of the URI   no answer
//!                   a member of the set is known  ──> the notification is sent to it, with the same path
//!                   none is known                 ──> discovery of the NF type, then as above, once
//! ```
//!
//! The members of a set share their contexts, and the member that receives the request redirects it if another one has the context. The 404 of any of
//! them means that the context has ended. That of an NF that may be of another set is no answer: the notification fails as it would without
//! that NF. An instance that is in no set has no substitute.

use super::agent::{Agent, Call};
use super::discovery::Query;
use crate::kit::{Duration, Instant, Nf, Target};
use pith_sbi::{ApiRoot, NfType, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How long an instance that did not answer is not asked, if another one of its set is known; and the time between two discoveries of
/// an NF type for this purpose.
const GONE: Duration = Duration::from_secs(10);

/// Instances that did not answer; beyond that all are forgotten.
const MOST_GONE: usize = 256;

/// What an agent knows of instances that are gone.
#[derive(Debug, Default)]
pub(super) struct Reselection {
    /// Until when each is not asked.
    gone: BTreeMap<Arc<ApiRoot>, Instant>,
    /// The sets of instances that the NRF has returned.
    sets: BTreeMap<Arc<ApiRoot>, BTreeSet<Arc<str>>>,
    /// When an NF type was discovered last.
    asked: BTreeMap<&'static str, Instant>,
}

/// What becomes of a notification that was not answered.
pub(super) enum Substitute {
    /// It is sent there.
    Root(Arc<ApiRoot>),
    /// The instances of the NF type are discovered first.
    Discover(Query),
}

/// Whether a request may be sent to another member of a set: a notification, whose consumer is gone. Not a registration that is passed on to an
/// AMF: without an answer that AMF may have the UE, and another one would have it, too.
pub(super) const fn may_be_reselected(request: &Request) -> bool {
    request.target_uri().is_some()
        && !matches!(request, Request::NfStatusNotify(_) | Request::N1MessageNotify(_))
}

impl Reselection {
    /// The NRF has returned an instance.
    pub(super) fn learn(&mut self, root: &Arc<ApiRoot>, sets: &[Arc<str>]) {
        if self.sets.len() >= MOST_GONE {
            self.sets.clear();
        }
        if !sets.is_empty() {
            self.sets.insert(Arc::clone(root), sets.iter().cloned().collect());
        }
    }

    fn is_gone(&self, now: Instant, root: &ApiRoot) -> bool {
        self.gone.get(root).is_some_and(|until| *until > now)
    }

    fn note_gone(&mut self, now: Instant, root: &Arc<ApiRoot>) {
        if self.gone.len() >= MOST_GONE {
            self.gone.clear();
        }
        self.gone.insert(Arc::clone(root), now + GONE);
    }

    /// Whether two instances are known to be of one set.
    fn share_set(&self, one: &ApiRoot, other: &ApiRoot) -> bool {
        let sets = self.sets.get(one).zip(self.sets.get(other));
        sets.is_some_and(|(of_one, of_other)| !of_one.is_disjoint(of_other))
    }

    /// A member of the set of an instance that is gone. If the set of that one is not known: of any set.
    fn member(&self, now: Instant, gone: &ApiRoot, found: &[Arc<ApiRoot>]) -> Option<Arc<ApiRoot>> {
        let of_gone = self.sets.get(gone);
        let is_member = |root: &&Arc<ApiRoot>| {
            let sets = self.sets.get(&***root);
            let is_of_set = sets.is_some_and(|sets| of_gone.is_none_or(|of_gone| !sets.is_disjoint(of_gone)));
            is_of_set && ***root != *gone && !self.is_gone(now, root)
        };
        found.iter().find(is_member).cloned()
    }
}

impl Agent {
    /// A notification was not answered at that apiRoot. `None`: it fails.
    pub(super) fn reselect(&mut self, now: Instant, call: &Call, root: &Arc<ApiRoot>) -> Option<Substitute> {
        let original = &call.request.target_uri()?.root;
        if original != root {
            // It was sent to another one already.
            return None;
        }
        self.reselection.note_gone(now, root);
        let question = Query::of_consumer(call)?;
        if let Some(member) = self.member_for(now, &question, root) {
            return Some(Substitute::Root(member));
        }
        let name = question.nf_type_name()?;
        let is_due = self.reselection.asked.get(name).is_none_or(|asked| *asked + GONE <= now);
        self.reselection.asked.insert(name, now);
        is_due.then_some(Substitute::Discover(question))
    }

    /// The apiRoot for a notification: another one if the consumer did not answer, and its set has others.
    pub(super) fn root_of_set(&self, now: Instant, root: &Arc<ApiRoot>, call: &Call) -> Option<Arc<ApiRoot>> {
        if !may_be_reselected(&call.request) || !self.reselection.is_gone(now, root) {
            return None;
        }
        self.member_for(now, &Query::of_consumer(call)?, root)
    }

    /// Whether the NF at an apiRoot gets a notification in place of the consumer, and is not known to be of its set.
    pub(super) fn is_for_stranger(&self, call: &Call, root: &ApiRoot) -> bool {
        let consumer = match &call.target {
            Target::Root(consumer) => consumer,
            Target::Context(uri) => &uri.root,
            Target::Service(_) | Target::Instance(_) => return false,
        };
        let is_of_own_set = || self.instances().has_root(consumer) && self.instances().has_root(root);
        may_be_reselected(&call.request)
            && **consumer != *root
            && !self.reselection.share_set(consumer, root)
            && !is_of_own_set()
    }

    fn member_for(&self, now: Instant, question: &Query, gone: &ApiRoot) -> Option<Arc<ApiRoot>> {
        self.reselection.member(now, gone, &self.cache().known(now, question))
    }
}

/// The name of an NF type that can be the consumer of a notification, and that Pith has.
pub(super) fn consumer(nf_type: &NfType) -> Option<&'static str> {
    Nf::of_type(nf_type).filter(|nf| matches!(nf, Nf::Amf | Nf::Smf | Nf::Pcf | Nf::Udm)).map(Nf::name)
}
