//! NAS security mode control (TS 24.501 5.4.2; TS 33.501 6.7.2; TS 23.502 4.2.2.2.2 step 9d): takes
//! the security context of the authentication into use.
//!
//! | step | state | from | timer |
//! |---|---|---|---|
//! | SECURITY MODE COMMAND | [`AwaitingSecurityModeComplete`] | UE | T3560 |
//! | SECURITY MODE COMPLETE | registration or service request continues | | |
//!
//! The command replays the UE's security capability, so that the UE detects a bidding-down attack.
//! It requests the complete REGISTRATION REQUEST or SERVICE REQUEST, because the first one was not protected, or with an outdated
//! security context.

use super::registration::{self, Attempt, AuthenticationPurpose};
use super::{Procedure, RegistrationStep, Step, reauthentication, service_request};
use crate::amf::access_keys;
use crate::amf::context::{Env, UeContext};
use crate::amf::error::RegistrationError;
use crate::amf::retransmission::{Expiry, Retransmission};
use crate::amf::security::{ABBA, SecurityContext, choose_algorithms, is_acceptable};
use crate::amf::{ladn, n2};
use crate::kit::document::pack_struct;
use crate::kit::{Level, Timer};
use pith_crypto::keys::KAmf;
use pith_nas::gmm::{RegistrationRequest, SecurityModeCommand, SecurityModeComplete, SecurityModeReject};
use pith_nas::ie::{
    AdditionalSecurityInformation, ImeisvRequest, MobileIdentity, NasSecurityAlgorithms, NgKsi,
};
use pith_nas::{GmmMessage, SecurityHeaderType};
use pith_types::Supi;

/// SECURITY MODE COMMAND was sent to the UE.
#[derive(Debug)]
pub(crate) struct AwaitingSecurityModeComplete {
    attempt: Attempt,
    /// The SUPI that the authentication proved.
    supi: Supi,
    pub offer: Offer,
}

/// SECURITY MODE COMMAND, which offers a security context to the UE.
#[derive(Debug)]
pub(crate) struct Offer {
    /// The new context. A previous one stays in use until the UE confirms this one.
    pub context: SecurityContext,
    command: Retransmission,
}

pack_struct!(AwaitingSecurityModeComplete { attempt, supi, offer });
pack_struct!(Offer { context, command });

impl Offer {
    /// The IMEISV is always requested, and the whole initial message if there is one (TS 24.501 5.4.2.2).
    pub(super) fn send(
        ue: &mut UeContext,
        env: &mut Env<'_>,
        context: SecurityContext,
        mut command: SecurityModeCommand,
        has_initial_message: bool,
    ) -> Self {
        command.imeisv_request = Some(ImeisvRequest::Requested);
        let information = command.additional_security_information.get_or_insert_default();
        information.retransmit_initial_nas_message = has_initial_message;
        let plain = GmmMessage::from(command).encode();
        let mut offer = Self { context, command: Retransmission::start(ue, env, Timer::T3560, plain) };
        offer.transmit(ue, env);
        offer
    }

    /// Sends the command, protected with the new context but not ciphered (TS 24.501 5.4.2.2).
    fn transmit(&mut self, ue: &UeContext, env: &mut Env<'_>) {
        let header = SecurityHeaderType::IntegrityProtectedWithNewContext;
        match self.context.nas.protect(header, self.command.plain()) {
            Ok(pdu) => n2::downlink_nas_transport(ue, env, pdu),
            Err(error) => env.out.log(Level::Error, || format!("SECURITY MODE COMMAND: {error}")),
        }
    }

    /// The UE has taken the new context into use: the AMF does so, and sends the gNB a new key if it has one (TS 24.501 5.4.2.4).
    pub(super) fn accepted(self, ue: &mut UeContext, env: &mut Env<'_>) {
        let Self { context, command } = self;
        command.stop(ue, env);
        ue.offered = None;
        let former = ue.security.take().or(ue.outdated.take().map(|outdated| *outdated));
        if let Some(former) = former.filter(|_| ue.has_ran_context(env)) {
            access_keys::note_new_k_amf(ue, &former.k_amf);
        }
        if let Some(count) = context.nas.last_received() {
            ue.k_gnb_count = count;
        }
        ue.security = Some(context);
        n2::rekey(ue, env);
    }

    /// SECURITY MODE REJECT: the UE rejects the command, with #23 if the replayed capability is not its own. The registration is aborted (TS
    /// 24.501 5.4.2.5).
    pub(super) fn rejected(
        self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        reject: &SecurityModeReject,
    ) -> RegistrationError {
        self.command.stop(ue, env);
        RegistrationError::SecurityModeRejected(reject.cause)
    }

    /// T3560 expired: retransmits the command; on the fifth expiry the registration is aborted (TS 24.501 5.4.2.7 b).
    pub(super) fn expired(&mut self, ue: &mut UeContext, env: &mut Env<'_>) -> Result<(), RegistrationError> {
        match self.command.expired(ue, env) {
            Expiry::SendAgain => {
                self.transmit(ue, env);
                Ok(())
            }
            Expiry::GiveUp => Err(RegistrationError::NoAnswer),
        }
    }
}

/// Selects algorithms and sends SECURITY MODE COMMAND. After EAP-AKA' it includes EAP-Success and
/// ABBA (TS 24.501 5.4.2.2).
pub(crate) fn begin(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    attempt: Attempt,
    supi: Supi,
    ng_ksi: u8,
    k_amf: KAmf,
    eap_success: Option<&[u8]>,
) -> RegistrationStep {
    let (context, mut command) = new_context(ue, env, ng_ksi, k_amf)?;
    command.eap_message = eap_success.map(<[u8]>::to_vec);
    command.abba = eap_success.map(|_| ABBA.to_vec());
    // New keys of a registered UE follow no initial message.
    let has_initial_message = attempt.purpose != AuthenticationPurpose::NewKeys;
    let offer = Offer::send(ue, env, context, command, has_initial_message);
    Ok(AwaitingSecurityModeComplete { attempt, supi, offer }.sent())
}

