//! N1: NAS between UE and AMF (TS 24.501): security protection, and dispatch to procedures.
//!
//! Every uplink message results in one [`NasOutcome`]. Messages without a successful integrity check are
//! processed only if TS 24.501 4.4.4.3 lists them, and only until secure exchange is established.

use super::context::{Env, UeContext};
use super::procedure::{self, deregistration, nas_transport, registration, service_request};
use super::{n2, security::SecurityContext};
use crate::kit::{Level, Nf};
use pith_crypto::nas::CipheringAlgorithm;
use pith_nas::gmm::{GmmStatus, RegistrationReject, ServiceReject};
use pith_nas::security::{
    Envelope, network_processes_despite_failed_integrity, network_processes_unprotected,
    ue_processes_unprotected,
};
use pith_nas::{
    GmmCause, GmmMessage, Kind, NasCount, NasError, SecurityError, SecurityHeaderType, Unprotected,
};

/// The result of an uplink NAS message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NasOutcome {
    /// Answered with the named message.
    Replied(&'static str),
    /// Accepted; a reply of another NF is pending.
    Waiting(Nf),
    /// Answered with a reject or status message of that cause.
    Rejected(GmmCause),
    /// Not answered.
    Silent(Silence),
}

/// Why an uplink NAS message is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// The message completes a procedure; no answer is due.
    Complete,
    /// The MAC is wrong (TS 24.501 4.4.4.3).
    IntegrityCheckFailed,
    /// The message is not protected, and must be (TS 24.501 4.4.4.3).
    NotProtected,
    /// No procedure waits for the message: it is late or repeated.
    NotExpected,
    /// The message repeats a request that is being processed.
    Duplicate,
    /// The message is processed when the UE has its new keys.
    Postponed,
    /// The message can't be decoded, and such messages are ignored (TS 24.501 7.2, 7.3).
    Undecodable,
    /// The UE has switched off: it does not listen for an answer.
    UeIsLeaving,
    /// The procedure is aborted without an answer.
    Aborted,
}

/// An uplink message without its security header.
#[derive(Debug)]
pub(crate) struct Uplink {
    pub message: GmmMessage,
    /// The COUNT if the message passed the integrity check; `None` if it is processed without one.
    pub verified: Option<NasCount>,
}

/// Why a message was not accepted: its security check failed, or its content can't be decoded.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The message is ignored.
    Discard(Silence),
    /// The content can't be decoded.
    Undecodable {
        error: NasError,
        /// Its message type, if it could be read.
        message_type: Option<u8>,
    },
}

/// Handles a message over the UE's established connection.
pub(crate) fn receive(ue: &mut UeContext, env: &mut Env<'_>, pdu: &[u8]) -> NasOutcome {
    let (name, outcome) = match open(ue, pdu) {
        Ok(uplink) => (uplink.message.name(), dispatch(ue, env, uplink)),
        Err(refusal) => ("?", refuse(ue, env, &refusal)),
    };
    log_outcome(ue, env, name, outcome);
    outcome
}

/// Logs the result of a message.
pub(crate) fn log_outcome(ue: &UeContext, env: &mut Env<'_>, name: &'static str, outcome: NasOutcome) {
    env.out.event(Level::Debug, || crate::kit::Event {
        level: Level::Debug,
        procedure: name,
        outcome: "",
        ue: ue.name(),
        text: format!("{name}: {outcome:?}"),
    });
}

/// Removes the security header of a message after the checks it requires.
pub(crate) fn open(ue: &mut UeContext, pdu: &[u8]) -> Result<Uplink, Refusal> {
    let uplink = match pith_nas::peek(pdu) {
        Some(Kind::PlainGmm(_)) => open_plain(ue.security.is_some(), pdu)?,
        Some(Kind::Protected(header, _)) => open_protected(ue, header, pdu)?,
        _ => return Err(Refusal::Discard(Silence::Undecodable)),
    };
    // Anybody can have repeated a SERVICE REQUEST to get here: until the authentication, nothing may begin that ends the registration.
    let begins = matches!(
        uplink.message,
        GmmMessage::RegistrationRequest(_) | GmmMessage::DeregistrationAcceptUeTerminated(_)
    );
    if begins && uplink.verified.is_none() && ue.outdated.is_some() && ue.is_registered() {
        return Err(Refusal::Discard(Silence::NotProtected));
    }
    Ok(uplink)
}

