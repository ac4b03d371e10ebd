//! The directory of a CA and its certificates.

use super::authority::{Authority, LIFETIME};
use super::{Certificate, PkiError, of_file};
use crate::http::PeerIdentity;
use crate::private_file::{self, PRIVATE, PUBLIC, Readers};
use pith_nf::kit::Nf;
use pith_sbi::{NfInstanceId, NfType};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const CA_CERTIFICATE: &str = "ca.crt";
const CA_KEY: &str = "ca.key";

/// A process that gets a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Name of its files.
    pub role: String,
    /// Its NFs.
    pub nfs: Vec<Nf>,
    /// NF types of a client that is no NF of Pith, such as an AF.
    pub clients: Vec<NfType>,
    /// DNS names and addresses of its server.
    pub names: Vec<String>,
}

/// NF instance ids by NF. The first is used; files of earlier versions have one for each shard.
pub type Instances = BTreeMap<String, Vec<NfInstanceId>>;

/// A certificate in the directory.
#[derive(Debug, Clone)]
pub struct Issued {
    /// Role of the process.
    pub role: String,
    /// The certificate.
    pub certificate: Certificate,
}

/// The directory of a CA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory(PathBuf);

impl Member {
    /// A process with these NFs at this address.
    pub fn new(nfs: &[Nf], address: SocketAddr) -> Self {
        let all = nfs.len() == Nf::ALL.len();
        let name =
            if all { "core".into() } else { nfs.iter().map(Nf::to_string).collect::<Vec<_>>().join("-") };
        let host = address.ip().to_string().replace(':', "_");
        Self {
            role: format!("{name}-{host}-{}", address.port()),
            nfs: nfs.to_vec(),
            clients: Vec::new(),
            names: vec![address.ip().to_string()],
        }
    }

    /// A client of another vendor at this address, `af` or `nef`: its certificate has the type, and an id of its own. `None`: the name
    /// is another one.
    pub fn client(name: &str, address: SocketAddr) -> Option<Self> {
        let nf_type = match name {
            "af" => NfType::Af,
            "nef" => NfType::Nef,
            _ => return None,
        };
        let host = address.ip().to_string().replace(':', "_");
        Some(Self {
            role: format!("{name}-{host}-{}", address.port()),
            nfs: Vec::new(),
            clients: vec![nf_type],
            names: vec![address.ip().to_string()],
        })
    }

    /// NF types for the certificate.
    pub fn nf_types(&self) -> Vec<NfType> {
        self.nfs.iter().filter_map(|nf| nf.nf_type()).chain(self.clients.iter().cloned()).collect()
    }

    /// Assigns a certificate's ids to NFs in order.
    pub fn assign(&self, ids: &[NfInstanceId]) -> Result<BTreeMap<Nf, NfInstanceId>, PkiError> {
        let needed = self.nfs.len();
        if ids.len() < needed {
            return Err(PkiError(format!(
                "the certificate names {} NF instances (urn:uuid:… in subjectAltName, TS 33.310 6.1.3c), but this process has {needed}: issue a certificate with {needed} ids",
                ids.len(),
            )));
        }
        Ok(self.nfs.iter().copied().zip(ids.iter().copied()).collect())
    }
}

