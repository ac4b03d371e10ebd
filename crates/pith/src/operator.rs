//! Client of the operator API (REST): that of a running core, or the same handlers on its database file.
//!
//! A command connects to the Unix sockets of the configuration, and to a TCP address only with '--api'. Tokens and
//! subscribers' keys are sent only to a server that runs as root, as the user of the command, or as the owner of the
//! socket's directory: while no core runs, any user can listen at an address or create a socket in a shared directory.

use crate::args::Cli;
use crate::config_file;
use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use hyper::header::LINK;
use hyper::{Method, Request, Response};
use pith_runtime::api::{Api, ApiHandler};
use pith_runtime::config::{self, Config, HostedNf};
use pith_runtime::http::{CallError, Client, Handler, Limits};
use pith_runtime::store::{Database, DatabaseLocation, StoreThread};
use pith_runtime::token::ShardToken;
use serde_json::Value;
use std::fmt::Display;
use std::fs;
use std::future::Future;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;
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

/// Time in which a running core says which NFs it has.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Time in which it answers for 'pith status'.
const STATUS_TIME: Duration = Duration::from_millis(900);

/// Environment variable with an API token, for cores at a TCP address.
const TOKEN_VARIABLE: &str = "PITH_TOKEN";

/// Client of the operator API: that of a running core, or the same handlers on its database file.
pub struct ManagementClient {
    access: CoreAccess,
    runtime: Runtime,
    tasks: LocalSet,
}

enum CoreAccess {
    /// A running core. `authority` is the value of the Host header: over a Unix socket it is `localhost`.
    Remote { client: Client, authority: String, token: Option<String> },
    File {
        /// Path of the database, for messages.
        path: String,
        handler: Option<ApiHandler>,
        thread: Option<StoreThread<ShardToken>>,
    },
}

impl ManagementClient {
    /// Connects to the running core of this configuration: to its process with the given NF, if any.
    pub fn of_running_core(cli: &Cli, nf: Option<&str>) -> Result<Self> {
        Self::of_core_within(cli, nf, ANSWER_TIME).map(|(client, _)| client)
    }

    /// The status of the running core, which must answer within a second.
    pub fn status(cli: &Cli) -> Result<Value> {
        Self::of_core_within(cli, None, STATUS_TIME).map(|(_, status)| status)
    }

