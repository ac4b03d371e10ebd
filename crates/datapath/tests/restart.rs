//! The process is killed (`kill -9`) and restarted while packets flow: with pinned attachments no packet is
//! lost, the next process succeeds, and nothing is left behind. The processes are instances of this test's
//! own program.

mod support;

use pith_datapath::{DatapathConfig, NetworkPolicy, PathChoice, UserPlane, XdpHook};
use pith_pfcp::gtpu::{GTPU_PORT, Packet, UlPduSessionInformation};
use pith_upf::contract::{Datapath, SessionId};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use support::*;

const FOLDER: &str = "PITH_TEST_PIN";
const HOOK: &str = "PITH_TEST_HOOK";
/// A UE whose session is not re-established.
const LOST_UE: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 3);
const LOST_TEID: u32 = 0x101;

/// A UPF with XDP whose program outlives it.
fn pinned(folder: &Path) -> DatapathConfig {
    DatapathConfig {
        n3_addresses: vec![UPF.into()],
        workers: 1,
        sessions: 16,
        path: PathChoice::Xdp,
        xdp_hook: XdpHook::Generic,
        interfaces: vec!["n3".into(), "n6".into()],
        pin: Some(folder.into()),
        ..DatapathConfig::default()
    }
}

/// The process to be killed: it executes one command per line. Without its environment variable it does
/// nothing.
#[test]
fn process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let native = std::env::var_os(HOOK).is_some_and(|hook| hook == "Native");
    let xdp_hook = if native { XdpHook::Native } else { XdpHook::Generic };
    let mut upf = UserPlane::start(DatapathConfig { xdp_hook, ..pinned(folder.as_ref()) }).unwrap();
    println!("\nready {}", upf.succeeds());
    for line in std::io::stdin().lines() {
        match line.unwrap().as_str() {
            "install" => upf.install(Arc::new(session())),
            "install lost" => upf.install(Arc::new(session_of(2, LOST_UE, LOST_TEID, 0x201))),
            "dismiss" => upf.dismiss_predecessor(),
            "usage" => print!("{} ", upf.usage(SessionId(1)).unwrap().urrs[0].volume.uplink_packets),
            other => panic!("what is '{other}'?"),
        }
        println!("done");
    }
}

