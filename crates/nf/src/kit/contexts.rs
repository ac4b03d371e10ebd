//! A table of contexts, most of them packed: an idle context is kept as its document, and unpacked at its next message.
//!
//! ```text
//!  Hot       as the NF's type            in use, or used lately
//!  Cold      octets of its document      unpacked by the next access
//!  Absent    only in a store             the shell puts it back before it delivers an input for it
//! ```
//!
//! The key of a context is the same in all three. A document that stays in this process is in the *local form*: handles are
//! numbers instead of names ([`Handles`]). What the NF must know of a context that is packed is its *mark*.

use super::arena::{Arena, Key};
use super::document::{Document, Names, UnpackError};
use pith_types::ContextId;
use std::collections::VecDeque;
use std::ops::Deref;
use zeroize::Zeroizing;

/// A context that can be kept packed.
pub(crate) trait Context: Sized {
    /// What the table shows of a context without unpacking it.
    type Mark: Copy;

    /// Its name outside the process.
    fn id(&self) -> ContextId;

    /// What the table shows of it while it is packed.
    fn mark(&self) -> Self::Mark;

    /// Whether it waits for nothing that comes soon. The table packs only idle contexts, except in simulations.
    fn is_idle(&self) -> bool;

    /// Its document in the local form; `None` if it cannot be packed at present.
    fn pack_local(&self) -> Option<Document>;

    /// Unpacks a document in the local form, with the mark that the context had.
    fn unpack_local(octets: &[u8], named: (Key, ContextId), mark: Self::Mark) -> Result<Self, UnpackError>;
}

/// The names of the local form: handles are written as they are.
pub(crate) struct Handles;

impl Names for Handles {
    fn keeps_handles(&self) -> bool {
        true
    }
}

/// Contexts that a table keeps unpacked, unless more are in use at once.
const HOT: usize = 1024;

/// Unpacked contexts that are examined after an input.
const EXAMINED: usize = 4;

enum Place<T: Context> {
    Hot { context: Box<T>, used: bool },
    Cold { id: ContextId, mark: T::Mark, octets: Zeroizing<Box<[u8]>> },
    Absent { id: ContextId, mark: T::Mark },
}

/// Contexts by key.
pub(crate) struct Contexts<T: Context> {
    table: Arena<Place<T>>,
    /// Keys of unpacked contexts, in the order in which they were last examined. Keys of removed contexts are skipped.
    hot: VecDeque<Key>,
    /// Most unpacked contexts; 0 in simulations, which pack each context after each input.
    most_hot: usize,
    /// Absent contexts that a step needed.
    missed: Vec<ContextId>,
}

/// A context, without a change of what is unpacked.
pub(crate) enum View<'a, T> {
    /// An unpacked context of the table.
    Hot(&'a T),
    /// A copy of a packed one.
    Copy(Box<T>),
}

impl<T> Deref for View<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Hot(context) => context,
            Self::Copy(context) => context,
        }
    }
}

impl<T: Context> Place<T> {
    fn id(&self) -> ContextId {
        match self {
            Self::Hot { context, .. } => context.id(),
            Self::Cold { id, .. } | Self::Absent { id, .. } => *id,
        }
    }

    fn mark(&self) -> T::Mark {
        match self {
            Self::Hot { context, .. } => context.mark(),
            Self::Cold { mark, .. } | Self::Absent { mark, .. } => *mark,
        }
    }

    /// The context of a packed one, or of none if it is absent.
    fn unpacked(&self, key: Key) -> Option<Box<T>> {
        let Self::Cold { id, octets, mark } = self else { return None };
        match T::unpack_local(octets, (key, *id), *mark) {
            Ok(context) => Some(Box::new(context)),
            // A context that its own document does not yield counts as unknown: its UE registers again.
            Err(error) => {
                debug_assert!(false, "a packed context: {error}");
                None
            }
        }
    }

