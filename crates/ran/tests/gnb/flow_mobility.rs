//! Dual connectivity: the gNB moves the downlink of a session (TS 38.413 8.2.5).

use crate::amf::*;
use crate::pdu_session::{bearer, with_session};
use pith_ngap::transfer::*;
use pith_ngap::*;
use pith_ran::gnb::{Bearer, Input, Output};
use pith_types::Teid;

const UPLINK: u32 = 0xdef;

fn secondary() -> Tunnel {
    Tunnel { address: "10.0.0.2".parse().unwrap(), teid: Teid(0x200) }
}

/// A gNB that has indicated the tunnel of a secondary gNB.
fn indicated() -> Pair {
    let mut pair = with_session();
    pair.input(Input::MoveFlows { ue: UE, tunnels: vec![(1, secondary())] });
    let Message::PduSessionResourceModifyIndication(indication) = pair.message() else { panic!() };
    let transfer = ModifyIndicationTransfer::decode(&indication.sessions[0].transfer).unwrap();
    let downlink = FlowTunnel { tunnel: secondary(), flows: vec![9] };
    assert_eq!(transfer, ModifyIndicationTransfer { downlink, additional: vec![], usage: None });
    pair
}

fn confirmation(flows: &[u8]) -> Vec<u8> {
    let uplink = Tunnel { address: "10.0.0.9".parse().unwrap(), teid: Teid(UPLINK) };
    ModifyConfirmTransfer { flows: flows.to_vec(), uplink, additional: vec![], failed: vec![] }.encode()
}

fn confirm(pair: &mut Pair, confirmed: &[(u8, Vec<u8>)], failed: &[u8]) {
    let cause = Cause::RadioNetwork(CauseRadioNetwork::interaction_with_other_procedure);
    let refusal = ModifyIndicationUnsuccessfulTransfer { cause }.encode();
    let item =
        |(id, transfer): &(u8, Vec<u8>)| SessionTransfer { pdu_session_id: *id, transfer: transfer.clone() };
    let failed: Vec<_> = failed.iter().map(|id| item(&(*id, refusal.clone()))).collect();
    let message = PduSessionResourceModifyConfirm {
        amf_ue_ngap_id: amf_id(),
        ran_ue_ngap_id: RAN,
        confirmed: (!confirmed.is_empty()).then(|| confirmed.iter().map(item).collect()),
        failed: (!failed.is_empty()).then_some(failed),
        diagnostics: None,
    };
    pair.give(STREAM, message.encode().unwrap());
}

#[test]
fn a_confirmed_session_has_the_tunnel_of_the_secondary_gnb() {
    let mut pair = indicated();
    confirm(&mut pair, &[(1, confirmation(&[9]))], &[]);
    let before = bearer(1, 0x100);
    let uplink = Tunnel { teid: Teid(UPLINK), ..before.uplink };
    let moved = vec![Bearer { downlink: secondary().teid, n3: secondary().address, uplink, ..before }];
    assert_eq!(pair.out, [Output::FlowsMoved { ue: UE, moved, is_complete: true }]);
    pair.assert_clean();
}

#[test]
fn a_session_that_failed_keeps_its_tunnel() {
    let mut pair = indicated();
    confirm(&mut pair, &[], &[1]);
    assert_eq!(pair.out, [Output::FlowsMoved { ue: UE, moved: vec![], is_complete: false }]);
    pair.assert_clean();
}

#[test]
fn wrong_confirmations_are_violations() {
    let mut pair = indicated();
    confirm(&mut pair, &[(2, confirmation(&[9]))], &[]);
    assert_eq!(pair.violation(), "TS 38.413 8.2.5.2");
    let mut pair = indicated();
    confirm(&mut pair, &[(1, confirmation(&[8]))], &[]);
    assert_eq!(pair.violation(), "TS 38.413 8.2.5.2");
    let mut pair = indicated();
    confirm(&mut pair, &[(1, vec![0xff])], &[]);
    assert_eq!(pair.violation(), "TS 38.413 9.3.4.7");
    let mut pair = with_session();
    confirm(&mut pair, &[(1, confirmation(&[9]))], &[]);
    assert_eq!(pair.violation(), "TS 38.413 8.2.5.2");
}

#[test]
fn a_ue_without_the_session_does_not_move() {
    let mut pair = with_session();
    pair.input(Input::MoveFlows { ue: UE, tunnels: vec![(2, secondary())] });
    assert!(pair.sent.is_empty());
    assert_eq!(pair.out, [Output::FlowsMoved { ue: UE, moved: vec![], is_complete: false }]);
}
