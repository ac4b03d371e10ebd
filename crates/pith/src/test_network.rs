//! The subscribers of the test network, whose keys are public (README, 'Test network').

use anyhow::{Result, anyhow};
use pith_nf::kit::{Secret, Subscriber};
use pith_runtime::config::Config;
use pith_runtime::store::{Database, Existing};
use pith_types::Supi;

const FIRST_SUPI: &str = "imsi-999700000000001";
const K: &str = "465B5CE8B199B49FAA5F0A2EE238A6BC";
const OPC: &str = "E8ED289DEBA952E4283B54E88E6183CA";

/// The configured database, with this number of the test network's subscribers added.
pub fn database(config: &Config, count: u32) -> Result<Database> {
    let mut database = Database::open(&config.store.location())?;
    database.add_subscribers(subscribers(count)?, Existing::Keep)?;
    tracing::warn!("test network: {count} subscribers with public keys");
    Ok(database)
}

fn subscribers(count: u32) -> Result<Vec<Subscriber>> {
    let key = |text: &str| text.parse::<Secret<16>>().map_err(|error| anyhow!(error));
    let (k, opc) = (key(K)?, key(OPC)?);
    let supis = FIRST_SUPI.parse::<Supi>()?.consecutive(count.into());
    let supis = supis.ok_or_else(|| anyhow!("the test network has no {count} SUPIs"))?;
    Ok(supis.into_iter().map(|supi| Subscriber::with_defaults(supi, k.0, opc.0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_network_matches_ueransims_sample_files() {
        let subscribers = subscribers(10).unwrap();
        assert_eq!(subscribers[9].supi.as_str(), "imsi-999700000000010");
        assert!(subscribers.iter().all(|subscriber| subscriber.check().is_ok()));
    }
}
