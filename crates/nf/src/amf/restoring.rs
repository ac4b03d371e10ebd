//! UE contexts that are restored while the AMF serves: which of them an input needs.
//!
//! A UE is restored together with all others of its block: its 5G-TMSI says only the block, and new ids of the block must differ from
//! those in use. A UE that is not known by its 5G-TMSI may have a context under its SUPI, so that its message waits until all are
//! restored.

use super::Amf;
use crate::kit::{Input, Instant, N2Input, Needs, Outbox};
use pith_ngap::Peek;
use pith_sbi::Request;
use pith_types::FiveGTmsi;

/// Procedure code of Initial UE Message (TS 38.413 9.4.7).
const INITIAL_UE_MESSAGE: u8 = 15;

impl Amf {
    pub(super) fn needs_of(&self, input: &Input) -> Needs {
        match input {
            Input::N2(N2Input::Pdu { pdu, .. }) => {
                pith_ngap::peek(pdu).map_or(Needs::Nothing, |peeked| self.needs_of_pdu(&peeked))
            }
            Input::Request { request, .. } => self.needs_of_request(request),
            // Those of timers and replies are restored.
            _ => Needs::Nothing,
        }
    }

    fn needs_of_pdu(&self, peeked: &Peek<'_>) -> Needs {
        if let Some(id) = peeked.amf_ue_ngap_id {
            return Needs::Block(id.block());
        }
        if peeked.procedure_code != INITIAL_UE_MESSAGE {
            return Needs::Nothing;
        }
        self.tmsi_named(peeked).map_or(Needs::All, |tmsi| self.needs_of_tmsi(tmsi))
    }

    fn needs_of_tmsi(&self, tmsi: FiveGTmsi) -> Needs {
        let index = &self.shared.index;
        if self.shared.ids.is_unrestored(tmsi.block()) {
            Needs::Block(tmsi.block())
        } else if index.find_tmsi(tmsi).is_some() || index.retained.has(tmsi) {
            Needs::Nothing
        } else {
            Needs::All
        }
    }

    fn needs_of_request(&self, request: &Request) -> Needs {
        let named = match request {
            Request::N1N2MessageTransfer(request) => &request.ue_context_id,
            Request::UeContextTransfer(request) => &request.ue_context_id,
            Request::RegistrationStatusUpdate(request) => &request.ue_context_id,
            Request::CreateUeContext(request) => &request.ue_context_id,
            Request::ReleaseUeContext(request) => &request.ue_context_id,
            // Whether the subscriber is registered here decides.
            Request::N1MessageNotify(_) => {
                return self.context_of_request(request).map_or(Needs::All, |id| Needs::Block(id.block));
            }
            _ => return self.context_of_request(request).map_or(Needs::Nothing, |id| Needs::Block(id.block)),
        };
        if let Some(tmsi) = self.tmsi_of(named) {
            return self.needs_of_tmsi(tmsi);
        }
        let found = self.find_context(named).and_then(|key| self.ues.id(key));
        found.map_or(Needs::All, |id| Needs::Block(id.block))
    }

    /// Further UEs were restored.
    pub(super) fn resume_restored_ues(&mut self, now: Instant, out: &mut Outbox) {
        self.supersede_restored(now, out);
        self.resume_batch(now, out);
    }
}
