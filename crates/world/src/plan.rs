//! The parameters of a seed: shape of the core, number of UEs and gNBs, and faults.

use crate::dice::Dice;
use crate::services::Services;
use pith_crypto::nas::CipheringAlgorithm;
use pith_nf::kit::Nf;
use pith_runtime::residency::WriteForm;
use pith_types::InstanceId;
use std::time::Duration;

/// The lease of an instance, as by default.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// Frequency of faults, per mille of the messages of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// NAS messages lost between UE and gNB.
    pub radio_loss: u32,
    /// PFCP datagrams lost, in each direction.
    pub pfcp_loss: u32,
    /// PFCP datagrams duplicated.
    pub pfcp_duplication: u32,
    /// SBI requests lost between processes.
    pub request_loss: u32,
    /// SBI replies lost between processes, after the request was processed.
    pub reply_loss: u32,
    /// Timers that expire late, by up to a second.
    pub late_timers: u32,
    /// NG Resets by gNBs, in total.
    pub resets: u32,
    /// N2 associations that break, in total.
    pub breaks: u32,
    /// Restarts of UPFs, in total.
    pub upf_restarts: u32,
    /// Kills of NF processes, in total.
    pub kills: u32,
    /// Kills of NF processes whose contexts are stored, in total.
    pub crashes: u32,
    /// Outages of the store of contexts, in total.
    pub outages: u32,
    /// Times at which the store of contexts is full.
    pub full_stores: u32,
    /// Losses of the last writes of the store of contexts, in total.
    pub store_losses: u32,
    /// Power failures: a process ends, and the store of contexts loses its last writes.
    pub power_failures: u32,
    /// Panics of shards, in total.
    pub panics: u32,
    /// Times at which an instance of the set is stopped for a while, and continues.
    pub pauses: u32,
    /// Times at which an instance of the set does not reach the store of contexts.
    pub cut_offs: u32,
}

/// Where the contexts of AMF, SMF and PCF are stored (design section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Residency {
    /// Nowhere: they end with their process.
    #[default]
    None,
    /// Changes are written some milliseconds later.
    Soft,
    /// Changes are written before the messages of their turn are sent.
    Durable,
    /// As [`Residency::Durable`], but a UE in a 5GMM procedure keeps its former document until the procedure is over.
    Procedural,
    /// As [`Residency::Durable`], and the process drops its copies after each transaction.
    Stateless,
    /// As [`Residency::Stateless`], with one document for all NFs of a UE.
    Shared,
    /// As [`Residency::Shared`], and the document travels in requests between processes.
    Embedded,
}

impl Residency {
    /// All that store contexts.
    pub const STORED: [Self; 6] =
        [Self::Durable, Self::Soft, Self::Procedural, Self::Stateless, Self::Shared, Self::Embedded];

    /// Whether only the runtime's own store has it ([`Plan::store`]).
    pub const fn needs_runtime_store(self) -> bool {
        matches!(self, Self::Shared | Self::Embedded)
    }

    /// The name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Soft => "soft",
            Self::Durable => "durable",
            Self::Procedural => "procedural",
            Self::Stateless => "stateless",
            Self::Shared => "shared",
            Self::Embedded => "embedded",
        }
    }
}

