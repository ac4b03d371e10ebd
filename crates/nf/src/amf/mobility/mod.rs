//! The handover of a UE: one state for each wait, which owns the data that are valid while it waits. It runs beside the 5GMM
//! procedure ([`super::procedure`]): a UE has at most one of each.

pub(crate) mod path_switch;

use super::context::{CallId, Env, UeContext};
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
}

// A number is never given to another state.
pack_enum!(Mobility { 0 => Idle, 1 => AwaitingPathSwitch(state) });

impl Mobility {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::AwaitingPathSwitch(_) => "AwaitingPathSwitch",
        }
    }

    pub const fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
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
            Self::Idle => false,
            Self::AwaitingPathSwitch(state) => state.awaits_any(meets),
        }
    }
}

/// Handles the reply to a call that the state waits for.
pub(crate) fn on_reply(ue: &mut UeContext, env: &mut Env<'_>, call: CallId, reply: Reply) {
    ue.mobility = match std::mem::take(&mut ue.mobility) {
        Mobility::AwaitingPathSwitch(state) => state.on_reply(ue, env, call, reply),
        Mobility::Idle => Mobility::Idle,
    };
}

/// Ends the handover, because the UE has no connection any longer. Late replies change nothing.
pub(crate) fn abort(ue: &mut UeContext, env: &mut Env<'_>) {
    let state = std::mem::take(&mut ue.mobility);
    if !state.is_idle() {
        ue.log_outcome(env, Level::Info, state.name(), "aborted");
    }
}
