//! The CA: its creation, and issuing certificates.

use super::certificate::{NF_TYPES, URN, nf_types_content};
use super::{Certificate, PkiError};
use crate::http::PeerIdentity;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::net::IpAddr;
use std::time::Duration;
use time::OffsetDateTime;

const DAY: Duration = Duration::from_secs(86_400);
/// Validity of a process's certificate. There is no revocation list: a lost key is limited by its validity.
pub const LIFETIME: Duration = Duration::from_secs(90 * DAY.as_secs());
/// Validity of the CA's own certificate.
const CA_LIFETIME: Duration = Duration::from_secs(3650 * DAY.as_secs());
/// How far a peer's clock may be behind.
const SKEW: Duration = Duration::from_secs(300);

/// A CA with its key.
pub(super) struct Authority {
    /// Common name.
    pub name: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Creates a CA. Returns it with its certificate and key in PEM.
    pub fn make() -> Result<(Self, String, String), PkiError> {
        let mut random = [0; 4];
        getrandom::fill(&mut random)
            .map_err(|error| PkiError(format!("the operating system's random source failed: {error}")))?;
        let name = format!("Pith CA {}", hex::encode(random));
        let key = KeyPair::generate().map_err(creation_failed)?;
        let params = ca_params(&name);
        let certificate = params.self_signed(&key).map_err(creation_failed)?.pem();
        let key_pem = key.serialize_pem();
        Ok((Self { name, issuer: Issuer::new(params, key) }, certificate, key_pem))
    }

    /// Loads the CA whose certificate is the first of `certificates`.
    pub fn load(certificates: &str, key: &str) -> Result<Self, PkiError> {
        let first = CertificateDer::from_pem_slice(certificates.as_bytes());
        let first = first.map_err(|error| PkiError(format!("no certificate: {error}")))?;
        let name = Certificate::read(&first)?.subject;
        let key = KeyPair::from_pem(key).map_err(|error| PkiError(format!("no private key: {error}")))?;
        let (_, parsed) = x509_parser::parse_x509_certificate(&first)
            .map_err(|error| PkiError(format!("not an X.509 certificate: {error}")))?;
        if parsed.public_key().subject_public_key.data.as_ref() != key.public_key_raw() {
            return Err(PkiError("the first certificate of ca.crt is not that of ca.key".into()));
        }
        Ok(Self { issuer: Issuer::new(ca_params(&name), key), name })
    }

    /// Issues a certificate for a new key. Returns both in PEM, the certificate first.
    pub fn issue(
        &self,
        role: &str,
        names: &[String],
        identity: &PeerIdentity,
        lifetime: Duration,
    ) -> Result<String, PkiError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = distinguished(role);
        params.not_before = OffsetDateTime::now_utc() - SKEW;
        params.not_after = OffsetDateTime::now_utc() + lifetime;
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        for name in names {
            params.subject_alt_names.push(san(name)?);
        }
        for instance in &identity.instances {
            let uri = format!("{URN}{instance}").try_into().map_err(creation_failed)?;
            params.subject_alt_names.push(SanType::URI(uri));
        }
        let content = nf_types_content(&identity.nf_types)?;
        params.custom_extensions = vec![CustomExtension::from_oid_content(NF_TYPES, content)];
        let key = KeyPair::generate().map_err(creation_failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(creation_failed)?;
        Ok(certificate.pem() + &key.serialize_pem())
    }
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished(name);
    params.not_before = OffsetDateTime::now_utc() - SKEW;
    params.not_after = OffsetDateTime::now_utc() + CA_LIFETIME;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn distinguished(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn san(name: &str) -> Result<SanType, PkiError> {
    match name.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => Ok(SanType::DnsName(name.try_into().map_err(creation_failed)?)),
    }
}

fn creation_failed(error: rcgen::Error) -> PkiError {
    PkiError(format!("cannot create a certificate: {error}"))
}
