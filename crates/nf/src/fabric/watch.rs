//! Subscriptions to changes of the NFs that a shard has discovered (TS 29.510 5.2.2.5 to 5.2.2.7).
//!
//! A notification invalidates stale results, so a subscription is needed as long as results of its
//! NF type are used. Each discovery result therefore creates the subscription, or renews one that
//! ends soon. Unused subscriptions expire.

use super::agent::step;
use crate::kit::{Duration, Instant, Outbox, Tag, Target, WallClock};
use pith_sbi::common::PatchItem;
use pith_sbi::nnrf_nfmanagement::{
    CreateSubscription, RemoveSubscription, SubscriptionData, UpdateSubscription,
};
use pith_sbi::{ApiRoot, NfType, Reply, Request, Response};
use std::sync::Arc;

/// A subscription that ends within this time is renewed. Longer than results of the NRF are kept.
const MARGIN: Duration = Duration::from_secs(180);

/// Requested duration of a renewed subscription.
const RENEWAL: Duration = Duration::from_secs(600);

#[derive(Debug)]
struct Watch {
    nf_type: NfType,
    /// Its id at the NRF, if the subscription may exist.
    id: Option<String>,
    /// Its end; `None` if the NRF sent none.
    until: Option<Instant>,
    /// A request to the NRF is pending.
    asked: bool,
}

/// The subscriptions of a shard.
#[derive(Debug)]
pub(super) struct Watches {
    nrf: Arc<ApiRoot>,
    wall: WallClock,
    list: Vec<Watch>,
}

impl Watches {
    pub(super) const fn new(nrf: Arc<ApiRoot>, wall: WallClock) -> Self {
        Self { nrf, wall, list: Vec::new() }
    }

    /// Creates or renews the subscription for a type, so that it lasts for a while; `data` is the
    /// subscription request.
    pub(super) fn keep(
        &mut self,
        now: Instant,
        nf_type: &NfType,
        data: impl FnOnce() -> SubscriptionData,
        out: &mut Outbox,
    ) {
        let at = self.position(nf_type);
        let wall = self.wall;
        let Some(watch) = self.list.get_mut(at).filter(|watch| watch.is_to_be_asked_for(now)) else { return };
        watch.asked = true;
        let request: Request = match watch.id.clone() {
            None => CreateSubscription { body: data() }.into(),
            Some(subscription_id) => {
                let end = now + RENEWAL;
                watch.until = Some(end);
                let body = vec![PatchItem::replace("/validityTime", wall.date_time(end).to_string())];
                UpdateSubscription { subscription_id, body }.into()
            }
        };
        let tag = Tag::new(at as u64, step::SUBSCRIBE);
        out.call(tag, Target::Root(Arc::clone(&self.nrf)), request);
    }

    fn position(&mut self, nf_type: &NfType) -> usize {
        self.list.iter().position(|watch| watch.nf_type == *nf_type).unwrap_or_else(|| {
            self.list.push(Watch { nf_type: nf_type.clone(), id: None, until: None, asked: false });
            self.list.len() - 1
        })
    }

    /// The reply to a subscription or renewal; a failed one is repeated with the next discovery result.
    pub(super) fn reply(&mut self, at: u64, reply: Reply) {
        let Some(watch) = self.list.get_mut(at as usize) else { return };
        watch.asked = false;
        let data = match reply {
            Ok(Response::SubscriptionDataCreated(created)) => {
                watch.id = Some(created.location.id().to_owned());
                created.body
            }
            Ok(Response::SubscriptionData(data)) => *data,
            // The NRF granted the requested duration.
            Ok(Response::NoContent) => return,
            _ => {
                watch.id = None;
                return;
            }
        };
        watch.until = data.validity_time.map(|end| self.wall.instant(end));
    }

    /// The NRF has lost its subscriptions: returns the types for which new ones are needed.
    pub(super) fn forget(&mut self) -> Vec<NfType> {
        let lost = |watch: &mut Watch| watch.id.take().map(|_| watch.nf_type.clone());
        self.list.iter_mut().filter_map(lost).collect()
    }

    /// The shard stops: ends all subscriptions.
    pub(super) fn end_all(&mut self, out: &mut Outbox) {
        for subscription_id in self.list.iter_mut().filter_map(|watch| watch.id.take()) {
            let tag = Tag::new(0, step::UNSUBSCRIBE);
            let request = RemoveSubscription { subscription_id };
            out.call(tag, Target::Root(Arc::clone(&self.nrf)), request.into());
        }
    }
}

impl Watch {
    fn is_to_be_asked_for(&self, now: Instant) -> bool {
        let stands = self.id.is_some() && self.until.is_none_or(|until| until > now + MARGIN);
        !stands && !self.asked
    }
}
