//! The procedures of the AUSF: the request for a vector, then a file for each authentication method.

pub(super) mod eap_aka_prime;
pub(super) mod five_g_aka;
pub(super) mod vector;

use crate::kit::document::pack_struct;
use crate::kit::{Identity, Instant};
use pith_sbi::common::AuthType;
use pith_sbi::nudm_ueau::{AuthEvent, ConfirmAuth};
use pith_sbi::{Problem, Request, Uri};
use pith_types::Supi;
use std::sync::Arc;

/// The UE that is authenticated, and the serving network.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub supi: Supi,
    pub serving_network_name: Arc<str>,
}

pack_struct!(Subject { supi, serving_network_name });

impl Subject {
    /// The event that reports the result to the UDM (TS 29.503 5.4.2.3).
    fn event(self, identity: &Identity, now: Instant, method: AuthType, success: bool) -> Request {
        let Self { supi, serving_network_name } = self;
        let body = AuthEvent::new(
            identity.instance_id,
            success,
            identity.date_time(now),
            method,
            serving_network_name,
        );
        ConfirmAuth { supi, body }.into()
    }
}

/// The URI of an authentication context.
fn location(identity: &Identity, id: &str) -> Uri {
    Uri::new(&identity.api_root, &format!("/nausf-auth/v1/ue-authentications/{id}"))
}

/// The UDM's reply has no vector.
fn no_vector() -> Box<Problem> {
    Box::new(Problem::system_failure("the UDM sent no vector"))
}
