//! Access and mobility policies (TS 29.507 4.2.2).

use pith_sbi::Uri;
use pith_sbi::common::SupportedFeatures;
use pith_sbi::npcf_ampolicycontrol::{PolicyAssociation, PolicyUpdate};

/// The policy for a UE: it decides no UE-AMBR, RFSP index or service area, so that the AMF enforces the subscribed ones, and follows their
/// changes (TS 29.507 4.2.2.3).
pub(super) fn decide() -> PolicyAssociation {
    PolicyAssociation::new(SupportedFeatures(0))
}

/// An update without a change of policy (TS 29.507 4.2.3.2).
pub(super) fn update(resource: Uri) -> PolicyUpdate {
    PolicyUpdate::new(resource)
}
