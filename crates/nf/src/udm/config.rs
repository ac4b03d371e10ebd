//! What a UDM is configured with.

use crate::kit::Identity;
use pith_crypto::suci::HomeNetworkPrivateKey;
use pith_types::Plmn;
use std::sync::Arc;

/// A private key of the home network (TS 33.501 Annex C).
#[derive(Clone)]
pub struct HomeNetworkKey {
    /// Home Network Public Key Identifier.
    pub id: u8,
    /// The key.
    pub key: Arc<HomeNetworkPrivateKey>,
}

/// The UDM's configuration.
#[derive(Clone)]
pub struct UdmConfig {
    /// Who it is.
    pub identity: Identity,
    /// The home network: whose provisioned data is meant where a request names no network.
    pub plmn: Plmn,
    /// Keys that uncover SUCIs.
    pub home_network_keys: Vec<HomeNetworkKey>,
}