/// The parameters of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// Processes, each with the NFs that it hosts.
    pub processes: Vec<Vec<Nf>>,
    /// Shards of each process.
    pub shards: usize,
    /// Instances of a set of AMF, SMF and PCF: the first processes. 0: there is no set.
    pub instances: usize,
    /// The lease of an instance.
    pub lease: Duration,
    /// AMFs of different AMF Sets, with a tracking area each: the processes that host one. Each gNB is at one of them. 1: there is one AMF,
    /// or a set.
    pub areas: usize,
    /// gNBs. Each has an association with every AMF of its area.
    pub gnbs: usize,
    /// The AMFs of the areas serve the first area all together, and each gNB has an association with each of them. The UEs' slice is that of
    /// the second AMF: the first one passes UEs on (AMF re-allocation).
    pub reallocates: bool,
    /// Associations of each gNB with each of these AMFs.
    pub associations: u8,
    /// gNBs learn from the AMF of the endpoints to which they establish the further ones.
    pub offers_endpoints: bool,
    /// Further ones join by NG Setup, not by RAN Configuration Update.
    pub joins_by_ng_setup: bool,
    /// A bit for each gNB: it retains its UEs while it has no association.
    pub retaining: u8,
    /// UEs.
    pub ues: usize,
    /// UPFs, 1 or 2. The second can be inserted into sessions as an uplink classifier, and removed again.
    pub upfs: usize,
    /// UPFs retain the sessions of an SMF that is started again, if it requests that.
    pub upfs_retain: bool,
    /// Sessions have the classifier from their establishment, if it is available.
    pub breaks_out: bool,
    /// Processes show certificates and access tokens (OAuth2).
    pub oauth2: bool,
    /// The ciphering that the AMF likes most.
    pub ciphering: CipheringAlgorithm,
    /// Of several AMFs, those of other areas than the first one prefer 128-NIA1 and that ciphering, if it is given.
    pub other_ciphering: Option<CipheringAlgorithm>,
    /// AMFs give each other keys that are derived from K_AMF.
    pub derives_k_amf: bool,
    /// Where contexts are stored.
    pub residency: Residency,
    /// Contexts are in the runtime's own store, which all processes of the world share. What a change writes there.
    pub store: Option<WriteForm>,
    /// The longest time until that store answers; `None`: at once.
    pub store_latency: Option<Duration>,
    /// Contexts pass through their documents after each step.
    pub reloads: bool,
    /// Faults.
    pub faults: Faults,
    /// Blocks of ids that pass from shard to shard, in total.
    pub moves: u32,
    /// Maximum number of actions of each UE. 0: no random ones.
    pub acts: usize,
    /// What there is beside registrations and sessions.
    pub services: Services,
}

impl Plan {
    /// The plan of a seed. Every fourth world has no faults.
    pub fn of_seed(seed: u64) -> Self {
        let mut dice = Dice::new(seed ^ 0x0070_6974_6800);
        let split = dice.chance(400);
        let processes =
            if split { Nf::ALL.into_iter().map(|nf| vec![nf]).collect() } else { vec![Nf::ALL.to_vec()] };
        let most_shards = if split { 2 } else { 3 };
        let ciphers = [
            CipheringAlgorithm::Nea0,
            CipheringAlgorithm::Nea1,
            CipheringAlgorithm::Nea2,
            CipheringAlgorithm::Nea3,
        ];
        let upfs = 1 + dice.index(2);
        // Drawn apart, so that other parameters of a seed stay the same.
        let mut crash_dice = Dice::new(seed ^ 0x6372_6173_6800);
        let is_durable = !split && crash_dice.chance(500);
        let stored = StoredPlan::draw(seed, split, is_durable);
        let is_crowded = Dice::new(seed ^ 0x6372_6f77_6400).chance(20);
        let is_stored = stored.residency != Residency::None;
        let crashes = if is_stored { 1 + crash_dice.below(3) as u32 } else { 0 };
        let panics = match (split, is_durable) {
            (true, _) => 0,
            (false, true) => crash_dice.below(5) as u32,
            (false, false) => crash_dice.below(2) as u32,
        };
        Self {
            seed,
            processes,
            upfs,
            upfs_retain: Self::retain(seed),
            breaks_out: upfs > 1 && dice.chance(500),
            oauth2: split && seed % 2 == 1,
            shards: 1 + dice.index(most_shards),
            instances: 0,
            lease: LEASE,
            areas: 1,
            reallocates: false,
            gnbs: 1 + dice.index(3),
            associations: 1,
            offers_endpoints: false,
            joins_by_ng_setup: false,
            // Drawn apart, too.
            retaining: Dice::new(seed ^ 0x7265_7461_696e).below(8) as u8,
            ues: if is_crowded { 50 } else { 1 + dice.index(6) },
            ciphering: ciphers[dice.index(ciphers.len())],
            other_ciphering: None,
            derives_k_amf: false,
            reloads: true,
            residency: stored.residency,
            store: stored.form,
            store_latency: stored.latency,
            faults: if seed.is_multiple_of(4) {
                Faults::default()
            } else {
                let faults = Faults::draw(&mut dice, split);
                // A process whose contexts are stored crashes instead.
                let kills = if is_stored { 0 } else { faults.kills };
                Faults { crashes, panics, kills, ..stored.faults(faults) }
            },
            moves: 0,
            acts: 3 + dice.index(10),
            services: Services::default(),
        }
        .with_moves()
        .with_services()
        .with_associations()
    }

