//! Access and mobility policies (TS 29.507 4.2.2).

use super::{Context, Pcf, not_found};
use crate::kit::{Caller, Owner};
use pith_sbi::common::SupportedFeatures;
use pith_sbi::npcf_ampolicycontrol::{
    PolicyAssociation, PolicyAssociationRequest, PolicyAssociationUpdateRequest, PolicyUpdate,
};
use pith_sbi::{Reply, Response, Uri};

/// The policy for a UE: it decides no UE-AMBR, RFSP index or service area, so that the AMF enforces the subscribed ones, and follows their
/// changes (TS 29.507 4.2.2.3).
pub(super) fn decide() -> PolicyAssociation {
    PolicyAssociation::new(SupportedFeatures(0))
}

/// An update without a change of policy (TS 29.507 4.2.3.2).
fn update(resource: Uri) -> PolicyUpdate {
    PolicyUpdate::new(resource)
}

impl Pcf {
    /// Npcf_AMPolicyControl_Update (TS 29.507 4.2.3.1). An AMF that names itself, and a URI for notifications, goes on with the association of
    /// the AMF from which the UE's context came: it has the reference from that AMF. AMFs that have had the UE's context are
    /// trusted; only AMFs may request this, and only with a URI of their own.
    pub(super) fn update_access(
        &mut self,
        id: &str,
        from: Caller,
        body: PolicyAssociationUpdateRequest,
    ) -> Reply {
        let key = self.find_any(id)?;
        let association = self.associations.get_mut(key).ok_or_else(not_found)?;
        let Context::Access(_) = association.context else { return Err(not_found()) };
        let former = association.purpose();
        if body.notification_uri.is_none() || body.guami.is_none() {
            association.owner.check(from)?;
        } else {
            association.owner = Owner::of(from);
        }
        if let Context::Access(request) = &mut association.context {
            note(request, body);
        }
        let is_other = association.purpose() != former;
        if is_other {
            self.latest.remove(former, key);
            self.replace_former(key);
        }
        self.changed(key);
        Ok(Response::PolicyUpdate(Box::new(update(self.access_uri(key)))))
    }
}

/// What an update says is from now on that of the association.
fn note(request: &mut PolicyAssociationRequest, body: PolicyAssociationUpdateRequest) {
    if let Some(uri) = body.notification_uri {
        request.notification_uri = uri;
    }
    request.guami = body.guami.or(request.guami);
    request.rfsp = body.rfsp.or(request.rfsp);
    request.ue_ambr = body.ue_ambr.or(request.ue_ambr);
    request.user_loc = body.user_loc.or(request.user_loc.take());
    request.serv_area_res = body.serv_area_res.or(request.serv_area_res.take());
    if !body.allowed_snssais.is_empty() {
        request.allowed_snssais = body.allowed_snssais;
    }
}
