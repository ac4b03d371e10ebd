//! Two UPFs in the path of a session: step 10 of its establishment (TS 23.502 4.3.2.2.1) goes on after the anchor.
//!
//! ```text
//!         AwaitingN4Establishment       <─ anchor: its tunnel
//!         AwaitingFrontEstablishment    <─ UPF before it: its tunnels towards gNB and anchor
//!         AwaitingN9                    <─ anchor, told where downlink packets go
//!         AwaitingTunnel                as with one UPF
//! ```
//!
//! Without an intermediate UPF that is needed there is no session; without a classifier there is one, whose packets
//! all go to the anchor.

use super::super::context::{Front, State, UpfSession};
use super::super::error::EstablishmentError;
use super::super::n4::Leaving;
use super::super::selection::FrontPlan;
use super::super::{Smf, n4, n9};
use super::establishment::accepted;
use crate::kit::{Key, Level, N4Error, Outbox};
use pith_pfcp::Message;
use pith_pfcp::ie::{ApplyAction, Cause as N4Cause};
use pith_types::Seid;

impl Smf {
    /// Asks the UPF between gNB and anchor (TS 23.502 4.3.2.2.1 step 10a).
    pub(in crate::smf) fn ask_front(&mut self, key: Key, plan: FrontPlan, out: &mut Outbox) {
        let local = self.upfs.info(plan.upf).map(|info| info.local_address);
        let Some(context) = self.contexts.get_mut(key) else { return };
        let (Some(local), Some(anchor), Some(address)) = (local, context.anchor, context.address) else {
            let error = EstablishmentError::UserPlane("a UPF was lost".into());
            return self.front_refused(key, &plan, error, out);
        };
        let message = n9::establishment(context, &plan, anchor.tunnel, (address, local), ApplyAction::BUFF);
        let upf = plan.upf;
        context.state = State::AwaitingFrontEstablishment(plan);
        self.ask_upf(key, upf, Seid(0), message, out);
    }

    /// The UPF between gNB and anchor answered (step 10b): the anchor is told of it.
    pub(in crate::smf) fn front_established(
        &mut self,
        key: Key,
        plan: FrontPlan,
        result: Result<Message, N4Error>,
        out: &mut Outbox,
    ) {
        let (seid, (tunnel, n9)) = match accepted(plan.upf, result, n9::tunnels, out) {
            Ok(accepted) => accepted,
            Err(error) => return self.front_refused(key, &plan, error, out),
        };
        let Some(context) = self.contexts.get_mut(key) else { return };
        let session = UpfSession { upf: plan.upf, seid, tunnel };
        context.front = Some(Front {
            session,
            n9,
            is_needed: plan.is_needed,
            is_ending: false,
            destinations: plan.destinations,
        });
        context.state = State::AwaitingN9;
        if let Some(anchor) = context.anchor {
            self.ask_upf(key, anchor.upf, anchor.seid, n4::activation(n9, Leaving::Silently), out);
        }
    }

    fn front_refused(&mut self, key: Key, plan: &FrontPlan, error: EstablishmentError, out: &mut Outbox) {
        if plan.is_needed {
            return self.try_another_upf(key, plan.upf, error, out);
        }
        self.log(key, Level::Warn, out, |_| format!("no local breakout: {error}"));
        self.tell_ue_and_gnb(key, out);
    }

    /// The anchor answered: the path stands.
    pub(in crate::smf) fn n9_stands(&mut self, key: Key, result: Result<Message, N4Error>, out: &mut Outbox) {
        match modified(result) {
            Ok(()) => self.tell_ue_and_gnb(key, out),
            Err(why) => self.fail(key, &EstablishmentError::UserPlane(why), out),
        }
    }
}

/// Whether a UPF took new rules, and why not.
pub(in crate::smf) fn modified(result: Result<Message, N4Error>) -> Result<(), String> {
    match result {
        Ok(Message::SessionModificationResponse(response)) if response.cause == N4Cause::RequestAccepted => {
            Ok(())
        }
        Ok(Message::SessionModificationResponse(response)) => {
            Err(format!("the UPF refuses: {:?}", response.cause))
        }
        Ok(_) => Err("an answer to another request".into()),
        Err(error) => Err(error.to_string()),
    }
}
