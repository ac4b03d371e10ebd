//! Network-requested PDU session modification (TS 24.501 6.3.2).
//!
//! ```text
//!  UE                                         SMF
//!   | <- PDU SESSION MODIFICATION COMMAND      |   session-AMBR, RQ timer, QoS rules and flows
//!   |    PDU SESSION MODIFICATION COMPLETE ->  |
//!   |    PDU SESSION MODIFICATION COMMAND REJECT -> |   instead, after an error in rules or flows
//! ```

use crate::ue::Ue;
use pith_nas::gsm::{
    PduSessionModificationCommand, PduSessionModificationCommandReject, PduSessionModificationComplete,
};
use pith_nas::ie::{QosRule, RuleOperation};
use pith_nas::{GsmCause, GsmMessage};

impl Ue {
    /// PDU SESSION MODIFICATION COMMAND (TS 24.501 6.3.2.3). The simulator does not request
    /// modifications, so the PTI is 0.
    pub(super) fn receive_modification_command(
        &mut self,
        id: u8,
        pti: u8,
        command: &PduSessionModificationCommand,
    ) {
        if pti != 0 {
            return self.refuse_pti(id, pti, "PduSessionModificationCommand");
        }
        let Some(session) = self.sessions.find(id) else {
            let text = format!("PduSessionModificationCommand for session {id}, which is not active");
            self.violation("TS 24.501 7.3.2", text);
            return self.send_gsm_status(id, pti, GsmCause::InvalidPduSessionIdentity);
        };
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
