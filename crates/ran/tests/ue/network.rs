//! A scripted network: it sends what a test requests, with the protection that the test chooses.

use pith_crypto::Algorithm;
use pith_crypto::aka;
use pith_crypto::kdf;
use pith_crypto::keys::{KAmf, ManagementField, Rand};
use pith_crypto::milenage::Milenage;
use pith_crypto::nas::{CipheringAlgorithm, IntegrityAlgorithm};
use pith_crypto::sqn::{Sqn, UsimSequence};
use pith_nas::gmm::*;
use pith_nas::gsm::*;
use pith_nas::ie::*;
use pith_nas::security::{Algorithms, Connection, NasSecurity, Role};
use pith_nas::{GmmMessage, GsmMessage, SecurityHeaderType};
use pith_ran::ue::{
    Concealment, Event, Input, Output, RequestedReachability, Service, SessionRequest, Settings,
    Subscription, Ue,
};
use pith_ran::{Instant, Violation};
use pith_types::{Ambr, BitRate, Plmn, Snssai, Tac, Tai};
use std::sync::Arc;
use std::time::Duration;

pub const SNN: &str = "5G:mnc070.mcc999.3gppnetwork.org";
pub const IMSI: &str = "999700000000001";
const K: &str = "465B5CE8B199B49FAA5F0A2EE238A6BC";
const OPC: &str = "E8ED289DEBA952E4283B54E88E6183CA";
const RESET: Sqn = Sqn::new(0);

pub fn plmn() -> Plmn {
    "999/70".parse().unwrap()
}

pub fn tai() -> Tai {
    Tai { plmn_id: plmn(), tac: Tac::new(1) }
}

pub fn algorithm() -> Algorithm {
    Algorithm::Milenage(Milenage::new(&K.parse().unwrap(), &OPC.parse().unwrap()))
}

pub fn subscription() -> Subscription {
    Subscription {
        supi: format!("imsi-{IMSI}").parse().unwrap(),
        home: plmn(),
        routing_indicator: "0".into(),
        concealment: Concealment::Null,
        algorithm: algorithm().into(),
        sequence: UsimSequence::starting_at(RESET),
        seed: [7; 32],
    }
}

pub fn capability() -> UeSecurityCapability {
    UeSecurityCapability::of_5gs_and_eps(0xe0, 0x60, 0xe0, 0x60)
}

pub fn guti() -> MobileIdentity {
    MobileIdentity::FiveGGuti("5g-guti-9997002004000000001".parse().unwrap())
}

pub fn second_guti() -> MobileIdentity {
    MobileIdentity::FiveGGuti("5g-guti-9997002004000000002".parse().unwrap())
}

/// A UE and its network.
pub struct Pair {
    pub ue: Ue,
    pub now: Instant,
    /// Messages of the UE that the test has not read yet.
    pub sent: Vec<Vec<u8>>,
    pub connections: usize,
    pub released: usize,
    pub events: Vec<Event>,
    pub violations: Vec<Violation>,
    pub security: Option<NasSecurity>,
    sqn: Sqn,
    pub k_amf: Option<KAmf>,
}

impl Pair {
    pub fn new() -> Self {
        Self::with(subscription())
    }

    pub fn with(subscription: Subscription) -> Self {
        Self::of(subscription, Service::Normal, RequestedReachability::default())
    }

    /// A UE that uses that service.
    pub fn of_service(service: Service) -> Self {
        Self::of(subscription(), service, RequestedReachability::default())
    }

    /// A UE that requests these parameters.
    pub fn requesting(reachability: RequestedReachability) -> Self {
        Self::of(subscription(), Service::Normal, reachability)
    }

    fn of(subscription: Subscription, service: Service, reachability: RequestedReachability) -> Self {
        let settings = Settings {
            plmn: plmn(),
            security_capability: capability(),
            requested_nssai: vec![Snssai::of_sst(1)],
            service,
            reachability,
            follow_on_request: true,
        };
        let imeisv = "imeisv-4901542032375101".parse().unwrap();
        Self {
            ue: Ue::new(Arc::new(settings), subscription, imeisv, tai()),
            now: Instant::START,
            sent: Vec::new(),
            connections: 0,
            released: 0,
            events: Vec::new(),
            violations: Vec::new(),
            security: None,
            sqn: Sqn::new(0x20).next(),
            k_amf: None,
        }
    }

