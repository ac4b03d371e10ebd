//! Rules of a session at the UPF (TS 29.244 5.2, 7.5).
//!
//! ```text
//!  PDR 1  access, F-TEID of the UPF, UE address as source     FAR 1 forward to the data network
//!  PDR 2  core, UE address as destination                     FAR 2 buffer, or forward to the gNB
//!  both   QER 256 the QFI, QER 1 session-AMBR, URR 1 volume   BAR 1
//! ```
//!
//! PCC rule N (2 to 255) adds PDRs 100 + 2N (uplink) and 101 + 2N (downlink) with its filters and precedence, and QER N with QFI, gates and rates. Those of a
//! rule without a guaranteed rate have QER 1, too, which has no QFI: the session-AMBR is not that of a flow (TS 29.244 5.4.4). QER N of a reflective rule has the RQI, and its uplink PDR has all filters, as UEs
//! derive rules from its downlink packets (TS 23.501 5.7.5.3). A downlink PDR has the FAR of its flow's tunnel: FAR 2, or in dual
//! connectivity that of an additional tunnel (`tunnels.rs`).
//!
//! `n9.rs` has the rules of a UPF between gNB and anchor.

use super::context::{DEFAULT_QFI, IpVersions, SmContext, UeAddress};
use super::flows::{Difference, Rule};
use super::tunnels::Reroute;
use crate::kit::{FlowFilter, N4Error};
use pith_ngap::transfer::Tunnel;
use pith_pfcp::ie::{
    ApnDnn, ApplyAction, BarId, BitRates, Cause, Choice, DestinationInterface, FSeid, FTeid, FarId,
    FramedIpv6Route, FramedRoute, Gate, GateStatus, InterfaceType, MeasurementMethod, NodeId, OuterHeader,
    OuterHeaderCreation, PacketEnd, PdnType, PdrId, PfcpSeReqFlags, PfcpSmReqFlags, Precedence, QerId, Qfi,
    ReportingTriggers, Rqi, SourceInterface, UeIpAddress, UrrId,
};
use pith_pfcp::message::{
    SessionDeletionRequest, SessionEstablishmentRequest, SessionEstablishmentResponse,
    SessionModificationRequest,
};
use pith_pfcp::rules::{
    CreateBar, CreateFar, CreatePdr, CreateQer, CreateUrr, ForwardingParameters, Pdi, RemoveFar, RemovePdr,
    RemoveQer, UpdateFar, UpdateForwardingParameters, UpdatePdr, UpdateQer,
};
use pith_pfcp::{Change, Message};
use pith_types::{Ambr, Seid, Teid, words_of_name};
use std::net::IpAddr;

pub(super) const UPLINK_PDR: PdrId = PdrId(1);
const DOWNLINK_PDR: PdrId = PdrId(2);
pub(super) const UPLINK_FAR: FarId = FarId(1);
pub(super) const DOWNLINK_FAR: FarId = FarId(2);
/// The session-AMBR.
const QER: QerId = QerId(1);
/// The default flow. QERs of rules have their numbers, up to 255.
const DEFAULT_FLOW_QER: QerId = QerId(256);
/// The QERs of packets in the default flow.
const DEFAULT_QERS: [QerId; 2] = [DEFAULT_FLOW_QER, QER];
const URR: UrrId = UrrId(1);
const BAR: BarId = BarId(1);
/// Precedence of the PDRs that match all packets of a session. A more specific PDR has a lower value.
pub(super) const PRECEDENCE: Precedence = Precedence(255);

/// Session Establishment Request (TS 29.244 7.5.2): uplink open, downlink buffered until the gNB's tunnel is
/// known.
pub(super) fn establishment(session: &SmContext, address: UeAddress, local: IpAddr) -> Message {
    let mut uplink = CreateFar::new(UPLINK_FAR, ApplyAction::FORW);
    uplink.forwarding_parameters = Some(ForwardingParameters::new(DestinationInterface::Core));
    let pdrs = anchor_pdrs(session, address, FTeid::Choose { ipv4: true, ipv6: false, choose_id: None });
    let fars = vec![uplink, downlink_far(None, ApplyAction::BUFF)];
    with_qers(establishment_request(session, (session.seid, local), pdrs, fars), session)
}

