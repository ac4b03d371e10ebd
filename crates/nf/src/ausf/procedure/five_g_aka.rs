//! 5G-AKA (TS 33.501 6.1.3.2): the home network's side.
//!
//! ```text
//!  AwaitingVector   <─ UDM   RAND, AUTN, XRES*, K_AUSF      steps 1, 2
//!                            HXRES*, K_SEAF derived         steps 3, 4; challenge to the AMF 5
//!  Challenged       <─ AMF   RES*                           step 10
//!                            compared with XRES*            step 11; result to UDM and AMF 12
//! ```

use super::super::config::AusfConfig;
use crate::kit::{Identity, Instant};
use pith_crypto::kdf;
use pith_crypto::keys::{KAusf, KSeaf, Rand, ResStar};
use pith_sbi::common::{AuthType, Links};
use pith_sbi::nausf_ueauthentication::{
    AuthData, AuthResult, AuthenticationInfo, Av5gAka, ConfirmationData, ConfirmationDataResponse,
    UeAuthenticationCtx,
};
use pith_sbi::nudm_ueau::{
    AuthEvent, AuthenticationInfoRequest, AuthenticationVector, Av5GHeAka, ConfirmAuth, GenerateAuthData,
};
use pith_sbi::{Cause, Created, Hex, Problem, Reply, Request, Response, Secret, Uri};
use pith_types::Supi;
use std::sync::Arc;

/// Waits for the vector.
pub(in crate::ausf) struct AwaitingVector {
    serving_network_name: Arc<str>,
}

/// The UE is challenged: what its answer must be, and what it then gets.
pub(in crate::ausf) struct Challenged {
    supi: Supi,
    serving_network_name: Arc<str>,
    challenge: Av5gAka,
    xres_star: ResStar,
    k_seaf: KSeaf,
}

impl AwaitingVector {
    /// Checks that the serving network may ask, and asks for a vector.
    pub(in crate::ausf) fn begin(
        identity: &Identity,
        config: &AusfConfig,
        info: AuthenticationInfo,
    ) -> Result<(GenerateAuthData, Self), Box<Problem>> {
        let entitled = |plmn: &pith_types::Plmn| plmn.serving_network_name() == *info.serving_network_name;
        if !config.serving_networks.iter().any(entitled) {
            return Err(Box::new(Problem::new(Cause::ServingNetworkNotAuthorized)));
        }
        let mut body =
            AuthenticationInfoRequest::new(Arc::clone(&info.serving_network_name), identity.instance_id);
        body.resynchronization_info = info.resynchronization_info;
        let call = GenerateAuthData { supi_or_suci: info.supi_or_suci, body };
        Ok((call, Self { serving_network_name: info.serving_network_name }))
    }

    pub(in crate::ausf) fn reply(self, reply: Reply) -> Result<Challenged, Box<Problem>> {
        let Response::AuthenticationInfoResult(result) = reply? else {
            return Err(Box::new(Problem::system_failure("the UDM gave no vector")));
        };
        let (Some(supi), Some(AuthenticationVector::FiveGHeAka(vector))) =
            (result.supi, result.authentication_vector)
        else {
            let detail = "only vectors of 5G-AKA are served; set the subscriber's method to 5G_AKA";
            return Err(Box::new(Problem::of_status(501).detail(detail)));
        };
        Ok(self.challenge(supi, &vector))
    }

    fn challenge(self, supi: Supi, vector: &Av5GHeAka) -> Challenged {
        let xres_star = ResStar::new(vector.xres_star.0);
        let hxres_star = kdf::hres_star(&Rand::new(vector.rand.0), &xres_star);
        let k_seaf = kdf::k_seaf(&KAusf::new(vector.kausf.0), &self.serving_network_name);
        let challenge = Av5gAka::new(vector.rand, Hex(*hxres_star.as_bytes()), vector.autn);
        Challenged { supi, serving_network_name: self.serving_network_name, challenge, xres_star, k_seaf }
    }
}

impl Challenged {
    /// The resource that the AMF answers at.
    pub(in crate::ausf) fn context(&self, identity: &Identity, id: &str) -> Response {
        let location = Uri::new(&identity.api_root, &format!("/nausf-auth/v1/ue-authentications/{id}"));
        let mut links = Links::default();
        links.insert("5g-aka".into(), location.join("/5g-aka-confirmation").into());
        let mut body =
            UeAuthenticationCtx::new(AuthType::FiveGAka, AuthData::FiveGAka(self.challenge.clone()), links);
        body.serving_network_name = Some(Arc::clone(&self.serving_network_name));
        Response::UeAuthenticationCtxCreated(Box::new(Created { location, body }))
    }

    /// The result for the AMF, and the event for the UDM.
    pub(in crate::ausf) fn confirm(
        self,
        identity: &Identity,
        now: Instant,
        data: &ConfirmationData,
    ) -> (Response, Request) {
        let answered = data.res_star.map(|Secret(octets)| ResStar::new(octets));
        let success = answered.is_some_and(|res_star| res_star == self.xres_star);
        let event = AuthEvent::new(
            identity.instance_id,
            success,
            identity.date_time(now),
            AuthType::FiveGAka,
            self.serving_network_name,
        );
        let mut body = ConfirmationDataResponse::new(AuthResult::AuthenticationFailure);
        if success {
            body = ConfirmationDataResponse::new(AuthResult::AuthenticationSuccess);
            body.supi = Some(self.supi.clone());
            body.kseaf = Some(Secret(*self.k_seaf.as_bytes()));
        }
        let confirm = ConfirmAuth { supi: self.supi, body: event };
        (Response::ConfirmationDataResponse(Box::new(body)), confirm.into())
    }
}
