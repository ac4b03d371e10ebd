//! EAP-AKA' (TS 33.501 6.1.3.1, RFC 9048, RFC 4187): the home network is the EAP server; the AMF
//! forwards the packets (TS 29.509 5.2.2.2.3).
//!
//! ```text
//!                            <─ UDM   RAND, AUTN, XRES, CK', IK'            steps 1, 2
//!                                     keys derived; AKA'-Challenge          steps 3, 4
//!  AwaitingEapResponse       <─ UE    AKA'-Challenge                        step 8: AT_MAC and RES
//!                                     EAP-Success, K_SEAF                   step 10; result to the UDM
//!                            <─ UE    AKA'-Synchronization-Failure: AUTS
//!  AwaitingResyncVector      <─ UDM   another challenge, once
//!                            <─ UE    wrong RES or AT_MAC, or a malformed packet:
//!                                     AKA'-Notification                     RFC 4187 6.3.2
//!  AwaitingNotificationResponse <─ UE    any response: EAP-Failure             RFC 4187 6.3.3
//!                            <─ UE    AKA'-Authentication-Reject, AKA'-Client-Error: EAP-Failure
//! ```

use super::super::eap::{self, EapError, Response as EapResponse};
use super::{Subject, location, no_vector, vector};
use crate::kit::document::pack_struct;
use crate::kit::{Identity, Instant};
use pith_crypto::algorithm::Res;
use pith_crypto::eap_aka_prime::{self, Keys};
use pith_crypto::kdf;
use pith_crypto::keys::{Autn, Auts, Ck, Ik, KAut, KSeaf, Rand};
use pith_sbi::common::{AuthType, Links, SupiOrSuci};
use pith_sbi::nausf_ueauthentication::{
    AuthData, AuthResult, EapSession, ResynchronizationInfo, UeAuthenticationCtx,
};
use pith_sbi::nudm_ueau::{AuthenticationVector, AvEapAkaPrime, GenerateAuthData};
use pith_sbi::{Base64, Created, Hex, Problem, Reply, Request, Response, Secret, SecretText};
use std::sync::Arc;

/// The UE is challenged: the expected response, and the resulting keys.
pub(in crate::ausf) struct AwaitingEapResponse {
    subject: Subject,
    /// The pending EAP-Request.
    request: Vec<u8>,
    identifier: u8,
    rand: Rand,
    xres: Res,
    k_aut: KAut,
    k_seaf: KSeaf,
    /// The UE has reported a synchronisation failure once already.
    resynchronised: bool,
}

/// The UE has reported a synchronisation failure: another vector is requested.
pub(in crate::ausf) struct AwaitingResyncVector {
    subject: Subject,
    identifier: u8,
}

/// The authentication failed, and a notification was sent to the UE: EAP-Failure follows.
pub(in crate::ausf) struct AwaitingNotificationResponse {
    subject: Subject,
    identifier: u8,
}

pack_struct!(AwaitingEapResponse { subject, request, identifier, rand, xres, k_aut, k_seaf, resynchronised });
pack_struct!(AwaitingResyncVector { subject, identifier });
pack_struct!(AwaitingNotificationResponse { subject, identifier });

/// The result of a UE's response.
pub(in crate::ausf) enum Step {
    /// RES matches.
    Success(Response, Request),
    /// The authentication failed and is over.
    Failure(Response, Request),
    /// The authentication failed; the UE is notified first.
    Notified(Response, AwaitingNotificationResponse),
    /// The home network must resynchronise with the UE.
    Resynchronise(GenerateAuthData, AwaitingResyncVector),
    /// The packet does not answer the pending request: the state is unchanged.
    Refused(Box<Problem>, AwaitingEapResponse),
}

/// Derives keys and creates the challenge (steps 3 and 4).
pub(super) fn challenge(
    subject: Subject,
    vector: &AvEapAkaPrime,
) -> Result<AwaitingEapResponse, Box<Problem>> {
    let (rand, SecretText(xres)) = (Rand::new(vector.rand.0), &vector.xres);
    let xres = Res::from_hex(xres).ok_or_else(no_vector)?;
    // The first identifier may have any value (RFC 3748 4.1).
    let [identifier, ..] = vector.rand.0;
    Ok(AwaitingEapResponse::new(subject, identifier, rand, xres, vector))
}

impl AwaitingEapResponse {
    fn new(subject: Subject, identifier: u8, rand: Rand, xres: Res, vector: &AvEapAkaPrime) -> Self {
        let (ck, ik) = (Ck::new(vector.ck_prime.0), Ik::new(vector.ik_prime.0));
        let Keys { k_aut, emsk, .. } = eap_aka_prime::keys(&ck, &ik, subject.supi.imsi());
        let k_seaf = kdf::k_seaf(&kdf::k_ausf_from_emsk(&emsk), &subject.serving_network_name);
        let autn = Autn::new(vector.autn.0);
        let challenge =
            eap::Challenge { rand: &rand, autn: &autn, network_name: &subject.serving_network_name };
        let request = eap::challenge(identifier, &challenge, &k_aut);
        Self { subject, request, identifier, rand, xres, k_aut, k_seaf, resynchronised: false }
    }

