//! Handovers and paging of the scripted core, and UEs that go through them.

use super::core::{
    Core, DN_PORT, Fault, UeIds, address, ambr, guti, imsi_of_id, number, release_command, setup_item,
};
use super::{World, network, plan, ran_well};
use pith_crypto::kdf;
use pith_crypto::keys::{KAmf, KGnb, Nh};
use pith_ngap::transfer::*;
use pith_ngap::*;
use pith_pfcp::gtpu::Signalling;
use pith_ran::gnb::UeKey;
use pith_ran::journey::{Arrivals, HandoverPath, HandoverTarget, Profile, Progress, Step};
use pith_types::{Snssai, Teid};
use std::net::SocketAddrV4;
use std::time::Duration;

/// The chain of NH of a UE (TS 33.501 6.9.2.1.1).
pub struct Chain {
    k_amf: KAmf,
    nh: Nh,
    count: u8,
}

impl Chain {
    /// K_gNB has NCC 0, the first NH has NCC 1.
    pub fn new(k_amf: KAmf, k_gnb: &KGnb) -> Self {
        let nh = kdf::first_nh(&k_amf, k_gnb);
        Self { k_amf, nh, count: 1 }
    }

    fn next(&mut self) -> NextHop {
        self.nh = kdf::next_nh(&self.k_amf, &self.nh);
        self.count = (self.count + 1) & 7;
        NextHop { chaining_count: self.count, nh: *self.nh.as_bytes() }
    }
}

/// An N2 handover in progress.
pub struct Relocation {
    source: (usize, UeIds),
    target: usize,
}

const CAPABILITIES: SecurityCapabilities = SecurityCapabilities {
    nr_encryption: 0xc000,
    nr_integrity: 0xc000,
    eutra_encryption: 0xc000,
    eutra_integrity: 0xc000,
};

impl Core {
    fn next_hop(&mut self, imsi: &str) -> NextHop {
        let stays = self.fault == Some(Fault::RepeatNextHop);
        let chain = self.subscribers.get_mut(imsi).unwrap().chain.as_mut().unwrap();
        if stays { NextHop { chaining_count: chain.count, nh: [7; 32] } } else { chain.next() }
    }

    /// Downlink packets use the target's tunnel from now on.
    fn switch(&mut self, imsi: &str, to: Teid) {
        let former = self.downlink.insert(Teid(number(imsi)), to).unwrap();
        let mut marker = Vec::new();
        Signalling::EndMarker { teid: former.0 }.encode(&mut marker);
        if self.fault != Some(Fault::NoEndMarker) {
            self.datagrams.push(marker);
        }
    }

    pub fn switch_path(&mut self, gnb: usize, request: &PathSwitchRequest) -> Vec<Vec<u8>> {
        let imsi = imsi_of_id(request.source_amf_ue_ngap_id);
        self.connections.insert((gnb, request.ran_ue_ngap_id), imsi.clone());
        let [session] = &request.sessions[..] else { panic!("{request:?}") };
        let transfer = PathSwitchRequestTransfer::decode(&session.transfer).unwrap();
        self.switch(&imsi, transfer.downlink.teid);
        let transfer = PathSwitchRequestAcknowledgeTransfer::default().encode();
        let acknowledge = PathSwitchRequestAcknowledge {
            amf_ue_ngap_id: request.source_amf_ue_ngap_id,
            ran_ue_ngap_id: request.ran_ue_ngap_id,
            security_capabilities: None,
            security_context: self.next_hop(&imsi),
            new_security_context: None,
            switched: Some(vec![SessionTransfer { pdu_session_id: 1, transfer }]),
            released: None,
            allowed_nssai: vec![Snssai::of_sst(1)],
            diagnostics: None,
        };
        vec![acknowledge.encode().unwrap()]
    }

