//! The portable path: GTP-U sockets and a TUN interface with a queue for each worker. It needs only the
//! capability to create a TUN interface (CAP_NET_ADMIN).

mod border;
mod downlink;
mod events;
mod framed;
mod gpdu;
mod handover;
mod inbox;
mod link;
mod n3;
mod n6;
mod pace;
mod packet_out;
mod path;
mod ports;
mod queued_packet;
mod queues;
mod redirected;
mod routes;
mod signalling;
mod tables;
mod uplink;
mod worker;

use crate::boundary::{Host, Keeper, MAX_TENANTS, Mirror, Reach};
use crate::config::{DatapathConfig, StartError, UePool};
use crate::fib::{Detour, Follower, ProgramSettings};
use crate::handover::WorkerHandles;
use crate::packet::server_duid;
use crate::rules::{
    Clock, Drops, Installed, Now, Pools, Rules, Sessions, Tracer, Worker as Index, WorkerCounters, total,
};
use crate::sys::{GtpuSocket, PacketSocket, TunQueue, steer_by_flow};
use crate::system::{ClosedSets, FramedRoutes, NatSweep, Network, PortLog};
use border::Border;
use crossbeam_channel::Receiver;
use events::Events;
pub(crate) use inbox::{Inbox, Message};
use n3::N3Batch;
use n6::N6Batch;
use packet_out::PacketOut;
use path::{Path, Shared, peer_of};
use pith_pfcp::gtpu::{GTPU_PORT, Signalling};
use pith_upf::contract::{
    Counters, Datapath, Direction, DropReason, Event, Session, SessionId, SessionUsage, TracedPacket, Tunnel,
    UeAddress,
};
use pith_upf::qos::{FlowUsage, Room};
use ports::Ports;
pub(crate) use ports::{MAX_PORTS, Port};
use queued_packet::{QueuedPacket, WorkerQueue};
use queues::Queues;
use routes::{OuterIds, Routes};
use std::io::{
    self,
    ErrorKind::{PermissionDenied, Unsupported},
};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use worker::Worker;

/// Waits for a worker before it counts as stuck. Not a time: on a busy machine, or one that was suspended, a
/// worker that was not scheduled is not stuck.
const PATIENCE: usize = 1_000;
/// Waits without a pause: a batch ends within microseconds.
const QUICK: usize = 500;
/// The pause of the other waits.
const PAUSE: Duration = Duration::from_millis(2);
/// Bytes of a worker's stack.
const STACK: usize = 256 << 10;
/// More sockets would not fit into one poll.
const MAX_ADDRESSES: usize = 8;

/// A running portable datapath, controlled by this value. Dropping it, or [`stop`](Self::stop), ends the
/// workers, removes the interface and restores the system.
#[derive(Debug)]
pub struct PortableDatapath {
    sessions: Sessions,
    shared: Arc<Shared>,
    drops: Drops,
    sockets: Vec<GtpuSocket>,
    workers: Vec<Handle>,
    port_log: PortLog,
    nat_sweep: NatSweep,
    framed: FramedRoutes,
    keeper: Keeper,
    /// While packets bypass the kernel's forwarding.
    follower: Option<Follower>,
    /// Dropped last: the system is restored after all workers have ended.
    network: Network,
}

#[derive(Debug)]
struct Handle {
    inbox: Arc<Inbox>,
    counters: Arc<WorkerCounters>,
    shared: handover::Shared,
    thread: Option<JoinHandle<()>>,
}

impl PortableDatapath {
    /// Sets up the system and starts the workers. When this returns, packets are forwarded.
    pub fn start(config: DatapathConfig) -> Result<Self, StartError> {
        let pools = Pools::on_heap(worker_count(&config));
        let mut datapath = Self::start_with(&config, Clock::start(), pools, Vec::new())?;
        datapath.bypass_forwarding(&config);
        Ok(datapath)
    }

