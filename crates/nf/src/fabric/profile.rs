//! The NF profile that an NF of Pith registers with the NRF (TS 29.510 6.1.6.2.2).

use super::guard;
use crate::kit::{Identity, Nf};
use pith_sbi::namf_communication::{N1MessageClass, N1MessageNotify};
use pith_sbi::nnrf_nfmanagement::{
    AmfInfo, DefaultNotificationSubscription, DnnSmfInfoItem, IpEndPoint, NfProfile, NfService,
    NfServiceStatus, NfServiceVersion, NfStatus, NotificationType, SmfInfo, SnssaiSmfInfoItem, UriScheme,
};
use pith_sbi::{Hex, NfType, Scheme, ServiceName};
use pith_types::{Dnn, Guami, Plmn, Snssai, Tai};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The configuration that profiles contain.
#[derive(Debug, Clone, Default)]
pub struct ProfileConfig {
    /// Networks served.
    pub plmns: Vec<Plmn>,
    /// Slices served.
    pub slices: Vec<Snssai>,
    /// Slice instances of the SMF, by NSI ID: any, if empty.
    pub slice_instances: Vec<Arc<str>>,
    /// Data networks of the SMF with their slices.
    pub data_networks: Vec<(Snssai, Dnn)>,
    /// GUAMIs of the AMF.
    pub guamis: Vec<Guami>,
    /// Tracking areas of the AMF.
    pub tais: Vec<Tai>,
    /// Services require access tokens.
    pub oauth2: bool,
    /// Where NFs of another vendor reach this process in cleartext, if the NRF is such an NF.
    pub plain: Option<SocketAddr>,
    /// NFs that store contexts read documents that requests bring (`residency: embedded`).
    pub reads_embedded: bool,
    /// The NFs of the process are in NF Sets (TS 29.571 5.2.2, `NfSetId`).
    pub is_in_set: bool,
}

impl ProfileConfig {
    /// The NF Set of an NF (TS 23.003 28.12): AMF Set and Region identify that of the AMF; those of the process's other NFs have the same number.
    pub fn set_id(&self, nf: Nf) -> Option<Arc<str>> {
        let amf_id = self.guamis.first()?.amf_id;
        let plmn = self.plmns.first().filter(|_| self.is_in_set)?;
        let region = if nf == Nf::Amf { format!(".region{:02x}", amf_id.region) } else { String::new() };
        let (mcc, mnc) = (plmn.mcc(), plmn.mnc());
        Some(format!("set{:03x}{region}.{nf}set.5gc.mnc{mnc:0>3}.mcc{mcc}", amf_id.set).into())
    }
}

/// The services that each NF offers, with their API version.
const fn services(nf: Nf) -> &'static [(ServiceName, &'static str)] {
    match nf {
        Nf::Amf => &[(ServiceName::NamfComm, "v1")],
        Nf::Smf => &[(ServiceName::NsmfPdusession, "v1")],
        Nf::Ausf => &[(ServiceName::NausfAuth, "v1")],
        Nf::Udm => {
            &[(ServiceName::NudmSdm, "v2"), (ServiceName::NudmUecm, "v1"), (ServiceName::NudmUeau, "v1")]
        }
        Nf::Udr => &[(ServiceName::NudrDr, "v2")],
        Nf::Pcf => &[
            (ServiceName::NpcfAmPolicyControl, "v1"),
            (ServiceName::NpcfSmpolicycontrol, "v1"),
            (ServiceName::NpcfPolicyauthorization, "v1"),
        ],
        Nf::Nrf => &[(ServiceName::NnrfNfm, "v1"), (ServiceName::NnrfDisc, "v1")],
        Nf::Nssf => &[(ServiceName::NnssfNsselection, "v2")],
        Nf::Agent => &[],
    }
}

/// The service by which instances of an NF are discovered, if any will do.
pub(super) fn first_service(nf: Nf) -> Option<ServiceName> {
    services(nf).first().map(|(name, _)| name.clone())
}

