//! Associations, retransmission, duplicates, restarts, malformed messages.

mod late;
mod retention;

use super::transaction::WINDOW;
use super::*;
use crate::kit::Tag;
use crate::testing::{block, sparse_owners};
use pith_pfcp::ie::{
    ApplyAction, CodedDuration, CpFunctionFeatures, CsidNode, FSeid, FTeid, FarId, FqCsid, Metric, PdrId,
    PfcpAsRspFlags, PfcpSeReqFlags, Precedence, ReleaseRequestFlags, ReportType, SequenceNumber,
    SourceInterface, UpFunctionFeatures,
};
use pith_pfcp::message::{
    AssociationReleaseRequest, AssociationReleaseResponse, AssociationSetupRequest, AssociationSetupResponse,
    AssociationUpdateRequest, HeartbeatRequest, LoadControlInformation, OverloadControlInformation,
    SessionDeletionRequest, SessionDeletionResponse, SessionEstablishmentRequest,
    SessionEstablishmentResponse, SessionModificationRequest, SessionModificationResponse,
    SessionReportRequest, SessionSetDeletionResponse,
};
use pith_pfcp::rules::{CreateFar, CreatePdr, CreatedPdr, Pdi};
use pith_types::InstanceId;

const TAG: Tag = Tag::new(9, 2);

fn upf() -> SocketAddr {
    "10.0.0.7:8805".parse().unwrap()
}

fn gateway() -> N4Gateway {
    N4Gateway::new(N4Config {
        address: "10.0.0.4".parse().unwrap(),
        recovery_time_stamp: 1_000_000,
        run: None,
        smf_set: None,
        first_sequence: 0,
        upfs: vec![N4Peer { name: "upf".into(), address: upf() }],
        t1: Duration::from_secs(1),
        n1_transmissions: 3,
        heartbeat: Duration::from_secs(10),
        instance: InstanceId(0),
        owners: sparse_owners(2),
        shards: 2,
    })
}

/// Sent messages, decoded; inputs of the shards; running timers.
#[derive(Debug, Default)]
struct Seen {
    sent: Vec<(Header, Message)>,
    told: Vec<(u8, N4Input)>,
    started: Vec<TimerKey>,
}

fn handle(gateway: &mut N4Gateway, input: N4GatewayInput) -> Seen {
    let mut seen = Seen::default();
    for effect in gateway.handle(input) {
        match effect {
            N4GatewayEffect::Send { octets, .. } => seen.sent.push(Message::decode(&octets).unwrap()),
            N4GatewayEffect::ToShard { shard, input } => seen.told.push((shard.0, input)),
            N4GatewayEffect::StartTimer { key, .. } => seen.started.push(key),
            N4GatewayEffect::StopTimer(_) | N4GatewayEffect::Event(_) => {}
        }
    }
    seen
}

fn datagram(message: &Message, seid: u64, sequence: u32) -> N4GatewayInput {
    let mut octets = Vec::new();
    message.encode(seid, sequence, &mut octets).unwrap();
    N4GatewayInput::Datagram { from: upf(), octets }
}

fn setup_response(recovery: u32) -> Message {
    let node = NodeId::from(upf().ip());
    let response = AssociationSetupResponse::new(node, Cause::RequestAccepted, NtpSeconds(recovery));
    let up_function_features = Some(UpFunctionFeatures::FTUP);
    Message::AssociationSetupResponse(AssociationSetupResponse { up_function_features, ..response })
}

/// A gateway with an association, and the UPF's handle.
fn associated() -> (N4Gateway, UpfHandle) {
    let mut gateway = gateway();
    let asked = handle(&mut gateway, N4GatewayInput::Start);
    let seen = handle(&mut gateway, datagram(&setup_response(5), 0, asked.sent[0].0.sequence));
    assert_eq!(seen.told.len(), 2, "every shard hears of the UPF");
    let N4Input::UpfUp { upf, .. } = seen.told[0].1 else { panic!() };
    (gateway, upf)
}

/// An association request of a UPF with that recovery time stamp.
fn setup_request(recovery: u32) -> Message {
    let node = NodeId::from(upf().ip());
    let request = AssociationSetupRequest::new(node, NtpSeconds(recovery));
    let up_function_features = Some(UpFunctionFeatures::FTUP);
    Message::AssociationSetupRequest(AssociationSetupRequest { up_function_features, ..request })
}

/// Changes of the UPFs' state that a shard received.
fn changes(seen: &Seen) -> Vec<(&'static str, u64)> {
    let of_shard = seen.told.iter().filter(|(shard, _)| *shard == 0);
    let change = |input: &N4Input| match input {
        N4Input::UpfUp { upf, .. } => Some(("up", upf.0)),
        N4Input::UpfRestarted { upf } => Some(("restarted", upf.0)),
        N4Input::UpfDown { upf } => Some(("down", upf.0)),
        _ => None,
    };
    of_shard.filter_map(|(_, input)| change(input)).collect()
}

fn ask(gateway: &mut N4Gateway, upf: UpfHandle) -> Seen {
    let message = Message::SessionDeletionRequest(SessionDeletionRequest::new());
    let effect = N4Effect::Request { tag: TAG, upf, seid: Seid(77), message };
    handle(gateway, N4GatewayInput::Shard { shard: ShardId(1), effect })
}

