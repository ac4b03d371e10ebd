//! Changed session management subscription data (TS 23.502 4.3.3.2 step 1b, 4.3.4.2; TS 29.503 5.2.2.5): the session gets the subscribed
//! session-AMBR and default QoS, as far as the PCF authorises them (TS 29.512 4.2.4.2), or is released.
//!
//! ```text
//!  UDM ─> SdmChangeNotification       step 1b   answered at once
//!         AwaitingData                          <─ UDM   the current data of the session's slice and data network
//!         AwaitingDecision            2         <─ PCF   triggers SE_AMBR_CH, DEF_QOS_CH
//!         AwaitingUserPlane                     an idle UE is not paged: it gets the QoS when its user plane is activated
//!         Applying                    3 to 10   as a decision of the PCF (modification.rs), until the UE has answered
//!  other static addresses or framed routes      a connected UE gets PDU SESSION RELEASE COMMAND with #39, and establishes the session again
//!         Deferred                              UDM or PCF do not answer: the data are requested again after 10 s
//!  not subscribed any longer                    a connected UE gets PDU SESSION RELEASE COMMAND with #36; another one learns it from the PDU
//!                                               session status of its next request (TS 24.501 6.3.3.2, 5.6.1.4.1)
//! ```
//!
//! [`SubscriptionChange`] is stored separately from the state, as the user plane may change meanwhile. After a restart the change begins again;
//! a UE that may have got no command gets it then, also if the data are the same.
//!
//! A new session registers with the UDM and then subscribes to changes (TS 23.502 4.3.2.2.1 step 4), while it is established. If the UDM had not
//! answered both before a restart, the SMF registers and subscribes again, and requests the data: they may have changed without a notification.
//! So does a session whose request was repeated without an answer, when its user plane is activated next, or after [`REREGISTRATION`].
//!
//! ```text
//!         Registering                           <─ UDM
//!         Registered                            <─ PCF   the policy association
//!         Subscribing                           <─ UDM
//!  restart, activation after no answer, or Reregistration expires
//!         Retrieving                            <─ UDM   the session ends if the UE has another SM context, whose registration is later
//!         Reregistering, Resubscribing          <─ UDM   with the time of the first registration; then as a change
//! ```
//!
//! If the UDM had the registration of another SM context, that may delete the new one, with its subscription: Nudm_UECM_Deregistration names the
//! session and the SMF (TS 29.503 5.3.2.4), not the SM context, and the former context may be at another shard of this SMF, whose request comes late or
//! is repeated. The session checks its registration after [`REGISTRATION_CHECK`].
//!
//! ```text
//!         Unverified
//!         Verifying                             <─ UDM   if there is no registration: Reregistering, Resubscribing
//! ```

use super::{Established, State, modification, release};
use crate::kit::document::{Pack, Reader, UnpackError, pack_enum, pack_struct};
use crate::kit::{Duration, Level};
use crate::smf::consumer::{self, is_unanswered};
use crate::smf::context::{CallId, Qos, SmContext};
use crate::smf::env::Env;
use crate::smf::procedure::establishment::{authorise, subscribed_data};
use crate::smf::timers::SessionTimer;
use pith_nas::GsmCause;
use pith_sbi::common::DateTime;
use pith_sbi::npcf_smpolicycontrol::SmPolicyDecision;
use pith_sbi::nudm_uecm::SmfRegistration;
use pith_sbi::{Cause, Operation, Problem, Reply, Response};
use pith_types::Supi;

/// Time until a session registers again with a UDM that has not answered: its user plane may stay active for days.
const REREGISTRATION: Duration = Duration::from_secs(300);

/// Time until a session checks its registration: a deletion that is not answered is repeated for less than this.
const REGISTRATION_CHECK: Duration = Duration::from_secs(60);

/// Time until a change whose data UDM or PCF have not given begins again. The notification was answered, and is not repeated.
const NEW_ATTEMPT: Duration = Duration::from_secs(10);

