//! Execution (TS 23.502 4.9.1.3.3): HANDOVER COMMAND to the switch of the paths.

use super::{SUCCESSFUL, settle, take_call};
use crate::amf::connection::RanContext;
use crate::amf::consumer;
use crate::amf::context::{CallId, Env, UeContext};
use crate::amf::mobility::{Mobility, arrival};
use crate::amf::procedure::configuration_update;
use crate::amf::session::{PduSession, UserPlane};
use crate::amf::{delivery, ladn, n2};
use crate::kit::document::pack_struct;
use crate::kit::{Key, Level, Timer};
use pith_ngap::{CauseRadioNetwork, HandoverNotify};
use pith_sbi::{Cause as SbiCause, Problem, Reply};
use pith_types::AmfUeNgapId;

/// HANDOVER COMMAND was sent: the UE moves.
#[derive(Debug)]
pub(crate) struct AwaitingHandoverNotify {
    pub(super) target: AmfUeNgapId,
    /// Sessions that are handed over.
    pub(super) accepted: Vec<u8>,
    /// Sessions for which the target gNB has resources, and whose SMFs refused.
    pub(super) refused: Vec<u8>,
}

/// In place of a call: the SMF is to be requested again when [`Timer::HandoverCompletion`] expires. No call has this number.
pub(crate) const DUE: CallId = CallId(0);

/// The UE is at the target gNB; SMFs switch the paths.
#[derive(Debug)]
pub(crate) struct AwaitingSessionCompletion {
    pub(super) calls: Vec<(CallId, u8)>,
}

pack_struct!(AwaitingHandoverNotify { target, accepted, refused });
pack_struct!(AwaitingSessionCompletion { calls });

impl AwaitingHandoverNotify {
    /// The session is not handed over, although the target gNB has resources for it.
    pub(super) fn without(mut self, id: u8) -> Self {
        let is_accepted = self.accepted.contains(&id);
        self.accepted.retain(|accepted| *accepted != id);
        self.refused.extend(is_accepted.then_some(id));
        self
    }

    /// HANDOVER NOTIFY: the UE is at the target gNB (TS 38.413 8.4.3.2). The SMFs switch the paths. Until then the source gNB forwards packets: it
    /// is released afterwards ([`release_source`]), or by the guard timer ([`crate::amf::Amf::ngap_guard`]).
    pub(super) fn on_notify(
        self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        key: Key,
        message: &HandoverNotify,
    ) -> Mobility {
        ue.stop(env, Timer::Handover);
        configuration_update::on_moved(ue);
        let moved = ladn::note_location(ue, env.config, message.location);
        let source = ue.connection.replace(key);
        let left = source.and_then(|source| env.connections.get(source)).map(|it| (it.gnb, it.ran_id));
        if let Some(connection) = env.connections.get_mut(key) {
            connection.context = RanContext::Established;
            // Until the SMFs have switched the paths, an NG Setup of the source gNB waits.
            connection.left = left;
        }
        // The source gNB has not answered.
        let is_set_up = |session: &&PduSession| session.user_plane == UserPlane::Activating;
        let setups: Vec<u8> = ue.sessions.iter().filter(is_set_up).map(|session| session.id).collect();
        delivery::leave_source(ue, env, source, |id| self.accepted.contains(&id));
        if let Some(source) = source {
            n2::leave(ue, env, source, env.config.timers.ngap_guard);
        }
        let arrival = ue.arrival.take();
        let is_new_amf = arrival.is_some();
        if let Some(arrival) = arrival {
            arrival::arrived(ue, env, *arrival);
        }
        let others = ue.sessions.iter().filter(|session| !self.accepted.contains(&session.id));
        let others: Vec<u8> = others.map(|session| session.id).collect();
        for id in others {
            if is_new_amf {
                consumer::announce_deactivated(ue, env, id);
            } else if setups.contains(&id) {
                delivery::fail_setup(ue, env, id, CauseRadioNetwork::ng_intra_system_handover_triggered);
            } else {
                consumer::deactivate(ue, env, id);
            }
        }
        for id in self.refused {
            release_at_target(ue, env, id);
        }
        let mut calls = Vec::new();
        for id in self.accepted {
            if let Some(session) = ue.session_mut(id) {
                session.user_plane = UserPlane::Activated;
                session.forget_unheard();
            }
            let call = consumer::complete_handover(ue, env, id, is_new_amf);
            calls.extend(call.map(|call| (call, id)));
        }
        moved.report(ue, env);
        AwaitingSessionCompletion { calls }.go_on(ue, env)
    }
}