    /// The plan of a seed with several instances of AMF, SMF and PCF. The other NFs share a process, or have one each. Every fourth seed has
    /// no faults, and another fourth only faults of instances and of their store.
    pub fn of_instances(seed: u64, instances: usize) -> Self {
        let mut dice = Dice::new(seed ^ 0x696e_7374_616e);
        let plan = Self::of_seed(seed);
        let stored = [Residency::Durable, Residency::Durable, Residency::Procedural, Residency::Soft];
        let residency = stored[dice.index(stored.len())];
        let form = if dice.chance(500) { WriteForm::Update } else { WriteForm::Replace };
        let latency = dice.chance(300).then(|| dice.millis(5, 50));
        let others = match seed % 4 {
            0 | 1 => Faults::default(),
            _ => Faults { kills: 0, power_failures: 0, store_losses: 0, ..plan.faults },
        };
        let mut some = |most: u64| if seed.is_multiple_of(4) { 0 } else { dice.below(most + 1) as u32 };
        let faults =
            Faults { crashes: some(4), pauses: some(3), cut_offs: some(2), outages: some(1), ..others };
        Self {
            processes: Self::processes_of_set(instances, dice.chance(500)),
            instances,
            shards: 1 + dice.index(2),
            oauth2: false,
            associations: 1,
            offers_endpoints: false,
            joins_by_ng_setup: false,
            retaining: 0,
            residency,
            services: Services::draw(seed, plan.gnbs),
            store: Some(form),
            store_latency: latency,
            faults,
            moves: if seed % 4 == 3 { dice.below(20) as u32 } else { 0 },
            ..plan
        }
    }

    /// The plan of a seed with several AMFs of different AMF Sets, each with a tracking area and gNBs of its own, between which UEs move. The first
    /// AMF is where the seed has it, the others have a process each.
    pub fn of_areas(seed: u64, areas: usize) -> Self {
        let mut dice = Dice::new(seed ^ 0x6172_6561_7300);
        let plan = Self::of_seed(seed);
        let mut processes = plan.processes.clone();
        processes.extend(vec![vec![Nf::Amf]; areas - 1]);
        let mut faults = plan.faults;
        if !plan.is_faultless() {
            faults.request_loss = if dice.chance(500) { 1 + dice.below(40) as u32 } else { 0 };
            faults.reply_loss = if dice.chance(300) { 1 + dice.below(20) as u32 } else { 0 };
        }
        // The AMFs are no instances of a set: each process has a store of its own. A document of all NFs of a UE would have room for one AMF.
        (faults.outages, faults.full_stores) = (0, 0);
        (faults.store_losses, faults.power_failures) = (0, 0);
        let residency =
            if plan.residency.needs_runtime_store() { Residency::Stateless } else { plan.residency };
        let gnbs_of_area = 1 + dice.index(2);
        // Drawn apart, too.
        let mut other = Dice::new(seed ^ 0x6b61_6d66_0000);
        let derives_k_amf = other.chance(400);
        // An AMF that gives others no K_AMF passes no UE on that it has authenticated.
        let reallocates = areas == 2 && !derives_k_amf && other.chance(350);
        let ciphers = [CipheringAlgorithm::Nea1, CipheringAlgorithm::Nea2];
        let other_ciphering = other.chance(400).then(|| ciphers[other.index(2)]);
        let gnbs = if reallocates { gnbs_of_area } else { areas * gnbs_of_area };
        Self {
            processes,
            areas,
            gnbs,
            reallocates,
            derives_k_amf,
            other_ciphering,
            services: Services::draw(seed, gnbs),
            retaining: 0,
            // An SMF knows the former AMF's late requests from the new one's.
            oauth2: true,
            residency,
            store: None,
            store_latency: None,
            faults,
            ..plan
        }
    }

    /// The processes of a core with a set.
    pub(crate) fn processes_of_set(instances: usize, is_split: bool) -> Vec<Vec<Nf>> {
        let of_set = [Nf::Amf, Nf::Smf, Nf::Pcf];
        let others: Vec<Nf> = Nf::ALL.into_iter().filter(|nf| !of_set.contains(nf)).collect();
        let mut processes = vec![of_set.to_vec(); instances];
        if is_split {
            processes.extend(others.into_iter().map(|nf| vec![nf]));
        } else {
            processes.push(others);
        }
        processes
    }

