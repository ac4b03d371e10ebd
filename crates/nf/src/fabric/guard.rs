//! Authorization of requests by what is known of the client: the shell checks each request over HTTP/2
//! before it reaches a shard. The access token is checked in addition (`pith_sbi::token`).

mod operations;

use crate::kit::{Client, Issuer};
pub use operations::{Consumers, consumers};
pub(super) use operations::{consumers_of_service, scopes};
use pith_crypto::jws::sha256;
use pith_sbi::nnrf_accesstoken::{AccessTokenErrorCode, refused};
use pith_sbi::nnrf_nfmanagement::NfProfile;
use pith_sbi::{NfInstanceId, NfType, Problem, Request, Uri};
use std::fmt;

/// The identity of a connection's client. All requests of the connection are attributed to it; without it, all are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    /// How the client is known.
    pub proof: Proof,
    /// Instance ids in its certificate; certificates of other vendors need not have any.
    pub instances: Vec<NfInstanceId>,
    /// NF types for which it may act.
    pub nf_types: Vec<NfType>,
    /// Addresses and DNS names at which its services may be.
    pub hosts: Vec<String>,
    /// The issuer of its certificate.
    pub issuer: Issuer,
}

/// How a client is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// By its certificate.
    Certificate,
    /// By its address, at which the configuration expects a foreign NF (`sbi.external.<nf>.callers`).
    Address,
    /// A process of the user that runs this one, on this machine (`sbi.security: none`).
    SameUser,
}

/// Its NF types and addresses, for the log.
impl fmt::Display for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.proof == Proof::SameUser {
            return f.write_str("a process of the same user");
        }
        let types: Vec<_> = self.nf_types.iter().map(NfType::as_str).collect();
        write!(f, "{} ({})", types.join(", "), self.hosts.join(", "))
    }
}

impl ClientIdentity {
    /// A process of the same user, which may use all operations.
    pub const fn same_user() -> Self {
        Self {
            proof: Proof::SameUser,
            instances: Vec::new(),
            nf_types: Vec::new(),
            hosts: Vec::new(),
            issuer: Issuer::Own,
        }
    }

    /// This client, restricted to some of its NF types.
    #[must_use]
    pub fn limited_to(&self, nf_types: &[NfType]) -> Self {
        let mut limited = self.clone();
        limited.nf_types.retain(|nf_type| nf_types.contains(nf_type));
        limited
    }

    /// The identity that is compared with the owner of a resource; `None` for a process of the same user, which may use all
    /// resources. `subject` is the instance in the access token. A client that can't prove an instance id gets an id that is
    /// derived from the NF types that it may have.
    pub fn client(&self, subject: Option<NfInstanceId>) -> Option<Client> {
        if self.proof == Proof::SameUser {
            return None;
        }
        Some(match self.instances.first() {
            Some(first) => Client {
                instance: subject.unwrap_or(*first),
                process: *first,
                is_named: true,
                is_proven: subject.is_some() || self.instances.len() == 1,
                issuer: self.issuer,
            },
            None => {
                let id = NfInstanceId::from_random(hash_of(&self.nf_types));
                Client { instance: id, process: id, is_named: false, is_proven: false, issuer: self.issuer }
            }
        })
    }