#[test]
fn a_response_goes_to_the_requesting_shard() {
    let (mut gateway, upf) = associated();
    let asked = ask(&mut gateway, upf);
    assert_eq!(asked.sent[0].0.seid, Some(77));
    let response = Message::SessionDeletionResponse(SessionDeletionResponse::new(Cause::RequestAccepted));
    let sequence = asked.sent[0].0.sequence;
    let seen = handle(&mut gateway, datagram(&response, 1, sequence));
    assert!(matches!(seen.told.as_slice(), [(1, N4Input::Response { tag: TAG, result: Ok(_) })]));
    let again = handle(&mut gateway, datagram(&response, 1, sequence));
    assert!(again.told.is_empty(), "a duplicate answers nothing");
}

#[test]
fn a_new_session_is_requested_n1_times_and_then_fails() {
    let (mut gateway, upf) = associated();
    let timer = asks(&mut gateway, upf, new_session()).started[0];
    for _ in 1..3 {
        assert_eq!(handle(&mut gateway, N4GatewayInput::Timer(timer)).sent.len(), 1);
    }
    let last = handle(&mut gateway, N4GatewayInput::Timer(timer));
    assert!(last.sent.is_empty());
    assert!(matches!(last.told.as_slice(), [(0, N4Input::Response { result: Err(N4Error::NoAnswer), .. })]));
}

fn modify(gateway: &mut N4Gateway, upf: UpfHandle) -> Seen {
    let message = Message::SessionModificationRequest(SessionModificationRequest::new());
    let effect = N4Effect::Request { tag: TAG, upf, seid: Seid(77), message };
    handle(gateway, N4GatewayInput::Shard { shard: ShardId(1), effect })
}

const BEAT: TimerKey = TimerKey { owner: 0, timer: Timer::PfcpHeartbeat };

/// The session would end, or stay at the UPF. The UPF may be restarting.
#[test]
fn a_change_or_deletion_of_a_session_is_not_given_up_before_a_heartbeat_is_answered() {
    for request in [modify, ask] {
        let (mut gateway, upf) = associated();
        let timer = request(&mut gateway, upf).started[0];
        for _ in 0..10 {
            let seen = handle(&mut gateway, N4GatewayInput::Timer(timer));
            assert_eq!((seen.sent.len(), seen.started.len(), seen.told.len()), (1, 1, 0));
        }
        let beat = handle(&mut gateway, N4GatewayInput::Timer(BEAT));
        let response = Message::HeartbeatResponse(HeartbeatResponse::new(NtpSeconds(5)));
        handle(&mut gateway, datagram(&response, 0, beat.sent[0].0.sequence));
        for _ in 0..3 {
            assert_eq!(handle(&mut gateway, N4GatewayInput::Timer(timer)).sent.len(), 1);
        }
        let last = handle(&mut gateway, N4GatewayInput::Timer(timer));
        let [(1, N4Input::Response { result, .. })] = last.told.as_slice() else { panic!("{last:?}") };
        assert!(matches!(result, Err(N4Error::NoAnswer)));
        assert_eq!((last.sent.len(), last.started.len()), (0, 0));
    }
}

#[test]
fn a_change_of_a_session_fails_with_the_heartbeat() {
    let (mut gateway, upf) = associated();
    let timer = modify(&mut gateway, upf).started[0];
    for _ in 0..5 {
        handle(&mut gateway, N4GatewayInput::Timer(timer));
    }
    let beat = handle(&mut gateway, N4GatewayInput::Timer(BEAT)).started[0];
    for _ in 0..2 {
        handle(&mut gateway, N4GatewayInput::Timer(beat));
    }
    let lost = handle(&mut gateway, N4GatewayInput::Timer(beat));
    assert!(matches!(lost.told[0], (1, N4Input::Response { result: Err(N4Error::NoAssociation), .. })));
    assert_eq!(changes(&lost), [("restarted", 1)]);
}

/// Open5GS's UPF does not answer a heartbeat of a peer without association.
#[test]
fn a_upf_that_does_not_answer_heartbeats_gets_another_association_before_its_sessions_end() {
    for returns in [true, false] {
        let (mut gateway, _) = associated();
        let beat = handle(&mut gateway, N4GatewayInput::Timer(BEAT)).started[0];
        let lost = (0..3).map(|_| handle(&mut gateway, N4GatewayInput::Timer(beat))).last().unwrap();
        let [(header, Message::AssociationSetupRequest(_))] = &lost.sent[..] else { panic!("{lost:?}") };
        let next = if returns {
            handle(&mut gateway, datagram(&setup_response(6), 0, header.sequence))
        } else {
            let timer = t1(header.sequence);
            (0..3).map(|_| handle(&mut gateway, N4GatewayInput::Timer(timer))).last().unwrap()
        };
        assert_eq!(changes(&next), [if returns { ("up", 2) } else { ("down", 1) }]);
    }
}

/// A UPF that is back answers the request itself, with cause 72.
#[test]
fn a_change_of_a_session_finds_a_upf_that_restarted_after_n1_transmissions() {
    let (mut gateway, upf) = associated();
    let asked = modify(&mut gateway, upf);
    for _ in 0..5 {
        handle(&mut gateway, N4GatewayInput::Timer(asked.started[0]));
    }
    let response = SessionModificationResponse::new(Cause::NoEstablishedPfcpAssociation);
    let denied = Message::SessionModificationResponse(response);
    let seen = handle(&mut gateway, datagram(&denied, 0, asked.sent[0].0.sequence));
    assert_eq!(changes(&seen), [("restarted", 1)]);
}

