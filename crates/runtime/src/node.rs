//! A process of Pith: its NFs and their threads.
//!
//! ```text
//!                 ┌──────── http ────────┐
//!   SBI, REST ══> │ server        client │ ══> other processes
//!                 └──┬────────────────┬──┘
//!            requests│         replies│
//!                 ┌──v────────────────v──┐      ┌───────┐
//!   edge ───────> │ shard 0 … shard N-1  │ ───> │ store │ SQLite
//!    ^  gateways  └──────────────────────┘      └───────┘
//!    ║ SCTP, PFCP/UDP ══> UPF thread, datapath workers
//! ```

mod access;
mod identities;
mod moves;
mod nfs;
mod outside;
mod reference_key;
mod residency;
mod security;
mod set;
mod smf_run;
mod upgrade;
mod user_plane;

use crate::api::{ContextStatus, EmbeddedDocuments, Guard, Status};
use crate::clock::Clock;
use crate::config::{Config, HostedNf, StateEngine};
use crate::edge::{EdgeHandle, EdgeMessage, FormerPeers, N2Side, N4Side, edge};
use crate::gate::Gate;
use crate::housekeeping::Housekeeping;
use crate::http::Limits;
use crate::residency::StoreHealth;
use crate::sbi::{
    AccessSettings, ApiListener, ApiSettings, HttpHandle, HttpThread, RECORD_VARIABLE, Recorder, SbiSettings,
    bind,
};
use crate::sctp::{self, SctpConfig, SctpTransport};
use crate::shard::{self, ShardQueue, ShardThread, shard_queue};
use crate::store::{Answer, Database, Sink, StoreHandle, StoreThread};
use crate::token::ShardToken;
use crate::upf::{UpfHandle, UpfThread};
use identities::Identities;
use outside::{ProcessOutside, ProcessShards, Readiness};
use pith_nf::fabric::ShardInput;
use pith_nf::gateway::n2::N2Gateway;
use pith_nf::gateway::n4::N4Gateway;
use pith_nf::kit::{Nf, Rng};
use pith_sbi::ApiRoot;
use residency::Contexts;
use security::Security;
use smf_run::SmfRun;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
pub use upgrade::is_upf_running;

/// The NFs of a process.
#[derive(Debug, Clone)]
pub struct Hosting {
    /// The NFs that the process hosts.
    pub nfs: Vec<Nf>,
    /// Whether the process hosts a UPF.
    pub upf: bool,
    /// Whether the core consists of several processes (`pith nf`). The SBI address of each is that of its first NF in
    /// `sbi.addresses`.
    pub several_processes: bool,
    /// Whether the process takes a running UPF over, if there is one.
    pub takes_over: bool,
}

impl Hosting {
    /// All NFs and the UPF: `pith up`.
    pub fn all() -> Self {
        Self { nfs: Nf::ALL.to_vec(), upf: true, several_processes: false, takes_over: false }
    }

    /// Selected NFs: `pith nf`.
    pub fn some(nfs: Vec<Nf>, upf: bool) -> Self {
        Self { nfs, upf, several_processes: true, takes_over: false }
    }

    /// Without the NFs that other vendors provide (`sbi.external`).
    pub fn without_external(mut self, config: &Config) -> Self {
        let is_own = |nf: &Nf| !config.sbi.external.keys().any(|external| nf_of(*external) == *nf);
        self.nfs.retain(is_own);
        self
    }

    fn has(&self, nf: Nf) -> bool {
        self.nfs.contains(&nf)
    }
}

/// The reason why a process cannot start.
pub type StartError = Box<dyn std::error::Error + Send + Sync>;

/// A running process.
pub struct Node {
    readiness: Arc<Readiness>,
    shards: Vec<ShardThread>,
    queues: Vec<ShardQueue>,
    edge: Option<(EdgeHandle, JoinHandle<()>)>,
    upf: Option<UpfThread>,
    http: (HttpHandle, HttpThread),
    store: Option<(StoreHandle<ShardToken>, StoreThread<ShardToken>)>,
    /// Closed after the shards, which have its engines.
    contexts: Option<Contexts>,
    /// Closed last: other instances then serve the UEs.
    set: Option<set::SetThread>,
    _housekeeping: Housekeeping,
}

