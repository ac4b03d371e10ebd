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

use super::nat::has_nat66;
use super::route::attributes;
use crate::boundary::ask_of;
use crate::config::{DatapathConfig, UePool};
use crate::reading::Reading;
use crate::sys::NetlinkSocket;
use pith_upf::contract::UeAddress;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

/// `NFNL_SUBSYS_CTNETLINK` with `IPCTNL_MSG_CT_NEW`, `_GET`, `_DELETE`.
const CT_NEW: u16 = 1 << 8;
const CT_GET: u16 = CT_NEW | 1;
const CT_DELETE: u16 = CT_NEW | 2;
/// Octets of struct nfgenmsg: address family, version 0, resource id 0.
const HEAD: usize = 4;
const CTA_TUPLE_ORIG: u16 = 1;
const CTA_TUPLE_REPLY: u16 = 2;
const CTA_ZONE: u16 = 18;
const CTA_TUPLE_IP: u16 = 1;
const CTA_IP_V4_SRC: u16 = 1;
const CTA_IP_V6_SRC: u16 = 3;
const NESTED: u16 = 1 << 15;
const NLM_F_REQUEST: u16 = 1;

/// Bytes of the thread's stack.
const STACK: usize = 256 << 10;

/// The addresses of a session: one IPv4 address, or an IPv6 prefix. Those of two sessions have none in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Own {
    first: IpAddr,
    last: IpAddr,
}

impl Own {
    fn v4(ue: UeAddress) -> Option<Self> {
        ue.v4.map(|v4| Self { first: v4.into(), last: v4.into() })
    }

    /// The prefix of the link, and those that the UE delegates.
    fn v6(ue: UeAddress) -> Option<Self> {
        let hosts = u128::MAX >> 64u8.saturating_sub(ue.delegation);
        let first = ue.v6?.to_bits() & !hosts;
        let [first, last] = [first, first | hosts].map(|bits| Ipv6Addr::from_bits(bits).into());
        Some(Self { first, last })
    }
}

#[derive(Debug)]
enum Job {
    Begins(Own),
    GoesOn(Own),
    Ends(Own),
}

/// The thread's handle; it ends with it.
#[derive(Debug)]
pub struct NatSweep {
    pools: Vec<UePool>,
    jobs: Option<Sender<Job>>,
}

impl NatSweep {
    /// For the networks with NAT, if there are any.
    pub fn start(config: &DatapathConfig) -> Self {
        let has_nat = |pool: &UePool| config.has_nat44(*pool) || has_nat66(config, *pool);
        let pools: Vec<_> = config.pools.iter().copied().filter(has_nat).collect();
        let jobs = (!pools.is_empty()).then(|| spawn(pools.clone()));
        let jobs = jobs.transpose().unwrap_or_else(|error| {
            tracing::error!(%error, "NAT: connections do not end with their session");
            None
        });
        Self { pools, jobs }
    }

    /// A session's addresses change from `before` to `now`.
    pub fn note(&self, before: Option<UeAddress>, now: Option<UeAddress>) {
        for family in [Own::v4, Own::v6] {
            let [before, now] = [before, now].map(|ue| ue.and_then(family));
            if before != now {
                before.into_iter().for_each(|ue| self.send(ue, Job::Ends));
            }
        }
    }

    /// A session begins; `is_restored`: a former session of the UE goes on by it.
    pub fn begin(&self, ue: UeAddress, is_restored: bool) {
        let job = if is_restored { Job::GoesOn } else { Job::Begins };
        [Own::v4(ue), Own::v6(ue)].into_iter().flatten().for_each(|ue| self.send(ue, job));
    }

