//! Dual connectivity: the gNB moves QoS flows to a secondary gNB (TS 23.502 4.14.1, TS 38.413 8.2.5).

use super::pdu_session;
use super::world::*;
use crate::testing::with_unknown_ie;
use pith_ngap::transfer::ModifyIndicationUnsuccessfulTransfer;
use pith_ngap::{
    Cause, CauseRadioNetwork, Message, PduSessionResourceModifyConfirm, PduSessionResourceModifyIndication,
    SecondaryRatDataUsageReport, SessionTransfer,
};
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdateErrorData, SmContextUpdatedData};
use pith_sbi::{Cause as SbiCause, Operation, Problem, ProblemMore, Reply, Request, Response};

fn connected(sessions: &[u8]) -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    sessions.iter().for_each(|id| phone.establish(&mut world, *id));
    world.script.insert(Operation::UpdateSmContext, Some(confirmed()));
    world.take_ladder();
    (world, phone)
}

/// The SMF has moved the flows.
fn confirmed() -> Reply {
    Ok(Response::SmContextUpdated(Box::new(SmContextUpdatedData {
        n2_sm_info: Some(b"confirm".to_vec().into()),
        n2_sm_info_type: Some(N2SmInfoType::PduResModCfm),
        ..Default::default()
    })))
}

/// The SMF refuses, with a transfer for the gNB.
fn refused() -> Reply {
    let mut data = SmContextUpdateErrorData::default();
    data.n2_sm_info = Some(b"refusal".to_vec().into());
    data.n2_sm_info_type = Some(N2SmInfoType::PduResModIndFail);
    let problem = Problem::new(SbiCause::N2SmError);
    Err(Box::new(problem.with(ProblemMore::SmContextUpdateError(Box::new(data)))))
}

fn indication(phone: &Phone, sessions: &[u8]) -> PduSessionResourceModifyIndication {
    PduSessionResourceModifyIndication {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        sessions: transfers(sessions),
        location: Some(location()),
    }
}

fn indicate(world: &mut World, phone: &Phone, sessions: &[u8]) {
    world.ngap(GNB, "PduSessionResourceModifyIndication", indication(phone, sessions).encode());
}

fn confirm(world: &mut World) -> PduSessionResourceModifyConfirm {
    match world.downlinks.pop_front() {
        Some((GNB, Message::PduSessionResourceModifyConfirm(message))) => message,
        other => panic!("{other:?}"),
    }
}

fn ids(list: &Option<Vec<SessionTransfer>>) -> Vec<u8> {
    list.iter().flatten().map(|item| item.pdu_session_id).collect()
}

fn causes(list: &Option<Vec<SessionTransfer>>) -> Vec<CauseRadioNetwork> {
    let cause = |item: &SessionTransfer| match ModifyIndicationUnsuccessfulTransfer::decode(&item.transfer)
        .unwrap()
        .cause
    {
        Cause::RadioNetwork(cause) => cause,
        other => panic!("{other:?}"),
    };
    list.iter().flatten().map(cause).collect()
}

#[test]
fn the_smfs_answers_are_one_confirmation() {
    let (mut world, phone) = connected(&[5, 6]);
    indicate(&mut world, &phone, &[5, 6]);
    assert_eq!(
        world.take_ladder(),
        "gnb1 -> PduSessionResourceModifyIndication\n\
         smf  <- UpdateSmContext\n\
         smf  <- UpdateSmContext\n\
         gnb1 <- PduSessionResourceModifyConfirm"
    );
    let answer = confirm(&mut world);
    assert_eq!((answer.amf_ue_ngap_id, answer.ran_ue_ngap_id), (phone.amf_id.unwrap(), phone.ran_id));
    assert_eq!((ids(&answer.confirmed), &answer.failed), (vec![5, 6], &None));
    assert_eq!(answer.confirmed.unwrap()[0].transfer, b"confirm");
}

