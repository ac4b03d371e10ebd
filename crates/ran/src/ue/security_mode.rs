//! NAS security mode control (TS 24.501 5.4.2).
//!
//! ```text
//!  UE                                AMF
//!   | <- SECURITY MODE COMMAND        |   not ciphered, with the MAC of the new context
//!   |    SECURITY MODE COMPLETE ->    |   ciphered with the new context; contains the complete initial message
//!   |    SECURITY MODE REJECT ->      |   #23, #24, protected as before
//! ```

use super::eap_aka_prime::is_eap_success;
use super::security::SecurityContext;
use super::{Connection, State, Timer, Ue};
use pith_crypto::keys::KAmf;
use pith_crypto::nas::UnknownAlgorithm;
use pith_nas::gmm::{SecurityModeCommand, SecurityModeComplete, SecurityModeReject};
use pith_nas::ie::{ImeisvRequest, MobileIdentity, NasSecurityAlgorithms, NgKsi, RegistrationKind};
use pith_nas::{GmmCause, GmmMessage, SecurityHeaderType};

/// Offset of the plain message in a protected one.
const PLAIN_AT: usize = 7;

/// The context that a command takes into use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The one of the last authentication: COUNTs start at 0.
    Authentication,
    /// The current one, with newly selected algorithms.
    Current,
    /// Null algorithms, for emergency services without authentication: the UE makes a K_AMF of its own.
    Unauthenticated,
}

/// Whether both are null algorithms.
fn is_null(algorithms: NasSecurityAlgorithms) -> bool {
    (algorithms.integrity, algorithms.ciphering) == (0, 0)
}

impl Ue {
    /// A message with header 'integrity protected with new 5G NAS security context': SECURITY MODE COMMAND
    /// (TS 24.501 5.4.2.3, 5.4.2.5).
    pub(super) fn receive_security_mode_command(&mut self, octets: &[u8]) {
        let plain = octets.get(PLAIN_AT..).unwrap_or_default();
        let command = match self.decode(plain) {
            Some(GmmMessage::SecurityModeCommand(command)) => command,
            Some(other) => {
                let text = format!("{} with the header of SECURITY MODE COMMAND", other.name());
                return self.violation("TS 24.501 table 9.3.1", text);
            }
            None => return,
        };
        match self.check_security_mode_command(&command, octets) {
            Ok((context, origin)) => self.complete_security_mode(&command, context, origin),
            Err(cause) => self.send(&SecurityModeReject::new(cause).into()),
        }
    }

    fn check_security_mode_command(
        &mut self,
        command: &SecurityModeCommand,
        octets: &[u8],
    ) -> Result<(SecurityContext, Origin), GmmCause> {
        let refused = GmmCause::SecurityModeRejectedUnspecified;
        let Some((mut context, origin)) = self.commanded_context(command) else { return Err(refused) };
        if let Err(failure) = context.open(octets) {
            self.note_check_failure(failure);
            return Err(refused);
        }
        self.check_replayed_capability(command)?;
        self.check_eap_success(command, origin)?;
        Ok((context, origin))
    }

    /// The context for ngKSI, with the algorithms of the command.
    fn commanded_context(&mut self, command: &SecurityModeCommand) -> Option<(SecurityContext, Origin)> {
        if is_null(command.algorithms) && self.accepts_null(command.ng_ksi) {
            let own = KAmf::new([0; 32]);
            let made = SecurityContext::new(command.ng_ksi, own, command.algorithms).ok()?;
            return Some((made, Origin::Unauthenticated));
        }
        if !self.are_acceptable(command.algorithms) {
            return None;
        }
        let partial = self.authentication.partial.as_ref().filter(|partial| partial.ng_ksi == command.ng_ksi);
        let current =
            self.current_security_context.as_ref().filter(|context| context.ng_ksi == command.ng_ksi);
        let made = match (partial, current) {
            (Some(partial), _) => {
                let k_amf = partial.k_amf.clone();
                (SecurityContext::new(partial.ng_ksi, k_amf, command.algorithms), Origin::Authentication)
            }
            (None, Some(current)) => (self.reselected_context(current, command), Origin::Current),
            (None, None) => {
                let text = format!(
                    "SECURITY MODE COMMAND for ngKSI {:?}, which the UE does not have",
                    command.ng_ksi
                );
                self.violation("TS 24.501 5.4.2.2", text);
                return None;
            }
        };
        made.0.ok().map(|context| (context, made.1))
    }

