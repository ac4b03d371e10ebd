//! Routes that only one network's packets take: a routing table of its own, and a rule that leads there.

use super::policy::{NetworkPolicy, StaticRoute};
use super::route::{Route, Rule, TableRoute};
use crate::config::{DatapathConfig, StartError};

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
    /// Those of all networks that have some. Rules that an unclean end left behind go first.
    pub fn set_up(config: &DatapathConfig) -> Result<Vec<Self>, StartError> {
        open(config)?.delete_rules(&config.tun);
        let networks = config.policies.iter().zip(0..).filter(|(policy, _)| !policy.routes.is_empty());
        networks.map(|(policy, number)| Self::of(config, policy, number)).collect()
    }

    fn of(config: &DatapathConfig, policy: &NetworkPolicy, number: u32) -> Result<Self, StartError> {
        let (mut route, table) = (open(config)?, table(&config.tun, number));
        // Those by other interfaces than the TUN outlive an unclean end.
        route
            .delete_routes(table)
            .map_err(StartError::setup(format!("clearing the routing table {table}")))?;
        let rule = Rule {
            from: policy.pool.network(),
            interface: config.tun.clone(),
            table,
            priority: FIRST_PRIORITY + number,
        };
        let leading = format!("leading {} to its routes", policy.pool.gateway);
        route.add_rule(&rule).map_err(StartError::setup(leading))?;
        let mut routes = Self { route, rule, routes: Vec::new() };
        // UEs are reached as ever, whatever the routes say.
        for pool in &config.pools {
            routes.add(TableRoute { table, to: pool.network(), via: None })?;
        }
        for StaticRoute { to, via } in &policy.routes {
            routes.add(TableRoute { table, to: *to, via: Some(*via) })?;
        }
        Ok(routes)
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
        if let Err(error) = self.route.delete_rule(&self.rule) {
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

fn open(config: &DatapathConfig) -> Result<Route, StartError> {
    Route::open(&config.tun).map_err(StartError::setup(format!("finding interface {}", config.tun)))
}

/// The table of a network's routes, by the interface's name: the same after an unclean end, so that what is left there
/// is found, and another UPF's is another.
fn table(tun: &str, number: u32) -> u32 {
    // FNV-1a
    let hash =
        tun.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    0x5000_0000 | (hash & 0x000f_ffff) << 8 | number & 0xff
}
