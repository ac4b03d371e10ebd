//! Nudm_UEAuthentication_Get: an authentication vector (TS 33.501 6.1.2, 6.1.3; TS 29.503 5.4.2.2).
//!
//! ```text
//!  AUSF ─> GenerateAuthData        SUCI -> SUPI (TS 33.501 6.12.5)
//!          AwaitingAuthenticationSubscription  <─ UDR   K, OPc, SQN; AUTS checked (6.1.3.3.2)
//!          AwaitingSequenceNumberUpdate        <─ UDR   SQN is stored before it is used
//!  AUSF <─ vector
//! ```
//!
//! No SQN is used in two vectors (TS 33.102 6.3.2). Other transactions of the subscriber may be in progress,
//! also in other instances. So the UDR stores the new SQN only if its current SQN is the one that this
//! transaction read. If it is not (409), the transaction starts again with the current SQN.

use super::super::config::UdmConfig;
use super::super::error::AuthenticationError;
use super::{Step, Transaction};
use crate::kit::Rng;
use pith_crypto::aka::{self, AuthenticationVector as AkaVector};
use pith_crypto::algorithm::ResLength;
use pith_crypto::keys::{Auts, ManagementField, Opc, Rand, SubscriberKey, Topc};
use pith_crypto::milenage::Milenage;
use pith_crypto::sqn::Sqn;
use pith_crypto::suci::decode_msin;
use pith_crypto::tuak::{Tuak, TuakKey};
use pith_crypto::{Algorithm, kdf};
use pith_sbi::common::{AuthType, PatchItem, SupiOrSuci};
use pith_sbi::nausf_ueauthentication::ResynchronizationInfo;
use pith_sbi::nudm_ueau::{
    AuthenticationInfoResult, AuthenticationVector, Av5GHeAka, AvEapAkaPrime, GenerateAuthData,
};
use pith_sbi::nudr_dr::{AuthenticationSubscription, ModifyAuthenticationSubscription, QueryAuthSubsData};
use pith_sbi::{Hex, Reply, Response, Secret, SecretText};
use pith_types::{SchemeOutput, Suci, Supi};
use std::str::FromStr;
use std::sync::Arc;

/// Iterations of Keccak-f in TUAK, unless the operator chose more (TS 35.231 5.2).
const TUAK_ITERATIONS: u8 = 1;

/// Restarts of a transaction after another one used its SQN. Of concurrent transactions one
/// succeeds in each round, so eight can run at once; a UE causes fewer.
const MAX_RESTARTS: u8 = 7;

const SQN: &str = "/sequenceNumber/sqn";

/// Keys and SQN are requested from the UDR.
pub(in crate::udm) struct AwaitingAuthenticationSubscription {
    supi: Supi,
    serving_network_name: Arc<str>,
    resynchronization: Option<ResynchronizationInfo>,
    /// Restarts left.
    restarts_left: u8,
}

/// Waits until SQN is stored: otherwise a second vector could use it.
pub(in crate::udm) struct AwaitingSequenceNumberUpdate {
    /// The state to restart with if another vector used the SQN.
    asked: AwaitingAuthenticationSubscription,
    result: AuthenticationInfoResult,
}

/// De-conceals the SUPI and requests its keys.
pub(super) fn begin(config: &UdmConfig, request: GenerateAuthData) -> Step {
    let supi = match &request.supi_or_suci {
        SupiOrSuci::Supi(supi) => Ok(supi.clone()),
        SupiOrSuci::Suci(suci) => deconceal(config, suci),
    };
    let supi = match supi {
        Ok(supi) => supi,
        Err(error) => return Step::refuse(error),
    };
    let state = AwaitingAuthenticationSubscription {
        supi,
        serving_network_name: request.body.serving_network_name,
        resynchronization: request.body.resynchronization_info,
        restarts_left: MAX_RESTARTS,
    };
    state.query()
}

/// The SIDF: SUPI of a SUCI (TS 33.501 6.12.5, C.3.3).
fn deconceal(config: &UdmConfig, suci: &Suci) -> Result<Supi, AuthenticationError> {
    let (scheme, output) = match &suci.output {
        SchemeOutput::Null(_) => return suci.null_scheme_supi().ok_or(AuthenticationError::NoImsi),
        SchemeOutput::Concealed { scheme, output } => (*scheme, output),
    };
    let known = config.home_network_keys.iter().find(|key| key.id == suci.home_network_key_id);
    let known = known.ok_or(AuthenticationError::UnknownHomeNetworkKey)?;
    if known.key.profile() as u8 != scheme {
        return Err(AuthenticationError::UnsupportedScheme);
    }
    let msin = decode_msin(&known.key.deconceal(output)?).ok_or(AuthenticationError::NoImsi)?;
    suci.supi_of(&msin).map_err(|_| AuthenticationError::NoImsi)
}

impl AwaitingAuthenticationSubscription {
    fn query(self) -> Step {
        let query = QueryAuthSubsData { ue_id: self.supi.clone() };
        Step::Call(query.into(), Transaction::AwaitingAuthenticationSubscription(self))
    }

    /// Restarts because another vector used the SQN.
    fn restart(self) -> Step {
        match self.restarts_left.checked_sub(1) {
            Some(restarts_left) => Self { restarts_left, ..self }.query(),
            None => Step::refuse(AuthenticationError::SequenceNumberTaken),
        }
    }

