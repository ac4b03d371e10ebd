//! Owner map and leases in a server of Redis or Valkey.
//!
//! ```text
//!  pith:ID:instancesSCOPE   hash   each instance: the end of its lease by the server's clock, its process, its description
//!  pith:ID:ownersSCOPE      hash   revision, map
//! ```

use super::super::EngineError;
use super::super::owners::{
    Description, Lease, LiveInstance, OwnerStore, Poll, SetMap, StoredOwners, of_text, to_text,
};
use super::Shared;
use super::connection::{Connection, RequestError, text};
use pith_types::InstanceId;
use redis::{Cmd, Value, cmd};
use std::sync::Arc;
use std::time::Duration;

/// The script of all operations: each is one atomic step.
const SET: &str = include_str!("set.lua");

/// The owner map of a set.
pub struct RedisOwners {
    shared: Arc<Shared>,
    connection: Option<(Connection, String)>,
}

impl RedisOwners {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared, connection: None }
    }

    fn connect(&mut self) -> Result<&mut (Connection, String), RequestError> {
        if self.connection.is_none() {
            let mut connection = Connection::open(&self.shared.access)?;
            let loaded = connection.command(cmd("SCRIPT").arg("LOAD").arg(SET))?;
            self.connection = Some((connection, text(&loaded)));
        }
        self.connection.as_mut().ok_or_else(|| RequestError::new("no connection"))
    }

    /// Calls the script. A connection that broke is opened again once: each operation may be repeated, and a `replace` that was
    /// made and is repeated finds another revision.
    fn call(&mut self, arguments: &[&str]) -> Result<Vec<String>, EngineError> {
        let keys = ["instances", "owners"]
            .map(|name| format!("{}:{name}{}", self.shared.namespace, self.shared.scope));
        let mut is_second = false;
        loop {
            let attempt = self.connect().and_then(|(connection, script)| {
                let mut call: Cmd = cmd("EVALSHA");
                call.arg(script.as_str()).arg(keys.len()).arg(&keys).arg(arguments);
                connection.command(&call)
            });
            match attempt {
                Ok(Value::Array(values)) => return Ok(values.iter().map(text).collect()),
                Ok(_) => return Err(self.failed("its reply is not that of Pith's script")),
                Err(error) => {
                    self.connection = None;
                    if is_second || !error.is_retriable {
                        return Err(self.failed(error.reason));
                    }
                }
            }
            is_second = true;
        }
    }

    fn failed(&self, reason: impl Into<String>) -> EngineError {
        EngineError::Remote { server: self.shared.access.url.to_string(), reason: reason.into() }
    }
}

fn live(entry: &[String]) -> Option<(InstanceId, LiveInstance)> {
    let [instance, incarnation, left, description] = entry else { return None };
    let description: Description = serde_json::from_str(description).ok()?;
    let left = Duration::from_millis(left.parse().ok()?);
    let live = LiveInstance { incarnation: incarnation.parse().ok()?, left, description };
    Some((InstanceId(instance.parse().ok()?), live))
}

impl OwnerStore for RedisOwners {
    fn poll(&mut self, lease: Option<&Lease>, takes_over: bool) -> Result<Poll, EngineError> {
        let reply = match lease {
            None => self.call(&["poll", "", "", "", "", ""])?,
            Some(lease) => {
                let description = serde_json::to_string(&lease.description).unwrap_or_default();
                let (instance, incarnation) = (lease.instance.0.to_string(), lease.incarnation.to_string());
                let lasts = lease.lasts.as_millis().to_string();
                let takes_over = if takes_over { "1" } else { "" };
                self.call(&["poll", &instance, &incarnation, &lasts, &description, takes_over])?
            }
        };
        let (revision, entries) = reply.split_first().ok_or_else(|| self.failed("its reply is empty"))?;
        let revision = revision.parse().map_err(|_| self.failed("its owner map has no revision"))?;
        let (instances, gone): (Vec<_>, Vec<_>) =
            entries.chunks(4).filter_map(live).partition(|(_, live)| !live.left.is_zero());
        let gone = gone.into_iter().map(|(instance, live)| (instance, live.description)).collect();
        Ok(Poll { revision, instances: instances.into_iter().collect(), gone })
    }

    fn leave(&mut self, lease: &Lease) -> Result<(), EngineError> {
        self.call(&["leave", &lease.instance.0.to_string(), &lease.incarnation.to_string()]).map(drop)
    }

    fn read(&mut self) -> Result<Option<StoredOwners>, EngineError> {
        let reply = self.call(&["read"])?;
        let [revision, map] = reply.as_slice() else { return Err(self.failed("its reply is too short")) };
        let revision = revision.parse().map_err(|_| self.failed("its owner map has no revision"))?;
        if map.is_empty() || revision == 0 {
            return Ok(None);
        }
        let map = of_text(map).ok_or(EngineError::OwnerMap)?;
        Ok(Some(StoredOwners { revision, map }))
    }

    fn replace(&mut self, revision: u64, map: &SetMap) -> Result<bool, EngineError> {
        let reply = self.call(&["replace", &revision.to_string(), &to_text(map)])?;
        Ok(reply.first().is_some_and(|reply| reply == "1"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::owners::tests::{check_leases, check_map};
    use super::super::server::Server;

    #[test]
    fn a_server_keeps_map_and_leases() {
        let Some(mut server) = Server::start(&[]) else { return };
        let store = server.store();
        check_map(&mut store.owners());
        check_leases(&mut store.owners());
        let mut owners = store.owners();
        server.kill();
        assert!(super::OwnerStore::read(&mut owners).is_err());
        assert!(server.resume());
        check_map(&mut owners);
    }
}
