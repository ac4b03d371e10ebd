//! JSON Patch (RFC 6902) of a resource, applied completely or not at all.

use crate::Result;
use crate::common::{PatchItem, PatchOperation};
use crate::json;
use crate::problem::{Cause, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The patched resource. An operation that is not possible, or an invalid result, is MODIFICATION_NOT_ALLOWED
/// (403).
pub fn apply<T: Serialize + DeserializeOwned>(resource: &T, patch: &[PatchItem]) -> Result<T> {
    let value = serde_json::to_value(resource).map_err(Problem::system_failure)?;
    let patched = apply_to_value(value, patch)?;
    serde_json::from_value(patched).map_err(|error| refused(&error.to_string()))
}

/// Largest number of operations in a patch: a heart-beat has at most two per service of an NF, and a profile
/// change one per member.
const OPERATIONS_MAX: usize = 128;
/// Largest number of values that a patch may add, sized for complete services of a profile with some 50
/// values each.
const ADDED_NODES_MAX: usize = 4096;
/// Largest size of names and strings that a patch may add, in octets.
const ADDED_OCTETS_MAX: usize = 256 << 10;
/// Largest size of names and strings in a document, in octets: that of a body (`sbi.max_body`).
const OCTETS_MAX: usize = 64 << 20;

/// The patched document. As `copy` can make a small patch grow without bound, the value that an operation
/// adds is measured before it is cloned: 413 (RFC 9110 15.5.14).
pub fn apply_to_value(mut document: Value, patch: &[PatchItem]) -> Result<Value> {
    if patch.len() > OPERATIONS_MAX {
        return Err(too_large(format_args!("more than {OPERATIONS_MAX} operations")));
    }
    let mut room = Room { nodes: json::MESSAGE.nodes, octets: OCTETS_MAX };
    room.take(&document, 0)?;
    room = Room { nodes: room.nodes.min(ADDED_NODES_MAX), octets: room.octets.min(ADDED_OCTETS_MAX) };
    for item in patch {
        step(&mut document, item, &mut room)?.ok_or_else(|| refused(&item.path))?;
    }
    Ok(document)
}

/// Applies a JSON Merge Patch (RFC 7396): objects are merged, `null` removes a member, any other value replaces. Both have the depth of a
/// message at most ([`json::MESSAGE`]), and the result is no larger than both together.
pub fn merge(document: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        document.clone_from(patch);
        return;
    };
    if !document.is_object() {
        *document = Value::Object(serde_json::Map::new());
    }
    let Value::Object(members) = document else { return };
    for (name, change) in changes {
        if change.is_null() {
            members.remove(name);
        } else {
            merge(members.entry(name.clone()).or_insert(Value::Null), change);
        }
    }
}

fn refused(what: &str) -> Box<Problem> {
    Problem::new(Cause::ModificationNotAllowed).detail(what).into()
}

fn too_large(what: impl std::fmt::Display) -> Box<Problem> {
    let mut problem = Problem::of_status(413).detail(format_args!("the patch, or its result, has {what}"));
    problem.details.cause = Some(Cause::ModificationNotAllowed);
    problem.into()
}

/// The remaining limits of a patch. Removed values do not increase them, so that they also bound the
/// processing time.
struct Room {
    nodes: usize,
    octets: usize,
}

impl Room {
    /// Subtracts a value that will be nested `depth` levels deep.
    fn take(&mut self, value: &Value, depth: usize) -> Result<()> {
        let within = json::MESSAGE;
        if depth > within.depth {
            return Err(too_large(format_args!("more than {} levels", within.depth)));
        }
        let nodes = || too_large("too many values");
        self.nodes = self.nodes.checked_sub(1).ok_or_else(nodes)?;
        match value {
            Value::String(text) => self.take_octets(text.len()),
            Value::Array(items) => items.iter().try_for_each(|item| self.take(item, depth + 1)),
            Value::Object(members) => members.iter().try_for_each(|(name, value)| {
                self.take_octets(name.len())?;
                self.take(value, depth + 1)
            }),
            _ => Ok(()),
        }
    }

    fn take_octets(&mut self, octets: usize) -> Result<()> {
        let large = || too_large("too many octets");
        self.octets = self.octets.checked_sub(octets).ok_or_else(large)?;
        Ok(())
    }

    /// Subtracts a value for this path.
    fn take_at(&mut self, path: &str, value: &Value) -> Result<()> {
        let levels = path.bytes().filter(|octet| *octet == b'/').count();
        self.take_octets(path.len())?;
        self.take(value, levels)
    }
}

