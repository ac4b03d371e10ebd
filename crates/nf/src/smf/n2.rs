//! N2 SM information that the SMF sends to the gNB through the AMF (TS 38.413 9.3.4).

use super::context::{DEFAULT_QFI, IpVersions, SmContext, UserPlane};
use pith_ngap::transfer::{
    Arp, HandoverPreparationUnsuccessfulTransfer, ModifyConfirmTransfer,
    ModifyIndicationUnsuccessfulTransfer, ModifyRequestTransfer, PathSwitchRequestAcknowledgeTransfer,
    PathSwitchRequestUnsuccessfulTransfer, QosFlow, ReleaseCommandTransfer, SessionType,
    SetupRequestTransfer, Tunnel, TunnelChange,
};
use pith_ngap::{Cause, CauseNas, CauseRadioNetwork, CauseTransport};
use pith_sbi::nsmf_pdusession::N2SmInfoType;

/// PDU Session Resource Setup Request Transfer.
pub(super) fn setup_request(session: &SmContext, user_plane: &UserPlane) -> Vec<u8> {
    let transfer = SetupRequestTransfer {
        session_ambr: Some(session.qos.ambr),
        uplink: user_plane.n3_session().tunnel,
        session_type: match session.ip {
            IpVersions { v4: true, v6: true } => SessionType::Ipv4v6,
            IpVersions { v6: true, .. } => SessionType::Ipv6,
            IpVersions { .. } => SessionType::Ipv4,
        },
        flows: std::iter::once(default_flow(session)).chain(session.flows.current.flows()).collect(),
    };
    transfer.encode()
}

fn default_flow(session: &SmContext) -> QosFlow {
    let arp = Arp { priority_level: session.qos.arp_priority, may_preempt: false, preemptable: true };
    let reflective = session.flows.current.has_reflective_default();
    QosFlow { qfi: DEFAULT_QFI, five_qi: session.qos.five_qi, arp, gbr: None, reflective }
}

/// PDU Session Resource Modify Request Transfer that changes session-AMBR, default QoS flow, and the flows of the change in progress. The
/// gNB does not get the release of flows that it has refused, or has released. `stale`: flows to release besides.
pub(super) fn modify_qos_request(session: &SmContext, stale: &[u8]) -> Vec<u8> {
    let (session_ambr, mut flows, mut to_release) =
        (Some(session.qos.ambr), vec![default_flow(session)], Vec::new());
    if let Some(change) = session.flows.change().filter(|_| !session.flows.is_at_gnb) {
        flows.extend(change.flows());
        to_release.extend(session.flows.released());
    }
    to_release.extend(stale);
    to_release.sort_unstable();
    to_release.dedup();
    let to_release = to_release.into_iter().map(|qfi| (qfi, Cause::Nas(CauseNas::normal_release))).collect();
    ModifyRequestTransfer { session_ambr, flows, to_release, ..ModifyRequestTransfer::default() }.encode()
}

/// The unsuccessful transfer, and its type, that answers N2 information which this SMF does not support (TS 38.413 9.3.4.18,
/// 9.3.4.20, 9.3.4.22; TS 29.502 5.2.2.3.3, 5.2.2.3.4).
pub(super) fn refusal(kind: &N2SmInfoType) -> Option<(N2SmInfoType, Vec<u8>)> {
    let cause = Cause::RadioNetwork(CauseRadioNetwork::ho_failure_in_target_5GC_ngran_node_or_target_system);
    Some(match kind {
        N2SmInfoType::PathSwitchReq | N2SmInfoType::PathSwitchSetupFail => {
            (N2SmInfoType::PathSwitchReqFail, PathSwitchRequestUnsuccessfulTransfer { cause }.encode())
        }
        N2SmInfoType::HandoverRequired => {
            (N2SmInfoType::HandoverPrepFail, HandoverPreparationUnsuccessfulTransfer { cause }.encode())
        }
        N2SmInfoType::PduResModInd => {
            let cause = Cause::RadioNetwork(CauseRadioNetwork::unspecified);
            (N2SmInfoType::PduResModIndFail, ModifyIndicationUnsuccessfulTransfer { cause }.encode())
        }
        _ => return None,
    })
}

/// PDU Session Resource Modify Request Transfer that changes the UPF's endpoint: for the tunnel whose gNB endpoint is
/// `downlink`, the gNB sends uplink packets to `uplink` from now on.
pub(super) fn modify_request(uplink: Tunnel, downlink: Tunnel) -> Vec<u8> {
    let tunnels = vec![TunnelChange { uplink, downlink }];
    ModifyRequestTransfer { tunnels, ..ModifyRequestTransfer::default() }.encode()
}

/// Path Switch Request Acknowledge Transfer, with the UPF's endpoint if it has changed.
pub(super) fn path_switch_acknowledge(
    session: &SmContext,
    user_plane: &UserPlane,
    uplink: Option<Tunnel>,
) -> Vec<u8> {
    PathSwitchRequestAcknowledgeTransfer { uplink, additional: additional(session, user_plane) }.encode()
}

/// PDU Session Resource Modify Confirm Transfer.
pub(super) fn modify_confirm(
    session: &SmContext,
    user_plane: &UserPlane,
    flows: Vec<u8>,
    failed: Vec<(u8, Cause)>,
) -> Vec<u8> {
    let (uplink, additional) = (user_plane.n3_session().tunnel, additional(session, user_plane));
    ModifyConfirmTransfer { flows, uplink, additional, failed }.encode()
}

/// The endpoints of additional tunnels: the UPF has one endpoint for all (TS 38.413 9.3.2.9).
fn additional(session: &SmContext, user_plane: &UserPlane) -> Vec<TunnelChange> {
    let uplink = user_plane.n3_session().tunnel;
    let in_use =
        session.tunnels.iter().filter(|(_, it)| Some(it.gnb) != user_plane.gnb && !it.flows.is_empty());
    in_use.map(|(_, it)| TunnelChange { uplink, downlink: it.gnb }).collect()
}

/// PDU Session Resource Release Command Transfer.
pub(super) fn release_command() -> Vec<u8> {
    ReleaseCommandTransfer { cause: Cause::Nas(CauseNas::normal_release) }.encode()
}

/// PDU Session Resource Release Command Transfer after the gNB sent an Error Indication for the tunnel.
pub(super) fn release_lost_resources() -> Vec<u8> {
    let cause = Cause::Transport(CauseTransport::transport_resource_unavailable);
    ReleaseCommandTransfer { cause }.encode()
}
