//! Rules of a session at the UPF (TS 29.244 5.2, 7.5).
//!
//! ```text
//!  PDR 1  access, F-TEID of the UPF, UE address as source     FAR 1 forward to the data network
//!  PDR 2  core, UE address as destination                     FAR 2 buffer, or forward to the gNB
//!  both   QER 1 session-AMBR and QFI, URR 1 volume            BAR 1
//! ```
//!
//! FARs of further tunnels, in dual connectivity, are in `tunnels.rs`.
//!
//! `n9.rs` has the rules of a UPF between gNB and anchor.

use super::context::{DEFAULT_QFI, IpVersions, SmContext, UeAddress};
use super::tunnels::Reroute;
use crate::kit::N4Error;
use pith_ngap::transfer::Tunnel;
use pith_pfcp::ie::{
    ApnDnn, ApplyAction, BarId, BitRates, Cause, Choice, DestinationInterface, FSeid, FTeid, FarId,
    GateStatus, MeasurementMethod, NodeId, OuterHeader, OuterHeaderCreation, PacketEnd, PdnType, PdrId,
    PfcpSeReqFlags, PfcpSmReqFlags, Precedence, QerId, Qfi, ReportingTriggers, SourceInterface, UeIpAddress,
    UrrId,
};
use pith_pfcp::message::{
    SessionDeletionRequest, SessionEstablishmentRequest, SessionEstablishmentResponse,
    SessionModificationRequest,
};
use pith_pfcp::rules::{
    CreateBar, CreateFar, CreatePdr, CreateQer, CreateUrr, ForwardingParameters, Pdi, RemoveFar, UpdateFar,
    UpdateForwardingParameters, UpdatePdr, UpdateQer,
};
use pith_pfcp::{Change, Message};
use pith_types::{Seid, Teid, words_of_name};
use std::net::IpAddr;

pub(super) const UPLINK_PDR: PdrId = PdrId(1);
const DOWNLINK_PDR: PdrId = PdrId(2);
pub(super) const UPLINK_FAR: FarId = FarId(1);
pub(super) const DOWNLINK_FAR: FarId = FarId(2);
const QER: QerId = QerId(1);
const URR: UrrId = UrrId(1);
const BAR: BarId = BarId(1);
/// Precedence of the PDRs that match all packets of a session. A more specific PDR has a lower value.
pub(super) const PRECEDENCE: Precedence = Precedence(255);

/// Session Establishment Request (TS 29.244 7.5.2): uplink open, downlink buffered until the gNB's tunnel is
/// known.
pub(super) fn establishment(session: &SmContext, address: UeAddress, local: IpAddr) -> Message {
    let mut uplink = CreateFar::new(UPLINK_FAR, ApplyAction::FORW);
    uplink.forwarding_parameters = Some(ForwardingParameters::new(DestinationInterface::Core));
    let pdrs = vec![uplink_pdr(address), downlink_pdr(address)];
    let fars = vec![uplink, downlink_far(None, ApplyAction::BUFF)];
    establishment_request(session, (session.seid, local), pdrs, fars)
}

/// Session Establishment Request for a session that the UPF had before (TS 29.244 5.5.1, TS 23.527 4.3.2): with its former F-TEID,
/// or with another one that the UPF allocates. Downlink packets are forwarded to the gNB if it still has its tunnel, else they
/// are buffered and reported: the UE is idle.
pub(super) fn restoration(
    session: &SmContext,
    (address, local): (UeAddress, IpAddr),
    f_teid: Option<FTeid>,
    gnb: Option<Tunnel>,
) -> Message {
    let mut uplink = CreateFar::new(UPLINK_FAR, ApplyAction::FORW);
    uplink.forwarding_parameters = Some(ForwardingParameters::new(DestinationInterface::Core));
    let mut pdr = uplink_pdr(address);
    if f_teid.is_some() {
        pdr.pdi.local_f_teid = f_teid;
    }
    let mut fars = vec![uplink, downlink_far(gnb, ApplyAction::BUFF | ApplyAction::NOCP)];
    let mut downlink = downlink_pdr(address);
    if gnb.is_some() {
        fars.extend(session.tunnels.iter().map(|(far, additional)| forwarding_far(far, additional.gnb)));
        downlink.far_id = Some(session.tunnels.far_of(DEFAULT_QFI));
    }
    let request = establishment_request(session, (session.seid, local), vec![pdr, downlink], fars);
    match request {
        Message::SessionEstablishmentRequest(mut request) => {
            request.pfcp_se_req_flags = f_teid.map(|_| PfcpSeReqFlags::RESTI);
            Message::SessionEstablishmentRequest(request)
        }
        other => other,
    }
}

