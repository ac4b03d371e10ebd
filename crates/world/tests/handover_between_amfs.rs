//! N2 handover between two AMFs of different AMF Sets (TS 23.502 4.9.1.3), end to end: gNBs and UEs that check their keys, NRF, SMF and UPF.

use pith_world::{Plan, World};

#[test]
fn a_ue_goes_from_amf_to_amf_and_back() {
    for oauth2 in [false, true] {
        for shards in [1, 2] {
            let mut world = World::new(Plan { oauth2, shards, ..Plan::two_amfs() });
            world.keep_ladder();
            let gutis = world.run_handovers(3).unwrap_or_else(|failure| panic!("{failure}"));
            let sets: Vec<u16> = gutis.iter().map(|guti| guti.guami.amf_id.set).collect();
            assert_eq!(sets, [1, 2, 1, 2], "each AMF gives the UE a 5G-GUTI of its own");
            let ladder = world.ladder();
            let count = |what: &str| ladder.iter().filter(|entry| entry.what.contains(what)).count();
            assert_eq!(count("HandoverRequired"), 3);
            // The UE arrives before the status, which the target AMF then ignores.
            assert_eq!(count("UplinkRanStatusTransfer"), 3);
            assert_eq!(count("N2InfoNotify"), 3);
            assert_eq!(count("ReleaseUEContext"), 0);
        }
    }
}
