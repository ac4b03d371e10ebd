//! The N4 gateway: PFCP associations with UPFs, heartbeats, and reliable delivery of the SMFs' requests
//! (TS 29.244 6.2, 6.4).
//!
//! ```text
//!  N4Effect of an SMF ──> sequence number, T1, N1 times or more ──> UPF
//!  UPF ──> response by sequence number, request by SEID ──> N4Input of the shard
//! ```

mod association;
mod endpoint;
mod former;
mod late;
mod overload;
mod passage;
mod refused;
mod retention;
mod transaction;
mod unknown_peers;
mod update;

use crate::kit::{
    Duration, Event, Level, N4Effect, N4Error, N4Input, N4Transaction, Timer, TimerKey, UpfHandle, UpfInfo,
};
use association::Loss;
use pith_pfcp::ie::{Cause, FTeid, NodeId, NtpSeconds, OffendingIe};
use pith_pfcp::message::{
    AssociationReleaseResponse, HeartbeatResponse, NodeReportResponse, SessionDeletionResponse,
    SessionEstablishmentResponse, SessionModificationResponse, SessionReportResponse,
    VersionNotSupportedResponse,
};
use pith_pfcp::rules::CreatePdr;
use pith_pfcp::{DecodeError, Header, Message, MessageType};
use pith_types::{InstanceId, OwnerMap, Seid, ShardId};
use retention::Retained;
pub use retention::StoredRun;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use transaction::{Arrival, Patience, Purpose, Transactions};

/// Maximum number of pending session requests of one UPF, some 300 octets each: a lost site or UPF concerns all its sessions at once.
const MAX_REQUESTS: usize = 262_144;

/// Configuration of the gateway. The timer values of TS 29.244 are the operator's choice.
#[derive(Debug, Clone)]
pub struct N4Config {
    /// This side's Node ID and PFCP address.
    pub address: IpAddr,
    /// Recovery Time Stamp, in seconds since 1970 (TS 29.244 8.2.65): the start time of this process, or of the first run whose sessions
    /// go on.
    pub recovery_time_stamp: u64,
    /// Present if sessions outlive the process without loss.
    pub run: Option<StoredRun>,
    /// The sequence number of the first request is the next one: different in each run. A UPF answers a request of a new run that has
    /// the sequence number of one of the former run as a retransmission of that.
    pub first_sequence: u32,
    /// The name of the SMF's set, whose SMFs may take over each other's sessions (TS 29.244 5.22.3).
    pub smf_set: Option<String>,
    /// UPFs to associate with.
    pub upfs: Vec<N4Peer>,
    /// T1: time without a response until a request is retransmitted (TS 29.244 6.4).
    pub t1: Duration,
    /// N1: maximum number of transmissions of a request, including the first (TS 29.244 6.4).
    pub n1_transmissions: u32,
    /// Interval of heartbeats, and of attempts to associate.
    pub heartbeat: Duration,
    /// The instance of this process.
    pub instance: InstanceId,
    /// The owner of each block of ids.
    pub owners: Arc<OwnerMap>,
    /// Number of shards.
    pub shards: u8,
}

/// A UPF of the configuration.
#[derive(Debug, Clone)]
pub struct N4Peer {
    /// Its name in the configuration.
    pub name: String,
    /// Address of its PFCP entity.
    pub address: SocketAddr,
}

/// An input of the gateway.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum N4GatewayInput {
    /// The process has started: associate with the UPFs.
    Start,
    /// A received datagram.
    Datagram { from: SocketAddr, octets: Vec<u8> },
    /// An effect of the SMF of a shard.
    Shard { shard: ShardId, effect: N4Effect },
    /// A timer expired.
    Timer(TimerKey),
    /// The process is stopping: release the associations.
    Stop,
}

/// An effect of the gateway.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum N4GatewayEffect {
    /// Send a datagram.
    Send { to: SocketAddr, octets: Vec<u8> },
    /// Deliver to the SMF of a shard.
    ToShard { shard: ShardId, input: N4Input },
    /// Start a timer.
    StartTimer { key: TimerKey, after: Duration },
    /// Stop a timer.
    StopTimer(TimerKey),
    /// An event for logs and metrics.
    Event(Event),
}