    fn send(&self, ue: Own, job: fn(Own) -> Job) {
        if self.pools.iter().any(|pool| pool.contains(ue.first))
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
    let is_ues = |from: IpAddr| pools.iter().any(|pool| pool.contains(from));
    let families = families(pools);
    let found =
        dump(&families, |ends, _| addresses.former.extend(ends.into_iter().filter(|end| is_ues(*end))));
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
        match sweeping.measure(|| sweep(&families, &due)) {
            Ok(ended) => tracing::debug!(ended, ues = due.len(), "NAT: connections of ended sessions"),
            Err(error) => tracing::warn!(%error, "NAT: connections of ended sessions stay"),
        }
    }
}

#[derive(Debug, Default)]
struct Addresses {
    /// With connections of a former process.
    former: BTreeSet<IpAddr>,
    /// Those whose connections end: the last address of each session, by the first one.
    due: BTreeMap<IpAddr, IpAddr>,
}

impl Addresses {
    /// Whether a sweep cannot wait: another UE has an address whose connections have not ended.
    fn note(&mut self, job: Job) -> bool {
        match job {
            Job::Ends(ue) => {
                self.take_former(ue);
                self.due.insert(ue.first, ue.last);
                false
            }
            Job::Begins(ue) => {
                if self.take_former(ue) {
                    self.due.insert(ue.first, ue.last);
                }
                self.due.range(ue.first..=ue.last).next().is_some() || is_in(&self.due, ue.first)
            }
            Job::GoesOn(ue) => {
                self.take_former(ue);
                self.due.remove(&ue.first);
                false
            }
        }
    }

    /// Whether there are connections of a former process; they count no longer.
    fn take_former(&mut self, ue: Own) -> bool {
        let found: Vec<_> = self.former.range(ue.first..=ue.last).copied().collect();
        found.iter().for_each(|address| {
            self.former.remove(address);
        });
        !found.is_empty()
    }
}

/// Whether an address is one of these sessions.
fn is_in(sessions: &BTreeMap<IpAddr, IpAddr>, address: IpAddr) -> bool {
    sessions.range(..=address).next_back().is_some_and(|(_, last)| address <= *last)
}

/// The address families of the pools.
fn families(pools: &[UePool]) -> Vec<u8> {
    let of = |is_v6: bool| if is_v6 { libc::AF_INET6 as u8 } else { libc::AF_INET as u8 };
    let found: BTreeSet<_> = pools.iter().map(|pool| of(pool.gateway.is_ipv6())).collect();
    found.into_iter().collect()
}

/// Deletes the connections that these UEs have begun, and those that hosts have begun to them. Returns their number.
fn sweep(families: &[u8], due: &BTreeMap<IpAddr, IpAddr>) -> io::Result<usize> {
    let mut found = Vec::new();
    dump(families, |ends, body| {
        if ends.iter().any(|end| is_in(due, *end)) {
            found.extend(deletion(ends[0], body));
        }
    })?;
    let socket = NetlinkSocket::of(libc::NETLINK_NETFILTER)?;
    found.iter().try_for_each(|request| socket.send(request))?;
    Ok(found.len())
}

/// Passes each connection of these address families to `take`, with the address that began it and the one that answers: a UE's own ones, also
/// if the host translates them.
fn dump(families: &[u8], mut take: impl FnMut([IpAddr; 2], &[u8])) -> io::Result<()> {
    families.iter().try_for_each(|family| {
        ask_of(libc::NETLINK_NETFILTER, CT_GET, &head(*family), |kind, body| {
            let Some(connection) = body.get(HEAD..).filter(|_| kind == CT_NEW) else { return };
            if let (Some(from), Some(to)) =
                (source(connection, CTA_TUPLE_ORIG), source(connection, CTA_TUPLE_REPLY))
            {
                take([from, to], connection);
            }
        })
    })
}

/// struct nfgenmsg.
const fn head(family: u8) -> [u8; HEAD] {
    [family, 0, 0, 0]
}

/// The source of packets in a direction.
fn source(connection: &[u8], direction: u16) -> Option<IpAddr> {
    let addresses = value(value(connection, direction)?, CTA_TUPLE_IP)?;
    let v4 = || Some(Ipv4Addr::from_octets(*value(addresses, CTA_IP_V4_SRC)?.as_array()?).into());
    let v6 = || Some(Ipv6Addr::from_octets(*value(addresses, CTA_IP_V6_SRC)?.as_array()?).into());
    v4().or_else(v6)
}

