//! De-registration (TS 24.501 5.5.2), by either side.
//!
//! ```text
//!  UE                                 AMF
//!   |    DEREGISTRATION REQUEST ->     |   T3521, unless switched off
//!   | <- DEREGISTRATION ACCEPT         |
//!
//!   | <- DEREGISTRATION REQUEST        |
//!   |    DEREGISTRATION ACCEPT ->      |   and a new registration, if the request says so
//! ```

use super::{Connection, Event, Failure, State, Timer, Ue};
use pith_nas::GmmCause;
use pith_nas::gmm::{
    DeregistrationAcceptUeTerminated, DeregistrationRequestUeOriginating, DeregistrationRequestUeTerminated,
};
use pith_nas::ie::{AccessType, DeregistrationType, MobileIdentity};
use pith_ngap::RrcEstablishmentCause;

/// Transmissions of the request before the UE deregisters locally (5.5.2.2.6 b).
const ATTEMPTS: u8 = 5;

impl Ue {
    /// The user deregisters (TS 24.501 5.5.2.2.1), after the procedure in progress has ended.
    pub(super) fn deregister_by_user(&mut self, switch_off: bool) {
        self.switch_off = switch_off;
        match self.state {
            State::Deregistered | State::AwaitingDeregistrationAccept => {}
            State::Registered => {
                self.wants_to_deregister = false;
                self.deregistration_attempts = 0;
                self.begin_deregistration();
            }
            State::AwaitingRegistrationAccept(_) | State::AwaitingServiceAccept => {
                self.wants_to_deregister = true;
            }
        }
    }

    fn begin_deregistration(&mut self) {
        let deregistration_type = DeregistrationType {
            switch_off: self.switch_off,
            re_registration_required: false,
            access: AccessType::ThreeGpp,
        };
        let identity = match self.registration.guti {
            Some(guti) => MobileIdentity::FiveGGuti(guti),
            None => MobileIdentity::Suci(self.suci()),
        };
        let request = DeregistrationRequestUeOriginating::new(deregistration_type, self.ng_ksi(), identity);
        self.deregistration_attempts += 1;
        self.timers.stop(Timer::T3512);
        self.state = State::AwaitingDeregistrationAccept;
        self.send_request(request, RrcEstablishmentCause::mo_Signalling);
        if self.switch_off {
            return self.end_deregistration();
        }
        self.timers.start(Timer::T3521, self.now + Timer::T3521.duration());
    }

    /// DEREGISTRATION ACCEPT (TS 24.501 5.5.2.2.2).
    pub(super) fn receive_deregistration_accept(&mut self) {
        if self.state != State::AwaitingDeregistrationAccept {
            return self.report_unexpected_message("DeregistrationAccept");
        }
        self.end_deregistration();
    }

    /// T3521 expired: retransmits, or deregisters locally (TS 24.501 5.5.2.2.6 b).
    pub(super) fn on_deregistration_unanswered(&mut self) {
        if self.deregistration_attempts < ATTEMPTS {
            return self.begin_deregistration();
        }
        self.event(Event::DeregistrationFailed(Failure::NoAnswer));
        self.end_deregistration();
        self.release_locally();
    }

    /// The connection was released before a valid DEREGISTRATION ACCEPT: the UE is deregistered
    /// nevertheless (TS 24.501 5.5.2.2.6 a).
    pub(super) fn on_connection_lost_in_deregistration(&mut self) {
        self.event(Event::DeregistrationFailed(Failure::ConnectionLost));
        self.end_deregistration();
    }

    /// The UE keeps its 5G-GUTI and security context for its next power-on (TS 24.501 5.5.2.1, Annex C).
    fn end_deregistration(&mut self) {
        let (registration, context) = (self.registration.clone(), self.current_security_context.take());
        self.deregister_locally();
        self.registration.guti = registration.guti;
        self.registration.last_visited = registration.last_visited;
        self.current_security_context = context;
        self.event(Event::Deregistered { by_network: false });
        self.await_nas_connection_release();
    }

    /// DEREGISTRATION REQUEST by the network (TS 24.501 5.5.2.3.2).
    pub(super) fn receive_deregistration_request(&mut self, request: &DeregistrationRequestUeTerminated) {
        let kind = request.deregistration_type;
        if !matches!(
            self.state,
            State::Registered | State::AwaitingServiceAccept | State::AwaitingDeregistrationAccept
        ) {
            return self.report_unexpected_message("DeregistrationRequestUeTerminated");
        }
        if !matches!(kind.access, AccessType::ThreeGpp | AccessType::Both) {
            self.violation("TS 24.501 9.11.3.20", format!("de-registration type {kind:?} over 3GPP access"));
        }
        self.send(&DeregistrationAcceptUeTerminated::new().into());
        let kept = self.current_security_context.take();
        let guti = self.registration.guti;
        self.deregister_locally();
        if kind.re_registration_required {
            self.register_when_idle = Some(self.first_kind());
        }
        match request.cause {
            Some(GmmCause::IllegalUe | GmmCause::IllegalMe | GmmCause::FiveGsServicesNotAllowed) => {
                self.usim_is_valid = false;
            }
            Some(_) => {}
            None => {
                self.registration.guti = guti;
                self.current_security_context = kept;
            }
        }
        self.event(Event::Deregistered { by_network: true });
        if self.connection != Connection::Idle {
            self.await_nas_connection_release();
        }
    }
}
