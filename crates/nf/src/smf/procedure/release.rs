//! PDU session release (TS 23.502 4.3.4.2; TS 29.502 5.2.2.4; TS 24.501 6.3.3, 6.4.3).
//!
//! ```text
//!  UE ─> PDU SESSION RELEASE REQUEST    UPF sessions deleted; command and N2 information in the answer to the AMF
//!  UDM, PCF ─> end of the session       UPF sessions deleted; command and N2 information in an N1N2MessageTransfer
//!  UE outside of the LADN               the same, with #46; an idle UE is not paged: AMF notified, Over
//!  restart, address in no pool          the same, with #39 'reactivation requested'
//!  UPF lost, or refuses the session     the same, if the gNB has the session's resources
//!  gNB without the default QoS flow     the same, with #26 'insufficient resources'
//!  gNB does not answer the first setup  the same, for the UE only
//!        AwaitingReleaseComplete        <─ UE     T3592, up to 4 retransmissions of the command
//!        Over                           policy association and UDM registration deleted, AMF notified
//!  AMF ─> ReleaseSmContext              everything is released at once
//!        Abandoned                      <─ UPF, if it has not answered a Session Establishment Request
//! ```

use super::{Established, State};
use crate::kit::document::pack_struct;
use crate::kit::{Level, N4Error, PendingReply, UpfHandle};
use crate::smf::context::document::{SECTIONS, pack};
use crate::smf::context::{CallId, SmContext, UpfSession, UserPlane};
use crate::smf::env::Env;
use crate::smf::n1::UNASSIGNED_PTI;
use crate::smf::timers::SessionTimer;
use crate::smf::update::{answer_n1, answer_update};
use crate::smf::{consumer, n1, n2};
use pith_nas::GsmCause;
use pith_pfcp::Message;
use pith_sbi::namf_communication::{N1N2MessageTransferCause, NgapIeType};
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdatedData};
use pith_sbi::{Cause, Problem, Reply, Response};
use pith_types::Seid;

/// The UE has not yet answered a PDU SESSION RELEASE COMMAND.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingReleaseComplete {
    /// PTI of the UE's request; 0 if the network initiated the release.
    pub(super) pti: u8,
    cause: GsmCause,
    /// Number of retransmissions of the command so far.
    retransmissions: u8,
}

/// The session has ended, but a UPF has not yet answered the Session Establishment Request. Only the answer contains the SEID
/// with which the SMF deletes the session there.
#[derive(Debug)]
pub(in crate::smf) struct Abandoned {
    /// The UPF that has not answered yet.
    pub upf: UpfHandle,
    /// The request.
    pub call: CallId,
}

pack_struct!(AwaitingReleaseComplete { pti, cause, retransmissions });
pack_struct!(Abandoned { upf, call });

/// The UE requests the release of its session (TS 24.501 6.4.3.3).
pub(in crate::smf) fn on_release_request(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    pti: u8,
) -> State {
    // Whatever else the session was to be released for.
    session.pending.release = None;
    let next = AwaitingReleaseComplete { pti, cause: GsmCause::RegularDeactivation, retransmissions: 0 };
    let mut data = SmContextUpdatedData::default();
    data.n1_sm_msg = Some(next.command(session).into());
    if user_plane.gnb.is_some() {
        data.n2_sm_info = Some(n2::release_command().into());
        data.n2_sm_info_type = Some(N2SmInfoType::PduResRelCmd);
    }
    Held::from(user_plane).delete_at_upfs(session, env);
    answer_update(reply, data, env.out);
    next.begin(session, env)
}

/// UDM or PCF end a session (TS 29.503 5.3.2.3; TS 29.512 4.2.3.3), or the UE has left its service area. If the session is being established
/// or changed, it is released when that is complete. A release in progress is not affected. The NF that has reported the reason does not repeat
/// it.
pub(in crate::smf) fn release_when_established(
    state: State,
    session: &mut SmContext,
    cause: GsmCause,
) -> State {
    if !matches!(state, State::AwaitingReleaseComplete(_)) {
        session.pending.release = Some(cause);
        session.must_store = true;
    }
    state
}

