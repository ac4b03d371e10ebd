//! A simulated SMF, a recording datapath, and the UPF-C between them: tests as dialogues.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_pfcp::rules::*;
use pith_pfcp::{Header, Message};
use pith_upf::contract::{
    self, AddressRange, Counters, Datapath, DropReason, Event, Session, SessionId, SessionUsage, Tunnel,
    UrrUsage,
};
use pith_upf::{Config, Effect, GtpuAddress, Input, Notice, PermittedSmf, Upf};

/// Unix time at which the tests' time starts.
pub const STARTED: u64 = 1_700_000_000;
pub const N3: Ipv4Addr = Ipv4Addr::new(192, 168, 3, 1);
pub const GNB: Ipv4Addr = Ipv4Addr::new(192, 168, 3, 99);
/// SMFs permitted by the UPF.
pub const SMFS: PermittedSmf = PermittedSmf {
    network: AddressRange { address: IpAddr::V4(Ipv4Addr::new(192, 168, 4, 0)), prefix: 24 },
    port: None,
};
pub const SEED: [u8; 32] = [7; 32];
pub const UE: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 2);

/// Records the calls of UPF-C.
#[derive(Default)]
pub struct Notes {
    pub sessions: HashMap<SessionId, Arc<Session>>,
    pub usage: HashMap<SessionId, SessionUsage>,
    pub ladder: Vec<String>,
}

impl Datapath for Notes {
    fn install(&mut self, session: Arc<Session>) {
        self.ladder.push("install".into());
        self.sessions.insert(session.id, session);
    }

    fn remove(&mut self, session: SessionId) -> Option<SessionUsage> {
        self.ladder.push("remove".into());
        self.sessions.remove(&session)?;
        Some(self.usage.remove(&session).unwrap_or_default())
    }

    fn discard_buffered(&mut self, _session: SessionId) {
        self.ladder.push("discard buffered".into());
    }

    fn send_end_marker(&mut self, tunnel: &Tunnel) {
        self.ladder.push(format!("end marker {} {}", tunnel.peer, tunnel.teid.0));
    }

    fn usage(&self, session: SessionId) -> Option<SessionUsage> {
        self.usage.get(&session).cloned()
    }

    fn add_usage(&mut self, session: SessionId, more: &SessionUsage) {
        let usage = self.usage.entry(session).or_default();
        let last = [usage.last_packet, more.last_packet];
        usage.last_packet = last.into_iter().flatten().min();
        for urr in &more.urrs {
            match usage.urrs.iter_mut().find(|known| known.id == urr.id) {
                None => usage.urrs.push(*urr),
                Some(known) => {
                    known.volume.add(
                        contract::Direction::Uplink,
                        urr.volume.uplink_packets,
                        urr.volume.uplink,
                    );
                    let (packets, bytes) = (urr.volume.downlink_packets, urr.volume.downlink);
                    known.volume.add(contract::Direction::Downlink, packets, bytes);
                    known.last_packet = urr.last_packet.or(known.last_packet);
                }
            }
        }
    }

    fn count_dropped(&mut self, reason: DropReason) {
        self.ladder.push(format!("dropped {}", reason.name()));
    }

    fn poll_events(&mut self, _events: &mut Vec<Event>) {}

    fn counters(&self) -> Counters {
        Counters::default()
    }
}

/// A UPF-C, its datapath, and its SMF.
pub struct World {
    pub upf: Upf,
    pub datapath: Notes,
    pub now: Duration,
    pub smf: SocketAddr,
    pub notices: Vec<Notice>,
    /// Whether the SMF answers the UPF's requests while time passes.
    pub answers: bool,
    sequence: u32,
}

/// A message that the UPF-C sent.
#[derive(Debug)]
pub struct Sent {
    pub peer: SocketAddr,
    pub header: Header,
    pub message: Message,
    pub octets: Vec<u8>,
}

impl World {
    /// Without association.
    pub fn new() -> Self {
        World::configured(|_| ())
    }

