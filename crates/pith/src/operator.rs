//! Access to a core: through the REST API of a running core, or with the same handlers on its database file.

use crate::args::Cli;
use crate::config_file;
use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use hyper::{Method, Request, Response};
use pith_runtime::api::{Api, ApiHandler};
use pith_runtime::config::{Config, HostedNf};
use pith_runtime::http::{CallError, Client, Handler, Limits};
use pith_runtime::store::{Database, DatabaseLocation, StoreThread};
use pith_runtime::token::ShardToken;
use serde_json::Value;
use std::fs;
use std::future::Future;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

/// Limits for large bodies: all subscribers of a network.
const LIMITS: Limits = Limits {
    time: Duration::from_secs(60),
    body_time: Duration::from_secs(60),
    body: 1 << 30,
    buffered: 1 << 30,
    exchanges: 1,
};

/// Environment variable with an API token, for cores at a TCP address.
const TOKEN_VARIABLE: &str = "PITH_TOKEN";

/// Access to a core.
pub struct Operator {
    access: CoreAccess,
    runtime: Runtime,
    tasks: LocalSet,
}

enum CoreAccess {
    /// A running core. For a Unix socket, the authority is a placeholder.
    Remote { client: Client, authority: String, token: Option<String> },
    File {
        /// Path of the database, for messages.
        path: String,
        handler: Option<ApiHandler>,
        thread: Option<StoreThread<ShardToken>>,
    },
}

impl Operator {
    /// Connects to the running core of this configuration: to its process with the given NF, if any.
    pub fn of_running_core(cli: &Cli, nf: Option<&str>) -> Result<Self> {
        let config = config_file::config(cli)?;
        match Self::connect(&config, nf)? {
            Some(operator) => Ok(operator),
            None => {
                let what =
                    nf.map_or_else(|| "core".into(), |nf| format!("core with the {}", nf.to_uppercase()));
                bail!(
                    "no {what} is running (no answer at {}): start one with 'pith up'",
                    config.api_socket(None).display()
                )
            }
        }
    }

    /// Connects to the running core, or else opens its database file.
    pub fn of_subscribers(cli: &Cli) -> Result<Self> {
        let config = config_file::config(cli)?;
        if let Some(operator) = Self::connect(&config, Some("udr"))? {
            return Ok(operator);
        }
        let location = config.store.location();
        if location == DatabaseLocation::Memory {
            bail!(
                "no core is running (no answer at {}), and with 'store.path: memory' there is no database to change",
                config.api_socket(None).display()
            );
        }
        let database = Database::open(&location)?;
        let path = config.store.path.file().map(|path| path.display().to_string()).unwrap_or_default();
        let (api, thread) =
            Api::on_database(database, config).context("cannot start the database's thread")?;
        Self::new(CoreAccess::File { path, handler: Some(ApiHandler::new(api)), thread: Some(thread) })
    }

    /// Connects to the core's process with the NF, if one answers.
    fn connect(config: &Config, nf: Option<&str>) -> Result<Option<Self>> {
        for socket in sockets(config).into_iter().filter(|socket| socket.exists()) {
            match UnixStream::connect(&socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::PermissionDenied => bail!(
                    "no permission to use {}: run this as root or as the user that runs the core, or see 'api.socket_group'",
                    socket.display()
                ),
                // The socket is left from a killed process.
                Err(_) => continue,
            }
            let client = Client::over(socket, LIMITS);
            let operator =
                Self::new(CoreAccess::Remote { client, authority: "localhost".into(), token: None })?;
            if operator.hosts(nf)? {
                return Ok(Some(operator));
            }
        }
        Self::connect_by_address(config, nf)
    }

    /// The same for a core at a TCP address, if there is a token.
    fn connect_by_address(config: &Config, nf: Option<&str>) -> Result<Option<Self>> {
        let Some(token) = std::env::var(TOKEN_VARIABLE).ok().or(config.api.token()?) else { return Ok(None) };
        for address in config.api.listen.iter().flat_map(|listen| addresses(config, *listen)) {
            let (client, authority) = (Client::new(LIMITS), address.to_string());
            let operator = Self::new(CoreAccess::Remote { client, authority, token: Some(token.clone()) })?;
            if operator.hosts(nf)? {
                return Ok(Some(operator));
            }
        }
        Ok(None)
    }

    /// Whether the process answers and hosts the NF, if given.
    fn hosts(&self, nf: Option<&str>) -> Result<bool> {
        match self.get("/v1/status") {
            Ok(status) => {
                let mut hosted = status["nfs"].as_array().into_iter().flatten().filter_map(Value::as_str);
                Ok(nf.is_none_or(|nf| hosted.any(|hosted| hosted == nf)))
            }
            Err(error) if matches!(error.downcast_ref(), Some(CallError::Unreachable(..))) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn new(access: CoreAccess) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { access, runtime, tasks: LocalSet::new() })
    }

