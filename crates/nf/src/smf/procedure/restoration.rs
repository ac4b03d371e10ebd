//! Sessions that a UPF no longer has (TS 23.527 4.3.2): the UPF has restarted, or they are of a former run of the SMF, with whose
//! PFCP associations the UPFs have deleted them. The SMF establishes them again, with the same UE address and F-TEID. Sessions that
//! UPFs have retained are confirmed instead ([`super::confirmation`]).
//!
//! ```text
//!  start ─> document, or the UPF has restarted
//!         AwaitingRestoration      until the UPFs of the session are associated                       Guard, for a classifier
//!         AwaitingRestoration      <─ anchor: the session is established again
//!         AwaitingClassifier       <─ front UPF, if the session had one
//!         Established              pending updates of the AMF are served
//! ```
//!
//! After a restart of the SMF the gNB may still have its tunnel, and forwarding continues, until the AMF deactivates the user plane. With documents
//! that may lag, an AMF of the same process may not know of the tunnel: the user plane is inactive. A session whose document says that it was being established or released has no user
//! plane to restore: it ends, and the AMF is notified.
//!
//! A session whose UE may not have got the accept continues with that ([`super::establishment`]).
//!
//! A change that a UPF has not answered ([`Absence`]) is in force when the session is restored: the UPF gets it with all other rules.

use super::establishment::Accept;
use super::release::{self, Held};
use super::{State, branching, confirmation, upf_failure};
use crate::kit::document::pack_struct;
use crate::kit::{Level, N4Error, PendingReply, UpfHandle};
use crate::smf::context::{CallId, FrontUpf, SmContext, UpfSession, UserPlane};
use crate::smf::env::Env;
use crate::smf::n4;
use crate::smf::selection::{FrontPlan, Upfs};
use crate::smf::timers::SessionTimer;
use crate::smf::tunnels::Tunnels;
use pith_ngap::transfer::Tunnel;
use pith_pfcp::Message;
use pith_pfcp::ie::Cause as N4Cause;
use pith_pfcp::message::SessionEstablishmentResponse;
use pith_sbi::nsmf_pdusession::{SmContextUpdateData, UpCnxState};
use pith_sbi::{Cause, Problem};
use pith_types::Seid;

/// The session is to be established again at its UPFs.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingRestoration {
    /// As before. The SEIDs of the UPFs are no longer valid.
    pub user_plane: UserPlane,
    /// The request to the anchor, once it is sent.
    pub call: Option<CallId>,
    /// Whether the request has the former F-TEID.
    keeps_tunnel: bool,
}

pack_struct!(AwaitingRestoration { user_plane, call, keeps_tunnel });

impl AwaitingRestoration {
    /// The state of a session that was read from its document. `is_active`: the gNB may still have its tunnel.
    pub(in crate::smf) fn new(mut user_plane: UserPlane, is_active: bool) -> Self {
        if !is_active {
            (user_plane.gnb, user_plane.gnb_uplink) = (None, None);
        }
        Self { user_plane, call: None, keeps_tunnel: true }
    }

    /// Sends the request to the anchor, if the session's UPFs are associated. A classifier without association is awaited until
    /// the guard timer expires.
    pub(in crate::smf) fn begin(mut self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        let Some(anchor) = env.upfs.resolve(self.user_plane.anchor.upf) else { return self.into() };
        if let Some(front) = &mut self.user_plane.front {
            match env.upfs.resolve(front.session.upf) {
                Some(upf) => front.session.upf = upf,
                None if front.is_needed => return self.into(),
                None => {
                    if !session.timers.runs(SessionTimer::Guard) {
                        session.start(env, SessionTimer::Guard, env.config.guard);
                    }
                    return self.into();
                }
            }
        }
        session.stop(env, SessionTimer::Guard);
        self.user_plane.anchor.upf = anchor;
        self.leave_out_ending_front(session, env);
        if env.upfs.may_have_sessions(anchor) {
            if session.flows.former.is_some() && session.modification.is_none() {
                // It has the rules before the change that was interrupted, or those after it.
                env.delete_at_upf(self.user_plane.anchor);
                return self.ask_anchor(session, env);
            }
            return confirmation::begin(self.user_plane, session, env);
        }
        self.ask_anchor(session, env)
    }