/// Applies one operation; `None` if it is not possible.
fn step(document: &mut Value, item: &PatchItem, room: &mut Room) -> Result<Option<()>> {
    let path = item.path.as_str();
    let (given, from) = (item.value.as_ref(), item.from.as_deref());
    let value = match &item.op {
        PatchOperation::Add | PatchOperation::Replace | PatchOperation::Test => given,
        PatchOperation::Move | PatchOperation::Copy => from.and_then(|from| document.pointer(from)),
        PatchOperation::Remove => return Ok(remove(document, path).map(drop)),
        PatchOperation::Other(_) => None,
    };
    let Some(value) = value else { return Ok(None) };
    room.take_at(path, value)?;
    Ok(match &item.op {
        PatchOperation::Test => (document.pointer(path) == Some(value)).then_some(()),
        PatchOperation::Replace => {
            let value = value.clone();
            document.pointer_mut(path).map(|place| *place = value)
        }
        PatchOperation::Move => move_value(document, from.unwrap_or_default(), path),
        _ => {
            let value = value.clone();
            add(document, path, value)
        }
    })
}

fn move_value(document: &mut Value, from: &str, path: &str) -> Option<()> {
    let within = path.strip_prefix(from).is_some_and(|rest| rest.starts_with('/'));
    let value = if within { None } else { remove(document, from) };
    add(document, path, value?)
}

