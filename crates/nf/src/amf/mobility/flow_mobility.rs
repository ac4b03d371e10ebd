//! RAN initiated QoS flow mobility: the UE's gNB moves QoS flows to a secondary gNB, or back (TS 23.502 4.14.1; TS 38.413 8.2.5). The UE keeps its
//! gNB and its connection.
//!
//! | step | state | from | TS 23.502 4.14.1 |
//! |---|---|---|---|
//! | PDU SESSION RESOURCE MODIFY INDICATION | | gNB | 1 |
//! | UpdateSMContext (PDU_RES_MOD_IND), a session each | [`AwaitingFlowMobility`] | SMFs | 2 to 6 |
//! | PDU SESSION RESOURCE MODIFY CONFIRM | | | 7 |
//!
//! While a handover is in progress all sessions are confirmed as failed: the gNB keeps its configuration. A path switch ends the procedure without
//! confirmation, since another gNB serves the UE.

use super::Mobility;
use crate::amf::connection::RanContext;
use crate::amf::context::{CallId, Env, UeContext};
use crate::amf::{consumer, delivery, n2};
use crate::kit::Level;
use crate::kit::document::pack_struct;
use pith_ngap::transfer::ModifyIndicationUnsuccessfulTransfer;
use pith_ngap::{
    Cause, CauseRadioNetwork, PduSessionResourceModifyConfirm, PduSessionResourceModifyIndication,
    SessionTransfer,
};
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use pith_sbi::{Cause as SbiCause, Problem, ProblemMore, Reply, Response};
use std::collections::BTreeSet;

/// UpdateSMContext requests to move flows are pending.
#[derive(Debug)]
pub(crate) struct AwaitingFlowMobility {
    calls: Vec<OpenCall>,
    confirmed: Vec<SessionTransfer>,
    failed: Vec<SessionTransfer>,
}

/// A request to an SMF.
#[derive(Debug)]
struct OpenCall {
    id: CallId,
    session: u8,
    /// The gNB's transfer, for a repetition: a request that was lost, or whose answer was, may have moved the flows.
    transfer: Vec<u8>,
    repetitions: u8,
}

pack_struct!(AwaitingFlowMobility { calls, confirmed, failed });
pack_struct!(OpenCall { id, session, transfer, repetitions });

/// The session does not exist, or was released meanwhile.
const UNKNOWN_SESSION: CauseRadioNetwork = CauseRadioNetwork::unknown_PDU_session_ID;
const TWICE: CauseRadioNetwork = CauseRadioNetwork::multiple_PDU_session_ID_instances;
const BUSY: CauseRadioNetwork = CauseRadioNetwork::interaction_with_other_procedure;
/// The repetitions of a request whose answer no longer counts.
const VOID: u8 = u8::MAX;
/// The SMF or its UPF did not move the flows.
const NOT_MOVED: CauseRadioNetwork = CauseRadioNetwork::unspecified;

fn unsuccessful(pdu_session_id: u8, cause: CauseRadioNetwork) -> SessionTransfer {
    let cause = Cause::RadioNetwork(cause);
    SessionTransfer { pdu_session_id, transfer: ModifyIndicationUnsuccessfulTransfer { cause }.encode() }
}