impl Node {
    /// Starts all threads. [`Node::wait_until_ready`] waits until the process is ready.
    ///
    /// When all sockets are open `give_up_privileges` is called, and only then a request, gNB or SMF is served. The
    /// workers of the datapath, which need most privileges for good, forward from the beginning; there is no session yet.
    pub fn start(
        config: &Config,
        hosting: &Hosting,
        mut database: Option<Database>,
        give_up_privileges: impl FnOnce() -> std::io::Result<()>,
    ) -> Result<Self, StartError> {
        let clock = Clock::start();
        let mut rng = Rng::from_seed(seed()?);
        let count = config.shards();
        let security = Security::open(config, hosting)?;
        let queues = (0..count).map(|number| shard_queue(number as u16, config.task_buffer as usize));
        let (shards, unstarted): (Vec<ShardQueue>, Vec<_>) = queues.unzip();
        let former = residency::former_run(config, database.as_ref())?;
        let mut contexts = Contexts::open(config, hosting, &shards, clock, former)?;
        let reference_key = reference_key::open(config, contexts.as_ref(), &mut rng)?;
        if let Some((contexts, database)) = contexts.as_ref().zip(database.as_mut()) {
            contexts.begin_run(database);
        }
        let address = identities::sbi_address(config, hosting);
        let root = Arc::new(ApiRoot::new(security.scheme(), &address.to_string()));
        check_set(config, hosting)?;
        // Before the process enters the set: one that is started twice by mistake ends here, and not the one that serves.
        let mut upgrade = upgrade::Upgrade::begin(config, hosting)?;
        let api_listeners = api_listeners(config, hosting, &mut upgrade)?;
        let membership = set::join(config, contexts.as_ref(), clock, &root)?;
        let owners = Arc::clone(&membership.owners);
        let identities = Identities::new(config, hosting, count, clock, &security, reference_key, owners);
        let readiness = Readiness::new(clock, count);

        let (gate, opener) = Gate::closed();
        let upf = hosting
            .upf
            .then(|| user_plane::start(config, clock, &mut rng, gate.clone(), upgrade))
            .transpose()?;
        let edge_pair = edge()?;
        let has_edge = hosting.has(Nf::Amf) || hosting.has(Nf::Smf);
        let edge_handle = has_edge.then(|| edge_pair.0.clone());
        let store = hosting.has(Nf::Udr).then(|| start_store(config, database, &shards)).transpose()?;
        let store_handle = store.as_ref().map(|(handle, _)| handle.clone());
        let moves = moves::Moves::new(identities.owners());
        let lease = membership.guard();
        let set = membership.start(&shards, &moves)?;
        let set_handle = set.as_ref().map(set::SetThread::handle);
        let set_view = set.as_ref().map(set::SetThread::view);
        let process_shards = ProcessShards {
            shards: shards.clone(),
            moves: Arc::clone(&moves),
            edge: edge_handle.clone(),
            nfs: hosting.nfs.clone(),
        };
        let upf_handle = upf.as_ref().map(UpfThread::handle);
        let health = contexts.as_ref().map(Contexts::health);
        let api = api_settings(
            (config, hosting),
            api_listeners,
            &readiness,
            store_handle.clone(),
            upf_handle,
            health,
            set_view,
        )?;
        let access = access::Tokens::open(config, hosting)?;
        let access_settings = access.settings(config, &identities);
        let sbi = sbi_settings(config, hosting, security, access_settings)?;
        let http = crate::sbi::start(sbi, api, process_shards, gate.clone())?;

        let edge = match edge_handle {
            Some(handle) => {
                let n2 = hosting.has(Nf::Amf).then(|| n2_side(config, &identities)).transpose()?;
                // The sessions of an instance of a set are perhaps another one's meanwhile.
                let block = identities.blocks(0).first().copied().filter(|_| !config.set.is_used());
                let begin_run = || SmfRun::begin(contexts.as_ref(), block, clock);
                let n4 = hosting.has(Nf::Smf).then(|| n4_side(config, &identities, begin_run)).transpose()?;
                let answers = http.0.clone();
                let inspected = move |exchange, list| answers.inspected(exchange, list, None);
                Some((handle, edge_pair.1.start(clock, n2, n4, shards.clone(), inspected, gate)?))
            }
            None => None,
        };
        let mut unrestored = Vec::with_capacity(count);
        for number in 0..count {
            let number = number as u16;
            let outside = ProcessOutside::new(
                number,
                edge.as_ref().map(|(handle, _)| handle.clone()),
                store_handle.clone(),
                http.0.clone(),
                shards.clone(),
                Arc::clone(&readiness),
                (Arc::clone(&moves), set_handle.clone()),
            );
            let make = nfs::maker(config, hosting, &identities, &access, number, rng.fork())?;
            let of_shard = |contexts: &mut Contexts| {
                contexts.of_shard(number, identities.blocks(number), clock, lease.clone())
            };
            let store = contexts.as_mut().map(of_shard).transpose()?;
            unrestored.push(move || shard::restored((number, count as u16), clock, make, outside, store));
        }
        let threads = shard::start_all(unrestored, unstarted)?;
        let housekeeping = Housekeeping::start()?;
        give_up_privileges()?;
        opener.open();
        upf.as_ref().map_or(Ok(()), UpfThread::await_take_over)?;
        for shard in &shards {
            shard.send(ShardInput::Start);
            shard.wake();
        }
        if let Some(set) = &set_handle {
            set.serve();
        }
        let queues = shards;
        Ok(Self {
            readiness,
            shards: threads,
            queues,
            edge,
            upf,
            http,
            store,
            contexts,
            set,
            _housekeeping: housekeeping,
        })
    }

