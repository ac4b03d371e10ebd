//! One gNB: NGAP towards an AMF (TS 38.413), and the part of RRC that its UEs observe.
//!
//! ```text
//!  association   AssociationUp, Pdu, AssociationDown  ──┐          ┌──> Send            to the association
//!  UEs           Connect, Uplink, RadioLost           ──┼── handle ┼──> Nas, Released … to the UEs
//!  the tester    ReleaseContext, Reset                ──┘          └──> Event, Violation
//! ```

mod associations;
mod containers;
mod flow_mobility;
mod handover;
mod interface;
mod management;
mod message;
mod n2_handover;
mod nas_transport;
mod pdu_session;
mod reroute;
mod reset;
mod restrictions;
mod retention;
mod trace;
mod ue_context;

pub use associations::N2Stream;
pub use handover::{Cell, XnHandover};
pub use interface::{Bearer, Event, Input, Output, QosFlows, UeKey};
pub use reroute::Redirected;

use crate::clock::Instant;
use crate::violation::Violation;
use pith_ngap::{
    Cause, CauseRadioNetwork, EncodeError, ErrorIndication, ImsVoiceSupport, NgRanTraceId,
    RrcEstablishmentCause, UserLocation,
};
use pith_types::{AmfUeNgapId, FiveGSTmsi, Guami, NrCellIdentity, Plmn, RanUeNgapId, Snssai, Tac, Tai};
use retention::Deferred;
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use associations::{COMMON_STREAM, Links};

/// Configuration of a gNB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// RAN Node Name.
    pub name: String,
    /// The PLMN that it belongs to and broadcasts.
    pub plmn: Plmn,
    /// gNB ID, of 32 bits.
    pub id: u32,
    /// Its tracking area.
    pub tac: Tac,
    /// Slices that it supports.
    pub slices: Vec<Snssai>,
    /// Its address on N3.
    pub n3: IpAddr,
    /// The first TEID that it allocates; the following ones are consecutive. Without UEs after NG Setup, it begins again with this one.
    pub first_teid: u32,
    /// Keeps the UEs while it has no association, and proposes to retain them (TS 38.413 8.7.1.2).
    pub retains_ues: bool,
    /// Its further associations join by NG SETUP REQUEST, not by RAN CONFIGURATION UPDATE.
    pub joins_by_ng_setup: bool,
}

impl Settings {
    /// The TAI of its tracking area.
    pub fn tai(&self) -> Tai {
        Tai { plmn_id: self.plmn, tac: self.tac }
    }
}

/// State of NG Setup.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NgState {
    /// There is no association.
    Down,
    /// NG SETUP REQUEST was sent.
    AwaitingNgSetupResponse,
    /// NG SETUP FAILURE was received; Time To Wait is running.
    Waiting,
    /// The gNB is in operation.
    Up,
}

/// The AMF's data from NG Setup and AMF Configuration Update.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amf {
    /// AMF Name.
    pub name: String,
    /// GUAMIs that it serves.
    pub guamis: Vec<Guami>,
    /// Relative AMF Capacity.
    pub capacity: u8,
    /// Percentage of signalling to suppress during overload.
    pub overload: Option<u8>,
}

/// A UE-associated logical NG-connection.
#[derive(Debug)]
struct UeContext {
    ue: UeKey,
    amf_id: Option<AmfUeNgapId>,
    /// The association to which the UE is bound: that of the AMF's last message.
    association: Option<u8>,
    /// The stream of the AMF's first message for the UE over it.
    amf_stream: Option<u16>,
    /// Initial Context Setup is complete.
    is_set_up: bool,
    bearers: Vec<Bearer>,
    /// Keys of the access stratum, once it is set up.
    keys: Option<handover::AsKeys>,
    /// It was established for an emergency call: the gNB may select null integrity (TS 33.501 10.2.2.2).
    is_emergency: bool,
    /// Sessions whose path is being switched after a handover.
    switching: Vec<u8>,
    /// Sessions whose downlink is to move to other tunnels, until the AMF confirms it.
    moving: Vec<flow_mobility::Moving>,
    /// Its part in an N2 handover.
    part: n2_handover::Part,
    /// The active traces.
    traces: Vec<NgRanTraceId>,
}

