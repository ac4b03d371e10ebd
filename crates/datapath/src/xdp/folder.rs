//! The directory of `upf.pin`, in a BPF file system. If none is mounted there, Pith mounts one: on the
//! directory, or on /sys/fs/bpf for a directory below it. The mount point must be empty, so that the mount
//! hides nothing.
//!
//! The file system and its pins outlive the process, and the next process succeeds them. An orderly stop
//! unmounts it if it is empty. In a mount namespace of the process (systemd's `PrivateMounts=`) it ends with
//! the namespace; the operator then has to mount one outside.

use crate::sys::{is_bpf_fs, mount_bpf_fs, unmount};
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The kernel's mount point for a BPF file system; directories below it can be created only after the mount.
const USUAL_POINT: &str = "/sys/fs/bpf";

/// The mount source by which Pith recognises its own mounts, also those of a killed process.
const SOURCE: &CStr = c"pith";

/// How often, and after what pause, a file system is unmounted that is in use.
const BUSY_TRIES: u32 = 5;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Creates the directory in a BPF file system, and mounts one if needed.
pub fn open(folder: &Path) -> io::Result<()> {
    let usual = Path::new(USUAL_POINT);
    if folder.starts_with(usual) && !is_bpf_fs(usual)? {
        mount_on(usual)?;
    }
    std::fs::create_dir_all(folder)?;
    if !is_bpf_fs(folder)? {
        mount_on(folder)?;
    }
    Ok(())
}

fn mount_on(point: &Path) -> io::Result<()> {
    let place = point.display();
    if std::fs::read_dir(point)?.next().is_some() {
        let advice = "is not a BPF file system and is not empty: configure an empty directory, or one below /sys/fs/bpf";
        return Err(io::Error::other(format!("{place} {advice}")));
    }
    mount_bpf_fs(SOURCE, point).map_err(|error| {
        let advice = format!("run 'mount -t bpf bpf {place}' as root before the start");
        io::Error::new(error.kind(), format!("cannot mount a BPF file system on {place}: {error}; {advice}"))
    })?;
    tracing::info!("user plane: mounted a BPF file system on {place} for 'upf.pin'");
    if has_own_mount_namespace() {
        tracing::warn!(
            "user plane: this process has its own mount namespace, with which {place} ends: to keep forwarding after \
             Pith is killed, run 'mount -t bpf bpf {place}' outside of it"
        );
    }
    Ok(())
}

/// Whether this process has a mount namespace of its own: its mounts are invisible outside and end with it.
fn has_own_mount_namespace() -> bool {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt"));
    matches!((namespace("thread-self"), namespace("1")), (Ok(own), Ok(first)) if own != first)
}

/// Unmounts what Pith has mounted for the directory, if that is empty.
pub fn close(folder: &Path) {
    for point in [folder, Path::new(USUAL_POINT)] {
        if !folder.starts_with(point) || !is_own(point) {
            continue;
        }
        if point != folder {
            // Pins of another UPF keep the directory and its mount.
            let _ = std::fs::remove_dir(folder);
        }
        if has_only_preloaded(point)
            && let Err(error) = unmount_when_unused(point)
        {
            tracing::debug!(%error, "the BPF file system on {} stays", point.display());
        }
    }
}

/// A process that another thread starts has this one's open directories until it executes its program.
fn unmount_when_unused(point: &Path) -> io::Result<()> {
    for _ in 0..BUSY_TRIES {
        match unmount(point) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(BUSY_PAUSE),
            result => return result,
        }
    }
    unmount(point)
}

/// Whether a BPF file system contains only the kernel's own entries (`kernel/bpf/preload`).
fn has_only_preloaded(point: &Path) -> bool {
    let is_preloaded = |name: &OsStr| name == "maps.debug" || name == "progs.debug";
    std::fs::read_dir(point).is_ok_and(|mut entries| {
        entries.all(|entry| entry.is_ok_and(|entry| is_preloaded(&entry.file_name())))
    })
}

/// Whether a BPF file system mounted by Pith, this process or an earlier one, is on `point`.
fn is_own(point: &Path) -> bool {
    let mounts = std::fs::read("/proc/thread-self/mountinfo").unwrap_or_default();
    let escaped = escaped(point);
    // The last mount on a path hides the earlier ones.
    let last = mounts.split(|octet| *octet == b'\n').rfind(|line| field(line, 4) == Some(&escaped[..]));
    last.is_some_and(is_mount_of_pith)
}

/// Checks the file system type and source after the separator (proc_pid_mountinfo(5)).
fn is_mount_of_pith(line: &[u8]) -> bool {
    let mut fields = line.split(|octet| *octet == b' ').skip_while(|field| *field != b"-").skip(1);
    fields.next() == Some(b"bpf") && fields.next() == Some(SOURCE.to_bytes())
}

fn field(line: &[u8], number: usize) -> Option<&[u8]> {
    line.split(|octet| *octet == b' ').nth(number)
}

/// A path as /proc/self/mountinfo writes it.
fn escaped(path: &Path) -> Vec<u8> {
    let octets = path.as_os_str().as_bytes().iter();
    let escape = |octet: &u8| match octet {
        b' ' | b'\t' | b'\n' | b'\\' => format!("\\{octet:03o}").into_bytes(),
        other => vec![*other],
    };
    octets.flat_map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_of_pith_is_recognised_by_type_and_source() {
        for (line, own) in [
            ("33 24 0:28 / /sys/fs/bpf rw,nosuid shared:9 - bpf pith rw,mode=700", true),
            ("33 24 0:28 / /sys/fs/bpf rw,nosuid - bpf pith rw,mode=700", true),
            ("33 24 0:28 / /sys/fs/bpf rw,nosuid shared:9 - bpf bpf rw,mode=700", false),
            ("33 24 0:28 / /sys/fs/bpf rw,nosuid shared:9 - tmpfs pith rw", false),
            ("", false),
        ] {
            assert_eq!(is_mount_of_pith(line.as_bytes()), own, "{line}");
        }
        assert_eq!(escaped(Path::new("/run/a b")), b"/run/a\\040b");
    }
}
