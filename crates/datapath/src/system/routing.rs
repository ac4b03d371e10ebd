//! Routes that only one network's packets take: a routing table of its own, and a rule that leads there.

use super::policy::{NetworkPolicy, StaticRoute};
use super::route::{Route, Rule, TableRoute};
use crate::config::{DatapathConfig, StartError, UePool};
use pith_upf::contract::AddressRange;
use std::io;
use std::net::IpAddr;

/// Rules stand before that of the main table (32766), in the order of networks.
const FIRST_PRIORITY: u32 = 20_000;

/// A network's routes; dropping it takes them away.
#[derive(Debug)]
pub struct NetworkRoutes {
    route: Route,
    rule: Rule,
    routes: Vec<TableRoute>,
}

impl NetworkRoutes {
    /// Those of all networks that have some.
    pub fn set_up(config: &DatapathConfig) -> Result<Vec<Self>, StartError> {
        let networks = config.policies.iter().zip(0..).filter(|(policy, _)| !policy.routes.is_empty());
        networks.map(|(policy, number)| Self::of(config, policy, number)).collect()
    }

    fn of(config: &DatapathConfig, policy: &NetworkPolicy, number: u32) -> Result<Self, StartError> {
        let open = Route::open(&config.tun);
        let route = open.map_err(StartError::setup(format!("finding interface {}", config.tun)))?;
        let rule = Rule {
            from: network(policy.pool),
            interface: config.tun.clone(),
            table: table(number),
            priority: FIRST_PRIORITY + number,
        };
        let mut routes = Self { route, rule, routes: Vec::new() };
        routes.lead().map_err(StartError::setup(format!("leading {} to its routes", policy.pool.gateway)))?;
        // UEs are reached as ever, whatever the routes say.
        for pool in &config.pools {
            routes.add(TableRoute { table: table(number), to: network(*pool), via: None })?;
        }
        for StaticRoute { to, via } in &policy.routes {
            routes.add(TableRoute { table: table(number), to: *to, via: Some(*via) })?;
        }
        Ok(routes)
    }

    /// Adds the rule; one that an unclean end left behind goes first.
    fn lead(&mut self) -> io::Result<()> {
        while self.route.delete_rule(&self.rule, None).is_ok() {}
        self.route.add_rule(&self.rule)
    }

    fn add(&mut self, route: TableRoute) -> Result<(), StartError> {
        let failed = StartError::setup(format!("adding the route {route}"));
        self.route.add_route(&route).map_err(failed)?;
        self.routes.push(route);
        Ok(())
    }
}

impl Drop for NetworkRoutes {
    fn drop(&mut self) {
        let table = Some(self.rule.table);
        if let Err(error) = self.route.delete_rule(&self.rule, table) {
            tracing::warn!(priority = self.rule.priority, %error, "a routing rule stays");
        }
        for route in &self.routes {
            // Routes to UEs are gone with their interface.
            if let Err(error) = self.route.delete_route(route)
                && route.via.is_some()
            {
                tracing::warn!(%route, %error, "a route stays");
            }
        }
    }
}

/// Tables of this process: what an unclean end of another left in its own, no rule leads to any more.
fn table(number: u32) -> u32 {
    0x5000_0000 | (std::process::id() & 0x000f_ffff) << 8 | number & 0xff
}

/// A pool's network.
fn network(pool: UePool) -> AddressRange {
    let address = match pool.gateway {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(pool.prefix.min(32))).unwrap_or(0);
            std::net::Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(pool.prefix.min(128))).unwrap_or(0);
            std::net::Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    };
    AddressRange { address, prefix: pool.prefix }
}
