//! Subscribers: list, show, add, replace, delete.

use super::call::{Call, json, no_content};
use super::route::Handling;
use super::{Api, ApiError, STOPPED, Topic};
use crate::store::{Database, DatabaseError, Existing, StoreHandle};
use crate::token::ShardToken;
use hyper::StatusCode;
use pith_nf::kit::{Deregister, Order, Subscriber};
use pith_types::Supi;
use serde_json::{Value, json as value};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Subscribers per page by default, and at most.
const PAGE: u32 = 100;
const LARGEST_PAGE: u32 = 10_000;
/// The most subscribers that one request adds or deletes.
const LARGEST_RANGE: u64 = 1_000_000;
/// Deleted subscribers whose UEs are deregistered with one order after a start.
const WITHDRAWN_AT_ONCE: u32 = 1_000;
/// Time until the next attempt, while shards restore their contexts.
const WITHDRAWN_PAUSE: Duration = Duration::from_secs(1);

impl Api {
    async fn on_store<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<R, DatabaseError> + Send + 'static,
    ) -> Result<R, ApiError> {
        let elsewhere = || ApiError {
            status: StatusCode::NOT_IMPLEMENTED,
            detail: "this process has no UDR: send the request to the process with the UDR".into(),
        };
        let store: &StoreHandle<ShardToken> = self.store.as_ref().ok_or_else(elsewhere)?;
        Ok(store.run(work).await?)
    }
}

impl Api {
    /// Deregisters the UEs of deleted subscribers at the AMFs of this process, if it has any. `false`: the core is not running, its next
    /// start does that.
    async fn deregister_withdrawn(&self, supis: Arc<[Supi]>) -> Result<bool, ApiError> {
        let order = Order::Deregister { supis: Arc::clone(&supis), why: Deregister::Withdrawn };
        self.gather.collect(Topic::Order(order)).await?;
        let is_running = (self.status)().state != STOPPED;
        if is_running {
            self.on_store(move |store| store.forget_withdrawn(&supis)).await?;
        }
        Ok(is_running)
    }

    /// Has the UDR notify the UDM of changed subscribers, of a former run, too. If the core is not running, or a shard does not answer, they
    /// stay in the database until the next start or change.
    pub async fn notify_changes(&self) {
        if self.store.is_some() && self.gather.collect(Topic::Order(Order::NotifyChanges)).await.is_err() {
            tracing::warn!(
                "a shard did not answer in time; AMF and SMFs may get changed subscriptions later"
            );
        }
    }

    /// After a start, or if a shard has not answered: the UEs of subscribers that were deleted meanwhile. A shard answers when its contexts are restored.
    pub async fn end_withdrawn(&self) {
        if self.store.is_none() {
            return;
        }
        loop {
            let Ok(supis) = self.on_store(|store| store.withdrawn(WITHDRAWN_AT_ONCE)).await else { return };
            if supis.is_empty() {
                return;
            }
            let number = supis.len();
            match self.deregister_withdrawn(supis.into()).await {
                Ok(true) if (self.status)().nfs.iter().any(|nf| nf == "amf") => {
                    tracing::info!("{number} subscribers were deleted before: their UEs are deregistered")
                }
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => sleep(WITHDRAWN_PAUSE).await,
            }
        }
    }
}

pub(super) fn list(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let after = call.query::<Supi>("after")?;
        let limit = call.query("limit")?.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
        let keys = call.query("keys")?.unwrap_or(false);
        let (found, total) = api
            .on_store(move |store| Ok((store.subscribers(after.as_ref(), limit)?, store.subscriber_count()?)))
            .await?;
        let more = found.len() == limit as usize;
        let next = found.last().filter(|_| more).map(|last| last.supi.clone());
        let subscribers =
            found.iter().map(|each| subscriber_json(each, keys)).collect::<Result<Vec<_>, _>>()?;
        json(StatusCode::OK, &value!({ "total": total, "subscribers": subscribers, "next": next }))
    })
}

pub(super) fn show(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let supi: Supi = call.path_parameter()?;
        let keys = call.query("keys")?.unwrap_or(false);
        let key = supi.clone();
        let found = api.on_store(move |store| store.subscriber(&key)).await?;
        let found = found.ok_or_else(|| ApiError::not_found(format!("there is no subscriber {supi}")))?;
        json(StatusCode::OK, &subscriber_json(&found, keys)?)
    })
}

