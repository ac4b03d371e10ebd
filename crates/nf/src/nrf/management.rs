//! Nnrf_NFManagement: registration, heart-beat, deregistration (TS 29.510 5.2.2.2 to 5.2.2.4).

use super::discovery::{limit_of, with_scheme};
use super::{Instance, Nrf};
use crate::kit::{Caller, Instant, Level, Outbox, Owner};
use pith_sbi::common::{Link, LinksValue, PatchItem, PatchOperation};
use pith_sbi::nnrf_nfmanagement::{
    GetNfInstances, NfProfile, NfService, NfStatus, NotificationEventType, RegisterNfInstance,
    UpdateNfInstance, UriList,
};
use pith_sbi::patch::apply_to_value;
use pith_sbi::{Cause, Created, NfInstanceId, Problem, Reply, Response, Uri};
use std::collections::BTreeSet;

/// Maximum number of registered instances: 64 shards of each NF of a Pith core are 576.
const INSTANCES_MAX: usize = 4096;
/// Maximum number of instances of one process, of which its certificate names each.
const SHARE_NAMED: usize = 1024;
/// Maximum number of instances of foreign NFs whose certificates name none: they may invent ids.
pub(super) const SHARE_UNNAMED: usize = 128;

/// The instances that a client may register.
fn share_of(owner: Owner) -> usize {
    match owner {
        Owner::Client(client) if client.is_named => SHARE_NAMED,
        Owner::Client(_) => SHARE_UNNAMED,
        Owner::Process | Owner::SameUser => INSTANCES_MAX,
    }
}

/// Maximum octets of a profile as JSON; profiles of Pith have about 2,000.
pub(super) const PROFILE_MAX: usize = 64 << 10;

/// Missed heart-beats after which an instance is suspended.
const MISSED_HEART_BEATS: u32 = 3;

/// Further missed heart-beats after which a suspended instance is deleted: it ended without deregistration.
const HEART_BEATS_TO_RETURN: u32 = 10;

impl Nrf {
    /// An instance registers or replaces its profile (TS 29.510 5.2.2.2.2).
    pub(super) fn register(
        &mut self,
        now: Instant,
        request: RegisterNfInstance,
        from: Caller,
        out: &mut Outbox,
    ) -> Reply {
        let mut profile = request.body;
        if profile.nf_instance_id != request.nf_instance_id {
            return Err(Box::new(Problem::mandatory_ie_incorrect(
                "nfInstanceId",
                "differs from that of the path",
            )));
        }
        if let Some(known) = self.instances.get(&profile.nf_instance_id) {
            known.check_owner(from)?;
            // An instance does not become one of another type: that is another NF, which took the id.
            if known.profile.nf_type != profile.nf_type && !known.is_displaced_by(from) {
                return Err(Box::new(Problem::new(Cause::ModificationNotAllowed).detail("/nfType")));
            }
        }
        check(&profile)?;
        self.check_room(&profile, from)?;
        profile.heart_beat_timer =
            Some(u32::try_from(self.config.heart_beat.as_secs()).unwrap_or(u32::MAX).max(1));
        let id = profile.nf_instance_id;
        let known = self.instances.get(&id).map(|known| known.number);
        let number = known.unwrap_or_else(|| self.next_number());
        let instance = Instance { profile: profile.clone(), last_heard: now, owner: Owner::of(from), number };
        let old = self.instances.insert(id, instance);
        self.changed(number);
        let event = match old {
            None => NotificationEventType::NfRegistered,
            Some(_) => NotificationEventType::NfProfileChanged,
        };
        out.log(Level::Debug, || format!("{} {id} registered", profile.nf_type));
        self.notify(&event, &profile, out);
        Ok(match old {
            None => {
                let location = self.instance_uri(&id);
                Response::NfProfileCreated(Box::new(Created { location, body: profile }))
            }
            Some(_) => Response::NfProfile(Box::new(profile)),
        })
    }

    /// Limits the memory that all peers, and each peer, can use with profiles.
    fn check_room(&self, profile: &NfProfile, from: Caller) -> Result<(), Box<Problem>> {
        let owner = Owner::of(from);
        let is_its = |known: &&Instance| known.owner.is_same_process(owner);
        let is_full = || {
            self.instances.len() >= INSTANCES_MAX
                || self.instances.values().filter(is_its).count() >= share_of(owner)
        };
        if !self.instances.contains_key(&profile.nf_instance_id) && is_full() {
            return Err(Box::new(Problem::new(Cause::InsufficientResources).detail("too many NF instances")));
        }
        let size = serde_json::to_vec(profile).map_err(Problem::system_failure)?.len();
        if size > PROFILE_MAX {
            return Err(Box::new(Problem::of_status(413).detail(format!("more than {PROFILE_MAX} octets"))));
        }
        Ok(())
    }

