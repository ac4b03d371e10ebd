//! UDP sockets that hold a burst: PFCP of a thousand sessions at once.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Receive buffer asked for, in octets. The kernel gives less to whoever may not force it.
const RECEIVE_BUFFER: libc::c_int = 4 << 20;

/// Binds without blocking; `setting` is named to whoever has to change it.
pub fn bind(address: SocketAddr, setting: &str) -> io::Result<UdpSocket> {
    let explain = |error: io::Error| {
        let text = format!("can't listen on {address}/udp: {error}; free it or change '{setting}'");
        io::Error::new(error.kind(), text)
    };
    let socket = UdpSocket::bind(address).map_err(explain)?;
    socket.set_nonblocking(true)?;
    enlarge(&socket);
    Ok(socket)
}

/// Whether this host has an address; `setting` is named to whoever has to change it.
pub fn check_own_address(address: IpAddr, setting: &str) -> io::Result<()> {
    UdpSocket::bind((address, 0)).map(drop).map_err(|error| {
        let text = format!(
            "'{setting}': this host does not have the address {address} ({error}): name one of its own ('ip -brief address' lists them), or add it to an interface ('ip address add {address} dev INTERFACE')"
        );
        io::Error::new(error.kind(), text)
    })
}

/// A burst that does not fit is lost, and sent again only after T1. Without the right to force it, the
/// limit of the system (net.core.rmem_max) holds.
fn enlarge(socket: &UdpSocket) {
    for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
        let value = RECEIVE_BUFFER;
        // SAFETY: the value is an int that outlives the call, as the options want it.
        #[allow(unsafe_code)]
        let done = unsafe {
            let value = (&raw const value).cast();
            let length = size_of::<libc::c_int>() as libc::socklen_t;
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, length)
        };
        if done == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_this_host_does_not_have_is_told_with_its_setting() {
        check_own_address("127.0.0.5".parse().unwrap(), "amf.n2.addresses").unwrap();
        let error = check_own_address("192.0.2.77".parse().unwrap(), "amf.n2.addresses").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("'amf.n2.addresses'") && text.contains("ip -brief address"), "{text}");
    }

    #[test]
    fn an_address_in_use_is_told_with_its_setting() {
        let first = bind("127.0.0.1:0".parse().unwrap(), "n4.address").unwrap();
        let error = bind(first.local_addr().unwrap(), "n4.address").unwrap_err();
        assert!(error.to_string().contains("change 'n4.address'"), "{error}");
    }
}
