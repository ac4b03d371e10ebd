//! 5GSM messages to the UE (TS 24.501 clause 6).

use super::config::DataNetwork;
use super::context::{DEFAULT_QFI, IpVersions, SmContext};
use super::flows::DEFAULT_RULE;
use super::procedure::establishment::{Asks, UeRequest};
use pith_nas::gsm::{
    PduSessionEstablishmentAccept, PduSessionEstablishmentReject, PduSessionModificationCommand,
    PduSessionModificationReject, PduSessionReleaseCommand, PduSessionReleaseReject,
};
use pith_nas::ie::{
    AllowedSscMode, AlwaysOn, DownlinkPco, FlowOperation, PcoOption, PduAddress, PduSessionType,
    QosFlowDescription, QosFlowDescriptions, QosRule, QosRules, SscMode,
};
use pith_nas::{GsmCause, GsmMessage};
use std::net::IpAddr;

/// PTI of a procedure that the network initiates (TS 24.007 11.2.3.1a).
pub(super) const UNASSIGNED_PTI: u8 = 0;

/// PDU SESSION ESTABLISHMENT ACCEPT; with a cause if the UE asked for IPv4v6 (TS 24.501 6.4.1.3).
pub(super) fn establishment_accept(
    session: &SmContext,
    request: UeRequest,
    network: Option<&DataNetwork>,
) -> Vec<u8> {
    let mut rules = vec![QosRule::match_all(DEFAULT_RULE, DEFAULT_QFI)];
    rules.extend(session.flows.current.qos_rules());
    let rules = QosRules(rules);
    let (kind, only) = match session.ip {
        IpVersions { v4: true, v6: true } => (PduSessionType::Ipv4v6, None),
        IpVersions { v6: true, .. } => (PduSessionType::Ipv6, Some(GsmCause::PduSessionTypeIpv6OnlyAllowed)),
        IpVersions { .. } => (PduSessionType::Ipv4, Some(GsmCause::PduSessionTypeIpv4OnlyAllowed)),
    };
    let mut accept = PduSessionEstablishmentAccept::new(kind, SscMode::Mode1, rules, session.qos.ambr);
    accept.cause = only.filter(|_| request.asks.ipv4v6);
    let (ipv4, interface_id) = (session.address.v4, session.address.interface_id());
    accept.pdu_address = Some(PduAddress { ipv4, interface_id, smf_link_local: None });
    accept.rq_timer = session.reflective.rq_timer();
    accept.always_on = session.always_on.map(|on| AlwaysOn { on });
    accept.snssai = Some(session.snssai.into());
    let mut flows = vec![QosFlowDescription::non_gbr(DEFAULT_QFI, session.qos.five_qi)];
    flows.extend(session.flows.current.descriptions());
    accept.qos_flow_descriptions = Some(QosFlowDescriptions(flows));
    accept.extended_pco = network.and_then(|network| options(session, request.asks, network));
    accept.dnn = Some(session.dnn.clone());
    GsmMessage::new(session.pdu_session_id, request.pti, accept).encode()
}

/// The options that the UE requests (TS 24.008 10.5.6.3). The MTU of IPv6 is in the Router Advertisement.
fn options(session: &SmContext, asks: Asks, network: &DataNetwork) -> Option<DownlinkPco> {
    let mut options = Vec::new();
    for server in &network.dns {
        match *server {
            IpAddr::V4(v4) if asks.dns && session.ip.v4 => options.push(PcoOption::DnsServerIpv4(v4)),
            IpAddr::V6(v6) if session.asks_dns6 && session.ip.v6 => {
                options.push(PcoOption::DnsServerIpv6(v6))
            }
            _ => {}
        }
    }
    for p_cscf in &network.p_cscf {
        match *p_cscf {
            IpAddr::V4(v4) if asks.p_cscf4 && session.ip.v4 => options.push(PcoOption::PcscfIpv4(v4)),
            IpAddr::V6(v6) if asks.p_cscf6 && session.ip.v6 => options.push(PcoOption::PcscfIpv6(v6)),
            _ => {}
        }
    }
    if asks.mtu && session.ip.v4 {
        options.push(PcoOption::Ipv4LinkMtu(network.mtu));
    }
    (!options.is_empty()).then_some(DownlinkPco(options))
}

