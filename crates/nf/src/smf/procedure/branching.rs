//! An operator inserts an uplink classifier, which is also the local anchor, into an established session, or removes it
//! (TS 23.502 4.3.5.4, 4.3.5.5; TS 23.501 5.6.4.2; TS 29.244 5.2).
//!
//! ```text
//!  operator ─> branch
//!         AwaitingClassifier       <─ UPF: its endpoints towards gNB and anchor
//!         AwaitingDownlinkSwitch   <─ anchor: sends downlink packets to it, End Marker into the old tunnel
//!         AwaitingUplinkSwitch     <─ AMF, gNB: sends uplink packets to it          Guard
//!         Established
//!  operator ─> unbranch
//!         AwaitingUplinkSwitch     <─ AMF, gNB: sends uplink packets to the anchor  Guard
//!         AwaitingDownlinkSwitch   <─ anchor: sends downlink packets to the gNB, End Marker to the classifier
//!         Established              after PathGrace the classifier's session is deleted
//! ```
//!
//! No packet is lost, because both UPFs forward until the end. If the gNB refuses the classifier, downlink packets return to
//! their former path, and the classifier is removed. While the UE is idle, no gNB needs to be changed: the next activation
//! sends the new endpoint. A classifier is removed only while the UE is connected, since otherwise it may buffer packets.
//! The switches are in [`super::path`].

use super::establishment::accepted;
use super::path::{self, Towards};
use super::restoration::{self, Absence};
use super::{Established, State, release};
use crate::kit::document::pack_struct;
use crate::kit::{Level, N4Error, UpfHandle};
use crate::smf::config::Network;
use crate::smf::context::{CallId, FrontUpf, SmContext, UpfSession, UserPlane};
use crate::smf::env::Env;
use crate::smf::error::BranchingError;
use crate::smf::selection::FrontPlan;
use crate::smf::timers::SessionTimer;
use crate::smf::{n4, n9};
use pith_pfcp::Message;
use pith_pfcp::ie::ApplyAction;
use pith_types::Seid;
use std::net::IpAddr;

/// A Session Establishment Request was sent to the UPF that is to become the classifier.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingClassifier {
    /// Without the classifier.
    pub user_plane: UserPlane,
    plan: FrontPlan,
    /// The request.
    pub call: CallId,
}

pack_struct!(AwaitingClassifier { user_plane, plan, call });

/// An operator inserts a classifier (TS 23.502 4.3.5.4). The command returns at once; `pith session list` shows the result.
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
    if !session.flows.is_default() {
        return (state, Err(BranchingError::HasRules));
    }
    let State::Established(established) = state else { return (state, busy) };
    if !session.tunnels.is_empty() {
        return (established.into(), Err(BranchingError::SeveralTunnels));
    }
    let (upf, local) = match check(&established, session, env, upf) {
        Ok(checked) => checked,
        Err(error) => return (established.into(), Err(error)),
    };
    let address = session.address;
    if address.is_empty() {
        return (established.into(), busy);
    }
    let Established { user_plane } = established;
    let plan = FrontPlan { upf, is_needed: false, destinations: destinations.to_vec() };
    let otherwise = ApplyAction::BUFF | ApplyAction::NOCP;
    let message = n9::establishment(session, &plan, &user_plane, (address, local), otherwise);
    let call = session.ask_upf(env, upf, Seid(0), message);
    (State::AwaitingClassifier(AwaitingClassifier { user_plane, plan, call }), Ok(()))
}

/// A session that was restored at its anchor gets its front UPF again (TS 23.527 4.3.2).
pub(in crate::smf) fn restore(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    plan: FrontPlan,
) -> State {
    let local = env.upfs.info(plan.upf).map(|info| info.local_address);
    let address = session.address;
    let Some(local) = local.filter(|_| !address.is_empty()) else {
        return without_front(user_plane, session, env, &plan);
    };
    let otherwise = ApplyAction::BUFF | ApplyAction::NOCP;
    let message = n9::establishment(session, &plan, &user_plane, (address, local), otherwise);
    let call = session.ask_upf(env, plan.upf, Seid(0), n4::restoring(message));
    State::AwaitingClassifier(AwaitingClassifier { user_plane, plan, call })
}

