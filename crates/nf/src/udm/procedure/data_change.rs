//! A subscriber's data have changed in the UDR: the UDM notifies the NFs that have subscribed (Nudm_SDM_Notification, TS 29.503 5.2.2.5;
//! TS 23.502 4.5.1, 4.3.3.2 step 1b).
//!
//! ```text
//!  UDR ─> DataChangeNotification
//!         AwaitingSdmSubscriptions   <─ UDR   AMF and SMFs
//!         AwaitingChangedData        <─ UDR   the new values
//!         AwaitingAcknowledgement    <─ each subscriber, one after the other
//!  UDR <─ 204, or 504 if one did not answer: then the UDR repeats its notification
//! ```
//!
//! A subscriber that does not know the UE context any longer (404) has no subscription: it ends. So does a subscription that has expired. Both are
//! removed at once: while other NFs are notified, which takes seconds if one does not answer, the NF may subscribe again with the same id.
//!
//! If the UDR has the subscriber no longer, the AMF that serves the UE deregisters it (TS 23.502 4.2.2.3.3, TS 29.503 5.3.2.3). The UDR keeps the
//! registrations until then.
//!
//! ```text
//!         AwaitingAmfOfDeleted       <─ UDR   the AMF's registration
//!         AwaitingWithdrawal         <─ AMF   it releases the sessions, too
//!         AwaitingAcknowledgement    <─ SMFs  instead, if no AMF serves the UE: there is no data network any longer
//!         AwaitingSmfsOfDeleted      <─ UDR   instead, if the AMF did not answer: the SMFs' registrations
//!  UDR <─ 204, or 504 if the AMF did not answer
//! ```
//!
//! An AMF may be down for hours, and traffic of the UE would continue. Therefore the SMFs end its sessions (TS 29.503 5.3.2.3). The UDR repeats its
//! notification until the AMF has got it; an SMF that has ended the session meanwhile answers 404.
//!
//! The subscriptions to other data of a deleted subscriber end: they would get the data of a new one with the same SUPI. NFs other than that AMF are
//! notified once that there are no data any longer. Subscriptions to session data end with the sessions, or with the documents at the UDR.

use super::super::config::UdmConfig;
use super::subscription::{data_set, without_expired};
use super::{Step, Transaction};
use crate::kit::Instant;
use pith_sbi::common::{AccessType, ChangeItem, DateTime, NotifyItem, ServingPlmnId};
use pith_sbi::nudm_sdm::{
    DataSetName, ModificationNotification, SdmChangeNotification, SdmSubscription, SubscriptionDataSets,
};
use pith_sbi::nudm_uecm::{DeregistrationData, DeregistrationNotification, DeregistrationReason};
use pith_sbi::nudr_dr::{
    DataChangeNotification, QueryAmfContextThreeGpp, QueryProvisionedData, QuerySdmSubscriptions,
    QuerySmfRegList, RemoveSdmSubscriptions,
};
use pith_sbi::{Cause, NfInstanceId, Problem, Reply, Request, ResourceUri, Response};
use pith_types::Supi;
use serde::Serialize;
use std::sync::Arc;

/// Waits for the UDR: which NFs have subscribed.
pub(in crate::udm) struct AwaitingSdmSubscriptions {
    supi: Supi,
    /// When the notification arrived.
    time: DateTime,
}

/// Waits for the UDR: the data.
pub(in crate::udm) struct AwaitingChangedData {
    supi: Supi,
    subscriptions: Vec<SdmSubscription>,
}

/// The subscriber was deleted. Waits for the UDR: the AMF that serves its UE.
pub(in crate::udm) struct AwaitingAmfOfDeleted {
    supi: Supi,
    subscriptions: Vec<SdmSubscription>,
}

/// The AMF was notified that the subscription is withdrawn.
pub(in crate::udm) struct AwaitingWithdrawal {
    supi: Supi,
    subscriptions: Vec<SdmSubscription>,
}

/// The AMF has not confirmed that the subscription is withdrawn. Waits for the UDR: the registrations of the SMFs.
pub(in crate::udm) struct AwaitingSmfsOfDeleted {
    subscriptions: Vec<SdmSubscription>,
    /// The AMF's, for the UDR.
    failure: Box<Problem>,
}

