//! A test world around one AMF: a UE, two gNBs, and NFs that answer by a script. Everything that
//! crosses the AMF's interface is a line of the ladder.

use crate::amf::{Amf, AmfConfig, Audit};
use crate::kit::{
    Caller, Deregister, Effect, Event, GnbHandle, GnbInfo, Identity, Input, Instant, N2Effect, N2Input,
    NetworkFunction, Nf, Order, Outbox, PendingReply, ReferenceKey, RetainedConnections, Rng, Tag, Target,
    Timer, TimerKey, TnlaBinding,
};
use pith_crypto::kdf;
use pith_crypto::keys::{KAmf, KSeaf, Rand, ResStar};
use pith_crypto::nas::Direction;
use pith_nas::ie::*;
use pith_nas::security::{Algorithms, Connection};
use pith_nas::{GmmMessage, NasSecurity, Role, SecurityHeaderType, gmm};
use pith_ngap::{GlobalRanNodeId, Message, UserLocation};
use pith_sbi::common::{NfInstanceId, SupportedFeatures};
use pith_sbi::nausf_ueauthentication::{
    AuthData, AuthResult, Av5gAka, ConfirmationDataResponse, UeAuthenticationCtx,
};
use pith_sbi::nudm_sdm::{
    AccessAndMobilitySubscriptionData, DnnInfo, Nssai as SubscribedNssai, SmfSelectionSubscriptionData,
    SnssaiInfo, SubscriptionDataSets,
};
use pith_sbi::{ApiRoot, Created, Operation, Problem, Reply, Request, Response, Scheme, Uri};
use pith_types::*;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// The USIM's response to each challenge, and the resulting anchor key.
pub const RES_STAR: [u8; 16] = [0x52; 16];
pub const K_SEAF: [u8; 32] = [0x5e; 32];

pub fn identity() -> Identity {
    Identity {
        instance_id: NfInstanceId::from_random(7),
        api_root: Arc::new(ApiRoot::new(Scheme::Http, "127.0.0.1:7000")),
        owner: BlockOwner { instance: InstanceId(1), shard: ShardId(2) },
        owners: Arc::new(OwnerMap::of_instance(InstanceId(1), 4)),
        reference_key: ReferenceKey::new([7; 32]),
        plmn: tai().plmn_id,
        epoch_unix_ms: 0,
    }
}

pub fn tai() -> Tai {
    Tai { plmn_id: "999/70".parse().unwrap(), tac: Tac::new(1) }
}

pub fn config() -> AmfConfig {
    let guami = Guami { plmn_id: tai().plmn_id, amf_id: "020040".parse().unwrap() };
    let config = AmfConfig::new(identity(), guami, vec![Snssai::of_sst(1)], vec![tai()]);
    AmfConfig { retains_ues: true, ..config }
}

/// The ladder of inputs and effects, and the downlink messages not yet read.
pub struct World {
    pub amf: Amf,
    pub now: Instant,
    out: Outbox,
    pub ladder: Vec<String>,
    pub downlinks: VecDeque<(GnbHandle, Message)>,
    pub calls: Vec<(Tag, Target, Request)>,
    pub timers: BTreeMap<TimerKey, Instant>,
    pub answers: Vec<Reply>,
    /// Answers to NG Setups.
    pub set_up: Vec<(GnbHandle, RetainedConnections)>,
    /// Connections that gNBs have no longer.
    pub left: Vec<(GnbHandle, RanUeNgapId, AmfUeNgapId)>,
    /// Sends the requests.
    pub caller: Caller,
    pub events: Vec<Event>,
    /// Where PDUs of gNBs arrive.
    pub arrival: TnlaBinding,
    /// Where PDUs were sent.
    pub bindings: Vec<TnlaBinding>,
    /// Replies that differ from the default; `None` leaves the call open.
    pub script: HashMap<Operation, Option<Reply>>,
    pub challenges: u8,
    /// The SUPI that the AUSF returns for any identity.
    pub found: Supi,
    /// Runs before and after each input.
    pub shell: Option<Box<dyn Shell>>,
}

/// A part of the shell that reads and stores contexts.
pub trait Shell {
    fn before(&mut self, amf: &mut Amf, now: Instant, input: &Input, out: &mut Outbox);
    fn after(&mut self, amf: &mut Amf, now: Instant, out: &mut Outbox);
}

pub const GNB: GnbHandle = GnbHandle(1);
pub const OTHER_GNB: GnbHandle = GnbHandle(2);

