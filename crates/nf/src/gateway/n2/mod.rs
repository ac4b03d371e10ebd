//! The N2 gateway: interface management with gNBs (TS 38.413 8.7), and routing of UE-associated
//! messages to the shard that owns the UE (design sections 5 and 9).
//!
//! ```text
//!  SCTP ──> Message ──> peek ─┬─ no UE id ──────────> interface management, answered here
//!                             ├─ INITIAL UE MESSAGE ─> owner of its 5G-GUTI or 5G-S-TMSI, else least loaded
//!                             ├─ AMF-UE-NGAP-ID ─────> owner of its block
//!                             └─ RAN-UE-NGAP-ID only ─> shard of its connection (ERROR INDICATION)
//! ```

mod admission;
mod areas;
mod elsewhere;
mod initiated;
mod interface;
mod passage;
mod ran_ids;
mod setup;
mod tnla;

pub use admission::PermittedGnb;
pub use pith_ngap::TnlAssociationUsage;
pub use tnla::TnlEndpoint;

use crate::kit::{
    Allowance, Duration, Event, GnbHandle, GnbInfo, Instant, Level, N2Effect, N2Input, ResetUe, Tnla,
    TnlaBinding,
};
use admission::Admission;
use bytes::Bytes;
use pith_nas::{TemporaryIdentity, peek_additional_guti, peek_temporary_identity};
use pith_ngap::{
    Cause, CauseProtocol, CauseRadioNetwork, Class, Diagnostics, EncodeError, ErrorIndication, Message,
    NgapError, Notice, Peek, is_error_indication, peek,
};
use pith_types::{
    AmfUeNgapId, BlockId, FiveGGuti, FiveGSTmsi, Guami, InstanceId, OwnerMap, Plmn, RanUeNgapId, ShardId,
    Snssai, Tai,
};
use ran_ids::{ConnectionShard, RanIds};
use setup::PendingSetup;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tnla::NgInterface;

/// Payload protocol identifier of NGAP in SCTP (TS 38.412 7).
pub const NGAP_PPID: u32 = 60;

/// Stream of non-UE-associated messages (TS 38.412 7).
const NON_UE_STREAM: u16 = 0;

/// Inboxes whose lengths differ by less count as equally loaded. Otherwise a difference of one would route
/// all new UEs to the same shard, and to the addresses of its block, until the loads are updated.
const SAME_LOAD: usize = 64;

/// Procedure codes that this gateway decodes (TS 38.413 9.4.7).
mod procedure {
    pub const AMF_CONFIGURATION_UPDATE: u8 = 0;
    pub const ERROR_INDICATION: u8 = 9;
    pub const HANDOVER_RESOURCE_ALLOCATION: u8 = 13;
    pub const INITIAL_UE_MESSAGE: u8 = 15;
    pub const NG_RESET: u8 = 20;
    pub const NG_SETUP: u8 = 21;
    pub const UPLINK_RAN_CONFIGURATION_TRANSFER: u8 = 48;
    pub const RAN_CONFIGURATION_UPDATE: u8 = 35;
    pub const PATH_SWITCH_REQUEST: u8 = 25;
    pub const UE_CONTEXT_RELEASE: u8 = 41;
}

/// What the gateway sends gNBs about the AMFs.
#[derive(Debug, Clone)]
pub struct N2Config {
    /// AMF Name.
    pub amf_name: String,
    /// GUAMIs; new UEs get the first.
    pub guamis: Vec<Guami>,
    /// Relative AMF Capacity, 0 to 255.
    pub relative_capacity: u8,
    /// Networks, each with its slices.
    pub plmns: Vec<(Plmn, Vec<Snssai>)>,
    /// Tracking areas; if empty, all of the networks.
    pub tais: Vec<Tai>,
    /// The instance of this process.
    pub instance: InstanceId,
    /// The owner of each block of ids.
    pub owners: Arc<OwnerMap>,
    /// Number of shards.
    pub shards: u8,
    /// gNBs that may connect; if empty, any.
    pub permitted_gnbs: Vec<PermittedGnb>,
    /// Maximum number of SCTP associations of one peer address.
    pub associations_per_address: usize,
    /// The N2 endpoints of the AMF. gNBs learn of those to which they have no association; empty or one: there is no other.
    pub endpoints: Vec<TnlEndpoint>,
    /// Maximum time that NG SETUP RESPONSE waits for the AMFs of the shards ([`N2Input::NgSetup`]); zero: it does not wait.
    pub setup_wait: Duration,
}