/// What a UPF's receive buffer does not hold it would drop, heartbeats included.
#[test]
fn a_upf_has_so_many_requests_to_answer_at_a_time() {
    let (mut gateway, upf) = associated();
    let asked: Vec<Seen> = (0..WINDOW + 100).map(|_| ask(&mut gateway, upf)).collect();
    let sent: Vec<u32> =
        asked.iter().flat_map(|seen| &seen.sent).map(|(header, _)| header.sequence).collect();
    assert_eq!((sent.len(), asked[WINDOW].started.len()), (WINDOW, 0));
    let heartbeat = TimerKey { owner: 0, timer: Timer::PfcpHeartbeat };
    assert_eq!(
        handle(&mut gateway, N4GatewayInput::Timer(heartbeat)).sent.len(),
        1,
        "heartbeats do not queue"
    );
    let response = Message::SessionDeletionResponse(SessionDeletionResponse::new(Cause::RequestAccepted));
    let seen = handle(&mut gateway, datagram(&response, 1, sent[0]));
    assert_eq!((seen.sent.len(), seen.started.len(), seen.told.len()), (1, 1, 1), "the next one");
    for _ in 1..3 {
        handle(&mut gateway, N4GatewayInput::Timer(t1(sent[1])));
    }
    let given_up = handle(&mut gateway, N4GatewayInput::Timer(t1(sent[1])));
    assert_eq!(
        (given_up.sent.len(), given_up.told.len()),
        (2, 0),
        "one that waits for a heartbeat makes room, too"
    );
    let lost = handle(&mut gateway, datagram(&setup_request(7), 0, 5));
    let failed = |(_, input): &&(u8, N4Input)| {
        matches!(input, N4Input::Response { result: Err(N4Error::NoAssociation), .. })
    };
    assert_eq!(lost.told.iter().filter(failed).count(), WINDOW + 99, "queued ones as well");
    let upf = UpfHandle(changes(&lost).last().unwrap().1);
    assert_eq!(ask(&mut gateway, upf).sent.len(), 1, "the window is empty");
}

#[test]
fn without_an_association_a_request_fails_at_once() {
    let mut gateway = gateway();
    let seen = ask(&mut gateway, UpfHandle(1));
    assert!(matches!(
        seen.told.as_slice(),
        [(1, N4Input::Response { result: Err(N4Error::NoAssociation), .. })]
    ));
}

#[test]
fn a_restarted_upf_loses_its_association_and_gets_a_new_request() {
    let (mut gateway, upf) = associated();
    ask(&mut gateway, upf);
    let beat = TimerKey { owner: 0, timer: Timer::PfcpHeartbeat };
    let asked = handle(&mut gateway, N4GatewayInput::Timer(beat));
    let response = Message::HeartbeatResponse(HeartbeatResponse::new(NtpSeconds(6)));
    let seen = handle(&mut gateway, datagram(&response, 0, asked.sent[0].0.sequence));
    let failed =
        |input: &N4Input| matches!(input, N4Input::Response { result: Err(N4Error::NoAssociation), .. });
    assert!(seen.told.iter().any(|(_, input)| failed(input)), "what was under way fails");
    assert_eq!(changes(&seen), [("restarted", 1)]);
    let retry = seen.started[0];
    let asked = handle(&mut gateway, N4GatewayInput::Timer(retry));
    assert!(matches!(asked.sent[0].1, Message::AssociationSetupRequest(_)));
    let back = handle(&mut gateway, datagram(&setup_response(6), 0, asked.sent[0].0.sequence));
    assert_eq!(changes(&back), [("up", 2)]);
}

/// Cause 72: the UPF has restarted since the last heartbeat.
#[test]
fn a_upf_without_the_association_gets_it_again_at_once() {
    let (mut gateway, upf) = associated();
    let beat = TimerKey { owner: 0, timer: Timer::PfcpHeartbeat };
    let asked = handle(&mut gateway, N4GatewayInput::Timer(beat));
    let response = Message::HeartbeatResponse(HeartbeatResponse::new(NtpSeconds(5)));
    handle(&mut gateway, datagram(&response, 0, asked.sent[0].0.sequence));
    let denied =
        Message::SessionDeletionResponse(SessionDeletionResponse::new(Cause::NoEstablishedPfcpAssociation));
    let (first, other) = (ask(&mut gateway, upf), ask(&mut gateway, upf));
    let seen = handle(&mut gateway, datagram(&denied, 0, first.sent[0].0.sequence));
    let failed =
        |input: &N4Input| matches!(input, N4Input::Response { result: Err(N4Error::NoAssociation), .. });
    assert_eq!(seen.told.iter().filter(|(_, input)| failed(input)).count(), 2, "the other one, too");
    assert_eq!(changes(&seen), [("restarted", 1)]);
    assert!(matches!(seen.sent[0].1, Message::AssociationSetupRequest(_)), "{:?}", seen.sent);
    let late = handle(&mut gateway, datagram(&denied, 0, other.sent[0].0.sequence));
    assert!(late.told.is_empty());
    // A UPF that denies each association gets one request in T1.
    let back = handle(&mut gateway, datagram(&setup_response(6), 0, seen.sent[0].0.sequence));
    assert_eq!(changes(&back), [("up", 2)]);
    let asked = ask(&mut gateway, UpfHandle(2));
    let again = handle(&mut gateway, datagram(&denied, 0, asked.sent[0].0.sequence));
    assert_eq!((changes(&again), again.sent.len()), (vec![("restarted", 2)], 0));
    let asked = handle(&mut gateway, N4GatewayInput::Timer(again.started[0]));
    // It does not answer: its sessions are lost.
    for _ in 1..3 {
        handle(&mut gateway, N4GatewayInput::Timer(asked.started[0]));
    }
    let given_up = handle(&mut gateway, N4GatewayInput::Timer(asked.started[0]));
    assert_eq!(changes(&given_up), [("down", 2)]);
}

