//! Configuration of an NRF.

use crate::kit::Duration;
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
}

impl Default for NrfConfig {
    fn default() -> Self {
        Self { heart_beat: Duration::from_secs(10), validity: Duration::from_secs(60), plmns: Vec::new() }
    }
}