/// An NF was notified.
pub(in crate::udm) struct AwaitingAcknowledgement {
    supi: Supi,
    /// The subscription of the NF that was notified.
    current: SdmSubscription,
    /// Those of NFs that were not notified yet, the next one last.
    others: Vec<SdmSubscription>,
    data: Box<SubscriptionDataSets>,
    /// The first NF that did not acknowledge.
    failure: Option<Box<Problem>>,
}

/// Requests the subscriptions.
pub(super) fn begin(config: &UdmConfig, now: Instant, notification: DataChangeNotification) -> Step {
    let Some(supi) = notification.body.ue_id else {
        return Step::refuse(Problem::mandatory_ie_incorrect("ueId", "the subscriber is missing"));
    };
    let query = QuerySdmSubscriptions { ue_id: supi.clone() };
    let state = AwaitingSdmSubscriptions { supi, time: config.identity.date_time(now) };
    Step::Call(query.into(), Transaction::AwaitingSdmSubscriptions(state))
}

impl AwaitingSdmSubscriptions {
    pub(super) fn reply(self, config: &UdmConfig, reply: Reply) -> Step {
        let subscriptions = match reply {
            Ok(Response::SdmSubscriptions(subscriptions)) => *subscriptions,
            Ok(_) => return Step::refuse(Problem::system_failure("the UDR sent no subscriptions")),
            // The subscriber may be deleted, and its UE be served nevertheless.
            Err(problem) if is_missing(&problem) => Vec::new(),
            Err(problem) => return Step::refuse(problem),
        };
        let query = QueryProvisionedData {
            ue_id: self.supi.clone(),
            serving_plmn_id: ServingPlmnId(config.plmn),
            dataset_names: Some(vec![DataSetName::Am, DataSetName::SmfSel, DataSetName::Sm]),
        };
        let (subscriptions, removals) = without_expired(&self.supi, subscriptions, self.time);
        let state = AwaitingChangedData { supi: self.supi, subscriptions };
        Step::SendAndCall(removals, query.into(), Transaction::AwaitingChangedData(state))
    }
}

/// Nothing is there to notify of, or nothing is subscribed.
fn is_missing(problem: &Problem) -> bool {
    matches!(problem.cause(), Some(Cause::DataNotFound | Cause::UserNotFound))
}

const fn acknowledge(ended: Vec<Request>) -> Step {
    Step::Answer(Ok(Response::NoContent), ended)
}

impl AwaitingChangedData {
    pub(super) fn reply(self, reply: Reply) -> Step {
        let Self { supi, subscriptions } = self;
        let data = match reply {
            Ok(Response::SubscriptionDataSets(data)) => data,
            Ok(_) => return Step::refuse(Problem::system_failure("the UDR sent no data sets")),
            Err(problem) if is_missing(&problem) => {
                let query = QueryAmfContextThreeGpp { ue_id: supi.clone() };
                let state = AwaitingAmfOfDeleted { supi, subscriptions };
                return Step::Call(query.into(), Transaction::AwaitingAmfOfDeleted(state));
            }
            Err(problem) => return Step::refuse(problem),
        };
        notify_next(supi, subscriptions, data, (None, Vec::new()))
    }
}

impl AwaitingAmfOfDeleted {
    /// The registration: Nudm_UECM_DeregistrationNotification, unless the AMF has purged it (TS 29.503 5.3.2.3.2).
    pub(super) fn reply(self, reply: Reply) -> Step {
        let Self { supi, subscriptions } = self;
        let registration = match reply {
            Ok(Response::Amf3GppAccessRegistration(registration)) => registration,
            Ok(_) => return Step::refuse(Problem::system_failure("the UDR sent no registration")),
            Err(problem) if is_missing(&problem) => {
                let (subscriptions, ended) = end_others(&supi, subscriptions, None);
                return end_sessions(supi, subscriptions, ended);
            }
            Err(problem) => return Step::refuse(problem),
        };
        let amf = Some(registration.amf_instance_id);
        let (subscriptions, ended) = end_others(&supi, subscriptions, amf);
        if registration.purge_flag == Some(true) {
            return end_sessions(supi, subscriptions, ended);
        }
        let mut body = DeregistrationData::new(DeregistrationReason::SubscriptionWithdrawn);
        body.access_type = Some(AccessType::ThreeGppAccess);
        let notification = DeregistrationNotification { uri: registration.dereg_callback_uri, body };
        let state = AwaitingWithdrawal { supi, subscriptions };
        Step::SendAndCall(ended, notification.into(), Transaction::AwaitingWithdrawal(state))
    }
}

