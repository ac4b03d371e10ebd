//! The handover of a UE, or the mobility of its QoS flows between gNBs: one state for each wait, which owns the data that are valid while it
//! waits. It runs beside the 5GMM procedure ([`super::procedure`]): a UE has at most one of each.

pub(crate) mod arrival;
pub(crate) mod departure;
pub(crate) mod flow_mobility;
pub(in crate::amf) mod n14;
pub(crate) mod n2_handover;
pub(crate) mod path_switch;

use super::context::{CallId, Env, UeContext};
use super::delivery;
use super::procedure::subscription_change;
use super::session::{PduSession, SessionCall, UserPlane};
use crate::kit::Level;
use crate::kit::document::pack_enum;
use pith_sbi::Reply;

/// The handover in progress.
#[derive(Debug, Default)]
pub(crate) enum Mobility {
    /// No handover.
    #[default]
    Idle,
    /// Xn: SMFs switch the paths of the sessions to the target gNB.
    AwaitingPathSwitch(Box<path_switch::AwaitingPathSwitch>),
    /// N2: SMFs prepare the sessions.
    AwaitingSessionPreparation(Box<n2_handover::AwaitingSessionPreparation>),
    /// N2: HANDOVER REQUEST was sent to the target gNB.
    AwaitingHandoverRequestAcknowledge(Box<n2_handover::AwaitingHandoverRequestAcknowledge>),
    /// N2: SMFs get the target gNB's tunnels.
    AwaitingHandoverCommand(Box<n2_handover::AwaitingHandoverCommand>),
    /// N2: HANDOVER COMMAND was sent to the source gNB.
    AwaitingHandoverNotify(Box<n2_handover::AwaitingHandoverNotify>),
    /// N2: the UE is at the target gNB; SMFs switch the paths.
    AwaitingSessionCompletion(Box<n2_handover::AwaitingSessionCompletion>),
    /// Dual connectivity: SMFs move QoS flows between gNBs.
    AwaitingFlows(Box<flow_mobility::AwaitingFlowMobility>),
    /// N2, to another AMF: CreateUEContext was sent.
    AwaitingUeContextCreation(Box<departure::AwaitingUeContextCreation>),
    /// N2, to another AMF: HANDOVER COMMAND was sent to the source gNB.
    AwaitingN2InfoNotify(Box<departure::AwaitingN2InfoNotify>),
}

// A number is never given to another state.
pack_enum!(Mobility {
    0 => Idle,
    1 => AwaitingPathSwitch(state),
    2 => AwaitingSessionPreparation(state),
    3 => AwaitingHandoverRequestAcknowledge(state),
    4 => AwaitingHandoverCommand(state),
    5 => AwaitingHandoverNotify(state),
    6 => AwaitingSessionCompletion(state),
    7 => AwaitingFlows(state),
    8 => AwaitingUeContextCreation(state),
    9 => AwaitingN2InfoNotify(state),
});

/// The process ends, or the UE moves on, while SMFs are requested to switch the paths to a target gNB: they may not have got the requests, with
/// which the sessions become this AMF's if another one has served the UE. How often they were requested does not count for what follows.
pub(crate) fn announce_again(sessions: &mut [PduSession], state: &Mobility) {
    let ids: Vec<u8> = match state {
        Mobility::AwaitingSessionCompletion(state) => state.sessions().collect(),
        Mobility::AwaitingPathSwitch(state) => state.sessions().collect(),
        Mobility::Idle
        | Mobility::AwaitingSessionPreparation(_)
        | Mobility::AwaitingHandoverRequestAcknowledge(_)
        | Mobility::AwaitingHandoverCommand(_)
        | Mobility::AwaitingHandoverNotify(_)
        | Mobility::AwaitingFlows(_)
        | Mobility::AwaitingUeContextCreation(_)
        | Mobility::AwaitingN2InfoNotify(_) => return,
    };
    if matches!(state, Mobility::AwaitingSessionCompletion(_)) {
        sessions.iter_mut().filter(|it| ids.contains(&it.id)).for_each(PduSession::forget_unheard);
    }
    // Other states of the user plane are those of later requests of the SMF, which knows this AMF.
    let is_active = |it: &PduSession| matches!(it.user_plane, UserPlane::Activated | UserPlane::Activating);
    let may_be_unknown = |it: &&mut PduSession| ids.contains(&it.id) && is_active(it);
    sessions.iter_mut().filter(may_be_unknown).for_each(|it| it.note_active(true));
}

