//! Primary authentication by EAP-AKA' (TS 24.501 5.4.1.2; TS 33.501 6.1.3.1; TS 23.502 4.2.2.2.2
//! step 9). UE and AUSF exchange EAP packets. The AMF forwards them, and reads only what a
//! pass-through authenticator reads: code, identifier, length (RFC 3748 2.3).
//!
//! | step | state | from | timer |
//! |---|---|---|---|
//! | AUTHENTICATION REQUEST: EAP-Request | [`AwaitingEapResponse`] | UE | T3560 |
//! | eap-session: EAP-Response | [`AwaitingEapSession`] | AUSF | |
//! | another EAP-Request: as before | [`AwaitingEapResponse`] | UE | T3560 |
//! | K_SEAF; EAP-Success is sent in SECURITY MODE COMMAND | security mode control | | |
//! | or EAP-Failure, in AUTHENTICATION REJECT, or in AUTHENTICATION RESULT before an identity request | | | |

use super::registration::Attempt;
use super::{Procedure, RegistrationStep, Step, authentication, security_mode};
use crate::amf::consumer;
use crate::amf::context::{CallId, Env, UeContext};
use crate::amf::error::{AuthenticationFault, RegistrationError};
use crate::amf::n1::{NasOutcome, Silence};
use crate::amf::retransmission::{Expiry, Retransmission};
use crate::amf::security::{ABBA, ng_ksi_after};
use crate::kit::document::pack_struct;
use crate::kit::{Level, Nf, Timer};
use bytes::Bytes;
use pith_crypto::kdf;
use pith_crypto::keys::KSeaf;
use pith_nas::GmmCause;
use pith_nas::gmm::{AuthenticationFailure, AuthenticationRequest, AuthenticationResponse};
use pith_nas::ie::NgKsi;
use pith_sbi::nausf_ueauthentication::{AuthResult, EapSession};
use pith_sbi::{Base64, Operation, Reply, Response, Uri};

/// An EAP-Request was sent to the UE.
#[derive(Debug)]
pub(crate) struct AwaitingEapResponse {
    session: Session,
    packet: Bytes,
    request: Retransmission,
}

/// The UE's EAP-Response was sent to the AUSF.
#[derive(Debug)]
pub(crate) struct AwaitingEapSession {
    session: Session,
    pub call: CallId,
}

/// Data of an authentication that are valid for all its rounds.
#[derive(Debug)]
struct Session {
    attempt: Attempt,
    /// The key set identifier of the challenge, which must differ from the one that the UE has in use.
    ng_ksi: u8,
    /// URI of the authentication context at the AUSF.
    context: Uri,
}

pack_struct!(AwaitingEapResponse { session, packet, request });
pack_struct!(AwaitingEapSession { session, call });
pack_struct!(Session { attempt, ng_ksi, context });

/// Sends the UE the AUSF's first EAP-Request (TS 24.501 5.4.1.2.4.2).
pub(super) fn begin(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    attempt: Attempt,
    ng_ksi: u8,
    context: Uri,
    packet: Bytes,
) -> RegistrationStep {
    Session { attempt, ng_ksi, context }.request(ue, env, packet)
}

impl Session {
    fn request(self, ue: &mut UeContext, env: &mut Env<'_>, packet: Bytes) -> RegistrationStep {
        if code(&packet) != Some(EapCode::Request) {
            return Err(RegistrationError::WrongAnswer(Operation::EapAuthMethod));
        }
        let mut message = AuthenticationRequest::new(NgKsi::Native(self.ng_ksi), ABBA.to_vec());
        message.eap_message = Some(packet.to_vec());
        let request = Retransmission::send(ue, env, Timer::T3560, message);
        let next = AwaitingEapResponse { session: self, packet, request };
        Ok(Step::replied(Procedure::AwaitingEapResponse(next), "AuthenticationRequest"))
    }
}

impl AwaitingEapResponse {
    /// AUTHENTICATION RESPONSE (TS 24.501 5.4.1.2.4.3). A packet that does not answer the pending
    /// request is discarded silently (RFC 3748 4.1); T3560 keeps running.
    pub fn on_authentication_response(
        self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        response: AuthenticationResponse,
    ) -> RegistrationStep {
        let packet = response.eap_message.map(Bytes::from).unwrap_or_default();
        if code(&packet) != Some(EapCode::Response) || identifier(&packet) != identifier(&self.packet) {
            env.out.log(Level::Warn, || format!("{}: EAP packet that answers no request", ue.name()));
            let outcome = NasOutcome::Silent(Silence::NotExpected);
            return Ok(Step { next: Procedure::AwaitingEapResponse(self), outcome });
        }
        self.request.stop(ue, env);
        let call = consumer::eap_session(ue, env, &self.session.context, packet);
        let next = AwaitingEapSession { session: self.session, call };
        Ok(Step::waiting(Procedure::AwaitingEapSession(next), Nf::Ausf))
    }

