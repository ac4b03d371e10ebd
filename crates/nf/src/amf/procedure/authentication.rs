//! Primary authentication by 5G AKA (TS 24.501 5.4.1.3; TS 33.501 6.1.3.2; TS 23.502 4.2.2.2.2
//! steps 8 and 9a to 9c). The AMF is the SEAF: it compares HRES*, the AUSF compares RES*. If the
//! home network chose EAP-AKA', the AUSF's first reply leads to [`eap_authentication`].
//!
//! | step | state | from | timer |
//! |---|---|---|---|
//! | Nausf_UEAuthentication_Authenticate | [`AwaitingAuthenticationVector`] | AUSF | |
//! | AUTHENTICATION REQUEST | [`AwaitingAuthenticationResponse`] | UE | T3560 |
//! | 5g-aka-confirmation | [`AwaitingAuthenticationConfirmation`] | AUSF | |
//! | K_SEAF | security mode control | | |
//!
//! If a UE that registered with a 5G-GUTI fails, the 5G-GUTI may belong to another UE: the AMF requests the
//! SUCI and challenges the UE once more. A UE that registered with its SUCI is rejected.

use super::registration::Attempt;
use super::{Procedure, RegistrationStep, Step, eap_authentication, identification, security_mode};
use crate::amf::consumer;
use crate::amf::context::{CallId, Env, UeContext};
use crate::amf::error::{AuthenticationFault, RegistrationError};
use crate::amf::n1;
use crate::amf::retransmission::{Expiry, Retransmission};
use crate::amf::security::{ABBA, ng_ksi_after};
use crate::kit::document::pack_struct;
use crate::kit::{Level, Nf, Timer};
use bytes::Bytes;
use pith_crypto::kdf;
use pith_crypto::keys::{HresStar, KSeaf, Rand, ResStar};
use pith_nas::GmmCause;
use pith_nas::gmm::{
    AuthenticationFailure, AuthenticationRequest, AuthenticationResponse, AuthenticationResult,
};
use pith_nas::ie::NgKsi;
use pith_sbi::common::SupiOrSuci;
use pith_sbi::nausf_ueauthentication::{
    AuthData, AuthResult, Av5gAka, ConfirmationDataResponse, ResynchronizationInfo, UeAuthenticationCtx,
};
use pith_sbi::{Base64, Created, Hex, Operation, Reply, Response, Uri};
use pith_types::Supi;

/// An authentication vector is requested from the AUSF.
#[derive(Debug)]
pub(crate) struct AwaitingAuthenticationVector {
    attempt: Attempt,
    identity: SupiOrSuci,
    /// The UE was challenged before in this registration and reported a synch failure.
    resynchronised: bool,
    /// The key set identifier of the challenge, which must differ from the one that the UE has in use.
    ng_ksi: u8,
    pub call: CallId,
}

/// AUTHENTICATION REQUEST was sent to the UE.
#[derive(Debug)]
pub(crate) struct AwaitingAuthenticationResponse {
    attempt: Attempt,
    identity: SupiOrSuci,
    resynchronised: bool,
    challenge: Challenge,
    request: Retransmission,
}

/// The AUSF verifies the UE's response.
#[derive(Debug)]
pub(crate) struct AwaitingAuthenticationConfirmation {
    attempt: Attempt,
    ng_ksi: u8,
    /// Whether HRES* matched.
    is_plausible: bool,
    pub call: CallId,
}

/// A challenge and its expected response.
#[derive(Debug)]
struct Challenge {
    ng_ksi: u8,
    rand: Rand,
    hxres_star: HresStar,
    /// URI of the authentication context at the AUSF.
    context: Uri,
}

pack_struct!(AwaitingAuthenticationVector { attempt, identity, resynchronised, ng_ksi, call });
pack_struct!(AwaitingAuthenticationResponse { attempt, identity, resynchronised, challenge, request });
pack_struct!(AwaitingAuthenticationConfirmation { attempt, ng_ksi, is_plausible, call });
pack_struct!(Challenge { ng_ksi, rand, hxres_star, context });

/// Requests a challenge from the AUSF (TS 29.509 5.2.2.2.2).
pub(crate) fn begin(ue: &mut UeContext, env: &mut Env<'_>, attempt: Attempt, identity: SupiOrSuci) -> Step {
    let ng_ksi = attempt.next_ng_ksi(ue);
    // From now on the UE takes no message of an AMF that does not have its security context.
    ue.forget_initial_message();
    ask(ue, env, attempt, identity, ng_ksi, None)
}

