//! Tests that messages are unchanged after conversion to HTTP and back.

use crate::examples::{problems, request, response, root};
use pith_sbi::{HttpResponse, Method, NfType, Operation, Outcome, Request, Response};
use std::mem::size_of;

#[test]
fn every_request_comes_back_from_http() {
    for &operation in Operation::ALL {
        let sent = request(operation);
        assert_eq!(sent.operation(), operation);
        let http = sent.to_http();
        let received = Request::from_http(&root(), &http);
        assert_eq!(received, Ok(sent), "{operation:?} {http:?}");
    }
}

#[test]
fn every_answer_of_every_operation_comes_back_from_http() {
    let mut seen = Vec::new();
    for &operation in Operation::ALL {
        for &outcome in operation.info().outcomes {
            let sent = response(outcome);
            assert_eq!(sent.outcome(), outcome);
            let received = Response::from_http(operation, &root(), &sent.to_http());
            assert_eq!(received, Ok(sent), "{operation:?}");
            seen.push(outcome);
        }
    }
    let unused: Vec<_> = Outcome::ALL.iter().filter(|o| !seen.contains(o)).collect();
    assert_eq!(unused, Vec::<&Outcome>::new(), "no operation ends so");
}

#[test]
fn every_error_comes_back_from_http() {
    for (operation, problem) in problems() {
        let http = problem.to_http(Some(operation));
        let received = Response::from_http(operation, &root(), &http);
        assert_eq!(received, Err(Box::new(problem)), "{operation:?} {http:?}");
    }
}

#[test]
fn the_outcomes_of_an_operation_differ_in_their_status() {
    for &operation in Operation::ALL {
        let mut statuses: Vec<_> = operation.info().outcomes.iter().map(|o| o.status()).collect();
        statuses.sort_unstable();
        statuses.dedup();
        assert_eq!(statuses.len(), operation.info().outcomes.len(), "{operation:?}");
    }
}

#[test]
fn requests_name_their_target_and_subscriber() {
    let transfer = request(Operation::N1N2MessageTransfer);
    assert_eq!(transfer.target_nf(), Some(NfType::Amf));
    assert_eq!(transfer.supi().expect("a SUPI").as_str(), "imsi-999700000000001");
    assert_eq!(transfer.target_uri(), None);
    assert_eq!(transfer.operation().name(), "Namf_Communication_N1N2MessageTransfer");
    let notification = request(Operation::SdmChangeNotification);
    assert_eq!(notification.target_nf(), Some(NfType::Smf));
    assert_eq!(notification.target_uri().expect("a URI").id(), "9");
    for &operation in Operation::ALL {
        assert!(request(operation).target_nf().is_some(), "{operation:?}");
    }
}

#[test]
fn requests_and_answers_are_cheap_to_move() {
    assert!(size_of::<Request>() <= 16 && size_of::<Response>() <= 16);
}

#[test]
fn a_notification_to_a_foreign_uri_keeps_its_path_and_query() {
    let mut notification = request(Operation::SmPolicyUpdateNotify);
    let Request::SmPolicyUpdateNotify(notify) = &mut notification else { unreachable!() };
    notify.uri = "http://smf/a/b?x=1".parse().expect("a URI");
    let http = notification.to_http();
    assert_eq!((http.method, &*http.path, &*http.query), (Method::Post, "/a/b/update", "x=1"));
}

#[test]
fn a_response_without_location_or_with_a_wrong_status_is_a_peer_failure() {
    let operation = Operation::PostSmContexts;
    let mut http = response(Outcome::SmContextCreated).to_http();
    http.headers = Default::default();
    let without = Response::from_http(operation, &root(), &http).expect_err("no Location");
    assert!(without.to_string().contains("header Location"), "{without}");
    let wrong = Response::from_http(operation, &root(), &HttpResponse::new(204));
    assert_eq!(wrong.expect_err("not a status of its").status, 500);
}
