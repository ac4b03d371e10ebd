//! The interface between the AMF and the N2 gateway.

use super::{MovedConnection, Passage, SetInstances};
use bytes::Bytes;
use pith_ngap::GlobalRanNodeId;
use pith_types::{AmfUeNgapId, BlockId, OwnerMap, RanUeNgapId, ShardId, Snssai, Tai};
use std::net::IpAddr;
use std::sync::Arc;

/// Identifies a gNB while it has associations: the NG-C interface instance (TS 38.413 8.7.2.2). Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GnbHandle(pub u64);

/// A TNL association, which is an SCTP association between a gNB and the AMF (TS 38.412 7). Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tnla(pub u64);

/// How messages of a UE reach its gNB: the NGAP UE-TNLA-binding (TS 23.501 5.21.1.3) and the SCTP stream (TS 38.412 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TnlaBinding {
    /// The association of the last message that the gNB sent for the UE; `None`: any one of the gNB. Documents do not name it, since no
    /// association outlives the process.
    pub tnla: Option<Tnla>,
    /// The stream that the gNB chose for the UE; downlink messages use the same one.
    pub stream: u16,
}

impl TnlaBinding {
    /// No binding: any association of the gNB.
    pub const fn unbound(stream: u16) -> Self {
        Self { tnla: None, stream }
    }
}

/// Data of a gNB from NG Setup (TS 38.413 8.7.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GnbInfo {
    /// RAN Node Name, or empty.
    pub name: String,
    /// PLMN and gNB ID of the Global RAN Node ID, `999/70-gnb-000001`.
    pub global_id: String,
    /// The Global RAN Node ID.
    pub node: GlobalRanNodeId,
    /// Tracking areas that both the gNB and this AMF serve, with their slices.
    pub supported: Vec<(Tai, Vec<Snssai>)>,
    /// The peer's transport address, for display.
    pub peer: String,
    /// The peer address by which the AMF divides its memory between hosts: an IPv4 address, or an IPv6 /64 network.
    pub host: IpAddr,
}

/// A UE-associated logical connection in NG RESET (TS 38.413 9.2.6.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResetUe {
    /// AMF-UE-NGAP-ID.
    pub amf: Option<AmfUeNgapId>,
    /// RAN-UE-NGAP-ID.
    pub ran: Option<RanUeNgapId>,
}

/// What the gateway delivers to the AMF of a shard.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum N2Input {
    /// A UE-associated NGAP PDU of a UE of this shard.
    Pdu {
        gnb: GnbHandle,
        /// The association and stream that it arrived on.
        binding: TnlaBinding,
        /// The encoded PDU.
        pdu: Bytes,
    },
    /// A gNB completed NG Setup, or changed its configuration.
    GnbUp {
        /// Its handle, valid until `GnbDown`.
        gnb: GnbHandle,
        info: Arc<GnbInfo>,
    },
    /// NG Setup of a gNB, after its `GnbUp`. The shard answers [`N2Effect::SetUp`] when no UE has a user plane at that gNB from an
    /// association before, except those that it retains.
    NgSetup {
        gnb: GnbHandle,
        /// Whether the gNB proposes to retain its UEs (UE Retention Information, TS 38.413 9.3.1.117).
        retains_ues: bool,
    },
    /// The last association of a gNB has ended.
    GnbDown { gnb: GnbHandle },
    /// UEs are to leave an association: their bindings to it are released (TS 38.413 8.13.1).
    ReleaseBindings { gnb: GnbHandle, tnla: Tnla },
    /// NG Reset: close these UE-associated connections; with `None`, all of that gNB (TS 38.413
    /// 8.7.4.2). The gateway acknowledges.
    Reset { gnb: GnbHandle, ues: Option<Vec<ResetUe>> },
    /// The gateway keeps what arrives for this block: nothing of it follows ([`Passage::Hold`]).
    Held { block: BlockId },
    /// So much arrives for the block that the gateway can't wait any longer.
    GiveUp { block: BlockId },
}

/// What an AMF requests from the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum N2Effect {
    /// Send an encoded NGAP PDU.
    Send {
        /// Ignored if the gNB is gone.
        gnb: GnbHandle,
        /// If its association is gone, another one of the gNB takes the message.
        binding: TnlaBinding,
        pdu: Bytes,
    },
    /// A UE has moved to another gNB, or its path to this gNB was not switched: the gNB has no connection with these ids.
    Left { gnb: GnbHandle, ran_id: RanUeNgapId, amf_id: AmfUeNgapId },
    /// The AMF of a shard continues after a panic, and has these connections: no others are left in the blocks of the shard.
    TakenOver {
        shard: ShardId,
        /// The owner map as the shard has it: a block that it has passed is not its own.
        owners: Arc<OwnerMap>,
        connections: Vec<MovedConnection>,
    },
    /// The instances of the set have changed, or the gateway cannot know which of them live.
    Instances(Arc<SetInstances>),
    /// A block passes to another shard.
    Passage(Passage<Vec<MovedConnection>>),
    /// The answer of a shard to [`N2Input::NgSetup`].
    SetUp { shard: ShardId, gnb: GnbHandle, connections: RetainedConnections },
    /// An operator resets the interface to a gNB (TS 38.413 8.7.4.2.1). Ignored if the gNB is gone.
    Reset { gnb: GnbHandle },
    /// An operator changes the Relative AMF Capacity, 0 to 255 (TS 38.413 9.3.1.32).
    Capacity(u8),
    /// An operator changes the TNL Address Weight Factor of an N2 endpoint of the AMF, 0 to 255 (TS 38.413 9.3.2.10); `None`: gNBs remove their
    /// associations with it.
    Endpoint { address: IpAddr, weight: Option<u8> },
}

/// The NG connections that a gNB had with a shard in a former run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetainedConnections {
    /// They continue.
    pub kept: Vec<(AmfUeNgapId, RanUeNgapId)>,
    /// The AMF has ended them; a gNB that retains its UEs is to release them.
    pub ended: Vec<(AmfUeNgapId, RanUeNgapId)>,
    /// As `ended`: connections at the target gNBs of handovers. The AMF knows neither their RAN-UE-NGAP-IDs nor whether this gNB has them.
    pub targets: Vec<AmfUeNgapId>,
}
