//! A small world around one SMF: UDM, PCF, UPF and AMF answer by a script. Each message to or from the SMF is a line
//! of the ladder.

use super::super::context::UserPlane;
use super::super::*;
use crate::kit::{Duration, Effect, N4Effect, N4Error, N4Transaction, Nf, Rng, Timer, UpfInfo};
use crate::testing::{self, Bench, Seen, ambr, instance, plmn, root, supi};
use pith_nas::gsm::PduSessionEstablishmentRequest;
use pith_nas::ie::IntegrityProtectionMaximumDataRate;
use pith_nas::{GsmBody, GsmCause, GsmMessage};
use pith_ngap::transfer::{SetupResponseTransfer, Tunnel};
use pith_pfcp::ie::{ApplyAction, Cause as N4Cause, FSeid, FTeid, NodeId, ReportType};
use pith_pfcp::message::{SessionEstablishmentResponse, SessionModificationResponse, SessionReportRequest};
use pith_pfcp::rules::{CreatePdr, CreatedPdr, ErrorIndicationReport};
use pith_sbi::common::{AccessType, Ncgi, NrLocation, RatType, UserLocation};
use pith_sbi::namf_communication::{
    N1N2MessageTransferCause, N1N2MessageTransferReqData, N1N2MessageTransferRspData,
};
use pith_sbi::npcf_smpolicycontrol::SmPolicyDecision;
use pith_sbi::nsmf_pdusession::{
    N2SmInfoType, PostSmContexts, ReleaseSmContext, SmContextCreateData, SmContextReleaseData,
    SmContextUpdateData, UpCnxState, UpdateSmContext,
};
use pith_sbi::{Cause, Created, Operation, Problem, ProblemMore, Request, Response, Uri};
use pith_types::{NrCellIdentity, Snssai, Tac, Tai, Teid};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

pub(super) const UPF: UpfHandle = UpfHandle(3);
/// Another UPF, in worlds that have it.
pub(super) const EDGE: UpfHandle = UpfHandle(4);

/// The gNB's endpoint of the N3 tunnel.
pub(super) const GNB_TUNNEL: Tunnel =
    Tunnel { address: std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)), teid: Teid(0x42) };

pub(super) fn config() -> SmfConfig {
    SmfConfig {
        peers: None,
        data_networks: vec![DataNetwork {
            dnn: "internet".parse().unwrap(),
            snssai: Snssai::of_sst(1),
            pool: ("10.45.0.0".parse().unwrap(), 30),
            pool6: None,
            delegation: 0,
            reserved: 2,
            static_ranges: Vec::new(),
            dns: vec!["9.9.9.9".parse().unwrap()],
            mtu: 1400,
            ambr: ambr(50),
            p_cscf: vec!["10.9.0.1".parse().unwrap(), "2001:db8::5060".parse().unwrap()],
            is_ladn: false,
        }],
        t3591: Duration::from_secs(16),
        rq_timer: 60,
        t3592: Duration::from_secs(16),
        retransmissions: 4,
        guard: Duration::from_secs(10),
        path_grace: Duration::from_secs(1),
        shares_blocks: false,
        set_id: None,
        upfs: Vec::new(),
        breakouts: Vec::new(),
        emergency: None,
    }
}

/// An SMF, its scripted peers, and the messages between them.
pub(super) struct World {
    pub bench: Bench<Smf>,
    pub ladder: Vec<String>,
    /// Answers that replace the usual ones; `None`: the call is not answered.
    pub script: HashMap<Operation, Option<Reply>>,
    /// The UPF's answer to requests; `None`: they are not answered.
    pub upf: Option<Result<N4Cause, N4Error>>,
    pub open: Vec<(Tag, Request)>,
    pub open_n4: Vec<(Tag, UpfHandle, Message)>,
    pub n4: Vec<Message>,
    /// The transfers that were sent to the AMF, for UE and gNB.
    pub transfers: Vec<N1N2MessageTransferReqData>,
    /// UPFs that answer each establishment with this.
    pub refusing: HashMap<UpfHandle, Result<N4Cause, N4Error>>,
    /// UPFs that do not answer.
    pub silent: HashSet<UpfHandle>,
    upfs: Vec<(UpfHandle, String)>,
    pub answers: Vec<Reply>,
    /// The messages that were sent to the UE.
    pub n1: Vec<GsmMessage>,
    pub supi: Supi,
    pub pdu_session_id: u8,
    /// The reference of the last session that the SMF created.
    pub reference: String,
}

