//! Ends the connections of UEs whose session ends: the next UE with the same address would get packets of the former one's by the
//! kernel's connection tracking, which keeps connections for up to five days.
//!
//! ```text
//!   session ends ─────────────────────────────────▶ address ─┐
//!   session begins; address had connections at the start ────┴▶ thread ─▶ dump of connection tracking ─▶ delete its connections
//! ```
//!
//! The connections of a UPF that was killed stay for the sessions that SMFs restore (TS 23.527 4.3).

use super::route::attributes;
use crate::boundary::ask_of;
use crate::config::{DatapathConfig, UePool};
use crate::sys::NetlinkSocket;
use pith_upf::contract::UeAddress;
use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// `NFNL_SUBSYS_CTNETLINK` with `IPCTNL_MSG_CT_NEW`, `_GET`, `_DELETE`.
const CT_NEW: u16 = 1 << 8;
const CT_GET: u16 = CT_NEW | 1;
const CT_DELETE: u16 = CT_NEW | 2;
/// struct nfgenmsg: IPv4, version 0.
const HEAD: [u8; 4] = [libc::AF_INET as u8, 0, 0, 0];
const CTA_TUPLE_ORIG: u16 = 1;
const CTA_ZONE: u16 = 18;
const CTA_TUPLE_IP: u16 = 1;
const CTA_IP_V4_SRC: u16 = 1;
const NESTED: u16 = 1 << 15;
const NLM_F_REQUEST: u16 = 1;

/// Addresses are gathered for so long, as a dump of all connections serves them all.
const GATHER: Duration = Duration::from_millis(20);
/// A pause is 20 times as long as the dump before it: there may be hundreds of thousands of connections.
const SHARE: u32 = 20;
/// Bytes of the thread's stack.
const STACK: usize = 256 << 10;

#[derive(Debug)]
enum Job {
    Begins(Ipv4Addr),
    GoesOn(Ipv4Addr),
    Ends(Ipv4Addr),
}

/// The thread's handle; it ends with it.
#[derive(Debug)]
pub struct NatSweep {
    pools: Vec<UePool>,
    jobs: Option<Sender<Job>>,
}

impl NatSweep {
    /// For the networks with NAT44, if there are any. `inherits`: the sessions of another process go on.
    pub fn start(config: &DatapathConfig, inherits: bool) -> Self {
        let pools: Vec<_> = config.pools.iter().copied().filter(|pool| config.has_nat44(*pool)).collect();
        let jobs = (!pools.is_empty()).then(|| spawn(pools.clone(), inherits));
        let jobs = jobs.transpose().unwrap_or_else(|error| {
            tracing::error!(%error, "NAT: connections do not end with their session");
            None
        });
        Self { pools, jobs }
    }

    /// A session's addresses change from `before` to `now`.
    pub fn note(&self, before: Option<UeAddress>, now: Option<UeAddress>) {
        let [before, now] = [before, now].map(|ue| ue.and_then(|ue| ue.v4));
        if before != now {
            before.into_iter().for_each(|ue| self.send(ue, Job::Ends));
        }
    }

    /// A session begins; `is_restored`: a former session of the UE goes on by it.
    pub fn begin(&self, ue: UeAddress, is_restored: bool) {
        let job = if is_restored { Job::GoesOn } else { Job::Begins };
        ue.v4.into_iter().for_each(|ue| self.send(ue, job));
    }

    fn send(&self, ue: Ipv4Addr, job: fn(Ipv4Addr) -> Job) {
        if self.pools.iter().any(|pool| pool.contains(IpAddr::V4(ue)))
            && let Some(jobs) = &self.jobs
        {
            // The thread lives as long as this.
            let _ = jobs.send(job(ue));
        }
    }
}

fn spawn(pools: Vec<UePool>, inherits: bool) -> io::Result<Sender<Job>> {
    let (jobs, received) = channel();
    let builder = thread::Builder::new().name("pith-upf-nat".into()).stack_size(STACK);
    builder.spawn(move || sweep_all(&pools, inherits, &received))?;
    Ok(jobs)
}

