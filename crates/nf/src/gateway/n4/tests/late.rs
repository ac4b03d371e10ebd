//! Requests of former runs, establishments that arrive late, deletions that are refused.

use super::*;

/// A late datagram of the former run must not undo what the next run changes.
#[test]
fn a_change_of_the_next_run_waits_for_the_answer_to_that_of_the_former_one() {
    let (mut gateway, upf) = associated();
    let change = |seid| {
        let message = Message::SessionModificationRequest(SessionModificationRequest::new());
        N4GatewayInput::Shard {
            shard: ShardId(1),
            effect: N4Effect::Request { tag: TAG, upf, seid: Seid(seid), message },
        }
    };
    let former = handle(&mut gateway, change(77)).sent[0].0.sequence;
    handle(&mut gateway, N4GatewayInput::Shard { shard: ShardId(1), effect: taken_over() });
    assert_eq!(handle(&mut gateway, change(78)).sent.len(), 1, "another session");
    assert_eq!(handle(&mut gateway, change(77)).sent.len(), 0);
    assert_eq!(handle(&mut gateway, change(77)).sent.len(), 0);
    // No answer: T1 of the former request.
    let sent = handle(&mut gateway, N4GatewayInput::Timer(t1(former))).sent;
    assert_eq!(sent.len(), 2, "both, in order");
    assert_eq!(handle(&mut gateway, change(77)).sent.len(), 1);
}

/// A request to establish the session with that SEID of the SMF, as its shard sends it.
fn establishes(gateway: &mut N4Gateway, upf: UpfHandle, of_smf: u64) -> Seen {
    let Message::SessionEstablishmentRequest(mut request) = new_session() else { panic!() };
    request.cp_f_seid = FSeid::new(of_smf, [10, 0, 0, 4].into());
    let message = Message::SessionEstablishmentRequest(request);
    let effect = N4Effect::Request { tag: TAG, upf, seid: Seid(0), message };
    handle(gateway, N4GatewayInput::Shard { shard: ShardId(1), effect })
}

fn established(cause: Cause, of_upf: Option<u64>) -> Message {
    let response = SessionEstablishmentResponse {
        up_f_seid: of_upf.map(|seid| FSeid::new(seid, upf().ip())),
        ..SessionEstablishmentResponse::new(NodeId::from(upf().ip()), cause)
    };
    Message::SessionEstablishmentResponse(response)
}

/// The UPF answers that request with cause 72, and gets another association; returns what the first response caused.
fn loses_association(gateway: &mut N4Gateway, denied: &Message, sequence: u32) -> (Seen, UpfHandle) {
    heartbeats(gateway);
    let seen = handle(gateway, datagram(denied, 0, sequence));
    let back = handle(gateway, datagram(&setup_response(6), 0, seen.sent[0].0.sequence));
    let [("up", upf)] = changes(&back)[..] else { panic!("{back:?}") };
    (seen, UpfHandle(upf))
}

fn deleted(seen: &Seen) -> Option<u64> {
    match seen.sent.as_slice() {
        [(header, Message::SessionDeletionRequest(_)), ..] => header.seid,
        _ => None,
    }
}

/// The shard has given the session up, so nothing else would delete it.
#[test]
fn a_session_that_a_restarted_upf_establishes_late_is_deleted() {
    let (mut gateway, upf) = associated();
    let late = establishes(&mut gateway, upf, 5).sent[0].0.sequence;
    let other = ask(&mut gateway, upf).sent[0].0.sequence;
    let denied =
        Message::SessionDeletionResponse(SessionDeletionResponse::new(Cause::NoEstablishedPfcpAssociation));
    let (seen, _) = loses_association(&mut gateway, &denied, other);
    let failed = |(_, input): &&(u8, N4Input)| {
        matches!(input, N4Input::Response { result: Err(N4Error::NoAssociation), .. })
    };
    assert_eq!(seen.told.iter().filter(failed).count(), 2);
    let response = established(Cause::RequestAccepted, Some(88));
    let seen = handle(&mut gateway, datagram(&response, 5, late));
    assert_eq!((deleted(&seen), seen.told.len()), (Some(88), 0));
    let repeated = handle(&mut gateway, N4GatewayInput::Timer(seen.started[0]));
    assert_eq!(repeated.sent, seen.sent, "until the UPF answers");
    let again = handle(&mut gateway, datagram(&response, 5, late));
    assert!(again.sent.is_empty(), "a duplicate: {again:?}");
}