    /// Sends packets to the data network by packet sockets, without the kernel's forwarding, while that changes nothing but the
    /// cost.
    pub(crate) fn bypass_forwarding(&mut self, config: &DatapathConfig) {
        if config.pools.iter().all(|pool| config.needs_kernel(*pool)) {
            return;
        }
        let sockets: Result<Vec<_>, _> = self.workers.iter().map(|_| PacketSocket::open()).collect();
        let inboxes = self.workers.iter().map(|worker| Arc::clone(&worker.inbox)).collect();
        let started = sockets.and_then(|sockets| {
            for (worker, socket) in self.workers.iter().zip(sockets) {
                worker
                    .inbox
                    .post(Message::SendBy(PacketOut::new(socket, Arc::clone(&self.shared.by_kernel))));
            }
            Follower::start(config, inboxes)
        });
        match started {
            Ok(follower) => {
                self.follower = Some(follower);
                // Now few packets are written to TUN: each would move its flow's answers to another worker, and after some seconds back.
                let steered = self.workers.first().map(|worker| steer_by_flow(worker.shared.tun()));
                const WHAT: &str =
                    "the kernel chooses the worker of packets from N6 by what is written to TUN";
                match steered {
                    None | Some(Ok(())) => {}
                    Some(Err(error)) if matches!(error.kind(), PermissionDenied | Unsupported) => {
                        tracing::debug!(%error, "{WHAT}");
                    }
                    Some(Err(error)) => tracing::warn!(%error, "{WHAT}: packets of a flow may be reordered"),
                }
            }
            Err(error) => {
                tracing::debug!(%error, "packets to N6 take the kernel's forwarding: no packet sockets");
            }
        }
    }

