//! Nudm_SDM_Subscribe and Nudm_SDM_ModifySubscription (TS 29.503 5.2.2.3, 5.2.2.7).
//!
//! ```text
//!  NF ─> SdmSubscribe
//!        AwaitingEarlierSubscriptions  <─ UDR   only if the new one expires, or the UDR has had no room for it
//!        AwaitingRemoval               <─ UDR   only if some have expired
//!        AwaitingSubscriptionCreation  <─ UDR
//!  NF <─ 201 with the granted resources and expiry
//!
//!  NF ─> SdmModifySubscription
//!        AwaitingSubscriptionToModify  <─ UDR
//!        AwaitingSubscriptionUpdate    <─ UDR
//!  NF <─ 200
//! ```
//!
//! The UDM has no timers, as it keeps no subscriptions. An expired subscription gets no notification. The UDM removes it when it next reads the
//! subscriptions of that subscriber: before a notification, before a new subscription that expires or has no room, and before a change of one. It
//! removes it at once, because an NF that subscribes again gets the same id for its implicit subscription.

use super::super::config::UdmConfig;
use super::{Step, Transaction};
use crate::kit::{Caller, Instant, check_instance, context_in_reference, nf_in};
use pith_sbi::common::{DateTime, PatchItem};
use pith_sbi::nudm_sdm::{SdmModifySubscription, SdmSubsModification, SdmSubscribe, SdmSubscription};
use pith_sbi::nudr_dr::{
    CreateSdmSubscriptions, ModifySdmSubscription, QuerySdmSubscriptions, RemoveSdmSubscriptions,
};
use pith_sbi::{Cause, Created, NfInstanceId, Problem, Reply, Request, ResourceUri, Response, Uri};
use pith_types::Supi;

/// Waits for the subscriptions of the subscriber, some of which may have expired.
pub(in crate::udm) struct AwaitingEarlierSubscriptions {
    supi: Supi,
    body: Box<SdmSubscription>,
    /// When the request arrived.
    time: DateTime,
}

/// Waits until the UDR has removed an expired subscription, and so has room for the new one.
pub(in crate::udm) struct AwaitingRemoval {
    supi: Supi,
    body: Box<SdmSubscription>,
}

/// Waits until the subscription is stored.
pub(in crate::udm) struct AwaitingSubscriptionCreation {
    supi: Supi,
    body: Box<SdmSubscription>,
    /// When the request arrived; `None` if expired subscriptions have been removed since.
    time: Option<DateTime>,
}

/// Waits for the subscription that an NF changes.
pub(in crate::udm) struct AwaitingSubscriptionToModify {
    supi: Supi,
    id: String,
    change: SdmSubsModification,
    /// When the request arrived.
    time: DateTime,
}

/// Waits until the changed subscription is stored.
pub(in crate::udm) struct AwaitingSubscriptionUpdate {
    body: Box<SdmSubscription>,
}

/// The data sets whose changes the UDM notifies.
const NOTIFIED_DATA_SETS: [&str; 3] = ["am-data", "smf-select-data", "sm-data"];

/// The data set that a monitored resource is: the same that was granted, which its fragment does not change.
pub(super) fn data_set(resource: &ResourceUri) -> Option<&str> {
    resource.0.split(['?', '#']).next()?.rsplit('/').next()
}

/// What follows `/nudm-sdm/v2/` in the URI of a resource. The apiRoot is not compared: an absolute URI names the UDM as the NF reaches it, such as by
/// an SCP or another instance, and an absolute-path reference names none.
fn path_in_api(resource: &ResourceUri) -> Option<&str> {
    let whole = resource.0.split(['?', '#']).next()?;
    let path = match whole.split_once("://") {
        Some((_, rest)) => rest.split_at_checked(rest.find('/')?)?.1,
        None => whole,
    };
    let (prefix, path) = path.split_once("/nudm-sdm/v2/")?;
    (prefix.is_empty() || prefix.starts_with('/')).then_some(path)
}

