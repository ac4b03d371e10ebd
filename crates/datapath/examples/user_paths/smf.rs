//! An SMF's requests, and an SMF that calls UPF-C.

use super::support::{GNB, UPF};
use pith_datapath::UserPlane;
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_pfcp::rules::*;
use pith_pfcp::{Change, Message};
use pith_upf::{Config, Effect, GtpuAddress, Input, PermittedSmf, Upf};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 168, 4, 2);
const PORT: u16 = 8805;

/// An SMF and the UPF-C that it asks, without a socket between them.
pub struct Smf {
    upf: Upf,
    begun: Instant,
    requests: Requests,
}

/// Encodes an SMF's requests.
pub struct Requests {
    address: Ipv4Addr,
    sequence: u32,
}

impl Smf {
    pub fn associated(plane: &mut UserPlane) -> Self {
        let n3 = GtpuAddress { v4: Some(UPF), v6: None };
        let config = Config::new(UPF.into(), n3, 1_700_000_000);
        let upf = Upf::new(Config { smfs: vec![PermittedSmf::at(ADDRESS.into())], ..config }, [7; 32]);
        let mut smf = Self { upf, begun: Instant::now(), requests: Requests::of(ADDRESS) };
        let octets = smf.requests.association();
        smf.send(plane, &octets);
        smf
    }

    pub fn establishment(&mut self, ue: Ipv4Addr, gnb_teid: u32) -> Vec<u8> {
        self.requests.establishment(ue, gnb_teid)
    }

    pub fn move_downlink(&mut self, seid: u64, teid: u32) -> Vec<u8> {
        self.requests.move_downlink(seid, teid)
    }

    /// Passes a request to UPF-C and returns its response.
    pub fn send(&mut self, plane: &mut UserPlane, octets: &[u8]) -> Vec<u8> {
        let mut effects = Vec::new();
        let input = Input::Datagram { peer: SocketAddr::from((ADDRESS, PORT)), octets };
        self.upf.handle(self.begun.elapsed(), input, plane, &mut effects);
        let sent = effects.into_iter().find_map(|effect| match effect {
            Effect::Send { octets, .. } => Some(octets),
            Effect::Notice(_) => None,
        });
        sent.expect("a response")
    }

    /// The UPF's SEID and the uplink TEID in an accepting response.
    pub fn accepted(octets: &[u8]) -> (u64, u32) {
        let (_, message) = Message::decode(octets).unwrap();
        let Message::SessionEstablishmentResponse(response) = message else { panic!("{message:?}") };
        assert_eq!(response.cause, Cause::RequestAccepted, "{response:?}");
        let FTeid::Allocated { teid, .. } = response.created_pdrs[0].local_f_teids[0] else {
            panic!("{response:?}")
        };
        (response.up_f_seid.unwrap().seid, teid)
    }
}

impl Requests {
    /// Of the SMF with that address as its Node ID and F-SEID.
    pub fn of(address: Ipv4Addr) -> Self {
        Self { address, sequence: 0 }
    }

    fn encoded(&mut self, seid: u64, request: impl Into<Message>) -> Vec<u8> {
        self.sequence += 1;
        let mut octets = Vec::new();
        request.into().encode(seid, self.sequence, &mut octets).unwrap();
        octets
    }

    pub fn association(&mut self) -> Vec<u8> {
        let node = NodeId::Ipv4(self.address);
        self.encoded(0, AssociationSetupRequest::new(node, NtpSeconds::from_unix(1_700_000_000)))
    }

    /// The request for a PDU session as an SMF sends it: both directions, a QoS flow's QER, the session AMBR,
    /// a URR.
    pub fn establishment(&mut self, ue: Ipv4Addr, gnb_teid: u32) -> Vec<u8> {
        let choose = FTeid::Choose { ipv4: true, ipv6: false, choose_id: None };
        let ue_ip = |end| vec![UeIpAddress::new(IpAddr::V4(ue), end)];
        let uplink = Pdi {
            local_f_teid: Some(choose),
            ue_ip_addresses: ue_ip(PacketEnd::Source),
            ..Pdi::new(SourceInterface::Access)
        };
        let downlink =
            Pdi { ue_ip_addresses: ue_ip(PacketEnd::Destination), ..Pdi::new(SourceInterface::Core) };
        let pdr = |id, pdi| CreatePdr {
            far_id: Some(FarId(id)),
            qer_ids: vec![QerId(1), QerId(2)],
            urr_ids: vec![UrrId(1)],
            ..CreatePdr::new(PdrId(id as u16), Precedence(255), pdi)
        };
        let far = |id, interface, tunnel| {
            let parameters = ForwardingParameters {
                outer_header_creation: tunnel,
                ..ForwardingParameters::new(interface)
            };
            CreateFar {
                forwarding_parameters: Some(parameters),
                ..CreateFar::new(FarId(id), ApplyAction::FORW)
            }
        };
        let flow = CreateQer { qfi: Some(Qfi(9)), ..CreateQer::new(QerId(1), GateStatus::OPEN) };
        let rates = BitRates { uplink: 1_000_000, downlink: 1_000_000 };
        let ambr = CreateQer { maximum_bitrate: Some(rates), ..CreateQer::new(QerId(2), GateStatus::OPEN) };
        let fars = vec![
            far(1, DestinationInterface::Core, None),
            far(2, DestinationInterface::Access, Some(OuterHeaderCreation::gtpu(gnb_teid, GNB.into()))),
        ];
        let seid = FSeid::new(u64::from(gnb_teid), self.address.into());
        let pdrs = vec![pdr(1, uplink), pdr(2, downlink)];
        let request = SessionEstablishmentRequest {
            create_qers: vec![flow, ambr],
            create_urrs: vec![CreateUrr::new(
                UrrId(1),
                MeasurementMethod::VOLUM,
                ReportingTriggers::default(),
            )],
            ..SessionEstablishmentRequest::new(NodeId::Ipv4(self.address), seid, pdrs, fars)
        };
        self.encoded(0, request)
    }

    /// The request that moves a session's downlink to another tunnel of the gNB.
    pub fn move_downlink(&mut self, seid: u64, teid: u32) -> Vec<u8> {
        let parameters = UpdateForwardingParameters {
            outer_header_creation: Some(Change::Set(OuterHeaderCreation::gtpu(teid, GNB.into()))),
            ..UpdateForwardingParameters::new()
        };
        let update = UpdateFar { update_forwarding_parameters: Some(parameters), ..UpdateFar::new(FarId(2)) };
        let request =
            SessionModificationRequest { update_fars: vec![update], ..SessionModificationRequest::new() };
        self.encoded(seid, request)
    }
}