#[test]
fn of_two_crossing_association_setups_the_late_response_is_ignored() {
    let mut gateway = gateway();
    let asked = handle(&mut gateway, N4GatewayInput::Start);
    let stood = handle(&mut gateway, datagram(&setup_request(5), 0, 1));
    assert_eq!(changes(&stood), [("up", 1)]);
    let late = handle(&mut gateway, datagram(&setup_response(5), 0, asked.sent[0].0.sequence));
    assert_eq!(changes(&late), [], "it is the same association");
    let again = handle(&mut gateway, N4GatewayInput::Timer(asked.started[0]));
    assert!(again.sent.is_empty(), "the UPF is not asked again for what stands");
}

#[test]
fn a_duplicate_association_setup_ends_sessions_once() {
    let (mut gateway, _) = associated();
    let anew = handle(&mut gateway, datagram(&setup_request(6), 0, 1));
    assert_eq!(changes(&anew), [("restarted", 1), ("up", 2)]);
    let twice = handle(&mut gateway, datagram(&setup_request(6), 0, 1));
    assert_eq!(changes(&twice), []);
    assert_eq!(twice.sent, anew.sent, "the same answer again");
}

/// Any process at the UPF's address can send from another port than that of 'n4.upfs'.
#[test]
fn an_association_is_changed_only_from_the_upfs_port() {
    let mut octets = Vec::new();
    let mut from_another_port = |gateway: &mut N4Gateway, message: Message| {
        octets.clear();
        message.encode(0, 900, &mut octets).unwrap();
        let from = std::net::SocketAddr::new(upf().ip(), 40_000);
        handle(gateway, N4GatewayInput::Datagram { from, octets: octets.clone() })
    };
    let (mut joined, _) = associated();
    let release = AssociationReleaseRequest::new(NodeId::from(upf().ip()));
    for message in [setup_request(6), asks_for_release(None), Message::AssociationReleaseRequest(release)] {
        let seen = from_another_port(&mut joined, message);
        assert_eq!((changes(&seen), seen.sent.len()), (vec![], 0));
    }
    let mut alone = gateway();
    let seen = from_another_port(&mut alone, setup_request(6));
    assert_eq!(changes(&seen), [("up", 1)], "before there is an association, it may set one up");
}

#[test]
fn a_restarted_upf_gets_no_stored_answers() {
    let (mut gateway, _) = associated();
    let beat = |recovery| Message::HeartbeatRequest(HeartbeatRequest::new(NtpSeconds(recovery)));
    handle(&mut gateway, datagram(&beat(5), 0, 1));
    let anew = handle(&mut gateway, datagram(&setup_request(6), 0, 1));
    assert!(matches!(anew.sent.as_slice(), [(_, Message::AssociationSetupResponse(_))]), "{anew:?}");
    assert_eq!(changes(&anew), [("restarted", 1), ("up", 2)]);
}

#[test]
fn a_response_of_another_type_does_not_answer_a_heartbeat() {
    let (mut gateway, _) = associated();
    let beat = TimerKey { owner: 0, timer: Timer::PfcpHeartbeat };
    let asked = handle(&mut gateway, N4GatewayInput::Timer(beat));
    let sequence = asked.sent[0].0.sequence;
    handle(&mut gateway, datagram(&setup_response(5), 0, sequence));
    let again = handle(&mut gateway, N4GatewayInput::Timer(asked.started[0]));
    assert_eq!(again.sent, asked.sent, "it still waits");
    let response = Message::HeartbeatResponse(HeartbeatResponse::new(NtpSeconds(5)));
    let seen = handle(&mut gateway, datagram(&response, 0, sequence));
    assert_eq!(seen.started, [beat], "heartbeats go on");
}

/// An Association Update Request, changed.
fn update(change: impl FnOnce(&mut AssociationUpdateRequest)) -> Message {
    let mut request = AssociationUpdateRequest::new(NodeId::from(upf().ip()));
    change(&mut request);
    Message::AssociationUpdateRequest(request)
}

fn asks_for_release(period: Option<CodedDuration>) -> Message {
    update(|request| {
        request.association_release_request = Some(ReleaseRequestFlags::SARR);
        request.graceful_release_period = period;
    })
}

fn release_response() -> Message {
    let node = NodeId::from(upf().ip());
    Message::AssociationReleaseResponse(AssociationReleaseResponse::new(node, Cause::RequestAccepted))
}

#[test]
fn a_upf_that_requests_its_release_is_released_and_associated_again() {
    let (mut gateway, _) = associated();
    let seen = handle(&mut gateway, datagram(&asks_for_release(None), 0, 1));
    let [(_, Message::AssociationUpdateResponse(answer)), (header, Message::AssociationReleaseRequest(_))] =
        seen.sent.as_slice()
    else {
        panic!("{seen:?}")
    };
    assert_eq!(answer.cause, Cause::RequestAccepted);
    let released = handle(&mut gateway, datagram(&release_response(), 0, header.sequence));
    assert_eq!(changes(&released), [("down", 1)]);
    let retry = TimerKey { owner: 0, timer: Timer::PfcpAssociationRetry };
    assert_eq!(released.started, [retry]);
    let asked = handle(&mut gateway, N4GatewayInput::Timer(retry));
    assert!(matches!(asked.sent.as_slice(), [(_, Message::AssociationSetupRequest(_))]));
}