/// Checks that all resources are the subscriber's, and removes those whose changes the UDM does not notify: the answer has the others. If none is
/// left, the subscription is refused (TS 29.503 5.2.2.3.2, table 6.1.7.3-1).
fn grant_resources(supi: &Supi, resources: &mut Vec<ResourceUri>) -> Result<(), Box<Problem>> {
    if resources.is_empty() {
        return Err(Problem::mandatory_ie_incorrect("/monitoredResourceUris", "no resource").into());
    }
    for (index, resource) in resources.iter().enumerate() {
        let owner = path_in_api(resource).and_then(|path| path.split('/').next());
        if owner != Some(supi.as_str()) {
            let at = format!("/monitoredResourceUris/{index}");
            let why = "not a resource of the subscriber in this API";
            return Err(Problem::mandatory_ie_incorrect(&at, why).into());
        }
    }
    resources.retain(|resource| {
        let data = path_in_api(resource).and_then(|path| path.split_once('/'));
        data.is_some_and(|(_, data)| NOTIFIED_DATA_SETS.contains(&data))
    });
    if resources.is_empty() {
        let problem = Problem::new(Cause::UnsupportedResourceUri);
        return Err(problem.detail("changes of these resources are not notified").into());
    }
    Ok(())
}

/// The proposed expiry is granted, unless it is over.
fn check_expiry(expires: Option<DateTime>, time: DateTime) -> Result<(), Box<Problem>> {
    if expires.is_some_and(|expires| expires <= time) {
        return Err(Problem::new(Cause::OptionalIeIncorrect).param("/expires", "this time is over").into());
    }
    Ok(())
}

/// The subscriptions that have not expired, and the removals of the others.
pub(super) fn without_expired(
    supi: &Supi,
    subscriptions: Vec<SdmSubscription>,
    time: DateTime,
) -> (Vec<SdmSubscription>, Vec<Request>) {
    let has_expired = |it: &SdmSubscription| it.expires.is_some_and(|expires| expires <= time);
    let (expired, current): (Vec<_>, Vec<_>) = subscriptions.into_iter().partition(has_expired);
    let ids = expired.into_iter().filter_map(|subscription| subscription.subscription_id);
    let removal = |subs_id: String| Request::from(RemoveSdmSubscriptions { ue_id: supi.clone(), subs_id });
    (current, ids.map(|id| removal(id.to_string())).collect())
}

/// How the ids of implicit subscriptions begin.
pub(super) const IMPLICIT: &str = "implicit";

/// The id of an NF's implicit subscription. If the NF's callback URI names a UE context, so does the id: two shards of an AMF
/// are one NF instance, and the one that no longer serves the UE must not end the subscription of the other.
pub(super) fn implicit_subscription(nf_instance_id: &NfInstanceId, callback: &Uri) -> String {
    match context_in_reference(callback.id()) {
        Some(context) => format!("{IMPLICIT}{context}-{nf_instance_id}"),
        None => format!("{IMPLICIT}-{nf_instance_id}"),
    }
}

/// In ids, for all AMFs that prove their NF type only: each may name any instance, and they have one share of the UDR's room under all these names.
/// No NF has this id: UUIDs of version 0 are not used (RFC 9562 4.2).
pub(super) const UNNAMED_AMFS: NfInstanceId = NfInstanceId(1);

/// In ids, for all SMFs that prove their NF type only.
pub(super) const UNNAMED_SMFS: NfInstanceId = NfInstanceId(2);

/// Those of the two that monitor these resources.
fn unnamed(resources: &[ResourceUri]) -> NfInstanceId {
    let is_smf = resources.iter().any(|resource| data_set(resource) == Some("sm-data"));
    if is_smf { UNNAMED_SMFS } else { UNNAMED_AMFS }
}

/// Whether the client proves its NF type only.
const fn is_unnamed(from: Caller) -> bool {
    matches!(from, Caller::Remote { client: Some(client), .. } if !client.is_named)
}

/// The id of an implicit subscription of a client that proves its NF type only: at its end is the share that has it.
pub(super) fn of_unnamed(implicit: &str, unnamed: NfInstanceId) -> String {
    format!("{implicit}-{unnamed}")
}

/// The id of an implicit subscription of this client.
pub(super) fn of_client(implicit: String, from: Caller, unnamed: NfInstanceId) -> String {
    if is_unnamed(from) { of_unnamed(&implicit, unnamed) } else { implicit }
}

/// The NF in the id of a subscription; one that an earlier version stored names none.
fn subscriber(id: &str) -> Option<NfInstanceId> {
    nf_in(id)?.parse().ok()
}

/// The NF in whose share a subscription is.
fn share(subscription: &SdmSubscription) -> NfInstanceId {
    let in_id = subscription.subscription_id.as_deref().and_then(subscriber);
    in_id.unwrap_or(subscription.nf_instance_id)
}