/// A UE that found the cell barred, with its first message.
#[derive(Debug)]
struct BarredUe {
    ue: UeKey,
    nas: Vec<u8>,
    cause: RrcEstablishmentCause,
    s_tmsi: Option<FiveGSTmsi>,
}

/// One gNB.
pub struct Gnb {
    settings: Settings,
    /// Its answer to UE RADIO CAPABILITY CHECK REQUEST.
    ims_voice: ImsVoiceSupport,
    /// Without an AMF the cell is barred (TS 38.304 5.3.1): UEs connect when it has one again.
    bars_cell: bool,
    barred: Vec<BarredUe>,
    state: NgState,
    amf: Amf,
    links: Links,
    /// Associations that the AMF has refused, and when they try again.
    joins: Vec<(Instant, u8)>,
    contexts: HashMap<RanUeNgapId, UeContext>,
    ran_ids: HashMap<UeKey, RanUeNgapId>,
    /// Ids of contexts that were released before the AMF answered: the AMF could not be notified.
    unanswered: HashSet<RanUeNgapId>,
    /// Ids of UEs that were handed over to another gNB over Xn, and when.
    departed: HashMap<RanUeNgapId, Instant>,
    /// Ids of connections that the gNB has lost without an association, and that the AMF may retain.
    lost: Vec<RanUeNgapId>,
    /// What UEs did while the gNB retained them without an association.
    deferred: Vec<Deferred>,
    /// UEs that left by an N2 handover, until when the AMF is to release them.
    departures: VecDeque<(Instant, RanUeNgapId)>,
    last_ran_id: u32,
    /// Distance of its RAN UE NGAP IDs.
    ran_id_step: u32,
    next_teid: u32,
    /// It has opened tunnels for UEs of other gNBs: no TEID is used twice from then on.
    has_lent_tunnels: bool,
    /// Deadline of the NG Setup response, or of the next attempt.
    deadline: Option<Instant>,
    now: Instant,
    out: Vec<Output>,
}

/// Maximum time for an answer to NG SETUP REQUEST; TS 38.413 leaves it to the gNB.
const SETUP_PATIENCE: Duration = Duration::from_secs(10);

impl Gnb {
    /// A gNB without an association.
    pub fn new(settings: Settings) -> Self {
        Self {
            next_teid: settings.first_teid,
            settings,
            ims_voice: ImsVoiceSupport::supported,
            bars_cell: false,
            barred: Vec::new(),
            state: NgState::Down,
            amf: Amf::default(),
            links: Links::default(),
            joins: Vec::new(),
            contexts: HashMap::new(),
            ran_ids: HashMap::new(),
            unanswered: HashSet::new(),
            departed: HashMap::new(),
            lost: Vec::new(),
            deferred: Vec::new(),
            departures: VecDeque::new(),
            last_ran_id: 0,
            ran_id_step: 1,
            has_lent_tunnels: false,
            deadline: None,
            now: Instant::START,
            out: Vec::new(),
        }
    }

    /// From now on UEs wait while there is no AMF. Otherwise their connection fails.
    pub const fn bar_cell_without_amf(&mut self) {
        self.bars_cell = true;
    }

    /// UEs of the cell are not capable of IMS voice.
    pub const fn deny_ims_voice(&mut self) {
        self.ims_voice = ImsVoiceSupport::not_supported;
    }

