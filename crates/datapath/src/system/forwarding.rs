//! Settings of the kernel that Pith raises: forwarding between interfaces, tolerant connection tracking, lifetimes of NAT.
//!
//! Several instances of a network namespace may need a setting. Each holds an abstract Unix socket for it, which the kernel
//! closes with the process, however that ends, and whose name contains the setting's former value. The last one that ends
//! restores it.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{fs, process, thread};

/// Forwarding of IPv4.
pub const V4: &str = "/proc/sys/net/ipv4/ip_forward";
/// Forwarding of IPv6.
pub const V6: &str = "/proc/sys/net/ipv6/conf/all/forwarding";

/// Connection tracking accepts TCP packets outside of the windows that it has seen: it does not see those that XDP translates.
pub const LIBERAL: &str = "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal";

/// Least lifetimes of mappings, in seconds: UDP without an answer (RFC 4787 REQ-5), ICMP queries (RFC 5508 REQ-1).
const LIFETIMES: [(&str, u32); 2] = [
    ("/proc/sys/net/netfilter/nf_conntrack_udp_timeout", 120),
    ("/proc/sys/net/netfilter/nf_conntrack_icmp_timeout", 60),
];

/// A setting that has at least some value; dropping this restores the previous one, unless another instance needs it.
#[derive(Debug)]
pub struct Switch {
    setting: &'static str,
    former: Option<String>,
    claim: Option<UnixDatagram>,
}

impl Switch {
    /// Enables a setting, if it is disabled.
    pub fn enable(setting: &'static str) -> io::Result<Self> {
        Self::raise(setting, 1)
    }

    /// Raises a setting to a value, if it is less.
    fn raise(setting: &'static str, least: u32) -> io::Result<Self> {
        let _turn = Turn::take();
        let now = fs::read_to_string(setting)?;
        let former = if now.trim().parse().is_ok_and(|value: u32| value >= least) {
            former_of_others(setting).into_iter().flatten().next()
        } else {
            fs::write(setting, least.to_string())?;
            Some(now.trim().to_owned())
        };
        let claim = claim(setting, former.as_deref());
        Ok(Self { setting, former, claim })
    }

    /// A setting that a former process may have enabled; `former` are values from before that.
    pub fn inherit(setting: &'static str, former: &[(String, String)]) -> io::Result<Self> {
        let mut switch = Self::enable(setting)?;
        switch.adopt(former);
        Ok(switch)
    }

    /// The lifetimes of NAT, as far as the kernel has them; `former` are values from before a former process.
    pub fn lifetimes(former: &[(String, String)]) -> Vec<Self> {
        let raise = |(setting, least)| match Self::raise(setting, least) {
            Ok(mut switch) => {
                switch.adopt(former);
                Some(switch)
            }
            Err(error) => {
                tracing::warn!(setting, %error, "NAT: a lifetime of connections could not be raised");
                None
            }
        };
        LIFETIMES.into_iter().filter_map(raise).collect()
    }

    /// Restores the value in `former` at the end, if it is there.
    pub fn adopt(&mut self, former: &[(String, String)]) {
        if let Some((_, value)) = former.iter().find(|(name, _)| name == self.setting) {
            self.former = Some(value.clone());
            self.claim = claim(self.setting, self.former.as_deref());
        }
    }

    /// The name of the setting and its former value, if it was changed.
    pub fn former(&self) -> Option<(String, String)> {
        Some((self.setting.to_owned(), self.former.clone()?))
    }

    /// Keeps the value at the end.
    pub fn keep(&mut self) {
        self.former = None;
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _turn = Turn::take();
        self.claim = None;
        if let Some(former) = &self.former
            && former_of_others(self.setting).is_empty()
            && let Err(error) = fs::write(self.setting, former)
        {
            tracing::warn!(setting = self.setting, %error, "a setting of the kernel could not be restored");
        }
    }
}

/// The first part of the sockets' names: `pith/setting/net/ipv4/ip_forward=0/4711-1`.
const NAME: &str = "pith/setting/";
/// For a setting that had its value already.
const UNCHANGED: &str = "-";

