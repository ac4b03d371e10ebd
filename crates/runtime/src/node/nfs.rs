//! Creates the NFs of a shard from the configuration.

use super::access::Tokens;
use super::identities::{Identities, guamis, profile_config, tais};
use super::{Hosting, StartError, nf_of};
use crate::config::{
    Binding, Ciphering, Config, Emergency, EmergencyService, ExternalSecurity, Integrity, NetworkName,
    SbiSecurity,
};
use pith_crypto::nas::{CipheringAlgorithm, IntegrityAlgorithm};
use pith_nf::amf::{Amf, AmfConfig, EmergencyServices, Ladn, MicoMode, NetworkNames, ServedPlmn};
use pith_nf::ausf::{Ausf, AusfConfig};
use pith_nf::fabric::{Agent, AgentConfig, Hosted, Shard, profile};
use pith_nf::kit::{IpNetwork, Level, NetworkFunction, Nf, References, Rng, WallClock};
use pith_nf::nrf::{Nrf, NrfConfig, TokenIssuer};
use pith_nf::nssf::{AmfsOfSlices, Nssf, NssfConfig, SliceInstance, TargetAmfs};
use pith_nf::pcf::Pcf;
use pith_nf::smf::{Breakout, DataNetwork, Smf, SmfConfig, UpfService};
use pith_nf::udm::{HomeNetworkKey, Udm, UdmConfig};
use pith_nf::udr::Udr;
use pith_sbi::ApiRoot;
use pith_types::Tai;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Reserved addresses at the beginning of a pool: the network address and the gateway.
const RESERVED: u32 = 2;

/// The configuration of each NF of a shard.
struct Blueprint {
    hosted: Vec<Nf>,
    agent: AgentConfig,
    amf: AmfConfig,
    smf: SmfConfig,
    ausf: AusfConfig,
    udm: UdmConfig,
    nssf: NssfConfig,
    nrf: NrfConfig,
    tokens: Option<TokenIssuer>,
    identity: Box<dyn Fn(Nf) -> pith_nf::kit::Identity + Send>,
    verbosity: Level,
}

/// Returns a function that creates a shard's NFs, at the start and again after a panic.
pub(super) fn maker(
    config: &Config,
    hosting: &Hosting,
    identities: &Identities,
    access: &Tokens,
    shard: u16,
    mut rng: Rng,
) -> Result<impl FnMut() -> Shard + Send + 'static, StartError> {
    // A core has one NRF, on the first shard.
    let is_here = |nf: &Nf| *nf != Nf::Nrf || shard == 0;
    let hosted: Vec<Nf> = hosting.nfs.iter().copied().filter(is_here).collect();
    let by_nf: BTreeMap<Nf, _> = Nf::ALL.into_iter().map(|nf| (nf, identities.identity(nf, shard))).collect();
    let fallback = identities.identity(Nf::Nrf, shard);
    let identity = move |nf: Nf| by_nf.get(&nf).cloned().unwrap_or_else(|| fallback.clone());
    let blueprint = Blueprint {
        agent: agent_config(config, hosting, identities, access, shard),
        amf: amf_config(config, identity(Nf::Amf)),
        smf: smf_config(config),
        ausf: AusfConfig { serving_networks: config.network.plmns.clone() },
        udm: udm_config(config, identity(Nf::Udm))?,
        nssf: nssf_config(config, identities),
        nrf: nrf_config(config),
        tokens: access.issuer(identities),
        identity: Box::new(identity),
        verbosity: if config.log.level.contains("debug") { Level::Debug } else { Level::Info },
        hosted,
    };
    blueprint.amf.check()?;
    Ok(move || blueprint.build(&mut rng))
}

impl Blueprint {
    fn build(&self, rng: &mut Rng) -> Shard {
        let functions = self.hosted.iter().map(|nf| (*nf, self.function(*nf, rng))).collect();
        let wall = WallClock::of_epoch((self.identity)(Nf::Nrf).epoch_unix_ms);
        Shard::new(functions, Agent::new(self.agent.clone()).with_wall_clock(wall), self.verbosity)
    }