/// The PDRs of a session at its anchor. If there are several for uplink packets, a CHOOSE ID gives them the same F-TEID (TS 29.244
/// 8.2.3).
fn anchor_pdrs(session: &SmContext, address: UeAddress, f_teid: FTeid) -> Vec<CreatePdr> {
    const SHARED: u8 = 1;
    let f_teid = match f_teid {
        FTeid::Choose { ipv4, ipv6, .. } if !session.flows.current.is_empty() => {
            FTeid::Choose { ipv4, ipv6, choose_id: Some(SHARED) }
        }
        f_teid => f_teid,
    };
    let mut uplink = uplink_pdr(address);
    uplink.pdi.local_f_teid = Some(f_teid);
    let mut downlink = downlink_pdr(address);
    downlink.far_id = Some(session.tunnels.far_of(DEFAULT_QFI));
    let of_rules = session.flows.current.rules().flat_map(|rule| {
        let far = session.tunnels.far_of(rule.qfi);
        rule_pdrs(rule, address, (f_teid, far))
    });
    [uplink, downlink].into_iter().chain(of_rules).collect()
}

/// Adds the QERs of the session's rules.
fn with_qers(request: Message, session: &SmContext) -> Message {
    let Message::SessionEstablishmentRequest(mut request) = request else { return request };
    request.create_qers.extend(session.flows.current.rules().map(rule_qer));
    Message::SessionEstablishmentRequest(request)
}

fn rule_qer_id(rule: &Rule) -> QerId {
    QerId(rule.number.into())
}

fn rule_pdr_ids(rule: &Rule) -> [PdrId; 2] {
    let uplink = 100 + 2 * u16::from(rule.number);
    [PdrId(uplink), PdrId(uplink + 1)]
}

/// The PDRs of a rule: of each direction for which it has a filter. The uplink PDR matches packets of the rule's flow only: the UE's
/// marking is verified (TS 23.501 5.7.1.7). Packets with the marking of another flow are those of the default one, as the UE may not have
/// the change of a rule yet. A rule with a closed gate applies whatever the marking. `far` is that of downlink packets.
fn rule_pdrs(rule: &Rule, address: UeAddress, (f_teid, far): (FTeid, FarId)) -> Vec<CreatePdr> {
    let [uplink_id, downlink_id] = rule_pdr_ids(rule);
    let mut uplink = uplink_pdr(address);
    (uplink.pdr_id, uplink.pdi.local_f_teid) = (uplink_id, Some(f_teid));
    if rule.gates().uplink {
        uplink.pdi.qfis = vec![Qfi(rule.qfi)];
    }
    let mut downlink = downlink_pdr(address);
    (downlink.pdr_id, downlink.far_id) = (downlink_id, Some(far));
    let qers = if rule.qos().guaranteed.is_some() { vec![] } else { vec![QER] };
    // The UE reverses the packet filter of downlink packets.
    let is_uplink: fn(&FlowFilter) -> bool =
        if rule.is_reflective() { |_| true } else { FlowFilter::is_uplink };
    let directions: [(CreatePdr, fn(&FlowFilter) -> bool); 2] =
        [(uplink, is_uplink), (downlink, FlowFilter::is_downlink)];
    let of_direction = |(mut pdr, has_direction): (CreatePdr, fn(&FlowFilter) -> bool)| {
        let filters = rule.filters().iter().filter(|filter| has_direction(filter));
        pdr.pdi.sdf_filters = filters.map(FlowFilter::sdf_filter).collect();
        pdr.precedence = Precedence(rule.precedence.into());
        pdr.qer_ids = std::iter::once(rule_qer_id(rule)).chain(qers.iter().copied()).collect();
        (!pdr.pdi.sdf_filters.is_empty()).then_some(pdr)
    };
    directions.into_iter().filter_map(of_direction).collect()
}

fn rule_qer(rule: &Rule) -> CreateQer {
    let gate = |is_open| if is_open { Gate::Open } else { Gate::Closed };
    let gates = rule.gates();
    let gates = GateStatus { uplink: gate(gates.uplink), downlink: gate(gates.downlink) };
    let mut qer = CreateQer::new(rule_qer_id(rule), gates);
    qer.maximum_bitrate = rule.qos().maximum.map(rates);
    qer.guaranteed_bitrate = rule.qos().guaranteed.map(rates);
    qer.qfi = Some(Qfi(rule.qfi));
    qer.rqi = rule.is_reflective().then_some(Rqi::RQI);
    qer
}

