//! A minimal core: it serves every UE, checks only what it needs, and can inject one fault.

use crate::mobility::{Chain, Relocation};
use crate::network;
use pith_crypto::aka;
use pith_crypto::kdf::{self, AccessType};
use pith_crypto::keys::{KAmf, Rand};
use pith_crypto::nas::{CipheringAlgorithm, IntegrityAlgorithm};
use pith_crypto::sqn::Sqn;
use pith_nas::gmm::*;
use pith_nas::gsm::*;
use pith_nas::ie::*;
use pith_nas::security::{Algorithms, Connection, NasSecurity, Role};
use pith_nas::{GmmMessage, GsmBody, GsmCause, GsmMessage, SecurityHeaderType, peek};
use pith_ngap::transfer::*;
use pith_ngap::*;
use pith_pfcp::gtpu::{DlPduSessionInformation, GpduHeader, Packet};
use pith_types::{Ambr, AmfUeNgapId, BitRate, FiveGGuti, FiveGTmsi, Guami, RanUeNgapId, Snssai, Teid};
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};

/// A fault to inject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Answer no UE.
    Silent,
    /// Release a UE that deregisters, without DEREGISTRATION ACCEPT.
    ReleaseWithoutAccept,
    /// Forward no packet.
    DropEcho,
    /// Send no Router Advertisement.
    NoRouter,
    /// Delegate no prefix.
    NoPrefix,
    /// Advertise a prefix whose hosts are on the link.
    OnLink,
    /// Omit the PDU Session Container.
    NoContainer,
    /// Use another QFI.
    WrongQfi,
    /// Send to another UE's address.
    WrongUe,
    /// Send no End Marker.
    NoEndMarker,
    /// Send the NCC of an earlier NH, with another NH.
    RepeatNextHop,
    /// Change the PDCP counts of the source gNB.
    ChangeCounts,
    /// Send a NAS container with a wrong MAC.
    WrongNasContainer,
    /// Refuse handovers.
    RefuseHandover,
    /// Page no UE.
    LosePages,
}

/// A UE in the core, by its IMSI.
#[derive(Default)]
pub struct Subscriber {
    sqn: Sqn,
    k_amf: Option<KAmf>,
    security: Option<NasSecurity>,
    has_session: bool,
    pub chain: Option<Chain>,
}

/// A core.
#[derive(Default)]
pub struct Core {
    pub fault: Option<Fault>,
    /// The algorithms of NAS change with each N2 handover.
    pub changes_algorithms: bool,
    pub subscribers: HashMap<String, Subscriber>,
    /// The IMSI of each connection.
    pub connections: HashMap<(usize, RanUeNgapId), String>,
    /// The gNB's TEID of the tunnel with that UPF TEID.
    pub downlink: HashMap<Teid, Teid>,
    /// N2 handovers in progress, by IMSI.
    pub relocations: HashMap<String, Relocation>,
    /// What the target gNB has prepared: its id of the UE, and the tunnel.
    pub prepared: HashMap<String, (RanUeNgapId, Teid)>,
    /// The packet for each UE that is paged.
    pub buffered: HashMap<String, Vec<u8>>,
    /// PDUs to other gNBs than the sender of the last one.
    pub elsewhere: Vec<(usize, Vec<u8>)>,
    /// Datagrams to gNBs that do not answer one.
    pub datagrams: Vec<Vec<u8>>,
    /// The flow of downlink packets with the RQI; `None`: they have none, and are in the default flow.
    pub reflects: Option<u8>,
    /// The QFI of each uplink packet.
    pub uplink_qfis: Vec<u8>,
}

/// The flow with the Reflective QoS Attribute.
pub const REFLECTIVE: u8 = 10;

const UPF: &str = "10.0.0.9";

/// The port of packets that page UEs.
pub const DN_PORT: u16 = 40_001;

/// The number at the end of an IMSI: used as AMF UE NGAP ID, 5G-TMSI, TEID and address.
pub fn number(imsi: &str) -> u32 {
    imsi[5..].parse().unwrap()
}