impl Directory {
    /// Opens a directory; creates it if it does not exist.
    pub fn open(path: &Path) -> Result<Self, PkiError> {
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| {
            PkiError(format!(
                "cannot create the certificate directory {}: {error}; set 'sbi.pki' to another one",
                path.display()
            ))
        })?;
        Ok(Self(path.to_owned()))
    }

    /// Path of a file in the directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// File with the certificates of trusted CAs.
    pub fn ca_file(&self) -> PathBuf {
        self.file(CA_CERTIFICATE)
    }

    /// Whether the key of the CA is here, or the CA is yet to be made: certificates can be issued.
    pub fn has_key(&self) -> bool {
        self.file(CA_KEY).exists() || !self.ca_file().exists()
    }

    /// File with certificate and key of a process.
    pub fn role_file(&self, role: &str) -> PathBuf {
        self.file(&format!("{role}.pem"))
    }

    /// Creates the CA if there is none. Returns its name, and whether it is new.
    pub fn init(&self) -> Result<(String, bool), PkiError> {
        let _lock = self.lock()?;
        let (authority, is_new) = self.authority()?;
        Ok((authority.name, is_new))
    }

    /// Returns the certificate of a process. Issues a new one if there is none, if it does not fit the
    /// process, if it is in the last third of its validity, or if `renew`.
    pub fn issue(&self, member: &Member, renew: bool) -> Result<Certificate, PkiError> {
        self.issue_for(member, renew, LIFETIME)
    }

    pub(crate) fn issue_for(
        &self,
        member: &Member,
        renew: bool,
        lifetime: Duration,
    ) -> Result<Certificate, PkiError> {
        let _lock = self.lock()?;
        let identity = PeerIdentity { instances: self.instances(member)?, nf_types: member.nf_types() };
        let path = self.role_file(&member.role);
        let there = path.exists().then(|| read(&path)).transpose();
        let fits =
            |certificate: &Certificate| certificate.identity == identity && certificate.names == member.names;
        if !self.has_key() {
            return self.without_key(member, there, fits);
        }
        let (authority, _) = self.authority()?;
        if let Ok(Some(certificate)) = &there
            && !renew
            && fits(certificate)
            && certificate.issuer == authority.name
            && !is_due(certificate)
        {
            return Ok(certificate.clone());
        }
        let text = authority.issue(&member.role, &member.names, &identity, lifetime)?;
        self.write(&path, PRIVATE, &text)?;
        read(&path)
    }

    /// A host with the CA's certificate but without its key can only use certificates issued elsewhere.
    fn without_key(
        &self,
        member: &Member,
        there: Result<Option<Certificate>, PkiError>,
        fits: impl Fn(&Certificate) -> bool,
    ) -> Result<Certificate, PkiError> {
        there?.filter(fits).ok_or_else(|| {
            PkiError(format!(
                "{} does not fit this process, and the CA's key {} to issue another one is missing: run 'pith pki issue' on the host with the key, and configure the files in 'sbi.tls'",
                self.role_file(&member.role).display(),
                self.file(CA_KEY).display()
            ))
        })
    }

    /// The ids of a process by NF.
    pub fn assigned(&self, member: &Member) -> Result<BTreeMap<Nf, NfInstanceId>, PkiError> {
        let _lock = self.lock()?;
        member.assign(&self.instances(member)?)
    }

    /// The ids of a process, ordered by NF. Missing ids are generated and stored.
    fn instances(&self, member: &Member) -> Result<Vec<NfInstanceId>, PkiError> {
        let path = self.file(&format!("{}.json", member.role));
        let mut known = match fs::read(&path) {
            Ok(text) => serde_json::from_slice::<Instances>(&text).map_err(of_file(&path))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Instances::new(),
            Err(error) => return Err(of_file(&path)(error)),
        };
        let before = known.clone();
        let clients = member.clients.iter().map(|it| it.as_str().to_lowercase());
        let holders: Vec<String> = member.nfs.iter().map(Nf::to_string).chain(clients).collect();
        for holder in &holders {
            let ids = known.entry(holder.clone()).or_default();
            if ids.is_empty() {
                ids.push(random_id()?);
            }
        }
        if known != before {
            let text = serde_json::to_string_pretty(&known).map_err(of_file(&path))?;
            self.write(&path, PRIVATE, &(text + "\n"))?;
        }
        let ids = |holder: &String| known.get(holder).and_then(|ids| ids.first().copied());
        Ok(holders.iter().filter_map(ids).collect())
    }

    /// All certificates, ordered by role.
    pub fn list(&self) -> Result<Vec<Issued>, PkiError> {
        let issue = |(role, path): (String, PathBuf)| Ok(Issued { role, certificate: read(&path)? });
        let mut issued = self.roles()?.into_iter().map(issue).collect::<Result<Vec<_>, PkiError>>()?;
        issued.sort_by(|a, b| a.role.cmp(&b.role));
        Ok(issued)
    }

    /// The NF instance ids in all certificates that can be read.
    pub(super) fn named_instances(&self) -> Vec<NfInstanceId> {
        let issued = self.roles().unwrap_or_default().into_iter().filter_map(|(_, path)| read(&path).ok());
        issued.flat_map(|certificate| certificate.identity.instances).collect()
    }

    /// The roles with a certificate, and the file of each.
    fn roles(&self) -> Result<Vec<(String, PathBuf)>, PkiError> {
        let mut roles = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(of_file(&self.0))? {
            let path = entry.map_err(of_file(&self.0))?.path();
            if let Some(role) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".pem")) {
                roles.push((role.to_owned(), path));
            }
        }
        Ok(roles)
    }

    /// Issues a new certificate with the content of an existing one.
    pub fn renew(&self, issued: &Issued) -> Result<Certificate, PkiError> {
        let (path, old) = (self.role_file(&issued.role), &issued.certificate);
        let _lock = self.lock()?;
        let (authority, _) = self.authority()?;
        let text = authority.issue(&issued.role, &old.names, &old.identity, LIFETIME)?;
        self.write(&path, PRIVATE, &text)?;
        read(&path)
    }

    /// The CA; created if there is none. The caller holds the lock.
    fn authority(&self) -> Result<(Authority, bool), PkiError> {
        let (certificate, key) = (self.ca_file(), self.file(CA_KEY));
        if certificate.exists() {
            let key_text = private_file::read(&key, Readers::Owner).map_err(of_file(&key))?;
            let text = fs::read_to_string(&certificate).map_err(of_file(&certificate))?;
            return Ok((Authority::load(&text, &key_text).map_err(of_file(&self.0))?, false));
        }
        let (authority, text, key_text) = Authority::make()?;
        // The key is written first: a directory with a certificate but no key counts as one that cannot
        // issue.
        self.write(&key, PRIVATE, &key_text)?;
        self.write(&certificate, PUBLIC, &text)?;
        tracing::info!("created the private CA '{}' in {}", authority.name, self.0.display());
        Ok((authority, true))
    }

    /// Locks the directory for writing until the file is dropped.
    fn lock(&self) -> Result<File, PkiError> {
        let path = self.file("lock");
        let open = OpenOptions::new().create(true).truncate(false).write(true).mode(PRIVATE).open(&path);
        let file = open.map_err(|error| {
            PkiError(format!(
                "{}: {error}; the directory must belong to the user that runs Pith, or set 'sbi.pki' to another one",
                path.display()
            ))
        })?;
        file.lock().map_err(of_file(&path))?;
        Ok(file)
    }

    fn write(&self, path: &Path, mode: u32, text: &str) -> Result<(), PkiError> {
        private_file::replace(path, mode, text).map_err(of_file(path))
    }
}

/// Whether a certificate is in the last third of its validity, or expired.
pub(super) fn is_due(certificate: &Certificate) -> bool {
    let third = (certificate.not_after - certificate.not_before) / 3;
    !(certificate.not_before..certificate.not_after - third).contains(&now())
}

/// Seconds since 1970.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

fn read(path: &Path) -> Result<Certificate, PkiError> {
    let der = CertificateDer::from_pem_file(path).map_err(of_file(path))?;
    Certificate::read(&der).map_err(of_file(path))
}

fn random_id() -> Result<NfInstanceId, PkiError> {
    let mut octets = [0; 16];
    getrandom::fill(&mut octets)
        .map_err(|error| PkiError(format!("the operating system's random source failed: {error}")))?;
    Ok(NfInstanceId::from_random(u128::from_be_bytes(octets)))
}