fn peer(nf: &str) -> Arc<ApiRoot> {
    Arc::new(ApiRoot::new(Scheme::Http, &format!("{nf}:80")))
}

impl World {
    pub fn new() -> Self {
        Self::with(config())
    }

    pub fn with(config: AmfConfig) -> Self {
        let mut amf = Amf::new(config, Rng::from_number(1));
        amf.reload_contexts();
        let mut world = Self {
            amf,
            now: Instant::from_micros(0),
            out: Outbox::new(crate::kit::Level::Debug),
            ladder: Vec::new(),
            downlinks: VecDeque::new(),
            calls: Vec::new(),
            timers: BTreeMap::new(),
            answers: Vec::new(),
            set_up: Vec::new(),
            left: Vec::new(),
            caller: Caller::Remote { exchange: 1, client: None },
            events: Vec::new(),
            arrival: TnlaBinding::unbound(1),
            bindings: Vec::new(),
            script: HashMap::new(),
            challenges: 0,
            found: supi(),
            shell: None,
        };
        world.connect_gnbs();
        world
    }

    /// A gNB on a host of its own.
    pub fn gnb_info(gnb: GnbHandle) -> GnbInfo {
        GnbInfo {
            name: String::new(),
            // The name of the first one is in documents of earlier versions.
            global_id: if gnb == GNB { "999/70-gnb-1".into() } else { format!("999/70-gnb-{:08x}", gnb.0) },
            node: GlobalRanNodeId::Gnb { plmn: tai().plmn_id, id: gnb.0 as u32, bits: 32 },
            supported: vec![(tai(), vec![Snssai::of_sst(1), Snssai::of_sst(2)])],
            peer: String::new(),
            host: std::net::Ipv4Addr::from(0xc000_0200 + gnb.0 as u32).into(),
        }
    }

    /// Passes an input to the AMF, and answers its requests to other NFs.
    pub fn input(&mut self, input: Input) {
        if let Some(shell) = &mut self.shell {
            shell.before(&mut self.amf, self.now, &input, &mut self.out);
        }
        self.amf.handle(self.now, input, &mut self.out);
        self.end_turn();
    }

    /// An operator requests a deregistration.
    pub fn operate(&mut self, supi: Supi, why: Deregister) -> Vec<serde_json::Value> {
        self.order(&Order::Deregister { supis: [supi].into(), why })
    }

    /// An operator's command.
    pub fn order(&mut self, what: &Order) -> Vec<serde_json::Value> {
        let mut list = Vec::new();
        self.amf.operate(self.now, what, &mut self.out, &mut list);
        self.end_turn();
        list
    }

    /// Another AMF takes the place of this one; the gNBs are not connected to it.
    pub fn replace_amf(&mut self, amf: Amf) {
        self.amf = amf;
        (self.timers, self.calls) = Default::default();
        self.downlinks.clear();
        self.amf.resume_contexts(self.now, &mut self.out);
        self.settle();
    }

    /// The gNBs connect.
    pub fn connect_gnbs(&mut self) {
        for gnb in [GNB, OTHER_GNB] {
            self.set_up_gnb(gnb, Self::gnb_info(gnb), false);
        }
    }

    /// NG Setup of a gNB.
    pub fn set_up_gnb(&mut self, gnb: GnbHandle, info: GnbInfo, retains_ues: bool) {
        self.input(Input::N2(N2Input::GnbUp { gnb, info: Arc::new(info) }));
        self.input(Input::N2(N2Input::NgSetup { gnb, retains_ues }));
    }

    fn end_turn(&mut self) {
        if let Some(shell) = &mut self.shell {
            shell.after(&mut self.amf, self.now, &mut self.out);
        }
        self.settle();
    }

    fn settle(&mut self) {
        let effects: Vec<_> = self.out.drain().collect();
        let mut calls = Vec::new();
        for effect in effects {
            match effect {
                Effect::N2(N2Effect::Send { gnb, binding, pdu }) => {
                    self.bindings.push(binding);
                    self.sent(gnb, &pdu);
                }
                Effect::N2(N2Effect::SetUp { gnb, connections, .. }) => self.set_up.push((gnb, connections)),
                Effect::N2(N2Effect::Left { gnb, ran_id, amf_id }) => self.left.push((gnb, ran_id, amf_id)),
                Effect::Call { tag, target, request } => calls.push((tag, target, request)),
                Effect::Answer { reply, .. } => self.answered(reply),
                Effect::StartTimer { key, after } => {
                    self.timers.insert(key, self.now + after);
                }
                Effect::StopTimer(key) => {
                    self.timers.remove(&key);
                }
                Effect::Event(event) => self.events.push(event),
                other => panic!("an AMF does not do {other:?}"),
            }
        }
        for (tag, target, request) in calls {
            self.called(tag, target, request);
        }
    }

