//! The procedure of a UE: one state for each wait, which owns the data that are valid while it waits.
//!
//! A state consumes itself and returns the next state. A UE has one 5GMM procedure at a time; its
//! PDU sessions have their own transactions with the SMF in parallel ([`super::session`]).

pub(crate) mod activation;
pub(crate) mod authentication;
pub(crate) mod configuration_update;
pub(crate) mod context_setup;
pub(crate) mod context_transfer;
pub(crate) mod deregistration;
pub(crate) mod eap_authentication;
pub(crate) mod identification;
pub(crate) mod nas_non_delivery;
pub(crate) mod nas_transport;
pub(crate) mod null_security_mode;
pub(crate) mod paging;
pub(crate) mod pdu_session_resources;
pub(crate) mod reallocation;
pub(crate) mod reauthentication;
pub(crate) mod registration;
pub(crate) mod security_mode;
pub(crate) mod service_request;
pub(crate) mod session_reply;
pub(crate) mod subscription_change;
pub(crate) mod ue_context_release;
pub(crate) mod voice_match;

use super::context::{CallId, Env, UeContext};
use super::error::RegistrationError;
use super::mobility;
use super::n1::{NasOutcome, Silence};
use super::security::SecurityContext;
use crate::kit::document::pack_enum;
use crate::kit::{Level, Timer};
use pith_nas::GmmMessage;
use pith_sbi::{ApiRoot, Reply};
use registration::{Attempt, AuthenticationPurpose};
use std::sync::Arc;

/// The 5GMM procedure in progress. The states are in the order of a registration.
#[derive(Debug, Default)]
pub(crate) enum Procedure {
    /// No procedure.
    #[default]
    Idle,
    /// Registration: the context is requested from the AMF that allocated the 5G-GUTI.
    AwaitingUeContextTransfer(context_transfer::AwaitingUeContextTransfer),
    /// Identification.
    AwaitingIdentityResponse(identification::AwaitingIdentityResponse),
    /// Authentication: a challenge is requested from the AUSF.
    AwaitingAuthenticationVector(authentication::AwaitingAuthenticationVector),
    /// Authentication: the challenge was sent to the UE.
    AwaitingAuthenticationResponse(authentication::AwaitingAuthenticationResponse),
    /// Authentication: the AUSF verifies the UE's response.
    AwaitingAuthenticationConfirmation(authentication::AwaitingAuthenticationConfirmation),
    /// Authentication by EAP: an EAP-Request was sent to the UE.
    AwaitingEapResponse(eap_authentication::AwaitingEapResponse),
    /// Authentication by EAP: the EAP-Response was sent to the AUSF.
    AwaitingEapSession(eap_authentication::AwaitingEapSession),
    /// Security mode control.
    AwaitingSecurityModeComplete(security_mode::AwaitingSecurityModeComplete),
    /// Security mode control of a UE that is not authenticated, for emergency services.
    AwaitingNullSecurityModeComplete(null_security_mode::AwaitingNullSecurityModeComplete),
    /// Registration: the AMF registers in the UDM.
    AwaitingUecmRegistration(registration::AwaitingUecmRegistration),
    /// Registration: subscription data are requested from the UDM.
    AwaitingSubscriptionData(registration::AwaitingSubscriptionData),
    /// Registration: slice selection is requested from the NSSF.
    AwaitingSliceSelection(registration::AwaitingSliceSelection),
    /// Registration: another AMF is to serve the UE.
    AwaitingAmfReallocation(Box<reallocation::AwaitingAmfReallocation>),
    /// Registration: a policy is requested from the PCF.
    AwaitingPolicyAssociation(registration::AwaitingPolicyAssociation),
    /// Registration or service request: SMFs activate user planes.
    AwaitingSessionActivation(activation::AwaitingSessionActivation),
    /// Registration: the UE confirms its new 5G-GUTI.
    AwaitingRegistrationComplete(registration::AwaitingRegistrationComplete),
    /// Generic UE configuration update.
    AwaitingConfigurationUpdateComplete(configuration_update::AwaitingConfigurationUpdateComplete),
    /// Paging.
    AwaitingPagingResponse(paging::AwaitingPagingResponse),
    /// De-registration by the network.
    AwaitingDeregistrationAccept(deregistration::AwaitingDeregistrationAccept),
}

