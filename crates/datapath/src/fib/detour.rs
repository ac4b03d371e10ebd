//! ForeignRules of the host that the XDP program does not know: while there are any, packets from and to the data network take the kernel's
//! forwarding by the portable path.

use crate::automatic::{bypassed_rules, foreign_routes};
use crate::config::{DatapathConfig, PathChoice};
use crate::sys::NetlinkSocket;
use crate::system::has_silent_rules;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// `RTMGRP_*_ROUTE` and `RTMGRP_*_RULE` of IPv4 and IPv6.
const ROUTING: u32 = 0x40 | 0x400 | 0x80 | 1 << 18;

/// Why packets take the detour; `None`: they do not.
#[derive(Debug, Clone, Default)]
pub struct Detour(Arc<Mutex<Option<String>>>);

impl Detour {
    /// The reason, for status and log.
    pub fn reason(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, reason: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }
}

/// Compares states by their reason.
impl PartialEq for Detour {
    fn eq(&self, other: &Self) -> bool {
        self.reason() == other.reason()
    }
}

impl Eq for Detour {}

/// Sets whether the program leaves packets to the kernel.
pub type Switch = Box<dyn FnMut(bool) -> io::Result<()> + Send>;

/// Finds such rules, and switches the program.
pub struct ForeignRules {
    config: DatapathConfig,
    detour: Detour,
    switch: Switch,
    pub routing: NetlinkSocket,
    pub filter: NetlinkSocket,
    is_filtered: bool,
}

impl ForeignRules {
    /// Subscribes before the first check, so that no change in between is missed.
    pub fn follow(config: &DatapathConfig, detour: Detour, switch: Switch) -> io::Result<Self> {
        let (routing, filter) = (NetlinkSocket::subscribe(ROUTING)?, NetlinkSocket::subscribe_to_nftables()?);
        let mut rules = Self { config: config.clone(), detour, switch, routing, filter, is_filtered: false };
        rules.check();
        Ok(rules)
    }

    /// Whether the kernel may have rules of whose change it does not notify.
    pub fn may_differ(&self) -> bool {
        self.is_filtered || has_silent_rules()
    }

    /// Looks for rules. `upf.datapath: xdp` asks for XDP whatever the packet filter has, but packets must take the right way.
    pub fn check(&mut self) {
        let permits = self.config.bypass_firewall || self.config.path == PathChoice::Xdp;
        let filter = if permits { Vec::new() } else { bypassed_rules(&self.config) };
        self.is_filtered = !filter.is_empty();
        let filter = self.is_filtered.then(|| {
            format!(
                "rules of this host's packet filter ({}); 'upf.bypass_firewall: true' permits to bypass them",
                filter.join(", ")
            )
        });
        let reason = foreign_routes(&self.config, &self.config.interfaces).or(filter);
        if reason == self.detour.reason() {
            return;
        }
        if let Err(error) = (self.switch)(reason.is_some()) {
            return tracing::error!(%error, "the XDP program's switch for the kernel's forwarding could not be set");
        }
        match &reason {
            Some(reason) => {
                tracing::warn!("user plane: packets from and to N6 take the kernel's forwarding: {reason}")
            }
            None => tracing::info!("user plane: XDP forwards packets from and to N6 again"),
        }
        self.detour.set(reason);
    }
}