impl AwaitingWithdrawal {
    pub(super) fn reply(self, reply: Reply) -> Step {
        let Self { supi, mut subscriptions } = self;
        match reply {
            // It has lost the context, and releases no sessions.
            Err(problem) if problem.status == 404 => end_sessions(supi, subscriptions, Vec::new()),
            // It has got the notification, and may not understand it.
            Err(failure) if !matches!(failure.status, 400 | 405 | 413 | 415) => {
                let query = QuerySmfRegList { ue_id: supi };
                let state = AwaitingSmfsOfDeleted { subscriptions, failure };
                Step::Call(query.into(), Transaction::AwaitingSmfsOfDeleted(state))
            }
            _ => {
                subscriptions.retain(|it| !monitors_session_data(it));
                acknowledge(removals(&supi, subscriptions))
            }
        }
    }
}

impl AwaitingSmfsOfDeleted {
    /// Notifies the SMFs; the transaction does not wait for their answers, as the UDR's next notification repeats all. An SMF that has registered
    /// without callback URI is notified by its subscription. Emergency sessions continue (TS 23.502 4.2.2.3.3).
    pub(super) fn reply(self, reply: Reply) -> Step {
        let Self { mut subscriptions, failure } = self;
        let registrations = match reply {
            Ok(Response::SmfRegList(registrations)) => *registrations,
            _ => Vec::new(),
        };
        let has_callback = |subscription: &SdmSubscription| {
            registrations.iter().any(|registration| {
                registration.dereg_callback_uri.is_some()
                    && registration.smf_instance_id == subscription.nf_instance_id
            })
        };
        subscriptions.retain(|subscription| !has_callback(subscription));
        keep_session_data(&mut subscriptions);
        let by_subscription = subscriptions
            .iter()
            .filter_map(|subscription| change(subscription, &SubscriptionDataSets::default()));
        let by_subscription: Vec<Request> = by_subscription.map(Into::into).collect();
        let of_sessions = registrations.into_iter().filter(|it| it.emergency_services != Some(true));
        let by_registration = of_sessions.filter_map(|registration| {
            let mut body = DeregistrationData::new(DeregistrationReason::SubscriptionWithdrawn);
            body.pdu_session_id = Some(registration.pdu_session_id);
            Some(DeregistrationNotification { uri: registration.dereg_callback_uri?, body }.into())
        });
        Step::Answer(Err(failure), by_registration.chain(by_subscription).collect())
    }
}

/// The subscriptions to session data of a deleted subscriber and those of the AMF that serves the UE, and requests that end the others: each NF is
/// notified that there are no data.
fn end_others(
    supi: &Supi,
    subscriptions: Vec<SdmSubscription>,
    amf: Option<NfInstanceId>,
) -> (Vec<SdmSubscription>, Vec<Request>) {
    let stays = |it: &SdmSubscription| monitors_session_data(it) || Some(it.nf_instance_id) == amf;
    let (current, others): (Vec<_>, Vec<_>) = subscriptions.into_iter().partition(stays);
    let none = SubscriptionDataSets::default();
    let notifications = others.iter().filter_map(|subscription| change(subscription, &none));
    let mut requests: Vec<Request> = notifications.map(Into::into).collect();
    requests.extend(removals(supi, others));
    (current, requests)
}

fn removals(supi: &Supi, subscriptions: Vec<SdmSubscription>) -> Vec<Request> {
    let ids = subscriptions.into_iter().filter_map(|subscription| subscription.subscription_id);
    let removal = |id: Arc<str>| RemoveSdmSubscriptions { ue_id: supi.clone(), subs_id: id.to_string() };
    ids.map(|id| removal(id).into()).collect()
}

