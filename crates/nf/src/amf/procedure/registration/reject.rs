//! Failure of a registration (TS 24.501 5.5.1.2.5, 5.5.1.3.5): the answer to the UE, and the
//! remaining state.

use crate::amf::context::{Env, RmState, UeContext};
use crate::amf::error::{RegistrationAnswer, RegistrationError};
use crate::amf::n1::{self, NasOutcome, Silence};
use crate::amf::n2;
use crate::amf::procedure;
use crate::amf::refusal;
use pith_nas::GmmCause;
use pith_nas::gmm::{AuthenticationReject, RegistrationReject};
use pith_nas::ie::GprsTimer2;

/// Ends the registration: answers the UE, and releases the connection.
///
/// A UE that was registered before stays registered if it merely did not answer. A UE that is
/// rejected is deregistered.
pub(crate) fn fail(ue: &mut UeContext, env: &mut Env<'_>, error: &RegistrationError) -> NasOutcome {
    procedure::abort(ue, env);
    refusal::report(ue, env, "Registration", error);
    let outcome = answer(ue, env, error);
    if outcome != NasOutcome::Silent(Silence::Aborted) {
        ue.rm = RmState::Deregistered;
        // A registration reject ends the security context (TS 33.501 6.8.1.1.1).
        ue.discards_security = true;
    }
    ue.reallocation = None;
    n2::release(ue, env, error.ngap_cause());
    outcome
}

fn answer(ue: &mut UeContext, env: &mut Env<'_>, error: &RegistrationError) -> NasOutcome {
    match error.answer() {
        RegistrationAnswer::Reject(cause) => {
            let mut reject = RegistrationReject::new(cause);
            (reject.rejected_nssai, reject.extended_rejected_nssai) =
                ue.rejection_ies(error.rejected_nssai());
            reject.t3502 = Some(GprsTimer2::at_least(env.config.timers.t3502));
            if cause == GmmCause::Congestion {
                reject.t3346 = Some(GprsTimer2::at_least(env.config.congestion_backoff));
            }
            n1::send(ue, env, reject);
            NasOutcome::Rejected(cause)
        }
        RegistrationAnswer::AuthenticationReject(eap_failure) => {
            let mut reject = AuthenticationReject::new();
            reject.eap_message = eap_failure.map(|packet| packet.to_vec());
            n1::send(ue, env, reject);
            NasOutcome::Rejected(GmmCause::IllegalUe)
        }
        RegistrationAnswer::None => NasOutcome::Silent(Silence::Aborted),
    }
}
