//! Nudm_UECM_Registration of an AMF (TS 23.502 4.2.2.2.2 step 14; TS 29.503 5.3.2.2.2, 5.3.2.3).
//!
//! The UDM decides which AMF serves a UE: the one that registered last. The previous one is
//! notified to delete its context.
//!
//! ```text
//!  AMF ─> 3GppRegistration
//!         AwaitingAmfRegistration        <─ UDR   the current registration
//!         AwaitingAmfRegistrationUpdate  <─ UDR   the new one is stored
//!  AMF <─ 201 or 200;  old AMF <─ DeregistrationNotification (step 14d)
//! ```

use super::super::config::UdmConfig;
use super::subscription::{UNNAMED_AMFS, implicit_subscription, of_client, of_unnamed};
use super::{Step, Transaction};
use crate::kit::{Caller, Identity, check_instance, context_in_reference};
use pith_sbi::common::{AccessType, PatchItem, PatchOperation};
use pith_sbi::nudm_uecm::{
    Amf3GppAccessRegistration, DeregistrationData, DeregistrationNotification, DeregistrationReason,
    ThreeGppRegistration, UpdateThreeGppRegistration,
};
use pith_sbi::nudr_dr::{
    CreateAmfContextThreeGpp, ModifyAmfContextThreeGpp, QueryAmfContextThreeGpp, RemoveSdmSubscriptions,
};
use pith_sbi::{Cause, Created, Problem, Reply, Request, Response, Uri};
use pith_types::Guami;

/// Waits for the current registration.
pub(in crate::udm) struct AwaitingAmfRegistration {
    request: Box<ThreeGppRegistration>,
}

/// Waits until the new registration is stored.
pub(in crate::udm) struct AwaitingAmfRegistrationUpdate {
    request: Box<ThreeGppRegistration>,
    old: Option<Box<Amf3GppAccessRegistration>>,
}

/// Waits for the registration that an AMF changes.
pub(in crate::udm) struct AwaitingRegistrationToModify {
    request: Box<UpdateThreeGppRegistration>,
    from: Caller,
}

pub(super) fn begin(_config: &UdmConfig, request: Box<ThreeGppRegistration>) -> Step {
    let query = QueryAmfContextThreeGpp { ue_id: request.ue_id.clone() };
    Step::Call(query.into(), Transaction::AwaitingAmfRegistration(AwaitingAmfRegistration { request }))
}

impl AwaitingAmfRegistration {
    pub(super) fn reply(self, reply: Reply) -> Step {
        let old = match reply {
            Ok(Response::Amf3GppAccessRegistration(old)) => Some(old),
            Err(problem) if problem.status == 404 => None,
            Ok(_) => return Step::refuse(Problem::system_failure("the UDR sent no registration")),
            Err(problem) => return Step::Answer(Err(problem), Vec::new()),
        };
        let create =
            CreateAmfContextThreeGpp { ue_id: self.request.ue_id.clone(), body: self.request.body.clone() };
        let state = AwaitingAmfRegistrationUpdate { request: self.request, old };
        Step::Call(create.into(), Transaction::AwaitingAmfRegistrationUpdate(state))
    }
}

impl AwaitingAmfRegistrationUpdate {
    pub(super) fn reply(self, config: &UdmConfig, reply: Reply) -> Step {
        if let Err(problem) = reply {
            return Step::Answer(Err(problem), Vec::new());
        }
        let notification = self.old.as_ref().and_then(|old| self.deregistration_of(old));
        let unsubscriptions = self.old.as_ref().map(|old| self.unsubscriptions_of(old)).unwrap_or_default();
        let body = self.request.body;
        let response = match self.old {
            Some(_) => Response::Amf3GppAccessRegistration(Box::new(body)),
            None => {
                let path = format!("/nudm-uecm/v1/{}/registrations/amf-3gpp-access", self.request.ue_id);
                let location = Uri::new(&config.identity.api_root, &path);
                Response::Amf3GppAccessRegistrationCreated(Box::new(Created { location, body }))
            }
        };
        Step::Answer(Ok(response), notification.into_iter().chain(unsubscriptions).collect())
    }

    /// The end of the old AMF's implicit subscription to the UE's data (TS 29.503 5.2.2.3.2 `implicitUnsubscribe`): an AMF
    /// that was restarted with another instance id does not end it itself. Whether the old AMF has proven its instance is not known: it has one of two
    /// ids.
    fn unsubscriptions_of(&self, old: &Amf3GppAccessRegistration) -> Vec<Request> {
        if old.purge_flag == Some(true) || !is_other_context(old, &self.request.body) {
            return Vec::new();
        }
        let id = implicit_subscription(&old.amf_instance_id, &old.dereg_callback_uri);
        let of_unnamed = of_unnamed(&id, UNNAMED_AMFS);
        let end = |subs_id: String| RemoveSdmSubscriptions { ue_id: self.request.ue_id.clone(), subs_id };
        vec![end(id).into(), end(of_unnamed).into()]
    }

    /// The notification to the old AMF, if it still has the UE (step 14d).
    fn deregistration_of(&self, old: &Amf3GppAccessRegistration) -> Option<Request> {
        let new = &self.request.body;
        if old.purge_flag == Some(true) || !is_other_context(old, new) {
            return None;
        }
        let reason = match new.initial_registration_ind {
            Some(true) => DeregistrationReason::UeInitialRegistration,
            _ => DeregistrationReason::UeRegistrationAreaChange,
        };
        let mut body = DeregistrationData::new(reason);
        body.access_type = Some(AccessType::ThreeGppAccess);
        Some(DeregistrationNotification { uri: old.dereg_callback_uri.clone(), body }.into())
    }
}

