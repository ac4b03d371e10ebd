//! De-registration (TS 24.501 5.5.2; TS 23.502 4.2.2.3): by the UE, by the network, or because the
//! UE has not been heard of.
//!
//! | step | state | from | timer |
//! |---|---|---|---|
//! | DEREGISTRATION REQUEST (UE) | DEREGISTRATION ACCEPT, unless it is switched off | | |
//! | DEREGISTRATION REQUEST (network) | [`AwaitingDeregistrationAccept`] | UE | T3522 |
//! | silence in CM-IDLE | implicit | | mobile reachable, implicit de-registration |
//!
//! Sessions, policy, subscription and UDM registration end with the context, however that comes. The security context and
//! the 5G-GUTI are kept, for a registration without authentication, unless the subscription was withdrawn or the UE is
//! served elsewhere (TS 33.501 6.8.1.1.1).

use super::{Procedure, Step};
use crate::amf::context::{Env, RmState, UeContext};
use crate::amf::n1::{self, Outcome, Silence};
use crate::amf::repeat::{Expiry, Repeated};
use crate::amf::{consumer, n2, procedure};
use crate::kit::{Deregister, Level, Timer};
use pith_nas::gmm::{
    DeregistrationAcceptUeOriginating, DeregistrationRequestUeOriginating, DeregistrationRequestUeTerminated,
};
use pith_nas::ie::{AccessType, DeregistrationType, RegistrationKind};
use pith_nas::{GmmCause, NasCount};
use pith_ngap::{Cause, CauseNas};

/// The UE was told that it is no longer registered.
#[derive(Debug)]
pub(crate) struct AwaitingDeregistrationAccept {
    request: Repeated,
}

/// Why the network ends a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The UE is to register again: the operator's wish, or a changed subscription.
    ReRegistrationRequired,
    /// The subscription has ended.
    SubscriptionWithdrawn,
    /// The UE is registered elsewhere: it knows, and so does the UDM.
    ServedElsewhere,
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
/// One that can't be verified ends nothing: anybody could have sent it (TS 24.501 4.4.4.3). A UE that
/// is not known here is told what it wants to hear.
pub(crate) fn ue_initiated(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    request: &DeregistrationRequestUeOriginating,
    verified: Option<NasCount>,
) -> Outcome {
    if verified.is_none() && ue.is_registered() {
        return Outcome::Silent(Silence::IntegrityCheckFailed);
    }
    procedure::abort(ue, env);
    ue.tell(env, Level::Info, "Deregistration", "ok");
    let outcome = match request.deregistration_type.switch_off {
        true => Outcome::Silent(Silence::UeIsLeaving),
        false => n1::send(ue, env, DeregistrationAcceptUeOriginating::new()),
    };
    end(ue, env);
    outcome
}

/// The registration is over; the context goes when the step ends, unless the step begins another registration.
fn end(ue: &mut UeContext, env: &mut Env<'_>) {
    n2::release(ue, env, Cause::Nas(CauseNas::deregister));
    forget(ue, env);
}

/// Nothing is left of the registration but who the UE is.
fn forget(ue: &mut UeContext, env: &mut Env<'_>) {
    consumer::release_all(ue, env);
    ue.rm = RmState::Deregistered;
    ue.procedure = Procedure::Idle;
}

/// De-registration by the network (TS 24.501 5.5.2.3.1): with a word to the UE if it is connected.
/// Somebody who is in CM-IDLE, or served elsewhere, learns of it when it comes back.
pub(crate) fn by_network(ue: &mut UeContext, env: &mut Env<'_>, reason: Reason) {
    procedure::abort(ue, env);
    // The context has moved on, or the subscription is withdrawn; else it stays (TS 33.501 6.8.1.1.1).
    ue.drops_security = reason != Reason::ReRegistrationRequired;
    if reason == Reason::ServedElsewhere {
        ue.registered_in_udm = false;
    }
    if ue.connection.is_none() || ue.security.is_none() || reason == Reason::ServedElsewhere {
        ue.tell(env, Level::Info, "Deregistration by network", "implicit");
        return end(ue, env);
    }
    let mut request = DeregistrationRequestUeTerminated::new(DeregistrationType {
        switch_off: false,
        re_registration_required: reason == Reason::ReRegistrationRequired,
        access: AccessType::ThreeGpp,
    });
    if reason == Reason::SubscriptionWithdrawn {
        request.cause = Some(GmmCause::FiveGsServicesNotAllowed);
    }
    let request = Repeated::send(ue, env, Timer::T3522, request);
    ue.procedure = Procedure::AwaitingDeregistrationAccept(AwaitingDeregistrationAccept { request });
}

impl AwaitingDeregistrationAccept {
    /// REGISTRATION REQUEST instead (TS 24.501 5.5.2.3.5 d): an update is not for somebody who is to leave; a UE that
    /// begins anew has left, and may it come in that is asked of the UDM again.
    pub fn gives_way_to(self, ue: &mut UeContext, env: &mut Env<'_>, kind: RegistrationKind) -> bool {
        if kind != RegistrationKind::Initial {
            ue.procedure = Procedure::AwaitingDeregistrationAccept(self);
            return false;
        }
        self.request.stop(ue, env);
        forget(ue, env);
        ue.drops_security = false;
        true
    }

    /// DEREGISTRATION ACCEPT (TS 24.501 5.5.2.3.3).
    pub fn on_deregistration_accept(self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        self.request.stop(ue, env);
        ue.tell(env, Level::Info, "Deregistration by network", "ok");
        end(ue, env);
        Step::complete()
    }

    /// T3522 ran out: says it again; on the fifth expiry the UE is de-registered without
    /// (TS 24.501 5.5.2.3.5 a).
    pub fn on_t3522(mut self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        match self.request.send_again(ue, env) {
            Expiry::SendAgain => {
                Step::replied(Procedure::AwaitingDeregistrationAccept(self), "DeregistrationRequest")
            }
            Expiry::GiveUp => {
                ue.tell(env, Level::Warn, "Deregistration by network", "not answered");
                end(ue, env);
                Step::complete()
            }
        }
    }
}

/// The mobile reachable timer ran out: the UE has missed its periodic update. It gets some time more
/// (TS 24.501 5.3.7).
pub(crate) fn unreachable(ue: &mut UeContext, env: &mut Env<'_>) {
    ue.start(env, Timer::ImplicitDeregistration, env.config.timers.implicit_deregistration);
}

/// The implicit de-registration timer ran out (TS 24.501 5.3.7).
pub(crate) fn implicit(ue: &mut UeContext, env: &mut Env<'_>) {
    procedure::abort(ue, env);
    ue.tell(env, Level::Info, "Implicit deregistration", "ok");
    end(ue, env);
}