    fn view(&self, key: Key) -> Option<View<'_, T>> {
        match self {
            Self::Hot { context, .. } => Some(View::Hot(context)),
            packed => packed.unpacked(key).map(View::Copy),
        }
    }
}

impl<T: Context> Contexts<T> {
    /// An empty table of at most `limit` contexts.
    pub const fn new(limit: u32) -> Self {
        Self { table: Arena::new(limit), hot: VecDeque::new(), most_hot: HOT, missed: Vec::new() }
    }

    /// Packs each context after each input from now on: for simulations.
    pub const fn keep_cold(&mut self) {
        self.most_hot = 0;
    }

    /// Inserts the context that `make` returns for its key; `None` if the table is full.
    pub fn insert_with(&mut self, make: impl FnOnce(Key) -> Box<T>) -> Option<Key> {
        let key = self.table.insert_with(|key| Place::Hot { context: make(key), used: true })?;
        self.hot.push_back(key);
        Some(key)
    }

    /// Whether there is a context of that key, in whatever form.
    pub fn contains(&self, key: Key) -> bool {
        self.table.get(key).is_some()
    }

    /// The name of the context of that key.
    pub fn id(&self, key: Key) -> Option<ContextId> {
        self.table.get(key).map(Place::id)
    }

    /// The context of that key, unpacked. An absent one is recorded as missed.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.table.get_mut(key)?;
        match place {
            Place::Hot { .. } => {}
            Place::Cold { .. } => {
                *place = Place::Hot { context: place.unpacked(key)?, used: true };
                self.hot.push_back(key);
            }
            Place::Absent { id, .. } => self.missed.push(*id),
        }
        let Place::Hot { context, used } = place else { return None };
        *used = true;
        Some(context)
    }

    /// The context of that key, to read. `None` if it is absent.
    pub fn view(&self, key: Key) -> Option<View<'_, T>> {
        self.table.get(key)?.view(key)
    }

    /// Removes and returns the context; an absent one stays, and is recorded as missed.
    pub fn remove(&mut self, key: Key) -> Option<Box<T>> {
        if let Place::Absent { id, .. } = self.table.get(key)? {
            self.missed.push(*id);
            return None;
        }
        match self.table.remove(key)? {
            Place::Hot { context, .. } => Some(context),
            packed => packed.unpacked(key),
        }
    }

    /// Packs contexts that were not used lately, if too many are unpacked. Called after each input.
    pub fn pack_idle(&mut self) {
        let is_simulation = self.most_hot == 0;
        let examined = if is_simulation { self.hot.len() } else { EXAMINED };
        for _ in 0..examined {
            if self.hot.len() <= self.most_hot {
                return;
            }
            let Some(key) = self.hot.pop_front() else { return };
            let Some(place) = self.table.get_mut(key) else { continue };
            let Place::Hot { context, used } = place else { continue };
            let is_due = is_simulation || (!std::mem::take(used) && context.is_idle());
            match if is_due { context.pack_local() } else { None } {
                Some(document) => {
                    let octets = Zeroizing::new(Box::from(document.octets()));
                    *place = Place::Cold { id: context.id(), mark: context.mark(), octets };
                }
                None => self.hot.push_back(key),
            }
        }
    }

    /// All contexts with their keys, except absent ones.
    pub fn iter(&self) -> impl Iterator<Item = (Key, View<'_, T>)> {
        self.table.iter().filter_map(|(key, place)| Some((key, place.view(key)?)))
    }

    /// The keys of contexts whose mark satisfies the condition.
    pub fn keys_with(&self, is_wanted: impl Fn(T::Mark) -> bool) -> impl Iterator<Item = Key> {
        self.table.iter().filter(move |(_, place)| is_wanted(place.mark())).map(|(key, _)| key)
    }

    /// Up to `limit` contexts from that index on, and the index from which there may be more.
    pub fn page(&self, first: u32, limit: u32) -> (Vec<View<'_, T>>, Option<u32>) {
        let (page, next) = self.table.page(first, limit);
        (page.into_iter().filter_map(|(key, place)| place.view(key)).collect(), next)
    }

    /// Number of contexts.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// `false` if the copy of that context was dropped. There is nothing to read of a context that has ended.
    pub fn is_resident(&self, key: Key) -> bool {
        !matches!(self.table.get(key), Some(Place::Absent { .. }))
    }

    /// Deletes the copy of a context; its document is in a store.
    pub fn drop_copy(&mut self, key: Key) {
        if let Some(place) = self.table.get_mut(key) {
            *place = Place::Absent { id: place.id(), mark: place.mark() };
        }
    }

    /// The mark of an absent context; `None` if the context is in the process.
    pub fn mark_of_absent(&self, key: Key) -> Option<T::Mark> {
        match self.table.get(key)? {
            Place::Absent { mark, .. } => Some(*mark),
            Place::Hot { .. } | Place::Cold { .. } => None,
        }
    }

    /// Removes an absent context whose document is lost; returns its mark.
    pub fn abandon(&mut self, key: Key) -> Option<T::Mark> {
        let mark = self.mark_of_absent(key)?;
        self.table.remove(key);
        Some(mark)
    }

    /// Puts an absent context back. A context that is in the process stays as it is.
    pub fn put(&mut self, key: Key, context: Box<T>) {
        if let Some(place @ Place::Absent { .. }) = self.table.get_mut(key) {
            *place = Place::Hot { context, used: true };
            self.hot.push_back(key);
        }
    }

    /// The id of a context whose copy was dropped.
    pub fn absent(&self, key: Key) -> Option<ContextId> {
        match self.table.get(key)? {
            Place::Absent { id, .. } => Some(*id),
            Place::Hot { .. } | Place::Cold { .. } => None,
        }
    }

    /// Whether there is a context of that key and its copy was dropped. Then it is recorded as missed.
    pub fn misses(&mut self, key: Key) -> bool {
        let Some(Place::Absent { id, .. }) = self.table.get(key) else { return false };
        self.missed.push(*id);
        true
    }

    /// The absent contexts that steps needed since the last call, each once.
    pub fn take_missed(&mut self) -> Vec<ContextId> {
        let mut missed = std::mem::take(&mut self.missed);
        missed.sort_unstable();
        missed.dedup();
        missed
    }

    /// All contexts, unpacked.
    #[cfg(test)]
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let keys: Vec<_> = self.table.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.get_mut(key);
        }
        self.table.values_mut().filter_map(|place| match place {
            Place::Hot { context, .. } => Some(&mut **context),
            _ => None,
        })
    }

    /// Numbers of unpacked contexts, packed ones, and octets of those.
    #[cfg(test)]
    fn census(&self) -> (usize, usize, usize) {
        self.table.iter().fold((0, 0, 0), |(hot, cold, octets), (_, place)| match place {
            Place::Hot { .. } => (hot + 1, cold, octets),
            Place::Cold { octets: packed, .. } => (hot, cold + 1, octets + packed.len()),
            Place::Absent { .. } => (hot, cold, octets),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::Nf;
    use crate::kit::document::{Pack, Section, Sections, Writer};

    const NUMBER: Section = Section { id: 1, name: "number", version: 1 };
    const SECTIONS: &[Section] = &[NUMBER];

    #[derive(Debug)]
    struct Number {
        key: Key,
        number: u32,
        is_idle: bool,
    }

    impl Context for Number {
        type Mark = u32;

        fn id(&self) -> ContextId {
            ContextId::from_u64(self.number.into()).unwrap()
        }

        fn mark(&self) -> u32 {
            self.number
        }

        fn is_idle(&self) -> bool {
            self.is_idle
        }

        fn pack_local(&self) -> Option<Document> {
            let mut writer = Writer::new(Nf::Amf, &Handles);
            writer.section(&NUMBER, |writer| (self.number, self.is_idle).pack(writer));
            writer.finish().ok()
        }

        fn unpack_local(octets: &[u8], (key, _): (Key, ContextId), _: u32) -> Result<Self, UnpackError> {
            let (number, is_idle) = Sections::of(octets, Nf::Amf, SECTIONS, &Handles)?.unpack(&NUMBER)?;
            Ok(Self { key, number, is_idle })
        }
    }

    fn table(count: u32) -> (Contexts<Number>, Vec<Key>) {
        let mut table = Contexts::new(count);
        let keys = (0..count)
            .map(|number| {
                let key = table
                    .insert_with(|key| Box::new(Number { key, number, is_idle: number % 5 != 0 }))
                    .unwrap();
                table.pack_idle();
                key
            })
            .collect();
        (table, keys)
    }

    #[test]
    fn idle_contexts_beyond_the_bound_are_packed_and_found() {
        let (mut table, keys) = table(5_000);
        let (hot, cold, _) = table.census();
        // A fifth is not idle.
        assert!(hot <= 5_000 / 5 + HOT && cold >= 5_000 - hot, "{hot} unpacked, {cold} packed");
        for (number, key) in (0..).zip(&keys) {
            assert_eq!(table.view(*key).map(|it| (it.key, it.number)), Some((*key, number)));
            let context = table.get_mut(*key).unwrap();
            assert_eq!((context.key, context.number), (*key, number));
            context.number += 10_000;
            table.pack_idle();
        }
        assert!(table.iter().all(|(key, it)| it.key == key && it.number >= 10_000));
        assert_eq!(table.keys_with(|mark| mark == 10_007).collect::<Vec<_>>(), [keys[7]]);
        let (page, next) = table.page(0, 10);
        assert_eq!((page.len(), next), (10, Some(10)));
        assert_eq!(table.remove(keys[7]).map(|it| it.number), Some(10_007));
        assert!(!table.contains(keys[7]) && table.get_mut(keys[7]).is_none());
    }

    #[test]
    fn contexts_that_are_used_stay_unpacked() {
        let (mut table, keys) = table(3_000);
        for _ in 0..20_000 {
            table.get_mut(keys[1]);
            table.pack_idle();
        }
        assert!(matches!(table.table.get(keys[1]), Some(Place::Hot { .. })));
        assert!(matches!(table.table.get(keys[2]), Some(Place::Cold { .. })));
    }

    #[test]
    fn an_absent_context_keeps_its_key_until_it_is_put_back() {
        let (mut table, keys) = table(3);
        table.drop_copy(keys[1]);
        assert!(table.contains(keys[1]) && !table.is_resident(keys[1]) && table.is_resident(keys[2]));
        assert!(table.get_mut(keys[1]).is_none() && table.remove(keys[1]).is_none());
        assert!(table.view(keys[1]).is_none());
        assert_eq!(table.take_missed(), [ContextId::from_u64(1).unwrap()]);
        assert_eq!(table.keys_with(|mark| mark == 1).count(), 1);
        assert_eq!((table.len(), table.iter().count()), (3, 2));
        assert!(table.misses(keys[1]) && !table.misses(keys[2]));
        table.take_missed();
        table.put(keys[1], Box::new(Number { key: keys[1], number: 1, is_idle: true }));
        assert_eq!(table.get_mut(keys[1]).map(|it| it.number), Some(1));
        assert!(table.take_missed().is_empty());
    }

    #[test]
    fn a_simulation_packs_each_context() {
        let mut table = Contexts::new(10);
        table.keep_cold();
        let key = table.insert_with(|key| Box::new(Number { key, number: 5, is_idle: false })).unwrap();
        table.pack_idle();
        assert_eq!(table.census().1, 1);
        assert_eq!(table.get_mut(key).map(|it| it.number), Some(5));
    }
}
