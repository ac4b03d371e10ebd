//! Bodies of the frames.

use pith_datapath::{DatapathConfig, Handles, LinkHandle, NetworkPolicy, QueuedOctets, WorkerHandles};
use pith_upf::contract::SessionId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The version of this protocol, apart from that of the records.
pub const PROTOCOL: u32 = 1;

/// What a successor says of itself.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    /// The version of the records.
    pub format: u32,
    /// The version of Pith.
    pub version: String,
    pub settings: Settings,
    /// Whether it takes datagrams of N4 that waited. Earlier versions do not.
    #[serde(default)]
    pub takes_datagrams: bool,
}

/// Characters of another process's text in a log or an error.
const LONGEST_TEXT: usize = 500;

/// A text of another process, without what a terminal or a log would interpret.
pub fn printable(text: &str) -> String {
    let shown = text.chars().take(LONGEST_TEXT);
    shown.map(|c| if c.is_control() || is_invisible(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Marks that change the direction of text, and separators of lines.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Settings that cannot change while packets flow, by name.
pub type Settings = BTreeMap<String, String>;

/// The settings of a configuration.
pub fn settings(n4: SocketAddr, config: &DatapathConfig) -> Settings {
    let text = |values: Vec<String>| values.join(", ");
    let n3 = config.n3_addresses.iter().map(ToString::to_string).collect();
    let pools = config.pools.iter().map(|pool| format!("{}/{}", pool.gateway, pool.prefix)).collect();
    let of_network = |policy: &NetworkPolicy| {
        let routes = policy
            .routes
            .iter()
            .map(|route| format!("{}/{} via {}", route.to.address, route.to.prefix, route.via));
        format!("{}: {}", policy.pool.gateway, text(routes.collect()))
    };
    let routed = config.policies.iter().filter(|policy| !policy.routes.is_empty());
    let routes = routed.map(of_network).collect();
    let pin = config.pin.as_ref().map(|pin| pin.display().to_string());
    [
        ("upf.n4", n4.to_string()),
        ("upf.n3", text(n3)),
        ("upf.tun", config.tun.clone()),
        ("upf.pin", pin.unwrap_or_default()),
        ("the pools of the data networks", text(pools)),
        ("the MTU of the data networks", config.mtu.to_string()),
        ("the routes of the data networks", text(routes)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// The first difference of a successor's settings, in words.
pub fn difference(own: &Settings, other: &Settings) -> Option<String> {
    let of = |settings: &Settings, name| settings.get(name).cloned().unwrap_or_default();
    let names = own.keys().chain(other.keys());
    let mut differing = names.filter(|name| own.get(*name) != other.get(*name));
    differing.next().map(|name| {
        let (name, own, other) = (printable(name), of(own, name), printable(&of(other, name)));
        format!("{name} differs ('{own}' in the running process, '{other}' in the new one): restart the UPF instead")
    })
}

/// What a running process hands over before its state. Its descriptors follow, in the order of the fields.
#[derive(Debug, Serialize, Deserialize)]
pub struct Accept {
    pub version: String,
    /// The time at which UPF-C's clock was 0, in nanoseconds of the monotonic clock.
    pub zero: u64,
    /// Whether SMFs may still restore sessions from before this process.
    pub restoring: bool,
    /// The start of the datapath's clock.
    pub clock: u64,
    /// Former values of the kernel's settings.
    pub former: Vec<(String, String)>,
    pub queueing: Vec<u64>,
    pub workers: Vec<WorkerShape>,
    pub links: Vec<LinkShape>,
    /// Whether it has the API's TCP listener.
    pub api: bool,
}

/// The descriptors of a worker: sockets, then TUN.
#[derive(Debug, Serialize, Deserialize)]
pub struct WorkerShape {
    pub sockets: usize,
    pub batched: bool,
}

/// An attachment of an XDP program.
#[derive(Debug, Serialize, Deserialize)]
pub struct LinkShape {
    pub device: u32,
    pub generic: bool,
}

/// Descriptors that a successor has received.
#[derive(Debug)]
pub struct Inherited {
    pub n4: UdpSocket,
    pub handles: Handles,
    pub api: Option<std::net::TcpListener>,
}

impl Accept {
    pub fn of(handles: &Handles, (zero, restoring, api): (u64, bool, bool)) -> Self {
        let shape =
            |worker: &WorkerHandles| WorkerShape { sockets: worker.sockets.len(), batched: worker.batched };
        let link = |link: &LinkHandle| LinkShape { device: link.device, generic: link.generic };
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            zero,
            restoring,
            clock: handles.clock,
            former: handles.settings.clone(),
            queueing: handles.queueing.iter().map(|session| session.0).collect(),
            workers: handles.workers.iter().map(shape).collect(),
            links: handles.links.iter().map(link).collect(),
            api,
        }
    }

    /// The number of descriptors.
    pub fn descriptors(&self) -> usize {
        let of_workers = self.workers.iter().map(|worker| worker.sockets.saturating_add(1));
        let others = 1 + self.links.len() + usize::from(self.api);
        of_workers.fold(others, usize::saturating_add)
    }

    /// Assigns the descriptors. `None`: there are too few.
    pub fn assign(&self, descriptors: Vec<OwnedFd>) -> Option<Inherited> {
        let mut descriptors = descriptors.into_iter();
        let n4 = UdpSocket::from(descriptors.next()?);
        let mut workers = Vec::new();
        for worker in &self.workers {
            let sockets: Vec<_> = descriptors.by_ref().take(worker.sockets).collect();
            let tun = descriptors.next()?;
            workers.push(WorkerHandles { sockets, tun, batched: worker.batched });
        }
        let mut links = Vec::new();
        for LinkShape { device, generic } in &self.links {
            links.push(LinkHandle { device: *device, generic: *generic, link: descriptors.next()? });
        }
        let api = if self.api { Some(descriptors.next()?.into()) } else { None };
        let handles = Handles {
            clock: self.clock,
            workers,
            links,
            settings: self.former.clone(),
            queueing: self.queueing.iter().copied().map(SessionId).collect(),
        };
        Some(Inherited { n4, handles, api })
    }
}

/// The descriptors, in the order of [`Accept`].
pub fn descriptors<'a>(
    n4: BorrowedFd<'a>,
    handles: &'a Handles,
    api: Option<BorrowedFd<'a>>,
) -> Vec<BorrowedFd<'a>> {
    let workers = handles.workers.iter();
    let workers = workers.flat_map(|worker| worker.sockets.iter().chain([&worker.tun]).map(AsFd::as_fd));
    let links = handles.links.iter().map(|link| link.link.as_fd());
    [n4].into_iter().chain(workers).chain(links).chain(api).collect()
}

/// Octets before the inner packet: session, whether it has TEID and QFI, TEID, QFI.
const PACKET_HEAD: usize = 8 + 1 + 4 + 1;

pub fn encode_packet(packet: &QueuedOctets) -> Vec<u8> {
    let has = u8::from(packet.teid.is_some()) | u8::from(packet.qfi.is_some()) << 1;
    let mut octets = packet.session.0.to_be_bytes().to_vec();
    octets.push(has);
    octets.extend(packet.teid.unwrap_or(0).to_be_bytes());
    octets.push(packet.qfi.unwrap_or(0));
    octets.extend(&packet.octets);
    octets
}

pub fn decode_packet(octets: &[u8]) -> io::Result<QueuedOctets> {
    let (head, inner) = octets.split_first_chunk::<PACKET_HEAD>().ok_or(io::ErrorKind::InvalidData)?;
    let [s0, s1, s2, s3, s4, s5, s6, s7, has, t0, t1, t2, t3, qfi] = *head;
    Ok(QueuedOctets {
        session: SessionId(u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7])),
        teid: (has & 1 != 0).then_some(u32::from_be_bytes([t0, t1, t2, t3])),
        qfi: (has & 2 != 0).then_some(qfi),
        octets: inner.to_vec(),
    })
}

/// A datagram with its sender: the length of the address as text, the address, the datagram.
pub fn encode_datagram(peer: SocketAddr, datagram: &[u8]) -> Vec<u8> {
    let peer = peer.to_string();
    [&[peer.len() as u8], peer.as_bytes(), datagram].concat()
}

pub fn decode_datagram(octets: &[u8]) -> io::Result<(SocketAddr, Vec<u8>)> {
    let (length, rest) = octets.split_first().ok_or(io::ErrorKind::InvalidData)?;
    let (peer, datagram) = rest.split_at_checked((*length).into()).ok_or(io::ErrorKind::InvalidData)?;
    let peer = std::str::from_utf8(peer).ok().and_then(|peer| peer.parse().ok());
    Ok((peer.ok_or(io::ErrorKind::InvalidData)?, datagram.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_other_processes_cannot_control_a_terminal() {
        assert_eq!(printable("1.2.3"), "1.2.3");
        assert_eq!(printable("\x1b[2J\n\u{202e}x"), "\u{fffd}[2J\u{fffd}\u{fffd}x");
        assert_eq!(printable(&"x".repeat(10_000)).len(), LONGEST_TEXT);
        let own = Settings::from([("upf.tun".to_owned(), "pith0".to_owned())]);
        let other = Settings::from([("upf.tun".to_owned(), "\x1b]0;x\x07".to_owned())]);
        let text = difference(&own, &other).unwrap();
        assert!(!text.contains('\x1b') && !text.contains('\x07'), "{text}");
    }

    #[test]
    fn datagrams_keep_their_sender() {
        for peer in ["192.0.2.1:8805", "[2001:db8::1]:8805", "[fe80::1%3]:8805"] {
            let peer = peer.parse().unwrap();
            assert_eq!(decode_datagram(&encode_datagram(peer, b"x")).unwrap(), (peer, b"x".to_vec()));
        }
        for invalid in [&b""[..], b"\x09x", b"\x01x"] {
            assert!(decode_datagram(invalid).is_err());
        }
    }

    #[test]
    fn queued_packets_keep_where_they_arrived() {
        for (teid, qfi) in [(None, None), (Some(7), Some(9)), (Some(u32::MAX), None)] {
            let packet = QueuedOctets { session: SessionId(u64::MAX - 1), teid, qfi, octets: vec![0x45, 0] };
            assert_eq!(decode_packet(&encode_packet(&packet)).unwrap(), packet);
        }
        assert!(decode_packet(&[0; PACKET_HEAD - 1]).is_err());
    }

    #[test]
    fn a_differing_setting_is_named() {
        let config = DatapathConfig::default();
        let n4 = "127.0.0.7:8805".parse().unwrap();
        let own = settings(n4, &config);
        assert_eq!(difference(&own, &settings(n4, &config)), None);
        let other = settings(n4, &DatapathConfig { tun: "other0".into(), ..config });
        let text = difference(&own, &other).unwrap();
        assert!(text.contains("upf.tun") && text.contains("'pith0'") && text.contains("'other0'"), "{text}");
        assert!(difference(&own, &Settings::new()).is_some());
    }

    #[test]
    fn missing_descriptors_are_noticed() {
        let shape = || WorkerShape { sockets: 1, batched: false };
        let accept = Accept {
            version: String::new(),
            zero: 0,
            restoring: false,
            clock: 0,
            former: Vec::new(),
            queueing: Vec::new(),
            workers: vec![shape(), shape()],
            links: vec![LinkShape { device: 1, generic: true }],
            api: true,
        };
        assert_eq!(accept.descriptors(), 7);
        let some = |count| (0..count).map(|_| std::fs::File::open("/dev/null").unwrap().into()).collect();
        assert!(accept.assign(some(6)).is_none());
        let all = accept.assign(some(7)).unwrap();
        assert_eq!((all.handles.workers.len(), all.handles.links.len(), all.api.is_some()), (2, 1, true));
    }
}