// In the order in which they were added: a number is never given to another state.
pack_enum!(Procedure {
    0 => Idle,
    1 => AwaitingUeContextTransfer(state),
    2 => AwaitingIdentityResponse(state),
    3 => AwaitingAuthenticationVector(state),
    4 => AwaitingAuthenticationResponse(state),
    5 => AwaitingAuthenticationConfirmation(state),
    6 => AwaitingEapResponse(state),
    7 => AwaitingEapSession(state),
    8 => AwaitingSecurityModeComplete(state),
    9 => AwaitingUecmRegistration(state),
    10 => AwaitingSubscriptionData(state),
    11 => AwaitingSliceSelection(state),
    12 => AwaitingPolicyAssociation(state),
    13 => AwaitingSessionActivation(state),
    14 => AwaitingRegistrationComplete(state),
    15 => AwaitingConfigurationUpdateComplete(state),
    16 => AwaitingPagingResponse(state),
    17 => AwaitingDeregistrationAccept(state),
    18 => AwaitingNullSecurityModeComplete(state),
    19 => AwaitingAmfReallocation(state),
});

/// The result of a procedure's step.
#[derive(Debug)]
pub(crate) struct Step {
    pub next: Procedure,
    /// The result of the message that triggered the step.
    pub outcome: NasOutcome,
}

/// A step of a registration, which may fail.
pub(crate) type RegistrationStep = Result<Step, RegistrationError>;

/// What handles the failure of a registration or an authentication.
#[derive(Debug)]
enum FailureHandler {
    Registration,
    Reauthentication,
    ServiceRequest,
    /// The authentication for an emergency registration: the UE may be admitted without.
    EmergencyAuthentication(Box<Attempt>),
}

impl FailureHandler {
    fn handle(self, ue: &mut UeContext, env: &mut Env<'_>, error: &RegistrationError) -> NasOutcome {
        match self {
            Self::Registration => registration::fail(ue, env, error),
            Self::Reauthentication => reauthentication::fail(ue, env, error),
            Self::ServiceRequest => service_request::fail_authentication(ue, env, error),
            Self::EmergencyAuthentication(attempt) => {
                registration::admit_after_failure(ue, env, *attempt, error)
            }
        }
    }
}

impl Step {
    /// The named message was sent to the UE, and its answer is pending.
    pub const fn replied(next: Procedure, message: &'static str) -> Self {
        Self { next, outcome: NasOutcome::Replied(message) }
    }

    /// A request to another NF is pending.
    pub const fn waiting(next: Procedure, nf: crate::kit::Nf) -> Self {
        Self { next, outcome: NasOutcome::Waiting(nf) }
    }

    /// The procedure is complete, and no answer is due.
    pub const fn complete() -> Self {
        Self { next: Procedure::Idle, outcome: NasOutcome::Silent(Silence::Complete) }
    }
}

impl Procedure {
    /// The security context of a SECURITY MODE COMMAND that the UE has not confirmed yet.
    pub fn new_security(&mut self) -> Option<&mut SecurityContext> {
        match self {
            Self::AwaitingSecurityModeComplete(state) => Some(&mut state.offer.context),
            Self::AwaitingNullSecurityModeComplete(state) => Some(&mut state.offer.context),
            _ => None,
        }
    }

    /// What an authentication in progress belongs to, until its security mode control is complete.
    fn authentication(&self) -> Option<&Attempt> {
        match self {
            Self::AwaitingAuthenticationVector(state) => Some(state.attempt()),
            Self::AwaitingAuthenticationResponse(state) => Some(state.attempt()),
            Self::AwaitingAuthenticationConfirmation(state) => Some(state.attempt()),
            Self::AwaitingEapResponse(state) => Some(state.attempt()),
            Self::AwaitingEapSession(state) => Some(state.attempt()),
            Self::AwaitingSecurityModeComplete(state) => Some(state.attempt()),
            _ => None,
        }
    }

