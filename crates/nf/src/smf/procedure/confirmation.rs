//! Sessions of a former run that their UPFs have retained (TS 29.244 6.2.6.2.2; TS 23.527 4.2): the SMF confirms each, and forwarding
//! goes on meanwhile.
//!
//! ```text
//!  start ─> document
//!         AwaitingRestoration      until the UPFs of the session are associated
//!         AwaitingConfirmation     <─ anchor: has the session, with the rules of the document
//!         AwaitingConfirmation     <─ front UPF, if the session has one
//!         Established              pending updates of the AMF are served
//! ```
//!
//! The last change before the end of the former run may not have arrived, or may not be in the document: so each request has all rules
//! that change while a session is established. It is the same however often it arrives. A UPF that does not know the
//! session gets it again ([`super::restoration`]).

use super::restoration::AwaitingRestoration;
use super::{State, branching};
use crate::kit::document::{pack_enum, pack_struct};
use crate::kit::{Level, N4Error};
use crate::smf::context::{CallId, SmContext, UpfSession, UserPlane};
use crate::smf::env::Env;
use crate::smf::n4;
use crate::smf::selection::FrontPlan;
use crate::smf::tunnels::Tunnels;
use pith_ngap::transfer::Tunnel;
use pith_pfcp::Message;
use pith_pfcp::ie::Cause as N4Cause;
use pith_types::Seid;

/// The role of a UPF in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UpfRole {
    Anchor,
    Front,
}

/// A UPF is to confirm that it has the session.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingConfirmation {
    pub user_plane: UserPlane,
    role: UpfRole,
    /// The request.
    pub call: CallId,
}

pack_enum!(UpfRole { 0 => Anchor, 1 => Front });
pack_struct!(AwaitingConfirmation { user_plane, role, call });

/// What a UPF says of a session that the SMF wants confirmed.
enum Finding {
    /// It has the session, with these rules.
    Present,
    /// It does not have it.
    Absent,
    /// It refuses the rules.
    Refused,
    /// No answer.
    Silent,
    /// It has restarted, or is lost; the gateway says which.
    Unassociated,
}

/// Sends the request to the anchor. All UPFs of the session are associated, and the anchor has retained its sessions.
pub(in crate::smf) fn begin(user_plane: UserPlane, session: &mut SmContext, env: &mut Env<'_>) -> State {
    let to = match &user_plane.front {
        // Downlink packets wait until the front UPF has the session again.
        Some(front) => Some(front.n9).filter(|_| env.upfs.may_have_sessions(front.session.upf)),
        None => user_plane.gnb,
    };
    let (at, seid) = (user_plane.anchor, session.seid);
    ask(user_plane, session, env, (UpfRole::Anchor, at, seid), to)
}

fn ask(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    (role, at, seid): (UpfRole, UpfSession, Seid),
    to: Option<Tunnel>,
) -> State {
    let Some(local) = env.upfs.info(at.upf).map(|info| info.local_address) else {
        return AwaitingRestoration::new(user_plane, true).into();
    };
    let message = n4::confirmation(session, (seid, local), to);
    if user_plane.gnb.is_none() {
        session.tunnels = Tunnels::default();
    }
    let call = session.ask_upf(env, at.upf, at.seid, message);
    State::AwaitingConfirmation(AwaitingConfirmation { user_plane, role, call })
}

impl AwaitingConfirmation {
    /// Handles a UPF's response.
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        match (self.role, finding(result)) {
            (_, Finding::Unassociated) => AwaitingRestoration::new(self.user_plane, true).into(),
            (UpfRole::Anchor, Finding::Present) => self.anchor_confirmed(session, env),
            (UpfRole::Front, Finding::Present) => confirmed(self.user_plane, session, env),
            (UpfRole::Anchor, Finding::Absent) => {
                AwaitingRestoration::new(self.user_plane, true).ask_anchor(session, env)
            }
            // A UPF that does not answer may have these rules, or the former ones.
            (UpfRole::Anchor, Finding::Refused | Finding::Silent) => {
                env.delete_at_upf(self.user_plane.anchor);
                AwaitingRestoration::new(self.user_plane, true).ask_anchor(session, env)
            }
            (UpfRole::Front, _) => self.front_again(session, env),
        }
    }

    fn anchor_confirmed(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        let Some(front) = self.user_plane.front.as_ref().map(|front| front.session) else {
            return confirmed(self.user_plane, session, env);
        };
        if !env.upfs.may_have_sessions(front.upf) {
            return self.front_again(session, env);
        }
        let (gnb, seid) = (self.user_plane.gnb, session.front_seid());
        ask(self.user_plane, session, env, (UpfRole::Front, front, seid), gnb)
    }

    /// The front UPF does not have the session, or not its rules: it gets it again.
    fn front_again(mut self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        let Some(front) = self.user_plane.front.take() else {
            return confirmed(self.user_plane, session, env);
        };
        if env.upfs.may_have_sessions(front.session.upf) {
            env.delete_at_upf(front.session);
        }
        let (upf, is_needed) = (front.session.upf, front.is_needed);
        let plan = FrontPlan { upf, is_needed, destinations: front.destinations };
        branching::restore(self.user_plane, session, env, plan)
    }
}

fn confirmed(user_plane: UserPlane, session: &SmContext, env: &mut Env<'_>) -> State {
    session.log(env, Level::Debug, || "retained by its UPFs".to_owned());
    State::established(user_plane)
}

fn finding(result: Result<Message, N4Error>) -> Finding {
    match result {
        Ok(Message::SessionModificationResponse(response)) => match response.cause {
            cause if cause.is_acceptance() => Finding::Present,
            N4Cause::SessionContextNotFound => Finding::Absent,
            _ => Finding::Refused,
        },
        Ok(_) => Finding::Refused,
        Err(N4Error::NoAssociation) => Finding::Unassociated,
        Err(_) => Finding::Silent,
    }
}