/// Whether the former registration is that of another UE context: of another AMF, or of the same AMF. Two shards of an AMF
/// are one instance; the callback URIs of both registrations name their contexts. Callback URIs of other vendors' AMFs mean
/// nothing here.
fn is_other_context(old: &Amf3GppAccessRegistration, new: &Amf3GppAccessRegistration) -> bool {
    if old.amf_instance_id != new.amf_instance_id {
        return true;
    }
    let context =
        |registration: &Amf3GppAccessRegistration| context_in_reference(registration.dereg_callback_uri.id());
    context(old).zip(context(new)).is_some_and(|(old, new)| old != new)
}

/// An AMF changes its own registration, or marks it as purged (TS 29.503 5.3.2.4, 5.3.2.6).
pub(super) fn begin_update(request: Box<UpdateThreeGppRegistration>, from: Caller) -> Step {
    let query = QueryAmfContextThreeGpp { ue_id: request.ue_id.clone() };
    Step::Call(
        query.into(),
        Transaction::AwaitingRegistrationToModify(AwaitingRegistrationToModify { request, from }),
    )
}

/// Refuses a shard of this process that no longer serves the UE: another shard has registered meanwhile, and the purge of the
/// former one must not end that registration.
fn check_shard(
    identity: &Identity,
    registration: &Amf3GppAccessRegistration,
    from: Caller,
) -> Result<(), Box<Problem>> {
    let shard = match from {
        Caller::Local { .. } => identity.owner.shard.0.into(),
        Caller::Shard { shard, .. } => shard,
        Caller::Remote { .. } => return Ok(()),
    };
    let callback = &registration.dereg_callback_uri;
    let context = context_in_reference(callback.id()).filter(|_| callback.root == identity.api_root);
    let registered = context.map(|context| identity.owners.owner(context.block));
    if registered.is_some_and(|owner| u16::from(owner.shard.0) != shard) {
        let text = "another shard of the AMF has registered for the UE";
        return Err(Box::new(Problem::of_status(403).detail(text)));
    }
    Ok(())
}

/// Whether two GUAMIs are of AMFs of one AMF Set (TS 23.003 2.10.1).
fn is_same_set(one: Guami, other: Guami) -> bool {
    let set = |guami: Guami| (guami.plmn_id, guami.amf_id.region, guami.amf_id.set);
    set(one) == set(other)
}

impl AwaitingRegistrationToModify {
    pub(super) fn reply(self, config: &UdmConfig, reply: Reply) -> Step {
        match reply {
            Ok(Response::Amf3GppAccessRegistration(old))
                if is_same_set(old.guami, self.request.body.guami) =>
            {
                // Another AMF of the set may serve the UE meanwhile (TS 23.501 5.21.2.2). Its GUAMI is its own claim: with a certificate it
                // is to be the instance that registered.
                let is_other_amf = old.guami != self.request.body.guami;
                let is_own = check_instance(old.amf_instance_id, self.from).and_then(|()| {
                    if is_other_amf { Ok(()) } else { check_shard(&config.identity, &old, self.from) }
                });
                match is_own {
                    Ok(()) => self.modify(&old),
                    Err(problem) => Step::refuse(*problem),
                }
            }
            Ok(_) => Step::refuse(Problem::new(Cause::InvalidGuami)),
            Err(problem) => Step::Answer(Err(problem), Vec::new()),
        }
    }

    /// Changes the registration that was checked: if another AMF has registered meanwhile, or another shard with the same
    /// instance id, the tests in the patch fail and nothing is changed (RFC 6902 5). A purge ends the AMF's implicit subscription: an
    /// AMF that did not get the answer to its subscription does not end it itself.
    fn modify(self, checked: &Amf3GppAccessRegistration) -> Step {
        let change = self.request.body;
        let tests = [
            test("/amfInstanceId", checked.amf_instance_id.to_string()),
            test("/deregCallbackUri", checked.dereg_callback_uri.to_string()),
        ];
        let purge = change.purge_flag.map(|purge| PatchItem::add("/purgeFlag", purge));
        let pei = change.pei.map(|pei| PatchItem::add("/pei", pei.to_string()));
        let body: Vec<PatchItem> = tests.into_iter().chain(purge).chain(pei).collect();
        let ue_id = self.request.ue_id;
        let relay = if change.purge_flag == Some(true) {
            let callback = &checked.dereg_callback_uri;
            let id = implicit_subscription(&checked.amf_instance_id, callback);
            let subs_id = of_client(id, self.from, UNNAMED_AMFS);
            super::relay::Relay::Purged(Box::new(RemoveSdmSubscriptions { ue_id: ue_id.clone(), subs_id }))
        } else {
            super::relay::Relay::AsItIs
        };
        let modify = ModifyAmfContextThreeGpp { ue_id, body };
        Step::Call(modify.into(), Transaction::Relay(relay))
    }
}

fn test(path: &str, value: String) -> PatchItem {
    PatchItem { value: Some(value.into()), ..PatchItem::new(PatchOperation::Test, path) }
}
