//! What a UE is in the middle of: a state per wait, which owns what is valid while it waits.
//!
//! A state consumes itself and gives the next one. One 5GMM procedure runs at a time for a UE; PDU
//! sessions have their own transactions with the SMF beside it ([`super::session`]).

pub(crate) mod activation;
pub(crate) mod authentication;
pub(crate) mod configuration_update;
pub(crate) mod context_setup;
pub(crate) mod context_transfer;
pub(crate) mod deregistration;
pub(crate) mod eap_authentication;
pub(crate) mod identification;
pub(crate) mod nas_transport;
pub(crate) mod paging;
pub(crate) mod pdu_session_resources;
pub(crate) mod registration;
pub(crate) mod security_mode;
pub(crate) mod service_request;
pub(crate) mod session_reply;
pub(crate) mod subscription_change;
pub(crate) mod ue_context_release;

use super::context::{CallId, Env, UeContext};
use super::error::RegistrationError;
use super::n1::{Outcome, Silence};
use super::security::SecurityContext;
use crate::kit::{Level, Timer};
use pith_nas::GmmMessage;
use pith_sbi::Reply;

/// The 5GMM procedure of a UE that runs, in the order in which a registration goes through them.
#[derive(Debug, Default)]
pub(crate) enum Procedure {
    /// None.
    #[default]
    Idle,
    /// Registration: the AMF that gave the 5G-GUTI is asked for the context.
    AwaitingUeContextTransfer(context_transfer::AwaitingUeContextTransfer),
    /// Identification.
    AwaitingIdentityResponse(identification::AwaitingIdentityResponse),
    /// Authentication: the AUSF is asked for a challenge.
    AwaitingAuthenticationVector(authentication::AwaitingAuthenticationVector),
    /// Authentication: the UE is challenged.
    AwaitingAuthenticationResponse(authentication::AwaitingAuthenticationResponse),
    /// Authentication: the AUSF checks the UE's answer.
    AwaitingAuthenticationConfirmation(authentication::AwaitingAuthenticationConfirmation),
    /// Authentication by EAP: the UE was sent a request.
    AwaitingEapResponse(eap_authentication::AwaitingEapResponse),
    /// Authentication by EAP: the AUSF was sent the UE's response.
    AwaitingEapSession(eap_authentication::AwaitingEapSession),
    /// Security mode control.
    AwaitingSecurityModeComplete(security_mode::AwaitingSecurityModeComplete),
    /// Registration: the UDM takes note of the AMF.
    AwaitingUecmRegistration(registration::AwaitingUecmRegistration),
    /// Registration: the UDM is asked for the subscription.
    AwaitingSubscriptionData(registration::AwaitingSubscriptionData),
    /// Registration: the NSSF is asked for slices.
    AwaitingSliceSelection(registration::AwaitingSliceSelection),
    /// Registration: the PCF is asked for a policy.
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

/// How a step of a procedure ends.
#[derive(Debug)]
pub(crate) struct Step {
    /// The state that follows.
    pub next: Procedure,
    /// What became of the message that moved it.
    pub outcome: Outcome,
}

/// A step of a registration, which may fail.
pub(crate) type RegistrationStep = Result<Step, RegistrationError>;

impl Step {
    /// The UE was sent that message, and its answer is waited for.
    pub const fn replied(next: Procedure, message: &'static str) -> Self {
        Self { next, outcome: Outcome::Replied(message) }
    }

    /// Another NF is asked.
    pub const fn waiting(next: Procedure, nf: crate::kit::Nf) -> Self {
        Self { next, outcome: Outcome::Waiting(nf) }
    }

    /// The procedure is over, and nothing more is to be said.
    pub const fn complete() -> Self {
        Self { next: Procedure::Idle, outcome: Outcome::Silent(Silence::Complete) }
    }
}

impl Procedure {
    /// The security context that SECURITY MODE COMMAND made known, until the UE confirms it.
    pub fn new_security(&mut self) -> Option<&mut SecurityContext> {
        match self {
            Self::AwaitingSecurityModeComplete(state) => Some(&mut state.context),
            _ => None,
        }
    }