    pub fn input(&mut self, input: Input<'_>) {
        let mut out = Vec::new();
        self.ue.handle(self.now, input, &mut out);
        for output in out {
            match output {
                Output::Connect { nas, .. } => {
                    self.connections += 1;
                    self.sent.push(nas);
                }
                Output::Send(nas) => self.sent.push(nas),
                Output::Release => self.released += 1,
                Output::Event(event) => self.events.push(event),
                Output::Violation(violation) => self.violations.push(violation),
            }
        }
    }

    pub fn advance(&mut self, duration: Duration) {
        self.now = self.now + duration;
        self.input(Input::Timeout);
    }

    /// The one message that the UE sent, in octets.
    pub fn octets(&mut self) -> Vec<u8> {
        assert_eq!(self.sent.len(), 1, "one message is there: {:02x?}", self.sent);
        self.sent.pop().unwrap()
    }

    pub fn plain(&mut self) -> GmmMessage {
        GmmMessage::decode(&self.octets()).unwrap()
    }

    /// The message that the UE sent, its protection verified by the core's code.
    pub fn protected(&mut self) -> (SecurityHeaderType, GmmMessage) {
        let octets = self.octets();
        let opened = self.security.as_mut().unwrap().unprotect(&octets).expect("the UE's MAC is right");
        (opened.header, GmmMessage::decode(&opened.plain).unwrap())
    }

    pub fn ciphered(&mut self) -> GmmMessage {
        let (header, message) = self.protected();
        assert_eq!(header, SecurityHeaderType::IntegrityProtectedAndCiphered);
        message
    }

    pub fn session_message(&mut self) -> GsmMessage {
        let GmmMessage::UlNasTransport(transport) = self.ciphered() else { panic!("UL NAS TRANSPORT") };
        GsmMessage::decode(&transport.payload_container).unwrap()
    }

    pub fn give(&mut self, octets: &[u8]) {
        self.input(Input::Nas(octets));
    }

    pub fn give_plain(&mut self, message: impl Into<GmmMessage>) {
        self.give(&message.into().encode());
    }

    pub fn protect(&mut self, header: SecurityHeaderType, message: impl Into<GmmMessage>) -> Vec<u8> {
        self.security.as_mut().unwrap().protect(header, &message.into().encode()).unwrap()
    }

    pub fn give_ciphered(&mut self, message: impl Into<GmmMessage>) {
        let octets = self.protect(SecurityHeaderType::IntegrityProtectedAndCiphered, message);
        self.give(&octets);
    }

    pub fn give_session(&mut self, message: &GsmMessage) {
        let kind = PayloadContainerType::N1SmInformation;
        let mut transport = DlNasTransport::new(kind, message.encode());
        transport.pdu_session_id = Some(message.pdu_session_id);
        self.give_ciphered(transport);
    }

    /// A challenge with the next sequence number; derives its K_AMF.
    pub fn challenge(&mut self, ng_ksi: NgKsi) -> AuthenticationRequest {
        let sqn = self.sqn;
        self.sqn = sqn.next();
        self.challenge_of(ng_ksi, sqn, "8000".parse().unwrap())
    }

    pub fn challenge_of(&mut self, ng_ksi: NgKsi, sqn: Sqn, field: ManagementField) -> AuthenticationRequest {
        let rand = Rand::new([u64::from(sqn) as u8; 16]);
        let vector = aka::generate(&algorithm(), rand, sqn, field);
        let k_ausf = kdf::five_g_he_av(&vector, SNN).k_ausf;
        self.k_amf = Some(kdf::k_amf(&kdf::k_seaf(&k_ausf, SNN), IMSI, &kdf::ABBA));
        let mut request = AuthenticationRequest::new(ng_ksi, kdf::ABBA.to_vec());
        request.rand = Some(*vector.rand.as_bytes());
        request.autn = Some(*vector.autn.as_bytes());
        request
    }

    /// A new security context of the network, from the last K_AMF.
    pub fn new_context(&mut self) {
        let (integrity, ciphering) = (IntegrityAlgorithm::Nia2, CipheringAlgorithm::Nea2);
        let k_amf = self.k_amf.as_ref().unwrap();
        let k_nas_int = kdf::k_nas_int(k_amf, integrity);
        let k_nas_enc = kdf::k_nas_enc(k_amf, ciphering);
        let algorithms = Algorithms { integrity, ciphering };
        self.security =
            Some(NasSecurity::new(Role::Network, Connection::ThreeGpp, algorithms, k_nas_int, k_nas_enc));
    }