/// Adds the change of a session's rules to a request to the anchor, whose endpoint for uplink packets is `tunnel`. While the gNB does not
/// have the flows of new rules, downlink packets that match them stay in the default flow (TS 23.502 4.3.3.2 steps 2a, 8a).
fn add_change(
    request: &mut SessionModificationRequest,
    session: &SmContext,
    change: &Difference<'_>,
    tunnel: Tunnel,
) {
    let (address, f_teid, awaits_gnb) = (session.address, f_teid_of(tunnel), session.flows.awaits_gnb);
    for rule in change.removed() {
        let pdrs = rule_pdrs(rule, address, (f_teid, DOWNLINK_FAR));
        request.remove_pdrs.extend(pdrs.iter().map(|pdr| RemovePdr::new(pdr.pdr_id)));
        request.remove_qers.push(RemoveQer::new(rule_qer_id(rule)));
    }
    for rule in change.created() {
        let [_, downlink] = rule_pdr_ids(rule);
        let pdrs = rule_pdrs(rule, address, (f_teid, far_of_rule(session, rule)));
        let pdrs = pdrs.into_iter().map(|pdr| match pdr.pdr_id == downlink {
            true if awaits_gnb => CreatePdr { qer_ids: DEFAULT_QERS.to_vec(), ..pdr },
            _ => pdr,
        });
        request.create_pdrs.extend(pdrs.map(|pdr| with_framed_routes(pdr, session)));
        request.create_qers.push(rule_qer(rule));
    }
}

/// The FAR of a rule's downlink packets: that of the default flow while these stay in it.
fn far_of_rule(session: &SmContext, rule: &Rule) -> FarId {
    let is_new = |number| session.flows.change().is_some_and(|it| it.created().any(|it| it.number == number));
    let is_in_default = session.flows.awaits_gnb && is_new(rule.number);
    session.tunnels.far_of(if is_in_default { DEFAULT_QFI } else { rule.qfi })
}

/// Downlink packets of the session's rules take the tunnels of their flows; if the gNB has the flows, they use them.
fn downlink_flows(session: &SmContext) -> Vec<UpdatePdr> {
    let choose = FTeid::Choose { ipv4: true, ipv6: false, choose_id: None };
    let update = |rule: &Rule| {
        let pdrs = rule_pdrs(rule, session.address, (choose, far_of_rule(session, rule)));
        let pdr = pdrs.into_iter().find(|pdr| pdr.pdr_id == rule_pdr_ids(rule)[1])?;
        let mut update = UpdatePdr::new(pdr.pdr_id);
        update.far_id = pdr.far_id;
        let is_used = !session.flows.awaits_gnb && !session.flows.is_refused(rule.qfi);
        update.qer_ids = Some(pdr.qer_ids).filter(|_| is_used);
        Some(update)
    };
    session.flows.current.rules().filter_map(update).collect()
}

/// Downlink packets of the session's rules use their flows.
pub(super) fn use_flows(session: &SmContext) -> Message {
    with_flows(Message::SessionModificationRequest(SessionModificationRequest::new()), session)
}

/// Adds that to an activation.
pub(super) fn with_flows(request: Message, session: &SmContext) -> Message {
    let Message::SessionModificationRequest(mut request) = request else { return request };
    request.update_pdrs.retain(|update| update.pdr_id == DOWNLINK_PDR);
    request.update_pdrs.extend(downlink_flows(session));
    Message::SessionModificationRequest(request)
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
    let choose = FTeid::Choose { ipv4: true, ipv6: false, choose_id: None };
    let pdrs = anchor_pdrs(session, address, f_teid.unwrap_or(choose));
    let mut fars = vec![uplink, downlink_far(gnb, ApplyAction::BUFF | ApplyAction::NOCP)];
    fars.extend(session.tunnels.iter().map(|(far, additional)| forwarding_far(far, additional.gnb)));
    let request = establishment_request(session, (session.seid, local), pdrs, fars);
    let request = with_qers(request, session);
    if f_teid.is_some() { restoring(request) } else { request }
}

