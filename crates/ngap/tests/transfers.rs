//! Transfers decode to the values that were encoded.

use pith_ngap::transfer::*;
use pith_ngap::*;
use pith_types::{Ambr, BitRate, Teid};

const CAUSE: Cause = Cause::RadioNetwork(CauseRadioNetwork::handover_desirable_for_radio_reason);

fn ambr() -> Ambr {
    Ambr { uplink: BitRate::mbps(100), downlink: BitRate::mbps(200) }
}

#[test]
fn set_up_and_release() {
    let tunnel = Tunnel { address: "10.0.0.1".parse().unwrap(), teid: Teid(0x0102_0304) };
    let arp = Arp { priority_level: 8, may_preempt: false, preemptable: true };
    let gbr = Some(GbrQos { maximum: ambr(), guaranteed: ambr() });
    let flows = vec![
        QosFlow { qfi: 1, five_qi: 9, arp, gbr: None, reflective: true },
        QosFlow { qfi: 63, five_qi: 1, arp, gbr, reflective: false },
    ];
    let request = SetupRequestTransfer {
        session_ambr: Some(ambr()),
        uplink: tunnel,
        session_type: SessionType::Ipv4v6,
        flows,
    };
    assert_eq!(SetupRequestTransfer::decode(&request.encode()), Ok(request));
    let cause = Cause::Transport(CauseTransport::unspecified);
    let six = Tunnel { address: "2001:db8::1".parse().unwrap(), teid: Teid(1) };
    let additional = vec![FlowTunnel { tunnel, flows: vec![4] }];
    let response =
        SetupResponseTransfer { downlink: six, flows: vec![1, 63], additional, failed: vec![(2, cause)] };
    assert_eq!(SetupResponseTransfer::decode(&response.encode()), Ok(response));
    let unsuccessful = SetupUnsuccessfulTransfer { cause };
    assert_eq!(SetupUnsuccessfulTransfer::decode(&unsuccessful.encode()), Ok(unsuccessful));
    let command = ReleaseCommandTransfer { cause };
    assert_eq!(ReleaseCommandTransfer::decode(&command.encode()), Ok(command));
    assert_eq!(
        ReleaseResponseTransfer::decode(&ReleaseResponseTransfer.encode()),
        Ok(ReleaseResponseTransfer)
    );
    assert!(SetupRequestTransfer::decode(&[0, 0]).is_err());
}

#[test]
fn modification_path_switch_and_handover() {
    let tunnel = Tunnel { address: "192.0.2.1".parse().unwrap(), teid: Teid(0x1234_5678) };
    let other = Tunnel { address: "2001:db8::1".parse().unwrap(), teid: Teid(1) };
    let failed = vec![(9, CAUSE)];
    let arp = Arp { priority_level: 8, may_preempt: false, preemptable: true };
    let gbr = GbrQos { maximum: ambr(), guaranteed: ambr() };
    let flow = QosFlow { qfi: 3, five_qi: 1, arp, gbr: Some(gbr), reflective: false };
    let flow_tunnel = FlowTunnel { tunnel, flows: vec![1, 2] };
    let additional =
        vec![FlowTunnel { tunnel: other, flows: vec![3] }, FlowTunnel { tunnel, flows: vec![63] }];
    let pairs = vec![TunnelChange { uplink: tunnel, downlink: other }];
    let usage = SecondaryRatUsage { uplink: 1500, downlink: u64::MAX };
    macro_rules! back {
        ($($name:ident $value:expr;)*) => { $({
            let (value, octets): ($name, _) = { let value = $value; let octets = value.encode(); (value, octets) };
            assert!(!octets.is_empty(), stringify!($name));
            assert_eq!($name::decode(&octets), Ok(value), stringify!($name));
        })* };
    }
    back! {
        ModifyRequestTransfer ModifyRequestTransfer {
            session_ambr: Some(ambr()), flows: vec![flow], to_release: failed.clone(), tunnels: vec![],
        };
        ModifyRequestTransfer ModifyRequestTransfer {
            tunnels: vec![TunnelChange { uplink: tunnel, downlink: other }], ..ModifyRequestTransfer::default()
        };
        ModifyResponseTransfer ModifyResponseTransfer {
            downlink: Some(tunnel), uplink: Some(other), flows: vec![3, 4], additional: additional.clone(), failed: failed.clone(),
        };
        ModifyUnsuccessfulTransfer ModifyUnsuccessfulTransfer { cause: CAUSE };
        NotifyTransfer NotifyTransfer {
            flows: vec![(3, NotificationCause::not_fulfilled)], released: failed.clone(),
        };
        NotifyReleasedTransfer NotifyReleasedTransfer { cause: CAUSE };
        ModifyIndicationTransfer ModifyIndicationTransfer { downlink: flow_tunnel.clone(), additional: vec![], usage: None };
        ModifyIndicationTransfer ModifyIndicationTransfer {
            downlink: flow_tunnel, additional: additional.clone(), usage: Some(usage),
        };
        ModifyConfirmTransfer ModifyConfirmTransfer {
            flows: vec![1], uplink: other, additional: pairs.clone(), failed: failed.clone(),
        };
        SecondaryRatUsageTransfer SecondaryRatUsageTransfer { usage: Some(usage) };
        SecondaryRatUsageTransfer SecondaryRatUsageTransfer { usage: None };
        ModifyIndicationUnsuccessfulTransfer ModifyIndicationUnsuccessfulTransfer { cause: CAUSE };
        PathSwitchRequestTransfer PathSwitchRequestTransfer { downlink: other, flows: vec![1, 2], additional: vec![] };
        PathSwitchRequestTransfer PathSwitchRequestTransfer { downlink: other, flows: vec![1, 2], additional };
        PathSwitchRequestAcknowledgeTransfer PathSwitchRequestAcknowledgeTransfer { uplink: Some(tunnel), additional: pairs };
        PathSwitchRequestAcknowledgeTransfer PathSwitchRequestAcknowledgeTransfer { uplink: None, additional: vec![] };
        PathSwitchRequestSetupFailedTransfer PathSwitchRequestSetupFailedTransfer { cause: CAUSE };
        PathSwitchRequestUnsuccessfulTransfer PathSwitchRequestUnsuccessfulTransfer { cause: CAUSE };
        HandoverRequiredTransfer HandoverRequiredTransfer { direct_forwarding_path: true };
        HandoverRequiredTransfer HandoverRequiredTransfer { direct_forwarding_path: false };
        HandoverRequestAcknowledgeTransfer HandoverRequestAcknowledgeTransfer {
            downlink: tunnel, forwarding: Some(other), flows: vec![(1, true), (2, false)],
            additional: vec![AdditionalTarget { downlink: other, forwarding: Some(tunnel), flows: vec![(3, true)] }], failed,
        };
        HandoverCommandTransfer HandoverCommandTransfer { forwarding: Some(tunnel), flows: vec![1] };
        HandoverPreparationUnsuccessfulTransfer HandoverPreparationUnsuccessfulTransfer { cause: CAUSE };
        HandoverResourceAllocationUnsuccessfulTransfer HandoverResourceAllocationUnsuccessfulTransfer { cause: CAUSE };
    }
}
