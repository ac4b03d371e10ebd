//! The UPF's control part: inputs in; PFCP messages, notices and datapath calls out.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use pith_pfcp::ie::{Cause, NodeId};
use pith_pfcp::message::*;
use pith_pfcp::{DecodeError, Header, Message, MessageType, bundled};

use crate::association::Association;
use crate::config::Config;
use crate::contract::{Datapath, Event, Rates, SessionId};
use crate::load::Load;
use crate::port::{Context, Effect, Input, Notice};
use crate::random::Random;
use crate::reach::HostAddresses;
use crate::rejection::Rejection;
use crate::session::{Session, SessionTable};
use crate::transaction::{Expired, Outstanding, Requests, Responses};
use crate::unknown_peers::{UnknownPeers, UnknownSources};

/// The purpose of a request by the UPF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Checks whether an SMF is alive.
    Heartbeat(NodeId),
    /// Reports for a session.
    SessionReport(SessionId),
    /// Asks an SMF to release its association.
    Release,
}

/// A UPF-C.
#[derive(Debug)]
pub struct Upf {
    pub(crate) config: Config,
    pub(crate) associations: BTreeMap<NodeId, Association>,
    /// The address of each SMF whose association has ended, while it has sessions that another SMF of its set may take over: its Node ID
    /// is of use from there only.
    pub(crate) former_addresses: BTreeMap<NodeId, IpAddr>,
    pub(crate) sessions: SessionTable,
    pub(crate) responses: Responses,
    pub(crate) requests: Requests<Purpose>,
    pub(crate) load: Load,
    pub(crate) gtpu_sources: UnknownSources,
    pub(crate) unknown_peers: UnknownPeers,
}

/// A response, and the peer's SEID to send it to.
pub(crate) type Reply = (u64, Message);

/// A response; or a rejection and the peer's SEID to send it to.
pub(crate) type ProcedureResult = Result<Reply, (u64, Rejection)>;

impl Upf {
    /// A UPF without associations; `seed` is entropy for its identifiers.
    pub fn new(config: Config, seed: [u8; 32]) -> Self {
        Upf {
            associations: BTreeMap::new(),
            former_addresses: BTreeMap::new(),
            sessions: SessionTable::new(Random::from_seed(seed), config.guaranteed),
            responses: Responses::default(),
            requests: Requests::new(config.t1, config.n1),
            load: Load::default(),
            gtpu_sources: UnknownSources::default(),
            unknown_peers: UnknownPeers::default(),
            config,
        }
    }

    /// Replaces the host's addresses, to which no tunnel may lead.
    pub fn set_host(&mut self, host: HostAddresses) {
        self.config.host = host;
    }

    /// Handles an input at `now`, which counts from [`Config::started`] and never decreases.
    pub fn handle(
        &mut self,
        now: Duration,
        input: Input<'_>,
        datapath: &mut dyn Datapath,
        out: &mut Vec<Effect>,
    ) {
        let context = &mut Context { now, datapath, out };
        match input {
            Input::Datagram { peer, octets } => {
                bundled(octets).for_each(|message| self.on_message(context, peer, message));
            }
            Input::Event(event) => self.on_event(context, event),
            Input::Tick => self.on_tick(context),
            Input::Busy { percent } => self.load.busy = percent,
            Input::Shutdown { graceful } => self.ask_for_release(context, graceful),
        }
    }

    /// The time at which [`Input::Tick`] is needed next.
    pub fn next_timeout(&self) -> Option<Duration> {
        let associations = self.associations.values();
        let associations = associations.filter_map(|association| self.association_due(association));
        let others = [self.requests.next_timeout(), self.sessions.next_due()];
        associations.chain(others.into_iter().flatten()).min()
    }

    /// The SMFs with an association.
    pub fn associations(&self) -> impl Iterator<Item = (&NodeId, SocketAddr)> {
        self.associations.iter().map(|(node, association)| (node, association.address))
    }

    /// The sessions, in no order.
    pub fn sessions(&self) -> impl Iterator<Item = SessionId> {
        self.sessions.iter().map(|session| session.id)
    }

