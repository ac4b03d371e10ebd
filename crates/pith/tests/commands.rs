//! Tests of the commands, with files and with a running process.

#[path = "../../../tests/skipped.rs"]
mod skipped;

use serde_json::Value;
use skipped::skipped;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const K: &str = "465B5CE8B199B49FAA5F0A2EE238A6BC";

/// A directory with a configuration, and the API address in it.
struct TestDirectory {
    directory: PathBuf,
    api: SocketAddr,
}

impl TestDirectory {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("pith-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let (api, sbi) = (free_address(), free_address());
        let dir = Self { directory, api };
        let database = dir.path("pith.db");
        let yaml = format!(
            "store: {{path: {}}}\napi: {{listen: '{api}'}}\nworkers: 2\nsbi: {{addresses: {{nrf: '{sbi}'}}}}\n",
            database.display()
        );
        fs::write(dir.path("pith.yaml"), yaml).unwrap();
        dir
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pith"));
        command.current_dir(&self.directory).env_remove("PITH_CONFIG").args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The output of a command that must succeed.
    fn prints(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.prints(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// The error of a command that must fail.
    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?} did not fail");
        String::from_utf8(output.stderr).unwrap()
    }

    /// The members of a schema in the API's description.
    fn described(&self, schema: &str) -> Vec<String> {
        let description = self.get("/openapi.json");
        let properties = description["components"]["schemas"][schema]["properties"].as_object();
        properties.unwrap().keys().cloned().collect()
    }

    /// Queries the API through the socket of the NRF's process.
    fn get(&self, path: &str) -> Value {
        let mut stream = UnixStream::connect(self.path("api-nrf.sock")).unwrap();
        let (status, body) = exchange(&mut stream, path, "");
        assert_eq!(status, 200, "{body}");
        body
    }

    /// Queries the API at its TCP address.
    fn get_with(&self, token: &str, path: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.api).unwrap();
        exchange(&mut stream, path, &format!("authorization: Bearer {token}\r\n"))
    }