    /// As [`start`](Self::start), with meters and counters in these pools. With the descriptors of another process's workers, these
    /// workers read nothing yet, and the system stays as it is, until [`resume`](Self::resume) and
    /// [`own_system`](Self::own_system).
    pub(crate) fn start_with(
        config: &DatapathConfig,
        clock: Clock,
        pools: Pools,
        inherited: Vec<WorkerHandles>,
    ) -> Result<Self, StartError> {
        check(config)?;
        let count = worker_count(config).max(inherited.len());
        let inherits = !inherited.is_empty();
        if !inherits {
            let addresses = config.n3_addresses.iter().take(MAX_ADDRESSES);
            addresses.copied().try_for_each(nobody_else_has)?;
        }
        let first_id = pools.first_sender;
        let ids = (first_id..).map(|place| OuterIds::new(place, first_id + count));
        let mut inherited = inherited.into_iter();
        let descriptors = (0..count).map(|_| Descriptors::of(config, inherited.next()));
        let descriptors = descriptors.collect::<Result<Vec<_>, _>>()?;
        let network = if inherits { Network::inherited() } else { Network::set_up(config)? };
        let inboxes = (0..count).map(|_| Inbox::new().map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
        let (worker_queues, ends): (Vec<_>, Vec<_>) = inboxes.iter().cloned().map(WorkerQueue::new).unzip();
        let shared = Arc::new(Shared {
            clock,
            room: Arc::new(Room::new(config.buffer)),
            hairpin: config.is_hairpin_direct(),
            by_kernel: config.pools_by_kernel().collect(),
            enforcement: config.enforcement,
            flow_ports: config.flow_ports,
            outer_ecn: config.outer_ecn,
            mtu: config.mtu,
            duid: server_duid(config.n3_addresses.first().copied()),
            dns: config.dns.clone().into(),
            events: Events::new()?,
            tracer: Tracer::default(),
            worker_queues: worker_queues.into(),
            refuses: AtomicBool::new(config.refuses_unknown),
            #[cfg(test)]
            delay: path::Delay::default(),
        });
        let sockets = descriptors.first().map_or(&[] as &[_], |first| first.sockets.as_slice());
        let sockets = sockets.iter().map(GtpuSocket::try_clone).collect::<Result<Vec<_>, _>>()?;
        let keeper = Keeper::start(config, inboxes.clone(), network.closed_sets(config))?;
        let mut datapath = Self {
            sessions: Sessions::new(pools, config.enforcement).sharing(&config.shared_rates),
            shared,
            drops: Drops::default(),
            sockets,
            workers: Vec::new(),
            port_log: PortLog::of(config),
            nat_sweep: NatSweep::start(config),
            framed: FramedRoutes::new(&config.tun, inherits),
            keeper,
            follower: None,
            network,
        };
        let workers = descriptors.into_iter().zip(ids).zip(inboxes.into_iter().zip(ends));
        for ((descriptors, ids), (inbox, end)) in workers {
            datapath.start_worker(descriptors, ids, inbox, end, inherits)?;
        }
        Ok(datapath)
    }

    /// Makes the kernel confirm the neighbours to which the XDP program sends, and follows rules that it does not know.
    pub(crate) fn attend_xdp(&mut self, config: &DatapathConfig, detour: Detour, program: ProgramSettings) {
        match Follower::start_for_xdp(config, detour, program) {
            Ok(follower) => self.follower = Some(follower),
            Err(error) => tracing::error!(
                %error,
                "user plane: changes of routing rules and packet filter are not followed, and neighbours of XDP not confirmed"
            ),
        }
    }

    fn start_worker(
        &mut self,
        descriptors: Descriptors,
        outer_ids: OuterIds,
        inbox: Arc<Inbox>,
        incoming: Receiver<QueuedPacket>,
        holds: bool,
    ) -> Result<(), StartError> {
        let index = self.workers.len();
        let descriptors_shared = handover::Shared::of(&descriptors.sockets, &descriptors.tun)?;
        let path = self.path(Index(index), descriptors, outer_ids);
        let counters = Arc::clone(&path.counters);
        let queues = Queues::new(Arc::clone(&self.shared.room), incoming);
        let worker = Worker::new(Arc::clone(&inbox), path, queues, holds);
        let builder = thread::Builder::new().name(format!("pith-upf-{index}")).stack_size(STACK);
        let thread = Some(builder.spawn(|| worker.run())?);
        self.workers.push(Handle { inbox, counters, shared: descriptors_shared, thread });
        Ok(())
    }

    /// The outputs of a worker.
    fn path(&self, worker: Index, Descriptors { sockets, tun }: Descriptors, outer_ids: OuterIds) -> Path {
        Path {
            worker,
            shared: Arc::clone(&self.shared),
            counters: Arc::default(),
            sockets,
            border: Border::new(self.keeper.reach()),
            ports: Ports::default(),
            routes: Routes::default(),
            outer_ids,
            n3: N3Batch::new(),
            n6: N6Batch::new(tun.segments_udp()),
            tun,
            read: Vec::new(),
            queueing: Vec::new(),
            spare: Vec::new(),
            for_others: Vec::new(),
            now: self.shared.clock.now(),
        }
    }

    /// Readable while events are pending for [`poll_events`](Datapath::poll_events).
    pub fn events_ready(&self) -> BorrowedFd<'_> {
        self.shared.events.ready().as_fd()
    }

    /// Stops: packets in a worker's queues are still sent, then the system is restored.
    pub fn stop(self) {}

    /// Sets the hosts that control this UPF; they are closed to UEs.
    pub fn set_controllers(&self, controllers: Vec<IpAddr>) {
        self.keeper.set_controllers(controllers);
    }

    /// This host's current addresses.
    pub fn host(&self) -> Arc<Host> {
        self.keeper.host()
    }

    fn post(&self, message: impl Fn() -> Message) -> Vec<u64> {
        self.workers.iter().map(|worker| worker.inbox.post(message())).collect()
    }

    /// Waits until no packet is handled by the state before these messages.
    fn settle(&self, numbers: &[u64]) {
        let workers = self.workers.iter().zip(numbers);
        self.wait_until(|| workers.clone().all(|(worker, number)| worker.inbox.has_applied(*number)));
    }

