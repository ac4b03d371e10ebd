//! Predefined rules: configured rules that an SMF activates by name (TS 29.244 5.19).
//!
//! A PDR that activates predefined rules becomes one PDR for each. Source, precedence, QERs and URRs are the
//! activating PDR's; filters and further actions are the configuration's.

use pith_pfcp::IeType;
use pith_pfcp::ie::{self, Cause, FailedRuleId};
use pith_pfcp::rules::CreatePdr;

use crate::contract::{Action, Far, FarId, Gates, Pdr, Qer, QerId, Rates, SdfFilter};
use crate::rejection::Rejection;

/// Ids of predefined FARs and QERs have the top bit set (TS 29.244 8.2.74, 8.2.75).
const PREDEFINED: u32 = 1 << 31;

/// A predefined rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredefinedRule {
    /// The name by which an SMF activates it.
    pub name: String,
    /// A packet must match one of these; empty: all match.
    pub filters: Vec<SdfFilter>,
    /// Whether the rule has a predefined FAR.
    pub action: PredefinedAction,
    /// The rates of a predefined QER, shared by all matching packets of a session.
    pub mbr: Option<Rates>,
}

/// The action of a predefined rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredefinedAction {
    /// The FAR of the activating PDR applies.
    AsTheSessionSays,
    /// A predefined FAR drops packets.
    Drop,
}

/// All predefined rules of a UPF; the index of a rule is the id of its FAR and QER.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PredefinedRules(pub Vec<PredefinedRule>);

impl PredefinedRules {
    fn ids(&self) -> impl Iterator<Item = (u32, &PredefinedRule)> {
        (PREDEFINED + 1..).zip(&self.0)
    }

    /// Whether there is a predefined FAR of that id.
    pub(crate) fn has_far(&self, id: ie::FarId) -> bool {
        self.fars().any(|far| far.id.0 == id.0)
    }

    /// Whether there is a predefined QER of that id.
    pub(crate) fn has_qer(&self, id: ie::QerId) -> bool {
        self.qers().any(|qer| qer.id.0 == id.0)
    }

    /// All predefined FARs.
    pub(crate) fn fars(&self) -> impl Iterator<Item = Far> {
        let dropping = self.ids().filter(|(_, rule)| rule.action == PredefinedAction::Drop);
        dropping.map(|(id, _)| Far { id: FarId(id), action: Action::Drop })
    }

    /// All predefined QERs.
    pub(crate) fn qers(&self) -> impl Iterator<Item = Qer> {
        let limiting = self.ids().filter(|(_, rule)| rule.mbr.is_some());
        limiting.map(|(id, rule)| Qer {
            id: QerId(id),
            gates: Gates::OPEN,
            mbr: rule.mbr,
            gbr: None,
            qfi: None,
            rqi: false,
        })
    }

    /// Whether a PDR that activates rules needs no FAR of its own: each of them has one.
    pub(crate) fn suffice_for(&self, pdr: &CreatePdr) -> bool {
        let names = &pdr.activate_predefined_rules;
        let drops = |name: &ie::PredefinedRulesName| {
            self.find(name).is_some_and(|(_, rule)| rule.action == PredefinedAction::Drop)
        };
        !names.is_empty() && names.iter().all(drops) && pdr.pdi.sdf_filters.is_empty()
    }

    /// Adds the rules of a PDR: the predefined rules that it activates, and the PDR itself if it activates none or has filters.
    pub(crate) fn activate(&self, pdr: &CreatePdr, base: Pdr, pdrs: &mut Vec<Pdr>) -> Result<(), Rejection> {
        let failed = Rejection::rule(FailedRuleId::Pdr(pdr.pdr_id)).with_cause(Cause::UnknownPredefinedRule);
        let names = &pdr.activate_predefined_rules;
        for name in names {
            let found = self.find(name).ok_or(failed.because_of(IeType::ACTIVATE_PREDEFINED_RULES))?;
            pdrs.push(apply(found, &base));
        }
        if names.is_empty() || !base.filters.is_empty() {
            pdrs.push(base);
        }
        Ok(())
    }

    fn find(&self, name: &ie::PredefinedRulesName) -> Option<(u32, &PredefinedRule)> {
        self.ids().find(|(_, rule)| rule.name.as_bytes() == name.0)
    }
}

fn apply((id, rule): (u32, &PredefinedRule), base: &Pdr) -> Pdr {
    let far = match rule.action {
        PredefinedAction::AsTheSessionSays => base.far,
        PredefinedAction::Drop => FarId(id),
    };
    let qers = base.qers.iter().copied().chain(rule.mbr.map(|_| QerId(id))).collect();
    Pdr { filters: rule.filters.clone(), far, qers, ..base.clone() }
}