/// PDU SESSION RESOURCE MODIFY INDICATION of the UE's gNB (TS 38.413 8.2.5.2).
pub(crate) fn indicated(ue: &mut UeContext, env: &mut Env<'_>, message: PduSessionResourceModifyIndication) {
    let mut state =
        Box::new(AwaitingFlowMobility { calls: Vec::new(), confirmed: Vec::new(), failed: Vec::new() });
    if !ue.mobility.is_idle() {
        let ids = message.sessions.iter().map(|item| item.pdu_session_id);
        state.failed = ids.map(|id| unsuccessful(id, BUSY)).collect();
        return state.confirm(ue, env);
    }
    let (mut ids, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for item in &message.sessions {
        if !ids.insert(item.pdu_session_id) {
            twice.insert(item.pdu_session_id);
        }
    }
    // Which of two transfers applies is unknown: neither. The answer has each session once.
    state.failed = twice.iter().map(|id| unsuccessful(*id, TWICE)).collect();
    for item in message.sessions {
        if !twice.contains(&item.pdu_session_id) {
            state.ask(ue, env, (item.pdu_session_id, item.transfer), 0);
        }
    }
    ue.mobility = state.go_on(ue, env);
}

impl AwaitingFlowMobility {
    /// Whether the state waits for a call that meets the condition.
    pub fn awaits_any(&self, meets: impl Fn(CallId) -> bool) -> bool {
        self.calls.iter().any(|call| meets(call.id))
    }

    /// Whether the gNB's indication has the session.
    pub fn has_session(&self, session: u8) -> bool {
        self.calls.iter().any(|call| call.session == session)
            || self.confirmed.iter().chain(&self.failed).any(|item| item.pdu_session_id == session)
    }

    /// The reply of one SMF.
    pub fn on_reply(
        mut self: Box<Self>,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        call: CallId,
        reply: Reply,
    ) -> Mobility {
        let at = self.calls.iter().position(|open| open.id == call);
        if let Some(open) = at.map(|at| self.calls.swap_remove(at)) {
            if open.repetitions == VOID {
                self.failed.push(unsuccessful(open.session, NOT_MOVED));
                return self.go_on(ue, env);
            }
            // An SMF that answers so was interrupted, and may have moved the flows: the gNB would keep the tunnels that its UPF no longer uses.
            let is_interrupted = |problem: &Problem| problem.is(&SbiCause::SystemFailure);
            let is_unanswered =
                reply.as_ref().is_err_and(|problem| problem.status == 504 || is_interrupted(problem));
            if is_unanswered && open.repetitions < env.config.max_retransmissions {
                self.ask(ue, env, (open.session, open.transfer), open.repetitions + 1);
            } else {
                self.take(ue, env, open.session, reply);
                self.note_served(ue, &open);
            }
        }
        self.go_on(ue, env)
    }

    /// The session is set up at the gNB with other tunnels. The gNB keeps these, whatever the SMF has answered or will answer; an indication
    /// that is not answered is not sent again.
    pub fn note_setup(&mut self, session: u8) {
        for call in self.calls.iter_mut().filter(|call| call.session == session) {
            call.repetitions = VOID;
        }
        let is_of_session = |item: &mut SessionTransfer| item.pdu_session_id == session;
        let void = self.confirmed.extract_if(.., is_of_session).map(|_| unsuccessful(session, NOT_MOVED));
        self.failed.extend(void);
    }

    /// Sends the gNB's transfer to the SMF of the session.
    fn ask(
        &mut self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        (session, transfer): (u8, Vec<u8>),
        repetitions: u8,
    ) {
        match consumer::move_flows(ue, env, session, transfer.clone()) {
            Some(id) => self.calls.push(OpenCall { id, session, transfer, repetitions }),
            None => self.failed.push(unsuccessful(session, UNKNOWN_SESSION)),
        }
    }

    fn take(&mut self, ue: &mut UeContext, env: &mut Env<'_>, id: u8, reply: Reply) {
        let transfer = match &reply {
            Ok(Response::SmContextUpdated(updated)) => {
                let is_confirmed = updated.n2_sm_info_type == Some(N2SmInfoType::PduResModCfm);
                updated.n2_sm_info.as_ref().filter(|_| is_confirmed)
            }
            _ => None,
        };
        if let Some(transfer) = transfer {
            let transfer = transfer.content.to_vec();
            return self.confirmed.push(SessionTransfer { pdu_session_id: id, transfer });
        }
        let problem = reply.err();
        env.out.log(Level::Warn, || {
            let why = problem.as_ref().map_or_else(|| "unexpected reply".into(), ToString::to_string);
            format!("{}: the QoS flows of session {id} do not move: {why}", ue.name())
        });
        let transfer = problem.as_ref().and_then(|problem| transfer_of(problem));
        self.failed.push(transfer.map_or_else(
            || unsuccessful(id, NOT_MOVED),
            |transfer| SessionTransfer { pdu_session_id: id, transfer },
        ));
        if problem.is_some_and(|problem| problem.status == 404) {
            let ended = ue.sessions.extract_if(.., |session| session.id == id).next();
            if let Some(session) = ended {
                delivery::release_ended(ue, env, &session);
            }
        }
    }

    /// If the flows have moved, the SMF has got the gNB's reports before the indication.
    fn note_served(&self, ue: &mut UeContext, call: &OpenCall) {
        let is_confirmed = self.confirmed.iter().any(|item| item.pdu_session_id == call.session);
        if let Some(session) = ue.session_mut(call.session).filter(|_| is_confirmed) {
            session.note_served(call.id);
        }
    }

    /// Answers the gNB once all SMFs have replied.
    fn go_on(self: Box<Self>, ue: &UeContext, env: &mut Env<'_>) -> Mobility {
        if !self.calls.is_empty() {
            return Mobility::AwaitingFlows(self);
        }
        self.confirm(ue, env);
        Mobility::Idle
    }

    /// PDU SESSION RESOURCE MODIFY CONFIRM (TS 38.413 8.2.5.2).
    fn confirm(self, ue: &UeContext, env: &mut Env<'_>) {
        let Self { confirmed, failed, .. } = self;
        let (level, outcome) =
            if failed.is_empty() { (Level::Info, "ok") } else { (Level::Warn, "sessions failed") };
        ue.log_outcome(env, level, "QoS flow mobility", outcome);
        let Some(key) = ue.connection else { return };
        let Some(connection) = env.connections.get(key) else { return };
        // The gNB has got UE CONTEXT RELEASE COMMAND, and does not know the ids any longer (TS 38.413 8.3.3).
        if connection.context == RanContext::Releasing {
            return;
        }
        let confirm = PduSessionResourceModifyConfirm {
            amf_ue_ngap_id: connection.id,
            ran_ue_ngap_id: connection.ran_id,
            confirmed: (!confirmed.is_empty()).then_some(confirmed),
            failed: (!failed.is_empty()).then_some(failed),
            diagnostics: None,
        };
        n2::respond(env, key, confirm.encode());
    }
}

/// PDU Session Resource Modify Indication Unsuccessful Transfer of an SMF's refusal.
fn transfer_of(problem: &Problem) -> Option<Vec<u8>> {
    let Some(ProblemMore::SmContextUpdateError(error)) = &problem.more else { return None };
    let is_failure = error.n2_sm_info_type == Some(N2SmInfoType::PduResModIndFail);
    error.n2_sm_info.as_ref().filter(|_| is_failure).map(|info| info.content.to_vec())
}