/// TS 38.413 10.3.4.2: the response waits for the SMF.
#[test]
fn a_response_that_waits_reports_what_was_ignored() {
    let (mut world, phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    let indication = || indication(&phone, &[5]).encode().unwrap();
    for is_notified in [true, false] {
        let pdu = if is_notified { with_unknown_ie(&indication()) } else { indication() };
        world.ngap(GNB, "PduSessionResourceModifyIndication", Ok(pdu));
        assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
        world.reply_to(Operation::UpdateSmContext, confirmed());
        let diagnostics = format!("{:?}", confirm(&mut world).diagnostics);
        assert_eq!(diagnostics.contains("65534"), is_notified, "{diagnostics}");
    }
    assert!(world.downlinks.is_empty());
}

/// TS 38.413 8.3.3: the gNB does not know the ids any longer.
#[test]
fn a_connection_that_is_being_released_gets_no_confirmation() {
    let (mut world, phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    indicate(&mut world, &phone, &[5]);
    let request = pith_ngap::UeContextReleaseRequest {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        sessions: None,
        cause: None,
    };
    world.ngap(GNB, "UeContextReleaseRequest", request.encode());
    world.reply_to(Operation::UpdateSmContext, refused());
    assert!(matches!(world.downlinks.pop_front(), Some((GNB, Message::UeContextReleaseCommand(_)))));
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
}

#[test]
fn the_smf_gets_the_transfer_of_the_gnb() {
    let (mut world, phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    indicate(&mut world, &phone, &[5]);
    let Request::UpdateSmContext(request) = world.open_call(Operation::UpdateSmContext) else { panic!() };
    assert_eq!(request.body.n2_sm_info_type, Some(N2SmInfoType::PduResModInd));
    assert_eq!(request.body.n2_sm_info.unwrap().content, transfers(&[5])[0].transfer);
}

#[test]
fn sessions_of_which_the_smf_or_the_amf_knows_nothing_fail() {
    let (mut world, phone) = connected(&[5, 6]);
    world.script.insert(Operation::UpdateSmContext, Some(refused()));
    indicate(&mut world, &phone, &[5, 6, 9, 6]);
    let ladder = world.take_ladder();
    assert_eq!(ladder.matches("smf").count(), 1, "a session that is named twice does not move: {ladder}");
    let answer = confirm(&mut world);
    assert_eq!((answer.confirmed, ids(&answer.failed)), (None, vec![6, 9, 5]));
    let failed = answer.failed.clone().unwrap();
    assert_eq!(failed[2].transfer, b"refusal");
    let of_amf = Some(failed[..2].to_vec());
    let expected =
        [CauseRadioNetwork::multiple_PDU_session_ID_instances, CauseRadioNetwork::unknown_PDU_session_ID];
    assert_eq!(causes(&of_amf), expected);
    world.script.insert(Operation::UpdateSmContext, Some(Ok(Response::NoContent)));
    indicate(&mut world, &phone, &[5]);
    assert_eq!(causes(&confirm(&mut world).failed), [CauseRadioNetwork::unspecified]);
}

/// The gNB's answer to the setup is lost on its way to the SMF, which can't move flows that it has not set up.
#[test]
fn a_report_before_a_refused_indication_is_repeated() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    world.script.insert(Operation::UpdateSmContext, None);
    phone.establish(&mut world, 5);
    indicate(&mut world, &phone, &[5]);
    assert_eq!(world.calls.len(), 2);
    let (tag, ..) = world.calls.remove(1);
    world.reply(tag, refused());
    world.take_ladder();
    world.reply_to(Operation::UpdateSmContext, Err(Problem::timed_out().into()));
    assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext");
    let Request::UpdateSmContext(update) = &world.calls[0].2 else { panic!() };
    assert_eq!(update.body.n2_sm_info_type, Some(N2SmInfoType::PduResSetupRsp));
}

/// The process of the SMF was interrupted after its UPF had the new rules.
#[test]
fn an_indication_that_the_smf_has_lost_is_repeated() {
    let (mut world, phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    indicate(&mut world, &phone, &[5]);
    world.take_ladder();
    let lost = Problem::new(SbiCause::SystemFailure).detail("the request was lost in an internal error");
    world.reply_to(Operation::UpdateSmContext, Err(Box::new(lost)));
    assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext");
    world.reply_to(Operation::UpdateSmContext, confirmed());
    assert_eq!(ids(&confirm(&mut world).confirmed), [5]);
}

#[test]
fn a_second_indication_meanwhile_fails() {
    let (mut world, phone) = connected(&[5, 6]);
    world.script.insert(Operation::UpdateSmContext, None);
    indicate(&mut world, &phone, &[5]);
    indicate(&mut world, &phone, &[6]);
    let answer = confirm(&mut world);
    assert_eq!(ids(&answer.failed), [6]);
    assert_eq!(causes(&answer.failed), [CauseRadioNetwork::interaction_with_other_procedure]);
    world.reply_to(Operation::UpdateSmContext, confirmed());
    assert_eq!(ids(&confirm(&mut world).confirmed), [5]);
    indicate(&mut world, &phone, &[6]);
    world.reply_to(Operation::UpdateSmContext, confirmed());
    assert_eq!(ids(&confirm(&mut world).confirmed), [6]);
}

#[test]
fn a_ue_that_becomes_idle_meanwhile_needs_no_confirmation() {
    let (mut world, mut phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    indicate(&mut world, &phone, &[5]);
    world.script.remove(&Operation::UpdateSmContext);
    phone.release(&mut world);
    world.reply_to(Operation::UpdateSmContext, confirmed());
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    assert_eq!(world.amf.audit().in_procedure, 0);
}

/// The SMF was killed; the next one has the session set up at the gNB again, whose former tunnels the indication has.
#[test]
fn an_indication_is_not_repeated_after_the_session_was_set_up_again() {
    for is_set_up_again in [false, true] {
        let (mut world, phone) = connected(&[5]);
        world.script.insert(Operation::UpdateSmContext, None);
        indicate(&mut world, &phone, &[5]);
        let (tag, ..) = world.calls.pop().unwrap();
        if is_set_up_again {
            pdu_session::set_up(&mut world);
            pdu_session::release_response(&mut world, &phone);
        }
        world.take_ladder();
        world.downlinks.clear();
        world.reply(tag, Err(Box::new(Problem::new(SbiCause::TimedOutRequest))));
        if is_set_up_again {
            assert_eq!(ids(&confirm(&mut world).failed), [5]);
        } else {
            assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext");
        }
    }
}

/// The SMF has moved the flows of one session, and another SMF has not answered, when the session is set up again.
#[test]
fn a_confirmation_is_void_after_the_session_was_set_up_again() {
    let (mut world, phone) = connected(&[5, 6]);
    world.script.insert(Operation::UpdateSmContext, None);
    indicate(&mut world, &phone, &[5, 6]);
    let (of_6, ..) = world.calls.pop().unwrap();
    world.reply_to(Operation::UpdateSmContext, confirmed());
    pdu_session::set_up(&mut world);
    pdu_session::release_response(&mut world, &phone);
    world.downlinks.clear();
    world.reply(of_6, confirmed());
    let confirm = confirm(&mut world);
    assert_eq!((ids(&confirm.confirmed), ids(&confirm.failed)), (vec![6], vec![5]));
}

/// The SMF confirms, and then finds its classifier lost. Its change names the tunnels that it has confirmed.
#[test]
fn a_change_of_the_resources_follows_the_confirmation() {
    let (mut world, phone) = connected(&[5, 6]);
    world.script.insert(Operation::UpdateSmContext, None);
    indicate(&mut world, &phone, &[5, 6]);
    world.reply_to(Operation::UpdateSmContext, confirmed());
    let modify = |world: &mut World, id| {
        assert!(world.request(transfer(id, None, Some((NgapIe::PduResModReq, b"modify")))).is_ok());
    };
    modify(&mut world, 5);
    modify(&mut world, 6);
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    world.reply_to(Operation::UpdateSmContext, confirmed());
    assert_eq!(confirm(&mut world).confirmed.unwrap().len(), 2);
    for id in [5, 6] {
        let Message::PduSessionResourceModifyRequest(request) = world.next() else {
            panic!("of session {id}")
        };
        assert_eq!(request.sessions[0].pdu_session_id, id);
    }
}

#[test]
fn usage_of_a_secondary_rat_is_forwarded_once_for_each_session() {
    let (mut world, phone) = connected(&[5, 6]);
    world.script.insert(Operation::UpdateSmContext, None);
    let report = SecondaryRatDataUsageReport {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        sessions: Some(transfers(&[5, 9, 5])),
        handover: None,
        location: None,
    };
    world.ngap(GNB, "SecondaryRatDataUsageReport", report.encode());
    assert_eq!(world.take_ladder(), "gnb1 -> SecondaryRatDataUsageReport\nsmf  <- UpdateSmContext");
    let Request::UpdateSmContext(request) = world.open_call(Operation::UpdateSmContext) else { panic!() };
    assert_eq!(request.body.n2_sm_info_type, Some(N2SmInfoType::SecondaryRatUsage));
    assert_eq!(request.body.n2_sm_info.unwrap().content, transfers(&[5])[0].transfer);
}