/// The UE's former AMF has derived a key from K_AMF (TS 33.501 6.9.3): the UE does so, too (TS 24.501 5.4.2.2, horizontal derivation). Only the
/// UE of the subscriber has the key: no authentication is needed.
pub(super) fn begin_with_derived_key(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    attempt: Attempt,
    supi: Supi,
    derived: SecurityContext,
) -> RegistrationStep {
    // From now on the UE takes no message of an AMF that does not have its security context.
    ue.forget_initial_message();
    ue.claimed = Some(supi.clone().into());
    if ue.capability.is_some_and(|capability| !is_acceptable(&capability)) {
        return Err(RegistrationError::SecurityCapabilityMismatch);
    }
    let (context, mut command) = new_context(ue, env, derived.ng_ksi, derived.k_amf)?;
    command.additional_security_information =
        Some(AdditionalSecurityInformation { horizontal_derivation: true, ..Default::default() });
    let offer = Offer::send(ue, env, context, command, true);
    Ok(AwaitingSecurityModeComplete { attempt, supi, offer }.sent())
}

/// A security context with that K_AMF, and the command that offers it.
fn new_context(
    ue: &UeContext,
    env: &Env<'_>,
    ng_ksi: u8,
    k_amf: KAmf,
) -> Result<(SecurityContext, SecurityModeCommand), RegistrationError> {
    let capability = ue.capability.ok_or(RegistrationError::NoSecurityCapability)?;
    let algorithms = choose_algorithms(env.config, &capability);
    let algorithms = algorithms.ok_or(RegistrationError::SecurityCapabilityMismatch)?;
    let chosen = NasSecurityAlgorithms {
        ciphering: algorithms.ciphering as u8,
        integrity: algorithms.integrity as u8,
    };
    let command = SecurityModeCommand::new(chosen, NgKsi::Native(ng_ksi), capability);
    Ok((SecurityContext::new(ng_ksi, k_amf, capability, algorithms), command))
}

impl AwaitingSecurityModeComplete {
    /// SECURITY MODE COMPLETE: takes the new context into use. The message contains the IMEISV and
    /// the complete REGISTRATION REQUEST, which replaces the first one (TS 24.501 5.4.2.4, 4.4.6).
    pub fn on_security_mode_complete(
        self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        complete: SecurityModeComplete,
    ) -> RegistrationStep {
        let Self { mut attempt, supi, offer } = self;
        offer.accepted(ue, env);
        // After the context has its SUPI: until then an unauthenticated UE's is found by the former PEI.
        let pei = match complete.imeisv {
            Some(MobileIdentity::Imeisv(pei) | MobileIdentity::Imei(pei)) => Some(pei),
            _ => None,
        };
        let identified = |ue: &mut UeContext, env: &mut Env<'_>| {
            registration::on_identified(ue, env, supi.into());
            ue.pei = pei.or_else(|| ue.pei.take());
        };
        match attempt.purpose {
            AuthenticationPurpose::Registration => {}
            AuthenticationPurpose::NewKeys => {
                identified(ue, env);
                let step = reauthentication::complete(ue, env);
                return Ok(match ue.take_postponed() {
                    Some(request) => service_request::on_authenticated(ue, env, Some(request)),
                    None => step,
                });
            }
            AuthenticationPurpose::ServiceRequest => {
                identified(ue, env);
                ladn::report_all(ue, env);
                return Ok(service_request::on_authenticated(ue, env, complete.nas_message_container));
            }
        }
        if let Some(container) = complete.nas_message_container {
            let was_emergency = attempt.is_emergency();
            attempt.request = whole_request(&container)?;
            check_capability(ue, &attempt.request)?;
            if attempt.is_emergency() != was_emergency {
                // The type is a cleartext IE, the same in both messages (TS 24.501 4.4.6): limits were checked for the first one's.
                return Err(RegistrationError::InvalidMandatoryInformation);
            }
        }
        identified(ue, env);
        registration::on_authenticated(ue, env, attempt)
    }

    /// SECURITY MODE REJECT.
    pub fn on_security_mode_reject(
        self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        reject: &SecurityModeReject,
    ) -> RegistrationStep {
        Err(self.offer.rejected(ue, env, reject))
    }

    /// T3560 expired.
    pub fn on_t3560(mut self, ue: &mut UeContext, env: &mut Env<'_>) -> RegistrationStep {
        self.offer.expired(ue, env)?;
        Ok(self.sent())
    }

    fn sent(self) -> Step {
        Step::replied(Procedure::AwaitingSecurityModeComplete(self), "SecurityModeCommand")
    }

    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }
}

/// The REGISTRATION REQUEST in a NAS message container.
pub(super) fn whole_request(container: &[u8]) -> Result<Box<RegistrationRequest>, RegistrationError> {
    match GmmMessage::decode(container) {
        Ok(GmmMessage::RegistrationRequest(request)) => Ok(request),
        _ => Err(RegistrationError::InvalidMandatoryInformation),
    }
}

/// The capability in the protected request must be the one by which the algorithms were selected.
pub(super) fn check_capability(
    ue: &UeContext,
    request: &RegistrationRequest,
) -> Result<(), RegistrationError> {
    match (ue.capability, request.ue_security_capability) {
        (Some(used), Some(requested)) if used != requested => {
            Err(RegistrationError::SecurityCapabilityMismatch)
        }
        _ => Ok(()),
    }
}
