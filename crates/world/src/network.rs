//! The test network and its NFs: as `pith up` builds it from its configuration, without a file.

use crate::dice::Dice;
use crate::journal::SharedJournal;
use crate::observed::{NfView, Observed};
use crate::plan::{Plan, Residency};
use crate::services::{EmergencyUes, Reachability};
use pith_crypto::jws::{JwsAlgorithm, SigningKey};
use pith_crypto::nas::IntegrityAlgorithm;
use pith_crypto::suci::{HomeNetworkPrivateKey, HomeNetworkPublicKey, Profile};
use pith_nf::amf::{Amf, AmfConfig, EmergencyServices, Ladn, MicoMode};
use pith_nf::ausf::{Ausf, AusfConfig};
use pith_nf::fabric::{Agent, AgentConfig, Hosted, ProfileConfig, Shard, profile};
use pith_nf::gateway::n2::{N2Config, N2Gateway, TnlAssociationUsage, TnlEndpoint};
use pith_nf::gateway::n4::{N4Config, N4Peer, StoredRun};
use pith_nf::kit::{Identity, Level, NetworkFunction, Nf, ReferenceKey, References};
use pith_nf::nrf::{Nrf, NrfConfig, TokenIssuer, TokenSigner};
use pith_nf::nssf::{AmfsOfSlices, Nssf, NssfConfig, SliceInstance, TargetAmfs};
use pith_nf::pcf::Pcf;
use pith_nf::smf::{Breakout, DataNetwork, Smf, SmfConfig, UpfService};
use pith_nf::udm::{HomeNetworkKey, Udm, UdmConfig};
use pith_nf::udr::Udr;
use pith_ngap::{GlobalRanNodeId, NgSetupRequest, SupportedTa};
use pith_sbi::token::AccessTokenClaims;
use pith_sbi::{ApiRoot, NfInstanceId, Scheme};
use pith_types::{
    Ambr, AmfId, BitRate, BlockId, BlockOwner, Dnn, Guami, InstanceId, OwnerMap, Plmn, ShardId, Snssai, Tac,
    Tai,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Start of every world, seconds since 1970.
pub(crate) const EPOCH: u64 = 1_800_000_000;
/// UPFs by name: the first anchors sessions; the second, in worlds that have it, can only be an
/// uplink classifier.
pub(crate) const UPFS: [&str; 2] = ["upf", "edge"];
/// Destinations that leave at the classifier: network and prefix length.
pub(crate) const BREAKOUT: (Ipv4Addr, u8) = (Ipv4Addr::new(198, 51, 100, 0), 24);

/// Private keys of the home network (TS 33.501 C.4): profile A with identifier 1, B with 2.
const HOME_NETWORK_KEYS: [(u8, Profile, [u8; 32]); 2] = [
    (
        1,
        Profile::A,
        [
            0xc5, 0x3c, 0x22, 0x20, 0x8b, 0x61, 0x86, 0x0b, 0x06, 0xc6, 0x2e, 0x54, 0x06, 0xa7, 0xb3, 0x30,
            0xc2, 0xb5, 0x77, 0xaa, 0x55, 0x58, 0x98, 0x15, 0x10, 0xd1, 0x28, 0x24, 0x7d, 0x38, 0xbd, 0x1d,
        ],
    ),
    (
        2,
        Profile::B,
        [
            0xf1, 0xab, 0x10, 0x74, 0x47, 0x7e, 0xbc, 0xc7, 0xf5, 0x54, 0xea, 0x1c, 0x5f, 0xc3, 0x68, 0xb1,
            0x61, 0x67, 0x30, 0x15, 0x5e, 0x00, 0x41, 0xac, 0x44, 0x7d, 0x63, 0x01, 0x97, 0x5f, 0xec, 0xda,
        ],
    ),
];

pub(crate) fn plmn() -> Plmn {
    Plmn::new("999", "70").expect("a constant that is a PLMN")
}

pub(crate) fn tai() -> Tai {
    Tai { plmn_id: plmn(), tac: Tac::new(1) }
}

pub(crate) fn slices() -> Vec<Snssai> {
    vec![Snssai::of_sst(1)]
}

pub(crate) fn dnn() -> Dnn {
    "internet".parse().expect("a constant that is a DNN")
}

/// The local area data network.
pub(crate) fn ladn() -> Dnn {
    "local".parse().expect("a constant that is a DNN")
}

/// The data network of emergency sessions.
fn emergency_dnn() -> Dnn {
    "sos".parse().expect("a constant that is a DNN")
}

/// The data networks that the SMF has.
fn data_networks(plan: &Plan) -> Vec<Dnn> {
    let ladn = plan.services.ladn.then(ladn);
    let emergency = (plan.services.emergency != EmergencyUes::None).then(emergency_dnn);
    [dnn()].into_iter().chain(ladn).chain(emergency).collect()
}

/// A data network that no SMF has.
pub(crate) fn other_dnn() -> Dnn {
    "other".parse().expect("a constant that is a DNN")
}

/// An NG SETUP REQUEST of a gNB.
pub(crate) fn ng_setup_request(name: &str, gnb: u32) -> Vec<u8> {
    NgSetupRequest {
        global_ran_node_id: GlobalRanNodeId::Gnb { plmn: plmn(), id: gnb, bits: 32 },
        ran_node_name: Some(name.into()),
        supported_tas: vec![SupportedTa { tac: tai().tac, plmns: vec![(plmn(), slices())] }],
        default_paging_drx: None,
        ue_retention: None,
    }
    .encode()
    .expect("a short message")
}

/// The tracking area of an AMF, where each has its own.
pub(crate) fn tai_of_area(area: usize) -> Tai {
    Tai { tac: Tac::new(1 + area as u32), ..tai() }
}

/// A slice that no UE requests.
fn other_slice() -> Snssai {
    Snssai::of_sst(9)
}

/// Slices of gNBs and of the network.
pub(crate) fn all_slices(plan: &Plan) -> Vec<Snssai> {
    let other = plan.reallocates.then(other_slice);
    slices().into_iter().chain(other).collect()
}

/// Slices of an AMF.
fn amf_slices(plan: &Plan, process: usize) -> Vec<Snssai> {
    if plan.reallocates && plan.area(process) == 0 { vec![other_slice()] } else { slices() }
}

fn amf_name(plan: &Plan, process: usize) -> String {
    match plan.area(process) {
        0 => "pith".into(),
        area => format!("pith-{area}"),
    }
}

/// In a set the AMF Pointer is the number of the instance.
fn guami(plan: &Plan, process: usize) -> Guami {
    let amf_id = AmfId { region: 2, set: 1 + plan.area(process) as u16, pointer: plan.instance(process).0 };
    Guami { plmn_id: plmn(), amf_id }
}

/// The home network's public keys with their identifiers, for USIMs.
pub(crate) fn public_keys() -> Vec<(u8, HomeNetworkPublicKey)> {
    let keys = private_keys().into_iter();
    keys.map(|key| (key.id, key.key.public_key().expect("a published key"))).collect()
}

fn private_keys() -> Vec<HomeNetworkKey> {
    let key = |(id, profile, octets): &(u8, Profile, [u8; 32])| HomeNetworkKey {
        id: *id,
        key: Arc::new(HomeNetworkPrivateKey::new(*profile, octets).expect("a published key")),
    };
    HOME_NETWORK_KEYS.iter().map(key).collect()
}

/// API root of a process.
pub(crate) fn root(process: usize) -> Arc<ApiRoot> {
    Arc::new(ApiRoot::new(Scheme::Http, &format!("10.0.0.{}:80", process + 1)))
}

/// The id of an NF instance in that incarnation of its process.
pub(crate) fn instance_id(process: usize, incarnation: u32, nf: Nf) -> NfInstanceId {
    let number = [process as u64, nf as u64].into_iter().fold(1, |n, part| n << 8 | part);
    NfInstanceId::from_random(u128::from(incarnation) << 64 | u128::from(number))
}

/// The name of the SMF Set in a world with instances.
pub(crate) const SMF_SET: &str = "pith";

/// The owner map of a process that is the only instance of its NFs.
pub(crate) fn owners(shards: usize) -> Arc<OwnerMap> {
    Arc::new(OwnerMap::of_instance(InstanceId(0), shards as u8))
}

/// The key of references, the same for all incarnations of a process.
const REFERENCE_KEY: ReferenceKey = ReferenceKey::new([0x1d; 32]);

/// The key with which the NRF signs access tokens.
pub(crate) fn token_key() -> SigningKey {
    SigningKey::from_number(&[7; 32]).expect("a number of P-256")
}

struct Signer(SigningKey);

impl TokenSigner for Signer {
    fn sign(&self, _now: u64, claims: &AccessTokenClaims) -> Option<String> {
        let input = claims.signing_input(JwsAlgorithm::Es256, "key");
        Some(AccessTokenClaims::token(&input, &self.0.sign(input.as_bytes())?))
    }
}

/// Where a UPF's PFCP entity is.
pub(crate) fn upf_n4(upf: usize) -> SocketAddr {
    SocketAddr::from(([10, 2, 0, upf as u8 + 1], 8805))
}

/// Address of a UPF's GTP-U entity.
pub(crate) const fn upf_n3(upf: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 3, 0, upf as u8 + 1)
}

