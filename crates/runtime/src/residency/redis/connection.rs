//! A connection to a server: commands out, replies in, within bounds of time and octets.

use super::address::{RedisPlace, RedisUrl};
use redis::{Cmd, Parser, Value};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Time for a connection.
const CONNECT_TIME: Duration = Duration::from_secs(1);
/// Time for a request and its replies.
const REQUEST_TIME: Duration = Duration::from_secs(2);
/// Octets of one reply: a document with sealed sections, or the names of a block's documents.
const MAX_REPLY: u64 = 8 << 20;
/// Octets of all replies to one request.
const MAX_REPLIES: u64 = 32 << 20;
/// Hexadecimal digits of the server's replication id that documents keep.
const GENERATION: usize = 16;

/// How the server is reached.
pub(super) struct Access {
    pub url: RedisUrl,
    pub password: Option<Zeroizing<String>>,
    /// For `rediss`.
    pub tls: Option<Arc<ClientConfig>>,
}

/// A request failed; the connection is not used again.
#[derive(Debug)]
pub(super) struct RequestError {
    pub reason: String,
    /// Whether another attempt on a new connection may succeed at once.
    pub is_retriable: bool,
    /// Whether a request for less may succeed.
    pub is_too_large: bool,
}

impl RequestError {
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_retriable: false, is_too_large: false }
    }
}

impl From<io::Error> for RequestError {
    fn from(error: io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it does not answer in time".to_owned(),
            io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
                format!("there is no server ({error}): start it, or correct 'state.redis.url'")
            }
            _ => error.to_string(),
        };
        Self { reason, is_retriable: true, is_too_large: false }
    }
}

fn refused(reason: impl Into<String>) -> RequestError {
    RequestError::new(reason)
}

/// Commands that are sent with one request.
#[derive(Default)]
pub(super) struct Commands {
    octets: Vec<u8>,
    count: usize,
}

impl Commands {
    pub fn add(&mut self, command: &Cmd) -> &mut Self {
        command.write_packed_command(&mut self.octets);
        self.count += 1;
        self
    }
}

/// An authenticated connection.
pub(super) struct Connection {
    stream: Stream,
    parser: Parser,
    /// The begin of the server's replication id. It changes when another server takes over, or the server starts again, so
    /// that writes may be lost.
    pub generation: String,
    /// Octets since the last call of [`Connection::take_octets`]: sent, received.
    octets: (u64, u64),
}

impl Connection {
    /// Connects, authenticates, and checks that the server keeps what is written.
    pub fn open(access: &Access) -> Result<Self, RequestError> {
        let stream = connect(access)?;
        let mut connection =
            Self { stream, parser: Parser::new(), generation: String::new(), octets: (0, 0) };
        connection.log_in(access)?;
        let info = connection.command(&redis::cmd("INFO"))?;
        connection.generation = check(&text(&info))?;
        Ok(connection)
    }

    fn log_in(&mut self, access: &Access) -> Result<(), RequestError> {
        if let Some(password) = &access.password {
            let mut command = redis::cmd("AUTH");
            if let Some(user) = &access.url.user {
                command.arg(user.as_str());
            }
            command.arg(password.as_str());
            self.command(&command)?;
        }
        if access.url.database != 0 {
            self.command(redis::cmd("SELECT").arg(access.url.database))?;
        }
        Ok(())
    }

    /// One command; an error of the server is an error.
    pub fn command(&mut self, command: &Cmd) -> Result<Value, RequestError> {
        let mut commands = Commands::default();
        let mut reply = Value::Nil;
        self.request(commands.add(command), &mut |_, value| reply = value)?;
        match reply {
            Value::ServerError(error) => Err(of_server(&error)),
            value => Ok(value),
        }
    }

    /// Sends commands with one request, and passes on the reply of each, in order.
    pub fn request(
        &mut self,
        commands: &Commands,
        visit: &mut dyn FnMut(usize, Value),
    ) -> Result<(), RequestError> {
        let deadline = Instant::now() + REQUEST_TIME;
        self.stream.write_all(&commands.octets)?;
        self.stream.flush()?;
        self.octets.0 += commands.octets.len() as u64;
        let mut left = MAX_REPLIES;
        for each in 0..commands.count {
            let most = left.min(MAX_REPLY);
            let mut reader = Bounded { stream: &mut self.stream, left: most, deadline };
            let reply = self.parser.parse_value(&mut reader);
            let read = most - reader.left;
            left -= read;
            self.octets.1 += read;
            match reply {
                Ok(value) => visit(each, value),
                Err(_) if read == most => {
                    let reason = format!("its replies have more than {MAX_REPLIES} octets");
                    return Err(RequestError { is_too_large: true, ..refused(reason) });
                }
                Err(error) => return Err(of_reading(&error)),
            }
        }
        Ok(())
    }

    /// Octets sent and received since the last call.
    pub fn take_octets(&mut self) -> (u64, u64) {
        std::mem::take(&mut self.octets)
    }
}

fn of_reading(error: &redis::RedisError) -> RequestError {
    let reason = if error.is_timeout() {
        "it does not answer in time".to_owned()
    } else if error.is_io_error() {
        "the connection ended".to_owned()
    } else {
        "its reply is not in the protocol of Redis (RESP): check the address".to_owned()
    };
    RequestError { is_retriable: error.is_io_error() && !error.is_timeout(), ..refused(reason) }
}

/// What Pith and its scripts use.
pub(super) const COMMANDS: &str = "INFO, GET, SET, DEL, HGET, HMGET, HSET, HDEL, HGETALL, HKEYS, SADD, SREM, SMEMBERS, SCAN, EVAL, EVALSHA, SCRIPT and TIME";

