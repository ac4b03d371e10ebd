//! Mobility restrictions of a UE (TS 23.501 5.3.4.1): from its subscription (TS 29.503 6.1.6.2.4), and from the PCF, whose service
//! area restriction takes the place of the subscribed one (TS 29.507 4.2.2.3.1).
//!
//! | restriction | effect at this AMF |
//! |---|---|
//! | NR, or the core network type 5GC | registration is rejected with #27 |
//! | forbidden area | registration is rejected with #12; no part of a registration area, no target of a handover |
//! | outside the service area | only registration, de-registration and the answer to paging (TS 24.501 5.3.5) |
//!
//! The gNB gets the restrictions in INITIAL CONTEXT SETUP REQUEST and HANDOVER REQUEST, and after a change in DOWNLINK NAS TRANSPORT (TS
//! 38.413 8.3.1.2, 8.4.2.2, 8.6.2.2). Areas of operator-defined codes (`areaCode`) and `maxNumOfTAs` are ignored.

use super::context::UeContext;
use super::error::RegistrationError;
use crate::kit::document::{pack_enum, pack_struct};
use pith_nas::ie::{PartialTaiList, ServiceArea as NasServiceArea, ServiceAreaList, TaiList};
use pith_ngap::{MobilityRestrictions, ServiceArea as NgapServiceArea};
use pith_sbi::common::{Area, CoreNetworkType, RatType, RestrictionType, ServiceAreaRestriction};
use pith_sbi::namf_communication as namf;
use pith_sbi::nudm_sdm::AccessAndMobilitySubscriptionData;
use pith_types::{Plmn, Tac, Tai};

/// TACs of a kind that are kept at most: as many as NGAP can send (maxnoofForbTACs, TS 38.413 9.3.1.85).
const MAX_TACS: usize = 4096;

/// Allowed or non-allowed areas that NGAP can send (maxnoofAllowedAreas, TS 38.413 9.3.1.85).
const MAX_NGAP_AREAS: usize = 16;

/// The restrictions of one UE in its serving PLMN. The default restricts nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Restrictions {
    /// RATs that are not allowed, in the bits of NGAP: E-UTRA 0x80, NR 0x40 (TS 38.413 9.3.1.85).
    rats: u8,
    /// The core network type 5GC is not allowed.
    core: bool,
    /// Forbidden tracking areas.
    forbidden: Vec<Tac>,
    /// Subscribed service area.
    subscribed: Option<ServiceArea>,
    /// The PCF's service area.
    policy: Option<ServiceArea>,
    /// Whether UE and gNB have got the current restrictions.
    delivery: Delivery,
}

/// Whether UE and gNB have got the current restrictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Delivery {
    #[default]
    Done,
    /// They have changed since the last message that had them.
    Changed,
    /// They are in a CONFIGURATION UPDATE COMMAND that the UE has not acknowledged.
    InCommand,
}

/// Tracking areas in which a UE gets service, or gets none.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServiceArea {
    /// The areas are the allowed ones, not the non-allowed ones.
    is_allowed: bool,
    tacs: Vec<Tac>,
}

pack_struct!(Restrictions { rats, core, forbidden, subscribed, policy, delivery });
pack_enum!(Delivery { 0 => Done, 1 => Changed, 2 => InCommand });
pack_struct!(ServiceArea { is_allowed, tacs });

impl ServiceArea {
    fn of(restriction: &ServiceAreaRestriction) -> Option<Self> {
        let is_allowed = match restriction.restriction_type.as_ref()? {
            RestrictionType::AllowedAreas => true,
            RestrictionType::NotAllowedAreas => false,
            RestrictionType::Other(_) => return None,
        };
        let tacs = tacs(&restriction.areas);
        (!tacs.is_empty()).then_some(Self { is_allowed, tacs })
    }

    fn permits(&self, tac: Tac) -> bool {
        self.tacs.binary_search(&tac).is_ok() == self.is_allowed
    }

