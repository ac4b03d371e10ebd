//! The XDP path: a BPF program on the N3 and N6 interfaces forwards common packets. Rare packets and packets
//! that must be queued are passed to the kernel, and the portable path handles them by the same rules.
//!
//! ```text
//!   interface ─▶ pith_upf (bpf/) ─ redirect ──────────────────────▶ interface
//!                    │ pass       └ redirect: AF_XDP  ─▶ portable ──▶ ▲ AF_XDP
//!                    ▼                                   path's       │
//!                kernel ─▶ GTP-U socket, TUN ──────────▶ workers ──▶ kernel
//! ```
//!
//! Packets that must be queued, or whose session has queued packets, are redirected unchanged to a worker's
//! AF_XDP socket, past the kernel's stack (`xsk_sockets.rs`, `portable/redirected.rs`).
//!
//! Both paths use the same meters and counters (`rules/pool.rs`), so a packet is counted once and a rate
//! holds on either path. A session returns from user space to the program only when user space has no packet
//! of it left, so that packets are not reordered.

mod areas;
mod attach;
mod compile;
mod conntrack;
mod events;
mod folder;
mod handover;
mod lookup;
mod program;
mod spread;
mod tables;
#[cfg(test)]
mod tests;
mod xsk_sockets;

use crate::boundary::{Host, Reach};
use crate::config::{DatapathConfig, StartError, UePool};
use crate::fib::Detour;
use crate::portable::{PortableDatapath, worker_count};
use crate::rules::{Clock, Now, Pools};
use crate::sys::layout::{Action, UE_NAT};
use crate::sys::{Gathered, Hook, Timer};
use areas::Areas;
use attach::Attached;
use compile::{N3Side, compile};
use conntrack::Conntrack;
use events::Events;
use handover::Inherited;
use pith_upf::contract::{
    Counters, Datapath, DropReason, Event, Session, SessionId, SessionUsage, TracedPacket, Tunnel, UeAddress,
};
use pith_upf::qos::FlowUsage;
use program::{Program, Sizes, devices_there, links};
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tables::{Mirrored, Tables};
use thiserror::Error;
use xsk_sockets::XskSockets;

/// Interval of checks whether sessions can return to the program.
const TICK: Duration = Duration::from_millis(10);
/// A session without packets in user space for this long can return: some ticks of the program's clock.
const QUIET: u64 = 12_000_000;
/// A session that never pauses returns after this.
const LONGEST_WAIT: u64 = 200_000_000;

/// Why the XDP path is not available.
#[derive(Debug, Error)]
#[allow(missing_docs)] // fields
pub enum XdpError {
    /// Built without clang.
    #[error("this build of Pith contains no XDP program: install clang and build again")]
    NotBuilt,
    /// The program does not match this code.
    #[error("the XDP program does not match its tables: this is a bug in Pith, please report it")]
    Missing,
    /// The kernel rejected the program.
    #[error("the kernel rejects the XDP program ({0}): {advice}", advice = load_advice(_0.kind(), privileges()))]
    Load(#[from] libbpf_rs::Error),
    #[error("interface {name}: {source}")]
    Interface { name: String, source: io::Error },
    /// The program could not be attached.
    #[error("XDP on interface number {device}: {source}; another program may be there")]
    Attach { device: u32, source: io::Error },
    /// A program of another Pith process, dead or alive, is attached.
    #[error(
        "interface number {device} already has an XDP program of Pith, which would still forward packets: if its process \
         was killed, set upf.pin to the directory of that process, or remove native-{device} and generic-{device} \
         there; if the process is running, configure other interfaces for one of the two"
    )]
    Occupied { device: u32 },
    /// The program cannot translate addresses.
    #[error(
        "NAT in XDP is not available ({0}): it needs Linux 6.0 with CONFIG_NF_CONNTRACK and CONFIG_DEBUG_INFO_BTF, and CAP_PERFMON; \
         without Pith's NAT ('upf: {{nat: false}}') XDP does not need these"
    )]
    Nat(Box<Self>),
    /// A setting of the kernel's connection tracking.
    #[error("connection tracking, {what}: {source}")]
    Conntrack { what: String, source: io::Error },
    /// AF_XDP is not available.
    #[error("AF_XDP: {0}")]
    XskSockets(io::Error),
    /// Attachments could not be pinned or succeeded.
    #[error("pinning XDP at {}: {source}", path.display())]
    Pin { path: PathBuf, source: io::Error },
    /// Out of memory or descriptors.
    #[error("the XDP program's tables: {0}")]
    Io(#[from] io::Error),
}