#[test]
fn a_graceful_release_happens_within_its_period_and_stops_new_sessions_at_once() {
    let (mut gateway, _) = associated();
    let request = datagram(&asks_for_release(Some(CodedDuration::at_least(60))), 0, 1);
    let effects: Vec<_> = gateway.handle(request).collect();
    let leaves = |effect: &&N4GatewayEffect| {
        matches!(effect, N4GatewayEffect::ToShard { input: N4Input::UpfLeaves { upf: UpfHandle(1) }, .. })
    };
    assert_eq!(effects.iter().filter(leaves).count(), 2, "every shard hears of it");
    let timer = effects.iter().find_map(|effect| match effect {
        N4GatewayEffect::StartTimer { key, after } => Some((*key, *after)),
        _ => None,
    });
    let key = TimerKey { owner: 0, timer: Timer::PfcpGracefulRelease };
    assert_eq!(timer, Some((key, Duration::from_secs(59))), "T1 before the end");
    let released = handle(&mut gateway, N4GatewayInput::Timer(key));
    assert!(matches!(released.sent.as_slice(), [(_, Message::AssociationReleaseRequest(_))]));
}

#[test]
fn an_unanswered_release_ends_the_association_and_a_release_without_period_waits_for_the_upf() {
    let (mut gateway, _) = associated();
    let endless = handle(&mut gateway, datagram(&asks_for_release(Some(CodedDuration::INFINITE)), 0, 1));
    assert!(endless.started.is_empty() && endless.sent.len() == 1, "{endless:?}");
    let asked = handle(&mut gateway, datagram(&asks_for_release(None), 0, 2));
    let timer = asked.started[0];
    for _ in 1..3 {
        assert_eq!(changes(&handle(&mut gateway, N4GatewayInput::Timer(timer))), []);
    }
    assert_eq!(changes(&handle(&mut gateway, N4GatewayInput::Timer(timer))), [("down", 1)]);
}

#[test]
fn a_upf_that_loses_ftup_is_released() {
    let (mut gateway, _) = associated();
    let nothing = handle(&mut gateway, datagram(&update(|_| {}), 0, 2));
    assert!(nothing.told.is_empty() && nothing.sent.len() == 1);
    let without = update(|request| request.up_function_features = Some(UpFunctionFeatures::EMPU));
    let seen = handle(&mut gateway, datagram(&without, 0, 1));
    let [_, (header, Message::AssociationReleaseRequest(_))] = seen.sent.as_slice() else {
        panic!("{seen:?}")
    };
    let released = handle(&mut gateway, datagram(&release_response(), 0, header.sequence));
    assert_eq!(changes(&released), [("down", 1)]);
}

#[test]
fn a_report_is_routed_once_by_its_seid_and_its_answer_is_stored() {
    let (mut gateway, upf) = associated();
    let seid = Seid::new(block(1), 3);
    let report = Message::SessionReportRequest(SessionReportRequest::new(ReportType::DLDR));
    let seen = handle(&mut gateway, datagram(&report, seid.0, 500));
    let [(1, N4Input::Request { transaction, .. })] = seen.told.as_slice() else { panic!("{seen:?}") };
    let transaction = *transaction;
    assert!(handle(&mut gateway, datagram(&report, seid.0, 500)).told.is_empty(), "it is being worked on");
    let answer = Message::SessionReportResponse(SessionReportResponse::new(Cause::RequestAccepted));
    let effect = N4Effect::Answer { transaction, seid: Seid(1), message: answer };
    let answered = handle(&mut gateway, N4GatewayInput::Shard { shard: ShardId(1), effect });
    assert_eq!(answered.sent[0].0.sequence, 500);
    let again = handle(&mut gateway, datagram(&report, seid.0, 500));
    assert_eq!(again.sent, answered.sent, "the same answer again");
    assert_eq!(transaction.upf, upf);
}

#[test]
fn a_report_for_an_overloaded_shard_is_dropped_and_its_retransmission_accepted() {
    let (mut gateway, _) = associated();
    let seid = Seid::new(block(1), 5);
    let report = Message::SessionReportRequest(SessionReportRequest::new(ReportType::DLDR));
    gateway.set_full([false, true]);
    assert!(handle(&mut gateway, datagram(&report, seid.0, 500)).told.is_empty());
    gateway.set_full([true, false]);
    assert_eq!(handle(&mut gateway, datagram(&report, seid.0, 500)).told.len(), 1);
}

#[test]
fn a_response_reaches_an_overloaded_shard() {
    let (mut gateway, upf) = associated();
    let sequence = ask(&mut gateway, upf).sent[0].0.sequence;
    gateway.set_full([true, true]);
    let response = Message::SessionDeletionResponse(SessionDeletionResponse::new(Cause::RequestAccepted));
    assert_eq!(handle(&mut gateway, datagram(&response, 1, sequence)).told.len(), 1);
}

#[test]
fn a_report_is_answered_to_its_source_address() {
    let (mut gateway, _) = associated();
    let seid = Seid::new(block(1), 3);
    let report = Message::SessionReportRequest(SessionReportRequest::new(ReportType::DLDR));
    let mut octets = Vec::new();
    report.encode(seid.0, 502, &mut octets).unwrap();
    let from = SocketAddr::new(upf().ip(), 40_000);
    let seen = handle(&mut gateway, N4GatewayInput::Datagram { from, octets });
    let [(1, N4Input::Request { transaction, .. })] = seen.told.as_slice() else { panic!("{seen:?}") };
    let answer = Message::SessionReportResponse(SessionReportResponse::new(Cause::RequestAccepted));
    let effect = N4Effect::Answer { transaction: *transaction, seid: Seid(1), message: answer };
    let effects = gateway.handle(N4GatewayInput::Shard { shard: ShardId(1), effect }).collect::<Vec<_>>();
    assert!(matches!(effects.as_slice(), [N4GatewayEffect::Send { to, .. }] if *to == from), "{effects:?}");
}