    /// The sum of the sessions' guaranteed bit rates.
    pub fn admitted_rates(&self) -> Rates {
        self.sessions.admitted_rates()
    }

    /// The number of TEIDs in use.
    pub fn teids_in_use(&self) -> usize {
        self.sessions.teids.len()
    }

    fn on_message(&mut self, context: &mut Context<'_>, peer: SocketAddr, octets: &[u8]) {
        match Message::decode(octets) {
            Ok((header, message)) if header.message_type.is_response() => {
                self.on_response(context, peer, &header, message);
            }
            Ok((header, message)) if !self.config.permits(peer) => {
                self.handle_unknown_peer(context, peer, &header, &message);
            }
            Err(_) if !self.config.permits(peer) => self.notify_unknown_peer(context, peer),
            Ok((header, message)) => self.on_request(context, peer, &header, message, octets),
            Err(error) => self.on_faulty_message(context, peer, error, octets),
        }
    }

    fn on_request(
        &mut self,
        context: &mut Context<'_>,
        peer: SocketAddr,
        header: &Header,
        message: Message,
        octets: &[u8],
    ) {
        if let Some(response) = self.responses.find(peer, header.sequence, octets) {
            context.out.push(Effect::Send { peer, octets: response.to_vec() });
            return;
        }
        if let Message::AssociationSetupRequest(request) = &message
            && self.doubts_setup(context.now, peer, request)
        {
            return self.process_association_timers(context);
        }
        let seid = SessionId(header.seid.unwrap_or(0));
        if let Err(rejection) = self.check_node_owner(peer, &message, seid) {
            return self.reject(context, peer, header, (requester_seid(&message), rejection.into()), octets);
        }
        let outcome = match message {
            Message::HeartbeatRequest(request) => {
                return self.heartbeat_request(context, peer, header, &request);
            }
            Message::AssociationSetupRequest(request) => self.association_setup(context, peer, request),
            Message::AssociationUpdateRequest(request) => self.association_update(&request),
            Message::AssociationReleaseRequest(request) => Ok(self.association_release(context, &request)),
            Message::SessionSetDeletionRequest(request) => self.session_set_deletion(context, &request),
            Message::SessionEstablishmentRequest(request) => {
                self.session_establishment(context, peer, request)
            }
            Message::SessionModificationRequest(request) => {
                self.session_modification(context, seid, &request)
            }
            Message::SessionDeletionRequest(_) => self.session_deletion(context, seid),
            Message::PfdManagementRequest(_) | Message::SessionSetModificationRequest(_) => {
                Err((0, Cause::ServiceNotSupported.into()))
            }
            _ => return discard(context, peer, "a UPF does not get such requests"),
        };
        match outcome {
            Ok(reply) => self.reply(context, peer, header, reply, octets),
            Err((seid, rejection)) => self.reject(context, peer, header, (seid, rejection), octets),
        }
    }

    /// Sends a response, and stores it for duplicates of the request.
    fn reply(
        &mut self,
        context: &mut Context<'_>,
        peer: SocketAddr,
        header: &Header,
        (seid, mut response): Reply,
        request: &[u8],
    ) {
        self.add_load_information(peer, &mut response);
        let octets = context.send(peer, seid, header.sequence, &response);
        let until = context.now + self.config.response_retention;
        self.responses.keep((peer, header.sequence), request, octets, context.now, until);
    }

    fn on_response(
        &mut self,
        context: &mut Context<'_>,
        peer: SocketAddr,
        header: &Header,
        message: Message,
    ) {
        let Some(request) = self.requests.answered(peer, header.sequence, header.message_type) else {
            return discard(context, peer, "no request is pending for this response");
        };
        match (request.purpose, message) {
            (Purpose::Heartbeat(node), Message::HeartbeatResponse(response)) => {
                self.heartbeat_response(context, &node, response.recovery_time_stamp);
            }
            (Purpose::SessionReport(session), Message::SessionReportResponse(response)) => {
                self.session_report_response(context, peer, session, header.sequence, &response);
            }
            _ => {}
        }
    }