fn add(document: &mut Value, path: &str, value: Value) -> Option<()> {
    if path.is_empty() {
        *document = value;
        return Some(());
    }
    let (parent, name) = split(path)?;
    match document.pointer_mut(parent)? {
        Value::Object(members) => {
            members.insert(name, value);
        }
        Value::Array(items) if name == "-" => items.push(value),
        Value::Array(items) => {
            let at = index(&name).filter(|&at| at <= items.len())?;
            items.insert(at, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(document: &mut Value, path: &str) -> Option<Value> {
    let (parent, name) = split(path)?;
    match document.pointer_mut(parent)? {
        Value::Object(members) => members.remove(&name),
        Value::Array(items) => {
            let at = index(&name).filter(|&at| at < items.len())?;
            Some(items.remove(at))
        }
        _ => None,
    }
}

/// A pointer to the parent, and the member's name or item's index in it.
fn split(path: &str) -> Option<(&str, String)> {
    let (parent, name) = path.rsplit_once('/')?;
    Some((parent, name.replace("~1", "/").replace("~0", "~")))
}

/// The index of an item, without leading zeros (RFC 6901 section 4).
fn index(name: &str) -> Option<usize> {
    let digits = !name.is_empty() && name.bytes().all(|digit| digit.is_ascii_digit());
    let canonical = digits && (name == "0" || !name.starts_with('0'));
    canonical.then(|| name.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(document: Value, patch: Value) -> Option<Value> {
        let patch: Vec<PatchItem> = serde_json::from_value(patch).expect("a patch");
        apply_to_value(document, &patch).ok()
    }

    /// RFC 6902 Appendix A, with its numbering.
    #[test]
    fn the_examples_of_rfc_6902() {
        let cases = [
            // A.1 to A.4: add and remove, of members and of items
            (
                json!({"foo": "bar"}),
                json!([{"op": "add", "path": "/baz", "value": "qux"}]),
                Some(json!({"baz": "qux", "foo": "bar"})),
            ),
            (
                json!({"foo": ["bar", "baz"]}),
                json!([{"op": "add", "path": "/foo/1", "value": "qux"}]),
                Some(json!({"foo": ["bar", "qux", "baz"]})),
            ),
            (
                json!({"baz": "qux", "foo": "bar"}),
                json!([{"op": "remove", "path": "/baz"}]),
                Some(json!({"foo": "bar"})),
            ),
            (
                json!({"foo": ["bar", "qux", "baz"]}),
                json!([{"op": "remove", "path": "/foo/1"}]),
                Some(json!({"foo": ["bar", "baz"]})),
            ),
            // A.5 to A.7: replace and move
            (
                json!({"baz": "qux"}),
                json!([{"op": "replace", "path": "/baz", "value": "boo"}]),
                Some(json!({"baz": "boo"})),
            ),
            (
                json!({"foo": {"bar": 1}, "qux": {}}),
                json!([{"op": "move", "from": "/foo/bar", "path": "/qux/thud"}]),
                Some(json!({"foo": {}, "qux": {"thud": 1}})),
            ),
            (
                json!({"foo": ["all", "grass", "cows", "eat"]}),
                json!([{"op": "move", "from": "/foo/1", "path": "/foo/3"}]),
                Some(json!({"foo": ["all", "cows", "eat", "grass"]})),
            ),
            // A.8, A.9: test
            (
                json!({"baz": "qux", "foo": ["a", 2]}),
                json!([{"op": "test", "path": "/foo/1", "value": 2}]),
                Some(json!({"baz": "qux", "foo": ["a", 2]})),
            ),
            (json!({"baz": "qux"}), json!([{"op": "test", "path": "/baz", "value": "bar"}]), None),
            // A.12: no parent; A.14: escapes; A.15: a number is not a string; A.16: append
            (json!({"foo": "bar"}), json!([{"op": "add", "path": "/baz/bat", "value": 1}]), None),
            (
                json!({"/": 9, "~1": 10}),
                json!([{"op": "test", "path": "/~01", "value": 10}]),
                Some(json!({"/": 9, "~1": 10})),
            ),
            (json!({"~1": 10}), json!([{"op": "test", "path": "/~01", "value": "10"}]), None),
            (
                json!({"foo": ["bar"]}),
                json!([{"op": "add", "path": "/foo/-", "value": ["abc"]}]),
                Some(json!({"foo": ["bar", ["abc"]]})),
            ),
        ];
        for (document, patch, expected) in cases {
            assert_eq!(patched(document, patch.clone()), expected, "{patch}");
        }
    }

    #[test]
    fn impossible_json_patches_are_refused() {
        for patch in [
            json!([{"op": "replace", "path": "/x", "value": 1}]),
            json!([{"op": "remove", "path": ""}]),
            json!([{"op": "remove", "path": "x"}]),
            json!([{"op": "add", "path": "/a/01", "value": 1}]),
            json!([{"op": "add", "path": "/a/9", "value": 1}]),
            json!([{"op": "add", "path": "/b"}]),
            json!([{"op": "move", "from": "/a", "path": "/a/0"}]),
            json!([{"op": "copy", "path": "/b"}]),
            json!([{"op": "merge", "path": "/a"}]),
        ] {
            assert_eq!(patched(json!({"a": [0]}), patch.clone()), None, "{patch}");
        }
    }

    /// Each `copy` of the whole document doubles its size: 16 of them exhausted the memory.
    #[test]
    fn a_patch_beyond_its_limits_is_refused_before_it_is_applied() {
        let status = |document: Value, patch: Vec<PatchItem>| match apply_to_value(document, &patch) {
            Ok(_) => 200,
            Err(problem) => problem.status,
        };
        let copy = |from: &str, path: String| PatchItem {
            from: Some(from.into()),
            ..PatchItem::new(PatchOperation::Copy, &path)
        };
        let doubling = |count: usize| (0..count).map(|n| copy("", format!("/{n}"))).collect::<Vec<_>>();
        assert_eq!(status(json!({"a": 1}), doubling(8)), 200);
        assert_eq!(status(json!({"a": 1}), doubling(64)), 413);
        let nesting = (0..100).map(|_| copy("", "/a".into())).collect();
        assert_eq!(status(json!({}), nesting), 413);
        let strings = (0..100).map(|n| copy("/a", format!("/{n}"))).collect();
        assert_eq!(status(json!({"a": "x".repeat(100_000)}), strings), 413);
        let again = |path: &str| [PatchItem::remove(path), copy("/a", path.into())];
        let work = (0..50).flat_map(|_| again("/b")).collect();
        assert_eq!(status(json!({"a": vec![0; 10_000], "b": 0}), work), 413);
        let many = (0..6_000).map(|n| PatchItem::add(&format!("/{n}"), 1)).collect();
        assert_eq!(status(json!({}), many), 413);
        let mut deep = json!(0);
        for _ in 0..200 {
            deep = json!([deep]);
        }
        assert_eq!(status(json!({}), vec![PatchItem::add("/a", deep)]), 413);
    }

    #[test]
    fn a_json_patch_that_removes_the_resource_is_refused() {
        use crate::nnrf_nfmanagement::{NfProfile, NfStatus};
        use crate::{NfInstanceId, NfType};
        let profile = NfProfile::new(NfInstanceId(1), NfType::Amf, NfStatus::Registered);
        let beat = [PatchItem::replace("/nfStatus", "SUSPENDED"), PatchItem::add("/load", 7)];
        let patched = apply(&profile, &beat).expect("a profile");
        assert_eq!((patched.nf_status, patched.load), (NfStatus::Suspended, Some(7)));
        let broken = [PatchItem::add("/load", 7), PatchItem::remove("/nfType")];
        assert_eq!(apply(&profile, &broken).expect_err("refused").status, 403);
    }
}
