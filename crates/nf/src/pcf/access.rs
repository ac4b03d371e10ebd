//! Access and mobility policies (TS 29.507 4.2.2).

use pith_sbi::Uri;
use pith_sbi::common::SupportedFeatures;
use pith_sbi::npcf_ampolicycontrol::{PolicyAssociation, PolicyAssociationRequest, PolicyUpdate};

/// The policy that the AMF enforces: the subscribed values (TS 29.507 4.2.2.3).
pub(super) fn decide(context: &PolicyAssociationRequest) -> PolicyAssociation {
    let mut association = PolicyAssociation::new(SupportedFeatures(0));
    association.rfsp = context.rfsp;
    association.ue_ambr = context.ue_ambr;
    association.serv_area_res = context.serv_area_res.clone();
    association
}

/// An update without a change of policy (TS 29.507 4.2.3.2).
pub(super) fn update(resource: Uri) -> PolicyUpdate {
    PolicyUpdate::new(resource)
}
