//! NF instance IDs and addresses of a process's NFs.

use super::security::Security;
use super::smf_run::SmfRun;
use super::{Hosting, nf_of};
use crate::clock::Clock;
use crate::config::{Config, ExternalNf, ExternalSecurity, HostedNf, Residency, SbiSecurity, TnlaUsage};
use pith_nf::fabric::ProfileConfig;
use pith_nf::gateway::n2::{N2Config, PermittedGnb, TnlAssociationUsage, TnlEndpoint};
use pith_nf::gateway::n4::{N4Config, N4Peer};
use pith_nf::kit::{Duration, Identity, Nf, ReferenceKey};
use pith_sbi::{ApiRoot, NfInstanceId, NfType};
use pith_types::{AmfId, BlockId, BlockOwner, Guami, InstanceId, OwnerMap, Plmn, ShardId, Tai};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// The identities of a process. Each NF is one NF instance, whatever the number of shards; the NFs share an apiRoot.
pub(super) struct Identities {
    /// apiRoot of the process.
    pub(super) root: Arc<ApiRoot>,
    /// Number of shards.
    shards: usize,
    /// apiRoot of the NRF.
    pub(super) nrf: Arc<ApiRoot>,
    /// NF instance IDs.
    instances: BTreeMap<Nf, NfInstanceId>,
    /// The PLMN in the NFs' requests: the first of the configuration.
    plmn: Plmn,
    /// The owner of each block of ids.
    owners: Arc<OwnerMap>,
    /// The key of the references in URIs.
    reference_key: ReferenceKey,
    clock: Clock,
    /// This process in its set; 0 without a set.
    instance: InstanceId,
}

/// Maximum time that NG SETUP RESPONSE waits until UPFs no longer send to the gNB's former TEIDs.
const SETUP_WAIT: Duration = Duration::from_secs(5);

impl Identities {
    /// Uses the NF instance IDs of the process's certificate files, and otherwise those that follow from the key of references:
    /// the same in each run, as other NFs have them in their contexts.
    pub(super) fn new(
        config: &Config,
        hosting: &Hosting,
        shards: usize,
        clock: Clock,
        security: &Security,
        reference_key: ReferenceKey,
        owners: Arc<OwnerMap>,
    ) -> Self {
        let own_address = sbi_address(config, hosting);
        let root = |address: SocketAddr| Arc::new(ApiRoot::new(security.scheme(), &address.to_string()));
        let nrf_address =
            if hosting.several_processes { config.sbi.address(HostedNf::Nrf) } else { own_address };
        let instance = InstanceId(config.set.instance);
        let random = |nf: &Nf| match instance.0 {
            0 => reference_key.number(&format!("NF instance ID of {nf}")),
            number => reference_key.number(&format!("NF instance ID of {nf} {number}")),
        };
        let id = |nf: &Nf| {
            let stored = security.instances.get(nf).copied();
            (*nf, stored.unwrap_or_else(|| NfInstanceId::from_random(random(nf))))
        };
        let instances = hosting.nfs.iter().map(id).collect();
        let plmn = config.network.plmns.first().copied().unwrap_or_else(default_plmn);
        let external = config.sbi.external.get(&HostedNf::Nrf).and_then(ExternalNf::root);
        let nrf = external.map_or_else(|| root(nrf_address), Arc::new);
        let root = root(own_address);
        Self { root, shards, nrf, instances, plmn, owners, reference_key, clock, instance }
    }

    /// NF type and NF instance ID of each NF instance of the process.
    pub(super) fn of_types(&self) -> impl Iterator<Item = (NfType, NfInstanceId)> {
        self.instances.iter().filter_map(|(nf, id)| Some((nf.nf_type()?, *id)))
    }

    /// The identity of an NF on a shard.
    pub(super) fn identity(&self, nf: Nf, shard: u16) -> Identity {
        Identity {
            instance_id: self.instances.get(&nf).copied().unwrap_or(NfInstanceId(0)),
            api_root: Arc::clone(&self.root),
            plmn: self.plmn,
            owner: self.owner(shard),
            owners: Arc::clone(&self.owners),
            reference_key: self.reference_key.clone(),
            epoch_unix_ms: self.clock.epoch_unix_ms(),
        }
    }

    /// A shard of this process in the owner map.
    const fn owner(&self, shard: u16) -> BlockOwner {
        BlockOwner { instance: self.instance, shard: ShardId(shard as u8) }
    }

    /// The owner of each block of ids, and the instance of this process.
    pub(super) fn owners(&self) -> (Arc<OwnerMap>, InstanceId) {
        (Arc::clone(&self.owners), self.instance)
    }

    /// The blocks of ids of a shard.
    pub(super) fn blocks(&self, shard: u16) -> Vec<BlockId> {
        self.owners.blocks_of(self.owner(shard)).collect()
    }

    pub(super) fn n2_config(&self, config: &Config) -> N2Config {
        N2Config {
            amf_name: config.amf.name.clone(),
            guamis: guamis(config),
            relative_capacity: u8::MAX,
            plmns: config.network.plmns.iter().map(|plmn| (*plmn, config.amf_slices().to_vec())).collect(),
            tais: tais(config),
            instance: self.instance,
            owners: Arc::clone(&self.owners),
            shards: self.shards as u8,
            permitted_gnbs: config.amf.n2.gnbs.iter().map(permitted).collect(),
            associations_per_address: config.amf.n2.associations_per_address as usize,
            endpoints: n2_endpoints(config),
            setup_wait: SETUP_WAIT,
        }
    }

