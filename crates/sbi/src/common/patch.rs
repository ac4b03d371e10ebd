//! Changes to a resource (TS 29.571): asked for as JSON Patch, and told to subscribers.

use crate::record::{open_enum, record};
use crate::uri::ResourceUri;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

open_enum! {
    /// Operations of JSON Patch (RFC 6902 section 4).
    PatchOperation {
        Add = "add",
        Copy = "copy",
        Move = "move",
        Remove = "remove",
        Replace = "replace",
        Test = "test",
    }
}

/// One operation of a JSON Patch (TS 29.571). `Debug` hides the value, which may be a key.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct PatchItem {
    /// What to do.
    pub op: PatchOperation,
    /// Where: a JSON pointer (RFC 6901).
    pub path: String,
    /// From where, of `copy` and `move`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// With what, of `add`, `replace` and `test`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "some_value", default)]
    pub value: Option<Value>,
}

impl fmt::Debug for PatchItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.op, self.path)
    }
}

/// `null` is a value like any other, not the absence of one.
fn some_value<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    serde::Deserialize::deserialize(deserializer).map(Some)
}

impl PatchItem {
    /// An operation without value.
    pub fn new(op: PatchOperation, path: &str) -> Self {
        Self { op, path: path.into(), from: None, value: None }
    }

    /// Puts a value in the place of another.
    pub fn replace(path: &str, value: impl Into<Value>) -> Self {
        Self { value: Some(value.into()), ..Self::new(PatchOperation::Replace, path) }
    }

    /// Adds a member, or puts another value in its place.
    pub fn add(path: &str, value: impl Into<Value>) -> Self {
        Self { value: Some(value.into()), ..Self::new(PatchOperation::Add, path) }
    }

    /// Lets the patch fail, all of it, where another value is there (RFC 6902 4.6).
    pub fn test(path: &str, value: impl Into<Value>) -> Self {
        Self { value: Some(value.into()), ..Self::new(PatchOperation::Test, path) }
    }

    /// Takes a member away.
    pub fn remove(path: &str) -> Self {
        Self::new(PatchOperation::Remove, path)
    }
}

record! {
    /// What of a patch was not done (TS 29.571).
    PatchResult {
        required {
            /// A report for each operation that was not done, at least one.
            report: Vec<ReportItem>,
        }
    }
}

record! {
    /// An operation of a patch that was not done (TS 29.571).
    ReportItem {
        required {
            /// Where it should have been: a JSON pointer.
            path: String,
        }
        optional {
            /// Why it was not.
            reason: String,
        }
    }
}

open_enum! {
    /// What happened to a member (TS 29.571).
    ChangeType {
        Add = "ADD",
        Move = "MOVE",
        Remove = "REMOVE",
        Replace = "REPLACE",
    }
}

/// A change that a subscriber is told of (TS 29.571). `Debug` hides the values.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeItem {
    /// What happened.
    pub op: ChangeType,
    /// To which member: a JSON pointer.
    pub path: String,
    /// From where, of a move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The value before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orig_value: Option<Value>,
    /// The value now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_value: Option<Value>,
}

impl ChangeItem {
    /// A member has another value now.
    pub fn replace(path: &str, new_value: impl Into<Value>) -> Self {
        let new_value = Some(new_value.into());
        Self { op: ChangeType::Replace, path: path.into(), from: None, orig_value: None, new_value }
    }
}

impl fmt::Debug for ChangeItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.op, self.path)
    }
}

record! {
    /// Changes of one resource that a subscriber is told of (TS 29.571).
    NotifyItem {
        required {
            /// The URI of the resource, as it was subscribed to.
            resource_id: ResourceUri,
            /// Its changes, at least one.
            changes: Vec<ChangeItem>,
        }
    }
}
