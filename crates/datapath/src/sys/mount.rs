//! BPF file systems that Pith mounts itself.

use super::check;
use super::link::c_path;
use std::ffi::CStr;
use std::io;
use std::path::Path;

/// Mounts a BPF file system that only this process's user may enter; /proc/self/mountinfo shows `source` as
/// its source.
pub fn mount_bpf_fs(source: &CStr, point: &Path) -> io::Result<()> {
    let path = c_path(point)?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: all strings end with a zero byte and live during the call.
    let answer = unsafe {
        libc::mount(source.as_ptr(), path.as_ptr(), c"bpf".as_ptr(), flags, c"mode=0700".as_ptr().cast())
    };
    check(answer).map(drop)
}

/// Unmounts `point`, unless it is in use.
pub fn unmount(point: &Path) -> io::Result<()> {
    let path = c_path(point)?;
    // SAFETY: the path ends with a zero byte and lives during the call.
    check(unsafe { libc::umount2(path.as_ptr(), libc::UMOUNT_NOFOLLOW) }).map(drop)
}
