//! Configuration of an NRF.

use crate::kit::Duration;

/// The NRF's configuration.
#[derive(Debug, Clone)]
pub struct NrfConfig {
    /// Heart-beat interval of NF instances.
    pub heart_beat: Duration,
    /// Validity of a discovery result.
    pub validity: Duration,
}

impl Default for NrfConfig {
    fn default() -> Self {
        Self { heart_beat: Duration::from_secs(10), validity: Duration::from_secs(60) }
    }
}
