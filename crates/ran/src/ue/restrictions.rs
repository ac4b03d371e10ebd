//! Service area restrictions (TS 24.501 5.3.5.2): outside its service area a UE registers, de-registers, releases sessions and answers
//! paging, and starts nothing else.

use super::{State, Ue};
use pith_nas::ie::{PartialTaiList, RegistrationKind, ServiceAreaList, TaiList};

impl Ue {
    /// Whether the UE may start a service request or a session where it is.
    pub(super) fn has_service(&self) -> bool {
        let Some(list) = &self.registration.service_area else { return true };
        let is_listed = list.0.iter().any(|part| part.areas.contains(&self.tai));
        let allows = list.0.first().is_none_or(|part| part.allowed);
        is_listed == allows
    }

    /// Checks a list of the network (TS 24.501 9.11.3.49).
    pub(super) fn check_service_area_list(&mut self, list: &ServiceAreaList) {
        let clause = "TS 24.501 9.11.3.49";
        let count = |part: &PartialTaiList| match part {
            PartialTaiList::NonConsecutive { tacs, .. } => tacs.len(),
            PartialTaiList::Consecutive { count, .. } => (*count).into(),
            PartialTaiList::SeveralPlmns(tais) => tais.len(),
            PartialTaiList::WholePlmn(_) => 1,
        };
        if list.0.iter().map(|part| count(&part.areas)).sum::<usize>() > 16 {
            self.violation(clause, "more than 16 tracking areas in the service area list");
        }
        let allowed = list.0.iter().filter(|part| part.allowed).count();
        if allowed != 0 && allowed != list.0.len() {
            self.violation(clause, "a service area list with allowed and with not allowed areas");
        }
    }

    /// 5GMM cause #28: the UE registers to get the list, over the connection if it has one (TS 24.501 5.6.1.5).
    pub(super) fn register_for_service_area(&mut self) {
        if self.state == State::Registered {
            self.begin_registration(RegistrationKind::MobilityUpdating);
        }
    }

    /// The areas of a CONFIGURATION UPDATE COMMAND, as far as it has them (TS 24.501 5.4.4.3).
    pub(super) fn take_areas(&mut self, area: Option<TaiList>, service_area: Option<ServiceAreaList>) {
        if let Some(list) = &service_area {
            self.check_service_area_list(list);
        }
        self.registration.tai_list = area.or(self.registration.tai_list.take());
        self.registration.service_area = service_area.or(self.registration.service_area.take());
    }
}