    /// The classifier's UPF was not associated in time: the session continues without it. Or the request is sent again, for which the gateway had
    /// no room.
    pub(in crate::smf) fn on_guard(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        let front = self.user_plane.front.as_ref().map(|front| front.session.upf);
        if front.is_none_or(|front| env.upfs.resolve(front).is_some()) {
            return self.begin(session, env);
        }
        session.log(env, Level::Warn, || {
            "the classifier's UPF is not associated: the session continues without it".to_owned()
        });
        self.without_absent_classifier(env).begin(session, env)
    }

    /// The session goes on without a classifier whose UPF is not associated. When it is, what it may have of the session is deleted.
    fn without_absent_classifier(mut self, env: &mut Env<'_>) -> Self {
        let is_absent =
            |front: &mut FrontUpf| !front.is_needed && env.upfs.resolve(front.session.upf).is_none();
        if let Some(front) = self.user_plane.front.take_if(is_absent) {
            env.delete_at_upf(front.session);
        }
        self
    }

    /// A UPF of the session has restarted, perhaps once more. The anchor gets its request as soon as all UPFs are associated.
    fn again(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        Self { call: None, ..self }.begin(session, env)
    }

    /// A UPF of the session has restarted, or is lost. The session continues without a classifier that is lost, and ends without another UPF.
    pub(in crate::smf) fn on_upf_lost(
        mut self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        upf: UpfHandle,
    ) -> State {
        let is_removable = upf_failure::is_removable(&self.user_plane, upf);
        let goes_on = env.upfs.has_restarted(upf) || is_removable;
        if goes_on && self.call.is_some() && upf != self.user_plane.anchor.upf {
            // The anchor's response is awaited: a second request could overtake the first. `restore_front` finds what has become of the front UPF.
            if let (Some(front), Some(next)) = (&mut self.user_plane.front, env.upfs.expect_again(upf)) {
                front.session = UpfSession { upf: next, seid: Seid(0), ..front.session };
            }
            return self.into();
        }
        if goes_on {
            self.user_plane.front.take_if(|_| is_removable && !env.upfs.has_restarted(upf));
            return self.again(session, env);
        }
        let has_tunnel = self.has_tunnel(session);
        for at in self.user_plane.upf_sessions() {
            // It was to be confirmed.
            if at.upf != upf && at.seid != Seid(0) && env.upfs.has_retained(at.upf) {
                env.delete_at_upf(at);
            }
        }
        release::end_unserved(self.into_held().without(upf), has_tunnel, session, env)
    }

    /// Whether the gNB has resources of the session. If the UPF did not accept the former F-TEID, they are to be set up again.
    fn has_tunnel(&self, session: &SmContext) -> bool {
        let is_being_set_up = session.accept.is_some_and(Accept::may_be_delivered);
        self.user_plane.gnb.is_some() || session.pending.downlink_data || is_being_set_up
    }

    /// A front UPF that was being removed is left out. If the gNB still sends to it, its resources are set up again.
    fn leave_out_ending_front(&mut self, session: &mut SmContext, env: &mut Env<'_>) {
        let user_plane = &mut self.user_plane;
        let Some(front) = user_plane.front.take_if(|front| front.is_ending) else { return };
        if env.upfs.may_have_sessions(front.session.upf) {
            env.delete_at_upf(front.session);
        }
        if user_plane.gnb_uplink != Some(user_plane.anchor.tunnel) {
            session.pending.downlink_data |= user_plane.gnb.take().is_some();
            user_plane.gnb_uplink = None;
        }
    }

