//! Settings of the kernel that Pith raises: forwarding between interfaces, tolerant connection tracking, lifetimes of NAT.
//!
//! Several instances of a network namespace may need a setting. The first one notes the value that it finds in a file, on which each
//! holds a shared lock, which ends with the process however that ends. The last one that ends restores the value. After a kill, the next
//! instance finds the file.

use crate::sys::{effective_user, network_namespace};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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

/// Whether it is the lifetime of a mapping.
pub fn is_lifetime(setting: &str) -> bool {
    LIFETIMES.iter().any(|(lifetime, _)| *lifetime == setting)
}

/// A setting that has at least some value; dropping this restores the previous one, unless another instance needs it.
#[derive(Debug)]
pub struct Switch {
    setting: &'static str,
    former: Option<String>,
    note: Option<Note>,
}

impl Switch {
    /// Enables a setting, if it is disabled.
    pub fn enable(setting: &'static str) -> io::Result<Self> {
        Self::raise(setting, 1)
    }

    /// Raises a setting to a value, if it is less.
    fn raise(setting: &'static str, least: u32) -> io::Result<Self> {
        let now = fs::read_to_string(setting)?;
        let is_enough = |value: &str| value.trim().parse().is_ok_and(|value: u32| value >= least);
        let note = Note::take(setting, now.trim())
            .inspect_err(|error| tracing::debug!(setting, %error, "no note of a setting for other instances"))
            .ok();
        if !is_enough(&now) {
            fs::write(setting, least.to_string())?;
        }
        let found = note.as_ref().map_or(now.trim(), |note| &note.found).to_owned();
        Ok(Self { setting, former: Some(found).filter(|found| !is_enough(found)), note })
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
        }
    }

    /// The name of the setting and its former value, if it was changed.
    pub fn former(&self) -> Option<(String, String)> {
        Some((self.setting.to_owned(), self.former.clone()?))
    }

    /// Whether it is that setting, and was disabled before.
    pub fn has_enabled(&self, setting: &str) -> bool {
        self.setting == setting && self.former.is_some()
    }

    /// Keeps the value at the end, for another process.
    pub fn keep(&mut self) {
        (self.former, self.note) = (None, None);
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let note = self.note.take();
        let is_last = note.is_none_or(Note::is_last);
        if let Some(former) = self.former.take_if(|_| is_last)
            && let Err(error) = fs::write(self.setting, former)
        {
            tracing::warn!(setting = self.setting, %error, "a setting of the kernel could not be restored");
        }
    }
}

/// Files of all settings, of root only.
const NOTES: &str = "/run/pith/settings";

/// The value of a setting before the first instance, in a file that all instances of the network namespace have locked.
#[derive(Debug)]
struct Note {
    found: String,
    file: File,
    path: PathBuf,
}

impl Note {
    /// The note of a setting, with the value `now` if there is none.
    fn take(setting: &str, now: &str) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(NOTES)?;
        let name = setting.trim_start_matches("/proc/sys/").replace('/', ".");
        let path = PathBuf::from(format!("{NOTES}/{}-{name}", network_namespace()?));
        loop {
            publish(&path, now)?;
            let mut file = File::open(&path)?;
            if ![0, effective_user()].contains(&file.metadata()?.uid()) {
                return Err(io::Error::other(format!("{} is another user's", path.display())));
            }
            file.lock_shared()?;
            let mut found = String::new();
            file.read_to_string(&mut found)?;
            let note = Self { found, file, path: path.clone() };
            // An instance that ended may have removed it.
            if note.is_there()? {
                return Ok(note);
            }
        }
    }

    fn is_there(&self) -> io::Result<bool> {
        match fs::metadata(&self.path) {
            Ok(there) => Ok(there.ino() == self.file.metadata()?.ino()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives the note back; whether no other instance has it. Then it is removed.
    fn is_last(self) -> bool {
        let is_last =
            self.file.unlock().is_ok() && self.file.try_lock().is_ok() && self.is_there().unwrap_or(false);
        if is_last {
            let _ = fs::remove_file(&self.path);
        }
        is_last
    }
}

/// Makes a file with its content in one step, unless it exists.
fn publish(path: &PathBuf, content: &str) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let written = path.with_extension(format!("{}-{}", process::id(), NUMBER.fetch_add(1, Relaxed)));
    fs::write(&written, content)?;
    let linked = fs::hard_link(&written, path);
    fs::remove_file(&written)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
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
    fn the_next_instance_restores_what_a_killed_one_had_found() {
        if !enter_namespace() {
            return;
        }
        fs::write(V4, "0").unwrap();
        // A process that ends without a drop: its lock ends, its file stays.
        let mut killed = Switch::enable(V4).unwrap();
        (killed.former, killed.note) = (None, None);
        drop(killed);
        assert_eq!(value(V4), "1");
        drop(Switch::enable(V4).unwrap());
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
