//! Events of a datapath for UPF-C, and counters for the operator.

use super::{PdrId, Qfi, SessionId, Teid, UrrId, Volume};
use std::net::IpAddr;

/// An event that requires an action of UPF-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The first packet is held for a PDR whose FAR requests notification; or packets were already held or
    /// queued when the FAR began to request it (Downlink Data Report).
    DownlinkData {
        /// The session.
        session: SessionId,
        /// The matching PDR.
        pdr: PdrId,
        /// The PDR's QFI.
        qfi: Option<Qfi>,
        /// The packet's DSCP, for paging policy differentiation.
        dscp: u8,
    },
    /// A URR has reached its threshold or quota; reported once until its limits change.
    Usage {
        /// The session.
        session: SessionId,
        /// The URR.
        urr: UrrId,
        /// The volume at that time.
        volume: Volume,
    },
    /// A peer does not know a tunnel into which packets are sent (TS 29.281 7.3.1).
    ErrorIndication {
        /// The peer: both the sender of the message and the address in it.
        peer: IpAddr,
        /// The peer's TEID.
        teid: Teid,
    },
    /// A G-PDU of a session's tunnel was dropped because its source is no peer ([`DropReason::UnknownPeer`]); reported now
    /// and then.
    UnknownPeer {
        /// The source.
        source: IpAddr,
        /// The peer of the session's downlink tunnel.
        peer: IpAddr,
    },
}

/// Traffic and drops of the whole UPF since its start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    /// Received from tunnels, before rules.
    pub n3_in: Traffic,
    /// Sent into tunnels.
    pub n3_out: Traffic,
    /// Received from the data network, before rules.
    pub n6_in: Traffic,
    /// Sent to the data network.
    pub n6_out: Traffic,
    /// Packets currently held for idle UEs or queued.
    pub buffered: u64,
    /// Dropped packets by reason; reasons without drops are absent.
    pub dropped: Vec<(DropReason, u64)>,
}

impl Counters {
    /// The number of packets dropped for a reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.iter().find(|(r, _)| *r == reason).map_or(0, |(_, count)| *count)
    }
}

/// Packets and bytes of inner packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why a packet was dropped.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DropReason { $($(#[$doc])* $variant,)* }

        impl DropReason {
            /// Every reason, in the order of their discriminants.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in metrics and tables.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

drop_reasons! {
    /// Not GTP-U version 1, or truncated.
    MalformedGtpu = "malformed_gtpu",
    /// A GTP-U message or extension header that is unsupported but requires comprehension.
    UnsupportedGtpu = "unsupported_gtpu",
    /// No session has the TEID.
    UnknownTeid = "unknown_teid",
    /// No session has the destination.
    UnknownUe = "unknown_ue",
    /// The inner packet is not IP, or truncated.
    MalformedInner = "malformed_inner",
    /// An uplink packet whose source is not the UE's address, or a downlink packet from outside whose source is that of a
    /// UE, of the core or of this host.
    SpoofedSource = "spoofed_source",
    /// No PDR matches, or the matching PDR has no FAR.
    NoRule = "no_rule",
    /// The FAR drops.
    RuleDrop = "rule_drop",
    /// A QER's gate is closed.
    GateClosed = "gate_closed",
    /// Above a QER's MBR: a QoS flow's own MBR, or any if rates are policed.
    RateExceeded = "rate_exceeded",
    /// Queued longer than permitted.
    QueueDelay = "queue_delay",
    /// Dropped from the longest queue, because the session's or the UPF's limit was reached.
    QueueFull = "queue_full",
    /// A URR's quota is exhausted.
    QuotaExhausted = "quota_exhausted",
    /// The session's or the UPF's buffer is full.
    BufferFull = "buffer_full",
    /// Buffered, and discarded by new rules or with its session.
    BufferDiscarded = "buffer_discarded",
    /// The hop limit expired between two UEs of this UPF.
    TtlExceeded = "ttl_exceeded",
    /// The kernel did not send the packet on N3.
    N3SendFailed = "n3_send_failed",
    /// The kernel did not send the packet on N6.
    N6SendFailed = "n6_send_failed",
    /// The outermost IPv4 header has a wrong checksum.
    BadChecksum = "bad_checksum",
    /// An Error Indication that is not from the peer of a tunnel in use: forged or late.
    StrayErrorIndication = "stray_error_indication",
    /// An uplink packet to the core, this host, gNBs, or the UEs of another data network.
    ClosedDestination = "closed_destination",
    /// GTP-U from a host that is no tunnel's peer.
    UnknownPeer = "unknown_peer",
    /// A packet without ECN whose outer header a router has marked with CE: the mark would be lost (RFC 6040 4.2).
    LostCongestion = "lost_congestion",
    /// An uplink packet with a QFI of which its session has no QoS flow (TS 23.501 5.7.1.7).
    UnknownQfi = "unknown_qfi",
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn reasons_are_indexed_by_discriminant_and_named_once() {
        for (index, reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, index);
        }
        let names: HashSet<_> = DropReason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), DropReason::ALL.len());
    }
}