/// Only the NF that has subscribed changes and ends its subscription.
pub(super) fn check_subscriber(id: &str, from: Caller) -> Result<(), Box<Problem>> {
    subscriber(id).map_or(Ok(()), |named| check_instance(named, from))
}

/// The answer claims only what the UDM does: no optional feature (TS 29.500 6.6.2), and no report at once (TS 29.503 6.1.6.2.3).
fn remove_unsupported(body: &mut SdmSubscription) {
    (body.supported_features, body.immediate_report, body.report) = (None, None, None);
}

/// The id of a subscription is derived from the time: it must be unique only among those of the UE. It also names the NF
/// that subscribes, which alone may end the subscription. An NF has one implicit subscription to a UE's data: a new one
/// replaces it, and it ends with the NF's registration.
pub(super) fn begin(config: &UdmConfig, now: Instant, from: Caller, request: SdmSubscribe) -> Step {
    let SdmSubscribe { ue_id: supi, mut body } = request;
    let time = config.identity.date_time(now);
    if let Err(problem) = check_expiry(body.expires, time) {
        return Step::refuse(problem);
    }
    if let Err(problem) = grant_resources(&supi, &mut body.monitored_resource_uris) {
        return Step::refuse(problem);
    }
    remove_unsupported(&mut body);
    let unnamed = unnamed(&body.monitored_resource_uris);
    let id = match body.implicit_unsubscribe {
        Some(true) => {
            let id = implicit_subscription(&body.nf_instance_id, &body.callback_reference);
            of_client(id, from, unnamed)
        }
        _ => {
            // It does not replace another one: the response says so (TS 29.503 6.1.6.2.3).
            body.unique_subscription = None;
            let subscriber = if is_unnamed(from) { unnamed } else { body.nf_instance_id };
            format!("{:x}-{subscriber}", now.as_micros())
        }
    };
    body.subscription_id = Some(id.into());
    let body = Box::new(body);
    if body.expires.is_some() {
        // An NF that subscribes again and again would fill the UDR's room for subscriptions with expired ones.
        return query_earlier(supi, body, time);
    }
    create(supi, body, Some(time))
}

fn query_earlier(supi: Supi, body: Box<SdmSubscription>, time: DateTime) -> Step {
    let query = QuerySdmSubscriptions { ue_id: supi.clone() };
    let state = AwaitingEarlierSubscriptions { supi, body, time };
    Step::Call(query.into(), Transaction::AwaitingEarlierSubscriptions(state))
}

fn create(supi: Supi, body: Box<SdmSubscription>, time: Option<DateTime>) -> Step {
    let create = CreateSdmSubscriptions { ue_id: supi.clone(), body: (*body).clone() };
    let state = AwaitingSubscriptionCreation { supi, body, time };
    Step::Call(create.into(), Transaction::AwaitingSubscriptionCreation(state))
}

impl AwaitingEarlierSubscriptions {
    /// If the UDR has none or fails, the reply to the creation decides.
    pub(super) fn reply(self, reply: Reply) -> Step {
        let Self { supi, body, time } = self;
        let mut earlier = match reply {
            Ok(Response::SdmSubscriptions(earlier)) => *earlier,
            _ => Vec::new(),
        };
        // The new one replaces that with its id.
        earlier.retain(|subscription| subscription.subscription_id != body.subscription_id);
        // Those of the NF itself, which has a share of the room, are the last ones.
        let own = share(&body);
        earlier.sort_by_key(|subscription| share(subscription) == own);
        let (_, mut removals) = without_expired(&supi, earlier, time);
        // With one of them removed there is room: the others are not waited for.
        let Some(removal) = removals.pop() else { return create(supi, body, None) };
        Step::SendAndCall(removals, removal, Transaction::AwaitingRemoval(AwaitingRemoval { supi, body }))
    }
}

impl AwaitingRemoval {
    /// Whatever the reply: that to the creation decides.
    pub(super) fn reply(self) -> Step {
        create(self.supi, self.body, None)
    }
}