/// A change of the subscription that is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::smf) struct SubscriptionChange {
    stage: Stage,
    /// The UE may have missed the command of a former change, which it gets in any case.
    repeats_command: bool,
    /// The QoS that the session gets when the UE's user plane is active.
    deferred: Option<Qos>,
    /// The time of the session's first registration, until the UDM has answered registration and subscription.
    registered_at: Option<DateTime>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    /// The data are to be requested.
    Due,
    /// Waits for the data from the UDM.
    AwaitingData(CallId),
    /// Waits for the PCF, which is to authorise that subscribed QoS.
    AwaitingDecision(CallId, Qos),
    /// The UE is idle.
    AwaitingUserPlane,
    /// The QoS is pending, or the UE has not answered.
    Applying,
    /// Nothing has changed: waits for the UDM's answer to Nudm_SDM_Subscribe.
    Subscribing(CallId),
    /// The SMF has restarted before that answer, or that to the registration.
    Unsubscribed,
    /// Waits for the answer to the second Nudm_SDM_Subscribe; the data are to be requested then.
    Resubscribing(CallId),
    /// Nothing has changed: waits for the UDM's answer to Nudm_UECM_Registration.
    Registering(CallId),
    /// The session has no policy association yet, and subscribes when it has.
    Registered,
    /// Waits for the answer to the second Nudm_UECM_Registration; the session subscribes then.
    Reregistering(CallId),
    /// Waits for the registration that the UDM has, before the second one.
    Retrieving(CallId),
    /// The UDM does not answer, and the user plane is active. The session registers again with the next activation, or after some time.
    Unanswered,
    /// The same, and the user plane is deactivated.
    AwaitingActivation,
    /// UDM or PCF have not answered: the data are requested after some time.
    Deferred,
    /// Nothing has changed: the SM context that had the session before may have deleted the registration.
    Unverified,
    /// Nothing has changed: waits for the registration that the UDM has.
    Verifying(CallId),
}

pack_struct!(SubscriptionChange { stage, repeats_command, deferred, registered_at });
pack_enum!(Stage {
    0 => Due,
    1 => AwaitingData(call),
    2 => AwaitingDecision(call, subscribed),
    3 => AwaitingUserPlane,
    4 => Applying,
    5 => Subscribing(call),
    6 => Unsubscribed,
    7 => Resubscribing(call),
    8 => Registering(call),
    9 => Registered,
    10 => Reregistering(call),
    11 => Retrieving(call),
    12 => Unanswered,
    13 => AwaitingActivation,
    14 => Deferred,
    15 => Unverified,
    16 => Verifying(call),
});

impl SubscriptionChange {
    /// The data are to be requested.
    const DUE: Self = Self { stage: Stage::Due, repeats_command: false, deferred: None, registered_at: None };

    /// The registration is to be checked.
    pub(in crate::smf) const UNVERIFIED: Self =
        Self { stage: Stage::Unverified, repeats_command: false, deferred: None, registered_at: None };

    /// Unpacks a change of version 1 of its section.
    pub(in crate::smf) fn unpack_version_1(reader: &mut Reader<'_>) -> Result<Option<Self>, UnpackError> {
        let change: Option<(Stage, bool, Option<Qos>)> = Pack::unpack(reader)?;
        Ok(change.map(|(stage, repeats_command, deferred)| Self {
            stage,
            repeats_command,
            deferred,
            registered_at: None,
        }))
    }

    /// Whether the UDM or the PCF are to answer.
    pub(in crate::smf) const fn awaits_nf(&self) -> bool {
        self.call().is_some()
    }

    const fn call(&self) -> Option<CallId> {
        match self.stage {
            Stage::AwaitingData(call)
            | Stage::AwaitingDecision(call, _)
            | Stage::Subscribing(call)
            | Stage::Resubscribing(call)
            | Stage::Registering(call)
            | Stage::Reregistering(call)
            | Stage::Retrieving(call)
            | Stage::Verifying(call) => Some(call),
            Stage::Due
            | Stage::AwaitingUserPlane
            | Stage::Applying
            | Stage::Unsubscribed
            | Stage::Registered
            | Stage::Unanswered
            | Stage::AwaitingActivation
            | Stage::Deferred
            | Stage::Unverified => None,
        }
    }

    /// Whether the UDM has notified a change.
    pub(in crate::smf) const fn is_notified(&self) -> bool {
        match self.stage {
            Stage::Due
            | Stage::AwaitingData(_)
            | Stage::AwaitingDecision(..)
            | Stage::AwaitingUserPlane
            | Stage::Applying
            | Stage::Deferred => true,
            Stage::Subscribing(_)
            | Stage::Unsubscribed
            | Stage::Resubscribing(_)
            | Stage::Registering(_)
            | Stage::Registered
            | Stage::Reregistering(_)
            | Stage::Retrieving(_)
            | Stage::Unanswered
            | Stage::AwaitingActivation
            | Stage::Unverified
            | Stage::Verifying(_) => false,
        }
    }

