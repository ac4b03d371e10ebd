//! A session in two tunnels: voice at the secondary gNB, all else at the master (TS 23.502 4.14.1, 4.3.3.2). The UPF is followed rule by rule.

use super::flow_mobility::{SECONDARY, indicate_with, move_to};
use super::flows::{complete, gnb_modifies, remove, voice, with_voice};
use super::handover::{self, TARGET};
use super::policy::notify;
use super::world::*;
use pith_ngap::transfer::{FlowTunnel, ModifyIndicationTransfer, ModifyResponseTransfer, Tunnel};
use pith_pfcp::ie::{ApplyAction, OuterHeaderCreation, PfcpSmReqFlags};
use pith_pfcp::message::SessionModificationRequest;
use pith_pfcp::{Change, Message};
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use std::collections::BTreeMap;

/// Downlink PDRs: of all packets, and of the first PCC rule.
const ALL: u16 = 2;
const VOICE: u16 = 105;

/// What the anchor has after all requests: the FAR of each PDR, and the tunnel of each FAR. `None`: it buffers.
#[derive(Debug, Default)]
struct Anchor {
    pdrs: BTreeMap<u16, u32>,
    fars: BTreeMap<u32, Option<OuterHeaderCreation>>,
    /// Tunnels that got an End Marker in the last request.
    ended: Vec<Option<OuterHeaderCreation>>,
}

impl Anchor {
    fn of(world: &World) -> Self {
        let mut anchor = Self::default();
        for message in &world.n4 {
            match message {
                Message::SessionEstablishmentRequest(request) => {
                    anchor = Self::default();
                    for far in &request.create_fars {
                        let parameters = far.forwarding_parameters.as_ref();
                        anchor.fars.insert(far.far_id.0, parameters.and_then(|it| it.outer_header_creation));
                    }
                    let pdrs = request.create_pdrs.iter();
                    anchor.pdrs = pdrs.map(|pdr| (pdr.pdr_id.0, pdr.far_id.unwrap().0)).collect();
                }
                Message::SessionModificationRequest(request) => anchor.change(request),
                _ => {}
            }
            let has = |far: &u32| anchor.fars.contains_key(far);
            assert!(anchor.pdrs.values().all(has), "a PDR without FAR: {anchor:?} after {message:?}");
        }
        anchor
    }

    fn change(&mut self, request: &SessionModificationRequest) {
        self.ended.clear();
        for far in &request.remove_fars {
            assert!(self.fars.remove(&far.far_id.0).is_some(), "{far:?} is not there");
        }
        for far in &request.create_fars {
            let parameters = far.forwarding_parameters.as_ref().unwrap();
            assert_eq!(self.fars.insert(far.far_id.0, parameters.outer_header_creation), None);
        }
        for far in &request.update_fars {
            let parameters = far.update_forwarding_parameters.as_ref();
            let to = match parameters.and_then(|it| it.outer_header_creation.clone()) {
                Some(Change::Set(header)) => Some(header),
                _ => None,
            };
            assert_eq!(to.is_some(), far.apply_action == Some(ApplyAction::FORW));
            let former = self.fars.insert(far.far_id.0, to).expect("an updated FAR exists");
            if parameters.and_then(|it| it.pfcp_sm_req_flags) == Some(PfcpSmReqFlags::SNDEM) {
                self.ended.push(former);
            }
        }
        for pdr in &request.remove_pdrs {
            assert!(self.pdrs.remove(&pdr.pdr_id.0).is_some(), "{pdr:?} is not there");
        }
        for pdr in &request.create_pdrs {
            assert_eq!(self.pdrs.insert(pdr.pdr_id.0, pdr.far_id.unwrap().0), None);
        }
        for pdr in &request.update_pdrs {
            let far = self.pdrs.get_mut(&pdr.pdr_id.0).expect("an updated PDR exists");
            *far = pdr.far_id.map_or(*far, |far| far.0);
        }
    }

    fn tunnel_of(&self, pdr: u16) -> Option<OuterHeaderCreation> {
        self.fars[&self.pdrs[&pdr]]
    }
}

fn header(tunnel: Tunnel) -> Option<OuterHeaderCreation> {
    Some(OuterHeaderCreation::gtpu(tunnel.teid.0, tunnel.address))
}

/// All packets but voice take the first tunnel, voice the second one, and the last request ends these.
fn assert_split(world: &World, (all, of_voice): (Tunnel, Tunnel), ended: &[Tunnel]) {
    let anchor = Anchor::of(world);
    assert_eq!(
        (anchor.tunnel_of(ALL), anchor.tunnel_of(VOICE)),
        (header(all), header(of_voice)),
        "{anchor:?}"
    );
    let ended: Vec<_> = ended.iter().map(|tunnel| header(*tunnel)).collect();
    assert_eq!(anchor.ended, ended);
}

