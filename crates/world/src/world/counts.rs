//! Downlink NAS COUNTs as gNBs see them: none is used twice with one key (TS 33.501 6.4.3.1).

use crate::journal::Keys;
use pith_nas::SecurityHeaderType;
use std::collections::{BTreeMap, VecDeque};

/// At most half of the range of sequence numbers is compared.
const KEPT: usize = 127;

/// Sequence numbers of protected downlink NAS messages under one key, of one UE.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    /// The number of keys from the home network when this one began.
    new: u64,
    /// The number of derived keys that the AMF of each process had when it began to send.
    derived: BTreeMap<usize, usize>,
    /// The connection on which this key began.
    first: u64,
    /// Those of the former key: an AMF may still send on a connection that the UE has left.
    former: Option<Box<Self>>,
    /// The latest, in the order of their connections.
    latest: VecDeque<Sent>,
}

/// A message that a gNB sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    connection: u64,
    sequence: u8,
    /// On a connection that the UE had left for another one.
    is_late: bool,
}

impl Counts {
    /// Notes a message that a gNB sends to the UE on that connection; a later connection has a higher number. `process` is that of the AMF, `keys`
    /// the number of keys of the subscriber that this AMF has got so far: the next key is used from SECURITY MODE COMMAND on. Returns what is
    /// wrong.
    ///
    /// A key that another AMF has derived for this one is used from this AMF's next message on, after a handover without SECURITY MODE COMMAND
    /// (TS 33.501 6.9.2.3.3, 6.9.3). If the handover fails, the AMF of the UE goes on with its own key and COUNTs, and the target AMF sends
    /// nothing.
    ///
    /// Messages on several connections of a UE may arrive in another order than they were sent. An AMF that has transferred the UE's context
    /// goes on after the COUNTs that it has reserved for the new AMF, on a connection that the UE has left: the new AMF's are lower.
    pub fn note(
        &mut self,
        (connection, is_late): (u64, bool),
        (process, keys): (usize, Keys),
        nas: &[u8],
    ) -> Result<(), String> {
        let (Some(header), Some(sequence)) = (nas.get(1), nas.get(6).copied()) else { return Ok(()) };
        let header = SecurityHeaderType::from_octet(*header);
        if header == SecurityHeaderType::Plain {
            return Ok(());
        }
        let starts = header == SecurityHeaderType::IntegrityProtectedWithNewContext;
        let is_new = starts && self.new < keys.new;
        // An AMF that prepares the next handover, in vain, uses COUNTs up: COUNT 0 may not be sent (TS 33.501 A.13).
        let is_derived = self.lacks_derived(process, keys) && connection >= self.first;
        if self.latest.is_empty() || is_new || is_derived {
            let former = Self { former: None, ..std::mem::take(self) };
            let mut derived = former.derived.clone();
            derived.insert(process, keys.derived);
            let former = Some(Box::new(former));
            *self = Self { new: keys.new, derived, first: connection, former, latest: VecDeque::new() };
        }
        let sent = Sent { connection, sequence, is_late };
        if connection < self.first {
            let Some(former) = &mut self.former else { return Ok(()) };
            if former.lacks_derived(process, keys) {
                // An AMF sends the first message with the keys of a handover when the UE has registered elsewhere meanwhile.
                former.derived.insert(process, keys.derived);
                (former.first, former.latest) = (connection, VecDeque::new());
            }
            return former.take(sent);
        }
        self.take(sent)
    }

    /// Whether no message has had these keys, which the process has derived for a handover.
    fn lacks_derived(&self, process: usize, keys: Keys) -> bool {
        self.derived.get(&process).copied().unwrap_or(0) < keys.derived
    }

    fn take(&mut self, sent: Sent) -> Result<(), String> {
        let Sent { connection, sequence, is_late } = sent;
        let place = self.latest.partition_point(|it| it.connection <= connection);
        let mut before = self.latest.iter().take(place).rev();
        let last = before.find(|it| !it.is_late || is_late && it.connection == connection);
        let last = last.map_or(sequence, |last| last.sequence);
        if is_behind(last, sequence) || self.latest.iter().any(|it| it.sequence == sequence) {
            return Err(format!("downlink NAS COUNT …{sequence:02x} after …{last:02x}"));
        }
        self.latest.insert(place, sent);
        if self.latest.len() > KEPT {
            self.latest.pop_front();
        }
        Ok(())
    }
}