    /// Downlink packets use the indicated tunnel from now on (TS 38.413 8.2.5.2).
    pub fn move_flows(&mut self, indication: PduSessionResourceModifyIndication) -> Vec<Vec<u8>> {
        let (amf_ue_ngap_id, ran_ue_ngap_id) = (indication.amf_ue_ngap_id, indication.ran_ue_ngap_id);
        let imsi = imsi_of_id(amf_ue_ngap_id);
        let [session] = &indication.sessions[..] else { panic!("{indication:?}") };
        let FlowTunnel { tunnel, flows } =
            ModifyIndicationTransfer::decode(&session.transfer).unwrap().downlink;
        let item = |transfer| Some(vec![SessionTransfer { pdu_session_id: 1, transfer }]);
        let (mut confirmed, mut failed) = (None, None);
        if self.fault == Some(Fault::RefuseHandover) {
            let cause = Cause::RadioNetwork(CauseRadioNetwork::interaction_with_other_procedure);
            failed = item(ModifyIndicationUnsuccessfulTransfer { cause }.encode());
        } else {
            self.switch(&imsi, tunnel.teid);
            let setup = SetupRequestTransfer::decode(&setup_item(&imsi, None).transfer).unwrap();
            let transfer =
                ModifyConfirmTransfer { flows, uplink: setup.uplink, additional: vec![], failed: vec![] };
            confirmed = item(transfer.encode());
        }
        let confirm = PduSessionResourceModifyConfirm {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            confirmed,
            failed,
            diagnostics: None,
        };
        vec![confirm.encode().unwrap()]
    }

    pub fn prepare(&mut self, gnb: usize, required: HandoverRequired) -> Vec<Vec<u8>> {
        let ids = UeIds { amf: required.amf_ue_ngap_id, ran: required.ran_ue_ngap_id };
        let cause = Some(Cause::RadioNetwork(CauseRadioNetwork::unknown_targetID));
        if self.fault == Some(Fault::RefuseHandover) {
            let failure = HandoverPreparationFailure {
                amf_ue_ngap_id: ids.amf,
                ran_ue_ngap_id: ids.ran,
                cause,
                diagnostics: None,
            };
            return vec![failure.encode().unwrap()];
        }
        let TargetId::RanNode { node: GlobalRanNodeId::Gnb { id, .. }, .. } = required.target else {
            panic!("{required:?}")
        };
        let imsi = imsi_of_id(ids.amf);
        let item = setup_item(&imsi, None);
        let nas_container = match self.fault {
            Some(Fault::WrongNasContainer) => Some(vec![1, 2, 3, 4, 0x11, 0, 0x20]),
            _ if self.changes_algorithms => {
                self.subscribers.get_mut(&imsi).map(|subscriber| subscriber.change_algorithms())
            }
            _ => None,
        };
        let request = HandoverRequest {
            amf_ue_ngap_id: ids.amf,
            handover_type: required.handover_type,
            cause: required.cause,
            ue_ambr: ambr(),
            security_capabilities: CAPABILITIES,
            security_context: self.next_hop(&imsi),
            new_security_context: None,
            nas_container,
            sessions: vec![HandoverItem {
                pdu_session_id: item.pdu_session_id,
                snssai: item.snssai,
                transfer: item.transfer,
            }],
            allowed_nssai: vec![Snssai::of_sst(1)],
            trace: None,
            masked_imeisv: None,
            source_to_target: required.source_to_target,
            mobility_restrictions: None,
            guami: guti("999700000000000").guami,
        };
        self.elsewhere.push((id as usize, request.encode().unwrap()));
        self.relocations.insert(imsi, Relocation { source: (gnb, ids), target: id as usize });
        vec![]
    }

    pub fn command(&mut self, gnb: usize, acknowledge: HandoverRequestAcknowledge) -> Vec<Vec<u8>> {
        let imsi = imsi_of_id(acknowledge.amf_ue_ngap_id);
        self.connections.insert((gnb, acknowledge.ran_ue_ngap_id), imsi.clone());
        let admitted = acknowledge.admitted.unwrap();
        let transfer = HandoverRequestAcknowledgeTransfer::decode(&admitted[0].transfer).unwrap();
        self.prepared.insert(imsi.clone(), (acknowledge.ran_ue_ngap_id, transfer.downlink.teid));
        let (source, ids) = self.relocations[&imsi].source;
        let transfer = HandoverCommandTransfer { forwarding: None, flows: vec![] }.encode();
        let command = HandoverCommand {
            amf_ue_ngap_id: ids.amf,
            ran_ue_ngap_id: ids.ran,
            handover_type: HandoverType::intra5gs,
            nas_security_parameters: None,
            sessions: Some(vec![SessionTransfer { pdu_session_id: 1, transfer }]),
            to_release: None,
            target_to_source: acknowledge.target_to_source,
            diagnostics: None,
        };
        self.elsewhere.push((source, command.encode().unwrap()));
        vec![]
    }