    /// What the UE is being authenticated for.
    pub fn purpose(&self) -> Option<AuthenticationPurpose> {
        self.authentication().map(|attempt| attempt.purpose)
    }

    /// Handles a failure of the state's next step.
    fn failure_handler(&self) -> FailureHandler {
        let Some(attempt) = self.authentication() else { return FailureHandler::Registration };
        let is_authenticated = matches!(self, Self::AwaitingSecurityModeComplete(_));
        match attempt.purpose {
            AuthenticationPurpose::Registration if attempt.is_emergency() && !is_authenticated => {
                FailureHandler::EmergencyAuthentication(Box::new(attempt.to_be_admitted()))
            }
            AuthenticationPurpose::Registration => FailureHandler::Registration,
            AuthenticationPurpose::NewKeys => FailureHandler::Reauthentication,
            AuthenticationPurpose::ServiceRequest => FailureHandler::ServiceRequest,
        }
    }

    /// Whether the SMF's answer to an activation of that session is awaited.
    pub fn activates(&self, id: u8) -> bool {
        matches!(self, Self::AwaitingSessionActivation(state) if state.awaits_session(id))
    }

    /// Whether the SMF has answered an activation of that session, and the gNB gets the setup when other SMFs have answered, too.
    pub fn has_setup_of(&self, id: u8) -> bool {
        matches!(self, Self::AwaitingSessionActivation(state) if state.has_setup_of(id))
    }

    /// Whether a registration is in progress whose result was not yet sent to the UE, or an authentication.
    pub fn is_registering(&self) -> bool {
        match self {
            Self::Idle
            | Self::AwaitingRegistrationComplete(_)
            | Self::AwaitingConfigurationUpdateComplete(_)
            | Self::AwaitingPagingResponse(_)
            | Self::AwaitingDeregistrationAccept(_) => false,
            Self::AwaitingSessionActivation(state) => state.is_registration(),
            Self::AwaitingUeContextTransfer(_)
            | Self::AwaitingIdentityResponse(_)
            | Self::AwaitingAuthenticationVector(_)
            | Self::AwaitingAuthenticationResponse(_)
            | Self::AwaitingAuthenticationConfirmation(_)
            | Self::AwaitingEapResponse(_)
            | Self::AwaitingEapSession(_)
            | Self::AwaitingSecurityModeComplete(_)
            | Self::AwaitingNullSecurityModeComplete(_)
            | Self::AwaitingUecmRegistration(_)
            | Self::AwaitingSubscriptionData(_)
            | Self::AwaitingSliceSelection(_)
            | Self::AwaitingAmfReallocation(_)
            | Self::AwaitingPolicyAssociation(_) => true,
        }
    }

