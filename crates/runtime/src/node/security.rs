//! The certificate of a process, and the security towards NFs of other vendors.

use super::{Hosting, StartError, identities::sbi_address, nf_of};
use crate::config::{Config, ExternalNf, ExternalSecurity, HostedNf, SbiSecurity, Switch};
use crate::http::{self, ExternalPeer, Tls};
use crate::pki::{Directory, Member, Source, certificates};
use pith_nf::kit::Nf;
use pith_sbi::{NfInstanceId, Scheme};
use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs};

/// The SBI security of a process.
pub(super) struct Security {
    /// TLS; `None` if no connection leaves the process, or if all connections are cleartext.
    pub(super) tls: Option<Tls>,
    /// NFs of other vendors.
    pub(super) external_peers: Vec<ExternalPeer>,
    /// The stored NF instance ids, which the certificate names.
    pub(super) instances: BTreeMap<Nf, NfInstanceId>,
}

impl Security {
    /// Loads what the configuration names. The first process of a host creates the CA.
    pub(super) fn open(config: &Config, hosting: &Hosting) -> Result<Self, StartError> {
        let leaves_process = hosting.several_processes || config.sbi.is_served();
        if hosting.nfs.is_empty() || !leaves_process {
            return Ok(Self { tls: None, external_peers: Vec::new(), instances: BTreeMap::new() });
        }
        let external_peers = external_peers(config)?;
        if config.sbi.security == SbiSecurity::None {
            tracing::warn!(
                "sbi.security is none: processes of this user on this machine speak in cleartext, without certificates"
            );
            return Ok(Self { tls: None, external_peers, instances: BTreeMap::new() });
        }
        let member = Member::new(&hosting.nfs, sbi_address(config, hosting));
        let source = match &config.sbi.tls {
            Some(files) => Source::Files(files.clone(), member),
            None => Source::Directory(Directory::open(&config.pki_directory())?, member),
        };
        let tls = Tls::open(source.clone(), external_peers.clone())?;
        Ok(Self { instances: source.instances()?, external_peers, tls: Some(tls) })
    }

    /// The scheme of the process's URIs.
    pub(super) fn scheme(&self) -> Scheme {
        if self.tls.is_some() { Scheme::Https } else { Scheme::Http }
    }
}

/// The NFs of other vendors. Each weakened security is logged.
fn external_peers(config: &Config) -> Result<Vec<ExternalPeer>, StartError> {
    config.sbi.external.iter().map(|(nf, external)| one(*nf, external, config)).collect()
}

fn one(nf: HostedNf, external: &ExternalNf, config: &Config) -> Result<ExternalPeer, StartError> {
    let security = match external.security() {
        ExternalSecurity::Mtls => http::Security::Mutual,
        ExternalSecurity::Tls => http::Security::Server,
        ExternalSecurity::None => http::Security::None,
    };
    let host = external.host().unwrap_or_default();
    let callers = if external.callers.is_empty() { addresses(&host) } else { external.callers.clone() };
    let url = &external.url;
    match security {
        http::Security::Mutual => {}
        http::Security::Server => tracing::warn!(
            "sbi.external.{nf} ({url}): TLS, but requests of {callers:?} are taken without a certificate, as those of the {nf}"
        ),
        http::Security::None => {
            tracing::warn!("sbi.external.{nf} ({url}): cleartext, which can be read and changed in transit");
            // With 'sbi.security: none' the NF calls the address of the process itself.
            if config.sbi.security == SbiSecurity::Mtls && config.sbi.plain_listen.is_none() {
                tracing::warn!(
                    "sbi.external.{nf} ({url}) cannot call this process, not even for notifications: set 'sbi.plain_listen'"
                );
            }
        }
    }
    if external.oauth2 == Switch::Off {
        tracing::warn!("sbi.external.{nf} ({url}): access tokens are neither sent nor required");
    }
    let roots = external.ca.as_deref().map(certificates).transpose()?;
    let nf_type = nf_of(nf).nf_type().ok_or("an NF that has no NF type")?;
    let port = external.port().ok_or_else(|| format!("'sbi.external.{nf}': {url} has no port"))?;
    Ok(ExternalPeer { nf_type, host, port, callers, security, roots })
}

/// The addresses of a host; none if its name cannot be resolved.
fn addresses(host: &str) -> Vec<IpAddr> {
    let addresses = (host, 0).to_socket_addrs();
    addresses.map(|addresses| addresses.map(|address| address.ip()).collect()).unwrap_or_default()
}