/// The socket by which other instances find that this one needs a setting. Without one, where the system forbids it, they do
/// not.
fn claim(setting: &str, former: Option<&str>) -> Option<UnixDatagram> {
    static CLAIMS: AtomicU64 = AtomicU64::new(0);
    let (process, number) = (process::id(), CLAIMS.fetch_add(1, Relaxed));
    let former = former.unwrap_or(UNCHANGED);
    let claim = bind(&format!("{NAME}{}={former}/{process}-{number}", short(setting)));
    claim.inspect_err(|error| tracing::debug!(setting, %error, "no claim to a setting")).ok()
}

fn bind(name: &str) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

fn short(setting: &str) -> &str {
    setting.strip_prefix("/proc/sys/").unwrap_or(setting)
}

/// An entry for each other holder of a setting in this network namespace: the value that it restores, if any.
fn former_of_others(setting: &str) -> Vec<Option<String>> {
    let sockets = fs::read_to_string("/proc/thread-self/net/unix").unwrap_or_default();
    let names = sockets.lines().filter_map(|line| line.rsplit(' ').next()?.strip_prefix('@'));
    let claims = names.filter_map(|name| name.strip_prefix(NAME)?.split_once('='));
    let values = claims.filter(|(name, _)| *name == short(setting)).filter_map(|(_, rest)| {
        let (value, _) = rest.split_once('/')?;
        Some(value.parse::<u32>().ok().map(|value| value.to_string()))
    });
    values.collect()
}

/// Prevents instances from starting and ending at the same time in a network namespace.
struct Turn {
    _socket: Option<UnixDatagram>,
}

impl Turn {
    /// A turn takes far less than a millisecond: a socket of that name for a second is not an instance's.
    const PATIENCE: u32 = 1_000;

    fn take() -> Self {
        let attempt = |_| match bind("pith/setting-turn") {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                thread::sleep(Duration::from_millis(1));
                None
            }
            socket => Some(socket.ok()),
        };
        Self { _socket: (0..Self::PATIENCE).find_map(attempt).flatten() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::enter_namespace;

    fn value(setting: &str) -> String {
        fs::read_to_string(setting).unwrap().trim().to_owned()
    }

    #[test]
    fn the_last_instance_restores_the_first_ones_value() {
        if !enter_namespace() {
            return;
        }
        for setting in [V4, V6] {
            fs::write(setting, "0").unwrap();
            let first = Switch::enable(setting).unwrap();
            let second = Switch::enable(setting).unwrap();
            let third = Switch::enable(setting).unwrap();
            drop(first);
            assert_eq!(value(setting), "1", "others need it");
            drop(third);
            assert_eq!(value(setting), "1");
            drop(second);
            assert_eq!(value(setting), "0");
        }
        fs::write(V4, "1").unwrap();
        drop((Switch::enable(V4).unwrap(), Switch::enable(V4).unwrap()));
        assert_eq!(value(V4), "1", "as they found it");
    }

    #[test]
    fn a_successor_restores_the_value_from_before_its_predecessor() {
        if !enter_namespace() {
            return;
        }
        fs::write(V4, "0").unwrap();
        let mut former = Switch::enable(V4).unwrap();
        let list = [former.former().unwrap()];
        let successor = Switch::inherit(V4, &list).unwrap();
        former.keep();
        drop(former);
        let another = Switch::enable(V4).unwrap();
        drop(successor);
        assert_eq!(value(V4), "1");
        drop(another);
        assert_eq!(value(V4), "0");
    }

    #[test]
    fn lifetimes_are_raised_and_never_reduced() {
        if !enter_namespace() {
            return;
        }
        let [(udp, _), (icmp, _)] = LIFETIMES;
        if !std::path::Path::new(udp).exists() {
            return crate::skipped::skipped("no connection tracking");
        }
        fs::write(udp, "30").unwrap();
        fs::write(icmp, "90").unwrap();
        let held = Switch::lifetimes(&[]);
        assert_eq!((value(udp), value(icmp)), ("120".into(), "90".into()));
        drop(held);
        assert_eq!((value(udp), value(icmp)), ("30".into(), "90".into()));
    }
}
