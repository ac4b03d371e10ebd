//! N2 SM information: what the gNB is told through the AMF (TS 38.413 9.3.4).

use super::context::{DEFAULT_QFI, SmContext};
use pith_ngap::transfer::{
    Arp, ModifyRequestTransfer, QosFlow, ReleaseCommandTransfer, SessionType, SetupRequestTransfer, Tunnel,
    TunnelChange,
};
use pith_ngap::{Cause, CauseNas, CauseTransport};

/// PDU Session Resource Setup Request Transfer; `None` before the UPF has given its tunnel.
pub(super) fn setup_request(context: &SmContext) -> Option<Vec<u8>> {
    let arp = Arp { priority_level: context.qos.arp_priority, may_preempt: false, preemptable: true };
    let flow = QosFlow { qfi: DEFAULT_QFI, five_qi: context.qos.five_qi, arp, gbr: None };
    let transfer = SetupRequestTransfer {
        session_ambr: Some(context.qos.ambr),
        uplink: context.at_n3()?.tunnel,
        session_type: SessionType::Ipv4,
        flows: vec![flow],
    };
    Some(transfer.encode())
}

/// PDU Session Resource Modify Request Transfer: the gNB sends what it sent from the tunnel `downlink` to another UPF.
pub(super) fn modify_request(uplink: Tunnel, downlink: Tunnel) -> Vec<u8> {
    let tunnels = vec![TunnelChange { uplink, downlink }];
    ModifyRequestTransfer { tunnels, ..ModifyRequestTransfer::default() }.encode()
}

/// PDU Session Resource Release Command Transfer.
pub(super) fn release_command() -> Vec<u8> {
    ReleaseCommandTransfer { cause: Cause::Nas(CauseNas::normal_release) }.encode()
}

/// The same, for resources whose tunnel the gNB does not know any more.
pub(super) fn release_lost_resources() -> Vec<u8> {
    let cause = Cause::Transport(CauseTransport::transport_resource_unavailable);
    ReleaseCommandTransfer { cause }.encode()
}
