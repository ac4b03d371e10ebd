//! Sessions that are only in a store between transactions (design section 6, `stateless`).
//!
//! The shell loads the session that an input names before it delivers the input. A session of a lost UPF ends when the shell has
//! put it back.

use super::Smf;
use super::context::SmContext;
use super::context::document::unpack;
use super::procedure::{State, establishment};
use super::selection::Upfs;
use crate::kit::document::{Names, UnpackError};
use crate::kit::{Input, Instant, Key, N4Input, Outbox, Timer, UpfHandle};
use pith_sbi::Request;
use pith_types::ContextId;
use std::sync::Arc;

impl Smf {
    /// The session that an input is for.
    pub(super) fn context_named(&self, input: &Input) -> Option<ContextId> {
        match input {
            Input::Request { request, .. } => self.context_of_request(request),
            Input::Reply { tag, .. } => self.sessions.id(Key::from_u64(tag.owner)),
            Input::N4(input) => match &**input {
                N4Input::Response { tag, .. } => self.sessions.id(Key::from_u64(tag.owner)),
                N4Input::Request { seid, .. } => {
                    Some(ContextId { block: seid.block(), number: seid.own() as u32 })
                }
                _ => None,
            },
            Input::Timer(key) if matches!(key.timer, Timer::LostSessions | Timer::RestoredContexts) => None,
            Input::Timer(key) => self.sessions.id(Key::from_u64(key.owner)),
            Input::N2(_) | Input::Routed { .. } | Input::Stored { .. } => None,
        }
    }

    fn context_of_request(&self, request: &Request) -> Option<ContextId> {
        let reference = match request {
            // An earlier session with the same identity ends first.
            Request::PostSmContexts(request) => {
                let (ue, id) = (establishment::identity_of(&request.body)?, request.body.pdu_session_id?);
                return self.sessions.id(self.shared.index.find(&ue, id)?);
            }
            Request::UpdateSmContext(request) => &request.sm_context_ref,
            Request::ReleaseSmContext(request) => &request.sm_context_ref,
            Request::SmPolicyUpdateNotify(notification) => notification.uri.id(),
            Request::SmPolicyTerminateNotify(notification) => notification.uri.id(),
            Request::SdmChangeNotification(notification) => notification.uri.id(),
            Request::DeregistrationNotification(notification) => notification.uri.id(),
            Request::N1N2TransferFailureNotification(notification) => notification.uri.id(),
            _ => return None,
        };
        self.shared.references.id(reference)
    }

    /// Deletes the copy of a stored session that waits for UE or gNB, or for nothing.
    pub(super) fn drop_session(&mut self, id: ContextId) -> bool {
        let Some(key) = self.shared.ids.find(id).filter(|_| self.tracker.is_current(id)) else {
            return false;
        };
        let Some(session) = self.sessions.view(key) else { return !self.sessions.is_resident(key) };
        if is_in_transaction(&session) {
            return false;
        }
        self.sessions.drop_copy(key);
        true
    }

    /// Ends a dropped session whose document is lost. Its address stays in use until the process ends: only the document has it.
    pub(super) fn forget_session(&mut self, id: ContextId) {
        let Some(key) = self.shared.ids.find(id) else { return };
        if self.sessions.abandon(key).is_some() {
            self.shared.index.free_all(key);
            self.awaited.remove(&key);
            self.end(id);
        }
    }

    /// Puts a session back.
    pub(super) fn put_session(
        &mut self,
        now: Instant,
        id: ContextId,
        document: &[u8],
        out: &mut Outbox,
    ) -> Result<(), UnpackError> {
        let Some(key) = self.shared.ids.find(id) else { return Ok(()) };
        if self.sessions.mark_of_absent(key).is_some() {
            let lost = self.awaited.get(&key).map_or(&[][..], Vec::as_slice);
            let session = unpack(document, (key, id), &FormerUpfs { lost, upfs: &self.shared.upfs })?;
            self.sessions.put(key, Box::new(session));
            for (upf, _) in self.awaited.remove(&key).unwrap_or_default() {
                self.end_lost_session(now, (key, upf), out);
            }
            self.sessions.pack_idle();
        }
        Ok(())
    }
}

/// The UPFs of a session that was dropped: the document names a UPF that was lost since, even if it has an association again.
struct FormerUpfs<'a> {
    lost: &'a [(UpfHandle, Arc<str>)],
    upfs: &'a Upfs,
}

impl Names for FormerUpfs<'_> {
    fn upf(&self, name: &str) -> Option<UpfHandle> {
        let lost = self.lost.iter().find(|(_, lost)| **lost == *name).map(|(upf, _)| *upf);
        lost.or_else(|| self.upfs.upf(name))
    }
}

/// Whether the session has a request to answer, or waits for another NF or a UPF.
pub(super) fn is_in_transaction(session: &SmContext) -> bool {
    let waits_outside = matches!(session.state(), State::Established(_) | State::AwaitingReleaseComplete(_));
    let awaits_nf = session.subscription_change.as_ref().is_some_and(|change| change.awaits_nf());
    !waits_outside || awaits_nf || session.replies_owed() > 0 || session.deletion.is_some()
}
