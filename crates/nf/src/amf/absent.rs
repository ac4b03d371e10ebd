//! UE contexts that are only in a store between transactions (design section 6, `stateless`).
//!
//! The shell loads the context that an input names ([`Amf::context_named`]) before it delivers the input. What an input
//! requires of further contexts is deferred until these are back: connections of a lost gNB ([`Amf::connection_lost`]), two
//! contexts of one subscriber, and an operator's order.

use super::context::{DeferredAction, UeContext};
use super::document::{self, Unpacked};
use super::n2::release_connection;
use super::procedure::deregistration::{self, Reason};
use super::procedure::subscription_change;
use super::residency::is_stored;
use super::{Amf, consumer};
use crate::kit::document::UnpackError;
use crate::kit::{GnbHandle, Input, Instant, Key, N2Input, Outbox, Timer, TimerKey};
use pith_nas::{TemporaryIdentity, peek_temporary_identity};
use pith_ngap::{Cause, CauseNas, Peek};
use pith_sbi::Request;
use pith_types::{ContextId, FiveGTmsi};

/// What is deferred until an absent context is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// As [`DeferredAction::Supersede`].
    Supersede { new: Key, old: Key },
    /// The UE's connection is lost.
    ConnectionLost(Key),
    /// An operator deregisters the UE.
    Deregister(Reason),
}

impl Amf {
    /// The context that an input is for.
    pub(super) fn context_named(&self, input: &Input) -> Option<ContextId> {
        match input {
            Input::N2(N2Input::Pdu { gnb, pdu, .. }) => self.ues.id(self.ue_of_pdu(*gnb, pdu)?),
            Input::N2(_) | Input::N4(_) | Input::Stored { .. } => None,
            Input::Request { request, .. } => self.context_of_request(request),
            Input::Reply { tag, .. } | Input::Routed { tag, .. } => self.ues.id(Key::from_u64(tag.owner)),
            Input::Timer(TimerKey {
                timer: Timer::LostConnections | Timer::RestoredContexts | Timer::AbsentGnbs,
                ..
            }) => None,
            Input::Timer(TimerKey { owner, timer: Timer::NgapGuard }) => {
                self.ues.id(self.shared.connections.get(Key::from_u64(*owner))?.ue?)
            }
            Input::Timer(TimerKey { owner, .. }) => self.ues.id(Key::from_u64(*owner)),
        }
    }

    /// The UE that a PDU names: by an id of its NG connection, or in INITIAL UE MESSAGE by its temporary identity.
    fn ue_of_pdu(&self, gnb: GnbHandle, pdu: &[u8]) -> Option<Key> {
        let peeked = pith_ngap::peek(pdu)?;
        let connections = &self.shared.connections;
        // Of any gNB: the target of an Xn handover names the UE by the id of its connection at the source, in PATH SWITCH REQUEST and in what
        // follows while that waits for the context; and messages of the source may still be in transit.
        if let Some(id) = peeked.amf_ue_ngap_id {
            return connections.get(connections.find(id)?)?.ue;
        }
        let named = self.tmsi_in_nas(&peeked);
        let by_ran_id = || connections.get(connections.find_by_ran(gnb, peeked.ran_ue_ngap_id?)?)?.ue;
        let ue_of = |tmsi: FiveGTmsi| self.shared.index.find_tmsi(tmsi);
        let in_ie = || peeked.s_tmsi.and_then(|s_tmsi| self.own_tmsi(s_tmsi)).and_then(ue_of);
        named.and_then(ue_of).or_else(in_ie).or_else(by_ran_id)
    }

    /// The 5G-TMSI of this AMF in a NAS message.
    fn tmsi_in_nas(&self, peeked: &Peek<'_>) -> Option<FiveGTmsi> {
        match peeked.nas_pdu.and_then(peek_temporary_identity)? {
            TemporaryIdentity::FiveGGuti(guti) => self.shared.config.serves(&guti.guami).then_some(guti.tmsi),
            TemporaryIdentity::FiveGSTmsi(s_tmsi) => self.own_tmsi(s_tmsi),
        }
    }

    /// The 5G-TMSI of this AMF in a NAS message, or else beside it.
    pub(super) fn tmsi_named(&self, peeked: &Peek<'_>) -> Option<FiveGTmsi> {
        self.tmsi_in_nas(peeked).or_else(|| self.own_tmsi(peeked.s_tmsi?))
    }

