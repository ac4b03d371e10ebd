//! Path switch of a session after a handover: the UPF sends downlink packets to the target gNB, and an End Marker into the
//! tunnel to the source gNB (TS 23.502 4.9.1.2.2, 4.9.1.3.3; TS 23.501 5.8.2.9; TS 29.502 5.2.2.3.3, 5.2.2.3.4).
//!
//! ```text
//!  AMF ─> PATH_SWITCH_REQ, or hoState COMPLETED     the target gNB's tunnel endpoint
//!         AwaitingPathSwitch                        <─ UPF; then the SMF answers the AMF
//! ```

use super::restoration::{self, Absence};
use super::{
    AwaitingResourceSetup, Established, State, branching, forwarding, handover, modification, release,
    user_plane,
};
use crate::kit::document::{pack_enum, pack_struct};
use crate::kit::{Level, N4Error, PendingReply};
use crate::smf::context::{CallId, DEFAULT_QFI, GnbRequests, SmContext, UserPlane};
use crate::smf::env::Env;
use crate::smf::n4::EndMarker;
use crate::smf::timers::SessionTimer;
use crate::smf::update::{answer_update, refuse_transfer};
use crate::smf::{n2, n4, tunnels};
use bytes::Bytes;
use pith_ngap::transfer::{FlowTunnel, PathSwitchRequestTransfer, Tunnel};
use pith_pfcp::Message;
use pith_sbi::nsmf_pdusession::{HoState, N2SmInfoType, SmContextUpdateData, SmContextUpdatedData};
use pith_sbi::{Cause, Problem};

/// The target gNB's endpoint was sent to the UPF. The AMF's request is not answered yet.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingPathSwitch {
    /// With the target gNB's endpoint.
    pub user_plane: UserPlane,
    kind: Handover,
    reply: PendingReply,
    /// The request.
    pub call: CallId,
}

/// How the UE moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handover {
    /// By the gNBs, over Xn.
    Xn,
    /// Through the AMF.
    N2,
}

pack_enum!(Handover { 0 => Xn, 1 => N2 });
pack_struct!(AwaitingPathSwitch { user_plane, kind, reply, call });

/// PATH_SWITCH_REQ: the target gNB's endpoint (TS 29.502 5.2.2.3.3.2).
pub(in crate::smf) fn on_request(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    info: &Bytes,
) -> State {
    let kind = N2SmInfoType::PathSwitchReq;
    let target = match PathSwitchRequestTransfer::decode(info) {
        Ok(transfer) => {
            let flows = modification::accepted(&transfer.flows, &transfer.additional);
            let target = Target { primary: transfer.downlink, additional: transfer.additional };
            let accepts_default = flows.contains(&DEFAULT_QFI);
            accepts_default
                .then_some((target, flows))
                .ok_or_else(|| "the target gNB did not accept the default QoS flow".to_owned())
        }
        Err(error) => Err(error.to_string()),
    };
    match (state, target) {
        // In AwaitingResourceSetup the source gNB's answer was overtaken.
        (
            State::Established(Established { user_plane })
            | State::AwaitingResourceSetup(AwaitingResourceSetup { user_plane, .. }),
            Ok((target, flows)),
        ) => {
            // Flows that the target gNB does not accept are removed (TS 23.502 4.9.1.2.2).
            modification::ignore_unknown(session, env, &flows);
            session.flows.at_target = flows.iter().fold(0, |bits, qfi| bits | 1 << (qfi & 63));
            let failed = session.flows.note_at_target(|qfi| flows.contains(&qfi));
            modification::fail_rules(session, env, failed, "the target gNB does not accept their flows");
            begin(user_plane, session, env, reply, (target, Handover::Xn))
        }
        (state, Ok(_)) => {
            let problem = Problem::new(Cause::UnprocessableRequest).detail(state.phase().name());
            refuse_transfer(reply, &kind, problem, env.out);
            state
        }
        (state, Err(why)) => {
            refuse_transfer(reply, &kind, Problem::new(Cause::N2SmError).detail(why), env.out);
            state
        }
    }
}

/// The tunnels after a handover.
pub(super) struct Target {
    /// The target gNB's endpoint.
    pub primary: Tunnel,
    /// Those of flows that secondary gNBs take. A tunnel that is left out ends (TS 38.413 8.4.4.2).
    pub additional: Vec<FlowTunnel>,
}

