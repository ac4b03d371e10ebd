//! PDU session release (TS 23.502 4.3.4.2; TS 29.502 5.2.2.4; TS 24.501 6.3.3, 6.4.3).
//!
//! ```text
//!  UE ─> PDU SESSION RELEASE REQUEST    UPF sessions deleted; command and N2 information in the answer to the AMF
//!  UDM, PCF ─> the session ends         UPF sessions deleted; command and N2 information in a transfer
//!        AwaitingReleaseComplete        <─ UE     T3592, the command sent again up to 4 times
//!        Over                           policy and registration end, the AMF is notified
//!  AMF ─> ReleaseSmContext              all of it ends at once
//!        Abandoned                      <─ UPF, if it owes an answer to an establishment
//! ```

use super::{Established, State};
use crate::kit::{Level, N4Error, PendingReply, UpfHandle};
use crate::smf::context::{CallId, SmContext, UpfSession, UserPlane};
use crate::smf::env::Env;
use crate::smf::timers::SessionTimer;
use crate::smf::update::{answer_n1, answer_update};
use crate::smf::{consumer, n1, n2};
use pith_nas::GsmCause;
use pith_pfcp::Message;
use pith_sbi::Problem;
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdatedData};
use pith_types::Seid;

/// The UE was commanded to release the session.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingReleaseComplete {
    /// Of the UE's request; 0 if the network began.
    pti: u8,
    cause: GsmCause,
    /// How often the command was sent again.
    retransmissions: u8,
}

/// A session that has ended, but for a UPF that owes an answer to its establishment: until then the SMF does not know what to
/// delete there.
#[derive(Debug)]
pub(in crate::smf) struct Abandoned {
    /// The UPF that owes the answer.
    pub upf: UpfHandle,
    /// The request.
    pub call: CallId,
}

/// The UE wants its session released (TS 24.501 6.4.3.3).
pub(in crate::smf) fn on_release_request(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    pti: u8,
) -> State {
    let cause = session.pending.release.take().unwrap_or(GsmCause::RegularDeactivation);
    let next = AwaitingReleaseComplete { pti, cause, retransmissions: 0 };
    let mut data = SmContextUpdatedData::default();
    data.n1_sm_msg = Some(next.command(session).into());
    if user_plane.gnb.is_some() {
        data.n2_sm_info = Some(n2::release_command().into());
        data.n2_sm_info_type = Some(N2SmInfoType::PduResRelCmd);
    }
    Remains::from(user_plane).delete_at_upfs(session, env);
    answer_update(reply, data, env.out);
    next.begin(session, env)
}

/// UDM or PCF end a session (TS 29.503 5.3.2.3; TS 29.512 4.2.3.3), which may be established or changed at the moment: it
/// is released as soon as it is established. A release that is under way stays what it is.
pub(in crate::smf) fn withdraw(state: State, session: &mut SmContext, cause: GsmCause) -> State {
    if !matches!(state, State::AwaitingReleaseComplete(_)) {
        session.pending.release = Some(cause);
    }
    state
}

/// A session that was withdrawn is released: the SMF commands UE and gNB (TS 24.501 6.3.3.2).
pub(in crate::smf) fn resume(established: Established, session: &mut SmContext, env: &mut Env<'_>) -> State {
    let Some(cause) = session.pending.release.take() else { return established.into() };
    let Established { user_plane } = established;
    let next = AwaitingReleaseComplete { pti: 0, cause, retransmissions: 0 };
    let n2 = user_plane.gnb.map(|_| (NgapIeType::PduResRelCmd, n2::release_command()));
    Remains::from(user_plane).delete_at_upfs(session, env);
    let transfer = consumer::transfer(session, Some(next.command(session)), n2);
    consumer::notify_amf(session, env, transfer);
    next.begin(session, env)
}

impl AwaitingReleaseComplete {
    /// A release ends the procedures before it.
    fn begin(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        session.modification = None;
        session.stop(env, SessionTimer::Guard);
        session.stop(env, SessionTimer::T3591);
        session.start(env, SessionTimer::T3592, env.config.t3592);
        State::AwaitingReleaseComplete(self)
    }

    /// The UE asks again: the SMF repeats the command.
    pub(in crate::smf) fn on_release_request(
        self,
        session: &SmContext,
        env: &mut Env<'_>,
        reply: PendingReply,
        pti: u8,
    ) -> State {
        let next = Self { pti, ..self };
        answer_n1(reply, next.command(session), env.out);
        State::AwaitingReleaseComplete(next)
    }

