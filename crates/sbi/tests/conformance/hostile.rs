//! Tests of invalid requests and their error responses (TS 29.500 5.2.7.2).

use crate::examples::{request, response, root};
use pith_sbi::{Cause, HttpRequest, Method, Operation, Problem, ProblemMore, Request, Response};

fn refused(http: &HttpRequest) -> Problem {
    *Request::from_http(&root(), http).expect_err("a problem")
}

fn outcome(http: &HttpRequest) -> (u16, Option<Cause>) {
    let problem = refused(http);
    (problem.status, problem.details.cause)
}

#[test]
fn unknown_paths_are_refused() {
    let get = |path: &str| outcome(&HttpRequest::new(Method::Get, path));
    for path in ["", "/", "//", "/nudm-sdm", "/nudm-sdm/v1/imsi-1/nssai", "/x/v1/y", "/%6eudm-sdm/v2/a"] {
        assert_eq!(get(path), (400, Some(Cause::InvalidApi)), "{path}");
    }
    // A service that no NF offers or registers is an unsupported API, too (TS 29.500 table 5.2.7.2-1).
    let of_nssf = "/nnssf-nssaiavailability/v1/nssai-availability/4ad8a1f0-5b0e-4b5c-9d1e-0123456789ab";
    let problem = refused(&HttpRequest::new(Method::Put, of_nssf));
    let answer = problem.to_http(None);
    assert_eq!((answer.status, answer.content_type.as_deref()), (400, Some("application/problem+json")));
    assert_eq!(problem.details.cause, Some(Cause::InvalidApi));
    for path in [
        "/nudm-sdm/v2/imsi-999700000000001/no-such-data",
        "/nudm-sdm/v2/imsi-999700000000001/nssai/",
        "/nsmf-pdusession/v1",
        "/namf-callback/v1/sm-context-status",
        "/namf-callback/v1/no-such-callback/1",
        "/namf-callback/v1/am-policy/1/other",
    ] {
        assert_eq!(get(path), (404, Some(Cause::ResourceUriStructureNotFound)), "{path}");
    }
    for path in ["/nudm-sdm/v2/x/nssai", "/nudm-sdm/v2/%ff/nssai", "/nudm-sdm/v2/imsi-1%/nssai"] {
        assert_eq!(get(path), (400, Some(Cause::MandatoryIeIncorrect)), "{path}");
    }
}

#[test]
fn unsupported_methods_are_refused() {
    let path = "/nudm-uecm/v1/imsi-999700000000001/registrations/amf-3gpp-access";
    let problem = refused(&HttpRequest::new(Method::Delete, path));
    let allow = vec![Method::Put, Method::Patch, Method::Get];
    assert_eq!((problem.status, problem.more.clone()), (405, Some(ProblemMore::Allow(allow))));
    assert_eq!(problem.to_http(None).headers.get("Allow"), Some("PUT, PATCH, GET"));
    let callback = HttpRequest::new(Method::Get, "/namf-callback/v1/sm-context-status/1");
    assert_eq!(outcome(&callback), (405, None));
}

#[test]
fn query_parameters_that_are_missing_or_wrong() {
    let ask = |query: &str| {
        let mut http = HttpRequest::new(Method::Get, "/nnrf-disc/v1/nf-instances");
        http.query = query.into();
        outcome(&http)
    };
    let both = "target-nf-type=SMF&requester-nf-type=AMF";
    assert_eq!(ask(""), (400, Some(Cause::MandatoryQueryParamMissing)));
    assert_eq!(ask("target-nf-type=SMF"), (400, Some(Cause::MandatoryQueryParamMissing)));
    for wrong in ["snssais=1", "snssais=%5B%7B", "limit=-1", "supi=x", "guami={}", "access-type=X"] {
        let query = format!("{both}&{wrong}");
        assert_eq!(ask(&query), (400, Some(Cause::OptionalQueryParamIncorrect)), "{wrong}");
    }
    assert_eq!(ask(&format!("{both}&dnn=%")), (400, Some(Cause::InvalidQueryParam)));
    let mut http = HttpRequest::new(Method::Get, "/nnssf-nsselection/v2/network-slice-information");
    http.query = "nf-type=AMF&nf-id=x".into();
    assert_eq!(outcome(&http), (400, Some(Cause::MandatoryQueryParamIncorrect)));
}

#[test]
fn unknown_query_parameters_are_ignored() {
    let mut http = request(Operation::SearchNfInstances).to_http();
    http.query.push_str("&vendor-x=1&&=");
    assert_eq!(Request::from_http(&root(), &http), Ok(request(Operation::SearchNfInstances)));
}

#[test]
fn bodies_that_are_missing_wrong_or_of_another_type() {
    let ask = |content_type: Option<&'static str>, body: &'static str| {
        let mut http = HttpRequest::new(Method::Post, "/nausf-auth/v1/ue-authentications");
        http.content_type = content_type.map(Into::into);
        http.body = body.into();
        outcome(&http)
    };
    let json = Some("application/json; charset=utf-8");
    assert_eq!(ask(None, ""), (400, Some(Cause::MandatoryIeMissing)));
    assert_eq!(ask(None, "{}"), (415, None));
    assert_eq!(ask(Some("text/plain"), "{}"), (415, None));
    assert_eq!(ask(json, ""), (400, Some(Cause::InvalidMsgFormat)));
    assert_eq!(ask(json, "{\"a\""), (400, Some(Cause::InvalidMsgFormat)));
    assert_eq!(ask(json, "\u{feff}{}"), (400, Some(Cause::InvalidMsgFormat)));
    assert_eq!(ask(json, "{}"), (400, Some(Cause::MandatoryIeMissing)));
    assert_eq!(ask(json, "[]"), (400, Some(Cause::MandatoryIeIncorrect)));
    assert_eq!(ask(json, "7"), (400, Some(Cause::MandatoryIeIncorrect)));
    let who = r#"{"supiOrSuci":"imsi-x","servingNetworkName":"n"}"#;
    assert_eq!(ask(json, who), (400, Some(Cause::MandatoryIeIncorrect)));
}

