//! Network-requested PDU session modification (TS 24.501 6.3.2), and the UE's revocation of reflective QoS (6.4.2).
//!
//! ```text
//!  UE                                         SMF
//!   |    PDU SESSION MODIFICATION REQUEST ->   |   T3581; if the UE revokes its support of reflective QoS
//!   | <- PDU SESSION MODIFICATION COMMAND      |   session-AMBR, RQ timer, QoS rules and flows
//!   |    PDU SESSION MODIFICATION COMPLETE ->  |
//!   |    PDU SESSION MODIFICATION COMMAND REJECT -> |   instead, after an error in rules or flows
//! ```

use super::{DerivedRules, Procedure};
use crate::ue::{State, Ue};
use pith_nas::gsm::{
    PduSessionModificationCommand, PduSessionModificationCommandReject, PduSessionModificationComplete,
    PduSessionModificationReject, PduSessionModificationRequest,
};
use pith_nas::ie::{GsmCapability, QosRule, RuleOperation};
use pith_nas::{GsmCause, GsmMessage};

impl Ue {
    /// The UE no longer supports reflective QoS in a session. Ignored in CM-IDLE, and while another procedure of the UE changes the session.
    pub(in crate::ue) fn revoke_reflective_qos(&mut self, id: u8) {
        let supports = self.sessions.find(id).is_some_and(|session| session.reflective_qos);
        let possible = self.state == State::Registered && self.is_connected();
        if supports && possible && !self.sessions.is_changing(id) {
            self.begin_transaction(id, Procedure::Revocation);
        }
    }

    /// Sends PDU SESSION MODIFICATION REQUEST without RqoS (TS 24.501 6.4.2.2).
    pub(super) fn send_revocation(&mut self, id: u8, pti: u8) {
        let mut request = PduSessionModificationRequest::new();
        request.gsm_capability = Some(GsmCapability(vec![0]));
        self.send_gsm(&GsmMessage::new(id, pti, request));
    }

    /// The network accepts the revocation: the derived rules end (TS 24.501 6.2.5.1.4.5).
    fn take_revocation(&mut self, id: u8) {
        if let Some(session) = self.sessions.find(id) {
            session.reflective_qos = false;
            session.derived = DerivedRules::default();
        }
    }

    /// PDU SESSION MODIFICATION REJECT (TS 24.501 6.4.2.4): a revocation must be accepted.
    pub(super) fn receive_modification_reject(
        &mut self,
        id: u8,
        pti: u8,
        reject: &PduSessionModificationReject,
    ) {
        if self.sessions.take(id, pti, |p| *p == Procedure::Revocation).is_none() {
            return self.refuse_pti(id, pti, "PduSessionModificationReject");
        }
        let text = format!("revocation of reflective QoS rejected with #{}", reject.cause.code());
        self.violation("TS 24.501 6.4.2.3", text);
    }

    /// PDU SESSION MODIFICATION COMMAND (TS 24.501 6.3.2.3). Its PTI is that of a modification that the UE requested, or 0: then the UE's own
    /// request continues, and is repeated.
    pub(super) fn receive_modification_command(
        &mut self,
        id: u8,
        pti: u8,
        command: &PduSessionModificationCommand,
    ) {
        let is_repeated = self.sessions.last_modification == Some((id, pti));
        let is_answer = self.sessions.take(id, pti, |p| *p == Procedure::Revocation).is_some();
        // The PTI is not released at once: the network has retransmitted the command, or the UE its request.
        if pti != 0 && !is_answer && !is_repeated {
            return self.refuse_pti(id, pti, "PduSessionModificationCommand");
        }
        if self.sessions.find(id).is_none() {
            let text = format!("PduSessionModificationCommand for session {id}, which is not active");
            self.violation("TS 24.501 7.3.2", text);
            return self.send_gsm_status(id, pti, GsmCause::InvalidPduSessionIdentity);
        }
        if is_answer {
            self.take_revocation(id);
        }
        let Some(session) = self.sessions.find(id) else { return };
        let rules = command.qos_rules.as_ref().map(|rules| &rules.0[..]).unwrap_or_default();
        let flows = command.qos_flow_descriptions.as_ref().map(|list| &list.0[..]).unwrap_or_default();
        match session.qos.after(session.default_qfi, rules, flows) {
            Ok(qos) => session.qos = qos,
            Err((cause, why)) => {
                self.violation("TS 24.501 6.3.2.4", format!("PDU session {id}: {why}"));
                let reject = PduSessionModificationCommandReject::new(cause);
                return self.send_gsm(&GsmMessage::new(id, pti, reject));
            }
        }
        if let Some(ambr) = command.session_ambr {
            session.ambr = ambr;
        }
        session.rq_timer = command.rq_timer.or(session.rq_timer);
        let supports_timer = session.reflective_qos || command.rq_timer.is_none();
        if let Some(qfi) =
            command.qos_rules.as_ref().and_then(|rules| rules.0.iter().find_map(new_default_flow))
        {
            session.default_qfi = qfi;
        }
        if !supports_timer {
            self.violation("TS 24.501 6.3.2.2", "an RQ timer for a UE that does not support reflective QoS");
        }
        self.send_gsm(&GsmMessage::new(id, pti, PduSessionModificationComplete::new()));
    }
}

/// The flow that a rule assigns to the default rule.
fn new_default_flow(rule: &QosRule) -> Option<u8> {
    let precedence_and_qfi =
        rule.precedence_and_qfi.filter(|_| rule.default && rule.operation != RuleOperation::Delete)?;
    Some(precedence_and_qfi.qfi)
}
