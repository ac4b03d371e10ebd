//! What an NRF is configured with.

use crate::kit::Duration;

/// The NRF's configuration.
#[derive(Debug, Clone)]
pub struct NrfConfig {
    /// How often NF instances tell that they live.
    pub heart_beat: Duration,
    /// How long a discovery result may be used.
    pub validity: Duration,
}

impl Default for NrfConfig {
    fn default() -> Self {
        Self { heart_beat: Duration::from_secs(10), validity: Duration::from_secs(60) }
    }
}