    /// Answers or discards a faulty message, by its fault (TS 29.244 7.6).
    fn on_faulty_message(
        &mut self,
        context: &mut Context<'_>,
        peer: SocketAddr,
        error: DecodeError,
        octets: &[u8],
    ) {
        let (header, rejection) = match error {
            DecodeError::VersionNotSupported { sequence, .. } => {
                return self.version_not_supported(context, peer, sequence, octets);
            }
            DecodeError::TooShort(_) | DecodeError::UnknownMessage { .. } => {
                return discard(context, peer, &error.to_string());
            }
            DecodeError::LengthMismatch { header, .. } => (header, Cause::InvalidLength.into()),
            DecodeError::Ie { header, error } => (header, Rejection::from(error)),
        };
        if header.message_type.is_response() {
            // The request is no longer pending, although the response is discarded (TS 29.244 7.6.1).
            let request = self.requests.answered(peer, header.sequence, header.message_type);
            discard(context, peer, &error.to_string());
            if let Some(request) = request {
                self.request_failed(context, header.sequence, request, "the response is invalid");
            }
            return;
        }
        let session = header.seid.and_then(|seid| self.sessions.get(SessionId(seid)));
        let session = session.filter(|session| self.owns_node_id(peer, &session.node));
        let seid = session.map_or(0, |session| session.cp.seid);
        self.reject(context, peer, &header, (seid, rejection), octets);
    }

    /// Sends the peer a Version Not Supported Response, unless the message is itself one.
    fn version_not_supported(
        &mut self,
        context: &mut Context<'_>,
        peer: SocketAddr,
        sequence: u32,
        octets: &[u8],
    ) {
        let message_type = octets.get(1).copied().map(MessageType);
        if message_type != Some(MessageType::VERSION_NOT_SUPPORTED_RESPONSE) {
            context.send(peer, 0, sequence, &VersionNotSupportedResponse::new().into());
        }
        discard(context, peer, "its version of PFCP is not supported");
    }

    /// Rejects a request with its type of response.
    fn reject(
        &mut self,
        context: &mut Context<'_>,
        peer: SocketAddr,
        header: &Header,
        (seid, rejection): (u64, Rejection),
        request: &[u8],
    ) {
        let message_type = header.message_type;
        let Some(response) = self.rejection_message(message_type, rejection) else {
            return discard(context, peer, &format!("{message_type}: {rejection}"));
        };
        context.notice(Notice::Rejected { peer, message_type, reason: rejection.to_string() });
        self.reply(context, peer, header, (seid, response), request);
    }

    /// The rejecting response to this type of request; `None` for messages that are discarded.
    pub(crate) fn rejection_message(
        &self,
        message_type: MessageType,
        rejection: Rejection,
    ) -> Option<Message> {
        let (node, cause, offending_ie) =
            (self.config.node_id.clone(), rejection.cause, rejection.offending());
        let failed_rule_id = rejection.failed_rule;
        Some(match message_type {
            MessageType::ASSOCIATION_SETUP_REQUEST => {
                AssociationSetupResponse::new(node, cause, self.config.recovery_time_stamp()).into()
            }
            MessageType::ASSOCIATION_UPDATE_REQUEST => AssociationUpdateResponse::new(node, cause).into(),
            MessageType::ASSOCIATION_RELEASE_REQUEST => AssociationReleaseResponse::new(node, cause).into(),
            MessageType::PFD_MANAGEMENT_REQUEST => {
                PfdManagementResponse { offending_ie, ..PfdManagementResponse::new(cause) }.into()
            }
            MessageType::SESSION_SET_DELETION_REQUEST => {
                SessionSetDeletionResponse { offending_ie, ..SessionSetDeletionResponse::new(node, cause) }
                    .into()
            }
            MessageType::SESSION_SET_MODIFICATION_REQUEST => {
                let response = SessionSetModificationResponse::new(node, cause);
                SessionSetModificationResponse { offending_ie, ..response }.into()
            }
            MessageType::SESSION_ESTABLISHMENT_REQUEST => {
                let response = SessionEstablishmentResponse::new(node, cause);
                SessionEstablishmentResponse { offending_ie, failed_rule_id, ..response }.into()
            }
            MessageType::SESSION_MODIFICATION_REQUEST => {
                let response = SessionModificationResponse::new(cause);
                SessionModificationResponse { offending_ie, failed_rule_id, ..response }.into()
            }
            MessageType::SESSION_DELETION_REQUEST => {
                SessionDeletionResponse { offending_ie, ..SessionDeletionResponse::new(cause) }.into()
            }
            _ => return None,
        })
    }

