//! Sessions of all kinds and their rules, in the fuzzer's own representation.

use super::nat::Nat;
use crate::support::random::Random;
use crate::support::{GNB, QFI, session_of, tunnel_to};
use pith_upf::contract::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The data network of the UEs, behind the server.
pub const REMOTE_V4: [u8; 3] = [198, 51, 100];
pub const REMOTE_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x99, 0, 0, 0, 0, 0);
/// The pool of the UEs' prefixes.
pub const POOL_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x2d, 0, 0, 0, 0, 0);
pub const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x2d, 0, 0, 0, 0, 1);
pub const UPF_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x16, 0, 0, 0, 0, 0, 1);
pub const GNB_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x16, 0, 0, 0, 0, 0, 2);
/// Ports in the filters of some sessions.
pub const REMOTE_PORTS: [u16; 2] = [7000, 7099];
pub const LOCAL_PORTS: [u16; 2] = [5000, 5099];
/// The quota of a session, in bytes.
pub const QUOTA: u64 = 30_000;
/// A rate that no traffic here reaches, and one that all traffic exceeds, in bit/s.
const FAST: u64 = 40_000_000_000;
const SLOW: u64 = 2_000_000;

/// The kind of a session's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Everything passes.
    Open,
    UplinkGate,
    DownlinkGate,
    /// The offered rate exceeds the limit.
    Slow,
    /// UDP of some remote ports, and TCP of some local ports.
    Filtered,
    /// Uplink of one QoS flow only.
    OneQfi,
    /// Downlink is buffered.
    Idle,
    /// With a quota.
    Quota,
    /// The uplink FAR drops.
    Refused,
    /// Everything passes, by rules that only user space can match.
    Watched,
    /// Uplink is forwarded into another tunnel.
    Relay,
}

const MANNERS: [Manner; 12] = [
    Manner::Open,
    Manner::Filtered,
    Manner::UplinkGate,
    Manner::Idle,
    Manner::OneQfi,
    Manner::Watched,
    Manner::Open,
    Manner::Slow,
    Manner::Quota,
    Manner::DownlinkGate,
    Manner::Relay,
    Manner::Refused,
];

/// A session and its UE.
#[derive(Debug, Clone)]
pub struct Member {
    pub index: usize,
    pub manner: Manner,
    pub v4: Ipv4Addr,
    pub v6: Ipv6Addr,
    pub teid: u32,
    /// The gNB's address.
    pub gnb: IpAddr,
    pub gnb_teid: u32,
    /// The TEID of a relay's outgoing tunnel.
    pub onward: u32,
    /// Whether its downlink packets have the RQI.
    pub is_reflective: bool,
}

/// The number of members. The first are always open, and no forged packet uses their identities. With the spread over two
/// CPUs, each handles one of these.
pub const MEMBERS: usize = 26;
pub const CONTROLS: usize = 2;

impl Member {
    fn new(index: usize, epoch: u64) -> Self {
        let manner = match index {
            ..CONTROLS => Manner::Open,
            _ => MANNERS[(index + epoch as usize) % MANNERS.len()],
        };
        Self {
            index,
            manner,
            v4: Ipv4Addr::new(10, 45, 1, index as u8 + 1),
            v6: Ipv6Addr::from_bits(POOL_V6.to_bits() + ((index as u128 + 2) << 64)),
            teid: 0x100 + index as u32,
            gnb: if index % 4 == 3 { GNB_V6.into() } else { GNB.into() },
            gnb_teid: 0x20_0000 + index as u32,
            onward: 0x30_0000 + index as u32,
            is_reflective: index % 3 == 1,
        }
    }

    pub fn id(&self) -> SessionId {
        SessionId(self.index as u64 + 1)
    }

    pub fn has(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(v4) => v4 == self.v4,
            IpAddr::V6(v6) => v6.to_bits() >> 64 == self.v6.to_bits() >> 64,
        }
    }

    /// The session, of which `used` bytes are used up.
    pub fn session(&self, used: u64) -> Session {
        let mut session = session_of(self.id().0, self.v4, self.teid, self.gnb_teid);
        session.ue.v6 = Some(self.v6);
        session.fars[1].action = Action::Forward(Destination::Tunnel(tunnel_to(self.gnb, self.gnb_teid)));
        let rate = if self.manner == Manner::Slow { SLOW } else { FAST };
        session.qers[1].mbr = Some(Rates { uplink: rate, downlink: rate });
        session.qers[0].rqi = self.is_reflective;
        match self.manner {
            Manner::Open | Manner::Slow => {}
            Manner::UplinkGate => session.qers[0].gates.uplink = Gate::Closed,
            Manner::DownlinkGate => session.qers[0].gates.downlink = Gate::Closed,
            Manner::Filtered => session.pdrs.iter_mut().for_each(|pdr| pdr.filters = filters()),
            Manner::OneQfi => session.pdrs[0].qfis = vec![Qfi(QFI)],
            Manner::Idle => session.fars[1].action = Action::Buffer { notify: true, packets: Some(20) },
            Manner::Quota => session.urrs[0].quota.total = Some(used + QUOTA),
            Manner::Refused => session.fars[0].action = Action::Drop,
            Manner::Watched => {
                let spi = SdfFilter { spi: Some(7), ..SdfFilter::default() };
                let watched =
                    Pdr { id: PdrId(3), precedence: 9, filters: vec![spi], ..session.pdrs[0].clone() };
                session.pdrs.push(watched);
            }
            Manner::Relay => {
                session.fars[0].action =
                    Action::Forward(Destination::Tunnel(tunnel_to(self.gnb, self.onward)));
            }
        }
        session
    }
}

fn filters() -> Vec<SdfFilter> {
    let [first, last] = REMOTE_PORTS;
    let udp = format!("permit out 17 from 198.51.100.0/24 {first}-{last} to assigned");
    let [first, last] = LOCAL_PORTS;
    let tcp = format!("permit out 6 from any to assigned {first}-{last}");
    [udp, tcp].iter().flat_map(|text| text.parse::<FlowDescription>().unwrap().filters).collect()
}

/// All sessions.
#[derive(Debug, Clone)]
pub struct Cast {
    pub members: Vec<Member>,
    /// Whether UEs' IPv4 addresses are translated, and to what.
    pub nat: Option<Nat>,
}

impl Cast {
    /// The sessions of an epoch: in each epoch each session has the next kind.
    pub fn of(epoch: u64, nat: Option<Nat>) -> Self {
        Self { members: (0..MEMBERS).map(|index| Member::new(index, epoch)).collect(), nat }
    }

    /// The same with all sessions open.
    pub fn opened(&self) -> Self {
        let open = |member: &Member| Member { manner: Manner::Open, ..member.clone() };
        Self { members: self.members.iter().map(open).collect(), nat: self.nat.clone() }
    }

    /// A member that other packets than controls belong to.
    pub fn any(&self, random: &mut Random) -> &Member {
        &self.members[CONTROLS + random.below(MEMBERS - CONTROLS)]
    }

    pub fn by_teid(&self, teid: u32) -> Option<&Member> {
        self.members.iter().find(|member| member.teid == teid)
    }

    pub fn by_ue(&self, address: IpAddr) -> Option<&Member> {
        self.members.iter().find(|member| member.has(address))
    }
}
