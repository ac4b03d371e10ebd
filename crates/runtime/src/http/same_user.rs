//! Whether the process at the other end of a TCP connection on this machine is of the user that runs this one.
//!
//! Without TLS nothing else is known of a client on loopback. Linux lists the sockets of the network namespace with
//! their users in `/proc/net/tcp`; both ends of a connection within the machine are there. The user is that of the process
//! that made the socket, as long as a process has it: Linux lists a socket that was closed with user 0 (TIME-WAIT, FIN-WAIT),
//! so only an established connection with an inode says anything of its user.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use tokio::net::TcpStream;

/// Whether it is so; root counts as every user.
pub(super) fn is_same_user(stream: &TcpStream) -> bool {
    let (Ok(own), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else { return false };
    if !own.ip().to_canonical().is_loopback() {
        return false;
    }
    let Ok(user) = fs::metadata("/proc/self").map(|data| data.uid()) else { return false };
    let list = |name| fs::read_to_string(name).unwrap_or_default();
    let of_peer =
        owner(&list("/proc/net/tcp"), peer, own).or_else(|| owner(&list("/proc/net/tcp6"), peer, own));
    of_peer.is_some_and(|uid| uid == user || uid == 0)
}

/// State ESTABLISHED in such a list.
const ESTABLISHED: &str = "01";

/// The user of the established connection with those addresses in a list of `/proc/net`, if a process has its socket.
fn owner(list: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let is_it = |text: &str, address: SocketAddr| {
        read(text).is_some_and(|(ip, port)| ip == address.ip().to_canonical() && port == address.port())
    };
    list.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (own, other) = (fields.next()?, fields.next()?);
        if !is_it(own, local) || !is_it(other, remote) || fields.next()? != ESTABLISHED {
            return None;
        }
        // tx_queue:rx_queue, tr:tm->when and retrnsmt precede; timeout follows.
        let (uid, inode) = (fields.nth(3)?, fields.nth(1)?);
        uid.parse().ok().filter(|_| inode != "0")
    })
}

/// An address of such a list: words of 32 bits in the order of the machine, `0100007F:1E61`.
fn read(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let mut octets = Vec::with_capacity(16);
    for at in (0..address.len()).step_by(8) {
        let word = u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?;
        octets.extend(word.to_ne_bytes());
    }
    let ip = match <[u8; 4]>::try_from(octets.as_slice()) {
        Ok(v4) => IpAddr::from(v4),
        Err(_) => IpAddr::from(<[u8; 16]>::try_from(octets.as_slice()).ok()?),
    };
    Some((ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[test]
    fn the_owner_of_a_socket_is_found_by_its_addresses() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0500007F:1E61 0100007F:A000 01 00000000:00000000 00:00000000 00000000     0        0 1 1\n   \
            1: 0100007F:A000 0500007F:1E61 01 00000000:00000000 00:00000000 00000000  1000        0 2 1\n";
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(owner(list, at("127.0.0.1:40960"), at("127.0.0.5:7777")), Some(1000));
        assert_eq!(owner(list, at("127.0.0.5:7777"), at("127.0.0.1:40960")), Some(0));
        assert_eq!(owner(list, at("127.0.0.1:40961"), at("127.0.0.5:7777")), None);
        let closed = |state: &str, inode: &str| {
            list.replace("00000000  1000        0 2 1", &format!("00000000     0        0 {inode} 1"))
                .replace("0500007F:1E61 01", &format!("0500007F:1E61 {state}"))
        };
        let client = |list: &str| owner(list, at("127.0.0.1:40960"), at("127.0.0.5:7777"));
        assert_eq!(client(&closed("01", "2")), Some(0), "root's own connection");
        for (state, inode) in [("06", "0"), ("05", "0"), ("04", "2"), ("01", "0")] {
            assert_eq!(client(&closed(state, inode)), None, "state {state}, inode {inode}");
        }
        let v6 = read("00000000000000000000000001000000:0050").unwrap();
        assert_eq!(v6, ("::1".parse().unwrap(), 80));
        let mapped = read("0000000000000000FFFF00000100007F:0050").unwrap();
        assert_eq!(mapped.0, at("127.0.0.1:1").ip());
    }

    #[test]
    fn a_connection_of_this_process_is_of_the_same_user() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
            assert!(client.is_ok() && is_same_user(&accepted.unwrap().0));
        });
    }
}
