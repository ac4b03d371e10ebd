//! Mobility restrictions of a UE, as the AMF sends them (TS 38.413 9.3.1.85). The simulated gNB checks that they permit what the AMF
//! requests in its own tracking area.

use super::Gnb;
use pith_ngap::MobilityRestrictions;

impl Gnb {
    /// Checks a list against the gNB's tracking area; with `has_sessions` the AMF requests user plane resources in the same message.
    pub(super) fn check_restrictions(&mut self, list: Option<&MobilityRestrictions>, has_sessions: bool) {
        let Some(list) = list else { return };
        let own = self.settings.tai();
        let clause = "TS 38.413 9.3.1.85";
        if list.serving_plmn != own.plmn_id && !list.equivalent_plmns.contains(&own.plmn_id) {
            self.violation(
                clause,
                format!("the gNB's {} is neither serving nor equivalent PLMN", own.plmn_id),
            );
        }
        let forbidden = list.forbidden_areas.iter().filter(|(plmn, _)| *plmn == own.plmn_id);
        if forbidden.flat_map(|(_, tacs)| tacs).any(|tac| *tac == own.tac) {
            self.violation(clause, format!("service in the forbidden area {}", own.tac));
        }
        let mut service = list.service_areas.iter().filter(|area| area.plmn == own.plmn_id);
        let excludes = service.any(|area| {
            let is_missing = !area.allowed.is_empty() && !area.allowed.contains(&own.tac);
            is_missing || area.not_allowed.contains(&own.tac)
        });
        if excludes && has_sessions {
            self.violation(
                "TS 23.501 5.3.4.1.1",
                format!("user plane outside the service area, in {}", own.tac),
            );
        }
        let mut areas = list.service_areas.iter();
        if areas.any(|area| area.allowed.is_empty() == area.not_allowed.is_empty()) {
            self.violation(clause, "a service area has either allowed or not allowed tracking areas");
        }
    }
}
