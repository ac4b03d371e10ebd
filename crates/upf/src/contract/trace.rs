//! What a datapath tells of the packets of a session that an operator follows.

use super::{Direction, DropReason, PdrId, Qfi, SessionId, Tunnel};
use std::net::IpAddr;
use std::time::Duration;

/// What became of a packet of a traced session. One that has to wait is told of when it begins to, and again
/// when it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedPacket {
    /// Whose.
    pub session: SessionId,
    /// How long ago; exact to a batch of packets.
    pub age: Duration,
    /// Which way it goes.
    pub direction: Direction,
    /// Bytes of the inner packet.
    pub length: usize,
    /// The QoS flow that it came with, or downlink the one that it leaves with.
    pub qfi: Option<Qfi>,
    /// The rule that it matched, if one did.
    pub pdr: Option<PdrId>,
    /// Its source.
    pub source: IpAddr,
    /// Its destination.
    pub destination: IpAddr,
    /// IP protocol number.
    pub protocol: u8,
    /// Source and destination port, if it shows any.
    pub ports: Option<(u16, u16)>,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It left to the data network, or to another UE of this UPF.
    ToNetwork,
    /// It left into a tunnel.
    ToTunnel(Tunnel),
    /// It waits for its turn by the session's rates.
    Queued,
    /// It is held until the UE can be reached.
    Buffered,
    /// It was dropped.
    Dropped(DropReason),
}

impl Fate {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ToNetwork => "to_network",
            Self::ToTunnel(_) => "to_tunnel",
            Self::Queued => "queued",
            Self::Buffered => "buffered",
            Self::Dropped(_) => "dropped",
        }
    }
}