/// PDU SESSION ESTABLISHMENT REJECT (TS 24.501 6.4.1.4).
pub(super) fn establishment_reject(pdu_session_id: u8, pti: u8, cause: GsmCause) -> Vec<u8> {
    let mut reject = PduSessionEstablishmentReject::new(cause);
    if cause == GsmCause::NotSupportedSscMode {
        reject.allowed_ssc_mode = Some(AllowedSscMode { mode_1: true, ..AllowedSscMode::default() });
    }
    GsmMessage::new(pdu_session_id, pti, reject).encode()
}

/// PDU SESSION RELEASE COMMAND (TS 24.501 6.3.3.2).
pub(super) fn release_command(pdu_session_id: u8, pti: u8, cause: GsmCause) -> Vec<u8> {
    GsmMessage::new(pdu_session_id, pti, PduSessionReleaseCommand::new(cause)).encode()
}

/// PDU SESSION MODIFICATION COMMAND (TS 24.501 6.3.2.2) with the session-AMBR, the RQ timer, the default QoS flow's parameters,
/// and the rules and flows that the change in progress creates, modifies or deletes, or that a failed change has left at the UE.
pub(super) fn modification_command(session: &SmContext) -> Vec<u8> {
    let mut flow = QosFlowDescription::non_gbr(DEFAULT_QFI, session.qos.five_qi);
    flow.operation = FlowOperation::Modify;
    let mut command = PduSessionModificationCommand::new();
    command.session_ambr = Some(session.qos.ambr);
    command.rq_timer = session.reflective.rq_timer();
    let mut flows = vec![flow];
    let at_ue = session.flows.at_ue();
    let change = session.flows.current.since(&at_ue);
    flows.extend(change.descriptions());
    let rules = change.qos_rules();
    command.qos_rules = (!rules.is_empty()).then_some(QosRules(rules));
    command.qos_flow_descriptions = Some(QosFlowDescriptions(flows));
    GsmMessage::new(session.pdu_session_id, UNASSIGNED_PTI, command).encode()
}

/// PDU SESSION MODIFICATION COMMAND that accepts the UE's request of that PTI (TS 24.501 6.4.2.3), without a change of rules or flows.
pub(super) fn modification_accept(session: &SmContext, pti: u8) -> Vec<u8> {
    let mut command = PduSessionModificationCommand::new();
    command.session_ambr = Some(session.qos.ambr);
    GsmMessage::new(session.pdu_session_id, pti, command).encode()
}

/// PDU SESSION MODIFICATION REJECT (TS 24.501 6.4.2.4).
pub(super) fn modification_reject(pdu_session_id: u8, pti: u8, cause: GsmCause) -> Vec<u8> {
    let reject = PduSessionModificationReject::new(cause);
    GsmMessage::new(pdu_session_id, pti, reject).encode()
}

/// PDU SESSION RELEASE REJECT: another procedure of the session is in progress (TS 24.501 6.4.3.4).
pub(super) fn release_reject(pdu_session_id: u8, pti: u8, cause: GsmCause) -> Vec<u8> {
    GsmMessage::new(pdu_session_id, pti, PduSessionReleaseReject::new(cause)).encode()
}

/// 5GSM STATUS (TS 24.501 6.5).
pub(super) fn status(pdu_session_id: u8, pti: u8, cause: GsmCause) -> Vec<u8> {
    GsmMessage::new(pdu_session_id, pti, pith_nas::gsm::GsmStatus::new(cause)).encode()
}