/// The UE leaves the target gNB while SMFs are requested to switch the paths to it: their answers say whether they did so after a deactivation.
pub(crate) fn note_left_switches(sessions: &mut [PduSession], state: &Mobility) {
    let calls = match state {
        Mobility::AwaitingSessionCompletion(state) => state.calls(),
        Mobility::AwaitingPathSwitch(state) => state.calls(),
        _ => return,
    };
    for (call, id) in calls.iter().filter(|(call, _)| *call != n2_handover::DUE) {
        if let Some(session) = sessions.iter_mut().find(|session| session.id == *id) {
            session.calls.push((*call, SessionCall::LeftSwitch));
        }
    }
}

impl Mobility {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::AwaitingPathSwitch(_) => "AwaitingPathSwitch",
            Self::AwaitingSessionPreparation(_) => "AwaitingSessionPreparation",
            Self::AwaitingHandoverRequestAcknowledge(_) => "AwaitingHandoverRequestAcknowledge",
            Self::AwaitingHandoverCommand(_) => "AwaitingHandoverCommand",
            Self::AwaitingHandoverNotify(_) => "AwaitingHandoverNotify",
            Self::AwaitingSessionCompletion(_) => "AwaitingSessionCompletion",
            Self::AwaitingFlows(_) => "AwaitingFlows",
            Self::AwaitingUeContextCreation(_) => "AwaitingUeContextCreation",
            Self::AwaitingN2InfoNotify(_) => "AwaitingN2InfoNotify",
        }
    }

    pub const fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// Whether the UE is changing its gNB.
    pub const fn is_handover(&self) -> bool {
        !matches!(self, Self::Idle | Self::AwaitingFlows(_))
    }

    /// Whether an N2 handover is in progress, and the UE is not yet at the target gNB: messages for UE and gNB are queued.
    pub const fn is_n2_handover(&self) -> bool {
        match self {
            Self::Idle
            | Self::AwaitingPathSwitch(_)
            | Self::AwaitingSessionCompletion(_)
            | Self::AwaitingFlows(_) => false,
            Self::AwaitingSessionPreparation(_)
            | Self::AwaitingHandoverRequestAcknowledge(_)
            | Self::AwaitingHandoverCommand(_)
            | Self::AwaitingHandoverNotify(_)
            | Self::AwaitingUeContextCreation(_)
            | Self::AwaitingN2InfoNotify(_) => true,
        }
    }

    /// Whether another AMF has the UE's NAS COUNTs: this one sends no NAS message.
    pub const fn is_departure(&self) -> bool {
        matches!(self, Self::AwaitingUeContextCreation(_) | Self::AwaitingN2InfoNotify(_))
    }

    /// Whether the gNB awaits the confirmation of the session's QoS flow mobility: changes of its resources are queued.
    pub fn moves_flows_of(&self, session: u8) -> bool {
        matches!(self, Self::AwaitingFlows(state) if state.has_session(session))
    }

    /// Whether the SMF of a session is requested to switch its path to this AMF's gNB.
    pub fn switches_path_of(&self, session: u8) -> bool {
        match self {
            Self::AwaitingSessionCompletion(state) => state.sessions().any(|id| id == session),
            Self::AwaitingPathSwitch(state) => state.sessions().any(|id| id == session),
            Self::Idle
            | Self::AwaitingSessionPreparation(_)
            | Self::AwaitingHandoverRequestAcknowledge(_)
            | Self::AwaitingHandoverCommand(_)
            | Self::AwaitingHandoverNotify(_)
            | Self::AwaitingFlows(_)
            | Self::AwaitingUeContextCreation(_)
            | Self::AwaitingN2InfoNotify(_) => false,
        }
    }

    /// Whether the SMF of a session may not know yet that the UE is to be handed over.
    pub fn prepares(&self, session: u8) -> bool {
        matches!(self, Self::AwaitingSessionPreparation(state) if state.prepares(session))
    }

    /// The gNB gets the resources of a session again: flows that it wanted to move are no longer those of its tunnels, and a path that is still to be
    /// switched is no longer the one of a handover. Returns whether the SMF was to be requested again to switch it.
    pub fn note_setup(&mut self, session: u8) -> bool {
        match self {
            Self::AwaitingFlows(state) => {
                state.note_setup(session);
                false
            }
            Self::AwaitingSessionCompletion(state) => state.note_setup(session),
            _ => false,
        }
    }

    /// Whether the state waits for the reply to a call.
    pub fn awaits_nf(&self) -> bool {
        self.awaits_any(|_| true)
    }

    /// Whether the state waits for the reply to that call.
    pub fn awaits(&self, call: CallId) -> bool {
        self.awaits_any(|pending| pending == call)
    }

    fn awaits_any(&self, meets: impl Fn(CallId) -> bool) -> bool {
        match self {
            Self::Idle
            | Self::AwaitingHandoverRequestAcknowledge(_)
            | Self::AwaitingHandoverNotify(_)
            | Self::AwaitingN2InfoNotify(_) => false,
            Self::AwaitingPathSwitch(state) => state.awaits_any(meets),
            Self::AwaitingSessionPreparation(state) => state.awaits_any(meets),
            Self::AwaitingHandoverCommand(state) => state.awaits_any(meets),
            Self::AwaitingSessionCompletion(state) => state.awaits_any(meets),
            Self::AwaitingFlows(state) => state.awaits_any(meets),
            Self::AwaitingUeContextCreation(state) => state.awaits_any(meets),
        }
    }
}