    /// The number of AMFs with which a gNB has associations.
    pub(crate) const fn amfs(&self) -> usize {
        if self.reallocates {
            return self.areas;
        }
        if self.instances == 0 { 1 } else { self.instances }
    }

    /// The area of a process's AMF; 0 for one without an AMF.
    pub(crate) fn area(&self, process: usize) -> usize {
        let before = self.processes.iter().take(process).filter(|nfs| nfs.contains(&Nf::Amf)).count();
        if self.areas > 1 { before } else { 0 }
    }

    /// The tracking areas of an AMF's area.
    pub(crate) const fn tracking_areas(&self, area: usize) -> std::ops::Range<usize> {
        match (self.has_one_area(), self.services.ladn) {
            (true, true) => 0..2,
            (true, false) => 0..1,
            (false, _) => area..area + 1,
        }
    }

    /// Whether all AMFs serve the same tracking areas.
    const fn has_one_area(&self) -> bool {
        self.areas == 1 || self.reallocates
    }

    /// The tracking area of a gNB; the first one is that of the LADN.
    pub(crate) fn tracking_area_of_gnb(&self, endpoint: usize) -> usize {
        match (self.has_one_area(), self.services.ladn) {
            (true, true) => endpoint / self.amfs() % 2,
            (true, false) => 0,
            (false, _) => self.area_of_gnb(endpoint),
        }
    }

    /// The area of a gNB.
    pub(crate) const fn area_of_gnb(&self, endpoint: usize) -> usize {
        if self.areas > 1 { endpoint % self.areas } else { 0 }
    }

    /// The number of a process in its set; 0 for one that is in no set.
    pub(crate) const fn instance(&self, process: usize) -> InstanceId {
        InstanceId(if process < self.instances { process as u8 + 1 } else { 0 })
    }

    /// Whether faults are of instances and their store only.
    pub(crate) fn has_faults_of_instances_only(&self) -> bool {
        let Faults { crashes, pauses, cut_offs, outages, .. } = self.faults;
        self.instances > 0
            && self.moves == 0
            && self.faults == Faults { crashes, pauses, cut_offs, outages, ..Faults::default() }
    }

    /// Whether the UPFs of a seed retain sessions.
    pub(crate) const fn retain(seed: u64) -> bool {
        seed % 3 != 2
    }

    /// The plan without what seeds did not have when they found a fault: services, several associations, derived keys, re-allocation.
    #[must_use]
    pub fn as_before(self) -> Self {
        let gnbs = if self.reallocates { self.gnbs * self.areas } else { self.gnbs };
        Self {
            services: Services::default(),
            associations: 1,
            offers_endpoints: false,
            joins_by_ng_setup: false,
            derives_k_amf: false,
            other_ciphering: None,
            reallocates: false,
            gnbs,
            ..self
        }
    }

    fn with_services(self) -> Self {
        Self { services: Services::draw(self.seed, self.gnbs), ..self }
    }

    /// Drawn apart, too.
    fn with_associations(mut self) -> Self {
        let mut dice = Dice::new(self.seed ^ 0x746e_6c61_0000);
        if dice.chance(250) {
            self.associations = 2;
            self.joins_by_ng_setup = dice.chance(300);
            self.offers_endpoints = dice.chance(500);
        }
        self
    }

    /// Drawn apart, so that other parameters of a seed stay the same.
    fn with_moves(mut self) -> Self {
        let mut dice = Dice::new(self.seed ^ 0x6d6f_7665_0000);
        // A document that all NFs of a UE share stays with its shard.
        let can_move = self.shards > 1 && !matches!(self.residency, Residency::Shared | Residency::Embedded);
        if can_move && dice.chance(600) {
            self.moves = 1 + dice.below(60) as u32;
        }
        self
    }

    /// One UE, and two AMFs with a gNB each: one in the process of the other NFs, one in a process of its own.
    pub fn two_amfs() -> Self {
        Self { processes: vec![Nf::ALL.to_vec(), vec![Nf::Amf]], areas: 2, gnbs: 2, ..Self::clean() }
    }