    /// Waits until all NFs are registered with the NRF. Returns the time since the start, or `None` after the
    /// time limit.
    pub fn wait_until_ready(&self, timeout: Duration) -> Option<Duration> {
        self.readiness.wait(timeout)
    }

    /// Reloads the certificate files.
    pub fn read_certificates(&self) {
        self.http.0.read_certificates();
    }

    /// The subscriber database, if this process has it.
    pub fn store(&self) -> Option<&StoreHandle<ShardToken>> {
        self.store.as_ref().map(|(handle, _)| handle)
    }

    /// Deregisters the NFs from the NRF, completes open requests, and ends all threads.
    pub fn stop(self) {
        self.readiness.drain();
        for queue in &self.queues {
            queue.send(ShardInput::Stop);
            queue.wake();
        }
        std::thread::sleep(DEREGISTRATION);
        if let Some((handle, thread)) = self.edge {
            handle.send(EdgeMessage::Close);
            handle.wake();
            let _ = thread.join();
        }
        if let Some(upf) = self.upf {
            upf.close();
        }
        // HTTP ends before the shards, which must answer its open requests.
        self.http.0.drain();
        self.http.1.join();
        self.shards.into_iter().for_each(ShardThread::close);
        drop(self.queues);
        drop(self.contexts);
        if let Some(set) = self.set {
            set.close();
        }
        if let Some((_, thread)) = self.store {
            thread.close();
        }
    }
}

/// Time from the end of an instance's lease until others have its blocks.
const ADOPTION: Duration = Duration::from_secs(1);

/// Time for the NFs' deregistration from the NRF.
const DEREGISTRATION: Duration = Duration::from_millis(100);

/// NFs that a core has once are in no set.
fn check_set(config: &Config, hosting: &Hosting) -> Result<(), StartError> {
    let of_core =
        hosting.nfs.iter().find(|nf| matches!(nf, Nf::Nrf | Nf::Udr)).filter(|_| config.set.is_used());
    match of_core {
        Some(nf) => Err(format!("'set.instance': a core has one {nf}; run it in a process of its own, with a configuration without 'set'").into()),
        None => Ok(()),
    }
}

fn seed() -> Result<[u8; 32], StartError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|error| format!("the operating system's random source failed: {error}"))?;
    Ok(seed)
}

