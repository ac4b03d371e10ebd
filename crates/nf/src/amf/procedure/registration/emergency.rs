//! Registration for emergency services (TS 24.501 5.5.1.2.2, 5.5.1.2.4, 5.5.1.2.6; TS 23.502 4.2.2.2.2).
//!
//! | step | state | from | timer |
//! |---|---|---|---|
//! | REGISTRATION REQUEST with an emergency registration | as in an initial registration | UE | |
//! | no SUCI, or the authentication failed | [`null_security_mode`] | UE | T3560 |
//! | authenticated | [`super::AwaitingUecmRegistration`]; a refusal does not matter | UDM | |
//! | REGISTRATION ACCEPT, emergency registered | [`super::AwaitingRegistrationComplete`] | UE | T3550 |
//!
//! Subscription, slices, policy and restrictions do not apply.
//!
//! The update of a normal registration that would be rejected becomes such a registration while the UE has an emergency session (5.5.1.3.4).

use super::{Attempt, fail, network, on_policy_decided};
use crate::amf::context::{Env, UeContext};
use crate::amf::emergency::{self, EmergencyRegistration};
use crate::amf::error::RegistrationError;
use crate::amf::n1::NasOutcome;
use crate::amf::procedure::{self, RegistrationStep, null_security_mode};
use crate::amf::refusal;
use crate::kit::Level;
use pith_nas::ie::MobileIdentity;

/// Admits a UE that has no SUCI to emergency services, if the operator permits it (TS 33.501 10.2.2.1; 5GMM cause #5: TS 24.501 5.5.1.2.6).
pub(crate) fn admit(ue: &mut UeContext, env: &mut Env<'_>, attempt: Attempt) -> RegistrationStep {
    let admission = emergency::check_unauthenticated(env)
        .map_err(|error| if attempt.came_with_pei() { RegistrationError::PeiNotAccepted } else { error })?;
    null_security_mode::begin(ue, env, attempt, &admission)
}

/// The authentication failed, or the home network does not answer: admits the UE without authentication, if the operator permits it (TS
/// 24.501 5.4.1.3.5; TS 33.501 10.2.2.1). A UE that does not answer is not admitted.
pub(crate) fn admit_after_failure(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    attempt: Attempt,
    error: &RegistrationError,
) -> NasOutcome {
    if matches!(error, RegistrationError::NoAnswer) {
        return fail(ue, env, error);
    }
    let Ok(admission) = emergency::check_unauthenticated(env) else { return fail(ue, env, error) };
    refusal::report(ue, env, "Emergency authentication", error);
    let step = null_security_mode::begin(ue, env, attempt, &admission);
    procedure::settle(ue, env, step)
}

/// The UE's messages are protected, by null algorithms if it was not authenticated: continues an emergency registration, or the update of
/// one. The AMF registers an authenticated UE in the UDM (TS 23.502 4.2.2.2.2 step 14a).
pub(super) fn on_authenticated(ue: &mut UeContext, env: &mut Env<'_>, attempt: Attempt) -> RegistrationStep {
    if attempt.is_emergency() {
        begin(ue, env)?;
    }
    if !ue.is_unauthenticated() && !ue.registered_in_udm {
        return network::register_in_udm(ue, env, attempt);
    }
    on_policy_decided(ue, env, attempt)
}

/// The UE is registered for emergency services only.
fn begin(ue: &mut UeContext, env: &mut Env<'_>) -> Result<(), RegistrationError> {
    let snssai = emergency::services(env)?.snssai;
    emergency::end_subscription(ue, env, snssai);
    if !ue.is_unauthenticated() {
        ue.emergency.registration = EmergencyRegistration::Authenticated;
    }
    Ok(())
}

/// The network cannot accept the registration. An update because of restrictions or slices is accepted nevertheless while the UE has an
/// emergency session: from now on it is registered for emergency services only, and has no other session (TS 24.501 5.5.1.3.4; TS 23.501
/// 5.16.4.3).
pub(super) fn accept_or_fail(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    attempt: Attempt,
    error: RegistrationError,
) -> RegistrationStep {
    let status = attempt.request.pdu_session_status;
    let session = ue.emergency_session().filter(|id| status.is_none_or(|status| status.contains(*id)));
    if session.is_none() || attempt.begins_registration() || !is_restriction(&error) {
        return Err(error);
    }
    begin(ue, env).map_err(|_| error.clone())?;
    emergency::release_other_sessions(ue, env);
    env.out.log(Level::Info, || format!("{}: registered for emergency services only: {error}", ue.name()));
    on_policy_decided(ue, env, attempt)
}

/// Whether the subscription, or the slices that the UE may use, exclude it from normal service where it is.
const fn is_restriction(error: &RegistrationError) -> bool {
    matches!(
        error,
        RegistrationError::ServicesNotAllowed
            | RegistrationError::RoamingNotAllowed
            | RegistrationError::RatNotAllowed
            | RegistrationError::ForbiddenArea
            | RegistrationError::NoSlicesAvailable(_)
    )
}

impl Attempt {
    /// Why an AMF without emergency services rejects the request.
    pub(super) fn without_emergency_services(&self) -> RegistrationError {
        if self.came_with_pei() {
            RegistrationError::PeiNotAccepted
        } else {
            RegistrationError::EmergencyNotSupported
        }
    }

    /// Whether the UE registered with its PEI.
    fn came_with_pei(&self) -> bool {
        matches!(self.request.mobile_identity, MobileIdentity::Imei(_) | MobileIdentity::Imeisv(_))
    }
}