/// The UPF does not become the front UPF: the session continues without it, unless the gNB reaches the anchor only through it. A restored
/// anchor, which waits for the front UPF, has no endpoint yet.
fn without_front(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    plan: &FrontPlan,
) -> State {
    if plan.is_needed {
        let has_tunnel = user_plane.gnb.is_some();
        return release::end_unserved(user_plane.into(), has_tunnel, session, env);
    }
    let is_unchanged = user_plane.gnb_uplink == Some(user_plane.anchor.tunnel);
    match user_plane.gnb.filter(|_| !is_unchanged) {
        Some(gnb) => path::send_to_gnb(user_plane, session, env, gnb),
        None => State::established(user_plane),
    }
}

/// The UPF with this name, if it can become the classifier, and the SMF's own address for PFCP with it.
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

/// An operator removes the classifier: now, or as soon as the UE is connected (TS 23.502 4.3.5.5).
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
            // `path::resume` switches the uplink, if the UE is connected.
            front.is_ending = true;
            Ok(())
        }
    };
    (established.into(), result)
}

impl AwaitingClassifier {
    /// Sends the request again: the response to the former one cannot be matched. A UPF that has the session replaces it.
    pub(in crate::smf) fn repeat(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        restore(self.user_plane, session, env, self.plan)
    }

    /// Handles the UPF's response (TS 23.502 4.3.5.4 step 3).
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        if self.plan.is_needed && Absence::of(&result) == Some(Absence::Lost) {
            let upf = self.plan.upf;
            return restoration::after_absence(self.into_planned(), session, env, (upf, Absence::Lost));
        }
        let Self { mut user_plane, plan, .. } = self;
        match accepted(plan.upf, result, n9::tunnels, env.out) {
            Ok((seid, (tunnel, n9))) => {
                let (is_needed, is_ending) = (plan.is_needed, false);
                let at = UpfSession { upf: plan.upf, seid, tunnel };
                let destinations = plan.destinations;
                user_plane.front = Some(FrontUpf { session: at, n9, is_needed, is_ending, destinations });
                path::switch_downlink(user_plane, session, env, Towards::Classifier)
            }
            Err(error) => {
                session.log(env, Level::Warn, || format!("the classifier is not inserted: {error}"));
                without_front(user_plane, session, env, &plan)
            }
        }
    }

    /// The user plane with the planned UPF, which has no session yet: that is restored with the anchor's.
    pub(super) fn into_planned(self) -> UserPlane {
        let Self { mut user_plane, plan: FrontPlan { upf, is_needed, destinations }, .. } = self;
        let tunnel = user_plane.anchor.tunnel;
        let session = UpfSession { upf, seid: Seid(0), tunnel };
        user_plane.front = Some(FrontUpf { session, n9: tunnel, is_needed, is_ending: false, destinations });
        user_plane
    }

    /// The UPF that has not answered yet.
    pub(in crate::smf) const fn upf(&self) -> UpfHandle {
        self.plan.upf
    }

    /// What must be released: the sessions of the path, and the classifier's if it answers yet.
    pub(in crate::smf) fn into_held(self) -> release::Held {
        let establishing = Some((self.plan.upf, self.call));
        release::Held { establishing, ..self.user_plane.into() }
    }
}

/// The front UPF leaves the path; its session is deleted when packets in transit have passed.
pub(in crate::smf) fn drain_front(user_plane: &mut UserPlane, session: &mut SmContext, env: &mut Env<'_>) {
    if let Some(front) = user_plane.front.take() {
        on_path_grace(session, env);
        session.draining = Some(front.session);
        session.start(env, SessionTimer::PathGrace, env.config.path_grace);
    }
}

/// Packets in transit have passed. Until the UPF has answered, the document names the session: the request may not have left.
pub(in crate::smf) fn on_path_grace(session: &mut SmContext, env: &mut Env<'_>) {
    if let Some(drained) = session.draining.take() {
        session.leaving.push(drained);
        let call = session.ask_upf(env, drained.upf, drained.seid, n4::deletion());
        session.deletion = Some(call);
    }
}

/// Whether that is the answer of the UPF that left the path: it has no session any longer. If it has just established one, that is deleted.
pub(in crate::smf) fn is_drained(
    session: &mut SmContext,
    env: &mut Env<'_>,
    call: CallId,
    result: &Result<Message, N4Error>,
) -> bool {
    let is_drained = session.deletion == Some(call);
    if is_drained {
        session.deletion = None;
        let left = session.leaving.pop();
        session.leaving.clear();
        if let (Some(left), Ok(Message::SessionEstablishmentResponse(response))) = (left, result)
            && let Some(seid) = response.up_f_seid
        {
            session.draining = Some(UpfSession { seid: Seid(seid.seid), ..left });
            on_path_grace(session, env);
        }
    }
    is_drained
}
