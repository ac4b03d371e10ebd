//! A session with two UPFs: after the anchor, step 10 of the establishment (TS 23.502 4.3.2.2.1) continues with the *front UPF*
//! between gNB and anchor. It is an intermediate UPF, a classifier, or both.
//!
//! ```text
//!  AwaitingN4Establishment       <─ anchor: its N9 endpoint
//!  AwaitingFrontEstablishment    <─ front UPF: its endpoints towards gNB and anchor
//!  AwaitingN9Modification        <─ anchor: sends downlink packets to the front UPF
//!  AwaitingResourceSetup         as with one UPF
//! ```
//!
//! If the gNB reaches the anchor only through the front UPF and no UPF accepts that role, the session is refused. If only a
//! classifier fails, the session is established without local breakout.

use super::anchor::accepted;
use super::{Attempt, AwaitingResourceSetup, UeRequest, fail, too_slow};
use crate::kit::document::pack_struct;
use crate::kit::{Level, N4Error, UpfHandle};
use crate::smf::context::{CallId, FrontUpf, SmContext, UpfSession, UserPlane};
use crate::smf::env::Env;
use crate::smf::error::EstablishmentError;
use crate::smf::n4::EndMarker;
use crate::smf::procedure::State;
use crate::smf::procedure::release::Held;
use crate::smf::selection::FrontPlan;
use crate::smf::{n4, n9};
use pith_pfcp::Message;
use pith_pfcp::ie::ApplyAction;
use pith_types::Seid;

/// A Session Establishment Request was sent to the front UPF.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingFrontEstablishment {
    attempt: Attempt,
    /// With the anchor only.
    pub user_plane: UserPlane,
    plan: FrontPlan,
    /// The request.
    pub call: CallId,
}

/// The SMF has sent the front UPF's N9 endpoint to the anchor, for downlink packets.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingN9Modification {
    request: UeRequest,
    /// With both UPFs.
    pub user_plane: UserPlane,
    /// The request.
    pub call: CallId,
}

pack_struct!(AwaitingFrontEstablishment { attempt, user_plane, plan, call });
pack_struct!(AwaitingN9Modification { request, user_plane, call });

impl AwaitingFrontEstablishment {
    /// Sends the request to the front UPF (step 10a).
    pub(super) fn begin(
        session: &mut SmContext,
        env: &mut Env<'_>,
        attempt: Attempt,
        user_plane: UserPlane,
        plan: FrontPlan,
    ) -> State {
        let local = env.upfs.info(plan.upf).map(|info| info.local_address);
        let address = session.address;
        let Some(local) = local.filter(|_| !address.is_empty()) else {
            let error = EstablishmentError::UserPlane("a UPF was lost".into());
            return without_front(session, env, attempt, user_plane, &plan, &error);
        };
        let message = n9::establishment(session, &plan, &user_plane, (address, local), ApplyAction::BUFF);
        let call = session.ask_upf(env, plan.upf, Seid(0), message);
        State::AwaitingFrontEstablishment(Self { attempt, user_plane, plan, call })
    }

    /// Handles the front UPF's response (step 10b), and sends its endpoint to the anchor.
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
        let call = session.ask_upf(env, upf, seid, n4::activation(n9, EndMarker::Omit));
        let request = attempt.request;
        State::AwaitingN9Modification(AwaitingN9Modification { request, user_plane, call })
    }

    /// The front UPF did not answer in time.
    pub(in crate::smf) fn on_guard(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        fail(session, env, self.attempt.request, self.into_held(), &too_slow())
    }

    /// The UPF that has not answered yet.
    pub(in crate::smf) const fn upf(&self) -> UpfHandle {
        self.plan.upf
    }

    /// What must be released: the anchor's session, and the front UPF's if it answers yet.
    pub(in crate::smf) fn into_held(self) -> Held {
        Held { establishing: Some((self.plan.upf, self.call)), ..Held::from(self.user_plane) }
    }
}

/// The front UPF refused the session.
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
    /// Handles the anchor's response: the path is complete.
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

    /// The anchor did not answer in time.
    pub(in crate::smf) fn on_guard(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        fail(session, env, self.request, self.user_plane.into(), &too_slow())
    }
}
