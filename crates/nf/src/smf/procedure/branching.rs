//! A classifier and local anchor goes into a session that lives, and out again (TS 23.502 4.3.5.4, 4.3.5.5; TS 23.501
//! 5.6.4.2), at an operator's wish.
//!
//! ```text
//!  operator ─> branch
//!         AwaitingClassifier            <─ UPF: its tunnels towards gNB and anchor
//!         AwaitingSwitch                <─ anchor: downlink goes there now, End Marker into the old tunnel
//!         AwaitingGnb                   <─ AMF, gNB: uplink goes there too               SbiGuard
//!         Established
//!  operator ─> unbranch
//!         AwaitingGnb                   <─ AMF, gNB: uplink goes to the anchor now       SbiGuard
//!         AwaitingSwitch                <─ anchor: downlink goes to the gNB, End Marker by the classifier
//!         Established                   PathGrace: then the classifier's session is deleted
//! ```
//!
//! No packet is lost: both UPFs take what comes until the end. Of a gNB that refuses the classifier, downlink packets go
//! back the way they came, and the classifier goes.
//!
//! Of an idle UE there is no gNB to ask: the next activation tells the new tunnel. A classifier goes out when the UE is
//! connected next, for it may keep packets.

use super::super::config::Network;
use super::super::context::{Front, State, Towards, UpfSession};
use super::super::error::BranchingError;
use super::super::n4::Leaving;
use super::super::selection::FrontPlan;
use super::super::{NOBODY, Smf, n2, n4, n9};
use super::chain::modified;
use super::establishment::{accepted, transfer};
use crate::kit::{Key, Level, N4Effect, N4Error, Outbox, Target, Timer, UpfHandle};
use pith_pfcp::Message;
use pith_pfcp::ie::ApplyAction;
use pith_sbi::namf_communication::{N1N2MessageTransfer, NgapIeType};
use pith_sbi::{Cause, Reply};
use pith_types::{Seid, Supi};

impl Smf {
    /// Puts a classifier into the session; what comes of it shows in the session (TS 23.502 4.3.5.4).
    pub(in crate::smf) fn branch(
        &mut self,
        key: Key,
        upf: &str,
        destinations: &[Network],
        out: &mut Outbox,
    ) -> Result<(), BranchingError> {
        let context = self.contexts.get(key).ok_or(BranchingError::Busy)?;
        let (State::Established, None) = (&context.state, context.leaving) else {
            return Err(BranchingError::Busy);
        };
        if context.front.is_some() {
            return Err(BranchingError::HasFront);
        }
        let anchor = context.anchor.ok_or(BranchingError::Busy)?;
        let upf = self.upfs.classifier(context, anchor.upf, upf)?;
        let local = self.upfs.info(upf).map(|info| info.local_address).ok_or(BranchingError::Busy)?;
        let address = context.address.ok_or(BranchingError::Busy)?;
        let plan = FrontPlan { upf, is_needed: false, destinations: destinations.to_vec() };
        let otherwise = ApplyAction::BUFF | ApplyAction::NOCP;
        let message = n9::establishment(context, &plan, anchor.tunnel, (address, local), otherwise);
        self.set_state(key, State::AwaitingClassifier(plan));
        self.ask_upf(key, upf, Seid(0), message, out);
        Ok(())
    }

    /// Takes the classifier out of the session, or has it go when the UE is connected next (TS 23.502 4.3.5.5).
    pub(in crate::smf) fn unbranch(&mut self, key: Key, out: &mut Outbox) -> Result<(), BranchingError> {
        let context = self.contexts.get_mut(key).ok_or(BranchingError::Busy)?;
        let (State::Established, None) = (&context.state, context.leaving) else {
            return Err(BranchingError::Busy);
        };
        let is_connected = context.gnb.is_some();
        let front = context.front.as_mut().ok_or(BranchingError::NoClassifier)?;
        if front.is_needed {
            return Err(BranchingError::IsNeeded);
        }
        front.is_ending = true;
        if is_connected {
            self.tell_gnb(key, Towards::Anchor, out);
        }
        Ok(())
    }

    /// Where the UE is connected, a classifier that was to go goes, and a gNB that was told an older tunnel is told the
    /// one that holds.
    fn tend_path(&mut self, key: Key, out: &mut Outbox) {
        let Some(context) = self.contexts.get(key) else { return };
        let (State::Established, Some(_)) = (&context.state, context.gnb) else { return };
        if context.front.as_ref().is_some_and(|front| front.is_ending) {
            return self.tell_gnb(key, Towards::Anchor, out);
        }
        let uplink = context.at_n3().map(|session| session.tunnel);
        if context.told == uplink {
            return;
        }
        if context.front.is_some() {
            self.tell_gnb(key, Towards::Classifier, out);
        } else {
            let request = modify_request(context, context.at_n3());
            let target = Target::Root(context.amf.root.clone());
            request.into_iter().for_each(|request| out.call(NOBODY, target.clone(), request.into()));
            self.contexts.get_mut(key).into_iter().for_each(|context| context.told = uplink);
        }
    }