    /// With other settings.
    pub fn configured(change: impl FnOnce(&mut Config)) -> Self {
        let n3 = GtpuAddress { v4: Some(N3), v6: None };
        let mut config = Config::new([192, 168, 4, 1].into(), n3, STARTED);
        config.smfs = vec![SMFS];
        config.networks = vec!["internet".into()];
        change(&mut config);
        World {
            upf: Upf::new(config, SEED),
            datapath: Notes::default(),
            now: Duration::ZERO,
            smf: SocketAddr::from(([192, 168, 4, 2], 8805)),
            notices: Vec::new(),
            answers: false,
            sequence: 0,
        }
    }

    /// Restarts with other entropy.
    pub fn reseed(&mut self, seed: [u8; 32]) {
        let n3 = GtpuAddress { v4: Some(N3), v6: None };
        let config = Config::new([192, 168, 4, 1].into(), n3, STARTED);
        self.upf = Upf::new(Config { smfs: vec![SMFS], networks: vec!["internet".into()], ..config }, seed);
    }

    /// With an association.
    pub fn associated() -> Self {
        let mut world = World::new();
        world.associate(AssociationSetupRequest::new(smf_node(), ntp(5)));
        world
    }

    /// Sets an association up.
    pub fn associate(&mut self, request: AssociationSetupRequest) -> AssociationSetupResponse {
        let Message::AssociationSetupResponse(response) = self.ask(0, request).message else { panic!() };
        assert!(response.cause.is_acceptance());
        response
    }

    /// With an association and a session; returns its UP SEID and uplink TEID.
    pub fn with_session(request: SessionEstablishmentRequest) -> (Self, u64, u32) {
        let mut world = World::associated();
        let (seid, teid) = world.establish(request);
        (world, seid, teid)
    }

    pub fn establish(&mut self, request: SessionEstablishmentRequest) -> (u64, u32) {
        let sent = self.ask(0, request);
        let Message::SessionEstablishmentResponse(response) = sent.message else { panic!("{sent:?}") };
        assert_eq!(response.cause, Cause::RequestAccepted, "{response:?}");
        let teid = response.created_pdrs.first().map_or(0, |pdr| teid(pdr.local_f_teids[0]));
        (response.up_f_seid.expect("an F-SEID").seid, teid)
    }

    pub fn modify(&mut self, seid: u64, request: SessionModificationRequest) -> SessionModificationResponse {
        let sent = self.ask(seid, request);
        let Message::SessionModificationResponse(response) = sent.message else { panic!("{sent:?}") };
        response
    }

    pub fn delete(&mut self, seid: u64) -> SessionDeletionResponse {
        let sent = self.ask(seid, SessionDeletionRequest::new());
        let Message::SessionDeletionResponse(response) = sent.message else { panic!("{sent:?}") };
        response
    }

    /// Sends a request, and returns the only message sent in return.
    pub fn ask(&mut self, seid: u64, request: impl Into<Message>) -> Sent {
        self.sequence += 1;
        let octets = encode(seid, self.sequence, request);
        let mut sent = self.send(&octets);
        assert_eq!(sent.len(), 1, "{sent:?}");
        assert_eq!(sent[0].header.sequence, self.sequence);
        assert_eq!(sent[0].peer, self.smf);
        sent.remove(0)
    }

    /// Sends octets, and returns the messages sent in return.
    pub fn send(&mut self, octets: &[u8]) -> Vec<Sent> {
        let peer = self.smf;
        self.input(Input::Datagram { peer, octets })
    }

    pub fn event(&mut self, event: Event) -> Vec<Sent> {
        self.input(Input::Event(event))
    }

