//! A changed subscription (TS 23.502 4.5.1): the UDM notifies a change, and the AMF requests the data again.
//!
//! | change | the AMF |
//! |---|---|
//! | UE-AMBR, RFSP index | sends them to the gNB (TS 38.413 8.3.4) |
//! | mobility restrictions | sends them to UE and gNB; deregisters a UE that may no longer be registered where it is (TS 24.501 5.5.2.3.1) |
//! | a slice of the Allowed NSSAI is not subscribed, or not served where the UE is, any longer | sends another Allowed NSSAI; if there is none, the UE registers again (TS 23.501 5.15.5.2.2) |
//! | a trace | starts or stops it at the gNB ([`crate::amf::trace`]) |
//! | other subscribed slices | sends a Configured NSSAI, also in REGISTRATION ACCEPT (TS 23.501 5.15.4.2) |
//!
//! The UE gets CONFIGURATION UPDATE COMMAND ([`configuration_update`]) at once, after a handover in progress, or when it connects. SMFs release the sessions of slices and data
//! networks that are not subscribed any longer.

use super::deregistration::{self, Reason};
use super::{Procedure, configuration_update};
use crate::amf::config::AmfConfig;
use crate::amf::context::{CallId, Env, UeContext};
use crate::amf::error::RegistrationAnswer;
use crate::amf::slices::{self, Slices};
use crate::amf::subscription::Subscription;
use crate::amf::{consumer, n2};
use crate::kit::{Duration, Level, Timer};
use pith_nas::ie::{Nssai, SnssaiRejection};
use pith_sbi::{Problem, Reply, Response};
use pith_types::{Snssai, Tai};

/// In place of a pending call: the data are to be requested as soon as no registration is in progress. No call has this number.
const DUE: CallId = CallId(0);

/// Time until data that the UDM has not given are requested again. The notification was answered, and is not repeated.
const NEW_ATTEMPT: Duration = Duration::from_secs(10);

/// The subscription has changed. A pending request may have been answered before: it does not count. To a UE that is registered for emergency
/// services only no subscription applies (TS 23.501 5.16.4.1): the notification is late.
pub(crate) fn begin(ue: &mut UeContext, env: &mut Env<'_>) {
    ue.stop(env, Timer::SubscriptionData);
    ue.refresh_call = (!ue.is_emergency_registered()).then_some(DUE);
}

/// A request for changed data was lost with its reply.
pub(crate) fn repeat(ue: &mut UeContext) {
    ue.refresh_call = ue.refresh_call.map(|_| DUE);
}

/// Whether changed data are requested, or are to be requested at once.
pub(crate) fn awaits_data(ue: &UeContext) -> bool {
    ue.refresh_call.is_some() && !ue.runs(Timer::SubscriptionData)
}

/// Requests the changed data, if that is due, unless a registration in progress requests them anyway.
pub(crate) fn resume(ue: &mut UeContext, env: &mut Env<'_>) {
    let is_due = ue.refresh_call == Some(DUE) && !ue.runs(Timer::SubscriptionData);
    if is_due && ue.is_registered() && !ue.procedure.is_registering() {
        ue.refresh_call = consumer::subscription_data(ue, env);
    }
}

/// The UDM has not given the data: [`resume`] requests them after some time.
fn defer(ue: &mut UeContext, env: &mut Env<'_>, problem: &Problem) {
    let name = ue.name();
    env.out.log(Level::Warn, || format!("{name}: the changed subscription can't be read yet: {problem}"));
    ue.refresh_call = Some(DUE);
    ue.start(env, Timer::SubscriptionData, NEW_ATTEMPT);
}

/// The current subscription data.
pub(crate) fn on_refreshed(ue: &mut UeContext, env: &mut Env<'_>, reply: Reply) {
    if ue.is_emergency_registered() {
        return;
    }
    let data = match reply {
        Ok(Response::SubscriptionDataSets(data)) if data.am_data.is_some() => Some(*data),
        Err(problem) if problem.may_pass() => return defer(ue, env, &problem),
        _ => None,
    };
    let changed = data.and_then(|data| Some((data.am_data.clone(), Subscription::of(data)?)));
    let Some((restricted, subscription)) = changed else {
        return env.out.log(Level::Warn, || format!("{}: the changed subscription can't be read", ue.name()));
    };
    let has_other_restrictions = ue.restrict(restricted.as_ref());
    ue.subscribe_trace(restricted.as_ref().and_then(|data| data.trace_data.as_ref()), env.out);
    let before = (ue.ambr(), ue.rfsp());
    follow_subscription(ue);
    let former = ue.subscription.replace(Box::new(subscription));
    if has_other_restrictions && exclude(ue, env) {
        return;
    }
    if has_no_slices(ue, env) {
        return deregistration::by_network(ue, env, Reason::ReRegistrationRequired);
    }
    if before != (ue.ambr(), ue.rfsp()) {
        n2::modify_ue_context(ue, env);
    }
    let configured = |subscription: &Subscription| configured_of(subscription, ue, env.config);
    let before = former.as_deref().map(configured);
    ue.owes_configured_nssai |= before.is_some_and(|before| before != configured_slices(ue, env.config));
    send_changes(ue, env);
}

/// A PCF that has decided what was subscribed (TS 29.507 4.2.2.1: it may return the values of the request) does not hide the change.
fn follow_subscription(ue: &mut UeContext) {
    let (Some(policy), Some(former)) = (&mut ue.policy, &ue.subscription) else { return };
    policy.ue_ambr = policy.ue_ambr.filter(|ambr| Some(*ambr) != former.ue_ambr);
    policy.rfsp = policy.rfsp.filter(|rfsp| Some(*rfsp) != former.rfsp);
}