    /// Requests the anchor to establish the session.
    pub(super) fn ask_anchor(mut self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        let anchor = self.user_plane.anchor;
        let local = env.upfs.info(anchor.upf).map(|info| info.local_address);
        let address = session.address;
        let Some(local) = local.filter(|_| !address.is_empty()) else {
            let has_tunnel = self.has_tunnel(session);
            return release::end_unserved(Held::default(), has_tunnel, session, env);
        };
        let (f_teid, gnb) = if self.keeps_tunnel {
            (Some(n4::f_teid_of(anchor.tunnel)), self.user_plane.gnb)
        } else {
            (None, None)
        };
        // With a front UPF, its endpoint is sent to the anchor as soon as it is established.
        let gnb = gnb.filter(|_| self.user_plane.front.is_none());
        if gnb.is_none() {
            session.tunnels = Tunnels::default();
        }
        session.tunnels.keep(&session.flows_at_upf());
        let message = n4::restoration(session, (address, local), f_teid, gnb);
        self.call = Some(session.ask_upf(env, anchor.upf, Seid(0), message));
        self.into()
    }

    /// Handles the anchor's response. A UPF that does not accept the former F-TEID allocates another one; the gNB then gets it
    /// at the next activation.
    pub(in crate::smf) fn on_response(
        mut self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        let given = self.keeps_tunnel.then_some(self.user_plane.anchor.tunnel);
        match established(result, given) {
            Ok((seid, tunnel)) => {
                let upf = self.user_plane.anchor.upf;
                self.user_plane.anchor = UpfSession { upf, seid, tunnel };
                self.restore_front(session, env)
            }
            Err(NotRestored::Unassociated) => Self { call: None, ..self }.into(),
            Err(NotRestored::NotSent) => {
                session.start(env, SessionTimer::Guard, env.config.guard);
                Self { call: None, ..self }.into()
            }
            Err(NotRestored::Refused) if self.keeps_tunnel => {
                self.keeps_tunnel = false;
                // A gNB that has the former endpoint gets the new one when the session is restored.
                session.pending.downlink_data |= self.user_plane.gnb.take().is_some();
                self.user_plane.gnb_uplink = None;
                self.ask_anchor(session, env)
            }
            Err(_) => {
                session
                    .log(env, Level::Warn, || "the UPF does not restore the session, which ends".to_owned());
                let has_tunnel = self.has_tunnel(session);
                release::end_unserved(Held::default(), has_tunnel, session, env)
            }
        }
    }

    /// The anchor has the session. The front UPF may have restarted meanwhile, or be lost.
    fn restore_front(mut self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        session.log(env, Level::Debug, || "restored at the UPF".to_owned());
        let Some(mut front) = self.user_plane.front.take() else {
            return State::established(self.user_plane);
        };
        match env.upfs.resolve(front.session.upf) {
            Some(upf) if upf != front.session.upf => {
                front.session = UpfSession { upf, seid: Seid(0), ..front.session };
            }
            None if front.is_needed || Upfs::is_expected(front.session.upf) => {
                // It has restarted, and has no association yet. The anchor gets the session again, with it.
                env.delete_at_upf(self.user_plane.anchor);
                self.user_plane.front = Some(front);
                return self.again(session, env);
            }
            _ => {}
        }
        // A classifier that was being inserted has no SEID yet.
        if env.upfs.may_have_sessions(front.session.upf) && front.session.seid != Seid(0) {
            env.delete_at_upf(front.session);
        }
        // The anchor has no endpoint yet: whatever the gNB's is, the path is to be set up again.
        self.user_plane.gnb_uplink.take_if(|uplink| *uplink == self.user_plane.anchor.tunnel);
        let (upf, is_needed) = (front.session.upf, front.is_needed);
        let plan = FrontPlan { upf, is_needed, destinations: front.destinations };
        branching::restore(self.user_plane, session, env, plan)
    }

