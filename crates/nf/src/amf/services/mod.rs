//! Services of the AMF: Namf_Communication (TS 29.518), and notifications from UDM, SMF and PCF, which the AMF receives
//! as callbacks. The AMF answers each request at once, except CreateUEContext: no other request waits for another NF or for the UE.

mod callbacks;
mod context_transfer;
mod n1_message_notify;
mod n1_n2_message_transfer;
mod ue_context_creation;

pub(super) use context_transfer::{
    MAX_UNCONFIRMED_NAS_COUNTS, RESERVED_NAS_COUNTS, context_for_handover, context_for_registration,
    context_with_derived_key,
};

use super::Amf;
use crate::kit::{Instant, Key, Outbox, PendingReply};
use pith_sbi::common::UeContextId;
use pith_sbi::{Cause, Problem, Request};
use pith_types::{FiveGTmsi, UeIdentity};

impl Amf {
    /// Handles a request from another NF, and answers it.
    pub(super) fn serve(&mut self, now: Instant, reply: PendingReply, request: Request, out: &mut Outbox) {
        let from = reply.caller();
        let result = match request {
            Request::N1N2MessageTransfer(request) => self.n1_n2_message_transfer(now, from, *request, out),
            Request::UeContextTransfer(request) => self.ue_context_transfer(from, *request, out),
            Request::RegistrationStatusUpdate(request) => {
                self.registration_status_update(now, from, &request, out)
            }
            Request::CreateUeContext(request) => return self.create_ue_context(now, reply, *request, out),
            Request::ReleaseUeContext(request) => self.release_ue_context(now, from, &request, out),
            Request::N2InfoNotify(notification) => self.n2_info_notify(now, &notification, out),
            Request::N1MessageNotify(notification) => self.n1_message_notify(now, *notification, out),
            Request::DeregistrationNotification(notification) => {
                self.deregistration_notification(now, &notification, out)
            }
            Request::SmContextStatusNotify(notification) => {
                self.sm_context_status_notify(now, from, &notification, out)
            }
            Request::SdmChangeNotification(notification) => self.sdm_change(now, &notification, out),
            Request::AmPolicyUpdateNotify(notification) => self.am_policy_update(now, &notification, out),
            Request::AmPolicyTerminateNotify(notification) => {
                self.am_policy_terminate(now, &notification, out)
            }
            other => {
                Err(Problem::new(Cause::ResourceUriStructureNotFound).detail(other.operation().name()).into())
            }
        };
        reply.complete(result, out);
    }

    /// The context of a UE that another AMF is handing over: by the SUPI, or by the name in CreateUEContext.
    pub(super) fn find_arrival(&self, id: &UeContextId) -> Option<Key> {
        self.shared.index.find_arrival_named(id)
    }

    /// Finds the UE context that a resource path identifies by SUPI, by the PEI of an unauthenticated UE, or by a 5G-GUTI of this AMF; else that
    /// of a UE that another AMF is handing over.
    pub(super) fn find_context(&self, id: &UeContextId) -> Option<Key> {
        let index = &self.shared.index;
        let found = match id {
            UeContextId::Supi(supi) => index.find_supi(supi),
            UeContextId::Pei(pei) => index.find(&UeIdentity::Pei(pei.clone())),
            UeContextId::FiveGGuti(_) => self.tmsi_of(id).and_then(|tmsi| index.find_tmsi(tmsi)),
        };
        found.or_else(|| self.find_arrival(id))
    }

    /// The 5G-TMSI of this AMF that names a UE context.
    pub(super) fn tmsi_of(&self, id: &UeContextId) -> Option<FiveGTmsi> {
        match id {
            UeContextId::FiveGGuti(guti) => self.shared.config.serves(&guti.guami).then_some(guti.tmsi),
            _ => None,
        }
    }

    /// Finds the UE context to which a callback URI's reference belongs.
    fn find_by_callback_reference(&self, reference: &str) -> Result<Key, Box<Problem>> {
        let key = self.shared.references.id(reference).and_then(|id| self.shared.ids.find(id));
        key.ok_or_else(|| Problem::context_not_found().into())
    }
}
