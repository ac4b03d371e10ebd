//! Configuration of an AUSF.

use pith_types::Plmn;

/// The AUSF's configuration.
#[derive(Debug, Clone)]
pub struct AusfConfig {
    /// Networks whose AMFs may request authentications (TS 33.501 6.1.2).
    pub serving_networks: Vec<Plmn>,
}
