//! Registration (TS 24.501 5.5.1; TS 23.502 4.2.2.2.2).
//!
//! | step | state | from | timer | 23.502 |
//! |---|---|---|---|---|
//! | REGISTRATION REQUEST | one of the three below | UE | | 1-3 |
//! | 5G-GUTI of another AMF | [`super::context_transfer`] | old AMF | | 4-5 |
//! | 5G-GUTI without a context | [`super::identification`] | UE | T3570 | 6-7 |
//! | SUCI, or the integrity check failed | [`super::authentication`] | AUSF, UE | T3560 | 8-9 |
//! | authenticated | [`super::security_mode`] | UE | T3560 | 9d |
//! | secured, not registered here | [`AwaitingUecmRegistration`] | UDM | | 14a |
//! | | [`AwaitingSubscriptionData`] | UDM | | 14b |
//! | slices not decided here | [`AwaitingSliceSelection`] | NSSF | | 4.2.2.2.3 |
//! | slices of other AMFs | [`super::reallocation`] | target AMF | | 4.2.2.2.3 |
//! | | [`AwaitingPolicyAssociation`] | PCF | | 16 |
//! | uplink data pending | [`super::activation`] | SMFs | | 17 |
//! | REGISTRATION ACCEPT | [`AwaitingRegistrationComplete`] | UE | T3550 | 21-22 |
//!
//! If the UE has a context here and its request passes the integrity check, the registration continues
//! at slice selection.

mod accept;
mod emergency;
mod network;
mod reject;
mod request;
mod take_over;

pub(super) use network::{register_in_udm, serve_here};

pub(crate) use accept::{
    AwaitingRegistrationComplete, accept, area_with, confirm_guti_in_use, drop_old_guti, registration_area,
    renew_guti,
};
pub(crate) use emergency::{admit, admit_after_failure};
pub(crate) use network::{
    AwaitingPolicyAssociation, AwaitingSliceSelection, AwaitingSubscriptionData, AwaitingUecmRegistration,
};
pub(crate) use reject::fail;
pub(crate) use request::{
    Attempt, AuthenticationPurpose, begin, begins_registration, go_on, identify, needs_new_key,
};
pub(crate) use take_over::{on_identified, take_over};

use super::activation::{self, Purpose};
use super::{RegistrationStep, context_transfer, reallocation};
use crate::amf::consumer;
use crate::amf::context::{Env, UeContext};
use pith_nas::ie::{GmmCapability, PduSessionSet};

/// The UE is authenticated and its messages are protected: continues with UDM, slices and policy
/// (TS 23.502 4.2.2.2.2 step 14 on).
///
/// An initial or emergency registration ends the sessions of the previous one (TS 24.501 5.5.1.2.4). A context
/// that is registered here already has subscription and policy; in another network of this AMF the subscription is requested again.
pub(crate) fn on_authenticated(ue: &mut UeContext, env: &mut Env<'_>, attempt: Attempt) -> RegistrationStep {
    let mut attempt = match context_transfer::begin_for_authenticated(ue, env, attempt) {
        Ok(step) => return Ok(step),
        Err(attempt) => attempt,
    };
    context_transfer::confirm(ue, env, &mut attempt);
    reallocation::confirm(ue, env, attempt.begins_registration());
    ue.note_registration_request(&attempt.request);
    note_capability(ue, &attempt);
    if attempt.begins_registration() {
        activation::reconcile(ue, env, PduSessionSet::NONE);
        if !attempt.is_emergency() {
            ue.end_emergency_registration(env);
        }
    }
    if attempt.is_emergency() || ue.is_emergency_registered() {
        return emergency::on_authenticated(ue, env, attempt);
    }
    // One that came by a handover has no subscription of the UDM yet.
    let has_subscription = ue.subscription.is_some() && !ue.lacks_registration();
    if consumer::is_registered_in_udm(ue, env) && has_subscription {
        network::select_slices(ue, env, attempt)
    } else {
        network::register_in_udm(ue, env, attempt)
    }
}

/// A registration update need not have the 5GMM capability (TS 24.501 5.5.1.3.2).
fn note_capability(ue: &mut UeContext, attempt: &Attempt) {
    let capability = attempt.request.gmm_capability.as_ref();
    if attempt.begins_registration() || capability.is_some() {
        ue.takes_extended_rejection = capability.is_some_and(GmmCapability::extended_rejected_nssai);
    }
}

/// Slices and policy are known: activates the user planes that the UE requests, then answers.
fn on_policy_decided(ue: &mut UeContext, env: &mut Env<'_>, attempt: Attempt) -> RegistrationStep {
    let request = &attempt.request;
    if let Some(status) = request.pdu_session_status {
        activation::reconcile(ue, env, status);
    }
    let wanted = request.uplink_data_status;
    Ok(activation::begin(ue, env, wanted, Purpose::Registration(Box::new(attempt))))
}
