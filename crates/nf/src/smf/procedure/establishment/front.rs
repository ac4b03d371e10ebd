//! Two UPFs in the path of a session: step 10 of its establishment (TS 23.502 4.3.2.2.1) continues after the anchor.
//!
//! ```text
//!  AwaitingN4Establishment       <─ anchor: its tunnel
//!  AwaitingFrontEstablishment    <─ UPF before it: its tunnels towards gNB and anchor
//!  AwaitingN9Modification        <─ anchor: downlink packets go to the front UPF
//!  AwaitingResourceSetup         as with one UPF
//! ```
//!
//! Without an intermediate UPF that is needed there is no session; without a classifier there is one, whose packets
//! all go to the anchor.

use super::anchor::accepted;
use super::{Attempt, AwaitingResourceSetup, UeRequest, fail, too_slow};
use crate::kit::{Level, N4Error, UpfHandle};
use crate::smf::context::{CallId, FrontUpf, SmContext, UpfSession, UserPlane};
use crate::smf::env::Env;
use crate::smf::error::EstablishmentError;
use crate::smf::n4::Leaving;
use crate::smf::procedure::State;
use crate::smf::procedure::release::Remains;
use crate::smf::selection::FrontPlan;
use crate::smf::{n4, n9};
use pith_pfcp::Message;
use pith_pfcp::ie::ApplyAction;
use pith_types::Seid;

/// The UPF between gNB and anchor was asked for the session.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingFrontEstablishment {
    attempt: Attempt,
    /// The anchor has the session.
    pub user_plane: UserPlane,
    plan: FrontPlan,
    /// The request.
    pub call: CallId,
}

/// The SMF has given the anchor the new destination of downlink packets.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingN9Modification {
    request: UeRequest,
    /// Both UPFs have the session.
    pub user_plane: UserPlane,
    /// The request.
    pub call: CallId,
}

impl AwaitingFrontEstablishment {
    /// Asks the UPF between gNB and anchor (step 10a).
    pub(super) fn begin(
        session: &mut SmContext,
        env: &mut Env<'_>,
        attempt: Attempt,
        user_plane: UserPlane,
        plan: FrontPlan,
    ) -> State {
        let local = env.upfs.info(plan.upf).map(|info| info.local_address);
        let (Some(local), Some(address)) = (local, session.address) else {
            let error = EstablishmentError::UserPlane("a UPF was lost".into());
            return without_front(session, env, attempt, user_plane, &plan, &error);
        };
        let message = n9::establishment(session, &plan, &user_plane, (address, local), ApplyAction::BUFF);
        let call = session.ask_upf(env, plan.upf, Seid(0), message);
        State::AwaitingFrontEstablishment(Self { attempt, user_plane, plan, call })
    }

    /// The UPF answered (step 10b): the anchor gets its tunnel.
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        let Self { attempt, mut user_plane, plan, .. } = self;
        let (seid, (tunnel, n9)) = match accepted(plan.upf, result, n9::tunnels, env.out) {
            Ok(accepted) => accepted,
            Err(error) => return without_front(session, env, attempt, user_plane, &plan, &error),
        };
        user_plane.front = Some(FrontUpf {
            session: UpfSession { upf: plan.upf, seid, tunnel },
            n9,
            is_needed: plan.is_needed,
            is_ending: false,
            destinations: plan.destinations,
        });
        let UpfSession { upf, seid, .. } = user_plane.anchor;
        let call = session.ask_upf(env, upf, seid, n4::activation(n9, Leaving::Silently));
        let request = attempt.request;
        State::AwaitingN9Modification(AwaitingN9Modification { request, user_plane, call })
    }

    /// The UPF took too long.
    pub(in crate::smf) fn on_guard(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        fail(session, env, self.attempt.request, self.dismantle(), &too_slow())
    }

    /// The UPF that owes an answer.
    pub(in crate::smf) const fn upf(&self) -> UpfHandle {
        self.plan.upf
    }

    /// What is left to end: the UPF owes an answer.
    pub(in crate::smf) fn dismantle(self) -> Remains {
        Remains { establishing: Some((self.plan.upf, self.call)), ..Remains::from(self.user_plane) }
    }
}

/// The UPF before the anchor did not take the session.
fn without_front(
    session: &mut SmContext,
    env: &mut Env<'_>,
    attempt: Attempt,
    user_plane: UserPlane,
    plan: &FrontPlan,
    error: &EstablishmentError,
) -> State {
    if plan.is_needed {
        env.delete_at_upf(user_plane.anchor);
        return attempt.try_another(session, env, plan.upf, error);
    }
    session.log(env, Level::Warn, || format!("no local breakout: {error}"));
    AwaitingResourceSetup::begin(session, env, attempt.request, user_plane)
}

impl AwaitingN9Modification {
    /// The anchor answered: the path is complete.
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        let Self { request, user_plane, .. } = self;
        match n4::modified(result) {
            Ok(()) => AwaitingResourceSetup::begin(session, env, request, user_plane),
            Err(why) => {
                let error = EstablishmentError::UserPlane(why);
                fail(session, env, request, user_plane.into(), &error)
            }
        }
    }

    /// The anchor took too long.
    pub(in crate::smf) fn on_guard(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        fail(session, env, self.request, self.user_plane.into(), &too_slow())
    }
}