impl AwaitingSessionCompletion {
    /// The requests that SMFs have not answered, with their sessions.
    pub fn calls(&self) -> &[(CallId, u8)] {
        &self.calls
    }

    /// The sessions whose SMFs have not answered.
    pub fn sessions(&self) -> impl Iterator<Item = u8> {
        self.calls.iter().map(|(_, id)| *id)
    }

    pub fn awaits_any(&self, meets: impl Fn(CallId) -> bool) -> bool {
        self.calls.iter().any(|(id, _)| meets(*id))
    }

    /// The gNB gets the session's resources in a setup, of which the SMF learns from the answer. Returns whether it was to be requested again.
    pub fn note_setup(&mut self, session: u8) -> bool {
        let was_due = self.calls.contains(&(DUE, session));
        self.calls.retain(|call| *call != (DUE, session));
        was_due
    }

    /// The pause is over. An SMF that has changed the user plane since is not requested again.
    pub fn repeat(mut self, ue: &mut UeContext, env: &mut Env<'_>) -> Mobility {
        let due: Vec<u8> =
            self.calls.extract_if(.., |(call, _)| *call == DUE).map(|(_, session)| session).collect();
        for id in due {
            if ue.session(id).is_some_and(has_resources) {
                let call = consumer::repeat_completion(ue, env, id);
                self.calls.extend(call.map(|call| (call, id)));
            } else if let Some(session) = ue.session_mut(id) {
                session.forget_unheard();
            }
        }
        self.go_on(ue, env)
    }

    /// Whether the SMF is requested again later: it does not answer, or not yet.
    fn is_repeated(&mut self, ue: &mut UeContext, env: &mut Env<'_>, id: u8, problem: &Problem) -> bool {
        let session = ue.session_mut(id).filter(|session| has_resources(session) && problem.may_pass());
        let is_late = problem.is(&SbiCause::TimedOutRequest);
        let Some(pause) = session.and_then(|session| session.count_incomplete(is_late)) else {
            return false;
        };
        env.out.log(Level::Info, || {
            format!("{}: session {id} is to be switched again in {pause:?}: {problem}", ue.name())
        });
        self.calls.push((DUE, id));
        ue.start(env, Timer::HandoverCompletion, pause);
        true
    }

    /// The reply of one SMF. A session whose path was not switched has no user plane.
    pub fn on_reply(mut self, ue: &mut UeContext, env: &mut Env<'_>, call: CallId, reply: Reply) -> Mobility {
        let Some(id) = take_call(&mut self.calls, call) else { return self.into() };
        match reply {
            // The target gNB has its resources, or has released them since.
            Ok(_) => {
                if let Some(session) = ue.session_mut(id) {
                    session.forget_unheard();
                }
            }
            Err(problem) => {
                if !self.is_repeated(ue, env, id, &problem) {
                    give_up(ue, env, id, &problem);
                }
            }
        }
        self.go_on(ue, env)
    }

    /// The SMF has ended the session, and perhaps restarted before its answer: a late reply, or none, concerns no session any longer.
    pub(super) fn on_ended(
        mut self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        session: &PduSession,
    ) -> Mobility {
        self.calls.retain(|(_, id)| *id != session.id);
        if !is_released(session) {
            delivery::release_ended(ue, env, session);
        }
        self.go_on(ue, env)
    }