/// Starts the release that UDM or PCF requested: sends the commands to UE and gNB (TS 24.501 6.3.3.2).
pub(in crate::smf) fn resume(established: Established, session: &mut SmContext, env: &mut Env<'_>) -> State {
    match session.pending.release.take() {
        Some(cause) => command(established.into(), session, env, cause),
        None => established.into(),
    }
}

/// Releases a session that the SMF cannot keep, and requests the UE to establish it again (TS 24.501 6.3.3.2, #39).
pub(in crate::smf) fn reactivate(state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    command(state, session, env, GsmCause::ReactivationRequested)
}

/// Ends a session that no UPF serves any longer. If the gNB has its resources, the UE would send into a session that has ended (TS 23.527 4.3.3): gNB
/// and UE get commands, and the UE is requested to establish the session again (TS 23.502 4.3.4.2 steps 1e and 3). Another UE learns
/// it from the PDU session status of its next request (TS 24.501 5.6.1.4.1).
pub(in crate::smf) fn end_unserved(
    held: Held,
    has_tunnel: bool,
    session: &mut SmContext,
    env: &mut Env<'_>,
) -> State {
    if has_tunnel {
        return command_with(held, true, session, env, GsmCause::ReactivationRequested);
    }
    end_and_notify_amf(held, session, env)
}

/// Ends a session whose resources at the gNB can't be used: gNB and UE get commands (TS 24.501 6.3.3.2, #26).
pub(in crate::smf) fn end_without_resources(held: Held, session: &mut SmContext, env: &mut Env<'_>) -> State {
    command_with(held, true, session, env, GsmCause::InsufficientResources)
}

/// Ends a session that the UE may have, and for which the gNB has no resources: the UE gets a command.
pub(in crate::smf) fn end_at_ue(held: Held, session: &mut SmContext, env: &mut Env<'_>) -> State {
    command_with(held, false, session, env, GsmCause::InsufficientResources)
}

/// The network initiates the release.
fn command(state: State, session: &mut SmContext, env: &mut Env<'_>, cause: GsmCause) -> State {
    let has_tunnel = state.user_plane().is_some_and(|user_plane| user_plane.gnb.is_some());
    command_with(state.into_held(), has_tunnel, session, env, cause)
}

fn command_with(
    mut held: Held,
    has_tunnel: bool,
    session: &mut SmContext,
    env: &mut Env<'_>,
    cause: GsmCause,
) -> State {
    let next = AwaitingReleaseComplete { pti: UNASSIGNED_PTI, cause, retransmissions: 0 };
    let n2 = has_tunnel.then(|| (NgapIeType::PduResRelCmd, n2::release_command()));
    held.delete_at_upfs(session, env);
    if let Some(reply) = held.reply.take() {
        reply.refuse(Problem::new(Cause::PeerNotResponding), env.out);
    }
    next.send_command(session, env, n2);
    next.begin(session, env)
}

impl AwaitingReleaseComplete {
    /// Enters the state; ends the session's other procedures.
    fn begin(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        (session.modification, session.accept) = (None, None);
        session.stop(env, SessionTimer::Guard);
        session.stop(env, SessionTimer::T3591);
        session.start(env, SessionTimer::T3592, env.config.t3592);
        State::AwaitingReleaseComplete(self)
    }

    /// The UE repeats its request for the release, or sends it while the network releases the session: the SMF sends the command again.
    pub(in crate::smf) fn on_release_request(
        self,
        session: &SmContext,
        env: &mut Env<'_>,
        reply: PendingReply,
        pti: u8,
    ) -> State {
        let next = Self { pti, cause: GsmCause::RegularDeactivation, ..self };
        answer_n1(reply, next.command(session), env.out);
        State::AwaitingReleaseComplete(next)
    }

    /// The UE has released the session (TS 24.501 6.3.3.3).
    pub(in crate::smf) fn on_release_complete(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        session.log(env, Level::Debug, || "released".to_owned());
        end_and_notify_amf(Held::default(), session, env)
    }

