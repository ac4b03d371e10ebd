//! Settings of the kernel that Pith switches on: forwarding between interfaces, and tolerant connection tracking.

use std::{fs, io};

/// Forwarding of IPv4.
pub const V4: &str = "/proc/sys/net/ipv4/ip_forward";
/// Forwarding of IPv6.
pub const V6: &str = "/proc/sys/net/ipv6/conf/all/forwarding";

/// Connection tracking accepts TCP packets outside of the windows that it has seen: it does not see those that XDP translates.
pub const LIBERAL: &str = "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal";

/// A setting that is on; dropping this restores the previous value.
#[derive(Debug)]
pub struct Switch {
    setting: &'static str,
    former: Option<String>,
}

impl Switch {
    /// Enables a setting, if it is disabled.
    pub fn enable(setting: &'static str) -> io::Result<Self> {
        let now = fs::read_to_string(setting)?;
        if now.trim() == "1" {
            return Ok(Self { setting, former: None });
        }
        fs::write(setting, "1")?;
        Ok(Self { setting, former: Some(now) })
    }

    /// A setting that a former process may have enabled; `former` are values from before that.
    pub fn inherit(setting: &'static str, former: &[(String, String)]) -> io::Result<Self> {
        let mut switch = Self::enable(setting)?;
        switch.adopt(former);
        Ok(switch)
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

    /// Keeps the value at the end.
    pub fn keep(&mut self) {
        self.former = None;
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        if let Some(former) = &self.former
            && let Err(error) = fs::write(self.setting, former)
        {
            tracing::warn!(setting = self.setting, %error, "a setting of the kernel could not be restored");
        }
    }
}