    fn sent(&mut self, gnb: GnbHandle, pdu: &[u8]) {
        let message = Message::decode(pdu).expect("the AMF sends what can be read");
        self.ladder.push(format!("gnb{} <- {}", gnb.0, message.name()));
        self.downlinks.push_back((gnb, message));
    }

    fn answered(&mut self, reply: Reply) {
        let text = match &reply {
            Ok(response) => format!("{}", response.outcome().status()),
            Err(problem) => format!("{problem}"),
        };
        self.ladder.push(format!("nf   <- {text}"));
        self.answers.push(reply);
    }

    fn called(&mut self, tag: Tag, target: Target, request: Request) {
        let operation = request.operation();
        let nf = request.target_nf().and_then(|nf| Nf::of_type(&nf)).map_or("?", Nf::name);
        self.ladder.push(format!("{nf:<4} <- {operation:?}"));
        let reply = match self.script.get(&operation) {
            Some(scripted) => scripted.clone(),
            None => Some(self.usual(&request)),
        };
        match reply {
            Some(reply) => self.reply(tag, reply),
            None => self.calls.push((tag, target, request)),
        }
    }

    /// Answers a call.
    pub fn reply(&mut self, tag: Tag, reply: Reply) {
        self.input(Input::Reply { tag, from: None, reply });
    }

    /// Answers the open call of that operation.
    pub fn reply_to(&mut self, operation: Operation, reply: Reply) {
        let at = self.calls.iter().position(|(_, _, request)| request.operation() == operation);
        let (tag, ..) = self.calls.remove(at.unwrap_or_else(|| panic!("{operation:?} was not called")));
        self.reply(tag, reply);
    }

    /// Removes and returns the open request of that operation.
    pub fn open_call(&mut self, operation: Operation) -> Request {
        let at = self.calls.iter().position(|(_, _, request)| request.operation() == operation);
        self.calls.remove(at.unwrap_or_else(|| panic!("{operation:?} was not called"))).2
    }

    /// The default reply of an NF: success.
    pub fn usual(&mut self, request: &Request) -> Reply {
        Ok(match request {
            Request::Authenticate(_) => Response::UeAuthenticationCtxCreated(Box::new(self.challenge())),
            Request::FiveGAkaConfirmation(request) => {
                let right = request.body.res_star.is_some_and(|res_star| res_star.0 == RES_STAR);
                Response::ConfirmationDataResponse(Box::new(confirmation_of(&self.found, right)))
            }
            Request::ThreeGppRegistration(request) => {
                let location = Uri::new(&peer("udm"), "/nudm-uecm/v1/x/registrations/amf-3gpp-access");
                let body = request.body.clone();
                Response::Amf3GppAccessRegistrationCreated(Box::new(Created { location, body }))
            }
            Request::GetDataSets(_) => Response::SubscriptionDataSets(Box::new(subscription(&[1]))),
            Request::SdmSubscribe(request) => {
                assert_eq!(request.body.unique_subscription, Some(true), "one a UE, also after a kill");
                let location = Uri::new(&peer("udm"), "/nudm-sdm/v2/x/sdm-subscriptions/77");
                let body = request.body.clone();
                Response::SdmSubscriptionCreated(Box::new(Created { location, body }))
            }
            Request::CreateAmPolicyAssociation(_) => {
                let location = Uri::new(&peer("pcf"), "/npcf-am-policy-control/v1/policies/9");
                let body =
                    pith_sbi::npcf_ampolicycontrol::PolicyAssociation::new(SupportedFeatures::default());
                Response::PolicyAssociationCreated(Box::new(Created { location, body }))
            }
            Request::UpdateAmPolicyAssociation(request) => {
                let path = format!("/npcf-am-policy-control/v1/policies/{}", request.pol_asso_id);
                let resource = Uri::new(&peer("pcf"), &path);
                Response::PolicyUpdate(Box::new(pith_sbi::npcf_ampolicycontrol::PolicyUpdate::new(resource)))
            }
            Request::ReadAmPolicyAssociation(_) => {
                let mut body =
                    pith_sbi::npcf_ampolicycontrol::PolicyAssociation::new(SupportedFeatures::default());
                body.rfsp = Some(77);
                Response::PolicyAssociation(Box::new(body))
            }
            Request::PostSmContexts(request) => {
                let id = request.body.pdu_session_id.unwrap();
                let location = Uri::new(&peer("smf"), &format!("/nsmf-pdusession/v1/sm-contexts/sm-{id}"));
                Response::SmContextCreated(Box::new(Created { location, body: Default::default() }))
            }
            Request::UpdateSmContext(request) => updated(&request.body),
            _ => Response::NoContent,
        })
    }