/// Address of a process's PFCP entity.
pub(crate) fn smf_n4(process: usize) -> SocketAddr {
    SocketAddr::from(([10, 1, 0, process as u8 + 1], 8805))
}

/// A shard, and access to those of its NFs that invariants inspect.
pub(crate) struct ShardHost {
    pub shard: Shard,
    pub views: NfViews,
}

/// Access to a shard's NFs, as far as it hosts them.
#[derive(Default)]
pub(crate) struct NfViews {
    pub amf: Option<NfView<Amf>>,
    pub smf: Option<NfView<Smf>>,
    pub pcf: Option<NfView<Pcf>>,
}

/// Creates a shard and its NFs at the start of a process.
pub(crate) struct ShardFactory<'a> {
    pub plan: &'a Plan,
    pub process: usize,
    /// The incarnation of the process, which its NF instance IDs contain.
    pub incarnation: u32,
    pub shard: usize,
    /// The owner map at the start of the process.
    pub owners: Arc<OwnerMap>,
    pub journal: SharedJournal,
}

impl ShardFactory<'_> {
    /// Creates the shard.
    pub fn make(&self, dice: &mut Dice) -> ShardHost {
        let hosted = self.hosted();
        let mut views = NfViews::default();
        let functions = hosted.iter().map(|nf| (*nf, self.function(*nf, dice, &mut views))).collect();
        let registered =
            |nf: &Nf| Hosted { nf: *nf, profile: profile(*nf, &self.identity(*nf), &self.profiles()) };
        let agent = Agent::new(
            self.agent_config(hosted.iter().map(registered).collect(), References::new(&REFERENCE_KEY)),
        );
        let mut shard = Shard::new(functions, agent, Level::Warn);
        if self.plan.reloads {
            // What a document forgets, the world does without.
            shard.reload_contexts();
        }
        ShardHost { shard, views }
    }

    /// A core has one NRF: that of the first shard.
    fn hosted(&self) -> Vec<Nf> {
        let nfs = self.plan.processes[self.process].iter().copied();
        nfs.filter(|nf| *nf != Nf::Nrf || self.shard == 0).collect()
    }

    /// An NF instance ID is valid for one incarnation of the process.
    fn identity(&self, nf: Nf) -> Identity {
        Identity {
            instance_id: instance_id(self.process, self.incarnation, nf),
            api_root: root(self.process),
            plmn: plmn(),
            owner: BlockOwner {
                instance: self.plan.instance(self.process),
                shard: ShardId(self.shard as u8),
            },
            owners: Arc::clone(&self.owners),
            reference_key: REFERENCE_KEY,
            epoch_unix_ms: EPOCH as i64 * 1000,
        }
    }

    fn nrf(&self) -> Arc<ApiRoot> {
        let process = self.plan.processes.iter().position(|nfs| nfs.contains(&Nf::Nrf)).unwrap_or(0);
        root(process)
    }

    fn agent_config(&self, hosted: Vec<Hosted>, references: References) -> AgentConfig {
        let Identity { api_root, owner, owners, .. } = self.identity(Nf::Agent);
        AgentConfig {
            shard: self.shard as u16,
            shards: self.plan.shards as u16,
            owner,
            owners,
            own_root: api_root,
            hosted,
            nrf: self.nrf(),
            fixed: BTreeMap::new(),
            forced_http: BTreeSet::new(),
            protected: if self.plan.oauth2 { Nf::ALL.into() } else { BTreeSet::new() },
            references,
        }
    }

    fn watch<T: NetworkFunction + 'static>(&self, nf: Nf, inner: T) -> (Box<dyn NetworkFunction>, NfView<T>) {
        let (observed, window) = Observed::new((self.process, self.shard, nf), inner, self.journal.clone());
        (Box::new(observed), window)
    }

    fn function(&self, nf: Nf, dice: &mut Dice, views: &mut NfViews) -> Box<dyn NetworkFunction> {
        let identity = self.identity(nf);
        let own = Arc::clone(&identity.api_root);
        match nf {
            Nf::Amf => {
                let (observed, window) = self.watch(nf, Amf::new(self.amf_config(identity), dice.fork()));
                views.amf = Some(window);
                observed
            }
            Nf::Smf => {
                let (observed, window) = self.watch(nf, Smf::new(identity, self.smf_config(), dice.fork()));
                views.smf = Some(window);
                observed
            }
            Nf::Pcf => {
                let (observed, window) = self.watch(nf, Pcf::new(&identity, dice.fork()));
                views.pcf = Some(window);
                observed
            }
            Nf::Ausf => {
                self.watch(
                    nf,
                    Ausf::new(identity, AusfConfig { serving_networks: vec![plmn()] }, dice.fork()),
                )
                .0
            }
            Nf::Udm => {
                let config = UdmConfig { identity, plmn: plmn(), home_network_keys: private_keys() };
                self.watch(nf, Udm::new(config, dice.fork())).0
            }
            Nf::Udr if self.shard == 0 => self.watch(nf, Udr::new(own).notifying_changes()).0,
            Nf::Udr => self.watch(nf, Udr::new(own)).0,
            Nf::Nssf => {
                let all = all_slices(self.plan).into_iter();
                let amfs = self
                    .plan
                    .reallocates
                    .then(|| AmfsOfSlices { slices: slices(), amfs: TargetAmfs::Set { region: 2, set: 2 } });
                let config = NssfConfig {
                    slices: all.map(|slice| (slice, Vec::new())).collect(),
                    nrf: self.nrf(),
                    amfs: amfs.into_iter().collect(),
                    instances: self.slice_instances().collect(),
                };
                self.watch(nf, Nssf::new(config)).0
            }
            Nf::Nrf | Nf::Agent => {
                let config = NrfConfig {
                    heart_beat: Duration::from_secs(60),
                    validity: Duration::from_secs(120),
                    plmns: vec![plmn()],
                    cleartext: Vec::new(),
                };
                let nrf = Nrf::new(own, config).in_block(BlockId::new(0).expect("a block"));
                let issuer = TokenIssuer {
                    signer: Arc::new(Signer(token_key())),
                    instance: identity.instance_id,
                    plmn: plmn(),
                    lifetime: TOKEN_LIFETIME,
                };
                self.watch(nf, if self.plan.oauth2 { nrf.with_tokens(issuer) } else { nrf }).0
            }
        }
    }

    fn amf_config(&self, identity: Identity) -> AmfConfig {
        let guami = guami(self.plan, self.process);
        let mut config = AmfConfig::new(
            identity,
            guami,
            amf_slices(self.plan, self.process),
            tais(self.plan, self.process),
        );
        config.name = amf_name(self.plan, self.process);
        prefer(&mut config.ciphering, self.plan.ciphering);
        if let Some(ciphering) = self.plan.other_ciphering.filter(|_| self.plan.area(self.process) > 0) {
            prefer(&mut config.ciphering, ciphering);
            prefer(&mut config.integrity, IntegrityAlgorithm::Nia1);
        }
        config.derives_k_amf = self.plan.derives_k_amf;
        config.nfs_are_identified = self.plan.oauth2;
        config.selects_slice_instances = self.selects_slice_instances();
        config.timers.t3512 = PERIODIC_UPDATE;
        self.add_services(&mut config);
        config.retains_ues = self.plan.retaining != 0;
        config.shares_blocks = self.is_in_set();
        config
    }

    fn add_services(&self, config: &mut AmfConfig) {
        let services = self.plan.services;
        if services.ladn {
            config.ladns = vec![Ladn { dnn: ladn(), tais: vec![tai_of_area(0)] }];
        }
        if services.emergency != EmergencyUes::None {
            let may_lack_sim = services.emergency == EmergencyUes::WithoutSim;
            config.emergency = Some(EmergencyServices {
                dnn: emergency_dnn(),
                snssai: Snssai::of_sst(1),
                unauthenticated: if may_lack_sim { 100 } else { 0 },
                t3512: EMERGENCY_UPDATE,
                numbers: Vec::new(),
            });
        }
        if services.reachability != Reachability::Drx {
            config.longest_edrx_cycle = Duration::from_secs(60);
            config.mico = Some(MicoMode {
                t3512: PERIODIC_UPDATE + Duration::from_secs(120),
                all_plmn_area: self.plan.seed.is_multiple_of(2),
            });
            config.paging_priorities = vec![RULE_PRIORITY];
        }
        if self.plan.offers_endpoints {
            config.endpoints = (0..self.plan.associations).map(|number| amf_end(number).ip()).collect();
        }
    }

    const fn is_in_set(&self) -> bool {
        self.process < self.plan.instances
    }

    /// Every fifth seed has an instance of its slices, which the NSSF selects for sessions.
    fn slice_instances(&self) -> impl Iterator<Item = SliceInstance> {
        let instance = || SliceInstance { id: "world".into(), slices: slices(), tais: Vec::new() };
        self.selects_slice_instances().then(instance).into_iter()
    }

    const fn selects_slice_instances(&self) -> bool {
        self.plan.seed % 5 == 3
    }

    fn profiles(&self) -> ProfileConfig {
        ProfileConfig {
            plmns: vec![plmn()],
            slices: slices(),
            slice_instances: self.slice_instances().map(|instance| instance.id).collect(),
            data_networks: data_networks(self.plan).into_iter().map(|dnn| (Snssai::of_sst(1), dnn)).collect(),
            guamis: vec![guami(self.plan, self.process)],
            tais: tais(self.plan, self.process),
            oauth2: self.plan.oauth2,
            plain: None,
            reads_embedded: self.plan.residency == Residency::Embedded,
            is_in_set: self.is_in_set(),
        }
    }

    fn smf_config(&self) -> SmfConfig {
        let delegation = self.plan.services.delegation;
        let pool6 = match delegation {
            0 => (Ipv6Addr::new(0x2001, 0xdb8, 0x40, 0, 0, 0, 0, 0), 44),
            _ => (Ipv6Addr::new(0x2001, 0xdb8, 0x4000, 0, 0, 0, 0, 0), 40),
        };
        let network = |(number, dnn): (u8, Dnn)| DataNetwork {
            p_cscf: Vec::new(),
            is_ladn: dnn == ladn(),
            snssai: Snssai::of_sst(1),
            pool6: (number == 0).then_some(pool6),
            delegation: if number == 0 { delegation } else { 0 },
            dnn,
            // With a set each block should have some addresses.
            pool: (Ipv4Addr::new(10, 45 + number, 0, 0), if self.plan.instances > 0 { 20 } else { 24 }),
            reserved: 2,
            static_ranges: Vec::new(),
            dns: vec![Ipv4Addr::new(1, 1, 1, 1).into()],
            mtu: 1400,
            ambr: Ambr { uplink: BitRate::mbps(100), downlink: BitRate::mbps(100) },
        };
        let edge = UpfService { data_networks: Some(Vec::new()), ..UpfService::of_all(UPFS[1]) };
        let breakout = Breakout { dnn: dnn(), upf: edge.name.clone(), destinations: vec![BREAKOUT] };
        SmfConfig {
            peers: None,
            data_networks: (0..).zip(data_networks(self.plan)).map(network).collect(),
            t3591: Duration::from_secs(16),
            rq_timer: 60,
            t3592: Duration::from_secs(16),
            retransmissions: 4,
            guard: Duration::from_secs(10),
            path_grace: Duration::from_secs(1),
            shares_blocks: self.is_in_set(),
            set_id: self.profiles().set_id(Nf::Smf),
            upfs: vec![edge],
            breakouts: if self.plan.breaks_out { vec![breakout] } else { Vec::new() },
            emergency: (self.plan.services.emergency != EmergencyUes::None).then(|| {
                let (dnn, snssai) = (emergency_dnn(), Snssai::of_sst(1));
                pith_nf::smf::EmergencyServices { dnn, snssai, five_qi: 5, arp_priority: 1 }
            }),
        }
    }
}