pub fn guti(imsi: &str) -> FiveGGuti {
    let guami = Guami { plmn_id: network::plmn(), amf_id: "020040".parse().unwrap() };
    FiveGGuti { guami, tmsi: FiveGTmsi(number(imsi)) }
}

pub fn address(imsi: &str) -> Ipv4Addr {
    Ipv4Addr::from(0x0a2d_0000 + number(imsi))
}

pub fn ambr() -> Ambr {
    Ambr { uplink: BitRate::mbps(50), downlink: BitRate::mbps(100) }
}

/// The UE ids of a connection.
#[derive(Clone, Copy)]
pub struct UeIds {
    pub amf: AmfUeNgapId,
    pub ran: RanUeNgapId,
}

/// The IMSI of a UE by its AMF UE NGAP ID, which is its number.
pub fn imsi_of_id(id: AmfUeNgapId) -> String {
    format!("99970{:010}", id.value())
}

impl Core {
    /// Handles a PDU of a gNB, and returns the answers.
    pub fn receive(&mut self, gnb: usize, pdu: &[u8]) -> Vec<Vec<u8>> {
        match Message::decode(pdu).unwrap() {
            Message::NgSetupRequest(_) => vec![ng_setup_response()],
            _ if self.fault == Some(Fault::Silent) => vec![],
            Message::InitialUeMessage(message) => self.begin(gnb, &message),
            Message::UplinkNasTransport(message) => {
                let ids = UeIds { amf: message.amf_ue_ngap_id, ran: message.ran_ue_ngap_id };
                self.uplink(gnb, ids, &message.nas_pdu)
            }
            Message::UeContextReleaseRequest(request) => {
                vec![release_command(UeIds { amf: request.amf_ue_ngap_id, ran: request.ran_ue_ngap_id })]
            }
            Message::InitialContextSetupResponse(response) => {
                self.note_tunnels(gnb, response.ran_ue_ngap_id, response.setup)
            }
            Message::PduSessionResourceSetupResponse(response) => {
                self.note_tunnels(gnb, response.ran_ue_ngap_id, response.setup)
            }
            Message::PathSwitchRequest(request) => self.switch_path(gnb, &request),
            Message::PduSessionResourceModifyIndication(indication) => self.move_flows(indication),
            Message::HandoverRequired(required) => self.prepare(gnb, required),
            Message::HandoverRequestAcknowledge(acknowledge) => self.command(gnb, acknowledge),
            Message::UplinkRanStatusTransfer(transfer) => self.transfer_status(transfer),
            Message::HandoverNotify(notify) => self.complete(&notify),
            Message::HandoverCancel(cancel) => self.cancel(&cancel),
            Message::UeContextReleaseComplete(_) | Message::PduSessionResourceReleaseResponse(_) => vec![],
            other => panic!("{other:?}"),
        }
    }

    fn note_tunnels(
        &mut self,
        gnb: usize,
        ran: RanUeNgapId,
        setup: Option<Vec<SessionTransfer>>,
    ) -> Vec<Vec<u8>> {
        for item in setup.unwrap_or_default() {
            let transfer = SetupResponseTransfer::decode(&item.transfer).unwrap();
            let imsi = &self.connections[&(gnb, ran)];
            self.downlink.insert(Teid(number(imsi)), transfer.downlink.teid);
            if let Some(packet) = self.buffered.remove(imsi) {
                self.datagrams.push(self.gpdu(transfer.downlink.teid, packet));
            }
        }
        vec![]
    }

