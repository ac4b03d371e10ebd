//! Each input in each state: a request is answered, and nothing is left behind at the end.

use super::super::procedure::State;
use super::super::*;
use super::branching::plain;
use super::flow_mobility;
use super::handover;
use super::policy::{notify, rule, terminate};
use super::standing::{not_delivered, withdraw};
use super::upfs::breakout;
use super::world::*;
use crate::kit::Timer;
use pith_nas::GsmCause;
use pith_nas::gsm::{
    GsmStatus, PduSessionEstablishmentRequest, PduSessionModificationCommandReject,
    PduSessionModificationComplete, PduSessionModificationRequest, PduSessionReleaseComplete,
    PduSessionReleaseRequest,
};
use pith_nas::ie::IntegrityProtectionMaximumDataRate;
use pith_pfcp::ie::{Cause as N4Cause, ReportType};
use pith_sbi::npcf_smpolicycontrol::SmPolicyAssociationReleaseCause;
use pith_sbi::nsmf_pdusession::{N2SmInfoType, UpCnxState};
use pith_sbi::{NfType, Operation, Response, Uri};

/// A world whose session is in the state with this name.
fn world_in(state: &str) -> World {
    let mut world = match state {
        "AwaitingFrontEstablishment" | "AwaitingN9Modification" => World::with(breakout(), &["upf", "edge"]),
        _ => World::with(plain(), &["upf", "edge"]),
    };
    let open = match state {
        "AwaitingSubscriptionData" => Some(Operation::GetSmData),
        "AwaitingPolicyDecision" => Some(Operation::CreateSmPolicy),
        "AwaitingResourceSetup" => Some(Operation::N1N2MessageTransfer),
        _ => None,
    };
    world.script.extend(open.map(|operation| (operation, None)));
    if matches!(state, "AwaitingN4Establishment" | "AwaitingN9Modification" | "Abandoned") {
        world.upf = None;
    }
    if state == "AwaitingFrontEstablishment" {
        world.silent.insert(EDGE);
    }
    world.establish();
    if state == "AwaitingN9Modification" {
        for _ in 0..2 {
            let (tag, upf, message) = world.open_n4.remove(0);
            world.upf_answers(tag, upf, &message, Ok(N4Cause::RequestAccepted));
        }
    }
    if is_established(state) {
        world.gnb_answers();
        change(&mut world, state);
    }
    if state == "Abandoned" {
        world.release_by_amf();
    }
    let session = world.bench.nf.sessions.iter().next().unwrap().1;
    assert_eq!(session.state().name(), state);
    world.reference = world.bench.nf.shared.references.of_id(session.id);
    world
}

fn is_established(state: &str) -> bool {
    let establishing = [
        "AwaitingSubscriptionData",
        "AwaitingPolicyDecision",
        "AwaitingN4Establishment",
        "AwaitingFrontEstablishment",
        "AwaitingN9Modification",
        "AwaitingResourceSetup",
        "Abandoned",
    ];
    !establishing.contains(&state)
}

/// Brings an established session into a state.
fn change(world: &mut World, state: &str) {
    if matches!(
        state,
        "AwaitingN4Modification"
            | "AwaitingPathSwitch"
            | "AwaitingFlowMobility"
            | "AwaitingForwardingTunnel"
            | "AwaitingRates"
            | "AwaitingBuffering"
    ) {
        world.upf = None;
    }
    match state {
        "Established" => {}
        "AwaitingN4Modification" => world.deactivate(),
        "AwaitingPathSwitch" => handover::switch(world),
        "AwaitingFlowMobility" => flow_mobility::indicate(world),
        "AwaitingForwardingTunnel" => handover::prepare_without_path(world),
        "AwaitingRates" => notify(world, rule(50, 9)),
        "AwaitingBuffering" | "AwaitingResourceRelease" => world.report_lost(GNB_TUNNEL),
        "AwaitingReleaseComplete" => world.uplink(PduSessionReleaseRequest::new()),
        "AwaitingClassifier" => {
            world.silent.insert(EDGE);
            world.branch("edge");
        }
        "AwaitingDownlinkSwitch" => {
            world.silent.insert(UPF);
            world.branch("edge");
        }
        "AwaitingUplinkSwitch" => assert_eq!(world.branch("edge"), None),
        other => panic!("{other}"),
    }
}

const STATES: [&str; 19] = [
    "AwaitingSubscriptionData",
    "AwaitingPolicyDecision",
    "AwaitingN4Establishment",
    "AwaitingFrontEstablishment",
    "AwaitingN9Modification",
    "AwaitingResourceSetup",
    "Established",
    "AwaitingN4Modification",
    "AwaitingPathSwitch",
    "AwaitingFlowMobility",
    "AwaitingForwardingTunnel",
    "AwaitingRates",
    "AwaitingClassifier",
    "AwaitingDownlinkSwitch",
    "AwaitingUplinkSwitch",
    "AwaitingBuffering",
    "AwaitingResourceRelease",
    "AwaitingReleaseComplete",
    "Abandoned",
];

type Act = fn(&mut World);

