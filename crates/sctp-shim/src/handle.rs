//! The SCTP sockets of this program: their settings and state.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libc::c_int;

use crate::abi;

/// Descriptors from here on are not intercepted.
const MAX_FD: usize = 1 << 16;

/// The intercepted descriptors: read on every call of the program, therefore without a lock.
static OURS: [AtomicBool; MAX_FD] = [const { AtomicBool::new(false) }; MAX_FD];
static HANDLES: Mutex<Option<HashMap<RawFd, Arc<Handle>>>> = Mutex::new(None);

/// One SCTP socket.
pub(crate) struct Handle {
    ipv4: bool,
    state: Mutex<State>,
}

/// The state of a socket.
#[derive(Default)]
struct State {
    /// The engine's end of the pair, until the engine takes it.
    engine_end: Option<OwnedFd>,
    local: Option<SocketAddr>,
    peer: Option<SocketAddr>,
    subscriptions: Subscriptions,
    streams: Option<Streams>,
    /// An error that was not reported to the program yet.
    error: Option<c_int>,
}

/// The program's subscriptions to notifications and ancillary data.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Subscriptions {
    /// `SCTP_SNDRCV` with each message.
    pub data_io: bool,
    /// `SCTP_RCVINFO` with each message.
    pub receive_info: bool,
    pub association: bool,
    pub shutdown: bool,
}

/// Streams of an established association.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Streams {
    pub inbound: u16,
    pub outbound: u16,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The handle of a descriptor, if it is intercepted.
pub(crate) fn find(fd: RawFd) -> Option<Arc<Handle>> {
    let flag = OURS.get(usize::try_from(fd).ok()?)?;
    if !flag.load(Ordering::Acquire) {
        return None;
    }
    lock(&HANDLES).as_ref()?.get(&fd).cloned()
}

/// Creates a socket for the program, and returns its descriptor.
pub(crate) fn create(domain: c_int, kind: c_int) -> io::Result<RawFd> {
    let (fd, engine_end) = pair(kind & (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC))?;
    let handle = Handle { ipv4: domain == libc::AF_INET, state: Mutex::default() };
    lock(&handle.state).engine_end = Some(engine_end);
    register(fd, Arc::new(handle))
}

/// Creates a socket for an accepted association; returns its descriptor, its handle and the engine's end.
pub(crate) fn create_accepted(
    listener: &Handle,
    local: SocketAddr,
) -> io::Result<(RawFd, Arc<Handle>, OwnedFd)> {
    let (fd, engine_end) = pair(0)?;
    let handle = Arc::new(Handle { ipv4: listener.ipv4, state: Mutex::default() });
    handle.set_local(local);
    handle.subscribe(|s| *s = listener.subscriptions());
    Ok((register(fd, Arc::clone(&handle))?, handle, engine_end))
}

fn register(fd: RawFd, handle: Arc<Handle>) -> io::Result<RawFd> {
    let flag = usize::try_from(fd).ok().and_then(|fd| OURS.get(fd));
    let flag = flag.ok_or_else(|| io::Error::from_raw_os_error(libc::EMFILE))?;
    lock(&HANDLES).get_or_insert_default().insert(fd, handle);
    flag.store(true, Ordering::Release);
    Ok(fd)
}

/// Removes a descriptor that is about to be closed.
pub(crate) fn forget(fd: RawFd) {
    if let Some(flag) = usize::try_from(fd).ok().and_then(|fd| OURS.get(fd)) {
        flag.store(false, Ordering::Release);
    }
    lock(&HANDLES).as_mut().and_then(|handles| handles.remove(&fd));
}

/// A pair of sockets that preserve message boundaries: the program's end, with flags, and the engine's.
fn pair(flags: c_int) -> io::Result<(RawFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` is room for two descriptors, which have no other owner.
    unsafe {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        abi::check(libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) as isize)?;
        let engine_end = OwnedFd::from_raw_fd(ends[1]);
        if flags & libc::SOCK_CLOEXEC == 0 {
            libc::fcntl(ends[0], libc::F_SETFD, 0);
        }
        abi::apply_flags(ends[0], flags)?;
        Ok((ends[0], engine_end))
    }
}

impl Handle {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Takes the engine's end, once.
    pub fn take_engine_end(&self) -> io::Result<OwnedFd> {
        self.state().engine_end.take().ok_or_else(|| io::Error::from_raw_os_error(libc::EISCONN))
    }

    /// Whether neither `connect` nor `listen` has been called yet.
    pub fn is_fresh(&self) -> bool {
        self.state().engine_end.is_some()
    }

    pub fn set_local(&self, address: SocketAddr) {
        self.state().local = Some(address);
    }

    pub fn local(&self) -> Option<SocketAddr> {
        self.state().local
    }

    /// The local address, or the unspecified one.
    pub fn local_or_any(&self) -> SocketAddr {
        let any = if self.ipv4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        self.local().unwrap_or(SocketAddr::new(any, 0))
    }

    pub fn set_peer(&self, address: SocketAddr) {
        self.state().peer = Some(address);
    }

    pub fn peer(&self) -> Option<SocketAddr> {
        self.state().peer
    }

    pub fn subscriptions(&self) -> Subscriptions {
        self.state().subscriptions
    }

    pub fn subscribe(&self, change: impl FnOnce(&mut Subscriptions)) {
        change(&mut self.state().subscriptions);
    }

    pub fn set_streams(&self, streams: Option<Streams>) {
        self.state().streams = streams;
    }

    pub fn streams(&self) -> Option<Streams> {
        self.state().streams
    }

    pub fn set_error(&self, errno: c_int) {
        self.state().error = Some(errno);
    }

    /// Takes the error that was not reported yet.
    pub fn take_error(&self) -> Option<c_int> {
        self.state().error.take()
    }
}