    /// The initial message of a connection, plain or protected.
    fn begin(&mut self, gnb: usize, message: &InitialUeMessage) -> Vec<Vec<u8>> {
        let nas = &message.nas_pdu;
        let is_plain = matches!(peek(nas), Some(pith_nas::Kind::PlainGmm(_)));
        let plain = if is_plain { &nas[..] } else { &nas[7..] };
        let imsi = match GmmMessage::decode(plain).unwrap() {
            GmmMessage::RegistrationRequest(request) => imsi_of(&request.mobile_identity),
            GmmMessage::ServiceRequest(request) => imsi_of(&request.s_tmsi),
            other => panic!("{other:?}"),
        };
        let amf = AmfUeNgapId::from_wire(number(&imsi).into()).unwrap();
        let ids = UeIds { amf, ran: message.ran_ue_ngap_id };
        self.connections.insert((gnb, ids.ran), imsi.clone());
        let subscriber = self.subscribers.entry(imsi.clone()).or_default();
        if is_plain {
            return vec![downlink(ids, subscriber.challenge(&imsi))];
        }
        let opened = subscriber.security.as_mut().unwrap().unprotect(nas).unwrap();
        let k_gnb = subscriber.k_gnb(opened.count.value());
        let answer = match GmmMessage::decode(&opened.plain).unwrap() {
            GmmMessage::ServiceRequest(request) => subscriber.accept_service(&request, &opened),
            _ => subscriber.accept_registration(&imsi),
        };
        let items = subscriber.has_session.then(|| vec![setup_item(&imsi, None)]);
        vec![initial_context_setup(ids, k_gnb, answer, items)]
    }

    fn uplink(&mut self, gnb: usize, ids: UeIds, nas: &[u8]) -> Vec<Vec<u8>> {
        let imsi = self.connections[&(gnb, ids.ran)].clone();
        let subscriber = self.subscribers.get_mut(&imsi).unwrap();
        if let Ok(GmmMessage::AuthenticationResponse(_)) = GmmMessage::decode(nas) {
            return vec![downlink(ids, subscriber.command_security())];
        }
        let opened = subscriber.security.as_mut().unwrap().unprotect(nas).unwrap();
        match GmmMessage::decode(&opened.plain).unwrap() {
            GmmMessage::SecurityModeComplete(_) => {
                let k_gnb = subscriber.k_gnb(opened.count.value());
                vec![initial_context_setup(ids, k_gnb, subscriber.accept_registration(&imsi), None)]
            }
            GmmMessage::UlNasTransport(transport) => {
                let message = GsmMessage::decode(&transport.payload_container).unwrap();
                subscriber.session(&imsi, ids, &message)
            }
            GmmMessage::DeregistrationRequestUeOriginating(_)
                if self.fault == Some(Fault::ReleaseWithoutAccept) =>
            {
                vec![release_command(ids)]
            }
            GmmMessage::DeregistrationRequestUeOriginating(_) => {
                subscriber.has_session = false;
                let accept = subscriber.cipher(DeregistrationAcceptUeOriginating::new());
                vec![downlink(ids, accept), release_command(ids)]
            }
            GmmMessage::RegistrationComplete(_) => vec![],
            other => panic!("{other:?}"),
        }
    }

    /// The UPF and a data network that answers every echo request.
    pub fn forward(&mut self, to: SocketAddr, datagram: &[u8]) -> Vec<Vec<u8>> {
        assert_eq!(to, format!("{UPF}:2152").parse().unwrap());
        let packet = Packet::decode(datagram).unwrap();
        let Some(downlink) = self.downlink.get(&Teid(packet.teid)) else { return vec![] };
        self.uplink_qfis.extend(packet.pdu_session_information().map(|information| information.qfi()));
        if self.fault == Some(Fault::DropEcho) {
            return vec![];
        }
        let is_v6 = packet.payload[0] >> 4 == 6;
        if is_v6 && packet.payload[40] == 133 && self.fault == Some(Fault::NoRouter) {
            return vec![];
        }
        let flags = if self.fault == Some(Fault::OnLink) { 0xc0 } else { 0x40 };
        let mut reply = if !is_v6 {
            echoed(packet.payload)
        } else if packet.payload[6] == 17 {
            answered_dhcpv6(packet.payload, self.fault != Some(Fault::NoPrefix))
        } else {
            answered_v6(packet.payload, flags)
        };
        if self.fault == Some(Fault::WrongUe) {
            reply[19] ^= 0x40;
        }
        vec![self.gpdu(*downlink, reply)]
    }