    /// A client of a core that answers within that time, and its status.
    fn of_core_within(cli: &Cli, nf: Option<&str>, time: Duration) -> Result<(Self, Value)> {
        let config = config_file::config(cli)?;
        match Self::connect(cli, &config, nf, time)? {
            Some(found) => Ok(found),
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
        if let Some((client, _)) = Self::connect(cli, &config, Some("udr"), ANSWER_TIME)? {
            return Ok(client);
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

    /// Connects to the core's process with the NF, if one answers. Also returns its status.
    fn connect(
        cli: &Cli,
        config: &Config,
        nf: Option<&str>,
        time: Duration,
    ) -> Result<Option<(Self, Value)>> {
        if let Some(address) = cli.api {
            return Self::connect_to_address(config, address, nf, time).map(Some);
        }
        for socket in sockets(config)?.into_iter().filter(|socket| socket.exists()) {
            match reach(&socket)? {
                Reached::Accepts => {}
                Reached::IsFull => return Err(late(socket.display(), time)),
                Reached::Denied => bail!(
                    "no permission to use {}: run this as root or as the user that runs the core, or see 'api.socket_group'",
                    socket.display()
                ),
                // The socket is left from a killed process.
                Reached::Nothing => continue,
            }
            // A process that is stopped (SIGSTOP) accepts connections, and does not answer.
            let status = match Self::over(&socket, Limits { time, ..LIMITS })?.get("/v1/status") {
                Ok(status) => status,
                Err(error) if is_unreachable(&error) => continue,
                Err(error) if matches!(error.downcast_ref(), Some(CallError::Late(_))) => {
                    return Err(silent(&socket, time));
                }
                Err(error) => return Err(error),
            };
            if nf.is_none_or(|nf| hosts(&status, nf)) {
                return Ok(Some((Self::over(&socket, LIMITS)?, status)));
            }
        }
        Ok(None)
    }

    fn over(socket: &Path, limits: Limits) -> Result<Self> {
        let client = Client::over(socket.to_owned(), trusted_users(socket), limits);
        Self::new(CoreAccess::Remote { client, authority: "localhost".into(), token: None })
    }

    /// Connects to the TCP address that the operator named.
    fn connect_to_address(
        config: &Config,
        address: SocketAddr,
        nf: Option<&str>,
        time: Duration,
    ) -> Result<(Self, Value)> {
        let token = std::env::var(TOKEN_VARIABLE).ok().or(config.api.token()?);
        let token = token.with_context(|| {
            format!("'--api' needs a token: set {TOKEN_VARIABLE}; 'pith api token add' makes one")
        })?;
        check_server(address, &trusted_users(&config.api_socket(None)))?;
        let over = |limits| {
            let (client, authority) = (Client::new(limits), address.to_string());
            Self::new(CoreAccess::Remote { client, authority, token: Some(token.clone()) })
        };
        let status = over(Limits { time, ..LIMITS })?.get("/v1/status");
        let status = status.map_err(|error| as_late(error, address, time))?;
        match nf {
            Some(nf) if !hosts(&status, nf) => {
                bail!(
                    "the process at {address} does not host the {}: name the address of the one that does",
                    nf.to_uppercase()
                )
            }
            _ => Ok((over(LIMITS)?, status)),
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

    /// Reads all pages of a list.
    pub fn list(&self, path: &str) -> Result<Vec<Value>> {
        let (mut entries, mut next) = (Vec::new(), Some(path.to_owned()));
        while let Some(path) = next {
            let response = self.exchange(Method::GET, &path, "", Bytes::new())?;
            let Value::Array(page) = outcome(&response)? else {
                bail!("what answers is no Pith core: '{path}' is no list");
            };
            entries.extend(page);
            next = next_page(&response);
        }
        Ok(entries)
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
        outcome(&self.exchange(method, path, content, body)?)
    }

    fn exchange(&self, method: Method, path: &str, content: &str, body: Bytes) -> Result<Response<Bytes>> {
        let mut request = Request::builder().method(method);
        if !content.is_empty() {
            request = request.header("content-type", content);
        }
        Ok(match &self.access {
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
        })
    }

    fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(self.tasks.run_until(work))
    }
}

impl Drop for ManagementClient {
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
fn sockets(config: &Config) -> Result<Vec<PathBuf>> {
    let split = HostedNf::ALL.into_iter().map(|nf| nf.to_string()).chain(["upf".into()]);
    let split = split.map(|nf| config.api_socket(Some(&nf)));
    let own: Vec<_> = [config.api_socket(None)].into_iter().chain(split).collect();
    // A member of 'api.socket_group' who is not the core's user: the same names where root's core has them. Who may not use
    // them has a core of its own, or none.
    let Some(directory) = config.system_sockets() else { return Ok(own) };
    let system = own.iter().filter_map(|path| Some(directory.join(path.file_name()?)));
    let mut found = own.clone();
    for path in system.filter(|path| is_owned_alike(path, &directory)) {
        if matches!(reach(&path)?, Reached::Accepts | Reached::IsFull) {
            found.push(path);
        }
    }
    Ok(found)
}

/// What is at a Unix socket.
enum Reached {
    Accepts,
    /// More connections wait than the kernel admits: the process has not accepted any for a while.
    IsFull,
    Denied,
    Nothing,
}

/// Connects without waiting: a blocking `connect` waits for as long as connections of others wait to be accepted.
fn reach(socket: &Path) -> Result<Reached> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    Ok(match runtime.block_on(UnixStream::connect(socket)) {
        Ok(_) => Reached::Accepts,
        Err(error) if error.kind() == ErrorKind::WouldBlock => Reached::IsFull,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Reached::Denied,
        Err(_) => Reached::Nothing,
    })
}

fn late(place: impl Display, time: Duration) -> anyhow::Error {
    anyhow!(
        "the core at {place} does not answer within {} ms: its process is stopped ('kill -CONT' continues it), or overloaded",
        time.as_millis()
    )
}

/// The thread of a process that answers the API.
const API_THREAD: &str = "pith-http";

/// What a process does that does not answer.
#[derive(Debug, PartialEq, Eq)]
enum Activity {
    /// It has no thread for the API yet: it loads XDP programs, contexts, the database.
    Starts,
    Stopped,
    Unknown,
}

/// The error if the process that listens on a socket does not answer in time.
fn silent(socket: &Path, time: Duration) -> anyhow::Error {
    let place = socket.display();
    match process_behind(socket).map_or(Activity::Unknown, activity) {
        Activity::Starts => anyhow!(
            "the core at {place} is starting: it still loads its state or its XDP programs, and answers afterwards"
        ),
        Activity::Stopped => {
            anyhow!("the core at {place} does not answer: its process is stopped ('kill -CONT' continues it)")
        }
        Activity::Unknown => late(place, time),
    }
}

/// The process that listens on a socket; `None` for one of another PID namespace.
fn process_behind(socket: &Path) -> Option<i32> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().ok()?;
    let peer = runtime.block_on(async { UnixStream::connect(socket).await?.peer_cred() }).ok()?;
    peer.pid().filter(|process| *process > 0)
}

fn activity(process: i32) -> Activity {
    let folder = Path::new("/proc").join(process.to_string());
    let state = fs::read_to_string(folder.join("stat")).unwrap_or_default();
    // The state follows the name in brackets, which may contain any character.
    if state.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['T', 't'])) {
        return Activity::Stopped;
    }
    let Ok(threads) = fs::read_dir(folder.join("task")) else { return Activity::Unknown };
    let name = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("comm")).ok();
    let names: Vec<_> = threads.flatten().filter_map(name).collect();
    let is_served = names.is_empty() || names.iter().any(|name| name.trim_end() == API_THREAD);
    if is_served { Activity::Unknown } else { Activity::Starts }
}