/// A plain message: only some types are accepted, and none once secure exchange is established.
pub(crate) fn open_plain(is_secure: bool, pdu: &[u8]) -> Result<Uplink, Refusal> {
    if is_secure {
        return Err(Refusal::Discard(Silence::NotProtected));
    }
    let message = decode(pdu)?;
    if network_processes_unprotected(&message) {
        Ok(Uplink { message, verified: None })
    } else {
        Err(Refusal::Discard(Silence::NotProtected))
    }
}

/// A protected message: checked with the security context in use, or with the new one of SECURITY
/// MODE COMMAND. Only SECURITY MODE COMPLETE, which takes the new one into use, is protected with
/// it (TS 24.501 4.4.4.3, 5.4.2.3, table 9.3.1).
fn open_protected(ue: &mut UeContext, header: SecurityHeaderType, pdu: &[u8]) -> Result<Uplink, Refusal> {
    let is_new = header == SecurityHeaderType::IntegrityProtectedAndCipheredWithNewContext;
    let context = if is_new { ue.procedure.new_security() } else { ue.security.as_mut() };
    let uplink = match context {
        // Only SECURITY MODE COMMAND has it (TS 24.501 table 9.3.1).
        Some(_) if header == SecurityHeaderType::IntegrityProtectedWithNewContext => {
            return Err(Refusal::Discard(Silence::NotProtected));
        }
        Some(context) => {
            let is_to_be_ciphered = context.nas.algorithms().ciphering != CipheringAlgorithm::Nea0;
            let uplink = open_verified(context, pdu)?;
            if is_to_be_ciphered && !header.is_ciphered() && !may_be_initial(&uplink.message) {
                return Err(Refusal::Discard(Silence::NotProtected));
            }
            uplink
        }
        // Not ciphered before secure exchange is established (TS 24.501 4.4.5), but a UE may do so.
        None => match ue.outdated.as_mut().and_then(|outdated| outdated.recognise(pdu)) {
            Some(Unprotected { plain, .. }) => accept_unverified(&plain)?,
            None => open_unverified(pdu)?,
        },
    };
    if is_new == matches!(uplink.message, GmmMessage::SecurityModeComplete(_)) {
        Ok(uplink)
    } else {
        Err(Refusal::Discard(Silence::NotExpected))
    }
}

/// Initial NAS messages are not ciphered (TS 24.501 4.4.6). Some UEs send them so over an established connection, too; other messages are discarded
/// if they are not (4.4.5).
const fn may_be_initial(message: &GmmMessage) -> bool {
    matches!(
        message,
        GmmMessage::RegistrationRequest(_)
            | GmmMessage::ServiceRequest(_)
            | GmmMessage::DeregistrationRequestUeOriginating(_)
    )
}

/// Checks the message with the given security context.
pub(crate) fn open_verified(context: &mut SecurityContext, pdu: &[u8]) -> Result<Uplink, Refusal> {
    let unprotected = context.nas.unprotect(pdu).map_err(|error| match error {
        SecurityError::NotProtected => Refusal::Discard(Silence::Undecodable),
        _ => Refusal::Discard(Silence::IntegrityCheckFailed),
    })?;
    of_plain(&unprotected)
}

/// Decodes a message that passed the integrity check.
pub(crate) fn of_plain(unprotected: &Unprotected) -> Result<Uplink, Refusal> {
    Ok(Uplink { message: decode(&unprotected.plain)?, verified: Some(unprotected.count) })
}

/// Accepts a message whose integrity can't be verified, if it is of a type that is processed
/// nevertheless (TS 24.501 4.4.4.3).
pub(crate) fn open_unverified(pdu: &[u8]) -> Result<Uplink, Refusal> {
    let envelope = Envelope::of(pdu).ok_or(Refusal::Discard(Silence::Undecodable))?;
    let plain = envelope.unverified().ok_or(Refusal::Discard(Silence::IntegrityCheckFailed))?;
    accept_unverified(plain)
}

fn accept_unverified(plain: &[u8]) -> Result<Uplink, Refusal> {
    let message = decode(plain)?;
    if network_processes_despite_failed_integrity(&message) {
        Ok(Uplink { message, verified: None })
    } else {
        Err(Refusal::Discard(Silence::IntegrityCheckFailed))
    }
}

fn decode(plain: &[u8]) -> Result<GmmMessage, Refusal> {
    let message_type = plain.get(2).copied();
    GmmMessage::decode(plain).map_err(|error| Refusal::Undecodable { error, message_type })
}