#[test]
fn a_report_for_an_unknown_session_is_refused() {
    let (mut gateway, _) = associated();
    let report = Message::SessionReportRequest(SessionReportRequest::new(ReportType::DLDR));
    let seid = Seid::new(block(9), 3);
    let seen = handle(&mut gateway, datagram(&report, seid.0, 501));
    let (_, Message::SessionReportResponse(response)) = &seen.sent[0] else { panic!() };
    assert_eq!(response.cause, Cause::SessionContextNotFound);
}

#[test]
fn heartbeats_are_answered_even_without_an_association() {
    let request = Message::HeartbeatRequest(HeartbeatRequest::new(NtpSeconds(1)));
    let seen = handle(&mut gateway(), datagram(&request, 0, 1));
    assert!(matches!(seen.sent.as_slice(), [(_, Message::HeartbeatResponse(_))]));
}

#[test]
fn malformed_pfcp_is_survived() {
    let (mut gateway, handle_of_upf) = associated();
    let mut octets = Vec::new();
    setup_response(5).encode(0, 3, &mut octets).unwrap();
    for at in 0..octets.len() {
        let mut spoiled = octets.clone();
        spoiled[at] ^= 0xff;
        handle(&mut gateway, N4GatewayInput::Datagram { from: upf(), octets: spoiled });
        handle(&mut gateway, N4GatewayInput::Datagram { from: upf(), octets: octets[..at].to_vec() });
    }
    assert_eq!(ask(&mut gateway, handle_of_upf).sent.len(), 1, "the association still stands");
}

#[test]
fn a_request_too_long_for_a_datagram_fails() {
    let (mut gateway, upf) = associated();
    let Message::SessionEstablishmentRequest(mut request) = new_session() else { panic!() };
    request.create_fars = vec![request.create_fars[0].clone(); 6000];
    let seen = asks(&mut gateway, upf, Message::SessionEstablishmentRequest(request));
    assert!(seen.sent.is_empty());
    assert!(matches!(seen.told[..], [(0, N4Input::Response { tag: TAG, result: Err(N4Error::TooLong) })]));
}

/// A response with load and overload control information.
fn loaded(sequence: u32, load: u8, reduction: u8) -> Message {
    let mut response = SessionDeletionResponse::new(Cause::RequestAccepted);
    response.load_control_information =
        Some(LoadControlInformation::new(SequenceNumber(sequence), Metric(load)));
    response.overload_control_information = Some(OverloadControlInformation::new(
        SequenceNumber(sequence),
        Metric(reduction),
        CodedDuration::at_least(10),
    ));
    Message::SessionDeletionResponse(response)
}

fn asks(gateway: &mut N4Gateway, upf: UpfHandle, message: Message) -> Seen {
    let effect = N4Effect::Request { tag: TAG, upf, seid: Seid(1), message };
    handle(gateway, N4GatewayInput::Shard { shard: ShardId(0), effect })
}

fn new_session() -> Message {
    let node = NodeId::from(upf().ip());
    let seid = FSeid::new(1, upf().ip());
    let pdr = CreatePdr::new(PdrId(1), Precedence(1), Pdi::new(SourceInterface::Access));
    let far = CreateFar::new(FarId(1), ApplyAction::DROP);
    Message::SessionEstablishmentRequest(SessionEstablishmentRequest::new(node, seid, vec![pdr], vec![far]))
}

/// A gateway with an association that received that response.
fn told(response: &Message) -> (N4Gateway, UpfHandle, Seen) {
    let mut gateway = gateway();
    let setup = handle(&mut gateway, N4GatewayInput::Start);
    let Message::AssociationSetupRequest(request) = &setup.sent[0].1 else { panic!() };
    assert!(
        request.cp_function_features.unwrap().contains(CpFunctionFeatures::LOAD | CpFunctionFeatures::OVRL)
    );
    let up = handle(&mut gateway, datagram(&setup_response(7), 0, setup.sent[0].0.sequence));
    let (_, N4Input::UpfUp { upf, .. }) = &up.told[0] else { panic!() };
    let upf = *upf;
    let deletion = asks(&mut gateway, upf, Message::SessionDeletionRequest(SessionDeletionRequest::new()));
    let seen = handle(&mut gateway, datagram(response, 1, deletion.sent[0].0.sequence));
    (gateway, upf, seen)
}

#[test]
fn an_overloaded_upf_gets_fewer_new_sessions_and_all_other_requests() {
    let (mut gateway, upf, seen) = told(&loaded(1, 90, 40));
    assert_eq!(gateway.load_of("upf"), Some(90));
    assert!(seen.started.contains(&TimerKey { owner: 0, timer: Timer::PfcpOverload }));
    let sent = (0..10).filter(|_| !asks(&mut gateway, upf, new_session()).sent.is_empty()).count();
    assert_eq!(sent, 6, "40% fewer");
    let refused = asks(&mut gateway, upf, new_session());
    let refused = if refused.told.is_empty() { asks(&mut gateway, upf, new_session()) } else { refused };
    let refused = if refused.told.is_empty() { asks(&mut gateway, upf, new_session()) } else { refused };
    assert!(matches!(&refused.told[..], [(0, N4Input::Response { result: Err(N4Error::Overloaded), .. })]));
    let deletion = Message::SessionDeletionRequest(SessionDeletionRequest::new());
    assert!((0..10).all(|_| !asks(&mut gateway, upf, deletion.clone()).sent.is_empty()));
}

