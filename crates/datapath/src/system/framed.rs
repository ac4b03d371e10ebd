//! Framed routes: routes by the TUN interface to networks behind UEs.

use super::route::{Route, TableRoute};
use pith_upf::contract::AddressRange;
use std::collections::HashMap;

/// The kernel's main routing table.
const MAIN: u32 = 254;

/// The routes; they end with the interface.
#[derive(Debug)]
pub struct FramedRoutes {
    tun: String,
    /// Opened for the first route.
    route: Option<Route>,
    /// The number of sessions with each network.
    users: HashMap<AddressRange, usize>,
    /// Whether another process's routes are still there: those of the sessions that this one takes over.
    inherits: bool,
}

impl FramedRoutes {
    /// No routes yet, by that interface; or with `inherits` those of another process.
    pub fn new(tun: &str, inherits: bool) -> Self {
        Self { tun: tun.to_owned(), route: None, users: HashMap::new(), inherits }
    }

    /// From now on, routes of sessions are added and deleted.
    pub fn own(&mut self) {
        self.inherits = false;
    }

    /// Adds routes to these networks by the interface. Failures are logged and have no other effect.
    pub fn add(&mut self, networks: &[AddressRange]) {
        for network in networks {
            let users = self.users.entry(*network).or_default();
            *users += 1;
            if *users == 1 {
                self.change(*network, "added", Route::add_route);
            }
        }
    }

    /// Removes the routes that no other session has.
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
        if self.inherits {
            return;
        }
        let route = TableRoute { table: MAIN, to, via: None };
        if self.route.is_none() {
            self.route = Route::open(&self.tun).ok();
        }
        let Some(socket) = &mut self.route else {
            return tracing::warn!(%route, "a framed route could not be {done}: there is no interface {}", self.tun);
        };
        if let Err(error) = change(socket, &route) {
            tracing::warn!(%route, %error, "a framed route could not be {done}");
        }
    }
}
