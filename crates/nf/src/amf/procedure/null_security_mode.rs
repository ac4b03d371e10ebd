//! NAS security mode control of a UE that is admitted to emergency services without authentication (TS 24.501 5.4.2.2, 5.4.2.3; TS 33.501
//! 10.2.2.2).
//!
//! | step | state | from | timer |
//! |---|---|---|---|
//! | SECURITY MODE COMMAND with ngKSI 0, 5G-IA0, 5G-EA0 | [`AwaitingNullSecurityModeComplete`] | UE | T3560 |
//! | SECURITY MODE COMPLETE with the IMEISV | the emergency registration continues | | |
//!
//! UE and AMF each make a K_AMF of their own, which protects nothing. This is the only procedure that selects null integrity. The gNB gets a
//! UE security capability with null algorithms only, so that it selects them, too.

use super::registration::{self, Attempt};
use super::security_mode::{Offer, check_capability, whole_request};
use super::{Procedure, RegistrationStep, Step};
use crate::amf::context::{Env, UeContext};
use crate::amf::emergency::{self, UnauthenticatedAdmission};
use crate::amf::error::RegistrationError;
use crate::amf::security::SecurityContext;
use crate::kit::document::pack_struct;
use pith_crypto::keys::KAmf;
use pith_crypto::nas::{CipheringAlgorithm, IntegrityAlgorithm};
use pith_nas::gmm::{SecurityModeCommand, SecurityModeComplete, SecurityModeReject};
use pith_nas::ie::{MobileIdentity, NasSecurityAlgorithms, NgKsi, UeSecurityCapability};
use pith_nas::security::Algorithms;
use pith_types::{Pei, UeIdentity};

/// Null integrity and ciphering.
const NULL: Algorithms =
    Algorithms { integrity: IntegrityAlgorithm::Nia0, ciphering: CipheringAlgorithm::Nea0 };

/// SECURITY MODE COMMAND with null algorithms was sent to the UE.
#[derive(Debug)]
pub(crate) struct AwaitingNullSecurityModeComplete {
    attempt: Attempt,
    pub offer: Offer,
}

pack_struct!(AwaitingNullSecurityModeComplete { attempt, offer });

/// Sends SECURITY MODE COMMAND with null algorithms (TS 24.501 5.4.2.2).
pub(crate) fn begin(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    attempt: Attempt,
    _: &UnauthenticatedAdmission,
) -> RegistrationStep {
    let capability = ue.capability.ok_or(RegistrationError::NoSecurityCapability)?;
    let chosen = NasSecurityAlgorithms { ciphering: NULL.ciphering as u8, integrity: NULL.integrity as u8 };
    let command = SecurityModeCommand::new(chosen, NgKsi::Native(0), capability);
    let null_only = UeSecurityCapability::of_5gs(0x80, 0x80);
    let context = SecurityContext::new(0, KAmf::new(env.rng.octets()), null_only, NULL);
    let offer = Offer::send(ue, env, context, command, true);
    Ok(AwaitingNullSecurityModeComplete { attempt, offer }.sent())
}

impl AwaitingNullSecurityModeComplete {
    /// SECURITY MODE COMPLETE: the UE is known by its PEI from now on (TS 23.501 5.16.4.1).
    pub fn on_security_mode_complete(
        self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        complete: SecurityModeComplete,
    ) -> RegistrationStep {
        let Self { mut attempt, offer } = self;
        let pei = complete.imeisv.as_ref().and_then(pei_in);
        let pei = pei.or_else(|| pei_in(&attempt.request.mobile_identity));
        offer.accepted(ue, env);
        let identity = UeIdentity::Pei(pei.ok_or(RegistrationError::NoIdentity)?);
        if let Some(container) = complete.nas_message_container {
            attempt.request = whole_request(&container)?;
            check_capability(ue, &attempt.request)?;
        }
        if !attempt.is_emergency() {
            return Err(RegistrationError::InvalidMandatoryInformation);
        }
        emergency::check_number(env, &identity)?;
        registration::on_identified(ue, env, identity);
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
        Step::replied(Procedure::AwaitingNullSecurityModeComplete(self), "SecurityModeCommand")
    }

    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }
}

/// The PEI in a mobile identity.
fn pei_in(identity: &MobileIdentity) -> Option<Pei> {
    match identity {
        MobileIdentity::Imei(pei) | MobileIdentity::Imeisv(pei) => Some(pei.clone()),
        _ => None,
    }
}
