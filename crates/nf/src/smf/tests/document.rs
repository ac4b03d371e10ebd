//! Documents of sessions. Every other test of the SMF runs through them, too: the bench reloads each session after each step.

use super::super::Smf;
use super::world::*;
use crate::testing::check_documents;

const GOLDEN: &[(&str, &str)] = &[
    ("smf-established-1", include_str!("../../../tests/golden/smf-established-1.hex")),
    ("smf-flows-1", include_str!("../../../tests/golden/smf-flows-1.hex")),
    ("smf-flows-2", include_str!("../../../tests/golden/smf-flows-2.hex")),
    ("smf-branching-1", include_str!("../../../tests/golden/smf-branching-1.hex")),
    ("smf-changing-1", include_str!("../../../tests/golden/smf-changing-1.hex")),
    ("smf-changing-2", include_str!("../../../tests/golden/smf-changing-2.hex")),
    ("smf-registering-1", include_str!("../../../tests/golden/smf-registering-1.hex")),
    ("smf-handover-1", include_str!("../../../tests/golden/smf-handover-1.hex")),
    ("smf-handover-2", include_str!("../../../tests/golden/smf-handover-2.hex")),
    ("smf-handover-3", include_str!("../../../tests/golden/smf-handover-3.hex")),
    ("smf-emergency-1", include_str!("../../../tests/golden/smf-emergency-1.hex")),
    ("smf-reflective-1", include_str!("../../../tests/golden/smf-reflective-1.hex")),
    ("smf-reflective-2", include_str!("../../../tests/golden/smf-reflective-2.hex")),
    ("smf-reflective-3", include_str!("../../../tests/golden/smf-reflective-3.hex")),
    ("smf-ipv6-1", include_str!("../../../tests/golden/smf-ipv6-1.hex")),
    ("smf-addressing-1", include_str!("../../../tests/golden/smf-addressing-1.hex")),
];

fn only(world: &World) -> Vec<u8> {
    let [document] = &world.bench.nf.documents()[..] else { panic!("not one session") };
    document.octets().to_vec()
}

#[test]
fn shared_documents_have_room_for_each_section() {
    crate::testing::check_sections(crate::smf::context::document::SECTIONS);
}

#[test]
fn documents_of_earlier_versions_are_read_and_damaged_ones_refused() {
    let world = super::branching::branched();
    let flows = super::flows::awaiting_complete();
    let written = [
        ("smf-established", only(&World::established())),
        ("smf-flows", only(&flows)),
        ("smf-branching", only(&world)),
        ("smf-handover", only(&super::owner::prepared_by_another_amf())),
        ("smf-changing", only(&super::subscription_change::awaiting_decision())),
        ("smf-registering", only(&super::subscription_change::registering())),
        ("smf-emergency", only(&super::emergency::without_policy())),
        ("smf-reflective", only(&super::reflective::awaiting_complete())),
        ("smf-ipv6", only(&super::ipv6::delegating())),
        ("smf-addressing", only(&super::addressing::with_routes())),
    ];
    check_documents(GOLDEN, &written, |octets| Smf::repack(octets, &world.bench.nf.shared.upfs));
}

#[test]
fn an_established_session_takes_less_than_half_a_kilobyte() {
    let octets = only(&World::established());
    println!("SMF, established: {} octets", octets.len());
    assert!(octets.len() < 512, "{} octets", octets.len());
}

#[test]
fn a_session_waits_for_the_association_of_its_upf() {
    use crate::kit::document::UnpackError;
    let octets = only(&World::established());
    let other = World::with(config(), &[]);
    let missing = UnpackError::UpfIsMissing("upf".into());
    assert_eq!(Smf::repack(&octets, &other.bench.nf.shared.upfs).err(), Some(missing));
}
