//! Switches an established session's packets between classifier and anchor: to the classifier the downlink first, to the
//! anchor the uplink first (TS 23.502 4.3.5.4 steps 4 to 6, 4.3.5.5; TS 23.501 5.8.2.9; TS 29.244 7.5.4). [`super::branching`] has the ladder.

use super::branching::drain_front;
use super::restoration::{self, Absence};
use super::{Established, State, flow_mobility, lost_tunnel, refused_transfer, release};
use crate::kit::document::{pack_enum, pack_struct};
use crate::kit::{Level, N4Error, PendingReply};
use crate::smf::context::{CallId, SmContext, UserPlane};
use crate::smf::env::Env;
use crate::smf::n4::EndMarker;
use crate::smf::timers::SessionTimer;
use crate::smf::update::{GnbAnswer, await_gnb};
use crate::smf::{consumer, n2, n4};
use pith_ngap::transfer::Tunnel;
use pith_pfcp::Message;
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::nsmf_pdusession::{HoState, N2SmInfoType, SmContextUpdateData};
use pith_sbi::{Cause, Problem, Reply};
use std::fmt;

/// Which UPF terminates N3 after the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::smf) enum Towards {
    Classifier,
    Anchor,
}

impl fmt::Display for Towards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Classifier => "classifier",
            Self::Anchor => "anchor",
        })
    }
}

/// The reason why uplink packets were not switched.
enum SwitchFailure<'a> {
    /// The AMF refused.
    Problem(&'a Problem),
    /// The gNB refused.
    Gnb,
    /// The gNB did not answer in time.
    NoAnswer,
}

impl fmt::Display for SwitchFailure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problem(problem) => write!(f, "{problem}"),
            Self::Gnb => f.write_str("the gNB refuses"),
            Self::NoAnswer => f.write_str("the gNB does not answer"),
        }
    }
}

/// The new endpoint for uplink packets was sent to the gNB.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingUplinkSwitch {
    /// With the classifier.
    pub user_plane: UserPlane,
    towards: Towards,
    /// The transfer.
    pub call: CallId,
}

/// The new endpoint for downlink packets was sent to the anchor.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingDownlinkSwitch {
    /// With the classifier, unless it was lost meanwhile.
    pub user_plane: UserPlane,
    towards: Towards,
    /// The request.
    pub call: CallId,
}

pack_enum!(Towards { 0 => Classifier, 1 => Anchor });
pack_struct!(AwaitingUplinkSwitch { user_plane, towards, call });
pack_struct!(AwaitingDownlinkSwitch { user_plane, towards, call });

/// Requests in a row to send uplink packets to another endpoint that a gNB may leave unanswered.
const MOST_UNANSWERED: u8 = 3;

/// While the UE is connected: starts the removal of a classifier that is to be removed, and corrects the uplink endpoint of
/// a gNB that may use another one than that in force. A gNB that never answers loses the session's resources, as if it had lost the tunnel.
pub(in crate::smf) fn resume(established: Established, session: &mut SmContext, env: &mut Env<'_>) -> State {
    let Established { user_plane } = established;
    let Some(gnb) = user_plane.gnb else { return State::established(user_plane) };
    if session.handover_uplink.is_some() {
        // The UE is to leave that gNB. The switch follows at the gNB where it is after the handover.
        return State::established(user_plane);
    }
    if user_plane.front.as_ref().is_some_and(|front| front.is_ending) {
        return switch_uplink(user_plane, session, env, gnb, Towards::Anchor);
    }
    let uplink = user_plane.n3_session().tunnel;
    if user_plane.gnb_uplink == Some(uplink) {
        session.unanswered_switches = 0;
        return State::established(user_plane);
    }
    if session.unanswered_switches >= MOST_UNANSWERED {
        session.unanswered_switches = 0;
        session.log(env, Level::Warn, || {
            "the gNB does not say which endpoint it sends uplink packets to: its resources are set up again".to_owned()
        });
        session.pending.lost_tunnel = Some(gnb);
        return lost_tunnel::resume(Established { user_plane }, session, env);
    }
    let towards = if user_plane.front.is_some() { Towards::Classifier } else { Towards::Anchor };
    // The session waits for the gNB's answer, so that after a restart of the SMF the request is sent again.
    switch_uplink(user_plane, session, env, gnb, towards)
}

