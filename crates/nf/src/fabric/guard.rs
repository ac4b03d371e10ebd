//! Authorization of requests by the client's certificate: the shell checks each request over HTTP/2
//! before it reaches a shard. The access token is checked in addition (`pith_sbi::token`).

use pith_sbi::nnrf_accesstoken::{AccessTokenErrorCode, refused};
use pith_sbi::{NfInstanceId, NfType, Problem, Request, ServiceName};

/// The NFs named in a client's certificate.
#[derive(Debug, Clone, Copy)]
pub struct Client<'a> {
    /// NF instance ids.
    pub instances: &'a [NfInstanceId],
    /// NF types; empty if the certificate has none.
    pub nf_types: &'a [NfType],
}

/// The NF types that may use a service (TS 23.502 5.2.2 to 5.2.16); empty for a service that is open to all.
pub const fn consumers(service: &ServiceName) -> &'static [NfType] {
    use NfType::*;
    match service {
        ServiceName::NamfComm => &[Amf, Smf, Smsf, Pcf, Nef, Lmf, Udm, Nssf, Nwdaf],
        ServiceName::NsmfPdusession => &[Amf, Smf],
        ServiceName::NausfAuth => &[Amf],
        ServiceName::NudmUeau => &[Ausf],
        ServiceName::NudmUecm => &[Amf, Smf, Smsf, Nef, Gmlc, Nwdaf],
        ServiceName::NudmSdm => &[Amf, Smf, Smsf, Nef, Gmlc, Nssaaf, Nwdaf],
        ServiceName::NudrDr => &[Udm, Pcf, Nef],
        ServiceName::NpcfAmPolicyControl => &[Amf],
        ServiceName::NpcfSmpolicycontrol => &[Smf],
        ServiceName::NnssfNsselection => &[Amf, Nssf, Smf, Nwdaf],
        _ => &[],
    }
}

/// The operations to which a token of an NF type is limited for a service
/// (`allowedOperationsPerNfType`).
pub(super) const fn operations(service: &ServiceName) -> &'static [(NfType, &'static [&'static str])] {
    match service {
        // The UDM may access subscription data, the PCF policy data: a PCF can't read keys.
        ServiceName::NudrDr => &[
            (
                NfType::Udm,
                &[
                    "nudr-dr:subscription-data",
                    "nudr-dr:subscription-data:authentication-subscription:read",
                    "nudr-dr:subscription-data:authentication-subscription:modify",
                    "nudr-dr:subscription-data:registrations:write",
                ],
            ),
            (NfType::Pcf, &["nudr-dr:policy-data"]),
        ],
        _ => &[],
    }
}

impl Client<'_> {
    /// Checks that the certificate permits the request: an NF acts only for itself (TS 33.501 13.1,
    /// 13.4.1.1), a service is used only by its consumer NF types, and a notification is sent by
    /// the producer of its service.
    pub fn check(&self, request: &Request) -> Result<(), Box<Problem>> {
        let service = request.service();
        if request.target_uri().is_some() {
            let is_producer = service.producer().is_some_and(|producer| self.is(&producer));
            return require(is_producer, "this notification must come from the producer of the service");
        }
        match request {
            Request::AccessTokenRequest(request) => {
                let body = &request.body;
                let is_own =
                    self.has(&body.nf_instance_id) && body.nf_type.as_ref().is_none_or(|t| self.is(t));
                is_own.then_some(()).ok_or_else(|| refused(AccessTokenErrorCode::InvalidClient))
            }
            Request::RegisterNfInstance(request) => require(
                self.has(&request.nf_instance_id) && self.is(&request.body.nf_type),
                "the client's certificate names another NF instance or type than the profile",
            ),
            Request::UpdateNfInstance(request) => self.owns_profile(&request.nf_instance_id),
            Request::DeregisterNfInstance(request) => self.owns_profile(&request.nf_instance_id),
            Request::CreateSubscription(request) => require(
                request.body.req_nf_instance_id.is_none_or(|id| self.has(&id))
                    && request.body.req_nf_type.as_ref().is_none_or(|nf_type| self.is(nf_type)),
                "the client's certificate names another NF than the subscriber",
            ),
            Request::SearchNfInstances(query) => require(
                self.is(&query.requester_nf_type)
                    && query.requester_nf_instance_id.is_none_or(|id| self.has(&id)),
                "the client's certificate names another NF than the requester",
            ),
            _ => {
                let consumers = consumers(&service);
                let is_consumer = consumers.is_empty() || consumers.iter().any(|nf_type| self.is(nf_type));
                require(is_consumer, "NFs of the client's type may not use this service")
            }
        }
    }

    fn owns_profile(&self, id: &NfInstanceId) -> Result<(), Box<Problem>> {
        require(self.has(id), "the client's certificate names another NF instance than the profile")
    }

    fn has(&self, id: &NfInstanceId) -> bool {
        self.instances.contains(id)
    }

    /// NF types are optional in a certificate: without them, the NF's registered profile and the
    /// token decide.
    fn is(&self, nf_type: &NfType) -> bool {
        self.nf_types.is_empty() || self.nf_types.contains(nf_type)
    }
}

fn require(holds: bool, otherwise: &str) -> Result<(), Box<Problem>> {
    holds.then_some(()).ok_or_else(|| Box::new(Problem::of_status(403).detail(otherwise)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_sbi::nnrf_accesstoken::{AccessTokenReq, AccessTokenRequest};
    use pith_sbi::nnrf_nfdiscovery::SearchNfInstances;
    use pith_sbi::nnrf_nfmanagement::DeregisterNfInstance;

    const OWN: NfInstanceId = NfInstanceId(1);
    const OTHER: NfInstanceId = NfInstanceId(2);

    fn check(nf_types: &[NfType], request: impl Into<Request>) -> bool {
        Client { instances: &[OWN], nf_types }.check(&request.into()).is_ok()
    }

    fn token(instance: NfInstanceId, nf_type: NfType) -> AccessTokenRequest {
        let mut body = AccessTokenReq::new(instance, "nudm-sdm");
        body.nf_type = Some(nf_type);
        AccessTokenRequest { body }
    }

    #[test]
    fn an_nf_acts_only_for_itself() {
        let amf = &[NfType::Amf];
        assert!(check(amf, token(OWN, NfType::Amf)));
        assert!(!check(amf, token(OTHER, NfType::Amf)));
        assert!(!check(amf, token(OWN, NfType::Smf)));
        assert!(check(amf, DeregisterNfInstance { nf_instance_id: OWN }));
        assert!(!check(amf, DeregisterNfInstance { nf_instance_id: OTHER }));
        assert!(check(amf, SearchNfInstances::new(NfType::Udm, NfType::Amf)));
        assert!(!check(amf, SearchNfInstances::new(NfType::Udm, NfType::Ausf)));
    }

    #[test]
    fn a_certificate_without_types_is_bound_to_its_instances() {
        assert!(check(&[], token(OWN, NfType::Amf)));
        assert!(!check(&[], token(OTHER, NfType::Amf)));
        assert!(check(&[], SearchNfInstances::new(NfType::Udm, NfType::Amf)));
        assert!(!check(&[], DeregisterNfInstance { nf_instance_id: OTHER }));
    }
}