/// An input of the gateway.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum N2GatewayInput {
    /// The SCTP association of a gNB is established.
    Up {
        /// The association; its number is never reused.
        tnla: Tnla,
        /// The gNB's primary address.
        peer: SocketAddr,
        /// The address of the AMF.
        local: SocketAddr,
        /// Alternative addresses that a multi-homed gNB has listed; they are not verified.
        alternatives: Vec<IpAddr>,
    },
    /// A received message.
    Message { tnla: Tnla, stream: u16, ppid: u32, pdu: Bytes },
    /// An association ended.
    Down { tnla: Tnla },
    /// An effect of the AMF of a shard.
    Shard(N2Effect),
}

/// An effect of the gateway.
#[derive(Debug, PartialEq)]
#[allow(missing_docs)]
pub enum N2GatewayEffect {
    /// Send on an association.
    Send { tnla: Tnla, stream: u16, pdu: Bytes },
    /// Deliver to the AMF of a shard.
    ToShard { shard: ShardId, input: N2Input },
    /// Close an association at once; the gateway has removed it already.
    Close { tnla: Tnla },
    /// Shut an association down: what was sent is delivered first, then `Down` follows.
    ShutDown { tnla: Tnla },
    /// An event for logs and metrics.
    Event(Event),
}

/// One association.
#[derive(Debug)]
struct Association {
    peer: SocketAddr,
    local: SocketAddr,
    alternatives: Vec<IpAddr>,
    /// Deadline of NG Setup; `None` after it has succeeded.
    half_open_until: Option<Instant>,
    /// Messages received before NG Setup.
    early_messages: u32,
    /// The gNB to which it belongs, after NG Setup or RAN Configuration Update.
    gnb: Option<GnbHandle>,
    /// The gNB has set up another association since, and has sent nothing over this one: it may be broken.
    is_doubtful: bool,
    /// It is being shut down: messages take another one, if there is one.
    is_leaving: bool,
    /// Interface management procedures that it may still start before it belongs to a gNB.
    procedures: Allowance,
    /// For the response to a message of which something was ignored.
    notice: Option<Box<Notice>>,
}

/// The gateway; see the module documentation.
#[derive(Debug)]
pub struct N2Gateway {
    config: N2Config,
    associations: HashMap<Tnla, Association>,
    /// The gNBs that have completed NG Setup.
    interfaces: BTreeMap<GnbHandle, NgInterface>,
    /// Their handles, by Global RAN Node ID.
    by_global_id: HashMap<String, GnbHandle>,
    /// NG Setups that wait for shards.
    setups: BTreeMap<GnbHandle, PendingSetup>,
    admission: Admission,
    /// Procedures that the AMF initiates.
    initiated: initiated::Initiated,
    /// UEs routed to each shard as new ones since the process started.
    begun: Vec<u64>,
    /// Length of each shard's inbox.
    loads: Vec<usize>,
    /// Blocks that pass to another shard.
    held: Vec<passage::HeldBlock>,
    /// Messages for blocks of other AMFs of the set.
    elsewhere: elsewhere::Elsewhere,
    out: Vec<N2GatewayEffect>,
}

