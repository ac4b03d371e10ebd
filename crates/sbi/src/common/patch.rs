//! Changes to a resource (TS 29.571): asked for as JSON Patch, and told to subscribers.

use crate::record::{open_enum, record};
use serde_json::Value;

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

record! {
    /// One operation of a JSON Patch (TS 29.571).
    PatchItem {
        required {
            /// What to do.
            op: PatchOperation,
            /// Where: a JSON pointer (RFC 6901).
            path: String,
        }
        optional {
            /// From where, of `copy` and `move`.
            from: String,
            /// With what, of `add`, `replace` and `test`.
            #[serde(deserialize_with = "some_value", default)]
            value: Value,
        }
    }
}

/// `null` is a value like any other, not the absence of one.
fn some_value<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    serde::Deserialize::deserialize(deserializer).map(Some)
}

impl PatchItem {
    /// Puts a value in the place of another.
    pub fn replace(path: &str, value: impl Into<Value>) -> Self {
        Self { value: Some(value.into()), ..Self::new(PatchOperation::Replace, path) }
    }

    /// Adds a member, or puts another value in its place.
    pub fn add(path: &str, value: impl Into<Value>) -> Self {
        Self { value: Some(value.into()), ..Self::new(PatchOperation::Add, path) }
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

record! {
    /// A change that a subscriber is told of (TS 29.571).
    ChangeItem {
        required {
            /// What happened.
            op: ChangeType,
            /// To which member: a JSON pointer.
            path: String,
        }
        optional {
            /// From where, of a move.
            from: String,
            /// The value before.
            orig_value: Value,
            /// The value now.
            new_value: Value,
        }
    }
}

record! {
    /// Changes of one resource that a subscriber is told of (TS 29.571).
    NotifyItem {
        required {
            /// The URI of the resource, as it was subscribed to.
            resource_id: String,
            /// Its changes, at least one.
            changes: Vec<ChangeItem>,
        }
    }
}
