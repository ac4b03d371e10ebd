//! Sessions that another run of the shard had, while gateways, gNBs and UPFs continued: the shard panicked.
//!
//! | document | the session |
//! |---|---|
//! | established; waits for UE or gNB | goes on: UPFs have its rules, with the same SEIDs and F-TEIDs |
//! | waits for a UPF | the request is sent again: the rules are the same; a UPF that has established the session replaces it, as the UE address is the same |
//! | the AMF's request waits for a UPF | the request to the UPF is sent again; the AMF's transaction begins again when the UPF has answered |
//! | any other state of an establishment | ends; the AMF is notified |
//! | a UPF has no association | waits for it, as after a restart of the process |
//! | written some time after the changes ([`crate::kit::Tracking::is_late`]) | established at its UPFs again, without a gNB |
//!
//! Responses to requests of the former run name no session of this one ([`crate::kit::Tag::run`]). If such a response says that a UPF has
//! established a session that no document has, the SMF deletes it.

use super::Smf;
use super::context::document::unpack;
use super::context::{Pending, SmContext};
use super::env::IGNORED_REPLY;
use super::procedure::restoration::AwaitingRestoration;
use super::procedure::subscription_change::SubscriptionChange;
use super::procedure::{State, confirmation, user_plane};
use super::selection::ExpectedUpfs;
use super::timers::SessionTimer;
use super::unconfirmed::is_unconfirmed;
use crate::kit::document::UnpackError;
use crate::kit::{
    Caller, Duration, Fate, Instant, Key, Level, N4Effect, N4Error, Nf, Outbox, PendingReply, UNPLACED,
    WallClock,
};
use pith_pfcp::Message;
use pith_pfcp::message::SessionEstablishmentResponse;
use pith_types::{ContextId, Seid};

impl Smf {
    /// Takes a session over from its document.
    pub(super) fn take_over_session(
        &mut self,
        id: ContextId,
        document: &[u8],
        fate: Fate,
    ) -> Result<(), UnpackError> {
        if fate == Fate::GoesOn && self.tracker.tracking().is_some_and(|tracking| tracking.is_late) {
            return self.restore_session(id, document, false);
        }
        self.shared.ids.check_free(id)?;
        let mut session = unpack(document, (UNPLACED, id), &ExpectedUpfs::new(&mut self.shared.upfs))?;
        let is_modified = matches!(
            session.state(),
            State::AwaitingN4Modification(_) | State::AwaitingPathSwitch(_) | State::AwaitingFlowMobility(_)
        );
        self.restored.left.append(&mut session.leaving);
        session.deletion = None;
        let is_cut = session.take_over(|upf| self.shared.upfs.info(upf).is_some());
        if let Some(user_plane) = session.state().user_plane() {
            let front = user_plane.front.as_ref().map(|front| front.session);
            let at_upfs = [Some(user_plane.anchor), front].into_iter().flatten();
            self.restored.at_upfs.extend(at_upfs.map(|it| (it.upf, it.seid)));
        }
        let (ue, pdu_session_id, address) = (session.ue.clone(), session.pdu_session_id, session.address);
        let placed = self.sessions.insert_with(|key| {
            session.key = key;
            Box::new(session)
        });
        let key = placed.ok_or(UnpackError::NoRoom)?;
        self.shared.ids.claim(id, key);
        self.tracker.note_stored(id, 0);
        let ends = fate == Fate::Ends || is_cut || self.shared.index.find(&ue, pdu_session_id).is_some();
        if ends {
            self.restored.ending.push((key, address));
        } else {
            self.shared.index.claim(ue, pdu_session_id, key);
            self.restored.taken_over.push((key, address, is_modified));
            self.note_taken_over(key);
        }
        self.sessions.pack_idle();
        Ok(())
    }

    /// A UPF that has no association yet, as the process has just started, may retain the session: it is unconfirmed there, as in the run that
    /// panicked. Else the SMF would request the UPF to delete it with the sessions of former runs (TS 29.244 6.2.9).
    fn note_taken_over(&mut self, key: Key) {
        let session = self.sessions.view(key);
        if let Some(session) = session.filter(|session| is_unconfirmed(session.state())) {
            self.unconfirmed.insert(key, session.state());
        }
    }