    fn function(&self, nf: Nf, rng: &mut Rng) -> Box<dyn NetworkFunction> {
        let identity = (self.identity)(nf);
        let root = Arc::clone(&identity.api_root);
        match nf {
            Nf::Amf => Box::new(Amf::new(self.amf.clone(), rng.fork())),
            Nf::Smf => Box::new(Smf::new(identity, self.smf.clone(), rng.fork())),
            Nf::Ausf => Box::new(Ausf::new(identity, self.ausf.clone(), rng.fork())),
            Nf::Udm => Box::new(Udm::new(self.udm.clone(), rng.fork())),
            // One shard of the process notifies of changes.
            Nf::Udr if identity.owner.shard.0 == 0 => Box::new(Udr::new(root).notifying_changes()),
            Nf::Udr => Box::new(Udr::new(root)),
            Nf::Pcf => Box::new(Pcf::new(&identity, rng.fork())),
            Nf::Nrf | Nf::Agent => {
                let wall = WallClock::of_epoch(identity.epoch_unix_ms);
                // URIs of the NRF have the apiRoot that other vendors' NFs are configured with: a request without a shard is for
                // the one NRF, and not every NF understands the prefix of a shard in a URI.
                let root = Arc::new(ApiRoot::clone(&root).with_prefix(""));
                let nrf = Nrf::new(root, self.nrf.clone()).with_wall_clock(wall);
                let nrf = match identity.blocks().next() {
                    Some(block) => nrf.in_block(block),
                    None => nrf,
                };
                Box::new(match &self.tokens {
                    Some(tokens) => nrf.with_tokens(tokens.clone()),
                    None => nrf,
                })
            }
            Nf::Nssf => Box::new(Nssf::new(self.nssf.clone())),
        }
    }
}

fn agent_config(
    config: &Config,
    hosting: &Hosting,
    identities: &Identities,
    access: &Tokens,
    shard: u16,
) -> AgentConfig {
    let profiles = profile_config(config, access.are_asked_for());
    let hosted = hosting.nfs.iter().map(|nf| {
        let profile = profile(*nf, &identities.identity(*nf, shard), &profiles);
        Hosted { nf: *nf, profile }
    });
    let external = config.sbi.external.iter();
    let fixed = external.filter_map(|(nf, root)| Some((nf_of(*nf), Arc::new(root.root()?))));
    let forced = |nf: &Nf| {
        let own = config.sbi.bindings.iter().find(|(hosted, _)| nf_of(**hosted) == *nf);
        *own.map_or(&config.sbi.binding, |(_, binding)| binding) == Binding::Http2
    };
    let own = identities.identity(Nf::Agent, shard);
    AgentConfig {
        shard,
        shards: config.shards() as u16,
        owner: own.owner,
        owners: own.owners,
        own_root: own.api_root,
        hosted: hosted.collect(),
        nrf: Arc::clone(&identities.nrf),
        fixed: fixed.collect(),
        forced_http: Nf::ALL.into_iter().filter(|nf| forced(nf)).collect::<BTreeSet<_>>(),
        protected: access.protected(config),
        references: References::new(&own.reference_key),
    }
}

/// Contexts of one block in a row. The 5G-TMSIs of these UEs have the same ten leading bits; a larger value would make blocks more uneven.
const UES_IN_A_ROW: u32 = 64;