    pub fn transfer_status(&mut self, message: UplinkRanStatusTransfer) -> Vec<Vec<u8>> {
        let imsi = imsi_of_id(message.amf_ue_ngap_id);
        let changed = RanStatus::decode(&[&[0; 11][..], &[9]].concat()).unwrap();
        let transfer = DownlinkRanStatusTransfer {
            amf_ue_ngap_id: message.amf_ue_ngap_id,
            ran_ue_ngap_id: self.prepared[&imsi].0,
            status: if self.fault == Some(Fault::ChangeCounts) { changed } else { message.status },
        };
        self.elsewhere.push((self.relocations[&imsi].target, transfer.encode().unwrap()));
        vec![]
    }

    pub fn cancel(&mut self, cancel: &HandoverCancel) -> Vec<Vec<u8>> {
        let (amf_ue_ngap_id, ran_ue_ngap_id) = (cancel.amf_ue_ngap_id, cancel.ran_ue_ngap_id);
        let imsi = imsi_of_id(amf_ue_ngap_id);
        let target = self.relocations.remove(&imsi).unwrap().target;
        let (ran, _) = self.prepared.remove(&imsi).unwrap();
        self.connections.remove(&(target, ran));
        self.elsewhere.push((target, release_command(UeIds { amf: amf_ue_ngap_id, ran })));
        let acknowledge = HandoverCancelAcknowledge { amf_ue_ngap_id, ran_ue_ngap_id, diagnostics: None };
        vec![acknowledge.encode().unwrap()]
    }

    pub fn complete(&mut self, notify: &HandoverNotify) -> Vec<Vec<u8>> {
        let imsi = imsi_of_id(notify.amf_ue_ngap_id);
        let (source, ids) = self.relocations.remove(&imsi).unwrap().source;
        let (_, downlink) = self.prepared.remove(&imsi).unwrap();
        self.switch(&imsi, downlink);
        self.elsewhere.push((source, release_command(ids)));
        vec![]
    }

    /// A packet of the data network: the UE is paged, and the packet waits for its tunnel.
    pub fn receive_from_network(&mut self, to: SocketAddrV4, data: &[u8]) {
        let imsi = imsi_of_id(
            pith_types::AmfUeNgapId::from_wire((u32::from(*to.ip()) - 0x0a2d_0000).into()).unwrap(),
        );
        assert_eq!(address(&imsi), *to.ip());
        let from = "192.0.2.1:5000".parse().unwrap();
        self.buffered.insert(imsi.clone(), super::core::udp(from, to, data));
        let paging = Paging::new(guti(&imsi).s_tmsi(), vec![network::tai()]).encode().unwrap();
        assert_eq!(to.port(), DN_PORT);
        if self.fault == Some(Fault::LosePages) {
            return;
        }
        self.elsewhere.extend((0..3).map(|gnb| (gnb, paging.clone())));
    }
}

fn count(world: &World, step: &str) -> (usize, u64) {
    let procedure = world.ran.statistics().procedures.get(step);
    procedure.map_or((0, 0), |procedure| (procedure.completed.len(), procedure.failed))
}

#[test]
fn ues_move_over_xn_and_through_the_amf() {
    let world = ran_well(plan(Profile::Moving, Some(super::ping(1)), 4), 3, 5);
    assert_eq!((count(&world, "Xn handover"), count(&world, "N2 handover")), ((20, 0), (20, 0)));
    assert_eq!(world.ran.statistics().ping.received, 5 * 9);
    assert_eq!((world.ran.statistics().end_markers, world.ran.end_markers_due()), (40, None));
    // Eight handovers later each UE is at the gNB after the next but one.
    assert_eq!((0..3).map(|gnb| world.ran.gnb(gnb).unwrap().ue_count()).collect::<Vec<_>>(), [2, 1, 2]);
}