#[test]
fn a_second_copy_of_a_denied_establishment_may_arrive_after_the_association() {
    let (mut gateway, upf) = associated();
    let late = establishes(&mut gateway, upf, 5).sent[0].0.sequence;
    let denied = established(Cause::NoEstablishedPfcpAssociation, None);
    loses_association(&mut gateway, &denied, late);
    let again = handle(&mut gateway, datagram(&denied, 5, late));
    assert!(again.sent.is_empty() && again.told.is_empty(), "the association is another one: {again:?}");
    let seen = handle(&mut gateway, datagram(&established(Cause::RequestAccepted, Some(88)), 5, late));
    assert_eq!((deleted(&seen), seen.told.len()), (Some(88), 0));
}

/// The UPF would replace the session by the one that the late datagram establishes.
#[test]
fn a_session_is_not_established_again_before_its_late_establishment_is_over() {
    for is_answered in [true, false] {
        let (mut gateway, upf) = associated();
        let late = establishes(&mut gateway, upf, 5).sent[0].0.sequence;
        let other = ask(&mut gateway, upf).sent[0].0.sequence;
        let denied = Message::SessionDeletionResponse(SessionDeletionResponse::new(
            Cause::NoEstablishedPfcpAssociation,
        ));
        let (_, upf) = loses_association(&mut gateway, &denied, other);
        assert_eq!(establishes(&mut gateway, upf, 6).sent.len(), 1, "another session");
        assert_eq!(establishes(&mut gateway, upf, 5).sent.len(), 0);
        let seen = if is_answered {
            handle(&mut gateway, datagram(&established(Cause::RequestAccepted, Some(88)), 5, late))
        } else {
            handle(&mut gateway, N4GatewayInput::Timer(t1(late)))
        };
        assert_eq!(deleted(&seen), is_answered.then_some(88));
        let last = seen.sent.last().map(|(_, message)| message);
        assert!(matches!(last, Some(Message::SessionEstablishmentRequest(_))), "{seen:?}");
    }
}

/// As above: the first copy was refused, and another one may be in transit.
#[test]
fn a_session_is_not_established_again_before_a_copy_of_a_denied_establishment_is_over() {
    let (mut gateway, upf) = associated();
    let late = establishes(&mut gateway, upf, 5).sent[0].0.sequence;
    handle(&mut gateway, N4GatewayInput::Timer(t1(late)));
    let denied = established(Cause::NoEstablishedPfcpAssociation, None);
    let (_, upf) = loses_association(&mut gateway, &denied, late);
    assert_eq!(establishes(&mut gateway, upf, 5).sent.len(), 0);
    let again = handle(&mut gateway, datagram(&denied, 5, late));
    assert_eq!(again.sent.len(), 0, "the next copy may follow");
    let seen = handle(&mut gateway, N4GatewayInput::Timer(t1(late)));
    assert!(matches!(seen.sent[..], [(_, Message::SessionEstablishmentRequest(_))]), "{seen:?}");
}

/// The UPF was stopped for longer than the SMF waits, and for less than heartbeats take to fail.
#[test]
fn a_session_that_a_stopped_upf_establishes_late_is_deleted() {
    let (mut gateway, upf) = associated();
    let late = establishes(&mut gateway, upf, 5).sent[0].0.sequence;
    let given_up = (0..3).map(|_| handle(&mut gateway, N4GatewayInput::Timer(t1(late)))).last().unwrap();
    assert!(matches!(given_up.told[..], [(1, N4Input::Response { result: Err(N4Error::NoAnswer), .. })]));
    assert_eq!(given_up.started, [t1(late)]);
    let response = established(Cause::RequestAccepted, Some(88));
    let seen = handle(&mut gateway, datagram(&response, 5, late));
    assert_eq!((deleted(&seen), seen.told.len()), (Some(88), 0));
    let copy = handle(&mut gateway, datagram(&response, 5, late));
    assert!(copy.sent.is_empty(), "the answers to the other copies: {copy:?}");
}