/// Session Modification Request for a session that the UPF had before this run of the SMF: all that changes while a session is
/// established. Downlink packets are forwarded to `to`, an endpoint of the gNB or of the front UPF; else they are buffered and reported, also
/// if the UPF has reported held packets before. The session's SMF is named, in case that another of its set has controlled it
/// (TS 29.244 5.22.3).
pub(super) fn confirmation(
    session: &SmContext,
    (seid, local): (Seid, IpAddr),
    to: Option<Tunnel>,
) -> Message {
    let mut request = match to {
        Some(to) => modification(forward(DOWNLINK_FAR, to, EndMarker::Omit)),
        None => without_tunnels(session, modification(buffer_and_notify())),
    };
    if to.is_some() {
        for (far, additional) in session.tunnels.iter() {
            request.update_fars.push(forward(far, additional.gnb, EndMarker::Omit));
            request.update_pdrs.extend(additional.flows.iter().flat_map(|qfi| moved_pdrs(*qfi, far)));
        }
    }
    request.cp_f_seid = Some(FSeid::new(seid.0, local));
    request.node_id = Some(NodeId::from(local));
    request.update_qers = vec![updated_qer(session)];
    Message::SessionModificationRequest(request)
}

/// The F-TEID of a tunnel endpoint.
pub(super) const fn f_teid_of(tunnel: Tunnel) -> FTeid {
    let (ipv4, ipv6) = match tunnel.address {
        IpAddr::V4(address) => (Some(address), None),
        IpAddr::V6(address) => (None, Some(address)),
    };
    FTeid::Allocated { teid: tunnel.teid.0, ipv4, ipv6 }
}

/// A Session Establishment Request with these PDRs and FARs, and the QER, URR and BAR that they refer to.
pub(super) fn establishment_request(
    session: &SmContext,
    (seid, local): (Seid, IpAddr),
    pdrs: Vec<CreatePdr>,
    fars: Vec<CreateFar>,
) -> Message {
    let mut qer = CreateQer::new(QER, GateStatus::OPEN);
    qer.maximum_bitrate = Some(session_ambr(session));
    qer.qfi = Some(Qfi(DEFAULT_QFI));
    let mut request =
        SessionEstablishmentRequest::new(NodeId::from(local), FSeid::new(seid.0, local), pdrs, fars);
    request.create_qers = vec![qer];
    request.create_urrs = vec![CreateUrr::new(URR, MeasurementMethod::VOLUM, ReportingTriggers::default())];
    request.create_bars = vec![CreateBar::new(BAR)];
    request.pdn_type = Some(match session.ip {
        IpVersions { v4: true, v6: true } => PdnType::Ipv4v6,
        IpVersions { v6: true, .. } => PdnType::Ipv6,
        IpVersions { .. } => PdnType::Ipv4,
    });
    request.apn_dnn = Some(ApnDnn(session.dnn.as_str().into()));
    Message::SessionEstablishmentRequest(request)
}

/// The FAR of downlink packets: forward to the gNB if its endpoint is known, else apply `otherwise`.
pub(super) fn downlink_far(gnb: Option<Tunnel>, otherwise: ApplyAction) -> CreateFar {
    let Some(gnb) = gnb else {
        let mut far = CreateFar::new(DOWNLINK_FAR, otherwise);
        far.bar_id = Some(BAR);
        return far;
    };
    forwarding_far(DOWNLINK_FAR, gnb)
}

/// A FAR that forwards packets to a gNB.
fn forwarding_far(id: FarId, gnb: Tunnel) -> CreateFar {
    let mut parameters = ForwardingParameters::new(DestinationInterface::Access);
    parameters.outer_header_creation = Some(OuterHeaderCreation::gtpu(gnb.teid.0, gnb.address));
    let mut far = CreateFar::new(id, ApplyAction::FORW);
    far.forwarding_parameters = Some(parameters);
    far.bar_id = Some(BAR);
    far
}

