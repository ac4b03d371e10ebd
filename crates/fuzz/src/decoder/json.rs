//! JSON of peers, and patches of it.

use crate::target::{CheckFailed, ensure};
use pith_sbi::common::PatchItem;
use pith_sbi::json::{self, Bounds, Violation};
use pith_sbi::patch;
use serde_json::Value;

/// JSON within the limits of the check is within them after parsing; the parser refuses what the
/// check calls invalid.
pub fn document(input: &[u8]) -> Result<(), CheckFailed> {
    let parsed = serde_json::from_slice::<Value>(input);
    match (json::check(input, &json::MESSAGE), parsed) {
        (Ok(()), Ok(value)) => {
            let (depth, nodes) = size(&value);
            let Bounds { depth: deepest, nodes: most } = json::MESSAGE;
            ensure(depth <= deepest && nodes <= most, || format!("{depth} levels, {nodes} values"))
        }
        (Err(Violation::Syntax(at)), Ok(_)) => Err(CheckFailed(format!("JSON, but refused at {at}"))),
        _ => Ok(()),
    }
}

/// `[document, patch]`: the result of the patch is within the limits of a document.
pub fn patched(input: &[u8]) -> Result<(), CheckFailed> {
    if json::check(input, &json::MESSAGE).is_err() {
        return Ok(());
    }
    let Ok((document, items)) = serde_json::from_slice::<(Value, Vec<PatchItem>)>(input) else {
        return Ok(());
    };
    match patch::apply_to_value(document, &items) {
        Ok(value) => {
            let (depth, nodes) = size(&value);
            // The document may have the depth of a message, plus one for the list that contains it here.
            let sound = depth <= json::MESSAGE.depth + 1 && nodes <= json::MESSAGE.nodes;
            ensure(sound, || format!("{depth} levels, {nodes} values"))
        }
        Err(problem) => ensure(matches!(problem.status, 403 | 413), || problem.to_string()),
    }
}

/// The depth of arrays and objects, and the number of values.
fn size(value: &Value) -> (usize, usize) {
    let inner: Vec<_> = match value {
        Value::Array(items) => items.iter().map(size).collect(),
        Value::Object(members) => members.values().map(size).collect(),
        _ => return (0, 1),
    };
    let depth = inner.iter().map(|(depth, _)| depth).max().copied().unwrap_or(0);
    (depth + 1, inner.iter().map(|(_, nodes)| nodes).sum::<usize>() + 1)
}
