//! AN release (TS 23.502 4.2.6; TS 38.413 8.3.2, 8.3.3): the connection is released, the registration stays.
//!
//! | step | from |
//! |---|---|
//! | UE CONTEXT RELEASE REQUEST, or a decision of the AMF | gNB |
//! | CONFIGURATION UPDATE COMMAND with a 5G-GUTI, if another AMF has handed the UE over, and it has not registered | UE |
//! | UE CONTEXT RELEASE COMMAND | |
//! | UE CONTEXT RELEASE COMPLETE | gNB |
//! | UpdateSMContext (DEACTIVATED), a session each; CM-IDLE | |

use super::{
    Procedure, configuration_update, context_transfer, deregistration, paging, pdu_session_resources,
};
use crate::amf::connection::RanContext;
use crate::amf::consumer;
use crate::amf::context::{Env, UeContext};
use crate::amf::{Amf, delivery, ladn, mobility, n2, procedure, reachability, refusal};
use crate::kit::{Instant, Key, Level, Outbox, Timer};
use pith_ngap::{Cause, CauseNas, CauseRadioNetwork, ErrorIndication, UeContextReleaseRequest, UserLocation};

/// UE CONTEXT RELEASE REQUEST of the gNB: granted, with the gNB's cause.
///
/// A UE that another AMF has handed over gets a 5G-GUTI before, or it could not be paged. An inactive one is released when it has confirmed that
/// ([`mobility::n2_handover::allocate_guti`]), when T3555 expires, or when the gNB repeats its request. In other cases the gNB does not wait. A UE
/// that has lost its radio connection registers by itself (TS 24.501 5.5.1.3.2 f).
pub(crate) fn request(ue: &mut UeContext, env: &mut Env<'_>, message: &UeContextReleaseRequest) {
    let cause = message.cause.unwrap_or(Cause::Nas(CauseNas::unspecified));
    let is_lost = cause == Cause::RadioNetwork(CauseRadioNetwork::radio_connection_with_ue_lost);
    let is_commanded = !is_lost && mobility::n2_handover::allocate_guti(ue, env);
    let is_inactive = cause == Cause::RadioNetwork(CauseRadioNetwork::user_inactivity);
    // The answer of a UE with an emergency session releases no connection (TS 24.501 5.4.4.3).
    if is_commanded && is_inactive && ue.emergency_session().is_none() {
        return configuration_update::release_after_answer(ue);
    }
    n2::release(ue, env, cause);
}

/// UE CONTEXT RELEASE COMPLETE: the UE is in CM-IDLE.
pub(crate) fn complete(ue: &mut UeContext, env: &mut Env<'_>, location: Option<UserLocation>) {
    let moved = ladn::note_location(ue, env.config, location);
    ue.connection = None;
    on_connection_lost(ue, env);
    // After the deactivation: a session without a user plane ends without a message to the UE.
    moved.report(ue, env);
    on_idle(ue, env);
}

/// ERROR INDICATION of the gNB: it does not know the UE by these ids, so the connection is unusable
/// (TS 38.413 8.7.5, 10.6).
pub(crate) fn error_indication(ue: &mut UeContext, env: &mut Env<'_>, message: &ErrorIndication) {
    env.out.log(Level::Warn, || {
        format!("{}: ERROR INDICATION of the gNB: {}", ue.name(), refusal::text_of(message.cause))
    });
    if is_unknown_ue(message) {
        return n2::release(
            ue,
            env,
            Cause::RadioNetwork(CauseRadioNetwork::release_due_to_5gc_generated_reason),
        );
    }
    pdu_session_resources::error_indicated(ue, env, message);
}

/// Whether the gNB does not know the ids of the UE (TS 38.413 10.6).
pub(crate) fn is_unknown_ue(message: &ErrorIndication) -> bool {
    matches!(
        message.cause,
        Some(Cause::RadioNetwork(
            CauseRadioNetwork::unknown_local_UE_NGAP_ID | CauseRadioNetwork::inconsistent_remote_UE_NGAP_ID
        ))
    )
}

