//! Errors in HTTP: `ProblemDetails`, or an operation-specific body that contains it.

use super::content::Content;
use super::{Body, HttpResponse, Parts, Visit, json, multipart_bodies};
use crate::Operation;
use crate::common::MediaType;
use crate::namf_communication::{N1N2MsgTxfrErrDetail, UeContextCreateErrorData};
use crate::nnrf_accesstoken::AccessTokenErr;
use crate::npcf_smpolicycontrol::ErrorReport;
use crate::nsmf_pdusession::{SmContextCreateErrorData, SmContextUpdateErrorData};
use crate::problem::{Challenge, Problem, ProblemDetails, ProblemMore};
use crate::uri::{ApiRoot, Uri};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

json::json_bodies! {
    PROBLEM: ProblemDetails;
    JSON: AccessTokenErr, N1N2MessageTransferError, ErrorReport;
}

/// Members of the body besides `error` (TS 29.502, TS 29.518).
#[derive(Clone, Serialize, Deserialize)]
struct DetailedError<T> {
    error: ProblemDetails,
    #[serde(flatten)]
    data: T,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct N1N2MessageTransferError {
    error: ProblemDetails,
    #[serde(skip_serializing_if = "Option::is_none")]
    err_info: Option<N1N2MsgTxfrErrDetail>,
}

macro_rules! sm_context_errors {
    ($($data:ty),+) => {
        $(impl Parts for DetailedError<$data> {
            fn visit(&mut self, visit: Visit<'_>) {
                if let Some(message) = &mut self.data.n1_sm_msg {
                    visit("n1SmMsg", MediaType::FiveGNas, message);
                }
                if let Some(information) = &mut self.data.n2_sm_info {
                    visit("n2SmInfo", MediaType::Ngap, information);
                }
            }
        }

        multipart_bodies!(@body DetailedError<$data>);)+
    };
}

sm_context_errors!(SmContextCreateErrorData, SmContextUpdateErrorData);

impl Parts for DetailedError<UeContextCreateErrorData> {
    fn visit(&mut self, visit: Visit<'_>) {
        if let Some(container) = &mut self.data.target_to_source_failure_data {
            visit("n2Information", MediaType::Ngap, &mut container.ngap_data);
        }
    }
}

multipart_bodies!(@body DetailedError<UeContextCreateErrorData>);

impl Problem {
    /// The error response; `operation` is `None` if the request could not be assigned to one.
    pub fn to_http(&self, operation: Option<Operation>) -> HttpResponse {
        let mut http = HttpResponse::new(self.status);
        match &self.more {
            Some(ProblemMore::Allow(methods)) => {
                let names: Vec<_> = methods.iter().map(|method| method.as_str()).collect();
                http.headers.push("allow", names.join(", "));
            }
            Some(ProblemMore::RetryAfter(seconds)) => {
                http.headers.push("retry-after", seconds.to_string());
            }
            Some(ProblemMore::Challenge(challenge)) => {
                http.headers.push("www-authenticate", challenge.header());
            }
            Some(ProblemMore::Redirect(location)) => {
                http.headers.push("location", location.to_string());
                return http;
            }
            Some(ProblemMore::AccessTokenErr(_)) => http.headers.forbid_storing(),
            _ => {}
        }
        http.content(self.content(operation));
        http
    }

    /// The body. Nsmf wraps all its errors, Namf only those with further data (TS 29.502, 29.518), and the SMF each 400 to a PCF's update (TS 29.512
    /// 4.2.3.2).
    fn content(&self, operation: Option<Operation>) -> Content {
        let error = self.details.clone();
        match (operation, &self.more) {
            (_, Some(ProblemMore::AccessTokenErr(error))) => error.encode(),
            (Some(Operation::PostSmContexts), more) => {
                let data = match more {
                    Some(ProblemMore::SmContextCreateError(data)) => (**data).clone(),
                    _ => SmContextCreateErrorData::default(),
                };
                DetailedError { error, data }.encode()
            }
            (Some(Operation::UpdateSmContext), more) => {
                let data = match more {
                    Some(ProblemMore::SmContextUpdateError(data)) => (**data).clone(),
                    _ => SmContextUpdateErrorData::default(),
                };
                DetailedError { error, data }.encode()
            }
            (Some(Operation::N1N2MessageTransfer), more) if matches!(self.status, 409 | 504) => {
                let err_info = match more {
                    Some(ProblemMore::N1N2MessageTransferError(detail)) => Some((**detail).clone()),
                    _ => None,
                };
                N1N2MessageTransferError { error, err_info }.encode()
            }
            (Some(Operation::CreateUeContext), Some(ProblemMore::UeContextCreateError(data))) => {
                DetailedError { error, data: (**data).clone() }.encode()
            }
            (Some(Operation::CreateUeContext), _) if self.status == 500 => {
                DetailedError { error, data: UeContextCreateErrorData::default() }.encode()
            }
            (Some(Operation::SmPolicyUpdateNotify), more) if self.status == 400 => {
                let report = match more {
                    Some(ProblemMore::SmPolicyUpdateNotifyError(report)) => (**report).clone(),
                    _ => ErrorReport::default(),
                };
                ErrorReport { error: Some(error), ..report }.encode()
            }
            _ => error.encode(),
        }
    }