/// The PDRs of a flow's downlink packets at the UPF that terminates N3.
fn downlink_pdrs(qfi: u8) -> Vec<PdrId> {
    if qfi == DEFAULT_QFI { vec![DOWNLINK_PDR] } else { Vec::new() }
}

/// A flow's downlink packets get another FAR.
fn moved_pdrs(qfi: u8, far: FarId) -> impl Iterator<Item = UpdatePdr> {
    downlink_pdrs(qfi).into_iter().map(move |pdr| {
        let mut update = UpdatePdr::new(pdr);
        update.far_id = Some(far);
        update
    })
}

pub(super) fn uplink_pdr(address: UeAddress) -> CreatePdr {
    let mut pdi = Pdi::new(SourceInterface::Access);
    pdi.local_f_teid = Some(FTeid::Choose { ipv4: true, ipv6: false, choose_id: None });
    pdi.ue_ip_addresses = vec![ue_ip_address(address, PacketEnd::Source)];
    let mut pdr = CreatePdr::new(UPLINK_PDR, PRECEDENCE, pdi);
    pdr.outer_header_removal = Some(OuterHeader::GtpuUdpIpv4.into());
    with_rules(pdr, UPLINK_FAR)
}

fn downlink_pdr(address: UeAddress) -> CreatePdr {
    with_rules(CreatePdr::new(DOWNLINK_PDR, PRECEDENCE, to_ue(address)), DOWNLINK_FAR)
}

/// The PDI of packets from the data network to the UE.
pub(super) fn to_ue(address: UeAddress) -> Pdi {
    let mut pdi = Pdi::new(SourceInterface::Core);
    pdi.ue_ip_addresses = vec![ue_ip_address(address, PacketEnd::Destination)];
    pdi
}

/// The UE's addresses; of IPv6 the prefix of 64 bits (TS 29.244 8.2.62).
fn ue_ip_address(address: UeAddress, end: PacketEnd) -> UeIpAddress {
    UeIpAddress {
        ipv4: address.v4.map(Choice::Given),
        ipv6: address.v6.map(Choice::Given),
        end,
        prefix_delegation_bits: None,
        prefix_len: None,
    }
}

pub(super) fn with_rules(mut pdr: CreatePdr, far: FarId) -> CreatePdr {
    pdr.far_id = Some(far);
    pdr.qer_ids = vec![QER];
    pdr.urr_ids = vec![URR];
    pdr
}

/// The session-AMBR in PFCP's unit, kbit/s (TS 29.244 8.2.8).
fn session_ambr(session: &SmContext) -> BitRates {
    let kbps = |bps: u64| bps.div_ceil(1000);
    BitRates { uplink: kbps(session.qos.ambr.uplink.bps()), downlink: kbps(session.qos.ambr.downlink.bps()) }
}

/// The tunnel endpoint in an F-TEID.
pub(super) fn tunnel_of(f_teid: FTeid) -> Option<Tunnel> {
    match f_teid {
        FTeid::Allocated { teid, ipv4, ipv6 } => {
            let address = ipv4.map(IpAddr::V4).or(ipv6.map(IpAddr::V6))?;
            Some(Tunnel { address, teid: Teid(teid) })
        }
        FTeid::Choose { .. } => None,
    }
}

/// The tunnel endpoint that the UPF allocated for a PDR.
pub(super) fn tunnel(response: &SessionEstablishmentResponse, pdr: PdrId) -> Option<Tunnel> {
    let created = response.created_pdrs.iter().filter(|created| created.pdr_id == pdr);
    created.flat_map(|created| &created.local_f_teids).find_map(|f_teid| tunnel_of(*f_teid))
}

/// Whether the UPF sends an End Marker into the tunnel that it used for downlink packets until now (TS 23.501 5.8.2.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndMarker {
    /// No: it used none.
    Omit,
    /// Yes.
    Send,
}

/// Forwards downlink packets to `to`: an endpoint of the gNB, or of the UPF between gNB and anchor.
pub(super) fn activation(to: Tunnel, end_marker: EndMarker) -> Message {
    Message::SessionModificationRequest(modification(forward(DOWNLINK_FAR, to, end_marker)))
}