impl N2Gateway {
    /// A gateway without associations.
    pub fn new(config: N2Config) -> Self {
        let shards = usize::from(config.shards.max(1));
        Self {
            config,
            associations: HashMap::new(),
            interfaces: BTreeMap::new(),
            by_global_id: HashMap::new(),
            setups: BTreeMap::new(),
            admission: Admission::default(),
            initiated: initiated::Initiated::default(),
            begun: vec![0; shards],
            loads: vec![0; shards],
            held: Vec::new(),
            elsewhere: elsewhere::Elsewhere::default(),
            out: Vec::new(),
        }
    }

    /// Updates the lengths of the shards' inboxes.
    pub fn set_loads(&mut self, loads: impl IntoIterator<Item = usize>) {
        for (slot, load) in self.loads.iter_mut().zip(loads) {
            *slot = load;
        }
    }

    /// gNBs that have completed NG Setup, with their handles.
    pub fn gnbs(&self) -> impl Iterator<Item = (GnbHandle, &Arc<GnbInfo>)> {
        self.interfaces.iter().map(|(gnb, interface)| (*gnb, &interface.info))
    }

    /// Handles one input and returns the effects.
    pub fn handle(&mut self, input: N2GatewayInput) -> std::vec::Drain<'_, N2GatewayEffect> {
        match input {
            N2GatewayInput::Up { tnla, peer, local, alternatives } => {
                self.associated(tnla, (peer, local), alternatives);
            }
            N2GatewayInput::Message { tnla, stream, ppid, pdu } => self.message(tnla, stream, ppid, &pdu),
            N2GatewayInput::Down { tnla } => self.down(tnla),
            N2GatewayInput::Shard(N2Effect::Send { gnb, binding, pdu }) => {
                self.send_of_shard(gnb, binding, pdu);
            }
            N2GatewayInput::Shard(N2Effect::TakenOver { shard, owners, connections }) => {
                self.release_all_of(shard, &owners);
                self.taken_over(shard, &owners, &connections);
            }
            N2GatewayInput::Shard(N2Effect::Instances(instances)) => self.elsewhere.instances = instances,
            N2GatewayInput::Shard(N2Effect::Passage(passage)) => self.passage(passage),
            N2GatewayInput::Shard(N2Effect::Left { gnb, ran_id, amf_id }) => {
                if let Some(interface) = self.interfaces.get_mut(&gnb) {
                    interface.ran_ids.leave(ran_id, amf_id);
                }
            }
            N2GatewayInput::Shard(N2Effect::Reset { gnb }) => self.begin_reset(gnb),
            N2GatewayInput::Shard(N2Effect::Capacity(capacity)) => self.set_capacity(capacity),
            N2GatewayInput::Shard(N2Effect::Endpoint { address, weight }) => {
                self.change_endpoint(address, weight);
            }
            N2GatewayInput::Shard(N2Effect::SetUp { shard, gnb, connections }) => {
                self.shard_is_set_up(shard, gnb, connections);
            }
        }
        self.out.drain(..)
    }

    fn message(&mut self, tnla: Tnla, stream: u16, ppid: u32, pdu: &Bytes) {
        let Some(association) = self.associations.get_mut(&tnla) else { return };
        association.is_doubtful = false;
        let (peer, gnb) = (association.peer, association.gnb);
        if gnb.is_none() && !self.count_early_message(tnla) {
            return;
        }
        if ppid != NGAP_PPID && ppid != 0 {
            return self.warn(tnla, || {
                format!("gNB {peer}: a message with payload protocol {ppid}, which is not NGAP")
            });
        }
        let Some(peeked) = peek(pdu) else { return self.not_ngap(tnla, pdu) };
        if peeked.procedure_code != procedure::NG_SETUP {
            self.release_held(tnla);
        }
        match (peeked.procedure_code, gnb) {
            // RAN CONFIGURATION UPDATE is answered with its own failure message.
            (procedure::NG_SETUP | procedure::RAN_CONFIGURATION_UPDATE, _) => {
                self.interface_management(tnla, pdu);
            }
            // They are the first procedures on an association (TS 38.413 8.7.1.1, 8.7.2.2).
            (_, None) if is_error_indication(pdu) => {
                let name = self.name(tnla);
                self.warn(tnla, || format!("gNB {name} reports an error before NG Setup"));
            }
            (_, None) => {
                let cause = CauseProtocol::message_not_compatible_with_receiver_state;
                self.error_indication(
                    tnla,
                    peeked.amf_ue_ngap_id,
                    peeked.ran_ue_ngap_id,
                    Cause::Protocol(cause),
                );
            }
            (
                procedure::NG_RESET
                | procedure::AMF_CONFIGURATION_UPDATE
                | procedure::UPLINK_RAN_CONFIGURATION_TRANSFER,
                _,
            ) => self.interface_management(tnla, pdu),
            (_, Some(gnb)) => self.route(gnb, TnlaBinding { tnla: Some(tnla), stream }, (&peeked, pdu)),
        }
    }

    /// Routes a message of a UE that was held. The association that it arrived on may have ended meanwhile.
    fn route_held(&mut self, gnb: GnbHandle, binding: TnlaBinding, pdu: &Bytes) {
        if let Some(peeked) = peek(pdu).filter(|_| self.interfaces.contains_key(&gnb)) {
            self.route(gnb, binding, (&peeked, pdu));
        }
    }

    /// Routes a message of a UE.
    fn route(&mut self, gnb: GnbHandle, binding: TnlaBinding, (peeked, pdu): (&Peek<'_>, &Bytes)) {
        if (peeked.procedure_code, peeked.class) != (procedure::INITIAL_UE_MESSAGE, Class::Initiating) {
            return self.ue_associated(gnb, binding, peeked, pdu);
        }
        let block = self.temporary_identity(peeked).map(|s_tmsi| s_tmsi.tmsi.block());
        if block.is_some_and(|block| self.hold(block, gnb, binding, pdu)) {
            return;
        }
        if block.is_some_and(|block| self.wait_for_owner(block, gnb, binding, pdu)) {
            return;
        }
        self.begin_connection(gnb, binding, pdu, peeked);
    }

    /// A message with an AMF-UE-NGAP-ID is routed to the shard that owns the id's block.
    fn ue_associated(&mut self, gnb: GnbHandle, binding: TnlaBinding, peeked: &Peek<'_>, pdu: &Bytes) {
        let owner = peeked.amf_ue_ngap_id.and_then(|id| Some((id, self.shard_of(id.block())?)));
        match (owner, peeked.amf_ue_ngap_id) {
            (Some((id, _)), _) if self.hold(id.block(), gnb, binding, pdu) => {}
            (Some((id, shard)), _) => {
                if begins_connection(peeked) {
                    self.end_earlier_connection(gnb, peeked.ran_ue_ngap_id, shard);
                }
                self.note_ids(gnb, peeked, (id, shard));
                self.hand_to_shard(shard, gnb, binding, pdu.clone());
            }
            (None, Some(id)) if peeked.procedure_code != procedure::ERROR_INDICATION => {
                let cause = Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID);
                if let Some(tnla) = self.association_of(gnb, binding) {
                    self.error_indication(tnla, Some(id), peeked.ran_ue_ngap_id, cause);
                }
            }
            (None, None) if peeked.procedure_code == procedure::ERROR_INDICATION => {
                self.error_indication_by_ran_id(gnb, binding, peeked.ran_ue_ngap_id, pdu);
            }
            _ => self.without_ue(gnb, binding, pdu),
        }
    }

    /// ERROR INDICATION of a gNB that does not know the AMF-UE-NGAP-ID, or does not accept it,
    /// contains only the RAN-UE-NGAP-ID (TS 38.413 8.7.5.2).
    fn error_indication_by_ran_id(
        &mut self,
        gnb: GnbHandle,
        binding: TnlaBinding,
        ran_id: Option<RanUeNgapId>,
        pdu: &Bytes,
    ) {
        for shard in self.shards_that_may_have(gnb, ran_id) {
            if self.hold_of_shard(shard, gnb, binding, pdu) {
                return;
            }
            self.hand_to_shard(shard, gnb, binding, pdu.clone());
        }
        self.without_ue(gnb, binding, pdu);
    }

    /// A gNB reuses a RAN-UE-NGAP-ID only when the id is no longer in use: the earlier
    /// connection is over (TS 38.413 8.6.1.2). If it is on the shard of the new connection, that
    /// shard closes it by itself.
    fn end_earlier_connection(&mut self, gnb: GnbHandle, ran_id: Option<RanUeNgapId>, new: ShardId) {
        let Some(ran) = ran_id else { return };
        for shard in self.shards_that_may_have(gnb, ran_id) {
            if shard != new {
                let ues = vec![ResetUe { amf: None, ran: Some(ran) }];
                self.note_reset(Some(shard), gnb, Some(&ues));
                let input = N2Input::Reset { gnb, ues: Some(ues) };
                self.out.push(N2GatewayEffect::ToShard { shard, input });
            }
        }
        if let Some(interface) = self.interfaces.get_mut(&gnb) {
            interface.ran_ids.assign(ran, new);
        }
    }

    /// Notes the ids of a connection; after UE CONTEXT RELEASE COMPLETE the RAN-UE-NGAP-ID is free.
    fn note_ids(&mut self, gnb: GnbHandle, peeked: &Peek<'_>, (amf_id, shard): (AmfUeNgapId, ShardId)) {
        let (Some(ran_id), Some(interface)) = (peeked.ran_ue_ngap_id, self.interfaces.get_mut(&gnb)) else {
            return;
        };
        if (peeked.procedure_code, peeked.class) == (procedure::UE_CONTEXT_RELEASE, Class::Successful) {
            interface.ran_ids.release(ran_id, (amf_id, shard));
        } else {
            interface.ran_ids.note_amf_id(ran_id, (amf_id, shard));
        }
    }

    /// The shards that may have a connection of that RAN-UE-NGAP-ID: at most one, unless the gNB
    /// uses more ids than the gateway records.
    fn shards_that_may_have(&self, gnb: GnbHandle, ran_id: Option<RanUeNgapId>) -> Vec<ShardId> {
        let ran_ids = self.interfaces.get(&gnb).map(|interface| &interface.ran_ids);
        match ran_ids.zip(ran_id).map(|(ran_ids, ran_id)| ran_ids.find(ran_id)) {
            Some(ConnectionShard::Shard(shard)) => vec![shard],
            Some(ConnectionShard::AnyShard) => (0..self.config.shards).map(ShardId).collect(),
            Some(ConnectionShard::None) | None => Vec::new(),
        }
    }

    /// A message without a UE id of this AMF: decoding determines the error to report.
    fn without_ue(&mut self, gnb: GnbHandle, binding: TnlaBinding, pdu: &Bytes) {
        let Some(tnla) = self.association_of(gnb, binding) else { return };
        match Message::decode(pdu) {
            Ok(Message::ErrorIndication(indication)) => {
                let cause = indication.cause.map_or_else(|| "no cause".to_owned(), |cause| cause.to_string());
                let name = self.name(tnla);
                self.warn(tnla, || format!("gNB {name} reports an error: {cause}"));
            }
            Ok(Message::Other(other)) if other.answer.is_none() => {}
            Ok(_) => {
                let error = pith_ngap::unknown_procedure(pdu);
                self.report(tnla, error);
            }
            Err(error) if is_error_indication(pdu) => {
                let name = self.name(tnla);
                self.warn(tnla, || format!("ERROR INDICATION of gNB {name}: {error}"));
            }
            Err(error) => self.report(tnla, Some(error)),
        }
    }

    /// The owner of the block of the UE's temporary identity, else the least loaded shard (design
    /// section 8).
    fn shard_of_new(&mut self, peeked: &Peek<'_>) -> ShardId {
        let known = self.temporary_identity(peeked);
        if let Some(shard) = known.and_then(|s_tmsi| self.shard_of(s_tmsi.tmsi.block())) {
            return shard;
        }
        let load = |shard: &usize| {
            (self.loads.get(*shard).map(|load| load / SAME_LOAD), self.begun.get(*shard).copied())
        };
        let least = (0..self.begun.len()).min_by_key(load).unwrap_or(0);
        if let Some(begun) = self.begun.get_mut(least) {
            *begun += 1;
        }
        ShardId(least as u8)
    }

    /// The temporary identity, if this process allocated it: the one in the NAS message, which the
    /// AMF uses, else the 5G-S-TMSI IE, which is optional (TS 38.413 9.2.5.1). Only a UE that comes from EPS has an Additional GUTI.
    fn temporary_identity(&self, peeked: &Peek<'_>) -> Option<FiveGSTmsi> {
        let of_guti = |guti: FiveGGuti| self.has_guami(&guti.guami).then(|| guti.s_tmsi());
        let in_nas = match peeked.nas_pdu.and_then(peek_temporary_identity) {
            Some(TemporaryIdentity::FiveGGuti(guti)) => of_guti(guti),
            Some(TemporaryIdentity::FiveGSTmsi(s_tmsi)) => Some(s_tmsi),
            None => None,
        };
        let native = || peeked.nas_pdu.and_then(peek_additional_guti).and_then(of_guti);
        let gave = |s_tmsi: &FiveGSTmsi| self.gave(s_tmsi);
        native().or(in_nas).filter(gave).or_else(|| peeked.s_tmsi.filter(gave))
    }

    fn gave(&self, s_tmsi: &FiveGSTmsi) -> bool {
        let amf = |guami: &Guami| {
            let is_pointer = self.shares_blocks() || guami.amf_id.pointer == s_tmsi.amf_pointer;
            guami.amf_id.set == s_tmsi.amf_set && is_pointer
        };
        self.config.guamis.iter().any(amf)
    }

    /// Whether a GUAMI is this AMF's, or that of another AMF of its set.
    fn has_guami(&self, guami: &Guami) -> bool {
        let is_own = |own: &Guami| {
            let (set, of) = (own.amf_id, guami.amf_id);
            own == guami
                || (self.shares_blocks()
                    && own.plmn_id == guami.plmn_id
                    && (set.region, set.set) == (of.region, of.set))
        };
        self.config.guamis.iter().any(is_own)
    }

    /// The shard of this process that has the block.
    fn shard_of(&self, block: BlockId) -> Option<ShardId> {
        let shard = self.config.owners.shard_of(self.config.instance, block)?;
        (shard.0 < self.config.shards).then_some(shard)
    }

    fn down(&mut self, tnla: Tnla) {
        let Some((association, last_of)) = self.forget(tnla) else { return };
        let (Some(gnb), peer) = (association.gnb, association.peer) else { return };
        match last_of {
            Some(info) => {
                self.event(Level::Warn, format!("gNB {} ({peer}) is gone", info.name));
                self.send_to_all_shards(|| N2Input::GnbDown { gnb });
            }
            None => {
                let name = self.name_of(gnb);
                self.event(
                    Level::Warn,
                    format!("gNB {name} has lost the association with {peer}, and has others"),
                );
            }
        }
    }

    fn hand_to_shard(&mut self, shard: ShardId, gnb: GnbHandle, binding: TnlaBinding, pdu: Bytes) {
        self.out.push(N2GatewayEffect::ToShard { shard, input: N2Input::Pdu { gnb, binding, pdu } });
    }

    fn send_to_all_shards(&mut self, make: impl Fn() -> N2Input) {
        if let N2Input::GnbDown { gnb } | N2Input::Reset { gnb, .. } = make() {
            self.note_reset(None, gnb, None);
        }
        for shard in 0..self.config.shards {
            self.out.push(N2GatewayEffect::ToShard { shard: ShardId(shard), input: make() });
        }
    }

    /// Sends a message of interface management to a gNB, over one of its associations.
    fn send_common(&mut self, gnb: GnbHandle, pdu: Result<Vec<u8>, EncodeError>) {
        if let Some(tnla) = self.association_of(gnb, TnlaBinding::unbound(NON_UE_STREAM)) {
            self.answer(tnla, pdu);
        }
    }

    /// Answers over the association of the message.
    fn answer(&mut self, tnla: Tnla, pdu: Result<Vec<u8>, EncodeError>) {
        let Some(association) = self.associations.get_mut(&tnla) else { return };
        match pdu {
            Ok(pdu) => {
                let with_notice = association.notice.as_ref().and_then(|notice| notice.add_to(&pdu));
                if with_notice.is_some() {
                    association.notice = None;
                }
                let pdu = with_notice.unwrap_or(pdu).into();
                self.out.push(N2GatewayEffect::Send { tnla, stream: NON_UE_STREAM, pdu });
            }
            Err(error) => self.event(Level::Error, error.to_string()),
        }
    }

    /// ERROR INDICATION for octets that are not a PDU (TS 38.413 10.2).
    fn not_ngap(&mut self, tnla: Tnla, pdu: &[u8]) {
        let name = self.name(tnla);
        self.warn(tnla, || format!("gNB {name} sent octets that are not an NGAP PDU"));
        if is_error_indication(pdu) {
            return;
        }
        self.error_indication(tnla, None, None, Cause::Protocol(CauseProtocol::transfer_syntax_error));
    }

    fn error_indication(
        &mut self,
        tnla: Tnla,
        amf_ue_ngap_id: Option<AmfUeNgapId>,
        ran_ue_ngap_id: Option<RanUeNgapId>,
        cause: Cause,
    ) {
        let indication = ErrorIndication {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            cause: Some(cause),
            diagnostics: None,
            s_tmsi: None,
        };
        self.answer(tnla, indication.encode());
    }

    /// ERROR INDICATION with the diagnostics (TS 38.413 10.3).
    fn report(&mut self, tnla: Tnla, error: Option<NgapError>) {
        let Some(error) = error else { return };
        let name = self.name(tnla);
        self.warn(tnla, || format!("gNB {name}: {error}"));
        self.indicate(tnla, error.cause(), error.diagnostics());
    }

    fn indicate(&mut self, tnla: Tnla, cause: Cause, diagnostics: Option<Diagnostics>) {
        let indication = ErrorIndication {
            amf_ue_ngap_id: None,
            ran_ue_ngap_id: None,
            cause: Some(cause),
            diagnostics,
            s_tmsi: None,
        };
        self.answer(tnla, indication.encode());
    }

    /// The name of the association's gNB, or its address.
    fn name(&self, tnla: Tnla) -> String {
        let Some(association) = self.associations.get(&tnla) else { return String::new() };
        association.gnb.map_or_else(|| association.peer.to_string(), |gnb| self.name_of(gnb))
    }

    fn name_of(&self, gnb: GnbHandle) -> String {
        self.interfaces.get(&gnb).map(|interface| interface.info.name.clone()).unwrap_or_default()
    }

    fn event(&mut self, level: Level, text: String) {
        let event = Event { level, procedure: "NGAP", outcome: "", ue: String::new(), text };
        self.out.push(N2GatewayEffect::Event(event));
    }
}

/// Whether the RAN-UE-NGAP-ID in the message is new: that of the target gNB of a handover (TS 38.413 8.4.2.2, 8.4.4.2).
fn begins_connection(peeked: &Peek<'_>) -> bool {
    matches!(
        (peeked.procedure_code, peeked.class),
        (procedure::PATH_SWITCH_REQUEST, Class::Initiating)
            | (procedure::HANDOVER_RESOURCE_ALLOCATION, Class::Successful)
    )
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod initiated_tests;

#[cfg(test)]
mod tnla_tests;