    /// Parses an error response; if its body is unreadable, the error has only the status.
    pub(crate) fn from_http(operation: Operation, root: &Arc<ApiRoot>, http: &HttpResponse) -> Self {
        let bare = || (Self::of_status(http.status).details, None);
        let read = read_own(operation, http).or_else(|| Some((http.read().ok()?, None)));
        let (details, more) = read.unwrap_or_else(bare);
        let more = more.or_else(|| read_headers(root, http));
        Self { status: http.status, details, more }
    }
}

type Read = (ProblemDetails, Option<ProblemMore>);

/// Parses the operation-specific error body, if there is one.
fn read_own(operation: Operation, http: &HttpResponse) -> Option<Read> {
    match operation {
        Operation::PostSmContexts => {
            let DetailedError { error, data } = http.read().ok()?;
            let more = (data != SmContextCreateErrorData::default())
                .then(|| ProblemMore::SmContextCreateError(Box::new(data)));
            Some((error, more))
        }
        Operation::UpdateSmContext => {
            let DetailedError { error, data } = http.read().ok()?;
            let more = (data != SmContextUpdateErrorData::default())
                .then(|| ProblemMore::SmContextUpdateError(Box::new(data)));
            Some((error, more))
        }
        Operation::N1N2MessageTransfer => {
            let N1N2MessageTransferError { error, err_info } = http.read().ok()?;
            let more = err_info.map(|d| ProblemMore::N1N2MessageTransferError(Box::new(d)));
            Some((error, more))
        }
        Operation::CreateUeContext => {
            let DetailedError { error, data } = http.read().ok()?;
            let more = (data != UeContextCreateErrorData::default())
                .then(|| ProblemMore::UeContextCreateError(Box::new(data)));
            Some((error, more))
        }
        Operation::SmPolicyUpdateNotify => {
            let mut report: ErrorReport = http.read().ok()?;
            let error = report.error.take();
            let more = (report != ErrorReport::default())
                .then(|| ProblemMore::SmPolicyUpdateNotifyError(Box::new(report)));
            if error.is_none() && more.is_none() {
                // `ProblemDetails` as plain JSON.
                return None;
            }
            Some((error.unwrap_or_else(|| Problem::of_status(http.status).details), more))
        }
        Operation::AccessTokenRequest => {
            let error = http.read().ok()?;
            Some((
                Problem::of_status(http.status).details,
                Some(ProblemMore::AccessTokenErr(Box::new(error))),
            ))
        }
        _ => None,
    }
}

/// Error data from headers.
fn read_headers(root: &Arc<ApiRoot>, http: &HttpResponse) -> Option<ProblemMore> {
    match http.status {
        405 => {
            let names = http.headers.get("allow")?.split(',');
            let methods = names.filter_map(|name| super::Method::from_name(name.trim()));
            Some(ProblemMore::Allow(methods.collect()))
        }
        401 | 403 => Challenge::read(http.headers.get("www-authenticate")?).map(ProblemMore::Challenge),
        307 | 308 => {
            let location = Uri::resolve(root, http.headers.get("location")?).ok()?;
            Some(ProblemMore::Redirect(location))
        }
        429 | 503 => {
            let seconds = http.headers.get("retry-after")?.parse().ok()?;
            Some(ProblemMore::RetryAfter(seconds))
        }
        _ => None,
    }
}