/// The connection is lost: aborts the procedure in progress and deactivates the user planes. A
/// de-registration by the network completes without the UE's accept (TS 24.501 5.5.2.3.5 b).
pub(crate) fn on_connection_lost(ue: &mut UeContext, env: &mut Env<'_>) {
    if matches!(ue.procedure, Procedure::AwaitingDeregistrationAccept(_)) {
        deregistration::implicit(ue, env);
    }
    if matches!(ue.procedure, Procedure::AwaitingAmfReallocation(_)) && !ue.registered_in_udm {
        // The UDM has said that the target AMF serves the UE.
        context_transfer::await_status(ue, env);
    }
    procedure::abort(ue, env);
    mobility::abort(ue, env);
    ue.access_keys.reset();
    deactivate_sessions(ue, env);
}

/// Requests the SMFs to release the sessions' N3 tunnels (TS 23.502 4.2.6 step 5).
pub(crate) fn deactivate_sessions(ue: &mut UeContext, env: &mut Env<'_>) {
    delivery::keep_held_setups(ue);
    let ids: Vec<u8> = ue.sessions.iter().map(|session| session.id).collect();
    for id in ids {
        consumer::deactivate(ue, env, id);
    }
}

/// CM-IDLE: the UE's periodic updates are supervised (TS 24.501 5.3.7). If a message for the UE arrived while its connection was being released,
/// the UE is paged, unless it is in MICO mode.
pub(crate) fn on_idle(ue: &mut UeContext, env: &mut Env<'_>) {
    if !ue.is_registered() {
        return;
    }
    // As any registered UE.
    ue.leave_half_open(env);
    if ue.guti.is_none() {
        // It came from another AMF, and has no 5G-GUTI of this one, with which it could be paged: it is about to register, here or elsewhere.
        return ue.start(env, Timer::ImplicitDeregistration, env.config.timers.implicit_deregistration);
    }
    reachability::on_idle(ue, env);
    if ue.undelivered.is_empty() {
        return;
    }
    if reachability::is_unreachable(ue, env) {
        return delivery::fail_all(ue, env);
    }
    paging::begin(ue, env);
}

impl Amf {
    /// The NGAP guard timer expired: the gNB did not answer. Setups and releases of sessions have failed; if a context setup was pending, the
    /// connection is released; if a release was pending, the connection is treated as lost. During an N2 handover the gNB may answer afterwards (TS 23.502
    /// 4.9.1.3.1).
    pub(in crate::amf) fn ngap_guard(&mut self, now: Instant, key: Key, out: &mut Outbox) {
        let Some(connection) = self.shared.connections.get(key) else { return };
        if connection.context == RanContext::Left {
            // SMFs have not answered that they have switched the UE's paths to the target gNB of an N2 handover.
            self.with_env(now, out, |env| {
                n2::release_connection(env, key, mobility::n2_handover::SUCCESSFUL)
            });
            return self.settle(now, out);
        }
        if matches!(connection.context, RanContext::Established | RanContext::Switching) {
            return self.session_guard(now, (key, connection.ue), out);
        }
        out.log(Level::Warn, || format!("{:?}: the gNB does not answer", connection.id));
        if connection.context == RanContext::Releasing {
            return self.connection_lost(now, key, out);
        }
        self.with_env(now, out, |env| {
            let cause = CauseRadioNetwork::release_due_to_5gc_generated_reason;
            n2::release_connection(env, key, Cause::RadioNetwork(cause));
        });
        self.settle(now, out);
    }

    fn session_guard(&mut self, now: Instant, (key, ue): (Key, Option<Key>), out: &mut Outbox) {
        let ue = ue.filter(|ue| self.ues.view(*ue).is_some_and(|ue| ue.connection == Some(key)));
        let Some(ue) = ue else { return };
        self.with_ue(now, ue, out, |ue, env| {
            // A gNB of a former run may return.
            if ue.mobility.is_handover() || ue.awaits_gnb(env) {
                return delivery::guard_requests(ue, env);
            }
            delivery::fail_requests_of_gnb(ue, env);
        });
    }
}
