//! The folder of `upf.pin`, in a BPF file system. Where none is mounted there, Pith mounts one: on the folder, or on
//! /sys/fs/bpf for a folder below that. It covers nothing: the mount point must be an empty folder.
//!
//! The file system outlives the process, and the pins in it with it, so the next process takes over. It goes with an
//! orderly stop, once it is empty. In a mount namespace of the process's own, as systemd's `PrivateMounts=` makes one,
//! it ends with the namespace: then somebody has to mount one outside.

use crate::sys::{is_bpf_fs, mount_bpf_fs, unmount};
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where the kernel has an empty folder for a BPF file system, in which no folder can be made before it is mounted.
const USUAL_POINT: &str = "/sys/fs/bpf";

/// The source by which Pith knows a mount as its own, that of a killed process too.
const SOURCE: &CStr = c"pith";

/// Makes the folder, in a BPF file system.
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
        let advice = "is no BPF file system and is not empty: name an empty folder, or one below /sys/fs/bpf";
        return Err(io::Error::other(format!("{place} {advice}")));
    }
    mount_bpf_fs(SOURCE, point).map_err(|error| {
        let advice = format!("run 'mount -t bpf bpf {place}' as root before the start");
        io::Error::new(error.kind(), format!("can't mount a BPF file system on {place}: {error}; {advice}"))
    })?;
    tracing::info!("user plane: mounted a BPF file system on {place} for 'upf.pin'");
    if has_own_mount_namespace() {
        tracing::warn!(
            "user plane: this process has a mount namespace of its own, and {place} ends with it: for packets to go \
             on when Pith is killed, run 'mount -t bpf bpf {place}' outside of it"
        );
    }
    Ok(())
}

/// Whether mounts of this process may be unknown to the machine's first process, and end with this one.
fn has_own_mount_namespace() -> bool {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt"));
    matches!((namespace("thread-self"), namespace("1")), (Ok(own), Ok(first)) if own != first)
}

/// Takes down what Pith has mounted for the folder, if nothing is in it any more.
pub fn close(folder: &Path) {
    for point in [folder, Path::new(USUAL_POINT)] {
        if !folder.starts_with(point) || !is_own(point) {
            continue;
        }
        if point != folder {
            // Pins of another UPF keep the folder, and with it the mount.
            let _ = std::fs::remove_dir(folder);
        }
        if has_only_preloaded(point)
            && let Err(error) = unmount(point)
        {
            tracing::debug!(%error, "the BPF file system on {} stays", point.display());
        }
    }
}

/// Whether a BPF file system holds nothing but what the kernel puts into each (`kernel/bpf/preload`).
fn has_only_preloaded(point: &Path) -> bool {
    let is_preloaded = |name: &OsStr| name == "maps.debug" || name == "progs.debug";
    std::fs::read_dir(point).is_ok_and(|mut entries| {
        entries.all(|entry| entry.is_ok_and(|entry| is_preloaded(&entry.file_name())))
    })
}

/// Whether a BPF file system of Pith's is mounted there, by this process or one before.
fn is_own(point: &Path) -> bool {
    let mounts = std::fs::read("/proc/thread-self/mountinfo").unwrap_or_default();
    let escaped = escaped(point);
    // The last mount of a place covers those before.
    let last = mounts.split(|octet| *octet == b'\n').rfind(|line| field(line, 4) == Some(&escaped[..]));
    last.is_some_and(is_mount_of_pith)
}

/// By the file system type and source that stand behind the separator (proc_pid_mountinfo(5)).
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
    fn a_mount_of_pith_is_known_by_type_and_source() {
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
