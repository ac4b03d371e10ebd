//! Service request (TS 24.501 5.6.1), also in response to paging (5.6.2).
//!
//! ```text
//!  UE                         AMF
//!   |    SERVICE REQUEST ->    |   starts T3517; uplink data status, PDU session status
//!   | <- SERVICE ACCEPT        |   PDU session status, PDU session reactivation result
//!   | <- SERVICE REJECT        |   cause; after #9, #10 and #28 the UE registers again
//! ```

use super::{Connection, Event, Failure, PagedWith, State, Timer, Ue};
use pith_nas::GmmCause;
use pith_nas::gmm::{ServiceAccept, ServiceReject, ServiceRequest};
use pith_nas::ie::{MobileIdentity, PduSessionSet, RegistrationKind, ServiceType};
use pith_ngap::RrcEstablishmentCause;

impl Ue {
    /// Uplink user data is pending and the session has no user plane resources: in 5GMM-IDLE (TS 24.501 5.6.1.1 d), in
    /// 5GMM-CONNECTED (item e).
    pub(super) fn request_service_for_data(&mut self) {
        let lacks_user_plane = !self.sessions.without_user_plane().is_empty();
        match self.state {
            State::Registered => self.begin_service_request(ServiceType::Data),
            State::AwaitingServiceAccept if self.sessions.reactivating.is_none() => {
                self.sessions.data_is_pending = lacks_user_plane;
            }
            _ => {}
        }
    }

    /// The UE was paged with its 5G-S-TMSI (TS 24.501 5.6.2.2.1).
    pub(super) fn answer_paging(&mut self, with: PagedWith) {
        if self.state == State::Registered && self.connection == Connection::Idle {
            self.check_paging(with);
            self.begin_service_request(ServiceType::MobileTerminatedServices);
        }
    }

    /// Sends SERVICE REQUEST; without a 5G-GUTI or a security context the UE registers instead (TS 24.501 5.6.1.2.1).
    pub(super) fn begin_service_request(&mut self, service_type: ServiceType) {
        if service_type != ServiceType::MobileTerminatedServices && !self.has_service() {
            // TS 24.501 5.3.5.2.
            self.event(Event::ServiceFailed(Failure::RestrictedArea));
            return self.fail_waiting_sessions();
        }
        let Some(guti) = self.registration.guti.filter(|_| self.current_security_context.is_some()) else {
            return self.begin_registration(RegistrationKind::MobilityUpdating);
        };
        let s_tmsi = MobileIdentity::FiveGSTmsi(guti.s_tmsi());
        let wants_data = service_type == ServiceType::Data;
        let service_type = self.service_type(service_type);
        let mut request = ServiceRequest::new(self.ng_ksi(), service_type, s_tmsi);
        let without_user_plane = self.sessions.without_user_plane();
        let wants_user_plane = wants_data && !without_user_plane.is_empty();
        request.uplink_data_status = wants_user_plane.then_some(without_user_plane);
        let status = self.sessions.status();
        request.pdu_session_status = (!status.is_empty()).then_some(status);
        let cause = match service_type {
            ServiceType::Data => RrcEstablishmentCause::mo_Data,
            ServiceType::EmergencyServices => RrcEstablishmentCause::emergency,
            ServiceType::MobileTerminatedServices => RrcEstablishmentCause::mt_Access,
            _ => RrcEstablishmentCause::mo_Signalling,
        };
        self.sessions.reactivating = request.uplink_data_status;
        self.state = State::AwaitingServiceAccept;
        self.send_request(request, cause);
        self.timers.start(Timer::T3517, self.now + Timer::T3517.duration());
    }

    /// The service type of a request: a UE that is registered for emergency services, or needs an emergency session, requests these (TS 24.501
    /// 5.6.1.2.1).
    fn service_type(&self, service_type: ServiceType) -> ServiceType {
        let is_emergency = self.settings.service.is_emergency() || self.sessions.has_waiting_emergency();
        if is_emergency && service_type != ServiceType::MobileTerminatedServices {
            ServiceType::EmergencyServices
        } else {
            service_type
        }
    }

