//! The NFs with SBI only: AUSF, UDM, UDR, PCF, NRF, NSSF.

use super::choices::Choices;
use super::material::{requests_for, root};
use super::stage::Stage;
use crate::corpus::Seed;
use crate::target::{CheckFailed, ensure};
use pith_crypto::suci::{HomeNetworkPrivateKey, Profile};
use pith_nf::ausf::{Ausf, AusfConfig};
use pith_nf::kit::{Identity, Nf, ReferenceKey, Rng, Subscriber};
use pith_nf::nrf::{Nrf, NrfConfig};
use pith_nf::nssf::{Nssf, NssfConfig, SliceInstance};
use pith_nf::pcf::Pcf;
use pith_nf::udm::{HomeNetworkKey, Udm, UdmConfig};
use pith_nf::udr::Udr;
use pith_sbi::NfInstanceId;
use pith_types::{BlockOwner, InstanceId, OwnerMap, Plmn, ShardId, Snssai};
use pith_world::Database;
use std::sync::{Arc, LazyLock};

fn plmn() -> Plmn {
    Plmn::new("999", "70").expect("a constant that is a PLMN")
}

fn identity() -> Identity {
    Identity {
        instance_id: NfInstanceId::from_random(7),
        api_root: root(),
        plmn: plmn(),
        owner: BlockOwner { instance: InstanceId(1), shard: ShardId(0) },
        owners: Arc::new(OwnerMap::of_instance(InstanceId(1), 1)),
        reference_key: ReferenceKey::new([7; 32]),
        epoch_unix_ms: 1_800_000_000_000,
    }
}

/// The requests that an NF serves, read once from the corpus.
struct Serves(LazyLock<Vec<Seed>>);

macro_rules! serves {
    ($name:ident $nf:ident) => {
        static $name: Serves = Serves(LazyLock::new(|| {
            requests_for(|request| request.target_nf().and_then(|of| Nf::of_type(&of)) == Some(Nf::$nf))
        }));
    };
}

serves!(OF_AUSF Ausf);
serves!(OF_UDM Udm);
serves!(OF_UDR Udr);
serves!(OF_PCF Pcf);
serves!(OF_NRF Nrf);
serves!(OF_NSSF Nssf);

/// The subscribers of the examples, with keys.
fn database() -> Database {
    let mut database = Database::default();
    for supi in ["imsi-999700000000001", "imsi-999700000000002"] {
        let supi = supi.parse().expect("a constant that is an IMSI");
        database.add(Subscriber::with_defaults(supi, [0x46; 16], [0xe8; 16]));
    }
    database
}

/// Authentications: none stays for ever, whatever UDM and AMFs send.
pub fn ausf(input: &[u8]) -> Result<(), CheckFailed> {
    let config = AusfConfig { serving_networks: vec![plmn()] };
    let mut stage = Stage::new(Ausf::new(identity(), config, Rng::from_number(1)), Database::default());
    stage.play(&OF_AUSF.0, &mut Choices::new(input))?;
    stage.expire_timers()?;
    ensure(stage.nf.pending() == 0, || format!("{} authentications stay", stage.nf.pending()))
}

/// Subscribers' data, authentication vectors, registrations.
pub fn udm(input: &[u8]) -> Result<(), CheckFailed> {
    static KEY: LazyLock<Arc<HomeNetworkPrivateKey>> = LazyLock::new(|| {
        Arc::new(HomeNetworkPrivateKey::new(Profile::A, &[0x77; 32]).expect("32 octets are a key"))
    });
    let home_network_keys = vec![HomeNetworkKey { id: 1, key: Arc::clone(&KEY) }];
    let config = UdmConfig { identity: identity(), plmn: plmn(), home_network_keys };
    let mut stage = Stage::new(Udm::new(config, Rng::from_number(1)), Database::default());
    stage.play(&OF_UDM.0, &mut Choices::new(input))?;
    stage.expire_timers()
}

/// Documents, and a failing database.
pub fn udr(input: &[u8]) -> Result<(), CheckFailed> {
    let mut stage = Stage::new(Udr::new(root()), database());
    stage.play(&OF_UDR.0, &mut Choices::new(input))?;
    stage.expire_timers()
}

/// Policy associations.
pub fn pcf(input: &[u8]) -> Result<(), CheckFailed> {
    let mut stage = Stage::new(Pcf::new(&identity(), Rng::from_number(1)), Database::default());
    stage.play(&OF_PCF.0, &mut Choices::new(input))?;
    stage.expire_timers()
}

/// Instances, subscriptions, discovery.
pub fn nrf(input: &[u8]) -> Result<(), CheckFailed> {
    let mut stage = Stage::new(Nrf::new(root(), NrfConfig::default()), Database::default());
    stage.play(&OF_NRF.0, &mut Choices::new(input))
}

/// Slices.
pub fn nssf(input: &[u8]) -> Result<(), CheckFailed> {
    let slice = Snssai::of_sst(1);
    let instance = SliceInstance { id: "site-a".into(), slices: vec![slice], tais: Vec::new() };
    let config = NssfConfig {
        slices: vec![(slice, Vec::new())],
        nrf: root(),
        amfs: Vec::new(),
        instances: vec![instance],
    };
    let mut stage = Stage::new(Nssf::new(config), Database::default());
    stage.play(&OF_NSSF.0, &mut Choices::new(input))
}