/// State of the association with a UPF.
#[derive(Debug, Clone, PartialEq)]
enum Association {
    /// No association; a request for one may be pending.
    Down,
    /// Associated.
    Up { handle: UpfHandle, recovery: NtpSeconds, node: NodeId, info: Arc<UpfInfo> },
}

#[derive(Debug)]
struct Peer {
    config: N4Peer,
    association: Association,
    /// The handle of an association that the UPF has lost: its sessions wait for another one.
    restarted: Option<UpfHandle>,
    /// The UPF has answered a session's request or a heartbeat since.
    is_proven: bool,
    /// The number of heartbeats that the UPF has answered.
    heartbeats: u64,
    /// The UPF was found unsuitable, and this was logged.
    is_unsuitable: bool,
    told: overload::LoadControl,
    /// Attempts to associate that were not answered, or refused, since the last association.
    failed_setups: u64,
    /// Sessions that it has refused to delete.
    refused: Vec<refused::Refused>,
    /// What it has of former runs of the process.
    retained: Retained,
}

/// The gateway; see the module documentation.
#[derive(Debug)]
pub struct N4Gateway {
    config: N4Config,
    peers: Vec<Peer>,
    transactions: Transactions,
    /// Requests of shards that have panicked, and establishments that were given up.
    former: former::FormerRequests,
    handles: u64,
    /// Whether each shard is overloaded.
    full: Vec<bool>,
    /// Messages of unknown peers in the current period.
    unknown_peers: u64,
    /// Blocks that pass to another shard.
    held: Vec<passage::HeldBlock>,
    out: Vec<N4GatewayEffect>,
}

impl N4Gateway {
    /// A gateway without associations.
    pub fn new(config: N4Config) -> Self {
        let run = config.run;
        let peers = config
            .upfs
            .iter()
            .cloned()
            .map(|config| Peer {
                config,
                association: Association::Down,
                restarted: None,
                is_proven: false,
                heartbeats: 0,
                is_unsuitable: false,
                told: overload::LoadControl::default(),
                failed_setups: 0,
                refused: Vec::new(),
                retained: Retained::at_start(run),
            })
            .collect();
        Self {
            transactions: Transactions::new(config.first_sequence),
            former: former::FormerRequests::default(),
            config,
            peers,
            handles: 0,
            full: Vec::new(),
            unknown_peers: 0,
            held: Vec::new(),
            out: Vec::new(),
        }
    }

    /// UPFs with an association.
    pub fn upfs(&self) -> impl Iterator<Item = &Arc<UpfInfo>> {
        self.peers.iter().filter_map(|peer| match &peer.association {
            Association::Up { info, .. } => Some(info),
            Association::Down => None,
        })
    }

    /// Whether sessions without an SM context are still to be deleted at UPFs: for simulations.
    pub fn is_deleting(&self) -> bool {
        let retains = |peer: &Peer| matches!(peer.retained, Retained::Orphans(2));
        self.transactions.awaits(pith_pfcp::MessageType::SESSION_DELETION_REQUEST)
            || self.is_confirming()
            || self.peers.iter().any(retains)
    }

    /// Whether a UPF has sessions of a former run that no shard has confirmed yet. If a shard panics meanwhile, those that no shard knows
    /// stay until the next start.
    pub fn is_confirming(&self) -> bool {
        self.peers.iter().any(|peer| matches!(peer.retained, Retained::Sessions(_)))
    }

    /// The load of the UPF with that name in percent, if it reports one (TS 29.244 6.2.3).
    pub fn load_of(&self, name: &str) -> Option<u8> {
        self.peers.iter().find(|peer| peer.config.name == name)?.told.load()
    }

    /// Updates which shards are overloaded.
    pub fn set_full(&mut self, full: impl IntoIterator<Item = bool>) {
        self.full.clear();
        self.full.extend(full);
    }

