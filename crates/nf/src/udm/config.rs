//! Configuration of a UDM.

use crate::kit::Identity;
use pith_crypto::suci::HomeNetworkPrivateKey;
use pith_types::Plmn;
use std::sync::Arc;

/// A private key of the home network (TS 33.501 Annex C).
#[derive(Clone)]
pub struct HomeNetworkKey {
    /// Home Network Public Key Identifier.
    pub id: u8,
    /// Its private key.
    pub key: Arc<HomeNetworkPrivateKey>,
}

/// The UDM's configuration.
#[derive(Clone)]
pub struct UdmConfig {
    /// Identity on the SBI.
    pub identity: Identity,
    /// The home network: requests for provisioned data that contain no network mean this one.
    pub plmn: Plmn,
    /// Keys that de-conceal SUCIs.
    pub home_network_keys: Vec<HomeNetworkKey>,
}