fn forward(id: FarId, to: Tunnel, end_marker: EndMarker) -> UpdateFar {
    let mut parameters = UpdateForwardingParameters::new();
    parameters.destination_interface = Some(DestinationInterface::Access);
    parameters.outer_header_creation = Some(Change::Set(OuterHeaderCreation::gtpu(to.teid.0, to.address)));
    if end_marker == EndMarker::Send {
        parameters.pfcp_sm_req_flags = Some(PfcpSmReqFlags::SNDEM);
    }
    let mut far = UpdateFar::new(id);
    far.apply_action = Some(ApplyAction::FORW);
    far.update_forwarding_parameters = Some(parameters);
    far
}

/// Changes the tunnels of downlink packets. All changes apply at once (TS 29.244 6.3.3).
pub(super) fn rerouted(change: &Reroute) -> Message {
    let mut request = SessionModificationRequest::new();
    request.remove_fars = change.removed.iter().map(|far| RemoveFar::new(*far)).collect();
    request.create_fars = change.created.iter().map(|(far, gnb)| forwarding_far(*far, *gnb)).collect();
    request.update_fars =
        change.updated.iter().map(|(far, gnb, end_marker)| forward(*far, *gnb, *end_marker)).collect();
    request.update_pdrs = change.moved.iter().flat_map(|(qfi, far)| moved_pdrs(*qfi, *far)).collect();
    Message::SessionModificationRequest(request)
}

/// Buffers downlink packets and reports the first one (TS 23.502 4.2.6 step 6b). The session has one tunnel.
pub(super) fn deactivation() -> Message {
    Message::SessionModificationRequest(modification(buffer_and_notify()))
}

/// As [`deactivation`], for a session that may have several tunnels: all flows get the FAR that buffers.
pub(super) fn deactivation_of(session: &SmContext) -> Message {
    let request = without_tunnels(session, modification(buffer_and_notify()));
    Message::SessionModificationRequest(request)
}

/// The additional tunnels end; their flows have the FAR of the primary one.
fn without_tunnels(
    session: &SmContext,
    mut request: SessionModificationRequest,
) -> SessionModificationRequest {
    for (far, additional) in session.tunnels.iter() {
        request.remove_fars.push(RemoveFar::new(far));
        request.update_pdrs.extend(additional.flows.iter().flat_map(|qfi| moved_pdrs(*qfi, DOWNLINK_FAR)));
    }
    request
}

/// Drops the buffered packets, buffers further ones and reports the first of them (TS 29.244 8.2.31).
pub(super) fn drop_buffered() -> Message {
    let mut request = modification(buffer_and_notify());
    request.pfcp_sm_req_flags = Some(PfcpSmReqFlags::DROBU);
    Message::SessionModificationRequest(request)
}

fn buffer_and_notify() -> UpdateFar {
    let mut far = UpdateFar::new(DOWNLINK_FAR);
    far.apply_action = Some(ApplyAction::BUFF | ApplyAction::NOCP);
    far
}

fn modification(far: UpdateFar) -> SessionModificationRequest {
    let mut request = SessionModificationRequest::new();
    request.update_fars = vec![far];
    request
}

/// Changes the session-AMBR.
pub(super) fn new_rates(session: &SmContext) -> Message {
    let mut request = SessionModificationRequest::new();
    request.update_qers = vec![updated_qer(session)];
    Message::SessionModificationRequest(request)
}

fn updated_qer(session: &SmContext) -> UpdateQer {
    let mut qer = UpdateQer::new(QER);
    qer.maximum_bitrate = Some(Change::Set(session_ambr(session)));
    qer
}

/// Checks that a UPF accepted new rules; the error says why not.
pub(super) fn modified(result: Result<Message, N4Error>) -> Result<(), String> {
    match result {
        Ok(Message::SessionModificationResponse(response)) if response.cause == Cause::RequestAccepted => {
            Ok(())
        }
        Ok(Message::SessionModificationResponse(response)) => {
            Err(format!("the UPF refuses: {}", words_of_name(&format!("{:?}", response.cause))))
        }
        Ok(_) => Err("the UPF sent the response to another request".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Deletes the session.
pub(super) fn deletion() -> Message {
    Message::SessionDeletionRequest(SessionDeletionRequest::new())
}
