//! UE-requested PDU session establishment (TS 24.501 6.4.1).
//!
//! ```text
//!  UE                                         SMF
//!   |    PDU SESSION ESTABLISHMENT REQUEST ->  |   T3580
//!   | <- PDU SESSION ESTABLISHMENT ACCEPT      |   address, QoS rules, session-AMBR
//!   | <- PDU SESSION ESTABLISHMENT REJECT      |   instead
//! ```

use super::qos::Qos;
use super::{DerivedRules, Procedure, SSC_MODE, Session, SessionRequest};
use crate::ue::{Connection, Event, SessionFailure, State, Ue};
use pith_nas::GsmMessage;
use pith_nas::gsm::{
    PduSessionEstablishmentAccept, PduSessionEstablishmentReject, PduSessionEstablishmentRequest,
};
use pith_nas::ie::{
    GsmCapability, IntegrityProtectionMaximumDataRate, PcoRequest, PduSessionType, ServiceType, UplinkPco,
};

/// RqoS in the first octet of 5GSM capability (TS 24.501 9.11.4.1).
const REFLECTIVE_QOS: u8 = 1;

/// The options that a UE requests in a session with IPv6, in addition to IPv4's defaults (TS 24.008 10.5.6.3).
fn requested_options(session_type: PduSessionType) -> Option<UplinkPco> {
    let has_ipv6 = matches!(session_type, PduSessionType::Ipv6 | PduSessionType::Ipv4v6);
    has_ipv6.then(|| UplinkPco(vec![PcoRequest::DnsServerIpv6]))
}

impl Ue {
    /// The user requests a session: sent at once, or when the UE is registered and connected.
    pub(in crate::ue) fn establish_session(&mut self, request: SessionRequest) {
        let possible = (1..=15).contains(&request.id)
            && !self.sessions.is_known(request.id)
            && self.state != State::Deregistered
            && self.state != State::AwaitingDeregistrationAccept;
        if !possible {
            return self.event(Event::SessionFailed(request.id, SessionFailure::NotPossible));
        }
        self.sessions.waiting.push(request);
        if self.state == State::Registered {
            self.establish_waiting_sessions();
        }
    }

    /// Sends deferred and unanswered requests; in 5GMM-IDLE a service request must precede them (TS 24.501 5.6.1.1 c).
    pub(in crate::ue) fn establish_waiting_sessions(&mut self) {
        if !self.has_service() {
            self.fail_waiting_sessions();
        }
        match self.connection {
            _ if self.sessions.waiting.is_empty() && !self.sessions.has_due() => {}
            Connection::Idle => self.begin_service_request(ServiceType::Signalling),
            Connection::Unsecured => {}
            Connection::Secured => {
                self.transmit_due();
                for request in std::mem::take(&mut self.sessions.waiting) {
                    self.begin_establishment(request);
                }
            }
        }
    }

    /// Outside its service area the UE establishes no session (TS 24.501 5.3.5.2).
    pub(in crate::ue) fn fail_waiting_sessions(&mut self) {
        for request in std::mem::take(&mut self.sessions.waiting) {
            self.event(Event::SessionFailed(request.id, SessionFailure::NotPossible));
        }
    }

    fn begin_establishment(&mut self, request: SessionRequest) {
        let allowed = &self.registration.allowed_nssai;
        if request.snssai.is_some_and(|slice| !allowed.contains(&slice)) {
            return self.event(Event::SessionFailed(request.id, SessionFailure::NotPossible));
        }
        self.begin_transaction(request.id, Procedure::Establishment(request));
    }

    /// Sends PDU SESSION ESTABLISHMENT REQUEST (TS 24.501 6.4.1.2).
    pub(super) fn send_establishment_request(&mut self, pti: u8, request: &SessionRequest) {
        let mut message = PduSessionEstablishmentRequest::new(IntegrityProtectionMaximumDataRate::FULL);
        message.pdu_session_type = Some(request.session_type);
        message.ssc_mode = Some(SSC_MODE);
        message.gsm_capability = request.reflective_qos.then(|| GsmCapability(vec![REFLECTIVE_QOS]));
        message.extended_pco = requested_options(request.session_type);
        let message = GsmMessage::new(request.id, pti, message);
        self.send_gsm_request(&message, request);
    }

    /// PDU SESSION ESTABLISHMENT ACCEPT (TS 24.501 6.4.1.3).
    pub(super) fn receive_establishment_accept(
        &mut self,
        id: u8,
        pti: u8,
        accept: PduSessionEstablishmentAccept,
    ) {
        let transaction = self.sessions.take(id, pti, |p| matches!(p, Procedure::Establishment(_)));
        let Some(Procedure::Establishment(request)) = transaction.map(|transaction| transaction.procedure)
        else {
            return self.refuse_pti(id, pti, "PduSessionEstablishmentAccept");
        };
        match self.check_establishment_accept(&request, &accept) {
            Some(flows) => self.take_session(&request, flows, accept),
            // An unusable session is released (6.4.1.3).
            None => {
                self.event(Event::SessionFailed(id, SessionFailure::NotUsable));
                self.begin_transaction(id, Procedure::Release);
            }
        }
    }

    fn take_session(
        &mut self,
        &SessionRequest { id, reflective_qos, is_emergency, .. }: &SessionRequest,
        (default_qfi, qos): (u8, Qos),
        accept: PduSessionEstablishmentAccept,
    ) {
        self.sessions.active.push(Session {
            id,
            session_type: accept.pdu_session_type,
            ipv4: accept.pdu_address.and_then(|address| address.ipv4),
            interface_id: accept.pdu_address.and_then(|address| address.interface_id),
            ipv6: None,
            delegated: None,
            ambr: accept.session_ambr,
            default_qfi,
            qos,
            reflective_qos,
            rq_timer: accept.rq_timer,
            derived: DerivedRules::default(),
            dnn: accept.dnn,
            user_plane: self.sessions.bearers.contains(&id),
            is_emergency,
        });
        if is_emergency {
            self.leave_mico_mode();
        }
        self.event(Event::SessionEstablished(id));
    }

    /// PDU SESSION ESTABLISHMENT REJECT (TS 24.501 6.4.1.4).
    pub(super) fn receive_establishment_reject(
        &mut self,
        id: u8,
        pti: u8,
        reject: &PduSessionEstablishmentReject,
    ) {
        if self.sessions.take(id, pti, |p| matches!(p, Procedure::Establishment(_))).is_none() {
            return self.refuse_pti(id, pti, "PduSessionEstablishmentReject");
        }
        self.event(Event::SessionFailed(id, reject.cause.into()));
    }
}
