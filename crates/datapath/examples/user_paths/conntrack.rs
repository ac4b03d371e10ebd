//! Entries of the kernel's connection tracking, created by netlink (nfnetlink_conntrack.h), so that generated packets have
//! connections from the first one on.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// One end of a UDP connection.
pub type End = (Ipv4Addr, u16);

/// IPS_CONFIRMED, IPS_SEEN_REPLY, IPS_ASSURED.
const STATUS: u32 = 8 | 2 | 4;
const SECONDS: u32 = 120;
const UDP: u8 = 17;

/// A socket to connection tracking.
pub struct Conntrack(OwnedFd);

impl Conntrack {
    pub fn open() -> Self {
        // SAFETY: takes no pointers; the descriptor is new and ours alone.
        unsafe {
            let socket = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER);
            assert!(socket >= 0, "{}", io::Error::last_os_error());
            Self(OwnedFd::from_raw_fd(socket))
        }
    }

    /// Adds a UDP connection of a UE, with the public end that replaces the UE's.
    pub fn add(&self, ue: End, server: End, public: End) {
        let body = [
            vec![libc::AF_INET as u8, 0, 0, 0],
            nested(1, &tuple(ue, server)),
            nested(2, &tuple(server, public)),
            attribute(3, &STATUS.to_be_bytes()),
            attribute(7, &SECONDS.to_be_bytes()),
        ]
        .concat();
        let length = 16 + body.len() as u32;
        // NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_NEW; NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE.
        let header = [&length.to_ne_bytes()[..], &0x100u16.to_ne_bytes(), &0x405u16.to_ne_bytes(), &[0; 8]];
        let message = [header.concat(), body].concat();
        let mut answer = [0u8; 1024];
        let fd = self.0.as_raw_fd();
        // SAFETY: both buffers live during the calls, with their lengths.
        let length = unsafe {
            libc::send(fd, message.as_ptr().cast(), message.len(), 0);
            libc::recv(fd, answer.as_mut_ptr().cast(), answer.len(), 0)
        };
        assert!(length >= 20 && answer[16..20] == [0; 4], "{:?}", &answer[..20]);
    }
}

fn tuple(from: End, to: End) -> Vec<u8> {
    let addresses = [attribute(1, &from.0.octets()), attribute(2, &to.0.octets())].concat();
    let ports = [attribute(2, &from.1.to_be_bytes()), attribute(3, &to.1.to_be_bytes())].concat();
    [nested(1, &addresses), nested(2, &[attribute(1, &[UDP]), ports].concat())].concat()
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut all = [(value.len() as u16 + 4).to_ne_bytes(), kind.to_ne_bytes()].concat();
    all.extend(value);
    all.resize(all.len().next_multiple_of(4), 0);
    all
}

fn nested(kind: u16, value: &[u8]) -> Vec<u8> {
    attribute(0x8000 | kind, value)
}
