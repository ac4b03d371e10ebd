//! Routes to networks behind UEs, by the TUN interface.

use super::route::{Route, TableRoute};
use pith_upf::contract::AddressRange;
use std::collections::HashMap;

/// The system's main routing table.
const MAIN: u32 = 254;

/// The routes, which are gone with the interface.
#[derive(Debug)]
pub struct FramedRoutes {
    tun: String,
    /// Opened when the first is needed.
    route: Option<Route>,
    /// How many sessions have each network.
    users: HashMap<AddressRange, usize>,
}

impl FramedRoutes {
    /// None yet, by that interface.
    pub fn new(tun: &str) -> Self {
        Self { tun: tun.to_owned(), route: None, users: HashMap::new() }
    }

    /// Leads packets for these networks to the interface. What can't be led is said, and nothing else fails.
    pub fn add(&mut self, networks: &[AddressRange]) {
        for network in networks {
            let users = self.users.entry(*network).or_default();
            *users += 1;
            if *users == 1 {
                self.change(*network, "added", Route::add_route);
            }
        }
    }

    /// Leads them there no longer, where no other session has them.
    pub fn remove(&mut self, networks: &[AddressRange]) {
        for network in networks {
            let Some(users) = self.users.get_mut(network) else { continue };
            *users -= 1;
            if *users == 0 {
                self.users.remove(network);
                self.change(*network, "deleted", Route::delete_route);
            }
        }
    }

    fn change(
        &mut self,
        to: AddressRange,
        done: &str,
        change: fn(&mut Route, &TableRoute) -> std::io::Result<()>,
    ) {
        let route = TableRoute { table: MAIN, to, via: None };
        if self.route.is_none() {
            self.route = Route::open(&self.tun).ok();
        }
        let Some(socket) = &mut self.route else {
            return tracing::warn!(%route, "a framed route can't be {done}: there is no interface {}", self.tun);
        };
        if let Err(error) = change(socket, &route) {
            tracing::warn!(%route, %error, "a framed route can't be {done}");
        }
    }
}
