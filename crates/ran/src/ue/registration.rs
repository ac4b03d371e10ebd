//! Registration (TS 24.501 5.5.1): initial, mobility and periodic.
//!
//! ```text
//!  UE                              AMF
//!   |    REGISTRATION REQUEST ->    |   T3510
//!   |    … identification, authentication, security mode control …
//!   | <- REGISTRATION ACCEPT        |   5G-GUTI, TAI list, allowed NSSAI, T3512
//!   |    REGISTRATION COMPLETE ->   |   if the accept has an IE to acknowledge (`needs_complete`)
//!   | <- REGISTRATION REJECT        |   instead of the accept; T3511, T3502 or T3346 until the next attempt
//! ```

use super::identification::imei_of;
use super::{Connection, Event, Failure, RegistrationData, Service, SessionFailure, State, Timer, Ue};
use pith_nas::GmmCause;
use pith_nas::gmm::{RegistrationAccept, RegistrationComplete, RegistrationReject, RegistrationRequest};
use pith_nas::ie::{
    AccessType, GmmCapability, GprsTimer2, MappedSnssai, MobileIdentity, Nssai, PduSessionSet,
    RegistrationKind, RegistrationType,
};
use pith_ngap::RrcEstablishmentCause;
use pith_types::FiveGGuti;

/// Failed attempts after which the UE starts T3502 instead of T3511 (TS 24.501 5.5.1.2.7).
const ATTEMPTS: u8 = 5;

impl Ue {
    /// The user requests registration.
    pub(super) fn register_by_user(&mut self) {
        if !self.usim_is_valid {
            return self.event(Event::RegistrationFailed(Failure::InvalidUsim));
        }
        match self.state {
            // No attempt while T3346 runs; when it expires, the UE registers by itself.
            _ if self.timers.is_running(Timer::T3346) => {}
            State::Deregistered => {
                self.switch_off = false;
                self.begin_registration(self.first_kind());
            }
            State::Registered => self.begin_registration(RegistrationKind::MobilityUpdating),
            _ => {}
        }
    }

    /// The kind of a registration that is no update.
    pub(super) fn first_kind(&self) -> RegistrationKind {
        if self.settings.service.is_emergency() {
            RegistrationKind::Emergency
        } else {
            RegistrationKind::Initial
        }
    }

    /// Sends REGISTRATION REQUEST (TS 24.501 5.5.1.2.2, 5.5.1.3.2).
    pub(super) fn begin_registration(&mut self, kind: RegistrationKind) {
        self.timers.stop_all(&[Timer::T3502, Timer::T3511, Timer::T3512]);
        let request = self.registration_request(kind);
        // Also updates of a UE that is registered for emergency services (TS 24.501 table 4.5.6.1).
        let cause = if self.settings.service.is_emergency() {
            RrcEstablishmentCause::emergency
        } else {
            RrcEstablishmentCause::mo_Signalling
        };
        self.state = State::AwaitingRegistrationAccept(kind);
        self.send_request(request, cause);
        self.timers.start(Timer::T3510, self.now + Timer::T3510.duration());
    }

    fn registration_request(&mut self, kind: RegistrationKind) -> RegistrationRequest {
        let follow_on_request = self.settings.follow_on_request;
        let registration_type = RegistrationType { follow_on_request, kind };
        let identity = match self.registration.guti {
            Some(guti) => MobileIdentity::FiveGGuti(guti),
            None if self.settings.service == Service::EmergencyWithoutSim => imei_of(&self.imeisv),
            None => MobileIdentity::Suci(self.suci()),
        };
        let mut request = RegistrationRequest::new(registration_type, self.ng_ksi(), identity);
        request.ue_security_capability = Some(self.settings.security_capability);
        request.last_visited_registered_tai = self.registration.last_visited;
        if kind != RegistrationKind::PeriodicUpdating {
            request.gmm_capability = Some(GmmCapability(vec![0]));
            request.requested_nssai = self.requested_nssai();
        }
        self.request_reachability(&mut request, kind);
        if !begins_registration(kind) {
            request.pdu_session_status = Some(self.sessions.status());
        }
        request
    }

