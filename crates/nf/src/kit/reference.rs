//! References in the URIs that an NF gives out: callbacks, and resources that one consumer alone knows.
//!
//! A reference carries a MAC under a key of this run. The reference of another UE or session cannot be guessed, and one of
//! an earlier run matches no entry, although its place in the table may be in use again.

use super::{Key, Rng};
use pith_crypto::name_mac::NameMac;

/// The key of the references of one NF.
#[derive(Debug, Clone)]
pub struct References(NameMac);

impl References {
    /// With a new key.
    pub fn new(rng: &mut Rng) -> Self {
        Self(NameMac::new(&rng.octets()))
    }

    /// With a stored key: the references of each run are the same.
    pub fn of_secret(key: &[u8; 32]) -> Self {
        Self(NameMac::new(key))
    }

    /// The reference of a name: the name and its MAC. The name has no '.'.
    pub fn of_name(&self, name: &str) -> String {
        format!("{name}.{:016x}", self.0.of(name))
    }

    /// The name in a reference of this run.
    pub fn name<'a>(&self, reference: &'a str) -> Option<&'a str> {
        let (name, mac) = reference.split_once('.')?;
        let is_mac = mac.len() == 16 && u64::from_str_radix(mac, 16) == Ok(self.0.of(name));
        is_mac.then_some(name)
    }

    /// The reference of an entry of a table.
    pub fn of_key(&self, key: Key) -> String {
        self.of_name(&format!("{:x}", key.to_u64()))
    }

    /// The key in such a reference.
    pub fn key(&self, reference: &str) -> Option<Key> {
        u64::from_str_radix(self.name(reference)?, 16).ok().map(Key::from_u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_of_this_run_names_its_entry_and_no_other_does() {
        let key = Key::from_u64(0x1_0000_0002);
        let references = References::new(&mut Rng::from_number(1));
        let reference = references.of_key(key);
        assert_eq!(references.key(&reference), Some(key));
        let (name, mac) = reference.split_once('.').unwrap();
        let next = format!("100000003.{mac}");
        let short = format!("{name}.{}", &mac[1..]);
        let signed = format!("{name}.+{}", &mac[1..]);
        for guess in [name, &next, &short, &signed, "", ".", "100000002.0000000000000000"] {
            assert_eq!(references.key(guess), None, "{guess}");
        }
        assert_eq!(References::new(&mut Rng::from_number(2)).key(&reference), None, "of another run");
    }
}