fn sweep_all(pools: &[UePool], inherits: bool, jobs: &Receiver<Job>) {
    // Of sessions of a former process.
    let mut former = HashSet::new();
    if !inherits {
        let is_ues = |from: Ipv4Addr| pools.iter().any(|pool| pool.contains(IpAddr::V4(from)));
        let found = dump(|from, _| former.extend(is_ues(from).then_some(from)));
        found.unwrap_or_else(|error| tracing::debug!(%error, "connection tracking cannot be read"));
    }
    let mut pause = GATHER;
    let mut due = HashSet::new();
    while let Ok(first) = jobs.recv() {
        take(first, &mut former, &mut due);
        if due.is_empty() {
            continue;
        }
        thread::sleep(pause);
        jobs.try_iter().for_each(|job| take(job, &mut former, &mut due));
        let begun = Instant::now();
        match sweep(&due) {
            Ok(ended) => tracing::debug!(ended, ues = due.len(), "NAT: connections of ended sessions"),
            Err(error) => tracing::warn!(%error, "NAT: connections of ended sessions stay"),
        }
        due.clear();
        pause = GATHER.max(begun.elapsed() * SHARE);
    }
}

/// `former`: addresses with connections of a former process; `due`: those whose connections end.
fn take(job: Job, former: &mut HashSet<Ipv4Addr>, due: &mut HashSet<Ipv4Addr>) {
    match job {
        Job::Ends(ue) => {
            former.remove(&ue);
            due.insert(ue);
        }
        Job::Begins(ue) => due.extend(former.take(&ue)),
        Job::GoesOn(ue) => {
            former.remove(&ue);
            due.remove(&ue);
        }
    }
}

/// Deletes the connections that these UEs have begun. Returns their number.
fn sweep(due: &HashSet<Ipv4Addr>) -> io::Result<usize> {
    let mut found = Vec::new();
    dump(|from, body| {
        if due.contains(&from) {
            found.extend(deletion(body));
        }
    })?;
    let socket = NetlinkSocket::of(libc::NETLINK_NETFILTER)?;
    found.iter().try_for_each(|request| socket.send(request))?;
    Ok(found.len())
}

/// Passes each IPv4 connection to `take`, with the address that began it.
fn dump(mut take: impl FnMut(Ipv4Addr, &[u8])) -> io::Result<()> {
    ask_of(libc::NETLINK_NETFILTER, CT_GET, &HEAD, |kind, body| {
        let Some(connection) = body.get(HEAD.len()..).filter(|_| kind == CT_NEW) else { return };
        if let Some(from) = began(connection) {
            take(from, connection);
        }
    })
}

fn began(connection: &[u8]) -> Option<Ipv4Addr> {
    let addresses = value(value(connection, CTA_TUPLE_ORIG)?, CTA_TUPLE_IP)?;
    Some(Ipv4Addr::from_octets(*value(addresses, CTA_IP_V4_SRC)?.as_array()?))
}

/// The request to delete a connection.
fn deletion(connection: &[u8]) -> Option<Vec<u8>> {
    let mut body = HEAD.to_vec();
    for kind in [CTA_TUPLE_ORIG, CTA_ZONE] {
        let (named, value) = attributes(connection).find(|(named, _)| named & !NESTED == kind).unzip();
        let (Some(named), Some(value)) = (named, value) else {
            if kind == CTA_ZONE {
                continue;
            }
            return None;
        };
        body.extend((value.len() as u16 + 4).to_ne_bytes());
        body.extend(u16::to_ne_bytes(named));
        body.extend(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    let length = body.len() as u32 + 16;
    let head = [&CT_DELETE.to_ne_bytes()[..], &NLM_F_REQUEST.to_ne_bytes(), &[0; 8]].concat();
    Some([&length.to_ne_bytes()[..], &head, &body].concat())
}

fn value(octets: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(octets).find(|(kind, _)| kind & !NESTED == wanted).map(|(_, value)| value)
}
