//! Service request (TS 24.501 5.6.1; TS 23.502 4.2.3.2): a UE in CM-IDLE reconnects, or a UE in
//! CM-CONNECTED requests user planes.
//!
//! | step | state | from |
//! |---|---|---|
//! | SERVICE REQUEST | [`super::activation`] | SMFs |
//! | SERVICE ACCEPT, with K_gNB and N2 information | | |
//!
//! If the UE's security context is outdated (`residency.rs`), it is authenticated first (TS 24.501 5.6.1.3):
//!
//! | step | state | from | timer |
//! |---|---|---|---|
//! | SERVICE REQUEST, recognised | [`super::authentication`] | AUSF, UE | T3560 |
//! | authenticated | [`super::security_mode`] | UE | T3560 |
//! | SECURITY MODE COMPLETE, with the complete SERVICE REQUEST | as above | | |
//!
//! The outdated context proves nothing: any message that the UE has ever sent with it may come again, from another sender. So a
//! failure leaves the UE as it was, registered and with its sessions, and what the first message requests is not done: that is in
//! SECURITY MODE COMPLETE.

use super::activation::{self, Activated, Purpose};
use super::registration::{Attempt, AuthenticationPurpose};
use super::{Procedure, Step, authentication, configuration_update, registration};
use crate::amf::context::{Env, UeContext};
use crate::amf::error::{RegistrationError, ServiceRequestError};
use crate::amf::n1::{self, NasOutcome, Silence};
use crate::amf::{delivery, n2, procedure, refusal};
use crate::kit::Level;
use crate::kit::document::pack_struct;
use pith_nas::gmm::{ServiceAccept, ServiceReject, ServiceRequest};
use pith_nas::ie::{GprsTimer2, MobileIdentity, NgKsi, ReactivationErrors, ServiceType};
use pith_nas::{GmmCause, GmmMessage, NasCount};
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
    if verified.is_none() {
        let error = match &request.s_tmsi {
            // Cause #9 would end a registration that continues elsewhere (TS 24.501 5.6.1.5).
            MobileIdentity::FiveGSTmsi(ue) if env.config.awaits_owner(ue.tmsi) => {
                ServiceRequestError::AwaitsOwner
            }
            _ => ServiceRequestError::UnknownUe,
        };
        return reject(ue, env, error);
    }
    if let Err(error) = check(ue, env).and_then(|()| check_area(ue, env, &request)) {
        return reject(ue, env, error);
    }
    let request = whole(ue, request, verified);
    match &ue.procedure {
        // A UE that is being deregistered gets no service (TS 24.501 5.5.2.3.5).
        Procedure::AwaitingDeregistrationAccept(_) => return NasOutcome::Silent(Silence::NotExpected),
        // SECURITY MODE COMMAND may have reached the UE, which uses the new keys then: its request is answered when it has confirmed them. An
        // authentication before that is aborted (5.4.2.7 c).
        state if state.is_registering() && state.purpose() == Some(AuthenticationPurpose::NewKeys) => {
            if matches!(state, Procedure::AwaitingSecurityModeComplete(_)) {
                ue.postpone(request);
                return NasOutcome::Silent(Silence::Postponed);
            }
        }
        // It answers for both requests.
        state if state.is_registering() => return NasOutcome::Silent(Silence::NotExpected),
        Procedure::AwaitingSessionActivation(_) if ue.repeats_service_request(&request) => {
            return NasOutcome::Silent(Silence::Duplicate);
        }
        _ => {}
    }
    let step = accept_request(ue, env, request);
    procedure::settle(ue, env, Ok(step))
}

/// Checks that the UE may have service (TS 24.501 5.6.1.5).
fn check(ue: &UeContext, env: &Env<'_>) -> Result<(), ServiceRequestError> {
    if !ue.is_registered() {
        return Err(ServiceRequestError::NotRegistered);
    }
    if env.is_in_served_area(ue) { Ok(()) } else { Err(ServiceRequestError::TrackingAreaNotServed) }
}