fn amf_config(config: &Config, identity: pith_nf::kit::Identity) -> AmfConfig {
    let guami = guamis(config).first().copied().unwrap_or(pith_types::Guami {
        plmn_id: identity.plmn,
        amf_id: pith_types::AmfId { region: 0, set: 0, pointer: 0 },
    });
    let slices = config.amf_slices().to_vec();
    let mut amf = AmfConfig::new(identity, guami, slices.clone(), tais(config));
    amf.name = config.amf.name.clone();
    let plmns = config.network.plmns.iter();
    amf.plmns = plmns.map(|plmn| ServedPlmn { plmn: *plmn, slices: slices.clone() }).collect();
    amf.slices_elsewhere = config.network.slices.clone();
    amf.integrity = config.amf.security.integrity.iter().map(integrity).collect();
    amf.ciphering = config.amf.security.ciphering.iter().map(ciphering).collect();
    amf.derives_k_amf = config.amf.security.derive_k_amf;
    amf.nfs_are_identified = config.sbi.security == SbiSecurity::Mtls;
    amf.selects_slice_instances = config.selects_slice_instances();
    let part = config.amf.max_ues.div_ceil(config.shards() as u32);
    amf.max_ues = part.saturating_add(part / 8).min(amf.most_ues());
    amf.ues_in_a_row = UES_IN_A_ROW;
    amf.shares_blocks = config.set.is_used();
    amf.retains_ues = config.amf.n2.retain_ues;
    amf.endpoints = super::identities::n2_endpoints(config).iter().map(|it| it.address.ip()).collect();
    amf.ims_voice = config.amf.ims_voice;
    amf.local_time = config.amf.time_zone.as_deref().and_then(|text| text.parse().ok());
    amf.network_name = config.amf.network_name.as_ref().map(network_names);
    amf.longest_edrx_cycle = config.amf.edrx.0;
    amf.mico = config
        .amf
        .mico
        .as_ref()
        .map(|mico| MicoMode { t3512: mico.t3512.0, all_plmn_area: mico.all_plmn_area });
    amf.paging_priorities.clone_from(&config.amf.paging_priorities);
    amf.ladns =
        config.smf.data_networks.iter().filter(|it| !it.ladn.is_empty()).map(|it| ladn(config, it)).collect();
    amf.emergency = config.amf.emergency.as_ref().map(|it| emergency_services(config, it));
    let timers = &config.amf.timers;
    amf.timers.t3512 = timers.t3512.0;
    amf.timers.t3502 = timers.t3502.0;
    amf.timers.t3522 = timers.t3522.0;
    amf.timers.t3550 = timers.t3550.0;
    amf.timers.t3560 = timers.t3560.0;
    amf.timers.t3570 = timers.t3570.0;
    amf.timers.mobile_reachable_margin = timers.mobile_reachable_margin.0;
    amf.timers.implicit_deregistration = timers.implicit_deregistration.0;
    amf.timers.ngap_guard = timers.ngap_guard.0;
    amf.timers.handover_preparation = timers.handover_preparation.0;
    amf.timers.handover_completion = timers.handover_completion.0;
    amf
}

fn network_names(names: &NetworkName) -> NetworkNames {
    let short = names.short.as_ref().unwrap_or(&names.full);
    NetworkNames { full: names.full.clone(), short: short.clone() }
}

/// Each shard admits its part of the unauthenticated UEs.
fn emergency_services(config: &Config, emergency: &Emergency) -> EmergencyServices {
    let admitted = if emergency.unauthenticated { emergency.max_unauthenticated } else { 0 };
    EmergencyServices {
        dnn: emergency.dnn.clone(),
        snssai: emergency.slice,
        unauthenticated: admitted.div_ceil(config.shards() as u32),
        t3512: emergency.t3512.0,
        numbers: emergency.numbers.iter().map(emergency_number).collect(),
    }
}

fn emergency_number(number: &crate::config::EmergencyNumber) -> pith_nas::ie::EmergencyNumber {
    let mut category = pith_nas::ie::EmergencyCategory::default();
    for service in &number.services {
        match service {
            EmergencyService::Police => category.police = true,
            EmergencyService::Ambulance => category.ambulance = true,
            EmergencyService::Fire => category.fire = true,
            EmergencyService::Marine => category.marine = true,
            EmergencyService::Mountain => category.mountain = true,
        }
    }
    pith_nas::ie::EmergencyNumber { category, digits: number.number.clone() }
}

const fn integrity(algorithm: &Integrity) -> IntegrityAlgorithm {
    match algorithm {
        Integrity::Nia1 => IntegrityAlgorithm::Nia1,
        Integrity::Nia2 => IntegrityAlgorithm::Nia2,
        Integrity::Nia3 => IntegrityAlgorithm::Nia3,
    }
}

const fn ciphering(algorithm: &Ciphering) -> CipheringAlgorithm {
    match algorithm {
        Ciphering::Nea0 => CipheringAlgorithm::Nea0,
        Ciphering::Nea1 => CipheringAlgorithm::Nea1,
        Ciphering::Nea2 => CipheringAlgorithm::Nea2,
        Ciphering::Nea3 => CipheringAlgorithm::Nea3,
    }
}

/// A local area data network.
fn ladn(config: &Config, network: &crate::config::DataNetwork) -> Ladn {
    let plmns = config.network.plmns.iter();
    let tais = plmns.flat_map(|plmn| network.ladn.iter().map(|tac| Tai { plmn_id: *plmn, tac: *tac }));
    Ladn { dnn: network.name.clone(), tais: tais.collect() }
}