    pub(super) fn context_of_request(&self, request: &Request) -> Option<ContextId> {
        let reference = match request {
            Request::N1N2MessageTransfer(request) => return self.ues.id(self.find_receiver(request)?),
            Request::UeContextTransfer(request) => {
                return self.ues.id(self.find_context(&request.ue_context_id)?);
            }
            Request::RegistrationStatusUpdate(request) => {
                return self.ues.id(self.find_context(&request.ue_context_id)?);
            }
            Request::ReleaseUeContext(request) => {
                return self.ues.id(self.find_arrival(&request.ue_context_id)?);
            }
            Request::CreateUeContext(request) => {
                return self.ues.id(self.find_context(&request.ue_context_id)?);
            }
            Request::N1MessageNotify(notification) => {
                let container = notification.body.registration_ctxt_container.as_ref()?;
                let supi = container.ue_context.supi.as_ref()?;
                return self.ues.id(self.shared.index.find_supi(supi)?);
            }
            Request::N2InfoNotify(notification) => {
                let name = self.shared.references.name(notification.uri.id())?;
                return consumer::of_handover_name(name).map(|(ue, _)| ue);
            }
            Request::SmContextStatusNotify(notification) => {
                let name = self.shared.references.name(notification.uri.id())?;
                return consumer::of_session_name(name).map(|(ue, _, _)| ue);
            }
            Request::DeregistrationNotification(notification) => notification.uri.id(),
            Request::SdmChangeNotification(notification) => notification.uri.id(),
            Request::AmPolicyUpdateNotify(notification) => notification.uri.id(),
            Request::AmPolicyTerminateNotify(notification) => notification.uri.id(),
            _ => return None,
        };
        self.shared.references.id(reference)
    }

    /// Deletes the copy of a stored UE whose transaction is over.
    pub(super) fn drop_ue(&mut self, id: ContextId) -> bool {
        let Some(key) = self.shared.ids.find(id).filter(|_| self.tracker.is_current(id)) else {
            return false;
        };
        let Some(ue) = self.ues.view(key) else { return !self.ues.is_resident(key) };
        if ue.half_open.is_some() || ue.is_in_transaction() || awaits_reply(&ue) || !is_stored(&ue) {
            return false;
        }
        // Restored, and not resumed yet: its document is of the former run.
        if ue.connection.is_none() && ue.timers().is_empty() {
            return false;
        }
        if !ue.undelivered.is_empty() && ue.connection.is_some() {
            // Delivered when its gNB has returned (`n2/setup.rs`).
            return false;
        }
        if let Some(old) = self.superseding.get(&key) {
            if self.awaited.contains_key(old) {
                return false;
            }
            // It does not come back.
            self.superseding.remove(&key);
        }
        self.ues.drop_copy(key);
        true
    }

    /// Puts a UE back, and performs what was deferred until then.
    pub(super) fn put_ue(
        &mut self,
        now: Instant,
        id: ContextId,
        octets: &[u8],
        out: &mut Outbox,
    ) -> Result<(), UnpackError> {
        let Some(key) = self.shared.ids.find(id) else { return Ok(()) };
        let Some(connection) = self.ues.mark_of_absent(key) else { return Ok(()) };
        let Unpacked { ue, .. } = document::unpack(octets, (key, id), &self.shared.gnbs)?;
        self.ues.put(key, Box::new(UeContext { connection, ..ue }));
        for awaited in self.awaited.remove(&key).unwrap_or_default() {
            match awaited {
                Awaited::Supersede { new, old } => {
                    self.shared.after.push(DeferredAction::Supersede { new, old });
                }
                Awaited::ConnectionLost(connection) => self.connection_lost(now, connection, out),
                Awaited::Deregister(reason) => self.deregister(now, key, reason, out),
            }
        }
        self.settle(now, out);
        self.ues.pack_idle();
        Ok(())
    }

    /// Defers an action on a UE whose context is absent; returns whether it did.
    pub(super) fn defers(&mut self, key: Key, awaited: Awaited) -> bool {
        let is_absent = self.ues.misses(key);
        if is_absent {
            let actions = self.awaited.entry(key).or_default();
            // A gNB may repeat its NG RESET while the store does not answer.
            if !actions.contains(&awaited) {
                actions.push(awaited);
            }
        }
        is_absent
    }

    /// Ends a dropped UE whose document is lost.
    pub(super) fn forget_ue(&mut self, now: Instant, id: ContextId, out: &mut Outbox) {
        let Some(key) = self.shared.ids.find(id) else { return };
        let Some(connection) = self.ues.abandon(key) else { return };
        self.end(id);
        self.shared.index.free_all(key);
        self.awaited.remove(&key);
        self.superseding.retain(|new, old| *new != key && *old != key);
        let Some(connection) = connection else { return };
        self.with_env(now, out, |env| {
            release_connection(env, connection, Cause::Nas(CauseNas::unspecified));
            if let Some(connection) = env.connections.get_mut(connection) {
                connection.ue = None;
            }
        });
        self.settle(now, out);
    }

    /// Deregisters a UE for an operator.
    pub(super) fn deregister(&mut self, now: Instant, key: Key, reason: Reason, out: &mut Outbox) {
        if self.defers(key, Awaited::Deregister(reason)) {
            return;
        }
        self.with_ue(now, key, out, |ue, env| deregistration::by_network(ue, env, reason));
    }
}

/// Whether a reply is due that no procedure waits for.
fn awaits_reply(ue: &UeContext) -> bool {
    ue.sdm_call.is_some() || subscription_change::awaits_data(ue)
}
