//! XDP attachments that outlive the process: pinned in a BPF file system.

use super::check;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `BPF_FS_MAGIC`.
const BPF_FS: libc::c_long = 0xcafe_4a11;

/// Whether a directory is in a BPF file system.
pub fn is_bpf_fs(folder: &Path) -> io::Result<bool> {
    let path = c_path(folder)?;
    // SAFETY: all zero is a valid `statfs`; the path ends with a zero byte and both live during the call.
    unsafe {
        let mut found = std::mem::zeroed::<libc::statfs>();
        check(libc::statfs(path.as_ptr(), &raw mut found))?;
        Ok(found.f_type as libc::c_long == BPF_FS)
    }
}

/// Pins an attachment, so that it outlives the process.
pub fn pin_link(link: BorrowedFd<'_>, name: &Path) -> io::Result<()> {
    let path = c_path(name)?;
    // SAFETY: the path ends with a zero byte and lives during the call.
    answer(unsafe { libbpf_sys::bpf_obj_pin(link.as_raw_fd(), path.as_ptr()) }).map(drop)
}

/// Opens a pinned attachment.
pub fn pinned_link(name: &Path) -> io::Result<OwnedFd> {
    let path = c_path(name)?;
    // SAFETY: the path ends with a zero byte and lives during the call; the descriptor it answers is ours alone.
    unsafe { Ok(OwnedFd::from_raw_fd(answer(libbpf_sys::bpf_obj_get(path.as_ptr()))?)) }
}

/// Detaches the program; the pin remains.
pub fn detach_link(link: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes no pointers.
    answer(unsafe { libbpf_sys::bpf_link_detach(link.as_raw_fd()) }).map(drop)
}

/// The name of the XDP program attached to a device; `None` if there is none, or the kernel does not report
/// it.
pub fn xdp_program_name(device: u32) -> Option<String> {
    // SAFETY: all zero is a valid `bpf_prog_info`, whose size is said; all live during the calls; the descriptor is ours
    // alone; the name ends with a zero byte.
    unsafe {
        let mut id = 0;
        answer(libbpf_sys::bpf_xdp_query_id(device as libc::c_int, 0, &raw mut id)).ok()?;
        let program = OwnedFd::from_raw_fd(answer(libbpf_sys::bpf_prog_get_fd_by_id(id)).ok()?);
        let mut info = std::mem::zeroed::<libbpf_sys::bpf_prog_info>();
        let mut length = size_of_val(&info) as u32;
        answer(libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut length))
            .ok()?;
        Some(CStr::from_ptr(info.name.as_ptr()).to_string_lossy().into_owned())
    }
}

/// An attachment's device, 0 if that is gone, and its program.
pub fn link_target(link: BorrowedFd<'_>) -> io::Result<(u32, OwnedFd)> {
    // SAFETY: all zero is a valid `bpf_link_info`; the length says its size; of its union that of XDP is read where
    // the kernel says that it is one; the descriptor is ours alone.
    unsafe {
        let mut info = std::mem::zeroed::<libbpf_sys::bpf_link_info>();
        let mut length = size_of_val(&info) as u32;
        answer(libbpf_sys::bpf_link_get_info_by_fd(link.as_raw_fd(), &raw mut info, &raw mut length))?;
        if info.type_ != libbpf_sys::BPF_LINK_TYPE_XDP {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let device = info.__bindgen_anon_1.xdp.ifindex;
        let program = answer(libbpf_sys::bpf_prog_get_fd_by_id(info.prog_id))?;
        Ok((device, OwnedFd::from_raw_fd(program)))
    }
}

/// Replaces an attachment's program between two packets.
pub fn replace_program(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let (link, program) = (link.as_raw_fd(), program.as_raw_fd());
    // SAFETY: no options are given.
    answer(unsafe { libbpf_sys::bpf_link_update(link, program, std::ptr::null()) }).map(drop)
}

/// Converts the return value of a libbpf call, which is a negative error.
fn answer(value: libc::c_int) -> io::Result<libc::c_int> {
    if value < 0 { Err(io::Error::from_raw_os_error(-value)) } else { Ok(value) }
}

pub(super) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}