/// Every data network in every slice.
fn smf_config(config: &Config) -> SmfConfig {
    let networks = config.smf.data_networks.iter();
    let data_networks = networks.flat_map(|network| {
        config.network.slices.iter().map(move |slice| DataNetwork {
            dnn: network.name.clone(),
            snssai: *slice,
            pool: (network.pool.address(), network.pool.prefix()),
            pool6: network.pool6.map(|pool| (pool.address(), pool.prefix())),
            delegation: network.delegation(),
            reserved: RESERVED,
            static_ranges: static_ranges(network),
            dns: network.dns.clone(),
            p_cscf: network.p_cscf.clone(),
            mtu: network.mtu,
            ambr: network.ambr,
            is_ladn: !network.ladn.is_empty(),
        })
    });
    let breakouts = config.smf.data_networks.iter().flat_map(|network| {
        network.breakouts.iter().map(|breakout| Breakout {
            dnn: network.name.clone(),
            upf: breakout.upf.clone(),
            destinations: breakout.destinations.iter().map(network_of).collect(),
        })
    });
    SmfConfig {
        data_networks: data_networks.collect(),
        upfs: config.smf.upfs.iter().map(upf_service).collect(),
        peers: Some(config.n4.upfs.iter().map(|peer| peer.name.clone()).collect()),
        breakouts: breakouts.collect(),
        t3591: config.smf.timers.t3591.0,
        t3592: config.smf.timers.t3592.0,
        rq_timer: config.smf.timers.rq_timer.0.as_secs().try_into().unwrap_or(u32::MAX),
        retransmissions: 4,
        guard: Duration::from_secs(10),
        path_grace: Duration::from_secs(1),
        emergency: config.amf.emergency.as_ref().map(|emergency| pith_nf::smf::EmergencyServices {
            dnn: emergency.dnn.clone(),
            snssai: emergency.slice,
            five_qi: emergency.five_qi,
            arp_priority: emergency.arp_priority,
        }),
        shares_blocks: config.set.is_used(),
        set_id: profile_config(config, false).set_id(Nf::Smf),
    }
}

fn static_ranges(network: &crate::config::DataNetwork) -> Vec<IpNetwork> {
    network.static_addresses.iter().map(|range| (range.0.address, range.0.prefix)).collect()
}

fn upf_service(service: &crate::config::UpfService) -> UpfService {
    let named = |slices: &Vec<_>| (!slices.is_empty()).then(|| slices.clone());
    UpfService {
        name: service.name.clone(),
        data_networks: service.data_networks.clone(),
        slices: named(&service.slices),
        tracking_areas: (!service.tracking_areas.is_empty()).then(|| service.tracking_areas.clone()),
        priority: service.priority,
        weight: service.weight,
        pools: service
            .pools
            .iter()
            .map(|pool| (pool.data_network.clone(), network_of(&pool.pool), RESERVED))
            .collect(),
    }
}

const fn network_of(network: &crate::config::Ipv4Net) -> pith_nf::smf::Network {
    (network.address(), network.prefix())
}

fn udm_config(config: &Config, identity: pith_nf::kit::Identity) -> Result<UdmConfig, StartError> {
    let plmn = identity.plmn;
    let keys = crate::keys::load(&config.home_network_keys)?;
    let home_network_keys =
        keys.into_iter().map(|(id, key)| HomeNetworkKey { id, key: Arc::new(key) }).collect();
    Ok(UdmConfig { identity, plmn, home_network_keys })
}

fn nrf_config(config: &Config) -> NrfConfig {
    let external = config.sbi.external.iter();
    let in_cleartext = external.filter(|(_, external)| external.security() == ExternalSecurity::None);
    let cleartext = in_cleartext.filter_map(|(nf, _)| nf_of(*nf).nf_type()).collect();
    NrfConfig { plmns: config.network.plmns.clone(), cleartext, ..NrfConfig::default() }
}

fn nssf_config(config: &Config, identities: &Identities) -> NssfConfig {
    let slices = config.network.slices.iter().map(|slice| (*slice, Vec::new()));
    let amfs = config.nssf.amfs.iter().map(|it| AmfsOfSlices {
        slices: it.slices.clone(),
        amfs: match it.set {
            Some(set) => TargetAmfs::Set { region: it.region.unwrap_or(config.amf.region), set },
            None => TargetAmfs::Instances(it.instances.clone()),
        },
    });
    let tais = tais(config);
    let instances = config.nssf.slice_instances.iter().map(|it| SliceInstance {
        id: it.id.as_str().into(),
        slices: it.slices.clone(),
        tais: tais.iter().copied().filter(|tai| it.tracking_areas.contains(&tai.tac)).collect(),
    });
    NssfConfig {
        slices: slices.collect(),
        nrf: Arc::clone(&identities.nrf),
        amfs: amfs.collect(),
        instances: instances.collect(),
    }
}
