//! TUN interfaces of UEs: programs of this host use a UE's session through one (`ping -I ue1 …`).

use anyhow::{Context, Result};
use pith_datapath::UeTun;
use pith_ran::gnb::UeKey;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

/// Maximum packet size that fits into 1500 octets on N3 with its headers.
const MTU: u16 = 1400;
/// Packets read for one UE before the next UE is served.
const BURST: usize = 64;

/// The interfaces, by UE.
pub struct Tuns {
    /// Prefix of the interfaces' names; `None` for no interfaces.
    prefix: Option<String>,
    open: BTreeMap<UeKey, (u8, UeTun)>,
    buffer: Vec<u8>,
}

impl Tuns {
    /// No interfaces yet.
    pub fn new(prefix: Option<String>) -> Self {
        Self { prefix, open: BTreeMap::new(), buffer: vec![0; MTU.into()] }
    }

    /// Creates the interface of a UE's session, with its IPv4 and its link-local address.
    pub fn open(
        &mut self,
        ue: UeKey,
        session: u8,
        (v4, link_local): (Option<Ipv4Addr>, Option<Ipv6Addr>),
    ) -> Result<()> {
        let Some(prefix) = &self.prefix else { return Ok(()) };
        let name = format!("{prefix}{}", ue.0 + 1);
        let tun = UeTun::open(&name, v4, link_local, MTU).with_context(|| {
            format!("creating interface {name}, which needs CAP_NET_ADMIN and /dev/net/tun")
        })?;
        self.open.insert(ue, (session, tun));
        Ok(())
    }

    /// Removes a UE's interface.
    pub fn close(&mut self, ue: UeKey) {
        self.open.remove(&ue);
    }

    /// Readable when a program has sent a packet.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.open.values().map(|(_, tun)| tun.as_fd())
    }

    /// Passes the packets of programs to `take`.
    pub fn read(&mut self, mut take: impl FnMut(UeKey, u8, &[u8])) {
        for (ue, (session, tun)) in &self.open {
            for _ in 0..BURST {
                let Ok(length) = tun.read(&mut self.buffer) else { break };
                take(*ue, *session, self.buffer.get(..length).unwrap_or_default());
            }
        }
    }

    /// Passes a packet to programs. If the queue is full it is dropped, as in a network.
    pub fn write(&self, ue: UeKey, packet: &[u8]) {
        if let Some((_, tun)) = self.open.get(&ue) {
            let _ = tun.write(packet);
        }
    }
}
