//! The trace of a subscriber at the UE's gNB (TS 32.422 4.1.2.16, 4.2.3; TS 38.413 8.11): from the subscription (TS 29.503 6.1.6.2.4).
//!
//! | event | the gNB gets |
//! |---|---|
//! | it gets a UE context | Trace Activation in INITIAL CONTEXT SETUP REQUEST |
//! | the UE is handed over to it over N2 | Trace Activation in HANDOVER REQUEST |
//! | the UE is handed over to it over Xn | the trace of the source gNB, from that gNB; PATH SWITCH REQUEST ACKNOWLEDGE has none (TS 38.413 9.2.3.9) |
//! | the subscription gets a trace, or another one | TRACE START, after DEACTIVATE TRACE of the former one |
//! | the subscription loses its trace | DEACTIVATE TRACE |
//!
//! A gNB that answers TRACE FAILURE INDICATION gets no other request over that connection. After a handover over Xn the other gNB gets TRACE START of what
//! its source gNB has refused. A recording session lasts as long as the connection,
//! and continues at the target gNB of a handover within this AMF. The AMF itself records nothing, and requests all interfaces of the gNB:
//! `neTypeList`, `eventList` and `interfaceList` of TS 32.422 are kept for the next AMF, and not evaluated.

use super::connection::{NgConnection, RanContext};
use super::context::{Env, UeContext};
use super::n2;
use super::refusal;
use crate::kit::document::{pack_enum, pack_struct};
use crate::kit::{Key, Level, Outbox, Rng, check_trace};
use pith_ngap::{
    CellTrafficTrace, CollectionEntity, DeactivateTrace, NgRanTraceId, TraceActivation,
    TraceDepth as NgapDepth, TraceFailureIndication, TraceStart, TracedInterfaces,
};
use pith_sbi::common::{TraceData, TraceDepth};
use pith_types::{AmfUeNgapId, Plmn};
use std::sync::Arc;

/// The trace of a UE, and what its gNBs have got of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct UeTrace {
    /// The subscribed trace.
    subscribed: Option<Trace>,
    /// Trace Recording Session Reference of the last recording session.
    last_session: u16,
    /// The recording sessions of the UE's connections: the one in use, and that of a handover.
    recordings: Vec<Recording>,
}

/// A valid trace of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Trace {
    /// Trace Reference: PLMN and Trace ID.
    reference: [u8; 6],
    depth: Depth,
    ne_types: Arc<str>,
    events: Arc<str>,
    interfaces: Option<Arc<str>>,
    /// Addresses of the trace collection entity, at least one.
    ipv4: Option<[u8; 4]>,
    ipv6: Option<[u8; 16]>,
}

/// How much is recorded (TS 32.422 5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    Minimum,
    Medium,
    Maximum,
    MinimumWithoutVendorExtension,
    MediumWithoutVendorExtension,
    MaximumWithoutVendorExtension,
}

/// What the gNB of a connection has got.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Recording {
    connection: AmfUeNgapId,
    trace: Trace,
    /// Trace Recording Session Reference.
    session: u16,
    /// The gNB has answered with TRACE FAILURE INDICATION.
    has_failed: bool,
}

pack_struct!(UeTrace { subscribed, last_session, recordings });
pack_struct!(Trace { reference, depth, ne_types, events, interfaces, ipv4, ipv6 });
pack_enum!(Depth {
    0 => Minimum,
    1 => Medium,
    2 => Maximum,
    3 => MinimumWithoutVendorExtension,
    4 => MediumWithoutVendorExtension,
    5 => MaximumWithoutVendorExtension,
});
pack_struct!(Recording { connection, trace, session, has_failed });

impl Trace {
    /// The trace of a subscription; the error says why it is invalid.
    fn of(data: &TraceData) -> Result<Self, &'static str> {
        let reference = check_trace(data)?;
        let depth = Depth::of(&data.trace_depth).ok_or("unknown 'traceDepth'")?;
        if data.collection_entity_ipv4_addr.is_none() && data.collection_entity_ipv6_addr.is_none() {
            // Mandatory in NGAP (TS 38.413 9.3.1.14).
            return Err("no address of the trace collection entity");
        }
        Ok(Self {
            reference,
            depth,
            ne_types: data.ne_type_list.clone(),
            events: data.event_list.clone(),
            interfaces: data.interface_list.clone(),
            ipv4: data.collection_entity_ipv4_addr.map(|address| address.octets()),
            ipv6: data.collection_entity_ipv6_addr.map(|address| address.octets()),
        })
    }

    /// As a subscription has it.
    fn to_sbi(&self) -> Option<TraceData> {
        let [a, b, c, id @ ..] = self.reference;
        let plmn = Plmn::from_bcd([a, b, c]).ok()?;
        let reference = format!("{}{}-{}", plmn.mcc(), plmn.mnc(), pith_sbi::Hex(id));
        let mut data =
            TraceData::new(reference, self.depth.to_sbi(), self.ne_types.clone(), self.events.clone());
        data.collection_entity_ipv4_addr = self.ipv4.map(Into::into);
        data.collection_entity_ipv6_addr = self.ipv6.map(Into::into);
        data.interface_list = self.interfaces.clone();
        Some(data)
    }
}

