//! Authentication of a registered UE before a NAS COUNT wraps around (TS 24.501 4.4.3.5; TS 33.501
//! 6.4.3.1): the new security context starts with both COUNTs at 0.
//!
//! | step | state | from | timer |
//! |---|---|---|---|
//! | a COUNT is close to its maximum, the UE is in CM-CONNECTED | [`super::authentication`] | AUSF, UE | T3560 |
//! | authenticated | [`super::security_mode`] | UE | T3560 |
//! | SECURITY MODE COMPLETE | none: the connection gets a new K_gNB | | |
//!
//! In a registration the AMF authenticates the UE in any case if a COUNT is close to its maximum. If no
//! authentication succeeds before the COUNTs are exhausted, the AMF releases the connection and deletes the context.
//!
//! A connected UE whose security context is outdated, after panics of its shard, accepts nothing unprotected (4.4.4.2): the AMF releases its
//! connection, and authenticates it at its next service request.

use super::registration::{self, Attempt, AuthenticationPurpose};
use super::{Procedure, Step, authentication};
use crate::amf::context::{Env, RmState, UeContext};
use crate::amf::error::RegistrationError;
use crate::amf::n1::{NasOutcome, Silence};
use crate::amf::{delivery, n2, procedure};
use crate::kit::{Duration, Event, Level};
use pith_ngap::{Cause, CauseNas, CauseRadioNetwork};
use pith_sbi::common::DateTime;

/// Time from an attempt to the next one, if the home network or the UE refuses without ending the registration.
const RETRY: Duration = Duration::from_secs(60);

/// Begins the authentication if it is due, and ends the registration if a COUNT is exhausted. Called after each step
/// of a UE.
pub(crate) fn begin_if_due(ue: &mut UeContext, env: &mut Env<'_>) {
    if ue.outdated.is_some() {
        return release_outdated(ue, env);
    }
    let Some(security) = ue.security.as_ref().filter(|security| security.nas.is_near_wrap()) else { return };
    if !ue.is_registered() || !ue.is_reachable(env) {
        return;
    }
    if security.nas.is_exhausted() {
        return end(ue, env);
    }
    let now = env.config.identity.date_time(env.now);
    let is_recent = |at: DateTime| {
        u128::try_from(now.unix_ms().saturating_sub(at.unix_ms())).is_ok_and(|ms| ms < RETRY.as_millis())
    };
    let was_recent = ue.reauthenticated.is_some_and(is_recent);
    if was_recent || ue.transferred_to.is_some() || !matches!(ue.procedure, Procedure::Idle) {
        return;
    }
    let (Some(supi), Some(guti)) = (ue.supi.clone(), ue.guti) else { return };
    ue.reauthenticated = Some(now);
    let attempt = Attempt::of_registered(AuthenticationPurpose::NewKeys, security.ng_ksi, guti);
    let step = authentication::begin(ue, env, attempt, supi.into());
    procedure::settle(ue, env, Ok(step));
}

fn release_outdated(ue: &mut UeContext, env: &mut Env<'_>) {
    if ue.is_registered() && ue.is_reachable(env) && matches!(ue.procedure, Procedure::Idle) {
        ue.log_outcome(env, Level::Info, "Re-authentication", "at the next service request");
        let cause = CauseRadioNetwork::release_due_to_5gc_generated_reason;
        n2::release(ue, env, Cause::RadioNetwork(cause));
    }
}

/// The UE has taken the new security context into use.
pub(super) fn complete(ue: &mut UeContext, env: &mut Env<'_>) -> Step {
    ue.log_outcome(env, Level::Info, "Re-authentication", "ok");
    delivery::send_held_setups(ue, env);
    Step::complete()
}

/// The authentication failed. The UE is deregistered only if it is not the subscriber's (TS 24.501 5.4.1.3.5). A UE that
/// does not answer loses its connection (5.4.1.3.7 b). Otherwise the previous security context stays in use, and the AMF
/// tries again after [`RETRY`].
pub(super) fn fail(ue: &mut UeContext, env: &mut Env<'_>, error: &RegistrationError) -> NasOutcome {
    if matches!(error, RegistrationError::AuthenticationFailed { .. }) {
        return registration::fail(ue, env, error);
    }
    procedure::abort(ue, env);
    env.out.event(Level::Warn, || Event {
        level: Level::Warn,
        procedure: "Re-authentication",
        outcome: error.outcome(),
        ue: ue.name(),
        text: format!("Re-authentication failed: {error}"),
    });
    if matches!(error, RegistrationError::NoAnswer) {
        n2::release(ue, env, error.ngap_cause());
    } else {
        delivery::send_held_setups(ue, env);
    }
    NasOutcome::Silent(Silence::Aborted)
}

/// A COUNT is exhausted: no NAS message can be sent or accepted. The AMF releases the connection (TS 24.501 4.4.3.5) and
/// deregisters the UE locally, as it could not even challenge the UE under this security context. The UE registers again.
fn end(ue: &mut UeContext, env: &mut Env<'_>) {
    procedure::abort(ue, env);
    ue.log_outcome(env, Level::Warn, "Re-authentication", "NAS COUNTs exhausted");
    ue.rm = RmState::Deregistered;
    ue.discards_security = true;
    n2::release(ue, env, Cause::Nas(CauseNas::unspecified));
}
