//! Changes of a resource (TS 29.571): JSON Patch in requests, and changes in notifications.

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
    /// The operation.
    pub op: PatchOperation,
    /// The target: a JSON pointer (RFC 6901).
    pub path: String,
    /// The source of `copy` and `move`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The value of `add`, `replace` and `test`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "some_value", default)]
    pub value: Option<Value>,
}

impl fmt::Debug for PatchItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.op, self.path)
    }
}

/// `null` is a value and not the same as an absent member.
fn some_value<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    serde::Deserialize::deserialize(deserializer).map(Some)
}

impl PatchItem {
    /// An operation without a value.
    pub fn new(op: PatchOperation, path: &str) -> Self {
        Self { op, path: path.into(), from: None, value: None }
    }

    /// Replaces a value.
    pub fn replace(path: &str, value: impl Into<Value>) -> Self {
        Self { value: Some(value.into()), ..Self::new(PatchOperation::Replace, path) }
    }

    /// Adds or replaces a member.
    pub fn add(path: &str, value: impl Into<Value>) -> Self {
        Self { value: Some(value.into()), ..Self::new(PatchOperation::Add, path) }
    }

    /// Makes the whole patch fail if the value is different (RFC 6902 4.6).
    pub fn test(path: &str, value: impl Into<Value>) -> Self {
        Self { value: Some(value.into()), ..Self::new(PatchOperation::Test, path) }
    }

    /// Removes a member.
    pub fn remove(path: &str) -> Self {
        Self::new(PatchOperation::Remove, path)
    }
}

record! {
    /// The operations of a patch that were not applied (TS 29.571).
    PatchResult {
        required {
            /// A report for each operation that was not applied, at least one.
            report: Vec<ReportItem>,
        }
    }
}

record! {
    /// An operation of a patch that was not applied (TS 29.571).
    ReportItem {
        required {
            /// The target: a JSON pointer.
            path: String,
        }
        optional {
            /// The reason.
            reason: String,
        }
    }
}

open_enum! {
    /// The kind of a member's change (TS 29.571).
    ChangeType {
        Add = "ADD",
        Move = "MOVE",
        Remove = "REMOVE",
        Replace = "REPLACE",
    }
}

/// A change in a notification (TS 29.571). `Debug` hides the values.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeItem {
    /// The kind of change.
    pub op: ChangeType,
    /// The member: a JSON pointer.
    pub path: String,
    /// The source of a move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The previous value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orig_value: Option<Value>,
    /// The new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_value: Option<Value>,
}

impl ChangeItem {
    /// The replacement of a member's value.
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
    /// Changes of one resource in a notification (TS 29.571).
    NotifyItem {
        required {
            /// The URI of the subscribed resource.
            resource_id: ResourceUri,
            /// The changes, at least one.
            changes: Vec<ChangeItem>,
        }
    }
}