    /// Handles one input and returns the effects.
    pub fn handle(&mut self, input: N4GatewayInput) -> std::vec::Drain<'_, N4GatewayEffect> {
        match input {
            N4GatewayInput::Start => (0..self.peers.len()).for_each(|peer| self.associate(peer)),
            N4GatewayInput::Stop => self.release_all(),
            N4GatewayInput::Datagram { from, octets } => {
                pith_pfcp::bundled(&octets).for_each(|message| self.message(from, message));
            }
            N4GatewayInput::Shard { shard, effect } => self.shard(shard, effect),
            N4GatewayInput::Timer(key) => self.timer(key),
        }
        self.send_waiting();
        self.out.drain(..)
    }

    fn shard(&mut self, shard: ShardId, effect: N4Effect) {
        let Some(effect) = self.wait_for_former(shard, effect) else { return };
        match effect {
            N4Effect::Request { tag, upf, seid, mut message } => {
                let Some(peer) = self.peer_of(upf) else {
                    let input = N4Input::Response { tag, result: Err(N4Error::NoAssociation) };
                    return self.out.push(N4GatewayEffect::ToShard { shard, input });
                };
                if self.must_throttle(peer, &message) || self.has_many_requests(peer) {
                    let input = N4Input::Response { tag, result: Err(N4Error::Overloaded) };
                    return self.out.push(N4GatewayEffect::ToShard { shard, input });
                }
                self.add_session_set(peer, &mut message);
                self.request(peer, Purpose::Session { shard, tag }, seid, &message);
            }
            N4Effect::TakenOver { owners } => {
                self.keep_unconfirmed();
                self.release_all_of(shard, &owners);
                self.note_former(shard);
            }
            N4Effect::Confirmed { upf } => self.confirmed(shard, upf),
            N4Effect::Passage(passage) => self.passage(passage),
            N4Effect::Answer { transaction, seid, message } => {
                if self.peer_of(transaction.upf).is_some() {
                    self.answer(transaction.from, seid, transaction.sequence, &message);
                }
            }
        }
    }

    fn message(&mut self, from: SocketAddr, octets: &[u8]) {
        match Message::decode(octets) {
            Ok((header, message)) if header.message_type.is_response() => {
                self.response(from, &header, message)
            }
            Ok((header, message)) if self.peer_at(from).is_none() => {
                self.answer_unknown_peer(from, &header, &message);
            }
            Err(_) if self.peer_at(from).is_none() => self.count_unknown_peer(from),
            Ok((header, message)) => self.arrived(from, (&header, octets), message),
            Err(error) => self.undecodable(from, octets, &error),
        }
    }

    /// A refusal that lacks other information elements (Open5GS sends no Node ID): the request was received, and has failed. An
    /// acceptance that cannot be decoded counts as none.
    fn incomplete_response(&mut self, from: SocketAddr, octets: &[u8], header: &Header) {
        let Some(cause) = pith_pfcp::peek_cause(octets).filter(|cause| !cause.is_acceptance()) else {
            return;
        };
        let node = NodeId::from(from.ip());
        let refusal = match header.message_type {
            MessageType::SESSION_ESTABLISHMENT_RESPONSE => {
                Message::SessionEstablishmentResponse(SessionEstablishmentResponse::new(node, cause))
            }
            MessageType::SESSION_MODIFICATION_RESPONSE => {
                Message::SessionModificationResponse(SessionModificationResponse::new(cause))
            }
            MessageType::SESSION_DELETION_RESPONSE => {
                Message::SessionDeletionResponse(SessionDeletionResponse::new(cause))
            }
            _ => return,
        };
        self.response(from, header, refusal);
    }

    fn response(&mut self, from: SocketAddr, header: &Header, mut message: Message) {
        let Some(pending) = self.transactions.end(header, from) else { return };
        self.out.push(N4GatewayEffect::StopTimer(t1(header.sequence)));
        self.send_queued(from);
        match pending.purpose {
            Purpose::Session { .. } if denies_association(&message) => {
                self.answer_shard(pending.purpose, N4Error::NoAssociation);
                if let Some(peer) = self.peer_at(from) {
                    if pending.may_establish() {
                        self.expect_copy(peer, header.sequence, pending);
                    }
                    self.associate_again(peer);
                }
            }
            Purpose::Session { shard, tag } => {
                if let Some(peer) = self.peer_at(from) {
                    self.note_proof(peer);
                    self.note_refused(peer, &pending, &message);
                    self.learn_load(peer, &message);
                    self.check_endpoints(peer, &mut message);
                }
                let input = N4Input::Response { tag, result: Ok(message) };
                self.out.push(N4GatewayEffect::ToShard { shard, input });
            }
            Purpose::Association { peer } => self.association_response(peer, message),
            Purpose::Heartbeat { peer } => self.heartbeat_response(peer, message),
            Purpose::Release { peer } => self.lose(peer, Loss::End, "was released"),
            Purpose::Orphans { peer } => self.orphans_deleted(peer, &message),
            Purpose::Late { peer } => self.late_response(peer, (header.sequence, pending), &message),
            Purpose::Leftover { .. } => {
                if let Some(peer) = self.peer_at(from) {
                    self.note_refused(peer, &pending, &message);
                }
            }
        }
    }

    /// A retransmitted request is not processed again (TS 29.244 6.4).
    ///
    /// A report for an overloaded shard is dropped before it is recorded: the UPF retransmits it
    /// after T1, as if the network had lost it. Responses are never dropped: a shard has at most as
    /// many pending as it sent requests, and each one lets it complete some work.
    fn arrived(&mut self, from: SocketAddr, (header, octets): (&Header, &[u8]), message: Message) {
        let is_report = matches!(message, Message::SessionReportRequest(_));
        if is_report && (self.is_full(header) || self.expects_sessions_of(from)) {
            return;
        }
        if self.is_of_another_port(from, &message) {
            return self.count_unknown_peer(from);
        }
        match self.transactions.receive(from, header.sequence, octets) {
            Arrival::New => self.peer_request(from, header, message),
            Arrival::InWork => {}
            Arrival::Answered(octets) => self.out.push(N4GatewayEffect::Send { to: from, octets }),
        }
    }

    /// Whether a request that concerns all sessions of an associated UPF comes from another port than the one in 'n4.upfs': any
    /// process at the UPF's address can send it. It is discarded; a UPF that restarted is found by the next heartbeat.
    fn is_of_another_port(&self, from: SocketAddr, message: &Message) -> bool {
        let concerns_all = matches!(
            message,
            Message::AssociationSetupRequest(_)
                | Message::AssociationUpdateRequest(_)
                | Message::AssociationReleaseRequest(_)
        );
        concerns_all
            && self
                .peer_at(from)
                .filter(|peer| self.handle_of(*peer).is_some())
                .and_then(|peer| self.peers.get(peer))
                .is_some_and(|peer| peer.config.address != from)
    }

    fn is_full(&self, header: &Header) -> bool {
        let block = header.seid.map(|seid| Seid(seid).block());
        if self.held.iter().any(|held| Some(held.block()) == block && held.is_full()) {
            return true;
        }
        let shard = header.seid.and_then(|seid| self.shard_of(Seid(seid)));
        shard.and_then(|shard| self.full.get(usize::from(shard.0)).copied()).unwrap_or(false)
    }

    /// Requests of UPFs (TS 29.244 7.4.2.1, 7.4.4, 7.4.5, 7.5.8).
    fn peer_request(&mut self, from: SocketAddr, header: &Header, message: Message) {
        let (sequence, no_session) = (header.sequence, Seid(0));
        match message {
            Message::HeartbeatRequest(_) => {
                let answer = Message::HeartbeatResponse(HeartbeatResponse::new(self.recovery()));
                self.answer(from, no_session, sequence, &answer);
            }
            Message::AssociationSetupRequest(request) => self.peer_associates(from, sequence, &request),
            Message::AssociationUpdateRequest(request) => self.peer_updates(from, sequence, &request),
            Message::AssociationReleaseRequest(_) => {
                let answer = AssociationReleaseResponse::new(self.node_id(), self.cause_for(from));
                if let Some(peer) = self.peer_at(from) {
                    self.lose(peer, Loss::End, "released the association");
                }
                self.answer(from, no_session, sequence, &Message::AssociationReleaseResponse(answer));
            }
            Message::NodeReportRequest(_) => {
                let answer = NodeReportResponse::new(self.node_id(), self.cause_for(from));
                self.answer(from, no_session, sequence, &Message::NodeReportResponse(answer));
            }
            message @ Message::SessionReportRequest(_) => self.session_report(from, header, message),
            _ => self.event(Level::Warn, format!("{from} sent a PFCP request that is not for an SMF")),
        }
    }

    /// The shard of this process that has the session.
    fn shard_of(&self, seid: Seid) -> Option<ShardId> {
        let shard = self.config.owners.shard_of(self.config.instance, seid.block())?;
        (seid.0 != 0 && shard.0 < self.config.shards).then_some(shard)
    }

    /// Routes the report to the shard that owns the SEID's block; that answers.
    fn session_report(&mut self, from: SocketAddr, header: &Header, message: Message) {
        // To another SMF of the set than the one that had the session so far, which has given no SEID (TS 29.244 7.2.2.4.2).
        let former = match &message {
            Message::SessionReportRequest(report) => report.old_cp_f_seid.map(|former| former.seid),
            _ => None,
        };
        let seid = Seid(header.seid.filter(|seid| *seid != 0).or(former).unwrap_or(0));
        let handle = self.peer_at(from).and_then(|peer| self.handle_of(peer));
        let Some((upf, shard)) = handle.zip(self.shard_of(seid)) else {
            // TS 29.244 8.2.1: cause 72 without an association, else 65.
            let cause = match handle {
                Some(_) => Cause::SessionContextNotFound,
                None => Cause::NoEstablishedPfcpAssociation,
            };
            let answer = SessionReportResponse::new(cause);
            return self.answer(from, Seid(0), header.sequence, &Message::SessionReportResponse(answer));
        };
        let transaction = N4Transaction { upf, from, sequence: header.sequence };
        if let Some(held) = self.held_block(seid) {
            return held.push(transaction, seid, message);
        }
        let input = N4Input::Request { transaction, seid, message };
        self.out.push(N4GatewayEffect::ToShard { shard, input });
    }

    /// A message that can't be decoded is answered if its header permits (TS 29.244 7.6.2 to 7.6.5).
    fn undecodable(&mut self, from: SocketAddr, octets: &[u8], error: &DecodeError) {
        self.event(Level::Warn, format!("PFCP from {from}: {error}"));
        match error {
            DecodeError::Ie { header, .. } if header.message_type.is_response() => {
                self.incomplete_response(from, octets, header);
            }
            DecodeError::VersionNotSupported { sequence, .. } => {
                let answer = Message::VersionNotSupportedResponse(VersionNotSupportedResponse::new());
                self.send(from, Seid(0), *sequence, &answer);
            }
            DecodeError::Ie { header, error }
                if header.message_type == pith_pfcp::MessageType::SESSION_REPORT_REQUEST =>
            {
                let mut answer = SessionReportResponse::new(error.cause());
                answer.offending_ie = Some(OffendingIe(error.ie_type));
                self.send(from, Seid(0), header.sequence, &Message::SessionReportResponse(answer));
            }
            _ => {}
        }
    }

    fn timer(&mut self, key: TimerKey) {
        match key.timer {
            Timer::PfcpT1 => self.unanswered(key.owner as u32),
            Timer::PfcpHeartbeat => self.heartbeat(key.owner as usize),
            Timer::PfcpAssociationRetry => self.associate(key.owner as usize),
            Timer::PfcpGracefulRelease => self.release(key.owner as usize),
            Timer::PfcpOverload => self.forget_overload(key.owner as usize),
            Timer::PfcpUnknownPeers => self.reset_unknown_peers(),
            _ => {}
        }
    }

    /// Sends a request, which is retransmitted every T1 until answered, N1 transmissions in all. A change or deletion of a session is not given up before
    /// the UPF answers a heartbeat: one that is being restarted, or is not reached for a moment, gets the change afterwards.
    fn request(&mut self, peer: usize, purpose: Purpose, seid: Seid, message: &Message) {
        let Some(to) = self.peers.get(peer).map(|peer| peer.config.address) else { return };
        let sequence = self.transactions.next_sequence();
        let mut octets = Vec::with_capacity(512);
        if let Err(error) = message.encode(seid.0, sequence, &mut octets) {
            self.event(Level::Error, format!("a PFCP request does not fit into a datagram: {error}"));
            return self.answer_shard(purpose, N4Error::TooLong);
        }
        let (kind, patience) = (message.message_type(), patience(message));
        if self.transactions.begin((sequence, kind), to, (purpose, patience), octets.clone()) {
            self.send_request(to, sequence, octets);
        }
    }

    /// Sends queued requests, as many as the UPF's window has room for.
    fn send_queued(&mut self, to: SocketAddr) {
        while let Some((sequence, octets)) = self.transactions.next_queued(to) {
            self.send_request(to, sequence, octets);
        }
    }

    fn send_request(&mut self, to: SocketAddr, sequence: u32, octets: Vec<u8>) {
        self.out.push(N4GatewayEffect::Send { to, octets });
        self.out.push(N4GatewayEffect::StartTimer { key: t1(sequence), after: self.config.t1 });
    }

    /// T1 expired: retransmits the request, or gives up (TS 29.244 6.4).
    fn unanswered(&mut self, sequence: u32) {
        let to = self.transactions.destination(sequence);
        let peer = self.peers.iter().find(|peer| Some(peer.config.address) == to);
        let heartbeats = peer.map_or(0, |peer| peer.heartbeats);
        let n1 = self.config.n1_transmissions;
        let Some((to, octets)) = self.transactions.retransmit(sequence, n1, heartbeats) else {
            return self.fail_request(sequence);
        };
        self.send_request(to, sequence, octets);
        // A request that waits for a heartbeat has left the window.
        self.send_queued(to);
    }

    fn fail_request(&mut self, sequence: u32) {
        let Some(pending) = self.transactions.remove(sequence) else { return };
        self.send_queued(pending.to);
        match pending.purpose {
            Purpose::Session { .. } => {
                self.answer_shard(pending.purpose, N4Error::NoAnswer);
                self.expect_very_late(sequence, pending);
            }
            Purpose::Association { peer } => self.retry_later(peer),
            Purpose::Heartbeat { peer } => self.heartbeat_unanswered(peer),
            Purpose::Release { peer } => self.lose(peer, Loss::End, "was released without an answer"),
            // Orphans are deleted after the next heartbeat again. A late request has not arrived.
            Purpose::Orphans { .. } | Purpose::Late { .. } | Purpose::Leftover { .. } => {}
        }
    }

    /// Reports the failure of a request to its SMF.
    fn answer_shard(&mut self, purpose: Purpose, error: N4Error) {
        if let Purpose::Session { shard, tag } = purpose {
            let input = N4Input::Response { tag, result: Err(error) };
            self.out.push(N4GatewayEffect::ToShard { shard, input });
        }
    }

    /// Answers a peer's request, and keeps the answer for a retransmission of the request.
    fn answer(&mut self, to: SocketAddr, seid: Seid, sequence: u32, message: &Message) {
        if let Some(octets) = self.send(to, seid, sequence, message) {
            self.transactions.keep_answer(to, sequence, octets);
        }
    }

    fn send(&mut self, to: SocketAddr, seid: Seid, sequence: u32, message: &Message) -> Option<Vec<u8>> {
        let mut octets = Vec::with_capacity(128);
        message.encode(seid.0, sequence, &mut octets).ok()?;
        self.out.push(N4GatewayEffect::Send { to, octets: octets.clone() });
        Some(octets)
    }

    /// The UPF with that source address. The port of a request is the sender's choice (TS 29.244
    /// 4.2.2.1), so it matters only if several UPFs share an address.
    fn peer_at(&self, from: SocketAddr) -> Option<usize> {
        let is_at = |peer: &Peer| peer.config.address.ip() == from.ip();
        let exactly = self.peers.iter().position(|peer| peer.config.address == from);
        let mut all = (0..).zip(&self.peers).filter(|(_, peer)| is_at(peer)).map(|(at, _)| at);
        exactly.or_else(|| all.next().filter(|_| all.next().is_none()))
    }

    /// Whether the limit of pending requests for a UPF is reached.
    fn has_many_requests(&self, peer: usize) -> bool {
        let Some(peer) = self.peers.get(peer) else { return false };
        self.transactions.waiting_for(peer.config.address) >= MAX_REQUESTS
    }

    fn peer_of(&self, upf: UpfHandle) -> Option<usize> {
        (0..self.peers.len()).find(|peer| self.handle_of(*peer) == Some(upf))
    }

    fn address_of(&self, upf: UpfHandle) -> Option<SocketAddr> {
        self.peers.get(self.peer_of(upf)?).map(|peer| peer.config.address)
    }

    fn handle_of(&self, peer: usize) -> Option<UpfHandle> {
        match &self.peers.get(peer)?.association {
            Association::Up { handle, .. } => Some(*handle),
            Association::Down => None,
        }
    }

    fn cause_for(&self, from: SocketAddr) -> Cause {
        match self.peer_at(from).and_then(|peer| self.handle_of(peer)) {
            Some(_) => Cause::RequestAccepted,
            None => Cause::NoEstablishedPfcpAssociation,
        }
    }

    fn node_id(&self) -> NodeId {
        NodeId::from(self.config.address)
    }

    fn recovery(&self) -> NtpSeconds {
        NtpSeconds::from_unix(self.config.recovery_time_stamp)
    }

    fn send_to_all_shards(&mut self, make: impl Fn() -> N4Input) {
        self.note_loss(&make());
        for shard in 0..self.config.shards {
            self.out.push(N4GatewayEffect::ToShard { shard: ShardId(shard), input: make() });
        }
    }

    fn event(&mut self, level: Level, text: String) {
        let event = Event { level, procedure: "PFCP", outcome: "", ue: String::new(), text };
        self.out.push(N4GatewayEffect::Event(event));
    }
}