/// Session Establishment Request for packets that the source gNB of a handover has not delivered: into a tunnel of the target gNB (TS 23.502
/// 4.9.1.3.2 step 11c). The session's rates and counters have applied to them.
pub(super) fn forwarding(session: &SmContext, local: IpAddr, target: Tunnel) -> Message {
    let mut pdi = Pdi::new(SourceInterface::Access);
    pdi.source_interface_type = Some(InterfaceType::N3DataForwarding);
    pdi.local_f_teid = Some(FTeid::Choose { ipv4: true, ipv6: false, choose_id: None });
    let mut pdr = CreatePdr::new(UPLINK_PDR, PRECEDENCE, pdi);
    pdr.outer_header_removal = Some(OuterHeader::GtpuUdpIpv4.into());
    pdr.far_id = Some(UPLINK_FAR);
    let mut parameters = ForwardingParameters::new(DestinationInterface::Access);
    parameters.outer_header_creation = Some(OuterHeaderCreation::gtpu(target.teid.0, target.address));
    parameters.destination_interface_type = Some(InterfaceType::N3DataForwarding);
    let mut far = CreateFar::new(UPLINK_FAR, ApplyAction::FORW);
    far.forwarding_parameters = Some(parameters);
    let f_seid = FSeid::new(session.forwarding_seid().0, local);
    let mut request = SessionEstablishmentRequest::new(NodeId::from(local), f_seid, vec![pdr], vec![far]);
    request.apn_dnn = Some(ApnDnn::from_dnn(session.dnn.as_str()));
    Message::SessionEstablishmentRequest(request)
}

/// The request, as one for a session that the UPF had before (TS 29.244 8.2.136).
pub(super) fn restoring(mut request: Message) -> Message {
    if let Message::SessionEstablishmentRequest(request) = &mut request {
        request.pfcp_se_req_flags = Some(PfcpSeReqFlags::RESTI);
    }
    request
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
        }
        if !session.tunnels.is_empty() {
            request.update_pdrs.push(moved_default(session.tunnels.far_of(DEFAULT_QFI)));
        }
    }
    request.cp_f_seid = Some(FSeid::new(seid.0, local));
    request.node_id = Some(NodeId::from(local));
    // A UPF that has got the session by an SMF of an earlier version, whose QER 1 had the QFI, refuses that, and gets the session again.
    let mut default_flow = UpdateQer::new(DEFAULT_FLOW_QER);
    default_flow.qfi = Some(Change::Set(Qfi(DEFAULT_QFI)));
    request.update_qers = vec![updated_qer(session), default_flow];
    if seid == session.seid {
        // The anchor refuses the request if it does not have the rules.
        for rule in session.flows.current.rules() {
            let mut qer = UpdateQer::new(rule_qer_id(rule));
            qer.qfi = Some(Change::Set(Qfi(rule.qfi)));
            request.update_qers.push(qer);
        }
        if to.is_some() || session.tunnels.is_empty() {
            request.update_pdrs.extend(downlink_flows(session));
        }
    }
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
    let mut ambr = CreateQer::new(QER, GateStatus::OPEN);
    ambr.maximum_bitrate = Some(session_ambr(session));
    let mut default_flow = CreateQer::new(DEFAULT_FLOW_QER, GateStatus::OPEN);
    default_flow.qfi = Some(Qfi(DEFAULT_QFI));
    let pdrs: Vec<_> = pdrs.into_iter().map(|pdr| with_framed_routes(pdr, session)).collect();
    let mut request =
        SessionEstablishmentRequest::new(NodeId::from(local), FSeid::new(seid.0, local), pdrs, fars);
    request.create_qers = vec![ambr, default_flow];
    request.create_urrs = vec![CreateUrr::new(URR, MeasurementMethod::VOLUM, ReportingTriggers::default())];
    request.create_bars = vec![CreateBar::new(BAR)];
    request.pdn_type = Some(match session.ip {
        IpVersions { v4: true, v6: true } => PdnType::Ipv4v6,
        IpVersions { v6: true, .. } => PdnType::Ipv6,
        IpVersions { .. } => PdnType::Ipv4,
    });
    request.apn_dnn = Some(ApnDnn::from_dnn(session.dnn.as_str()));
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