/// Dispatches a message to the procedure that it starts or continues.
pub(crate) fn dispatch(ue: &mut UeContext, env: &mut Env<'_>, uplink: Uplink) -> NasOutcome {
    let Uplink { message, verified } = uplink;
    if verified.is_some() {
        // It has the keys that another AMF has passed on, if it was not authenticated here.
        ue.leave_half_open(env);
    }
    match message {
        GmmMessage::RegistrationRequest(request) => registration::begin(ue, env, request, verified),
        GmmMessage::ServiceRequest(request) => service_request::begin(ue, env, *request, verified),
        GmmMessage::DeregistrationRequestUeOriginating(request) => {
            deregistration::ue_initiated(ue, env, &request, verified)
        }
        GmmMessage::UlNasTransport(transport) => nas_transport::uplink(ue, env, *transport),
        GmmMessage::GmmStatus(status) => on_status(ue, env, &status),
        message => procedure::on_nas(ue, env, message),
    }
}

/// 5GMM STATUS: logged only (TS 24.501 5.4.6).
fn on_status(ue: &UeContext, env: &mut Env<'_>, status: &GmmStatus) -> NasOutcome {
    env.out.log(Level::Warn, || format!("{}: 5GMM STATUS {}", ue.name(), status.cause));
    NasOutcome::Silent(Silence::Complete)
}

/// Answers a message that can't be decoded: a request with its reject, any other message with 5GMM
/// STATUS (TS 24.501 7.4, 7.5.1).
pub(crate) fn refuse(ue: &mut UeContext, env: &mut Env<'_>, refusal: &Refusal) -> NasOutcome {
    let (error, message_type) = match refusal {
        Refusal::Discard(silence) => return NasOutcome::Silent(*silence),
        Refusal::Undecodable { error, message_type } => (error, message_type),
    };
    env.out.log(Level::Warn, || format!("{}: {error}", ue.name()));
    let Some(cause) = error.gmm_cause() else { return NasOutcome::Silent(Silence::Undecodable) };
    match message_type {
        Some(REGISTRATION_REQUEST) => send(ue, env, RegistrationReject::new(cause)),
        Some(SERVICE_REQUEST) => send(ue, env, ServiceReject::new(cause)),
        _ => send(ue, env, GmmStatus::new(cause)),
    };
    NasOutcome::Rejected(cause)
}

/// Message types of requests that have a reject (TS 24.501 table 9.7.1).
const REGISTRATION_REQUEST: u8 = 0x41;
const SERVICE_REQUEST: u8 = 0x4c;

/// Protects a message with the context in use, if there is one; `None` if its COUNTs are exhausted,
/// so that nothing can be sent, or reserved in no document while the store fails. The UE's timers then repeat its request.
/// A UE with an outdated context gets only what it accepts unprotected (TS 24.501 4.4.4.2), and one that is handed over to another AMF nothing.
pub(crate) fn seal(ue: &mut UeContext, plain: &[u8]) -> Option<Vec<u8>> {
    if ue.mobility.is_departure() {
        return None;
    }
    let header = SecurityHeaderType::IntegrityProtectedAndCiphered;
    let end = ue.counts_end;
    match &mut ue.security {
        Some(context)
            if context.nas.next_to_send().zip(end).is_some_and(|(next, end)| next.value() >= end) =>
        {
            None
        }
        Some(context) => context.nas.protect(header, plain).ok(),
        None if ue.outdated.is_some() => {
            GmmMessage::decode(plain).is_ok_and(|it| ue_processes_unprotected(&it)).then(|| plain.to_vec())
        }
        None => Some(plain.to_vec()),
    }
}

/// Sends a message in a DOWNLINK NAS TRANSPORT, protected if there is a security context.
pub(crate) fn send(ue: &mut UeContext, env: &mut Env<'_>, message: impl Into<GmmMessage>) -> NasOutcome {
    let message = message.into();
    send_plain(ue, env, &message.encode());
    NasOutcome::Replied(message.name())
}

/// Sends an encoded plain message, protected if there is a security context.
pub(crate) fn send_plain(ue: &mut UeContext, env: &mut Env<'_>, plain: &[u8]) {
    match seal(ue, plain) {
        Some(pdu) => n2::downlink_nas_transport(ue, env, pdu),
        None if ue.mobility.is_departure() => env.out.log(Level::Info, || {
            format!("{}: the UE is handed over to another AMF: a message is not sent", ue.name())
        }),
        None if ue.counts_end.is_some() => env.out.log(Level::Warn, || {
            let ue = ue.name();
            format!("{ue}: contexts are not stored, and no NAS COUNT is reserved: a message is not sent")
        }),
        None if ue.outdated.is_some() => env.out.log(Level::Warn, || {
            format!("{}: the security context is outdated: a message is not sent", ue.name())
        }),
        None => env.out.log(Level::Error, || format!("{}: NAS COUNTs are exhausted", ue.name())),
    }
}
