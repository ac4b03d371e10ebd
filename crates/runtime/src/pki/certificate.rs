//! Parsed certificates.

use super::PkiError;
use crate::http::PeerIdentity;
use pith_sbi::{NfInstanceId, NfType};
use std::net::IpAddr;
use x509_parser::asn1_rs::{FromDer, Ia5String, ToDer};
use x509_parser::prelude::{GeneralName, X509Certificate};

/// id-pe-nftypes (RFC 9310 3).
pub(super) const NF_TYPES: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 1, 34];
/// Prefix of an NF instance id in subjectAltName (TS 33.310 6.1.3c.3, RFC 9562 4).
pub(super) const URN: &str = "urn:uuid:";

/// The data of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Common name of the subject.
    pub subject: String,
    /// Common name of the issuer.
    pub issuer: String,
    /// Serial number in hexadecimal digits.
    pub serial: String,
    /// NF instance ids and NF types.
    pub identity: PeerIdentity,
    /// DNS names and addresses.
    pub names: Vec<String>,
    /// Start of validity, seconds since 1970.
    pub not_before: i64,
    /// End of validity, seconds since 1970.
    pub not_after: i64,
}

impl Certificate {
    /// Parses a certificate in DER.
    pub fn read(der: &[u8]) -> Result<Self, PkiError> {
        let wrong = |error: &dyn std::fmt::Display| PkiError(format!("not an X.509 certificate: {error}"));
        let (_, certificate) = X509Certificate::from_der(der).map_err(|error| wrong(&error))?;
        let common = |name: &x509_parser::x509::X509Name<'_>| {
            let name = name.iter_common_name().next().and_then(|name| name.as_str().ok());
            name.unwrap_or("(no name)").chars().take(64).collect()
        };
        let mut read = Self {
            subject: common(certificate.subject()),
            issuer: common(certificate.issuer()),
            serial: certificate.raw_serial_as_string(),
            identity: PeerIdentity { instances: Vec::new(), nf_types: nf_types(&certificate) },
            names: Vec::new(),
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
        };
        let names = certificate.subject_alternative_name().map_err(|error| wrong(&error))?;
        for name in names.iter().flat_map(|names| &names.value.general_names) {
            read.name(name);
        }
        Ok(read)
    }

    fn name(&mut self, name: &GeneralName<'_>) {
        match name {
            GeneralName::URI(uri) => {
                let id = uri.strip_prefix(URN).and_then(|id| id.parse::<NfInstanceId>().ok());
                self.identity.instances.extend(id);
            }
            GeneralName::DNSName(name) => self.names.push((*name).to_owned()),
            GeneralName::IPAddress(octets) => self.names.extend(address(octets).map(|ip| ip.to_string())),
            _ => {}
        }
    }

    /// End of validity in UTC, to the minute.
    pub fn until(&self) -> String {
        let Ok(end) = time::OffsetDateTime::from_unix_timestamp(self.not_after) else { return "-".into() };
        format!("{} {:02}:{:02}", end.date(), end.hour(), end.minute())
    }

    /// Whether the certificate is valid at a time in seconds since 1970.
    pub fn is_valid_at(&self, now: i64) -> bool {
        (self.not_before..=self.not_after).contains(&now)
    }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => <[u8; 4]>::try_from(octets).ok().map(IpAddr::from),
        _ => <[u8; 16]>::try_from(octets).ok().map(IpAddr::from),
    }
}

/// NFTypes ::= SEQUENCE OF IA5String (RFC 9310 3).
fn nf_types(certificate: &X509Certificate<'_>) -> Vec<NfType> {
    let is_nf_types = |oid: &x509_parser::der_parser::oid::Oid<'_>| {
        oid.iter().is_some_and(|arcs| arcs.eq(NF_TYPES.iter().copied()))
    };
    let extension = certificate.extensions().iter().find(|extension| is_nf_types(&extension.oid));
    let list = extension.and_then(|extension| Vec::<Ia5String<'_>>::from_der(extension.value).ok());
    let list = list.map(|(_, list)| list).unwrap_or_default();
    list.iter().map(|name| NfType::from(name.as_ref())).collect()
}

/// The extension's content for these NF types.
pub(super) fn nf_types_content(nf_types: &[NfType]) -> Result<Vec<u8>, PkiError> {
    let list = nf_types.iter().map(|nf_type| Ia5String::new(nf_type.as_str())).collect::<Vec<_>>();
    list.to_der_vec().map_err(|error| PkiError(format!("NF types can't be encoded: {error}")))
}
