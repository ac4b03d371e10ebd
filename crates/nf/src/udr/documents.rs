//! Changes of documents that NFs wrote: JSON Patch (RFC 6902).

use pith_sbi::Problem;
use pith_sbi::common::PatchItem;
use pith_sbi::nudm_sdm::SdmSubscription;
use serde_json::{Map, Value};

/// The document after the patch; if a part of the patch fails, nothing is changed.
pub(super) fn patch(document: &str, patch: &[PatchItem]) -> Result<String, Problem> {
    let members: Map<String, Value> = serde_json::from_str(document).map_err(Problem::system_failure)?;
    let patched = pith_sbi::patch::apply(&members, patch).map_err(|problem| *problem)?;
    Ok(Value::Object(patched).to_string())
}

/// A subscription after the patch, which must leave it one: the UDM reads all of a subscriber together.
pub(super) fn patch_subscription(document: &str, patch: &[PatchItem]) -> Result<String, Problem> {
    let known: SdmSubscription = serde_json::from_str(document).map_err(Problem::system_failure)?;
    let patched = pith_sbi::patch::apply(&known, patch).map_err(|problem| *problem)?;
    serde_json::to_string(&patched).map_err(Problem::system_failure)
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
    fn a_patch_is_json_patch() {
        let test = |value: u8| PatchItem {
            value: Some(value.into()),
            ..PatchItem::new(pith_sbi::common::PatchOperation::Test, "/a/0")
        };
        let items = [test(1), PatchItem::replace("/a/1", 3), PatchItem::add("/a/-", 4)];
        assert_eq!(patch(r#"{"a":[1,2]}"#, &items).unwrap(), r#"{"a":[1,3,4]}"#);
        assert_eq!(patch(r#"{"a":[1,2]}"#, &[test(2)]).unwrap_err().status, 403);
    }

    #[test]
    fn a_missing_member_can_not_be_replaced() {
        for item in [
            PatchItem::replace("/x", 1),
            PatchItem::remove("/x"),
            PatchItem::add("/x/y", 1),
            PatchItem::add("", 1),
        ] {
            assert_eq!(patch("{}", &[item]).unwrap_err().status, 403);
        }
    }

    #[test]
    fn a_patch_that_copies_the_document_into_itself_is_refused() {
        let copy = |n: u32| PatchItem {
            from: Some(String::new()),
            ..PatchItem::new(pith_sbi::common::PatchOperation::Copy, &format!("/{n}"))
        };
        let items: Vec<_> = (0..64).map(copy).collect();
        assert_eq!(patch(r#"{"a":"x"}"#, &items).unwrap_err().status, 413);
    }
}
