//! Tests that no thread keeps more privileges than needed. This test needs a process of its own, as
//! privileges cannot be regained.

use pith_datapath::{DatapathConfig, UserPlane};
use pith_runtime::privileges::{Need, hide_memory, keep_only};
use std::sync::mpsc::channel;

/// A user plane in a network namespace of its own, whose workers start with all privileges; `None` without permission.
fn user_plane() -> Option<UserPlane> {
    // SAFETY: takes no pointers; changes the namespace of the calling thread only.
    #[allow(unsafe_code)]
    let answer = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    if answer != 0 {
        return None;
    }
    std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status().ok()?;
    UserPlane::start(DatapathConfig { workers: 2, ..DatapathConfig::default() }).ok()
}

/// The names of all threads.
fn names() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name =
        |task: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(task.unwrap().path().join("comm"));
    tasks.filter_map(|task| Some(name(task).ok()?.trim().to_owned())).collect()
}

/// The status lines with these names, of all threads.
fn lines(names: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let of =
            |name: &&str| status.lines().find(|line| line.starts_with(*name)).unwrap().replace('\t', " ");
        lines.extend(names.iter().map(of));
    }
    lines.sort();
    lines.dedup();
    lines
}

#[test]
fn memory_is_in_no_core_file() {
    hide_memory().unwrap();
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{core}");
    // SAFETY: prctl gets plain values.
    #[allow(unsafe_code)]
    let dumpable = unsafe { libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0) };
    assert_eq!(dumpable, 0);
}

#[test]
fn running_and_new_threads_keep_only_needed_privileges() {
    let (end, ended) = channel::<()>();
    let busy = std::thread::spawn(move || ended.recv().is_err());
    let mut waits = std::process::Command::new("true").spawn().unwrap();
    waits.wait().unwrap();
    let was_root = lines(&["CapPrm"]).iter().any(|line| line.contains("3fff") || line.contains("1ff"));

    let upf = user_plane();
    if upf.is_some() {
        for worker in ["pith-upf-0", "pith-upf-1", "pith-upf-closed"] {
            // A thread sets its name after it has begun.
            let is_there = |_| {
                std::thread::sleep(std::time::Duration::from_millis(1));
                names().iter().any(|name| name == worker)
            };
            assert!((0..1_000).any(is_there), "{worker} in {:?}", names());
        }
    }
    keep_only(Need::UserPlane).unwrap();
    let kept = lines(&["CapPrm", "CapEff", "NoNewPrivs"]);
    // NET_ADMIN 12, NET_RAW 13, PERFMON 38, BPF 39; none if the process started without privileges.
    let kept_of_root = ["CapEff: 000000c000003000", "CapPrm: 000000c000003000", "NoNewPrivs: 1"];
    let kept_of_others = ["CapEff: 0000000000000000", "CapPrm: 0000000000000000", "NoNewPrivs: 1"];
    assert!(kept == kept_of_root || !was_root && kept == kept_of_others, "{kept:?}");

    // What remains is enough to take the user plane down.
    drop(upf);
    keep_only(Need::Nothing).unwrap();
    let (later, went_on) = channel::<()>();
    let begun = std::thread::spawn(move || went_on.recv().is_err());
    assert_eq!(
        lines(&["CapPrm", "CapEff", "CapInh", "NoNewPrivs"]),
        ["CapEff: 0000000000000000", "CapInh: 0000000000000000", "CapPrm: 0000000000000000", "NoNewPrivs: 1"]
    );
    if was_root {
        // The bounding set of the first call: without CAP_SETPCAP the second call cannot change it, and need
        // not.
        assert_eq!(lines(&["CapBnd"]), ["CapBnd: 000000c000003000"]);
    }
    drop((end, later));
    assert!(busy.join().unwrap() && begun.join().unwrap(), "every thread ended normally");
}