    /// As a subscription has it.
    fn to_sbi(&self) -> ServiceAreaRestriction {
        let kind =
            if self.is_allowed { RestrictionType::AllowedAreas } else { RestrictionType::NotAllowedAreas };
        ServiceAreaRestriction {
            restriction_type: Some(kind),
            max_num_of_tas: None,
            areas: vec![Area { area_code: None, tacs: self.tacs.clone() }],
        }
    }
}

/// The tracking areas, each once, in ascending order.
fn tacs(areas: &[Area]) -> Vec<Tac> {
    let mut tacs: Vec<Tac> = areas.iter().flat_map(|area| &area.tacs).take(MAX_TACS).copied().collect();
    tacs.sort_unstable();
    tacs.dedup();
    tacs
}

impl Restrictions {
    /// The subscribed restrictions.
    fn of(data: &AccessAndMobilitySubscriptionData) -> Self {
        let bit = |rat: &RatType| match rat {
            RatType::Eutra => 0x80,
            RatType::Nr => 0x40,
            _ => 0,
        };
        Self {
            rats: data.rat_restrictions.iter().map(bit).fold(0, |all, bit| all | bit),
            core: data.core_network_type_restrictions.contains(&CoreNetworkType::FiveGc),
            forbidden: tacs(&data.forbidden_areas),
            subscribed: data.service_area_restriction.as_ref().and_then(ServiceArea::of),
            policy: None,
            delivery: Delivery::Done,
        }
    }

    fn service_area(&self) -> Option<&ServiceArea> {
        self.policy.as_ref().or(self.subscribed.as_ref())
    }

    /// Whether the UE may not use NR with 5GC in this network.
    const fn excludes_network(&self) -> bool {
        self.core || self.rats & 0x40 != 0
    }

    fn is_forbidden(&self, tac: Tac) -> bool {
        self.forbidden.binary_search(&tac).is_ok()
    }

    /// The service area list for a UE with that registration area, of at most 16 areas (TS 24.501 9.11.3.49). Outside its registration
    /// area the UE registers, so that the list need not go beyond it. `None`: service is allowed in the whole registration area, which
    /// is what the UE concludes from a REGISTRATION ACCEPT without a list (5.3.5.2).
    fn list(&self, registration_area: &[Tai]) -> Option<ServiceAreaList> {
        let area = self.service_area()?;
        let (allowed, other): (Vec<Tai>, Vec<Tai>) =
            registration_area.iter().partition(|tai| area.permits(tai.tac));
        if other.is_empty() {
            return None;
        }
        let allows = area.is_allowed && !allowed.is_empty();
        let parts = TaiList::of(if allows { &allowed } else { &other }).0;
        let part = |areas| NasServiceArea { allowed: allows, areas };
        Some(ServiceAreaList(parts.into_iter().map(part).collect()))
    }

    /// The list for the gNB. Of service areas with more areas than NGAP can send, it gets those of the registration area.
    fn for_gnb(
        &self,
        (plmn, equivalent): (Plmn, &[Plmn]),
        registration_area: &[Tai],
    ) -> MobilityRestrictions {
        let service = self.service_area().map(|area| {
            let in_area = |tac: &&Tac| registration_area.iter().any(|tai| tai.tac == **tac);
            let mut tacs: Vec<Tac> = area.tacs.iter().filter(in_area).copied().collect();
            let elsewhere = area.tacs.iter().filter(|tac| !in_area(tac)).copied();
            tacs.extend(elsewhere);
            tacs.truncate(MAX_NGAP_AREAS);
            let (allowed, not_allowed) =
                if area.is_allowed { (tacs, Vec::new()) } else { (Vec::new(), tacs) };
            NgapServiceArea { plmn, allowed, not_allowed }
        });
        MobilityRestrictions {
            serving_plmn: plmn,
            equivalent_plmns: equivalent.iter().take(15).copied().collect(),
            rat_restrictions: if self.rats == 0 { Vec::new() } else { vec![(plmn, self.rats)] },
            forbidden_areas: if self.forbidden.is_empty() {
                Vec::new()
            } else {
                vec![(plmn, self.forbidden.clone())]
            },
            service_areas: service.into_iter().collect(),
        }
    }