    /// Whether a registration runs that the UE has not been told the result of.
    pub fn is_registering(&self) -> bool {
        match self {
            Self::Idle
            | Self::AwaitingRegistrationComplete(_)
            | Self::AwaitingConfigurationUpdateComplete(_)
            | Self::AwaitingPagingResponse(_)
            | Self::AwaitingDeregistrationAccept(_) => false,
            Self::AwaitingSessionActivation(state) => state.is_registration(),
            _ => true,
        }
    }

    /// The state's name, for operators.
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
            Self::AwaitingUecmRegistration(_) => "AwaitingUecmRegistration",
            Self::AwaitingSubscriptionData(_) => "AwaitingSubscriptionData",
            Self::AwaitingSliceSelection(_) => "AwaitingSliceSelection",
            Self::AwaitingPolicyAssociation(_) => "AwaitingPolicyAssociation",
            Self::AwaitingSessionActivation(_) => "AwaitingSessionActivation",
            Self::AwaitingRegistrationComplete(_) => "AwaitingRegistrationComplete",
            Self::AwaitingConfigurationUpdateComplete(_) => "AwaitingConfigurationUpdateComplete",
            Self::AwaitingPagingResponse(_) => "AwaitingPagingResponse",
            Self::AwaitingDeregistrationAccept(_) => "AwaitingDeregistrationAccept",
        }
    }

    /// The call whose answer moves it; `None` if it waits for the UE.
    fn awaits(&self, call: CallId) -> bool {
        match self {
            Self::AwaitingUeContextTransfer(state) => state.call == call,
            Self::AwaitingAuthenticationVector(state) => state.call == call,
            Self::AwaitingAuthenticationConfirmation(state) => state.call == call,
            Self::AwaitingEapSession(state) => state.call == call,
            Self::AwaitingUecmRegistration(state) => state.call == call,
            Self::AwaitingSubscriptionData(state) => state.call == call,
            Self::AwaitingSliceSelection(state) => state.call == call,
            Self::AwaitingPolicyAssociation(state) => state.call == call,
            Self::AwaitingSessionActivation(state) => state.awaits(call),
            _ => false,
        }
    }
}

/// Takes a message that only a state which waits for it understands.
pub(crate) fn on_nas(ue: &mut UeContext, env: &mut Env<'_>, message: GmmMessage) -> Outcome {
    use GmmMessage as M;
    use Procedure as P;
    if matches!(message, M::RegistrationComplete(_) | M::ConfigurationUpdateComplete(_)) {
        // The UE answers a downlink message, so that it knows the COUNT.
        if let Some(security) = &mut ue.security {
            security.unconfirmed = 0;
        }
    }
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
        (P::AwaitingRegistrationComplete(state), M::RegistrationComplete(_)) => {
            Ok(state.on_registration_complete(ue, env))
        }
        (P::AwaitingConfigurationUpdateComplete(state), M::ConfigurationUpdateComplete(_)) => {
            Ok(state.on_configuration_update_complete(ue, env))
        }
        (P::AwaitingDeregistrationAccept(state), M::DeregistrationAcceptUeTerminated(_)) => {
            Ok(state.on_deregistration_accept(ue, env))
        }
        (state, message) => return not_expected(ue, env, state, &message),
    };
    settle(ue, env, step)
}

/// A message that no state waits for came late or twice: it changes nothing
/// (TS 24.501 7.4 leaves it to the network).
fn not_expected(ue: &mut UeContext, env: &mut Env<'_>, state: Procedure, message: &GmmMessage) -> Outcome {
    env.out.log(Level::Warn, || format!("{}: {} in {}", ue.name(), message.name(), state.name()));
    ue.procedure = state;
    Outcome::Silent(Silence::NotExpected)
}