    pub(super) fn n4_config(&self, config: &Config, run: SmfRun) -> N4Config {
        let peer = |peer: &crate::config::UpfPeer| N4Peer { name: peer.name.clone(), address: peer.address };
        N4Config {
            address: config.n4.address.ip(),
            recovery_time_stamp: run.recovery_time_stamp,
            run: run.stored,
            smf_set: config.n4.smf_set.clone(),
            // 24 bits of the milliseconds.
            first_sequence: self.clock.epoch_unix_ms() as u32,
            upfs: config.n4.upfs.iter().map(peer).collect(),
            t1: config.n4.t1.0,
            n1_transmissions: config.n4.n1.into(),
            heartbeat: config.n4.heartbeat.0,
            instance: self.instance,
            owners: Arc::clone(&self.owners),
            shards: self.shards as u8,
        }
    }
}

/// The N2 endpoints of which gNBs are informed: none if there is only one. All addresses of a multi-homed one are the same endpoint.
pub(super) fn n2_endpoints(config: &Config) -> Vec<TnlEndpoint> {
    let n2 = &config.amf.n2;
    let Some(first) = n2.addresses.first().filter(|_| !n2.endpoints.is_empty()) else { return Vec::new() };
    let endpoint = |address, usage, weight| TnlEndpoint {
        address: SocketAddr::new(address, n2.port),
        usage: match usage {
            TnlaUsage::Ue => TnlAssociationUsage::ue,
            TnlaUsage::NonUe => TnlAssociationUsage::non_ue,
            TnlaUsage::Both => TnlAssociationUsage::both,
        },
        weight: Some(weight),
    };
    let further = n2.endpoints.iter().map(|it| endpoint(it.address, it.usage, it.weight));
    [endpoint(*first, TnlaUsage::Both, n2.weight)].into_iter().chain(further).collect()
}

/// A gNB of the configuration that may connect.
fn permitted(gnb: &crate::config::Gnb) -> PermittedGnb {
    PermittedGnb { id: gnb.id.clone(), addresses: gnb.addresses.clone() }
}

/// SBI address of a process. In a core of several processes it is that of the process's first NF.
pub(super) fn sbi_address(config: &Config, hosting: &Hosting) -> SocketAddr {
    let first = hosting.nfs.first().filter(|_| hosting.several_processes);
    let configured_name = |nf: &Nf| HostedNf::ALL.into_iter().find(|hosted| nf_of(*hosted) == *nf);
    first.and_then(configured_name).map_or(config.sbi.listen(), |nf| config.sbi.address(nf))
}

/// TCP address of a process's operator API, if `api.listen` is set. In a core of several processes the process with the UDR
/// uses the host of `api.listen`, a process with only a UPF the host of `upf.n4`, and the others the host of their SBI address.
/// The port is the same.
pub(super) fn api_address(config: &Config, hosting: &Hosting) -> Option<SocketAddr> {
    let listen = config.api.listen?;
    let host = if !hosting.several_processes || hosting.has(Nf::Udr) {
        listen.ip()
    } else if hosting.nfs.is_empty() {
        config.upf.n4.ip()
    } else {
        sbi_address(config, hosting).ip()
    };
    Some(SocketAddr::new(host, listen.port()))
}

/// The PLMN of a configuration without PLMNs.
fn default_plmn() -> Plmn {
    Plmn::new("999", "70").expect("999-70 is a valid PLMN")
}

/// The AMF's GUAMI in each PLMN.
pub(super) fn guamis(config: &Config) -> Vec<Guami> {
    let amf = &config.amf;
    let amf_id = AmfId { region: amf.region, set: amf.set, pointer: config.amf_pointer() };
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

/// What NF profiles say about the network: PLMNs, slices, data networks, GUAMIs, tracking areas.
pub(super) fn profile_config(config: &Config, oauth2: bool) -> ProfileConfig {
    let slices = config.network.slices.clone();
    let networks = config.smf.data_networks.iter();
    let data_networks =
        networks.flat_map(|network| slices.iter().map(|slice| (*slice, network.name.clone())));
    ProfileConfig {
        plmns: config.network.plmns.clone(),
        slice_instances: config.smf.slice_instances.iter().map(|id| id.as_str().into()).collect(),
        data_networks: data_networks.collect(),
        slices,
        guamis: guamis(config),
        tais: tais(config),
        oauth2,
        plain: plain_address(config),
        reads_embedded: config.residency == Residency::Embedded,
        is_in_set: config.set.is_used(),
    }
}

/// The cleartext address of this process in its profiles. Pith's NRF gives it to NFs in cleartext only; NFs that use a
/// cleartext NRF have no TLS either. Another NRF would give it to NFs that may not use it.
fn plain_address(config: &Config) -> Option<SocketAddr> {
    let is_plain = |nrf: &ExternalNf| nrf.security() == ExternalSecurity::None;
    let is_given_to_plain = config.sbi.external.get(&HostedNf::Nrf).is_none_or(is_plain);
    config.sbi.plain_listen.filter(|_| is_given_to_plain && config.sbi.security == SbiSecurity::Mtls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cleartext_address_is_in_profiles_if_only_nfs_in_cleartext_get_it() {
        let address = |sbi: &str| {
            let ausf = "ausf: {url: 'http://10.0.0.9:80', security: none}";
            let text = format!("sbi: {{plain_listen: '10.0.0.1:80', external: {{{ausf}, {sbi}}}}}");
            plain_address(&Config::parse(&text, "test").unwrap())
        };
        let listen = "10.0.0.1:80".parse().ok();
        assert_eq!(address(""), listen, "Pith's NRF");
        assert_eq!(address("nrf: {url: 'http://10.0.0.8:80', security: none}"), listen);
        assert_eq!(address("nrf: 'https://10.0.0.8:80'"), None, "this NRF would give it to any NF");
    }
}