    fn requested_nssai(&self) -> Option<Nssai> {
        if self.settings.service.is_emergency() {
            return None;
        }
        let slices: Vec<_> = self.settings.requested_nssai.iter().copied().map(MappedSnssai::from).collect();
        (!slices.is_empty()).then_some(Nssai(slices))
    }

    /// T3512 expired. A UE that is registered for emergency services makes no update: it deregisters locally (TS 24.501 5.3.7).
    pub(super) fn begin_periodic_update(&mut self) {
        if self.state != State::Registered || self.connection != Connection::Idle {
            return;
        }
        if self.settings.service.is_emergency() {
            self.deregister_locally();
            return self.event(Event::Deregistered { by_network: false });
        }
        self.begin_registration(RegistrationKind::PeriodicUpdating);
    }

    /// REGISTRATION ACCEPT (TS 24.501 5.5.1.2.4, 5.5.1.3.4).
    pub(super) fn receive_registration_accept(&mut self, accept: RegistrationAccept) {
        let State::AwaitingRegistrationAccept(kind) = self.state else {
            return self.report_unexpected_message("RegistrationAccept");
        };
        self.timers.stop(Timer::T3510);
        self.authentication.forget_challenge();
        self.timers.stop(Timer::T3516);
        self.check_registration_accept(&accept, kind);
        self.registration_attempts = 0;
        self.initial = None;
        self.state = State::Registered;
        let must_acknowledge = needs_complete(&accept);
        self.store_registration_data(&accept, kind);
        self.synchronize_pdu_session_status(accept.pdu_session_status);
        if must_acknowledge {
            self.send(&RegistrationComplete::new().into());
        }
        self.event(Event::Registered(kind));
        self.resume_pending();
    }

    /// Reports a violation if the accept lacks something that the network must send, or contradicts the registration.
    fn check_registration_accept(&mut self, accept: &RegistrationAccept, kind: RegistrationKind) {
        let clause = "TS 24.501 5.5.1.2.4";
        let registered_over = accept.result.access;
        if !matches!(registered_over, AccessType::ThreeGpp | AccessType::Both) {
            self.violation("TS 24.501 9.11.3.6", format!("registered over {registered_over:?}"));
        }
        match &accept.guti {
            Some(MobileIdentity::FiveGGuti(guti)) => self.check_guti(guti),
            Some(other) => {
                let text = format!("5G-GUTI IE holds {:?}", other.identity_type());
                self.violation("TS 24.501 8.2.7.1", text);
            }
            None if kind == RegistrationKind::PeriodicUpdating => {}
            None => self.violation("TS 33.501 6.12.3", format!("no new 5G-GUTI in registration {kind:?}")),
        }
        match &accept.tai_list {
            Some(list) if !list.contains(&self.tai) => {
                self.violation(
                    clause,
                    format!("the registration area does not contain the UE's {:?}", self.tai),
                );
            }
            None if begins_registration(kind) && !has_whole_network(accept) => {
                self.violation(clause, "no TAI list")
            }
            _ => {}
        }
        self.check_reachability(accept, kind);
        let is_emergency = self.settings.service.is_emergency();
        // An AMF that has lost the registration does not know that an update is of an emergency registered UE (TS 24.501 5.5.1.3.4).
        let may_be_normal = is_emergency && !begins_registration(kind);
        if accept.result.emergency_registered != is_emergency && !may_be_normal {
            let text = format!("emergency registered: {}", accept.result.emergency_registered);
            self.violation("TS 24.501 9.11.3.6", text);
        }
        if let Some(list) = &accept.service_area_list {
            self.check_service_area_list(list);
        }
        let allowed = accept.allowed_nssai.as_ref().map_or(0, |nssai| nssai.0.len());
        match allowed {
            0 if kind == RegistrationKind::Initial && !accept.result.nssaa_to_be_performed => {
                self.violation(clause, "no allowed NSSAI");
            }
            9.. => self.violation("TS 24.501 9.11.3.37", format!("{allowed} slices in the allowed NSSAI")),
            _ => {}
        }
    }