/// Tokens expire and are renewed while UEs are served.
const TOKEN_LIFETIME: Duration = Duration::from_secs(300);

/// T3512 of every world: short, so that the core notices soon who is gone.
pub(crate) const PERIODIC_UPDATE: Duration = Duration::from_secs(10 * 60);

/// T3512 of UEs that are registered for emergency services: longer than a kill takes.
const EMERGENCY_UPDATE: Duration = Duration::from_secs(20 * 60);

/// ARP priority level of the flows of PCC rules: that of priority services, if there are some.
pub(crate) const RULE_PRIORITY: u8 = 3;

/// The AMF's end of a gNB's association with that number.
pub(crate) fn amf_end(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 2, 0, 5 + number], 38412))
}

/// The tracking areas of a process's AMF.
fn tais(plan: &Plan, process: usize) -> Vec<Tai> {
    plan.tracking_areas(plan.area(process)).map(tai_of_area).collect()
}

/// Maximum time that NG SETUP RESPONSE waits for the shards, as in `pith`.
const SETUP_WAIT: pith_nf::kit::Duration = pith_nf::kit::Duration::from_secs(5);

/// Time from the end of an instance's lease until others have its blocks, as in `pith`.
const ADOPTION: Duration = Duration::from_secs(1);

/// The N2 gateway of a process with that owner map.
pub(crate) fn n2_gateway(plan: &Plan, process: usize, owners: Arc<OwnerMap>) -> N2Gateway {
    let gateway = N2Gateway::new(N2Config {
        amf_name: amf_name(plan, process),
        guamis: vec![guami(plan, process)],
        relative_capacity: u8::MAX,
        plmns: vec![(plmn(), amf_slices(plan, process))],
        tais: tais(plan, process),
        instance: plan.instance(process),
        owners,
        shards: plan.shards as u8,
        permitted_gnbs: Vec::new(),
        associations_per_address: 1024,
        endpoints: endpoints(plan),
        setup_wait: SETUP_WAIT,
    });
    if process < plan.instances { gateway.sharing_blocks(plan.lease + ADOPTION) } else { gateway }
}