    /// Waits until `done`.
    fn wait_until(&self, done: impl Fn() -> bool) {
        for turn in 0..PATIENCE {
            if done() {
                return;
            }
            if turn < QUICK { thread::yield_now() } else { thread::sleep(PAUSE) }
        }
        tracing::error!("a datapath worker is stuck");
    }

    /// Wakes the workers that own a queue of the session, and returns them.
    fn wake_owners(&self, rules: &Rules) -> Vec<usize> {
        let owner = |direction| rules.state.waiting(direction).owner();
        let owners = [Direction::Uplink, Direction::Downlink].into_iter().filter_map(owner);
        let owners: Vec<_> = owners.map(|owner| owner.0).collect();
        owners.iter().filter_map(|at| self.workers.get(*at)).for_each(|worker| worker.inbox.wake());
        owners
    }

    /// The compiled rules of a session.
    pub(crate) fn rules(&self, session: SessionId) -> Option<&Arc<Rules>> {
        self.sessions.rules(session)
    }

    /// Adds an AF_XDP socket to a worker.
    pub(crate) fn serve(&self, worker: usize, port: Port) {
        if let Some(worker) = self.workers.get(worker) {
            worker.inbox.post(Message::Serve(port));
            worker.inbox.wake();
        }
    }

    /// Keeps a table of a BPF program equal to the closed destinations.
    pub(crate) fn mirror_areas(&self, program: Box<dyn Mirror>) {
        self.keeper.mirror(program);
    }

    /// The current closed destinations.
    pub(crate) fn reach(&self) -> Arc<Reach> {
        self.keeper.reach()
    }

    /// The number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Sets whether unknown TEIDs are answered with Error Indications. They are not while a restarted UPF's
    /// sessions may be re-established.
    pub(crate) fn refuse_unknown(&self, refuse: bool) {
        self.shared.refuses.store(refuse, Relaxed);
    }

    /// Its clock.
    pub(crate) fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// Former values of the kernel's settings, which are restored at the end.
    pub(crate) fn former_settings(&self) -> Vec<(String, String)> {
        self.network.former_settings()
    }

    /// Renews what the former process has set up in the system, and restores the system at the end; `former` are values of settings
    /// from before that process.
    pub(crate) fn own_system(
        &mut self,
        config: &DatapathConfig,
        former: &[(String, String)],
    ) -> Result<(), StartError> {
        self.framed.own();
        self.network.own(config, former)?;
        self.keeper.filter_by(self.network.closed_sets(config));
        Ok(())
    }

    /// Ends without restoring the system, of which another process has become the owner.
    pub(crate) fn leave(mut self) {
        self.network.leave();
        self.keeper.filter_by(ClosedSets::default());
    }

    /// The current time of this datapath.
    pub(crate) fn now(&self) -> Now {
        self.shared.clock.now()
    }

    fn join(&mut self) {
        for worker in &self.workers {
            worker.inbox.post(Message::Stop);
            worker.inbox.wake();
        }
        for thread in self.workers.iter_mut().filter_map(|worker| worker.thread.take()) {
            if thread.join().is_err() {
                tracing::error!("a datapath worker panicked");
            }
        }
    }
}

impl Datapath for PortableDatapath {
    fn install(&mut self, session: Arc<Session>) {
        let Installed { rules, previous } = self.sessions.install(&session);
        self.framed.add(&rules.framed);
        self.framed.remove(previous.as_ref().map_or(&[], |rules| &rules.framed));
        self.keeper.note(Some(&rules), previous.as_deref());
        self.port_log.note(session.id, previous.as_ref().map(|rules| rules.ue), Some(session.ue));
        self.nat_sweep.note(previous.as_ref().map(|rules| rules.ue), Some(session.ue));
        self.post(|| Message::Publish { rules: Arc::clone(&rules), previous: previous.clone() });
        self.wake_owners(&rules);
        if let Some(worker) = self.workers.first().filter(|_| rules.opens_link(previous.as_deref())) {
            worker.inbox.post(Message::Advertise(session.id));
            worker.inbox.wake();
        }
    }