    /// Runs NFs until dropped.
    fn start(&self, arguments: &[&str]) -> Running {
        let mut child = self.command(arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("ready in") {
            line.clear();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "the process ended before it was ready");
        }
        // The log must be read, or the process would block on a full pipe.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Running(child)
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

struct Running(Child);

impl Running {
    /// Sends SIGTERM; returns whether the process ends successfully and soon.
    fn ends_well(mut self) -> bool {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(5) {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn exchange(stream: &mut (impl Read + Write), path: &str, fields: &str) -> (u16, Value) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{fields}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap())
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn the_default_configuration_passes_its_own_check() {
    let dir = TestDirectory::new("default");
    fs::write(dir.path("default.yaml"), dir.prints(&["config", "default"])).unwrap();
    assert_eq!(dir.prints(&["config", "check", "default.yaml"]), "default.yaml is in order\n");
}

#[test]
fn mistakes_of_a_configuration_are_reported_with_position_and_advice() {
    let dir = TestDirectory::new("wrong");
    fs::write(dir.path("bad.yaml"), "amf:\n  n2:\n    sctp: tcp\n").unwrap();
    for arguments in [["config", "check", "bad.yaml"].as_slice(), &["--config", "bad.yaml", "up"]] {
        let error = dir.fails(arguments);
        assert!(error.starts_with("pith: bad.yaml:3:11: ") && error.contains("udp:PORT"), "{error}");
    }
    fs::write(dir.path("level.yaml"), "log: {level: pith=loud}\n").unwrap();
    assert!(dir.fails(&["config", "check", "level.yaml"]).contains("'log.level'"));
    assert!(dir.fails(&["--set", "amf.sett=1", "up"]).contains("instead of 'sett' there are name"));
}

#[test]
fn ten_thousand_subscribers_are_added_and_exported() {
    let dir = TestDirectory::new("bulk");
    let add = ["subscriber", "add", "001010000000001", "--count", "10000", "--random-keys"];
    assert_eq!(dir.prints(&add), "10000 added\n");

    dir.prints(&["subscriber", "export", "all.json"]);
    assert_eq!(fs::metadata(dir.path("all.json")).unwrap().permissions().mode() & 0o077, 0);
    let exported: Vec<Value> =
        serde_json::from_str(&fs::read_to_string(dir.path("all.json")).unwrap()).unwrap();
    let different: std::collections::HashSet<_> =
        exported.iter().map(|one| one["authentication"]["k"].to_string()).collect();
    assert_eq!((exported.len(), different.len()), (10_000, 10_000));

    let deleted = dir.json(&["subscriber", "delete", "001010000000001", "--count", "9999"]);
    assert_eq!(deleted["deleted"], 9999);
    assert!(dir.fails(&["subscriber", "import", "all.json"]).contains("imsi-001010000010000 already"));
    let imported = dir.prints(&["subscriber", "import", "all.json", "--existing", "keep"]);
    assert_eq!(imported, "9999 added, 1 kept\n");
    assert_eq!(dir.json(&["subscriber", "list", "--limit", "1"])["total"], 10_000);
    assert!(!dir.path("pith.db-wal").exists(), "the database is closed properly");
}

#[test]
fn lines_can_be_exported_and_imported_through_pipes() {
    let dir = TestDirectory::new("lines");
    dir.prints(&[
        "subscriber",
        "add",
        "12345",
        "--count",
        "3",
        "--k",
        K,
        "--op",
        K,
        "--slice",
        "2-0000ff",
        "--method",
        "eap-aka-prime",
    ]);
    let lines = dir.prints(&["subscriber", "export", "--lines"]);
    assert_eq!(lines.lines().count(), 3);
    let other = TestDirectory::new("lines-other");
    let mut import =
        other.command(&["subscriber", "import"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    import.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(import.wait().unwrap().success());
    assert_eq!(other.prints(&["subscriber", "export", "--lines"]), lines);
    let table = other.prints(&["subscriber", "list"]);
    assert!(table.contains("2-0000ff") && table.contains("EAP_AKA_PRIME"), "{table}");
}

#[test]
fn keys_are_shown_only_on_request() {
    let dir = TestDirectory::new("keys");
    dir.prints(&["subscriber", "add", "999700000000001", "--k", K, "--opc", K]);
    for arguments in [["subscriber", "list", "--json"].as_slice(), &["subscriber", "show", "999700000000001"]]
    {
        assert!(!dir.prints(arguments).to_uppercase().contains(K));
    }
    assert!(dir.prints(&["subscriber", "show", "999700000000001", "--keys"]).to_uppercase().contains(K));
}

#[test]
fn without_a_core_the_lists_name_the_command_that_starts_one() {
    let dir = TestDirectory::new("nobody");
    for what in ["ue", "gnb", "session", "instance", "upf"] {
        assert!(dir.fails(&[what, "list"]).contains("start one with 'pith up'"));
    }
}

#[test]
fn a_running_process_is_operated_through_its_api() {
    let dir = TestDirectory::new("running");
    let running = dir.start(&["nf", "nrf", "udr", "udm", "--test-network", "--subscribers", "5"]);
    let status = dir.json(&["status"]);
    assert_eq!((status["state"].as_str(), status["shards"].as_u64()), (Some("ready"), Some(2)));
    assert_eq!(dir.json(&["subscriber", "list"])["total"], 5);
    dir.prints(&["subscriber", "add", "999700000000009", "--random-keys"]);
    let instances = dir.json(&["instance", "list"]);
    assert_eq!(instances.as_array().unwrap().len(), 2, "UDR and UDM, whatever the shards: {instances}");
    let described = dir.described("NfInstance");
    let members: Vec<_> = instances[0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(described, members, "the description and the list have the same members");

    let error = dir.fails(&["subscriber", "list", "--set", "api.socket=elsewhere.sock"]);
    assert!(error.contains("another process uses the database"), "{error}");

    let signal = |name: &str| {
        let id = running.0.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    };
    signal("-STOP");
    let begun = Instant::now();
    let error = dir.fails(&["status"]);
    let took = begun.elapsed();
    signal("-CONT");
    assert!(error.contains("'kill -CONT' continues it"), "{error}");
    assert!(took < Duration::from_secs(5), "{took:?}");

    assert!(running.ends_well());
    assert_eq!(dir.json(&["subscriber", "list"])["total"], 6, "the added subscriber is in the file");
}

#[test]
fn the_api_serves_its_description() {
    let dir = TestDirectory::new("describe");
    let _running = dir.start(&["nf", "nrf", "udr"]);
    let description = dir.get("/openapi.json");
    assert!(description["paths"]["/v1/subscribers"]["post"].is_object());
}

#[test]
fn the_error_for_an_address_in_use_names_the_setting() {
    let dir = TestDirectory::new("twice");
    let _running = dir.start(&["nf", "nrf"]);
    let error = dir.fails(&["nf", "nrf"]);
    assert!(error.contains("contexts/nrf is in use by another process"), "{error}");
    let error = dir.fails(&["nf", "nrf", "--set", "residency=none"]);
    assert!(error.contains("cannot listen on") && error.contains("change 'api.socket'"), "{error}");
}

/// A client at the loopback address needs a token too; the socket is for its owner.
#[test]
fn the_api_serves_the_sockets_owner_and_clients_with_tokens() {
    let dir = TestDirectory::new("tokens");
    let early = dir.json(&["api", "token", "add", "before the core runs", "--role", "admin"]);
    let running = dir.start(&["nf", "nrf", "udr"]);
    assert_eq!(fs::metadata(dir.path("api-nrf.sock")).unwrap().permissions().mode() & 0o777, 0o600);
    let early = early["token"].as_str().unwrap();
    assert_eq!(dir.get_with(early, "/v1/tokens").0, 200);
    assert_eq!(dir.get_with("", "/v1/status").0, 401);

    let viewer = dir.json(&["api", "token", "add", "console"]);
    let (id, secret) = (viewer["id"].as_str().unwrap(), viewer["token"].as_str().unwrap());
    assert_eq!(dir.get_with(secret, "/v1/subscribers").0, 200);
    assert_eq!(dir.get_with(secret, "/v1/subscribers?keys=true").0, 403);
    assert!(dir.prints(&["api", "token", "list"]).contains("console"));
    let file = fs::read_to_string(dir.path("api-tokens.json")).unwrap();
    assert!(!file.contains(&secret[14..]), "only a digest is stored");
    dir.prints(&["api", "token", "revoke", id]);
    assert_eq!(dir.get_with(secret, "/v1/status").0, 401);

    dir.prints(&["subscriber", "add", "999700000000001", "--k", K, "--opc", K]);
    let audit = dir.prints(&["audit", "list"]);
    for operation in ["addToken", "denied", "revokeToken", "addSubscribers"] {
        assert!(audit.contains(operation), "{operation}: {audit}");
    }
    assert!(running.ends_well());
    assert!(!dir.path("api-nrf.sock").exists());
    assert!(dir.prints(&["audit", "list"]).contains("addSubscribers"), "also while no core runs");
}

/// While no core runs, any user can listen at 'api.listen' and at the other addresses of a core.
#[test]
fn no_secret_goes_to_an_address_that_nobody_named() {
    let dir = TestDirectory::new("stranger");
    let listeners = [dir.api, SocketAddr::new([127, 0, 0, 10].into(), dir.api.port())];
    let listeners = listeners.map(|at| TcpListener::bind(at).unwrap());
    listeners.iter().for_each(|listener| listener.set_nonblocking(true).unwrap());
    fs::write(dir.path("secret"), "0123456789abcdef0123456789abcdef").unwrap();
    fs::set_permissions(dir.path("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    for (variable, setting) in [("PITH_TOKEN", "log.level=info"), ("UNUSED", "api.token_file=secret")] {
        let mut add = dir.command(&["subscriber", "add", "999700000000001", "--k", K, "--opc", K]);
        add.args(["--existing", "keep", "--set", setting]).env(variable, "pith_0_0");
        assert!(add.output().unwrap().status.success(), "it is added to the file");
        for listener in &listeners {
            let asked = listener.accept().map(|(mut stream, _)| {
                let mut octets = [0; 1024];
                let length = stream.read(&mut octets).unwrap_or(0);
                String::from_utf8_lossy(&octets[..length]).into_owned()
            });
            assert!(asked.is_err(), "{setting}: the command connected: {asked:?}");
        }
    }
}

#[test]
fn a_core_is_operated_at_the_address_that_is_named_with_a_token() {
    let dir = TestDirectory::new("address");
    let _running = dir.start(&["nf", "nrf", "udr"]);
    let token = dir.json(&["api", "token", "add", "console"]);
    let address = dir.api.to_string();
    let with_token = |arguments: &[&str]| {
        let mut command = dir.command(arguments);
        command.args(["--api", &address]).env("PITH_TOKEN", token["token"].as_str().unwrap());
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    assert!(with_token(&["subscriber", "list"]).0);
    let (_, error) = with_token(&["session", "list"]);
    assert!(error.contains("does not host the SMF"), "{error}");
    assert!(dir.fails(&["status", "--api", &address]).contains("PITH_TOKEN"));
}

/// A server that sends nothing and writes the received requests to a file, as user 65534.
fn impostor(dir: &TestDirectory, bind: &str) -> Option<Running> {
    use std::os::unix::process::CommandExt;
    let program = format!(
        "import socket, sys\n{bind}\ns.listen()\nopen('ready', 'w')\nwhile True:\n  c, _ = s.accept()\n  open('told', 'ab').write(c.recv(65536))\n"
    );
    fs::set_permissions(&dir.directory, fs::Permissions::from_mode(0o1777)).unwrap();
    let mut command = Command::new("python3");
    command.current_dir(&dir.directory).args(["-c", &program]).uid(65534).stderr(Stdio::null());
    let server = Running(command.spawn().ok()?);
    let begun = Instant::now();
    while !dir.path("ready").exists() {
        assert!(begun.elapsed() < Duration::from_secs(10), "the other user's server does not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(server)
}

#[test]
fn no_secret_goes_to_a_server_of_another_user() {
    let dir = TestDirectory::new("impostor");
    let socket =
        "s = socket.socket(socket.AF_UNIX); s.bind('api.sock'); import os; os.chmod('api.sock', 0o777)";
    let Some(_server) = impostor(&dir, socket) else {
        return skipped("no right to run a program as another user");
    };
    let error = dir.fails(&["subscriber", "add", "999700000000001", "--k", K, "--opc", K]);
    assert!(error.contains("is served by user 65534"), "{error}");
    let received = fs::read(dir.path("told")).unwrap_or_default();
    assert!(received.is_empty(), "{}", String::from_utf8_lossy(&received));

    let dir = TestDirectory::new("impostor-address");
    let (host, port) = (dir.api.ip(), dir.api.port());
    let socket = format!("s = socket.socket(); s.bind(('{host}', {port}))");
    let _server = impostor(&dir, &socket);
    let mut list = dir.command(&["subscriber", "list", "--api", &dir.api.to_string()]);
    let output = list.env("PITH_TOKEN", "pith_0_0").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && error.contains("user 65534 listens"), "{error}");
    let received = fs::read(dir.path("told")).unwrap_or_default();
    assert!(received.is_empty(), "{}", String::from_utf8_lossy(&received));
}
