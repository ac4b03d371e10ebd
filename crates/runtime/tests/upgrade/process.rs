//! The UPF's processes.

use super::smf::{N4, SMF};
use super::support::*;
use pith_datapath::{DatapathConfig, PathChoice, XdpHook};
use pith_runtime::clock::Clock;
use pith_runtime::gate::Gate;
use pith_runtime::upf::{Predecessor, Settings, Succeedable, UpfThread, settings};
use pith_upf::{GtpuAddress, PermittedSmf, Upf};
use std::io::{BufRead, BufReader, Lines};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const FOLDER: &str = "PITH_TEST_UPGRADE";
const CASE: &str = "PITH_TEST_UPGRADE_CASE";
const TAKE_OVER: &str = "PITH_TEST_UPGRADE_TAKE_OVER";

/// The packet path of a test.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub kind: Kind,
    pub nat: bool,
}

impl Case {
    fn datapath(self) -> DatapathConfig {
        let (path, xdp_hook) = match self.kind {
            Kind::Portable => (PathChoice::Portable, XdpHook::Auto),
            Kind::Generic => (PathChoice::Xdp, XdpHook::Generic),
            Kind::Native => (PathChoice::Xdp, XdpHook::Native),
        };
        DatapathConfig {
            n3_addresses: vec![UPF.into()],
            workers: 2,
            sessions: 16,
            nat: self.nat,
            path,
            xdp_hook,
            interfaces: vec!["n3".into(), "n6".into()],
            ..DatapathConfig::default()
        }
    }
}

/// The settings that a successor must share.
pub fn settings_of(case: Case) -> Settings {
    settings((N4, 8805).into(), &case.datapath())
}

/// A directory for the socket.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("pith-upgrade-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    pub fn socket(&self) -> PathBuf {
        self.0.join("upf.upgrade")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a UPF until its input ends or another process has taken over, if this process is one of [`Process`].
pub fn run() {
    let (Some(folder), Ok(case)) = (std::env::var_os(FOLDER), std::env::var(CASE)) else { return };
    let kind = [Kind::Portable, Kind::Generic, Kind::Native]
        .into_iter()
        .find(|kind| case.contains(&format!("{kind:?}")));
    let case = Case { kind: kind.unwrap(), nat: case.contains("true") };
    let (clock, datapath) = (Clock::start(), case.datapath());
    let n3 = GtpuAddress { v4: Some(UPF), v6: None };
    let mut config = pith_upf::Config::new(N4.into(), n3, clock.unix_seconds());
    config.smfs = vec![PermittedSmf::at(SMF.into())];
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&std::process::id().to_be_bytes());
    let socket = PathBuf::from(folder).join("upf.upgrade");
    let succeedable = Succeedable {
        socket: socket.clone(),
        settings: settings_of(case),
        api: None,
        begun: Box::new(|| ()),
        ended: Box::new(|| std::process::exit(0)),
    };
    let upf = if std::env::var_os(TAKE_OVER).is_some() {
        let predecessor = Predecessor::ask(&socket, settings_of(case)).unwrap().expect("a running UPF");
        let (time, gate) = (Duration::ZERO, Gate::opened());
        let upf =
            UpfThread::take_over(predecessor, (config, seed), &datapath, time, gate, succeedable).unwrap();
        upf.await_take_over().unwrap();
        upf
    } else {
        let n4 = UdpSocket::bind((N4, 8805)).unwrap();
        let (upf, gate) = (Upf::new(config, seed), Gate::opened());
        UpfThread::start_succeedable(clock, upf, n4, datapath, Duration::ZERO, gate, Some(succeedable))
            .unwrap()
    };
    println!("\nready");
    let _ = std::io::stdin().read_line(&mut String::new());
    upf.close();
}

/// A process with a UPF.
pub struct Process {
    child: Child,
    input: ChildStdin,
    /// Open until the process ends, which writes to it.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts one in this thread's network namespace; returns when it serves.
    pub fn start(folder: &Folder, case: Case, takes_over: bool) -> Self {
        let mut command = Command::new("/proc/self/exe");
        command.args(["process", "--exact", "--nocapture"]);
        command.env(FOLDER, &folder.0).env(CASE, format!("{case:?}"));
        if takes_over {
            command.env(TAKE_OVER, "1");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut lines = BufReader::new(output).lines();
        assert!(lines.any(|line| line.unwrap() == "ready"), "the process has ended");
        Self { child, input, _output: lines }
    }

    /// Waits for the end of a process that another one has taken over.
    pub fn has_ended(mut self) {
        let mut status = None;
        wait_for("the end of the former process", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        assert!(status.unwrap().success());
    }

    /// Ends it with an orderly stop.
    pub fn stop(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
        assert!(!run_quietly("ip link show").contains("pith0"), "the interface ends with its process");
        assert!(!run_quietly("ip link show n3").contains("prog/xdp"));
        assert!(!run_quietly("nft list tables").contains("pith"), "no table is left");
    }
}

fn run_quietly(command: &str) -> String {
    super::support::run(command)
}