/// Inputs that may arrive for a session in any state.
const INPUTS: [(&str, Act); 36] = [
    ("release request", |world| world.uplink(PduSessionReleaseRequest::new())),
    ("release complete", |world| world.uplink(PduSessionReleaseComplete::new())),
    ("modification request", |world| world.uplink(PduSessionModificationRequest::new())),
    ("modification complete", |world| world.uplink(PduSessionModificationComplete::new())),
    ("modification reject", |world| {
        world.uplink(PduSessionModificationCommandReject::new(GsmCause::InvalidPduSessionIdentity));
    }),
    ("5GSM status", |world| world.uplink(GsmStatus::new(GsmCause::ProtocolErrorUnspecified))),
    ("establishment request", |world| {
        world.uplink(PduSessionEstablishmentRequest::new(IntegrityProtectionMaximumDataRate::FULL));
    }),
    ("no 5GSM message", |world| world.update(|data| data.n1_sm_msg = Some(vec![0x2e].into()))),
    ("gNB's tunnel", World::gnb_answers),
    ("setup failure", |world| n2(world, N2SmInfoType::PduResSetupFail)),
    ("modify response", |world| n2(world, N2SmInfoType::PduResModRsp)),
    ("modify failure", |world| n2(world, N2SmInfoType::PduResModFail)),
    ("release response", |world| n2(world, N2SmInfoType::PduResRelRsp)),
    ("release notification", |world| n2(world, N2SmInfoType::PduResNtyRel)),
    ("path switch without transfer", |world| n2(world, N2SmInfoType::PathSwitchReq)),
    ("path switch", handover::switch),
    ("path switch failed", |world| n2(world, N2SmInfoType::PathSwitchSetupFail)),
    ("indication without transfer", |world| n2(world, N2SmInfoType::PduResModInd)),
    ("indication", flow_mobility::indicate),
    ("handover required", handover::required),
    ("handover prepared", handover::prepared),
    ("handover completed", handover::completed),
    ("handover cancelled", handover::cancelled),
    ("activating", |world| world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating))),
    ("deactivated", World::deactivate),
    ("another AMF", |world| world.update(|_| {})),
    ("update that releases", |world| world.update(|data| data.release = Some(true))),
    ("release", World::release_by_amf),
    ("policy", |world| notify(world, rule(20, 9))),
    ("end of policy", |world| terminate(world, SmPolicyAssociationReleaseCause::Unspecified)),
    ("withdrawal", withdraw),
    ("delivery failure", |world| {
        let uri = Uri::callback(&crate::testing::root("nf"), &NfType::Smf, "n1-n2-failure", &world.reference);
        not_delivered(world, uri);
    }),
    ("downlink data", |world| world.report(ReportType::DLDR)),
    ("error indication", |world| world.report_lost(GNB_TUNNEL)),
    ("lost UPF", |world| world.n4_input(N4Input::UpfDown { upf: UPF })),
    ("suspended", |world| world.update(|data| data.up_cnx_state = Some(UpCnxState::Suspended))),
];

fn n2(world: &mut World, kind: N2SmInfoType) {
    world.update(|data| data.n2_sm_info_type = Some(kind));
}

/// UPFs answer, all timers expire, and the AMF releases the remaining sessions.
fn end(world: &mut World) {
    for _ in 0..64 {
        world.upf_answers_late();
        let Some(key) = world.bench.timers.keys().next().copied() else { break };
        world.expire(key.timer);
    }
    world.release_by_amf();
    world.upf_answers_late();
    world.is_quiet();
}

/// [`crate::kit::deliver`] checks that each request is answered or pending, [`World::is_quiet`] that none is pending at the end.
#[test]
fn each_input_in_each_state_is_answered_and_leaves_nothing_behind() {
    for state in STATES {
        for (_, act) in INPUTS {
            let mut world = world_in(state);
            act(&mut world);
            end(&mut world);
        }
    }
}

/// Each state has another third of the pairs.
#[test]
fn two_inputs_in_each_state_are_answered_and_leave_nothing_behind() {
    for (number, state) in STATES.into_iter().enumerate() {
        for (at, (_, first)) in INPUTS.into_iter().enumerate() {
            for (_, second) in INPUTS.into_iter().skip((number + at) % 3).step_by(3) {
                let mut world = world_in(state);
                first(&mut world);
                second(&mut world);
                end(&mut world);
            }
        }
    }
}

#[test]
fn operator_commands_and_other_upfs_in_each_state() {
    let acts: [Act; 4] = [
        |world| drop(world.branch("edge")),
        |world| drop(world.unbranch()),
        |world| world.n4_input(N4Input::UpfDown { upf: EDGE }),
        World::establish,
    ];
    for state in STATES.into_iter().filter(|state| *state != "Abandoned") {
        for act in acts {
            let mut world = world_in(state);
            act(&mut world);
            end(&mut world);
        }
    }
}

/// Late answers, and timers that were stopped, leave each state unchanged.
#[test]
fn late_inputs_change_no_state() {
    for state in STATES {
        let mut world = world_in(state);
        let owner = world.bench.nf.sessions.iter().next().unwrap().0.to_u64();
        let tag = Tag::new(owner, 1000);
        let late = [
            Input::Reply { tag, from: None, reply: Ok(Response::NoContent) },
            Input::N4(Box::new(N4Input::Response { tag, result: Err(crate::kit::N4Error::NoAnswer) })),
        ];
        let timers = [Timer::SbiGuard, Timer::T3591, Timer::T3592, Timer::PathGrace];
        let keys = timers.map(|timer| TimerKey { owner, timer });
        let stopped = keys.into_iter().filter(|key| !world.bench.timers.contains_key(key));
        for input in stopped.map(Input::Timer).collect::<Vec<_>>().into_iter().chain(late) {
            assert!(world.bench.input(input).is_empty());
        }
        assert_eq!(
            world.bench.nf.sessions.iter().next().map(|(_, session)| session.state().name()),
            Some(state)
        );
    }
}

/// Each step copies the state: up to this size, the copy is not visible in a profile.
#[test]
fn a_state_is_small() {
    assert!(size_of::<State>() <= 320, "{} octets", size_of::<State>());
}
