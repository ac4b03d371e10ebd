//! The network side of a registration: registration of the AMF in the UDM, subscription data, slice
//! selection and AM policy (TS 23.502 4.2.2.2.2 steps 14 to 16).

use super::{Attempt, emergency, on_policy_decided};
use crate::amf::consumer;
use crate::amf::context::{AmPolicy, CallId, Env, UeContext};
use crate::amf::error::RegistrationError;
use crate::amf::procedure::{Procedure, RegistrationStep, Step, reallocation};
use crate::amf::reallocation::NssfSlices;
use crate::amf::slices::{self, Decision, Slices};
use crate::amf::subscription::Subscription;
use crate::kit::document::pack_struct;
use crate::kit::{Level, Nf};
use pith_sbi::{Operation, Reply, Response};
use pith_types::Snssai;

/// Nudm_UECM_Registration is pending.
#[derive(Debug)]
pub(crate) struct AwaitingUecmRegistration {
    pub(super) attempt: Attempt,
    pub call: CallId,
}

/// Nudm_SDM_Get is pending.
#[derive(Debug)]
pub(crate) struct AwaitingSubscriptionData {
    pub(super) attempt: Attempt,
    pub call: CallId,
}

/// Nnssf_NSSelection_Get is pending.
#[derive(Debug)]
pub(crate) struct AwaitingSliceSelection {
    pub(super) attempt: Attempt,
    pub call: CallId,
}

/// Npcf_AMPolicyControl_Create is pending; or Update, and then Get, for the association of the AMF from which the context came.
#[derive(Debug)]
pub(crate) struct AwaitingPolicyAssociation {
    pub(super) attempt: Attempt,
    pub call: CallId,
}

pack_struct!(AwaitingUecmRegistration { attempt, call });
pack_struct!(AwaitingSubscriptionData { attempt, call });
pack_struct!(AwaitingSliceSelection { attempt, call });
pack_struct!(AwaitingPolicyAssociation { attempt, call });

/// Nudm_UECM_Registration (step 14a); the UDM notifies the AMF that was registered before.
pub(in crate::amf::procedure) fn register_in_udm(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    attempt: Attempt,
) -> RegistrationStep {
    let call = consumer::register_in_udm(ue, env, attempt.kind()).ok_or(RegistrationError::NoIdentity)?;
    let next = AwaitingUecmRegistration { attempt, call };
    Ok(Step::waiting(Procedure::AwaitingUecmRegistration(next), Nf::Udm))
}

impl AwaitingUecmRegistration {
    /// Registered in the UDM: Nudm_SDM_Get (step 14b).
    pub fn on_reply(self, ue: &mut UeContext, env: &mut Env<'_>, reply: Reply) -> RegistrationStep {
        if ue.is_emergency_registered() {
            // A refusal does not matter (TS 23.502 4.2.2.2.2 step 14a).
            ue.registered_in_udm = reply.is_ok();
            return on_policy_decided(ue, env, self.attempt);
        }
        if let Err(problem) = reply {
            let error = RegistrationError::of_problem(Operation::ThreeGppRegistration, &problem);
            return emergency::accept_or_fail(ue, env, self.attempt, error);
        }
        consumer::note_registered_in_udm(ue, env);
        let call = consumer::subscription_data(ue, env).ok_or(RegistrationError::NoIdentity)?;
        // What was to be requested because of a change before. A change from now on is requested after the registration.
        let was_due = ue.refresh_call.take().is_some();
        ue.owes_configured_nssai |= was_due && ue.subscription.is_some();
        let next = AwaitingSubscriptionData { attempt: self.attempt, call };
        Ok(Step::waiting(Procedure::AwaitingSubscriptionData(next), Nf::Udm))
    }
}

impl AwaitingSubscriptionData {
    /// The subscription data: Nudm_SDM_Subscribe to their changes (step 14c), without waiting for
    /// the reply, then slice selection.
    pub fn on_reply(self, ue: &mut UeContext, env: &mut Env<'_>, reply: Reply) -> RegistrationStep {
        if ue.is_emergency_registered() {
            // The UDM has ended the subscription meanwhile.
            return on_policy_decided(ue, env, self.attempt);
        }
        let data = match reply {
            Ok(Response::SubscriptionDataSets(data)) => *data,
            Ok(_) => return Err(RegistrationError::WrongAnswer(Operation::GetDataSets)),
            Err(problem) => {
                let error = RegistrationError::of_problem(Operation::GetDataSets, &problem);
                return emergency::accept_or_fail(ue, env, self.attempt, error);
            }
        };
        ue.restrict(data.am_data.as_ref());
        ue.subscribe_trace(data.am_data.as_ref().and_then(|data| data.trace_data.as_ref()), env.out);
        let Some(subscription) = Subscription::of(data) else {
            return emergency::accept_or_fail(ue, env, self.attempt, RegistrationError::ServicesNotAllowed);
        };
        ue.subscription = Some(Box::new(subscription));
        if ue.sdm_subscription.is_none() {
            ue.sdm_call = consumer::subscribe_to_changes(ue, env);
        }
        select_slices(ue, env, self.attempt)
    }
}

