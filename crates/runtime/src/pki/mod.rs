//! Certificates of the SBI: a private CA for one host or one cluster, or files of another CA.
//!
//! ```text
//!  DIR/ca.crt        certificates of the trusted CAs; the first is this CA's
//!  DIR/ca.key        key of this CA: only on the host that issues
//!  DIR/ROLE.pem      certificate and key of one process, such as amf-127.0.0.5-7777
//!  DIR/ROLE.json     NF instance ids of that process
//!  DIR/lock          held while any of these is written
//! ```
//!
//! The first `pith nf` on a host creates the directory and the CA, and each process its own certificate,
//! under the lock. A certificate has the content of TS 33.310 6.1.3c: each NF instance id as a URI
//! `urn:uuid:…`, the NF types (RFC 9310) and the addresses. It is valid for servers and clients.

mod authority;
mod certificate;
mod directory;
mod source;

pub use authority::LIFETIME;
pub use certificate::Certificate;
pub use directory::{Directory, Issued, Member};
pub(crate) use source::certificates;
pub use source::{Credentials, Source, Stamp};

/// An error of a certificate or CA, with what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PkiError(pub String);

/// Prefixes errors with the file that they concern.
fn of_file<E: std::fmt::Display>(path: &std::path::Path) -> impl Fn(E) -> PkiError {
    let path = path.display().to_string();
    move |error| PkiError(format!("{path}: {error}"))
}

#[cfg(test)]
pub(crate) mod tests;