    fn go_on(self, ue: &mut UeContext, env: &mut Env<'_>) -> Mobility {
        if !self.calls.is_empty() {
            return self.into();
        }
        ue.stop(env, Timer::HandoverCompletion);
        release_source(ue, env);
        let is_changed = std::mem::take(&mut ue.modifies_target);
        if ue.access_keys.is_outdated() {
            n2::rekey(ue, env);
        } else if is_changed {
            n2::modify_ue_context(ue, env);
        }
        ue.log_outcome(env, Level::Info, "N2 handover", "ok");
        Mobility::Idle
    }
}

/// The SMF has not switched the path.
fn give_up(ue: &mut UeContext, env: &mut Env<'_>, id: u8, problem: &Problem) {
    env.out.log(Level::Warn, || format!("{}: session {id} is not switched: {problem}", ue.name()));
    let is_releasing = ue.session(id).is_some_and(is_released);
    if problem.status == 404 {
        ue.sessions.retain(|session| session.id != id);
    } else if let Some(session) = ue.session_mut(id) {
        session.forget_unheard();
        if !is_releasing {
            // If another AMF has handed the UE over, the session may still be that AMF's.
            consumer::announce_deactivated(ue, env, id);
        }
    }
    if !is_releasing {
        release_at_target(ue, env, id);
    }
}

/// The paths are switched, and the source gNB has got the end markers: its connection is released (TS 23.502 4.9.1.3.3 step 14). Its id may be that of
/// another UE meanwhile.
fn release_source(ue: &UeContext, env: &mut Env<'_>) {
    let left = ue.connection.and_then(|key| env.connections.get(key)).and_then(|connection| connection.left);
    let source = left.and_then(|(gnb, ran_id)| env.connections.find_by_ran(gnb, ran_id));
    let is_left = |key: &Key| env.connections.get(*key).is_some_and(|it| it.context == RanContext::Left);
    if let Some(source) = source.filter(is_left) {
        n2::release_connection(env, source, SUCCESSFUL);
    }
}

/// Whether the target gNB has released the resources of a session, or has got the command: the SMF may have ended the session meanwhile, or
/// requested a setup.
const fn is_released(session: &PduSession) -> bool {
    matches!(session.user_plane, UserPlane::Releasing | UserPlane::Replacing | UserPlane::Deactivated)
}

/// Whether the target gNB has the resources of the handover, which no request has changed since.
fn has_resources(session: &PduSession) -> bool {
    session.user_plane == UserPlane::Activated
}

/// The target gNB releases the resources of a session whose user plane is deactivated. Its answer concerns no SMF.
pub(super) fn release_at_target(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    match ue.session_mut(id) {
        Some(session) => {
            session.user_plane = UserPlane::Replacing;
            n2::release_resources(ue, env, id);
        }
        None => delivery::release_former(ue, env, id),
    }
}

/// HANDOVER NOTIFY over the target gNB's connection.
pub(crate) fn notified(ue: &mut UeContext, env: &mut Env<'_>, key: Key, message: &HandoverNotify) {
    let step = match std::mem::take(&mut ue.mobility) {
        Mobility::AwaitingHandoverNotify(state) => state.on_notify(ue, env, key, message),
        other => other,
    };
    settle(ue, env, step);
}

/// Whether the UE may have got HANDOVER COMMAND: it leaves its source gNB, whatever becomes of that (TS 23.502 4.9.1.3.3).
pub(crate) fn outlives_source(ue: &UeContext) -> bool {
    let is_commanded =
        matches!(ue.mobility, Mobility::AwaitingHandoverNotify(_) | Mobility::AwaitingN2InfoNotify(_));
    is_commanded && ue.arrival.is_none()
}

/// The connection at the source gNB is lost after HANDOVER COMMAND. The UE is expected at the target gNB until the timer expires. Its sessions
/// keep their user planes: those that are not handed over are deactivated at HANDOVER NOTIFY.
pub(crate) fn source_lost(ue: &UeContext, env: &mut Env<'_>) {
    env.out.log(Level::Info, || {
        format!("{}: the source gNB is gone, and the UE is expected at the target gNB", ue.name())
    });
}