    /// Checks that the client may send the request: an NF acts only for itself (TS 33.501 13.1,
    /// 13.4.1.1), an operation is requested only by its consumer NF types, and a notification is sent by
    /// the producer of its service.
    pub fn check(&self, request: &Request) -> Result<(), Box<Problem>> {
        if self.proof == Proof::SameUser {
            return Ok(());
        }
        self.check_type(request)?;
        self.check_callback(request)?;
        match request {
            Request::AccessTokenRequest(request) => {
                let body = &request.body;
                // If the certificate names no instance, `may_name` permits any id: the NRF then checks that it registered this
                // id for this client.
                let is_own = self.proof == Proof::Certificate
                    && self.may_name(&body.nf_instance_id)
                    && body.nf_type.as_ref().is_none_or(|nf_type| self.is(nf_type));
                is_own.then_some(()).ok_or_else(|| refused(AccessTokenErrorCode::InvalidClient))
            }
            Request::RegisterNfInstance(request) => {
                self.check_profile(&request.nf_instance_id, &request.body)
            }
            Request::UpdateNfInstance(request) => self.owns_profile(&request.nf_instance_id),
            Request::DeregisterNfInstance(request) => self.owns_profile(&request.nf_instance_id),
            Request::CreateSubscription(request) => require(
                request.body.req_nf_instance_id.is_none_or(|id| self.may_name(&id))
                    && request.body.req_nf_type.as_ref().is_none_or(|nf_type| self.is(nf_type)),
                "the client's certificate (or 'sbi.external') names another NF than the subscriber",
            ),
            Request::SearchNfInstances(query) => require(
                self.is(&query.requester_nf_type)
                    && query.requester_nf_instance_id.is_none_or(|id| self.may_name(&id)),
                "the client's certificate (or 'sbi.external') names another NF than the requester",
            ),
            _ => require(
                named_consumer(request).is_none_or(|id| self.may_name(&id)),
                "the client's certificate (or 'sbi.external') names another NF instance than the request",
            ),
        }
    }

    fn check_type(&self, request: &Request) -> Result<(), Box<Problem>> {
        match consumers(request) {
            Consumers::All => Ok(()),
            Consumers::Types(types) => require(
                types.iter().any(|nf_type| self.is(nf_type)),
                "NFs of the client's type may not use this operation",
            ),
            Consumers::Producer => {
                let is_producer = request.service().producer().is_some_and(|producer| self.is(&producer));
                require(is_producer, "this notification must come from the producer of the service")
            }
        }
    }

    /// Checks that a profile is the client's own, and that the addresses in it are the client's, so that consumers do not send
    /// requests to another host.
    fn check_profile(&self, id: &NfInstanceId, profile: &NfProfile) -> Result<(), Box<Problem>> {
        require(
            self.may_name(id) && self.is(&profile.nf_type),
            "the client's certificate (or 'sbi.external') names another NF instance or type than the profile",
        )?;
        match profile.hosts().into_iter().find(|host| !self.is_at(host)) {
            None => Ok(()),
            Some(host) => Err(Box::new(Problem::of_status(403).detail(format_args!(
                "the profile names '{host}', which the client's certificate (or 'sbi.external') does not"
            )))),
        }
    }

    /// Notifications lead to the client itself: it cannot have requests sent to hosts of others.
    fn check_callback(&self, request: &Request) -> Result<(), Box<Problem>> {
        match callback(request).map(|uri| uri.root.host()) {
            Some(host) if !self.is_at(host) => Err(Box::new(Problem::of_status(403).detail(format_args!(
                "the callback is at '{host}', which the client's certificate (or 'sbi.external') does not name"
            )))),
            _ => Ok(()),
        }
    }

    fn owns_profile(&self, id: &NfInstanceId) -> Result<(), Box<Problem>> {
        require(
            self.may_name(id),
            "the client's certificate (or 'sbi.external') names another NF instance than the profile",
        )
    }

    /// Whether the client may use this instance id as its own.
    fn may_name(&self, id: &NfInstanceId) -> bool {
        self.instances.is_empty() || self.instances.contains(id)
    }

    fn is(&self, nf_type: &NfType) -> bool {
        self.nf_types.contains(nf_type)
    }

    /// Whether the client may be at that host; `*.` in a certificate matches one label (RFC 9525 6.3).
    fn is_at(&self, host: &str) -> bool {
        self.hosts.iter().any(|own| match own.strip_prefix("*.") {
            Some(domain) => host.split_once('.').is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(domain)),
            None => own.eq_ignore_ascii_case(host),
        })
    }
}

/// The CA that the configuration names for external NFs of these types.
pub fn external_issuer(nf_types: &[NfType]) -> Issuer {
    let [.., a, b, c, d, e, f, g, h] = hash_of(nf_types).to_be_bytes();
    Issuer::External(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
}

/// A hash of NF types: it replaces the id of a client that can't prove one.
fn hash_of(nf_types: &[NfType]) -> u128 {
    let mut names: Vec<_> = nf_types.iter().map(NfType::as_str).collect();
    names.sort_unstable();
    let digest = sha256(format!("sbi.external {}", names.join(" ")).as_bytes());
    let (half, _) = digest.split_at(16);
    half.iter().fold(0, |id, octet| id << 8 | u128::from(*octet))
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
        Request::UpdateSmContext(request) => match request.body.serving_nf_id {
            Some(serving) => Some(serving),
            None => request.body.target_serving_nf_id,
        },
        _ => None,
    }
}

