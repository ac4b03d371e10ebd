//! Callbacks that the AMF gave out: of the UDM (TS 29.503 5.3.2.3, 5.2.2.5), the SMF (TS 29.502
//! 5.2.2.5) and the PCF (TS 29.507 4.2.4).

use crate::amf::Amf;
use crate::amf::consumer;
use crate::amf::context::{Env, UeContext};
use crate::amf::procedure::deregistration::{self, Reason};
use crate::kit::{Instant, Level, Outbox};
use pith_sbi::npcf_ampolicycontrol::{AmPolicyTerminateNotify, AmPolicyUpdateNotify};
use pith_sbi::nsmf_pdusession::{ResourceStatus, SmContextStatusNotify};
use pith_sbi::nudm_sdm::SdmChangeNotification;
use pith_sbi::nudm_uecm::{DeregistrationNotification, DeregistrationReason};
use pith_sbi::{Problem, Reply, Response};

fn not_found() -> Box<Problem> {
    Problem::context_not_found().into()
}

impl Amf {
    /// Nudm_UECM_DeregistrationNotification: the UE is served elsewhere, or no longer subscribed
    /// (TS 23.502 4.2.2.2.2 step 14d, 4.2.2.3.3).
    pub(super) fn deregistration_notification(
        &mut self,
        now: Instant,
        notification: &DeregistrationNotification,
        out: &mut Outbox,
    ) -> Reply {
        let key = self.find_reference(notification.uri.id()).ok_or_else(not_found)?;
        let reason = match notification.body.dereg_reason {
            DeregistrationReason::SubscriptionWithdrawn => Reason::SubscriptionWithdrawn,
            DeregistrationReason::ReregistrationRequired => Reason::ReRegistrationRequired,
            _ => Reason::ServedElsewhere,
        };
        self.with_ue(now, key, out, |ue, env| deregistration::by_network(ue, env, reason));
        Ok(Response::NoContent)
    }

    /// Nsmf_PDUSession_SMContextStatusNotify: a session has ended.
    pub(super) fn sm_context_status_notify(
        &mut self,
        now: Instant,
        notification: &SmContextStatusNotify,
        out: &mut Outbox,
    ) -> Reply {
        let (supi, id) = notification.uri.id().rsplit_once('-').ok_or_else(not_found)?;
        let key = self.find_reference(supi).ok_or_else(not_found)?;
        let id: u8 = id.parse().map_err(|_| not_found())?;
        if notification.body.status_info.resource_status == ResourceStatus::Released {
            self.with_ue(now, key, out, |ue, _| ue.sessions.retain(|session| session.id != id));
        }
        Ok(Response::NoContent)
    }

    /// Nudm_SDM_Notification: the subscription has changed. A UE that may no longer use an allowed
    /// slice has to register anew (TS 23.501 5.15.5.2.2); other changes hold from the next
    /// registration on.
    pub(super) fn sdm_change(
        &mut self,
        now: Instant,
        notification: &SdmChangeNotification,
        out: &mut Outbox,
    ) -> Reply {
        let key = self.find_reference(notification.uri.id()).ok_or_else(not_found)?;
        self.with_ue(now, key, out, |ue, env| {
            // Fetched again with the next registration, which the UE is asked for.
            ue.subscription = None;
            deregistration::by_network(ue, env, Reason::ReRegistrationRequired);
        });
        Ok(Response::NoContent)
    }

    /// Npcf_AMPolicyControl_UpdateNotify: another policy, which the gNB is told of with the next
    /// initial context setup.
    pub(super) fn am_policy_update(&mut self, notification: &AmPolicyUpdateNotify) -> Reply {
        let key = self.find_reference(notification.uri.id()).ok_or_else(not_found)?;
        let ue = self.ues.get_mut(key);
        let policy = ue.and_then(|ue| ue.policy.as_mut()).ok_or_else(not_found)?;
        let update = &notification.body;
        policy.rfsp = update.rfsp.or(policy.rfsp);
        policy.ue_ambr = update.ue_ambr.or(policy.ue_ambr);
        Ok(Response::NoContent)
    }

    /// Npcf_AMPolicyControl_UpdateNotify: the PCF wants to be rid of the policy (TS 29.507 4.2.4.3).
    pub(super) fn am_policy_terminate(
        &mut self,
        now: Instant,
        notification: &AmPolicyTerminateNotify,
        out: &mut Outbox,
    ) -> Reply {
        let key = self.find_reference(notification.uri.id()).ok_or_else(not_found)?;
        self.with_ue(now, key, out, end_policy);
        Ok(Response::NoContent)
    }
}

fn end_policy(ue: &mut UeContext, env: &mut Env<'_>) {
    env.out.log(Level::Info, || format!("{}: the PCF ends the AM policy", ue.name()));
    consumer::delete_policy(ue, env);
}