    pub fn challenge(&mut self) -> Created<UeAuthenticationCtx> {
        self.challenges = self.challenges.wrapping_add(1);
        let rand = [self.challenges; 16];
        let hxres_star = kdf::hres_star(&Rand::new(rand), &ResStar::new(RES_STAR));
        let vector = Av5gAka::new(rand, *hxres_star.as_bytes(), [0xa; 16]);
        let body = UeAuthenticationCtx::new(
            pith_sbi::common::AuthType::FiveGAka,
            AuthData::FiveGAka(vector),
            BTreeMap::new(),
        );
        Created { location: Uri::new(&peer("ausf"), "/nausf-auth/v1/ue-authentications/a1"), body }
    }

    /// Expires the timer of that name.
    pub fn expire(&mut self, timer: Timer) {
        let key =
            *self.timers.keys().find(|key| key.timer == timer).unwrap_or_else(|| panic!("{timer:?} runs"));
        self.now = self.timers.remove(&key).unwrap();
        self.ladder.push(format!("      {timer:?}"));
        self.input(Input::Timer(key));
    }

    pub fn running(&self) -> Vec<Timer> {
        self.timers.keys().map(|key| key.timer).collect()
    }

    /// An NF sends a request.
    pub fn request(&mut self, request: impl Into<Request>) -> Reply {
        let request = request.into();
        self.ladder.push(format!("nf   -> {:?}", request.operation()));
        self.input(Input::Request { reply: PendingReply::owed_to(self.caller), request });
        self.answers.pop().expect("the AMF answers at once")
    }

    /// A gNB sends a PDU.
    pub fn ngap(&mut self, gnb: GnbHandle, name: &str, pdu: Result<Vec<u8>, pith_ngap::EncodeError>) {
        let pdu = pdu.expect("a gNB sends what can be encoded");
        self.ladder.push(format!("gnb{} -> {name}", gnb.0));
        self.input(Input::N2(N2Input::Pdu { gnb, binding: self.arrival, pdu: pdu.into() }));
    }

    pub fn next(&mut self) -> Message {
        self.downlinks.pop_front().expect("the AMF sent something").1
    }

    pub fn take_ladder(&mut self) -> String {
        std::mem::take(&mut self.ladder).join("\n")
    }

    /// No state is left: the AMF is as before the first UE.
    pub fn assert_empty(&self) {
        let audit = self.amf.audit();
        assert_eq!(audit, Audit { gnbs: audit.gnbs, retained: audit.retained, ..Audit::default() });
        assert_eq!(self.running(), []);
    }
}

pub fn confirmation(right: bool) -> ConfirmationDataResponse {
    confirmation_of(&supi(), right)
}

fn confirmation_of(found: &Supi, right: bool) -> ConfirmationDataResponse {
    if !right {
        return ConfirmationDataResponse::new(AuthResult::AuthenticationFailure);
    }
    let mut response = ConfirmationDataResponse::new(AuthResult::AuthenticationSuccess);
    response.supi = Some(found.clone());
    response.kseaf = Some(K_SEAF.into());
    response
}

pub fn supi() -> Supi {
    "imsi-999700000000001".parse().unwrap()
}

/// A subscription to slices of those SSTs, the first as default, each with `internet`.
pub fn subscription(ssts: &[u8]) -> SubscriptionDataSets {
    let slices: Vec<_> = ssts.iter().map(|sst| Snssai::of_sst(*sst)).collect();
    let mut nssai = SubscribedNssai::new(vec![slices[0]]);
    nssai.single_nssais = slices[1..].to_vec();
    let ambr = Ambr { uplink: BitRate::mbps(1000), downlink: BitRate::mbps(1000) };
    let am_data = AccessAndMobilitySubscriptionData {
        subscribed_ue_ambr: Some(ambr),
        nssai: Some(nssai),
        ..Default::default()
    };
    let info =
        |slice: &Snssai| (Arc::from(slice.to_string()), SnssaiInfo::new(vec![DnnInfo::new("internet")]));
    let smf_sel_data = SmfSelectionSubscriptionData {
        subscribed_snssai_infos: slices.iter().map(info).collect(),
        ..Default::default()
    };
    SubscriptionDataSets { am_data: Some(am_data), smf_sel_data: Some(smf_sel_data), ..Default::default() }
}