    pub const fn name(&self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::AwaitingUeContextTransfer(_) => "AwaitingUeContextTransfer",
            Self::AwaitingIdentityResponse(_) => "AwaitingIdentityResponse",
            Self::AwaitingAuthenticationVector(_) => "AwaitingAuthenticationVector",
            Self::AwaitingAuthenticationResponse(_) => "AwaitingAuthenticationResponse",
            Self::AwaitingAuthenticationConfirmation(_) => "AwaitingAuthenticationConfirmation",
            Self::AwaitingEapResponse(_) => "AwaitingEapResponse",
            Self::AwaitingEapSession(_) => "AwaitingEapSession",
            Self::AwaitingSecurityModeComplete(_) => "AwaitingSecurityModeComplete",
            Self::AwaitingNullSecurityModeComplete(_) => "AwaitingNullSecurityModeComplete",
            Self::AwaitingUecmRegistration(_) => "AwaitingUecmRegistration",
            Self::AwaitingSubscriptionData(_) => "AwaitingSubscriptionData",
            Self::AwaitingSliceSelection(_) => "AwaitingSliceSelection",
            Self::AwaitingAmfReallocation(_) => "AwaitingAmfReallocation",
            Self::AwaitingPolicyAssociation(_) => "AwaitingPolicyAssociation",
            Self::AwaitingSessionActivation(_) => "AwaitingSessionActivation",
            Self::AwaitingRegistrationComplete(_) => "AwaitingRegistrationComplete",
            Self::AwaitingConfigurationUpdateComplete(_) => "AwaitingConfigurationUpdateComplete",
            Self::AwaitingPagingResponse(_) => "AwaitingPagingResponse",
            Self::AwaitingDeregistrationAccept(_) => "AwaitingDeregistrationAccept",
        }
    }

    /// Whether the state waits for the reply to a call.
    pub fn awaits_nf(&self) -> bool {
        self.awaits_any(|_| true)
    }

    /// Whether the state waits for the reply to that call.
    fn awaits(&self, call: CallId) -> bool {
        self.awaits_any(|pending| pending == call)
    }

    /// Whether the state waits for the reply to a call that meets the condition.
    fn awaits_any(&self, meets: impl Fn(CallId) -> bool) -> bool {
        match self {
            Self::AwaitingUeContextTransfer(state) => meets(state.call),
            Self::AwaitingAuthenticationVector(state) => meets(state.call),
            Self::AwaitingAuthenticationConfirmation(state) => meets(state.call),
            Self::AwaitingEapSession(state) => meets(state.call),
            Self::AwaitingUecmRegistration(state) => meets(state.call),
            Self::AwaitingSubscriptionData(state) => meets(state.call),
            Self::AwaitingSliceSelection(state) => meets(state.call),
            Self::AwaitingAmfReallocation(state) => meets(state.call),
            Self::AwaitingPolicyAssociation(state) => meets(state.call),
            Self::AwaitingSessionActivation(state) => state.awaits_any(meets),
            Self::Idle
            | Self::AwaitingIdentityResponse(_)
            | Self::AwaitingAuthenticationResponse(_)
            | Self::AwaitingEapResponse(_)
            | Self::AwaitingSecurityModeComplete(_)
            | Self::AwaitingNullSecurityModeComplete(_)
            | Self::AwaitingRegistrationComplete(_)
            | Self::AwaitingConfigurationUpdateComplete(_)
            | Self::AwaitingPagingResponse(_)
            | Self::AwaitingDeregistrationAccept(_) => false,
        }
    }
}

/// Handles a message that is valid only in a particular state.
pub(crate) fn on_nas(ue: &mut UeContext, env: &mut Env<'_>, message: GmmMessage) -> NasOutcome {
    use GmmMessage as M;
    use Procedure as P;
    if matches!(message, M::RegistrationComplete(_) | M::ConfigurationUpdateComplete(_)) {
        // The UE answers a downlink message, which proves that it received that COUNT.
        if let Some(security) = &mut ue.security {
            security.unconfirmed = 0;
        }
    }
    let fail = ue.procedure.failure_handler();
    let step = match (std::mem::take(&mut ue.procedure), message) {
        (P::AwaitingIdentityResponse(state), M::IdentityResponse(response)) => {
            state.on_identity_response(ue, env, response)
        }
        (P::AwaitingAuthenticationResponse(state), M::AuthenticationResponse(response)) => {
            state.on_authentication_response(ue, env, &response)
        }
        (P::AwaitingAuthenticationResponse(state), M::AuthenticationFailure(failure)) => {
            state.on_authentication_failure(ue, env, &failure)
        }
        (P::AwaitingEapResponse(state), M::AuthenticationResponse(response)) => {
            state.on_authentication_response(ue, env, response)
        }
        (P::AwaitingEapResponse(state), M::AuthenticationFailure(failure)) => {
            state.on_authentication_failure(ue, env, &failure)
        }
        (P::AwaitingSecurityModeComplete(state), M::SecurityModeComplete(complete)) => {
            state.on_security_mode_complete(ue, env, *complete)
        }
        (P::AwaitingSecurityModeComplete(state), M::SecurityModeReject(reject)) => {
            state.on_security_mode_reject(ue, env, &reject)
        }
        (P::AwaitingNullSecurityModeComplete(state), M::SecurityModeComplete(complete)) => {
            state.on_security_mode_complete(ue, env, *complete)
        }
        (P::AwaitingNullSecurityModeComplete(state), M::SecurityModeReject(reject)) => {
            state.on_security_mode_reject(ue, env, &reject)
        }
        (P::AwaitingRegistrationComplete(state), M::RegistrationComplete(_)) => {
            Ok(state.on_registration_complete(ue, env))
        }
        (P::AwaitingConfigurationUpdateComplete(state), M::ConfigurationUpdateComplete(_)) => {
            Ok(state.on_configuration_update_complete(ue, env))
        }
        (state @ P::AwaitingSessionActivation(_), M::ConfigurationUpdateComplete(complete)) => {
            let Some(update) = ue.take_update() else {
                return not_expected(ue, env, state, &complete.into());
            };
            update.confirmed(ue, env);
            Ok(Step { next: state, outcome: NasOutcome::Silent(Silence::Complete) })
        }
        (P::AwaitingDeregistrationAccept(state), M::DeregistrationAcceptUeTerminated(_)) => {
            Ok(state.on_deregistration_accept(ue, env))
        }
        (state, message) => return not_expected(ue, env, state, &message),
    };
    settle_or(ue, env, step, fail)
}