    /// A new security context of the network, with null algorithms.
    pub fn null_context(&mut self) {
        let (integrity, ciphering) = (IntegrityAlgorithm::Nia0, CipheringAlgorithm::Nea0);
        let k_amf = KAmf::new([9; 32]);
        let k_nas_int = kdf::k_nas_int(&k_amf, integrity);
        let k_nas_enc = kdf::k_nas_enc(&k_amf, ciphering);
        let algorithms = Algorithms { integrity, ciphering };
        self.security =
            Some(NasSecurity::new(Role::Network, Connection::ThreeGpp, algorithms, k_nas_int, k_nas_enc));
    }

    pub fn give_security_mode_command(&mut self, command: SecurityModeCommand) {
        let header = SecurityHeaderType::IntegrityProtectedWithNewContext;
        let octets = self.protect(header, command);
        self.give(&octets);
    }

    /// REGISTRATION REQUEST, authentication and security mode control; returns the request in the container.
    pub fn secure(&mut self) -> RegistrationRequest {
        self.input(Input::Register);
        self.sent.clear();
        let challenge = self.challenge(NgKsi::Native(0));
        self.give_plain(challenge);
        let GmmMessage::AuthenticationResponse(_) = self.plain() else { panic!("AUTHENTICATION RESPONSE") };
        self.new_context();
        self.give_security_mode_command(security_mode_command());
        let (_, message) = self.protected();
        let GmmMessage::SecurityModeComplete(complete) = message else { panic!("SECURITY MODE COMPLETE") };
        let container = complete.nas_message_container.expect("the whole REGISTRATION REQUEST");
        let GmmMessage::RegistrationRequest(request) = GmmMessage::decode(&container).unwrap() else {
            panic!("REGISTRATION REQUEST")
        };
        *request
    }

    /// A complete registration.
    pub fn register(&mut self) {
        self.secure();
        self.give_ciphered(registration_accept());
        let GmmMessage::RegistrationComplete(_) = self.ciphered() else { panic!("REGISTRATION COMPLETE") };
        self.assert_clean();
    }

    /// Establishes a session.
    pub fn establish(&mut self, id: u8) {
        self.input(Input::EstablishSession(session_request(id)));
        let pti = self.session_message().pti;
        self.give_session(&GsmMessage::new(id, pti, establishment_accept()));
        self.assert_clean();
    }

    pub fn release_connection(&mut self) {
        self.input(Input::ConnectionReleased);
    }

    pub fn assert_clean(&self) {
        assert_eq!(self.violations, []);
    }

    /// The clause of the one violation.
    pub fn violation(&mut self) -> &'static str {
        assert_eq!(self.violations.len(), 1, "{:?}", self.violations);
        self.violations.pop().unwrap().clause
    }
}

pub fn security_mode_command() -> SecurityModeCommand {
    let algorithms = NasSecurityAlgorithms { ciphering: 2, integrity: 2 };
    let mut command = SecurityModeCommand::new(algorithms, NgKsi::Native(0), capability());
    command.imeisv_request = Some(ImeisvRequest::Requested);
    command
}

pub fn registration_accept() -> RegistrationAccept {
    let mut accept = RegistrationAccept::new(RegistrationResult::THREE_GPP);
    accept.guti = Some(guti());
    accept.tai_list = Some(TaiList::of(&[tai()]));
    accept.allowed_nssai = Some(Nssai(vec![Snssai::of_sst(1).into()]));
    accept.t3512 = Some(GprsTimer3::at_least(Duration::from_secs(3240)));
    accept
}

pub fn session_request(id: u8) -> SessionRequest {
    SessionRequest {
        id,
        dnn: Some("internet".parse().unwrap()),
        snssai: Some(Snssai::of_sst(1)),
        session_type: PduSessionType::Ipv4,
        reflective_qos: false,
        is_emergency: false,
    }
}

pub fn establishment_accept() -> PduSessionEstablishmentAccept {
    let rules = QosRules(vec![QosRule::match_all(1, 9)]);
    let ambr = Ambr { uplink: BitRate::mbps(50), downlink: BitRate::mbps(100) };
    let mut accept = PduSessionEstablishmentAccept::new(PduSessionType::Ipv4, SscMode::Mode1, rules, ambr);
    accept.pdu_address = Some(std::net::Ipv4Addr::new(10, 45, 0, 2).into());
    accept.snssai = Some(Snssai::of_sst(1).into());
    accept.dnn = Some("internet".parse().unwrap());
    accept.qos_flow_descriptions = Some(QosFlowDescriptions(vec![QosFlowDescription::non_gbr(9, 9)]));
    accept
}
