//! Checks of a downlink message before its procedure handles it (TS 24.501 4.4.4.2, 4.4.5, clause 7).

use super::security::{CheckFailure, SecurityContext};
use super::{Connection, Ue};
use pith_nas::header::{EPD_5GMM, EPD_5GSM};
use pith_nas::ie::IdentityType;
use pith_nas::{Fault, GmmCause, GmmMessage, NasError, Noted, SecurityHeaderType};

/// Whether a message was protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protection {
    /// Plain.
    None,
    /// Integrity protected with a correct MAC, and ciphered.
    Full,
}

impl Ue {
    /// Handles a NAS message from the radio.
    pub(super) fn receive_nas(&mut self, octets: &[u8]) {
        if self.connection == Connection::Idle {
            return self.violation("TS 24.501 5.3.1", "a NAS message to a UE in 5GMM-IDLE");
        }
        let &[epd, security, _, ..] = octets else {
            return self.violation("TS 24.501 7.2.1", "a NAS message too short for a message type");
        };
        match (epd, SecurityHeaderType::from_octet(security)) {
            (EPD_5GMM, SecurityHeaderType::Plain) => self.receive_plain(octets),
            (EPD_5GMM, SecurityHeaderType::IntegrityProtectedWithNewContext) => {
                self.receive_security_mode_command(octets);
            }
            (EPD_5GMM, SecurityHeaderType::IntegrityProtectedAndCiphered) => self.receive_protected(octets),
            (EPD_5GMM, header) => {
                self.violation("TS 24.501 4.4.5", format!("a downlink message with header {header:?}"));
            }
            (EPD_5GSM, _) => self.violation("TS 24.501 4.4.4.2", "a 5GSM message outside NAS transport"),
            (epd, _) => self.violation("TS 24.501 7.2", format!("protocol discriminator {epd:#04x}")),
        }
    }

    /// A plain message: only the listed types are accepted, and only until secure exchange is established.
    fn receive_plain(&mut self, octets: &[u8]) {
        let Some(message) = self.decode(octets) else { return };
        if self.connection == Connection::Secured {
            let text = format!("unprotected {} after secure exchange was established", message.name());
            return self.violation("TS 24.501 4.4.4.2", text);
        }
        if !is_accepted_plain(&message) {
            return self.violation("TS 24.501 4.4.4.2", format!("unprotected {}", message.name()));
        }
        self.receive_gmm(message, Protection::None);
    }

    fn receive_protected(&mut self, octets: &[u8]) {
        let Some(context) = &mut self.current_security_context else {
            return self
                .violation("TS 24.501 4.4.2.5", "a protected message to a UE without security context");
        };
        match context.open(octets) {
            Ok(plain) => {
                self.connection = Connection::Secured;
                if let Some(message) = self.decode(&plain) {
                    self.receive_gmm(message, Protection::Full);
                }
            }
            Err(failure) => self.note_check_failure(failure),
        }
    }

    pub(super) fn note_check_failure(&mut self, failure: CheckFailure) {
        let (clause, text) = match failure {
            CheckFailure::TooShort => {
                ("TS 24.501 7.2.1", "a protected message shorter than its header".into())
            }
            CheckFailure::Mac => ("TS 24.501 4.4.4.2", format!("wrong MAC{}", self.count_note())),
            CheckFailure::Replay { count } => {
                ("TS 24.501 4.4.3.2", format!("downlink NAS COUNT {count} was used twice"))
            }
            CheckFailure::Exhausted => ("TS 24.501 4.4.3.5", "downlink NAS COUNT wrapped around".into()),
        };
        self.violation(clause, text);
    }

    fn count_note(&self) -> String {
        let last = self.current_security_context.as_ref().and_then(SecurityContext::last_downlink);
        last.map_or_else(String::new, |count| format!(", after downlink NAS COUNT {count}"))
    }

