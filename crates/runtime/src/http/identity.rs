//! The authenticated identity of a peer.

use pith_nf::fabric::guard::{ClientIdentity, Proof};
use pith_nf::kit::Issuer;
use pith_sbi::{NfInstanceId, NfType};
use rustls::pki_types::CertificateDer;
use std::net::IpAddr;
use std::sync::Arc;

/// The NFs that a certificate names (TS 33.310 6.1.3c, RFC 9310).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PeerIdentity {
    /// NF instance ids (`urn:uuid:…` in subjectAltName), one for each NF and shard of the process.
    pub instances: Vec<NfInstanceId>,
    /// NF types (`id-pe-nftypes`).
    pub nf_types: Vec<NfType>,
}

/// The server at the other end of a connection over TLS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerIdentity {
    /// NF instance ids in its certificate; `None` if a certificate of another vendor names none.
    pub instances: Option<Vec<NfInstanceId>>,
    /// NF types as which it may be called.
    pub nf_types: Vec<NfType>,
}

/// The NF that a request is meant for: the server's certificate must name it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expected {
    /// The instance, if it is known.
    pub instance: Option<NfInstanceId>,
    /// The NF type.
    pub nf_type: Option<NfType>,
}

impl Expected {
    /// Any instance of that type.
    pub const fn of_type(nf_type: NfType) -> Self {
        Self { instance: None, nf_type: Some(nf_type) }
    }

    /// Checks that the server is the expected NF (TS 33.501 13.1.2).
    pub(super) fn check(&self, server: &ServerIdentity) -> Result<(), String> {
        if let (Some(named), Some(instance)) = (&server.instances, self.instance)
            && !named.contains(&instance)
        {
            return Err(format!(
                "the server's certificate does not name the called NF instance {instance} (TS 33.310 6.1.3c)"
            ));
        }
        match &self.nf_type {
            Some(nf_type) if !server.nf_types.contains(nf_type) => Err(format!(
                "the server's certificate does not name the called NF type {} (RFC 9310)",
                nf_type.as_str()
            )),
            _ => Ok(()),
        }
    }
}

/// An NF of another vendor, by host and port of its URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalPeer {
    /// Its NF type in the configuration.
    pub nf_type: NfType,
    /// Host of its URL, without brackets.
    pub host: String,
    /// Port of its URL.
    pub port: u16,
    /// Addresses from which it calls.
    pub callers: Vec<IpAddr>,
    /// Security of calls to and from the NF.
    pub security: Security,
    /// The CAs of its certificates, if they are not those of this core.
    pub roots: Option<Vec<CertificateDer<'static>>>,
}

/// Security between this core and an NF of another vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// TLS with certificates on both sides.
    Mutual,
    /// TLS; the NF needs no certificate when it calls.
    Server,
    /// Cleartext.
    None,
}

/// The NFs of other vendors in the configuration.
#[derive(Debug, Clone, Default)]
pub struct ExternalPeers(Arc<[ExternalPeer]>);

impl From<Vec<ExternalPeer>> for ExternalPeers {
    fn from(list: Vec<ExternalPeer>) -> Self {
        Self(list.into())
    }
}

impl ExternalPeers {
    /// All NFs.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ExternalPeer> {
        self.0.iter()
    }

    /// The NFs whose URL has that host and port.
    pub(super) fn at(&self, host: &str, port: u16) -> impl Iterator<Item = &ExternalPeer> {
        self.0.iter().filter(move |external| external.host == host && external.port == port)
    }

    /// The client of a connection from that address without a certificate, if NFs that need none call from there. It may
    /// be any of them and no other NF.
    pub fn by_address(&self, from: IpAddr, security: Security) -> Option<ClientIdentity> {
        let from = from.to_canonical();
        let callers =
            self.iter().filter(|external| external.security == security && external.callers.contains(&from));
        identity_of(callers, Proof::Address)
    }
}

/// The identity of a client that is one of these NFs.
pub(super) fn identity_of<'a>(
    list: impl Iterator<Item = &'a ExternalPeer>,
    proof: Proof,
) -> Option<ClientIdentity> {
    let (mut nf_types, mut hosts) = (Vec::new(), Vec::new());
    for external in list {
        if !nf_types.contains(&external.nf_type) {
            nf_types.push(external.nf_type.clone());
        }
        hosts.push(external.host.clone());
        hosts.extend(external.callers.iter().map(ToString::to_string));
    }
    let is_known = !nf_types.is_empty();
    let issuer = match proof {
        Proof::Certificate | Proof::SameUser => Issuer::Own,
        Proof::Address => Issuer::Address,
    };
    is_known.then_some(ClientIdentity { proof, instances: Vec::new(), nf_types, hosts, issuer })
}
