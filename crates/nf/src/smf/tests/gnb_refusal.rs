//! Changes of QoS flows that the gNB refuses: what it keeps, and what it releases (TS 38.413 8.2.3).

use super::flows::{
    NO_RESOURCES, complete, gnb_modifies, gnb_sends, is_settled, listening, n2, n4, operations, pcc, qfis,
    remove, reported, voice, with_voice,
};
use super::policy::notify;
use super::world::World;
use crate::smf::context::DEFAULT_QFI;
use pith_nas::ie::RuleOperation;
use pith_ngap::transfer::ModifyUnsuccessfulTransfer;
use pith_pfcp::ie::PdrId;
use pith_sbi::Operation;
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use pith_types::BitRate;

/// The gNB refuses the whole change, or flow 2, after which the UE confirms what it has got.
fn gnb_refuses(world: &mut World, refuses_all: bool) {
    if refuses_all {
        let transfer = ModifyUnsuccessfulTransfer { cause: NO_RESOURCES }.encode();
        gnb_sends(world, N2SmInfoType::PduResModFail, transfer);
    } else {
        gnb_modifies(world, &[DEFAULT_QFI], &[2]);
        complete(world);
    }
}

/// The gNB still has the flow that the change removes, and none that it adds.
#[test]
fn a_gnb_that_refuses_a_change_gets_its_removals_again() {
    let mut world = with_voice();
    world.script.insert(Operation::UpdateSmPolicy, None);
    notify(&mut world, |decision| {
        pcc(decision, "video", 5008, 2, Some(500));
        remove("voice")(decision);
    });
    let released = |world: &World| {
        let to_release = n2(world).unwrap().to_release.into_iter();
        to_release.map(|(qfi, _)| qfi).collect::<Vec<_>>()
    };
    assert_eq!(released(&world), [2]);
    gnb_refuses(&mut world, true);
    assert_eq!(reported(&world)[0].rule_reports[0].pcc_rule_ids, ["video".into()]);
    assert_eq!(n4(&world).remove_pdrs.len(), 2, "the UPF has removed voice");
    assert_eq!(released(&world), [2]);
    assert_eq!(operations(&world), [(3, RuleOperation::Delete), (2, RuleOperation::Delete)]);
    gnb_modifies(&mut world, &[], &[]);
    complete(&mut world);
    assert!(is_settled(&world) && qfis(&world).is_empty());
    assert!(world.bench.nf.sessions.iter().next().unwrap().1.flows.is_default());
}

/// The guaranteed uplink rate of each flow besides the default one, in the last request to the gNB.
fn requested(world: &World) -> Vec<(u8, BitRate)> {
    let flows = n2(world).unwrap().flows.into_iter();
    flows.filter_map(|flow| Some((flow.qfi, flow.gbr?.guaranteed.uplink))).collect()
}

/// TS 38.413 8.2.3: the gNB keeps the flow as it was, and so do the rules that it had.
#[test]
fn a_rule_stays_if_the_gnb_refuses_more_for_its_flow() {
    for refuses_all in [false, true] {
        let mut world = with_voice();
        world.script.insert(Operation::UpdateSmPolicy, None);
        notify(&mut world, |decision| pcc(decision, "more", 5006, 1, Some(900)));
        assert_eq!(requested(&world), [(2, BitRate::kbps(964))]);
        gnb_refuses(&mut world, refuses_all);
        assert_eq!(reported(&world)[0].rule_reports[0].pcc_rule_ids, ["more".into()]);
        let removed: Vec<_> = n4(&world).remove_pdrs.iter().map(|remove| remove.pdr_id).collect();
        assert_eq!(removed, [PdrId(106), PdrId(107)], "those of the new rule");
        assert_eq!(operations(&world), [(3, RuleOperation::Delete)]);
        assert_eq!(
            (requested(&world), n2(&world).unwrap().to_release),
            (vec![(2, BitRate::kbps(64))], vec![])
        );
        // It refuses once more: nothing is left to remove.
        gnb_modifies(&mut world, &[DEFAULT_QFI], &[2]);
        complete(&mut world);
        assert!(is_settled(&world) && world.bench.timers.is_empty());
        assert_eq!((qfis(&world), reported(&world).len()), (vec![2], 1));
    }
}

/// The gNB still has the flow of the rule before the change.
#[test]
fn a_flow_that_the_gnb_does_not_modify_is_released_with_its_last_rule() {
    for refuses_all in [false, true] {
        let mut world = with_voice();
        world.script.insert(Operation::UpdateSmPolicy, None);
        notify(&mut world, |decision| pcc(decision, "voice", 5004, 1, Some(900)));
        assert_eq!(requested(&world), [(2, BitRate::kbps(900))]);
        gnb_refuses(&mut world, refuses_all);
        assert_eq!(reported(&world)[0].rule_reports[0].pcc_rule_ids, ["voice".into()]);
        assert_eq!(n2(&world).unwrap().to_release.iter().map(|(qfi, _)| *qfi).collect::<Vec<_>>(), [2]);
        gnb_modifies(&mut world, &[], &[]);
        complete(&mut world);
        assert!(is_settled(&world) && qfis(&world).is_empty());
    }
}

/// The UE's answer has overtaken the gNB's, and the next change has begun.
#[test]
fn a_late_refusal_of_a_confirmed_flow_ends_its_rule() {
    let mut world = listening();
    world.script.insert(Operation::UpdateSmPolicy, None);
    notify(&mut world, voice);
    complete(&mut world);
    notify(&mut world, |decision| pcc(decision, "video", 5008, 2, Some(500)));
    assert_eq!(qfis(&world), [2, 3]);
    gnb_modifies(&mut world, &[DEFAULT_QFI], &[2]);
    assert_eq!(reported(&world)[0].rule_reports[0].pcc_rule_ids, ["voice".into()]);
    gnb_modifies(&mut world, &[DEFAULT_QFI, 3], &[]);
    complete(&mut world);
    assert_eq!(operations(&world), [(2, RuleOperation::Delete)]);
    assert_eq!(n2(&world).unwrap().to_release, [], "it has no such flow");
    gnb_modifies(&mut world, &[DEFAULT_QFI], &[]);
    complete(&mut world);
    assert!(is_settled(&world));
    assert_eq!((qfis(&world), reported(&world).len()), (vec![3], 1));
}