    /// The classifier's UPF answered (TS 23.502 4.3.5.4 step 3).
    pub(in crate::smf) fn classifier_established(
        &mut self,
        key: Key,
        plan: FrontPlan,
        result: Result<Message, N4Error>,
        out: &mut Outbox,
    ) {
        let accepted = accepted(plan.upf, result, n9::tunnels, out);
        let Some(context) = self.contexts.get_mut(key) else { return };
        match accepted {
            Ok((seid, (tunnel, n9))) => {
                let session = UpfSession { upf: plan.upf, seid, tunnel };
                let destinations = plan.destinations;
                context.front = Some(Front { session, n9, is_needed: false, is_ending: false, destinations });
                self.switch(key, Towards::Classifier, out);
            }
            Err(error) => {
                context.state = State::Established;
                self.log(key, Level::Warn, out, |_| format!("no classifier: {error}"));
                self.go_on(key, out);
            }
        }
    }

    /// PDU SESSION RESOURCE MODIFY REQUEST by the AMF: where uplink packets go (TS 23.502 4.3.5.4 step 6).
    fn tell_gnb(&mut self, key: Key, towards: Towards, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        let end = match towards {
            Towards::Classifier => context.at_n3(),
            Towards::Anchor => context.anchor,
        };
        let Some(request) = modify_request(context, end) else { return };
        context.told = end.map(|session| session.tunnel);
        context.state = State::AwaitingGnb(towards);
        let target = Target::Root(context.amf.root.clone());
        out.start(key.to_u64(), Timer::SbiGuard, self.config.guard);
        self.call(key, target, request.into(), out);
    }

    /// What the AMF says to it: a UE that is idle meanwhile has no gNB to be told (TS 29.518 5.2.2.3.1.2).
    pub(in crate::smf) fn gnb_asked(&mut self, key: Key, towards: Towards, reply: &Reply, out: &mut Outbox) {
        match reply {
            Ok(_) => {}
            Err(problem) if problem.cause() == Some(&Cause::UeInCmIdleState) => {
                self.gnb_moved(key, towards, out);
            }
            Err(problem) => self.gnb_refused(key, towards, &problem.to_string(), out),
        }
    }

    /// Uplink packets go where they should, or will with the next activation: to the classifier they go last, to the
    /// anchor first (TS 23.502 4.3.5.4, 4.3.5.5).
    pub(in crate::smf) fn gnb_moved(&mut self, key: Key, towards: Towards, out: &mut Outbox) {
        out.stop(key.to_u64(), Timer::SbiGuard);
        match towards {
            Towards::Classifier => self.path_stands(key, towards, out),
            Towards::Anchor => self.switch(key, towards, out),
        }
    }

    /// Uplink packets stay where they were: all go by the anchor, or all by the classifier.
    pub(in crate::smf) fn gnb_refused(&mut self, key: Key, towards: Towards, why: &str, out: &mut Outbox) {
        out.stop(key.to_u64(), Timer::SbiGuard);
        self.log(key, Level::Warn, out, |_| format!("uplink does not move to the {towards}: {why}"));
        let Some(context) = self.contexts.get_mut(key) else { return };
        match towards {
            Towards::Classifier => {
                context.told = context.anchor.map(|session| session.tunnel);
                self.switch(key, Towards::Anchor, out);
            }
            Towards::Anchor => {
                context.told = context.at_n3().map(|session| session.tunnel);
                context.front.iter_mut().for_each(|front| front.is_ending = false);
                context.state = State::Established;
                self.go_on(key, out);
            }
        }
    }

    /// The gNB does not answer, though it may have heard: it is told again what holds.
    pub(in crate::smf) fn gnb_silent(&mut self, key: Key, towards: Towards, out: &mut Outbox) {
        self.gnb_refused(key, towards, "the gNB does not answer", out);
        self.contexts.get_mut(key).into_iter().for_each(|context| context.told = None);
    }