    /// Advances time, with a tick whenever the UPF-C requests one, and returns the messages sent meanwhile.
    pub fn wait(&mut self, seconds: u64) -> Vec<Sent> {
        let end = self.now + Duration::from_secs(seconds);
        let mut sent = Vec::new();
        while let Some(due) = self.upf.next_timeout().filter(|due| *due <= end) {
            assert!(due >= self.now, "a timeout in the past: {due:?} at {:?}", self.now);
            self.age_packets(due);
            let ticked = self.input(Input::Tick);
            ticked.iter().filter(|_| self.answers).map(answer_to).collect::<Vec<_>>().iter().for_each(
                |octets| {
                    self.send(octets);
                },
            );
            sent.extend(ticked);
        }
        self.age_packets(end);
        sent
    }

    /// Advances time and the ages of packets.
    fn age_packets(&mut self, now: Duration) {
        let passed = now - self.now;
        self.now = now;
        for usage in self.datapath.usage.values_mut() {
            let urrs = usage.urrs.iter_mut().flat_map(|urr| [&mut urr.first_packet, &mut urr.last_packet]);
            urrs.chain([&mut usage.last_packet]).flatten().for_each(|age| *age += passed);
        }
    }

    pub fn input(&mut self, input: Input<'_>) -> Vec<Sent> {
        let mut effects = Vec::new();
        self.upf.handle(self.now, input, &mut self.datapath, &mut effects);
        let mut sent = Vec::new();
        for effect in effects {
            match effect {
                Effect::Notice(notice) => self.notices.push(notice),
                Effect::Send { peer, octets } => {
                    let (header, message) =
                        Message::decode(&octets).expect("UPF-C sends what can be decoded");
                    sent.push(Sent { peer, header, message, octets });
                }
            }
        }
        sent
    }

    /// Makes the datapath count packets of a URR.
    pub fn count(&mut self, seid: u64, urr: u32, uplink: u64, downlink: u64) {
        let usage = self.datapath.usage.entry(SessionId(seid)).or_default();
        usage.last_packet = Some(Duration::ZERO);
        let id = contract::UrrId(urr);
        if usage.urr(id).is_none() {
            let first_packet = Some(Duration::ZERO);
            usage.urrs.push(UrrUsage { id, volume: Default::default(), first_packet, last_packet: None });
        }
        let urr = usage.urrs.iter_mut().find(|urr| urr.id == id).expect("just added");
        urr.last_packet = Some(Duration::ZERO);
        urr.volume.add(contract::Direction::Uplink, 1, uplink);
        urr.volume.add(contract::Direction::Downlink, 1, downlink);
    }

    /// The datapath's rules of a session.
    pub fn installed(&self, seid: u64) -> Arc<Session> {
        self.datapath.sessions[&SessionId(seid)].clone()
    }

    /// Clears the records.
    pub fn quiet(&mut self) {
        self.datapath.ladder.clear();
        self.notices.clear();
    }
}

/// A positive answer of the SMF.
fn answer_to(sent: &Sent) -> Vec<u8> {
    let sequence = sent.header.sequence;
    match sent.message {
        Message::HeartbeatRequest(_) => encode(0, sequence, HeartbeatResponse::new(ntp(5))),
        _ => encode(1, sequence, SessionReportResponse::new(Cause::RequestAccepted)),
    }
}

/// The session reports in `sent`.
pub fn reports(sent: Vec<Sent>) -> Vec<(Header, SessionReportRequest)> {
    let report = |sent: Sent| match sent.message {
        Message::SessionReportRequest(request) => Some((sent.header, request)),
        _ => None,
    };
    sent.into_iter().filter_map(report).collect()
}

pub fn encode(seid: u64, sequence: u32, message: impl Into<Message>) -> Vec<u8> {
    let mut octets = Vec::new();
    message.into().encode(seid, sequence, &mut octets).expect("short enough");
    octets
}

pub fn smf_node() -> NodeId {
    NodeId::Ipv4([192, 168, 4, 2].into())
}

pub fn ntp(seconds: u64) -> NtpSeconds {
    NtpSeconds::from_unix(STARTED + seconds)
}

