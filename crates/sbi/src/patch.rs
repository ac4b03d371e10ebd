//! JSON Patch (RFC 6902) on a resource: all of it is done, or nothing.

use crate::Result;
use crate::common::{PatchItem, PatchOperation};
use crate::problem::{Cause, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The resource after the patch. What can't be done, or leaves no resource of that type, is
/// MODIFICATION_NOT_ALLOWED (403).
pub fn apply<T: Serialize + DeserializeOwned>(resource: &T, patch: &[PatchItem]) -> Result<T> {
    let value = serde_json::to_value(resource).map_err(Problem::system_failure)?;
    let patched = apply_to_value(value, patch)?;
    serde_json::from_value(patched).map_err(|error| refused(&error.to_string()))
}

/// The document after the patch.
pub fn apply_to_value(mut document: Value, patch: &[PatchItem]) -> Result<Value> {
    for item in patch {
        step(&mut document, item).ok_or_else(|| refused(&item.path))?;
    }
    Ok(document)
}

fn refused(what: &str) -> Box<Problem> {
    Problem::new(Cause::ModificationNotAllowed).detail(what).into()
}

/// Does one operation; `None` if it can't be done.
fn step(document: &mut Value, item: &PatchItem) -> Option<()> {
    let path = item.path.as_str();
    match &item.op {
        PatchOperation::Add => add(document, path, item.value.clone()?),
        PatchOperation::Remove => remove(document, path).map(drop),
        PatchOperation::Replace => {
            *document.pointer_mut(path)? = item.value.clone()?;
            Some(())
        }
        PatchOperation::Move => {
            let from = item.from.as_deref()?;
            let within = path.strip_prefix(from).is_some_and(|rest| rest.starts_with('/'));
            let value = if within { None } else { remove(document, from) };
            add(document, path, value?)
        }
        PatchOperation::Copy => {
            let value = document.pointer(item.from.as_deref()?)?.clone();
            add(document, path, value)
        }
        PatchOperation::Test => (document.pointer(path) == item.value.as_ref()).then_some(()),
        PatchOperation::Other(_) => None,
    }
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

/// A pointer to the parent, and the name of the member or the number of the item in it.
fn split(path: &str) -> Option<(&str, String)> {
    let (parent, name) = path.rsplit_once('/')?;
    Some((parent, name.replace("~1", "/").replace("~0", "~")))
}

/// The number of an item, without leading zeros (RFC 6901 section 4).
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

    /// RFC 6902 Appendix A, by its numbers.
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
            // A.12: no parent; A.14: escapes; A.15: a number is no string; A.16: at the end
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
    fn what_can_not_be_done_is_refused() {
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

    #[test]
    fn a_patch_that_leaves_no_resource_is_refused_as_a_whole() {
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