/// The error of a request; what to do if it is that the core has not answered.
fn as_late(error: anyhow::Error, place: impl Display, time: Duration) -> anyhow::Error {
    match error.downcast_ref() {
        Some(CallError::Late(_)) => late(place, time),
        _ => error,
    }
}

fn is_unreachable(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(CallError::Unreachable(..)))
}

/// Whether the owner of the directory, or root, has made the socket.
fn is_owned_alike(socket: &Path, directory: &Path) -> bool {
    let owner = |path: &Path| fs::symlink_metadata(path).map(|data| data.uid());
    match (owner(socket), owner(directory)) {
        (Ok(owner), Ok(directory)) => owner == 0 || owner == directory,
        _ => false,
    }
}

/// Whether the process of that status hosts an NF.
fn hosts(status: &Value, nf: &str) -> bool {
    status["nfs"].as_array().into_iter().flatten().filter_map(Value::as_str).any(|hosted| hosted == nf)
}

/// The users that a core with that socket may run as: root, the user of this command, and the owner of the socket's
/// directory (a service of its own user has /run/pith from its service manager).
fn trusted_users(socket: &Path) -> Vec<u32> {
    let directory = socket.parent().filter(|directory| !directory.as_os_str().is_empty());
    let owner = fs::metadata(directory.unwrap_or(Path::new("."))).ok().map(|data| data.uid());
    [0, config::user()].into_iter().chain(owner).collect()
}

/// Checks that one of these users listens at an address. The token is sent in cleartext, so the address must be a loopback
/// address.
fn check_server(address: SocketAddr, users: &[u32]) -> Result<()> {
    if !address.ip().is_loopback() {
        bail!(
            "'--api {address}' would send a token over a network in cleartext: forward a local port ('ssh -L') and use that, or run the \
             command on the core's machine"
        );
    }
    let listeners = listeners(address)?;
    if listeners.is_empty() {
        bail!("nothing listens at {address}: see 'api.listen' of the core's configuration");
    }
    match listeners.into_iter().find(|user| !users.contains(user)) {
        Some(user) => bail!(
            "user {user} listens at {address}, and is neither root, nor you, nor the owner of the API's socket directory: \
             no token is sent there"
        ),
        None => Ok(()),
    }
}

