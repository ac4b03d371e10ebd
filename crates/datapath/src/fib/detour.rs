//! Rules of the host that the XDP program does not know. While there are any, packets from and to the data network take the kernel's
//! forwarding by the portable path.

use crate::automatic::{bypassed_rules, foreign_routes};
use crate::config::{DatapathConfig, PathChoice};
use crate::sys::NetlinkSocket;
use crate::system::{RouteMtus, has_silent_rules, route_mtus};
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

/// What a program has to know of the host's rules.
pub struct ProgramSettings {
    /// Sets whether the program leaves packets to the kernel.
    pub detour: Box<dyn FnMut(bool) -> io::Result<()> + Send>,
    /// Replaces the MTUs of routes.
    pub route_mtus: Box<dyn FnMut(&RouteMtus) -> io::Result<()> + Send>,
}

/// Finds such rules, and switches the program.
pub struct ForeignRules {
    config: DatapathConfig,
    detour: Detour,
    program: ProgramSettings,
    pub routing: NetlinkSocket,
    pub filter: NetlinkSocket,
    /// Whether there were rules of whose change the kernel does not notify.
    silent: bool,
    has_failed: bool,
}

impl ForeignRules {
    /// Subscribes before the first check, so that no change in between is missed.
    pub fn follow(config: &DatapathConfig, detour: Detour, program: ProgramSettings) -> io::Result<Self> {
        let (routing, filter) = (NetlinkSocket::subscribe(ROUTING)?, NetlinkSocket::subscribe_to_nftables()?);
        let mut rules = Self {
            config: config.clone(),
            detour,
            program,
            routing,
            filter,
            silent: false,
            has_failed: false,
        };
        rules.check();
        Ok(rules)
    }

    /// Whether a check is needed without a notification.
    pub fn may_differ(&self) -> bool {
        self.has_failed || (!self.permits() && (self.silent || has_silent_rules()))
    }

    /// `upf.datapath: xdp` asks for XDP whatever the packet filter has.
    fn permits(&self) -> bool {
        self.config.bypass_firewall || self.config.path == PathChoice::Xdp
    }

    /// Copies the MTUs of routes into the program; why it cannot keep to them.
    fn follow_mtus(&mut self) -> Option<String> {
        let copied = route_mtus().and_then(|mtus| (self.program.route_mtus)(&mtus));
        let error = copied.err()?;
        self.has_failed = true;
        Some(format!("the MTUs of routes cannot be followed ({error})"))
    }

    /// Looks for rules.
    pub fn check(&mut self) {
        self.has_failed = false;
        self.silent = has_silent_rules();
        let filter = if self.permits() { Vec::new() } else { bypassed_rules(&self.config) };
        let filter = (!filter.is_empty()).then(|| {
            let chains = filter.join(", ");
            format!("rules of this host's packet filter ({chains}); 'upf.bypass_firewall: true' permits to bypass them")
        });
        let routes = foreign_routes(&self.config, &self.config.interfaces).unwrap_or_else(|error| {
            self.has_failed = true;
            Some(format!("the kernel's routing rules cannot be read ({error})"))
        });
        let reason = routes.or_else(|| self.follow_mtus()).or(filter);
        if reason == self.detour.reason() {
            return;
        }
        if let Err(error) = (self.program.detour)(reason.is_some()) {
            self.has_failed = true;
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