#[test]
fn a_missing_member_is_named() {
    let mut http = request(Operation::ThreeGppRegistration).to_http();
    http.body = r#"{"amfInstanceId":"4ad8a1f0-5b0e-4b5c-9d1e-0123456789ab"}"#.into();
    let problem = refused(&http);
    assert_eq!(problem.details.invalid_params[0].param, "deregCallbackUri");
}

/// TS 29.509 6.1.6.2.5: `resStar` is required, and null if the UE could not respond.
#[test]
fn a_missing_res_star_is_none_that_is_null() {
    let mut http = request(Operation::FiveGAkaConfirmation).to_http();
    http.body = "{}".into();
    let problem = refused(&http);
    assert_eq!(problem.details.cause, Some(Cause::MandatoryIeMissing));
    assert_eq!(problem.details.invalid_params[0].param, "resStar");
    http.body = r#"{"resStar":null}"#.into();
    assert!(Request::from_http(&root(), &http).is_ok());
}

/// TS 29.510 6.3.3.1, RFC 6749 5.2.
#[test]
fn an_access_token_request_that_is_no_form_gets_the_error_of_oauth_2() {
    let ask = |form: &str| {
        let mut http = request(Operation::AccessTokenRequest).to_http();
        http.body = form.to_owned().into();
        let problem = refused(&http);
        let answer = problem.to_http(Some(Operation::AccessTokenRequest));
        assert_eq!((answer.status, answer.content_type.as_deref()), (400, Some("application/json")));
        assert_eq!(answer.headers.get("cache-control"), Some("no-store"));
        serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap()
    };
    let id = "nfInstanceId=4ad8a1f0-5b0e-4b5c-9d1e-0123456789ab";
    let grant = "grant_type=client_credentials";
    for (form, description) in [
        ("scope=namf-comm".to_owned(), "grant_type is missing"),
        (format!("{grant}&{id}"), "scope is missing"),
        (format!("{grant}&{id}&scope=a&scope=b"), "scope is not of its form"),
        (format!("{grant}&{id}&scope=a&targetPlmn=%22%5C"), "targetPlmn is not of its form"),
        ("%".to_owned(), "not a form"),
    ] {
        let expected = serde_json::json!({"error": "invalid_request", "error_description": description});
        assert_eq!(ask(&form), expected, "{form}");
    }
    let other = format!("grant_type=password&{id}&scope=a");
    assert_eq!(ask(&other), serde_json::json!({"error": "unsupported_grant_type"}));
}

#[test]
fn referenced_multipart_parts_must_exist() {
    let mut http = request(Operation::UpdateSmContext).to_http();
    http.content_type = Some("application/json".into());
    http.body = r#"{"n1SmMsg":{"contentId":"n1"}}"#.into();
    assert_eq!(outcome(&http), (400, Some(Cause::MandatoryIeMissing)));
}

#[test]
fn a_deep_nest_is_refused_without_a_deep_stack() {
    let mut http = request(Operation::RegisterNfInstance).to_http();
    for open in ["[", "{\"x\":"] {
        http.body = format!("{{\"customInfo\":{}", open.repeat(1_000_000)).into();
        assert_eq!(outcome(&http), (400, Some(Cause::InvalidMsgFormat)));
    }
}

/// Truncated and modified requests are accepted or refused, and never panic.
#[test]
fn mutated_requests_never_panic() {
    for &operation in Operation::ALL {
        let good = request(operation).to_http();
        for mangled in mangled(&good.body) {
            let http = HttpRequest { body: mangled.into(), ..good.clone() };
            if let Err(problem) = Request::from_http(&root(), &http) {
                assert!((400..500).contains(&problem.status), "{operation:?}: {problem}");
            }
        }
        for mangled in mangled(good.query.as_bytes()).chain(mangled(good.path.as_bytes())) {
            let text = String::from_utf8_lossy(&mangled).into_owned();
            let _ = Request::from_http(&root(), &HttpRequest { path: text.clone(), ..good.clone() });
            let _ = Request::from_http(&root(), &HttpRequest { query: text, ..good.clone() });
        }
    }
}

#[test]
fn mangled_responses_do_not_panic() {
    for &operation in Operation::ALL {
        for &outcome in operation.info().outcomes {
            let good = response(outcome).to_http();
            for mangled in mangled(&good.body) {
                let mut http = good.clone();
                http.body = mangled.into();
                let _ = Response::from_http(operation, &root(), &http);
                http.status = 403;
                let problem = Response::from_http(operation, &root(), &http).expect_err("an error");
                assert_eq!(problem.status, 403);
            }
        }
    }
}

fn mangled(good: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let step = (good.len() / 97).max(1);
    let cuts = (0..good.len()).step_by(step).map(|at| good[..at].to_vec());
    let flips = (0..good.len()).step_by(step).flat_map(move |at| {
        [b'"', b'{', b'0', 0xff].into_iter().map(move |octet| {
            let mut flipped = good.to_vec();
            flipped[at] = octet;
            flipped
        })
    });
    cuts.chain(flips)
}