/// A COUNT that is far behind the last one was used before, or is lower than those that a document reserved.
const fn is_behind(last: u8, sequence: u8) -> bool {
    matches!(last.wrapping_sub(sequence), 2..=128)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CIPHERED: u8 = 2;
    const NEW_CONTEXT: u8 = 3;

    fn note(counts: &mut Counts, connection: u64, header: u8, sequence: u8) -> bool {
        let keys = Keys { new: u64::from(header == NEW_CONTEXT), derived: 0 };
        counts.note((connection, false), (0, keys), &[0x7e, header, 0, 0, 0, 0, sequence]).is_ok()
    }

    #[test]
    fn a_message_of_an_earlier_connection_may_be_late() {
        let mut counts = Counts::default();
        assert!(note(&mut counts, 1, CIPHERED, 5));
        assert!(note(&mut counts, 3, CIPHERED, 8));
        assert!(note(&mut counts, 2, CIPHERED, 6), "sent before 8 on a connection that the UE has left");
        assert!(!note(&mut counts, 2, CIPHERED, 3), "lower than the last one of its own connection");
        assert!(!note(&mut counts, 3, CIPHERED, 6), "used on another connection");
        assert!(!note(&mut counts, 4, CIPHERED, 4), "a later connection does not go back");
    }

    /// The former AMF has transferred the context, and reserved COUNTs for the new one.
    #[test]
    fn a_message_on_a_connection_that_the_ue_has_left_may_be_beyond_reserved_counts() {
        let keys = Keys { new: 0, derived: 0 };
        let mut counts = Counts::default();
        let mut note = |connection, is_late, sequence| {
            counts.note((connection, is_late), (0, keys), &[0x7e, CIPHERED, 0, 0, 0, 0, sequence]).is_ok()
        };
        assert!(note(1, false, 5));
        assert!(note(1, true, 37));
        assert!(!note(1, true, 20), "lower than the last one of its own connection");
        assert!(note(2, false, 6));
        assert!(!note(2, false, 37), "used on the other connection");
        assert!(note(2, false, 7));
    }

    #[test]
    fn a_new_key_begins_at_zero() {
        let mut counts = Counts::default();
        assert!(note(&mut counts, 1, CIPHERED, 5));
        assert!(!note(&mut counts, 1, CIPHERED, 0));
        assert!(note(&mut counts, 1, NEW_CONTEXT, 0));
    }

    /// A message of the AMF of that process, which has got that number of derived keys.
    fn note_of(counts: &mut Counts, process: usize, derived: usize, sequence: u8) -> bool {
        let keys = Keys { new: 1, derived };
        counts.note((1, false), (process, keys), &[0x7e, CIPHERED, 0, 0, 0, 0, sequence]).is_ok()
    }

    #[test]
    fn a_derived_key_begins_at_zero() {
        let mut counts = Counts::default();
        assert!(note_of(&mut counts, 0, 0, 5));
        assert!(!note_of(&mut counts, 0, 0, 0));
        assert!(note_of(&mut counts, 0, 0, 6), "the UE is not at the other AMF yet");
        assert!(note_of(&mut counts, 1, 1, 0) && note_of(&mut counts, 1, 1, 1));
        assert!(!note_of(&mut counts, 1, 1, 0), "the same key");
        assert!(note_of(&mut counts, 1, 3, 0), "the UE got no message under the second one");
        assert!(!note_of(&mut counts, 1, 3, 0));
        assert!(note_of(&mut counts, 1, 3, 7));
        assert!(note_of(&mut counts, 0, 1, 1), "COUNT 0 was used up by a handover that did not take place");
        assert!(!note_of(&mut counts, 0, 1, 1));
        assert!(note_of(&mut counts, 1, 4, 1), "the same COUNT as under the former key");
        assert!(!note_of(&mut counts, 1, 4, 1));
    }

    /// The target AMF has got a key, but the UE stays at the source AMF.
    #[test]
    fn a_handover_that_fails_excuses_no_count() {
        let mut counts = Counts::default();
        assert!(note_of(&mut counts, 0, 0, 5));
        assert!(!note_of(&mut counts, 0, 0, 0), "the key of the source AMF");
        assert!(note_of(&mut counts, 1, 2, 0), "the next handover does not fail");
        assert!(
            !note_of(&mut counts, 1, 2, 0),
            "the key of the handover that failed excuses nothing afterwards"
        );
        assert!(note_of(&mut counts, 1, 2, 1));
    }

    #[test]
    fn a_late_message_under_the_former_key_is_none_of_the_new_one() {
        let mut counts = Counts::default();
        assert!(note(&mut counts, 1, CIPHERED, 5));
        assert!(note(&mut counts, 2, NEW_CONTEXT, 0));
        assert!(note(&mut counts, 1, CIPHERED, 6));
        assert!(!note(&mut counts, 1, CIPHERED, 6), "the former key has COUNTs, too");
        assert!(note(&mut counts, 3, CIPHERED, 6));
        assert!(!note(&mut counts, 3, CIPHERED, 6));
    }
}
