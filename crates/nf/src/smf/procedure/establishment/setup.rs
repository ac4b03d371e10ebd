//! The SMF sends the accept to the UE and the setup request to the gNB (TS 23.502 4.3.2.2.1 steps 11 to 15; TS 24.501 6.4.1.3).
//!
//! A gNB that hands the UE over refuses, and the UE does not get the accept: the SMF sends both again (TS 23.502 4.9.1.2.1, 4.9.1.3.1). An AMF in a
//! handover holds them, or refuses them for some time (TS 29.518 5.2.2.3.1).
//!
//! If a UPF restarts meanwhile, the establishment continues when the session is restored ([`resume`]).

use super::{UeRequest, fail};
use crate::kit::document::{Pack, Reader, UnpackError, Writer, pack_struct};
use crate::kit::{Level, PendingReply};
use crate::smf::context::{CallId, SmContext, UserPlane};
use crate::smf::env::Env;
use crate::smf::error::EstablishmentError;
use crate::smf::procedure::{Established, State, refused_transfer, release};
use crate::smf::timers::SessionTimer;
use crate::smf::update::acknowledge;
use crate::smf::{consumer, n1, n2};
use pith_sbi::Reply;
use pith_sbi::namf_communication::NgapIeType;

/// How often the SMF sends the accept again because of a handover: T3580 of the UE (16 s) is longer.
const MOST_REPETITIONS: u8 = 8;

/// The SMF has sent the accept to the UE and the setup request to the gNB, and waits for the gNB's tunnel endpoint.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingResourceSetup {
    /// With all UPFs of the session.
    pub user_plane: UserPlane,
    /// The transfer.
    pub call: CallId,
    /// `None` in a document of an earlier version.
    pub accept: Option<Accept>,
}

/// PDU SESSION ESTABLISHMENT ACCEPT, which the UE may not have got.
#[derive(Debug, Clone, Copy)]
pub(in crate::smf) struct Accept {
    request: UeRequest,
    /// How often it was sent again because of a handover.
    repetitions: u8,
    /// Whether the gNB, or the AMF, has refused it because of a handover: it is sent again when the guard timer expires.
    is_refused: bool,
}

pack_struct!(Accept { request, repetitions, is_refused });

/// Without the accept, which is in a section of its own.
impl Pack for AwaitingResourceSetup {
    fn pack(&self, writer: &mut Writer<'_>) {
        let Self { user_plane, call, accept: _ } = self;
        user_plane.pack(writer);
        call.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let (user_plane, call) = Pack::unpack(reader)?;
        Ok(Self { user_plane, call, accept: None })
    }
}

impl Accept {
    /// Whether the gNB may have got the messages, and set the session up.
    pub(in crate::smf) const fn may_be_delivered(self) -> bool {
        !self.is_refused
    }
}

/// A session that was restored continues with its establishment. The messages are sent again if they were refused; else UE and gNB have got them, and
/// UEs refuse a second accept (TS 24.501 7.3.1).
pub(in crate::smf) fn resume(state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    let State::Established(Established { user_plane }) = state else { return state };
    let Some(accept) = session.accept.take() else { return State::established(user_plane) };
    let wait = if accept.is_refused { refused_transfer::REPETITION } else { env.config.guard };
    session.start(env, SessionTimer::Guard, wait);
    let call = session.unanswered_call();
    State::AwaitingResourceSetup(AwaitingResourceSetup { user_plane, call, accept: Some(accept) })
}

/// The AMF has refused the messages for some time while the session is being restored.
pub(in crate::smf) fn note_refused(session: &mut SmContext) {
    if let Some(accept) = &mut session.accept {
        accept.is_refused = true;
    }
}

impl AwaitingResourceSetup {
    /// Namf_Communication_N1N2MessageTransfer with Accept and N2 SM information (step 11).
    pub(super) fn begin(
        session: &mut SmContext,
        env: &mut Env<'_>,
        request: UeRequest,
        user_plane: UserPlane,
    ) -> State {
        let accept = Accept { request, repetitions: 0, is_refused: false };
        Self::send(session, env, accept, user_plane)
    }