/// Selects the slices, or asks the NSSF if a subscribed slice is not served here (TS 23.501
/// 5.15.5.2.1, TS 23.502 4.2.2.2.3).
pub(super) fn select_slices(ue: &mut UeContext, env: &mut Env<'_>, attempt: Attempt) -> RegistrationStep {
    if let Err(error) = ue.check_restrictions() {
        return emergency::accept_or_fail(ue, env, attempt, error);
    }
    let subscription =
        ue.subscription.as_deref().ok_or(RegistrationError::WrongAnswer(Operation::GetDataSets))?;
    let requested = requested(&attempt);
    if let Some(origin) = ue.reallocation.as_ref().and_then(|it| it.origin.as_ref()) {
        // The initial AMF has asked its NSSF. To ask once more could send the UE back.
        let slices = origin.slices(&requested, subscription, &served(ue, env));
        return allow(ue, env, attempt, slices);
    }
    match slices::decide(&requested, subscription, &served(ue, env)) {
        Decision::Local(slices) => allow(ue, env, attempt, slices),
        Decision::AskNssf => {
            let call = consumer::select_slices(ue, env, &requested);
            let next = AwaitingSliceSelection { attempt, call };
            Ok(Step::waiting(Procedure::AwaitingSliceSelection(next), Nf::Nssf))
        }
    }
}

fn requested(attempt: &Attempt) -> Vec<Snssai> {
    attempt.request.requested_nssai.iter().flat_map(|nssai| nssai.iter()).collect()
}

/// Slices that both this AMF and the UE's gNB serve in the UE's tracking area. A gNB that no longer serves that one has not said yet where the UE
/// is: any of its areas.
fn served(ue: &UeContext, env: &Env<'_>) -> Vec<Snssai> {
    let Some(location) = ue.location else { return Vec::new() };
    let connection = ue.connection.and_then(|key| env.connections.get(key));
    let gnb = connection.and_then(|connection| env.gnbs.get(&connection.gnb));
    let areas = || gnb.iter().flat_map(|gnb| &gnb.supported);
    let is_known = areas().any(|(tai, _)| *tai == location.tai);
    let in_cell = |slice: &Snssai| {
        areas().filter(|(tai, _)| !is_known || *tai == location.tai).any(|(_, slices)| slices.contains(slice))
    };
    let here = env.config.slices(location.tai.plmn_id);
    here.iter().copied().filter(|slice| gnb.is_none() || in_cell(slice)).collect()
}

impl AwaitingSliceSelection {
    /// The NSSF's result. If the NSSF fails, the AMF selects among the slices that it serves.
    pub fn on_reply(self, ue: &mut UeContext, env: &mut Env<'_>, reply: Reply) -> RegistrationStep {
        if ue.is_emergency_registered() {
            return on_policy_decided(ue, env, self.attempt);
        }
        let problem = match reply {
            Ok(Response::AuthorizedNetworkSliceInfo(info)) => {
                let nssf = NssfSlices::of_nssf((*info).clone());
                return match reallocation::targets(ue, env, &info, &nssf) {
                    Some(targets) => reallocation::proceed(ue, env, self.attempt, (nssf, targets)),
                    None => serve_here(ue, env, self.attempt, &nssf),
                };
            }
            other => other.err(),
        };
        let why = problem.map_or_else(String::new, |problem| format!(": {problem}"));
        env.out.log(Level::Warn, || format!("NSSF sent no slices{why}"));
        let served = served(ue, env);
        let subscription =
            ue.subscription.as_deref().ok_or(RegistrationError::WrongAnswer(Operation::GetDataSets))?;
        let slices = slices::decide_alone(&requested(&self.attempt), subscription, &served);
        allow(ue, env, self.attempt, slices)
    }
}

