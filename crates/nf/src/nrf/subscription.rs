//! Subscriptions to changes of NF instances (TS 29.510 5.2.2.5 to 5.2.2.7).

use super::Nrf;
use super::authorization::Claimed;
use super::discovery::with_scheme;
use crate::kit::{Caller, Duration, Instant, Level, Outbox, Owner, Tag, Target};
use pith_sbi::common::DateTime;
use pith_sbi::nnrf_nfmanagement::{
    NfProfile, NfStatusNotify, NotificationData, NotificationEventType, SubscriptionData, UpdateSubscription,
};
use pith_sbi::{Cause, Created, NfInstanceId, Problem, Reply, Response, Uri};
use std::collections::BTreeMap;

/// Duration of a subscription, as default and maximum.
const VALIDITY: Duration = Duration::from_secs(600);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Maximum number of subscriptions.
const LIMIT: usize = 4096;

/// Maximum number of subscriptions of one process: an agent has one for each NF type that its shard uses, so a process of 64
/// shards has fewer than 500.
const SHARE: usize = 512;

/// Notifications to one process that are not answered yet: each holds a profile, of up to [`super::management::PROFILE_MAX`].
const OPEN: usize = 16;

/// Instances whose change a subscription still has to be notified of. Changes of more instances are not notified: a
/// subscriber that is so far behind discovers them when its results expire.
const PENDING: usize = 1024;

/// Failed notifications in a row after which the subscription is deleted.
const FAILURES: u8 = 5;

/// A subscription to notifications.
#[derive(Debug)]
pub(super) struct Subscription {
    /// Includes the `validityTime` at which it is deleted.
    pub(super) data: SubscriptionData,
    /// The subscriber: only that NF may change the subscription (TS 33.501 13.4.1.1).
    pub(super) owner: Owner,
    /// The request's sender, whose NFs must be allowed by the profiles of which it is notified.
    pub(super) from: Caller,
    /// Failed notifications since the last successful one.
    failures: u8,
    /// Number of notifications sent: each has a number.
    sent: u32,
    /// The number of the notification that is not answered yet. There is one at a time, so that a subscriber that does not
    /// answer costs one profile, however often instances change.
    open: Option<u32>,
    /// Changes to notify: the last event of each instance. The profile is that of the time of sending.
    pending: BTreeMap<NfInstanceId, NotificationEventType>,
}

impl Nrf {
    /// Creates a subscription; the answer contains its end (TS 29.510 6.1.6.2.16 `validityTime`).
    pub(super) fn subscribe(&mut self, now: Instant, mut data: SubscriptionData, from: Caller) -> Reply {
        let owner = Owner::of(from);
        let own = self.subscriptions.values().filter(|known| known.owner.is_same_process(owner)).count();
        if self.subscriptions.len() >= LIMIT || own >= SHARE {
            return Err(Box::new(Problem::congestion(VALIDITY.as_secs() as u32)));
        }
        let number = self.next_number();
        let id = u64::from(number);
        data.subscription_id = Some(format!("{id}").into());
        data.validity_time = Some(self.end(now, data.validity_time));
        self.subscriptions.insert(id, Subscription::new(data.clone(), owner, from));
        self.changed(number);
        let location = Uri::new(&self.root, &format!("/nnrf-nfm/v1/subscriptions/{id}"));
        Ok(Response::SubscriptionDataCreated(Box::new(Created { location, body: data })))
    }

    /// Changes the end of a subscription, and nothing else of it: 403 (TS 29.510 5.2.2.5.6). The answer contains the end only if it differs from
    /// the requested one.
    pub(super) fn renew(&mut self, now: Instant, request: &UpdateSubscription, from: Caller) -> Reply {
        let id: u64 = request.subscription_id.parse().map_err(|_| not_found())?;
        let known = self.subscriptions.get(&id).ok_or_else(not_found)?;
        known.owner.check(from)?;
        let mut patched = pith_sbi::patch::apply(&known.data, &request.body)?;
        let wished = std::mem::replace(&mut patched.validity_time, known.data.validity_time);
        if patched != known.data {
            let problem = Problem::new(Cause::ModificationNotAllowed);
            return Err(problem.detail("only validityTime of a subscription can be changed").into());
        }
        let end = Some(self.end(now, wished));
        let subscription = self.subscriptions.get_mut(&id).ok_or_else(not_found)?;
        subscription.data.validity_time = end;
        let answer = subscription.data.clone();
        self.changed(id as u32);
        Ok(if wished == end { Response::NoContent } else { Response::SubscriptionData(Box::new(answer)) })
    }

