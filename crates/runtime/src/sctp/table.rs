//! Ids of associations, and the table of associations.

use std::{fmt, io};

use super::association::{Association, MessageSocket, Step};
use super::{DownReason, SctpEvent};

/// Messages read from an association before other associations and the owner get their turn.
const MESSAGES_PER_TURN: usize = 64;
/// Size of the read buffer; longer messages are read in parts.
const READ_BUFFER: usize = 64 << 10;

/// Identifies an association of a transport; never reused after `Down`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AssociationId {
    generation: u32,
    slot: u32,
}

impl fmt::Display for AssociationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}

impl AssociationId {
    /// The id as a number, for tables that do not use the transport's types.
    pub const fn to_u64(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }

    /// The inverse of `to_u64`, for simulated transports in tests.
    #[cfg(test)]
    pub(crate) const fn from_u64(name: u64) -> Self {
        Self { generation: (name >> 32) as u32, slot: name as u32 }
    }

    /// Index in the table; later associations may use the same index.
    pub(crate) fn slot(self) -> u32 {
        self.slot
    }
}

/// Associations by id. A slot is reused with a new generation.
pub(super) struct Associations<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Associations<T> {
    pub fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds the value that `make` creates for its id.
    pub fn insert_with(
        &mut self,
        make: impl FnOnce(AssociationId) -> io::Result<T>,
    ) -> io::Result<AssociationId> {
        let slot = match self.free.last() {
            Some(&slot) => slot,
            None => self.push_slot()?,
        };
        let entry = &mut self.slots[slot as usize];
        let id = AssociationId { generation: entry.generation, slot };
        entry.value = Some(make(id)?);
        self.free.pop();
        Ok(id)
    }

    fn push_slot(&mut self) -> io::Result<u32> {
        let slot = u32::try_from(self.slots.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.slots.push(Slot { generation: 0, value: None });
        self.free.push(slot);
        Ok(slot)
    }

    /// The association with this id, if it exists.
    pub fn find(&mut self, id: AssociationId) -> Option<&mut T> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        (slot.generation == id.generation).then_some(slot.value.as_mut()).flatten()
    }

    /// The id of the association that occupies a slot.
    pub fn id_of_slot(&self, slot: u32) -> Option<AssociationId> {
        let entry = self.slots.get(slot as usize)?;
        entry.value.is_some().then_some(AssociationId { generation: entry.generation, slot })
    }

    pub fn remove(&mut self, id: AssociationId) -> Option<T> {
        let slot = self.slots.get_mut(id.slot as usize).filter(|s| s.generation == id.generation)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.slot);
        Some(value)
    }

    /// Gives an association a new id; the old one becomes invalid.
    pub fn renew(&mut self, id: AssociationId) -> Option<AssociationId> {
        let slot = self.slots.get_mut(id.slot as usize).filter(|s| s.generation == id.generation)?;
        slot.generation = slot.generation.wrapping_add(1);
        Some(AssociationId { generation: slot.generation, slot: id.slot })
    }
}

/// An entry of a table: an association, and possibly more data.
pub(super) trait Holds {
    type Socket: MessageSocket;
    fn association(&mut self) -> &mut Association<Self::Socket>;
}

/// The result of reading an association's messages.
pub(super) enum Served {
    /// Nothing is left to read.
    Idle,
    /// There may be more to read after other associations' turns.
    More,
    /// The association has ended and must be removed.
    Ended(AssociationId),
}

/// Reads messages of associations into events.
pub(super) struct Reader {
    buffer: Vec<u8>,
    max_message: usize,
}

impl Reader {
    pub fn new(max_message: usize) -> Self {
        Self { buffer: vec![0; READ_BUFFER], max_message }
    }

    /// Reads messages of one association, at most one turn's number.
    pub fn serve<T: Holds>(
        &mut self,
        table: &mut Associations<T>,
        mut id: AssociationId,
        events: &mut Vec<SctpEvent>,
    ) -> Served {
        for _ in 0..MESSAGES_PER_TURN {
            let Some(entry) = table.find(id) else { return Served::Idle };
            let association = entry.association();
            match association.read(&mut self.buffer, self.max_message) {
                Step::Message { stream, ppid, payload } => {
                    events.push(SctpEvent::Message { association: id, stream, ppid, payload });
                }
                Step::Up(streams) => events.push(association.up(id, streams)),
                Step::Restart(streams) => {
                    events.push(SctpEvent::Down { association: id, reason: DownReason::Restarted });
                    id = table.renew(id).unwrap_or(id);
                    events.extend(table.find(id).map(|entry| entry.association().up(id, streams)));
                }
                Step::Nothing => {}
                Step::Idle => return Served::Idle,
                Step::End(reason) => {
                    events.push(SctpEvent::Down { association: id, reason });
                    return Served::Ended(id);
                }
            }
        }
        Served::More
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(table: &mut Associations<char>, value: char) -> AssociationId {
        table.insert_with(|_| Ok(value)).unwrap()
    }

    #[test]
    fn an_id_is_invalid_after_removal_even_if_its_slot_is_reused() {
        let mut table = Associations::new();
        let old = insert(&mut table, 'a');
        assert_eq!(table.remove(old), Some('a'));
        let new = insert(&mut table, 'b');
        assert_eq!(old.slot(), new.slot());
        assert_eq!(table.find(old), None);
        assert_eq!(table.remove(old), None);
        assert_eq!(table.find(new), Some(&mut 'b'));
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn a_renewed_association_keeps_its_value_and_slot() {
        let mut table = Associations::new();
        let old = insert(&mut table, 'a');
        let new = table.renew(old).unwrap();
        assert_eq!(table.find(old), None);
        assert_eq!(table.find(new), Some(&mut 'a'));
        assert_eq!(table.id_of_slot(old.slot()), Some(new));
    }

    #[test]
    fn a_failed_insertion_leaves_the_slot_free() {
        let mut table: Associations<char> = Associations::new();
        assert!(table.insert_with(|_| Err(io::ErrorKind::Other.into())).is_err());
        assert_eq!(table.len(), 0);
        assert_eq!(insert(&mut table, 'a').slot(), 0);
    }
}