    /// T3592 expired: retransmits the command, or ends the session (TS 24.501 6.3.3.5 a).
    pub(in crate::smf) fn on_t3592(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        if self.retransmissions >= env.config.retransmissions {
            return end_and_notify_amf(Held::default(), session, env);
        }
        self.send_command(session, env, None);
        session.start(env, SessionTimer::T3592, env.config.t3592);
        State::AwaitingReleaseComplete(Self { retransmissions: self.retransmissions + 1, ..self })
    }

    /// The SMF was restarted. The UE may have released the session, or did not get the command.
    pub(in crate::smf) fn resume(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        self.send_command(session, env, None);
        self.begin(session, env)
    }

    /// Sends the command by the AMF.
    fn send_command(&self, session: &mut SmContext, env: &mut Env<'_>, n2: Option<(NgapIeType, Vec<u8>)>) {
        let mut transfer = consumer::transfer(session, Some(self.command(session)), n2);
        if self.skips_idle() {
            transfer.body.skip_ind = Some(true);
            // Its answer says that the UE is in CM-IDLE.
            consumer::call_amf(session, env, transfer);
        } else {
            consumer::notify_amf(session, env, transfer);
        }
    }

    /// Whether the UE is not paged for the command: it learns the release from the PDU session status (TS 23.502 4.3.4.2 step 3b).
    fn skips_idle(&self) -> bool {
        self.cause == GsmCause::OutOfLadnServiceArea
    }

    /// The AMF has answered a command for which the UE is not paged. One that it refuses for a registration or handover is sent again after
    /// the guard time.
    pub(in crate::smf) fn on_answer(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        reply: &Reply,
    ) -> State {
        let not_transferred = N1N2MessageTransferCause::N1MsgNotTransferred;
        let is_idle = match reply {
            Ok(Response::N1N2MessageTransferInitiated(answer)) => answer.cause == not_transferred,
            Ok(_) => false,
            Err(problem) => problem.is(&Cause::UeInCmIdleState),
        };
        if is_idle && self.skips_idle() {
            return end_and_notify_amf(Held::default(), session, env);
        }
        let causes = [Cause::TemporaryRejectHandoverOngoing, Cause::TemporaryRejectRegistrationOngoing];
        let problem = reply.as_ref().err();
        let is_refused = problem.is_some_and(|problem| causes.iter().any(|cause| problem.is(cause)));
        if is_refused && self.skips_idle() {
            session.start(env, SessionTimer::T3592, env.config.guard.min(env.config.t3592));
        }
        State::AwaitingReleaseComplete(self)
    }

    fn command(&self, session: &SmContext) -> Vec<u8> {
        n1::release_command(session.pdu_session_id, self.pti, self.cause)
    }
}

impl Abandoned {
    /// The UPF established a session that has ended meanwhile: the SMF deletes it.
    pub(in crate::smf) fn on_response(self, env: &mut Env<'_>, result: Result<Message, N4Error>) -> State {
        if let Ok(Message::SessionEstablishmentResponse(response)) = result
            && let Some(seid) = response.up_f_seid
        {
            env.notify_upf(self.upf, Seid(seid.seid), crate::smf::n4::deletion());
        }
        State::Over
    }
}

/// A UPF has established a session that is being released: the request was sent before.
pub(super) fn delete_established(state: &State, env: &mut Env<'_>, result: &Result<Message, N4Error>) {
    let (State::AwaitingReleaseComplete(_), Ok(Message::SessionEstablishmentResponse(response))) =
        (state, result)
    else {
        return;
    };
    let Some(seid) = response.up_f_seid else { return };
    let addresses = seid.ipv4.map(Into::into).into_iter().chain(seid.ipv6.map(Into::into));
    if let Some(upf) = addresses.into_iter().find_map(|address| env.upfs.at_address(address)) {
        env.notify_upf(upf, Seid(seid.seid), crate::smf::n4::deletion());
    }
}