    fn on_event(&mut self, context: &mut Context<'_>, event: Event) {
        match event {
            Event::DownlinkData { session, pdr, qfi, dscp } => {
                self.downlink_data(context, session, pdr, qfi, dscp)
            }
            Event::Usage { session, .. } => self.check_session_usage(context, session),
            Event::ErrorIndication { peer, teid } => self.error_indication(context, peer, teid),
            Event::UnknownPeer { source, peer } => self.report_unknown_source(context, source, peer),
        }
    }

    fn on_tick(&mut self, context: &mut Context<'_>) {
        while let Some(expired) = self.requests.expired(context.now) {
            match expired {
                Expired::Again(peer, octets) => context.out.push(Effect::Send { peer, octets }),
                Expired::Failed(sequence, request) => {
                    self.request_failed(context, sequence, request, "no response");
                }
            }
        }
        self.process_association_timers(context);
        while let Some(session) = self.sessions.take_due(context.now) {
            self.check_session_usage(context, session);
        }
    }

    /// A request got no response after N1 transmissions, or an invalid one.
    fn request_failed(
        &mut self,
        context: &mut Context<'_>,
        sequence: u32,
        request: Outstanding<Purpose>,
        reason: &'static str,
    ) {
        if let Purpose::SessionReport(session) = request.purpose
            && self.report_to_another(context, session, (sequence, &request))
        {
            return;
        }
        let Outstanding { peer, message_type, purpose, .. } = request;
        match purpose {
            Purpose::Heartbeat(node) => return self.path_failed(context, &node),
            Purpose::SessionReport(session) => {
                self.sessions
                    .get_mut(session)
                    .into_iter()
                    .for_each(|session| session.report_failed(sequence));
            }
            Purpose::Release => {}
        }
        context.notice(Notice::RequestFailed { peer, message_type, reason });
    }

    /// Sends a request that expects a response; returns its sequence number.
    pub(crate) fn request(
        &mut self,
        context: &mut Context<'_>,
        peer: SocketAddr,
        seid: u64,
        message: &Message,
        purpose: Purpose,
    ) -> u32 {
        let sequence = self.requests.next_sequence();
        let octets = context.send(peer, seid, sequence, message);
        let key = (sequence, message.message_type());
        self.requests.wait(context.now, peer, key, octets, purpose);
        sequence
    }

    /// Deletes a session without telling the SMF.
    pub(crate) fn drop_session(
        &mut self,
        context: &mut Context<'_>,
        id: SessionId,
        reason: &'static str,
    ) -> Option<Session> {
        context.datapath.remove(id);
        let session = self.sessions.remove(id)?;
        session.reports.iter().for_each(|sequence| self.requests.cancel(*sequence));
        context.notice(Notice::SessionDeleted { session: id, reason });
        Some(session)
    }

    /// Deletes sessions without telling the SMF, and returns their number.
    pub(crate) fn drop_sessions(
        &mut self,
        context: &mut Context<'_>,
        sessions: &[SessionId],
        reason: &'static str,
    ) -> usize {
        sessions.iter().filter(|id| self.drop_session(context, **id, reason).is_some()).count()
    }
}

/// The SEID to send a rejection to, if the request contains it.
pub(crate) fn requester_seid(request: &Message) -> u64 {
    match request {
        Message::SessionEstablishmentRequest(request) => request.cp_f_seid.seid,
        _ => 0,
    }
}

pub(crate) fn discard(context: &mut Context<'_>, peer: SocketAddr, reason: &str) {
    context.notice(Notice::Discarded { peer, reason: reason.to_owned() });
}
