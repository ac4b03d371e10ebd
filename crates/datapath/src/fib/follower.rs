//! The thread that keeps the workers' copy of the kernel's routes and neighbours equal.

use super::detour::ForeignRules;
use super::read::stale_neighbours;
use super::{Detour, Fib, Neighbour, ProgramSettings};
use crate::automatic::bypassed_rules;
use crate::boundary::one_sided_interfaces;
use crate::config::DatapathConfig;
use crate::portable::{Inbox, Message};
use crate::reading::Reading;
use crate::sys::{EventFd, NetlinkSocket, interface_index, wait_readable};
use crate::system::has_silent_rules;
use libc::{NDA_DST, NTF_USE, RTM_NEWNEIGH};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// `RTMGRP_LINK`, `RTMGRP_NEIGH`; of IPv4 and IPv6: `RTMGRP_*_ROUTE`, `RTMGRP_*_RULE`, `RTNLGRP_*_NETCONF`; `RTNLGRP_NEXTHOP`.
const CHANGES: u32 = 1 | 4 | 0x40 | 0x400 | 0x80 | 1 << 18 | 1 << 23 | 1 << 24 | 1 << 31;
/// Time between two requests to the kernel to confirm the neighbours in use; the kernel regards one as stale after 15 to 45 s.
const CONFIRM: Duration = Duration::from_secs(5);
/// Largest number of neighbours to confirm at a time: a host may have thousands, and each costs a request on its link.
const AT_ONCE: usize = 500;
/// Bits of ready descriptors.
const CLOSING: u32 = 1;
const FILTER: u32 = 4;
/// Bytes of the thread's stack.
const STACK: usize = 256 << 10;

const NLM_F_REQUEST: u16 = 1;

/// The thread's handle; dropping it ends the thread.
#[derive(Debug)]
pub struct Follower {
    closing: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Sends the tables, and each change of them, to these workers. While the packet filter has rules of others, the tables are empty.
    pub fn start(config: &DatapathConfig, inboxes: Vec<Arc<Inbox>>) -> io::Result<Self> {
        let tables = KernelTables::follow(config)?;
        let first = Arc::new(tables.read());
        post(&inboxes, &first);
        Self::spawn(move |closing| follow(tables, first, &inboxes, closing))
    }

    /// Without workers, for the XDP program, which also sends without the kernel: the neighbours on its interfaces are confirmed, and
    /// packets take a detour while there are rules that it does not know.
    pub fn start_for_xdp(
        config: &DatapathConfig,
        detour: Detour,
        program: ProgramSettings,
    ) -> io::Result<Self> {
        let devices: Vec<_> =
            config.interfaces.iter().map(|name| interface_index(name)).collect::<Result<_, _>>()?;
        let rules = ForeignRules::follow(config, detour, program)?;
        Self::spawn(move |closing| attend_xdp(&devices, rules, closing))
    }

    fn spawn(job: impl FnOnce(&EventFd) + Send + 'static) -> io::Result<Self> {
        let closing = Arc::new(EventFd::new()?);
        let end = Arc::clone(&closing);
        let builder = thread::Builder::new().name("pith-upf-fib".into()).stack_size(STACK);
        let thread = builder.spawn(move || job(&end))?;
        Ok(Self { closing, thread: Some(thread) })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.closing.signal();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that follows the kernel's routes panicked");
        }
    }
}

fn post(inboxes: &[Arc<Inbox>], fib: &Arc<Fib>) {
    for inbox in inboxes {
        inbox.post(Message::Fib(Arc::clone(fib)));
        // A sleeping worker would keep all of them.
        inbox.wake();
    }
}

/// The kernel's tables, and the notifications of their changes.
struct KernelTables {
    config: DatapathConfig,
    /// Interfaces by which no packets leave to N6.
    except: Vec<String>,
    routes: NetlinkSocket,
    filter: NetlinkSocket,
    /// Whether the packet filter has rules that packets would bypass.
    is_filtered: bool,
    /// Whether there were rules of whose change the kernel does not notify.
    silent: bool,
}

impl KernelTables {
    /// Subscribes before reading the tables, so that no change in between is missed.
    fn follow(config: &DatapathConfig) -> io::Result<Self> {
        let (routes, filter) = (NetlinkSocket::subscribe(CHANGES)?, NetlinkSocket::subscribe_to_nftables()?);
        let (config, except) = (config.clone(), one_sided_interfaces(config));
        let mut tables = Self { config, except, routes, filter, is_filtered: false, silent: false };
        tables.check_filter();
        Ok(tables)
    }

