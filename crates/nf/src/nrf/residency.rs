//! Profiles and subscriptions that outlive the process: after a restart of the NRF no NF registers or subscribes again.
//!
//! A profile is stored when it is registered or changed, and when its status changes; a heart-beat that changes nothing is not stored.
//! After a restart each NF has the time of some heart-beats to send one (TS 29.510 5.2.2.3.2). Notifications that were not sent before
//! the restart are lost: subscribers discover again when their results expire.

use super::subscription::Subscription;
use super::{Instance, Nrf};
use crate::kit::document::{Document, Pack, PackError, Section, Sections, UnpackError, Writer};
use crate::kit::{DocumentSink, Instant, Nf, Owner, ProcedureName, StoreScope, StoredKey};
use pith_sbi::nnrf_nfmanagement::NfProfile;
use pith_types::{BlockId, ContextId};

const PROFILE: Section = Section { id: 1, name: "profile", version: 1 };
const SUBSCRIPTION: Section = Section { id: 2, name: "subscription", version: 1 };

/// All sections; a document has one of them.
const SECTIONS: &[Section] = &[PROFILE, SUBSCRIPTION];

/// What a document has.
enum Record {
    Profile(NfProfile, Owner),
    Subscription(Box<Subscription>),
}

fn pack_profile(instance: &Instance) -> Result<Document, PackError> {
    let mut writer = Writer::new(Nf::Nrf, &());
    writer.section(&PROFILE, |writer| {
        instance.profile.pack(writer);
        instance.owner.pack(writer);
    });
    writer.finish()
}

fn pack_subscription(subscription: &Subscription) -> Result<Document, PackError> {
    let mut writer = Writer::new(Nf::Nrf, &());
    writer.section(&SUBSCRIPTION, |writer| {
        subscription.data.pack(writer);
        subscription.owner.pack(writer);
        subscription.from.pack(writer);
    });
    writer.finish()
}

fn unpack(octets: &[u8]) -> Result<Record, UnpackError> {
    let sections = Sections::of(octets, Nf::Nrf, SECTIONS, &())?;
    if sections.has(&PROFILE) {
        let (profile, owner) = sections.unpack(&PROFILE)?;
        return Ok(Record::Profile(profile, owner));
    }
    let (data, owner, from) = sections.unpack(&SUBSCRIPTION)?;
    Ok(Record::Subscription(Box::new(Subscription::new(data, owner, from))))
}

impl Nrf {
    /// Stores profiles and subscriptions in documents of that block.
    pub const fn in_block(mut self, block: BlockId) -> Self {
        self.block = Some(block);
        self
    }

    /// The number of a new document, which is also the id of a new subscription.
    pub(super) const fn next_number(&mut self) -> u32 {
        self.numbered = self.numbered.wrapping_add(1);
        self.numbered
    }

    /// A profile or subscription has changed: it is stored before the answer is sent.
    pub(super) fn changed(&mut self, number: u32) {
        if let Some(block) = self.block {
            self.tracker.require(ContextId { block, number }, None);
        }
    }

    /// A profile or subscription has ended.
    pub(super) fn ended(&mut self, number: u32) {
        if let Some(block) = self.block {
            self.tracker.note_end(ContextId { block, number }, ProcedureName::Other);
        }
    }

    /// Passes on the documents of what changed.
    pub(super) fn store_records(&mut self, scope: StoreScope, sink: &mut dyn DocumentSink) {
        for (id, procedure) in self.tracker.take(scope) {
            sink.begin_procedure(procedure);
            let stored = StoredKey { nf: Nf::Nrf, id };
            let document = match self.subscriptions.get(&u64::from(id.number)) {
                Some(subscription) => pack_subscription(subscription).ok(),
                None => {
                    let mut instances = self.instances.values();
                    instances.find(|it| it.number == id.number).and_then(|it| pack_profile(it).ok())
                }
            };
            match document {
                Some(document) => {
                    sink.write(stored, None, &document);
                    self.tracker.note_stored(id, 0);
                }
                None if self.tracker.note_deleted(id) => sink.delete(stored),
                None => {}
            }
        }
    }

    /// Takes a profile or subscription of a former run back.
    pub(super) fn restore_record(
        &mut self,
        now: Instant,
        id: ContextId,
        document: &[u8],
    ) -> Result<(), UnpackError> {
        if self.block != Some(id.block) {
            return Err(UnpackError::OtherOwner(id.block));
        }
        let number = id.number;
        match unpack(document)? {
            Record::Profile(profile, owner) => {
                let instance = Instance { profile, last_heard: now, owner, number };
                self.instances.insert(instance.profile.nf_instance_id, instance);
            }
            Record::Subscription(subscription) => {
                self.subscriptions.insert(number.into(), *subscription);
            }
        }
        self.numbered = self.numbered.max(number);
        self.tracker.note_stored(id, 0);
        Ok(())
    }
}

#[cfg(any(test, feature = "testing"))]
impl Nrf {
    /// Unpacks a document.
    pub fn check_document(octets: &[u8]) -> Result<(), UnpackError> {
        unpack(octets).map(drop)
    }

    /// Unpacks a document, and packs it again.
    pub fn repack(octets: &[u8]) -> Result<Document, UnpackError> {
        let packed = match unpack(octets)? {
            Record::Profile(profile, owner) => {
                pack_profile(&Instance { profile, last_heard: Instant::default(), owner, number: 0 })
            }
            Record::Subscription(subscription) => pack_subscription(&subscription),
        };
        Ok(packed.expect("a record can be packed"))
    }
}
