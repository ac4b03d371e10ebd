//! The source of a process's certificate: the directory of Pith's CA, or files.

use super::directory::{Directory, Member, is_due};
use super::{Certificate, PkiError, of_file};
use crate::config::TlsFiles;
use crate::private_file::{self, Readers};
use pith_nf::kit::Nf;
use pith_sbi::{NfInstanceId, NfType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The source of a process's certificate.
#[derive(Debug, Clone)]
pub enum Source {
    /// The directory of Pith's CA.
    Directory(Directory, Member),
    /// Files of another CA.
    Files(TlsFiles, Member),
}

/// The certificate and trusted CAs of a process.
#[derive(Debug)]
pub struct Credentials {
    /// The process's certificate, followed by those up to the CA.
    pub chain: Vec<CertificateDer<'static>>,
    /// The private key.
    pub key: PrivateKeyDer<'static>,
    /// Certificates of trusted CAs.
    pub roots: Vec<CertificateDer<'static>>,
    /// The parsed certificate.
    pub certificate: Certificate,
}

/// Versions of files: inode, modification time and size of each; `None` for a missing file.
pub type FileVersions = Vec<Option<(u64, i64, i64, u64)>>;

impl Source {
    /// Reads the certificate. The CA of the directory issues or renews it if needed.
    pub fn load(&self) -> Result<Credentials, PkiError> {
        if let Self::Directory(directory, member) = self {
            directory.issue(member, false)?;
        }
        let (ca, certificate, key) = self.paths();
        let chain = certificates(&certificate)?;
        let text = private_file::read(&key, Readers::OwnerAndGroup).map_err(of_file(&key))?;
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(of_file(&key))?;
        let first = chain.first().ok_or_else(|| of_file(&certificate)("there is no certificate in it"))?;
        let read = Certificate::read(first).map_err(of_file(&certificate))?;
        self.check_types(&read).map_err(of_file(&certificate))?;
        Ok(Credentials { roots: certificates(&ca)?, key, certificate: read, chain })
    }

    /// Other processes refuse a client whose certificate does not name the types of its NFs.
    fn check_types(&self, certificate: &Certificate) -> Result<(), PkiError> {
        let (Self::Directory(_, member) | Self::Files(_, member)) = self;
        let named = &certificate.identity.nf_types;
        let Some(missing) = member.nf_types().into_iter().find(|nf_type| !named.contains(nf_type)) else {
            return Ok(());
        };
        let list = named.iter().map(NfType::as_str).collect::<Vec<_>>().join(", ");
        Err(PkiError(format!(
            "the certificate names the NF types [{list}] (RFC 9310), but this process has the {missing}: issue one that names it"
        )))
    }

    /// The NF instance ids of the process.
    pub fn instances(&self) -> Result<BTreeMap<Nf, NfInstanceId>, PkiError> {
        match self {
            Self::Directory(directory, member) => directory.assigned(member),
            Self::Files(files, member) => {
                let ids = self.load()?.certificate.identity.instances;
                member.assign(&ids).map_err(of_file(&files.certificate))
            }
        }
    }

    /// The NF instance ids that are known to be those of our own NFs: of this process, and of every process with a
    /// certificate in the directory.
    pub fn own_instances(&self, certificate: &Certificate) -> BTreeSet<NfInstanceId> {
        let mut ids: BTreeSet<_> = certificate.identity.instances.iter().copied().collect();
        if let Self::Directory(directory, _) = self {
            ids.extend(directory.named_instances());
        }
        ids
    }

    /// Whether the CA of the directory is to replace the certificate by a new one now.
    pub fn is_due(&self, certificate: &Certificate) -> bool {
        self.can_issue() && is_due(certificate)
    }

    /// Whether the certificate ends soon and this process can't replace it.
    pub fn ends_unless_replaced(&self, certificate: &Certificate) -> bool {
        !self.can_issue() && is_due(certificate)
    }

    /// Whether this process can issue itself a certificate: the CA's key is in the directory.
    fn can_issue(&self) -> bool {
        matches!(self, Self::Directory(directory, _) if directory.has_key())
    }

    /// The current versions of the files.
    pub fn file_versions(&self) -> FileVersions {
        let (ca, certificate, key) = self.paths();
        let of = |path: &PathBuf| {
            let data = fs::metadata(path).ok()?;
            Some((data.ino(), data.mtime(), data.mtime_nsec(), data.size()))
        };
        [ca, certificate, key].iter().map(of).collect()
    }

    /// Paths of the CA, the certificate and the key.
    pub fn paths(&self) -> (PathBuf, PathBuf, PathBuf) {
        match self {
            Self::Directory(directory, member) => {
                let both = directory.role_file(&member.role);
                (directory.ca_file(), both.clone(), both)
            }
            Self::Files(files, _) => (files.ca.clone(), files.certificate.clone(), files.key.clone()),
        }
    }
}

/// All certificates of a file.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PkiError> {
    let list: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(of_file(path))?.collect();
    let list = list.map_err(of_file(path))?;
    if list.is_empty() {
        return Err(of_file(path)("there is no certificate in it"));
    }
    Ok(list)
}