    /// Returns whether that has changed.
    fn check_filter(&mut self) -> bool {
        let was_filtered = self.is_filtered;
        self.silent = has_silent_rules();
        self.is_filtered = !self.config.bypass_firewall && !bypassed_rules(&self.config).is_empty();
        self.is_filtered != was_filtered
    }

    /// As [`Self::check_filter`], of rules whose changes the kernel does not notify.
    fn check_silent_rules(&mut self) -> bool {
        let may_differ = !self.config.bypass_firewall && (self.silent || has_silent_rules());
        may_differ && self.check_filter()
    }

    fn read(&self) -> Fib {
        if self.is_filtered {
            return Fib::default();
        }
        Fib::read(&self.except, &self.config.tun).unwrap_or_else(|error| {
            tracing::warn!(%error, "the kernel's routes can't be read: packets to N6 take its forwarding");
            Fib::default()
        })
    }
}

fn follow(mut tables: KernelTables, mut fib: Arc<Fib>, inboxes: &[Arc<Inbox>], closing: &EventFd) {
    let mut confirmed = Instant::now();
    let mut reading = Reading::default();
    loop {
        let pause = CONFIRM.saturating_sub(confirmed.elapsed());
        let all = [closing.as_fd(), tables.routes.as_fd(), tables.filter.as_fd()];
        let ready = wait_readable(&all, Some(pause)).unwrap_or(0);
        if ready & CLOSING != 0 {
            return;
        }
        let mut differs = false;
        if confirmed.elapsed() >= CONFIRM {
            confirm(fib.take_unconfirmed());
            confirmed = Instant::now();
            differs = tables.check_silent_rules();
        }
        if ready == 0 && !differs {
            continue;
        }
        if wait_readable(&[closing.as_fd()], Some(reading.pause())).unwrap_or(0) != 0 {
            return;
        }
        tables.routes.drain();
        if ready & FILTER != 0 {
            tables.filter.drain();
            tables.check_filter();
        }
        let read = reading.measure(|| tables.read());
        if read != *fib {
            fib = Arc::new(read);
            post(inboxes, &fib);
        }
    }
}

fn attend_xdp(devices: &[u32], mut rules: ForeignRules, closing: &EventFd) {
    let mut confirmed = Instant::now();
    let mut checking = Reading::default();
    loop {
        let pause = CONFIRM.saturating_sub(confirmed.elapsed());
        let all = [closing.as_fd(), rules.routing.as_fd(), rules.filter.as_fd()];
        let ready = wait_readable(&all, Some(pause)).unwrap_or(0);
        if ready & CLOSING != 0 {
            return;
        }
        let mut may_differ = ready != 0;
        if confirmed.elapsed() >= CONFIRM {
            confirmed = Instant::now();
            match stale_neighbours(devices) {
                Ok(due) => confirm(due.into_iter()),
                Err(error) => tracing::debug!(%error, "the kernel's neighbours can't be read"),
            }
            may_differ |= rules.may_differ();
        }
        if !may_differ {
            continue;
        }
        if wait_readable(&[closing.as_fd()], Some(checking.pause())).unwrap_or(0) != 0 {
            return;
        }
        rules.routing.drain();
        rules.filter.drain();
        checking.measure(|| rules.check());
    }
}

/// Makes the kernel confirm the link addresses of neighbours. It regards those as unused to which it sends nothing itself, and
/// would neither notice that one has moved nor keep it.
fn confirm(due: impl Iterator<Item = Neighbour>) {
    let mut due = due.take(AT_ONCE).peekable();
    if due.peek().is_none() {
        return;
    }
    let sent = NetlinkSocket::open().and_then(|socket| due.try_for_each(|it| socket.send(&use_of(&it))));
    if let Err(error) = sent {
        tracing::debug!(%error, "the kernel does not confirm neighbours");
    }
}

/// A request to use a neighbour: struct nlmsghdr, struct ndmsg, and its address.
fn use_of(neighbour: &Neighbour) -> Vec<u8> {
    let (family, octets) = match neighbour.address {
        IpAddr::V4(v4) => (libc::AF_INET as u8, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6 as u8, v6.octets().to_vec()),
    };
    let mut request = vec![family, 0, 0, 0];
    request.extend(neighbour.device.to_ne_bytes());
    request.extend([0, 0, NTF_USE, 0]);
    request.extend((octets.len() as u16 + 4).to_ne_bytes());
    request.extend(NDA_DST.to_ne_bytes());
    request.extend(octets);
    let length = request.len() as u32 + 16;
    let head = [&RTM_NEWNEIGH.to_ne_bytes()[..], &NLM_F_REQUEST.to_ne_bytes(), &[0; 8]].concat();
    [&length.to_ne_bytes()[..], &head, &request].concat()
}