/// Where uplink packets go after the switch.
fn endpoint(user_plane: &UserPlane, towards: Towards) -> Tunnel {
    match towards {
        Towards::Classifier => user_plane.n3_session().tunnel,
        Towards::Anchor => user_plane.anchor.tunnel,
    }
}

/// Requests the gNB to send uplink packets to another endpoint: PDU SESSION RESOURCE MODIFY REQUEST, sent by the AMF (TS
/// 23.502 4.3.5.4 step 6). An idle UE is not paged for it. A gNB from which the UE is about to leave may not answer (TS 38.413 8.4.1.2), and the
/// AMF refuses the request: the switch follows at the gNB where the UE is after the handover ([`resume`]). So it does if the AMF waits for the switch of
/// the path to another gNB: it would send that one the request afterwards, with the tunnel of the former one.
fn switch_uplink(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    gnb: Tunnel,
    towards: Towards,
) -> State {
    flow_mobility::refuse_pending(session, env);
    let leaves_gnb = |data: &SmContextUpdateData| {
        data.ho_state == Some(HoState::Preparing) || data.n2_sm_info_type == Some(N2SmInfoType::PathSwitchReq)
    };
    if session.pending.updates.iter().any(|(_, data)| leaves_gnb(data)) {
        return State::established(user_plane);
    }
    let uplink = endpoint(&user_plane, towards);
    session.gnb.note_modification();
    let modify = n2::modify_request(uplink, gnb);
    let transfer = consumer::transfer_to_gnb(session, NgapIeType::PduResModReq, modify);
    session.start(env, SessionTimer::Guard, env.config.guard);
    let call = consumer::call_amf(session, env, transfer);
    State::AwaitingUplinkSwitch(AwaitingUplinkSwitch { user_plane, towards, call })
}

/// Requests the anchor to send downlink packets to another endpoint (TS 23.502 4.3.5.4 step 4, 4.3.5.5).
pub(in crate::smf) fn switch_downlink(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    towards: Towards,
) -> State {
    let end_marker = if user_plane.gnb.is_some() { EndMarker::Send } else { EndMarker::Omit };
    let to = match (towards, &user_plane.front) {
        (Towards::Classifier, Some(front)) => Some(front.n9),
        (Towards::Classifier, None) | (Towards::Anchor, _) => user_plane.gnb,
    };
    let message = to.map_or_else(n4::deactivation, |to| n4::activation(to, end_marker));
    let anchor = user_plane.anchor;
    let call = session.ask_upf(env, anchor.upf, anchor.seid, message);
    State::AwaitingDownlinkSwitch(AwaitingDownlinkSwitch { user_plane, towards, call })
}

/// Requests the anchor to send downlink packets to the gNB. It may do so already: no End Marker is sent.
pub(super) fn send_to_gnb(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    gnb: Tunnel,
) -> State {
    let anchor = user_plane.anchor;
    let message = n4::activation(gnb, EndMarker::Omit);
    let call = session.ask_upf(env, anchor.upf, anchor.seid, message);
    State::AwaitingDownlinkSwitch(AwaitingDownlinkSwitch { user_plane, towards: Towards::Anchor, call })
}

/// The session is restored without the classifier that is being removed.
fn leave_front(user_plane: &mut UserPlane) {
    if let Some(front) = user_plane.front.as_mut().filter(|front| !front.is_needed) {
        front.is_ending = true;
    }
}

/// The switch is complete.
fn switched(user_plane: UserPlane, session: &SmContext, env: &mut Env<'_>, towards: Towards) -> State {
    session.log(env, Level::Info, || format!("packets take the {towards}"));
    State::established(user_plane)
}

