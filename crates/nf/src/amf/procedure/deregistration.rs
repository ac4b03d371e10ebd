//! De-registration (TS 24.501 5.5.2; TS 23.502 4.2.2.3): by the UE, by the network, or implicit
//! after the UE's timers have expired.
//!
//! | step | state | from | timer |
//! |---|---|---|---|
//! | DEREGISTRATION REQUEST (UE) | DEREGISTRATION ACCEPT, unless it is switched off | | |
//! | DEREGISTRATION REQUEST (network) | [`AwaitingDeregistrationAccept`] | UE | T3522 |
//! | silence in CM-IDLE | implicit | | mobile reachable, implicit de-registration |
//! | notification of the UDM, during an emergency session | deferred until that ends | | |
//!
//! Sessions, policy, subscription and UDM registration are deleted with the context in all cases.
//! The security context and the 5G-GUTI are retained for a registration without authentication,
//! unless the subscription was withdrawn or another AMF serves the UE (TS 33.501 6.8.1.1.1).

use super::registration::begins_registration;
use super::{Procedure, Step};
use crate::amf::context::{Env, RmState, UeContext};
use crate::amf::emergency::{self, EmergencyRegistration};
use crate::amf::mobility::departure;
use crate::amf::n1::{self, NasOutcome, Silence};
use crate::amf::retransmission::{Expiry, Retransmission};
use crate::amf::{consumer, mobility, n2, procedure};
use crate::kit::document::pack_struct;
use crate::kit::{Deregister, Level, Timer};
use pith_nas::gmm::{
    DeregistrationAcceptUeOriginating, DeregistrationRequestUeOriginating, DeregistrationRequestUeTerminated,
};
use pith_nas::ie::{AccessType, DeregistrationType, RegistrationKind};
use pith_nas::{GmmCause, NasCount};
use pith_ngap::{Cause, CauseNas};

/// DEREGISTRATION REQUEST was sent to the UE.
#[derive(Debug)]
pub(crate) struct AwaitingDeregistrationAccept {
    request: Retransmission,
}

pack_struct!(AwaitingDeregistrationAccept { request });

/// Why the network ends a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The UE must register again, on the operator's request or after a change of the subscription.
    ReRegistrationRequired,
    /// The subscription has ended.
    SubscriptionWithdrawn,
    /// Another AMF serves the UE. UE and UDM know already.
    ServedElsewhere,
    /// The subscription excludes the UE from this network, or from the tracking area where it is.
    NotAllowed(GmmCause),
}

impl From<Deregister> for Reason {
    fn from(why: Deregister) -> Self {
        match why {
            Deregister::Anew => Self::ReRegistrationRequired,
            Deregister::Withdrawn => Self::SubscriptionWithdrawn,
        }
    }
}

/// DEREGISTRATION REQUEST of the UE (TS 24.501 5.5.2.2.2).
///
/// A request that can't be verified does not end a registration: it may be forged (TS 24.501
/// 4.4.4.3). A UE without a context gets DEREGISTRATION ACCEPT.
pub(crate) fn ue_initiated(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    request: &DeregistrationRequestUeOriginating,
    verified: Option<NasCount>,
) -> NasOutcome {
    if verified.is_none() && ue.is_registered() {
        return NasOutcome::Silent(Silence::IntegrityCheckFailed);
    }
    let DeregistrationType { access, switch_off, .. } = request.deregistration_type;
    if access == AccessType::NonThreeGpp && !switch_off && ue.is_registered() {
        // The UE is not registered over non-3GPP access; its registration over 3GPP access stays (TS 24.501 5.5.2.2.3).
        return n1::send(ue, env, DeregistrationAcceptUeOriginating::new());
    }
    procedure::abort(ue, env);
    if ue.mobility.is_departure() && !switch_off {
        // The UE is here, and gets the accept: the NAS COUNTs are this AMF's again.
        departure::cancel(ue, env);
    }
    ue.log_outcome(env, Level::Info, "Deregistration", "ok");
    let outcome = if switch_off {
        NasOutcome::Silent(Silence::UeIsLeaving)
    } else {
        n1::send(ue, env, DeregistrationAcceptUeOriginating::new())
    };
    end(ue, env);
    outcome
}

/// Ends the registration. The context is deleted at the end of the step, unless the step starts
/// another registration.
fn end(ue: &mut UeContext, env: &mut Env<'_>) {
    n2::release(ue, env, Cause::Nas(CauseNas::deregister));
    forget(ue, env);
}

/// Ends the registration and deletes its resources at other NFs; keeps the UE's identity.
fn forget(ue: &mut UeContext, env: &mut Env<'_>) {
    mobility::abort(ue, env);
    consumer::release_all(ue, env);
    ue.rm = RmState::Deregistered;
    ue.procedure = Procedure::Idle;
}

/// The UDM requires the deregistration of a UE. If it has an emergency session, the AMF does not start that, and releases the other sessions
/// (TS 23.502 4.2.2.3.3); the UE is registered for emergency services only from now on, and deregistered when the session ends
/// ([`resume`]). A UE that was so before stays registered for T3512, to be called back (TS 23.501 5.16.4.4).
pub(crate) fn required_by_udm(ue: &mut UeContext, env: &mut Env<'_>, reason: Reason) {
    let deferred = match reason {
        Reason::SubscriptionWithdrawn => EmergencyRegistration::SubscriptionWithdrawn,
        Reason::ReRegistrationRequired => EmergencyRegistration::ReRegistrationRequired,
        Reason::ServedElsewhere | Reason::NotAllowed(_) => return by_network(ue, env, reason),
    };
    let session = ue.emergency_session().and_then(|id| ue.session(id));
    let Some(snssai) = session.map(|session| session.snssai) else { return by_network(ue, env, reason) };
    emergency::release_other_sessions(ue, env);
    if !ue.knows_emergency_registration() {
        emergency::end_subscription(ue, env, snssai);
        ue.emergency.registration = deferred;
    }
    ue.log_outcome(env, Level::Info, "Deregistration by network", "emergency session continues");
}