    /// Handles one input; appends the outputs to `out`.
    pub fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Vec<Output>) {
        self.now = now;
        std::mem::swap(&mut self.out, out);
        match input {
            Input::AssociationUp { association, outbound_streams } => {
                self.on_association_up(association, outbound_streams);
            }
            Input::AssociationDown { association } => self.on_association_down(association),
            Input::Pdu { association, stream, octets } => {
                self.links.receive_on(Some(association));
                self.receive(N2Stream { association: Some(association), number: stream }, octets);
                self.links.receive_on(None);
            }
            Input::Connect { ue, nas, cause, s_tmsi } => self.connect(ue, nas, cause, s_tmsi),
            Input::Rerouted { ue, message } => self.send_rerouted(ue, *message),
            Input::Redirected { found, stream, message } => self.receive_redirecting(found, stream, *message),
            Input::Uplink { ue, nas } if self.is_retaining(ue) => {
                self.deferred.push(Deferred::Uplink { ue, nas });
            }
            Input::Uplink { ue, nas } => self.send_uplink(ue, nas),
            Input::ReleaseContext { ue, cause } => self.request_context_release(ue, cause),
            Input::RadioLost { ue } => {
                self.barred.retain(|barred| barred.ue != ue);
                self.request_context_release(ue, CauseRadioNetwork::radio_connection_with_ue_lost);
            }
            Input::XnHandover(handover) => self.receive_xn_handover(*handover),
            Input::RequireHandover { ue, node, tai } => self.require_handover(ue, node, tai),
            Input::Arrive { ue } => self.arrive(ue),
            Input::TakeBack { ue } => self.take_back(ue),
            Input::MoveFlows { ue, tunnels } => self.move_flows(ue, tunnels),
            Input::Reset => self.reset(),
            Input::Timeout => self.on_timeout(),
        }
        std::mem::swap(&mut self.out, out);
    }

    /// The time at which [`Input::Timeout`] is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        let departure = self.departures.front().map(|(due, _)| *due);
        let join = self.joins.iter().map(|(due, _)| *due);
        self.deadline.into_iter().chain(departure).chain(join).min()
    }

    /// Whether NG Setup has succeeded and the association exists.
    pub fn is_up(&self) -> bool {
        self.state == NgState::Up
    }

    /// The AMF's data.
    pub fn amf(&self) -> &Amf {
        &self.amf
    }

    /// Number of UE contexts.
    pub fn ue_count(&self) -> usize {
        self.contexts.len()
    }

    /// Its configuration.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The two ids of a UE's connection, as far as they are assigned.
    pub fn ids_of(&self, ue: UeKey) -> Option<(RanUeNgapId, Option<AmfUeNgapId>)> {
        let ran_id = *self.ran_ids.get(&ue)?;
        Some((ran_id, self.contexts.get(&ran_id)?.amf_id))
    }

    fn location(&self) -> UserLocation {
        let cell = NrCellIdentity::new(u64::from(self.settings.id) << 4);
        UserLocation { cell_plmn: self.settings.plmn, cell, tai: self.settings.tai() }
    }

    fn send(&mut self, stream: N2Stream, pdu: Result<Vec<u8>, EncodeError>) {
        let association = self.association_for(stream);
        match pdu {
            Ok(pdu) => self.out.push(Output::Send { association, stream: stream.number, pdu }),
            Err(error) => self.violation("TS 38.413 9.4", error.to_string()),
        }
    }

    fn violation(&mut self, clause: &'static str, text: impl Into<String>) {
        self.out.push(Output::Violation(Violation::new(clause, text)));
    }

    /// Sends ERROR INDICATION (TS 38.413 8.7.5, 10.6).
    fn indicate_error(
        &mut self,
        ids: (Option<AmfUeNgapId>, Option<RanUeNgapId>),
        cause: Cause,
        stream: N2Stream,
    ) {
        let (amf_ue_ngap_id, ran_ue_ngap_id) = ids;
        let indication = ErrorIndication {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            cause: Some(cause),
            diagnostics: None,
            s_tmsi: None,
        };
        self.send(stream, indication.encode());
    }

    /// Deletes a UE's context and releases its radio connection.
    fn release_context(&mut self, ran_id: RanUeNgapId) -> Option<UeContext> {
        let context = self.contexts.remove(&ran_id)?;
        if matches!(context.part, n2_handover::Part::Left | n2_handover::Part::Arriving) {
            // The UE is at another gNB.
            return Some(context);
        }
        self.ran_ids.remove(&context.ue);
        for bearer in &context.bearers {
            self.out.push(Output::BearerDown { ue: context.ue, bearer: *bearer });
        }
        self.out.push(Output::Released { ue: context.ue });
        Some(context)
    }
}
