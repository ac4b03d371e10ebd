//! The UPF's control part: inputs in; PFCP messages, notices and datapath calls out.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use pith_pfcp::ie::{Cause, NodeId};
use pith_pfcp::message::*;
use pith_pfcp::{DecodeError, Header, Message, MessageType, bundled};

use crate::association::Association;
use crate::config::Config;
use crate::contract::{Datapath, Event, Rates, SessionId};
use crate::load::Load;
use crate::port::{Effect, Input, Notice, Turn};
use crate::random::Random;
use crate::rejection::Rejection;
use crate::session::{Session, SessionTable};
use crate::strangers::Strangers;
use crate::transaction::{Expired, Outstanding, Requests, Responses};

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
    pub(crate) sessions: SessionTable,
    pub(crate) responses: Responses,
    pub(crate) requests: Requests<Purpose>,
    pub(crate) load: Load,
    pub(crate) strangers: Strangers,
}

/// A response, and the peer's SEID to send it to.
pub(crate) type Reply = (u64, Message);

/// A response; or a rejection and the peer's SEID to send it to.
pub(crate) type Outcome = Result<Reply, (u64, Rejection)>;

impl Upf {
    /// A UPF without associations; `seed` is entropy for its identifiers.
    pub fn new(config: Config, seed: [u8; 32]) -> Self {
        Upf {
            associations: BTreeMap::new(),
            sessions: SessionTable::new(Random::from_seed(seed), config.guaranteed),
            responses: Responses::default(),
            requests: Requests::new(config.t1, config.n1),
            load: Load::default(),
            strangers: Strangers::default(),
            config,
        }
    }