/// Deregisters a UE whose deregistration was deferred until its emergency session ended, unless a procedure decides about its registration.
pub(crate) fn resume(ue: &mut UeContext, env: &mut Env<'_>) {
    let reason = match ue.emergency.registration {
        EmergencyRegistration::SubscriptionWithdrawn => Reason::SubscriptionWithdrawn,
        EmergencyRegistration::ReRegistrationRequired => Reason::ReRegistrationRequired,
        EmergencyRegistration::None
        | EmergencyRegistration::Authenticated
        | EmergencyRegistration::Unauthenticated => return,
    };
    let is_leaving = matches!(ue.procedure, Procedure::AwaitingDeregistrationAccept(_));
    let is_busy = ue.procedure.is_registering() || is_leaving || !ue.mobility.is_idle();
    if ue.is_registered() && ue.emergency_session().is_none() && !is_busy {
        by_network(ue, env, reason);
    }
}

/// De-registration by the network (TS 24.501 5.5.2.3.1). The UE is notified only if it is
/// connected. A UE that is in CM-IDLE or served elsewhere gets a reject when it next connects.
///
/// A UE that another AMF is to take over stays with this one, whose COUNTs the request has.
pub(crate) fn by_network(ue: &mut UeContext, env: &mut Env<'_>, reason: Reason) {
    let is_repetition = matches!(ue.procedure, Procedure::AwaitingDeregistrationAccept(_));
    if is_repetition && reason != Reason::ServedElsewhere {
        // The UE has the request, and T3522 runs: the UDM, or an operator, repeats it.
        ue.discards_security |= reason != Reason::ReRegistrationRequired;
        return;
    }
    procedure::abort(ue, env);
    // After a transfer of the context or a withdrawn subscription the security context is deleted,
    // else it is retained (TS 33.501 6.8.1.1.1).
    ue.discards_security = reason != Reason::ReRegistrationRequired;
    if reason == Reason::ServedElsewhere {
        ue.registered_in_udm = false;
    }
    if ue.connection.is_none() || ue.security.is_none() || reason == Reason::ServedElsewhere {
        ue.log_outcome(env, Level::Info, "Deregistration by network", "implicit");
        return end(ue, env);
    }
    if ue.mobility.is_departure() {
        departure::cancel(ue, env);
    }
    let mut request = DeregistrationRequestUeTerminated::new(DeregistrationType {
        switch_off: false,
        re_registration_required: reason == Reason::ReRegistrationRequired,
        access: AccessType::ThreeGpp,
    });
    request.cause = match reason {
        Reason::SubscriptionWithdrawn => Some(GmmCause::FiveGsServicesNotAllowed),
        Reason::NotAllowed(cause) => Some(cause),
        Reason::ReRegistrationRequired | Reason::ServedElsewhere => None,
    };
    let request = Retransmission::send(ue, env, Timer::T3522, request);
    ue.procedure = Procedure::AwaitingDeregistrationAccept(AwaitingDeregistrationAccept { request });
}

impl AwaitingDeregistrationAccept {
    /// REGISTRATION REQUEST in place of the accept (TS 24.501 5.5.2.3.5 d). A mobility or periodic
    /// update is ignored. An initial or emergency registration ends the de-registration and starts a registration; the UDM
    /// decides whether the UE may register.
    pub fn on_registration_request(
        self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        kind: RegistrationKind,
    ) -> bool {
        if !begins_registration(kind) {
            ue.procedure = Procedure::AwaitingDeregistrationAccept(self);
            return false;
        }
        self.request.stop(ue, env);
        forget(ue, env);
        ue.discards_security = false;
        true
    }

    /// DEREGISTRATION ACCEPT (TS 24.501 5.5.2.3.3).
    pub fn on_deregistration_accept(self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        self.request.stop(ue, env);
        ue.log_outcome(env, Level::Info, "Deregistration by network", "ok");
        end(ue, env);
        Step::complete()
    }

    /// T3522 expired: retransmits the request; on the fifth expiry the UE is deregistered without
    /// an answer (TS 24.501 5.5.2.3.5 a).
    pub fn on_t3522(mut self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        match self.request.send_again(ue, env) {
            Expiry::SendAgain => {
                Step::replied(Procedure::AwaitingDeregistrationAccept(self), "DeregistrationRequest")
            }
            Expiry::GiveUp => {
                ue.log_outcome(env, Level::Warn, "Deregistration by network", "not answered");
                end(ue, env);
                Step::complete()
            }
        }
    }
}

/// The mobile reachable timer expired: the UE missed its periodic update. Starts the implicit
/// de-registration timer, or deregisters an emergency registered UE (TS 24.501 5.3.7).
pub(crate) fn unreachable(ue: &mut UeContext, env: &mut Env<'_>) {
    if ue.knows_emergency_registration() {
        return implicit(ue, env);
    }
    ue.start(env, Timer::ImplicitDeregistration, env.config.timers.implicit_deregistration);
}

/// The implicit de-registration timer expired (TS 24.501 5.3.7).
pub(crate) fn implicit(ue: &mut UeContext, env: &mut Env<'_>) {
    procedure::abort(ue, env);
    ue.log_outcome(env, Level::Info, "Implicit deregistration", "ok");
    end(ue, env);
}