fn start_store(
    config: &Config,
    database: Option<Database>,
    shards: &[ShardQueue],
) -> Result<(StoreHandle<ShardToken>, StoreThread<ShardToken>), StartError> {
    let database = database.map_or_else(|| Database::open(&config.store.location()), Ok)?;
    Ok(crate::store::start(database, StoreSink(shards.to_vec()))?)
}

/// Delivers the store's answers to the shards.
struct StoreSink(Vec<ShardQueue>);

impl Sink<ShardToken> for StoreSink {
    fn answer(&mut self, token: ShardToken, result: Answer) {
        if let Some(shard) = self.0.get(usize::from(token.shard)) {
            shard.send(ShardInput::Stored { nf: token.nf, tag: token.tag, result });
        }
    }

    fn flush(&mut self) {
        self.0.iter().for_each(ShardQueue::process_or_wake);
    }
}

/// Time for the body of a request: 1 MB within it needs 4 Mbit/s.
const BODY_TIME: Duration = Duration::from_secs(2);
/// Octets of bodies that the SBI server buffers: known NFs may use all of them, an unknown peer an eighth.
const BUFFERED: usize = 64 << 20;

/// Addresses of the configured NFs.
fn known(config: &Config) -> BTreeSet<IpAddr> {
    let own = HostedNf::ALL.into_iter().map(|nf| config.sbi.address(nf).ip());
    let external = config.sbi.external.values().flat_map(|external| {
        let host = external.host().and_then(|host| host.parse().ok());
        external.callers.iter().copied().chain(host)
    });
    // On loopback the source address of a connection is 127.0.0.1, whatever its destination.
    let own = own.map(|ip| if ip.is_loopback() && ip.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { ip });
    own.chain(external).collect()
}

fn sbi_settings(
    config: &Config,
    hosting: &Hosting,
    security: Security,
    access: AccessSettings,
) -> Result<SbiSettings, StartError> {
    let Security { tls, external_peers, .. } = security;
    let address = identities::sbi_address(config, hosting);
    let variable = || std::env::var_os(RECORD_VARIABLE).map(PathBuf::from);
    let directory = config.sbi.record.clone().or_else(variable);
    let recorder = directory.map(|directory| Recorder::new(&directory)).transpose()?;
    let limits = Limits {
        time: config.sbi.request_timeout.0,
        body_time: (config.sbi.request_timeout.0 / 2).min(BODY_TIME),
        body: config.sbi.max_body as usize,
        buffered: BUFFERED.max(config.sbi.max_body as usize * 8),
        exchanges: config.sbi.max_exchanges as usize,
    };
    let setting = if hosting.several_processes { "sbi.addresses" } else { "sbi.listen" };
    // NFs of one process call each other in memory: a socket is needed only for NFs elsewhere.
    let serves = !hosting.nfs.is_empty() && (hosting.several_processes || config.sbi.is_served());
    let listener = serves.then(|| bind(address, setting)).transpose()?;
    let plain = config.sbi.plain_listen.filter(|_| serves && tls.is_some());
    let plain_listener = plain.map(|address| bind(address, "sbi.plain_listen")).transpose()?;
    let listeners = listener.into_iter().collect();
    Ok(SbiSettings {
        listeners,
        plain_listener,
        tls,
        external_peers,
        limits,
        recorder,
        access,
        known: known(config),
    })
}