    /// Decodes a plain message; errors are recorded and answered (TS 24.501 7.4, 7.5).
    pub(super) fn decode(&mut self, octets: &[u8]) -> Option<GmmMessage> {
        let mut notes = Vec::new();
        let message = GmmMessage::decode_with_notes(octets, &mut notes);
        for note in notes {
            let iei = note.iei;
            match note.what {
                Noted::Unknown => {}
                Noted::Repeated => self.violation("TS 24.501 7.6.3", format!("IE {iei:#04x} is repeated")),
                Noted::Malformed(why) => self.violation("TS 24.501 7.7.1", format!("IE {iei:#04x}: {why}")),
                Noted::OutOfSequence => {
                    self.violation("TS 24.501 7.6.2", format!("IE {iei:#04x} is out of sequence"));
                }
            }
        }
        message.map_err(|error| self.answer_undecodable(&error)).ok()
    }

    fn answer_undecodable(&mut self, error: &NasError) {
        let clause = match error.fault {
            Fault::TooShort => "TS 24.501 7.2.1",
            Fault::UnknownMessageType(_) => "TS 24.501 7.4",
            _ => "TS 24.501 7.5.1",
        };
        self.violation(clause, error.to_string());
        if let Some(cause) = error.gmm_cause() {
            self.send_status(cause);
        }
    }

    /// Dispatches a message to its procedure.
    fn receive_gmm(&mut self, message: GmmMessage, protection: Protection) {
        match message {
            GmmMessage::RegistrationAccept(accept) => self.receive_registration_accept(*accept),
            GmmMessage::RegistrationReject(reject) => self.receive_registration_reject(&reject),
            GmmMessage::DeregistrationAcceptUeOriginating(_) => self.receive_deregistration_accept(),
            GmmMessage::DeregistrationRequestUeTerminated(request) => {
                self.receive_deregistration_request(&request);
            }
            GmmMessage::ServiceAccept(accept) => self.receive_service_accept(&accept),
            GmmMessage::ServiceReject(reject) => self.receive_service_reject(&reject),
            GmmMessage::ConfigurationUpdateCommand(command) => self.receive_configuration_update(*command),
            GmmMessage::AuthenticationRequest(request) => self.receive_authentication_request(&request),
            GmmMessage::AuthenticationResult(result) => self.receive_authentication_result(&result),
            GmmMessage::AuthenticationReject(_) => self.receive_authentication_reject(protection),
            GmmMessage::IdentityRequest(request) => self.answer_identity_request(request.identity_type),
            GmmMessage::DlNasTransport(transport) => self.receive_dl_nas_transport(&transport),
            GmmMessage::GmmStatus(status) => {
                let text = format!("the AMF answered with 5GMM STATUS #{}", status.cause.code());
                self.violation("TS 24.501 5.4.6", text);
            }
            GmmMessage::SecurityModeCommand(_) => {
                let text = "SECURITY MODE COMMAND without header 'integrity protected with new context'";
                self.violation("TS 24.501 5.4.2.2", text);
            }
            other => self.report_unexpected_message(other.name()),
        }
    }

    /// A message that a UE never expects, or not in this state (TS 24.501 7.4).
    pub(super) fn report_unexpected_message(&mut self, name: &str) {
        self.violation("TS 24.501 7.4", format!("{name} in state {:?}", self.state));
        self.send_status(GmmCause::MessageTypeNotCompatibleWithTheProtocolState);
    }
}

/// The list of TS 24.501 4.4.4.2.
fn is_accepted_plain(message: &GmmMessage) -> bool {
    match message {
        GmmMessage::IdentityRequest(request) => request.identity_type == IdentityType::Suci,
        GmmMessage::AuthenticationRequest(_)
        | GmmMessage::AuthenticationResult(_)
        | GmmMessage::AuthenticationReject(_)
        | GmmMessage::DeregistrationAcceptUeOriginating(_) => true,
        GmmMessage::RegistrationReject(reject) => !matches!(reject.cause.code(), 76 | 78 | 81 | 82),
        GmmMessage::ServiceReject(reject) => !matches!(reject.cause.code(), 76 | 78),
        _ => false,
    }
}