    /// The UE has released (TS 24.501 6.3.3.3).
    pub(in crate::smf) fn on_release_complete(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        session.log(env, Level::Debug, || "released".to_owned());
        end_and_notify_amf(Remains::default(), session, env)
    }

    /// T3592 ran out: the command again, or the end (TS 24.501 6.3.3.5 a).
    pub(in crate::smf) fn on_t3592(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        if self.retransmissions >= env.config.retransmissions {
            return end_and_notify_amf(Remains::default(), session, env);
        }
        let transfer = consumer::transfer(session, Some(self.command(session)), None);
        consumer::notify_amf(session, env, transfer);
        session.start(env, SessionTimer::T3592, env.config.t3592);
        State::AwaitingReleaseComplete(Self { retransmissions: self.retransmissions + 1, ..self })
    }

    fn command(&self, session: &SmContext) -> Vec<u8> {
        n1::release_command(session.pdu_session_id, self.pti, self.cause)
    }
}

impl Abandoned {
    /// The UPF established a session that has ended: the SMF deletes it at once.
    pub(in crate::smf) fn on_response(self, env: &mut Env<'_>, result: Result<Message, N4Error>) -> State {
        if let Ok(Message::SessionEstablishmentResponse(response)) = result
            && let Some(seid) = response.up_f_seid
        {
            env.notify_upf(self.upf, Seid(seid.seid), crate::smf::n4::deletion());
        }
        State::Over
    }
}

/// What a state leaves behind when its session ends.
#[derive(Debug, Default)]
pub(in crate::smf) struct Remains {
    /// Sessions at UPFs: the anchor's, the front UPF's.
    pub at_upfs: [Option<UpfSession>; 2],
    /// The AMF waits for an answer.
    pub reply: Option<PendingReply>,
    /// A UPF owes an answer to an establishment.
    pub establishing: Option<(UpfHandle, CallId)>,
}

impl From<UserPlane> for Remains {
    fn from(UserPlane { anchor, front, .. }: UserPlane) -> Self {
        Self { at_upfs: [Some(anchor), front.map(|front| front.session)], ..Self::default() }
    }
}

impl Remains {
    /// A UPF is lost: nothing is left to delete there.
    pub(in crate::smf) fn without(mut self, upf: UpfHandle) -> Self {
        self.at_upfs = self.at_upfs.map(|at| at.filter(|session| session.upf != upf));
        self
    }

    /// Deletes the session at its UPFs, without waiting for the answers.
    fn delete_at_upfs(&mut self, session: &mut SmContext, env: &mut Env<'_>) {
        for at in self.at_upfs.iter_mut().chain([&mut session.draining]) {
            if let Some(at) = at.take() {
                env.delete_at_upf(at);
            }
        }
    }
}

/// Ends a session of which the AMF knows nothing yet, or no more (TS 23.502 4.3.2.2.1 step 18; TS 29.502 5.2.2.5).
pub(in crate::smf) fn end_and_notify_amf(
    remains: Remains,
    session: &mut SmContext,
    env: &mut Env<'_>,
) -> State {
    consumer::notify_released(session, env);
    end(remains, session, env)
}

/// The AMF ends a session, in whatever state (TS 29.502 5.2.2.4).
pub(in crate::smf) fn end_state(state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    end(state.dismantle(), session, env)
}

/// Ends a session everywhere but at UE, gNB and AMF: UPFs, policy, registration, address.
pub(in crate::smf) fn end(mut remains: Remains, session: &mut SmContext, env: &mut Env<'_>) -> State {
    for timer in SessionTimer::ALL {
        session.stop(env, timer);
    }
    session.modification = None;
    remains.delete_at_upfs(session, env);
    if let Some(policy) = session.policy.take() {
        consumer::delete_policy(&policy, env.out);
    }
    consumer::deregister(session, env);
    let pending = std::mem::take(&mut session.pending);
    for reply in pending.updates.into_iter().map(|(reply, _)| reply).chain(remains.reply) {
        reply.refuse(Problem::context_not_found(), env.out);
    }
    if let Some(address) = session.address.take() {
        env.pools.give_back(address);
    }
    env.index.free(session);
    match remains.establishing {
        Some((upf, call)) => State::Abandoned(Abandoned { upf, call }),
        None => State::Over,
    }
}
