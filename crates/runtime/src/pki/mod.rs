//! Certificates of the SBI: issued by a private CA that Pith creates for one core, on one host or several, or read from files
//! of another CA. DIR is the directory `sbi.pki`:
//!
//! ```text
//!  DIR/ca.crt        certificates of the trusted CAs; the first is that of this CA
//!  DIR/ca.key        private key of this CA; only on the host that issues certificates
//!  DIR/ROLE.pem      certificate and private key of one process; ROLE is its name, such as amf-127.0.0.5-7777
//!  DIR/ROLE.json     NF instance IDs of that process
//!  DIR/lock          locked while a process writes any of these files
//! ```
//!
//! The first process that needs a certificate creates the directory and the CA. Each process issues its own certificate if the
//! CA's key is on its host; for another host, `pith pki issue` does. A certificate has the content of TS 33.310 6.1.3c: each NF instance ID as a URI
//! `urn:uuid:…`, the NF types (RFC 9310) and the addresses. The process uses it as server and as client.

mod authority;
mod certificate;
mod directory;
mod source;

pub use authority::LIFETIME;
pub use certificate::Certificate;
pub use directory::{Directory, Issued, Member};
pub(crate) use source::certificates;
pub use source::{Credentials, FileVersions, Source};

/// An error of a certificate or CA, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PkiError(pub String);

/// Prefixes an error with the path of the file that it concerns.
fn of_file<E: std::fmt::Display>(path: &std::path::Path) -> impl Fn(E) -> PkiError {
    let path = path.display().to_string();
    move |error| PkiError(format!("{path}: {error}"))
}

#[cfg(test)]
pub(crate) mod tests;