impl World {
    pub fn new() -> Self {
        Self::with(config(), &["upf"])
    }

    /// With those UPFs, of which the first is [`UPF`] and the next [`EDGE`].
    pub fn with(config: SmfConfig, upfs: &[&str]) -> Self {
        let mut world = Self {
            bench: Bench::new(Smf::new(testing::identity(), config, Rng::from_number(1))),
            ladder: Vec::new(),
            script: HashMap::new(),
            upf: Some(Ok(N4Cause::RequestAccepted)),
            open: Vec::new(),
            open_n4: Vec::new(),
            n4: Vec::new(),
            transfers: Vec::new(),
            refusing: HashMap::new(),
            silent: HashSet::new(),
            upfs: Vec::new(),
            answers: Vec::new(),
            n1: Vec::new(),
            supi: supi(),
            pdu_session_id: 5,
            reference: String::new(),
        };
        for (handle, name) in (UPF.0..).map(UpfHandle).zip(upfs) {
            world.associate(handle, name);
        }
        world
    }

    pub fn associate(&mut self, upf: UpfHandle, name: &str) {
        self.associate_with((upf, name), (false, false));
    }

    /// A UPF that has retained the sessions of the SMF's former run.
    pub fn associate_retaining(&mut self, upf: UpfHandle, name: &str) {
        self.associate_with((upf, name), (true, false));
    }

    /// A UPF that may have sessions of another SMF of the set.
    pub fn associate_sharing(&mut self, upf: UpfHandle, name: &str) {
        self.associate_with((upf, name), (false, true));
    }

    fn associate_with(
        &mut self,
        (upf, name): (UpfHandle, &str),
        (has_retained, shares_sessions): (bool, bool),
    ) {
        let info = UpfInfo {
            name: name.into(),
            address: address_of(upf),
            local_address: "10.0.0.4".parse().unwrap(),
            has_retained,
            shares_sessions,
        };
        self.upfs.push((upf, name.into()));
        self.n4_input(N4Input::UpfUp { upf, info: Arc::new(info) });
    }

    /// A world with an established session.
    pub fn established() -> Self {
        let mut world = Self::new();
        world.establish();
        world.gnb_answers();
        world.take_ladder();
        world
    }

    pub fn establish(&mut self) {
        let mut request = establishment(|_| {});
        request[1] = self.pdu_session_id;
        self.post(request);
    }

    pub fn post(&mut self, n1: Vec<u8>) {
        self.post_to("internet", n1);
    }

    pub fn post_to(&mut self, dnn: &str, n1: Vec<u8>) {
        self.post_with(dnn, n1, |_| {});
    }

    /// A request with a change.
    pub fn post_with(&mut self, dnn: &str, n1: Vec<u8>, change: impl FnOnce(&mut SmContextCreateData)) {
        let status = Uri::new(&root("amf"), "/namf-callback/v1/sm-context-status/5");
        let mut body = SmContextCreateData::new(instance(2), plmn(), AccessType::ThreeGppAccess, status);
        let tai = Tai { plmn_id: "999/70".parse().unwrap(), tac: Tac::new(1) };
        let cell = Ncgi::new(tai.plmn_id, NrCellIdentity::new(16));
        body.ue_location = Some(UserLocation { nr_location: Some(NrLocation::new(tai, cell)) });
        body.supi = Some(self.supi.clone());
        body.rat_type = Some(RatType::Nr);
        body.pei = Some("imei-437081612581615".parse().unwrap());
        body.gpsi = Some("msisdn-15551234567".into());
        body.pdu_session_id = Some(self.pdu_session_id);
        body.dnn = Some(dnn.parse().unwrap());
        body.s_nssai = Some(Snssai::of_sst(1));
        body.n1_sm_msg = Some(n1.into());
        change(&mut body);
        let seen = self.bench.request(PostSmContexts { body });
        self.follow(seen);
    }