    /// Two AMFs of different AMF Sets at one gNB, of which the first does not serve the UE's slice.
    pub fn two_amfs_of_slices() -> Self {
        Self { reallocates: true, gnbs: 1, ..Self::two_amfs() }
    }

    /// One UE that registers and establishes a session, all in one process, without faults: for ladders.
    pub fn clean() -> Self {
        Self {
            seed: 0,
            processes: vec![Nf::ALL.to_vec()],
            shards: 1,
            instances: 0,
            lease: LEASE,
            areas: 1,
            reallocates: false,
            gnbs: 1,
            associations: 1,
            offers_endpoints: false,
            joins_by_ng_setup: false,
            retaining: 0,
            ues: 1,
            upfs: 1,
            upfs_retain: true,
            breaks_out: false,
            oauth2: false,
            ciphering: CipheringAlgorithm::Nea0,
            other_ciphering: None,
            derives_k_amf: false,
            residency: Residency::None,
            store: None,
            store_latency: None,
            reloads: true,
            faults: Faults::default(),
            moves: 0,
            acts: 0,
            services: Services::default(),
        }
    }

    /// Whether the plan has no faults.
    pub fn is_faultless(&self) -> bool {
        self.faults == Faults::default()
    }
}

/// How a world stores contexts.
struct StoredPlan {
    residency: Residency,
    form: Option<WriteForm>,
    latency: Option<Duration>,
    outages: u32,
    full_stores: u32,
    store_losses: u32,
    power_failures: u32,
}

impl StoredPlan {
    /// Drawn apart, so that other parameters of a seed stay the same.
    fn draw(seed: u64, split: bool, is_durable: bool) -> Self {
        let mut dice = Dice::new(seed ^ 0x7374_6f72_6500);
        let residency = match dice.below(10) {
            0 | 1 if is_durable => Residency::Stateless,
            2 if is_durable => Residency::Procedural,
            3 | 4 if is_durable => Residency::Shared,
            5 if is_durable => Residency::Embedded,
            6 if is_durable => Residency::Soft,
            7 if is_durable => Residency::Durable,
            _ if is_durable => return Self::own(Residency::Durable),
            0 if split => Residency::Stateless,
            1 if split => Residency::Shared,
            2 | 3 if split => Residency::Embedded,
            4 | 5 if split => Residency::Durable,
            6 if split => Residency::Procedural,
            7 if split => Residency::Soft,
            _ => return Self::own(Residency::None),
        };
        let form = if dice.chance(500) { WriteForm::Update } else { WriteForm::Replace };
        let outages = if dice.chance(500) { 1 + dice.below(2) as u32 } else { 0 };
        let mut some = |often| u32::from(dice.chance(often));
        let (full_stores, store_losses, power_failures) = (some(300), some(250), some(250));
        let latency = dice.chance(400).then(|| dice.millis(5, 50));
        Self { residency, form: Some(form), latency, outages, full_stores, store_losses, power_failures }
    }

    /// The world's own store, which does not fail.
    const fn own(residency: Residency) -> Self {
        Self {
            residency,
            form: None,
            latency: None,
            outages: 0,
            full_stores: 0,
            store_losses: 0,
            power_failures: 0,
        }
    }

    const fn faults(&self, of_others: Faults) -> Faults {
        Faults {
            outages: self.outages,
            full_stores: self.full_stores,
            store_losses: self.store_losses,
            power_failures: self.power_failures,
            ..of_others
        }
    }
}

impl Faults {
    /// Each kind of fault occurs in some worlds and not in others.
    fn draw(dice: &mut Dice, split: bool) -> Self {
        let mut some =
            |often: u32, most: u64| if dice.chance(often) { dice.below(most) as u32 + 1 } else { 0 };
        Self {
            radio_loss: some(600, 100),
            pfcp_loss: some(500, 200),
            pfcp_duplication: some(500, 200),
            request_loss: if split { some(500, 40) } else { 0 },
            reply_loss: if split { some(300, 20) } else { 0 },
            late_timers: some(500, 300),
            resets: some(300, 2),
            breaks: some(400, 3),
            upf_restarts: some(300, 2),
            kills: if split { some(400, 2) } else { 0 },
            crashes: 0,
            outages: 0,
            full_stores: 0,
            store_losses: 0,
            power_failures: 0,
            panics: 0,
            pauses: 0,
            cut_offs: 0,
        }
    }
}