/// `started`: milliseconds from the start of the world to that of the process. `run`: its Recovery Time Stamp and number, if sessions
/// outlive the process without loss.
pub(crate) fn n4_config(
    (plan, process): (&Plan, usize),
    owners: Arc<OwnerMap>,
    started: u64,
    run: Option<(u64, StoredRun)>,
) -> N4Config {
    let peer = |upf: usize| N4Peer { name: UPFS[upf].into(), address: upf_n4(upf) };
    N4Config {
        address: smf_n4(process).ip(),
        recovery_time_stamp: run.map_or(EPOCH + started / 1000, |(stamp, _)| stamp),
        run: run.map(|(_, run)| run),
        smf_set: (process < plan.instances).then(|| SMF_SET.into()),
        first_sequence: started as u32,
        upfs: (0..plan.upfs).map(peer).collect(),
        t1: Duration::from_secs(3),
        n1_transmissions: 3,
        heartbeat: Duration::from_secs(20),
        instance: plan.instance(process),
        owners,
        shards: plan.shards as u8,
    }
}

/// The algorithm has the highest priority.
fn prefer<T: PartialEq>(algorithms: &mut Vec<T>, preferred: T) {
    algorithms.retain(|algorithm| *algorithm != preferred);
    algorithms.insert(0, preferred);
}

/// The AMF's endpoints that gNBs are to learn of.
fn endpoints(plan: &Plan) -> Vec<TnlEndpoint> {
    let offered = if plan.offers_endpoints { plan.associations } else { 0 };
    (0..offered).map(|number| endpoint(amf_end(number))).collect()
}

const fn endpoint(address: SocketAddr) -> TnlEndpoint {
    TnlEndpoint { address, usage: TnlAssociationUsage::both, weight: Some(100) }
}
