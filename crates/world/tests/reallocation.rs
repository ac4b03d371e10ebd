//! AMF re-allocation end to end (TS 23.502 4.2.2.2.3): NSSF, NRF, a gNB with two AMFs, and a UE that checks its keys.

use pith_world::{Plan, World};

#[test]
fn a_ue_is_passed_on_to_the_amf_of_its_slice() {
    for oauth2 in [false, true] {
        for shards in [1, 2] {
            let mut world = World::new(Plan { oauth2, shards, ..Plan::two_amfs_of_slices() });
            world.keep_ladder();
            let (guti, _) = world.run_reallocation().unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!(guti.map(|guti| guti.guami.amf_id.set), Some(2), "of the second AMF");
            let ladder = world.ladder();
            let count = |what: &str| ladder.iter().filter(|entry| entry.what.contains(what)).count();
            assert!(count("N1MessageNotify") >= 1);
            assert_eq!(count("RerouteNasRequest"), 0);
        }
    }
}
