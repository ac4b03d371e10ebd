//! References in the URIs that an NF gives out: callbacks, and resources that one consumer alone knows.
//!
//! A reference is a name and its MAC under a key that is stored for the installation: the reference of another UE or session
//! cannot be guessed, and a reference means the same after a restart. Its name begins with a [`ContextId`], whose block
//! says which shard has the context; the rest is the NF's.

use pith_crypto::name_mac::NameMac;
use pith_types::{BlockId, ContextId};
use std::fmt;

/// The key of an installation's references.
#[derive(Clone, PartialEq, Eq)]
pub struct ReferenceKey([u8; 32]);

impl ReferenceKey {
    /// The key with these octets.
    pub const fn new(octets: [u8; 32]) -> Self {
        Self(octets)
    }

    /// A number of the installation with that name, which no reference reveals: names of references begin with a context id.
    pub fn number(&self, name: &str) -> u128 {
        pith_crypto::name_mac::number(&self.0, name)
    }
}

impl fmt::Debug for ReferenceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReferenceKey(..)")
    }
}

/// Makes and checks references.
#[derive(Debug, Clone)]
pub struct References(NameMac);

impl References {
    /// Under that key.
    pub fn new(key: &ReferenceKey) -> Self {
        Self(NameMac::new(&key.0))
    }

    /// The reference of a name: the name and its MAC. The name has no '.'.
    pub fn of_name(&self, name: &str) -> String {
        format!("{name}.{:016x}", self.0.of(name))
    }

    /// The name in a reference of this installation.
    pub fn name<'a>(&self, reference: &'a str) -> Option<&'a str> {
        let (name, mac) = split(reference)?;
        (u64::from_str_radix(mac, 16) == Ok(self.0.of(name))).then_some(name)
    }

    /// The reference of a context.
    pub fn of_id(&self, id: ContextId) -> String {
        self.of_name(&id.to_string())
    }

    /// The context in such a reference.
    pub fn id(&self, reference: &str) -> Option<ContextId> {
        self.name(reference)?.parse().ok()
    }
}

/// Name and MAC.
fn split(reference: &str) -> Option<(&str, &str)> {
    reference.split_once('.').filter(|(_, mac)| mac.len() == 16)
}

/// The context that a reference of this form names, whatever its MAC: for routing. The NF checks the MAC.
pub fn context_in_reference(reference: &str) -> Option<ContextId> {
    let (name, _) = split(reference)?;
    name.split('-').next()?.parse().ok()
}

/// The block of that context.
pub fn block_in_reference(reference: &str) -> Option<BlockId> {
    context_in_reference(reference).map(|id| id.block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_of_this_installation_names_its_context_and_no_other_does() {
        let id = ContextId { block: BlockId::new(0x1f).unwrap(), number: 2 };
        let references = References::new(&ReferenceKey::new([1; 32]));
        let reference = references.of_id(id);
        assert_eq!(references.id(&reference), Some(id));
        let (name, mac) = reference.split_once('.').unwrap();
        let next = format!("1f00000003.{mac}");
        let short = format!("{name}.{}", &mac[1..]);
        let signed = format!("{name}.+{}", &mac[1..]);
        for guess in [name, &next, &short, &signed, "", ".", "1f00000002.0000000000000000"] {
            assert_eq!(references.id(guess), None, "{guess}");
        }
        assert_eq!(
            References::new(&ReferenceKey::new([2; 32])).id(&reference),
            None,
            "of another installation"
        );
        let restarted = References::new(&ReferenceKey::new([1; 32]));
        assert_eq!(restarted.id(&reference), Some(id), "the same after a restart");
    }

    #[test]
    fn the_block_of_a_reference_is_read_without_the_key() {
        let references = References::new(&ReferenceKey::new([1; 32]));
        let id = ContextId { block: BlockId::new(0x3ff).unwrap(), number: 7 };
        for reference in [references.of_id(id), references.of_name(&format!("{id}-5-9"))] {
            assert_eq!(context_in_reference(&reference), Some(id), "{reference}");
            assert_eq!(block_in_reference(&reference), Some(id.block), "{reference}");
        }
        for foreign in ["imsi-999700000000001", "1", "", ".", "3ff00000007", "zz.0000000000000000", "77-5"] {
            assert_eq!(context_in_reference(foreign), None, "{foreign}");
        }
    }
}