/// The request to delete a connection that an address began.
fn deletion(from: IpAddr, connection: &[u8]) -> Option<Vec<u8>> {
    let family = if from.is_ipv6() { libc::AF_INET6 } else { libc::AF_INET };
    let mut body = head(family as u8).to_vec();
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

#[cfg(test)]
mod tests {
    use super::super::nft::{run, words};
    use super::*;
    use crate::sys::enter_namespace;
    use std::net::UdpSocket;

    fn ue(prefix: &str, delegation: u8) -> Own {
        Own::v6(UeAddress { v4: None, v6: Some(prefix.parse().unwrap()), delegation }).unwrap()
    }

    #[test]
    fn connections_of_the_prefix_of_a_session_end_with_it() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut addresses = Addresses::default();
        addresses.former.extend(["fd00:0:0:2::7", "fd00:0:0:2::9", "fd00:0:0:100::1"].map(address));
        assert!(!addresses.note(Job::Ends(ue("fd00:0:0:1::", 0))));
        assert!(addresses.note(Job::Begins(ue("fd00:0:0:1::", 0))), "they have not ended yet");
        assert!(!addresses.note(Job::Begins(ue("fd00:0:0:3::", 0))), "it had none");
        assert!(addresses.note(Job::Begins(ue("fd00:0:0:2::", 0))), "of the former process");
        assert!(!addresses.note(Job::GoesOn(ue("fd00:0:0:2::", 0))));
        assert!(!addresses.note(Job::Ends(ue("fd00:0:0:1ff::", 8))));
        let due =
            ["fd00:0:0:1::5", "fd00:0:0:100::1", "fd00:0:0:1ff:ffff::", "fd00:0:0:2::7", "fd00:0:0:200::1"];
        assert_eq!(due.map(|it| is_in(&addresses.due, address(it))), [true, true, true, false, false]);
        assert!(addresses.former.is_empty());
    }

    /// The kernel's own table, in a network namespace.
    #[test]
    fn ipv6_connections_of_ended_sessions_are_deleted() {
        if !enter_namespace() {
            return;
        }
        let rules = "table ip6 tracked {\n\tchain out {\n\t\ttype filter hook output priority 0;\n\t\tct state new accept\n\t}\n}\n";
        let set_up = [
            ("ip link set lo up", ""),
            ("ip address add fd00:0:0:1::7/128 dev lo nodad", ""),
            ("ip address add fd00:0:0:2::7/128 dev lo nodad", ""),
            ("nft -f -", rules),
        ];
        for (command, input) in set_up {
            if let Err(error) = run(&words(command), input) {
                return crate::skipped::skipped(&format!("{command}: {error}"));
            }
        }
        let sockets = ["[fd00:0:0:1::7]:7000", "[fd00:0:0:2::7]:7000"].map(|it| UdpSocket::bind(it).unwrap());
        sockets[0].send_to(b"up", "[::1]:7000").unwrap();
        // Begun by a host.
        UdpSocket::bind("[::1]:0").unwrap().send_to(b"down", "[fd00:0:0:1::7]:7001").unwrap();
        sockets[1].send_to(b"up", "[::1]:7001").unwrap();
        let families = [libc::AF_INET6 as u8];
        let ended = |prefix: &str| {
            let own = ue(prefix, 0);
            sweep(&families, &[(own.first, own.last)].into()).unwrap()
        };
        assert_eq!(ended("fd00:0:0:3::"), 0);
        assert_eq!([ended("fd00:0:0:1::"), ended("fd00:0:0:1::")], [2, 0]);
        assert_eq!(
            [ended("fd00:0:0:2::"), ended("fd00:0:0:2::")],
            [1, 0],
            "that of the other session stayed"
        );
    }
}