impl Depth {
    const fn of(depth: &TraceDepth) -> Option<Self> {
        Some(match depth {
            TraceDepth::Minimum => Self::Minimum,
            TraceDepth::Medium => Self::Medium,
            TraceDepth::Maximum => Self::Maximum,
            TraceDepth::MinimumWoVendorExtension => Self::MinimumWithoutVendorExtension,
            TraceDepth::MediumWoVendorExtension => Self::MediumWithoutVendorExtension,
            TraceDepth::MaximumWoVendorExtension => Self::MaximumWithoutVendorExtension,
            TraceDepth::Other(_) => return None,
        })
    }

    const fn to_sbi(self) -> TraceDepth {
        match self {
            Self::Minimum => TraceDepth::Minimum,
            Self::Medium => TraceDepth::Medium,
            Self::Maximum => TraceDepth::Maximum,
            Self::MinimumWithoutVendorExtension => TraceDepth::MinimumWoVendorExtension,
            Self::MediumWithoutVendorExtension => TraceDepth::MediumWoVendorExtension,
            Self::MaximumWithoutVendorExtension => TraceDepth::MaximumWoVendorExtension,
        }
    }

    const fn to_ngap(self) -> NgapDepth {
        match self {
            Self::Minimum => NgapDepth::minimum,
            Self::Medium => NgapDepth::medium,
            Self::Maximum => NgapDepth::maximum,
            Self::MinimumWithoutVendorExtension => NgapDepth::minimumWithoutVendorSpecificExtension,
            Self::MediumWithoutVendorExtension => NgapDepth::mediumWithoutVendorSpecificExtension,
            Self::MaximumWithoutVendorExtension => NgapDepth::maximumWithoutVendorSpecificExtension,
        }
    }
}

impl Recording {
    const fn id(&self) -> NgRanTraceId {
        NgRanTraceId::new(self.trace.reference, self.session)
    }

    fn activation(&self) -> TraceActivation {
        TraceActivation {
            id: self.id(),
            interfaces: TracedInterfaces::ALL,
            depth: self.trace.depth.to_ngap(),
            collection_entity: CollectionEntity {
                ipv4: self.trace.ipv4.map(Into::into),
                ipv6: self.trace.ipv6.map(Into::into),
            },
        }
    }
}

impl UeTrace {
    /// Begins the recording of the subscribed trace over a connection: in the recording session of the UE's other connection, from which it is
    /// being handed over, or in a new one.
    fn record(&mut self, connection: AmfUeNgapId, rng: &mut Rng) -> Option<TraceActivation> {
        self.recordings.retain(|recording| recording.connection != connection);
        let trace = self.subscribed.clone()?;
        let current = self.recordings.iter().find(|recording| recording.trace == trace);
        let session = match current.map(|recording| recording.session) {
            Some(session) => session,
            None => self.next_session(rng),
        };
        let recording = Recording { connection, trace, session, has_failed: false };
        let activation = recording.activation();
        self.recordings.push(recording);
        Some(activation)
    }

    /// A Trace Recording Session Reference that the trace did not have before (TS 32.422 5.7); the first one is random.
    fn next_session(&mut self, rng: &mut Rng) -> u16 {
        let [high, low] = rng.octets();
        self.last_session = match self.last_session {
            0 => u16::from_be_bytes([high, low]),
            last => last.wrapping_add(1),
        };
        self.last_session
    }

    /// Ends a recording of a connection that is not the subscribed trace. Returns its id, if the gNB records it.
    fn take_outdated(&mut self, connection: AmfUeNgapId) -> Option<NgRanTraceId> {
        let is_outdated =
            |it: &Recording| it.connection == connection && Some(&it.trace) != self.subscribed.as_ref();
        let at = self.recordings.iter().position(is_outdated)?;
        let outdated = self.recordings.swap_remove(at);
        (!outdated.has_failed).then(|| outdated.id())
    }

    fn has(&self, connection: AmfUeNgapId) -> bool {
        self.recordings.iter().any(|recording| recording.connection == connection)
    }
}

impl UeContext {
    /// Takes the trace of new subscription data. An invalid one counts as none.
    pub(super) fn subscribe_trace(&mut self, data: Option<&TraceData>, out: &mut Outbox) {
        let subscribed = data.map(Trace::of).transpose().unwrap_or_else(|why| {
            out.log(Level::Warn, || format!("{}: the subscribed trace is ignored: {why}", self.name()));
            None
        });
        if subscribed.is_some() || self.trace.is_some() {
            self.trace.get_or_insert_default().subscribed = subscribed;
        }
    }