    /// A heart-beat or a change of the profile (TS 29.510 5.2.2.3).
    pub(super) fn update(
        &mut self,
        now: Instant,
        request: &UpdateNfInstance,
        from: Caller,
        out: &mut Outbox,
    ) -> Reply {
        let instance = self.instances.get_mut(&request.nf_instance_id).ok_or_else(not_found)?;
        instance.check_owner(from)?;
        // Any update shows that the instance is alive, even if the change is refused.
        instance.last_heard = now;
        let patched = patched(&instance.profile, &request.body)?;
        self.check_room(&patched, from)?;
        let instance = self.instances.get_mut(&request.nf_instance_id).ok_or_else(not_found)?;
        let profile = patched;
        let awake = instance.profile.nf_status != profile.nf_status;
        let changed = !request.body.iter().all(is_heart_beat);
        instance.profile = profile.clone();
        let number = instance.number;
        if awake || changed {
            self.changed(number);
            self.notify(&NotificationEventType::NfProfileChanged, &profile, out);
        }
        Ok(if changed { Response::NfProfile(Box::new(profile)) } else { Response::NoContent })
    }

    /// An instance deregisters (TS 29.510 5.2.2.4).
    pub(super) fn deregister(&mut self, id: &NfInstanceId, from: Caller, out: &mut Outbox) -> Reply {
        self.instances.get(id).ok_or_else(not_found)?.check_owner(from)?;
        let instance = self.instances.remove(id).ok_or_else(not_found)?;
        self.ended(instance.number);
        self.notify(&NotificationEventType::NfDeregistered, &instance.profile, out);
        Ok(Response::NoContent)
    }

    /// The profile of an instance (TS 29.510 5.2.2.9), if it allows the requester. A registered client gets the addresses that
    /// NFs of its type can use, as in discovery.
    pub(super) fn profile(&self, id: &NfInstanceId, from: Caller) -> Reply {
        let instance = self.instances.get(id).ok_or_else(not_found)?;
        if !self.reader(from).may_read(&instance.profile) {
            return Err(Box::new(Problem::of_status(403).detail("the NF does not allow the requester")));
        }
        let owner = Owner::of(from);
        let client = self.instances.values().find(|known| known.owner == owner);
        let profile = instance.profile.clone();
        let profile = match (owner, client) {
            (Owner::Client(_), Some(client)) if instance.owner != owner => {
                with_scheme(profile, &self.config.scheme_of(&client.profile.nf_type))
            }
            _ => profile,
        };
        Ok(Response::NfProfile(Box::new(profile)))
    }

    /// The instances of a type (TS 29.510 5.2.2.8), of those that allow the requester.
    pub(super) fn list(&self, request: &GetNfInstances, from: Caller) -> Reply {
        let limit = limit_of(request.limit)?;
        let reader = self.reader(from);
        let of_type =
            |profile: &NfProfile| request.nf_type.as_ref().is_none_or(|wanted| profile.nf_type == *wanted);
        let found = self
            .instances
            .values()
            .map(|instance| &instance.profile)
            .filter(|profile| of_type(profile) && reader.may_read(profile));
        let items =
            found.take(limit).map(|profile| Link { href: Some(self.instance_uri(&profile.nf_instance_id)) });
        let mut list = UriList::default();
        list.links.insert("item".into(), LinksValue::Many(items.collect()));
        Ok(Response::UriList(Box::new(list)))
    }

    /// Suspends or deletes silent instances, and deletes expired subscriptions.
    pub(super) fn sweep(&mut self, now: Instant, out: &mut Outbox) {
        self.suspend(now, out);
        self.forget(now, out);
        self.sweep_subscriptions(now);
    }

    /// Suspends silent instances: they are not discovered until their next heart-beat (TS 29.510 5.2.2.3.2).
    fn suspend(&mut self, now: Instant, out: &mut Outbox) {
        let patience = self.config.heart_beat * MISSED_HEART_BEATS;
        let silent = |instance: &&mut Instance| {
            instance.profile.nf_status == NfStatus::Registered && now - instance.last_heard > patience
        };
        let mut suspended = Vec::new();
        for instance in self.instances.values_mut().filter(silent) {
            instance.profile.nf_status = NfStatus::Suspended;
            suspended.push((instance.number, instance.profile.clone()));
        }
        for (number, profile) in suspended {
            self.changed(number);
            out.log(Level::Warn, || {
                format!("{} {} sends no heart-beats: suspended", profile.nf_type, profile.nf_instance_id)
            });
            self.notify(&NotificationEventType::NfProfileChanged, &profile, out);
        }
    }