pub fn teid(f_teid: FTeid) -> u32 {
    match f_teid {
        FTeid::Allocated { teid, .. } => teid,
        FTeid::Choose { .. } => panic!("not allocated"),
    }
}

pub const CHOOSE: FTeid = FTeid::Choose { ipv4: true, ipv6: false, choose_id: None };

/// The PFCP session of a PDU session: PDR 1 uplink, PDR 2 downlink and buffered, an AMBR of 10/20 Mbit/s.
pub fn pdu_session() -> SessionEstablishmentRequest {
    pdu_session_of(0x5111, UE)
}

pub fn pdu_session_of(cp_seid: u64, ue: Ipv4Addr) -> SessionEstablishmentRequest {
    SessionEstablishmentRequest {
        create_qers: vec![ambr()],
        pdn_type: Some(PdnType::Ipv4),
        ..SessionEstablishmentRequest::new(
            smf_node(),
            FSeid::new(cp_seid, [192, 168, 4, 2].into()),
            vec![uplink_pdr(ue), downlink_pdr(ue)],
            vec![uplink_far(), buffering_far()],
        )
    }
}

pub fn uplink_pdr(ue: Ipv4Addr) -> CreatePdr {
    let pdi = Pdi {
        local_f_teid: Some(CHOOSE),
        network_instance: Some(NetworkInstance::from_dnn("internet")),
        ue_ip_addresses: vec![UeIpAddress::new(IpAddr::V4(ue), PacketEnd::Source)],
        ..Pdi::new(SourceInterface::Access)
    };
    CreatePdr {
        outer_header_removal: Some(OuterHeader::GtpuUdpIpv4.into()),
        far_id: Some(FarId(1)),
        qer_ids: vec![QerId(1)],
        ..CreatePdr::new(PdrId(1), Precedence(255), pdi)
    }
}

pub fn downlink_pdr(ue: Ipv4Addr) -> CreatePdr {
    let pdi = Pdi {
        ue_ip_addresses: vec![UeIpAddress::new(IpAddr::V4(ue), PacketEnd::Destination)],
        ..Pdi::new(SourceInterface::Core)
    };
    CreatePdr {
        far_id: Some(FarId(2)),
        qer_ids: vec![QerId(1)],
        ..CreatePdr::new(PdrId(2), Precedence(255), pdi)
    }
}

pub fn uplink_far() -> CreateFar {
    let parameters = ForwardingParameters::new(DestinationInterface::Core);
    CreateFar { forwarding_parameters: Some(parameters), ..CreateFar::new(FarId(1), ApplyAction::FORW) }
}

pub fn buffering_far() -> CreateFar {
    CreateFar::new(FarId(2), ApplyAction::BUFF | ApplyAction::NOCP)
}

pub fn ambr() -> CreateQer {
    CreateQer {
        maximum_bitrate: Some(BitRates { uplink: 10_000, downlink: 20_000 }),
        qfi: Some(Qfi(1)),
        ..CreateQer::new(QerId(1), GateStatus::OPEN)
    }
}

/// The Update FAR that contains the gNB's F-TEID.
pub fn to_gnb(gnb: Ipv4Addr, teid: u32) -> UpdateFar {
    let parameters = UpdateForwardingParameters {
        destination_interface: Some(DestinationInterface::Access),
        outer_header_creation: Some(pith_pfcp::Change::Set(OuterHeaderCreation::gtpu(teid, gnb.into()))),
        ..UpdateForwardingParameters::new()
    };
    UpdateFar {
        apply_action: Some(ApplyAction::FORW),
        update_forwarding_parameters: Some(parameters),
        ..UpdateFar::new(FarId(2))
    }
}

/// A PDU session with a URR over both PDRs.
pub fn measured(urr: CreateUrr) -> SessionEstablishmentRequest {
    let mut request = pdu_session();
    request.create_pdrs.iter_mut().for_each(|pdr| pdr.urr_ids = vec![urr.urr_id]);
    request.create_urrs = vec![urr];
    request
}