    /// Without the mark that they were not sent.
    fn content(&self) -> Self {
        Self { delivery: Delivery::Done, ..self.clone() }
    }
}

impl UeContext {
    /// Takes the restrictions of new subscription data; the PCF's service area stays, unless it is the one that was subscribed. Returns whether
    /// they have changed.
    pub(super) fn restrict(&mut self, data: Option<&AccessAndMobilitySubscriptionData>) -> bool {
        let former = self.restrictions.as_ref();
        let former = former.filter(|restrictions| restrictions.policy != restrictions.subscribed);
        let policy = former.and_then(|restrictions| restrictions.policy.clone());
        self.set_restrictions(Restrictions { policy, ..data.map(Restrictions::of).unwrap_or_default() })
    }

    /// Takes the PCF's service area. Returns whether the restrictions have changed.
    pub(super) fn restrict_by_policy(&mut self, restriction: Option<&ServiceAreaRestriction>) -> bool {
        let now = self.restrictions.as_deref().map(Restrictions::content).unwrap_or_default();
        self.set_restrictions(Restrictions { policy: restriction.and_then(ServiceArea::of), ..now })
    }

    /// Takes the restrictions that the source AMF of a handover has.
    pub(super) fn restrict_as_transferred(&mut self, context: &namf::UeContext) {
        self.restrict(Some(&AccessAndMobilitySubscriptionData {
            rat_restrictions: context.restricted_rat_list.clone(),
            forbidden_areas: context.forbidden_area_list.clone(),
            service_area_restriction: context.service_area_restriction.clone(),
            core_network_type_restrictions: context.restricted_core_nw_type_list.clone(),
            ..Default::default()
        }));
        // The target gNB gets them with HANDOVER REQUEST, and the UE has them.
        self.note_restrictions_sent();
    }

    /// The restrictions for the target AMF of a handover, with the service area in force.
    pub(super) fn describe_restrictions(&self, context: &mut namf::UeContext) {
        let Some(restrictions) = &self.restrictions else { return };
        let rats = [(0x80, RatType::Eutra), (0x40, RatType::Nr)].into_iter();
        context.restricted_rat_list =
            rats.filter(|(bit, _)| restrictions.rats & bit != 0).map(|(_, rat)| rat).collect();
        if !restrictions.forbidden.is_empty() {
            context.forbidden_area_list =
                vec![Area { area_code: None, tacs: restrictions.forbidden.clone() }];
        }
        context.service_area_restriction = restrictions.service_area().map(ServiceArea::to_sbi);
        if restrictions.core {
            context.restricted_core_nw_type_list = vec![CoreNetworkType::FiveGc];
        }
    }

    fn set_restrictions(&mut self, new: Restrictions) -> bool {
        let before = self.restrictions.take();
        let delivery = before.as_ref().map_or(Delivery::Done, |before| before.delivery);
        let has_changed = before.as_deref().map(Restrictions::content).unwrap_or_default() != new;
        let delivery = if has_changed { Delivery::Changed } else { delivery };
        let new = Restrictions { delivery, ..new };
        self.restrictions = (new != Restrictions::default()).then(|| Box::new(new));
        has_changed
    }

    /// UE and gNB have got the current restrictions, with the message that is sent.
    pub(super) fn note_restrictions_sent(&mut self) {
        let Some(restrictions) = &mut self.restrictions else { return };
        restrictions.delivery = Delivery::Done;
        if **restrictions == Restrictions::default() {
            self.restrictions = None;
        }
    }

    /// They are in a command that the UE is to acknowledge.
    pub(super) fn note_restrictions_in_command(&mut self) {
        if let Some(restrictions) = &mut self.restrictions {
            restrictions.delivery = Delivery::InCommand;
        }
    }