/// Outside its service area a UE answers paging, and requests emergency services only (TS 24.501 5.3.5.2, 5.6.1.5 #28; TS 23.501 5.16.4.3).
/// High priority access, which is exempt, is not served.
fn check_area(ue: &UeContext, env: &Env<'_>, request: &ServiceRequest) -> Result<(), ServiceRequestError> {
    let is_emergency =
        env.config.emergency.is_some() && request.service_type == ServiceType::EmergencyServices;
    match ue.location {
        _ if is_emergency => Ok(()),
        Some(location) if ue.is_forbidden_in(&location.tai) => Err(ServiceRequestError::ForbiddenArea),
        _ if ue.has_service() || request.service_type == ServiceType::MobileTerminatedServices => Ok(()),
        _ => Err(ServiceRequestError::RestrictedServiceArea),
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

/// Handles an initial SERVICE REQUEST that an outdated security context recognises: authenticates the UE (TS 24.501 5.6.1.3). The
/// AMF sends the challenge unprotected (4.4.4.2).
pub(crate) fn authenticate(ue: &mut UeContext, env: &mut Env<'_>) -> NasOutcome {
    if let Err(error) = check(ue, env) {
        return reject(ue, env, error);
    }
    let known = ue.supi.clone().zip(ue.guti).zip(ue.outdated.as_ref());
    let Some(((supi, guti), outdated)) = known else {
        return reject(ue, env, ServiceRequestError::UnknownUe);
    };
    let attempt = Attempt::of_registered(AuthenticationPurpose::ServiceRequest, outdated.ng_ksi, guti);
    procedure::abort(ue, env);
    let step = authentication::begin(ue, env, attempt, supi.into());
    procedure::settle(ue, env, Ok(step))
}

/// The UE has taken its new security context into use: its request is that of SECURITY MODE COMPLETE (TS 24.501 5.4.2.3, 4.4.6). A UE
/// that does not repeat it there requests signalling only.
pub(super) fn on_authenticated(ue: &mut UeContext, env: &mut Env<'_>, container: Option<Vec<u8>>) -> Step {
    let whole = container.and_then(|container| match GmmMessage::decode(&container) {
        Ok(GmmMessage::ServiceRequest(request)) => Some(*request),
        _ => None,
    });
    let request = whole.or_else(|| {
        let s_tmsi = MobileIdentity::FiveGSTmsi(ue.guti?.s_tmsi());
        let ng_ksi = NgKsi::Native(ue.security.as_ref()?.ng_ksi);
        Some(ServiceRequest::new(ng_ksi, ServiceType::Signalling, s_tmsi))
    });
    // The authentication may have found another subscriber, who is not registered in this context.
    let checked = check(ue, env).and_then(|()| request.ok_or(ServiceRequestError::UnknownUe));
    let checked = checked.and_then(|request| check_area(ue, env, &request).map(|()| request));
    match checked {
        Ok(request) => accept_request(ue, env, request),
        Err(error) => Step { next: Procedure::Idle, outcome: reject(ue, env, error) },
    }
}

/// The authentication failed. The UE stays registered, with its sessions and its outdated context: another sender may have repeated its
/// request.
pub(super) fn fail_authentication(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    error: &RegistrationError,
) -> NasOutcome {
    procedure::abort(ue, env);
    refusal::report(ue, env, "Service request", error);
    let cause = match error {
        RegistrationError::NoAnswer | RegistrationError::SecurityModeRejected(_) => None,
        // The UE keeps its registration, and tries again.
        RegistrationError::Congestion
        | RegistrationError::Problem { .. }
        | RegistrationError::WrongAnswer(_) => Some(GmmCause::Congestion),
        // It registers: that procedure has the answer for the UE.
        _ => Some(ServiceRequestError::UnknownUe.cause()),
    };
    if let Some(cause) = cause {
        let mut reject = ServiceReject::new(cause);
        if cause == GmmCause::Congestion {
            reject.t3346 = Some(GprsTimer2::at_least(env.config.congestion_backoff));
        }
        n1::send(ue, env, reject);
    }
    n2::release(ue, env, error.ngap_cause());
    cause.map_or(NasOutcome::Silent(Silence::Aborted), NasOutcome::Rejected)
}

/// Starts the procedure that answers the request.
fn accept_request(ue: &mut UeContext, env: &mut Env<'_>, request: ServiceRequest) -> Step {
    let is_paging_response = matches!(ue.procedure, Procedure::AwaitingPagingResponse(_))
        || request.service_type == ServiceType::MobileTerminatedServices;
    let update = configuration_update::take_unanswered(ue);
    procedure::abort(ue, env);
    if let Some(mut update) = update {
        // The UE may not have its new 5G-GUTI yet.
        update.resume(ue, env);
        ue.keep_update(update);
    } else if let MobileIdentity::FiveGSTmsi(s_tmsi) = &request.s_tmsi {
        registration::confirm_guti_in_use(ue, env, s_tmsi.tmsi);
    }
    if let Some(status) = request.pdu_session_status {
        activation::reconcile(ue, env, status);
    }
    let state = Request { has_uplink_data: request.uplink_data_status.is_some(), is_paging_response };
    let step = activation::begin(ue, env, request.uplink_data_status, Purpose::ServiceRequest(state));
    if matches!(step.next, Procedure::AwaitingSessionActivation(_)) {
        // A request that is answered at once has no repetition.
        ue.note_service_request(request);
    }
    step
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
    delivery::add_setup_items(ue, env, &mut sessions);
    let wants_context = ue.initial.wants_context;
    n2::deliver(ue, env, nas_pdu, sessions, wants_context);
    delivery::send_held_setups(ue, env);
    delivery::send_queued(ue, env);
    ue.log_outcome(env, Level::Info, "Service request", "ok");
    if let Some(update) = ue.take_update() {
        return Step::replied(Procedure::AwaitingConfigurationUpdateComplete(update), "ServiceAccept");
    }
    if request.is_paging_response {
        return configuration_update::renew_guti(ue, env);
    }
    let update = configuration_update::send_changes(ue, env);
    update.unwrap_or_else(|| Step::replied(Procedure::Idle, "ServiceAccept"))
}

/// SERVICE REJECT, and release of the connection. The registration state does not change. After #28 the UE registers over the connection
/// (TS 24.501 5.6.1.5).
fn reject(ue: &mut UeContext, env: &mut Env<'_>, error: ServiceRequestError) -> NasOutcome {
    ue.log_outcome(env, Level::Warn, "Service request", "rejected");
    let mut reject = ServiceReject::new(error.cause());
    if error.cause() == GmmCause::Congestion {
        reject.t3346 = Some(GprsTimer2::at_least(env.config.congestion_backoff));
    }
    n1::send(ue, env, reject);
    if error != ServiceRequestError::RestrictedServiceArea {
        n2::release(ue, env, Cause::Nas(CauseNas::normal_release));
    }
    NasOutcome::Rejected(error.cause())
}
