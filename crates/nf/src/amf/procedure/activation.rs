//! Activation of user planes (TS 23.502 4.2.3.2 steps 4 to 11, 4.2.2.2.2 step 17): a UE that
//! requests user planes gets the N3 tunnels of its sessions with the answer to its request.
//!
//! | step | state | from |
//! |---|---|---|
//! | UpdateSMContext (ACTIVATING), a session each | [`AwaitingSessionActivation`] | SMFs |
//! | the answer, with the N2 information of all | | |

use super::registration::{self, Attempt};
use super::{Procedure, Step, service_request};
use crate::amf::consumer;
use crate::amf::context::{CallId, Env, UeContext};
use crate::amf::delivery::{self, SmfMessage, Transfer};
use crate::amf::session::{PduSession, UserPlane};
use crate::kit::Nf;
use crate::kit::document::{pack_enum, pack_struct};
use pith_nas::GmmCause;
use pith_nas::ie::PduSessionSet;
use pith_ngap::SetupItem;
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use pith_sbi::{Cause, Problem, Reply, Response};

/// The procedure that the activation belongs to.
#[derive(Debug)]
pub(crate) enum Purpose {
    Registration(Box<Attempt>),
    ServiceRequest(service_request::Request),
}

pack_enum!(Purpose { 0 => Registration(attempt), 1 => ServiceRequest(request) });

/// UpdateSMContext requests to activate user planes are pending.
#[derive(Debug)]
pub(crate) struct AwaitingSessionActivation {
    purpose: Purpose,
    calls: Vec<(CallId, u8)>,
    activated: Activated,
}

/// The results of the activation.
#[derive(Debug, Default)]
pub(crate) struct Activated {
    /// Sessions that the gNB is to set up.
    pub sessions: Vec<SetupItem>,
    /// Sessions that have no user plane, and why.
    pub errors: Vec<(u8, GmmCause)>,
}

pack_struct!(AwaitingSessionActivation { purpose, calls, activated });
pack_struct!(Activated { sessions, errors });

impl Activated {
    /// The sessions that could not be activated (PDU session reactivation result,
    /// TS 24.501 9.11.3.42).
    pub fn failed(&self) -> PduSessionSet {
        self.errors.iter().map(|(id, _)| *id).collect()
    }
}

/// Requests the SMFs to activate the sessions that the UE lists; completes at once if there is none.
pub(crate) fn begin(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    wanted: Option<PduSessionSet>,
    purpose: Purpose,
) -> Step {
    let wanted = wanted.unwrap_or(PduSessionSet::NONE);
    let lacks = |id: &u8| !has_user_plane(ue, *id) || delivery::is_left_without_setup(ue, *id);
    let missing: PduSessionSet = wanted.iter().filter(lacks).collect();
    let mut state = AwaitingSessionActivation { purpose, calls: Vec::new(), activated: Activated::default() };
    if !ue.has_service() {
        delivery::fail_setups(ue, env);
    }
    for id in missing.iter() {
        if !ue.has_service_for(id) {
            // TS 24.501 5.5.1.3.4, 5.6.1.4.1.
            state.activated.errors.push((id, GmmCause::RestrictedServiceArea));
            continue;
        }
        match consumer::activate(ue, env, id) {
            Some(call) => state.calls.push((call, id)),
            // By the PDU session status IE, the UE learns that the network has no such session.
            None => state.activated.errors.push((id, GmmCause::ProtocolErrorUnspecified)),
        }
    }
    state.go_on(ue, env)
}

/// Whether the session has a user plane over the current connection, or its setup is in progress.
fn has_user_plane(ue: &UeContext, id: u8) -> bool {
    ue.session(id).is_some_and(PduSession::has_user_plane)
}

/// Releases sessions that only one side has: the AMF releases those that the UE does not have.
/// Those that the network does not have are missing in its answer, so that the UE releases them (TS
/// 24.501 5.6.1.4, 5.5.1.3.4).
pub(crate) fn reconcile(ue: &mut UeContext, env: &mut Env<'_>, status: PduSessionSet) {
    let unknown_to_ue = |id: &u8| !status.contains(*id);
    let gone: Vec<u8> = ue.sessions.iter().map(|session| session.id).filter(unknown_to_ue).collect();
    for id in gone {
        consumer::release_session(ue, env, id);
    }
}

