//! Access tokens of a process: whether its services require them, and the keys that sign or verify them (TS
//! 33.501 13.4.1).

use super::identities::Identities;
use super::{Hosting, StartError, nf_of};
use crate::config::{Config, ExternalSecurity, HostedNf, OAuth2, Switch, TokenAlgorithm};
use crate::sbi::{AccessSettings, KeySource};
use crate::token_keys::{LIFETIME, TokenKeys, WallClockSigner};
use pith_crypto::jws::JwsAlgorithm;
use pith_nf::kit::Nf;
use pith_nf::nrf::TokenIssuer;
use pith_sbi::token::{KeySet, Producer};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// File of the NRF's keys, beside the database.
const KEYS: &str = "nrf-token-keys.json";

/// The access token settings of a process.
pub(super) struct Tokens {
    on: bool,
    own: Option<Arc<TokenKeys>>,
    foreign: Option<KeySet>,
}

impl Tokens {
    pub(super) fn open(config: &Config, hosting: &Hosting) -> Result<Self, StartError> {
        let on = are_used(config, hosting.several_processes);
        if hosting.several_processes && !on {
            let setting =
                if config.sbi.oauth2 == OAuth2::Off { "sbi.oauth2" } else { "sbi.external.nrf.oauth2" };
            tracing::warn!(
                "{setting} is off: a client with a certificate may use every operation of its NF types in this process without an access token; \
                 'sbi.oauth2: on' requires tokens"
            );
        }
        let external = &config.sbi.external;
        if !hosting.several_processes && !on && config.sbi.oauth2 == OAuth2::Auto && !external.is_empty() {
            tracing::warn!(
                "services of this process take requests of the NFs in 'sbi.external' without access tokens: 'sbi.oauth2: on' asks for them"
            );
        }
        let is_own_nrf = !external.contains_key(&HostedNf::Nrf);
        for (nf, other) in external.iter().filter(|_| on && is_own_nrf) {
            if other.oauth2 == Switch::On && other.security() != ExternalSecurity::Mtls {
                tracing::warn!(
                    "sbi.external.{nf} ({}): Pith's NRF gives access tokens to NFs with a certificate only: write 'security: mtls', or 'oauth2: off'",
                    other.url
                );
            }
        }
        let foreign = config.sbi.nrf_keys.as_deref().map(|file| read(file, config.sbi.nrf_algorithm));
        let file = config.store.path.file().map(|database| database.with_file_name(KEYS));
        let own = (on && hosting.has(Nf::Nrf)).then(|| TokenKeys::open(file)).transpose()?;
        Ok(Self { on, own: own.map(Arc::new), foreign: foreign.transpose()? })
    }

    /// Whether services of the process require tokens.
    pub(super) const fn are_asked_for(&self) -> bool {
        self.on
    }

    /// The settings by which the SBI server verifies tokens.
    pub(super) fn settings(&self, config: &Config, identities: &Identities) -> AccessSettings {
        let producer = self.on.then(|| Producer {
            instances: identities.of_types().collect(),
            plmns: config.network.plmns.clone(),
            slices: config.network.slices.clone(),
            nf_sets: Vec::new(),
        });
        let keys = match (&self.own, &self.foreign) {
            (_, Some(keys)) => KeySource::File(keys.clone()),
            (Some(keys), None) => {
                KeySource::Own(Arc::clone(keys), identities.identity(Nf::Nrf, 0).instance_id)
            }
            (None, None) => KeySource::Nrf(Arc::clone(&identities.nrf)),
        };
        let without = config.sbi.external.iter().filter(|(_, external)| external.oauth2 == Switch::Off);
        let exempt = without.filter_map(|(nf, _)| nf_of(*nf).nf_type()).collect();
        AccessSettings { producer, keys, exempt }
    }

    /// The token issuer of this process's NRF.
    pub(super) fn issuer(&self, identities: &Identities) -> Option<TokenIssuer> {
        let identity = identities.identity(Nf::Nrf, 0);
        let issuer = |keys: &Arc<TokenKeys>| TokenIssuer {
            signer: Arc::new(WallClockSigner(Arc::clone(keys))),
            instance: identity.instance_id,
            plmn: identity.plmn,
            lifetime: LIFETIME,
        };
        self.own.as_ref().map(issuer)
    }

    /// The NFs to which requests carry a token. NFs of other vendors get one if their own NRF issues it, or
    /// if tokens are on everywhere: Pith's NRF issues none for a producer that is not registered with it.
    pub(super) fn protected(&self, config: &Config) -> BTreeSet<Nf> {
        let external = &config.sbi.external;
        let foreign = external.contains_key(&HostedNf::Nrf) || config.sbi.oauth2 == OAuth2::On;
        let takes = |nf: &HostedNf| match external.get(nf) {
            Some(other) => foreign && other.oauth2 == Switch::On,
            None => true,
        };
        HostedNf::ALL.into_iter().filter(|nf| self.on && takes(nf)).map(nf_of).collect()
    }
}

/// Whether services require access tokens. An NRF that issues none ends 'auto'.
fn are_used(config: &Config, several_processes: bool) -> bool {
    let nrf = config.sbi.external.get(&HostedNf::Nrf);
    match config.sbi.oauth2 {
        OAuth2::Auto => several_processes && nrf.is_none_or(|nrf| nrf.oauth2 == Switch::On),
        OAuth2::On => true,
        OAuth2::Off => false,
    }
}

/// The keys of another vendor's NRF.
fn read(file: &Path, algorithm: TokenAlgorithm) -> Result<KeySet, StartError> {
    let wrong = |error: &dyn std::fmt::Display| format!("'sbi.nrf_keys' {}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
    let algorithm = match algorithm {
        TokenAlgorithm::Es256 => JwsAlgorithm::Es256,
        TokenAlgorithm::Rs256 => JwsAlgorithm::Rs256,
        TokenAlgorithm::Rs512 => JwsAlgorithm::Rs512,
    };
    let keys = if text.trim_start().starts_with('{') {
        KeySet::from_jwks(text.as_bytes())
    } else {
        KeySet::from_pem(algorithm, &text)
    };
    Ok(keys.map_err(|error| wrong(&error))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_nrf_without_access_tokens_ends_auto() {
        let used = |oauth2: &str, nrf: &str| {
            let text = format!("sbi: {{oauth2: {oauth2}, external: {{{nrf}}}}}");
            are_used(&Config::parse(&text, "test").unwrap(), true)
        };
        let (with, without) =
            ("nrf: {url: 'https://10.0.0.9:80'}", "nrf: {url: 'https://10.0.0.9:80', oauth2: off}");
        assert!(used("auto", "") && used("auto", with));
        assert!(!used("auto", without), "its tokens can neither be requested nor required");
        assert!(used("on", without));
        assert!(!used("off", with));
    }
}