    /// Handles an input at `now`, which counts from [`Config::started`] and never decreases.
    pub fn handle(
        &mut self,
        now: Duration,
        input: Input<'_>,
        datapath: &mut dyn Datapath,
        out: &mut Vec<Effect>,
    ) {
        let turn = &mut Turn { now, datapath, out };
        match input {
            Input::Datagram { peer, octets } => {
                bundled(octets).for_each(|message| self.on_message(turn, peer, message));
            }
            Input::Event(event) => self.on_event(turn, event),
            Input::Tick => self.on_tick(turn),
            Input::Busy { percent } => self.load.busy = percent,
            Input::Shutdown { graceful } => self.ask_for_release(turn, graceful),
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
    pub fn promised(&self) -> Rates {
        self.sessions.promised()
    }

    /// The number of TEIDs in use.
    pub fn teids_in_use(&self) -> usize {
        self.sessions.teids.len()
    }

    fn on_message(&mut self, turn: &mut Turn<'_>, peer: SocketAddr, octets: &[u8]) {
        match Message::decode(octets) {
            Ok((header, message)) if header.message_type.is_response() => {
                self.on_response(turn, peer, &header, message);
            }
            Ok((header, message)) if !self.config.permits(peer) => {
                self.on_stranger(turn, peer, &header, &message);
            }
            Err(_) if !self.config.permits(peer) => self.note_stranger(turn, peer),
            Ok((header, message)) => self.on_request(turn, peer, &header, message, octets),
            Err(error) => self.on_faulty_message(turn, peer, error, octets),
        }
    }

    fn on_request(
        &mut self,
        turn: &mut Turn<'_>,
        peer: SocketAddr,
        header: &Header,
        message: Message,
        octets: &[u8],
    ) {
        if let Some(response) = self.responses.find(peer, header.sequence, octets) {
            turn.out.push(Effect::Send { peer, octets: response.to_vec() });
            return;
        }
        let seid = SessionId(header.seid.unwrap_or(0));
        if let Err(rejection) = self.check_speaker(peer, &message, seid) {
            return self.reject(turn, peer, header, (asker(&message), rejection.into()), octets);
        }
        let outcome = match message {
            Message::HeartbeatRequest(request) => {
                return self.heartbeat_request(turn, peer, header, &request);
            }
            Message::AssociationSetupRequest(request) => self.association_setup(turn, peer, request),
            Message::AssociationUpdateRequest(request) => self.association_update(&request),
            Message::AssociationReleaseRequest(request) => Ok(self.association_release(turn, &request)),
            Message::SessionSetDeletionRequest(request) => self.session_set_deletion(turn, &request),
            Message::SessionEstablishmentRequest(request) => self.session_establishment(turn, peer, request),
            Message::SessionModificationRequest(request) => self.session_modification(turn, seid, &request),
            Message::SessionDeletionRequest(_) => self.session_deletion(turn, seid),
            Message::PfdManagementRequest(_) | Message::SessionSetModificationRequest(_) => {
                Err((0, Cause::ServiceNotSupported.into()))
            }
            _ => return discard(turn, peer, "a UPF does not get such requests"),
        };
        match outcome {
            Ok(reply) => self.reply(turn, peer, header, reply, octets),
            Err((seid, rejection)) => self.reject(turn, peer, header, (seid, rejection), octets),
        }
    }

    /// Sends a response, and stores it for duplicates of the request.
    fn reply(
        &mut self,
        turn: &mut Turn<'_>,
        peer: SocketAddr,
        header: &Header,
        (seid, mut response): Reply,
        request: &[u8],
    ) {
        self.tell_load(peer, &mut response);
        let octets = turn.send(peer, seid, header.sequence, &response);
        let until = turn.now + self.config.response_retention;
        self.responses.keep((peer, header.sequence), request, octets, turn.now, until);
    }

    fn on_response(&mut self, turn: &mut Turn<'_>, peer: SocketAddr, header: &Header, message: Message) {
        let Some(request) = self.requests.answered(peer, header.sequence, header.message_type) else {
            return discard(turn, peer, "no request is pending for this response");
        };
        match (request.purpose, message) {
            (Purpose::Heartbeat(node), Message::HeartbeatResponse(response)) => {
                self.heartbeat_response(turn, &node, response.recovery_time_stamp);
            }
            (Purpose::SessionReport(session), Message::SessionReportResponse(response)) => {
                self.session_report_response(turn, peer, session, header.sequence, &response);
            }
            _ => {}
        }
    }

    /// Answers or discards a faulty message, by its fault (TS 29.244 7.6).
    fn on_faulty_message(
        &mut self,
        turn: &mut Turn<'_>,
        peer: SocketAddr,
        error: DecodeError,
        octets: &[u8],
    ) {
        let (header, rejection) = match error {
            DecodeError::VersionNotSupported { sequence, .. } => {
                return self.version_not_supported(turn, peer, sequence, octets);
            }
            DecodeError::TooShort(_) | DecodeError::UnknownMessage { .. } => {
                return discard(turn, peer, &error.to_string());
            }
            DecodeError::LengthMismatch { header, .. } => (header, Cause::InvalidLength.into()),
            DecodeError::Ie { header, error } => (header, Rejection::from(error)),
        };
        if header.message_type.is_response() {
            // The request is no longer pending, although the response is discarded (TS 29.244 7.6.1).
            let request = self.requests.answered(peer, header.sequence, header.message_type);
            discard(turn, peer, &error.to_string());
            if let Some(request) = request {
                self.request_failed(turn, header.sequence, request, "the response is invalid");
            }
            return;
        }
        let session = header.seid.and_then(|seid| self.sessions.get(SessionId(seid)));
        let session = session.filter(|session| self.speaks_for(peer, &session.node));
        let seid = session.map_or(0, |session| session.cp.seid);
        self.reject(turn, peer, &header, (seid, rejection), octets);
    }

    /// Sends the peer a Version Not Supported Response, unless the message is itself one.
    fn version_not_supported(&mut self, turn: &mut Turn<'_>, peer: SocketAddr, sequence: u32, octets: &[u8]) {
        let message_type = octets.get(1).copied().map(MessageType);
        if message_type != Some(MessageType::VERSION_NOT_SUPPORTED_RESPONSE) {
            turn.send(peer, 0, sequence, &VersionNotSupportedResponse::new().into());
        }
        discard(turn, peer, "its version of PFCP is not supported");
    }

    /// Rejects a request with its type of response.
    fn reject(
        &mut self,
        turn: &mut Turn<'_>,
        peer: SocketAddr,
        header: &Header,
        (seid, rejection): (u64, Rejection),
        request: &[u8],
    ) {
        let message_type = header.message_type;
        let Some(response) = self.rejection_message(message_type, rejection) else {
            return discard(turn, peer, &format!("{message_type}: {rejection}"));
        };
        turn.notice(Notice::Rejected { peer, message_type, reason: rejection.to_string() });
        self.reply(turn, peer, header, (seid, response), request);
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

    fn on_event(&mut self, turn: &mut Turn<'_>, event: Event) {
        match event {
            Event::DownlinkData { session, pdr, qfi, dscp } => {
                self.downlink_data(turn, session, pdr, qfi, dscp)
            }
            Event::Usage { session, .. } => self.check_session_usage(turn, session),
            Event::ErrorIndication { peer, teid } => self.error_indication(turn, peer, teid),
        }
    }

    fn on_tick(&mut self, turn: &mut Turn<'_>) {
        while let Some(expired) = self.requests.expired(turn.now) {
            match expired {
                Expired::Again(peer, octets) => turn.out.push(Effect::Send { peer, octets }),
                Expired::Failed(sequence, request) => {
                    self.request_failed(turn, sequence, request, "no response");
                }
            }
        }
        self.tend_associations(turn);
        while let Some(session) = self.sessions.take_due(turn.now) {
            self.check_session_usage(turn, session);
        }
    }

    /// A request got no response after N1 transmissions, or an invalid one.
    fn request_failed(
        &mut self,
        turn: &mut Turn<'_>,
        sequence: u32,
        request: Outstanding<Purpose>,
        reason: &'static str,
    ) {
        let Outstanding { peer, message_type, purpose, .. } = request;
        match purpose {
            Purpose::Heartbeat(node) => return self.path_failed(turn, &node),
            Purpose::SessionReport(session) => {
                self.sessions
                    .get_mut(session)
                    .into_iter()
                    .for_each(|session| session.report_failed(sequence));
            }
            Purpose::Release => {}
        }
        turn.notice(Notice::RequestFailed { peer, message_type, reason });
    }

    /// Sends a request that expects a response; returns its sequence number.
    pub(crate) fn request(
        &mut self,
        turn: &mut Turn<'_>,
        peer: SocketAddr,
        seid: u64,
        message: &Message,
        purpose: Purpose,
    ) -> u32 {
        let sequence = self.requests.next_sequence();
        let octets = turn.send(peer, seid, sequence, message);
        let key = (sequence, message.message_type());
        self.requests.wait(turn.now, peer, key, octets, purpose);
        sequence
    }

    /// Deletes a session without telling the SMF.
    pub(crate) fn drop_session(
        &mut self,
        turn: &mut Turn<'_>,
        id: SessionId,
        reason: &'static str,
    ) -> Option<Session> {
        turn.datapath.remove(id);
        let session = self.sessions.remove(id)?;
        session.reports.iter().for_each(|sequence| self.requests.cancel(*sequence));
        turn.notice(Notice::SessionDeleted { session: id, reason });
        Some(session)
    }

    /// Deletes sessions without telling the SMF, and returns their number.
    pub(crate) fn drop_sessions(
        &mut self,
        turn: &mut Turn<'_>,
        sessions: &[SessionId],
        reason: &'static str,
    ) -> usize {
        sessions.iter().filter(|id| self.drop_session(turn, **id, reason).is_some()).count()
    }
}

/// The SEID to send a rejection to, if the request contains it.
pub(crate) fn asker(request: &Message) -> u64 {
    match request {
        Message::SessionEstablishmentRequest(request) => request.cp_f_seid.seid,
        _ => 0,
    }
}

pub(crate) fn discard(turn: &mut Turn<'_>, peer: SocketAddr, reason: &str) {
    turn.notice(Notice::Discarded { peer, reason: reason.to_owned() });
}