#[test]
fn profiles_of_one_kind_of_handover() {
    let world = ran_well(plan(Profile::Xn, None, 9), 2, 2);
    assert_eq!((count(&world, "Xn handover").0, count(&world, "N2 handover").0), (18, 0));
    let world = ran_well(plan(Profile::N2, None, 9), 2, 2);
    assert_eq!((count(&world, "Xn handover").0, count(&world, "N2 handover").0), (0, 18));
}

#[test]
fn the_downlink_moves_to_a_secondary_gnb_and_back() {
    let world = ran_well(plan(Profile::DualConnectivity, Some(super::ping(2)), 3), 2, 4);
    let steps = (count(&world, "flows to a secondary gNB"), count(&world, "flows back"));
    assert_eq!(steps, ((12, 0), (12, 0)));
    assert_eq!(world.ran.statistics().ping.received, 4 * 2 * 7);
    assert_eq!((world.ran.statistics().end_markers, world.ran.end_markers_due()), (24, None));
    assert!((0..4).all(|ue| world.ran.gnb(ue as usize % 2).unwrap().ids_of(UeKey(ue)).is_some()));
}

#[test]
fn flows_that_the_core_does_not_move_stay_at_the_master() {
    let mut world = World::new(plan(Profile::DualConnectivity, None, 1), 2, 1, Arrivals::AtOnce);
    world.core.fault = Some(Fault::RefuseHandover);
    world.begin();
    world.run(Duration::from_secs(60));
    assert_eq!(world.ran.statistics().failures.len(), 1, "{:?}", world.ran.statistics().failures);
    assert_eq!(count(&world, "flows to a secondary gNB"), (0, 1));
    let mut out = Vec::new();
    world.core.fault = None;
    world.ran.perform(world.now, UeKey(0), [Step::Ping].into(), &mut out);
    assert!(world.violations().is_empty(), "{:?}", world.violations());
}

#[test]
fn pdcp_counts_of_many_ues_reach_the_target() {
    let world = ran_well(plan(Profile::N2, None, 1), 2, 600);
    assert_eq!(count(&world, "N2 handover"), (600, 0));
}

#[test]
fn a_ping_pong_returns_to_the_gnb_from_which_the_ue_came() {
    let world = ran_well(plan(Profile::PingPong, None, 3), 3, 3);
    assert_eq!((count(&world, "Xn handover").0, count(&world, "N2 handover").0), (18, 18));
    for ue in 0..3 {
        assert!(world.ran.gnb(ue as usize).unwrap().ids_of(UeKey(ue)).is_some(), "UE {ue}");
    }
}

#[test]
fn a_downlink_packet_pages_an_idle_ue() {
    let world = ran_well(plan(Profile::Paged, Some(super::ping(1)), 3), 2, 4);
    assert_eq!((count(&world, "paging"), world.ran.statistics().paging.len()), ((12, 0), 12));
    assert!((0..4).all(|ue| world.ran.ue(UeKey(ue)).unwrap().is_connected()));
}

#[test]
fn a_page_without_delivery_fails() {
    let mut world = World::new(plan(Profile::Paged, None, 1), 1, 1, Arrivals::AtOnce);
    world.core.fault = Some(Fault::LosePages);
    world.begin();
    world.run(Duration::from_secs(60));
    assert_eq!(world.ran.statistics().failures.get("paging: the packet was not delivered"), Some(&1));
    assert_eq!(count(&world, "paging"), (0, 1));
}

#[test]
fn faults_of_handovers_are_violations() {
    let cases = [
        (Fault::NoEndMarker, Profile::Xn, "TS 23.501 5.8.2.9"),
        (Fault::NoEndMarker, Profile::N2, "TS 23.501 5.8.2.9"),
        (Fault::NoEndMarker, Profile::DualConnectivity, "TS 23.501 5.8.2.9"),
        (Fault::RepeatNextHop, Profile::N2, "TS 33.501 6.9.2.3.4"),
        (Fault::RepeatNextHop, Profile::Xn, "TS 33.501 6.9.2.3.4"),
        (Fault::ChangeCounts, Profile::N2, "TS 38.413 8.4.7.2"),
    ];
    for (fault, profile, clause) in cases {
        let mut world = World::new(plan(profile, None, 2), 2, 1, Arrivals::AtOnce);
        world.core.fault = Some(fault);
        world.begin();
        world.run(Duration::from_secs(60));
        world.now = world.ran.end_markers_due().unwrap_or(world.now);
        world.handle(pith_ran::ran::Input::Timeout);
        world.ran.check_end_markers();
        let found = world.violations();
        assert!(found.iter().any(|text| text.starts_with(clause)), "{fault:?}, {profile}: {found:?}");
    }
}