    /// It begins again: the answers that it waits for do not count, and the UE may not have got the command.
    fn due(self) -> Self {
        let repeats_command = self.repeats_command || self.stage == Stage::Applying;
        Self { repeats_command, deferred: self.deferred, ..Self::DUE }
    }

    /// As [`SubscriptionChange::due`], after a restart: the UDM may not have got registration and subscription.
    pub(in crate::smf) fn restarted(self) -> Self {
        match self.stage {
            _ if self.is_notified() => self.due(),
            Stage::Unverified | Stage::Verifying(_) => Self { stage: Stage::Unverified, ..self },
            _ => Self { stage: Stage::Unsubscribed, ..self },
        }
    }
}

/// Whether that call is one of the change.
pub(in crate::smf) fn awaits(session: &SmContext, call: CallId) -> bool {
    session.subscription_change.as_ref().and_then(SubscriptionChange::call) == Some(call)
}

/// Registers with the UDM. The session is established meanwhile.
pub(in crate::smf) fn register(session: &mut SmContext, env: &mut Env<'_>, supi: Supi) {
    let now = env.identity.date_time(env.now);
    let stage = Stage::Registering(consumer::register(session, env, supi, now));
    let change = SubscriptionChange { stage, registered_at: Some(now), ..SubscriptionChange::DUE };
    session.subscription_change = Some(change);
}

/// Requests the registration that the UDM has: the UE may have established the session again since, at another SMF.
fn retrieve_registration(session: &mut SmContext, env: &mut Env<'_>, stage: fn(CallId) -> Stage) {
    if let Some(supi) = session.ue.supi().cloned() {
        let call = consumer::retrieve_registration(session, env, supi);
        set(session, stage(call));
    }
}

/// Registers again, with the time of the first registration: the UDM refuses it if there is a later one.
fn register_again(session: &mut SmContext, env: &mut Env<'_>) {
    let first = session.subscription_change.as_ref().and_then(|change| change.registered_at);
    if let Some(supi) = session.ue.supi().cloned() {
        let first = first.unwrap_or_else(|| env.identity.date_time(env.now));
        let call = consumer::register(session, env, supi, first);
        set(session, Stage::Reregistering(call));
    }
}

/// The session has a policy association. It subscribes to changes, after the registration, with which the subscription ends.
pub(in crate::smf) fn on_policy_created(session: &mut SmContext, env: &mut Env<'_>) {
    if session.subscription_change.as_ref().is_some_and(|change| change.stage == Stage::Registered) {
        subscribe(session, env, Stage::Subscribing);
    }
}

fn subscribe(session: &mut SmContext, env: &mut Env<'_>, stage: fn(CallId) -> Stage) {
    if let Some(supi) = session.ue.supi().cloned() {
        let call = consumer::subscribe_to_changes(session, env, supi);
        set(session, stage(call));
    }
}

/// The UDM notifies a change: the current data are requested as soon as the session is established, also if a request is in progress, which may
/// have been answered before.
pub(in crate::smf) fn begin(session: &mut SmContext) {
    let former = session.subscription_change.take();
    session.subscription_change = Some(former.map_or(SubscriptionChange::DUE, SubscriptionChange::due));
}

/// Requests the data, registers and subscribes again, or applies what was decided while the UE was idle.
pub(in crate::smf) fn resume(established: Established, session: &mut SmContext, env: &mut Env<'_>) -> State {
    let is_active = established.user_plane.gnb.is_some();
    match session.subscription_change.as_ref().map(|it| &it.stage) {
        Some(Stage::Due) => {
            if let Some(supi) = session.ue.supi().cloned() {
                let of = (supi, env.identity.plmn);
                let call = consumer::get_sm_data(session, env, of);
                set(session, Stage::AwaitingData(call));
            }
        }
        Some(Stage::Unsubscribed) => retrieve_registration(session, env, Stage::Retrieving),
        Some(Stage::Unverified) => retrieve_registration(session, env, Stage::Verifying),
        Some(Stage::AwaitingActivation) if is_active => {
            session.stop(env, SessionTimer::Reregistration);
            retrieve_registration(session, env, Stage::Retrieving);
        }
        Some(Stage::Unanswered) if !is_active => set(session, Stage::AwaitingActivation),
        Some(Stage::AwaitingUserPlane | Stage::Deferred) if is_active => apply_deferred(session),
        _ => {}
    }
    established.into()
}

