//! Subscriptions to what becomes of NF instances (TS 29.510 5.2.2.5 to 5.2.2.7).

use super::{NOBODY, Nrf};
use crate::kit::{Outbox, Target};
use pith_sbi::nnrf_nfmanagement::{
    NfProfile, NfStatusNotify, NotificationData, NotificationEventType, SubscriptionData,
};
use pith_sbi::{Cause, Created, Problem, Reply, Response, Uri};

/// Whom to tell what.
#[derive(Debug)]
pub(super) struct Subscription {
    data: SubscriptionData,
}

impl Nrf {
    pub(super) fn subscribe(&mut self, mut data: SubscriptionData) -> Response {
        self.numbered += 1;
        let id = self.numbered;
        data.subscription_id = Some(format!("{id}").into());
        self.subscriptions.insert(id, Subscription { data: data.clone() });
        let location = Uri::new(&self.root, &format!("/nnrf-nfm/v1/subscriptions/{id}"));
        Response::SubscriptionDataCreated(Box::new(Created { location, body: data }))
    }

    /// Subscriptions here do not expire: there is nothing to renew but to confirm that it stands.
    pub(super) fn renew(&self, id: &str) -> Reply {
        let known = id.parse().ok().and_then(|id: u64| self.subscriptions.get(&id));
        known.map(|_| Response::NoContent).ok_or_else(not_found)
    }

    pub(super) fn unsubscribe(&mut self, id: &str) -> Reply {
        let known = id.parse().ok().and_then(|id: u64| self.subscriptions.remove(&id));
        known.map(|_| Response::NoContent).ok_or_else(not_found)
    }

    /// Tells all who subscribed to instances like this one (TS 29.510 5.2.2.6).
    pub(super) fn notify(&self, event: &NotificationEventType, profile: &NfProfile, out: &mut Outbox) {
        for subscription in self.subscriptions.values().filter(|s| s.covers(event, profile)) {
            let mut body = NotificationData::new(event.clone(), self.instance_uri(&profile.nf_instance_id));
            body.nf_profile =
                (*event != NotificationEventType::NfDeregistered).then(|| profile.clone().for_discovery());
            let uri = subscription.data.nf_status_notification_uri.clone();
            let root = uri.root.clone();
            out.call(NOBODY, Target::Root(root), NfStatusNotify { uri, body }.into());
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
