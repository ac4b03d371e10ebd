//! Errors with data beyond `ProblemDetails`, and one without, each with an operation that may return it.

use super::{read, uri, with};
use bytes::Bytes;
use pith_sbi::namf_communication::{N1N2MsgTxfrErrDetail, UeContextCreateErrorData};
use pith_sbi::nnrf_accesstoken::{AccessTokenErrorCode, refused};
use pith_sbi::npcf_smpolicycontrol::ErrorReport;
use pith_sbi::nsmf_pdusession::{SmContextCreateErrorData, SmContextUpdateErrorData};
use pith_sbi::{Cause, Method, Operation, Problem, ProblemMore};
use serde_json::json;

/// Operations with errors that they may return.
pub fn problems() -> Vec<(Operation, Problem)> {
    let retry: N1N2MsgTxfrErrDetail = read(json!({"retryAfter": 5, "maxWaitingTime": 60}));
    let retry = ProblemMore::N1N2MessageTransferError(Box::new(retry));
    let asleep = Problem::new(Cause::UeNotReachable);
    let busy = Problem::new(Cause::TemporaryRejectRegistrationOngoing);
    let wrong = Problem::mandatory_ie_incorrect("/nssai/0", "no such slice").detail("try again");
    let elsewhere = ProblemMore::Redirect(uri("/nudm-sdm/v2/imsi-1/am-data"));
    let methods = ProblemMore::Allow(vec![Method::Get, Method::Patch]);
    vec![
        (Operation::PostSmContexts, create_error()),
        (Operation::PostSmContexts, Problem::context_not_found()),
        (Operation::UpdateSmContext, update_error()),
        (Operation::UpdateSmContext, Problem::system_failure("no memory")),
        (Operation::ReleaseSmContext, Problem::context_not_found()),
        (Operation::N1N2MessageTransfer, busy.with(retry)),
        (Operation::N1N2MessageTransfer, asleep),
        (Operation::N1N2MessageTransfer, Problem::context_not_found()),
        (Operation::CreateUeContext, handover_failure()),
        (Operation::CreateUeContext, Problem::system_failure("no memory")),
        (Operation::SmPolicyUpdateNotify, rule_errors()),
        (Operation::SmPolicyUpdateNotify, Problem::mandatory_ie_missing("body")),
        (Operation::SmPolicyUpdateNotify, Problem::context_not_found()),
        (Operation::AccessTokenRequest, *refused(AccessTokenErrorCode::InvalidScope)),
        (Operation::GenerateAuthData, Problem::user_not_found()),
        (Operation::GetAmData, Problem::of_status(307).with(elsewhere)),
        (Operation::RegisterNfInstance, Problem::congestion(30)),
        (Operation::GetNfInstance, Problem::of_status(405).with(methods)),
        (Operation::NsSelectionGet, wrong),
    ]
}

fn create_error() -> Problem {
    let data: SmContextCreateErrorData = read(json!({"recoveryTime": "2026-01-31T00:00:00Z"}));
    let data = with(data, |data| {
        data.n1_sm_msg = Some(Bytes::from_static(b"\x2e\x01\x01\xc3\x1b").into());
    });
    Problem::new(Cause::DnnDenied).with(ProblemMore::SmContextCreateError(Box::new(data)))
}

fn handover_failure() -> Problem {
    let json = json!({"ngapCause": {"group": 0, "value": 7},
        "targetToSourceFailureData": {"ngapIeType": "TAR_TO_SRC_FAIL_CONTAINER",
            "ngapData": {"contentId": "n2Information"}}});
    let data = with(read(json), |data: &mut UeContextCreateErrorData| {
        let container = data.target_to_source_failure_data.as_mut().expect("one");
        container.ngap_data = Bytes::from_static(&[0, 1]).into();
    });
    Problem::new(Cause::HandoverFailure).with(ProblemMore::UeContextCreateError(Box::new(data)))
}

fn rule_errors() -> Problem {
    let report: ErrorReport = read(json!({
        "ruleReports": [{"pccRuleIds": ["voice"], "ruleStatus": "INACTIVE", "failureCode": "UNSUCC_QOS_VAL"}],
        "sessRuleReports": [
            {"ruleIds": ["r"], "ruleStatus": "ACTIVE", "sessRuleFailureCode": "UNSUCC_QOS_VAL"}],
        "polDecFailureReports": ["QOS_DECS_ERR"],
        "invalidPolicyDecs": [{"param": "/qosDecs/voice"}]}));
    Problem::new(Cause::RulePermanentError).with(ProblemMore::SmPolicyUpdateNotifyError(Box::new(report)))
}

fn update_error() -> Problem {
    let json = json!({"n2SmInfoType": "PDU_RES_SETUP_FAIL", "upCnxState": "DEACTIVATED"});
    let data = with(read(json), |data: &mut SmContextUpdateErrorData| {
        data.n2_sm_info = Some(Bytes::from_static(&[0, 1]).into());
        data.n1_sm_msg = Some(Bytes::from_static(&[0x2e]).into());
    });
    Problem::new(Cause::N2SmError).with(ProblemMore::SmContextUpdateError(Box::new(data)))
}