/// Whether the UPF says that it has no association: it has restarted since (TS 29.244 8.2.1, cause 72).
const fn denies_association(response: &Message) -> bool {
    let cause = match response {
        Message::SessionEstablishmentResponse(response) => response.cause,
        Message::SessionModificationResponse(response) => response.cause,
        Message::SessionDeletionResponse(response) => response.cause,
        _ => return false,
    };
    matches!(cause, Cause::NoEstablishedPfcpAssociation)
}

/// How long a request is retransmitted. A new session is established at another UPF soon; one that its UPF has lost, with its F-TEID, is not. A
/// session that is not deleted stays at the UPF, and its address is given to another UE.
fn patience(message: &Message) -> Patience {
    let has_tunnel = |pdr: &CreatePdr| matches!(pdr.pdi.local_f_teid, Some(FTeid::Allocated { .. }));
    match message {
        Message::SessionModificationRequest(_) | Message::SessionDeletionRequest(_) => Patience::Heartbeat,
        Message::SessionEstablishmentRequest(request) if request.create_pdrs.iter().any(has_tunnel) => {
            Patience::Heartbeat
        }
        _ => Patience::N1,
    }
}

fn t1(sequence: u32) -> TimerKey {
    TimerKey { owner: sequence.into(), timer: Timer::PfcpT1 }
}

#[cfg(test)]
mod tests;