/// The profile of an NF.
pub fn profile(nf: Nf, identity: &Identity, config: &ProfileConfig) -> NfProfile {
    let nf_type = nf.nf_type().unwrap_or(NfType::Other("AGENT".into()));
    let mut profile = NfProfile::new(identity.instance_id, nf_type, NfStatus::Registered);
    let end_point = end_point(identity);
    profile.ipv4_addresses = end_point.ipv4_address.into_iter().collect();
    profile.ipv6_addresses = end_point.ipv6_address.into_iter().collect();
    profile.plmn_list = config.plmns.clone();
    profile.s_nssais = config.slices.iter().copied().map(Into::into).collect();
    profile.nf_services = services(nf)
        .iter()
        .map(|(name, version)| service(identity, config, name, version, &end_point))
        .collect();
    if let Some(plain) = config.plain {
        // First: an NF without TLS may take the first service of a name, whatever its scheme. Pith's NFs prefer https in any order.
        let in_cleartext = profile.nf_services.iter().map(|service| plain_service(service, plain));
        let mut services: Vec<_> = in_cleartext.collect();
        services.append(&mut profile.nf_services);
        profile.nf_services = services;
    }
    if config.reads_embedded && matches!(nf, Nf::Amf | Nf::Smf | Nf::Pcf) {
        profile.announce_embedded();
    }
    profile.nf_set_id_list = config.set_id(nf).into_iter().collect();
    match nf {
        Nf::Amf => {
            profile.amf_info = amf_info(config);
            profile.default_notification_subscriptions = vec![registrations_of_other_amfs(identity)];
        }
        Nf::Smf => {
            profile.smf_info = Some(smf_info(config));
            profile.nsi_list.clone_from(&config.slice_instances);
        }
        _ => {}
    }
    profile
}

fn service(
    identity: &Identity,
    config: &ProfileConfig,
    name: &ServiceName,
    version: &str,
    end_point: &IpEndPoint,
) -> NfService {
    let scheme = match identity.api_root.scheme {
        Scheme::Http => UriScheme::Http,
        Scheme::Https => UriScheme::Https,
    };
    let full: Arc<str> = format!("{}.0.0", version.trim_start_matches('v')).into();
    let versions = vec![NfServiceVersion::new(version, full)];
    let mut service =
        NfService::new(name.as_str(), name.clone(), versions, scheme, NfServiceStatus::Registered);
    service.oauth2_required = config.oauth2.then_some(true);
    service.allowed_nf_types = guard::consumers_of_service(name);
    let scopes = |list: &[&str]| list.iter().map(|scope| Arc::from(*scope)).collect();
    // Scopes of access tokens: they have no use without tokens, and not every NRF can read them.
    let operations = guard::scopes(name).iter().filter(|_| config.oauth2);
    service.allowed_operations_per_nf_type =
        operations.map(|(nf_type, list)| (nf_type.as_str().into(), scopes(list))).collect();
    service.ip_end_points = vec![end_point.clone()];
    let prefix = &identity.api_root.prefix;
    service.api_prefix = (!prefix.is_empty()).then(|| Arc::clone(prefix));
    service
}

/// The service at its cleartext address, for NFs without TLS.
fn plain_service(service: &NfService, plain: SocketAddr) -> NfService {
    let mut service = service.clone();
    service.service_instance_id = format!("{}-plain", service.service_instance_id).into();
    service.scheme = UriScheme::Http;
    let mut end_point = IpEndPoint { port: Some(plain.port()), ..IpEndPoint::default() };
    match plain.ip() {
        IpAddr::V4(address) => end_point.ipv4_address = Some(address),
        IpAddr::V6(address) => end_point.ipv6_address = Some(address),
    }
    service.ip_end_points = vec![end_point];
    service
}

/// Address and port of the apiRoot. A host name would belong in the profile's `fqdn`, which Pith
/// does not use.
fn end_point(identity: &Identity) -> IpEndPoint {
    let authority = &identity.api_root.authority;
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "80"));
    let mut end_point = IpEndPoint { port: port.parse().ok(), ..IpEndPoint::default() };
    match host.trim_matches(['[', ']']).parse() {
        Ok(IpAddr::V4(address)) => end_point.ipv4_address = Some(address),
        Ok(IpAddr::V6(address)) => end_point.ipv6_address = Some(address),
        Err(_) => {}
    }
    end_point
}

fn amf_info(config: &ProfileConfig) -> Option<AmfInfo> {
    let first = config.guamis.first()?.amf_id;
    let set: Arc<str> = format!("{:03x}", first.set).into();
    let mut info = AmfInfo::new(set, Hex([first.region]), config.guamis.clone());
    info.tai_list = config.tais.clone();
    Some(info)
}

/// Other AMFs pass registrations on to this one (TS 29.518 5.2.2.3.5).
fn registrations_of_other_amfs(identity: &Identity) -> DefaultNotificationSubscription {
    let uri = N1MessageNotify::callback_uri(&identity.api_root, &NfType::Amf, "default");
    let mut subscription = DefaultNotificationSubscription::new(NotificationType::N1Messages, uri);
    subscription.n1_message_class = Some(N1MessageClass::FiveGmm);
    subscription
}

fn smf_info(config: &ProfileConfig) -> SmfInfo {
    let item = |slice: &Snssai| {
        let dnns = config.data_networks.iter().filter(|(of, _)| of == slice);
        let dnns: Vec<_> = dnns.map(|(_, dnn)| DnnSmfInfoItem::new(dnn.as_str())).collect();
        SnssaiSmfInfoItem::new(*slice, dnns)
    };
    SmfInfo::new(config.slices.iter().map(item).collect::<Vec<_>>())
}
