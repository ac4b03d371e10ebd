//! Updates the closed destinations. Two sources change them: the host's addresses, which a thread reads by netlink, and
//! the sessions' rules, which contain the addresses of tunnel peers.

use super::peers::{Change, Peers};
use super::reach::{Area, Reach};
use super::{Boundary, Host, TunnelSide};
use crate::config::{DatapathConfig, StartError, UePool};
use crate::portable::{Inbox, Message};
use crate::reading::Reading;
use crate::rules::Rules;
use crate::sys::{EventFd, NetlinkSocket, wait_readable};
use crate::system::{ClosedSets, Net};
use std::fmt;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// `RTMGRP_IPV4_IFADDR`, `RTMGRP_IPV6_IFADDR`.
const ADDRESSES: u32 = 0x10 | 0x100;
/// `RTMGRP_IPV4_ROUTE`, `RTMGRP_IPV6_ROUTE`.
const ROUTES: u32 = 0x40 | 0x400;
/// Least time between two compilations for new tunnel peers: one runs `nft`, and gNBs can name a new address with each
/// session.
const BETWEEN: Duration = Duration::from_millis(500);
/// Bytes of the thread's stack.
const STACK: usize = 256 << 10;

/// A copy of the areas in a table of the BPF program.
pub trait Mirror: Send + fmt::Debug {
    /// Replaces all areas.
    fn set_areas(&mut self, reach: &Reach);
    /// Sets whether GTP-U of a tunnel's peer is accepted.
    fn set_peer(&mut self, peer: IpAddr, known: bool);
}

/// The control thread's handle; dropping it ends the thread.
#[derive(Debug)]
pub struct Keeper {
    shared: Arc<Shared>,
    closing: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    boundary: Boundary,
    pools: Vec<UePool>,
    side: TunnelSide,
    inboxes: Vec<Arc<Inbox>>,
    state: Mutex<State>,
    /// Wakes the thread for a compilation that is due later.
    stale: EventFd,
}

#[derive(Debug)]
struct State {
    host: Arc<Host>,
    peers: Peers,
    /// Hosts that control this UPF.
    controllers: Vec<IpAddr>,
    /// Peers in no other area.
    apart: Vec<IpAddr>,
    /// Whether the operator was advised to name their networks.
    is_advised: bool,
    /// Time of the last compilation.
    compiled: Option<Instant>,
    /// Peers have changed since then.
    is_stale: bool,
    reach: Arc<Reach>,
    program: Option<Box<dyn Mirror>>,
    filter: ClosedSets,
}

impl Keeper {
    /// Sends the closed destinations, and each change of them, to these workers.
    pub fn start(
        config: &DatapathConfig,
        inboxes: Vec<Arc<Inbox>>,
        filter: ClosedSets,
    ) -> Result<Self, StartError> {
        let failed = StartError::setup;
        // Subscribe before reading the addresses, so that no change in between is missed.
        let side = TunnelSide::of(config);
        let groups = if side.is_empty() { ADDRESSES } else { ADDRESSES | ROUTES };
        let changes = NetlinkSocket::subscribe(groups).map_err(failed("following this host's addresses"))?;
        let host = Arc::new(Host::read(&side).map_err(failed("reading this host's addresses"))?);
        let (boundary, pools) = (config.whole_boundary(), config.pools.clone());
        let reach = Arc::new(Reach::compile(&boundary, &pools, &host, (&[], &[])));
        let state = State {
            host,
            peers: Peers::default(),
            controllers: Vec::new(),
            apart: Vec::new(),
            is_advised: false,
            compiled: None,
            is_stale: false,
            reach,
            program: None,
            filter,
        };
        let shared = Arc::new(Shared {
            boundary,
            pools,
            side,
            inboxes,
            state: Mutex::new(state),
            stale: EventFd::new()?,
        });
        shared.notify_workers(&shared.state().reach);
        shared.log();
        let closing = Arc::new(EventFd::new()?);
        let (own, end) = (Arc::clone(&shared), Arc::clone(&closing));
        let builder = thread::Builder::new().name("pith-upf-closed".into()).stack_size(STACK);
        let thread = builder.spawn(move || own.follow(&changes, &end))?;
        Ok(Self { shared, closing, thread: Some(thread) })
    }

    /// Updates the peers for replaced rules of a session: its tunnel peers are closed to UEs and may send
    /// GTP-U.
    pub fn note(&self, new: Option<&Rules>, old: Option<&Rules>) {
        let mut state = self.shared.state();
        let change = state.peers.replace(new, old);
        if change != Change::default() {
            self.shared.apply(&mut state, change);
        }
    }

    /// Replaces the hosts that control this UPF; they are closed to UEs.
    pub fn set_controllers(&self, controllers: Vec<IpAddr>) {
        let mut state = self.shared.state();
        if state.controllers != controllers {
            state.controllers = controllers;
            self.shared.compile(&mut state);
        }
    }

