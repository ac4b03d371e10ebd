//! Changes to documents that NFs wrote: JSON Patch (RFC 6902) as far as the SBI uses it.

use pith_sbi::common::{PatchItem, PatchOperation};
use pith_sbi::{Cause, Problem};
use serde_json::Value;

/// The document after the patch; nothing of the patch is done if a part of it can't be.
pub(super) fn patch(document: &str, patch: &[PatchItem]) -> Result<String, Problem> {
    let mut value: Value = serde_json::from_str(document).map_err(Problem::system_failure)?;
    for item in patch {
        apply(&mut value, item)?;
    }
    Ok(value.to_string())
}

fn apply(document: &mut Value, item: &PatchItem) -> Result<(), Problem> {
    let refused = || Problem::new(Cause::ModificationNotAllowed).detail(&item.path);
    let (parent, name) = item.path.rsplit_once('/').ok_or_else(refused)?;
    let members = document.pointer_mut(parent).and_then(Value::as_object_mut).ok_or_else(refused)?;
    let name = name.replace("~1", "/").replace("~0", "~");
    match (&item.op, &item.value) {
        (PatchOperation::Add, Some(value)) => {
            members.insert(name, value.clone());
        }
        (PatchOperation::Replace, Some(value)) => {
            *members.get_mut(&name).ok_or_else(refused)? = value.clone();
        }
        (PatchOperation::Remove, _) => {
            members.remove(&name).ok_or_else(refused)?;
        }
        _ => return Err(refused()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_added_replaced_and_removed() {
        let items = [PatchItem::add("/b", 2), PatchItem::replace("/a", 3), PatchItem::remove("/c")];
        assert_eq!(patch(r#"{"a":1,"c":0}"#, &items).unwrap(), r#"{"a":3,"b":2}"#);
    }

    #[test]
    fn what_is_not_there_can_not_be_replaced() {
        for item in [
            PatchItem::replace("/x", 1),
            PatchItem::remove("/x"),
            PatchItem::add("/x/y", 1),
            PatchItem::add("", 1),
        ] {
            assert_eq!(patch("{}", &[item]).unwrap_err().status, 403);
        }
    }
}