#[test]
fn an_overloaded_upf_gets_all_sessions_again_that_it_had() {
    let (mut gateway, upf, _) = told(&loaded(1, 90, 100));
    assert!(asks(&mut gateway, upf, new_session()).sent.is_empty(), "a new session");
    let Message::SessionEstablishmentRequest(mut request) = new_session() else { panic!() };
    request.pfcp_se_req_flags = Some(PfcpSeReqFlags::RESTI);
    let restoration = Message::SessionEstablishmentRequest(request);
    assert_eq!(asks(&mut gateway, upf, restoration).sent.len(), 1);
}

#[test]
fn overload_ends_by_update_or_expiry_and_old_updates_are_ignored() {
    let all_pass =
        |gateway: &mut N4Gateway, upf| (0..10).all(|_| !asks(gateway, upf, new_session()).sent.is_empty());
    let tell = |gateway: &mut N4Gateway, upf, response: &Message| {
        let asked = asks(gateway, upf, Message::SessionDeletionRequest(SessionDeletionRequest::new()));
        handle(gateway, datagram(response, 1, asked.sent[0].0.sequence));
    };
    let (mut gateway, upf, _) = told(&loaded(5, 90, 50));
    tell(&mut gateway, upf, &loaded(4, 10, 0));
    assert!(!all_pass(&mut gateway, upf) && gateway.load_of("upf") == Some(90));
    tell(&mut gateway, upf, &loaded(6, 20, 0));
    assert!(all_pass(&mut gateway, upf) && gateway.load_of("upf") == Some(20));
    tell(&mut gateway, upf, &loaded(7, 90, 50));
    assert!(!all_pass(&mut gateway, upf));
    handle(&mut gateway, N4GatewayInput::Timer(TimerKey { owner: 0, timer: Timer::PfcpOverload }));
    assert!(all_pass(&mut gateway, upf));
}

/// The texts of events, and messages sent.
fn told_of(gateway: &mut N4Gateway, input: N4GatewayInput) -> (Vec<String>, Vec<Message>) {
    let (mut texts, mut sent) = (Vec::new(), Vec::new());
    for effect in gateway.handle(input) {
        match effect {
            N4GatewayEffect::Event(event) => texts.push(event.text),
            N4GatewayEffect::Send { octets, .. } => sent.push(Message::decode(&octets).unwrap().1),
            _ => {}
        }
    }
    (texts, sent)
}