/// Whether the AMF did not answer: the request did not reach it, or the connection ended before its answer.
pub(super) fn is_unanswered(problem: &Problem) -> bool {
    let unanswered = [Cause::TimedOutRequest, Cause::TargetNfNotReachable, Cause::NetworkFailure];
    unanswered.iter().any(|cause| problem.is(cause))
}

impl AwaitingDownlinkSwitch {
    /// Sends the request again: the response to the former one cannot be matched.
    pub(in crate::smf) fn repeat(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        switch_downlink(self.user_plane, session, env, self.towards)
    }
}

impl AwaitingUplinkSwitch {
    /// Handles the AMF's answer; without one the session waits for the gNB. If the UE is idle, no gNB has to switch (TS 29.518 5.2.2.3.1.2), and none has the tunnel of downlink packets:
    /// unless the AMF's request to deactivate it is pending, an SMF with documents that lag has lost it.
    pub(in crate::smf) fn on_reply(self, session: &mut SmContext, env: &mut Env<'_>, reply: Reply) -> State {
        match reply {
            Ok(_) => State::AwaitingUplinkSwitch(self),
            Err(problem) if problem.cause() == Some(&Cause::UeInCmIdleState) => {
                match self.uplink_switched(session, env) {
                    State::Established(established) if session.pending.updates.is_empty() => {
                        lost_tunnel::deactivate(established, session, env)
                    }
                    next => next,
                }
            }
            // The request to prepare the handover follows.
            Err(problem) if problem.is(&Cause::TemporaryRejectHandoverOngoing) => {
                State::AwaitingUplinkSwitch(self)
            }
            // An AMF that was killed may have sent the request on, and may be back when the guard timer expires.
            Err(problem) if is_unanswered(&problem) => State::AwaitingUplinkSwitch(self),
            Err(problem) => self.uplink_not_switched(session, env, SwitchFailure::Problem(&problem)),
        }
    }

    /// Handles the gNB's answer, or a deactivation: then the gNB no longer serves the UE and will not answer. The preparation of an N2
    /// handover ends the wait, too: a gNB that hands the UE over may not answer before (TS 38.413 8.4.1.2). Indications are refused: the AMF
    /// may wait for the answer before it sends the gNB the request. Other updates are pending until then.
    pub(in crate::smf) fn on_update(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        reply: PendingReply,
        data: SmContextUpdateData,
    ) -> State {
        if data.ho_state == Some(HoState::Preparing) {
            session.queue_update(env, reply, data);
            return State::established(self.abandon(session, env));
        }
        if flow_mobility::is_indication(&data) {
            flow_mobility::refuse_before_switch(reply, env);
            return State::AwaitingUplinkSwitch(self);
        }
        let answers = [N2SmInfoType::PduResModRsp, N2SmInfoType::PduResModFail];
        let info = data.n2_sm_info.as_ref().map_or(&[][..], |info| &info.content);
        let is_handover = refused_transfer::is_handover(data.n2_sm_info_type.as_ref(), info);
        let answer = await_gnb(session, env, reply, data, &answers);
        if matches!(answer, Some(GnbAnswer::N2(_))) {
            session.gnb.take_answer();
        }
        match answer {
            // The path switch, or the request to prepare the handover, follows; or the request again, when the guard timer expires.
            Some(GnbAnswer::N2(N2SmInfoType::PduResModFail)) if is_handover => {
                State::AwaitingUplinkSwitch(self)
            }
            Some(GnbAnswer::N2(N2SmInfoType::PduResModFail)) => {
                self.uplink_not_switched(session, env, SwitchFailure::Gnb)
            }
            Some(_) => self.uplink_switched(session, env),
            None => State::AwaitingUplinkSwitch(self),
        }
    }