/// The PCF's service area has changed.
pub(crate) fn on_other_restrictions(ue: &mut UeContext, env: &mut Env<'_>) {
    if !exclude(ue, env) {
        send_changes(ue, env);
    }
}

/// A handover may be over: sends what has changed during it.
pub(crate) fn send_delayed(ue: &mut UeContext, env: &mut Env<'_>) {
    send_changes(ue, env);
}

/// Deregisters the UE if changed restrictions exclude it; returns whether they do. A UE with an emergency session goes on until it registers
/// again (TS 23.501 5.16.4.3).
fn exclude(ue: &mut UeContext, env: &mut Env<'_>) -> bool {
    if ue.emergency_session().is_some() {
        return false;
    }
    match ue.check_restrictions().err().map(|error| error.answer()) {
        Some(RegistrationAnswer::Reject(cause)) => {
            deregistration::by_network(ue, env, Reason::NotAllowed(cause));
            true
        }
        _ => false,
    }
}

/// Sends changes to the UE. One that can't be reached at present, or has a procedure in progress, gets them afterwards.
fn send_changes(ue: &mut UeContext, env: &mut Env<'_>) {
    let is_idle = matches!(ue.procedure, Procedure::Idle) && ue.mobility.is_idle();
    if !is_idle || !ue.is_registered() || ue.security.is_none() || !ue.is_reachable(env) {
        return;
    }
    if let Some(step) = configuration_update::send_changes(ue, env) {
        ue.procedure = step.next;
    }
}

/// Whether the UE may use no slice here any longer: it registers again, and gets the cause. It does not during an emergency session.
pub(crate) fn has_no_slices(ue: &UeContext, env: &Env<'_>) -> bool {
    ue.emergency_session().is_none() && new_slices(ue, env).is_some_and(|slices| slices.allowed.is_empty())
}

/// The slices that the AMF serves in the UE's network.
fn served<'a>(ue: &UeContext, config: &'a AmfConfig) -> &'a [Snssai] {
    config.slices(ue.location.map_or(config.guami.plmn_id, |location| location.tai.plmn_id))
}

/// Whether gNBs support the slice in the tracking area where the UE is; if it is in CM-IDLE, in a part of its registration area (TS 23.501
/// 5.15.5.2.1). A UE outside of its registration area registers: that decides.
fn is_supported(ue: &UeContext, env: &Env<'_>, slice: &Snssai) -> bool {
    let supports = |tai: &Tai| env.gnbs.may_support(tai, std::slice::from_ref(slice));
    let area = &ue.registration_area;
    match ue.location.filter(|_| ue.connection.is_some()) {
        Some(here) => !area.contains(&here.tai) || supports(&here.tai),
        None => area.is_empty() || area.iter().any(supports),
    }
}

/// The UE has confirmed what it got: the Configured NSSAI, if there was one in it.
pub(crate) fn note_configured(ue: &mut UeContext, config: &AmfConfig, configured: Option<&Nssai>) {
    if configured.is_some_and(|nssai| nssai.iter().eq(configured_slices(ue, config))) {
        ue.owes_configured_nssai = false;
    }
}

/// The slices that the UE can request in its network.
pub(crate) fn configured_slices(ue: &UeContext, config: &AmfConfig) -> Vec<Snssai> {
    ue.subscription.as_deref().map(|it| configured_of(it, ue, config)).unwrap_or_default()
}

/// The subscribed slices that a UE can request in its network (TS 23.501 5.15.4.2).
fn configured_of(subscription: &Subscription, ue: &UeContext, config: &AmfConfig) -> Vec<Snssai> {
    let subscribed = subscription.default_slices.iter().chain(&subscription.slices);
    let here = served(ue, config);
    let can_request = |slice: &&Snssai| here.contains(slice) || config.slices_elsewhere.contains(slice);
    let mut slices: Vec<_> = subscribed.filter(can_request).copied().collect();
    slices.sort_unstable();
    slices.dedup();
    slices.truncate(slices::MOST_CONFIGURED);
    slices
}

/// Allowed and Rejected NSSAI in place of those that the UE has, if a slice of its Allowed NSSAI is not subscribed, or not served where the
/// UE is, any longer (TS 23.501 5.15.5.2.2). If none of them is left, the default subscribed slices are allowed (TS 23.501 5.15.5.2.1).
pub(crate) fn new_slices(ue: &UeContext, env: &Env<'_>) -> Option<Slices> {
    let subscription = ue.subscription.as_deref()?;
    let served = served(ue, env.config);
    let is_usable = |slice: &&Snssai| {
        subscription.has_slice(slice) && served.contains(*slice) && is_supported(ue, env, slice)
    };
    if !ue.is_registered() || ue.slices.allowed.iter().all(|slice| is_usable(&slice)) {
        return None;
    }
    let (mut allowed, gone): (Vec<Snssai>, Vec<Snssai>) =
        ue.slices.allowed.iter().partition(|slice| is_usable(slice));
    if allowed.is_empty() {
        allowed = subscription.default_slices.iter().filter(is_usable).copied().collect();
    }
    let rejection = |slice: Snssai| {
        let is_subscribed = subscription.has_slice(&slice);
        let of_subscribed = SnssaiRejection::NotAvailableInRegistrationArea;
        (slice, if is_subscribed { of_subscribed } else { SnssaiRejection::NotAvailableInPlmn })
    };
    let rejected = gone.into_iter().map(rejection).collect();
    Some(slices::cut(Slices { allowed, rejected }))
}