/// The users with sockets that accept connections to a local address.
fn listeners(address: SocketAddr) -> Result<Vec<u32>> {
    let read = |file: &str| match fs::read_to_string(file) {
        Ok(text) => Ok(text),
        // A kernel without IPv6 has no such file.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error).with_context(|| format!("can't see who listens at {address}: {file}")),
    };
    let tables = [read("/proc/self/net/tcp")?, read("/proc/self/net/tcp6")?];
    let entries = tables.iter().flat_map(|table| table.lines().skip(1)).filter_map(listener);
    let takes = |at: SocketAddr| {
        at.port() == address.port() && (at.ip().to_canonical() == address.ip() || at.ip().is_unspecified())
    };
    Ok(entries.filter(|(at, _)| takes(*at)).map(|(_, user)| user).collect())
}

/// Address and user of a listening socket, from its line in /proc/net/tcp or tcp6.
fn listener(line: &str) -> Option<(SocketAddr, u32)> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (local, state, user) = (fields.get(1)?, fields.get(3)?, fields.get(7)?);
    let (ip, port) = local.split_once(':')?;
    // Octets in network order, printed as words of the host's order.
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        _ => {
            let octets: Vec<u8> = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
            Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?).into()
        }
    };
    let at = SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?);
    (*state == LISTEN).then_some((at, user.parse().ok()?))
}

/// The path of the next page of a list (RFC 8288): '</v1/ues?after=0.500>; rel="next"'.
fn next_page(response: &Response<Bytes>) -> Option<String> {
    let link = response.headers().get(LINK)?.to_str().ok()?;
    let (target, relation) = link.strip_prefix('<')?.split_once('>')?;
    (target.starts_with('/') && relation.contains("rel=\"next\"")).then(|| target.to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_a_thread_for_the_api_is_starting() {
        let path = std::env::temp_dir().join(format!("pith-starting-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let text = || silent(&path, STATUS_TIME).to_string();
        assert!(text().contains("is starting"), "{}", text());
        let (begun, begins) = std::sync::mpsc::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let serve = move || {
            begun.send(()).unwrap();
            let _ = ends.recv();
        };
        let thread = std::thread::Builder::new().name(API_THREAD.into()).spawn(serve).unwrap();
        begins.recv().unwrap();
        assert!(text().contains("or overloaded"), "{}", text());
        drop(end);
        thread.join().unwrap();
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = sleeper.id() as i32;
        let signal = |name: &str| {
            assert!(
                std::process::Command::new("kill")
                    .args([name, &process.to_string()])
                    .status()
                    .unwrap()
                    .success()
            );
        };
        signal("-STOP");
        let begun = std::time::Instant::now();
        while activity(process) != Activity::Stopped {
            assert!(begun.elapsed() < Duration::from_secs(5));
        }
        signal("-KILL");
        sleeper.wait().unwrap();
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_socket_with_a_full_backlog_is_found_without_waiting() {
        let path = std::env::temp_dir().join(format!("pith-backlog-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        assert!(matches!(reach(&path).unwrap(), Reached::Nothing));
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        // The connections of commands that have ended are in the backlog until they are accepted.
        let is_full = (0..100_000).any(|_| matches!(reach(&path).unwrap(), Reached::IsFull));
        assert!(is_full);
        drop(listener);
        assert!(matches!(reach(&path).unwrap(), Reached::Nothing));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_users_that_listen_at_an_address_are_known() {
        let four =
            "0: 0100007F:13EC 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0";
        assert_eq!(listener(four), Some(("127.0.0.1:5100".parse().unwrap(), 1000)));
        let six = "0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 00:0 0  0 0 1";
        assert_eq!(listener(six), Some(("[::1]:80".parse().unwrap(), 0)));
        assert_eq!(listener(&four.replace(" 0A ", " 01 ")), None);
        let here = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, own) = (here.local_addr().unwrap(), config::user());
        assert_eq!(listeners(address).unwrap(), [own]);
        assert!(check_server(address, &[own]).is_ok());
        let error = check_server(address, &[own + 1]).unwrap_err().to_string();
        assert!(error.contains("no token is sent"), "{error}");
        drop(here);
        let error = check_server(address, &[own]).unwrap_err().to_string();
        assert!(error.contains("nothing listens"), "{error}");
        let error = check_server("192.0.2.1:80".parse().unwrap(), &[own]).unwrap_err().to_string();
        assert!(error.contains("ssh -L"), "{error}");
    }
}
