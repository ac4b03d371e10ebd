//! The log of public addresses and ports: a line at the begin and at the end of each session.

use super::port_blocks::{PortBlock, PortBlocks};
use crate::config::{DatapathConfig, UePool};
use pith_upf::contract::{SessionId, UeAddress};
use std::net::Ipv4Addr;

/// The blocks of all networks that have any.
#[derive(Debug, Default)]
pub struct PortLog {
    networks: Vec<(UePool, PortBlocks)>,
}

impl PortLog {
    /// For a configuration.
    pub fn of(config: &DatapathConfig) -> Self {
        let networks = config.policies.iter();
        let networks = networks.filter_map(|policy| Some((policy.pool, policy.port_blocks.clone()?)));
        let networks: Vec<_> = networks.collect();
        for (pool, blocks) in &networks {
            let (addresses, ports) = (blocks.addresses.len(), blocks.ports);
            let pool = format!("{}/{}", pool.gateway, pool.prefix);
            tracing::info!(target: "pith::nat", pool, addresses, ports, "port blocks are computed");
        }
        Self { networks }
    }

    /// Records that a session's addresses changed from `before` to `now`.
    pub fn note(&self, session: SessionId, before: Option<UeAddress>, now: Option<UeAddress>) {
        let [before, now] = [before, now].map(|ue| ue.and_then(|ue| ue.v4));
        if before == now {
            return;
        }
        if let Some((ue, block)) = self.block(before) {
            tell(session, ue, block, "port block released");
        }
        if let Some((ue, block)) = self.block(now) {
            tell(session, ue, block, "port block taken");
        }
    }

    fn block(&self, ue: Option<Ipv4Addr>) -> Option<(Ipv4Addr, PortBlock)> {
        let ue = ue?;
        self.networks.iter().find_map(|(pool, blocks)| Some((ue, blocks.of(*pool, ue)?)))
    }
}

fn tell(session: SessionId, ue: Ipv4Addr, block: PortBlock, what: &str) {
    let seid = format!("{:#x}", session.0);
    let PortBlock { address, first, last } = block;
    tracing::info!(target: "pith::nat", seid, %ue, %address, first, last, "{what}");
}
