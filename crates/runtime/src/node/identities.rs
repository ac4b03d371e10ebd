//! Identities and addresses of a process's NFs.

use super::security::Security;
use super::{Hosting, nf_of};
use crate::clock::Clock;
use crate::config::{Config, ExternalNf, ExternalSecurity, HostedNf, SbiSecurity};
use pith_nf::amf::Peer;
use pith_nf::fabric::ProfileConfig;
use pith_nf::gateway::n2::{N2Config, PermittedGnb};
use pith_nf::gateway::n4::{N4Config, N4Peer};
use pith_nf::kit::{Identity, Nf, Rng};
use pith_sbi::{ApiRoot, NfInstanceId, NfType};
use pith_types::{AmfId, Guami, InstanceId, Plmn, ShardId, Tai};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// The identities of a process. An NF instance is an NF of one shard, with its own apiRoot.
pub(super) struct Identities {
    /// apiRoot of each shard.
    pub(super) roots: Vec<Arc<ApiRoot>>,
    /// apiRoot of the NRF.
    pub(super) nrf: Arc<ApiRoot>,
    instances: BTreeMap<(usize, Nf), NfInstanceId>,
    plmn: Plmn,
    clock: Clock,
}

impl Identities {
    pub(super) fn new(
        config: &Config,
        hosting: &Hosting,
        shards: usize,
        clock: Clock,
        rng: &mut Rng,
        security: &Security,
    ) -> Self {
        let own = sbi_address(config, hosting);
        let root = |address: SocketAddr, shard: usize| {
            let root = ApiRoot::new(security.scheme(), &address.to_string());
            Arc::new(root.with_prefix(&format!("/s{shard}")))
        };
        let roots: Vec<_> = (0..shards).map(|shard| root(own, shard)).collect();
        let nrf_address = if hosting.split { config.sbi.address(HostedNf::Nrf) } else { own };
        let instances = (0..shards).flat_map(|shard| hosting.nfs.iter().map(move |nf| (shard, *nf)));
        let mut random = || u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        let mut id = |key| {
            let stored = security.instances.get(&key).copied();
            (key, stored.unwrap_or_else(|| NfInstanceId::from_random(random())))
        };
        let instances = instances.map(&mut id).collect();
        let plmn = config.network.plmns.first().copied().unwrap_or_else(test_plmn);
        let external = config.sbi.external.get(&HostedNf::Nrf).and_then(ExternalNf::root);
        let nrf = external.map_or_else(|| root(nrf_address, 0), Arc::new);
        Self { roots, nrf, instances, plmn, clock }
    }

    /// The NF instances of the process with their types.
    pub(super) fn of_types(&self) -> impl Iterator<Item = (NfType, NfInstanceId)> {
        self.instances.iter().filter_map(|((_, nf), id)| Some((nf.nf_type()?, *id)))
    }

    pub(super) fn identity(&self, nf: Nf, shard: u16) -> Identity {
        let at = usize::from(shard);
        let nowhere = || Arc::clone(&self.nrf);
        Identity {
            instance_id: self.instances.get(&(at, nf)).copied().unwrap_or(NfInstanceId(0)),
            api_root: self.roots.get(at).cloned().unwrap_or_else(nowhere),
            plmn: self.plmn,
            instance: InstanceId(0),
            shard: ShardId(shard as u8),
            epoch_unix_ms: self.clock.epoch_unix_ms(),
        }
    }

    /// The AMF's shards, each with its range of ids: a UE may return to another shard than the one it left.
    pub(super) fn amf_peers(&self) -> Vec<Peer> {
        let peer = |(shard, root): (usize, &Arc<ApiRoot>)| Peer {
            instance: InstanceId(0),
            shard: ShardId(shard as u8),
            api_root: Arc::clone(root),
        };
        self.roots.iter().enumerate().map(peer).collect()
    }

