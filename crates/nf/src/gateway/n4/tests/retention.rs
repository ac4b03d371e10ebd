//! Sessions that UPFs retain over a restart of the SMF.

use super::*;

/// A gateway whose process had a former run, with the association request that it sends at its start.
fn restarted() -> (N4Gateway, Header, AssociationSetupRequest) {
    let mut gateway = gateway();
    gateway.config.run = Some(StoredRun { session_set: 3, has_former: true });
    let mut gateway = N4Gateway::new(gateway.config);
    let mut asked = handle(&mut gateway, N4GatewayInput::Start);
    let (header, Message::AssociationSetupRequest(request)) = asked.sent.remove(0) else { panic!() };
    (gateway, header, request)
}

/// The UPF has retained the sessions.
fn retained(gateway: &mut N4Gateway, header: &Header) -> UpfHandle {
    let Message::AssociationSetupResponse(mut response) = setup_response(5) else { panic!() };
    response.pfcp_as_rsp_flags = Some(PfcpAsRspFlags::PSREI);
    let response = Message::AssociationSetupResponse(response);
    let seen = handle(gateway, datagram(&response, 0, header.sequence));
    let N4Input::UpfUp { upf, info } = &seen.told[0].1 else { panic!() };
    assert!(info.has_retained);
    *upf
}

fn confirm(gateway: &mut N4Gateway, shard: u8, upf: UpfHandle) -> Seen {
    handle(gateway, N4GatewayInput::Shard { shard: ShardId(shard), effect: N4Effect::Confirmed { upf } })
}

/// The sets of an FQ-CSID of this SMF.
fn sets(fq_csids: &[FqCsid]) -> Vec<u16> {
    let [set] = fq_csids else { panic!("{fq_csids:?}") };
    assert_eq!((&set.node, set.node_type), (&CsidNode::Ipv4([10, 0, 0, 4].into()), Some(2)));
    set.csids.clone()
}

fn sends_modification(gateway: &mut N4Gateway, upf: UpfHandle) -> SessionModificationRequest {
    let message = Message::SessionModificationRequest(SessionModificationRequest::new());
    let effect = N4Effect::Request { tag: TAG, upf, seid: Seid(77), message };
    let mut seen = handle(gateway, N4GatewayInput::Shard { shard: ShardId(1), effect });
    let (_, Message::SessionModificationRequest(request)) = seen.sent.remove(0) else { panic!() };
    request
}

#[test]
fn sessions_of_former_runs_that_no_shard_confirms_are_deleted() {
    let (mut gateway, header, request) = restarted();
    assert!(request.session_retention_information.is_some());
    let upf = retained(&mut gateway, &header);
    assert_eq!(sets(&sends_modification(&mut gateway, upf).fq_csids), [3], "it confirms a session");
    assert!(confirm(&mut gateway, 0, upf).sent.is_empty(), "another shard may have sessions");
    let seen = confirm(&mut gateway, 1, upf);
    let [(header, Message::SessionSetDeletionRequest(deletion))] = seen.sent.as_slice() else {
        panic!("{seen:?}")
    };
    let former = sets(&deletion.fq_csids);
    assert_eq!((former.len(), &former[..3]), (15, &[2, 1, 0][..]));
    assert!(!former.contains(&3));
    assert!(sends_modification(&mut gateway, upf).fq_csids.is_empty());
    let response = SessionSetDeletionResponse::new(NodeId::from(upf_address()), Cause::RequestAccepted);
    let response = Message::SessionSetDeletionResponse(response);
    assert!(handle(&mut gateway, datagram(&response, 0, header.sequence)).sent.is_empty());
    // A request of the former run may have arrived since.
    let again = heartbeats(&mut gateway);
    let [(header, Message::SessionSetDeletionRequest(_))] = again.sent.as_slice() else {
        panic!("{again:?}")
    };
    handle(&mut gateway, datagram(&response, 0, header.sequence));
    assert!(heartbeats(&mut gateway).sent.is_empty(), "twice is enough");
}

fn upf_address() -> IpAddr {
    upf().ip()
}

#[test]
fn a_shard_that_panics_has_no_session_deleted() {
    let (mut gateway, header, _) = restarted();
    let upf = retained(&mut gateway, &header);
    confirm(&mut gateway, 0, upf);
    let effect = taken_over();
    handle(&mut gateway, N4GatewayInput::Shard { shard: ShardId(0), effect });
    assert!(confirm(&mut gateway, 1, upf).sent.is_empty());
}

#[test]
fn a_upf_that_retains_no_sessions_is_not_asked_to_delete_any() {
    let (mut gateway, header, _) = restarted();
    let seen = handle(&mut gateway, datagram(&setup_response(5), 0, header.sequence));
    let N4Input::UpfUp { upf, info } = &seen.told[0].1 else { panic!() };
    assert!(!info.has_retained);
    for shard in [0, 1] {
        assert!(confirm(&mut gateway, shard, *upf).sent.is_empty());
    }
}

#[test]
fn a_report_is_not_answered_until_the_upf_was_asked_to_retain_sessions() {
    let report = Message::SessionReportRequest(SessionReportRequest::new(ReportType::DLDR));
    let (mut gateway, header, _) = restarted();
    assert!(handle(&mut gateway, datagram(&report, 1, 1)).sent.is_empty());
    retained(&mut gateway, &header);
    let seen = handle(&mut gateway, datagram(&report, Seid::new(block(0), 1).0, 1));
    assert!(matches!(seen.told.as_slice(), [(_, N4Input::Request { .. })]), "{seen:?}");
}

#[test]
fn sessions_that_the_smf_has_ended_are_not_retained() {
    let (mut gateway, header, _) = restarted();
    retained(&mut gateway, &header);
    let beat = TimerKey { owner: 0, timer: Timer::PfcpHeartbeat };
    let asked = handle(&mut gateway, N4GatewayInput::Timer(beat));
    for _ in 0..3 {
        handle(&mut gateway, N4GatewayInput::Timer(asked.started[0]));
    }
    let retry = TimerKey { owner: 0, timer: Timer::PfcpAssociationRetry };
    let seen = handle(&mut gateway, N4GatewayInput::Timer(retry));
    let [(_, Message::AssociationSetupRequest(request))] = seen.sent.as_slice() else { panic!("{seen:?}") };
    assert_eq!(request.session_retention_information, None);
}

/// Open5GS's UPF discards a message with Session Retention Information.
#[test]
fn each_second_attempt_to_associate_requests_no_retention() {
    let (mut gateway, header, request) = restarted();
    let mut requested = vec![request.session_retention_information.is_some()];
    let mut sequence = header.sequence;
    for _ in 0..3 {
        (0..3).for_each(|_| drop(handle(&mut gateway, N4GatewayInput::Timer(t1(sequence)))));
        let retry = TimerKey { owner: 0, timer: Timer::PfcpAssociationRetry };
        let seen = handle(&mut gateway, N4GatewayInput::Timer(retry));
        let [(header, Message::AssociationSetupRequest(request))] = &seen.sent[..] else {
            panic!("{seen:?}")
        };
        requested.push(request.session_retention_information.is_some());
        sequence = header.sequence;
    }
    assert_eq!(requested, [true, false, true, false]);
    let seen = handle(&mut gateway, datagram(&setup_response(5), 0, sequence));
    let (_, N4Input::UpfUp { info, .. }) = &seen.told[0] else { panic!("{seen:?}") };
    assert!(!info.has_retained);
}
