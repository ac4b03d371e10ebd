//! Nsmf_PDUSession (TS 29.502), and the callbacks that the SMF gave to UDM, PCF and AMF.

use super::context::SmContext;
use super::env::Env;
use super::procedure::{State, modification, refused_transfer, release, subscription_change};
use super::{Smf, update};
use crate::kit::{Caller, Instant, Key, Outbox, PendingReply};
use pith_nas::GsmCause;
use pith_sbi::nsmf_pdusession::{HoState, SmContextUpdateData};
use pith_sbi::nudm_uecm::DeregistrationReason;
use pith_sbi::{Cause, Problem, Request, Response};

impl Smf {
    /// Serves one request.
    pub(super) fn serve(&mut self, now: Instant, reply: PendingReply, request: Request, out: &mut Outbox) {
        match request {
            Request::PostSmContexts(request) => self.establish(now, reply, request.body, out),
            Request::UpdateSmContext(request) => {
                let (reference, data) = (request.sm_context_ref, request.body);
                let found = self.find_to_update(&reference, reply.caller(), &data);
                self.for_session(now, found, reply, out, |state, session, env, reply| {
                    update::note_amf(session, env, &data, reply.caller());
                    refused_transfer::on_update(&state, session, env, &data);
                    update::on_update(state, session, env, reply, data)
                });
            }
            Request::ReleaseSmContext(request) => {
                let found = self.find_own(&request.sm_context_ref, reply.caller());
                self.for_session(now, found, reply, out, |state, session, env, reply| {
                    let next = release::end_state(state, session, env);
                    reply.answer(Response::NoContent, env.out);
                    next
                });
            }
            Request::SmPolicyUpdateNotify(notification) => {
                let (uri, body) = (notification.uri, notification.body);
                let found = self.find(uri.id());
                self.for_session(now, found, reply, out, |state, session, env, reply| {
                    modification::on_policy_update(state, session, env, reply, body)
                });
            }
            Request::SmPolicyTerminateNotify(notification) => {
                let cause = &notification.body.cause;
                let found = self.find(notification.uri.id());
                self.for_session(now, found, reply, out, |state, session, env, reply| {
                    reply.answer(Response::NoContent, env.out);
                    modification::on_policy_end(state, session, env, cause)
                });
            }
            Request::SdmChangeNotification(notification) => {
                self.serve_notification(now, notification.uri.id(), reply, out, |state, session, _| {
                    subscription_change::begin(session);
                    state
                });
            }
            Request::DeregistrationNotification(notification) => {
                let is_duplicate =
                    notification.body.dereg_reason == DeregistrationReason::DuplicatePduSession;
                self.serve_notification(now, notification.uri.id(), reply, out, |state, session, env| {
                    if is_duplicate {
                        return release::end_duplicate(state, session, env);
                    }
                    release::release_when_established(state, session, GsmCause::RegularDeactivation)
                });
            }
            Request::N1N2TransferFailureNotification(notification) => {
                self.serve_notification(now, notification.uri.id(), reply, out, update::on_delivery_failure);
            }
            _ => reply.refuse(Problem::new(Cause::ResourceUriStructureNotFound), out),
        }
    }

    /// The session that a reference identifies.
    fn find(&mut self, reference: &str) -> Result<Key, Box<Problem>> {
        let id = self.shared.references.id(reference);
        let key = id.and_then(|id| self.shared.ids.find(id));
        let sessions = &mut self.sessions;
        let is_alive = |key: &Key| sessions.get_mut(*key).is_some_and(|session| session.state().is_alive());
        key.filter(is_alive).ok_or_else(|| Box::new(Problem::context_not_found()))
    }

    /// The session that a reference identifies, if the caller may update it. An AMF to which the UE has moved names itself (TS 23.502
    /// 4.2.2.2.2 step 17, TS 29.502 5.2.2.3.6), and so does one that prepares a handover from another AMF (5.2.2.3.4.2). It knows the
    /// reference from the former AMF only, so it may take the session over; after a handover only if it has prepared that. Then the former AMF
    /// does not complete the handover.
    fn find_to_update(
        &mut self,
        reference: &str,
        from: Caller,
        data: &SmContextUpdateData,
    ) -> Result<Key, Box<Problem>> {
        let key = self.find(reference)?;
        let Some(amf) = self.sessions.get_mut(key).map(|session| &session.amf) else { return Ok(key) };
        let names_itself = match data.ho_state {
            Some(HoState::Preparing) => data.target_serving_nf_id.is_some(),
            Some(HoState::Completed) => return amf.check_completion(from).map(|()| key),
            _ => data.serving_nf_id.is_some(),
        };
        if names_itself || (amf.is_handover_target(from) && data.ho_state.is_some()) {
            return Ok(key);
        }
        amf.check(from).map(|()| key)
    }

    /// The session that a reference identifies, if the caller owns it.
    fn find_own(&mut self, reference: &str, from: Caller) -> Result<Key, Box<Problem>> {
        let key = self.find(reference)?;
        let Some(session) = self.sessions.get_mut(key) else { return Ok(key) };
        session.amf.check(from).map(|()| key)
    }

    /// Runs a step on the session that was found; the step answers the request. If none was found, refuses the request.
    fn for_session(
        &mut self,
        now: Instant,
        found: Result<Key, Box<Problem>>,
        reply: PendingReply,
        out: &mut Outbox,
        step: impl FnOnce(State, &mut SmContext, &mut Env<'_>, PendingReply) -> State,
    ) {
        match found {
            Ok(key) => {
                self.with_session(now, key, out, |state, session, env| step(state, session, env, reply));
            }
            Err(problem) => reply.refuse(*problem, out),
        }
    }

    /// Runs the step for a notification, and answers it. A notification for an unknown session is refused.
    fn serve_notification(
        &mut self,
        now: Instant,
        reference: &str,
        reply: PendingReply,
        out: &mut Outbox,
        step: impl FnOnce(State, &mut SmContext, &mut Env<'_>) -> State,
    ) {
        match self.find(reference) {
            Ok(key) => {
                self.with_session(now, key, out, step);
                reply.answer(Response::NoContent, out);
            }
            Err(problem) => reply.refuse(*problem, out),
        }
    }
}