/// TS 29.244 5.5.1: without FTUP every session at the UPF would fail.
#[test]
fn a_upf_without_ftup_gets_no_sessions_and_is_logged_once() {
    let mut gateway = gateway();
    let asked = handle(&mut gateway, N4GatewayInput::Start);
    let Message::AssociationSetupResponse(response) = setup_response(5) else { panic!() };
    let without = AssociationSetupResponse { up_function_features: None, ..response };
    let without = Message::AssociationSetupResponse(without);
    let (texts, sent) = told_of(&mut gateway, datagram(&without, 0, asked.sent[0].0.sequence));
    assert!(texts[0].contains("FTUP"), "{texts:?}");
    assert!(matches!(sent.as_slice(), [Message::AssociationReleaseRequest(_)]), "{sent:?}");
    assert_eq!(gateway.upfs().count(), 0);
    let retry = TimerKey { owner: 0, timer: Timer::PfcpAssociationRetry };
    let asked = handle(&mut gateway, N4GatewayInput::Timer(retry));
    let (texts, _) = told_of(&mut gateway, datagram(&without, 0, asked.sent[0].0.sequence));
    assert_eq!(texts, [""; 0], "told once");
    let Message::AssociationSetupRequest(request) = setup_request(5) else { panic!() };
    let request = AssociationSetupRequest { up_function_features: None, ..request };
    let (_, sent) = told_of(&mut gateway, datagram(&Message::AssociationSetupRequest(request), 0, 1));
    let [Message::AssociationSetupResponse(answer)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((answer.cause, gateway.upfs().count()), (Cause::RequestRejected, 0));
    handle(&mut gateway, datagram(&setup_request(5), 0, 2));
    assert_eq!(gateway.upfs().count(), 1, "it allocates them now");
}

fn from_stranger(message: &Message, sequence: u32) -> N4GatewayInput {
    let mut octets = Vec::new();
    message.encode(0, sequence, &mut octets).unwrap();
    N4GatewayInput::Datagram { from: "10.66.6.6:8805".parse().unwrap(), octets }
}

/// TS 33.515 4.2.2; TS 29.244 8.2.1.
#[test]
fn an_unknown_peer_is_refused_at_a_limited_rate_without_state() {
    let (mut gateway, _) = associated();
    let (texts, sent) = told_of(&mut gateway, from_stranger(&setup_request(5), 1));
    let [Message::AssociationSetupResponse(answer)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(answer.cause, Cause::RequestRejected);
    assert!(texts[0].contains("n4.upfs"), "{texts:?}");
    let report = Message::SessionReportRequest(SessionReportRequest::new(ReportType::DLDR));
    let (texts, sent) = told_of(&mut gateway, from_stranger(&report, 2));
    let [Message::SessionReportResponse(answer)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((answer.cause, texts.len()), (Cause::NoEstablishedPfcpAssociation, 0));
    let again =
        (0..5000).map(|number| told_of(&mut gateway, from_stranger(&setup_request(5), number)).1.len());
    assert_eq!(again.sum::<usize>(), 998, "a thousand answers in ten seconds");
    let key = TimerKey { owner: 0, timer: Timer::PfcpUnknownPeers };
    assert!(told_of(&mut gateway, N4GatewayInput::Timer(key)).0[0].contains("5002"));
    assert_eq!(told_of(&mut gateway, from_stranger(&report, 2)).1.len(), 1);
    assert_eq!(gateway.upfs().count(), 1);
    let beat = Message::HeartbeatRequest(HeartbeatRequest::new(NtpSeconds(5)));
    let known = handle(&mut gateway, datagram(&beat, 0, 1));
    assert_eq!(handle(&mut gateway, datagram(&beat, 0, 1)).sent, known.sent);
}

/// TS 29.244 4.2.3.2: a response is sent from the address and port that its request was sent to.
#[test]
fn a_response_from_another_port_is_ignored() {
    let (mut gateway, upf_handle) = associated();
    let asked = ask(&mut gateway, upf_handle);
    let response = Message::SessionDeletionResponse(SessionDeletionResponse::new(Cause::RequestAccepted));
    let mut octets = Vec::new();
    response.encode(1, asked.sent[0].0.sequence, &mut octets).unwrap();
    let from = SocketAddr::new(upf().ip(), 40_000);
    let forged = N4GatewayInput::Datagram { from, octets: octets.clone() };
    assert!(handle(&mut gateway, forged).told.is_empty());
    let right = N4GatewayInput::Datagram { from: upf(), octets };
    assert_eq!(handle(&mut gateway, right).told.len(), 1);
}

#[test]
fn pending_requests_to_a_upf_are_limited() {
    let (mut gateway, upf) = associated();
    let refused = (0..MAX_REQUESTS + 3).filter(|_| !ask(&mut gateway, upf).told.is_empty()).count();
    assert_eq!(refused, 3);
}

#[test]
fn two_upfs_with_one_node_id_are_refused() {
    let second: SocketAddr = "10.0.0.8:8805".parse().unwrap();
    let mut config = gateway().config;
    config.upfs.push(N4Peer { name: "second".into(), address: second });
    let mut gateway = N4Gateway::new(config);
    handle(&mut gateway, N4GatewayInput::Start);
    handle(&mut gateway, datagram(&setup_request(5), 0, 1));
    let mut octets = Vec::new();
    setup_request(5).encode(0, 1, &mut octets).unwrap();
    let (texts, sent) = told_of(&mut gateway, N4GatewayInput::Datagram { from: second, octets });
    let [Message::AssociationSetupResponse(answer)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((answer.cause, gateway.upfs().count()), (Cause::RequestRejected, 1));
    assert!(texts[0].contains("Node ID"), "{texts:?}");
}

/// The tunnel endpoint and SEID in a UPF's response are checked before they are sent to gNBs.
#[test]
fn invalid_endpoints_are_removed_from_responses() {
    let (mut gateway, upf_handle) = associated();
    for (f_teid, seid, kept) in [
        (FTeid::new(7, [10, 0, 3, 7].into()), 1, (1, true)),
        (FTeid::new(7, [127, 0, 0, 1].into()), 1, (0, true)),
        (FTeid::new(7, [0, 0, 0, 0].into()), 1, (0, true)),
        (FTeid::new(0, [10, 0, 3, 7].into()), 1, (0, true)),
        (FTeid::new(7, [10, 0, 3, 7].into()), 0, (1, false)),
    ] {
        let asked = asks(&mut gateway, upf_handle, new_session());
        let created = CreatedPdr { local_f_teids: vec![f_teid], ..CreatedPdr::new(PdrId(1)) };
        let response = SessionEstablishmentResponse {
            up_f_seid: Some(FSeid::new(seid, upf().ip())),
            created_pdrs: vec![created],
            ..SessionEstablishmentResponse::new(NodeId::from(upf().ip()), Cause::RequestAccepted)
        };
        let response = Message::SessionEstablishmentResponse(response);
        let seen = handle(&mut gateway, datagram(&response, 1, asked.sent[0].0.sequence));
        let [(_, N4Input::Response { result: Ok(Message::SessionEstablishmentResponse(it)), .. })] =
            seen.told.as_slice()
        else {
            panic!("{seen:?}")
        };
        assert_eq!((it.created_pdrs[0].local_f_teids.len(), it.up_f_seid.is_some()), kept, "{f_teid:?}");
    }
}

fn taken_over() -> N4Effect {
    N4Effect::TakenOver { owners: sparse_owners(2) }
}

#[test]
fn after_a_panic_of_a_shard_only_deletions_are_retransmitted() {
    let (mut gateway, upf) = associated();
    let deletion = ask(&mut gateway, upf).sent[0].0.sequence;
    let message = Message::SessionModificationRequest(SessionModificationRequest::new());
    let effect = N4Effect::Request { tag: TAG, upf, seid: Seid(77), message };
    let change = handle(&mut gateway, N4GatewayInput::Shard { shard: ShardId(1), effect });
    let change = change.sent[0].0.sequence;
    handle(&mut gateway, N4GatewayInput::Shard { shard: ShardId(0), effect: taken_over() });
    let expired = |gateway: &mut N4Gateway, sequence| handle(gateway, N4GatewayInput::Timer(t1(sequence)));
    assert_eq!(expired(&mut gateway, change).sent.len(), 1, "another shard has panicked");
    handle(&mut gateway, N4GatewayInput::Shard { shard: ShardId(1), effect: taken_over() });
    assert_eq!(expired(&mut gateway, change).sent.len(), 0, "it may undo what the next run changes");
    assert_eq!(expired(&mut gateway, deletion).sent.len(), 1);
}

/// A heartbeat, which the UPF answers; what the gateway does then.
fn heartbeats(gateway: &mut N4Gateway) -> Seen {
    let asked = handle(gateway, N4GatewayInput::Timer(TimerKey { owner: 0, timer: Timer::PfcpHeartbeat }));
    let response = Message::HeartbeatResponse(HeartbeatResponse::new(NtpSeconds(5)));
    handle(gateway, datagram(&response, 0, asked.sent[0].0.sequence))
}