fn split() -> World {
    let mut world = with_voice();
    move_to(&mut world, SECONDARY, &[2]);
    world
}

#[test]
fn voice_moves_to_the_secondary_gnb_and_back_and_follows_a_path_switch() {
    let mut world = split();
    assert_split(&world, (GNB_TUNNEL, SECONDARY), &[]);
    move_to(&mut world, GNB_TUNNEL, &[2]);
    assert_split(&world, (GNB_TUNNEL, GNB_TUNNEL), &[SECONDARY]);
    move_to(&mut world, SECONDARY, &[2]);
    assert_eq!(Anchor::of(&world).tunnel_of(VOICE), header(SECONDARY));
    handover::switch_to(&mut world, TARGET, &[1, 2]);
    assert_split(&world, (TARGET, TARGET), &[GNB_TUNNEL, SECONDARY]);
    move_to(&mut world, SECONDARY, &[1, 2]);
    assert_split(&world, (SECONDARY, SECONDARY), &[TARGET]);
}

#[test]
fn the_default_flow_moves_and_voice_stays() {
    let mut world = with_voice();
    move_to(&mut world, SECONDARY, &[1]);
    assert_split(&world, (SECONDARY, GNB_TUNNEL), &[]);
    handover::required(&mut world);
    handover::prepared_with(&mut world, &[1, 2]);
    handover::completed(&mut world);
    let anchor = Anchor::of(&world);
    assert_eq!((anchor.tunnel_of(ALL), anchor.tunnel_of(VOICE)), (header(TARGET), header(TARGET)));
    assert_eq!(anchor.ended.len(), 2);
}

#[test]
fn a_target_that_refuses_voice_gets_all_else() {
    let mut world = split();
    handover::switch_to(&mut world, TARGET, &[1]);
    complete(&mut world);
    let anchor = Anchor::of(&world);
    assert_eq!((anchor.tunnel_of(ALL), anchor.pdrs.contains_key(&VOICE)), (header(TARGET), false));
}

#[test]
fn a_removed_flow_leaves_its_tunnel() {
    let mut world = split();
    assert_eq!(Anchor::of(&world).fars.len(), 3);
    notify(&mut world, remove("voice"));
    gnb_modifies(&mut world, &[], &[]);
    complete(&mut world);
    let anchor = Anchor::of(&world);
    assert_eq!((anchor.fars.len(), anchor.pdrs.contains_key(&VOICE)), (2, false));
    // The next one begins in the primary tunnel.
    notify(&mut world, voice);
    gnb_modifies(&mut world, &[2], &[]);
    complete(&mut world);
    assert_split(&world, (GNB_TUNNEL, GNB_TUNNEL), &[]);
}

#[test]
fn a_new_flow_has_the_tunnel_of_the_default_flow_until_the_gnb_names_another() {
    let mut world = World::established();
    notify(&mut world, voice);
    assert_split(&world, (GNB_TUNNEL, GNB_TUNNEL), &[]);
    // The gNB has not answered: an indication may be older than the change.
    move_to(&mut world, SECONDARY, &[1]);
    assert_split(&world, (GNB_TUNNEL, GNB_TUNNEL), &[]);
    let additional = vec![FlowTunnel { tunnel: SECONDARY, flows: vec![2] }];
    let transfer = ModifyResponseTransfer { flows: vec![2], additional, ..Default::default() }.encode();
    world.update(|data| {
        data.n2_sm_info_type = Some(N2SmInfoType::PduResModRsp);
        data.n2_sm_info = Some(transfer.into());
    });
    assert_split(&world, (GNB_TUNNEL, SECONDARY), &[]);
    let Some(Message::SessionModificationRequest(request)) = world.n4.last() else { panic!() };
    let own = request.update_pdrs.iter().find(|update| update.pdr_id.0 == VOICE).unwrap();
    assert!(own.qer_ids.is_some(), "downlink packets use the flow");
    complete(&mut world);
    world.deactivate();
    let anchor = Anchor::of(&world);
    assert_eq!((anchor.tunnel_of(ALL), anchor.tunnel_of(VOICE), anchor.fars.len()), (None, None, 2));
}

#[test]
fn one_indication_can_name_both_tunnels() {
    let mut world = with_voice();
    let downlink = FlowTunnel { tunnel: TARGET, flows: vec![1] };
    let additional = vec![FlowTunnel { tunnel: SECONDARY, flows: vec![2] }];
    indicate_with(&mut world, &ModifyIndicationTransfer { downlink, additional, usage: None });
    assert_split(&world, (TARGET, SECONDARY), &[GNB_TUNNEL]);
}