    /// The end of a subscription for which the subscriber requested that end. One that is over counts as none.
    fn end(&self, now: Instant, wished: Option<DateTime>) -> DateTime {
        let latest = self.wall.date_time(now + LONGEST);
        let wished = wished.filter(|wished| *wished > self.wall.date_time(now));
        wished.map_or_else(|| self.wall.date_time(now + VALIDITY), |wished| wished.min(latest))
    }

    /// Deletes subscriptions that were not renewed.
    pub(super) fn sweep_subscriptions(&mut self, now: Instant) {
        let time = self.wall.date_time(now);
        let is_over = |subscription: &Subscription| subscription.data.validity_time <= Some(time);
        let over: Vec<_> = self.subscriptions.extract_if(.., |_, it| is_over(it)).map(|(id, _)| id).collect();
        over.into_iter().for_each(|id| self.ended(id as u32));
    }

    /// The result of a notification: the next one is sent, or after too many failures the subscription is deleted.
    pub(super) fn notified(&mut self, tag: Tag, reply: &Reply, out: &mut Outbox) {
        let id = tag.owner;
        if let Some(subscription) = self.subscriptions.get_mut(&id) {
            if subscription.open == Some(tag.step) {
                subscription.open = None;
            }
            subscription.failures = if reply.is_ok() { 0 } else { subscription.failures + 1 };
            if subscription.failures >= FAILURES {
                let uri = subscription.data.nf_status_notification_uri.clone();
                out.log(Level::Warn, || {
                    format!("{uri} does not accept notifications: subscription {id} deleted")
                });
                self.subscriptions.remove(&id);
                self.ended(id as u32);
            }
        }
        self.send_pending(out);
    }

    pub(super) fn unsubscribe(&mut self, id: &str, from: Caller) -> Reply {
        let id: u64 = id.parse().map_err(|_| not_found())?;
        self.subscriptions.get(&id).ok_or_else(not_found)?.owner.check(from)?;
        self.subscriptions.remove(&id);
        self.ended(id as u32);
        Ok(Response::NoContent)
    }

    /// Notifies the subscribers whose conditions match this instance (TS 29.510 5.2.2.6).
    pub(super) fn notify(&mut self, event: &NotificationEventType, profile: &NfProfile, out: &mut Outbox) {
        let mut readers = ByProcess::default();
        let covering = self.subscriptions.iter().filter(|(_, known)| known.covers(event, profile));
        let permitted: Vec<_> = covering
            .filter(|(_, known)| {
                *readers.entry(known.owner, || self.reader(known.from).may_read(profile))
                    || self.allows_subscriber(known, profile)
            })
            .map(|(id, _)| *id)
            .collect();
        for id in permitted {
            if let Some(subscription) = self.subscriptions.get_mut(&id) {
                subscription.note(profile.nf_instance_id, event);
            }
        }
        self.send_pending(out);
    }

    /// Whether the profile allows the NF type and instance that the subscriber gave and proved (TS 29.510 5.2.2.5.2).
    fn allows_subscriber(&self, known: &Subscription, profile: &NfProfile) -> bool {
        let Some(nf_type) = &known.data.req_nf_type else { return false };
        let claimed =
            Claimed { instance: known.data.req_nf_instance_id, plmns: &[], slices: None, fqdn: None };
        let requester = self.requester(nf_type, claimed, known.from);
        *nf_type == profile.nf_type || requester.is_some_and(|requester| requester.may_discover(profile))
    }