    /// The response that creates the authentication context.
    pub fn context(&self, identity: &Identity, id: &str) -> Response {
        let location = location(identity, id);
        let data = AuthData::Eap(Base64(self.request.clone().into()));
        let mut body = UeAuthenticationCtx::new(AuthType::EapAkaPrime, data, links(identity, id));
        body.serving_network_name = Some(Arc::clone(&self.subject.serving_network_name));
        Response::UeAuthenticationCtxCreated(Box::new(Created { location, body }))
    }

    /// The response with a further EAP-Request.
    pub fn session(&self, identity: &Identity, id: &str) -> Response {
        ongoing(self.request.clone(), links(identity, id))
    }

    /// Handles the UE's response.
    pub fn on_response(self, identity: &Identity, now: Instant, id: &str, packet: &[u8]) -> Step {
        match EapResponse::decode(packet, self.identifier) {
            Ok(EapResponse::Challenge { res, mac }) => {
                let proven = mac.is_right(&self.k_aut) && Res::from_octets(res).as_ref() == Some(&self.xres);
                if proven { self.success(identity, now) } else { self.notify(identity, id) }
            }
            Ok(EapResponse::SynchronizationFailure(auts)) if !self.resynchronised => {
                self.resynchronise(identity, &auts)
            }
            Ok(EapResponse::AuthenticationReject | EapResponse::ClientError(_) | EapResponse::Nak) => {
                let (response, event) = fail(self.subject, self.identifier, identity, now);
                Step::Failure(response, event)
            }
            Err(EapError::NoResponse | EapError::OtherIdentifier(_)) => {
                let problem = Problem::of_status(400).detail("eapPayload answers no pending request");
                Step::Refused(Box::new(problem), self)
            }
            // Another key derivation function than the offered one counts as a wrong AT_MAC (RFC 9048 3.2).
            Ok(_) | Err(_) => self.notify(identity, id),
        }
    }

    /// Steps 9 and 10.
    fn success(self, identity: &Identity, now: Instant) -> Step {
        let mut body = EapSession::new(Some(Base64(eap::success(self.identifier).to_vec().into())));
        body.auth_result = Some(AuthResult::AuthenticationSuccess);
        body.kseaf = Some(Secret(*self.k_seaf.as_bytes()));
        body.supi = Some(self.subject.supi.clone());
        let event = self.subject.event(identity, now, AuthType::EapAkaPrime, true);
        Step::Success(Response::EapSession(Box::new(body)), event)
    }

    /// A server must send a notification before it ends a failed authentication (RFC 4187 6.3.2).
    fn notify(self, identity: &Identity, id: &str) -> Step {
        let identifier = self.identifier.wrapping_add(1);
        let request = eap::notification(identifier, eap::FAILURE_BEFORE_AUTHENTICATION);
        let next = AwaitingNotificationResponse { subject: self.subject, identifier };
        Step::Notified(ongoing(request, links(identity, id)), next)
    }

    /// Sends AUTS to the home network, which generates a new vector (RFC 4187 6.3.1, TS 33.102 6.3.5).
    fn resynchronise(self, identity: &Identity, auts: &Auts) -> Step {
        let info = ResynchronizationInfo::new(Hex(*self.rand.as_bytes()), Hex(*auts.as_bytes()));
        let body = vector::request(identity, &self.subject.serving_network_name, Some(info));
        let call = GenerateAuthData { supi_or_suci: SupiOrSuci::Supi(self.subject.supi.clone()), body };
        let identifier = self.identifier.wrapping_add(1);
        Step::Resynchronise(call, AwaitingResyncVector { subject: self.subject, identifier })
    }
}

impl AwaitingResyncVector {
    /// The vector after a resynchronisation: another challenge in the same session.
    pub fn reply(self, reply: Reply) -> Result<AwaitingEapResponse, Box<Problem>> {
        let Some(AuthenticationVector::EapAkaPrime(vector)) = vector::result(reply)?.authentication_vector
        else {
            return Err(no_vector());
        };
        let xres = Res::from_hex(&vector.xres.0).ok_or_else(no_vector)?;
        let rand = Rand::new(vector.rand.0);
        let next = AwaitingEapResponse::new(self.subject, self.identifier, rand, xres, &vector);
        Ok(AwaitingEapResponse { resynchronised: true, ..next })
    }
}

impl AwaitingNotificationResponse {
    /// The authentication has failed, whatever the UE responds.
    pub fn on_response(self, identity: &Identity, now: Instant) -> (Response, Request) {
        fail(self.subject, self.identifier, identity, now)
    }
}

/// EAP-Failure for the UE, and the event for the UDM.
fn fail(subject: Subject, identifier: u8, identity: &Identity, now: Instant) -> (Response, Request) {
    let mut body = EapSession::new(Some(Base64(eap::failure(identifier).to_vec().into())));
    body.auth_result = Some(AuthResult::AuthenticationFailure);
    let event = subject.event(identity, now, AuthType::EapAkaPrime, false);
    (Response::EapSession(Box::new(body)), event)
}

/// Another EAP-Request for the UE.
fn ongoing(request: Vec<u8>, links: Links) -> Response {
    let mut body = EapSession::new(Some(Base64(request.into())));
    body.auth_result = Some(AuthResult::AuthenticationOngoing);
    body.links = Some(links);
    Response::EapSession(Box::new(body))
}

fn links(identity: &Identity, id: &str) -> Links {
    let mut links = Links::default();
    links.insert("eap-session".into(), location(identity, id).join("/eap-session").into());
    links
}
