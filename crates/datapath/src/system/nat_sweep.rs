//! Ends the connections of UEs whose session ends: the next UE with the same address would get packets of the former one's by the
//! kernel's connection tracking, which keeps connections for up to five days.
//!
//! ```text
//!   session ends ─────────────────────────────────▶ address ─┐
//!   session begins; address had connections at the start ────┴▶ thread ─▶ dump of connection tracking ─▶ delete its connections
//! ```
//!
//! The connections of a UPF that was killed stay for the sessions that SMFs restore (TS 23.527 4.3), and those of one that is taken over for
//! its sessions.

use super::route::attributes;
use crate::boundary::ask_of;
use crate::config::{DatapathConfig, UePool};
use crate::reading::Reading;
use crate::sys::NetlinkSocket;
use pith_upf::contract::UeAddress;
use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

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
    /// For the networks with NAT44, if there are any.
    pub fn start(config: &DatapathConfig) -> Self {
        let pools: Vec<_> = config.pools.iter().copied().filter(|pool| config.has_nat44(*pool)).collect();
        let jobs = (!pools.is_empty()).then(|| spawn(pools.clone()));
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

fn spawn(pools: Vec<UePool>) -> io::Result<Sender<Job>> {
    let (jobs, received) = channel();
    let builder = thread::Builder::new().name("pith-upf-nat".into()).stack_size(STACK);
    builder.spawn(move || sweep_all(&pools, &received))?;
    Ok(jobs)
}

fn sweep_all(pools: &[UePool], jobs: &Receiver<Job>) {
    let mut addresses = Addresses::default();
    let is_ues = |from: Ipv4Addr| pools.iter().any(|pool| pool.contains(IpAddr::V4(from)));
    let found = dump(|from, _| addresses.former.extend(is_ues(from).then_some(from)));
    found.unwrap_or_else(|error| {
        tracing::warn!(%error, "NAT: connections of a former process stay, as connection tracking cannot be read");
    });
    let mut sweeping = Reading::default();
    while let Ok(first) = jobs.recv() {
        let mut is_urgent = addresses.note(first);
        if addresses.due.is_empty() {
            continue;
        }
        let end = Instant::now() + sweeping.pause();
        while !is_urgent && let Ok(job) = jobs.recv_timeout(end.saturating_duration_since(Instant::now())) {
            is_urgent = addresses.note(job);
        }
        let due = std::mem::take(&mut addresses.due);
        match sweeping.measure(|| sweep(&due)) {
            Ok(ended) => tracing::debug!(ended, ues = due.len(), "NAT: connections of ended sessions"),
            Err(error) => tracing::warn!(%error, "NAT: connections of ended sessions stay"),
        }
    }
}

#[derive(Debug, Default)]
struct Addresses {
    /// With connections of a former process.
    former: HashSet<Ipv4Addr>,
    /// Those whose connections end.
    due: HashSet<Ipv4Addr>,
}

impl Addresses {
    /// Whether a sweep cannot wait: another UE has an address whose connections have not ended.
    fn note(&mut self, job: Job) -> bool {
        match job {
            Job::Ends(ue) => {
                self.former.remove(&ue);
                self.due.insert(ue);
                false
            }
            Job::Begins(ue) => {
                self.due.extend(self.former.take(&ue));
                self.due.contains(&ue)
            }
            Job::GoesOn(ue) => {
                self.former.remove(&ue);
                self.due.remove(&ue);
                false
            }
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