    pub(super) fn reply(self, rng: &mut Rng, reply: Reply) -> Step {
        let subscription = match reply {
            Ok(Response::AuthenticationSubscription(subscription)) => subscription,
            Ok(_) => return Step::refuse(AuthenticationError::UnexpectedAnswer),
            Err(problem) => return Step::Answer(Err(problem), Vec::new()),
        };
        let known = sequence_number(&subscription);
        match self.vector(rng, &subscription, known.unwrap_or_default()) {
            Ok((sqn, result)) => {
                let keep = keep(&self.supi, known, sqn);
                let state = AwaitingSequenceNumberUpdate { asked: self, result };
                Step::Call(keep.into(), Transaction::AwaitingSequenceNumberUpdate(state))
            }
            Err(error) => Step::refuse(error),
        }
    }

    /// The next vector and its SQN.
    fn vector(
        &self,
        rng: &mut Rng,
        subscription: &AuthenticationSubscription,
        known: Sqn,
    ) -> Result<(Sqn, AuthenticationInfoResult), AuthenticationError> {
        let algorithm = algorithm(subscription)?;
        let last = match &self.resynchronization {
            None => known,
            Some(info) => resynchronised(&algorithm, known, info)?,
        };
        let sqn = last.next();
        let management_field =
            subscription.authentication_management_field.map_or([0x80, 0], |Hex(octets)| octets);
        let rand = Rand::new(rng.octets());
        let vector = aka::generate(&algorithm, rand, sqn, ManagementField::new(management_field));
        let mut result = AuthenticationInfoResult::new(subscription.authentication_method.clone());
        result.supi = Some(self.supi.clone());
        result.authentication_vector = Some(match subscription.authentication_method {
            AuthType::EapAkaPrime => eap_aka_prime(&vector, &self.serving_network_name),
            _ => five_g_aka(&vector, &self.serving_network_name),
        });
        Ok((sqn, result))
    }
}

/// The highest SQN used.
fn sequence_number(subscription: &AuthenticationSubscription) -> Option<Sqn> {
    let Hex(octets) = subscription.sequence_number.as_ref()?.sqn?;
    Some(Sqn::from_bytes(octets))
}

/// The SQN from which to continue after a synchronisation failure (TS 33.102 6.3.5).
fn resynchronised(
    algorithm: &Algorithm,
    known: Sqn,
    info: &ResynchronizationInfo,
) -> Result<Sqn, AuthenticationError> {
    let sqn_ms = aka::check_auts(algorithm, &Rand::new(info.rand.0), &Auts::new(info.auts.0))
        .map_err(|_| AuthenticationError::WrongAuts)?;
    Ok(known.after_resynchronisation(sqn_ms))
}

/// The subscriber's functions f1 to f5*.
fn algorithm(subscription: &AuthenticationSubscription) -> Result<Algorithm, AuthenticationError> {
    let k: SubscriberKey = key(subscription.enc_permanent_key.as_ref(), "K")?;
    if subscription.algorithm_id.as_deref() == Some("tuak") {
        let topc: Topc = key(subscription.enc_topc_key.as_ref(), "TOPc")?;
        let tuak = Tuak::new(TuakKey::Bits128(k), topc, TUAK_ITERATIONS);
        return Ok(Algorithm::Tuak(tuak, ResLength::Bits64));
    }
    let opc: Opc = key(subscription.enc_opc_key.as_ref(), "OPc")?;
    Ok(Algorithm::Milenage(Milenage::new(&k, &opc)))
}

fn key<K: FromStr>(text: Option<&SecretText>, name: &'static str) -> Result<K, AuthenticationError> {
    let parsed = text.and_then(|SecretText(text)| text.parse().ok());
    parsed.ok_or(AuthenticationError::IncompleteSubscription(name))
}

/// 5G HE AV (TS 33.501 6.1.3.2.0 step 1).
fn five_g_aka(vector: &AkaVector, serving_network_name: &str) -> AuthenticationVector {
    let av = kdf::five_g_he_av(vector, serving_network_name);
    AuthenticationVector::FiveGHeAka(Av5GHeAka::new(
        Hex(*av.rand.as_bytes()),
        Secret(*av.xres_star.as_bytes()),
        Hex(*av.autn.as_bytes()),
        Secret(*av.k_ausf.as_bytes()),
    ))
}

/// EAP-AKA' AV (TS 33.501 6.1.3.1 step 1).
fn eap_aka_prime(vector: &AkaVector, serving_network_name: &str) -> AuthenticationVector {
    let (ck_prime, ik_prime) = kdf::ck_ik_prime(&vector.ck, &vector.ik, serving_network_name, &vector.autn);
    let xres = hex::encode(vector.xres.as_bytes());
    AuthenticationVector::EapAkaPrime(AvEapAkaPrime::new(
        Hex(*vector.rand.as_bytes()),
        SecretText::from(xres),
        Hex(*vector.autn.as_bytes()),
        Secret(*ck_prime.as_bytes()),
        Secret(*ik_prime.as_bytes()),
    ))
}

/// Stores `sqn` if the current one is the known one.
fn keep(supi: &Supi, known: Option<Sqn>, sqn: Sqn) -> ModifyAuthenticationSubscription {
    let text = |sqn: Sqn| Hex(sqn.to_bytes()).to_string();
    let test = known.map(|known| PatchItem::test(SQN, text(known)));
    let body = test.into_iter().chain([PatchItem::replace(SQN, text(sqn))]).collect();
    ModifyAuthenticationSubscription { ue_id: supi.clone(), body }
}

impl AwaitingSequenceNumberUpdate {
    pub(super) fn reply(self, reply: Reply) -> Step {
        match reply {
            Ok(Response::NoContent) => {
                Step::Answer(Ok(Response::AuthenticationInfoResult(Box::new(self.result))), Vec::new())
            }
            Ok(_) => Step::refuse(AuthenticationError::UnexpectedAnswer),
            Err(problem) if problem.status == 409 => self.asked.restart(),
            Err(problem) => Step::Answer(Err(problem), Vec::new()),
        }
    }
}