    /// Deletes instances that were silent for long. If one sends a heart-beat again, it gets 404
    /// and registers.
    fn forget(&mut self, now: Instant, out: &mut Outbox) {
        let patience = self.config.heart_beat * (MISSED_HEART_BEATS + HEART_BEATS_TO_RETURN);
        let gone: Vec<_> =
            self.instances.extract_if(.., |_, instance| now - instance.last_heard > patience).collect();
        for (id, Instance { profile, number, .. }) in gone {
            self.ended(number);
            out.log(Level::Warn, || format!("{} {id} still sends no heart-beats: deleted", profile.nf_type));
            self.notify(&NotificationEventType::NfDeregistered, &profile, out);
        }
    }

    pub(super) fn instance_uri(&self, id: &NfInstanceId) -> Uri {
        Uri::new(&self.root, &format!("/nnrf-nfm/v1/nf-instances/{id}"))
    }
}

fn not_found() -> Box<Problem> {
    Box::new(Problem::new(Cause::ResourceUriStructureNotFound))
}

/// Status and load, of the instance or of a service: these change with every heart-beat.
fn is_heart_beat(item: &PatchItem) -> bool {
    let path: Vec<_> = item.path.split('/').collect();
    matches!(item.op, PatchOperation::Add | PatchOperation::Replace | PatchOperation::Test)
        && matches!(
            path[..],
            ["", "nfStatus" | "load" | "loadTimeStamp"]
                | ["", "nfServices" | "nfServiceList", _, "load" | "loadTimeStamp"]
        )
}

/// The profile after a patch (RFC 6902); the instance id can't be changed.
fn patched(profile: &NfProfile, patch: &[PatchItem]) -> Result<NfProfile, Box<Problem>> {
    let json = serde_json::to_value(profile).map_err(Problem::system_failure)?;
    let json = apply_to_value(json, patch)?;
    let wrong = |error| Box::new(Problem::mandatory_ie_incorrect("patch", error));
    let patched: NfProfile = serde_json::from_value(json).map_err(wrong)?;
    if patched.nf_instance_id != profile.nf_instance_id {
        return Err(Box::new(Problem::new(Cause::ModificationNotAllowed).detail("/nfInstanceId")));
    }
    // The NF type can't be changed either: the NF's certificate contains it.
    if patched.nf_type != profile.nf_type {
        return Err(Box::new(Problem::new(Cause::ModificationNotAllowed).detail("/nfType")));
    }
    // Only a registration has its addresses compared with the certificate.
    let known = profile.hosts();
    if let Some(new) = patched.hosts().into_iter().find(|host| !known.contains(host)) {
        let detail = format!("the address '{new}' is new: register the profile again");
        return Err(Box::new(Problem::new(Cause::ModificationNotAllowed).detail(detail)));
    }
    // A stored profile that an earlier version accepted may be invalid: its instance goes on until it registers again.
    match check(&patched) {
        Err(problem) if check(profile).is_ok() => Err(problem),
        _ => Ok(patched),
    }
}

/// What the types of members do not exclude (TS 29.510 6.1.6.2.2 with note 1, 6.1.6.2.3). Enumerations may have values of later releases.
fn check(profile: &NfProfile) -> Result<(), Box<Problem>> {
    let mut loads = profile.services().map(|service| service.load).chain([profile.load]).flatten();
    if loads.any(|load| load > 100) {
        return Err(Box::new(Problem::new(Cause::OptionalIeIncorrect).param("load", "not 0 to 100")));
    }
    if profile.fqdn.is_none() && profile.ipv4_addresses.is_empty() && profile.ipv6_addresses.is_empty() {
        let why = "missing, as are ipv4Addresses and ipv6Addresses";
        return Err(Box::new(Problem::new(Cause::MandatoryIeMissing).param("/fqdn", why)));
    }
    let lists = [
        ("/nfServices", are_different(profile.nf_services.iter())),
        ("/nfServiceList", are_different(profile.nf_service_list.values())),
    ];
    match lists.iter().find(|(_, are_different)| !are_different) {
        Some((param, _)) => {
            let problem = Problem::new(Cause::OptionalIeIncorrect);
            Err(Box::new(problem.param(param, "two services with the same serviceInstanceId")))
        }
        None => Ok(()),
    }
}

/// Whether each service has another `serviceInstanceId`. An NF may have the same services in both lists, for NFs that read only one.
fn are_different<'a>(mut services: impl Iterator<Item = &'a NfService>) -> bool {
    let mut known = BTreeSet::new();
    services.all(|service| known.insert(&service.service_instance_id))
}
