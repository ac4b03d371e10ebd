//! What a datapath tells UPF-C, and what it counts for the operator.

use super::{PdrId, Qfi, SessionId, Teid, UrrId, Volume};
use std::net::IpAddr;

/// Something that happened to packets which UPF-C has to act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Packets for a PDR are held whose FAR asks to be told, and were not told of yet: the first goes into the
    /// buffer, or waited there, or in a queue, when the FAR came to ask (Downlink Data Report).
    DownlinkData {
        /// Whose buffer.
        session: SessionId,
        /// The PDR that matched.
        pdr: PdrId,
        /// The QoS flow of that PDR.
        qfi: Option<Qfi>,
        /// DSCP of the packet, for paging policy differentiation.
        dscp: u8,
    },
    /// A URR has come up to its threshold or quota; once until its limits change.
    Usage {
        /// Whose URR.
        session: SessionId,
        /// Which URR.
        urr: UrrId,
        /// What it had counted then.
        volume: Volume,
    },
    /// A peer does not know the tunnel that packets are sent into (TS 29.281 7.3.1).
    ErrorIndication {
        /// The peer: the source of the message, and the address in it.
        peer: IpAddr,
        /// The peer's TEID.
        teid: Teid,
    },
}

/// Traffic and drops of the whole UPF since its start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    /// What came in by tunnel, before rules.
    pub n3_in: Traffic,
    /// What left by tunnel.
    pub n3_out: Traffic,
    /// What came from the data network, before rules.
    pub n6_in: Traffic,
    /// What left to the data network.
    pub n6_out: Traffic,
    /// Packets that wait now: held for idle UEs, or queued for their turn.
    pub buffered: u64,
    /// Packets dropped, by reason; reasons that never occurred are absent.
    pub dropped: Vec<(DropReason, u64)>,
}

impl Counters {
    /// How many packets were dropped for a reason.
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

            /// Its name in metrics and tables.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

drop_reasons! {
    /// Not GTP-U version 1, or shorter than it says.
    MalformedGtpu = "malformed_gtpu",
    /// A GTP-U message or extension header that must be understood and is not.
    UnsupportedGtpu = "unsupported_gtpu",
    /// A TEID of no session.
    UnknownTeid = "unknown_teid",
    /// A destination of no session.
    UnknownUe = "unknown_ue",
    /// The inner packet is not IP, or shorter than it says.
    MalformedInner = "malformed_inner",
    /// An uplink packet whose source is not the UE's address.
    SpoofedSource = "spoofed_source",
    /// No PDR matches, or one that leads to no FAR.
    NoRule = "no_rule",
    /// The FAR says so.
    RuleDrop = "rule_drop",
    /// A QER's gate is closed.
    GateClosed = "gate_closed",
    /// Above a QER's MBR: a QoS flow's own, or any where rates are policed.
    RateExceeded = "rate_exceeded",
    /// Waited longer for its share of the session's rate than any packet may.
    QueueDelay = "queue_delay",
    /// The longest queue, when too much of the session or of the UPF waited.
    QueueFull = "queue_full",
    /// A URR's quota is used up.
    QuotaExhausted = "quota_exhausted",
    /// The session's or the UPF's buffer is full.
    BufferFull = "buffer_full",
    /// Buffered, and then discarded by new rules or with its session.
    BufferDiscarded = "buffer_discarded",
    /// Time to live ran out between two UEs of this UPF.
    TtlExceeded = "ttl_exceeded",
    /// The kernel did not take it on N3.
    N3SendFailed = "n3_send_failed",
    /// The kernel did not take it on N6.
    N6SendFailed = "n6_send_failed",
    /// The outermost IPv4 header's checksum is wrong.
    BadChecksum = "bad_checksum",
    /// An Error Indication that is not from the peer of a tunnel into which a session sends: forged, or late.
    StrayErrorIndication = "stray_error_indication",
    /// An uplink packet for the core, this host, radios, or the UEs of another data network.
    ClosedDestination = "closed_destination",
    /// GTP-U of a host that no tunnel leads to.
    UnknownPeer = "unknown_peer",
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