    /// Sends pending notifications: one at a time to a subscription, [`OPEN`] to a process.
    fn send_pending(&mut self, out: &mut Outbox) {
        let is_waiting = |known: &Subscription| known.open.is_none() && !known.pending.is_empty();
        let waiting = self.subscriptions.iter().filter(|(_, known)| is_waiting(known));
        let waiting: Vec<_> = waiting.map(|(id, known)| (*id, known.owner)).collect();
        if waiting.is_empty() {
            return;
        }
        let mut open = ByProcess::default();
        for known in self.subscriptions.values().filter(|known| known.open.is_some()) {
            *open.entry(known.owner, || 0_usize) += 1;
        }
        for (id, owner) in waiting {
            let count = open.entry(owner, || 0);
            if owner == Owner::Process || *count < OPEN {
                *count += 1;
                self.send_next(id, out);
            }
        }
    }

    /// Sends the next notification of a subscription.
    fn send_next(&mut self, id: u64, out: &mut Outbox) {
        let Some(subscription) = self.subscriptions.get_mut(&id) else { return };
        while let Some((instance, event)) = subscription.pending.pop_first() {
            let nf_type = subscription.data.req_nf_type.as_ref();
            let scheme = nf_type.map(|nf_type| self.config.scheme_of(nf_type));
            let known = self.instances.get(&instance).map(|known| known.profile.clone().for_discovery());
            let profile = known.filter(|_| event != NotificationEventType::NfDeregistered);
            let profile = profile.map(|profile| match scheme {
                Some(scheme) => with_scheme(profile, &scheme),
                None => profile,
            });
            if profile.is_none() && event != NotificationEventType::NfDeregistered {
                continue;
            }
            let instance = Uri::new(&self.root, &format!("/nnrf-nfm/v1/nf-instances/{instance}"));
            let mut body = NotificationData::new(event, instance);
            body.nf_profile = profile;
            subscription.sent = subscription.sent.wrapping_add(1);
            subscription.open = Some(subscription.sent);
            let uri = subscription.data.nf_status_notification_uri.clone();
            let root = uri.root.clone();
            let tag = Tag::new(id, subscription.sent);
            return out.call(tag, Target::Root(root), NfStatusNotify { uri, body }.into());
        }
    }
}

/// A value for each process. There are few processes.
struct ByProcess<T>(Vec<(Owner, T)>);

impl<T> Default for ByProcess<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByProcess<T> {
    fn entry(&mut self, owner: Owner, first: impl FnOnce() -> T) -> &mut T {
        let is_its = |known: &(Owner, T)| known.0 == owner || known.0.is_same_process(owner);
        let at = self.0.iter().position(is_its).unwrap_or_else(|| {
            self.0.push((owner, first()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}

impl Subscription {
    /// A subscription of which nothing was notified yet.
    pub(super) const fn new(data: SubscriptionData, owner: Owner, from: Caller) -> Self {
        Self { data, owner, from, failures: 0, sent: 0, open: None, pending: BTreeMap::new() }
    }

    /// Adds a change to those that are to be notified. Of several changes of an instance the last one counts; a new
    /// instance stays new until the subscriber knows it.
    fn note(&mut self, id: NfInstanceId, event: &NotificationEventType) {
        let room = self.pending.len() < PENDING;
        match self.pending.get_mut(&id) {
            Some(NotificationEventType::NfRegistered)
                if *event == NotificationEventType::NfProfileChanged => {}
            Some(known) => *known = event.clone(),
            None if room => drop(self.pending.insert(id, event.clone())),
            None => {}
        }
    }

    fn covers(&self, event: &NotificationEventType, profile: &NfProfile) -> bool {
        let events = &self.data.req_notif_events;
        let own = self.data.req_nf_instance_id == Some(profile.nf_instance_id);
        let condition = self.data.subscr_cond.as_ref().is_none_or(|condition| {
            condition.nf_type.as_ref().is_none_or(|wanted| *wanted == profile.nf_type)
                && condition.nf_instance_id.is_none_or(|wanted| wanted == profile.nf_instance_id)
                && condition
                    .service_name
                    .as_ref()
                    .is_none_or(|wanted| profile.services().any(|service| service.service_name == *wanted))
        });
        condition && !own && (events.is_empty() || events.contains(event))
    }
}

fn not_found() -> Box<Problem> {
    Box::new(Problem::new(Cause::SubscriptionNotFound))
}