    fn gpdu(&self, teid: Teid, packet: Vec<u8>) -> Vec<u8> {
        let qfi = if self.fault == Some(Fault::WrongQfi) { 5 } else { self.reflects.unwrap_or(9) };
        let information = DlPduSessionInformation { qfi, rqi: self.reflects.is_some(), ppi: None };
        let pdu_session = (self.fault != Some(Fault::NoContainer)).then_some(information);
        let header = GpduHeader { teid: teid.0, pdu_session };
        let mut out = vec![0; GpduHeader::MAX_LEN];
        out.extend(packet);
        let start = header.write_before(&mut out, GpduHeader::MAX_LEN).unwrap();
        out.split_off(start)
    }
}

/// A UDP datagram without checksum, which IPv4 permits.
pub fn udp(from: SocketAddrV4, to: SocketAddrV4, data: &[u8]) -> Vec<u8> {
    let length = (28 + data.len()) as u16;
    let mut packet = [&[0x45, 0][..], &length.to_be_bytes(), &[0, 0, 0x40, 0, 64, 17, 0, 0]].concat();
    packet.extend([from.ip().octets(), to.ip().octets()].concat());
    let words: u32 = packet.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (words & 0xffff) + (words >> 16);
    packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    let ports = [from.port().to_be_bytes(), to.port().to_be_bytes(), (length - 20).to_be_bytes(), [0, 0]];
    packet.extend(ports.concat());
    packet.extend(data);
    packet
}

/// The UPF's answer to a Router Solicitation, with these flags of its prefix, or a host's to an ICMPv6 echo request.
fn answered_v6(packet: &[u8], flags: u8) -> Vec<u8> {
    let (source, mut message) = match packet[40] {
        133 => {
            let options = [&[5, 1, 0, 0, 0, 0, 5, 120, 3, 4, 64, flags][..], &[0xff; 8], &[0; 4]].concat();
            let prefix = "2001:db8:45:2::".parse::<Ipv6Addr>().unwrap().octets();
            let message = [&[134, 0, 0, 0, 64, 0, 0xff, 0xff][..], &[0; 8], &options, &prefix].concat();
            ("fe80::1".parse::<Ipv6Addr>().unwrap().octets().to_vec(), message)
        }
        128 => (packet[24..40].to_vec(), [&[129, 0, 0, 0][..], &packet[44..]].concat()),
        other => panic!("ICMPv6 {other}"),
    };
    in_v6(&source, packet, 58, &mut message, 2)
}