fn set(session: &mut SmContext, stage: Stage) {
    if let Some(change) = &mut session.subscription_change {
        change.stage = stage;
    }
}

/// QoS that waits for the user plane is pending from now on. It is never older than QoS that is pending behind a command.
pub(in crate::smf) fn apply_deferred(session: &mut SmContext) {
    let Some(change) = &mut session.subscription_change else { return };
    let Some(qos) = change.deferred.take() else { return };
    session.pending.qos = Some(qos);
    if change.stage == Stage::AwaitingUserPlane {
        (change.stage, change.repeats_command) = (Stage::Applying, false);
    }
}

/// The UE has answered a command, or does not: a change that was being applied is complete.
pub(in crate::smf) fn on_command_ended(session: &mut SmContext) {
    let is_pending = session.pending.qos.is_some();
    session.subscription_change.take_if(|it| it.stage == Stage::Applying && !is_pending);
}

/// A UE that has no user plane did not answer the command: it may not be reachable (TS 24.501 6.3.2.5 a ends the procedure). UPF and SMF keep the
/// rates, and the UE gets them when its user plane is active.
pub(in crate::smf) fn repeat_with_user_plane(session: &mut SmContext) {
    match &mut session.subscription_change {
        Some(change) => change.repeats_command = true,
        none => {
            let latest = session.pending.qos.as_ref().unwrap_or(&session.qos);
            let (stage, deferred) = (Stage::AwaitingUserPlane, Some(latest.clone()));
            *none = Some(SubscriptionChange { stage, deferred, ..SubscriptionChange::DUE });
        }
    }
}

/// Whether a command is to be repeated when the user plane is active.
pub(in crate::smf) fn awaits_user_plane(session: &SmContext) -> bool {
    let change = session.subscription_change.as_ref();
    change.is_some_and(|it| it.repeats_command || it.stage == Stage::AwaitingUserPlane)
}

/// Handles the answer of UDM or PCF.
pub(in crate::smf) fn on_reply(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: Reply,
) -> State {
    let Some(change) = session.subscription_change.clone() else { return state };
    match change.stage {
        Stage::AwaitingData(_) => on_data(state, session, env, reply),
        Stage::AwaitingDecision(_, subscribed) => on_decision(state, session, env, (reply, subscribed)),
        Stage::Retrieving(_) => on_former_registration(state, session, env, change.registered_at, &reply),
        Stage::Verifying(_) => on_verification(state, session, env, change, &reply),
        Stage::Registering(_) | Stage::Reregistering(_) | Stage::Subscribing(_) | Stage::Resubscribing(_) => {
            on_registration(state, session, env, change, &reply)
        }
        Stage::Due
        | Stage::AwaitingUserPlane
        | Stage::Applying
        | Stage::Unsubscribed
        | Stage::Registered
        | Stage::Unanswered
        | Stage::AwaitingActivation
        | Stage::Deferred
        | Stage::Unverified => state,
    }
}

/// The registration that the UDM has. The SMF compares the times itself: a UDM can't know whether a request whose time is long past is a repeated
/// one, or that of a wrong clock.
fn on_former_registration(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    first: Option<DateTime>,
    reply: &Reply,
) -> State {
    match reply {
        Ok(Response::SmfRegistration(known)) if is_replaced(session, env, first, known) => {
            return end_replaced(state, session, env);
        }
        Err(problem) if is_unanswered(problem) => await_activation(&state, session, env, problem),
        _ => register_again(session, env),
    }
    state
}

/// Whether the registration is that of another SM context, which the UE has got later.
fn is_replaced(session: &SmContext, env: &Env<'_>, first: Option<DateTime>, known: &SmfRegistration) -> bool {
    !is_own(session, env, known)
        && known.registration_time.zip(first).is_some_and(|(known, first)| known > first)
}

/// Whether the registration is that of this SM context.
fn is_own(session: &SmContext, env: &Env<'_>, known: &SmfRegistration) -> bool {
    let reference = env.reference(session);
    known.dereg_callback_uri.as_ref().is_some_and(|uri| uri.id() == reference)
}

