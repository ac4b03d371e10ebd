//! Between the AMF and the N2 gateway.

use bytes::Bytes;
use pith_types::{AmfUeNgapId, Plmn, RanUeNgapId, Snssai, Tai};
use std::sync::Arc;

/// One gNB as long as its NG connection lives; never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GnbHandle(pub u64);

/// What NG Setup told of a gNB (TS 38.413 8.7.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GnbInfo {
    /// RAN Node Name, or an empty text.
    pub name: String,
    /// PLMN and gNB ID of the Global RAN Node ID, `999/70-gnb-000001`.
    pub global_id: String,
    /// The network of the Global RAN Node ID.
    pub plmn: Plmn,
    /// Tracking areas that it serves and that this AMF serves too, with their slices.
    pub supported: Vec<(Tai, Vec<Snssai>)>,
    /// The peer's transport address, for people.
    pub peer: String,
}

/// A UE-associated logical connection that NG Reset names (TS 38.413 9.2.6.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResetUe {
    /// As the AMF numbered it.
    pub amf: Option<AmfUeNgapId>,
    /// As the gNB numbered it.
    pub ran: Option<RanUeNgapId>,
}

/// What the gateway hands to the AMF of a shard.
#[derive(Debug, Clone, PartialEq)]
pub enum N2Input {
    /// A UE-associated NGAP PDU of a UE of this shard.
    Pdu {
        /// From which gNB.
        gnb: GnbHandle,
        /// On which SCTP stream: answers take the same (TS 38.412 7).
        stream: u16,
        /// The PDU, not yet decoded.
        pdu: Bytes,
    },
    /// A gNB completed NG Setup, or changed its configuration.
    GnbUp {
        /// Its handle from now on.
        gnb: GnbHandle,
        /// What it told.
        info: Arc<GnbInfo>,
    },
    /// A gNB is gone: its association ended.
    GnbDown {
        /// Which.
        gnb: GnbHandle,
    },
    /// NG Reset: drop these UE-associated connections, or all of that gNB's if `None`
    /// (TS 38.413 8.7.4.2). The gateway acknowledges.
    Reset {
        /// Which gNB.
        gnb: GnbHandle,
        /// Which connections.
        ues: Option<Vec<ResetUe>>,
    },
}

/// What an AMF asks of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum N2Effect {
    /// Send an encoded NGAP PDU.
    Send {
        /// To which gNB; nothing happens if it is gone.
        gnb: GnbHandle,
        /// On which stream of its association.
        stream: u16,
        /// The encoded PDU.
        pdu: Bytes,
    },
}
