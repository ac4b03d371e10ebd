//! Sockets and epoll, for both stacks.
#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, size_of_val};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, sockaddr_storage, socklen_t};

/// Converts a result of -1 to the error in `errno`.
pub(super) fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The same for calls that return a length.
pub(super) fn check_len(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// A non-blocking socket that child processes do not inherit.
pub(super) fn new_socket(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers; a non-negative result is a descriptor without another owner.
    unsafe {
        let fd = check(libc::socket(domain, kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, protocol))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Sets a socket option to the bytes of `value`.
pub(super) fn set_option<T: Copy>(
    fd: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of `value`.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const *value).cast(),
            size_of_val(value) as socklen_t,
        )
    };
    check(result).map(drop)
}

/// Sets a socket option to these bytes.
pub(super) fn set_option_bytes(
    fd: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: &[u8],
) -> io::Result<()> {
    let length = value.len() as socklen_t;
    // SAFETY: the pointer and the length are those of `value`.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.as_ptr().cast(), length) }).map(drop)
}

/// Binds a socket to an address.
pub(super) fn bind(fd: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    let (storage, length) = encode_address(address);
    // SAFETY: `storage` holds an address of `length` bytes.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const storage).cast(), length) }).map(drop)
}

/// Address family constant of an address.
pub(super) fn family(address: IpAddr) -> c_int {
    if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }
}

/// An address in the form of system calls.
pub(crate) fn encode_address(address: SocketAddr) -> (sockaddr_storage, socklen_t) {
    // SAFETY: all-zero bytes are a valid sockaddr_storage, which is large and aligned enough for both families.
    let mut storage: sockaddr_storage = unsafe { std::mem::zeroed() };
    let length = match address {
        SocketAddr::V4(v4) => {
            let place = (&raw mut storage).cast::<libc::sockaddr_in>();
            let value = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: see above.
            unsafe { place.write(value) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(v6) => {
            let place = (&raw mut storage).cast::<libc::sockaddr_in6>();
            let value = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: see above.
            unsafe { place.write(value) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, length as socklen_t)
}

/// The address in a system call's result; `None` for other families.
pub(crate) fn decode_address(storage: &sockaddr_storage) -> Option<SocketAddr> {
    let place = &raw const *storage;
    match c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: by the family, a sockaddr_in is stored here; the storage is aligned for it.
            let v4 = unsafe { &*place.cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: by the family, a sockaddr_in6 is stored here; the storage is aligned for it.
            let v6 = unsafe { &*place.cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            // A socket of both families reports IPv4 addresses in mapped form.
            Some(match ip.to_ipv4_mapped() {
                Some(v4) => SocketAddrV4::new(v4, port).into(),
                None => SocketAddrV6::new(ip, port, 0, v6.sin6_scope_id).into(),
            })
        }
        _ => None,
    }
}

/// An epoll instance: level-triggered, with a token for each descriptor.
pub(super) struct Epoll {
    fd: OwnedFd,
    ready: Vec<libc::epoll_event>,
}

/// Largest number of descriptors that one call of [`Epoll::ready`] reports; the next call reports further
/// ones.
const READY_BATCH: usize = 256;

impl Epoll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers; a non-negative result is a descriptor without another owner.
        let fd = unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        Ok(Self { fd, ready: Vec::with_capacity(READY_BATCH) })
    }

    pub fn add(&self, fd: BorrowedFd<'_>, interest: c_int, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, interest, token)
    }

    pub fn modify(&self, fd: BorrowedFd<'_>, interest: c_int, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, interest, token)
    }

    fn control(&self, operation: c_int, fd: BorrowedFd<'_>, interest: c_int, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest as u32, u64: token };
        // SAFETY: `event` outlives the call.
        let result =
            unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd.as_raw_fd(), &raw mut event) };
        check(result).map(drop)
    }

    /// Ready descriptors without waiting: token and EPOLL flags.
    pub fn ready(&mut self) -> impl Iterator<Item = (u64, c_int)> + '_ {
        // SAFETY: the buffer has room for READY_BATCH events, and the kernel fills as many as it returns.
        unsafe {
            let capacity = READY_BATCH as c_int;
            let count = libc::epoll_wait(self.fd.as_raw_fd(), self.ready.as_mut_ptr(), capacity, 0);
            self.ready.set_len(usize::try_from(count).unwrap_or(0));
        }
        self.ready.iter().map(|event| (event.u64, event.events as c_int))
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip_through_the_system_form() {
        for text in ["127.0.0.5:38412", "[2001:db8::1]:38412", "0.0.0.0:0"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(decode_address(&encode_address(address).0), Some(address));
        }
    }
}