    /// SERVICE ACCEPT (TS 24.501 5.6.1.4.1).
    pub(super) fn receive_service_accept(&mut self, accept: &ServiceAccept) {
        if self.state != State::AwaitingServiceAccept {
            return self.report_unexpected_message("ServiceAccept");
        }
        let data_is_pending = self.sessions.data_is_pending;
        self.stop_service_request();
        let requested = self.sessions.reactivating.take();
        self.check_reactivation(requested, accept);
        self.synchronize_pdu_session_status(accept.pdu_session_status);
        self.event(Event::ServiceAccepted);
        for id in accept.reactivation_result.unwrap_or_default().iter() {
            self.event(Event::UserPlaneFailed(id));
        }
        self.resume_pending();
        // The answer to paging has no uplink data status (TS 24.501 5.6.1.2.1): the sessions may still have no user plane.
        if data_is_pending && !self.sessions.without_user_plane().is_empty() {
            self.request_service_for_data();
        }
    }

    /// Checks the PDU session reactivation result IE: it must be present if the request had an uplink data status IE, and
    /// may list only sessions of that IE.
    fn check_reactivation(&mut self, requested: Option<PduSessionSet>, accept: &ServiceAccept) {
        let clause = "TS 24.501 5.6.1.4.1";
        match (requested, accept.reactivation_result) {
            (Some(_), None) => self.violation(
                clause,
                "no PDU session reactivation result, although uplink data status was sent",
            ),
            (requested, Some(failed)) => {
                let requested = requested.unwrap_or(PduSessionSet::NONE);
                if let Some(id) = failed.iter().find(|id| !requested.contains(*id)) {
                    self.violation(
                        clause,
                        format!("reactivation result of session {id}, which was not requested"),
                    );
                }
            }
            (None, None) => {}
        }
    }

    /// SERVICE REJECT (TS 24.501 5.6.1.5).
    pub(super) fn receive_service_reject(&mut self, reject: &ServiceReject) {
        if self.state != State::AwaitingServiceAccept {
            return self.report_unexpected_message("ServiceReject");
        }
        self.stop_service_request();
        self.event(Event::ServiceFailed(reject.cause.into()));
        self.synchronize_pdu_session_status(reject.pdu_session_status);
        match reject.cause {
            GmmCause::IllegalUe | GmmCause::IllegalMe | GmmCause::FiveGsServicesNotAllowed => {
                self.usim_is_valid = false;
                self.deregister_locally();
            }
            GmmCause::UeIdentityCannotBeDerivedByTheNetwork | GmmCause::ImplicitlyDeregistered => {
                self.deregister_locally();
                self.register_when_idle = Some(self.first_kind());
            }
            GmmCause::RestrictedServiceArea => return self.register_for_service_area(),
            GmmCause::Congestion => {
                if let Some(back_off) = reject.t3346.and_then(pith_nas::ie::GprsTimer2::duration) {
                    self.timers.start(Timer::T3346, self.now + back_off);
                }
            }
            _ => {}
        }
        self.await_nas_connection_release();
    }

    fn stop_service_request(&mut self) {
        self.timers.stop(Timer::T3517);
        self.timers.stop(Timer::T3516);
        self.authentication.forget_challenge();
        self.initial = None;
        self.sessions.data_is_pending = false;
        self.state = State::Registered;
    }

    /// T3517 expired: the UE releases the NAS signalling connection locally (TS 24.501 5.6.1.7).
    pub(super) fn on_service_request_unanswered(&mut self) {
        self.stop_service_request();
        self.event(Event::ServiceFailed(Failure::NoAnswer));
        self.release_locally();
    }

    /// The lower layers lost the connection (TS 24.501 5.6.1.7).
    pub(super) fn on_connection_lost_in_service_request(&mut self) {
        self.stop_service_request();
        self.event(Event::ServiceFailed(Failure::ConnectionLost));
    }
}