fn updated(body: &pith_sbi::nsmf_pdusession::SmContextUpdateData) -> Response {
    use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdatedData, UpCnxState};
    match body.up_cnx_state {
        Some(UpCnxState::Activating) => Response::SmContextUpdated(Box::new(SmContextUpdatedData {
            n2_sm_info: Some(b"setup".to_vec().into()),
            n2_sm_info_type: Some(N2SmInfoType::PduResSetupReq),
            up_cnx_state: Some(UpCnxState::Activating),
            ..Default::default()
        })),
        _ => Response::NoContent,
    }
}

pub fn problem(cause: pith_sbi::Cause) -> Option<Reply> {
    Some(Err(Problem::new(cause).into()))
}

/// A UE, and its ids at the gNB.
pub struct Phone {
    pub gnb: GnbHandle,
    pub ran_id: RanUeNgapId,
    pub amf_id: Option<AmfUeNgapId>,
    pub guti: Option<FiveGGuti>,
    pub ng_ksi: NgKsi,
    pub security: Option<NasSecurity>,
    pub capability: UeSecurityCapability,
    pub supi: Supi,
    /// The cell from which it connects.
    pub location: UserLocation,
}

impl Default for Phone {
    fn default() -> Self {
        Self {
            gnb: GNB,
            ran_id: RanUeNgapId(1),
            amf_id: None,
            guti: None,
            ng_ksi: NgKsi::NoKey,
            security: None,
            capability: UeSecurityCapability::of_5gs(0xe0, 0xe0),
            supi: supi(),
            location: location(),
        }
    }
}

pub fn location() -> UserLocation {
    UserLocation { cell_plmn: tai().plmn_id, cell: NrCellIdentity::new(16), tai: tai() }
}

impl Phone {
    pub fn suci() -> MobileIdentity {
        MobileIdentity::Suci("suci-0-999-70-0-0-0-0000000001".parse().unwrap())
    }

    /// The identity that it sends: its 5G-GUTI if it has one.
    pub fn shown(&self) -> MobileIdentity {
        self.guti.map_or_else(Self::suci, MobileIdentity::FiveGGuti)
    }

    pub fn registration_request(&self, kind: RegistrationKind) -> gmm::RegistrationRequest {
        let kind = RegistrationType { follow_on_request: false, kind };
        let mut request = gmm::RegistrationRequest::new(kind, self.ng_ksi, self.shown());
        request.ue_security_capability = Some(self.capability);
        request
    }

    pub fn service_request(&self, service_type: ServiceType) -> gmm::ServiceRequest {
        let s_tmsi = MobileIdentity::FiveGSTmsi(self.guti.unwrap().s_tmsi());
        gmm::ServiceRequest::new(self.ng_ksi, service_type, s_tmsi)
    }

    pub fn deregistration_request(&self, switch_off: bool) -> gmm::DeregistrationRequestUeOriginating {
        let kind =
            DeregistrationType { switch_off, re_registration_required: false, access: AccessType::ThreeGpp };
        gmm::DeregistrationRequestUeOriginating::new(kind, self.ng_ksi, self.shown())
    }

    /// An initial message: integrity protected if the UE has a key.
    pub fn initial_nas(&mut self, message: impl Into<GmmMessage>) -> Vec<u8> {
        self.protect(SecurityHeaderType::IntegrityProtected, message)
    }

    /// A later message: also ciphered.
    pub fn nas(&mut self, message: impl Into<GmmMessage>) -> Vec<u8> {
        self.protect(SecurityHeaderType::IntegrityProtectedAndCiphered, message)
    }

    pub fn protect(&mut self, header: SecurityHeaderType, message: impl Into<GmmMessage>) -> Vec<u8> {
        let plain = message.into().encode();
        match &mut self.security {
            Some(security) => security.protect(header, &plain).unwrap(),
            None => plain,
        }
    }

