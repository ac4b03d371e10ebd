//! PDU session release, by either side (TS 24.501 6.3.3, 6.4.3).
//!
//! ```text
//!  UE                                  SMF
//!   |    PDU SESSION RELEASE REQUEST -> |   T3582; if the UE starts the release
//!   | <- PDU SESSION RELEASE COMMAND    |   with the UE's PTI, or with 0 if the network starts it
//!   |    PDU SESSION RELEASE COMPLETE ->|
//! ```

use super::Procedure;
use crate::ue::{Event, SessionFailure, State, Ue};
use pith_nas::gsm::{
    PduSessionReleaseCommand, PduSessionReleaseComplete, PduSessionReleaseReject, PduSessionReleaseRequest,
};
use pith_nas::{GsmCause, GsmMessage};

impl Ue {
    /// The user releases a session. Ignored if its release is in progress. Its modification ends.
    pub(in crate::ue) fn release_session(&mut self, id: u8) {
        let is_connected = self.state == State::Registered && self.is_connected();
        if is_connected {
            self.sessions.abort_modification(id);
        }
        if self.sessions.is_changing(id) && self.sessions.find(id).is_some() {
            return;
        }
        if !is_connected || self.sessions.find(id).is_none() {
            return self.event(Event::SessionFailed(id, SessionFailure::NotPossible));
        }
        self.begin_transaction(id, Procedure::Release);
    }

    /// Sends PDU SESSION RELEASE REQUEST (TS 24.501 6.4.3.2).
    pub(super) fn send_release_request(&mut self, id: u8, pti: u8) {
        let mut request = PduSessionReleaseRequest::new();
        request.cause = Some(GsmCause::RegularDeactivation);
        self.send_gsm(&GsmMessage::new(id, pti, request));
    }

    /// PDU SESSION RELEASE COMMAND (TS 24.501 6.3.3.3). Its PTI is that of a release that the UE
    /// requested, or 0.
    pub(super) fn receive_release_command(&mut self, id: u8, pti: u8, command: &PduSessionReleaseCommand) {
        let before = self.sessions.last_release;
        let asked_for = self.sessions.take(id, pti, |p| *p == Procedure::Release).is_some();
        if !asked_for && before == Some((id, pti)) && self.sessions.find(id).is_none() {
            // The PTI is not released at once: the network has retransmitted the command, or the UE its request.
            return self.send_gsm(&GsmMessage::new(id, pti, PduSessionReleaseComplete::new()));
        }
        if pti != 0 && !asked_for {
            return self.refuse_pti(id, pti, "PduSessionReleaseCommand");
        }
        let known = asked_for || self.sessions.find(id).is_some();
        if !known {
            self.violation(
                "TS 24.501 7.3.2",
                format!("PduSessionReleaseCommand for session {id}, which is not active"),
            );
            return self.send_gsm_status(id, pti, GsmCause::InvalidPduSessionIdentity);
        }
        if asked_for && command.cause != GsmCause::RegularDeactivation {
            let text = format!("requested release has 5GSM cause #{}", command.cause.code());
            self.violation("TS 24.501 6.3.3.2", text);
        }
        self.send_gsm(&GsmMessage::new(id, pti, PduSessionReleaseComplete::new()));
        self.drop_session(id);
    }

    /// PDU SESSION RELEASE REJECT (TS 24.501 6.4.3.4).
    pub(super) fn receive_release_reject(&mut self, id: u8, pti: u8, reject: &PduSessionReleaseReject) {
        if self.sessions.take(id, pti, |p| *p == Procedure::Release).is_none() {
            return self.refuse_pti(id, pti, "PduSessionReleaseReject");
        }
        match reject.cause {
            GsmCause::InvalidPduSessionIdentity => self.drop_session(id),
            cause => self.event(Event::SessionFailed(id, cause.into())),
        }
    }
}
