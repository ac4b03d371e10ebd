//! Sessions that are only in a store between transactions.

use super::world::*;
use crate::kit::{N4Input, NetworkFunction, Tracking};
use crate::testing::Stateless;

fn stateless() -> World {
    let mut world = World::new();
    world.bench.nf.track_contexts(Tracking { whole: true, ..Tracking::default() });
    world.bench.stateless = Some(Stateless::default());
    world.establish();
    world.gnb_answers();
    world.take_ladder();
    world
}

/// Whether the SMF has no copy of its one session.
fn has_no_copy(world: &World) -> bool {
    let documents = &world.bench.stateless.as_ref().unwrap().stored.documents;
    assert_eq!((world.bench.nf.audit().contexts, documents.len()), (1, 1));
    documents.keys().all(|id| !world.bench.nf.is_resident(*id))
}

#[test]
fn each_request_finds_its_session_in_the_store() {
    let mut world = stateless();
    assert!(has_no_copy(&world));
    world.deactivate();
    assert!(world.take_ladder().contains("SessionModificationRequest"));
    assert!(has_no_copy(&world));
    world.report(pith_pfcp::ie::ReportType::DLDR);
    assert!(world.take_ladder().contains("N1N2MessageTransfer"), "the AMF pages the UE");
    assert!(world.bench.stateless.as_ref().unwrap().reads >= 2);
    world.release_by_amf();
    let stored = &world.bench.stateless.as_ref().unwrap().stored;
    assert!(stored.documents.is_empty());
    assert_eq!(world.bench.nf.audit().addresses, 0);
}

#[test]
fn a_session_of_a_lost_upf_ends_as_soon_as_it_is_read() {
    let mut world = stateless();
    world.deactivate();
    world.take_ladder();
    world.n4_input(N4Input::UpfDown { upf: UPF });
    let ladder = world.take_ladder();
    assert!(ladder.contains("SmContextStatusNotify"), "the AMF is notified:\n{ladder}");
    assert_eq!(world.bench.nf.audit().addresses, 0);
    assert!(world.bench.stateless.as_ref().unwrap().stored.documents.is_empty());
}