    /// Tells the anchor where downlink packets go (TS 23.502 4.3.5.4 step 4, 4.3.5.5).
    fn switch(&mut self, key: Key, towards: Towards, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        let leaving = if context.gnb.is_some() { Leaving::WithEndMarker } else { Leaving::Silently };
        let to = match (towards, &context.front) {
            (Towards::Classifier, Some(front)) => Some(front.n9),
            _ => context.gnb,
        };
        let message = to.map_or_else(n4::deactivation, |to| n4::activation(to, leaving));
        context.state = State::AwaitingSwitch(towards);
        if let Some(anchor) = context.anchor {
            self.ask_upf(key, anchor.upf, anchor.seid, message, out);
        }
    }

    /// The anchor answered.
    pub(in crate::smf) fn switched(
        &mut self,
        key: Key,
        towards: Towards,
        result: Result<Message, N4Error>,
        out: &mut Outbox,
    ) {
        self.set_state(key, State::Established);
        if let Err(why) = modified(result) {
            self.log(key, Level::Warn, out, |_| format!("the anchor is lost: {why}"));
            return self.end_and_tell_amf(key, out);
        }
        let Some(context) = self.contexts.get(key) else { return };
        match towards {
            // It was lost meanwhile.
            Towards::Classifier if context.front.is_none() => self.switch(key, Towards::Anchor, out),
            Towards::Classifier if context.gnb.is_some() => self.tell_gnb(key, towards, out),
            Towards::Classifier => self.path_stands(key, towards, out),
            Towards::Anchor => {
                self.leave_front(key, out);
                self.path_stands(key, towards, out);
            }
        }
    }

    fn path_stands(&mut self, key: Key, towards: Towards, out: &mut Outbox) {
        self.set_state(key, State::Established);
        self.log(key, Level::Info, out, |_| format!("packets go by the {towards}"));
        self.go_on(key, out);
    }

    /// The session stands again: what came meanwhile has its turn.
    pub(in crate::smf) fn go_on(&mut self, key: Key, out: &mut Outbox) {
        self.apply_held(key, out);
        self.tend_withdrawal(key, out);
        self.tend_lost_tunnel(key, out);
        self.tend_policy(key, out);
        self.tend_path(key, out);
        self.tend_waiting_data(key, out);
    }

    /// The classifier's session ends when what is on its way has passed.
    pub(in crate::smf) fn leave_front(&mut self, key: Key, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        context.leaving = context.front.take().map(|front| front.session);
        if context.leaving.is_some() {
            out.start(key.to_u64(), Timer::PathGrace, self.config.path_grace);
        }
    }

    /// What was on its way has passed.
    pub(in crate::smf) fn path_left(&mut self, key: Key, out: &mut Outbox) {
        let left = self.contexts.get_mut(key).and_then(|context| context.leaving.take());
        if let Some(UpfSession { upf, seid, .. }) = left {
            out.n4(N4Effect::Request { tag: NOBODY, upf, seid, message: n4::deletion() });
        }
    }

    /// A classifier's UPF is lost: all packets go by the anchor, which the gNB is told last. `false` if the session can't
    /// go on without it.
    pub(in crate::smf) fn classifier_lost(&mut self, key: Key, upf: UpfHandle, out: &mut Outbox) -> bool {
        let Some(context) = self.contexts.get_mut(key) else { return false };
        let is_spare =
            context.front.as_ref().is_some_and(|front| !front.is_needed && front.session.upf == upf);
        let awaits_anchor = matches!(context.state, State::AwaitingSwitch(_));
        let stands = matches!(context.state, State::Established | State::AwaitingGnb(_));
        if !is_spare || !(awaits_anchor || stands) {
            return false;
        }
        context.front = None;
        self.log(key, Level::Warn, out, |_| "the classifier is lost".to_owned());
        if stands {
            out.stop(key.to_u64(), Timer::SbiGuard);
            self.switch(key, Towards::Anchor, out);
        }
        true
    }

    /// The session of that identity, if it is here.
    pub(in crate::smf) fn session_of(&self, supi: &Supi, pdu_session_id: u8) -> Option<Key> {
        self.by_ue.get(&(supi.clone(), pdu_session_id)).copied()
    }

    fn set_state(&mut self, key: Key, state: State) {
        if let Some(context) = self.contexts.get_mut(key) {
            context.state = state;
        }
    }
}

/// N2 information that has the gNB send uplink packets to `end`. An idle UE is not paged for it.
fn modify_request(
    context: &super::super::context::SmContext,
    end: Option<UpfSession>,
) -> Option<N1N2MessageTransfer> {
    let information = n2::modify_request(end?.tunnel, context.gnb?);
    let mut request = transfer(context, None, Some((NgapIeType::PduResModReq, information)));
    request.body.skip_ind = Some(true);
    Some(request)
}