    pub(super) fn check_guti(&mut self, guti: &FiveGGuti) {
        if guti.guami.plmn_id != self.settings.plmn {
            self.violation("TS 23.003 2.10.1", format!("5G-GUTI of {:?}", guti.guami.plmn_id));
        }
        if self.registration.guti == Some(*guti) {
            self.violation("TS 33.501 6.12.3", "the new 5G-GUTI is the old one");
        }
    }

    fn store_registration_data(&mut self, accept: &RegistrationAccept, kind: RegistrationKind) {
        if let Some(MobileIdentity::FiveGGuti(guti)) = accept.guti {
            self.registration.guti = Some(guti);
        }
        self.registration.store_reachability(accept, kind);
        if accept.tai_list.is_some() || has_whole_network(accept) {
            self.registration.tai_list.clone_from(&accept.tai_list);
        }
        // Without a list, service is allowed in the whole registration area (5.3.5.2).
        self.registration.service_area.clone_from(&accept.service_area_list);
        if let Some(allowed) = &accept.allowed_nssai {
            self.registration.allowed_nssai = allowed.0.iter().map(|slice| slice.snssai).collect();
        }
        let default = begins_registration(kind).then(|| Timer::T3512.duration());
        self.registration.periodic_update = match accept.t3512 {
            Some(timer) => timer.duration(),
            None => default.or(self.registration.periodic_update),
        };
        // TS 24.501 5.5.1.2.4: without the IE the default value applies.
        self.t3502 = accept.t3502.and_then(pith_nas::ie::GprsTimer2::duration);
        self.registration.last_visited = Some(self.tai);
    }

    /// Starts what was deferred until the end of the registration or service request.
    pub(super) fn resume_pending(&mut self) {
        if self.wants_to_deregister {
            self.deregister_by_user(self.switch_off);
        } else {
            self.establish_waiting_sessions();
        }
    }

    /// Deletes sessions that the network does not have (TS 24.501 5.5.1.3.4, 5.6.1.4).
    pub(super) fn synchronize_pdu_session_status(&mut self, status: Option<PduSessionSet>) {
        let Some(status) = status else { return };
        for id in self.sessions.retain_only(status) {
            self.event(Event::SessionReleased(id));
        }
    }

    /// REGISTRATION REJECT (TS 24.501 5.5.1.2.5, 5.5.1.3.5).
    pub(super) fn receive_registration_reject(&mut self, reject: &RegistrationReject) {
        let State::AwaitingRegistrationAccept(_) = self.state else {
            return self.report_unexpected_message("RegistrationReject");
        };
        self.timers.stop(Timer::T3510);
        self.event(Event::RegistrationFailed(reject.cause.into()));
        match reject.cause {
            GmmCause::IllegalUe | GmmCause::IllegalMe | GmmCause::FiveGsServicesNotAllowed => {
                self.usim_is_valid = false;
                self.deregister_locally();
            }
            GmmCause::UeIdentityCannotBeDerivedByTheNetwork | GmmCause::ImplicitlyDeregistered => {
                self.deregister_locally();
                self.register_when_idle = Some(self.first_kind());
            }
            GmmCause::Congestion => self.back_off(reject.t3346),
            GmmCause::PlmnNotAllowed
            | GmmCause::TrackingAreaNotAllowed
            | GmmCause::RoamingNotAllowedInThisTrackingArea
            | GmmCause::NoSuitableCellsInTrackingArea
            | GmmCause::N1ModeNotAllowed
            | GmmCause::NoNetworkSlicesAvailable => self.deregister_locally(),
            _ => self.note_failed_attempt(),
        }
        self.await_nas_connection_release();
    }

    /// Cause #22 (congestion): starts T3346, during which the UE makes no attempt (TS 24.501 5.5.1.2.5).
    fn back_off(&mut self, t3346: Option<GprsTimer2>) {
        match t3346.and_then(GprsTimer2::duration).filter(|back_off| !back_off.is_zero()) {
            Some(back_off) => {
                self.leave_registration();
                self.timers.start(Timer::T3346, self.now + back_off);
            }
            None => self.note_failed_attempt(),
        }
    }