    /// The trace for the target AMF of a handover.
    pub(super) fn subscribed_trace(&self) -> Option<TraceData> {
        self.trace.as_ref()?.subscribed.as_ref()?.to_sbi()
    }

    /// Trace Activation for the gNB of a connection, which gets a UE context.
    pub(super) fn activate_trace(&mut self, env: &mut Env<'_>, key: Key) -> Option<TraceActivation> {
        let connection = env.connections.get(key)?.id;
        self.trace.as_mut()?.record(connection, env.rng)
    }
}

/// Starts and stops the trace at the UE's gNB as the subscription requires. While the gNB has no UE context, or the UE is being handed over, it
/// does so later. Called after each step of a UE.
pub(super) fn resume(ue: &mut UeContext, env: &mut Env<'_>) {
    let is_moving = !ue.mobility.is_idle();
    let (key, owner) = (ue.connection, ue.key);
    let Some(trace) = &mut ue.trace else { return };
    let is_open = |it: &NgConnection| it.ue == Some(owner) && it.context != RanContext::Releasing;
    let open = |id| env.connections.find(id).and_then(|key| env.connections.get(key)).is_some_and(is_open);
    trace.recordings.retain(|recording| open(recording.connection));
    if trace.subscribed.is_none() && trace.recordings.is_empty() {
        ue.trace = None;
        return;
    }
    let Some(connection) = key.and_then(|key| env.connections.get(key)) else { return };
    if connection.context != RanContext::Established || is_moving {
        return;
    }
    let (amf_ue_ngap_id, ran_ue_ngap_id, side) = (connection.id, connection.ran_id, connection.side());
    if let Some(outdated) = trace.take_outdated(amf_ue_ngap_id) {
        let message = DeactivateTrace { amf_ue_ngap_id, ran_ue_ngap_id, trace: Some(outdated) };
        n2::send_to(env.out, side, message.encode());
    }
    if !trace.has(amf_ue_ngap_id)
        && let Some(activation) = trace.record(amf_ue_ngap_id, env.rng)
    {
        let message = TraceStart { amf_ue_ngap_id, ran_ue_ngap_id, activation: Some(activation) };
        n2::send_to(env.out, side, message.encode());
    }
    if trace.subscribed.is_none() && trace.recordings.is_empty() {
        ue.trace = None;
    }
}

/// TRACE FAILURE INDICATION (TS 38.413 8.11.2): the gNB is not asked again over this connection. One without the id of the trace is about the
/// only trace of the UE.
pub(super) fn failed(ue: &mut UeContext, env: &mut Env<'_>, message: &TraceFailureIndication) {
    env.out.log(Level::Warn, || {
        let id = message.trace.map(|id| id.to_string()).unwrap_or_default();
        format!("{}: the gNB does not record trace {id}: {}", ue.name(), refusal::text_of(message.cause))
    });
    let recordings = ue.trace.iter_mut().flat_map(|trace| &mut trace.recordings);
    for recording in recordings.filter(|it| it.connection == message.amf_ue_ngap_id) {
        recording.has_failed |= message.trace.is_none_or(|id| id == recording.id());
    }
}

/// The connection is that of another gNB, which did not get the traces that the former one has refused.
pub(super) fn forget_failure(ue: &mut UeContext, connection: AmfUeNgapId) {
    if let Some(trace) = &mut ue.trace {
        trace.recordings.retain(|recording| recording.connection != connection || !recording.has_failed);
    }
}

/// Characters of a URI of a gNB that are logged.
const URI_SHOWN: usize = 200;

/// CELL TRAFFIC TRACE (TS 38.413 8.11.4): the gNB records the UE for a trace of its cell, which the management system has started there. The log
/// has what relates the record to the UE.
pub(super) fn cell_traffic(ue: &UeContext, env: &mut Env<'_>, message: &CellTrafficTrace) {
    env.out.log(Level::Info, || {
        let id = message.trace.map_or_else(|| "without id".into(), |id| id.to_string());
        let cell = message.cell.map_or_else(|| "unknown".into(), |it| format!("{} {}", it.plmn, it.cell));
        let entity = message.collection_entity.map_or_else(|| "unknown".into(), |entity| entity.to_string());
        let uri: String =
            message.collection_entity_uri.iter().flat_map(|it| it.chars()).take(URI_SHOWN).collect();
        let uri = if uri.is_empty() { uri } else { format!(" {uri:?}") };
        format!("{}: cell traffic trace {id}, cell {cell}, trace collection entity {entity}{uri}", ue.name())
    });
}
