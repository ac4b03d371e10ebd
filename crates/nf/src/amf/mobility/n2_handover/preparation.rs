//! Preparation (TS 23.502 4.9.1.3.2): HANDOVER REQUIRED to HANDOVER COMMAND.

use super::{
    AwaitingHandoverNotify, CANCELLED, HandoverError, NOT_PREPARED, cancel_sessions, fail_preparation,
    release_target, settle, source_of, stay, take_call, unsuccessful,
};
use crate::amf::access_keys;
use crate::amf::consumer;
use crate::amf::context::{CallId, Env, UeContext};
use crate::amf::mobility::{Mobility, arrival};
use crate::amf::n2;
use crate::kit::document::pack_struct;
use crate::kit::{GnbHandle, Level, Timer};
use pith_ngap::{
    Cause, HandoverCommand, HandoverFailure, HandoverItem, HandoverRequestAcknowledge, HandoverType,
    SessionTransfer,
};
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use pith_sbi::{Problem, ProblemMore, Reply, Response};
use pith_types::AmfUeNgapId;

/// SMFs prepare the sessions.
#[derive(Debug)]
pub(crate) struct AwaitingSessionPreparation {
    pub(super) calls: Vec<(CallId, u8)>,
    pub(super) target: GnbHandle,
    pub(super) cause: Option<Cause>,
    pub(super) source_to_target: Vec<u8>,
    pub(super) sessions: Vec<HandoverItem>,
    pub(super) to_release: Vec<SessionTransfer>,
}

/// HANDOVER REQUEST was sent.
#[derive(Debug)]
pub(crate) struct AwaitingHandoverRequestAcknowledge {
    /// The connection at the target gNB.
    pub(super) target: AmfUeNgapId,
    /// Sessions in the request.
    pub(super) sessions: Vec<u8>,
    pub(super) to_release: Vec<SessionTransfer>,
}

/// SMFs get the target gNB's tunnels.
#[derive(Debug)]
pub(crate) struct AwaitingHandoverCommand {
    pub(super) calls: Vec<(CallId, u8)>,
    pub(super) target: AmfUeNgapId,
    pub(super) target_to_source: Vec<u8>,
    /// Sessions for which the target gNB has resources.
    pub(super) admitted: Vec<u8>,
    pub(super) accepted: Vec<SessionTransfer>,
    pub(super) to_release: Vec<SessionTransfer>,
}

pack_struct!(AwaitingSessionPreparation { calls, target, cause, source_to_target, sessions, to_release });
pack_struct!(AwaitingHandoverRequestAcknowledge { target, sessions, to_release });
pack_struct!(AwaitingHandoverCommand { calls, target, target_to_source, admitted, accepted, to_release });

/// The N2 information of an SMF's reply, if it has that type; else the transfer for the source gNB.
fn transfer_of(
    reply: Reply,
    wanted: &N2SmInfoType,
) -> Result<Vec<u8>, (Option<Vec<u8>>, Option<Box<Problem>>)> {
    match reply {
        Ok(Response::SmContextUpdated(updated)) if updated.n2_sm_info_type.as_ref() == Some(wanted) => {
            Ok(updated.n2_sm_info.map(|info| info.content.to_vec()).unwrap_or_default())
        }
        Ok(_) => Err((None, None)),
        Err(problem) => {
            let transfer = match &problem.more {
                Some(ProblemMore::SmContextUpdateError(error))
                    if error.n2_sm_info_type == Some(N2SmInfoType::HandoverPrepFail) =>
                {
                    error.n2_sm_info.as_ref().map(|info| info.content.to_vec())
                }
                _ => None,
            };
            Err((transfer, Some(problem)))
        }
    }
}

/// A session that is not handed over: its item for the source gNB.
fn not_handed_over(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    id: u8,
    (transfer, problem): (Option<Vec<u8>>, Option<Box<Problem>>),
) -> SessionTransfer {
    env.out.log(Level::Warn, || {
        let why = problem.as_ref().map_or_else(|| "unexpected reply".into(), ToString::to_string);
        format!("{}: session {id} is not handed over: {why}", ue.name())
    });
    match problem.map(|problem| problem.status) {
        Some(404) => ue.sessions.retain(|session| session.id != id),
        // Without an answer the SMF may have prepared the session, with a tunnel for forwarded packets.
        Some(504) => consumer::cancel_handover(ue, env, id),
        _ => {}
    }
    match transfer {
        Some(transfer) => SessionTransfer { pdu_session_id: id, transfer },
        None => unsuccessful(id, NOT_PREPARED),
    }
}

impl AwaitingSessionPreparation {
    /// Whether the SMF of a session has not answered yet.
    pub fn prepares(&self, session: u8) -> bool {
        self.calls.iter().any(|(_, id)| *id == session)
    }

    pub fn awaits_any(&self, meets: impl Fn(CallId) -> bool) -> bool {
        self.calls.iter().any(|(id, _)| meets(*id))
    }

