//! Service request (TS 24.501 5.6.1; TS 23.502 4.2.3.2): a UE in CM-IDLE reconnects, or a UE in
//! CM-CONNECTED requests user planes.
//!
//! | step | state | from |
//! |---|---|---|
//! | SERVICE REQUEST | [`super::activation`] | SMFs |
//! | SERVICE ACCEPT, with K_gNB and N2 information | | |

use super::activation::{self, Activated, Purpose};
use super::{Procedure, Step, configuration_update, registration};
use crate::amf::context::{Env, UeContext};
use crate::amf::error::ServiceRequestError;
use crate::amf::n1::{self, NasOutcome, Silence};
use crate::amf::{delivery, n2, procedure};
use crate::kit::Level;
use crate::kit::document::pack_struct;
use pith_nas::gmm::{ServiceAccept, ServiceReject, ServiceRequest};
use pith_nas::ie::{MobileIdentity, ReactivationErrors, ServiceType};
use pith_nas::{GmmMessage, NasCount};
use pith_ngap::{Cause, CauseNas};

/// A service request in progress.
#[derive(Debug)]
pub(crate) struct Request {
    has_uplink_data: bool,
    is_paging_response: bool,
}

pack_struct!(Request { has_uplink_data, is_paging_response });

/// Handles a SERVICE REQUEST; `verified` is its COUNT if it passed the integrity check.
pub(crate) fn begin(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    request: ServiceRequest,
    verified: Option<NasCount>,
) -> NasOutcome {
    if let Err(error) = check(ue, env, verified) {
        return reject(ue, env, error);
    }
    // A registration in progress answers for both requests. A UE that is being deregistered gets no
    // service (TS 24.501 5.5.2.3.5).
    let is_leaving = matches!(ue.procedure, Procedure::AwaitingDeregistrationAccept(_));
    if ue.procedure.is_registering() || is_leaving {
        NasOutcome::Silent(Silence::NotExpected)
    } else {
        accept_request(ue, env, whole(ue, request, verified))
    }
}

/// Checks that the UE may have service (TS 24.501 5.6.1.5).
fn check(ue: &UeContext, env: &Env<'_>, verified: Option<NasCount>) -> Result<(), ServiceRequestError> {
    if verified.is_none() {
        return Err(ServiceRequestError::UnknownUe);
    }
    if !ue.is_registered() {
        return Err(ServiceRequestError::NotRegistered);
    }
    match ue.location {
        Some(location) if env.config.tais.contains(&location.tai) => Ok(()),
        _ => Err(ServiceRequestError::TrackingAreaNotServed),
    }
}

/// The complete request from the NAS message container, if there is one (TS 24.501 4.4.6).
fn whole(ue: &UeContext, mut request: ServiceRequest, verified: Option<NasCount>) -> ServiceRequest {
    let container = request.nas_message_container.take();
    let Some(((mut container, count), context)) = container.zip(verified).zip(ue.security.as_ref()) else {
        return request;
    };
    context.nas.decipher_container(count, &mut container);
    match GmmMessage::decode(&container) {
        Ok(GmmMessage::ServiceRequest(whole)) => *whole,
        _ => request,
    }
}

fn accept_request(ue: &mut UeContext, env: &mut Env<'_>, request: ServiceRequest) -> NasOutcome {
    let is_paging_response = matches!(ue.procedure, Procedure::AwaitingPagingResponse(_))
        || request.service_type == ServiceType::MobileTerminatedServices;
    procedure::abort(ue, env);
    if let MobileIdentity::FiveGSTmsi(s_tmsi) = &request.s_tmsi {
        registration::confirm_guti_in_use(ue, env, s_tmsi.tmsi);
    }
    if let Some(status) = request.pdu_session_status {
        activation::reconcile(ue, env, status);
    }
    let state = Request { has_uplink_data: request.uplink_data_status.is_some(), is_paging_response };
    let step = activation::begin(ue, env, request.uplink_data_status, Purpose::ServiceRequest(state));
    procedure::settle(ue, env, Ok(step))
}

/// SERVICE ACCEPT, with the N2 information of the sessions in the same message (TS 24.501 5.6.1.4). It always
/// includes the PDU session status: the network may have released sessions while the UE was in CM-IDLE.
pub(crate) fn accept(ue: &mut UeContext, env: &mut Env<'_>, request: Request, activated: Activated) -> Step {
    let mut accept = ServiceAccept::new();
    accept.pdu_session_status = Some(ue.sessions.iter().map(|session| session.id).collect());
    if request.has_uplink_data {
        accept.reactivation_result = Some(activated.failed());
        if !activated.errors.is_empty() {
            accept.reactivation_result_error_cause = Some(ReactivationErrors(activated.errors));
        }
    }
    let nas_pdu = n1::seal(ue, &GmmMessage::from(accept).encode());
    let mut sessions = activated.sessions;
    delivery::add_setup_items(ue, &mut sessions);
    let wants_context = ue.initial.wants_context;
    n2::deliver(ue, env, nas_pdu, sessions, wants_context);
    delivery::send_queued(ue, env);
    ue.log_outcome(env, Level::Info, "Service request", "ok");
    if request.is_paging_response {
        configuration_update::renew_guti(ue, env)
    } else {
        Step::replied(Procedure::Idle, "ServiceAccept")
    }
}

/// SERVICE REJECT, and release of the connection. The registration state does not change.
fn reject(ue: &mut UeContext, env: &mut Env<'_>, error: ServiceRequestError) -> NasOutcome {
    ue.log_outcome(env, Level::Warn, "Service request", "rejected");
    n1::send(ue, env, ServiceReject::new(error.cause()));
    n2::release(ue, env, Cause::Nas(CauseNas::normal_release));
    NasOutcome::Rejected(error.cause())
}