/// What a state holds, and what must therefore be released or answered when its session ends.
#[derive(Debug, Default)]
pub(in crate::smf) struct Held {
    /// Sessions at UPFs: the anchor's, the front UPF's.
    pub at_upfs: [Option<UpfSession>; 2],
    /// The same, of a session that was read from its document: they are there if another SMF of the set had it.
    pub of_set: [Option<UpfSession>; 2],
    /// A request of the AMF that is not answered yet.
    pub reply: Option<PendingReply>,
    /// A UPF that has not answered a Session Establishment Request, and the request.
    pub establishing: Option<(UpfHandle, CallId)>,
}

impl From<UserPlane> for Held {
    fn from(UserPlane { anchor, front, .. }: UserPlane) -> Self {
        Self { at_upfs: [Some(anchor), front.map(|front| front.session)], ..Self::default() }
    }
}

impl Held {
    /// Without the session at this UPF, which is lost.
    pub(in crate::smf) fn without(mut self, upf: UpfHandle) -> Self {
        let without = |at: Option<UpfSession>| at.filter(|session| session.upf != upf);
        (self.at_upfs, self.of_set) = (self.at_upfs.map(without), self.of_set.map(without));
        self
    }

    /// Deletes the session at its UPFs, without waiting for the answers.
    fn delete_at_upfs(&mut self, session: &mut SmContext, env: &mut Env<'_>) {
        for at in self.at_upfs.iter_mut().chain([&mut session.draining]) {
            if let Some(at) = at.take() {
                session.leaving.push(at);
                env.delete_at_upf(at);
            }
        }
        for at in self.of_set.iter_mut().filter_map(Option::take) {
            if env.delete_taken_over(at) {
                session.leaving.push(at);
            }
        }
    }
}

/// Ends a session that cannot continue without a change that the UPF did not accept.
pub(in crate::smf) fn end_refused(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    refused: &str,
    why: impl std::fmt::Display,
) -> State {
    session.log(env, Level::Warn, || format!("{refused}, the session ends: {why}"));
    let has_tunnel = user_plane.gnb.is_some();
    end_unserved(user_plane.into(), has_tunnel, session, env)
}

/// Ends a session whose SM context the AMF still has, and notifies the AMF (TS 23.502 4.3.2.2.1 step 18; TS 29.502 5.2.2.5).
pub(in crate::smf) fn end_and_notify_amf(held: Held, session: &mut SmContext, env: &mut Env<'_>) -> State {
    consumer::notify_released(session, env);
    end(held, session, env)
}

/// The AMF ends a session, in any state (TS 29.502 5.2.2.4).
pub(in crate::smf) fn end_state(state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    end(state.into_held(), session, env)
}

/// Another SM context has the UE's session with that identity: an AMF that did not know this one has let the UE establish it again. Its registration
/// in the UDM is the other context's.
pub(in crate::smf) fn end_duplicate(state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    session.is_registered = false;
    end_and_notify_amf(state.into_held(), session, env)
}

/// Ends a session without messages to UE, gNB and AMF: deletes the sessions at the UPFs, the policy association and the UDM
/// registration, and releases the address.
pub(in crate::smf) fn end(mut held: Held, session: &mut SmContext, env: &mut Env<'_>) -> State {
    for timer in SessionTimer::ALL {
        session.stop(env, timer);
    }
    (session.modification, session.subscription_change, session.accept) = (None, None, None);
    let address = std::mem::take(&mut session.address);
    held.delete_at_upfs(session, env);
    // The policy association, the registration in the UDM and sessions at UPFs, which are to be deleted.
    session.document_at_end = if env.stores_sessions { pack(session, env.upfs, SECTIONS).ok() } else { None };
    if let Some(policy) = session.policy.take() {
        consumer::delete_policy(&policy, env.out);
    }
    consumer::deregister(session, env);
    let pending = std::mem::take(&mut session.pending);
    for reply in pending.updates.into_iter().map(|(reply, _)| reply).chain(held.reply) {
        reply.refuse(Problem::context_not_found(), env.out);
    }
    for address in address.iter() {
        env.pools.release(address);
    }
    env.index.free(session);
    match held.establishing {
        Some((upf, call)) => State::Abandoned(Abandoned { upf, call }),
        None => State::Over,
    }
}