/// A message that the state does not expect is late or repeated: it changes nothing (TS 24.501 7.4
/// leaves the reaction to the network).
fn not_expected(ue: &mut UeContext, env: &mut Env<'_>, state: Procedure, message: &GmmMessage) -> NasOutcome {
    env.out.log(Level::Warn, || format!("{}: {} in {}", ue.name(), message.name(), state.name()));
    ue.procedure = state;
    NasOutcome::Silent(Silence::NotExpected)
}

/// The reply to that call is from the NF instance with that root.
pub(crate) fn note_sender(ue: &mut UeContext, call: CallId, from: &Arc<ApiRoot>) {
    if let Procedure::AwaitingUeContextTransfer(state) = &mut ue.procedure
        && state.call == call
    {
        state.note_sender(from);
    }
}

/// Handles the reply to one of the UE's calls.
pub(crate) fn on_reply(ue: &mut UeContext, env: &mut Env<'_>, call: CallId, reply: Reply) {
    use Procedure as P;
    if ue.mobility.awaits(call) {
        return mobility::on_reply(ue, env, call, reply);
    }
    if !ue.procedure.awaits(call) {
        return session_reply::on_reply(ue, env, call, reply);
    }
    let fail = ue.procedure.failure_handler();
    let step = match std::mem::take(&mut ue.procedure) {
        P::AwaitingUeContextTransfer(state) => state.on_reply(ue, env, reply),
        P::AwaitingAuthenticationVector(state) => state.on_reply(ue, env, reply),
        P::AwaitingAuthenticationConfirmation(state) => state.on_reply(ue, env, reply),
        P::AwaitingEapSession(state) => state.on_reply(ue, env, reply),
        P::AwaitingUecmRegistration(state) => state.on_reply(ue, env, reply),
        P::AwaitingSubscriptionData(state) => state.on_reply(ue, env, reply),
        P::AwaitingSliceSelection(state) => state.on_reply(ue, env, reply),
        P::AwaitingAmfReallocation(state) => state.on_reply(ue, env, reply),
        P::AwaitingPolicyAssociation(state) => state.on_reply(ue, env, reply),
        P::AwaitingSessionActivation(state) => Ok(state.on_reply(ue, env, call, reply)),
        state => Ok(Step { next: state, outcome: NasOutcome::Silent(Silence::NotExpected) }),
    };
    settle_or(ue, env, step, fail);
}