/// Requests the UPF to send downlink packets to the target gNB. A repeated request sends no second End Marker: the tunnel
/// to the source gNB is no longer known. The target of an N2 handover stays known, as the AMF repeats a request without answer.
pub(super) fn begin(
    mut user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    (target, kind): (Target, Handover),
) -> State {
    // The source gNB answers nothing any longer.
    session.gnb = match kind {
        Handover::N2 => session.gnb.at_target(),
        Handover::Xn => {
            session.forget_target();
            GnbRequests::default()
        }
    };
    if session.modification.is_none() {
        session.stop(env, SessionTimer::Guard);
    }
    let n3_session = user_plane.n3_session();
    let source = user_plane.gnb.replace(target.primary);
    let additional = tunnels::usable(&target.additional, &user_plane);
    let wanted = tunnels::of_setup(&session.flows(), target.primary, additional);
    let message = match tunnels::reroute((source, &session.tunnels), &wanted) {
        Some(change) => {
            user_plane.gnb = Some(change.primary);
            session.tunnels.clone_from(&change.tunnels);
            n4::rerouted(session, &change)
        }
        None => n4::activation(target.primary, EndMarker::Omit),
    };
    let call = session.ask_upf(env, n3_session.upf, n3_session.seid, message);
    State::AwaitingPathSwitch(AwaitingPathSwitch { user_plane, kind, reply, call })
}

impl AwaitingPathSwitch {
    /// Handles the UPF's response. A classifier that refuses is removed from the path, and the anchor gets the rules.
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        let Self { mut user_plane, kind, reply, .. } = self;
        let absence = Absence::of(&result);
        match n4::modified(result) {
            Err(why) if user_plane.has_removable_front() => {
                session.log(env, Level::Warn, || format!("the classifier is removed: {why}"));
                branching::drain_front(&mut user_plane, session, env);
                match user_plane.gnb {
                    // With a front UPF it is the only tunnel.
                    Some(primary) => {
                        let target = Target { primary, additional: Vec::new() };
                        begin(user_plane, session, env, reply, (target, kind))
                    }
                    None => State::established(user_plane),
                }
            }
            Err(why) if absence.is_none() => {
                let problem = Problem::new(Cause::InsufficientResources).detail(why);
                refuse_transfer(reply, &N2SmInfoType::PathSwitchReq, problem, env.out);
                let has_tunnel = user_plane.gnb.is_some();
                release::end_unserved(user_plane.into(), has_tunnel, session, env)
            }
            // A UPF that is away gets the session with these rules.
            _ => {
                session.log(env, Level::Debug, || format!("path switched ({kind:?} handover)"));
                let handover_uplink = session.handover_uplink.take();
                match kind {
                    Handover::N2 => {
                        user_plane.gnb_uplink = handover_uplink;
                        session.handover_additional.clear();
                        forwarding::drain(session, env);
                        answer_repeated(session, env);
                    }
                    // A tunnel of a handover before leads to a gNB that the UE has left since.
                    Handover::Xn => forwarding::end(session, env),
                }
                answer(&mut user_plane, session, env, reply, kind);
                release_stale(session, env, kind);
                match absence {
                    Some(absence) => {
                        let upf = user_plane.n3_session().upf;
                        restoration::after_absence(user_plane, session, env, (upf, absence))
                    }
                    None => State::established(user_plane),
                }
            }
        }
    }

    /// What must be released and answered: the sessions at the UPFs, and the AMF's request.
    pub(in crate::smf) fn into_held(self) -> release::Held {
        release::Held { reply: Some(self.reply), ..self.user_plane.into() }
    }
}

/// The target gNB releases flows that the session has lost during the handover, such as those that the source gNB has released (TS 38.413 8.2.4):
/// unless the AMF has queued that request for it.
fn release_stale(session: &mut SmContext, env: &mut Env<'_>, kind: Handover) {
    let is_requested = kind == Handover::N2 && session.gnb.modifications > 0;
    let stale = session.flows.take_stale(is_requested);
    if !stale.is_empty() {
        user_plane::modify_at_gnb(session, env, &stale);
    }
}

/// The AMF has not waited for the UPF's response, and has repeated COMPLETED.
fn answer_repeated(session: &mut SmContext, env: &mut Env<'_>) {
    let is_completed = |data: &SmContextUpdateData| data.ho_state == Some(HoState::Completed);
    let repeated = session.pending.updates.extract_if(.., |(_, data)| is_completed(data));
    for (reply, _) in repeated {
        handover::answer_completed(reply, env);
    }
}

/// Answers the AMF: after an Xn handover with the transfer for the target gNB, which has the UPF's endpoint if the source gNB
/// had another one (TS 38.413 9.3.4.9).
fn answer(
    user_plane: &mut UserPlane,
    session: &SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    kind: Handover,
) {
    let mut data = SmContextUpdatedData::default();
    match kind {
        Handover::Xn => {
            let uplink = user_plane.n3_session().tunnel;
            let changed = (user_plane.gnb_uplink != Some(uplink)).then_some(uplink);
            user_plane.note_uplink_sent_to_gnb();
            data.n2_sm_info = Some(n2::path_switch_acknowledge(session, user_plane, changed).into());
            data.n2_sm_info_type = Some(N2SmInfoType::PathSwitchReqAck);
        }
        Handover::N2 => data.ho_state = Some(HoState::Completed),
    }
    answer_update(reply, data, env.out);
}