fn api_settings(
    (config, hosting): (&Config, &Hosting),
    listeners: Vec<ApiListener>,
    readiness: &Arc<Readiness>,
    store: Option<StoreHandle<ShardToken>>,
    upf: Option<UpfHandle>,
    contexts: Option<Arc<StoreHealth>>,
    set: Option<set::SetView>,
) -> Result<Option<ApiSettings>, StartError> {
    if hosting.nfs.is_empty() && upf.is_none() {
        return Ok(None);
    }
    let audit = crate::api::audit(config);
    if let Err(error) = audit.check() {
        tracing::warn!("cannot write to the audit log, changes are recorded in this log only: {error}");
    }
    let readiness = Arc::clone(readiness);
    let own_upf = hosting.upf.then(|| "upf".to_owned());
    let nfs: Vec<String> = hosting.nfs.iter().map(ToString::to_string).chain(own_upf).collect();
    let shards = config.shards();
    let residency = config.residency().to_string();
    let is_embedded = config.residency() == crate::config::Residency::Embedded;
    let (engine, write) = (engine_name(config), config.state.write.to_string());
    let user_plane = upf.as_ref().map(|upf| upf.path_report().clone());
    let status = move || Status {
        state: readiness.state(),
        version: env!("CARGO_PKG_VERSION"),
        uptime_s: readiness.uptime().as_secs(),
        ready_after_ms: readiness.ready_after().and_then(|after| u64::try_from(after.as_millis()).ok()),
        nfs: nfs.clone(),
        shards,
        set: set.as_ref().and_then(set::SetView::status),
        user_plane: user_plane.as_ref().map(Into::into),
        contexts: contexts.as_ref().map(|health| ContextStatus {
            residency: residency.clone(),
            restored: health.restored(),
            unreadable: health.unreadable(),
            error: health.error(),
            engine: engine.clone(),
            write: write.clone(),
            operations: health.statistics().into(),
            procedures: ContextStatus::procedures(&health.costs()),
            between_transactions: ContextStatus::between_transactions(&health.intervals()),
            embedded: is_embedded
                .then(|| EmbeddedDocuments { used: health.embedded(), refused: health.embedded_refused() }),
        }),
    };
    Ok(Some(ApiSettings {
        listeners,
        guard: Guard::new(
            config.api.socket_group.is_some().then_some(config.api.socket_role),
            config.api.token()?,
            crate::api::tokens(config),
        ),
        audit,
        store,
        upf,
        status: Box::new(status),
        config: config.clone(),
    }))
}

/// Where contexts are stored, for the operator.
fn engine_name(config: &Config) -> String {
    match config.state.engine {
        StateEngine::File => "file".into(),
        StateEngine::Redis => config.state.redis.url.to_string(),
    }
}

/// The Unix socket, and the TCP socket if configured.
fn api_listeners(
    config: &Config,
    hosting: &Hosting,
    upgrade: &mut upgrade::Upgrade,
) -> Result<Vec<ApiListener>, StartError> {
    let first = hosting.nfs.first().map_or_else(|| "upf".to_owned(), ToString::to_string);
    let path = config.api_socket(hosting.several_processes.then_some(first.as_str()));
    let socket = upgrade.bind_api(&path, config.api.socket_group.as_deref())?;
    let mut listeners = vec![ApiListener::Unix(socket, path)];
    let Some(address) = identities::api_address(config, hosting) else { return Ok(listeners) };
    if address.ip().is_loopback() || config.api.plain_http {
        listeners.push(ApiListener::Tcp(upgrade.api_at(address, || bind(address, "api.listen"))?));
    } else {
        tracing::info!(
            "the API is not served at {address}: an address other than loopback needs 'api.plain_http'"
        );
    }
    Ok(listeners)
}

fn n2_side(config: &Config, identities: &Identities) -> Result<N2Side, StartError> {
    let mode = match config.amf.n2.sctp {
        crate::config::SctpMode::Auto => sctp::SctpMode::Auto,
        crate::config::SctpMode::Kernel => sctp::SctpMode::Kernel,
        crate::config::SctpMode::Raw => sctp::SctpMode::Raw,
        crate::config::SctpMode::Udp(port) => sctp::SctpMode::Udp(port),
    };
    let tuning = SctpConfig { heartbeat: config.amf.n2.heartbeat.0, ..SctpConfig::default() };
    let addresses = &config.amf.n2.addresses;
    let further = || config.amf.n2.endpoints.iter().map(|endpoint| endpoint.address);
    for address in addresses.iter().copied().chain(further()) {
        // User-space SCTP over raw IP accepts any address, so that a wrong one would only show as missing
        // gNBs.
        crate::udp::check_own_address(address, "amf.n2.addresses")?;
    }
    let mut transport = sctp::open(mode, tuning).map_err(|error| format!("'amf.n2.sctp': {error}"))?;
    let listening: Vec<_> =
        addresses.iter().map(|address| SocketAddr::new(*address, config.amf.n2.port)).collect();
    transport.listen_on(&listening).map_err(|error| format!("'amf.n2.addresses': {error}"))?;
    for address in further() {
        let listening = SocketAddr::new(address, config.amf.n2.port);
        transport.listen(listening).map_err(|error| format!("'amf.n2.endpoints': {error}"))?;
    }
    tracing::info!(
        "N2 on {:?} port {}: {}",
        addresses.iter().copied().chain(further()).collect::<Vec<_>>(),
        config.amf.n2.port,
        transport.description()
    );
    if config.amf.n2.gnbs.is_empty() {
        tracing::info!(
            "N2: 'amf.n2.gnbs' is empty: any host may connect as a gNB, with any gNB ID that is not in use"
        );
    }
    let former = former_peers(config, &mut *transport);
    let gateway = N2Gateway::new(identities.n2_config(config));
    // Until the others have noticed that an AMF is gone, and have its blocks.
    let patience = config.set.lease.0 + ADOPTION;
    let gateway = if config.set.is_used() { gateway.sharing_blocks(patience) } else { gateway };
    Ok(N2Side { transport, gateway, former })
}