    /// Opens a connection with an INITIAL UE MESSAGE.
    pub fn connect(&mut self, world: &mut World, nas_pdu: Vec<u8>) {
        self.ran_id = RanUeNgapId(self.ran_id.0 + 1);
        self.amf_id = None;
        let message = pith_ngap::InitialUeMessage {
            ran_ue_ngap_id: self.ran_id,
            nas_pdu,
            location: self.location,
            establishment_cause: None,
            s_tmsi: self.guti.map(|guti| guti.s_tmsi()),
            amf_set_id: None,
            ue_context_request: Some(()),
            allowed_nssai: None,
            reroute: None,
        };
        world.ngap(self.gnb, "InitialUeMessage", message.encode());
    }

    /// Sends a NAS message over the connection.
    pub fn send(&mut self, world: &mut World, message: impl Into<GmmMessage>) {
        let nas_pdu = self.nas(message);
        self.send_pdu(world, nas_pdu);
    }

    pub fn send_pdu(&mut self, world: &mut World, nas_pdu: Vec<u8>) {
        let message = pith_ngap::UplinkNasTransport {
            amf_ue_ngap_id: self.amf_id.unwrap(),
            ran_ue_ngap_id: self.ran_id,
            nas_pdu,
            location: None,
        };
        world.ngap(self.gnb, "UplinkNasTransport", message.encode());
    }

    /// Decodes the next NAS message from its gNB.
    pub fn receive(&mut self, world: &mut World) -> GmmMessage {
        let for_it = |(gnb, message): &(GnbHandle, Message)| {
            *gnb == self.gnb
                && !matches!(message, Message::UeContextReleaseCommand(_) | Message::Paging(_))
                && !matches!(message, Message::UeContextModificationRequest(_))
                && !matches!(message, Message::PduSessionResourceReleaseCommand(it) if it.nas_pdu.is_none())
        };
        let at = world.downlinks.iter().position(for_it).expect("the AMF sent something");
        let (_, message) = world.downlinks.remove(at).unwrap();
        let pdu = self.nas_pdu(message).expect("a NAS message came");
        self.open(&pdu)
    }

    /// The NAS message of a downlink PDU; stores the AMF-UE-NGAP-ID.
    pub fn nas_pdu(&mut self, message: Message) -> Option<Vec<u8>> {
        match message {
            Message::DownlinkNasTransport(message) => {
                self.amf_id = Some(message.amf_ue_ngap_id);
                Some(message.nas_pdu)
            }
            Message::InitialContextSetupRequest(message) => {
                self.amf_id = Some(message.amf_ue_ngap_id);
                message.nas_pdu.or_else(|| message.sessions?.pop()?.nas_pdu)
            }
            Message::PduSessionResourceSetupRequest(mut message) => {
                message.nas_pdu.or_else(|| message.sessions.pop()?.nas_pdu)
            }
            Message::PduSessionResourceReleaseCommand(message) => message.nas_pdu,
            other => panic!("no NAS in {}", other.name()),
        }
    }

    pub fn open(&mut self, pdu: &[u8]) -> GmmMessage {
        let plain = match (&mut self.security, pdu[1] & 0xf) {
            (_, 0) => pdu.to_vec(),
            (Some(security), 1 | 2) => security.unprotect(pdu).expect("the AMF's MAC is right").plain,
            _ => self.take_context(pdu),
        };
        GmmMessage::decode(&plain).unwrap()
    }

    /// SECURITY MODE COMMAND: derives the keys, and verifies the message with them.
    fn take_context(&mut self, pdu: &[u8]) -> Vec<u8> {
        let Ok(GmmMessage::SecurityModeCommand(command)) = GmmMessage::decode(&pdu[7..]) else {
            panic!("only SECURITY MODE COMMAND brings a new context");
        };
        assert_eq!(command.replayed_ue_security_capability, self.capability);
        let algorithms = Algorithms {
            integrity: command.algorithms.integrity.try_into().unwrap(),
            ciphering: command.algorithms.ciphering.try_into().unwrap(),
        };
        let information = command.additional_security_information.unwrap_or_default();
        let mut security = if information.horizontal_derivation {
            self.derived(algorithms)
        } else {
            security_of(&self.supi, algorithms)
        };
        let plain = security.unprotect(pdu).expect("the AMF has the key").plain;
        self.security = Some(security);
        self.ng_ksi = command.ng_ksi;
        plain
    }