/// Handles the expiry of a timer.
pub(crate) fn on_timer(ue: &mut UeContext, env: &mut Env<'_>, timer: Timer) {
    use Procedure as P;
    match timer {
        Timer::MobileReachable => return deregistration::unreachable(ue, env),
        Timer::ImplicitDeregistration => return deregistration::implicit(ue, env),
        Timer::Handover => return mobility::on_timer(ue, env),
        Timer::HandoverCompletion => return mobility::complete_again(ue, env),
        Timer::TransferredContext => return context_transfer::on_status_overdue(ue, env),
        Timer::ReroutedMessage => return reallocation::on_rerouted_overdue(ue),
        Timer::SubscriptionData => return,
        // From now on a report of the withdrawn handover is refused.
        Timer::WithdrawnHandover => {
            ue.withdrawn = None;
            return;
        }
        _ => {}
    }
    let fail = ue.procedure.failure_handler();
    let step = match (timer, std::mem::take(&mut ue.procedure)) {
        (Timer::T3570, P::AwaitingIdentityResponse(state)) => state.on_t3570(ue, env),
        (Timer::T3560, P::AwaitingAuthenticationResponse(state)) => state.on_t3560(ue, env),
        (Timer::T3560, P::AwaitingEapResponse(state)) => state.on_t3560(ue, env),
        (Timer::T3560, P::AwaitingSecurityModeComplete(state)) => state.on_t3560(ue, env),
        (Timer::T3560, P::AwaitingNullSecurityModeComplete(state)) => state.on_t3560(ue, env),
        (Timer::T3550, P::AwaitingRegistrationComplete(state)) => Ok(state.on_t3550(ue, env)),
        (Timer::T3555, P::AwaitingConfigurationUpdateComplete(state)) => Ok(state.on_t3555(ue, env)),
        (Timer::T3555, state @ P::AwaitingSessionActivation(_)) => {
            let outcome = configuration_update::on_t3555_beside(ue, env);
            Ok(Step { next: state, outcome })
        }
        (Timer::T3513, P::AwaitingPagingResponse(state)) => Ok(state.on_t3513(ue, env)),
        (Timer::T3522, P::AwaitingDeregistrationAccept(state)) => Ok(state.on_t3522(ue, env)),
        // A timer that outlived its procedure.
        (timer, state) => {
            env.out.log(Level::Warn, || format!("{}: {timer:?} expired in {}", ue.name(), state.name()));
            Ok(Step { next: state, outcome: NasOutcome::Silent(Silence::NotExpected) })
        }
    };
    settle_or(ue, env, step, fail);
}

/// Stores the next state, or ends a registration that failed.
pub(crate) fn settle(ue: &mut UeContext, env: &mut Env<'_>, step: RegistrationStep) -> NasOutcome {
    settle_or(ue, env, step, FailureHandler::Registration)
}

/// Stores the next state, or handles the failure.
fn settle_or(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    step: RegistrationStep,
    fail: FailureHandler,
) -> NasOutcome {
    match step {
        Ok(Step { next, outcome }) => {
            ue.procedure = next;
            if matches!(ue.procedure, Procedure::Idle) {
                ue.in_progress = None;
            }
            outcome
        }
        Err(error) => fail.handle(ue, env, &error),
    }
}

/// Aborts the procedure in progress, because the UE started another one or can't be reached.
pub(crate) fn abort(ue: &mut UeContext, env: &mut Env<'_>) {
    for timer in PROCEDURE_TIMERS {
        ue.stop(env, timer);
    }
    let state = std::mem::take(&mut ue.procedure);
    ue.in_progress = None;
    if !matches!(state, Procedure::Idle) {
        ue.log_outcome(env, Level::Info, state.name(), "aborted");
    }
    match state {
        // The UDM may have processed the registration already: deregister from it when the context
        // is deleted.
        Procedure::AwaitingUecmRegistration(_) => ue.registered_in_udm = true,
        Procedure::AwaitingSecurityModeComplete(state) => ue.note_offered(state.offer.context),
        Procedure::AwaitingSessionActivation(state) => state.abort(ue, env),
        _ => {}
    }
}

/// Timers that belong to a procedure, not to the UE's registration.
const PROCEDURE_TIMERS: [Timer; 6] =
    [Timer::T3513, Timer::T3522, Timer::T3550, Timer::T3555, Timer::T3560, Timer::T3570];