/// An answer of `source` to a packet of IPv6, whose checksum is at that place of the message.
fn in_v6(source: &[u8], packet: &[u8], protocol: u8, message: &mut [u8], checksum_at: usize) -> Vec<u8> {
    let addresses = [source, &packet[8..24]].concat();
    let words = |octets: &[u8]| -> u32 {
        octets.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
    };
    let sum = words(&addresses) + message.len() as u32 + u32::from(protocol) + words(message);
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    message[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
    let head = [0x60, 0, 0, 0, 0, message.len() as u8, protocol, 255];
    [&head[..], &addresses, message].concat()
}

/// The UPF's answer to a Solicit or Request of DHCPv6: 2001:db8:45::/56 without the prefix of the link.
fn answered_dhcpv6(packet: &[u8], delegates: bool) -> Vec<u8> {
    let message = &packet[48..];
    let mut options = Vec::new();
    let mut rest = &message[4..];
    while let [0, code, 0, length, after @ ..] = rest {
        let (value, next) = after.split_at((*length).into());
        options.push((*code, value));
        rest = next;
    }
    let value = |code| options.iter().find(|(own, _)| *own == code).map(|(_, value)| *value);
    assert_eq!(value(6), Some(&[0, 67][..]), "it can exclude a prefix");
    let option = |code: u8, value: &[u8]| [&[0, code, 0, value.len() as u8][..], value].concat();
    let (server, prefix) = ([0, 4, 7, 7], "2001:db8:45::".parse::<Ipv6Addr>().unwrap().octets());
    let kind = match (message[0], value(14)) {
        (1, None) => 2,
        (1, Some(&[])) => 7,
        (3, None) => {
            assert_eq!(value(2), Some(&server[..]));
            assert!(value(25).unwrap().ends_with(&[&[56][..], &prefix].concat()), "what was offered");
            7
        }
        other => panic!("{other:?}"),
    };
    let exclusion = option(67, &[64, 2]);
    let lease = option(26, &[&[0xff; 8][..], &[56], &prefix, &exclusion].concat());
    let inner = if delegates { lease } else { option(13, &[0, 6]) };
    let association = [&value(25).unwrap()[..4], &[0xff; 8], &inner].concat();
    let answer = [
        [kind, message[1], message[2], message[3]].to_vec(),
        option(1, value(1).unwrap()),
        option(2, &server),
        option(25, &association),
        if (message[0], kind) == (1, 7) { option(14, &[]) } else { Vec::new() },
    ];
    let answer = answer.concat();
    let mut datagram = [547, 546, 8 + answer.len() as u16, 0].map(u16::to_be_bytes).concat();
    datagram.extend(answer);
    in_v6(&"fe80::1".parse::<Ipv6Addr>().unwrap().octets(), packet, 17, &mut datagram, 6)
}

/// The answer of a host to an ICMP echo request, and of its echo service to a UDP datagram.
fn echoed(packet: &[u8]) -> Vec<u8> {
    let mut reply = packet.to_vec();
    reply[12..20].rotate_left(4);
    match reply[9] {
        1 => {
            assert_eq!(reply[20], 8, "an echo request");
            reply[20] = 0;
            let sum = u16::from_be_bytes([reply[22], reply[23]]);
            reply[22..24].copy_from_slice(&(sum + 0x0800).to_be_bytes());
        }
        17 => reply[20..24].rotate_left(2),
        other => panic!("protocol {other}"),
    }
    reply
}

impl Subscriber {
    fn challenge(&mut self, imsi: &str) -> Vec<u8> {
        self.sqn = self.sqn.next();
        let rand = Rand::new([u64::from(self.sqn) as u8; 16]);
        let vector = aka::generate(&network::algorithm(), rand, self.sqn, "8000".parse().unwrap());
        let k_ausf = kdf::five_g_he_av(&vector, network::SNN).k_ausf;
        self.k_amf = Some(kdf::k_amf(&kdf::k_seaf(&k_ausf, network::SNN), imsi, &kdf::ABBA));
        let mut request = AuthenticationRequest::new(NgKsi::Native(0), kdf::ABBA.to_vec());
        request.rand = Some(*vector.rand.as_bytes());
        request.autn = Some(*vector.autn.as_bytes());
        GmmMessage::from(request).encode()
    }

    fn security(&self, integrity: IntegrityAlgorithm, ciphering: CipheringAlgorithm) -> NasSecurity {
        let k_amf = self.k_amf.as_ref().unwrap();
        let keys = (kdf::k_nas_int(k_amf, integrity), kdf::k_nas_enc(k_amf, ciphering));
        let algorithms = Algorithms { integrity, ciphering };
        NasSecurity::new(Role::Network, Connection::ThreeGpp, algorithms, keys.0, keys.1)
    }

    /// Changes the algorithms, and returns the container for the UE.
    pub fn change_algorithms(&mut self) -> Vec<u8> {
        let former = self.security.take().unwrap();
        let mut security = match former.algorithms().integrity {
            IntegrityAlgorithm::Nia2 => self.security(IntegrityAlgorithm::Nia1, CipheringAlgorithm::Nea1),
            _ => self.security(IntegrityAlgorithm::Nia2, CipheringAlgorithm::Nea2),
        };
        security.resume(former.next_to_send(), former.last_received());
        let container = security.handover_container(network::security_mode_command().ng_ksi).unwrap();
        self.security = Some(security);
        container.octets()
    }

    fn command_security(&mut self) -> Vec<u8> {
        let mut security = self.security(IntegrityAlgorithm::Nia2, CipheringAlgorithm::Nea2);
        let command = GmmMessage::from(network::security_mode_command()).encode();
        let header = SecurityHeaderType::IntegrityProtectedWithNewContext;
        let protected = security.protect(header, &command).unwrap();
        self.security = Some(security);
        protected
    }

    fn k_gnb(&mut self, count: u32) -> [u8; 32] {
        let k_amf = self.k_amf.clone().unwrap();
        let k_gnb = kdf::k_gnb(&k_amf, count, AccessType::ThreeGpp);
        self.chain = Some(Chain::new(k_amf, &k_gnb));
        *k_gnb.as_bytes()
    }

    fn cipher(&mut self, message: impl Into<GmmMessage>) -> Vec<u8> {
        let header = SecurityHeaderType::IntegrityProtectedAndCiphered;
        self.security.as_mut().unwrap().protect(header, &message.into().encode()).unwrap()
    }

    /// The region of the 5G-GUTI changes each time, so that each 5G-GUTI is a new one.
    fn accept_registration(&mut self, imsi: &str) -> Vec<u8> {
        let mut guti = guti(imsi);
        guti.guami.amf_id.region = self.security.as_ref().unwrap().next_to_send().unwrap().sequence_number();
        let mut accept = network::registration_accept();
        accept.guti = Some(MobileIdentity::FiveGGuti(guti));
        self.cipher(accept)
    }

    fn accept_service(
        &mut self,
        request: &ServiceRequest,
        opened: &pith_nas::security::Unprotected,
    ) -> Vec<u8> {
        let mut container = request.nas_message_container.clone().unwrap();
        self.security.as_ref().unwrap().decipher_container(opened.count, &mut container);
        let GmmMessage::ServiceRequest(whole) = GmmMessage::decode(&container).unwrap() else { panic!() };
        let mut accept = ServiceAccept::new();
        accept.pdu_session_status = whole.pdu_session_status;
        accept.reactivation_result = whole.uplink_data_status.map(|_| PduSessionSet::NONE);
        self.cipher(accept)
    }

    fn session(&mut self, imsi: &str, ids: UeIds, message: &GsmMessage) -> Vec<Vec<u8>> {
        let (id, pti) = (message.pdu_session_id, message.pti);
        match &message.body {
            GsmBody::PduSessionEstablishmentRequest(request) => {
                self.has_session = true;
                let mut accept = network::establishment_accept();
                let kind = request.pdu_session_type.unwrap();
                let ipv4 = (kind != PduSessionType::Ipv6).then(|| address(imsi));
                let interface_id =
                    (kind != PduSessionType::Ipv4).then_some([0x20, 1, 0xd, 0xb8, 0, 0x45, 0, 2]);
                accept.pdu_session_type = kind;
                accept.pdu_address = Some(PduAddress { ipv4, interface_id, smf_link_local: None });
                let nas = self.transport(GsmMessage::new(id, pti, accept));
                vec![session_setup(ids, setup_item(imsi, Some(nas)))]
            }
            GsmBody::PduSessionReleaseRequest(_) => {
                self.has_session = false;
                let command = PduSessionReleaseCommand::new(GsmCause::RegularDeactivation);
                let nas = self.transport(GsmMessage::new(id, pti, command));
                vec![session_release(ids, id, nas)]
            }
            GsmBody::PduSessionReleaseComplete(_) => vec![],
            other => panic!("{other:?}"),
        }
    }

    fn transport(&mut self, message: GsmMessage) -> Vec<u8> {
        let mut transport = DlNasTransport::new(PayloadContainerType::N1SmInformation, message.encode());
        transport.pdu_session_id = Some(message.pdu_session_id);
        self.cipher(transport)
    }
}

fn imsi_of(identity: &MobileIdentity) -> String {
    match identity {
        MobileIdentity::Suci(suci) => suci.null_scheme_supi().unwrap().imsi().to_owned(),
        MobileIdentity::FiveGGuti(guti) => format!("99970{:010}", guti.tmsi.0),
        MobileIdentity::FiveGSTmsi(s_tmsi) => format!("99970{:010}", s_tmsi.tmsi.0),
        other => panic!("{other:?}"),
    }
}

fn ng_setup_response() -> Vec<u8> {
    let guami = |region| {
        let mut guami = guti("999700000000000").guami;
        guami.amf_id.region = region;
        guami
    };
    NgSetupResponse {
        amf_name: "amf".into(),
        served_guamis: vec![guami(2)],
        relative_amf_capacity: 255,
        plmn_support: vec![(network::plmn(), vec![Snssai::of_sst(1)])],
        diagnostics: None,
        ue_retention: None,
    }
    .encode()
    .unwrap()
}

fn downlink(ids: UeIds, nas_pdu: Vec<u8>) -> Vec<u8> {
    let UeIds { amf, ran } = ids;
    let message = DownlinkNasTransport {
        amf_ue_ngap_id: amf,
        ran_ue_ngap_id: ran,
        old_amf: None,
        nas_pdu,
        mobility_restrictions: None,
        ue_ambr: None,
        allowed_nssai: None,
    };
    message.encode().unwrap()
}

pub fn release_command(ids: UeIds) -> Vec<u8> {
    let cause = Cause::Nas(CauseNas::normal_release);
    UeContextReleaseCommand { ids: UeNgapIds::Pair(ids.amf, ids.ran), cause }.encode().unwrap()
}

fn initial_context_setup(
    ids: UeIds,
    security_key: [u8; 32],
    nas: Vec<u8>,
    sessions: Option<Vec<SetupItem>>,
) -> Vec<u8> {
    InitialContextSetupRequest {
        amf_ue_ngap_id: ids.amf,
        ran_ue_ngap_id: ids.ran,
        old_amf: None,
        ue_ambr: Some(ambr()),
        guami: guti("999700000000000").guami,
        sessions,
        allowed_nssai: vec![Snssai::of_sst(1)],
        security_capabilities: SecurityCapabilities {
            nr_encryption: 0xc000,
            nr_integrity: 0xc000,
            eutra_encryption: 0xc000,
            eutra_integrity: 0xc000,
        },
        security_key,
        trace: None,
        mobility_restrictions: None,
        ue_radio_capability: None,
        rfsp_index: None,
        masked_imeisv: None,
        nas_pdu: Some(nas),
    }
    .encode()
    .unwrap()
}

pub fn setup_item(imsi: &str, nas_pdu: Option<Vec<u8>>) -> SetupItem {
    let arp = Arp { priority_level: 8, may_preempt: false, preemptable: true };
    let transfer = SetupRequestTransfer {
        session_ambr: Some(ambr()),
        uplink: Tunnel { address: UPF.parse().unwrap(), teid: Teid(number(imsi)) },
        session_type: SessionType::Ipv4,
        flows: vec![
            QosFlow { qfi: 9, five_qi: 9, arp, gbr: None, reflective: false },
            QosFlow { qfi: REFLECTIVE, five_qi: 8, arp, gbr: None, reflective: true },
        ],
    };
    SetupItem { pdu_session_id: 1, nas_pdu, snssai: Snssai::of_sst(1), transfer: transfer.encode() }
}

fn session_setup(ids: UeIds, item: SetupItem) -> Vec<u8> {
    PduSessionResourceSetupRequest {
        amf_ue_ngap_id: ids.amf,
        ran_ue_ngap_id: ids.ran,
        nas_pdu: None,
        sessions: vec![item],
        ue_ambr: Some(ambr()),
    }
    .encode()
    .unwrap()
}

fn session_release(ids: UeIds, pdu_session_id: u8, nas: Vec<u8>) -> Vec<u8> {
    let transfer = ReleaseCommandTransfer { cause: Cause::Nas(CauseNas::normal_release) }.encode();
    PduSessionResourceReleaseCommand {
        amf_ue_ngap_id: ids.amf,
        ran_ue_ngap_id: ids.ran,
        nas_pdu: Some(nas),
        sessions: vec![SessionTransfer { pdu_session_id, transfer }],
    }
    .encode()
    .unwrap()
}
