//! Drops privileges after the start, except those that the UPF needs.
//!
//! Capabilities belong to threads, and a thread can change only its own. Therefore each thread of the process
//! gets a signal whose handler drops the thread's privileges; threads started later inherit what remains.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Numbers of capabilities, as in capabilities(7); `libc` does not define them.
const NET_ADMIN: u32 = 12;
const NET_RAW: u32 = 13;
const SYS_ADMIN: u32 = 21;
const PERFMON: u32 = 38;
const BPF: u32 = 39;
/// Upper bound of capability numbers: the sets have 64 bits.
const MOST: u32 = 64;
/// `_LINUX_CAPABILITY_VERSION_3`.
const VERSION: u32 = 0x2008_0522;
/// Time for all threads to handle the signal.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The capabilities that the signal handler keeps.
static KEPT: AtomicU64 = AtomicU64::new(0);

/// The privileges that a process needs after its sockets are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// None.
    Nothing,
    /// Network interfaces, routes and firewall rules, raw packets, BPF maps and programs.
    UserPlane,
}

impl Need {
    /// The capabilities as a bit set. Before Linux 5.8, BPF maps and programs needed CAP_SYS_ADMIN.
    fn capabilities(self) -> u64 {
        let list: &[u32] = match self {
            Self::Nothing => &[],
            Self::UserPlane if last_capability() < BPF => &[NET_ADMIN, NET_RAW, SYS_ADMIN],
            Self::UserPlane => &[NET_ADMIN, NET_RAW, BPF, PERFMON],
        };
        list.iter().fold(0, |set, capability| set | 1 << capability)
    }
}

/// The header and the sets of `capset(2)`.
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Keeps the memory of this process from core files and from other processes of the same user: it holds subscribers'
/// keys (TS 33.117 4.2.3.2.2).
pub fn hide_memory() -> io::Result<()> {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit lives during the call; prctl gets plain values.
    #[allow(unsafe_code)]
    let done = unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none) == 0
            && libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets this process lock as much memory as it needs, if it may: the kernel counts the frames of AF_XDP sockets, and a UPF that takes
/// another one over opens these without CAP_IPC_LOCK.
pub fn lift_memory_limit() {
    let all = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the limit lives during the call.
    #[allow(unsafe_code)]
    let is_lifted = unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const all) } == 0;
    if !is_lifted {
        tracing::debug!(error = %io::Error::last_os_error(), "the limit of locked memory stays");
    }
}

/// Whether [`keep_only`] was called.
pub fn are_given_up() -> bool {
    KEPT.load(Ordering::SeqCst) != 0
}

/// Drops all other privileges in all threads, and the ability to regain them through executables with more
/// privileges (PR_SET_NO_NEW_PRIVS).
pub fn keep_only(need: Need) -> io::Result<()> {
    KEPT.store(need.capabilities(), Ordering::SeqCst);
    let signal = libc::SIGRTMIN() + 5;
    // SAFETY: a sigaction may be all zeros; the handler does system calls only, which a handler may.
    #[allow(unsafe_code)]
    let answer = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut())
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    drop_capabilities(KEPT.load(Ordering::SeqCst));
    let begun = Instant::now();
    loop {
        let excessive = threads()?.into_iter().filter(|thread| !thread.is_limited(need)).collect::<Vec<_>>();
        if excessive.is_empty() {
            return Ok(());
        }
        if begun.elapsed() > TIMEOUT {
            return Err(io::Error::other(format!(
                "{} threads kept privileges that they do not need: this is a bug in Pith, please report it",
                excessive.len()
            )));
        }
        for thread in excessive {
            // SAFETY: both numbers are plain values; the error for a thread that has ended is harmless.
            #[allow(unsafe_code)]
            unsafe {
                libc::syscall(libc::SYS_tgkill, libc::getpid(), thread.id, signal)
            };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

extern "C" fn on_signal(_: libc::c_int) {
    // SAFETY: `errno` belongs to this thread; the interrupted code must find its own value afterwards.
    #[allow(unsafe_code)]
    let errno = unsafe { *libc::__errno_location() };
    drop_capabilities(KEPT.load(Ordering::SeqCst));
    // SAFETY: as above.
    #[allow(unsafe_code)]
    unsafe {
        *libc::__errno_location() = errno
    };
}

/// Drops the calling thread's capabilities except `kept`. Uses system calls only, as it runs in a signal
/// handler. The result is checked in /proc.
fn drop_capabilities(kept: u64) {
    let mut header = Header { version: VERSION, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: header and sets have the layout of version 3 and live during the calls; prctl gets plain values.
    #[allow(unsafe_code)]
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        for capability in 0..MOST {
            if kept >> capability & 1 == 0 {
                libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(capability), 0, 0, 0);
            }
        }
        if libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) != 0 {
            return;
        }
        for (half, sets) in sets.iter_mut().enumerate() {
            let kept = (kept >> (32 * half)) as u32;
            sets.effective &= kept;
            sets.permitted &= kept;
            sets.inheritable &= kept;
        }
        libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr());
    }
}

/// State of a thread in /proc.
struct Thread {
    id: libc::pid_t,
    permitted: u64,
    no_new: bool,
}

impl Thread {
    /// The bounding set is not checked: a process without CAP_SETPCAP cannot change it, and with
    /// PR_SET_NO_NEW_PRIVS it grants nothing.
    fn is_limited(&self, need: Need) -> bool {
        self.permitted & !need.capabilities() == 0 && self.no_new
    }
}

fn threads() -> io::Result<Vec<Thread>> {
    let mut threads = Vec::new();
    for entry in std::fs::read_dir("/proc/self/task")? {
        let entry = entry?;
        // A thread that has ended has no privileges.
        let Ok(status) = std::fs::read_to_string(entry.path().join("status")) else { continue };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim_start_matches(':').trim().to_owned()).unwrap_or_default()
        };
        let set = |name: &str| u64::from_str_radix(&field(name), 16).unwrap_or(0);
        let Some(id) = entry.file_name().to_str().and_then(|id| id.parse().ok()) else { continue };
        threads.push(Thread {
            id,
            permitted: set("CapPrm") | set("CapEff") | set("CapInh"),
            no_new: field("NoNewPrivs") == "1",
        });
    }
    Ok(threads)
}

/// The kernel's last capability, or that of Linux 5.9 if the kernel does not report it.
fn last_capability() -> u32 {
    let text = std::fs::read_to_string("/proc/sys/kernel/cap_last_cap").unwrap_or_default();
    text.trim().parse().unwrap_or(BPF + 1)
}
