//! Deletions that a UPF has refused, because of congestion or a failure of its own: the session would stay there, and its address be given to
//! another UE. They are sent again after the next heartbeat, some times.

use super::transaction::{Pending, Purpose, WINDOW};
use super::{N4Gateway, Peer};
use crate::kit::Level;
use pith_pfcp::Message;
use pith_pfcp::ie::Cause;
use pith_pfcp::message::SessionDeletionRequest;
use pith_types::Seid;

/// Deletions that are recorded for a UPF; further ones are not repeated.
const MAX_REFUSED: usize = 4096;

/// How often a deletion is repeated.
const REPETITIONS: u8 = 6;

/// A deletion that a UPF has refused.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    seid: Seid,
    request: SessionDeletionRequest,
    /// The repetition that was refused; 0 for the SMF's request.
    repetition: u8,
}

impl N4Gateway {
    /// Records a deletion that the UPF has refused.
    pub(super) fn note_refused(&mut self, peer: usize, pending: &Pending, response: &Message) {
        let Message::SessionDeletionResponse(response) = response else { return };
        let is_final = response.cause.is_acceptance()
            || matches!(response.cause, Cause::SessionContextNotFound | Cause::NoEstablishedPfcpAssociation);
        if is_final {
            return;
        }
        let Some((seid, Message::SessionDeletionRequest(request))) = pending.request() else { return };
        let repetition = match pending.purpose {
            Purpose::Leftover { repetition } => repetition,
            _ => 0,
        };
        let Some(slot) = self.peers.get_mut(peer) else { return };
        let is_given_up = repetition == REPETITIONS || slot.refused.len() == MAX_REFUSED;
        if !is_given_up {
            slot.refused.push(Refused { seid, request, repetition });
        }
        if is_given_up || repetition == 0 {
            let (name, cause) = (self.name(peer), response.cause);
            let next = if is_given_up { "it stays there" } else { "the SMF tries again" };
            self.event(Level::Warn, format!("UPF {name} does not delete a session ({cause:?}): {next}"));
        }
    }

    /// The UPF has answered a heartbeat: sends the deletions again that it has refused, as many as its receive buffer holds.
    pub(super) fn repeat_deletions(&mut self, peer: usize) {
        let Some(Peer { refused, .. }) = self.peers.get_mut(peer) else { return };
        let due: Vec<Refused> = refused.drain(..refused.len().min(WINDOW)).collect();
        for Refused { seid, request, repetition } in due {
            let deletion = Message::SessionDeletionRequest(request);
            self.request(peer, Purpose::Leftover { repetition: repetition + 1 }, seid, &deletion);
        }
    }
}
