//! Traces of UEs, as the AMF starts them (TS 38.413 8.11). The simulated gNB records nothing: it remembers which traces of a UE are active, and
//! checks that the AMF starts and stops each once.

use super::{Gnb, UeKey};
use pith_ngap::{DeactivateTrace, NgRanTraceId, TraceActivation, TraceStart, TracedInterfaces};
use pith_types::{AmfUeNgapId, RanUeNgapId};

impl Gnb {
    /// The active traces of a UE.
    pub fn traces_of(&self, ue: UeKey) -> &[NgRanTraceId] {
        let context = self.ran_ids.get(&ue).and_then(|ran_id| self.contexts.get(ran_id));
        context.map_or(&[], |context| &context.traces)
    }

    /// TRACE START (TS 38.413 8.11.1.2), which has no answer.
    pub(super) fn receive_trace_start(&mut self, stream: super::N2Stream, message: TraceStart) {
        let ids = (message.amf_ue_ngap_id, message.ran_ue_ngap_id);
        let Some(ran_id) = self.traced_ue("TraceStart", ids, stream) else { return };
        match message.activation {
            Some(activation) => self.activate_trace(ran_id, &activation),
            None => self.violation("TS 38.413 9.2.10.1", "TRACE START without Trace Activation"),
        }
    }

    /// DEACTIVATE TRACE (TS 38.413 8.11.3.2): the trace with that Trace Reference ends.
    pub(super) fn receive_deactivate_trace(&mut self, stream: super::N2Stream, message: &DeactivateTrace) {
        let ids = (message.amf_ue_ngap_id, message.ran_ue_ngap_id);
        let Some(ran_id) = self.traced_ue("DeactivateTrace", ids, stream) else { return };
        let Some(trace) = message.trace else {
            return self.violation("TS 38.413 9.2.10.3", "DEACTIVATE TRACE without NG-RAN Trace ID");
        };
        let traces = self.contexts.get_mut(&ran_id).map(|context| &mut context.traces);
        let active = traces.and_then(|traces| {
            let at = traces.iter().position(|active| active.reference() == trace.reference())?;
            Some(traces.swap_remove(at))
        });
        if active != Some(trace) {
            self.violation(
                "TS 38.413 8.11.3.2",
                format!("DEACTIVATE TRACE of {trace}, which is not an active recording session"),
            );
        }
    }

    /// Trace Activation of TRACE START, INITIAL CONTEXT SETUP REQUEST or HANDOVER REQUEST (TS 38.413 9.3.1.14).
    pub(super) fn activate_trace(&mut self, ran_id: RanUeNgapId, activation: &TraceActivation) {
        let (id, TracedInterfaces(interfaces)) = (activation.id, activation.interfaces);
        if interfaces & !TracedInterfaces::ALL.0 != 0 {
            self.violation(
                "TS 38.413 9.3.1.14",
                format!("reserved bits in Interfaces To Trace: {interfaces:#010b}"),
            );
        }
        let Some(context) = self.contexts.get_mut(&ran_id) else { return };
        if context.traces.iter().any(|active| active.reference() == id.reference()) {
            let text = format!("trace {id} is started, and one with its Trace Reference is active");
            return self.violation("TS 38.413 8.11.1.2", text);
        }
        context.traces.push(id);
    }

    fn traced_ue(
        &mut self,
        name: &str,
        (amf_id, ran_id): (AmfUeNgapId, RanUeNgapId),
        stream: super::N2Stream,
    ) -> Option<RanUeNgapId> {
        Some(self.check_ids(name, amf_id, ran_id, stream)?.0)
    }
}