    fn send(session: &mut SmContext, env: &mut Env<'_>, accept: Accept, mut user_plane: UserPlane) -> State {
        user_plane.note_uplink_sent_to_gnb();
        let n1 = n1::establishment_accept(session, accept.request, env.network(session));
        let setup = n2::setup_request(session, &user_plane);
        let transfer = consumer::transfer(session, Some(n1), Some((NgapIeType::PduResSetupReq, setup)));
        let transfer = consumer::with_failure_notification(session, env, transfer);
        let call = consumer::call_amf(session, env, transfer);
        State::AwaitingResourceSetup(Self { user_plane, call, accept: Some(accept) })
    }

    /// Handles the AMF's answer: it delivers the messages, or refuses (step 12; TS 29.518 5.2.2.3.1).
    pub(in crate::smf) fn on_reply(self, session: &mut SmContext, env: &mut Env<'_>, reply: Reply) -> State {
        let Err(problem) = reply else { return State::AwaitingResourceSetup(self) };
        if refused_transfer::is_temporary(&problem) {
            return self.on_handover(session, env);
        }
        session.log(env, Level::Warn, || format!("the AMF can't reach the UE: {problem}"));
        release::end_and_notify_amf(self.user_plane.into(), session, env)
    }

    /// The gNB, or the AMF, refuses because the UE is handed over: the messages are sent again, until that was refused too often.
    pub(in crate::smf) fn on_handover(mut self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        if self.accept.is_none_or(|accept| accept.repetitions >= MOST_REPETITIONS) {
            return self.on_refusal(session, env);
        }
        self.note_refused(session, env);
        State::AwaitingResourceSetup(self)
    }

    /// The messages are sent again soon.
    pub(in crate::smf) fn note_refused(&mut self, session: &mut SmContext, env: &mut Env<'_>) {
        let Some(accept) = &mut self.accept else { return };
        accept.is_refused = true;
        session.log(env, Level::Info, || {
            "the UE is handed over, or registers: it gets the accept later".to_owned()
        });
        session.start(env, SessionTimer::Guard, refused_transfer::REPETITION);
    }

    /// The guard timer expires: the messages are sent again, or the gNB did not answer in time.
    pub(in crate::smf) fn on_guard(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        let Self { user_plane, accept: Some(accept @ Accept { is_refused: true, .. }), .. } = self else {
            return self.on_silence(session, env);
        };
        let repetitions = accept.repetitions.saturating_add(1);
        session.start(env, SessionTimer::Guard, env.config.guard);
        Self::send(session, env, Accept { repetitions, is_refused: false, ..accept }, user_plane)
    }

    /// The user plane is deactivated. A UE that has not got the accept does not have the session.
    pub(in crate::smf) fn ends_without_accept(&self) -> bool {
        self.accept.is_some_and(|accept| accept.is_refused)
    }

    /// As [`Self::on_failure`], by an update.
    pub(in crate::smf) fn on_deactivated(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        reply: PendingReply,
    ) -> State {
        acknowledge(reply, env.out);
        self.on_failure(session, env)
    }

    /// The gNB has no resources for the session. It delivers the accept with these (TS 38.413 8.2.1.2): the UE gets the reject (TS 23.502 4.3.2.2.1;
    /// TS 24.501 6.4.1.4).
    pub(in crate::smf) fn on_refusal(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        match self.accept {
            Some(Accept { request, .. }) => {
                fail(session, env, request, self.user_plane.into(), &EstablishmentError::Radio)
            }
            None => self.on_silence(session, env),
        }
    }

    /// The gNB has not answered in time, or not properly: the UE may have got the accept, and the gNB has nothing of which AMF and SMF know.
    pub(in crate::smf) fn on_silence(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        session.log(env, Level::Warn, || "the gNB does not answer the setup, the session ends".to_owned());
        release::end_at_ue(self.user_plane.into(), session, env)
    }

    /// The messages reached neither UE nor gNB, and no other would: the session ends.
    pub(in crate::smf) fn on_failure(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        release::end_and_notify_amf(self.user_plane.into(), session, env)
    }
}