/// The reason of a refusal for want of memory, and what to do.
const FULL: &str =
    "its memory is full, it takes no writes: raise its 'maxmemory', or give it a server of its own";

/// The reason of a refusal. Replies of the server may quote a command, so that only their code and known texts are shown.
pub(super) fn of_server(error: &redis::ServerError) -> RequestError {
    let reason = match error.code() {
        "NOAUTH" => "it requires a password: set 'state.redis.password_file'".to_owned(),
        "WRONGPASS" => {
            "it refuses user or password: check 'state.redis.url' and 'state.redis.password_file'".into()
        }
        "NOPERM" => {
            format!("its access control list forbids a command: permit the user {COMMANDS} on keys 'pith:*'")
        }
        "READONLY" => "it is a replica: give the address of the primary".into(),
        "OOM" => FULL.into(),
        // Redis 6 and before: the error of a command in a script.
        "ERR" if error.details().is_some_and(|details| details.contains("-OOM ")) => FULL.into(),
        "MISCONF" => "it cannot save its data: see its log".into(),
        "LOADING" => "it is still reading its data".into(),
        "NOSCRIPT" => "it forgot the script".into(),
        code => format!("it refuses a request ({code}): see its log"),
    };
    RequestError { is_retriable: error.code() == "NOSCRIPT", ..refused(reason) }
}

pub(super) fn text(value: &Value) -> String {
    match value {
        Value::BulkString(octets) => String::from_utf8_lossy(octets).into_owned(),
        Value::VerbatimString { text, .. } | Value::SimpleString(text) => text.clone(),
        Value::Int(number) => number.to_string(),
        _ => String::new(),
    }
}

/// Checks a server by its INFO; returns its generation.
fn check(info: &str) -> Result<String, RequestError> {
    let field = |name: &str| {
        let of_name =
            |line: &str| line.strip_prefix(name)?.strip_prefix(':').map(|value| value.trim().to_owned());
        info.lines().find_map(of_name).unwrap_or_default()
    };
    if field("loading") == "1" {
        return Err(refused("it is reading its data: wait until it has"));
    }
    if field("role") == "slave" {
        return Err(refused("it is a replica: give the address of the primary"));
    }
    if field("redis_mode") == "cluster" {
        return Err(refused(
            "it is part of a cluster, which this release does not support: use a single server",
        ));
    }
    let policy = field("maxmemory_policy");
    if policy.starts_with("allkeys") && field("maxmemory") != "0" {
        return Err(refused(format!(
            "it may delete documents when its memory is full (maxmemory-policy {policy}): set noeviction"
        )));
    }
    let id = field("master_replid");
    match id.get(..GENERATION) {
        Some(generation) if id.bytes().all(|octet| octet.is_ascii_hexdigit()) => Ok(generation.to_owned()),
        _ => Err(refused("its INFO has no 'master_replid': Redis 4 or Valkey is required")),
    }
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

fn connect(access: &Access) -> Result<Stream, RequestError> {
    match &access.url.place {
        RedisPlace::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(REQUEST_TIME))?;
            stream.set_write_timeout(Some(REQUEST_TIME))?;
            Ok(Stream::Unix(stream))
        }
        RedisPlace::Tcp { host, port, .. } => {
            let stream = connect_tcp(host, *port)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(REQUEST_TIME))?;
            stream.set_write_timeout(Some(REQUEST_TIME))?;
            match &access.tls {
                Some(config) => tls(config, host, stream),
                None => Ok(Stream::Tcp(stream)),
            }
        }
    }
}

fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIME) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn tls(config: &Arc<ClientConfig>, host: &str, mut stream: TcpStream) -> Result<Stream, RequestError> {
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|_| refused(format!("'{host}' is no name that a certificate can have")))?;
    let failed = |error: &dyn std::fmt::Display| refused(format!("TLS failed: {error}"));
    let mut session = ClientConnection::new(Arc::clone(config), name).map_err(|error| failed(&error))?;
    // The reason of a failed handshake, rather than that of the first request.
    while session.is_handshaking() {
        session.complete_io(&mut stream).map_err(|error| failed(&error))?;
    }
    Ok(Stream::Tls(Box::new(StreamOwned::new(session, stream))))
}

impl Read for Stream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(to),
            Self::Unix(stream) => stream.read(to),
            Self::Tls(stream) => stream.read(to),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(octets),
            Self::Unix(stream) => stream.write(octets),
            Self::Tls(stream) => stream.write(octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.flush(),
            Self::Unix(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// Reads a reply within bounds: a peer that sends octets slowly or without end fails the request.
struct Bounded<'a> {
    stream: &'a mut Stream,
    left: u64,
    deadline: Instant,
}

impl Read for Bounded<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if Instant::now() > self.deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(to.len());
        let read = self.stream.read(&mut to[..most])?;
        self.left -= read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Server\r\nredis_mode:standalone\r\n# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n# Replication\r\nrole:master\r\nmaster_replid:0123456789abcdef0123456789abcdef01234567\r\n";

    #[test]
    fn a_server_that_may_lose_documents_is_refused_with_the_remedy() {
        assert_eq!(check(INFO).unwrap(), "0123456789abcdef");
        for (from, to, expected) in [
            ("role:master", "role:slave", "replica"),
            ("standalone", "cluster", "cluster"),
            (
                "maxmemory:0\r\nmaxmemory_policy:noeviction",
                "maxmemory:9\r\nmaxmemory_policy:allkeys-lru",
                "noeviction",
            ),
            ("master_replid:0123", "master_replid:x123", "Redis 4"),
            ("master_replid", "replid", "Redis 4"),
        ] {
            let error = check(&INFO.replace(from, to)).unwrap_err();
            assert!(error.reason.contains(expected), "{}", error.reason);
        }
    }
}
