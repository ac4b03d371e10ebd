//! The configuration file: YAML; every setting has a default; errors have line numbers.
//!
//! ```text
//!  section.rs, text.rs     declaration of settings: type, default and documentation together
//!  network.rs … shell.rs   the settings
//!  read.rs                 YAML -> Config, with error messages
//!  check.rs                checks that involve several settings, and ranges
//!  set.rs                  single settings from the command line
//!  render.rs               the commented file of `pith config default`
//! ```

mod amf;
mod check;
mod instances;
mod ipv6;
mod n6;
mod network;
mod nssf;
mod position;
mod read;
mod render;
mod sbi;
pub(crate) mod section;
mod session;
mod set;
mod shell;
mod smf_filter;
mod static_addresses;
pub mod text;
mod upfs;

pub use amf::{
    Amf, AmfTimers, Ciphering, Emergency, EmergencyNumber, EmergencyService, Gnb, Integrity, N2, N2Endpoint,
    NetworkName, SctpMode, Security, TnlaUsage,
};
pub use check::Finding;
pub use instances::NfSet;
pub use ipv6::Ipv6Net;
pub use n6::{FirewallRule, IpNet, PacketFilter, Permit, StaticRoute};
pub use network::{HomeNetworkKey, Network, SuciProfile};
pub use nssf::{AmfsOfSlices, Nssf, SliceInstance};
pub use read::{ConfigError, Wrong};
pub use render::default_yaml;
pub use sbi::{
    Binding, ExternalNf, ExternalSecurity, HostedNf, OAuth2, PkiPath, Sbi, SbiSecurity, Switch, TlsFiles,
    TokenAlgorithm,
};
pub use section::{Described, Setting};
pub use session::{DataNetwork, N4, PacketPath, PredefinedRule, Smf, SmfTimers, Upf, UpfPeer, XdpHook};
pub use shell::{
    Api, Log, LogFormat, Redis, Residency, Role, State, StateEngine, StateSync, StateWrite, Store, StorePath,
    user,
};
pub use smf_filter::SmfFilter;
pub use text::{Ipv4Net, Period};
pub use upfs::{Breakout, UpfPool, UpfService};

use pith_types::Snssai;
use std::path::PathBuf;

section::section! {
    /// The whole configuration of a Pith process.
    Config {
        /// The network that this core serves.
        network: Network = Network::default(),
        /// Access and Mobility Management Function (AMF).
        amf: Amf = Amf::default(),
        /// Network Slice Selection Function (NSSF).
        nssf: Nssf = Nssf::default(),
        /// Session Management Function (SMF): data networks and UE addresses.
        smf: Smf = Smf::default(),
        /// N4: PFCP between the SMF and its UPFs.
        n4: N4 = N4::default(),
        /// User Plane Function (UPF).
        upf: Upf = Upf::default(),
        /// Service-based interface (SBI) between NFs.
        sbi: Sbi = Sbi::default(),
        /// Database of subscribers and of the NFs' documents about them.
        store: Store = Store::default(),
        /// Private keys that de-conceal SUCIs (TS 33.501 Annex C); none by default.
        /// 'pith key new' generates one.
        home_network_keys: Vec<HomeNetworkKey> = Vec::new(),
        /// Number of shards; each is a thread with an instance of every NF. 0: one for each CPU, at most 64.
        workers: u8 = 0,
        /// Pending inputs of a shard above which sockets are no longer read.
        task_buffer: u32 = 4096,
        /// Contexts of UEs and sessions after a restart. auto: durable if 'store.path' is a file, else none. none: UEs must
        /// register again. soft: contexts are written some milliseconds after a change. durable: before the answer to it, so that no registered UE notices that the process
        /// was killed. procedural: as durable, but a UE in a procedure is written when the procedure is over. stateless: as
        /// durable, and the process keeps no copies: it reads a context again at the next message for it.
        residency: Residency = Residency::Auto,
        /// The log of these contexts.
        state: State = State::default(),
        /// The set of instances that this process is in; by default none.
        set: NfSet = NfSet::default(),
        /// The REST API, which the operator's commands use.
        api: Api = Api::default(),
        /// Log of the process.
        log: Log = Log::default(),
    }
}

impl Config {
    /// The AMF Pointer. In a set it is the number of the instance, so that a gNB finds the AMF that allocated a 5G-GUTI (TS 23.003
    /// 2.10.1).
    pub const fn amf_pointer(&self) -> u8 {
        if self.set.is_used() { self.set.instance } else { self.amf.pointer }
    }

    /// Slices that the AMF serves.
    pub fn amf_slices(&self) -> &[Snssai] {
        if self.amf.slices.is_empty() { &self.network.slices } else { &self.amf.slices }
    }

    /// Whether the NSSF selects the slice instance of each session.
    pub fn selects_slice_instances(&self) -> bool {
        self.amf.select_slice_instances.unwrap_or(!self.nssf.slice_instances.is_empty())
    }

    /// How many shards this machine gets.
    pub fn shards(&self) -> usize {
        match self.workers {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            workers => usize::from(workers),
        }
        .min(pith_types::ShardId::LIMIT)
    }
}

impl Config {
    /// Where the core keeps files beside its store; `None` where nothing outlives the process.
    pub fn state_directory(&self) -> Option<PathBuf> {
        Some(self.store.path.file()?.parent().map(PathBuf::from).unwrap_or_default())
    }

    /// The residency of contexts, which [`Residency::Auto`] derives from the database: without its SQNs and subscribers,
    /// contexts can't outlive the process.
    pub fn residency(&self) -> Residency {
        match self.residency {
            Residency::Auto if self.state_directory().is_some() => Residency::Durable,
            Residency::Auto => Residency::None,
            configured => configured,
        }
    }

    /// The directory of the contexts of `pith up`, or of the process whose first NF has that name; `None` where none is
    /// configured and nothing outlives the process.
    pub fn context_directory(&self, nf: Option<&str>) -> Option<PathBuf> {
        let usual = || Some(self.state_directory()?.join("contexts"));
        let directory = self.state.directory.clone().or_else(usual)?;
        Some(nf.map_or_else(|| directory.clone(), |nf| directory.join(nf)))
    }

    /// The directory of the Unix sockets of a core that a system user runs. A member of 'api.socket_group' finds them there,
    /// unless the file names another place. `None` unless only its owner can create sockets in it.
    pub fn system_sockets(&self) -> Option<PathBuf> {
        let is_elsewhere = self.api.socket.is_some() || matches!(self.store.path, StorePath::File(_));
        let directory = PathBuf::from(shell::SYSTEM_SOCKETS);
        (!is_elsewhere && shell::user() != 0 && shell::is_private_to_its_owner(&directory))
            .then_some(directory)
    }

    /// The Unix socket of the API: of `pith up`, or of the process whose first NF has that name.
    pub fn api_socket(&self, nf: Option<&str>) -> PathBuf {
        let usual = || match &self.store.path {
            StorePath::File(file) => file.with_file_name("api.sock"),
            _ => shell::runtime_directory().join("api.sock"),
        };
        let path = self.api.socket.clone().unwrap_or_else(usual);
        let Some(nf) = nf else { return path };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let ending =
            path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
        path.with_file_name(format!("{stem}-{nf}{ending}"))
    }
}
