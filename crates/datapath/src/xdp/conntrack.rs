//! The kernel's connection tracking, by whose entries the program translates addresses (docs/adr/0023).

use super::XdpError;
use crate::sys::kernel_ticks;
use crate::sys::layout::ConntrackTimes;
use crate::system::{LIBERAL, Switch, run_command};
use std::fs;
use std::path::Path;

/// The directory of its settings, of this thread's network namespace.
const SETTINGS: &str = "/proc/sys/net/netfilter";
/// The longest lifetime that the program uses: a connection is extended at half of it.
const LONGEST: u32 = 30 * 24 * 3600;

/// Connection tracking that tolerates packets which it does not see; dropping this restores its settings.
#[derive(Debug)]
pub struct Conntrack {
    times: ConntrackTimes,
    switches: Vec<Switch>,
}

impl Conntrack {
    /// Raises its times, reads them, and makes it tolerant. An error if the kernel has none.
    pub fn prepare() -> Result<Self, XdpError> {
        if !Path::new(SETTINGS).exists() {
            // Where it is a module, packet filters load it, which follow later.
            let loaded = run_command("modprobe nf_conntrack");
            tracing::debug!(?loaded, "connection tracking");
        }
        let hz =
            kernel_ticks().map_err(|source| XdpError::Conntrack { what: "kernel ticks".into(), source })?;
        let mut switches = Switch::lifetimes(&[]);
        let times = ConntrackTimes {
            hz,
            tcp: lifetime("tcp_timeout_established")?,
            udp: lifetime("udp_timeout")?,
            udp_stream: lifetime("udp_timeout_stream")?,
        };
        let liberal = Switch::enable(LIBERAL);
        switches.push(liberal.map_err(|source| XdpError::Conntrack { what: LIBERAL.into(), source })?);
        Ok(Self { times, switches })
    }

    /// The settings that were changed, with their former values.
    pub fn former_settings(&self) -> Vec<(String, String)> {
        self.switches.iter().filter_map(Switch::former).collect()
    }

    /// Restores the values from before a former process at the end.
    pub fn adopt(&mut self, former: &[(String, String)]) {
        self.switches.iter_mut().for_each(|switch| switch.adopt(former));
    }

    /// Leaves the settings to another process.
    pub fn leave(&mut self) {
        self.switches.iter_mut().for_each(Switch::keep);
    }

    pub fn times(&self) -> ConntrackTimes {
        self.times
    }
}

/// A lifetime in milliseconds.
fn lifetime(name: &str) -> Result<u32, XdpError> {
    let path = format!("{SETTINGS}/nf_conntrack_{name}");
    let error = |source| XdpError::Conntrack { what: path.clone(), source };
    let text = fs::read_to_string(&path).map_err(error)?;
    let seconds: u32 = text.trim().parse().map_err(|_| error(std::io::ErrorKind::InvalidData.into()))?;
    Ok(seconds.min(LONGEST) * 1000)
}