    pub fn update(&mut self, change: impl FnOnce(&mut SmContextUpdateData)) {
        let mut body = SmContextUpdateData::default();
        change(&mut body);
        let seen = self.bench.request(UpdateSmContext { sm_context_ref: self.reference.clone(), body });
        self.follow(seen);
    }

    pub fn uplink(&mut self, body: impl Into<GsmBody>) {
        let body = body.into();
        let pti = match body {
            GsmBody::PduSessionModificationComplete(_) | GsmBody::PduSessionModificationCommandReject(_) => 0,
            GsmBody::PduSessionReleaseComplete(_) => self.release_pti(),
            _ => 9,
        };
        self.uplink_with(pti, body);
    }

    /// The PTI of the last PDU SESSION RELEASE COMMAND.
    fn release_pti(&self) -> u8 {
        let is_command = |message: &&GsmMessage| matches!(message.body, GsmBody::PduSessionReleaseCommand(_));
        self.n1.iter().rev().find(is_command).map_or(0, |command| command.pti)
    }

    /// A 5GSM message with that PTI.
    pub fn uplink_with(&mut self, pti: u8, body: impl Into<GsmBody>) {
        let message = GsmMessage::new(5, pti, body).encode();
        self.update(|data| data.n1_sm_msg = Some(message.into()));
    }

    pub fn gnb_answers(&mut self) {
        let transfer = SetupResponseTransfer {
            downlink: GNB_TUNNEL,
            flows: vec![1],
            additional: vec![],
            failed: vec![],
        }
        .encode();
        self.update(|data| {
            data.n2_sm_info_type = Some(N2SmInfoType::PduResSetupRsp);
            data.n2_sm_info = Some(transfer.into());
        });
    }

    pub fn deactivate(&mut self) {
        self.update(|data| data.up_cnx_state = Some(UpCnxState::Deactivated));
    }

    pub fn release_by_amf(&mut self) {
        let body = SmContextReleaseData::default();
        let seen = self.bench.request(ReleaseSmContext { sm_context_ref: self.reference.clone(), body });
        self.follow(seen);
    }

    pub fn n4_input(&mut self, input: N4Input) {
        let seen = self.bench.input(Input::N4(Box::new(input)));
        self.follow(seen);
    }

    /// The SEID of the first session at the anchor.
    pub fn seid(&self) -> Seid {
        let of_session = self.bench.nf.sessions.iter().next().map(|(_, session)| session.seid);
        let of_request = || {
            self.n4.iter().find_map(|message| match message {
                Message::SessionEstablishmentRequest(request) => Some(Seid(request.cp_f_seid.seid)),
                _ => None,
            })
        };
        of_session.or_else(of_request).unwrap_or(Seid(1))
    }

    pub fn report(&mut self, report_type: ReportType) {
        let seid = self.seid();
        self.send_report(UPF, seid, SessionReportRequest::new(report_type));
    }

    /// The anchor received a GTP-U Error Indication for that tunnel.
    pub fn report_lost(&mut self, tunnel: Tunnel) {
        let seid = self.seid();
        self.report_lost_by(UPF, seid, tunnel);
    }

    /// A UPF received a GTP-U Error Indication for that tunnel.
    pub fn report_lost_by(&mut self, upf: UpfHandle, seid: Seid, tunnel: Tunnel) {
        let mut report = SessionReportRequest::new(ReportType::ERIR);
        let remote = vec![FTeid::new(tunnel.teid.0, tunnel.address)];
        report.error_indication_report = Some(ErrorIndicationReport::new(remote));
        self.send_report(upf, seid, report);
    }

