//! Packet trace of a session.

use super::{Direction, DropReason, PdrId, Qfi, SessionId, Tunnel};
use std::net::IpAddr;
use std::time::Duration;

/// A packet of a traced session and its fate. A packet that must wait is reported twice: when it is queued
/// and when it leaves the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedPacket {
    /// The session.
    pub session: SessionId,
    /// Time since the packet was handled; exact to a batch of packets.
    pub age: Duration,
    /// Uplink or downlink.
    pub direction: Direction,
    /// Bytes of the inner packet.
    pub length: usize,
    /// The received QFI; for downlink the QFI set when sending.
    pub qfi: Option<Qfi>,
    /// The matching rule, if any.
    pub pdr: Option<PdrId>,
    /// Its source.
    pub source: IpAddr,
    /// Its destination.
    pub destination: IpAddr,
    /// IP protocol number.
    pub protocol: u8,
    /// Source and destination port, if known.
    pub ports: Option<(u16, u16)>,
    /// The packet's fate.
    pub fate: Fate,
}

/// The fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Sent to the data network, or to another UE of this UPF.
    ToNetwork,
    /// Sent into a tunnel.
    ToTunnel(Tunnel),
    /// Queued, because the session's rates are exceeded.
    Queued,
    /// Held until the UE is reachable.
    Buffered,
    /// Dropped.
    Dropped(DropReason),
}

impl Fate {
    /// The name in tables.
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