    /// Resumes the sessions that were taken over.
    pub(super) fn resume_taken_over(&mut self, now: Instant, taken_over: Vec<(Key, bool)>, out: &mut Outbox) {
        for (key, is_modified) in taken_over {
            self.with_session(now, key, out, |state, session, env| {
                let clock = WallClock::of_epoch(env.identity.epoch_unix_ms);
                for (timer, deadline) in session.timers.running().collect::<Vec<_>>() {
                    let left = clock.instant(deadline).since(env.now).max(Duration::from_millis(1));
                    session.start(env, timer, left);
                }
                match state {
                    // The UPF may have the former tunnels, or these.
                    State::Established(established) if is_modified && !session.tunnels.is_empty() => {
                        confirmation::begin(established.user_plane, session, env)
                    }
                    State::Established(established) if is_modified => {
                        // The UPF may have the former rules. Updates of the AMF wait for its response, as their datagrams could overtake
                        // this one.
                        let no_caller = Caller::Local { nf: Nf::Smf, tag: IGNORED_REPLY };
                        let reply = PendingReply::owed_to(no_caller);
                        user_plane::change(established.user_plane, session, env, reply)
                    }
                    State::AwaitingRestoration(state) => state.begin(session, env),
                    State::AwaitingN4Establishment(state) => state.repeat(session, env),
                    State::AwaitingRates(state) => state.repeat(session, env),
                    State::AwaitingClassifier(state) => state.repeat(session, env),
                    State::AwaitingForwardingTunnel(state) => state.repeat(session, env),
                    State::AwaitingDownlinkSwitch(state) => state.repeat(session, env),
                    State::AwaitingBuffering(state) => state.repeat(session, env),
                    state => state,
                }
            });
            self.note_waiting(key);
            self.sessions.pack_idle();
        }
    }

    /// A UPF has answered a request of a session that does not exist: one of a former run of the shard.
    pub(super) fn delete_unknown_session(&mut self, result: Result<Message, N4Error>, out: &mut Outbox) {
        let Ok(Message::SessionEstablishmentResponse(response)) = result else { return };
        let SessionEstablishmentResponse { up_f_seid: Some(seid), .. } = response else { return };
        let addresses = seid.ipv4.map(Into::into).into_iter().chain(seid.ipv6.map(Into::into));
        let upf = addresses.into_iter().find_map(|address| self.shared.upfs.at_address(address));
        // One that the former run has recorded before it panicked is the session's.
        let Some(upf) = upf.filter(|upf| !self.restored.at_upfs.contains(&(*upf, Seid(seid.seid)))) else {
            return;
        };
        out.log(Level::Debug, || format!("a UPF has session {:x} of a former run: deleted", seid.seid));
        let (tag, message) = (IGNORED_REPLY, super::n4::deletion());
        out.n4(N4Effect::Request { tag, upf, seid: Seid(seid.seid), message });
    }
}

impl SmContext {
    /// Prepares a session of a document to go on. What waited for a reply of another NF has lost it. `is_associated`: whether a UPF
    /// has an association. Returns whether the session ends.
    fn take_over(&mut self, is_associated: impl Fn(crate::kit::UpfHandle) -> bool) -> bool {
        let pending = std::mem::take(&mut self.pending);
        self.pending = Pending { updates: Vec::new(), ..pending };
        self.subscription_change = self.subscription_change.take().map(SubscriptionChange::restarted);
        self.reflective = self.reflective.restarted();
        let state = self.take_state();
        let has_upfs = state.user_plane().is_none_or(|it| {
            is_associated(it.anchor.upf)
                && it.front.as_ref().is_none_or(|front| is_associated(front.session.upf))
        });
        use State as S;
        let (state, ends) = match state {
            S::AwaitingRestoration(state) => (AwaitingRestoration::new(state.user_plane, true).into(), false),
            state @ (S::Established(_)
            | S::AwaitingReleaseComplete(_)
            | S::AwaitingResourceSetup(_)
            | S::AwaitingUplinkSwitch(_)
            | S::AwaitingResourceRelease(_)
            | S::AwaitingN4Establishment(_)
            | S::AwaitingRates(_)
            | S::AwaitingClassifier(_)
            | S::AwaitingDownlinkSwitch(_)
            | S::AwaitingBuffering(_))
                if has_upfs =>
            {
                (state, false)
            }
            // The AMF gets no answer, and repeats its request.
            S::AwaitingN4Modification(state) if has_upfs => (S::established(state.user_plane), false),
            S::AwaitingPathSwitch(state) if has_upfs => (S::established(state.user_plane), false),
            S::AwaitingForwardingTunnel(state) if has_upfs => (state.without_reply(), false),
            S::AwaitingFlowMobility(state) if has_upfs => (S::established(state.user_plane), false),
            state if state.is_changing() || matches!(state, S::Established(_)) => {
                self.timers.expire(SessionTimer::Guard);
                let user_plane = state.into_user_plane();
                (user_plane.map_or(S::Over, |it| AwaitingRestoration::new(it, true).into()), false)
            }
            state => {
                let user_plane = state.into_user_plane().filter(|_| has_upfs);
                (user_plane.map_or(S::Over, S::established), true)
            }
        };
        self.place_state(state);
        ends
    }
}