/// Handles the reply to a call that the state waits for.
pub(crate) fn on_reply(ue: &mut UeContext, env: &mut Env<'_>, call: CallId, reply: Reply) {
    ue.mobility = match std::mem::take(&mut ue.mobility) {
        Mobility::AwaitingPathSwitch(state) => state.on_reply(ue, env, call, reply),
        Mobility::AwaitingSessionPreparation(state) => state.on_reply(ue, env, call, reply),
        Mobility::AwaitingHandoverCommand(state) => state.on_reply(ue, env, call, reply),
        Mobility::AwaitingSessionCompletion(state) => state.on_reply(ue, env, call, reply),
        Mobility::AwaitingFlows(state) => state.on_reply(ue, env, call, reply),
        Mobility::AwaitingUeContextCreation(state) => state.on_reply(ue, env, reply),
        state @ (Mobility::Idle
        | Mobility::AwaitingHandoverRequestAcknowledge(_)
        | Mobility::AwaitingHandoverNotify(_)
        | Mobility::AwaitingN2InfoNotify(_)) => state,
    };
    delivery::send_held(ue, env);
    subscription_change::send_delayed(ue, env);
}

/// Handles the expiry of the timer of an N2 handover.
pub(crate) fn on_timer(ue: &mut UeContext, env: &mut Env<'_>) {
    let state = std::mem::take(&mut ue.mobility);
    ue.mobility = n2_handover::on_timer(ue, env, state);
    delivery::send_held(ue, env);
    subscription_change::send_delayed(ue, env);
}

/// Requests SMFs again to switch the paths of an N2 handover.
pub(crate) fn complete_again(ue: &mut UeContext, env: &mut Env<'_>) {
    ue.mobility = match std::mem::take(&mut ue.mobility) {
        Mobility::AwaitingSessionCompletion(state) => state.repeat(ue, env),
        state => state,
    };
    delivery::send_held(ue, env);
    subscription_change::send_delayed(ue, env);
}

/// Ends the handover, because the UE has no connection any longer. Late replies change nothing.
pub(crate) fn abort(ue: &mut UeContext, env: &mut Env<'_>) {
    ue.returned.clear();
    let state = std::mem::take(&mut ue.mobility);
    if !state.is_idle() {
        n2_handover::withdraw(ue, env, &state);
        ue.log_outcome(env, Level::Info, state.name(), "aborted");
    }
}