    /// The gNB did not answer in time, but may have switched: [`resume`] sends it the endpoint in force again.
    pub(in crate::smf) fn on_guard(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        self.uplink_not_switched(session, env, SwitchFailure::NoAnswer)
    }

    /// Ends the wait for the gNB's answer, which is no longer needed: the gNB may have switched.
    pub(super) fn abandon(self, session: &mut SmContext, env: &mut Env<'_>) -> UserPlane {
        session.stop(env, SessionTimer::Guard);
        UserPlane { gnb_uplink: None, ..self.user_plane }
    }

    /// Uplink packets are switched, or will be with the next activation. Towards the classifier this is the last step; towards
    /// the anchor it is the first, and the downlink follows (TS 23.502 4.3.5.4, 4.3.5.5).
    fn uplink_switched(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        session.stop(env, SessionTimer::Guard);
        let Self { mut user_plane, towards, .. } = self;
        user_plane.gnb_uplink = Some(endpoint(&user_plane, towards));
        match (towards, &user_plane.front) {
            (Towards::Classifier, _) | (Towards::Anchor, None) => switched(user_plane, session, env, towards),
            (Towards::Anchor, Some(_)) => switch_downlink(user_plane, session, env, towards),
        }
    }

    /// Uplink packets keep their path. The downlink follows them: back to the anchor, or it stays at the classifier. If the path that they had
    /// is not there any longer (the classifier was restored with another endpoint), the gNB's resources are set up again: it may have refused
    /// because it has another tunnel, of which an SMF that was killed does not know.
    fn uplink_not_switched(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        failure: SwitchFailure<'_>,
    ) -> State {
        let Self { mut user_plane, towards, .. } = self;
        session.stop(env, SessionTimer::Guard);
        if matches!(failure, SwitchFailure::NoAnswer) {
            session.unanswered_switches = session.unanswered_switches.saturating_add(1);
        }
        session.log(env, Level::Warn, || format!("the uplink is not switched to the {towards}: {failure}"));
        let kept = match towards {
            Towards::Classifier => user_plane.anchor.tunnel,
            Towards::Anchor => user_plane.n3_session().tunnel,
        };
        let is_refused = !matches!(failure, SwitchFailure::NoAnswer);
        if is_refused && user_plane.gnb_uplink != Some(kept) {
            user_plane.gnb_uplink = None;
            session.pending.lost_tunnel = user_plane.gnb;
            return lost_tunnel::resume(Established { user_plane }, session, env);
        }
        user_plane.gnb_uplink.take_if(|_| !is_refused);
        match towards {
            Towards::Classifier => switch_downlink(user_plane, session, env, Towards::Anchor),
            Towards::Anchor => {
                if let Some(front) = &mut user_plane.front {
                    front.is_ending = false;
                }
                State::established(user_plane)
            }
        }
    }
}

impl AwaitingDownlinkSwitch {
    /// Handles the anchor's response.
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        let Self { mut user_plane, towards, .. } = self;
        let absence = Absence::of(&result);
        if let Err(why) = n4::modified(result) {
            if let Some(absence) = absence {
                if towards == Towards::Anchor {
                    leave_front(&mut user_plane);
                }
                let upf = user_plane.anchor.upf;
                return restoration::after_absence(user_plane, session, env, (upf, absence));
            }
            return release::end_refused(
                user_plane,
                session,
                env,
                "the anchor did not accept new rules",
                why,
            );
        }
        match (towards, user_plane.gnb) {
            // The classifier was lost meanwhile.
            (Towards::Classifier, _) if user_plane.front.is_none() => {
                switch_downlink(user_plane, session, env, Towards::Anchor)
            }
            (Towards::Classifier, Some(gnb)) => switch_uplink(user_plane, session, env, gnb, towards),
            (Towards::Classifier, None) => switched(user_plane, session, env, towards),
            (Towards::Anchor, _) => {
                drain_front(&mut user_plane, session, env);
                switched(user_plane, session, env, towards)
            }
        }
    }
}
