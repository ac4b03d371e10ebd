//! The way to a core: its REST API where one runs, else the same handlers on its database's file.

use crate::args::Cli;
use crate::place;
use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use hyper::{Method, Request, Response};
use pith_runtime::api::{Api, ApiHandler};
use pith_runtime::config::Config;
use pith_runtime::http::{CallError, Client, Handler, Limits};
use pith_runtime::store::{Database, Place};
use serde_json::Value;
use std::future::Future;
use std::time::Duration;
use tokio::task::LocalSet;

/// Bodies of the API may be large: all subscribers of a network.
const LIMITS: Limits = Limits { time: Duration::from_secs(60), body: 1 << 30, exchanges: 1 };

/// A way to a core.
pub struct Operator {
    way: Way,
    runtime: tokio::runtime::Runtime,
    tasks: LocalSet,
}

enum Way {
    Remote { client: Client, root: String, token: Option<String> },
    File(Box<ApiHandler>),
}

impl Operator {
    /// To the core that runs with this configuration.
    pub fn of_running_core(cli: &Cli) -> Result<Self> {
        let config = place::config(cli)?;
        match Self::connect(&config)? {
            Some(operator) => Ok(operator),
            None => bail!(
                "no core runs here (nothing answers at {}): start one with 'pith up'",
                config.api.listen
            ),
        }
    }

    /// To that core, or, where none runs, to its database's file.
    pub fn of_subscribers(cli: &Cli) -> Result<Self> {
        let config = place::config(cli)?;
        if let Some(operator) = Self::connect(&config)? {
            return Ok(operator);
        }
        let Some(path) = config.store.path.file() else {
            bail!(
                "no core runs here (nothing answers at {}), and 'store.path: memory' keeps nothing to change without one",
                config.api.listen
            );
        };
        let database = Database::open(&Place::File(path))?;
        let api = Api::on_database(database, config).context("can't start the database's thread")?;
        Self::new(Way::File(Box::new(ApiHandler(api))))
    }

    /// The API of that configuration, if something answers there.
    fn connect(config: &Config) -> Result<Option<Self>> {
        let token = config.api.token()?;
        let way =
            Way::Remote { client: Client::new(LIMITS), root: format!("http://{}", reachable(config)), token };
        let operator = Self::new(way)?;
        match operator.send(Method::GET, "/v1/status", "", Bytes::new()) {
            Ok(_) => Ok(Some(operator)),
            Err(error) if matches!(error.downcast_ref(), Some(CallError::Unreachable(..))) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn new(way: Way) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { way, runtime, tasks: LocalSet::new() })
    }

    /// Reads something.
    pub fn get(&self, path: &str) -> Result<Value> {
        self.send(Method::GET, path, "", Bytes::new())
    }

    /// Sends JSON, or a JSON object a line.
    pub fn post(&self, path: &str, content: &str, body: Bytes) -> Result<Value> {
        self.send(Method::POST, path, content, body)
    }

    /// Deletes something.
    pub fn delete(&self, path: &str) -> Result<Value> {
        self.send(Method::DELETE, path, "", Bytes::new())
    }

    fn send(&self, method: Method, path: &str, content: &str, body: Bytes) -> Result<Value> {
        let mut request = Request::builder().method(method);
        if !content.is_empty() {
            request = request.header("content-type", content);
        }
        let response = match &self.way {
            Way::Remote { client, root, token } => {
                if let Some(token) = token {
                    request = request.header("authorization", format!("Bearer {token}"));
                }
                let request = request.uri(format!("{root}{path}")).body(body)?;
                self.wait(client.call(request))?
            }
            Way::File(handler) => {
                let request = request.uri(path).header("host", "localhost").body(body)?;
                self.wait(handler.handle(request))
            }
        };
        outcome(&response)
    }

    fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(self.tasks.run_until(work))
    }
}

/// The address of the API for clients on the same machine.
fn reachable(config: &Config) -> std::net::SocketAddr {
    let mut address = config.api.listen;
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            [127, 0, 0, 1].into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
    }
    address
}

/// The body of a success, or the sentence of a failure.
fn outcome(response: &Response<Bytes>) -> Result<Value> {
    let body: Value = match response.body() {
        empty if empty.is_empty() => Value::Null,
        body => {
            serde_json::from_slice(body).context("what answers is no Pith core: its answer is not JSON")?
        }
    };
    if response.status().is_success() {
        return Ok(body);
    }
    let detail = body["detail"].as_str().unwrap_or("the core refused");
    Err(anyhow!("{detail}"))
}