    /// The reply of one SMF.
    pub fn on_reply(mut self, ue: &mut UeContext, env: &mut Env<'_>, call: CallId, reply: Reply) -> Mobility {
        let Some(id) = take_call(&mut self.calls, call) else { return self.into() };
        match (transfer_of(reply, &N2SmInfoType::PduResSetupReq), ue.session(id)) {
            (Ok(transfer), Some(session)) => {
                let snssai = session.snssai;
                self.sessions.push(HandoverItem { pdu_session_id: id, snssai, transfer });
            }
            (Ok(_), None) => self.to_release.push(unsuccessful(id, NOT_PREPARED)),
            (Err(error), _) => self.to_release.push(not_handed_over(ue, env, id, error)),
        }
        self.go_on(ue, env)
    }

    pub(super) fn on_ended(mut self, ue: &mut UeContext, env: &mut Env<'_>, id: u8) -> Mobility {
        let is_concerned = self.prepares(id) || self.sessions.iter().any(|item| item.pdu_session_id == id);
        if !is_concerned {
            return self.into();
        }
        self.calls.retain(|(_, session)| *session != id);
        self.sessions.retain(|item| item.pdu_session_id != id);
        self.to_release.push(unsuccessful(id, NOT_PREPARED));
        self.go_on(ue, env)
    }

    /// HANDOVER REQUEST to the target gNB, once all SMFs have replied (TS 38.413 8.4.2.2; TS 33.501 6.9.2.3.3). The algorithms of NAS
    /// change only if another AMF hands the UE over.
    pub(super) fn go_on(self, ue: &mut UeContext, env: &mut Env<'_>) -> Mobility {
        if !self.calls.is_empty() {
            return self.into();
        }
        if self.sessions.is_empty() {
            fail_preparation(ue, env, HandoverError::NoSession);
            return stay(ue, env);
        }
        let ids: Vec<u8> = self.sessions.iter().map(|item| item.pdu_session_id).collect();
        let selected = if ue.arrival.is_some() { arrival::select_algorithms(ue, env) } else { Ok(None) };
        let nas_container = match selected {
            Ok(container) => container.map(|container| container.octets()),
            Err(error) => {
                cancel_sessions(ue, env, &ids);
                fail_preparation(ue, env, error);
                return stay(ue, env);
            }
        };
        let is_connected = env.gnbs.contains_key(&self.target);
        let key =
            if is_connected { env.connections.open_for_handover(ue.id.block, self.target) } else { None };
        let next_hop =
            if ue.arrival.is_some() { ue.access_keys.adopted() } else { access_keys::next_hop(ue) };
        let (Some(key), Some(next_hop)) = (key, next_hop) else {
            cancel_sessions(ue, env, &ids);
            fail_preparation(ue, env, HandoverError::UnknownTarget);
            return stay(ue, env);
        };
        let Some(connection) = env.connections.get_mut(key) else { return Mobility::Idle };
        connection.ue = Some(ue.key);
        let target = connection.id;
        let Self { cause, source_to_target, sessions, to_release, .. } = self;
        let has_new_k_amf = ue.arrival.as_ref().is_some_and(|arrival| arrival.derived_with.is_some());
        let content =
            n2::HandoverContent { cause, next_hop, has_new_k_amf, nas_container, sessions, source_to_target };
        n2::handover_request(ue, env, key, content);
        ue.start(env, Timer::Handover, env.config.timers.handover_preparation);
        AwaitingHandoverRequestAcknowledge { target, sessions: ids, to_release }.into()
    }
}

impl AwaitingHandoverRequestAcknowledge {
    /// HANDOVER REQUEST ACKNOWLEDGE: the SMFs get the target gNB's tunnels (TS 23.502 4.9.1.3.2 step 11a).
    pub(super) fn on_acknowledge(
        self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        message: HandoverRequestAcknowledge,
    ) -> Mobility {
        ue.stop(env, Timer::Handover);
        let Self { target, sessions, to_release } = self;
        let target_to_source = message.target_to_source;
        let mut state = AwaitingHandoverCommand {
            calls: Vec::new(),
            target,
            target_to_source,
            admitted: Vec::new(),
            accepted: Vec::new(),
            to_release,
        };
        let admitted =
            message.admitted.into_iter().flatten().map(|item| (item, N2SmInfoType::HandoverReqAck));
        let failed =
            message.failed.into_iter().flatten().map(|item| (item, N2SmInfoType::HandoverResAllocFail));
        let mut answered = Vec::new();
        for (item, kind) in admitted.chain(failed).filter(|(item, _)| sessions.contains(&item.pdu_session_id))
        {
            let id = item.pdu_session_id;
            if answered.contains(&id) {
                // The first item of a session counts.
                continue;
            }
            answered.push(id);
            if kind == N2SmInfoType::HandoverReqAck {
                state.admitted.push(id);
            }
            match consumer::handover_prepared(ue, env, id, item.transfer, kind) {
                Some(call) => state.calls.push((call, id)),
                None => state.to_release.push(unsuccessful(id, NOT_PREPARED)),
            }
        }
        for id in sessions.into_iter().filter(|id| !answered.contains(id)) {
            cancel_sessions(ue, env, &[id]);
            state.to_release.push(unsuccessful(id, NOT_PREPARED));
        }
        state.go_on(ue, env)
    }