    /// Location of the changed data, for messages.
    pub fn target(&self) -> String {
        match &self.access {
            CoreAccess::Remote { authority, .. } => format!("in the running core ({authority})"),
            CoreAccess::File { path, .. } => format!("in {path}; no core is running"),
        }
    }

    /// Sends a GET request.
    pub fn get(&self, path: &str) -> Result<Value> {
        self.send(Method::GET, path, "", Bytes::new())
    }

    /// Sends a POST request with JSON, or one JSON object per line.
    pub fn post(&self, path: &str, content: &str, body: Bytes) -> Result<Value> {
        self.send(Method::POST, path, content, body)
    }

    /// Sends a PUT request.
    pub fn put(&self, path: &str, content: &str, body: Bytes) -> Result<Value> {
        self.send(Method::PUT, path, content, body)
    }

    /// Sends a DELETE request.
    pub fn delete(&self, path: &str) -> Result<Value> {
        self.send(Method::DELETE, path, "", Bytes::new())
    }

    fn send(&self, method: Method, path: &str, content: &str, body: Bytes) -> Result<Value> {
        let mut request = Request::builder().method(method);
        if !content.is_empty() {
            request = request.header("content-type", content);
        }
        let response = match &self.access {
            CoreAccess::Remote { client, authority, token } => {
                if let Some(token) = token {
                    request = request.header("authorization", format!("Bearer {token}"));
                }
                let request = request.uri(format!("http://{authority}{path}")).body(body)?;
                self.wait(client.call(request))?
            }
            CoreAccess::File { handler, .. } => {
                let request = request.uri(path).header("host", "localhost").body(body)?;
                let handler = handler.as_ref().context("the database is closed")?;
                self.wait(handler.handle(request))
            }
        };
        outcome(&response)
    }

    fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(self.tasks.run_until(work))
    }
}

impl Drop for Operator {
    /// Closes the database, so that no write-ahead log remains beside its file.
    fn drop(&mut self) {
        if let CoreAccess::File { handler, thread, .. } = &mut self.access {
            drop(handler.take());
            if let Some(thread) = thread.take() {
                thread.close();
            }
        }
    }
}

/// Unix sockets of the core's processes: of a single process, or one for each NF.
fn sockets(config: &Config) -> Vec<PathBuf> {
    let split = HostedNf::ALL.into_iter().map(|nf| nf.to_string()).chain(["upf".into()]);
    let split = split.map(|nf| config.api_socket(Some(&nf)));
    let own: Vec<_> = [config.api_socket(None)].into_iter().chain(split).collect();
    // A member of 'api.socket_group' who is not the core's user: the same names where root's core has them. Who may not use
    // them has a core of its own, or none.
    let Some(directory) = config.system_sockets() else { return own };
    let system = own.iter().filter_map(|path| Some(directory.join(path.file_name()?)));
    let system = system.filter(|path| is_owned_alike(path, &directory) && UnixStream::connect(path).is_ok());
    own.iter().cloned().chain(system).collect()
}

/// Whether the owner of the directory, or root, has made the socket.
fn is_owned_alike(socket: &Path, directory: &Path) -> bool {
    let owner = |path: &Path| fs::symlink_metadata(path).map(|data| data.uid());
    match (owner(socket), owner(directory)) {
        (Ok(owner), Ok(directory)) => owner == 0 || owner == directory,
        _ => false,
    }
}

/// TCP addresses of the API: that of a core in one process, then those of NFs in separate processes.
fn addresses(config: &Config, mut listen: SocketAddr) -> Vec<SocketAddr> {
    if listen.ip().is_unspecified() {
        listen.set_ip(if listen.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    let mut addresses = vec![listen];
    let hosts = HostedNf::ALL.into_iter().map(|nf| config.sbi.address(nf).ip()).chain([config.upf.n4.ip()]);
    for host in hosts {
        let address = SocketAddr::new(host, listen.port());
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// The body of a successful response, or the error in its detail.
fn outcome(response: &Response<Bytes>) -> Result<Value> {
    let body: Value = match response.body() {
        empty if empty.is_empty() => Value::Null,
        body => serde_json::from_slice(body).context("the answer is not JSON: this is not a Pith core")?,
    };
    if response.status().is_success() {
        return Ok(body);
    }
    let detail = body["detail"].as_str().unwrap_or("the core refused");
    Err(anyhow!("{detail}"))
}