#[test]
fn a_packet_after_the_end_marker_is_a_violation() {
    let mut world = ran_well(plan(Profile::Xn, Some(super::ping(1)), 1), 2, 1);
    let former = Teid(1);
    world.core.downlink.insert(Teid(number(network::IMSI)), former);
    let mut out = Vec::new();
    world.ran.perform(world.now, UeKey(0), [Step::Ping].into(), &mut out);
    world.out.append(&mut out);
    world.settle();
    assert!(
        world.violations().iter().any(|text| text.starts_with("TS 29.281 7.3.2")),
        "{:?}",
        world.violations()
    );
}

#[test]
fn a_refused_handover_leaves_the_ue_at_its_gnb() {
    let mut world = World::new(plan(Profile::N2, None, 1), 2, 1, Arrivals::AtOnce);
    world.core.fault = Some(Fault::RefuseHandover);
    world.begin();
    world.run(Duration::from_secs(60));
    assert_eq!(world.ran.statistics().failures.get("N2 handover: HANDOVER PREPARATION FAILURE"), Some(&1));
    assert!(world.ran.gnb(0).unwrap().ids_of(UeKey(0)).is_some() && world.violations().is_empty());
}

/// TS 33.501 6.9.2.3.4: the messages after each handover have the new algorithms.
#[test]
fn ues_take_the_algorithms_of_nas_containers() {
    let mut world = World::new(plan(Profile::N2, None, 3), 2, 2, Arrivals::AtOnce);
    world.core.changes_algorithms = true;
    world.begin();
    world.run(Duration::from_secs(60));
    assert_eq!(world.violations(), Vec::<String>::new());
    assert_eq!(count(&world, "N2 handover"), (6, 0));
}

/// TS 38.413 8.4.5.2: the source gNB cancels the handover.
#[test]
fn a_ue_that_does_not_accept_a_nas_container_stays_at_its_gnb() {
    let mut world = World::new(plan(Profile::N2, None, 1), 2, 1, Arrivals::AtOnce);
    world.core.fault = Some(Fault::WrongNasContainer);
    world.begin();
    world.run(Duration::from_secs(60));
    let why = "N2 handover: the UE does not accept the NAS container";
    assert_eq!(world.ran.statistics().failures.get(why), Some(&1));
    assert!(world.violations().iter().any(|text| text.starts_with("TS 33.501 6.9.2.3.4")));
    assert!(world.ran.gnb(0).unwrap().ids_of(UeKey(0)).is_some());
    assert_eq!(world.ran.gnb(1).unwrap().ue_count(), 0);
    assert!(world.core.relocations.is_empty());
}

#[test]
fn steps_after_the_plan_are_counted_by_procedure() {
    let mut world = ran_well(plan(Profile::Session, None, 1), 2, 3);
    let handover = |path| Step::Handover(path, HandoverTarget::Next);
    for step in [handover(HandoverPath::Xn), handover(HandoverPath::N2), Step::BecomeIdle, Step::Page] {
        for ue in 0..3 {
            let mut out = Vec::new();
            assert!(world.ran.perform(world.now, UeKey(ue), [step].into(), &mut out));
            world.out.append(&mut out);
            world.settle();
            assert_eq!(world.ran.progress(UeKey(ue)), Some(Progress::Done), "{step}");
        }
        assert_eq!(count(&world, step.name()), (3, 0));
    }
    // A UE that is connected is not paged.
    world.ran.perform(world.now, UeKey(0), [Step::Page].into(), &mut Vec::new());
    assert_eq!(world.ran.statistics().failures.get("paging: the UE is not idle"), Some(&1));
    assert_eq!(world.violations(), Vec::<String>::new());
}
