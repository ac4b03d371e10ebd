//! The handover of a running XDP path to that of another process (`crate::handover`): the successor has all sessions in its tables when
//! its program replaces the running one between two packets.

use super::attach::Attached;
use super::conntrack::Conntrack;
use super::{XdpDatapath, XdpError, open_xsk_sockets, prepare};
use crate::config::{DatapathConfig, StartError};
use crate::handover::{Handles, LinkHandle, QueuedOctets};
use crate::portable::PortableDatapath;
use crate::rules::Clock;
use crate::sys::{Hook, wait_for_grace_period};
use pith_upf::contract::SessionId;
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::time::Duration;

/// Longer than a CPU executes a program, if the kernel offers nothing better to wait for.
const LONG_RUN: Duration = Duration::from_millis(50);

/// What a successor takes over, until that is done.
#[derive(Debug, Default)]
pub struct Inherited {
    links: Vec<LinkHandle>,
    /// Sessions with packets queued by the running process: later ones wait behind these in user space.
    pub queueing: HashSet<SessionId>,
}

impl XdpDatapath {
    /// Prepares to succeed a running process: its workers read nothing, and its program is not attached, yet.
    pub fn take_over(config: &DatapathConfig, handles: Handles) -> Result<Self, StartError> {
        let Handles { clock, workers, links, queueing, .. } = handles;
        let hook = hook_of(config, &links)?;
        let clock = Clock::started_at(clock);
        let config = &DatapathConfig { workers: workers.len(), ..config.clone() };
        let (prepared, pools) = prepare(config, &clock)?;
        let portable = PortableDatapath::start_with(config, clock, pools, workers)?;
        let connected = prepared.connect(&portable)?;
        let inherited = Inherited { links, queueing: queueing.into_iter().collect() };
        let xdp = Self::of(config, prepared, (Attached::none(hook), connected), portable);
        Ok(Self { inherited, ..xdp })
    }

    /// Replaces the running program. From then on this one forwards.
    pub fn activate(&mut self) -> Result<(), XdpError> {
        self.attached = self.program.attach(&self.config, std::mem::take(&mut self.inherited.links))?;
        Ok(())
    }

    /// Queues the packets that the former process had queued, and handles all others from now on.
    pub fn go_on(&mut self, packets: Vec<QueuedOctets>) -> io::Result<()> {
        let hook = self.attached.hook;
        self.xsk_sockets = open_xsk_sockets(&self.program, &self.portable, &self.config, (hook, true));
        let sessions: BTreeSet<_> = packets.iter().map(|packet| packet.session).collect();
        self.portable.resume(packets)?;
        self.inherited.queueing.clear();
        sessions.into_iter().for_each(|session| self.mirror(session));
        Ok(())
    }

    /// Renews the former process's settings of the system, which are restored at the end.
    pub fn own_system(&mut self, former: &[(String, String)]) -> Result<(), StartError> {
        if let Some(conntrack) = &mut self.conntrack {
            conntrack.adopt(former);
        }
        self.portable.own_system(&self.config, former)
    }

    /// What a successor needs; this path still runs.
    pub fn handles(&self) -> io::Result<Handles> {
        let conntrack = self.conntrack.as_ref().map(Conntrack::former_settings).unwrap_or_default();
        Ok(Handles {
            clock: self.portable.clock().started(),
            workers: self.portable.worker_handles()?,
            links: self.attached.handles()?,
            settings: self.portable.former_settings().into_iter().chain(conntrack).collect(),
            queueing: self.portable.queueing(),
        })
    }

    /// Reads nothing more from sockets and TUN; the program still forwards.
    pub fn hold(&self) -> io::Result<()> {
        self.portable.hold()
    }

    /// After another program has replaced this one: finishes all packets, except those queued, which it returns. Afterwards the
    /// counters are final.
    pub fn drain(&mut self) -> io::Result<Vec<QueuedOctets>> {
        // A CPU may have fetched this program, but not entered it; or packets wait for the CPU that they were given to.
        if !wait_for_grace_period() || self.config.spread {
            std::thread::sleep(LONG_RUN);
        }
        self.tables.settle();
        let queued = self.portable.drain()?;
        self.xsk_sockets = super::XskSockets::default();
        Ok(queued)
    }

    /// Handles packets again, because there is no successor: in user space also without the program.
    pub fn resume(&mut self, packets: Vec<QueuedOctets>) -> Result<(), XdpError> {
        let reclaimed = self.program.reclaim(&self.attached);
        if !self.uses_af_xdp() {
            let hook = self.attached.hook;
            self.xsk_sockets = open_xsk_sockets(&self.program, &self.portable, &self.config, (hook, true));
        }
        self.portable.resume(packets)?;
        reclaimed
    }

    /// Ends without detaching or restoring anything.
    pub fn leave(mut self) {
        self.attached.leave();
        if let Some(conntrack) = &mut self.conntrack {
            conntrack.leave();
        }
        self.portable.leave();
    }
}

/// The hook of the attachments, which must be the configured one, on the configured devices.
fn hook_of(config: &DatapathConfig, links: &[LinkHandle]) -> Result<Hook, StartError> {
    use crate::config::XdpHook;
    let generic = links.iter().any(|link| link.generic);
    let is_other_hook = match config.xdp_hook {
        XdpHook::Auto => false,
        XdpHook::Native => generic,
        XdpHook::Generic => !generic,
    };
    if is_other_hook {
        return Err(StartError::TakeOver("'upf.xdp' is another hook".into()));
    }
    let devices: BTreeSet<_> = super::devices_there(&config.interfaces).collect();
    if devices != links.iter().map(|link| link.device).collect() {
        return Err(StartError::TakeOver("XDP runs on other interfaces ('upf.interfaces')".into()));
    }
    Ok(if generic { Hook::Generic } else { Hook::Native })
}
