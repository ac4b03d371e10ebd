//! The path of an established session's packets is switched: to the classifier downlink first, to the anchor uplink first
//! (TS 23.502 4.3.5.4 steps 4 to 6, 4.3.5.5; TS 23.501 5.8.2.9; TS 29.244 7.5.4). The ladder is that of [`super::branching`].

use super::branching::drain_front;
use super::{Established, State, release};
use crate::kit::{Level, N4Error, PendingReply};
use crate::smf::context::{CallId, SmContext, UserPlane};
use crate::smf::env::Env;
use crate::smf::n4::Leaving;
use crate::smf::timers::SessionTimer;
use crate::smf::update::acknowledge;
use crate::smf::{consumer, n2, n4};
use pith_ngap::transfer::Tunnel;
use pith_pfcp::Message;
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdateData, UpCnxState};
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

/// Why uplink packets are not switched.
enum Refusal<'a> {
    /// The AMF refuses.
    Problem(&'a Problem),
    /// The gNB refuses.
    Gnb,
    /// The gNB does not answer.
    Silence,
}

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problem(problem) => write!(f, "{problem}"),
            Self::Gnb => f.write_str("the gNB refuses"),
            Self::Silence => f.write_str("the gNB does not answer"),
        }
    }
}

/// The SMF has given the gNB the new destination of uplink packets.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingUplinkSwitch {
    /// With the classifier.
    pub user_plane: UserPlane,
    towards: Towards,
    /// The transfer.
    pub call: CallId,
}

/// The SMF has given the anchor the new destination of downlink packets.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingDownlinkSwitch {
    /// With the classifier, unless that was lost meanwhile.
    pub user_plane: UserPlane,
    towards: Towards,
    /// The request.
    pub call: CallId,
}

/// While the UE is connected, a classifier that ends is removed, and a gNB that was given another tunnel than the one in
/// force is given that.
pub(in crate::smf) fn resume(established: Established, session: &mut SmContext, env: &mut Env<'_>) -> State {
    let Established { mut user_plane } = established;
    let Some(gnb) = user_plane.gnb else { return State::established(user_plane) };
    if user_plane.front.as_ref().is_some_and(|front| front.is_ending) {
        return switch_uplink(user_plane, session, env, gnb, Towards::Anchor);
    }
    let uplink = user_plane.at_n3().tunnel;
    if user_plane.gnb_uplink == Some(uplink) {
        return State::established(user_plane);
    }
    if user_plane.front.is_some() {
        return switch_uplink(user_plane, session, env, gnb, Towards::Classifier);
    }
    let modify = n2::modify_request(uplink, gnb);
    let transfer = consumer::transfer_to_gnb(session, NgapIeType::PduResModReq, modify);
    consumer::notify_amf(session, env, transfer);
    user_plane.give_uplink_to_gnb();
    State::established(user_plane)
}

/// PDU SESSION RESOURCE MODIFY REQUEST by the AMF: where uplink packets go (TS 23.502 4.3.5.4 step 6). An idle UE is not
/// paged for it.
fn switch_uplink(
    mut user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    gnb: Tunnel,
    towards: Towards,
) -> State {
    let uplink = match towards {
        Towards::Classifier => user_plane.at_n3().tunnel,
        Towards::Anchor => user_plane.anchor.tunnel,
    };
    user_plane.gnb_uplink = Some(uplink);
    let modify = n2::modify_request(uplink, gnb);
    let transfer = consumer::transfer_to_gnb(session, NgapIeType::PduResModReq, modify);
    session.start(env, SessionTimer::Guard, env.config.guard);
    let call = consumer::call_amf(session, env, transfer);
    State::AwaitingUplinkSwitch(AwaitingUplinkSwitch { user_plane, towards, call })
}