    /// The target gNB does not prepare the handover.
    pub(super) fn end(self, ue: &mut UeContext, env: &mut Env<'_>, error: HandoverError) -> Mobility {
        ue.stop(env, Timer::Handover);
        cancel_sessions(ue, env, &self.sessions);
        fail_preparation(ue, env, error);
        stay(ue, env)
    }
}

impl AwaitingHandoverCommand {
    pub fn awaits_any(&self, meets: impl Fn(CallId) -> bool) -> bool {
        self.calls.iter().any(|(id, _)| meets(*id))
    }

    /// The reply of one SMF.
    pub fn on_reply(mut self, ue: &mut UeContext, env: &mut Env<'_>, call: CallId, reply: Reply) -> Mobility {
        let Some(pdu_session_id) = take_call(&mut self.calls, call) else { return self.into() };
        match transfer_of(reply, &N2SmInfoType::HandoverCmd) {
            Ok(transfer) => self.accepted.push(SessionTransfer { pdu_session_id, transfer }),
            Err(error) => self.to_release.push(not_handed_over(ue, env, pdu_session_id, error)),
        }
        self.go_on(ue, env)
    }

    pub(super) fn on_ended(mut self, ue: &mut UeContext, env: &mut Env<'_>, id: u8) -> Mobility {
        let is_accepted = self.accepted.iter().any(|item| item.pdu_session_id == id);
        if !is_accepted && !self.awaits_session(id) {
            return self.into();
        }
        self.calls.retain(|(_, session)| *session != id);
        self.accepted.retain(|item| item.pdu_session_id != id);
        self.to_release.push(unsuccessful(id, NOT_PREPARED));
        self.go_on(ue, env)
    }

    fn awaits_session(&self, id: u8) -> bool {
        self.calls.iter().any(|(_, session)| *session == id)
    }

    /// HANDOVER COMMAND to the source gNB, once all SMFs have replied (TS 38.413 8.4.1.2).
    fn go_on(self, ue: &mut UeContext, env: &mut Env<'_>) -> Mobility {
        if !self.calls.is_empty() {
            return self.into();
        }
        let Self { target, target_to_source, mut admitted, accepted, to_release, .. } = self;
        if accepted.is_empty() {
            release_target(env, target, NOT_PREPARED);
            fail_preparation(ue, env, HandoverError::NoSession);
            return stay(ue, env);
        }
        let ids: Vec<u8> = accepted.iter().map(|item| item.pdu_session_id).collect();
        admitted.retain(|id| !ids.contains(id));
        if ue.arrival.is_some() {
            arrival::prepared(ue, env, accepted, to_release, target_to_source);
            ue.start(env, Timer::Handover, env.config.timers.handover_completion);
            return AwaitingHandoverNotify { target, accepted: ids, refused: admitted }.into();
        }
        let (Some(key), Some(source)) = (ue.connection, source_of(ue, env)) else {
            release_target(env, target, CANCELLED);
            cancel_sessions(ue, env, &ids);
            ue.log_outcome(env, Level::Info, "N2 handover", "the source gNB has released the UE");
            return Mobility::Idle;
        };
        let command = HandoverCommand {
            amf_ue_ngap_id: source.id,
            ran_ue_ngap_id: source.ran_id,
            handover_type: HandoverType::intra5gs,
            nas_security_parameters: None,
            sessions: Some(accepted),
            to_release: (!to_release.is_empty()).then_some(to_release),
            target_to_source,
            diagnostics: None,
        };
        n2::respond(env, key, command.encode());
        ue.start(env, Timer::Handover, env.config.timers.handover_completion);
        AwaitingHandoverNotify { target, accepted: ids, refused: admitted }.into()
    }
}

/// HANDOVER REQUEST ACKNOWLEDGE of the target gNB.
pub(crate) fn acknowledged(ue: &mut UeContext, env: &mut Env<'_>, message: HandoverRequestAcknowledge) {
    let step = match std::mem::take(&mut ue.mobility) {
        Mobility::AwaitingHandoverRequestAcknowledge(state) => state.on_acknowledge(ue, env, message),
        other => other,
    };
    settle(ue, env, step);
}

/// HANDOVER FAILURE of the target gNB (TS 38.413 8.4.2.3), whose connection is closed already.
pub(crate) fn refused(ue: &mut UeContext, env: &mut Env<'_>, message: &HandoverFailure) {
    env.out.log(Level::Warn, || {
        format!("{}: HANDOVER FAILURE: {}", ue.name(), crate::amf::refusal::text_of(message.cause))
    });
    let step = match std::mem::take(&mut ue.mobility) {
        Mobility::AwaitingHandoverRequestAcknowledge(state) => state.end(ue, env, HandoverError::Refused),
        other => other,
    };
    settle(ue, env, step);
}
