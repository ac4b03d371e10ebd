//! Which messages may be processed without integrity protection (TS 24.501 4.4.4.2, 4.4.4.3).

use crate::cause::GmmCause;
use crate::gmm::GmmMessage;
use crate::ie::{IdentityType, MobileIdentity};

/// Whether the AMF processes the message before NAS security is established
/// (TS 24.501 4.4.4.3).
pub fn network_processes_unprotected(message: &GmmMessage) -> bool {
    match message {
        GmmMessage::RegistrationRequest(_)
        | GmmMessage::AuthenticationResponse(_)
        | GmmMessage::AuthenticationFailure(_)
        | GmmMessage::SecurityModeReject(_)
        | GmmMessage::DeregistrationRequestUeOriginating(_)
        | GmmMessage::DeregistrationAcceptUeTerminated(_) => true,
        GmmMessage::IdentityResponse(response) => matches!(
            response.mobile_identity,
            MobileIdentity::Suci(_) | MobileIdentity::SuciNai { .. } | MobileIdentity::NoIdentity
        ),
        _ => false,
    }
}

/// Whether the AMF processes the message although its MAC is wrong or can't be verified, until
/// secure exchange is established for the connection (TS 24.501 4.4.4.3).
pub fn network_processes_despite_failed_integrity(message: &GmmMessage) -> bool {
    network_processes_unprotected(message) || matches!(message, GmmMessage::ServiceRequest(_))
}

/// Whether the UE processes the message before NAS security is established (TS 24.501 4.4.4.2).
pub fn ue_processes_unprotected(message: &GmmMessage) -> bool {
    let allowed = |cause: GmmCause| {
        !matches!(cause, GmmCause::NotAuthorizedForThisCag | GmmCause::PlmnNotAllowedAtThePresentUeLocation)
    };
    match message {
        GmmMessage::IdentityRequest(request) => request.identity_type == IdentityType::Suci,
        GmmMessage::AuthenticationRequest(_)
        | GmmMessage::AuthenticationResult(_)
        | GmmMessage::AuthenticationReject(_)
        | GmmMessage::DeregistrationAcceptUeOriginating(_) => true,
        GmmMessage::RegistrationReject(reject) => allowed(reject.cause),
        GmmMessage::ServiceReject(reject) => allowed(reject.cause),
        _ => false,
    }
}