    /// The UE has acknowledged the command. Returns whether the restrictions are those that it had.
    pub(super) fn confirm_restrictions(&mut self) -> bool {
        let is_current = self.restrictions.as_ref().is_none_or(|it| it.delivery != Delivery::Changed);
        if is_current {
            self.note_restrictions_sent();
        }
        is_current
    }

    /// Whether UE and gNB have not got the current restrictions.
    pub(super) fn has_unsent_restrictions(&self) -> bool {
        self.restrictions.as_ref().is_some_and(|restrictions| restrictions.delivery != Delivery::Done)
    }

    /// Whether the UE may be registered where it is (TS 24.501 5.5.1.2.5).
    pub(super) fn check_restrictions(&self) -> Result<(), RegistrationError> {
        match &self.restrictions {
            Some(restrictions) if restrictions.excludes_network() => Err(RegistrationError::RatNotAllowed),
            _ if self.location.is_some_and(|location| self.is_forbidden_in(&location.tai)) => {
                Err(RegistrationError::ForbiddenArea)
            }
            _ => Ok(()),
        }
    }

    /// Whether the tracking area is a forbidden one.
    pub(super) fn is_forbidden_in(&self, tai: &Tai) -> bool {
        self.restrictions.as_ref().is_some_and(|restrictions| restrictions.is_forbidden(tai.tac))
    }

    /// Whether the UE may have service in the tracking area (TS 23.501 5.3.4.1.1).
    pub(super) fn has_service_in(&self, tai: &Tai) -> bool {
        let area = self.restrictions.as_ref().and_then(|restrictions| restrictions.service_area());
        !self.is_forbidden_in(tai) && area.is_none_or(|area| area.permits(tai.tac))
    }

    /// Whether the UE may have service where it is. Of a UE in CM-IDLE the AMF knows the registration area only.
    pub(super) fn has_service(&self) -> bool {
        if self.connection.is_none() && !self.registration_area.is_empty() {
            return self.registration_area.iter().any(|tai| self.has_service_in(tai));
        }
        self.location.is_none_or(|location| self.has_service_in(&location.tai))
    }

    /// Service Area List IE of REGISTRATION ACCEPT.
    pub(super) fn service_area_list(&self) -> Option<ServiceAreaList> {
        self.restrictions.as_ref()?.list(&self.registration_area)
    }

    /// Service Area List IE of CONFIGURATION UPDATE COMMAND, which replaces the UE's list: one that allows the whole network if service
    /// is no longer restricted (TS 24.501 9.11.3.49, type of list '11').
    pub(super) fn changed_service_area_list(&self) -> Option<ServiceAreaList> {
        let plmn = self.registration_area.first()?.plmn_id;
        let whole = NasServiceArea { allowed: true, areas: PartialTaiList::WholePlmn(plmn) };
        Some(self.service_area_list().unwrap_or_else(|| ServiceAreaList(vec![whole])))
    }

    /// Mobility Restriction List for the gNB; `None` if nothing is restricted, and nothing was.
    pub(super) fn mobility_restrictions(&self, equivalent: &[Plmn]) -> Option<MobilityRestrictions> {
        self.mobility_restrictions_in(self.location?.tai.plmn_id, equivalent)
    }

    /// As [`UeContext::mobility_restrictions`], with that network as the serving one.
    pub(super) fn mobility_restrictions_in(
        &self,
        plmn: Plmn,
        equivalent: &[Plmn],
    ) -> Option<MobilityRestrictions> {
        let restrictions = self.restrictions.as_ref()?;
        Some(restrictions.for_gnb((plmn, equivalent), &self.registration_area))
    }

    /// The subscribed service area, for the PCF.
    pub(super) fn subscribed_service_area(&self) -> Option<ServiceAreaRestriction> {
        self.restrictions.as_ref()?.subscribed.as_ref().map(ServiceArea::to_sbi)
    }
}