/// The downlink packets of the default flow, which match no rule, get another FAR.
fn moved_default(far: FarId) -> UpdatePdr {
    let mut update = UpdatePdr::new(DOWNLINK_PDR);
    update.far_id = Some(far);
    update
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

/// Packets from and to networks behind the UE match its PDRs, too (TS 23.501 5.6.14; TS 29.244 5.16, 8.2.109, 8.2.111). A gateway of all
/// zeros is the UE itself (RFC 2865 5.22, RFC 3162 2.5).
fn with_framed_routes(mut pdr: CreatePdr, session: &SmContext) -> CreatePdr {
    if pdr.pdi.ue_ip_addresses.is_empty() {
        return pdr;
    }
    for (address, prefix) in &session.addressing.framed_routes {
        if address.is_ipv4() {
            let text = format!("{address}/{prefix} 0.0.0.0 1");
            pdr.pdi.framed_routes.push(FramedRoute(text.into_bytes()));
        } else {
            let text = format!("{address}/{prefix} :: 1");
            pdr.pdi.framed_ipv6_routes.push(FramedIpv6Route(text.into_bytes()));
        }
    }
    pdr
}

/// The UE's addresses; of IPv6 the prefix of 64 bits, and by how many bits the session's is shorter (TS 29.244 8.2.62).
fn ue_ip_address(address: UeAddress, end: PacketEnd) -> UeIpAddress {
    UeIpAddress {
        ipv4: address.v4.map(Choice::Given),
        ipv6: address.v6.map(Choice::Given),
        end,
        prefix_delegation_bits: address.v6.map(|_| address.delegation).filter(|bits| *bits > 0),
        prefix_len: None,
    }
}

pub(super) fn with_rules(mut pdr: CreatePdr, far: FarId) -> CreatePdr {
    pdr.far_id = Some(far);
    pdr.qer_ids = DEFAULT_QERS.to_vec();
    pdr.urr_ids = vec![URR];
    pdr
}

fn session_ambr(session: &SmContext) -> BitRates {
    rates(session.qos.ambr)
}

/// Rates in PFCP's unit, kbit/s (TS 29.244 8.2.8, 8.2.9).
fn rates(rates: Ambr) -> BitRates {
    let kbps = |bps: u64| bps.div_ceil(1000);
    BitRates { uplink: kbps(rates.uplink.bps()), downlink: kbps(rates.downlink.bps()) }
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

/// Changes the tunnels of downlink packets to those that the session has now. All changes apply at once (TS 29.244 6.3.3).
pub(super) fn rerouted(session: &SmContext, change: &Reroute) -> Message {
    let mut request = SessionModificationRequest::new();
    request.remove_fars = change.removed.iter().map(|far| RemoveFar::new(*far)).collect();
    request.create_fars = change.created.iter().map(|(far, gnb)| forwarding_far(*far, *gnb)).collect();
    request.update_fars =
        change.updated.iter().map(|(far, gnb, end_marker)| forward(*far, *gnb, *end_marker)).collect();
    let default = change.moved.iter().filter(|(qfi, _)| *qfi == DEFAULT_QFI);
    request.update_pdrs = default.map(|(_, far)| moved_default(*far)).collect();
    if !(change.moved.is_empty() && change.removed.is_empty()) {
        request.update_pdrs.extend(downlink_flows(session));
    }
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
    if session.tunnels.is_empty() {
        return request;
    }
    request.remove_fars = session.tunnels.iter().map(|(far, _)| RemoveFar::new(far)).collect();
    request.update_pdrs = vec![moved_default(DOWNLINK_FAR)];
    request.update_pdrs.extend(
        downlink_flows(session).into_iter().map(|update| UpdatePdr { far_id: Some(DOWNLINK_FAR), ..update }),
    );
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

/// Changes the session-AMBR, and the rules at the anchor.
pub(super) fn new_rules(session: &SmContext, anchor: Tunnel) -> Message {
    let mut request = SessionModificationRequest::new();
    request.update_qers = vec![updated_qer(session)];
    if let Some(change) = session.flows.change() {
        add_change(&mut request, session, &change, anchor);
    }
    // The gNB releases the tunnels of flows that are removed.
    let flows = session.flows_at_upf();
    let left = session.tunnels.iter().filter(|(_, it)| it.flows.iter().all(|qfi| !flows.contains(qfi)));
    request.remove_fars = left.map(|(far, _)| RemoveFar::new(far)).collect();
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

/// Deletes a session that another SMF of the set may have controlled until now (TS 29.244 5.22.3, table 7.5.6-1).
pub(super) fn deletion_by(local: IpAddr) -> Message {
    let node_id = Some(NodeId::from(local));
    Message::SessionDeletionRequest(SessionDeletionRequest { node_id, ..SessionDeletionRequest::new() })
}