    /// An update of the AMF. Before the request to the anchor, the end of the gNB's tunnel needs no message to the UPF; but the AMF is answered
    /// only after the restoration, because until then a UPF that has kept the session, or its pinned XDP program, sends to the tunnel.
    /// Without an associated UPF there is no user plane to activate.
    pub(in crate::smf) fn on_update(
        mut self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        reply: PendingReply,
        data: SmContextUpdateData,
    ) -> State {
        let is_waiting = self.call.is_none();
        match data.up_cnx_state {
            Some(UpCnxState::Deactivated) if is_waiting => {
                self.user_plane.gnb = None;
                session.queue_update(env, reply, data);
                self.into()
            }
            // A UPF that restarted is associated shortly, or lost.
            Some(UpCnxState::Activating)
                if is_waiting && !env.upfs.has_restarted(self.user_plane.anchor.upf) =>
            {
                // The UE does not wait for a classifier.
                let has_anchor = env.upfs.resolve(self.user_plane.anchor.upf).is_some();
                let next = if has_anchor { self.without_absent_classifier(env) } else { self };
                match next.begin(session, env) {
                    State::AwaitingRestoration(waiting) if waiting.call.is_none() => {
                        reply.refuse(
                            Problem::new(Cause::PeerNotResponding).detail("no UPF is associated"),
                            env.out,
                        );
                        waiting.into()
                    }
                    next => {
                        session.queue_update(env, reply, data);
                        next
                    }
                }
            }
            _ => {
                session.queue_update(env, reply, data);
                self.into()
            }
        }
    }

    /// What must be released: the session at the anchor, if it answers yet; before the request, what a former run had at UPFs.
    pub(in crate::smf) fn into_held(self) -> Held {
        let (establishing, is_waiting) = (self.establishing(), self.call.is_none());
        let at_upfs = Held::from(self.user_plane).at_upfs;
        let at_upfs = at_upfs.map(|at| at.filter(|at| is_waiting && at.seid != Seid(0)));
        let of_former_run = at_upfs.map(|at| at.filter(|at| Upfs::is_expected(at.upf)));
        let of_set = at_upfs.map(|at| at.filter(|at| !Upfs::is_expected(at.upf)));
        Held { establishing, at_upfs: of_former_run, of_set, ..Held::default() }
    }

    /// The anchor, if it has not answered the request yet.
    pub(in crate::smf) fn establishing(&self) -> Option<(UpfHandle, CallId)> {
        Some((self.user_plane.anchor.upf, self.call?))
    }
}

impl From<AwaitingRestoration> for State {
    fn from(state: AwaitingRestoration) -> Self {
        Self::AwaitingRestoration(state)
    }
}

/// Why a UPF has not answered a change of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::smf) enum Absence {
    /// It has no association. The gateway says whether it gets another one.
    Lost,
    /// It does not answer, and its association stands: it may have the change, or not.
    Silent,
}

impl Absence {
    /// `None` if the UPF has answered, or the gateway has not sent the request: it is too long, or too many are pending, and a deletion and an establishment
    /// would be refused, too.
    pub(in crate::smf) const fn of(result: &Result<Message, N4Error>) -> Option<Self> {
        match result {
            Err(N4Error::NoAssociation) => Some(Self::Lost),
            Err(N4Error::NoAnswer) => Some(Self::Silent),
            Err(N4Error::TooLong | N4Error::Overloaded) | Ok(_) => None,
        }
    }
}

/// `upf` has not answered a change of the session: the session is established again, with the change. A UPF that does not answer gets it at once,
/// one without association when it has another one (TS 23.527 4.3.2).
pub(in crate::smf) fn after_absence(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    (upf, absence): (UpfHandle, Absence),
) -> State {
    // It may run for a message that AMF or gNB have refused: T3591 repeats that.
    session.stop(env, SessionTimer::Guard);
    let lost = lost_instead_of(upf, &user_plane, env).unwrap_or(upf);
    if absence == Absence::Silent {
        session.log(env, Level::Warn, || "the UPF does not answer: it gets the session again".to_owned());
        return give_again(user_plane, session, env);
    }
    session.log(env, Level::Debug, || "the UPF has no association: the session waits for it".to_owned());
    delete_at_others(&user_plane, env, lost);
    let waiting = AwaitingRestoration::new(user_plane, true);
    if env.upfs.info(lost).is_some() {
        // The gateway says next whether it returns.
        return waiting.into();
    }
    if env.upfs.has_restarted(lost) {
        return waiting.begin(session, env);
    }
    waiting.on_upf_lost(session, env, lost)
}