/// The URI to which a request has notifications sent.
const fn callback(request: &Request) -> Option<&Uri> {
    match request {
        Request::CreateSubscription(request) => Some(&request.body.nf_status_notification_uri),
        Request::ThreeGppRegistration(request) => Some(&request.body.dereg_callback_uri),
        Request::RegisterSmf(request) => request.body.dereg_callback_uri.as_ref(),
        Request::SdmSubscribe(request) => Some(&request.body.callback_reference),
        Request::PostSmContexts(request) => Some(&request.body.sm_context_status_uri),
        Request::UpdateSmContext(request) => request.body.sm_context_status_uri.as_ref(),
        Request::N1N2MessageTransfer(request) => request.body.n1n2_failure_txf_notif_uri.as_ref(),
        Request::CreateUeContext(request) => request.body.n2_notify_uri.as_ref(),
        Request::CreateSmPolicy(request) => Some(&request.body.notification_uri),
        Request::CreateAmPolicyAssociation(request) => Some(&request.body.notification_uri),
        Request::PostAppSession(request) => match &request.body.asc_req_data {
            Some(data) => Some(&data.notif_uri),
            None => None,
        },
        Request::UpdateAmPolicyAssociation(request) => request.body.notification_uri.as_ref(),
        _ => None,
    }
}

