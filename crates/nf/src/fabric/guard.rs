//! Authorization of requests by the client's certificate: the shell checks each request over HTTP/2
//! before it reaches a shard. The access token is checked in addition (`pith_sbi::token`).

use pith_sbi::namf_communication::N1MessageClass;
use pith_sbi::nnrf_accesstoken::{AccessTokenErrorCode, refused};
use pith_sbi::{NfInstanceId, NfType, Problem, Request, ServiceName};

/// The NFs named in a client's certificate.
#[derive(Debug, Clone, Copy)]
pub struct Client<'a> {
    /// NF instance ids.
    pub instances: &'a [NfInstanceId],
    /// NF types; for a certificate of another vendor without any those that the configuration gives
    /// for the client's address.
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

/// The NF types that may request an operation, where they are fewer than the consumers of its service.
fn operation_consumers(request: &Request) -> Option<&'static [NfType]> {
    match request {
        // The AMF and the SMF that serve a UE register themselves (TS 29.503 5.3.2.2).
        Request::ThreeGppRegistration(_) | Request::UpdateThreeGppRegistration(_) => Some(&[NfType::Amf]),
        Request::RegisterSmf(_) | Request::SmfDeregistration(_) => Some(&[NfType::Smf]),
        // UE contexts go from AMF to AMF (TS 29.518 5.2.2.2.1, 5.2.2.2.2).
        Request::UeContextTransfer(_) | Request::RegistrationStatusUpdate(_) => Some(&[NfType::Amf]),
        // Session management is the SMF's, whatever else the service carries (TS 29.518 5.2.2.3.1).
        Request::N1N2MessageTransfer(request) => {
            let n2 = request.body.n2_info_container.as_ref();
            let n1 = request.body.n1_message_container.as_ref();
            let is_session_management = n2.is_some_and(|n2| n2.sm_info.is_some())
                || n1.is_some_and(|n1| n1.n1_message_class == N1MessageClass::Sm);
            is_session_management.then_some(&[NfType::Smf])
        }
        _ => None,
    }
}

/// The NF instance that a request gives as the consumer.
const fn named_consumer(request: &Request) -> Option<NfInstanceId> {
    match request {
        Request::GenerateAuthData(request) => Some(request.body.ausf_instance_id),
        Request::ConfirmAuth(request) => Some(request.body.nf_instance_id),
        Request::ThreeGppRegistration(request) => Some(request.body.amf_instance_id),
        Request::RegisterSmf(request) => Some(request.body.smf_instance_id),
        Request::SmfDeregistration(request) => request.smf_instance_id,
        Request::SdmSubscribe(request) => Some(request.body.nf_instance_id),
        Request::PostSmContexts(request) => Some(request.body.serving_nf_id),
        Request::UpdateSmContext(request) => request.body.serving_nf_id,
        _ => None,
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
                let consumers = operation_consumers(request).unwrap_or(consumers(&service));
                let is_consumer = consumers.is_empty() || consumers.iter().any(|nf_type| self.is(nf_type));
                require(is_consumer, "NFs of the client's type may not use this service")?;
                let is_itself =
                    named_consumer(request).is_none_or(|named| self.instances.is_empty() || self.has(&named));
                require(
                    is_itself,
                    "the client's certificate is of another NF instance than the request names",
                )
            }
        }
    }

    fn owns_profile(&self, id: &NfInstanceId) -> Result<(), Box<Problem>> {
        require(self.has(id), "the client's certificate names another NF instance than the profile")
    }

    fn has(&self, id: &NfInstanceId) -> bool {
        self.instances.contains(id)
    }

    fn is(&self, nf_type: &NfType) -> bool {
        self.nf_types.contains(nf_type)
    }
}

fn require(holds: bool, otherwise: &str) -> Result<(), Box<Problem>> {
    holds.then_some(()).ok_or_else(|| Box::new(Problem::of_status(403).detail(otherwise)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_sbi::namf_communication::{N1MessageContainer, N1N2MessageTransfer, N1N2MessageTransferReqData};
    use pith_sbi::nnrf_accesstoken::{AccessTokenReq, AccessTokenRequest};
    use pith_sbi::nnrf_nfdiscovery::SearchNfInstances;
    use pith_sbi::nnrf_nfmanagement::DeregisterNfInstance;
    use pith_sbi::nudm_uecm::{RegisterSmf, SmfRegistration};

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
    fn a_certificate_without_types_is_good_for_nothing() {
        assert!(!check(&[], token(OWN, NfType::Amf)));
        assert!(!check(&[], SearchNfInstances::new(NfType::Udm, NfType::Amf)));
        assert!(check(&[], DeregisterNfInstance { nf_instance_id: OWN }));
    }

    #[test]
    fn a_consumer_names_itself_and_requests_what_its_type_may() {
        let register = |smf| {
            let plmn: pith_types::Plmn = "999/70".parse().unwrap();
            let body = SmfRegistration::new(smf, 1, pith_types::Snssai::of_sst(1), plmn);
            RegisterSmf { ue_id: "imsi-999700000000001".parse().unwrap(), pdu_session_id: 1, body }
        };
        assert!(check(&[NfType::Smf], register(OWN)));
        assert!(!check(&[NfType::Smf], register(OTHER)), "another SMF");
        assert!(!check(&[NfType::Amf], register(OWN)), "an AMF uses the service, but not so");
        let transfer = |class| {
            let mut body = N1N2MessageTransferReqData::default();
            body.n1_message_container = Some(N1MessageContainer::new(class, vec![0]));
            let supi: pith_types::Supi = "imsi-999700000000001".parse().unwrap();
            N1N2MessageTransfer { ue_context_id: supi.into(), body }
        };
        assert!(check(&[NfType::Smf], transfer(N1MessageClass::Sm)));
        assert!(!check(&[NfType::Pcf], transfer(N1MessageClass::Sm)), "session management is the SMF's");
        assert!(check(&[NfType::Pcf], transfer(N1MessageClass::Updp)));
    }
}