/// The session's other UPF, if that has no association and the one that was asked has: the change has failed, because the session needs both.
fn lost_instead_of(asked: UpfHandle, user_plane: &UserPlane, env: &Env<'_>) -> Option<UpfHandle> {
    let other = user_plane.upf_sessions().map(|at| at.upf).find(|upf| *upf != asked)?;
    (env.upfs.info(asked).is_some() && env.upfs.info(other).is_none()).then_some(other)
}

/// The UPFs may have other rules than those in force: they get the session again, with its tunnel.
pub(in crate::smf) fn give_again(user_plane: UserPlane, session: &mut SmContext, env: &mut Env<'_>) -> State {
    session.stop(env, SessionTimer::Guard);
    env.delete_at_upf(user_plane.anchor);
    if let Some(front) = &user_plane.front {
        env.delete_at_upf(front.session);
    }
    let mut waiting = AwaitingRestoration::new(user_plane, true);
    if env.upfs.info(waiting.user_plane.anchor.upf).is_none() {
        // It has restarted.
        return waiting.begin(session, env);
    }
    waiting.leave_out_ending_front(session, env);
    waiting.ask_anchor(session, env)
}

/// Deletes the session at its UPFs, without the one that has lost it.
fn delete_at_others(user_plane: &UserPlane, env: &mut Env<'_>, lost: UpfHandle) {
    for at in user_plane.upf_sessions() {
        // A classifier that was being inserted has no SEID yet.
        if at.upf != lost && at.seid != Seid(0) && env.upfs.info(at.upf).is_some() {
            env.delete_at_upf(at);
        }
    }
}

/// A UPF of the session has restarted. The gNB keeps its tunnel.
pub(in crate::smf) fn after_restart(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    upf: UpfHandle,
) -> State {
    let user_plane = match state {
        State::AwaitingResourceSetup(state) => {
            session.accept = state.accept;
            Some(state.user_plane)
        }
        State::AwaitingResourceRelease(state) => Some(state.user_plane),
        // The gNB may not have got the new endpoint.
        State::AwaitingUplinkSwitch(state) => Some(UserPlane { gnb_uplink: None, ..state.user_plane }),
        State::AwaitingClassifier(state) => Some(state.into_planned()),
        state => state.into_user_plane(),
    };
    session.stop(env, SessionTimer::Guard);
    let Some(user_plane) = user_plane else { return State::Over };
    session.log(env, Level::Debug, || "the UPF has restarted: it gets the session again".to_owned());
    delete_at_others(&user_plane, env, upf);
    AwaitingRestoration::new(user_plane, true).begin(session, env)
}

/// Why an anchor has no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotRestored {
    /// The UPF refuses.
    Refused,
    /// No answer.
    Silent,
    /// The UPF has restarted, or is lost; the gateway says which.
    Unassociated,
    /// The gateway has too many requests to the UPF.
    NotSent,
}

/// The UPF's SEID and endpoint, if it accepted the session.
fn established(
    result: Result<Message, N4Error>,
    given: Option<Tunnel>,
) -> Result<(Seid, Tunnel), NotRestored> {
    let message = result.map_err(|error| match error {
        N4Error::NoAssociation => NotRestored::Unassociated,
        N4Error::Overloaded => NotRestored::NotSent,
        _ => NotRestored::Silent,
    })?;
    let Message::SessionEstablishmentResponse(response) = message else { return Err(NotRestored::Refused) };
    let SessionEstablishmentResponse { cause: N4Cause::RequestAccepted, up_f_seid: Some(seid), .. } =
        &response
    else {
        return Err(NotRestored::Refused);
    };
    // The UPF reports only endpoints that it allocated.
    let tunnel = n4::tunnel(&response, n4::UPLINK_PDR).or(given).ok_or(NotRestored::Refused)?;
    Ok((Seid(seid.seid), tunnel))
}
