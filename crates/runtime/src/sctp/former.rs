//! Peers of a process that ended without an ABORT: what the next process needs to abort their associations.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// An association of user-space SCTP, seen from another process. The peer accepts an ABORT with this tag (RFC 9260 8.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormerPeer {
    /// Own address and SCTP port.
    pub local: SocketAddr,
    /// The peer's address and SCTP port.
    pub peer: SocketAddr,
    /// The peer's UDP port (RFC 6951); 0 for raw IP.
    pub udp_port: u16,
    /// The peer's verification tag.
    pub tag: u32,
}

/// The text is not that of a [`FormerPeer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an association: own address, peer's address, its UDP port, its tag in 8 hexadecimal digits")]
pub struct ParseFormerPeerError;

impl fmt::Display for FormerPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {:08x}", self.local, self.peer, self.udp_port, self.tag)
    }
}

impl FromStr for FormerPeer {
    type Err = ParseFormerPeerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words: Vec<&str> = text.split(' ').collect();
        let [local, peer, udp_port, tag] = words[..] else { return Err(ParseFormerPeerError) };
        let parsed = || {
            let tag = u32::from_str_radix(tag, 16).ok().filter(|_| tag.len() == 8)?;
            Some(Self {
                local: local.parse().ok()?,
                peer: peer.parse().ok()?,
                udp_port: udp_port.parse().ok()?,
                tag,
            })
        };
        parsed().ok_or(ParseFormerPeerError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_former_peer_is_read_as_it_was_written() {
        for (local, peer) in [("127.0.0.5:38412", "10.0.0.1:9"), ("[::1]:38412", "[fe80::2]:65535")] {
            let former = FormerPeer {
                local: local.parse().unwrap(),
                peer: peer.parse().unwrap(),
                udp_port: 9899,
                tag: 0x1a,
            };
            assert_eq!(former.to_string().parse(), Ok(former));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "127.0.0.5:38412 10.0.0.1:9 0",
            "127.0.0.5 10.0.0.1:9 0 0000001a",
            "127.0.0.5:1 10.0.0.1:9 0 1a",
            "127.0.0.5:1 10.0.0.1:9 0 0000001a 1",
        ] {
            assert_eq!(text.parse::<FormerPeer>(), Err(ParseFormerPeerError), "{text}");
        }
    }
}