/// The registration that the UDM has, some time after that of this session has replaced another one. A further SM context has one that is later; if
/// there is none, changes may have been missed, too. One without a callback URI, which is optional (TS 29.503 6.2.6.2.4), may be this session's.
fn on_verification(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    change: SubscriptionChange,
    reply: &Reply,
) -> State {
    match reply {
        Ok(Response::SmfRegistration(known))
            if known.dereg_callback_uri.is_some() && !is_own(session, env, known) =>
        {
            return end_replaced(state, session, env);
        }
        Err(problem) if is_unanswered(problem) => {
            session.start(env, SessionTimer::RegistrationCheck, REREGISTRATION);
            end_verification(session, change);
        }
        Ok(Response::SmfRegistration(_)) => end_verification(session, change),
        _ => register_again(session, env),
    }
    state
}

/// A command that the UE may have missed meanwhile is repeated.
fn end_verification(session: &mut SmContext, change: SubscriptionChange) {
    session.subscription_change = change.repeats_command.then(|| change.due());
}

fn end_replaced(state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    session.log(env, Level::Info, || "the UE has another SM context for the session: it ends".to_owned());
    release::end_duplicate(state, session, env)
}

/// The UDM has answered a registration or a subscription. A session that it refuses, or whose changes it does not notify, goes on.
fn on_registration(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    change: SubscriptionChange,
    reply: &Reply,
) -> State {
    match reply {
        // The registration of another SM context, which may delete this one.
        Ok(Response::SmfRegistration(_) | Response::NoContent)
            if matches!(change.stage, Stage::Registering(_)) =>
        {
            session.start(env, SessionTimer::RegistrationCheck, REGISTRATION_CHECK);
        }
        Ok(_) => {}
        Err(problem) if problem.is(&Cause::LateOverlappingRequest) => {
            return end_replaced(state, session, env);
        }
        Err(problem) if is_unanswered(problem) => {
            await_activation(&state, session, env, problem);
            return state;
        }
        Err(problem) => log_problem(session, env, problem),
    }
    match change.stage {
        Stage::Registering(_) if matches!(state, State::AwaitingPolicyDecision(_)) => {
            set(session, Stage::Registered);
        }
        Stage::Registering(_) => subscribe(session, env, Stage::Subscribing),
        Stage::Reregistering(_) => subscribe(session, env, Stage::Resubscribing),
        Stage::Subscribing(_) if !change.repeats_command => session.subscription_change = None,
        _ => session.subscription_change = Some(change.due()),
    }
    state
}

/// The UDM does not answer, although the request was repeated. UDMs that are not reachable are not requested at once again.
fn await_activation(state: &State, session: &mut SmContext, env: &mut Env<'_>, problem: &Problem) {
    log_problem(session, env, problem);
    set(session, if state.has_tunnel() { Stage::Unanswered } else { Stage::AwaitingActivation });
    session.start(env, SessionTimer::Reregistration, REREGISTRATION);
}

/// A UDM that has not answered may do so now: [`resume`] registers the session again, or requests changed data.
pub(super) fn on_reregistration_due(session: &mut SmContext) {
    match session.subscription_change.as_ref().map(|it| &it.stage) {
        Some(Stage::Unanswered | Stage::AwaitingActivation) => set(session, Stage::Unsubscribed),
        Some(Stage::Deferred) => set(session, Stage::Due),
        _ => {}
    }
}

/// The SM context that had the session before does not delete the registration any longer. [`resume`] checks whether it has. A change in progress goes
/// on first.
pub(super) fn on_registration_check_due(session: &mut SmContext, env: &mut Env<'_>) {
    if session.subscription_change.is_some() {
        session.start(env, SessionTimer::RegistrationCheck, REGISTRATION_CHECK);
    } else {
        session.subscription_change = Some(SubscriptionChange::UNVERIFIED);
    }
}

fn log_problem(session: &SmContext, env: &mut Env<'_>, problem: &Problem) {
    session.log(env, Level::Warn, || format!("no registration with the UDM, or subscription: {problem}"));
}

/// The subscribed data.
fn on_data(state: State, session: &mut SmContext, env: &mut Env<'_>, reply: Reply) -> State {
    let subscribed = match reply {
        Ok(Response::SmData(data)) => subscribed_data(session, env, &data),
        Err(problem) if matches!(problem.cause(), Some(Cause::DataNotFound | Cause::UserNotFound)) => None,
        other => return give_up(state, session, env, Operation::GetSmData, other.err()),
    };
    let Some((subscribed, addressing)) = subscribed else { return end(state, session, env) };
    if addressing.as_ref() != Ok(&session.addressing) {
        return readdress(state, session, env);
    }
    if subscribed != session.subscribed {
        match consumer::update_policy_qos(session, env, &subscribed) {
            Some(call) => set(session, Stage::AwaitingDecision(call, subscribed)),
            None => {
                session.subscribed = subscribed.clone();
                decide(&state, session, subscribed);
            }
        }
    } else {
        let qos = latest(session);
        decide(&state, session, qos);
    }
    state
}

