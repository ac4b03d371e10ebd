//! Receive times of datagrams by the kernel's time stamps: the receiving thread may be late.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::{Duration, SystemTime};

/// The clock of the time stamps.
pub fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970")
}

/// Enables receive time stamps.
pub fn enable(socket: &UdpSocket) {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is a readable C int.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            4,
        )
    };
    assert_eq!(set, 0);
}

/// A datagram's length and receive time; `None` after the socket's timeout.
pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> Option<(usize, Duration)> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = [0u64; 8];
    // SAFETY: all zero is a valid header; what it points at is writable for the lengths given and lives during the call;
    // a control message is read where the kernel says that it wrote one.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
        (header.msg_control, header.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control));
        let length = usize::try_from(libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0)).ok()?;
        let message = libc::CMSG_FIRSTHDR(&raw const header).as_ref()?;
        assert_eq!(message.cmsg_type, libc::SCM_TIMESTAMPNS);
        let time: libc::timespec = libc::CMSG_DATA(message).cast::<libc::timespec>().read_unaligned();
        Some((length, Duration::new(time.tv_sec as u64, time.tv_nsec as u32)))
    }
}