/// A UPF that answers heartbeats only must not hold up the requests behind those that it does not answer.
#[test]
fn a_change_that_waits_for_a_heartbeat_is_not_in_the_window() {
    let (mut gateway, upf) = associated();
    let change = Message::SessionModificationRequest(SessionModificationRequest::new());
    let sent: Vec<u32> =
        (0..WINDOW).map(|_| asks(&mut gateway, upf, change.clone()).sent[0].0.sequence).collect();
    let queued = asks(&mut gateway, upf, change);
    assert_eq!(queued.sent.len(), 0);
    let seen: Vec<Seen> = (0..3).map(|_| handle(&mut gateway, N4GatewayInput::Timer(t1(sent[0])))).collect();
    assert_eq!([seen[0].sent.len(), seen[1].sent.len(), seen[2].sent.len()], [1, 1, 2]);
}

/// Until the UPF deletes it; not for ever.
#[test]
fn a_deletion_that_the_upf_refuses_is_repeated_after_heartbeats() {
    let (mut gateway, upf) = associated();
    let respond = |cause| Message::SessionDeletionResponse(SessionDeletionResponse::new(cause));
    let mut sequence = ask(&mut gateway, upf).sent[0].0.sequence;
    for _ in 0..6 {
        let refused = handle(&mut gateway, datagram(&respond(Cause::PfcpEntityInCongestion), 1, sequence));
        assert!(refused.sent.is_empty());
        let beat = handle(&mut gateway, N4GatewayInput::Timer(BEAT));
        let alive = Message::HeartbeatResponse(HeartbeatResponse::new(NtpSeconds(5)));
        let seen = handle(&mut gateway, datagram(&alive, 0, beat.sent[0].0.sequence));
        assert_eq!(deleted(&seen), Some(77));
        sequence = seen.sent[0].0.sequence;
    }
    handle(&mut gateway, datagram(&respond(Cause::PfcpEntityInCongestion), 1, sequence));
    let beat = handle(&mut gateway, N4GatewayInput::Timer(BEAT));
    let alive = Message::HeartbeatResponse(HeartbeatResponse::new(NtpSeconds(5)));
    assert!(handle(&mut gateway, datagram(&alive, 0, beat.sent[0].0.sequence)).sent.is_empty());
}

#[test]
fn a_deletion_of_an_unknown_session_is_not_repeated() {
    let (mut gateway, upf) = associated();
    let sequence = ask(&mut gateway, upf).sent[0].0.sequence;
    let response = SessionDeletionResponse::new(Cause::SessionContextNotFound);
    handle(&mut gateway, datagram(&Message::SessionDeletionResponse(response), 1, sequence));
    let beat = handle(&mut gateway, N4GatewayInput::Timer(BEAT));
    let alive = Message::HeartbeatResponse(HeartbeatResponse::new(NtpSeconds(5)));
    assert!(handle(&mut gateway, datagram(&alive, 0, beat.sent[0].0.sequence)).sent.is_empty());
}

/// Open5GS's UPF refuses an establishment without Node ID.
#[test]
fn a_refusal_that_lacks_information_elements_is_a_refusal() {
    for (cause, is_told) in [(Cause::NoResourcesAvailable, true), (Cause::RequestAccepted, false)] {
        let (mut gateway, upf) = associated();
        let sequence = establishes(&mut gateway, upf, 5).sent[0].0.sequence;
        let mut octets = Vec::new();
        established(cause, Some(88)).encode(5, sequence, &mut octets).unwrap();
        // The first information element is the Node ID: 4 octets of head, 5 of IPv4 address.
        octets.drain(16..25);
        octets[3] -= 9;
        assert!(Message::decode(&octets).is_err());
        let seen = handle(&mut gateway, N4GatewayInput::Datagram { from: self::upf(), octets });
        let refused = |input: &N4Input| matches!(input, N4Input::Response { result: Ok(Message::SessionEstablishmentResponse(it)), .. } if it.cause == cause);
        assert_eq!(seen.told.iter().filter(|(_, input)| refused(input)).count(), usize::from(is_told));
        assert_eq!(seen.told.len(), usize::from(is_told));
    }
}
