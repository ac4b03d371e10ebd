//! The session at the anchor (TS 23.502 4.3.2.2.1 steps 8, 10; TS 23.501 6.3.3.3; TS 29.244 6.3.2): the SMF selects
//! the UPFs. It sends the request to the anchor first, because a front UPF needs the anchor's tunnel endpoint. If a UPF
//! refuses, the SMF selects another one.

use super::front::AwaitingFrontEstablishment;
use super::{Attempt, AwaitingResourceSetup, UeRequest, fail, policy, too_slow};
use crate::kit::document::pack_struct;
use crate::kit::{Level, N4Effect, N4Error, Outbox, UpfHandle};
use crate::smf::context::{CallId, SmContext, UpfSession, UserPlane};
use crate::smf::env::{Env, IGNORED_REPLY};
use crate::smf::error::EstablishmentError;
use crate::smf::procedure::release::Held;
use crate::smf::procedure::{State, modification};
use crate::smf::selection::{FrontPlan, Path, Upfs};
use crate::smf::{consumer, n4};
use pith_pfcp::Message;
use pith_pfcp::ie::Cause as N4Cause;
use pith_pfcp::message::SessionEstablishmentResponse;
use pith_types::{Seid, words_of_name};
use std::sync::Arc;

/// A Session Establishment Request was sent to the anchor.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingN4Establishment {
    attempt: Attempt,
    /// The anchor.
    pub upf: UpfHandle,
    /// The front UPF, which gets its request next.
    front: Option<FrontPlan>,
    /// The request.
    pub call: CallId,
}

pack_struct!(AwaitingN4Establishment { attempt, upf, front, call });

impl AwaitingN4Establishment {
    /// Sends the request to the UPFs that were planned before the PCF's decision, or to others if those are no longer
    /// associated.
    pub(super) fn begin(
        session: &mut SmContext,
        env: &mut Env<'_>,
        request: UeRequest,
        planned: Option<Path>,
    ) -> Result<State, EstablishmentError> {
        let planned = planned.filter(|path| is_associated(env.upfs, path));
        let path = planned.or_else(|| env.upfs.choose(session, &[]));
        ask(session, env, Attempt { request, tried: Vec::new() }, path)
    }

    /// Sends the request again: the response to the former one cannot be matched.
    pub(in crate::smf) fn repeat(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        let Self { attempt, upf, front, .. } = self;
        let (request, tried) = (attempt.request, attempt.tried.clone());
        match ask(session, env, attempt, Some(Path { anchor: upf, front })) {
            Ok(next) => next,
            Err(error) => Attempt { request, tried }.try_another(session, env, upf, &error),
        }
    }

    /// Handles the anchor's response (step 10b).
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        let Self { attempt, upf, front, .. } = self;
        let tunnel = |response: &SessionEstablishmentResponse| n4::tunnel(response, n4::UPLINK_PDR);
        let (seid, tunnel) = match accepted(upf, result, tunnel, env.out) {
            Ok(accepted) => accepted,
            Err(error) => return attempt.try_another(session, env, upf, &error),
        };
        let user_plane = UserPlane::of_anchor(UpfSession { upf, seid, tunnel });
        match front {
            Some(plan) => AwaitingFrontEstablishment::begin(session, env, attempt, user_plane, plan),
            None => AwaitingResourceSetup::begin(session, env, attempt.request, user_plane),
        }
    }

    /// The anchor did not answer in time.
    pub(in crate::smf) fn on_guard(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        fail(session, env, self.attempt.request, self.into_held(), &too_slow())
    }

    /// What must be released: a session at the anchor, if it answers yet.
    pub(in crate::smf) fn into_held(self) -> Held {
        Held { establishing: Some((self.upf, self.call)), ..Held::default() }
    }
}

impl Attempt {
    /// A UPF refused the session: the SMF selects another one, if there is one (TS 23.501 6.3.3.3).
    pub(super) fn try_another(
        mut self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        refusing: UpfHandle,
        error: &EstablishmentError,
    ) -> State {
        let request = self.request;
        self.tried.push(refusing);
        let path = env.upfs.choose(session, &self.tried);
        match ask(session, env, self, path) {
            Ok(next) => {
                session.log(env, Level::Warn, || format!("the SMF selects another UPF: {error}"));
                next
            }
            Err(_) => fail(session, env, request, Held::default(), error),
        }
    }
}

fn ask(
    session: &mut SmContext,
    env: &mut Env<'_>,
    attempt: Attempt,
    path: Option<Path>,
) -> Result<State, EstablishmentError> {
    let no_upf = || EstablishmentError::UserPlane("no UPF that serves it is associated".into());
    let Path { anchor: upf, front } = path.ok_or_else(no_upf)?;
    let local = env.upfs.info(upf).map(|info| info.local_address).ok_or(EstablishmentError::Resources)?;
    if front.is_some() {
        // Rules are enforced at a single UPF only.
        let failed =
            std::mem::take(&mut session.flows.current).rules().map(|it| Arc::clone(&it.id)).collect();
        modification::fail_rules(session, env, failed, "the session has a second UPF");
    }
    let former = session.address;
    let taken = policy::take_addresses(session, env, upf);
    if session.address != former {
        // The PCF got those of the UPF that was planned before.
        consumer::update_policy_address(session, env, former);
    }
    taken?;
    let call = session.ask_upf(env, upf, Seid(0), n4::establishment(session, session.address, local));
    Ok(State::AwaitingN4Establishment(AwaitingN4Establishment { attempt, upf, front, call }))
}

fn is_associated(upfs: &Upfs, path: &Path) -> bool {
    let is_associated = |upf| upfs.info(upf).is_some();
    is_associated(path.anchor) && path.front.as_ref().is_none_or(|front| is_associated(front.upf))
}

/// Checks that a UPF accepted a session; returns its SEID and what `find` finds in the response. If `find` finds nothing (no
/// F-TEID), no packet could reach the session: it is deleted at the UPF again.
pub(in crate::smf) fn accepted<T>(
    upf: UpfHandle,
    result: Result<Message, N4Error>,
    find: impl Fn(&SessionEstablishmentResponse) -> Option<T>,
    out: &mut Outbox,
) -> Result<(Seid, T), EstablishmentError> {
    let response = match result {
        Ok(Message::SessionEstablishmentResponse(response)) => response,
        Ok(_) => {
            return Err(EstablishmentError::UserPlane("the UPF sent the response to another request".into()));
        }
        Err(error) => return Err(EstablishmentError::UserPlane(error.to_string())),
    };
    let seid = response.up_f_seid.map(|seid| Seid(seid.seid));
    match (response.cause, seid, find(&response)) {
        (N4Cause::RequestAccepted, Some(seid), Some(found)) => Ok((seid, found)),
        (N4Cause::RequestAccepted, Some(seid), None) => {
            out.n4(N4Effect::Request { tag: IGNORED_REPLY, upf, seid, message: n4::deletion() });
            Err(EstablishmentError::UserPlane("the UPF accepted it but allocated no F-TEID".into()))
        }
        (cause, ..) => Err(EstablishmentError::UserPlane(format!(
            "the UPF answers {}",
            words_of_name(&format!("{cause:?}"))
        ))),
    }
}
