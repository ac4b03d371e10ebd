//! Mobility between two AMFs of different AMF Sets, end to end: gNBs and UEs that check their keys, NRF, SMF and UPF.
//! N2 handover (TS 23.502 4.9.1.3), and registration in CM-IDLE with UE context transfer (4.2.2.2.2).

use pith_crypto::nas::CipheringAlgorithm;
use pith_world::{Plan, World, reports_of};

#[test]
fn a_ue_goes_from_amf_to_amf_and_back() {
    for oauth2 in [false, true] {
        for shards in [1, 2] {
            let mut world = World::new(Plan { oauth2, shards, ..Plan::two_amfs() });
            world.keep_ladder();
            let (gutis, _) = world.run_handovers(3).unwrap_or_else(|failure| panic!("{failure}"));
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

/// The UE takes the algorithms of each AMF with the handover, and is authenticated once only (TS 33.501 6.9.2.3.3).
#[test]
fn a_ue_takes_the_algorithms_of_the_amf_to_which_it_is_handed_over() {
    for (first, other) in [
        (CipheringAlgorithm::Nea2, CipheringAlgorithm::Nea1),
        (CipheringAlgorithm::Nea0, CipheringAlgorithm::Nea2),
    ] {
        let plan = Plan { ciphering: first, other_ciphering: Some(other), ..Plan::two_amfs() };
        let mut world = World::new(plan);
        let (gutis, authentications) = world.run_handovers(3).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!((gutis.len(), authentications), (4, 1));
    }
}

#[test]
fn an_idle_ue_goes_from_amf_to_amf_with_its_session() {
    for oauth2 in [false, true] {
        for shards in [1, 2] {
            let mut world = World::new(Plan { oauth2, shards, ..Plan::two_amfs() });
            world.keep_ladder();
            let (gutis, authentications) =
                world.run_reselections(3).unwrap_or_else(|failure| panic!("{failure}"));
            let sets: Vec<u16> = gutis.iter().map(|guti| guti.guami.amf_id.set).collect();
            assert_eq!(sets, [1, 2, 1, 2], "each AMF gives the UE a 5G-GUTI of its own");
            assert_eq!(authentications, 1, "its security context comes with it");
            let ladder = world.ladder();
            let count = |what: &str| ladder.iter().filter(|entry| entry.what.contains(what)).count();
            assert_eq!(count("UEContextTransfer"), 3);
            assert_eq!(count("RegistrationStatusUpdate"), 3);
        }
    }
}

/// Horizontal derivation in each handover (TS 33.501 6.9.2.3.3, 6.9.2.3.4).
#[test]
fn a_ue_derives_another_k_amf_in_each_handover_to_another_amf() {
    for other in [None, Some(CipheringAlgorithm::Nea1)] {
        let plan = Plan {
            derives_k_amf: true,
            ciphering: CipheringAlgorithm::Nea2,
            other_ciphering: other,
            ..Plan::two_amfs()
        };
        let mut world = World::new(plan);
        let (gutis, authentications) = world.run_handovers(3).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!((gutis.len(), authentications), (4, 1));
    }
}

/// Horizontal derivation at each registration (TS 33.501 6.9.3): UE and gNB check the keys that follow from the new K_AMF.
#[test]
fn an_idle_ue_derives_another_k_amf_for_each_amf() {
    for shards in [1, 2] {
        let mut world = World::new(Plan { derives_k_amf: true, shards, ..Plan::two_amfs() });
        world.keep_ladder();
        let (gutis, authentications) =
            world.run_reselections(3).unwrap_or_else(|failure| panic!("{failure}"));
        let sets: Vec<u16> = gutis.iter().map(|guti| guti.guami.amf_id.set).collect();
        assert_eq!((sets, authentications), (vec![1, 2, 1, 2], 1));
        let ladder = world.ladder();
        let count = |what: &str| ladder.iter().filter(|entry| entry.what.contains(what)).count();
        assert_eq!(count("SecurityModeCommand"), 4, "one after the authentication, and one at each AMF");
    }
}

#[test]
fn every_seed_keeps_the_invariants_with_several_amfs() {
    // Seeds that found a fault.
    let found = [
        // The SMF did not get the target AMF's request, and refused the next one, of a UE that had registered meanwhile.
        (1022, 3),
        // The UE's radio had failed, which the old AMF did not know: its session stayed active at the former gNB.
        (1112, 3),
        // The old AMF got the UDM's notification before N2InfoNotify.
        (1235, 3),
        // The new AMF ended before the UE was registered.
        (1647, 3),
        // It ended before the SMF knew it.
        (1653, 3),
        // The old AMF, in the SMF's process, did not get the new one's report.
        (7418, 2),
        // A process ended before the UE's first 5G-GUTI of the new AMF was written.
        (20145, 2),
        // The UE went on over Xn before the SMF knew the target AMF.
        (51170, 2),
        // An SM context that an AMF had lost ended after its successor was established.
        (52341, 2),
        // The gNB's answer to a setup was lost, and flows were to move.
        (53811, 2),
    ];
    let random = (0..8).map(|seed| (seed, 2)).chain((1000..1004).map(|seed| (seed, 3)));
    let found = found.map(|(seed, areas)| Plan::of_areas(seed, areas).as_before());
    let plans = random.map(|(seed, areas)| Plan::of_areas(seed, areas)).chain(found);
    let (_, failures) = reports_of(plans);
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
