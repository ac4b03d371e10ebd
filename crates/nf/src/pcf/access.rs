//! Access and mobility policies (TS 29.507 4.2.2).

use pith_sbi::Uri;
use pith_sbi::common::SupportedFeatures;
use pith_sbi::npcf_ampolicycontrol::{PolicyAssociation, PolicyAssociationRequest, PolicyUpdate};

/// What the AMF is to enforce: what the subscription says (TS 29.507 4.2.2.3).
pub(super) fn decide(context: &PolicyAssociationRequest) -> PolicyAssociation {
    let mut association = PolicyAssociation::new(SupportedFeatures(0));
    association.rfsp = context.rfsp;
    association.ue_ambr = context.ue_ambr;
    association.serv_area_res = context.serv_area_res.clone();
    association
}

/// Nothing changes (TS 29.507 4.2.3.2).
pub(super) fn update(resource: Uri) -> PolicyUpdate {
    PolicyUpdate::new(resource)
}