    pub(super) fn n2_config(&self, config: &Config) -> N2Config {
        N2Config {
            amf_name: config.amf.name.clone(),
            guamis: guamis(config),
            relative_capacity: u8::MAX,
            plmns: config.network.plmns.iter().map(|plmn| (*plmn, config.network.slices.clone())).collect(),
            tais: tais(config),
            instance: InstanceId(0),
            shards: self.roots.len() as u8,
            permitted_gnbs: config.amf.n2.gnbs.iter().map(permitted).collect(),
            associations_per_address: config.amf.n2.associations_per_address as usize,
        }
    }

    pub(super) fn n4_config(&self, config: &Config) -> N4Config {
        let peer = |peer: &crate::config::UpfPeer| N4Peer { name: peer.name.clone(), address: peer.address };
        N4Config {
            address: config.n4.address.ip(),
            started: self.clock.unix_seconds(),
            upfs: config.n4.upfs.iter().map(peer).collect(),
            t1: config.n4.t1.0,
            n1: config.n4.n1.into(),
            heartbeat: config.n4.heartbeat.0,
            shards: self.roots.len() as u8,
        }
    }
}

fn permitted(gnb: &crate::config::Gnb) -> PermittedGnb {
    PermittedGnb { id: gnb.id.clone(), addresses: gnb.addresses.clone() }
}

/// SBI address of a process; in a split core that of its first NF.
pub(super) fn sbi_address(config: &Config, hosting: &Hosting) -> SocketAddr {
    let first = hosting.nfs.first().filter(|_| hosting.split);
    let named = |nf: &Nf| HostedNf::ALL.into_iter().find(|hosted| nf_of(*hosted) == *nf);
    first.and_then(named).map_or(config.sbi.listen(), |nf| config.sbi.address(nf))
}

/// API address of a process. In a split core it uses the host of its first NF, except for the process with
/// the subscribers; a process with only a UPF uses the host of its N4.
pub(super) fn api_address(config: &Config, hosting: &Hosting) -> Option<SocketAddr> {
    let listen = config.api.listen?;
    let host = if !hosting.split || hosting.has(Nf::Udr) {
        listen.ip()
    } else if hosting.nfs.is_empty() {
        config.upf.n4.ip()
    } else {
        sbi_address(config, hosting).ip()
    };
    Some(SocketAddr::new(host, listen.port()))
}

fn test_plmn() -> Plmn {
    Plmn::new("999", "70").expect("a constant that is a PLMN")
}

/// The AMF's GUAMI in each PLMN.
pub(super) fn guamis(config: &Config) -> Vec<Guami> {
    let amf = &config.amf;
    let amf_id = AmfId { region: amf.region, set: amf.set, pointer: amf.pointer };
    config.network.plmns.iter().map(|plmn| Guami { plmn_id: *plmn, amf_id }).collect()
}

/// Every tracking area in every PLMN.
pub(super) fn tais(config: &Config) -> Vec<Tai> {
    let network = &config.network;
    let areas = |plmn: &Plmn| {
        let plmn_id = *plmn;
        network.tracking_areas.iter().map(move |tac| Tai { plmn_id, tac: *tac })
    };
    network.plmns.iter().flat_map(areas).collect()
}

/// The network data of NF profiles.
pub(super) fn profile_config(config: &Config, oauth2: bool) -> ProfileConfig {
    let slices = config.network.slices.clone();
    let networks = config.smf.data_networks.iter();
    let data_networks =
        networks.flat_map(|network| slices.iter().map(|slice| (*slice, network.name.clone())));
    ProfileConfig {
        plmns: config.network.plmns.clone(),
        data_networks: data_networks.collect(),
        slices,
        guamis: guamis(config),
        tais: tais(config),
        oauth2,
        plain: plain_for_nrf(config),
    }
}

/// Where NFs that an NRF in cleartext tells of this process reach it: they speak cleartext, too.
fn plain_for_nrf(config: &Config) -> Option<SocketAddr> {
    let is_plain = |nrf: &ExternalNf| nrf.security() == ExternalSecurity::None;
    let nrf = config.sbi.external.get(&HostedNf::Nrf).filter(|nrf| is_plain(nrf));
    config.sbi.plain_listen.filter(|_| nrf.is_some() && config.sbi.security == SbiSecurity::Mtls)
}