    /// The context after the horizontal derivation of K_AMF, with the COUNT of its last message.
    fn derived(&self, algorithms: Algorithms) -> NasSecurity {
        let next = self.security.as_ref().and_then(NasSecurity::next_to_send).unwrap();
        let k_amf = kdf::k_amf_prime(&k_amf_of(&self.supi), Direction::Uplink, next.value() - 1);
        security_with(&k_amf, algorithms)
    }

    /// Answers SECURITY MODE COMMAND with the complete registration request.
    pub fn security_mode_complete(&mut self, request: gmm::RegistrationRequest) -> Vec<u8> {
        let mut complete = gmm::SecurityModeComplete::new();
        complete.imeisv = Some(MobileIdentity::Imeisv("imeisv-4370816125816151".parse().unwrap()));
        complete.nas_message_container = Some(GmmMessage::from(request).encode());
        self.protect(SecurityHeaderType::IntegrityProtectedAndCipheredWithNewContext, complete)
    }

    pub fn authentication_response() -> gmm::AuthenticationResponse {
        let mut response = gmm::AuthenticationResponse::new();
        response.res_star = Some(RES_STAR);
        response
    }

    /// Continues a registration from the challenge; returns REGISTRATION ACCEPT.
    pub fn authenticate(
        &mut self,
        world: &mut World,
        request: gmm::RegistrationRequest,
    ) -> Box<gmm::RegistrationAccept> {
        self.secure(world, request);
        self.accepted(world)
    }

    /// Continues a registration from the challenge to SECURITY MODE COMPLETE.
    pub fn secure(&mut self, world: &mut World, request: gmm::RegistrationRequest) {
        let GmmMessage::AuthenticationRequest(_) = self.receive(world) else {
            panic!("a challenge comes first")
        };
        self.send(world, Self::authentication_response());
        let GmmMessage::SecurityModeCommand(_) = self.receive(world) else { panic!("then keys") };
        let complete = self.security_mode_complete(request);
        self.send_pdu(world, complete);
    }

    /// Decodes REGISTRATION ACCEPT and stores the 5G-GUTI.
    pub fn accepted(&mut self, world: &mut World) -> Box<gmm::RegistrationAccept> {
        let GmmMessage::RegistrationAccept(accept) = self.receive(world) else { panic!("then the answer") };
        if let Some(MobileIdentity::FiveGGuti(guti)) = accept.guti {
            self.guti = Some(guti);
        }
        accept
    }

    /// Decodes CONFIGURATION UPDATE COMMAND and stores the 5G-GUTI.
    pub fn take_guti(&mut self, world: &mut World) -> Box<gmm::ConfigurationUpdateCommand> {
        let GmmMessage::ConfigurationUpdateCommand(command) = self.receive(world) else {
            panic!("a command")
        };
        let Some(MobileIdentity::FiveGGuti(guti)) = command.guti else { panic!("with a 5G-GUTI") };
        self.guti = Some(guti);
        command
    }

    pub fn context_setup_response(&self, world: &mut World, sessions: &[u8]) {
        let message = pith_ngap::InitialContextSetupResponse {
            amf_ue_ngap_id: self.amf_id.unwrap(),
            ran_ue_ngap_id: self.ran_id,
            setup: (!sessions.is_empty()).then(|| transfers(sessions)),
            failed: None,
            diagnostics: None,
        };
        world.ngap(self.gnb, "InitialContextSetupResponse", message.encode());
    }

    /// Registers initially, from power-on to the end.
    pub fn register(&mut self, world: &mut World) {
        let request = self.registration_request(RegistrationKind::Initial);
        let nas = self.initial_nas(request.clone());
        self.connect(world, nas);
        self.authenticate(world, request);
        self.context_setup_response(world, &[]);
        self.send(world, gmm::RegistrationComplete::new());
    }