/// Aborts the associations that a killed process has left, and records those of this one.
fn former_peers(config: &Config, transport: &mut dyn SctpTransport) -> Option<FormerPeers> {
    let instance = if config.set.is_used() { format!("-{}", config.amf_pointer()) } else { String::new() };
    let path = config.state_directory()?.join(format!("n2-associations{instance}"));
    match FormerPeers::open(&path) {
        Ok((record, former)) => {
            former.iter().for_each(|former| transport.abort_former(former));
            if !former.is_empty() {
                tracing::info!(
                    "N2: the associations of {} gNBs of the former process are aborted",
                    former.len()
                );
            }
            Some(record)
        }
        Err(error) => {
            tracing::warn!("gNBs would notice a kill of this process late: {}: {error}", path.display());
            None
        }
    }
}

/// The run begins when the socket is bound: a process that can't start claims no contexts of one that runs.
fn n4_side(
    config: &Config,
    identities: &Identities,
    begin_run: impl FnOnce() -> SmfRun,
) -> Result<N4Side, StartError> {
    let socket = crate::udp::bind(config.n4.address, "n4.address")?;
    Ok(N4Side { socket, gateway: N4Gateway::new(identities.n4_config(config, begin_run())) })
}

/// The NF of a configuration name.
pub fn nf_of(hosted: HostedNf) -> Nf {
    match hosted {
        HostedNf::Nrf => Nf::Nrf,
        HostedNf::Udr => Nf::Udr,
        HostedNf::Udm => Nf::Udm,
        HostedNf::Ausf => Nf::Ausf,
        HostedNf::Pcf => Nf::Pcf,
        HostedNf::Nssf => Nf::Nssf,
        HostedNf::Smf => Nf::Smf,
        HostedNf::Amf => Nf::Amf,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    /// Whether a request to the API's socket is answered.
    fn is_served(socket: &std::path::Path) -> bool {
        let Ok(mut stream) = UnixStream::connect(socket) else { return false };
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        stream.write_all(b"GET /v1/status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        stream.read(&mut [0; 64]).is_ok_and(|length| length > 0)
    }

    #[test]
    fn nothing_is_served_before_privileges_are_given_up() {
        let directory = std::env::temp_dir().join(format!("pith-gate-{}", std::process::id()));
        let yaml = format!("store: {{path: {}}}\nworkers: 1\n", directory.join("pith.db").display());
        let config = Config::parse(&yaml, "f").unwrap();
        let socket = config.api_socket(None);
        // Without AMF, SMF and UPF it has no socket beside the API's.
        let hosting =
            Hosting { nfs: vec![Nf::Nrf, Nf::Udr], upf: false, several_processes: false, takes_over: false };
        let give_up = || {
            assert!(socket.exists() && !is_served(&socket));
            Ok(())
        };
        let node = Node::start(&config, &hosting, None, give_up).unwrap();
        assert!(is_served(&socket));
        node.stop();
        let fails = || Err(std::io::Error::other("privileges stay"));
        let error = Node::start(&config, &hosting, None, fails).err().unwrap().to_string();
        assert_eq!(error, "privileges stay");
        assert!(!is_served(&socket));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
