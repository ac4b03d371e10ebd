//! Certificates of the SBI: a private CA for one host or one cluster, and files of another one.
//!
//! ```text
//!  DIR/ca.crt        the CA's certificate; all certificates in it are trusted
//!  DIR/ca.key        its key: only on the host that issues
//!  DIR/ROLE.pem      certificate and key of one process, such as amf-127.0.0.5-7777
//!  DIR/ROLE.json     the NF instance ids of that process
//!  DIR/lock          held while any of these is written
//! ```
//!
//! The first `pith nf` on a host makes the directory and the CA, each process its own certificate, all
//! under the lock. A certificate carries what TS 33.310 6.1.3c asks for: each NF instance id as a URI
//! `urn:uuid:…`, the NF types (RFC 9310) and the addresses; it serves a server and a client.

mod authority;
mod certificate;
mod directory;
mod source;

pub use authority::LIFETIME;
pub use certificate::Certificate;
pub use directory::{Directory, Issued, Member};
pub(crate) use source::certificates;
pub use source::{Credentials, Source, Stamp};

/// Why there is no certificate, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PkiError(pub String);

/// Gives errors the file that they are about.
fn of_file<E: std::fmt::Display>(path: &std::path::Path) -> impl Fn(E) -> PkiError {
    let path = path.display().to_string();
    move |error| PkiError(format!("{path}: {error}"))
}

#[cfg(test)]
pub(crate) mod tests;