    fn send_report(&mut self, upf: UpfHandle, seid: Seid, report: SessionReportRequest) {
        let message = Message::SessionReportRequest(report);
        let transaction = N4Transaction { upf, from: ([127, 0, 0, 8], 8805).into(), sequence: 1 };
        self.n4_input(N4Input::Request { transaction, seid, message });
    }

    pub fn expire(&mut self, timer: Timer) {
        let seen = self.bench.expire(timer);
        self.follow(seen);
    }

    /// The user plane of the first session.
    pub fn user_plane(&self) -> Option<UserPlane> {
        self.bench.nf.sessions.iter().next()?.1.state().user_plane().cloned()
    }

    /// Checks that each session has its running timers and their deadlines.
    fn check_timers(&self) {
        let sessions = self.bench.nf.sessions.iter().map(|(_, session)| session);
        let known: BTreeMap<TimerKey, _> = sessions
            .flat_map(|session| {
                let owner = session.key.to_u64();
                let running: Vec<_> = session.timers.running().collect();
                running
                    .into_iter()
                    .map(move |(timer, deadline)| (TimerKey { owner, timer: timer.into() }, deadline))
            })
            .collect();
        let identity = testing::identity();
        let of_sessions = self.bench.timers.iter().filter(|(key, _)| key.timer != Timer::LostSessions);
        let running = of_sessions.map(|(key, at)| (*key, identity.date_time(*at))).collect();
        assert_eq!(known, running);
    }

    /// Records the SMF's effects, and answers them.
    pub fn follow(&mut self, seen: Seen) {
        if self.bench.stateless.is_none() {
            self.check_timers();
        }
        for effect in seen.0 {
            match effect {
                Effect::Call { tag, request, .. } => self.called(tag, request),
                Effect::Answer { reply, .. } => self.answered(reply),
                Effect::N4(effect) => self.asked_upf(*effect),
                other => panic!("an SMF does not do {other:?}"),
            }
        }
    }

    pub fn called(&mut self, tag: Tag, request: Request) {
        let operation = request.operation();
        let nf = request.target_nf().and_then(|nf| Nf::of_type(&nf)).map_or("amf", Nf::name);
        self.ladder.push(format!("{nf} <- {operation:?}"));
        if let Request::N1N2MessageTransfer(transfer) = &request {
            self.transfers.push(transfer.body.clone());
            let n1 = transfer.body.n1_message_container.as_ref();
            let octets = n1.map(|n1| &n1.n1_message_content.content);
            self.n1.extend(octets.map(|octets| GsmMessage::decode(octets).unwrap()));
        }
        let reply = self.script.get(&operation).cloned().unwrap_or_else(|| Some(usual(&request)));
        match reply {
            Some(reply) => {
                let seen = self.bench.reply(tag, reply);
                self.follow(seen);
            }
            None => self.open.push((tag, request)),
        }
    }

    pub fn answered(&mut self, reply: Reply) {
        match &reply {
            Ok(response) => self.ladder.push(format!("amf <- {}", response.outcome().status())),
            Err(problem) => self.ladder.push(format!("amf <- {}", problem.status)),
        }
        let n1 = match &reply {
            Ok(Response::SmContextCreated(created)) => {
                self.reference = created.location.id().to_owned();
                None
            }
            Ok(Response::SmContextUpdated(data)) => data.n1_sm_msg.as_ref(),
            Err(problem) => match &problem.more {
                Some(ProblemMore::SmContextCreateError(data)) => data.n1_sm_msg.as_ref(),
                _ => None,
            },
            Ok(_) => None,
        };
        n1.into_iter().for_each(|n1| self.n1.push(GsmMessage::decode(&n1.content).unwrap()));
        self.answers.push(reply);
    }