    /// Establishes a session, from the request to the gNB's answer.
    pub fn establish(&mut self, world: &mut World, id: u8) {
        self.send(world, establishment(id));
        let reply = world.request(transfer(id, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup"))));
        assert!(reply.is_ok(), "{reply:?}");
        let GmmMessage::DlNasTransport(_) = self.receive(world) else { panic!("the SMF's accept comes") };
        self.session_setup_response(world, id);
    }

    /// The gNB has set up a session.
    pub fn session_setup_response(&self, world: &mut World, id: u8) {
        let message = pith_ngap::PduSessionResourceSetupResponse {
            amf_ue_ngap_id: self.amf_id.unwrap(),
            ran_ue_ngap_id: self.ran_id,
            setup: Some(transfers(&[id])),
            failed: None,
            diagnostics: None,
        };
        world.ngap(self.gnb, "PduSessionResourceSetupResponse", message.encode());
    }

    /// The gNB releases the UE's context, and the AMF the connection.
    pub fn release(&mut self, world: &mut World) {
        let cause = pith_ngap::Cause::RadioNetwork(pith_ngap::CauseRadioNetwork::user_inactivity);
        let message = pith_ngap::UeContextReleaseRequest {
            amf_ue_ngap_id: self.amf_id.unwrap(),
            ran_ue_ngap_id: self.ran_id,
            sessions: None,
            cause: Some(cause),
        };
        world.ngap(self.gnb, "UeContextReleaseRequest", message.encode());
        self.released(world);
    }

    /// The AMF requests the release of the connection, and the gNB confirms.
    pub fn released(&mut self, world: &mut World) -> pith_ngap::Cause {
        let is_release = |(gnb, message): &(GnbHandle, Message)| {
            *gnb == self.gnb && matches!(message, Message::UeContextReleaseCommand(_))
        };
        let at = world.downlinks.iter().position(is_release).expect("the AMF releases the connection");
        let Some((_, Message::UeContextReleaseCommand(command))) = world.downlinks.remove(at) else {
            panic!()
        };
        let pith_ngap::UeNgapIds::Pair(amf_ue_ngap_id, ran_ue_ngap_id) = command.ids else {
            panic!("both ids")
        };
        let message = pith_ngap::UeContextReleaseComplete {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            location: None,
            sessions: None,
            diagnostics: None,
        };
        world.ngap(self.gnb, "UeContextReleaseComplete", message.encode());
        command.cause
    }
}

pub use pith_sbi::namf_communication::NgapIeType as NgapIe;

/// The UE's security context of that subscriber.
pub fn security_of(supi: &Supi, algorithms: Algorithms) -> NasSecurity {
    security_with(&k_amf_of(supi), algorithms)
}

/// K_AMF of that subscriber.
pub fn k_amf_of(supi: &Supi) -> KAmf {
    kdf::k_amf(&KSeaf::new(K_SEAF), supi.imsi(), &[0, 0])
}

/// The UE's security context with that K_AMF, whose COUNTs begin.
pub fn security_with(k_amf: &KAmf, algorithms: Algorithms) -> NasSecurity {
    NasSecurity::new(
        Role::Ue,
        Connection::ThreeGpp,
        algorithms,
        kdf::k_nas_int(k_amf, algorithms.integrity),
        kdf::k_nas_enc(k_amf, algorithms.ciphering),
    )
}

pub fn transfers(sessions: &[u8]) -> Vec<pith_ngap::SessionTransfer> {
    let item = |id: &u8| pith_ngap::SessionTransfer { pdu_session_id: *id, transfer: b"done".to_vec() };
    sessions.iter().map(item).collect()
}

/// UL NAS TRANSPORT with a request for a session.
pub fn establishment(id: u8) -> gmm::UlNasTransport {
    let mut transport =
        gmm::UlNasTransport::new(PayloadContainerType::N1SmInformation, b"establish".to_vec());
    transport.pdu_session_id = Some(id);
    transport.request_type = Some(RequestType::InitialRequest);
    transport
}

/// A message of an SMF.
pub fn transfer(
    id: u8,
    n1: Option<&[u8]>,
    n2: Option<(NgapIe, &[u8])>,
) -> pith_sbi::namf_communication::N1N2MessageTransfer {
    use pith_sbi::namf_communication as namf;
    let mut body = namf::N1N2MessageTransferReqData { pdu_session_id: Some(id), ..Default::default() };
    body.n1_message_container =
        n1.map(|n1| namf::N1MessageContainer::new(namf::N1MessageClass::Sm, n1.to_vec()));
    body.n2_info_container = n2.map(|(kind, data)| {
        let mut content = namf::N2InfoContent::new(data.to_vec());
        content.ngap_ie_type = Some(kind);
        let mut information = namf::N2SmInformation::new(id);
        information.n2_info_content = Some(content);
        let mut container = namf::N2InfoContainer::new(namf::N2InformationClass::Sm);
        container.sm_info = Some(information);
        container
    });
    body.n1n2_failure_txf_notif_uri = Some(Uri::new(&peer("smf"), "/nsmf-callback/v1/n1n2-failure/5"));
    namf::N1N2MessageTransfer { ue_context_id: supi().into(), body }
}