/// The PCF's decision on the subscribed QoS (TS 29.512 4.2.4.2). An association that the PCF does not know authorises nothing else.
fn on_decision(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    (reply, subscribed): (Reply, Qos),
) -> State {
    match reply {
        Ok(Response::SmPolicyDecision(decision)) => {
            session.subscribed = subscribed;
            let qos = authorised(&state, session, env, &decision);
            decide(&state, session, qos);
        }
        Err(problem) if problem.status == 404 => {
            session.subscribed = subscribed.clone();
            decide(&state, session, subscribed);
        }
        other => return give_up(state, session, env, Operation::UpdateSmPolicy, other.err()),
    }
    state
}

/// The QoS after the PCF's decision, which may change rules, too.
fn authorised(state: &State, session: &mut SmContext, env: &mut Env<'_>, decision: &SmPolicyDecision) -> Qos {
    let mut qos = latest(session);
    modification::apply_rules(state, session, env, decision, &qos);
    authorise(&mut qos, decision);
    qos
}

/// The QoS that the session has, or gets.
fn latest(session: &SmContext) -> Qos {
    let deferred = session.subscription_change.as_ref().and_then(|change| change.deferred.as_ref());
    deferred.or(session.pending.qos.as_ref()).unwrap_or(&session.qos).clone()
}

/// The session gets that QoS: at once, or when the UE's user plane is active.
fn decide(state: &State, session: &mut SmContext, qos: Qos) {
    let Some(change) = &mut session.subscription_change else { return };
    let is_new = qos != *session.pending.qos.as_ref().unwrap_or(&session.qos) || change.repeats_command;
    if !is_new {
        session.subscription_change = None;
    } else if state.has_tunnel() {
        session.pending.qos = Some(qos);
        *change = SubscriptionChange { stage: Stage::Applying, ..SubscriptionChange::DUE };
    } else {
        (change.stage, change.deferred) = (Stage::AwaitingUserPlane, Some(qos));
    }
}

/// UDM or PCF refuse, or do not answer: then the change begins again later.
fn give_up(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    operation: Operation,
    problem: Option<Box<Problem>>,
) -> State {
    let is_deferred = problem.as_ref().is_some_and(|problem| problem.may_pass());
    let why = problem.map_or_else(|| "unexpected reply".to_owned(), |problem| problem.to_string());
    session.log(env, Level::Warn, || {
        let until = if is_deferred { " yet" } else { "" };
        format!("a changed subscription is not applied{until}: {}: {why}", operation.name())
    });
    if is_deferred {
        set(session, Stage::Deferred);
        session.start(env, SessionTimer::Reregistration, NEW_ATTEMPT);
        return state;
    }
    let qos = latest(session);
    decide(&state, session, qos);
    state
}

/// The subscription has other static addresses or framed routes. An address of a session can't change (SSC mode 1), so the UE establishes the session
/// again (TS 24.501 6.3.3.2, #39).
fn readdress(state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    session.subscription_change = None;
    session
        .log(env, Level::Info, || "its static addresses or framed routes are to change: released".to_owned());
    match state {
        State::Established(Established { user_plane }) if user_plane.gnb.is_none() => {
            release::end_and_notify_amf(user_plane.into(), session, env)
        }
        state => release::release_when_established(state, session, GsmCause::ReactivationRequested),
    }
}

/// The data network or the slice is not subscribed any longer. The UE would be refused if it established the session again at once, so that the
/// cause is not #39.
fn end(state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    session.subscription_change = None;
    session.log(env, Level::Info, || {
        format!("'{}' in slice {} is not subscribed any longer: released", session.dnn, session.snssai)
    });
    match state {
        State::Established(Established { user_plane }) if user_plane.gnb.is_none() => {
            release::end_and_notify_amf(user_plane.into(), session, env)
        }
        state => release::release_when_established(state, session, GsmCause::RegularDeactivation),
    }
}
