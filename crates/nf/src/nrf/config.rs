//! Configuration of an NRF.

use crate::kit::Duration;
use pith_sbi::NfType;
use pith_sbi::nnrf_nfmanagement::UriScheme;
use pith_types::Plmn;

/// The NRF's configuration.
#[derive(Debug, Clone)]
pub struct NrfConfig {
    /// Heart-beat interval of NF instances.
    pub heart_beat: Duration,
    /// Validity of a discovery result.
    pub validity: Duration,
    /// The networks of the NRF: requesters that registered none are in these.
    pub plmns: Vec<Plmn>,
    /// Types of other vendors' NFs without TLS: these get the cleartext addresses of services.
    pub cleartext: Vec<NfType>,
}

impl NrfConfig {
    /// The scheme in which NFs of that type call others.
    pub(super) fn scheme_of(&self, nf_type: &NfType) -> UriScheme {
        if self.cleartext.contains(nf_type) { UriScheme::Http } else { UriScheme::Https }
    }
}

impl Default for NrfConfig {
    fn default() -> Self {
        Self {
            heart_beat: Duration::from_secs(10),
            validity: Duration::from_secs(60),
            plmns: Vec::new(),
            cleartext: Vec::new(),
        }
    }
}