fn ask(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    attempt: Attempt,
    identity: SupiOrSuci,
    ng_ksi: u8,
    resynchronization: Option<ResynchronizationInfo>,
) -> Step {
    let resynchronised = resynchronization.is_some();
    ue.claimed = Some(identity.clone());
    let call = consumer::authenticate(ue, env, &identity, resynchronization);
    let next = AwaitingAuthenticationVector { attempt, identity, resynchronised, ng_ksi, call };
    Step::waiting(Procedure::AwaitingAuthenticationVector(next), Nf::Ausf)
}

impl AwaitingAuthenticationVector {
    /// Sends the challenge to the UE (TS 24.501 5.4.1.3.2).
    pub fn on_reply(self, ue: &mut UeContext, env: &mut Env<'_>, reply: Reply) -> RegistrationStep {
        let context = match reply {
            Ok(Response::UeAuthenticationCtxCreated(context)) => *context,
            Ok(_) => return Err(RegistrationError::WrongAnswer(Operation::Authenticate)),
            Err(problem) => {
                let error = RegistrationError::of_problem(Operation::Authenticate, &problem);
                let is_foreign =
                    matches!(&self.identity, SupiOrSuci::Suci(it) if !env.config.serves_plmn(it.plmn));
                return Err(match error {
                    RegistrationError::UnknownSubscriber if is_foreign => {
                        RegistrationError::ForeignSubscriber
                    }
                    error => error,
                });
            }
        };
        let Created { location, body: UeAuthenticationCtx { auth_data, .. } } = context;
        match auth_data {
            AuthData::FiveGAka(vector) => Ok(self.challenge(ue, env, location, &vector)),
            AuthData::Eap(Base64(packet)) => {
                eap_authentication::begin(ue, env, self.attempt, self.ng_ksi, location, packet)
            }
        }
    }

    fn challenge(self, ue: &mut UeContext, env: &mut Env<'_>, context: Uri, vector: &Av5gAka) -> Step {
        let mut request = AuthenticationRequest::new(NgKsi::Native(self.ng_ksi), ABBA.to_vec());
        request.rand = Some(vector.rand.0);
        request.autn = Some(vector.autn.0);
        let next = AwaitingAuthenticationResponse {
            attempt: self.attempt,
            identity: self.identity,
            resynchronised: self.resynchronised,
            challenge: Challenge {
                ng_ksi: self.ng_ksi,
                rand: Rand::new(vector.rand.0),
                hxres_star: HresStar::new(vector.hxres_star.0),
                context,
            },
            request: Retransmission::send(ue, env, Timer::T3560, request),
        };
        Step::replied(Procedure::AwaitingAuthenticationResponse(next), "AuthenticationRequest")
    }

    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }
}

impl AwaitingAuthenticationResponse {
    /// AUTHENTICATION RESPONSE: compares HRES* and sends RES* to the AUSF, also after a mismatch
    /// (TS 33.501 6.1.3.2.0 steps 9 and 10).
    pub fn on_authentication_response(
        self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        response: &AuthenticationResponse,
    ) -> RegistrationStep {
        self.request.stop(ue, env);
        let Challenge { ng_ksi, rand, hxres_star, context } = self.challenge;
        let res_star = response.res_star.map(ResStar::new);
        let hres_star = res_star.as_ref().map(|res_star| kdf::hres_star(&rand, res_star));
        let next = AwaitingAuthenticationConfirmation {
            attempt: self.attempt,
            ng_ksi,
            is_plausible: hres_star.is_some_and(|hres_star| hres_star == hxres_star),
            call: consumer::confirm_5g_aka(ue, env, &context, response.res_star),
        };
        Ok(Step::waiting(Procedure::AwaitingAuthenticationConfirmation(next), Nf::Ausf))
    }

    /// AUTHENTICATION FAILURE (TS 24.501 5.4.1.3.7 items c to f). Another cause does not say that authentication has failed: the procedure is
    /// aborted.
    pub fn on_authentication_failure(
        self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        failure: &AuthenticationFailure,
    ) -> RegistrationStep {
        self.request.stop(ue, env);
        env.out.log(Level::Debug, || format!("{}: authentication failure {}", ue.name(), failure.cause));
        match (failure.cause, failure.auts) {
            (GmmCause::SynchFailure, Some(auts)) if !self.resynchronised => {
                Ok(self.resynchronise(ue, env, auts))
            }
            (GmmCause::NgKsiAlreadyInUse, _) if !self.attempt.ng_ksi_was_in_use => {
                Ok(self.with_another_ng_ksi(ue, env))
            }
            _ => refused(ue, env, self.attempt, failure),
        }
    }

    /// Case f: the home network resynchronises with the UE's sequence number. A second synch
    /// failure in a row ends the authentication.
    fn resynchronise(self, ue: &mut UeContext, env: &mut Env<'_>, auts: [u8; 14]) -> Step {
        let rand = Hex(*self.challenge.rand.as_bytes());
        let resynchronization = Some(ResynchronizationInfo::new(rand, auts));
        ask(ue, env, self.attempt, self.identity, self.challenge.ng_ksi, resynchronization)
    }