/// Tells the anchor where downlink packets go (TS 23.502 4.3.5.4 step 4, 4.3.5.5).
pub(in crate::smf) fn switch_downlink(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    towards: Towards,
) -> State {
    let leaving = if user_plane.gnb.is_some() { Leaving::WithEndMarker } else { Leaving::Silently };
    let to = match (towards, &user_plane.front) {
        (Towards::Classifier, Some(front)) => Some(front.n9),
        (Towards::Classifier, None) | (Towards::Anchor, _) => user_plane.gnb,
    };
    let message = to.map_or_else(n4::deactivation, |to| n4::activation(to, leaving));
    let anchor = user_plane.anchor;
    let call = session.ask_upf(env, anchor.upf, anchor.seid, message);
    State::AwaitingDownlinkSwitch(AwaitingDownlinkSwitch { user_plane, towards, call })
}

/// The switch is complete.
fn switched(user_plane: UserPlane, session: &SmContext, env: &mut Env<'_>, towards: Towards) -> State {
    session.log(env, Level::Info, || format!("packets go by the {towards}"));
    State::established(user_plane)
}

impl AwaitingUplinkSwitch {
    /// What the AMF says to it: a UE that is idle meanwhile has no gNB (TS 29.518 5.2.2.3.1.2).
    pub(in crate::smf) fn on_reply(self, session: &mut SmContext, env: &mut Env<'_>, reply: Reply) -> State {
        match reply {
            Ok(_) => State::AwaitingUplinkSwitch(self),
            Err(problem) if problem.cause() == Some(&Cause::UeInCmIdleState) => self.moved(session, env),
            Err(problem) => self.refused(session, env, Refusal::Problem(&problem)),
        }
    }

    /// The gNB's answer, or that the UE has left its gNB, which owes no answer any more; what else the AMF asks is kept
    /// until then.
    pub(in crate::smf) fn on_update(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        reply: PendingReply,
        data: SmContextUpdateData,
    ) -> State {
        match (&data.n2_sm_info_type, &data.up_cnx_state) {
            (Some(N2SmInfoType::PduResModRsp), _) => {
                acknowledge(reply, env.out);
                self.moved(session, env)
            }
            (Some(N2SmInfoType::PduResModFail), _) => {
                acknowledge(reply, env.out);
                self.refused(session, env, Refusal::Gnb)
            }
            (None, Some(UpCnxState::Deactivated)) => {
                session.keep_update(env, reply, data);
                self.moved(session, env)
            }
            _ => {
                session.keep_update(env, reply, data);
                State::AwaitingUplinkSwitch(self)
            }
        }
    }

    /// The gNB does not answer, though it may have switched: [`resume`] gives it the tunnel in force once more.
    pub(in crate::smf) fn on_guard(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        self.refused(session, env, Refusal::Silence)
    }

    /// The gNB's answer does not matter any more.
    pub(super) fn give_up(self, session: &mut SmContext, env: &mut Env<'_>) -> UserPlane {
        session.stop(env, SessionTimer::Guard);
        self.user_plane
    }

    /// Uplink packets are switched, or will be with the next activation: to the classifier they are the last, to the anchor
    /// the first (TS 23.502 4.3.5.4, 4.3.5.5).
    fn moved(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        session.stop(env, SessionTimer::Guard);
        let Self { user_plane, towards, .. } = self;
        match towards {
            Towards::Classifier => switched(user_plane, session, env, towards),
            Towards::Anchor => switch_downlink(user_plane, session, env, towards),
        }
    }

    /// Uplink packets keep their path: all take the anchor, or all the classifier.
    fn refused(self, session: &mut SmContext, env: &mut Env<'_>, refusal: Refusal<'_>) -> State {
        let Self { mut user_plane, towards, .. } = self;
        session.stop(env, SessionTimer::Guard);
        session.log(env, Level::Warn, || format!("uplink does not move to the {towards}: {refusal}"));
        let kept = match towards {
            Towards::Classifier => user_plane.anchor.tunnel,
            Towards::Anchor => user_plane.at_n3().tunnel,
        };
        user_plane.gnb_uplink = Some(kept).filter(|_| !matches!(refusal, Refusal::Silence));
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
    /// The anchor answered.
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        let Self { mut user_plane, towards, .. } = self;
        if let Err(why) = n4::modified(result) {
            session.log(env, Level::Warn, || format!("the anchor is lost: {why}"));
            return release::end_and_notify_amf(user_plane.into(), session, env);
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