    /// T3510 expired (TS 24.501 5.5.1.2.7 c).
    pub(super) fn on_registration_unanswered(&mut self) {
        self.event(Event::RegistrationFailed(Failure::NoAnswer));
        self.note_failed_attempt();
        self.release_locally();
    }

    /// The connection was released before an answer (TS 24.501 5.5.1.2.7 b).
    pub(super) fn on_connection_lost_in_registration(&mut self) {
        self.event(Event::RegistrationFailed(Failure::ConnectionLost));
        self.note_failed_attempt();
    }

    /// Starts T3511 until the next attempt. After the fifth failed attempt it starts T3502 instead, and deletes 5G-GUTI, TAI
    /// list and ngKSI (TS 24.501 5.5.1.2.7).
    fn note_failed_attempt(&mut self) {
        self.registration_attempts = self.registration_attempts.saturating_add(1);
        self.leave_registration();
        if self.registration_attempts < ATTEMPTS {
            return self.timers.start(Timer::T3511, self.now + Timer::T3511.duration());
        }
        self.deregister_locally();
        let period = self.t3502.unwrap_or_else(|| Timer::T3502.duration());
        self.timers.start(Timer::T3502, self.now + period);
    }

    fn leave_registration(&mut self) {
        self.timers.stop(Timer::T3510);
        self.initial = None;
        self.state = match self.state {
            State::AwaitingRegistrationAccept(kind) if begins_registration(kind) => State::Deregistered,
            State::AwaitingRegistrationAccept(_) => State::Registered,
            other => other,
        };
    }

    /// T3502 expired: resets the attempt counter (TS 24.501 5.5.1.2.7).
    pub(super) fn retry_with_reset_counter(&mut self) {
        self.registration_attempts = 0;
        self.retry_registration();
    }

    /// T3511, T3502 or T3346 expired: makes another attempt, on a new connection.
    pub(super) fn retry_registration(&mut self) {
        self.release_locally();
        match self.state {
            State::Deregistered if self.usim_is_valid => self.begin_registration(self.first_kind()),
            State::Registered => self.begin_registration(RegistrationKind::MobilityUpdating),
            _ => {}
        }
    }

    /// Enters 5GMM-DEREGISTERED without signalling, and deletes 5G-GUTI, TAI list and ngKSI.
    pub(super) fn deregister_locally(&mut self) {
        self.timers.stop_all(&[Timer::T3510, Timer::T3511, Timer::T3512, Timer::T3517, Timer::T3521]);
        self.state = State::Deregistered;
        self.registration = RegistrationData::default();
        self.current_security_context = None;
        self.initial = None;
        self.wants_to_deregister = false;
        let (active, wanted) = self.sessions.clear();
        active.into_iter().for_each(|id| self.event(Event::SessionReleased(id)));
        wanted.into_iter().for_each(|id| self.event(Event::SessionFailed(id, SessionFailure::NotPossible)));
    }

    /// Starts T3540, within which the network must release the NAS signalling connection (TS 24.501 5.3.1.3).
    pub(super) fn await_nas_connection_release(&mut self) {
        if self.connection != Connection::Idle {
            self.timers.start(Timer::T3540, self.now + Timer::T3540.duration());
        }
    }
}

/// Whether a registration of that kind is no update.
fn begins_registration(kind: RegistrationKind) -> bool {
    matches!(kind, RegistrationKind::Initial | RegistrationKind::Emergency)
}

/// Whether the registration area is the whole network, in MICO mode (TS 24.501 5.5.1.2.4).
fn has_whole_network(accept: &RegistrationAccept) -> bool {
    accept.mico_indication.is_some_and(|mico| mico.all_plmn_area)
}

/// Whether REGISTRATION COMPLETE must acknowledge the accept (TS 24.501 5.5.1.2.4).
fn needs_complete(accept: &RegistrationAccept) -> bool {
    accept.guti.is_some()
        || accept.configured_nssai.is_some()
        || accept.network_slicing_indication.is_some()
        || accept.operator_defined_access_categories.is_some()
        || accept.sor_transparent_container.is_some()
        || accept.cag_information_list.is_some()
        || accept.ue_radio_capability_id.is_some()
}