/// A child process.
struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts one in this thread's network namespace. Returns whether it succeeds a predecessor.
    fn start(folder: &Path, kind: Kind) -> (Self, bool) {
        // The program's path need not exist below the root directory of this thread (`Folder`).
        let mut child = Command::new("/proc/self/exe")
            .args(["process", "--exact", "--nocapture"])
            .env(FOLDER, folder)
            .env(HOOK, format!("{kind:?}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut process = Self { child, input, output };
        let succeeds = process.line_with("ready").ends_with("true");
        (process, succeeds)
    }

    fn line_with(&mut self, word: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the process has ended");
            if line.contains(word) {
                return line.trim().to_owned();
            }
        }
    }

    fn tell(&mut self, order: &str) -> String {
        writeln!(self.input, "{order}").unwrap();
        self.line_with("done")
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it with an orderly stop.
    fn stop(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

/// Exchanges packets of the UE in both directions, one at a time, until ended.
struct Traffic {
    ending: Arc<AtomicBool>,
    thread: thread::JoinHandle<(u32, u32)>,
}

impl Traffic {
    fn start(gnb: UdpSocket, server: UdpSocket) -> Self {
        let ending = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ending);
        let thread = thread::spawn(move || {
            let (mut sent, mut lost) = (0, 0);
            while !seen.load(Relaxed) {
                sent += 1;
                lost += u32::from(!passes_both_ways(&gnb, &server, sent));
            }
            (sent, lost)
        });
        Self { ending, thread }
    }

    /// The number of packets sent, and of those not received.
    fn end(self) -> (u32, u32) {
        self.ending.store(true, Relaxed);
        self.thread.join().unwrap()
    }
}

fn passes_both_ways(gnb: &UdpSocket, server: &UdpSocket, number: u32) -> bool {
    let payload = number.to_be_bytes();
    gnb.send_to(&gpdu(TEID, &udp(UE, SERVER, 7000, &payload)), (UPF, GTPU_PORT)).unwrap();
    let up = received(server, &payload);
    server.send_to(&payload, (UE, 5000)).unwrap();
    let down = received(gnb, &payload);
    thread::sleep(Duration::from_millis(1));
    up && down
}

/// Whether a datagram that ends with `payload` is received; late ones are skipped.
fn received(socket: &UdpSocket, payload: &[u8]) -> bool {
    let mut buffer = [0; 2048];
    while let Ok(length) = socket.recv(&mut buffer) {
        if buffer[..length].ends_with(payload) {
            return true;
        }
    }
    false
}

fn gpdu(teid: u32, inner: &[u8]) -> Vec<u8> {
    let header = UlPduSessionInformation { qfi: QFI, qos_monitoring: None }.gpdu_header(teid, inner.len());
    [&header.unwrap()[..], inner].concat()
}

/// Two UEs; the process is killed; its successor first has no session, then that of one UE.
fn survives(kind: Kind) {
    if !enter_namespace() {
        return;
    }
    eprintln!("-- {kind:?}");
    let folder = Folder::new(&format!("{kind:?}"));
    let (radio, data) = (wire("n3", UPF, GNB, kind), wire("n6", UPF_N6, SERVER, kind));
    data.run(|| drop(run(&format!("ip route add 10.45.0.0/16 via {UPF_N6}"))));
    let socket = |host: &Host, address, port, patience| {
        let socket = host.run(move || bound((address, port)));
        socket.set_read_timeout(Some(patience)).unwrap();
        socket
    };
    let soon = Duration::from_millis(300);
    let (mut first, succeeds) = Process::start(&folder.0, kind);
    assert!(!succeeds);
    first.tell("install");
    first.tell("install lost");
    let traffic = Traffic::start(socket(&radio, GNB, GTPU_PORT, soon), socket(&data, SERVER, 7000, soon));
    let other_gnb = socket(&radio, GNB, 0, PATIENCE);
    let other_server = socket(&data, SERVER, 7001, PATIENCE);
    let lost_ue_sends = || {
        let packet = udp(LOST_UE, SERVER, 7001, b"still there");
        other_gnb.send_to(&gpdu(LOST_TEID, &packet), (UPF, GTPU_PORT)).unwrap();
        other_server.recv(&mut [0; 100]).is_ok()
    };
    thread::sleep(Duration::from_millis(100));
    first.kill();
    thread::sleep(Duration::from_millis(100));
    assert!(lost_ue_sends(), "nobody is there but the program");
    let (mut second, succeeds) = Process::start(&folder.0, kind);
    assert!(succeeds);
    thread::sleep(Duration::from_millis(100));
    second.tell("install");
    thread::sleep(Duration::from_millis(100));
    assert_ne!(second.tell("usage"), "0 done", "what is set up again is the new process's");
    assert!(lost_ue_sends());
    second.tell("dismiss");
    other_server.set_read_timeout(Some(soon)).unwrap();
    assert!(!lost_ue_sends(), "what was not set up again has ended");
    let (sent, lost) = traffic.end();
    eprintln!("{sent} packets each way, {lost} lost");
    assert!(sent > 50 && lost == 0, "{lost} of {sent}");
    second.stop();
    assert!(!folder.is_mount_point(), "what the first process has mounted the second takes down");
    assert!(!run("ip link show n3").contains("prog/xdp"));
}

#[test]
fn a_killed_and_restarted_process_loses_no_packet() {
    for kind in [Kind::Generic, Kind::Native] {
        survives(kind);
    }
}

/// Unknown TEIDs are answered with Error Indications only after the restoration time of sessions.
#[test]
fn tunnels_that_may_come_back_are_not_refused() {
    if !enter_namespace() {
        return;
    }
    let kind = Kind::Generic;
    let folder = Folder::new("refuse");
    let (radio, _data) = (wire("n3", UPF, GNB, kind), wire("n6", UPF_N6, SERVER, kind));
    let gnb = radio.run(|| bound((GNB, GTPU_PORT)));
    gnb.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let is_refused = || {
        gnb.send_to(&gpdu(0xdead, &udp(UE, SERVER, 7000, b"x")), (UPF, GTPU_PORT)).unwrap();
        let mut buffer = [0; 200];
        let answer = gnb.recv(&mut buffer).ok();
        answer.is_some_and(|length| Packet::decode(&buffer[..length]).unwrap().message_type.0 == 26)
    };
    let (first, _) = Process::start(&folder.0, kind);
    assert!(is_refused());
    first.kill();
    let (mut second, succeeds) = Process::start(&folder.0, kind);
    assert!(succeeds && !is_refused());
    second.tell("dismiss");
    assert!(is_refused());
    second.stop();
}

/// With the automatic hook too, after a program with the generic hook.
#[test]
fn behind_a_driver_without_xdp_a_process_succeeds_the_one_before() {
    if !enter_namespace() {
        return;
    }
    let folder = Folder::new("auto");
    for (device, address) in [("n3", UPF), ("n6", UPF_N6)] {
        run(&format!("ip link add {device} type bridge"));
        run(&format!("ip addr add {address}/24 dev {device}"));
        run(&format!("ip link set {device} up"));
    }
    Process::start(&folder.0, Kind::Generic).0.kill();
    let upf = UserPlane::start(DatapathConfig { xdp_hook: XdpHook::Auto, ..pinned(&folder.0) }).unwrap();
    assert!(upf.succeeds());
    assert!(matches!(upf, UserPlane::Xdp(ref fast) if !fast.is_native()));
}

/// A wire on either side, with the program of a killed process.
fn left_behind(name: &str) -> Option<(Folder, [Host; 2])> {
    if !enter_namespace() {
        return None;
    }
    let folder = Folder::new(name);
    let hosts = [wire("n3", UPF, GNB, Kind::Generic), wire("n6", UPF_N6, SERVER, Kind::Generic)];
    Process::start(&folder.0, Kind::Generic).0.kill();
    assert!(has_program());
    Some((folder, hosts))
}

fn has_program() -> bool {
    ["n3", "n6"].iter().any(|device| run(&format!("ip link show {device}")).contains("prog/xdp"))
}

#[test]
fn the_portable_path_ends_the_program_of_a_killed_process() {
    let Some((folder, _hosts)) = left_behind("portable") else { return };
    let auto = DatapathConfig { path: PathChoice::Auto, ..pinned(&folder.0) };
    let asked_for = DatapathConfig { path: PathChoice::Portable, ..auto.clone() };
    let policies = vec![NetworkPolicy { mss: Some(1300), ..NetworkPolicy::none(auto.pools[0]) }];
    let by_kernel = DatapathConfig { policies, ..auto.clone() };
    let interfaces = vec!["n3".into(), "no-such".into()];
    let not_loaded = DatapathConfig { interfaces, ..auto };
    for config in [asked_for, by_kernel, not_loaded] {
        let upf = UserPlane::start(config.clone()).unwrap();
        assert!(matches!(upf, UserPlane::Portable(_)), "{config:?}");
        assert!(!has_program(), "packets go on by a dead process's rules: {config:?}");
        assert!(!folder.is_mount_point());
        upf.stop();
        Process::start(&folder.0, Kind::Generic).0.kill();
    }
}

#[test]
fn a_upf_does_not_start_beside_a_program_that_it_cannot_detach() {
    let Some((folder, _hosts)) = left_behind("unpinned") else { return };
    let unpinned = DatapathConfig { pin: None, ..pinned(&folder.0) };
    for path in [PathChoice::Auto, PathChoice::Portable, PathChoice::Xdp] {
        let error = UserPlane::start(DatapathConfig { path, ..unpinned.clone() }).unwrap_err().to_string();
        assert!(error.contains("upf.pin"), "what to do, in: {error}");
    }
    assert!(UserPlane::start(pinned(&folder.0)).unwrap().succeeds());
    UserPlane::start(unpinned).unwrap().stop();
}

/// An existing BPF file system is kept, and a non-empty directory is not mounted over.
#[test]
fn only_an_empty_folder_without_a_bpf_file_system_is_mounted_on() {
    if !enter_namespace() {
        return;
    }
    let folder = Folder::new("mounts");
    let _hosts = [wire("n3", UPF, GNB, Kind::Generic), wire("n6", UPF_N6, SERVER, Kind::Generic)];
    std::fs::write(folder.0.join("file"), "").unwrap();
    let error = UserPlane::start(pinned(&folder.0)).unwrap_err().to_string();
    assert!(error.contains("not empty"), "{error}");
    assert!(!folder.is_mount_point());
    std::fs::remove_file(folder.0.join("file")).unwrap();
    run(&format!("mount -t bpf bpf {}", folder.0.display()));
    UserPlane::start(pinned(&folder.0.join("pith"))).unwrap().stop();
    assert!(folder.is_mount_point());
}

/// The directory that is empty on a machine without systemd (`sysfs`).
#[test]
fn the_usual_folder_of_a_machine_without_a_bpf_file_system_gets_one() {
    if !enter_namespace() {
        return;
    }
    let _private = Folder::new("usual");
    while std::process::Command::new("umount").arg("/sys/fs/bpf").output().unwrap().status.success() {}
    let folder = Path::new("/sys/fs/bpf/pith");
    let _hosts = [wire("n3", UPF, GNB, Kind::Generic), wire("n6", UPF_N6, SERVER, Kind::Generic)];
    Process::start(folder, Kind::Generic).0.kill();
    let (second, succeeds) = Process::start(folder, Kind::Generic);
    assert!(succeeds);
    second.stop();
    assert_eq!(std::fs::read_dir("/sys/fs/bpf").unwrap().count(), 0, "nothing is left");
}
