//! Subscriptions to what becomes of NF instances (TS 29.510 5.2.2.5 to 5.2.2.7).

use super::Nrf;
use crate::kit::{Duration, Instant, Level, Outbox, Tag, Target};
use pith_sbi::common::DateTime;
use pith_sbi::nnrf_nfmanagement::{
    NfProfile, NfStatusNotify, NotificationData, NotificationEventType, SubscriptionData, UpdateSubscription,
};
use pith_sbi::{Cause, Created, NfInstanceId, Problem, Reply, Response, Uri};

/// How long a subscription lasts whose subscriber does not say, and how long one lasts at most.
const VALIDITY: Duration = Duration::from_secs(600);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Subscriptions kept at most.
const LIMIT: usize = 4096;

/// Notifications in a row without a good answer, after which nobody is taken to be there.
const FAILURES: u8 = 5;

/// Whom to tell what.
#[derive(Debug)]
pub(super) struct Subscription {
    /// With the `validityTime` after which it is swept away.
    data: SubscriptionData,
    /// Whose it is, where a certificate told: only that NF changes it (TS 33.501 13.4.1.1).
    owner: Option<NfInstanceId>,
    /// Notifications since the last one that was answered well.
    failures: u8,
    /// Notifications in all: each has a number of its own.
    told: u32,
}

impl Nrf {
    /// Somebody wants to be told; the answer says until when (TS 29.510 6.1.6.2.16 `validityTime`).
    pub(super) fn subscribe(
        &mut self,
        now: Instant,
        mut data: SubscriptionData,
        owner: Option<NfInstanceId>,
    ) -> Reply {
        if self.subscriptions.len() >= LIMIT {
            return Err(Box::new(Problem::congestion(VALIDITY.as_secs() as u32)));
        }
        self.numbered += 1;
        let id = self.numbered;
        data.subscription_id = Some(format!("{id}").into());
        data.validity_time = Some(self.end(now, data.validity_time));
        self.subscriptions.insert(id, Subscription { data: data.clone(), owner, failures: 0, told: 0 });
        let location = Uri::new(&self.root, &format!("/nnrf-nfm/v1/subscriptions/{id}"));
        Ok(Response::SubscriptionDataCreated(Box::new(Created { location, body: data })))
    }

    /// A subscriber wishes another end; told only if it is not the one that it gets.
    pub(super) fn renew(
        &mut self,
        now: Instant,
        request: &UpdateSubscription,
        client: Option<NfInstanceId>,
    ) -> Reply {
        let id: u64 = request.subscription_id.parse().map_err(|_| not_found())?;
        let known = self.subscriptions.get(&id).ok_or_else(not_found)?;
        known.check_owner(client)?;
        let wished = pith_sbi::patch::apply(&known.data, &request.body)?.validity_time;
        let end = Some(self.end(now, wished));
        let subscription = self.subscriptions.get_mut(&id).ok_or_else(not_found)?;
        subscription.data.validity_time = end;
        Ok(match wished == end {
            true => Response::NoContent,
            false => Response::SubscriptionData(Box::new(subscription.data.clone())),
        })
    }

    /// When a subscription ends whose subscriber wishes that end.
    fn end(&self, now: Instant, wished: Option<DateTime>) -> DateTime {
        let latest = self.wall.date_time(now + LONGEST);
        wished.map_or_else(|| self.wall.date_time(now + VALIDITY), |wished| wished.min(latest))
    }

    /// Subscriptions that nobody renewed end.
    pub(super) fn sweep_subscriptions(&mut self, now: Instant) {
        let time = self.wall.date_time(now);
        self.subscriptions.retain(|_, subscription| subscription.data.validity_time > Some(time));
    }

    /// A notification was answered, or was not: who does not answer for long is not told any more.
    pub(super) fn notified(&mut self, id: u64, reply: &Reply, out: &mut Outbox) {
        let Some(subscription) = self.subscriptions.get_mut(&id) else { return };
        subscription.failures = if reply.is_ok() { 0 } else { subscription.failures + 1 };
        if subscription.failures >= FAILURES {
            let uri = subscription.data.nf_status_notification_uri.clone();
            out.log(Level::Warn, || format!("{uri} takes no notifications: subscription {id} ended"));
            self.subscriptions.remove(&id);
        }
    }

    pub(super) fn unsubscribe(&mut self, id: &str, client: Option<NfInstanceId>) -> Reply {
        let id: u64 = id.parse().map_err(|_| not_found())?;
        self.subscriptions.get(&id).ok_or_else(not_found)?.check_owner(client)?;
        self.subscriptions.remove(&id);
        Ok(Response::NoContent)
    }

    /// Tells all who subscribed to instances like this one (TS 29.510 5.2.2.6).
    pub(super) fn notify(&mut self, event: &NotificationEventType, profile: &NfProfile, out: &mut Outbox) {
        let instance = self.instance_uri(&profile.nf_instance_id);
        for (id, subscription) in self.subscriptions.iter_mut().filter(|(_, s)| s.covers(event, profile)) {
            let mut body = NotificationData::new(event.clone(), instance.clone());
            body.nf_profile =
                (*event != NotificationEventType::NfDeregistered).then(|| profile.clone().for_discovery());
            subscription.told = subscription.told.wrapping_add(1);
            let uri = subscription.data.nf_status_notification_uri.clone();
            let root = uri.root.clone();
            let tag = Tag { owner: *id, step: subscription.told };
            out.call(tag, Target::Root(root), NfStatusNotify { uri, body }.into());
        }
    }
}

impl Subscription {
    fn check_owner(&self, client: Option<NfInstanceId>) -> Result<(), Box<Problem>> {
        if self.owner == client {
            return Ok(());
        }
        Err(Box::new(Problem::of_status(403).detail("the subscription belongs to another NF")))
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