    /// The current context with newly selected algorithms; if horizontal derivation is requested,
    /// with K_AMF' and COUNTs of 0 (TS 24.501 5.4.2.3, TS 33.501 6.9.3).
    fn reselected_context(
        &self,
        current: &SecurityContext,
        command: &SecurityModeCommand,
    ) -> Result<SecurityContext, UnknownAlgorithm> {
        let information = command.additional_security_information.unwrap_or_default();
        let count = self.initial.as_ref().and_then(|initial| initial.count);
        match count.filter(|_| information.horizontal_derivation) {
            Some(count) => current.derived(count, command.algorithms),
            None => current.with_algorithms(command.algorithms),
        }
    }

    /// Whether the UE accepts null algorithms: with ngKSI 0 in an emergency registration (TS 24.501 5.4.2.3).
    fn accepts_null(&self, ng_ksi: NgKsi) -> bool {
        self.state == State::AwaitingRegistrationAccept(RegistrationKind::Emergency)
            && ng_ksi == NgKsi::Native(0)
    }

    /// Whether the UE supports the algorithms; null integrity is for emergency sessions only (TS
    /// 24.501 5.4.2.3).
    pub(super) fn are_acceptable(&mut self, algorithms: NasSecurityAlgorithms) -> bool {
        let own = self.settings.security_capability;
        if algorithms.integrity == 0 {
            self.violation("TS 24.501 5.4.2.3", "null integrity 5G-IA0 without emergency services");
            return false;
        }
        if !own.supports_ia(algorithms.integrity) || !own.supports_ea(algorithms.ciphering) {
            let text =
                format!("5G-EA{} and 5G-IA{} chosen of {own:?}", algorithms.ciphering, algorithms.integrity);
            self.violation("TS 24.501 5.4.2.2", text);
            return false;
        }
        true
    }

    fn check_replayed_capability(&mut self, command: &SecurityModeCommand) -> Result<(), GmmCause> {
        let own = self.settings.security_capability;
        let replayed = command.replayed_ue_security_capability;
        if replayed == own {
            return Ok(());
        }
        let text = format!("replayed UE security capabilities are {replayed:?}, sent were {own:?}");
        self.violation("TS 24.501 5.4.2.3", text);
        Err(GmmCause::UeSecurityCapabilitiesMismatch)
    }

    /// After EAP-AKA' the command contains EAP-success and ABBA (TS 24.501 5.4.2.2).
    fn check_eap_success(&mut self, command: &SecurityModeCommand, origin: Origin) -> Result<(), GmmCause> {
        let success = command.eap_message.as_ref().map(|packet| is_eap_success(packet));
        let is_eap = origin == Origin::Authentication && self.authentication.eap.is_some();
        let fault = match success {
            Some(false) if origin == Origin::Authentication => "the EAP message is not EAP-success",
            None if is_eap => "EAP-success was not sent before the command, nor in it",
            Some(true) if is_eap && command.abba.is_none() => "EAP-success without ABBA",
            _ => return Ok(()),
        };
        self.violation("TS 24.501 5.4.2.2", fault);
        Err(GmmCause::SecurityModeRejectedUnspecified)
    }

    fn complete_security_mode(
        &mut self,
        command: &SecurityModeCommand,
        context: SecurityContext,
        origin: Origin,
    ) {
        let information = command.additional_security_information.unwrap_or_default();
        let had_context = self.current_security_context.is_some();
        self.k_gnb_count = Some(context.next_uplink());
        self.current_security_context = Some(context);
        self.connection = Connection::Secured;
        if origin == Origin::Authentication {
            self.authentication.partial = None;
        }
        self.authentication.forget_challenge();
        self.timers.stop(Timer::T3516);
        if origin == Origin::Unauthenticated {
            self.timers.stop(Timer::T3520);
            self.resume_stopped_timers();
        }
        let mut complete = SecurityModeComplete::new();
        complete.imeisv = (command.imeisv_request == Some(ImeisvRequest::Requested))
            .then(|| MobileIdentity::Imeisv(self.imeisv.clone()));
        let in_registration = matches!(self.state, State::AwaitingRegistrationAccept(_));
        if information.retransmit_initial_nas_message || in_registration && !had_context {
            complete.nas_message_container = self.initial.as_ref().map(|initial| initial.entire.clone());
        }
        self.send_with(&complete.into(), SecurityHeaderType::IntegrityProtectedAndCipheredWithNewContext);
    }
}
