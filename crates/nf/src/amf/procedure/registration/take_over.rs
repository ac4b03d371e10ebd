//! One subscriber, one context: the context of the UE that has authenticated takes over from the
//! subscriber's previous context (design section 5; TS 23.502 4.2.2.2.2 step 14d).

use crate::amf::context::{DeferredAction, Env, RmState, UeContext};
use crate::amf::emergency::EmergencyRegistration;
use crate::amf::procedure::{Procedure, ue_context_release};
use crate::amf::session::{PduSession, UserPlane};
use crate::amf::{consumer, delivery, residency};
use pith_types::UeIdentity;

/// The UE is authenticated, or is admitted to emergency services with its PEI.
pub(crate) fn on_identified(ue: &mut UeContext, env: &mut Env<'_>, identity: UeIdentity) {
    if ue.identity().is_some_and(|other| other != identity) {
        forget_other(ue, env);
    }
    if let Some(old) = env.index.claim(&identity, ue.key) {
        env.after.push(DeferredAction::Supersede { new: ue.key, old });
    }
    match identity {
        UeIdentity::Supi(supi) => {
            // It is here already: it does not arrive by a handover.
            if let Some(old) = env.index.find_arrival(&supi) {
                env.after.push(DeferredAction::Supersede { new: ue.key, old });
            }
            ue.supi = Some(supi);
        }
        UeIdentity::Pei(pei) => {
            ue.pei = Some(pei);
            ue.emergency.registration = EmergencyRegistration::Unauthenticated;
        }
    }
    ue.leave_half_open(env);
}

/// The UE is not that of the context: only the connection is kept.
fn forget_other(ue: &mut UeContext, env: &mut Env<'_>) {
    let ids: Vec<u8> = ue.sessions.iter().map(|session| session.id).collect();
    residency::note_resources(ue, env);
    ids.into_iter().for_each(|id| consumer::release_session(ue, env, id));
    delivery::fail_all(ue, env);
    consumer::release_all(ue, env);
    ue.rm = RmState::Deregistered;
    for guti in ue.guti.take().into_iter().chain(ue.old_guti.take()) {
        env.index.free_tmsi(guti.tmsi, ue.key);
    }
    if let Some(other) = ue.identity() {
        env.index.free(&other, ue.key);
    }
    if let Some(origin) = ue.reallocation.as_mut().and_then(|it| it.origin.as_mut()) {
        origin.sessions = None;
    }
    ue.end_emergency_registration(env);
    ue.supi = None;
}

/// Moves what remains valid from the subscriber's previous context: registration and sessions, unless the UE
/// registers initially (TS 24.501 5.5.1.2.4). The rest is deleted.
pub(crate) fn take_over(ue: &mut UeContext, env: &mut Env<'_>, old: &mut UeContext) {
    old.registered_in_udm = false;
    ue.owes_configured_nssai |= old.owes_configured_nssai;
    // Sessions of a UE that another AMF hands over are in both contexts: the former one does not release them.
    let is_kept = |old: &PduSession| ue.sessions.iter().any(|it| it.sm_context == old.sm_context);
    old.sessions.retain(|session| session.sm_context.is_none() || !is_kept(session));
    if ue.radio_capability.is_none() {
        ue.radio_capability = old.radio_capability.take();
    }
    if is_mobility_update(ue) {
        delivery::keep_held_setups(old);
        if let Some(id) = old.emergency_session() {
            ue.note_requested_session(id, true);
        }
        let made = |session: &PduSession| session.sm_context.is_some();
        let (mut live, in_the_making): (Vec<_>, Vec<_>) = old.sessions.drain(..).partition(made);
        let is_of_other = old.arrival.is_some();
        for session in &mut live {
            if old.procedure.activates(session.id) && session.lacks_answer() {
                // A deactivation has given way to an activation, whose reply does not arrive.
                session.note_active(false);
            }
            session.lose_calls();
            if is_of_other {
                // The AMF that hands the UE over serves it still: its gNB may have resources, and the SMF takes no request that does not name this
                // AMF.
                session.user_plane = UserPlane::Unannounced;
            }
        }
        old.sessions = in_the_making;
        ue_context_release::deactivate_sessions(old, env);
        let transferred: Vec<u8> = ue.sessions.iter().map(|session| session.id).collect();
        let taken: Vec<u8> = live.iter().map(|session| session.id).collect();
        ue.sessions.append(&mut live);
        if old.is_registered() {
            // The UE stays registered during its update, also if the process ends: the document of the former context is deleted.
            ue.rm = RmState::Registered;
            (ue.must_store, ue.must_store_at_once) = (true, true);
            ue.registration_area = std::mem::take(&mut old.registration_area);
            ue.reachability = old.reachability;
        }
        transferred.into_iter().for_each(|id| consumer::announce_session(ue, env, id));
        taken.into_iter().for_each(|id| consumer::announce_deactivated(ue, env, id));
    }
}

/// Whether the registration in progress keeps sessions.
fn is_mobility_update(ue: &UeContext) -> bool {
    let attempt = match &ue.procedure {
        Procedure::AwaitingUeContextTransfer(state) => match state.authenticated() {
            Some(attempt) => attempt,
            None => return false,
        },
        Procedure::AwaitingUecmRegistration(state) => &state.attempt,
        Procedure::AwaitingSubscriptionData(state) => &state.attempt,
        Procedure::AwaitingSliceSelection(state) => &state.attempt,
        Procedure::AwaitingAmfReallocation(state) => state.attempt(),
        Procedure::AwaitingPolicyAssociation(state) => &state.attempt,
        _ => return false,
    };
    !attempt.begins_registration()
}