/// Takes an answer to one of the UE's calls.
pub(crate) fn on_reply(ue: &mut UeContext, env: &mut Env<'_>, call: CallId, reply: Reply) {
    use Procedure as P;
    if !ue.procedure.awaits(call) {
        return session_reply::on_reply(ue, env, call, reply);
    }
    let step = match std::mem::take(&mut ue.procedure) {
        P::AwaitingUeContextTransfer(state) => state.on_reply(ue, env, reply),
        P::AwaitingAuthenticationVector(state) => state.on_reply(ue, env, reply),
        P::AwaitingAuthenticationConfirmation(state) => state.on_reply(ue, env, reply),
        P::AwaitingEapSession(state) => state.on_reply(ue, env, reply),
        P::AwaitingUecmRegistration(state) => state.on_reply(ue, env, reply),
        P::AwaitingSubscriptionData(state) => state.on_reply(ue, env, reply),
        P::AwaitingSliceSelection(state) => state.on_reply(ue, env, reply),
        P::AwaitingPolicyAssociation(state) => state.on_reply(ue, env, reply),
        P::AwaitingSessionActivation(state) => Ok(state.on_reply(ue, env, call, reply)),
        state => Ok(Step { next: state, outcome: Outcome::Silent(Silence::NotExpected) }),
    };
    settle(ue, env, step);
}

/// Takes the end of a timer.
pub(crate) fn on_timer(ue: &mut UeContext, env: &mut Env<'_>, timer: Timer) {
    use Procedure as P;
    match timer {
        Timer::MobileReachable => return deregistration::unreachable(ue, env),
        Timer::ImplicitDeregistration => return deregistration::implicit(ue, env),
        _ => {}
    }
    let step = match std::mem::take(&mut ue.procedure) {
        P::AwaitingIdentityResponse(state) => state.on_t3570(ue, env),
        P::AwaitingAuthenticationResponse(state) => state.on_t3560(ue, env),
        P::AwaitingEapResponse(state) => state.on_t3560(ue, env),
        P::AwaitingSecurityModeComplete(state) => state.on_t3560(ue, env),
        P::AwaitingRegistrationComplete(state) => Ok(state.on_t3550(ue, env)),
        P::AwaitingConfigurationUpdateComplete(state) => Ok(state.on_t3555(ue, env)),
        P::AwaitingPagingResponse(state) => Ok(state.on_t3513(ue, env)),
        P::AwaitingDeregistrationAccept(state) => Ok(state.on_t3522(ue, env)),
        state => Ok(Step { next: state, outcome: Outcome::Silent(Silence::NotExpected) }),
    };
    settle(ue, env, step);
}

/// Takes the next state, or ends a registration that failed.
pub(crate) fn settle(ue: &mut UeContext, env: &mut Env<'_>, step: RegistrationStep) -> Outcome {
    match step {
        Ok(Step { next, outcome }) => {
            ue.procedure = next;
            outcome
        }
        Err(error) => registration::fail(ue, env, &error),
    }
}

/// Gives up whatever runs, because the UE began something else or can't be reached.
pub(crate) fn abort(ue: &mut UeContext, env: &mut Env<'_>) {
    for timer in PROCEDURE_TIMERS {
        ue.stop(env, timer);
    }
    let state = std::mem::take(&mut ue.procedure);
    if matches!(state, Procedure::AwaitingUecmRegistration(_)) {
        // The UDM may have taken note already: it is told when the context goes.
        ue.registered_in_udm = true;
    }
    if !matches!(state, Procedure::Idle) {
        env.out.log(Level::Info, || format!("{}: {} given up", ue.name(), state.name()));
    }
}

/// Timers that belong to a procedure, not to the UE's registration.
const PROCEDURE_TIMERS: [Timer; 6] =
    [Timer::T3513, Timer::T3522, Timer::T3550, Timer::T3555, Timer::T3560, Timer::T3570];
