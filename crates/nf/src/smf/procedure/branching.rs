//! A classifier and local anchor is inserted into an established session, and removed again, at an operator's order
//! (TS 23.502 4.3.5.4, 4.3.5.5; TS 23.501 5.6.4.2; TS 29.244 5.2).
//!
//! ```text
//!  operator ─> branch
//!         AwaitingClassifier       <─ UPF: its tunnels towards gNB and anchor
//!         AwaitingDownlinkSwitch   <─ anchor: downlink goes there now, End Marker into the old tunnel
//!         AwaitingUplinkSwitch     <─ AMF, gNB: uplink goes there too               Guard
//!         Established
//!  operator ─> unbranch
//!         AwaitingUplinkSwitch     <─ AMF, gNB: uplink goes to the anchor now       Guard
//!         AwaitingDownlinkSwitch   <─ anchor: downlink goes to the gNB, End Marker by the classifier
//!         Established              PathGrace: then the classifier's session is deleted
//! ```
//!
//! No packet is lost: both UPFs forward until the end. If the gNB refuses the classifier, downlink packets return to their
//! former path, and the classifier is removed. For an idle UE there is no gNB to ask: the next activation gives it the new
//! tunnel. A classifier is removed while the UE is connected, for it may buffer packets. The switches are in [`super::path`].

use super::establishment::accepted;
use super::path::{self, Towards};
use super::{Established, State};
use crate::kit::{Level, N4Error, UpfHandle};
use crate::smf::config::Network;
use crate::smf::context::{CallId, FrontUpf, SmContext, UpfSession, UserPlane};
use crate::smf::env::Env;
use crate::smf::error::BranchingError;
use crate::smf::n9;
use crate::smf::selection::FrontPlan;
use crate::smf::timers::SessionTimer;
use pith_pfcp::Message;
use pith_pfcp::ie::ApplyAction;
use pith_types::Seid;
use std::net::IpAddr;

/// A UPF was asked to be the classifier.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingClassifier {
    /// Without it.
    pub user_plane: UserPlane,
    plan: FrontPlan,
    /// The request.
    pub call: CallId,
}

/// An operator inserts a classifier; the outcome shows in the session (TS 23.502 4.3.5.4).
pub(in crate::smf) fn insert(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    (upf, destinations): (&str, &[Network]),
) -> (State, Result<(), BranchingError>) {
    let busy = Err(BranchingError::Busy);
    if session.draining.is_some() {
        return (state, busy);
    }
    let State::Established(established) = state else { return (state, busy) };
    let (upf, local) = match check(&established, session, env, upf) {
        Ok(checked) => checked,
        Err(error) => return (established.into(), Err(error)),
    };
    let Some(address) = session.address else { return (established.into(), busy) };
    let Established { user_plane } = established;
    let plan = FrontPlan { upf, is_needed: false, destinations: destinations.to_vec() };
    let otherwise = ApplyAction::BUFF | ApplyAction::NOCP;
    let message = n9::establishment(session, &plan, &user_plane, (address, local), otherwise);
    let call = session.ask_upf(env, upf, Seid(0), message);
    (State::AwaitingClassifier(AwaitingClassifier { user_plane, plan, call }), Ok(()))
}

/// The UPF of that name, if it can become the classifier, and the SMF's address towards it.
fn check(
    established: &Established,
    session: &SmContext,
    env: &Env<'_>,
    upf: &str,
) -> Result<(UpfHandle, IpAddr), BranchingError> {
    let user_plane = &established.user_plane;
    if user_plane.front.is_some() {
        return Err(BranchingError::HasFront);
    }
    let upf = env.upfs.classifier(session, user_plane.anchor.upf, upf)?;
    let info = env.upfs.info(upf).ok_or(BranchingError::Busy)?;
    Ok((upf, info.local_address))
}

/// An operator removes the classifier: now, or when the UE is connected next (TS 23.502 4.3.5.5).
pub(in crate::smf) fn remove(state: State, session: &SmContext) -> (State, Result<(), BranchingError>) {
    let busy = Err(BranchingError::Busy);
    if session.draining.is_some() {
        return (state, busy);
    }
    let State::Established(mut established) = state else { return (state, busy) };
    let result = match &mut established.user_plane.front {
        None => Err(BranchingError::NoClassifier),
        Some(front) if front.is_needed => Err(BranchingError::IsNeeded),
        Some(front) => {
            // `path::resume` asks the gNB, if there is one.
            front.is_ending = true;
            Ok(())
        }
    };
    (established.into(), result)
}

impl AwaitingClassifier {
    /// The UPF answered (TS 23.502 4.3.5.4 step 3).
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        let Self { mut user_plane, plan, .. } = self;
        match accepted(plan.upf, result, n9::tunnels, env.out) {
            Ok((seid, (tunnel, n9))) => {
                let (is_needed, is_ending) = (false, false);
                let at = UpfSession { upf: plan.upf, seid, tunnel };
                let destinations = plan.destinations;
                user_plane.front = Some(FrontUpf { session: at, n9, is_needed, is_ending, destinations });
                path::switch_downlink(user_plane, session, env, Towards::Classifier)
            }
            Err(error) => {
                session.log(env, Level::Warn, || format!("no classifier: {error}"));
                State::established(user_plane)
            }
        }
    }

    /// The UPF that owes an answer.
    pub(in crate::smf) const fn upf(&self) -> UpfHandle {
        self.plan.upf
    }

    /// What is left to end: the UPF owes an answer.
    pub(in crate::smf) fn dismantle(self) -> super::release::Remains {
        let establishing = Some((self.plan.upf, self.call));
        super::release::Remains { establishing, ..self.user_plane.into() }
    }
}

/// The front UPF leaves the path; its session is deleted when packets in transit have passed.
pub(in crate::smf) fn drain_front(user_plane: &mut UserPlane, session: &mut SmContext, env: &mut Env<'_>) {
    if let Some(front) = user_plane.front.take() {
        session.draining = Some(front.session);
        session.start(env, SessionTimer::PathGrace, env.config.path_grace);
    }
}

/// Packets in transit have passed.
pub(in crate::smf) fn on_path_grace(session: &mut SmContext, env: &mut Env<'_>) {
    if let Some(drained) = session.draining.take() {
        env.delete_at_upf(drained);
    }
}
