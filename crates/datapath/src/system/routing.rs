//! Routes for the packets of one data network only: its own routing table, and a rule that selects it.

use super::policy::{NetworkPolicy, StaticRoute};
use super::route::{Route, Rule, TableRoute};
use crate::config::{DatapathConfig, StartError};

/// The rules precede that of the main table (32766), in the order of networks.
const FIRST_PRIORITY: u32 = 20_000;

/// A network's routes; dropping this removes them.
#[derive(Debug)]
pub struct NetworkRoutes {
    route: Route,
    rule: Rule,
    routes: Vec<TableRoute>,
}

impl NetworkRoutes {
    /// Sets up the routes of all networks that have any, after removing rules that a killed process left.
    pub fn set_up(config: &DatapathConfig) -> Result<Vec<Self>, StartError> {
        open(config)?.delete_rules(&config.tun);
        let networks = config.policies.iter().zip(0..).filter(|(policy, _)| !policy.routes.is_empty());
        networks.map(|(policy, number)| Self::of(config, policy, number)).collect()
    }

    /// The routes that a former process has set up by the same configuration.
    pub fn inherit(config: &DatapathConfig) -> Result<Vec<Self>, StartError> {
        let networks = config.policies.iter().zip(0..).filter(|(policy, _)| !policy.routes.is_empty());
        let of = |(policy, number)| {
            let (route, rule) = (open(config)?, rule(config, policy, number));
            let routes = table_routes(config, policy, rule.table).collect();
            Ok(Self { route, rule, routes })
        };
        networks.map(of).collect()
    }

    fn of(config: &DatapathConfig, policy: &NetworkPolicy, number: u32) -> Result<Self, StartError> {
        let (mut route, rule) = (open(config)?, rule(config, policy, number));
        let table = rule.table;
        // Routes by interfaces other than TUN outlive a killed process.
        route
            .delete_routes(table)
            .map_err(StartError::setup(format!("clearing the routing table {table}")))?;
        let leading = format!("leading {} to its routes", policy.pool.gateway);
        route.add_rule(&rule).map_err(StartError::setup(leading))?;
        let mut routes = Self { route, rule, routes: Vec::new() };
        table_routes(config, policy, table).try_for_each(|route| routes.add(route))?;
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
            tracing::warn!(priority = self.rule.priority, %error, "a routing rule could not be removed");
        }
        for route in &self.routes {
            // The kernel removed the routes to UEs with their interface.
            if let Err(error) = self.route.delete_route(route)
                && route.via.is_some()
            {
                tracing::warn!(%route, %error, "a route could not be removed");
            }
        }
    }
}

/// The rule that selects a network's table.
fn rule(config: &DatapathConfig, policy: &NetworkPolicy, number: u32) -> Rule {
    Rule {
        from: policy.pool.network(),
        interface: config.tun.clone(),
        table: table(&config.tun, number),
        priority: FIRST_PRIORITY + number,
    }
}

/// The routes of a network's table. Routes to UEs take precedence over the network's routes.
fn table_routes<'a>(
    config: &'a DatapathConfig,
    policy: &'a NetworkPolicy,
    table: u32,
) -> impl Iterator<Item = TableRoute> + 'a {
    let to_ues = config.pools.iter().map(move |pool| TableRoute { table, to: pool.network(), via: None });
    let routes = policy.routes.iter();
    to_ues.chain(routes.map(move |StaticRoute { to, via }| TableRoute { table, to: *to, via: Some(*via) }))
}

fn open(config: &DatapathConfig) -> Result<Route, StartError> {
    Route::open(&config.tun).map_err(StartError::setup(format!("finding interface {}", config.tun)))
}

/// The number of a network's table, derived from the interface's name: a restarted process gets the same
/// number and finds old routes; another UPF gets another number.
fn table(tun: &str, number: u32) -> u32 {
    // FNV-1a
    let hash =
        tun.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    0x5000_0000 | (hash & 0x000f_ffff) << 8 | number & 0xff
}