/// Whether this process has the capabilities to load an XDP program; `None` if /proc does not tell.
fn privileges() -> Option<bool> {
    has_privileges(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Reads the effective capabilities of /proc/PID/status: CAP_NET_ADMIN (12), and CAP_BPF (39) or
/// CAP_SYS_ADMIN (21).
fn has_privileges(status: &str) -> Option<bool> {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let effective = u64::from_str_radix(effective.trim(), 16).ok()?;
    let has = |capability: u32| effective >> capability & 1 == 1;
    Some(has(12) && (has(39) || has(21)))
}

/// Advice for a program that the kernel rejected.
fn load_advice(kind: libbpf_rs::ErrorKind, privileges: Option<bool>) -> &'static str {
    match (kind, privileges) {
        (_, Some(false)) => "run as root, or with CAP_BPF and CAP_NET_ADMIN",
        (libbpf_rs::ErrorKind::PermissionDenied, Some(true)) => {
            "the capabilities are present, but this process may not use BPF: run outside a user namespace, \
             and check the container's seccomp profile and the kernel's lockdown"
        }
        _ => {
            "this needs Linux 5.12 with CONFIG_BPF_SYSCALL and CONFIG_XDP_SOCKETS; without them write \
             'upf: {datapath: portable}'"
        }
    }
}

impl XdpError {
    fn pin(path: &Path, source: io::Error) -> Self {
        Self::Pin { path: path.to_owned(), source }
    }
}

/// A running XDP datapath. Dropping it, or [`stop`](Self::stop), detaches the program and then stops the
/// portable path.
#[derive(Debug)]
pub struct XdpDatapath {
    /// Dropped first: packets then go to user space.
    attached: Attached,
    mirrored: HashMap<SessionId, Mirrored>,
    /// Sessions that are in user space until they can return, and since when.
    waiting: HashMap<SessionId, Now>,
    tables: Tables,
    n3: N3Side,
    /// Pools whose packets must pass the kernel: their sessions are not in the program's tables.
    by_kernel: Vec<UePool>,
    /// Pools whose IPv4 packets the program translates.
    natted: Vec<UePool>,
    /// While the program translates addresses.
    conntrack: Option<Conntrack>,
    config: DatapathConfig,
    /// What is taken over from a running process, until that is done.
    inherited: Inherited,
    /// Determines the tenant of each session.
    reach: Arc<Reach>,
    ready: Gathered,
    timer: Timer,
    events: Events,
    xsk_sockets: XskSockets,
    portable: PortableDatapath,
    /// Owns the tables.
    program: Program,
    detour: Detour,
}

/// The result of a start. Without the XDP path: the running portable path and the reason.
#[derive(Debug)]
pub enum StartedPath {
    /// The XDP path runs.
    Xdp(Box<XdpDatapath>),
    /// Only the portable path runs.
    Portable(PortableDatapath, XdpError),
}

impl XdpDatapath {
    /// Starts the portable path with the program in front of it, or the portable path alone.
    pub fn start(config: &DatapathConfig) -> Result<StartedPath, StartError> {
        let clock = Clock::start();
        let (prepared, pools) = match prepare(config, &clock) {
            Ok((prepared, pools)) => (Ok(prepared), pools),
            Err(error) => (Err(error), Pools::on_heap(worker_count(config))),
        };
        let portable = PortableDatapath::start_with(config, clock, pools, Vec::new())?;
        let attached = prepared.and_then(|prepared| {
            let connected = prepared.connect(&portable)?;
            Ok((prepared.program.attach(config, Vec::new())?, connected, prepared))
        });
        match attached {
            Ok((attached, connected, prepared)) => {
                let sockets = open_xsk_sockets(&prepared.program, &portable, config, (attached.hook, false));
                let mut xdp = Self::of(config, prepared, (attached, connected), portable);
                xdp.xsk_sockets = sockets;
                Ok(StartedPath::Xdp(Box::new(xdp)))
            }
            Err(error) => Ok(StartedPath::Portable(portable, error)),
        }
    }

    fn of(
        config: &DatapathConfig,
        prepared: Prepared,
        (attached, connected): (Attached, Connected),
        mut portable: PortableDatapath,
    ) -> Self {
        let (Prepared { program, tables, conntrack }, Connected { ready, timer, events }) =
            (prepared, connected);
        let pools = config.pools.iter().copied();
        let by_kernel = match conntrack {
            Some(_) => pools.clone().filter(|pool| config.is_only_by_kernel(*pool)).collect(),
            None => config.pools_by_kernel().collect(),
        };
        portable.refuse_unknown(config.refuses_unknown && !attached.succeeds);
        let detour = Detour::default();
        match program.settings() {
            Ok(settings) => portable.attend_xdp(config, detour.clone(), settings),
            Err(error) => {
                tracing::error!(%error, "user plane: the XDP program has no tables for the host's rules")
            }
        }
        Self {
            attached,
            mirrored: HashMap::new(),
            waiting: HashMap::new(),
            tables,
            by_kernel,
            natted: pools.filter(|pool| config.has_nat44(*pool)).collect(),
            conntrack,
            reach: portable.reach(),
            n3: N3Side::of(config),
            ready,
            timer,
            events,
            xsk_sockets: XskSockets::default(),
            inherited: Inherited::default(),
            config: config.clone(),
            portable,
            program,
            detour,
        }
    }

    /// Why packets from and to the data network take the kernel's forwarding.
    pub fn detour(&self) -> Detour {
        self.detour.clone()
    }

    /// Readable while [`poll_events`](Datapath::poll_events) has work: events, or sessions to return.
    pub fn events_ready(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    /// Whether the program runs in the interfaces' drivers.
    pub fn is_native(&self) -> bool {
        self.attached.hook == Hook::Native
    }

    /// Whether the program translates the addresses of networks with NAT; otherwise these take the portable path.
    pub fn translates(&self) -> bool {
        self.conntrack.is_some()
    }

    /// Pools whose sessions take the portable path.
    pub fn pools_by_kernel(&self) -> &[UePool] {
        &self.by_kernel
    }

    /// Whether the previous process's program may still handle packets of its sessions.
    pub fn succeeds(&self) -> bool {
        self.attached.succeeds
    }

    /// Sets whether unknown TEIDs get Error Indications, unless the previous process's program may still handle their packets.
    pub(crate) fn refuse_unknown(&self, refuse: bool) {
        self.portable.refuse_unknown(refuse && !self.attached.succeeds);
    }

    /// Dismisses the previous process's program: packets of sessions that were not established again are
    /// unknown from now on.
    pub fn dismiss_predecessor(&mut self) {
        if !std::mem::take(&mut self.attached.succeeds) {
            return;
        }
        if let Err(error) = self.program.dismiss_predecessor() {
            tracing::error!(%error, "the previous process's XDP program could not be released");
        }
        self.portable.refuse_unknown(true);
    }

    /// This host's current addresses.
    pub fn host(&self) -> Arc<Host> {
        self.portable.host()
    }

    /// Sets the hosts that control this UPF; they are closed to UEs.
    pub fn set_controllers(&self, controllers: Vec<IpAddr>) {
        self.portable.set_controllers(controllers);
    }

    /// Whether packets that must be queued reach user space by AF_XDP.
    pub fn uses_af_xdp(&self) -> bool {
        self.xsk_sockets.is_up()
    }

    /// Detaches the program, then stops the portable path.
    pub fn stop(self) {}

    /// Publishes a session's rules in the program's tables.
    fn mirror(&mut self, id: SessionId) {
        let Some(rules) = self.portable.rules(id).cloned() else { return };
        if self.by_kernel.iter().any(|pool| pool.has(rules.ue)) {
            return;
        }
        let before = self.mirrored.remove(&id);
        let waits = self.waiting.contains_key(&id)
            || before.as_ref().is_some_and(|before| before.user_space)
            || rules.state.is_waiting()
            || rules.state.is_traced()
            || self.inherited.queueing.contains(&id);
        let mut compiled = compile(&rules, self.n3, self.reach.tenant(rules.ue));
        if rules.ue.v4.is_some_and(|v4| self.natted.iter().any(|pool| pool.contains(v4.into()))) {
            compiled.session.flags |= UE_NAT;
        }
        let action = if waits { Action::ToUser } else { Action::Forward };
        let Some(mirrored) = self.tables.publish(compiled, rules, action, before) else { return };
        self.mirrored.insert(id, mirrored);
        if waits {
            self.waiting.insert(id, self.portable.now());
            self.timer.set(Some(TICK));
        }
    }

    /// Returns sessions to the program that have no packets left in user space.
    fn release_waiting(&mut self) {
        let now = self.portable.now();
        let (tables, mirrored) = (&self.tables, &self.mirrored);
        self.waiting.retain(|id, since| {
            let Some(session) = mirrored.get(id) else { return false };
            let quiet = now.0.saturating_sub(tables.last_to_user(session).max(since.0)) > QUIET;
            let done =
                !session.rules.state.is_waiting() && (quiet || now.0.saturating_sub(since.0) > LONGEST_WAIT);
            // The program does not trace packets: a traced session stays in user space.
            let done = done && !session.rules.state.is_traced();
            if done && session.by_program {
                tables.set_action(session, Action::Forward);
            }
            !done
        });
        // Also without waiting sessions: an expired timer stays readable until it is set.
        self.timer.set((!self.waiting.is_empty()).then_some(TICK));
    }
}

/// Usage is counted in shared memory; only the time of the last packet is kept by each path.
fn with_last_packet(mut usage: SessionUsage, age: Option<Duration>) -> SessionUsage {
    usage.last_packet = usage.last_packet.into_iter().chain(age).min();
    usage
}

impl Datapath for XdpDatapath {
    fn install(&mut self, session: Arc<Session>) {
        let id = session.id;
        // First the portable path: the program passes packets by the new rules as soon as it has them.
        self.portable.install(session);
        self.mirror(id);
    }

    fn remove(&mut self, session: SessionId) -> Option<SessionUsage> {
        self.waiting.remove(&session);
        // Kept until the end: the program counts in its memory.
        let rules = self.mirrored.get(&session).map(|mirrored| Arc::clone(&mirrored.rules));
        let mirrored = self.mirrored.remove(&session);
        let last = mirrored.map_or(0, |mirrored| self.tables.withdraw(mirrored));
        let age = self.portable.now().since(last);
        let usage = self.portable.remove(session)?;
        drop(rules);
        Some(with_last_packet(usage, age))
    }

    fn begin(&mut self, ue: UeAddress, is_restored: bool) {
        self.portable.begin(ue, is_restored);
    }

    fn discard_buffered(&mut self, session: SessionId) {
        self.portable.discard_buffered(session);
    }

    fn send_end_marker(&mut self, tunnel: &Tunnel) {
        self.portable.send_end_marker(tunnel);
    }

    fn usage(&self, session: SessionId) -> Option<SessionUsage> {
        let last = self.mirrored.get(&session).map_or(0, |mirrored| self.tables.last_packet(mirrored));
        let age = self.portable.now().since(last);
        Some(with_last_packet(self.portable.usage(session)?, age))
    }

    fn add_usage(&mut self, session: SessionId, usage: &SessionUsage) {
        self.portable.add_usage(session, usage);
    }

    fn flows(&self, session: SessionId) -> Vec<FlowUsage> {
        self.portable.flows(session)
    }

    fn trace(&mut self, session: SessionId, on: bool) {
        self.portable.trace(session, on);
        if on {
            self.mirror(session);
        }
    }

    fn poll_trace(&mut self, packets: &mut Vec<TracedPacket>) -> u64 {
        self.portable.poll_trace(packets)
    }

    fn count_dropped(&mut self, reason: DropReason) {
        self.portable.count_dropped(reason);
    }

    fn poll_events(&mut self, events: &mut Vec<Event>) {
        self.portable.poll_events(events);
        let now = self.portable.now();
        for session in self.events.drain_into(events) {
            self.waiting.insert(session, now);
        }
        self.release_waiting();
    }

    fn counters(&self) -> Counters {
        let mut counters = self.portable.counters();
        self.tables.add_counters(&mut counters);
        add_dropped(&mut counters, DropReason::QueueFull, self.xsk_sockets.lost());
        counters
    }
}

/// With the native hook, packets for user space take AF_XDP. With the generic hook the kernel has already
/// coalesced packets into trains, which the portable path receives as such and in order.
fn open_xsk_sockets(
    program: &Program,
    workers: &PortableDatapath,
    config: &DatapathConfig,
    (hook, inherits): (Hook, bool),
) -> XskSockets {
    if hook == Hook::Generic {
        return XskSockets::default();
    }
    let devices = Program::devices(&config.interfaces).unwrap_or_default();
    XskSockets::start(program, workers, &devices, inherits)
}

fn add_dropped(counters: &mut Counters, reason: DropReason, more: u64) {
    if more == 0 {
        return;
    }
    match counters.dropped.iter_mut().find(|(counted, _)| *counted == reason) {
        Some((_, count)) => *count += more,
        None => counters.dropped.push((reason, more)),
    }
}

/// The loaded program and its tables.
#[derive(Debug)]
struct Prepared {
    program: Program,
    tables: Tables,
    conntrack: Option<Conntrack>,
}

/// The program's events, and the timer.
#[derive(Debug)]
struct Connected {
    ready: Gathered,
    timer: Timer,
    events: Events,
}

fn prepare(config: &DatapathConfig, clock: &Clock) -> Result<(Prepared, Pools), XdpError> {
    let sizes = Sizes::of(config, worker_count(config))?;
    let (program, conntrack) = load(config, clock, sizes)?;
    let (tables, pools) = (Tables::of(&program, sizes)?, program.pools()?);
    Ok((Prepared { program, tables, conntrack }, pools))
}

/// Loads the program with NAT if a pool needs it; without NAT if that fails and other pools remain for the program.
fn load(
    config: &DatapathConfig,
    clock: &Clock,
    sizes: Sizes,
) -> Result<(Program, Option<Conntrack>), XdpError> {
    let mut pools = config.pools.iter().filter(|pool| !config.is_only_by_kernel(**pool));
    let needs_nat = |pool: &&UePool| config.has_nat44(**pool);
    if pools.clone().any(|pool| needs_nat(&pool)) {
        let with_nat = Conntrack::prepare().and_then(|conntrack| {
            let program = Program::load(config, clock, sizes, links(config)?, Some(&conntrack))?;
            Ok((program, Some(conntrack)))
        });
        match with_nat {
            Ok(loaded) => return Ok(loaded),
            Err(error) if pools.all(|pool| needs_nat(&pool)) => return Err(XdpError::Nat(error.into())),
            Err(error) => tracing::warn!(%error, "user plane: networks with NAT take the portable path"),
        }
    }
    Ok((Program::load(config, clock, sizes, links(config)?, None)?, None))
}

impl Prepared {
    /// Connects the program with the portable path.
    fn connect(&self, portable: &PortableDatapath) -> Result<Connected, XdpError> {
        let (events, timer) = (Events::new(&self.program)?, Timer::new()?);
        let ready = [portable.events_ready().as_raw_fd(), events.ready(), timer.as_fd().as_raw_fd()];
        let ready = Gathered::of(&ready)?;
        portable.mirror_areas(Box::new(Areas::of(&self.program)?));
        Ok(Connected { ready, timer, events })
    }
}

/// Detaches the program that a killed process left behind, if only the portable path runs now: packets would
/// bypass this process by the old program's rules (docs/adr/0015).
pub fn retire_predecessor(config: &DatapathConfig) -> Result<(), XdpError> {
    attach::retire(config.pin.as_deref(), devices_there(&config.interfaces))
}
