//! Service request (TS 24.501 5.6.1), also in response to paging (5.6.2).
//!
//! ```text
//!  UE                         AMF
//!   |    SERVICE REQUEST ->    |   T3517; uplink data status, PDU session status
//!   | <- SERVICE ACCEPT        |   PDU session status, reactivation result
//!   | <- SERVICE REJECT        |   #9, #10: register again
//! ```

use super::{Connection, Event, Failure, State, Timer, Ue};
use pith_nas::GmmCause;
use pith_nas::gmm::{ServiceAccept, ServiceReject, ServiceRequest};
use pith_nas::ie::{MobileIdentity, PduSessionSet, RegistrationKind, ServiceType};
use pith_ngap::RrcEstablishmentCause;

impl Ue {
    /// There is uplink data without radio bearers (TS 24.501 5.6.1.1 d).
    pub(super) fn request_service_for_data(&mut self) {
        if self.state == State::Registered {
            self.begin_service_request(ServiceType::Data);
        }
    }

    /// Paging with the UE's 5G-S-TMSI (TS 24.501 5.6.2.2.1).
    pub(super) fn answer_paging(&mut self) {
        if self.state == State::Registered && self.connection == Connection::Idle {
            self.begin_service_request(ServiceType::MobileTerminatedServices);
        }
    }

    /// Sends SERVICE REQUEST (TS 24.501 5.6.1.2.1).
    pub(super) fn begin_service_request(&mut self, service_type: ServiceType) {
        let Some(guti) = self.place.guti.filter(|_| self.current.is_some()) else {
            return self.begin_registration(RegistrationKind::MobilityUpdating);
        };
        let s_tmsi = MobileIdentity::FiveGSTmsi(guti.s_tmsi());
        let mut request = ServiceRequest::new(self.ng_ksi(), service_type, s_tmsi);
        let waiting = self.sessions.without_user_plane();
        let wants_user_plane = service_type == ServiceType::Data && !waiting.is_empty();
        request.uplink_data_status = wants_user_plane.then_some(waiting);
        let active = self.sessions.active_set();
        request.pdu_session_status = (!active.is_empty()).then_some(active);
        let cause = match service_type {
            ServiceType::Data => RrcEstablishmentCause::mo_Data,
            ServiceType::MobileTerminatedServices => RrcEstablishmentCause::mt_Access,
            _ => RrcEstablishmentCause::mo_Signalling,
        };
        self.sessions.reactivating = request.uplink_data_status;
        self.state = State::AwaitingServiceAccept;
        self.send_request(request, cause);
        self.timers.start(Timer::T3517, self.now + Timer::T3517.duration());
    }

    /// SERVICE ACCEPT (TS 24.501 5.6.1.4.1).
    pub(super) fn receive_service_accept(&mut self, accept: &ServiceAccept) {
        if self.state != State::AwaitingServiceAccept {
            return self.refuse("ServiceAccept");
        }
        self.end_service_request();
        let asked = self.sessions.reactivating.take();
        self.check_reactivation(asked, accept);
        self.align_sessions(accept.pdu_session_status);
        self.event(Event::ServiceAccepted);
        for id in accept.reactivation_result.unwrap_or_default().iter() {
            self.event(Event::UserPlaneFailed(id));
        }
        self.resume_pending();
    }

    /// Checks the PDU session reactivation result: it answers the uplink data status IE, and lists only
    /// requested sessions.
    fn check_reactivation(&mut self, asked: Option<PduSessionSet>, accept: &ServiceAccept) {
        let clause = "TS 24.501 5.6.1.4.1";
        match (asked, accept.reactivation_result) {
            (Some(_), None) => self.violation(
                clause,
                "no PDU session reactivation result, although uplink data status was sent",
            ),
            (asked, Some(failed)) => {
                let asked = asked.unwrap_or(PduSessionSet::NONE);
                if let Some(id) = failed.iter().find(|id| !asked.contains(*id)) {
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
            return self.refuse("ServiceReject");
        }
        self.end_service_request();
        self.event(Event::ServiceFailed(reject.cause.into()));
        self.align_sessions(reject.pdu_session_status);
        match reject.cause {
            GmmCause::IllegalUe | GmmCause::IllegalMe | GmmCause::FiveGsServicesNotAllowed => {
                self.usim_is_valid = false;
                self.deregister_locally();
            }
            GmmCause::UeIdentityCannotBeDerivedByTheNetwork | GmmCause::ImplicitlyDeregistered => {
                self.deregister_locally();
                self.register_when_idle = Some(RegistrationKind::Initial);
            }
            GmmCause::Congestion => {
                if let Some(back_off) = reject.t3346.and_then(pith_nas::ie::GprsTimer2::duration) {
                    self.timers.start(Timer::T3346, self.now + back_off);
                }
            }
            _ => {}
        }
        self.await_release();
    }

    fn end_service_request(&mut self) {
        self.timers.stop(Timer::T3517);
        self.timers.stop(Timer::T3516);
        self.authentication.forget_challenge();
        self.initial = None;
        self.state = State::Registered;
    }

    /// T3517 expired (TS 24.501 5.6.1.7 c).
    pub(super) fn on_service_request_unanswered(&mut self) {
        self.end_service_request();
        self.event(Event::ServiceFailed(Failure::NoAnswer));
        self.release_locally();
    }

    pub(super) fn on_connection_lost_in_service_request(&mut self) {
        self.end_service_request();
        self.event(Event::ServiceFailed(Failure::ConnectionLost));
    }
}
