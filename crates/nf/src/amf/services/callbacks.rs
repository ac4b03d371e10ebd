//! Requests to the AMF's callback URIs: from the UDM (TS 29.503 5.3.2.3, 5.2.2.5), the SMF (TS
//! 29.502 5.2.2.5) and the PCF (TS 29.507 4.2.4).

use crate::amf::Amf;
use crate::amf::consumer;
use crate::amf::context::{Env, RFSP, UeContext};
use crate::amf::delivery;
use crate::amf::error::TransferError;
use crate::amf::mobility::{departure, n2_handover};
use crate::amf::n2;
use crate::amf::procedure::deregistration::{self, Reason};
use crate::amf::procedure::{Procedure, context_transfer, subscription_change};
use crate::amf::session::PduSession;
use crate::kit::{Caller, Instant, Level, Outbox};
use pith_sbi::npcf_ampolicycontrol::{AmPolicyTerminateNotify, AmPolicyUpdateNotify};
use pith_sbi::nsmf_pdusession::{ResourceStatus, SmContextStatusNotify};
use pith_sbi::nudm_sdm::SdmChangeNotification;
use pith_sbi::nudm_uecm::{DeregistrationNotification, DeregistrationReason};
use pith_sbi::{Problem, Reply, Response};

impl Amf {
    /// Nudm_UECM_DeregistrationNotification: another AMF serves the UE, or the subscription is
    /// withdrawn (TS 23.502 4.2.2.2.2 step 14d, 4.2.2.3.3).
    pub(super) fn deregistration_notification(
        &mut self,
        now: Instant,
        notification: &DeregistrationNotification,
        out: &mut Outbox,
    ) -> Reply {
        let key = self.find_by_callback_reference(notification.uri.id())?;
        let reason = match notification.body.dereg_reason {
            DeregistrationReason::SubscriptionWithdrawn => Reason::SubscriptionWithdrawn,
            DeregistrationReason::ReregistrationRequired => Reason::ReRegistrationRequired,
            _ => Reason::ServedElsewhere,
        };
        let has_moved = notification.body.dereg_reason == DeregistrationReason::UeRegistrationAreaChange;
        self.with_ue(now, key, out, |ue, env| {
            if let (Procedure::AwaitingAmfReallocation(_), Reason::ServedElsewhere) = (&ue.procedure, reason)
            {
                // The target AMF has registered: its answer is about to arrive.
                ue.registered_in_udm = false;
                return;
            }
            if has_moved && (ue.transferred_to.is_some() || departure::may_be_complete(ue)) {
                return context_transfer::await_status(ue, env);
            }
            if has_moved {
                // It may have its sessions from an AMF before this one.
                consumer::leave_to_other_amf(ue);
            }
            deregistration::required_by_udm(ue, env, reason);
        });
        Ok(Response::NoContent)
    }

    /// Nsmf_PDUSession_SMContextStatusNotify: the SMF has released a session. Another SMF than that of the session can't.
    pub(super) fn sm_context_status_notify(
        &mut self,
        now: Instant,
        from: Caller,
        notification: &SmContextStatusNotify,
        out: &mut Outbox,
    ) -> Reply {
        let name = self.shared.references.name(notification.uri.id()).and_then(consumer::of_session_name);
        let name = name.and_then(|(ue, id, number)| Some((self.shared.ids.find(ue)?, id, number)));
        let (key, id, number) = name.ok_or_else(|| Box::new(Problem::context_not_found()))?;
        let ended = |session: &PduSession| session.id == id && session.number.0 == number;
        let is_of_other = |session: &PduSession| ended(session) && !session.is_of(from);
        if self.ues.view(key).is_some_and(|ue| ue.sessions.iter().any(is_of_other)) {
            return Err(TransferError::OtherSmf.problem().into());
        }
        if notification.body.status_info.resource_status == ResourceStatus::Released {
            self.with_ue(now, key, out, |ue, env| {
                let session = ue.sessions.extract_if(.., |session| ended(session)).next();
                if let Some(session) = session {
                    // The UE learns it from the PDU session status (TS 24.501 5.6.1.4.1), also if the process ends while another session's SMF
                    // has not answered: the notification is not repeated.
                    ue.must_store |= ue.is_registered();
                    delivery::drop_queued(ue, id);
                    if !n2_handover::session_ended(ue, env, &session) {
                        delivery::on_ended_by_smf(ue, env, &session);
                    }
                }
            });
        }
        Ok(Response::NoContent)
    }

    /// Nudm_SDM_Notification: the subscription has changed; the AMF requests the current data.
    pub(super) fn sdm_change(
        &mut self,
        now: Instant,
        notification: &SdmChangeNotification,
        out: &mut Outbox,
    ) -> Reply {
        let key = self.find_by_callback_reference(notification.uri.id())?;
        self.with_ue(now, key, out, subscription_change::begin);
        Ok(Response::NoContent)
    }

    /// Npcf_AMPolicyControl_UpdateNotify: a changed policy, which is sent to the gNB.
    pub(super) fn am_policy_update(
        &mut self,
        now: Instant,
        notification: &AmPolicyUpdateNotify,
        out: &mut Outbox,
    ) -> Reply {
        let key = self.find_by_callback_reference(notification.uri.id())?;
        if notification.body.rfsp.is_some_and(|rfsp| !RFSP.contains(&rfsp)) {
            return Err(Box::new(Problem::mandatory_ie_incorrect("rfsp", "an RFSP index is 1 to 256")));
        }
        self.with_ue(now, key, out, |ue, env| {
            let Some(policy) = &mut ue.policy else { return };
            let former = (policy.rfsp, policy.ue_ambr);
            policy.rfsp = notification.body.rfsp.or(policy.rfsp);
            policy.ue_ambr = notification.body.ue_ambr.or(policy.ue_ambr);
            if former != (policy.rfsp, policy.ue_ambr) {
                n2::modify_ue_context(ue, env);
            }
            let area = notification.body.serv_area_res.as_ref();
            if area.is_some() && ue.restrict_by_policy(area) {
                subscription_change::on_other_restrictions(ue, env);
            }
        });
        Ok(Response::NoContent)
    }

    /// Npcf_AMPolicyControl_UpdateNotify: the PCF requests the deletion of the policy association
    /// (TS 29.507 4.2.4).
    pub(super) fn am_policy_terminate(
        &mut self,
        now: Instant,
        notification: &AmPolicyTerminateNotify,
        out: &mut Outbox,
    ) -> Reply {
        let key = self.find_by_callback_reference(notification.uri.id())?;
        self.with_ue(now, key, out, end_policy);
        Ok(Response::NoContent)
    }
}

fn end_policy(ue: &mut UeContext, env: &mut Env<'_>) {
    env.out.log(Level::Info, || format!("{}: the PCF ends the AM policy", ue.name()));
    consumer::delete_policy(ue, env);
    if ue.restrict_by_policy(None) {
        subscription_change::on_other_restrictions(ue, env);
    }
}
