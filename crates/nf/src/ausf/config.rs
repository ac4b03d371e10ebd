//! What an AUSF is configured with.

use pith_types::Plmn;

/// The AUSF's configuration.
#[derive(Debug, Clone)]
pub struct AusfConfig {
    /// Networks whose AMFs may ask for authentications (TS 33.501 6.1.2).
    pub serving_networks: Vec<Plmn>,
}