impl AwaitingSubscriptionCreation {
    pub(super) fn reply(self, config: &UdmConfig, reply: Reply) -> Step {
        let Self { supi, body, time } = self;
        // Expired subscriptions of NFs that subscribe no more may fill the UDR's room.
        if let (Err(problem), Some(time)) = (&reply, time)
            && problem.is(&Cause::InsufficientResources)
        {
            return query_earlier(supi, body, time);
        }
        let answer = reply.map(|response| match response {
            Response::SdmSubscriptionCreated(_) => {
                let id = body.subscription_id.as_deref().unwrap_or_default();
                let path = format!("/nudm-sdm/v2/{supi}/sdm-subscriptions/{id}");
                let location = Uri::new(&config.identity.api_root, &path);
                Response::SdmSubscriptionCreated(Box::new(Created { location, body: *body }))
            }
            other => other,
        });
        Step::Answer(answer, Vec::new())
    }
}

/// Nudm_SDM_ModifySubscription: another expiry, or other resources (TS 29.503 5.2.2.7.2).
pub(super) fn begin_modification(
    config: &UdmConfig,
    now: Instant,
    from: Caller,
    request: SdmModifySubscription,
) -> Step {
    let SdmModifySubscription { ue_id: supi, subscription_id: id, body: mut change } = request;
    if let Err(problem) = check_subscriber(&id, from) {
        return Step::refuse(problem);
    }
    let time = config.identity.date_time(now);
    if let Err(problem) = check_expiry(change.expires, time) {
        return Step::refuse(problem);
    }
    if !change.monitored_resource_uris.is_empty()
        && let Err(problem) = grant_resources(&supi, &mut change.monitored_resource_uris)
    {
        return Step::refuse(problem);
    }
    let query = QuerySdmSubscriptions { ue_id: supi.clone() };
    let state = Box::new(AwaitingSubscriptionToModify { supi, id, change, time });
    Step::Call(query.into(), Transaction::AwaitingSubscriptionToModify(state))
}

/// The change of the stored subscription. All other members stay as they are in the UDR: the NF may have subscribed again since they were read, with
/// the same id and another callback URI.
fn patch_of(change: &SdmSubsModification) -> Vec<PatchItem> {
    let expires = change.expires.map(|expires| PatchItem::add("/expires", expires.to_string()));
    let uris: Vec<&str> = change.monitored_resource_uris.iter().map(|resource| &*resource.0).collect();
    let resources = (!uris.is_empty()).then(|| PatchItem::add("/monitoredResourceUris", uris));
    expires.into_iter().chain(resources).collect()
}

fn not_found() -> Box<Problem> {
    Box::new(Problem::new(Cause::SubscriptionNotFound))
}

/// The UDR's problem with a subscription, for the NF.
pub(super) fn of_subscription(problem: Box<Problem>) -> Box<Problem> {
    if problem.is(&Cause::DataNotFound) { not_found() } else { problem }
}

impl AwaitingSubscriptionToModify {
    /// An expired subscription is not found.
    pub(super) fn reply(self, reply: Reply) -> Step {
        let Self { supi, id, change, time } = self;
        let all = match reply {
            Ok(Response::SdmSubscriptions(all)) => *all,
            Ok(_) => return Step::refuse(Problem::system_failure("the UDR sent no subscriptions")),
            Err(problem) if problem.is(&Cause::DataNotFound) => Vec::new(),
            Err(problem) => return Step::refuse(problem),
        };
        let (current, removals) = without_expired(&supi, all, time);
        let found = current.into_iter().find(|it| it.subscription_id.as_deref() == Some(&*id));
        let Some(mut body) = found else { return Step::Answer(Err(not_found()), removals) };
        let patch = patch_of(&change);
        body.expires = change.expires.or(body.expires);
        if !change.monitored_resource_uris.is_empty() {
            body.monitored_resource_uris = change.monitored_resource_uris;
        }
        let body = Box::new(body);
        if patch.is_empty() {
            return Step::Answer(Ok(Response::SdmSubscription(body)), removals);
        }
        let modify = ModifySdmSubscription { ue_id: supi, subs_id: id, body: patch };
        let state = AwaitingSubscriptionUpdate { body };
        Step::SendAndCall(removals, modify.into(), Transaction::AwaitingSubscriptionUpdate(state))
    }
}

impl AwaitingSubscriptionUpdate {
    pub(super) fn reply(self, reply: Reply) -> Step {
        let answer = match reply {
            Ok(Response::PatchResult(_)) => {
                Err(Box::new(Problem::system_failure("the UDR has not made the whole change")))
            }
            Ok(_) => Ok(Response::SdmSubscription(self.body)),
            // The NF may have ended it meanwhile.
            Err(problem) => Err(of_subscription(problem)),
        };
        Step::Answer(answer, Vec::new())
    }
}
