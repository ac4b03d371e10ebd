//! The request for a vector, which starts every authentication (TS 33.501 6.1.2); the UDM chooses the method.
//!
//! ```text
//!  AMF ─> Authenticate     checks that the serving network is permitted
//!         AwaitingVector   <─ UDM   5G HE AV or EAP-AKA' AV, and the SUPI of a SUCI
//! ```

use super::super::config::AusfConfig;
use super::eap_aka_prime::{self, AwaitingEapResponse};
use super::five_g_aka::Challenged;
use super::{Subject, no_vector};
use crate::kit::Identity;
use crate::kit::document::pack_struct;
use pith_sbi::nausf_ueauthentication::{AuthenticationInfo, ResynchronizationInfo};
use pith_sbi::nudm_ueau::{
    AuthenticationInfoRequest, AuthenticationInfoResult, AuthenticationVector, GenerateAuthData,
};
use pith_sbi::{Cause, Problem, Reply, Response};
use pith_types::Plmn;
use std::sync::Arc;

/// A vector is requested from the UDM.
pub(in crate::ausf) struct AwaitingVector {
    serving_network_name: Arc<str>,
}

pack_struct!(AwaitingVector { serving_network_name });

/// The state after the first vector: a challenge of the method that the UDM chose.
pub(in crate::ausf) enum FirstChallenge {
    FiveGAka(Challenged),
    EapAkaPrime(AwaitingEapResponse),
}

impl AwaitingVector {
    /// Checks that the serving network is permitted, and requests a vector.
    pub fn begin(
        identity: &Identity,
        config: &AusfConfig,
        info: AuthenticationInfo,
    ) -> Result<(GenerateAuthData, Self), Box<Problem>> {
        let entitled = |plmn: &Plmn| plmn.serving_network_name() == *info.serving_network_name;
        if !config.serving_networks.iter().any(entitled) {
            return Err(Box::new(Problem::new(Cause::ServingNetworkNotAuthorized)));
        }
        let serving_network_name = info.serving_network_name;
        let body = request(identity, &serving_network_name, info.resynchronization_info);
        let call = GenerateAuthData { supi_or_suci: info.supi_or_suci, body };
        Ok((call, Self { serving_network_name }))
    }

    /// Challenges the UE by the method of the vector.
    pub fn reply(self, reply: Reply) -> Result<FirstChallenge, Box<Problem>> {
        let AuthenticationInfoResult { supi, authentication_vector, .. } = result(reply)?;
        let subject =
            Subject { supi: supi.ok_or_else(no_vector)?, serving_network_name: self.serving_network_name };
        match authentication_vector.ok_or_else(no_vector)? {
            AuthenticationVector::FiveGHeAka(vector) => {
                Ok(FirstChallenge::FiveGAka(Challenged::new(subject, &vector)))
            }
            AuthenticationVector::EapAkaPrime(vector) => {
                eap_aka_prime::challenge(subject, &vector).map(FirstChallenge::EapAkaPrime)
            }
        }
    }
}

/// The request to the UDM.
pub(super) fn request(
    identity: &Identity,
    serving_network_name: &Arc<str>,
    resynchronization: Option<ResynchronizationInfo>,
) -> AuthenticationInfoRequest {
    let mut body = AuthenticationInfoRequest::new(Arc::clone(serving_network_name), identity.instance_id);
    body.resynchronization_info = resynchronization;
    body
}

/// The UDM's reply.
pub(super) fn result(reply: Reply) -> Result<AuthenticationInfoResult, Box<Problem>> {
    match reply? {
        Response::AuthenticationInfoResult(result) => Ok(*result),
        _ => Err(no_vector()),
    }
}