/// No other AMF takes the UE: it gets the slices that this one serves, of those that the NSSF allows if there are such.
pub(in crate::amf::procedure) fn serve_here(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    attempt: Attempt,
    nssf: &NssfSlices,
) -> RegistrationStep {
    let served = served(ue, env);
    let mut slices = nssf.served(&served);
    if slices.allowed.is_empty()
        && let Some(subscription) = ue.subscription.as_deref()
    {
        slices = slices::decide_alone(&requested(&attempt), subscription, &served);
    }
    allow(ue, env, attempt, slices)
}

/// Slices are selected: AM policy (steps 15 and 16), unless there is an association already.
fn allow(ue: &mut UeContext, env: &mut Env<'_>, attempt: Attempt, slices: Slices) -> RegistrationStep {
    if slices.allowed.is_empty() {
        let error = RegistrationError::NoSlicesAvailable(slices.rejected);
        return emergency::accept_or_fail(ue, env, attempt, error);
    }
    ue.slices = slices;
    if ue.policy.is_some() {
        return on_policy_decided(ue, env, attempt);
    }
    match consumer::take_policy(ue, env) {
        Some(call) => Ok(await_policy(attempt, call)),
        None => create_policy(ue, env, attempt),
    }
}

/// Npcf_AMPolicyControl_Create (step 16).
fn create_policy(ue: &mut UeContext, env: &mut Env<'_>, attempt: Attempt) -> RegistrationStep {
    let call = consumer::create_policy(ue, env).ok_or(RegistrationError::NoIdentity)?;
    Ok(await_policy(attempt, call))
}

fn await_policy(attempt: Attempt, call: CallId) -> Step {
    Step::waiting(Procedure::AwaitingPolicyAssociation(AwaitingPolicyAssociation { attempt, call }), Nf::Pcf)
}

impl AwaitingPolicyAssociation {
    /// The policy. Without one the subscription applies: a registration does not fail because a PCF
    /// is missing (TS 23.502 4.2.2.2.2 step 16 is optional).
    pub fn on_reply(self, ue: &mut UeContext, env: &mut Env<'_>, reply: Reply) -> RegistrationStep {
        if ue.is_emergency_registered() {
            consumer::undo(env, reply);
            consumer::delete_policy(ue, env);
            return on_policy_decided(ue, env, self.attempt);
        }
        match reply {
            Ok(Response::PolicyUpdate(_)) if ue.transferred_policy.is_some() => {
                return self.on_taken(ue, env);
            }
            Ok(Response::PolicyAssociation(association)) => {
                let transferred = ue.transferred_policy.take().map(|transferred| transferred.uri);
                // A document of an earlier version has the association as this AMF's before its policy was read.
                if let Some(uri) = transferred.or_else(|| ue.policy.take().map(|policy| policy.uri)) {
                    let (rfsp, ue_ambr) = (association.rfsp, association.ue_ambr);
                    ue.policy = Some(AmPolicy { uri, rfsp, ue_ambr });
                    ue.restrict_by_policy(association.serv_area_res.as_ref());
                }
            }
            Err(problem) if ue.transferred_policy.is_some() => {
                env.out.log(Level::Info, || format!("the PCF does not go on with the AM policy: {problem}"));
                // Without an answer of the PCF the association may be this AMF's: the next registration takes it again, and reads it.
                if problem.status < 500 {
                    ue.transferred_policy = None;
                    return create_policy(ue, env, self.attempt);
                }
            }
            Ok(Response::PolicyAssociationCreated(created)) => {
                let policy = created.body;
                let (rfsp, ue_ambr) = (policy.rfsp, policy.ue_ambr);
                ue.restrict_by_policy(policy.serv_area_res.as_ref());
                ue.policy = Some(AmPolicy { uri: created.location, rfsp, ue_ambr });
            }
            Ok(_) => env.out.log(Level::Warn, || "PCF sent no policy".into()),
            Err(problem) => env.out.log(Level::Warn, || format!("PCF sent no policy: {problem}")),
        }
        on_policy_decided(ue, env, self.attempt)
    }

    /// The association is this AMF's now. The answer has what has changed of the policy; the PCF sent the rest to the AMF from which the
    /// context came, so this one reads it (TS 29.507 4.2.3.1). Until it has the policy the association counts as transferred: if the PCF does
    /// not answer, the next registration reads it.
    fn on_taken(self, ue: &mut UeContext, env: &mut Env<'_>) -> RegistrationStep {
        let Some(uri) = ue.transferred_policy.as_ref().map(|transferred| transferred.uri.clone()) else {
            return on_policy_decided(ue, env, self.attempt);
        };
        let call = consumer::read_policy(ue, env, &uri);
        Ok(await_policy(self.attempt, call))
    }
}