    fn remove(&mut self, session: SessionId) -> Option<SessionUsage> {
        let rules = Arc::clone(self.sessions.rules(session)?);
        let numbers = self.post(|| Message::Remove(Arc::clone(&rules)));
        self.settle(&numbers);
        self.wake_owners(&rules);
        self.wait_until(|| !rules.state.is_waiting());
        let usage = self.sessions.usage(session, self.now());
        self.sessions.remove(session);
        self.keeper.note(None, Some(&rules));
        self.framed.remove(&rules.framed);
        self.port_log.note(session, Some(rules.ue), None);
        self.nat_sweep.note(Some(rules.ue), None);
        usage
    }

    fn begin(&mut self, ue: UeAddress, is_restored: bool) {
        self.nat_sweep.begin(ue, is_restored);
    }

    fn discard_buffered(&mut self, session: SessionId) {
        let Some(rules) = self.sessions.rules(session) else { return };
        let numbers = self.post(|| Message::Discard(Arc::clone(rules)));
        for owner in self.wake_owners(rules) {
            if let (Some(worker), Some(number)) = (self.workers.get(owner), numbers.get(owner)) {
                self.wait_until(|| worker.inbox.has_taken(*number));
            }
        }
    }

    fn send_end_marker(&mut self, tunnel: &Tunnel) {
        let numbers: Vec<_> = self.workers.iter().map(|worker| worker.inbox.posted()).collect();
        self.settle(&numbers);
        let mut message = Vec::new();
        Signalling::EndMarker { teid: tunnel.teid.0 }.encode(&mut message);
        let peer = peer_of(tunnel);
        let socket = self.sockets.iter().find(|socket| socket.address().is_ipv4() == peer.is_ipv4());
        if !matches!(socket.map(|socket| socket.send_to(&message, peer)), Some(Ok(_))) {
            self.drops.count(DropReason::N3SendFailed);
        }
    }

    fn usage(&self, session: SessionId) -> Option<SessionUsage> {
        self.sessions.usage(session, self.now())
    }

    fn add_usage(&mut self, session: SessionId, usage: &SessionUsage) {
        self.sessions.add_usage(session, usage, self.now());
    }

    fn flows(&self, session: SessionId) -> Vec<FlowUsage> {
        self.sessions.flows(session)
    }

    fn trace(&mut self, session: SessionId, on: bool) {
        if let Some(rules) = self.sessions.rules(session) {
            rules.state.set_traced(on);
        }
    }

    fn poll_trace(&mut self, packets: &mut Vec<TracedPacket>) -> u64 {
        self.shared.tracer.drain_into(self.now(), packets)
    }

    fn count_dropped(&mut self, reason: DropReason) {
        self.drops.count(reason);
    }

    fn poll_events(&mut self, events: &mut Vec<Event>) {
        self.shared.events.drain_into(events);
    }

    fn counters(&self) -> Counters {
        let workers = self.workers.iter().map(|worker| &*worker.counters);
        total(workers, &self.drops, self.shared.room.packets() as u64)
    }
}

impl Drop for PortableDatapath {
    fn drop(&mut self) {
        self.join();
    }
}

/// The number of workers of a configuration.
pub(crate) fn worker_count(config: &DatapathConfig) -> usize {
    match config.workers {
        0 => thread::available_parallelism().map_or(1, usize::from),
        count => count,
    }
}

fn check(config: &DatapathConfig) -> Result<(), StartError> {
    if config.n3_addresses.is_empty() {
        return Err(StartError::NoAddress);
    }
    for pool in &config.pools {
        let most = if pool.gateway.is_ipv4() { 32 } else { 128 };
        if pool.prefix > most {
            return Err(StartError::Pool { gateway: pool.gateway, prefix: pool.prefix });
        }
    }
    let tenants = config.boundary.tenants_with(&config.pools).len();
    if tenants > MAX_TENANTS {
        return Err(StartError::Tenants { tenants, most: MAX_TENANTS });
    }
    for policy in &config.policies {
        let UePool { gateway, prefix } = policy.pool;
        if let Some(blocks) = policy.port_blocks.as_ref().filter(|blocks| !blocks.is_enough_for(policy.pool))
        {
            return Err(StartError::PortBlocks { gateway, prefix, blocks: blocks.capacity() });
        }
    }
    Ok(())
}

