//! 5G-AKA (TS 33.501 6.1.3.2): the home network's side.
//!
//! ```text
//!                   <─ UDM   RAND, AUTN, XRES*, K_AUSF      steps 1, 2
//!                            HXRES*, K_SEAF derived         steps 3, 4; challenge to the AMF 5
//!  Challenged       <─ AMF   RES*                           step 10
//!                            compared with XRES*            step 11; result to UDM and AMF 12
//! ```

use super::{Subject, location};
use crate::kit::document::pack_struct;
use crate::kit::{Identity, Instant};
use pith_crypto::kdf;
use pith_crypto::keys::{KAusf, KSeaf, Rand, ResStar};
use pith_sbi::common::{AuthType, Links};
use pith_sbi::nausf_ueauthentication::{
    AuthData, AuthResult, Av5gAka, ConfirmationData, ConfirmationDataResponse, UeAuthenticationCtx,
};
use pith_sbi::nudm_ueau::Av5GHeAka;
use pith_sbi::{Created, Hex, Request, Response, Secret};
use std::sync::Arc;

/// The UE is challenged: the expected response, and the resulting keys.
pub(in crate::ausf) struct Challenged {
    subject: Subject,
    challenge: Av5gAka,
    xres_star: ResStar,
    k_seaf: KSeaf,
}

pack_struct!(Challenged { subject, challenge, xres_star, k_seaf });

impl Challenged {
    /// HXRES* and K_SEAF of the home network's vector.
    pub(super) fn new(subject: Subject, vector: &Av5GHeAka) -> Self {
        let xres_star = ResStar::new(vector.xres_star.0);
        let hxres_star = kdf::hres_star(&Rand::new(vector.rand.0), &xres_star);
        let k_seaf = kdf::k_seaf(&KAusf::new(vector.kausf.0), &subject.serving_network_name);
        let challenge = Av5gAka::new(vector.rand, Hex(*hxres_star.as_bytes()), vector.autn);
        Self { subject, challenge, xres_star, k_seaf }
    }

    /// The response that creates the authentication context.
    pub fn context(&self, identity: &Identity, id: &str) -> Response {
        let location = location(identity, id);
        let mut links = Links::default();
        links.insert("5g-aka".into(), location.join("/5g-aka-confirmation").into());
        let mut body =
            UeAuthenticationCtx::new(AuthType::FiveGAka, AuthData::FiveGAka(self.challenge.clone()), links);
        body.serving_network_name = Some(Arc::clone(&self.subject.serving_network_name));
        Response::UeAuthenticationCtxCreated(Box::new(Created { location, body }))
    }

    /// The result for the AMF, and the event for the UDM.
    pub fn confirm(self, identity: &Identity, now: Instant, data: &ConfirmationData) -> (Response, Request) {
        let answered = data.res_star.map(|Secret(octets)| ResStar::new(octets));
        let success = answered.is_some_and(|res_star| res_star == self.xres_star);
        let mut body = ConfirmationDataResponse::new(AuthResult::AuthenticationFailure);
        if success {
            body = ConfirmationDataResponse::new(AuthResult::AuthenticationSuccess);
            body.supi = Some(self.subject.supi.clone());
            body.kseaf = Some(Secret(*self.k_seaf.as_bytes()));
        }
        let event = self.subject.event(identity, now, AuthType::FiveGAka, success);
        (Response::ConfirmationDataResponse(Box::new(body)), event)
    }
}
