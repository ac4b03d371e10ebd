//! A server of Redis or Valkey for tests: its own directory, and a Unix socket or a TLS port on loopback.

use super::super::tests::Directory;
use super::{DocumentKind, DocumentSecret, RedisSettings, RedisStore};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Programs, in the order in which they are tried.
const PROGRAMS: [&str; 2] = ["valkey-server", "redis-server"];
/// Time for a start.
const START: Duration = Duration::from_secs(10);

/// A running server.
pub(crate) struct Server {
    directory: Directory,
    options: Vec<String>,
    process: Option<Child>,
    /// Its address.
    pub url: String,
}

impl Server {
    /// Starts a server with these options, on a Unix socket; `None` if there is no program.
    pub fn start(options: &[&str]) -> Option<Self> {
        let directory = Directory::new();
        let socket = directory.path().join("redis.sock");
        let url = format!("unix://{}", socket.display());
        let socket = ["--port", "0", "--unixsocket", &socket.display().to_string()].map(str::to_owned);
        Self::begin(
            directory,
            url,
            socket.into_iter().chain(options.iter().map(|&each| each.into())).collect(),
        )
    }

    /// Starts a server with TLS on a port of loopback, with a certificate of its own; returns also the file of its CA.
    pub fn start_tls() -> Option<(Self, PathBuf)> {
        let directory = Directory::new();
        let path = |name: &str| directory.path().join(name);
        let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(path("cert.pem"), certified.cert.pem()).unwrap();
        std::fs::write(path("key.pem"), certified.signing_key.serialize_pem()).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let options = [
            ("--port", "0".to_owned()),
            ("--bind", "127.0.0.1".to_owned()),
            ("--tls-port", port.to_string()),
            ("--tls-cert-file", path("cert.pem").display().to_string()),
            ("--tls-key-file", path("key.pem").display().to_string()),
            ("--tls-auth-clients", "no".to_owned()),
        ];
        let ca = path("cert.pem");
        let options = options.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
        Some((Self::begin(directory, format!("rediss://localhost:{port}"), options)?, ca))
    }

    fn begin(directory: Directory, url: String, options: Vec<String>) -> Option<Self> {
        let mut server = Self { directory, options, process: None, url };
        if server.resume() {
            return Some(server);
        }
        crate::skipped::skipped("no server program: apt-get install redis-server");
        None
    }

    /// Starts the process; `false` if there is no program.
    pub fn resume(&mut self) -> bool {
        let directory = self.directory.path().display().to_string();
        for program in PROGRAMS {
            let log = std::fs::File::create(self.directory.path().join("log")).unwrap();
            let mut command = Command::new(program);
            command.args(["--dir", &directory, "--save", "", "--daemonize", "no"]).args(&self.options);
            let Ok(process) = command.stdin(Stdio::null()).stdout(log).stderr(Stdio::null()).spawn() else {
                continue;
            };
            self.process = Some(process);
            self.wait();
            return true;
        }
        false
    }

    fn wait(&self) {
        let log = self.directory.path().join("log");
        let until = Instant::now() + START;
        let is_ready =
            || std::fs::read_to_string(&log).is_ok_and(|log| log.to_lowercase().contains("ready to accept"));
        while !is_ready() {
            assert!(Instant::now() < until, "the server does not start: {:?}", std::fs::read_to_string(&log));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the process.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn settings(&self) -> RedisSettings {
        let secret = DocumentSecret::of_file(&self.path("key"), true).unwrap();
        RedisSettings {
            url: self.url.parse().unwrap(),
            password_file: None,
            ca: None,
            secret,
            scope: String::new(),
            kinds: DocumentKind::ALL.into(),
        }
    }

    pub fn store(&self) -> RedisStore {
        RedisStore::open(self.settings()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