/// A worker's sockets, one for each N3 address, and its queue of the TUN interface.
struct Descriptors {
    sockets: Vec<GtpuSocket>,
    tun: TunQueue,
}

impl Descriptors {
    /// Those of a former process's worker, if there is one; new ones for addresses that it does not have.
    fn of(config: &DatapathConfig, inherited: Option<WorkerHandles>) -> Result<Self, StartError> {
        let tun_error = |error| StartError::tun(&config.tun, error);
        let Some(WorkerHandles { sockets, tun, batched }) = inherited else {
            let sockets = bind_all(&config.n3_addresses)?;
            return Ok(Self { sockets, tun: TunQueue::open(&config.tun).map_err(tun_error)? });
        };
        let mut known = sockets.into_iter().map(GtpuSocket::inherit).collect::<Result<Vec<_>, _>>()?;
        let mut of_address =
            |address: &IpAddr| match known.iter().position(|it| it.address().ip() == *address) {
                Some(at) => Ok(known.swap_remove(at)),
                None => bind(address),
            };
        let addresses = config.n3_addresses.iter().take(MAX_ADDRESSES);
        let sockets = addresses.map(&mut of_address).collect::<Result<_, _>>()?;
        Ok(Self { sockets, tun: TunQueue::inherit(tun, batched).map_err(tun_error)? })
    }
}

/// The longest time for which an address that no other UPF has may be in use.
const BIND_PATIENCE: Duration = Duration::from_millis(500);

/// Binds the address once without sharing: a second UPF on the same address would share its packets
/// unnoticed.
fn nobody_else_has(address: IpAddr) -> Result<(), StartError> {
    UdpSocket::bind((address, GTPU_PORT)).map(drop).map_err(|error| StartError::bind(address, error))
}

fn bind_all(addresses: &[IpAddr]) -> Result<Vec<GtpuSocket>, StartError> {
    addresses.iter().take(MAX_ADDRESSES).map(bind).collect()
}