    /// Keeps the packet filter's sets equal from now on; an empty value ends that.
    pub fn filter_by(&self, filter: ClosedSets) {
        let mut state = self.shared.state();
        state.filter = filter;
        state.filter.replace(&state.reach);
    }

    /// Adds a BPF program's table, and keeps it equal.
    pub fn mirror(&self, mut program: Box<dyn Mirror>) {
        let mut state = self.shared.state();
        program.set_areas(&state.reach);
        state.peers.all().for_each(|peer| program.set_peer(peer, true));
        state.program = Some(program);
    }

    /// This host's current addresses.
    pub fn host(&self) -> Arc<Host> {
        Arc::clone(&self.shared.state().host)
    }

    /// The current closed destinations.
    pub fn reach(&self) -> Arc<Reach> {
        Arc::clone(&self.shared.state().reach)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.closing.signal();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that tracks this host's addresses panicked");
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs which destinations are closed in addition to the defaults.
    fn log(&self) {
        let state = self.state();
        let Boundary { own, core, radios, .. } = &self.boundary;
        let own = own.iter().flat_map(|own| state.host.networks_of(*own));
        let behind =
            state.host.tunnel_side.iter().filter(|routed| routed.is_behind).map(|routed| routed.network);
        let mut closed: Vec<_> = own.chain(core.iter().chain(radios).copied()).chain(behind).collect();
        closed.sort_by_key(|range| (range.address, range.prefix));
        closed.dedup();
        let closed: Vec<_> = closed.into_iter().map(|range| Net(range).to_string()).collect();
        tracing::info!(
            closed = closed.join(", "),
            "user plane: UEs reach neither this host's addresses nor UEs of other data networks nor these networks"
        );
    }

    fn notify_workers(&self, reach: &Arc<Reach>) {
        for inbox in &self.inboxes {
            inbox.post(Message::Reach(Arc::clone(reach)));
        }
    }

    fn follow(&self, changes: &NetlinkSocket, closing: &EventFd) {
        let mut reading = Reading::default();
        loop {
            let all = [closing.as_fd(), changes.as_fd(), self.stale.as_fd()];
            let ready = wait_readable(&all, None).unwrap_or(0);
            let is_stale = ready & 4 != 0;
            let pause = if is_stale { BETWEEN } else { reading.pause() };
            if ready & 1 != 0 || wait_readable(&[closing.as_fd()], Some(pause)).unwrap_or(0) != 0 {
                return;
            }
            if is_stale {
                self.stale.clear();
                let mut state = self.state();
                if state.is_stale {
                    self.compile(&mut state);
                }
            }
            if ready & 2 == 0 {
                continue;
            }
            changes.drain();
            match reading.measure(|| Host::read(&self.side)) {
                Ok(host) => self.take_over(host),
                Err(error) => {
                    tracing::warn!(%error, "this host's addresses can't be read: new ones are not closed to UEs")
                }
            }
        }
    }

    fn take_over(&self, host: Host) {
        let mut state = self.state();
        if *state.host != host {
            state.host = Arc::new(host);
            self.compile(&mut state);
        }
    }

    fn apply(&self, state: &mut State, change: Change) {
        for inbox in &self.inboxes {
            let known = change.known.iter().map(|peer| (*peer, true));
            for (address, known) in known.chain(change.forgotten.iter().map(|peer| (*peer, false))) {
                inbox.post(Message::Peer { address, known });
            }
        }
        let is_apart = |peer: &IpAddr| state.reach.area(*peer) == Area::Open;
        let changes = change.known.iter().any(is_apart)
            || change.forgotten.iter().any(|peer| state.apart.contains(peer));
        if changes && state.compiled.is_some_and(|compiled| compiled.elapsed() < BETWEEN) {
            state.is_stale = true;
            self.stale.signal();
        } else if changes {
            self.compile(state);
        }
        if let Some(program) = &mut state.program {
            change.known.iter().for_each(|peer| program.set_peer(*peer, true));
            change.forgotten.iter().for_each(|peer| program.set_peer(*peer, false));
        }
    }

    fn compile(&self, state: &mut State) {
        let compile = |peers: &[IpAddr]| {
            Reach::compile(&self.boundary, &self.pools, &state.host, (&state.controllers, peers))
        };
        let without = compile(&[]);
        // An address in a tenant's pool is a UE's; for other tenants it is closed.
        state.apart = state.peers.all().filter(|peer| without.area(*peer) == Area::Open).collect();
        if let Some(peer) = state.apart.first().filter(|_| !state.is_advised) {
            tracing::info!(
                %peer,
                "user plane: UEs reach this gNB or UPF except by GTP-U: to close its network to them, add it to 'upf.radios'"
            );
            state.is_advised = true;
        }
        (state.compiled, state.is_stale) = (Some(Instant::now()), false);
        let with = || compile(&state.apart);
        state.reach = Arc::new(if state.apart.is_empty() { without } else { with() });
        self.notify_workers(&state.reach);
        if let Some(program) = &mut state.program {
            program.set_areas(&state.reach);
        }
        state.filter.replace(&state.reach);
    }
}