fn require(holds: bool, otherwise: &str) -> Result<(), Box<Problem>> {
    holds.then_some(()).ok_or_else(|| Box::new(Problem::of_status(403).detail(otherwise)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_sbi::ServiceName;
    use pith_sbi::namf_communication::{
        CreateUeContext, N1MessageClass, N1MessageContainer, N1N2MessageTransfer, N1N2MessageTransferReqData,
        N2InfoContent, N2InfoNotify, N2InformationNotification, N2SmInformation, RegistrationStatusUpdate,
        ReleaseUeContext, UeContext, UeContextCreateData, UeContextRelease, UeContextTransferStatus,
        UeRegStatusUpdateReqData,
    };
    use pith_sbi::nnrf_accesstoken::{AccessTokenReq, AccessTokenRequest};
    use pith_sbi::nnrf_nfdiscovery::SearchNfInstances;
    use pith_sbi::nnrf_nfmanagement::{
        CreateSubscription, DefaultNotificationSubscription, DeregisterNfInstance, IpEndPoint, NfService,
        NfServiceStatus, NfStatus, NotificationType, RegisterNfInstance, SubscriptionData, UriScheme,
    };
    use pith_sbi::npcf_ampolicycontrol::UpdateAmPolicyAssociation;
    use pith_sbi::nsmf_pdusession::NgRanTargetId;
    use pith_sbi::nudm_sdm::GetAmData;
    use pith_sbi::nudm_uecm::{RegisterSmf, SmfRegistration};
    use pith_sbi::nudr_dr::QueryAuthSubsData;

    const OWN: NfInstanceId = NfInstanceId(1);
    const OTHER: NfInstanceId = NfInstanceId(2);

    fn client(nf_types: &[NfType]) -> ClientIdentity {
        ClientIdentity {
            proof: Proof::Certificate,
            instances: vec![OWN],
            nf_types: nf_types.to_vec(),
            hosts: vec!["192.0.2.1".into(), "*.5gc.example".into()],
            issuer: Issuer::Own,
        }
    }

    fn check(nf_types: &[NfType], request: impl Into<Request>) -> bool {
        client(nf_types).check(&request.into()).is_ok()
    }

    fn token(instance: NfInstanceId, nf_type: NfType) -> AccessTokenRequest {
        let mut body = AccessTokenReq::new(instance, "nudm-sdm");
        body.nf_type = Some(nf_type);
        AccessTokenRequest { body }
    }

    #[test]
    fn notifications_lead_to_the_client_itself() {
        let subscribe = |uri: &str| {
            let body = SubscriptionData::new(uri.parse::<Uri>().unwrap());
            check(&[NfType::Amf], CreateSubscription { body })
        };
        for own in ["https://192.0.2.1:9443/x", "https://192.0.2.1/x", "https://amf.5gc.example:1/x"] {
            assert!(subscribe(own), "{own}");
        }
        for other in ["https://127.0.0.1:22/x", "https://169.254.169.254/x", "https://2130706433/x"] {
            assert!(!subscribe(other), "{other}");
        }
        let register = |callback: Option<&str>| {
            let (ue_id, plmn) = (crate::testing::supi(), crate::testing::plmn());
            let mut body = SmfRegistration::new(OWN, 1, pith_types::Snssai::of_sst(1), plmn);
            body.dereg_callback_uri = callback.map(|uri| uri.parse().unwrap());
            check(&[NfType::Smf], RegisterSmf { ue_id, pdu_session_id: 1, body })
        };
        let change_policy = |uri: &str| {
            let mut body = pith_sbi::npcf_ampolicycontrol::PolicyAssociationUpdateRequest::default();
            body.notification_uri = Some(uri.parse().unwrap());
            let pol_asso_id = "1".to_owned();
            check(&[NfType::Amf], UpdateAmPolicyAssociation { pol_asso_id, body })
        };
        assert!(change_policy("https://192.0.2.1/x") && !change_policy("https://127.0.0.1/x"));
        assert!(register(None) && register(Some("https://192.0.2.1/x")));
        assert!(!register(Some("https://127.0.0.1/x")));
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

    /// A foreign NF known by its address: its type is all that is known.
    fn by_address(nf_type: NfType) -> ClientIdentity {
        ClientIdentity {
            proof: Proof::Address,
            instances: Vec::new(),
            nf_types: vec![nf_type],
            hosts: vec!["192.0.2.9".into()],
            issuer: Issuer::Address,
        }
    }

    #[test]
    fn a_foreign_nf_known_by_its_address_is_of_its_type_only_and_gets_no_token() {
        let ausf = by_address(NfType::Ausf);
        let check = |request: Request| ausf.check(&request).is_ok();
        let supi = || "imsi-999700000000001".parse().unwrap();
        assert!(!check(QueryAuthSubsData { ue_id: supi() }.into()), "keys");
        assert!(!check(GetAmData { supi: supi(), plmn_id: None, supported_features: None }.into()));
        assert!(!check(token(OWN, NfType::Ausf).into()), "nothing proves its instance");
        assert!(!check(SearchNfInstances::new(NfType::Udm, NfType::Amf).into()));
        assert!(check(SearchNfInstances::new(NfType::Udm, NfType::Ausf).into()));
        let udm = by_address(NfType::Udm);
        assert!(udm.check(&QueryAuthSubsData { ue_id: supi() }.into()).is_ok(), "what a UDM does");
        assert_ne!(ausf.client(None), udm.client(None), "they own different resources");
        assert_eq!(udm.client(Some(OWN)), udm.client(None), "a token does not make it another one");
        assert!(udm.client(None).is_some_and(|client| !client.is_named));
    }

    #[test]
    fn operations_that_change_a_ue_are_for_the_nf_that_serves_it() {
        let supi: pith_types::Supi = "imsi-999700000000001".parse().unwrap();
        let status = UeRegStatusUpdateReqData::new(UeContextTransferStatus::Transferred);
        let update = || RegistrationStatusUpdate { ue_context_id: supi.clone().into(), body: status.clone() };
        assert!(check(&[NfType::Amf], update()));
        for other in [NfType::Pcf, NfType::Nef, NfType::Nssf, NfType::Nwdaf, NfType::Smf] {
            assert!(!check(std::slice::from_ref(&other), update()), "{other}");
            assert!(
                !check(std::slice::from_ref(&other), QueryAuthSubsData { ue_id: supi.clone() }),
                "{other}"
            );
        }
    }

    /// TS 29.518 5.2.2.2.3: AMFs send UE contexts to AMFs, and are notified at their own hosts.
    #[test]
    fn a_handover_between_amfs_is_the_amfs() {
        let supi: pith_types::Supi = "imsi-999700000000001".parse().unwrap();
        let create = |callback: &str| {
            let container = || N2InfoContent::new(vec![0_u8]);
            let node = pith_sbi::common::GlobalRanNodeId::new(crate::testing::plmn());
            let tai = pith_types::Tai { plmn_id: crate::testing::plmn(), tac: pith_types::Tac::new(1) };
            let target = NgRanTargetId::new(node, tai);
            let mut body = UeContextCreateData::new(
                UeContext::default(),
                target,
                container(),
                Vec::<N2SmInformation>::new(),
            );
            body.n2_notify_uri = Some(callback.parse().unwrap());
            CreateUeContext { ue_context_id: supi.clone().into(), body }
        };
        let release = || {
            let body = UeContextRelease::new(pith_sbi::common::NgApCause::new(0_u32, 5_u32));
            ReleaseUeContext { ue_context_id: supi.clone().into(), body }
        };
        let notify = || {
            let uri: Uri = "https://192.0.2.9/namf-callback/v1/n2-info/1".parse().unwrap();
            N2InfoNotify { uri, body: N2InformationNotification::new("1") }
        };
        let own = "https://192.0.2.1/namf-callback/v1/n2-info/1";
        let amf = &[NfType::Amf][..];
        assert!(check(amf, create(own)) && check(amf, release()) && check(amf, notify()));
        assert!(!check(amf, create("https://192.0.2.9/namf-callback/v1/n2-info/1")), "another host");
        for other in [NfType::Smf, NfType::Pcf, NfType::Udm] {
            let other = std::slice::from_ref(&other);
            assert!(!check(other, create(own)) && !check(other, release()) && !check(other, notify()));
        }
        let prepare = |target: NfInstanceId| {
            let mut body = pith_sbi::nsmf_pdusession::SmContextUpdateData::default();
            body.target_serving_nf_id = Some(target);
            pith_sbi::nsmf_pdusession::UpdateSmContext { sm_context_ref: "1".into(), body }
        };
        assert!(check(amf, prepare(OWN)) && !check(amf, prepare(OTHER)), "it names itself");
    }

    #[test]
    fn a_profile_leads_to_the_hosts_of_its_nf() {
        let profile = |change: fn(&mut NfProfile)| {
            let mut body = NfProfile::new(OWN, NfType::Amf, NfStatus::Registered);
            body.ipv4_addresses = vec!["192.0.2.1".parse().unwrap()];
            change(&mut body);
            check(&[NfType::Amf], RegisterNfInstance { nf_instance_id: OWN, body })
        };
        assert!(profile(|_| {}));
        assert!(profile(|profile| profile.fqdn = Some("amf1.5gc.example".into())));
        assert!(!profile(|profile| profile.fqdn = Some("udm.amf1.5gc.example".into())), "one label");
        assert!(!profile(|profile| profile.ipv4_addresses.push("192.0.2.2".parse().unwrap())));
        assert!(!profile(|profile| {
            let at = IpEndPoint { ipv4_address: "192.0.2.2".parse().ok(), ..IpEndPoint::default() };
            let mut service = NfService::new(
                "1",
                ServiceName::NamfComm,
                Vec::new(),
                UriScheme::Https,
                NfServiceStatus::Registered,
            );
            service.ip_end_points = vec![at];
            profile.nf_services.push(service);
        }));
        // Other AMFs send keys there (TS 29.518 5.2.2.3.5).
        fn with_callback(profile: &mut NfProfile, uri: &str) {
            let uri: Uri = uri.parse().unwrap();
            let subscription = DefaultNotificationSubscription::new(NotificationType::N1Messages, uri);
            profile.default_notification_subscriptions.push(subscription);
        }
        assert!(profile(|it| with_callback(it, "https://192.0.2.1/namf-callback/v1/n1-message/default")));
        assert!(!profile(|it| with_callback(it, "https://192.0.2.9/namf-callback/v1/n1-message/default")));
    }
}