/// A subscriber as JSON, with its keys only if `keys`.
fn subscriber_json(subscriber: &Subscriber, keys: bool) -> Result<Value, ApiError> {
    let mut value =
        serde_json::to_value(subscriber).map_err(|error| ApiError::internal(error.to_string()))?;
    if let Some(authentication) = value["authentication"].as_object_mut().filter(|_| !keys) {
        for key in ["k", "opc", "topc"] {
            authentication.remove(key);
        }
    }
    Ok(value)
}

pub(super) fn add(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let existing = call.query("existing")?.unwrap_or(Existing::Refuse);
        let count = call.query("count")?.unwrap_or(1);
        let subscribers = range(call.body_items()?, count)?;
        let added = api.on_store(move |store| store.add_subscribers(subscribers, existing)).await?;
        if added.replaced > 0 {
            api.notify_changes().await;
        }
        json(StatusCode::CREATED, &added)
    })
}

/// The subscribers of the body, or `count` copies of the one in the body with consecutive SUPIs.
fn range(
    subscribers: Vec<Subscriber>,
    count: u64,
) -> Result<impl Iterator<Item = Subscriber> + Send, ApiError> {
    if count == 0 || count > LARGEST_RANGE {
        return Err(ApiError::bad_request(format!("'count' must be 1 to {LARGEST_RANGE}")));
    }
    if count > 1 && subscribers.len() != 1 {
        return Err(ApiError::bad_request(
            "with 'count' the body must be one subscriber, the first of the range",
        ));
    }
    let supis = match subscribers.first().filter(|_| count > 1) {
        Some(first) => consecutive(&first.supi, count)?,
        None => subscribers.iter().map(|each| each.supi.clone()).collect(),
    };
    let like = subscribers.into_iter().cycle();
    Ok(like.zip(supis).map(|(like, supi)| Subscriber { supi, ..like }))
}

fn consecutive(first: &Supi, count: u64) -> Result<Vec<Supi>, ApiError> {
    let none = || ApiError::bad_request(format!("there are no {count} SUPIs from {first} on"));
    first.consecutive(count).ok_or_else(none)
}

pub(super) fn replace(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let supi: Supi = call.path_parameter()?;
        let subscribers = call.body_items::<Subscriber>()?;
        if subscribers.iter().any(|each| each.supi != supi) || subscribers.len() != 1 {
            return Err(ApiError::bad_request(format!("the body must be the subscriber {supi}")));
        }
        let added = api.on_store(move |store| store.add_subscribers(subscribers, Existing::Replace)).await?;
        if added.replaced > 0 {
            api.notify_changes().await;
        }
        let status = if added.added == 1 { StatusCode::CREATED } else { StatusCode::OK };
        json(status, &added)
    })
}

pub(super) fn delete(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let supi: Supi = call.path_parameter()?;
        let count: Option<u64> = call.query("count")?;
        if count.is_some_and(|count| count > LARGEST_RANGE) {
            return Err(ApiError::bad_request(format!("'count' must be 1 to {LARGEST_RANGE}")));
        }
        let supis = consecutive(&supi, count.unwrap_or(1))?;
        let gone: Arc<[Supi]> = supis.as_slice().into();
        let deleted = api.on_store(move |store| store.delete_subscribers(&supis)).await?;
        if deleted > 0 {
            // The AMFs of this process deregister their UEs immediately, other ones when the UDM notifies them.
            if api.deregister_withdrawn(gone).await.is_err() {
                tracing::warn!(supi = %supi.masked(), deleted, "deleted, but a shard did not confirm deregistration in time; its UEs may be deregistered later");
                let later = Rc::clone(&api);
                tokio::task::spawn_local(async move { later.end_withdrawn().await });
            }
            api.notify_changes().await;
        }
        match (count, deleted) {
            (None, 0) => Err(ApiError::not_found(format!("there is no subscriber {supi}"))),
            (None, _) => Ok(no_content()),
            (Some(_), deleted) => json(StatusCode::OK, &value!({ "deleted": deleted })),
        }
    })
}