    pub fn asked_upf(&mut self, effect: N4Effect) {
        let name_of = |upf| {
            let known = self.upfs.iter().find(|(handle, _)| *handle == upf);
            known.map_or("?", |(_, name)| name).to_owned()
        };
        self.ladder.extend(super::retention::line(&effect, name_of));
        let (tag, upf, message) = match effect {
            N4Effect::Request { tag, upf, message, .. } => (Some(tag), upf, message),
            N4Effect::Answer { transaction, message, .. } => (None, transaction.upf, message),
            N4Effect::TakenOver { .. } | N4Effect::Passage(_) | N4Effect::Confirmed { .. } => return,
        };
        let text = format!("{message:?}");
        let name = self.upfs.iter().find(|(handle, _)| *handle == upf).map_or("?", |(_, name)| name);
        self.ladder.push(format!("{name} <- {}", text.split('(').next().unwrap()));
        self.n4.push(message.clone());
        let establishment = matches!(message, Message::SessionEstablishmentRequest(_));
        let refusal = self.refusing.get(&upf).copied().filter(|_| establishment);
        let usual = self.upf.filter(|_| !self.silent.contains(&upf));
        match (tag, refusal.or(usual)) {
            (Some(tag), Some(result)) => self.upf_answers(tag, upf, &message, result),
            (Some(tag), None) => self.open_n4.push((tag, upf, message)),
            (None, _) => {}
        }
    }

    pub fn upf_answers(
        &mut self,
        tag: Tag,
        upf: UpfHandle,
        message: &Message,
        result: Result<N4Cause, N4Error>,
    ) {
        let result = result.map(|cause| n4_answer(upf, message, cause));
        self.n4_input(N4Input::Response { tag, result });
    }

    /// The UPF answers the requests that it has not answered yet.
    pub fn upf_answers_late(&mut self) {
        self.upf = Some(Ok(N4Cause::RequestAccepted));
        self.silent.clear();
        for (tag, upf, message) in std::mem::take(&mut self.open_n4) {
            self.upf_answers(tag, upf, &message, Ok(N4Cause::RequestAccepted));
        }
    }

    pub fn take_ladder(&mut self) -> String {
        std::mem::take(&mut self.ladder).join("\n")
    }

    /// The cause of PDU SESSION ESTABLISHMENT REJECT, the last message to the UE.
    pub fn reject(&self) -> GsmCause {
        match self.n1.last().map(|message| &message.body) {
            Some(GsmBody::PduSessionEstablishmentReject(reject)) => reject.cause,
            other => panic!("no reject: {other:?}"),
        }
    }

    pub fn refusal(&self) -> &Cause {
        match self.answers.last() {
            Some(Err(problem)) => problem.cause().unwrap(),
            other => panic!("no refusal: {other:?}"),
        }
    }

    /// Checks that nothing is left of any session.
    pub fn is_quiet(&self) {
        assert_eq!(self.bench.nf.audit(), SmfAudit::default());
        assert_eq!(self.bench.timers.len(), 0, "{:?}", self.bench.timers);
        assert!(self.bench.nf.shared.index.is_empty());
        assert_eq!(self.bench.nf.replies_owed(), Some(0));
    }
}

pub(super) fn establishment(change: impl FnOnce(&mut PduSessionEstablishmentRequest)) -> Vec<u8> {
    let mut request = PduSessionEstablishmentRequest::new(IntegrityProtectionMaximumDataRate::FULL);
    change(&mut request);
    GsmMessage::new(5, 1, request).encode()
}