    /// Case e: a new challenge with another key set identifier.
    fn with_another_ng_ksi(self, ue: &mut UeContext, env: &mut Env<'_>) -> Step {
        let attempt = Attempt { ng_ksi_was_in_use: true, ..self.attempt };
        let ng_ksi = ng_ksi_after(self.challenge.ng_ksi);
        ask(ue, env, attempt, self.identity, ng_ksi, None)
    }

    /// T3560 expired: retransmits the challenge; on the fifth expiry the registration is aborted
    /// (TS 24.501 5.4.1.3.7 b).
    pub fn on_t3560(mut self, ue: &mut UeContext, env: &mut Env<'_>) -> RegistrationStep {
        match self.request.send_again(ue, env) {
            Expiry::SendAgain => {
                Ok(Step::replied(Procedure::AwaitingAuthenticationResponse(self), "AuthenticationRequest"))
            }
            Expiry::GiveUp => Err(RegistrationError::NoAnswer),
        }
    }

    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }
}

impl AwaitingAuthenticationConfirmation {
    /// The AUSF's result, with K_SEAF on success (TS 33.501 6.1.3.2.0 step 12).
    pub fn on_reply(self, ue: &mut UeContext, env: &mut Env<'_>, reply: Reply) -> RegistrationStep {
        let confirmation = match reply {
            Ok(Response::ConfirmationDataResponse(confirmation)) => *confirmation,
            Ok(_) => return Err(RegistrationError::WrongAnswer(Operation::FiveGAkaConfirmation)),
            Err(_) if !self.is_plausible => {
                return failed(ue, env, self.attempt, None, AuthenticationFault::WrongResponse);
            }
            Err(problem) => {
                return Err(RegistrationError::of_problem(Operation::FiveGAkaConfirmation, &problem));
            }
        };
        match proven(confirmation).filter(|_| self.is_plausible) {
            Some((supi, k_seaf)) => {
                let k_amf = kdf::k_amf(&k_seaf, supi.imsi(), &ABBA);
                security_mode::begin(ue, env, self.attempt, supi, self.ng_ksi, k_amf, None)
            }
            None => failed(ue, env, self.attempt, None, AuthenticationFault::WrongResponse),
        }
    }

    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }
}

/// SUPI and anchor key, if the AUSF confirms the authentication.
fn proven(confirmation: ConfirmationDataResponse) -> Option<(Supi, KSeaf)> {
    let ConfirmationDataResponse { auth_result, supi, kseaf } = confirmation;
    let success = auth_result == AuthResult::AuthenticationSuccess;
    supi.zip(kseaf).filter(|_| success).map(|(supi, kseaf)| (supi, KSeaf::new(kseaf.0)))
}

/// AUTHENTICATION FAILURE for which nothing else is left to do. An AUTHENTICATION REJECT makes the USIM invalid, so it is sent only for the causes
/// after which the specification lets the network send one: #20, #26 and a second #21. A second #71 says nothing of the keys, a #21 without
/// AUTS is a protocol error, and the network treats undefined causes as #111 (TS 24.501 5.4.1.3.7, 9.11.3.2).
pub(super) fn refused(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    attempt: Attempt,
    failure: &AuthenticationFailure,
) -> RegistrationStep {
    let fault = match failure.cause {
        GmmCause::MacFailure => AuthenticationFault::Mac,
        GmmCause::SynchFailure if failure.auts.is_some() => AuthenticationFault::Synchronisation,
        cause @ GmmCause::NonFiveGAuthenticationUnacceptable => AuthenticationFault::Cause(cause),
        cause => return Err(RegistrationError::AuthenticationRefused(cause)),
    };
    failed(ue, env, attempt, None, fault)
}

/// Authentication failed. If the UE registered with a 5G-GUTI, the AMF requests its identity; else
/// the UE is rejected (TS 24.501 5.4.1.3.5, 5.4.1.3.7 c; TS 33.501 6.1.3.2.2). EAP-Failure is sent
/// in both cases (TS 24.501 5.4.1.2.2.10).
pub(super) fn failed(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    attempt: Attempt,
    eap_failure: Option<Bytes>,
    fault: AuthenticationFault,
) -> RegistrationStep {
    if attempt.came_with_suci() || attempt.has_been_asked {
        return Err(RegistrationError::AuthenticationFailed { eap_failure, fault });
    }
    if let Some(eap_failure) = eap_failure {
        let ng_ksi = NgKsi::Native(attempt.next_ng_ksi(ue));
        n1::send(ue, env, AuthenticationResult::new(ng_ksi, eap_failure.to_vec()));
    }
    Ok(identification::begin(ue, env, attempt))
}
