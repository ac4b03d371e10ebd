//! Establishments that a UPF may still receive or answer after the SMF has given them up: the UPF is stopped for some seconds, or it has
//! lost the association, and a copy of the datagram arrives when it has another one. The UPF then has a session that no SM context knows.
//! Its response names the session, which is deleted.
//!
//! ```text
//!  SMF ── establishment ──────────────┐        UPF restarts
//!      <─ cause 72 to any request ─── │ ──     NoAssociation to the shard
//!      ── association setup ───────── │ ─>
//!      <─ association setup ───────── │ ──
//!                                     └─>      the session is established
//!      <─ response ───────────────────────
//!      ── deletion ──────────────────────>
//! ```
//!
//! A request to establish the same session again waits for the response, or for T1: if the former datagram overtook it, the UPF would replace
//! the session by one that is deleted.

use super::transaction::{Pending, Purpose};
use super::{N4Gateway, N4GatewayEffect, denies_association, t1};
use crate::kit::{Duration, Level, N4Error};
use pith_pfcp::Message;
use pith_pfcp::ie::Cause;
use pith_pfcp::message::SessionDeletionRequest;
use pith_types::Seid;

impl N4Gateway {
    /// Gives up a request whose association has ended. One that may establish a session is recorded for T1 more.
    pub(super) fn abandon(&mut self, peer: usize, sequence: u32) {
        let Some(pending) = self.transactions.remove(sequence) else { return };
        self.out.push(N4GatewayEffect::StopTimer(t1(sequence)));
        self.answer_shard(pending.purpose, N4Error::NoAssociation);
        if pending.may_establish() {
            if let Some(session) = pending.session() {
                self.former.note(sequence, session);
            }
            self.expect_late(peer, sequence, pending);
        }
    }

    /// The UPF has refused an establishment, because it has no association. Another copy of the request may follow.
    pub(super) fn expect_copy(&mut self, peer: usize, sequence: u32, pending: Pending) {
        if let Some(session) = pending.session().filter(|_| pending.was_retransmitted()) {
            self.former.note(sequence, session);
        }
        self.expect_late(peer, sequence, pending);
    }

    /// The UPF has not answered an establishment, and its association stands: a UPF that is stopped for some seconds has the copies in its
    /// receive buffer. If it is stopped for longer, it does not answer a heartbeat, and the association ends.
    pub(super) fn expect_very_late(&mut self, sequence: u32, pending: Pending) {
        let peer = self.peer_at(pending.to).filter(|_| pending.may_establish());
        let until = self.config.heartbeat + self.config.t1 * self.config.n1_transmissions;
        if let Some(peer) = peer {
            self.expect_until(peer, (sequence, pending), until);
        }
    }

    /// Records an establishment until T1 expires, for its response.
    fn expect_late(&mut self, peer: usize, sequence: u32, pending: Pending) {
        self.expect_until(peer, (sequence, pending), self.config.t1);
    }

    fn expect_until(&mut self, peer: usize, (sequence, pending): (u32, Pending), after: Duration) {
        self.transactions.keep_late(sequence, peer, pending);
        self.out.push(N4GatewayEffect::StartTimer { key: t1(sequence), after });
    }

    /// Handles the response to an establishment that was given up. The session that the UPF has is deleted, also if the
    /// association is not set up yet: its response may have been overtaken.
    pub(super) fn late_response(
        &mut self,
        peer: usize,
        (sequence, pending): (u32, Pending),
        message: &Message,
    ) {
        self.former.end(sequence);
        if denies_association(message) {
            return self.expect_copy(peer, sequence, pending);
        }
        let Message::SessionEstablishmentResponse(response) = message else { return };
        let Some(seid) = response.up_f_seid.filter(|_| response.cause == Cause::RequestAccepted) else {
            return;
        };
        let text =
            format!("UPF {} has established a session that was given up: it is deleted", self.name(peer));
        self.event(Level::Info, text);
        let deletion = Message::SessionDeletionRequest(SessionDeletionRequest::new());
        self.request(peer, Purpose::Leftover { repetition: 0 }, Seid(seid.seid), &deletion);
    }
}