/// A command that another thread starts meanwhile has the socket of [`nobody_else_has`], too, until it is executed.
fn bind(address: &IpAddr) -> Result<GtpuSocket, StartError> {
    let end = Instant::now() + BIND_PATIENCE;
    loop {
        match GtpuSocket::bind(SocketAddr::new(*address, GTPU_PORT)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < end => {
                thread::sleep(Duration::from_millis(5));
            }
            bound => return bound.map_err(|error| StartError::bind(*address, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_upf::contract::{Action, Destination, Far, FarId, Pdr, PdrId, Source, Teid};

    /// While the worker is between taking messages and receiving packets.
    #[test]
    fn a_sessions_first_packet_meets_its_rules() {
        use std::sync::atomic::Ordering::SeqCst;
        const DELAY: u64 = 20;
        if !crate::sys::enter_namespace() {
            return;
        }
        assert!(
            std::process::Command::new("ip").args("link set lo up".split(' ')).status().unwrap().success()
        );
        let config = DatapathConfig { workers: 1, ..DatapathConfig::default() };
        let mut upf = PortableDatapath::start(config).unwrap();
        let gnb = UdpSocket::bind("127.0.0.2:2152").unwrap();
        let delay = |upf: &PortableDatapath| upf.shared.delay.count.load(SeqCst);
        upf.shared.delay.millis.store(DELAY, SeqCst);
        for number in 1..=10u32 {
            let before = delay(&upf);
            // An unknown TEID wakes the worker.
            gnb.send_to(&gpdu(0xdead, number), "127.0.0.1:2152").unwrap();
            upf.wait_until(|| delay(&upf) > before);
            upf.install(Arc::new(tables::tests::session(number.into(), number, number as u8)));
            gnb.send_to(&gpdu(number, number), "127.0.0.1:2152").unwrap();
            upf.wait_until(|| upf.counters().n3_in.packets == 2 * u64::from(number));
        }
        upf.wait_until(|| upf.counters().dropped(DropReason::UnknownTeid) >= 10);
        assert_eq!(upf.counters().dropped(DropReason::UnknownTeid), 10, "the packets that woke the worker");
    }

    /// A G-PDU with a packet of UE 10.45.0.`ue` to a remote host.
    fn gpdu(teid: u32, ue: u32) -> Vec<u8> {
        let mut inner = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 45, 0, ue as u8, 192, 0, 2, 1];
        inner.extend([0, 7, 0, 7, 0, 8, 0, 0]);
        [&[0x30, 255, 0, 28][..], &teid.to_be_bytes(), &inner].concat()
    }

    /// A packet that its worker has not sent yet, and a later one of its flow, which another worker queues: meanwhile a packet of
    /// another flow waits there.
    #[test]
    fn a_packet_queued_at_another_worker_follows_those_before_it() {
        if !crate::sys::enter_namespace() {
            return;
        }
        assert!(
            std::process::Command::new("ip").args("link set lo up".split(' ')).status().unwrap().success()
        );
        let config = DatapathConfig { workers: 2, ..DatapathConfig::default() };
        let mut upf = PortableDatapath::start(config.clone()).unwrap();
        let gnb = UdpSocket::bind("127.0.0.2:2152").unwrap();
        let mut session = tables::tests::session(1, 1, 2);
        session.ue.v6 = None;
        let tunnel = Tunnel { peer: "127.0.0.2".parse().unwrap(), teid: Teid(1), dscp: None };
        session.pdrs.push(Pdr { id: PdrId(2), source: Source::Network, ..session.pdrs[0].clone() });
        session.fars = vec![Far { id: FarId(1), action: Action::Forward(Destination::Tunnel(tunnel)) }];
        upf.install(Arc::new(session));
        let rules = Arc::clone(upf.rules(SessionId(1)).unwrap());
        let mut path = upf.path(Index(1), Descriptors::of(&config, None).unwrap(), OuterIds::new(1, 2));
        let to_ue = |number| {
            let mut packet = vec![0x45, 0, 0, 29, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 10, 45, 0, 2];
            packet.extend([0, 7, 0, 7, 0, 9, 0, 0, number]);
            packet
        };
        let deliver = |path: &mut Path, number| {
            let packet = to_ue(number);
            let flow = crate::packet::Flow::of(&packet).unwrap();
            path.deliver_past_kernel(&rules, &flow, &packet);
        };
        let received = || {
            let mut octets = [0; 100];
            gnb.recv(&mut octets).map(|length| octets[length - 1])
        };
        deliver(&mut path, 1);
        rules.state.waiting(Direction::Downlink).join(Index(0));
        deliver(&mut path, 2);
        upf.workers[0].inbox.wake();
        gnb.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert_eq!(received().map_err(|error| error.kind()), Err(io::ErrorKind::WouldBlock));
        path.flush_n3();
        path.give_to_others();
        gnb.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert_eq!([received().unwrap(), received().unwrap()], [1, 2]);
    }

    #[test]
    fn more_tenants_than_can_be_kept_apart_are_refused() {
        let pool = |number: usize| UePool { gateway: IpAddr::from([10, number as u8, 0, 1]), prefix: 16 };
        let of = |pools: usize| DatapathConfig {
            n3_addresses: vec![IpAddr::from([127, 0, 0, 1])],
            pools: (0..pools).map(pool).collect(),
            ..DatapathConfig::default()
        };
        let error = check(&of(MAX_TENANTS + 1)).unwrap_err().to_string();
        assert!(error.contains("251 data networks") && error.contains("keep 250 apart"), "{error}");
        assert!(!matches!(check(&of(MAX_TENANTS)), Err(StartError::Tenants { .. })));
    }
}
