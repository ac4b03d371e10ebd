//! UDP sockets with large receive buffers, for bursts such as the PFCP of a thousand sessions.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Requested receive buffer in octets. Without CAP_NET_ADMIN the kernel limits it.
const RECEIVE_BUFFER: libc::c_int = 4 << 20;

/// Binds a non-blocking socket; errors name `setting` as the one to change.
pub fn bind(address: SocketAddr, setting: &str) -> io::Result<UdpSocket> {
    let explain = |error: io::Error| {
        let text = format!("cannot listen on {address}/udp: {error}; free it or change '{setting}'");
        io::Error::new(error.kind(), text)
    };
    let socket = UdpSocket::bind(address).map_err(explain)?;
    socket.set_nonblocking(true)?;
    enlarge(&socket);
    Ok(socket)
}

/// Checks that this host has an address; the error names `setting` as the one to change.
pub fn check_own_address(address: IpAddr, setting: &str) -> io::Result<()> {
    UdpSocket::bind((address, 0)).map(drop).map_err(|error| {
        let text = format!(
            "'{setting}': this host does not have the address {address} ({error}): use one of its addresses ('ip -brief address' lists them), or add it to an interface ('ip address add {address} dev INTERFACE')"
        );
        io::Error::new(error.kind(), text)
    })
}

/// Enlarges the receive buffer, as datagrams of a burst that do not fit are lost until T1. Without
/// CAP_NET_ADMIN the system's limit (net.core.rmem_max) applies.
fn enlarge(socket: &UdpSocket) {
    for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
        let value = RECEIVE_BUFFER;
        // SAFETY: the value is an int, as the options require, and outlives the call.
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
    fn the_error_for_a_foreign_address_names_the_setting() {
        check_own_address("127.0.0.5".parse().unwrap(), "amf.n2.addresses").unwrap();
        let error = check_own_address("192.0.2.77".parse().unwrap(), "amf.n2.addresses").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("'amf.n2.addresses'") && text.contains("ip -brief address"), "{text}");
    }

    #[test]
    fn the_error_for_an_address_in_use_names_the_setting() {
        let first = bind("127.0.0.1:0".parse().unwrap(), "n4.address").unwrap();
        let error = bind(first.local_addr().unwrap(), "n4.address").unwrap_err();
        assert!(error.to_string().contains("change 'n4.address'"), "{error}");
    }
}
