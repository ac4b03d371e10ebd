//! Subscriptions to changes of NF instances (TS 29.510 5.2.2.5 to 5.2.2.7).

use super::Nrf;
use crate::kit::{Caller, Duration, Instant, Level, Outbox, Owner, Tag, Target};
use pith_sbi::common::DateTime;
use pith_sbi::nnrf_nfmanagement::{
    NfProfile, NfStatusNotify, NotificationData, NotificationEventType, SubscriptionData, UpdateSubscription,
};
use pith_sbi::{Cause, Created, Problem, Reply, Response, Uri};

/// Duration of a subscription, as default and maximum.
const VALIDITY: Duration = Duration::from_secs(600);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Maximum number of subscriptions.
const LIMIT: usize = 4096;

/// Maximum number of subscriptions of one process: an agent has one for each NF type that its shard uses, so a process of 64
/// shards has fewer than 500.
const SHARE: usize = 512;

/// Failed notifications in a row after which the subscription is deleted.
const FAILURES: u8 = 5;

/// A subscription to notifications.
#[derive(Debug)]
pub(super) struct Subscription {
    /// Includes the `validityTime` at which it is deleted.
    data: SubscriptionData,
    /// The subscriber: only that NF may change the subscription (TS 33.501 13.4.1.1).
    owner: Owner,
    /// Failed notifications since the last successful one.
    failures: u8,
    /// Number of notifications sent: each has a number.
    sent: u32,
}

impl Nrf {
    /// Creates a subscription; the answer contains its end (TS 29.510 6.1.6.2.16 `validityTime`).
    pub(super) fn subscribe(&mut self, now: Instant, mut data: SubscriptionData, owner: Owner) -> Reply {
        let own = self.subscriptions.values().filter(|known| known.owner.is_same_process(owner)).count();
        if self.subscriptions.len() >= LIMIT || own >= SHARE {
            return Err(Box::new(Problem::congestion(VALIDITY.as_secs() as u32)));
        }
        self.numbered += 1;
        let id = self.numbered;
        data.subscription_id = Some(format!("{id}").into());
        data.validity_time = Some(self.end(now, data.validity_time));
        self.subscriptions.insert(id, Subscription { data: data.clone(), owner, failures: 0, sent: 0 });
        let location = Uri::new(&self.root, &format!("/nnrf-nfm/v1/subscriptions/{id}"));
        Ok(Response::SubscriptionDataCreated(Box::new(Created { location, body: data })))
    }

    /// Changes the end of a subscription. The answer contains the end only if it differs from the
    /// requested one.
    pub(super) fn renew(&mut self, now: Instant, request: &UpdateSubscription, from: Caller) -> Reply {
        let id: u64 = request.subscription_id.parse().map_err(|_| not_found())?;
        let known = self.subscriptions.get(&id).ok_or_else(not_found)?;
        known.owner.check(from)?;
        let wished = pith_sbi::patch::apply(&known.data, &request.body)?.validity_time;
        let end = Some(self.end(now, wished));
        let subscription = self.subscriptions.get_mut(&id).ok_or_else(not_found)?;
        subscription.data.validity_time = end;
        Ok(if wished == end {
            Response::NoContent
        } else {
            Response::SubscriptionData(Box::new(subscription.data.clone()))
        })
    }

    /// The end of a subscription for which the subscriber requested that end.
    fn end(&self, now: Instant, wished: Option<DateTime>) -> DateTime {
        let latest = self.wall.date_time(now + LONGEST);
        wished.map_or_else(|| self.wall.date_time(now + VALIDITY), |wished| wished.min(latest))
    }

    /// Deletes subscriptions that were not renewed.
    pub(super) fn sweep_subscriptions(&mut self, now: Instant) {
        let time = self.wall.date_time(now);
        self.subscriptions.retain(|_, subscription| subscription.data.validity_time > Some(time));
    }

    /// The result of a notification: after too many failures the subscription is deleted.
    pub(super) fn notified(&mut self, id: u64, reply: &Reply, out: &mut Outbox) {
        let Some(subscription) = self.subscriptions.get_mut(&id) else { return };
        subscription.failures = if reply.is_ok() { 0 } else { subscription.failures + 1 };
        if subscription.failures >= FAILURES {
            let uri = subscription.data.nf_status_notification_uri.clone();
            out.log(Level::Warn, || {
                format!("{uri} does not accept notifications: subscription {id} deleted")
            });
            self.subscriptions.remove(&id);
        }
    }

    pub(super) fn unsubscribe(&mut self, id: &str, from: Caller) -> Reply {
        let id: u64 = id.parse().map_err(|_| not_found())?;
        self.subscriptions.get(&id).ok_or_else(not_found)?.owner.check(from)?;
        self.subscriptions.remove(&id);
        Ok(Response::NoContent)
    }

    /// Notifies the subscribers whose conditions match this instance (TS 29.510 5.2.2.6).
    pub(super) fn notify(&mut self, event: &NotificationEventType, profile: &NfProfile, out: &mut Outbox) {
        let instance = self.instance_uri(&profile.nf_instance_id);
        for (id, subscription) in self.subscriptions.iter_mut().filter(|(_, s)| s.covers(event, profile)) {
            let mut body = NotificationData::new(event.clone(), instance.clone());
            body.nf_profile =
                (*event != NotificationEventType::NfDeregistered).then(|| profile.clone().for_discovery());
            subscription.sent = subscription.sent.wrapping_add(1);
            let uri = subscription.data.nf_status_notification_uri.clone();
            let root = uri.root.clone();
            let tag = Tag { owner: *id, step: subscription.sent };
            out.call(tag, Target::Root(root), NfStatusNotify { uri, body }.into());
        }
    }
}

impl Subscription {
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
