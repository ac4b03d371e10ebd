//! Line and column of a setting in the file, by its path `smf.data_networks[1].pool`.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};
use std::fmt;

/// A YAML document reduced to its structure and positions.
pub struct Positions(Spanned<Node>);

enum Node {
    Scalar,
    List(Vec<Positions>),
    Map(Vec<(Spanned<String>, Positions)>),
}

impl Positions {
    /// Reads a well-formed document; `None` if it is empty.
    pub fn of(yaml: &str) -> Option<Self> {
        serde_saphyr::from_str(yaml).ok()
    }

    /// Line and column, starting at 1, of the setting with this path, or of the nearest enclosing section in
    /// the file.
    pub fn find(&self, path: &str) -> (u64, u64) {
        let line_and_column = |location: Location| (location.line(), location.column());
        let mut at = line_and_column(self.0.referenced);
        let mut node = self;
        for step in path.split(['.', '[']) {
            let next = match &node.0.value {
                Node::Scalar => None,
                Node::List(items) => index(step).and_then(|index| items.get(index)),
                Node::Map(entries) => {
                    entries.iter().find(|(key, _)| key.value == step).map(|(key, value)| {
                        at = line_and_column(key.referenced);
                        value
                    })
                }
            };
            match next {
                Some(next) => node = next,
                None => return at,
            }
            if !matches!(node.0.value, Node::Map(_)) {
                at = line_and_column(node.0.referenced);
            }
        }
        at
    }
}

/// The number in a path step such as `0]`.
fn index(step: &str) -> Option<usize> {
    step.strip_suffix(']')?.parse().ok()
}

impl<'de> Deserialize<'de> for Positions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

/// Visits a scalar and ignores its value.
macro_rules! scalars {
    ($($visit:ident: $type:ty),+) => {
        $(fn $visit<E>(self, _: $type) -> Result<Node, E> {
            Ok(Node::Scalar)
        })+
    };
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML")
    }

    scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128);
    scalars!(visit_f64: f64, visit_str: &str, visit_bytes: &[u8]);

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "a: 1\nlist:\n  - name: x\n    pool: y\n  - name: z\nmap: {k: v}\n";

    #[test]
    fn a_path_is_found_at_its_line_and_column() {
        let positions = Positions::of(YAML).unwrap();
        assert_eq!(positions.find("a"), (1, 4));
        assert_eq!(positions.find("list[0].pool"), (4, 11));
        assert_eq!(positions.find("list[1].name"), (5, 11));
        assert_eq!(positions.find("map.k"), (6, 10));
    }

    #[test]
    fn a_missing_setting_is_reported_at_its_section() {
        let positions = Positions::of(YAML).unwrap();
        assert_eq!(positions.find("map.missing"), (6, 1));
        assert_eq!(positions.find("nothing.at.all"), (1, 1));
        assert_eq!(positions.find("list[7].name").0, 3);
    }
}