    /// AUTHENTICATION FAILURE. With #71 the same EAP-Request is sent with another key set
    /// identifier, once (TS 24.501 5.4.1.2.4.4). No other cause applies to EAP; see [`authentication::refused`].
    pub fn on_authentication_failure(
        self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        failure: &AuthenticationFailure,
    ) -> RegistrationStep {
        self.request.stop(ue, env);
        env.out.log(Level::Debug, || format!("{}: authentication failure {}", ue.name(), failure.cause));
        let Session { attempt, ng_ksi, context } = self.session;
        if failure.cause != GmmCause::NgKsiAlreadyInUse || attempt.ng_ksi_was_in_use {
            return authentication::refused(ue, env, attempt, failure);
        }
        let attempt = Attempt { ng_ksi_was_in_use: true, ..attempt };
        Session { attempt, ng_ksi: ng_ksi_after(ng_ksi), context }.request(ue, env, self.packet)
    }

    /// T3560 expired: retransmits the EAP-Request; on the fifth expiry the registration is aborted
    /// (TS 24.501 5.4.1.2.4.4).
    pub fn on_t3560(mut self, ue: &mut UeContext, env: &mut Env<'_>) -> RegistrationStep {
        match self.request.send_again(ue, env) {
            Expiry::SendAgain => {
                Ok(Step::replied(Procedure::AwaitingEapResponse(self), "AuthenticationRequest"))
            }
            Expiry::GiveUp => Err(RegistrationError::NoAnswer),
        }
    }

    pub fn attempt(&self) -> &Attempt {
        &self.session.attempt
    }
}

impl AwaitingEapSession {
    /// Another EAP-Request, or the AUSF's result (TS 29.509 5.2.2.2.3).
    pub fn on_reply(self, ue: &mut UeContext, env: &mut Env<'_>, reply: Reply) -> RegistrationStep {
        let session = match reply {
            Ok(Response::EapSession(session)) => *session,
            Ok(_) => return Err(RegistrationError::WrongAnswer(Operation::EapAuthMethod)),
            Err(problem) => return Err(RegistrationError::of_problem(Operation::EapAuthMethod, &problem)),
        };
        let EapSession { eap_payload, kseaf, auth_result, supi, .. } = session;
        let packet = eap_payload.map(|Base64(packet)| packet);
        match (auth_result, supi, kseaf) {
            (Some(AuthResult::AuthenticationSuccess), Some(supi), Some(kseaf)) => {
                let success = packet.filter(|packet| code(packet) == Some(EapCode::Success));
                let success = success.ok_or(RegistrationError::WrongAnswer(Operation::EapAuthMethod))?;
                let k_amf = kdf::k_amf(&KSeaf::new(kseaf.0), supi.imsi(), &ABBA);
                let Session { attempt, ng_ksi, .. } = self.session;
                security_mode::begin(ue, env, attempt, supi, ng_ksi, k_amf, Some(&success))
            }
            (Some(AuthResult::AuthenticationFailure), ..) => {
                let failure = packet.filter(|packet| code(packet) == Some(EapCode::Failure));
                let fault = AuthenticationFault::WrongResponse;
                authentication::failed(ue, env, self.session.attempt, failure, fault)
            }
            (None | Some(AuthResult::AuthenticationOngoing), ..) => {
                self.session.request(ue, env, packet.unwrap_or_default())
            }
            _ => Err(RegistrationError::WrongAnswer(Operation::EapAuthMethod)),
        }
    }

    pub fn attempt(&self) -> &Attempt {
        &self.session.attempt
    }
}

/// Codes of EAP packets (RFC 3748 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EapCode {
    Request = 1,
    Response,
    Success,
    Failure,
}

/// The code of a packet whose length field is correct and which fits the EAP message IE (TS 24.501 9.11.2.2).
fn code(packet: &[u8]) -> Option<EapCode> {
    let (&[code, _, high, low], _) = packet.split_first_chunk()?;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length != packet.len() || length > 1500 {
        return None;
    }
    match code {
        1 => Some(EapCode::Request),
        2 => Some(EapCode::Response),
        3 => Some(EapCode::Success),
        4 => Some(EapCode::Failure),
        _ => None,
    }
}

/// The identifier of a packet, which pairs request and response.
fn identifier(packet: &[u8]) -> Option<u8> {
    packet.get(1).copied()
}