/// No AMF serves the UE of a deleted subscriber: SMFs release its sessions, as it has no data network.
fn end_sessions(supi: Supi, subscriptions: Vec<SdmSubscription>, mut ended: Vec<Request>) -> Step {
    let (mut of_sessions, of_amf): (Vec<_>, Vec<_>) =
        subscriptions.into_iter().partition(monitors_session_data);
    ended.extend(removals(&supi, of_amf));
    keep_session_data(&mut of_sessions);
    notify_next(supi, of_sessions, Box::default(), (None, ended))
}

/// Removes all resources but the session management data, which SMFs monitor.
fn keep_session_data(subscriptions: &mut [SdmSubscription]) {
    for subscription in subscriptions {
        subscription.monitored_resource_uris.retain(is_session_data);
    }
}

fn monitors_session_data(subscription: &SdmSubscription) -> bool {
    subscription.monitored_resource_uris.iter().any(is_session_data)
}

fn is_session_data(resource: &ResourceUri) -> bool {
    data_set(resource) == Some("sm-data")
}

/// Notifies the next NF that monitors one of the data sets; after the last one the UDR gets its answer. Subscriptions that have ended are removed.
fn notify_next(
    supi: Supi,
    mut others: Vec<SdmSubscription>,
    data: Box<SubscriptionDataSets>,
    (failure, ended): (Option<Box<Problem>>, Vec<Request>),
) -> Step {
    while let Some(current) = others.pop() {
        let Some(notification) = change(&current, &data) else { continue };
        let state = AwaitingAcknowledgement { supi, current, others, data, failure };
        let next = Transaction::AwaitingAcknowledgement(Box::new(state));
        return Step::SendAndCall(ended, notification.into(), next);
    }
    match failure {
        Some(problem) => Step::Answer(Err(problem), ended),
        None => acknowledge(ended),
    }
}

/// The notification of an NF; `None` if it monitors none of the data sets.
fn change(subscription: &SdmSubscription, data: &SubscriptionDataSets) -> Option<SdmChangeNotification> {
    let resources = subscription.monitored_resource_uris.iter();
    let notify_items: Vec<_> = resources.filter_map(|resource| change_of(resource, data)).collect();
    let uri = subscription.callback_reference.clone();
    let body = ModificationNotification::new(notify_items);
    (!body.notify_items.is_empty()).then_some(SdmChangeNotification { uri, body })
}

/// The monitored resource with its new value; `None` if the UDM does not have it.
fn change_of(resource: &ResourceUri, data: &SubscriptionDataSets) -> Option<NotifyItem> {
    let value = match data_set(resource)? {
        "am-data" => value(data.am_data.as_ref()),
        "smf-select-data" => value(data.smf_sel_data.as_ref()),
        // `null`: no data network of the subscriber is left.
        "sm-data" => value(data.sm_data.as_ref()),
        _ => return None,
    };
    // The whole resource is replaced (TS 29.571 table 5.2.4.2-1, RFC 6901 5).
    Some(NotifyItem::new(resource.clone(), vec![ChangeItem::replace("", value)]))
}

fn value(data: Option<&impl Serialize>) -> serde_json::Value {
    serde_json::to_value(data).unwrap_or_default()
}

impl AwaitingAcknowledgement {
    pub(super) fn reply(self, reply: Reply) -> Step {
        let Self { supi, current, others, data, mut failure } = self;
        let mut ended = Vec::new();
        match reply {
            Err(problem) if problem.status == 404 => {
                if let Some(id) = &current.subscription_id {
                    let (ue_id, subs_id) = (supi.clone(), id.to_string());
                    ended.push(RemoveSdmSubscriptions { ue_id, subs_id }.into());
                }
            }
            // It has got the notification, and does not understand it.
            Err(problem) if matches!(problem.status, 400 | 405 | 413 | 415) => {}
            Err(problem) => {
                failure.get_or_insert(problem);
            }
            Ok(_) => {}
        }
        notify_next(supi, others, data, (failure, ended))
    }
}