impl AwaitingSessionActivation {
    /// Whether the state waits for a call that meets the condition.
    pub fn awaits_any(&self, meets: impl Fn(CallId) -> bool) -> bool {
        self.calls.iter().any(|(id, _)| meets(*id))
    }

    /// Whether the SMF's answer for that session is awaited.
    pub fn awaits_session(&self, id: u8) -> bool {
        self.calls.iter().any(|(_, session)| *session == id)
    }

    /// Whether the activation belongs to a registration.
    pub fn is_registration(&self) -> bool {
        matches!(self.purpose, Purpose::Registration(_))
    }

    pub fn has_setup_of(&self, id: u8) -> bool {
        self.activated.sessions.iter().any(|item| item.pdu_session_id == id)
    }

    /// The reply of one SMF.
    pub fn on_reply(mut self, ue: &mut UeContext, env: &mut Env<'_>, call: CallId, reply: Reply) -> Step {
        let at = self.calls.iter().position(|(id, _)| *id == call);
        if let Some((_, id)) = at.map(|at| self.calls.swap_remove(at)) {
            self.take(ue, env, id, reply);
        }
        self.go_on(ue, env)
    }

    /// The procedure is aborted: replies of SMFs are late.
    pub fn abort(self, ue: &mut UeContext, env: &mut Env<'_>) {
        for (_, id) in self.calls {
            consumer::deactivate_unheard(ue, env, id);
        }
    }

    fn take(&mut self, ue: &mut UeContext, env: &mut Env<'_>, id: u8, reply: Reply) {
        let waits = delivery::awaits_gnb(ue, env, id);
        let Some(session) = ue.session_mut(id) else { return };
        let (snssai, updated) = match reply {
            Ok(Response::SmContextUpdated(updated)) => (session.snssai, *updated),
            Ok(_) => return,
            Err(problem) => {
                if problem.status == 404 {
                    ue.sessions.retain(|session| session.id != id);
                }
                self.activated.errors.push((id, cause_of(&problem)));
                return consumer::deactivate_unheard(ue, env, id);
            }
        };
        if updated.n2_sm_info_type == Some(N2SmInfoType::PduResSetupReq) {
            let transfer = updated.n2_sm_info.map(|info| info.content).unwrap_or_default();
            if waits {
                // The gNB is to answer what it has got before.
                session.held_setup =
                    SmfMessage::of_session(id, None, Some((Transfer::SetupRequest, transfer)));
                return;
            }
            let transfer = transfer.to_vec();
            session.user_plane = UserPlane::Activating;
            self.activated.sessions.push(SetupItem { pdu_session_id: id, nas_pdu: None, snssai, transfer });
        }
    }

    fn go_on(self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        if !self.calls.is_empty() {
            return Step::waiting(Procedure::AwaitingSessionActivation(self), Nf::Smf);
        }
        ue.must_store |= !self.activated.sessions.is_empty();
        match self.purpose {
            Purpose::Registration(attempt) => registration::accept(ue, env, &attempt, self.activated),
            Purpose::ServiceRequest(request) => service_request::accept(ue, env, request, self.activated),
        }
    }
}

/// Reactivation result error cause for the UE (TS 24.501 5.6.1.4.1).
fn cause_of(problem: &Problem) -> GmmCause {
    match problem.cause() {
        Some(Cause::InsufficientResourcesSliceDnn | Cause::DnnCongestion) => {
            GmmCause::InsufficientResourcesForSpecificSliceAndDnn
        }
        Some(Cause::InsufficientResourcesSlice | Cause::SNssaiCongestion) => {
            GmmCause::InsufficientResourcesForSpecificSlice
        }
        Some(Cause::OutOfLadnServiceArea) => GmmCause::LadnNotAvailable,
        _ => GmmCause::InsufficientUserPlaneResourcesForThePduSession,
    }
}