/// The answer of an NF without failures.
pub(super) fn usual(request: &Request) -> Reply {
    Ok(match request {
        Request::GetSmData(_) => Response::SmData(Box::new(subscription())),
        Request::CreateSmPolicy(_) => {
            let location = Uri::new(&root("pcf"), "/npcf-smpolicycontrol/v1/sm-policies/1");
            Response::SmPolicyDecisionCreated(Box::new(Created {
                location,
                body: SmPolicyDecision::default(),
            }))
        }
        Request::RegisterSmf(request) => {
            let (supi, id, body) = (&request.ue_id, request.pdu_session_id, request.body.clone());
            let path = format!("/nudm-uecm/v1/{supi}/registrations/smf-registrations/{id}");
            let location = Uri::new(&root("udm"), &path);
            Response::SmfRegistrationCreated(Box::new(Created { location, body }))
        }
        Request::N1N2MessageTransfer(_) => {
            let data = N1N2MessageTransferRspData::new(N1N2MessageTransferCause::N1N2TransferInitiated);
            Response::N1N2MessageTransferInitiated(Box::new(data))
        }
        _ => Response::NoContent,
    })
}

pub(super) fn subscription() -> pith_sbi::nudm_sdm::SmSubsData {
    use pith_sbi::nudm_sdm as sdm;
    let mut types = sdm::PduSessionTypes::default();
    types.default_session_type = Some(pith_sbi::common::PduSessionType::Ipv4);
    let modes = sdm::SscModes::new(pith_sbi::common::SscMode::SscMode1);
    let mut configuration = sdm::DnnConfiguration::new(types, modes);
    configuration.session_ambr = Some(ambr(200));
    let mut data = sdm::SessionManagementSubscriptionData::new(Snssai::of_sst(1));
    data.dnn_configurations.insert("internet".into(), configuration);
    sdm::SmSubsData::Individual(vec![data])
}

pub(super) fn address_of(upf: UpfHandle) -> std::net::IpAddr {
    std::net::Ipv4Addr::new(10, 0, 0, 4 + upf.0 as u8).into()
}

/// The TEID that a UPF chooses for a PDR.
pub(super) fn tunnel_of(upf: UpfHandle, choose_id: u8) -> Tunnel {
    Tunnel { address: address_of(upf), teid: Teid(0x1000 * upf.0 as u32 + u32::from(choose_id)) }
}

fn created(upf: UpfHandle, pdr: &CreatePdr) -> Option<CreatedPdr> {
    let Some(FTeid::Choose { choose_id, .. }) = pdr.pdi.local_f_teid else { return None };
    let tunnel = tunnel_of(upf, choose_id.unwrap_or(0));
    let std::net::IpAddr::V4(address) = tunnel.address else { panic!() };
    let mut created = CreatedPdr::new(pdr.pdr_id);
    created.local_f_teids = vec![FTeid::Allocated { teid: tunnel.teid.0, ipv4: Some(address), ipv6: None }];
    Some(created)
}

pub(super) fn n4_answer(upf: UpfHandle, request: &Message, cause: N4Cause) -> Message {
    let address = address_of(upf);
    match request {
        Message::SessionEstablishmentRequest(request) => {
            let mut response = SessionEstablishmentResponse::new(NodeId::from(address), cause);
            if cause == N4Cause::RequestAccepted {
                response.up_f_seid = Some(FSeid::new(0x70 + upf.0, address));
                response.created_pdrs =
                    request.create_pdrs.iter().filter_map(|pdr| created(upf, pdr)).collect();
            }
            Message::SessionEstablishmentResponse(response)
        }
        Message::SessionModificationRequest(_) => {
            Message::SessionModificationResponse(SessionModificationResponse::new(cause))
        }
        _ => Message::SessionDeletionResponse(pith_pfcp::message::SessionDeletionResponse::new(cause)),
    }
}

/// The action of the last modification for downlink packets.
pub(super) fn downlink_action(world: &World) -> ApplyAction {
    let modification = world.n4.iter().rev().find_map(|message| match message {
        Message::SessionModificationRequest(request) => request.update_fars[0].apply_action,
        _ => None,
    });
    modification.expect("a modification of a FAR's action")
}

pub(super) fn problem(cause: Cause) -> Option<Reply> {
    Some(Err(Problem::new(cause).into()))
}
