//! F-TEIDs of new rules: allocated here, or given by an SMF that restores a session (TS 29.244 5.5).

use std::collections::{BTreeMap, BTreeSet};

use pith_pfcp::IeType;
use pith_pfcp::ie::{Cause, FTeid, FailedRuleId, PdrId, TrafficEndpointId};

use super::provision::RuleSet;
use crate::config::GtpuAddress;
use crate::contract::{SessionId, Teid};
use crate::rejection::Rejection;
use crate::teids::Teids;

/// The F-TEIDs allocated for a request.
#[derive(Debug, Default)]
pub struct Allocation {
    /// F-TEIDs for PDRs with CHOOSE.
    pub pdrs: Vec<(PdrId, FTeid)>,
    /// F-TEIDs for traffic endpoints with CHOOSE.
    pub endpoints: Vec<(TrafficEndpointId, FTeid)>,
    /// New TEIDs of the session, to be freed if the request fails.
    pub fresh: Vec<Teid>,
    /// All TEIDs of the rules.
    pub teids: BTreeSet<Teid>,
}

/// Allocates TEIDs for the rules of one request.
struct Allocator<'a> {
    session: SessionId,
    teids: &'a mut Teids,
    local: GtpuAddress,
    /// The session's TEIDs before the request.
    owned: &'a BTreeSet<Teid>,
    /// The SMF restores a session and may give TEIDs.
    restoring: bool,
    chosen: BTreeMap<u8, FTeid>,
    allocation: Allocation,
}

/// Replaces every CHOOSE in `rules` by an F-TEID, and checks given ones. If it fails, no TEID is allocated.
pub fn allocate(
    rules: &mut RuleSet,
    session: SessionId,
    teids: &mut Teids,
    local: GtpuAddress,
    owned: &BTreeSet<Teid>,
    restoring: bool,
) -> Result<Allocation, Rejection> {
    let allocation = Allocation::default();
    let mut allocator =
        Allocator { session, teids, local, owned, restoring, chosen: BTreeMap::new(), allocation };
    match allocator.run(rules) {
        Ok(()) => Ok(allocator.allocation),
        Err(rejection) => {
            allocator.allocation.fresh.iter().for_each(|teid| allocator.teids.free(*teid));
            Err(rejection)
        }
    }
}

impl Allocator<'_> {
    fn run(&mut self, rules: &mut RuleSet) -> Result<(), Rejection> {
        for (id, endpoint) in rules.endpoints.iter_mut() {
            let Some(f_teid) = &mut endpoint.local_f_teid else { continue };
            let failed = Rejection::new(Cause::RuleCreationModificationFailure);
            if self.resolve_f_teid(f_teid, failed)? {
                self.allocation.endpoints.push((id, *f_teid));
            }
        }
        for (id, pdr) in rules.pdrs.iter_mut() {
            let Some(f_teid) = &mut pdr.pdi.local_f_teid else { continue };
            if self.resolve_f_teid(f_teid, Rejection::rule(FailedRuleId::Pdr(id)))? {
                self.allocation.pdrs.push((id, *f_teid));
            }
        }
        Ok(())
    }

    /// Allocates or checks one F-TEID. Returns whether it was CHOOSE.
    fn resolve_f_teid(&mut self, f_teid: &mut FTeid, failed: Rejection) -> Result<bool, Rejection> {
        let failed = failed.because_of(IeType::F_TEID);
        match *f_teid {
            FTeid::Allocated { teid, ipv4, ipv6 } => {
                let is_local = ipv4.is_none_or(|it| self.local.v4 == Some(it))
                    && ipv6.is_none_or(|it| self.local.v6 == Some(it));
                self.check_given(Teid(teid), is_local, failed).map(|()| false)
            }
            FTeid::Choose { ipv4, ipv6, choose_id } => {
                let chosen = choose_id.and_then(|id| self.chosen.get(&id).copied());
                *f_teid = chosen.map_or_else(|| self.choose(ipv4, ipv6, failed), Ok)?;
                choose_id.map(|id| self.chosen.insert(id, *f_teid));
                Ok(true)
            }
        }
    }

    fn choose(&mut self, ipv4: bool, ipv6: bool, failed: Rejection) -> Result<FTeid, Rejection> {
        let none_left = failed.with_cause(Cause::NoResourcesAvailable);
        let (ipv4, ipv6) = (self.local.v4.filter(|_| ipv4), self.local.v6.filter(|_| ipv6));
        if ipv4.is_none() && ipv6.is_none() {
            return Err(none_left);
        }
        let teid = self.teids.allocate(self.session).ok_or(none_left)?;
        self.allocation.fresh.push(teid);
        self.allocation.teids.insert(teid);
        Ok(FTeid::Allocated { teid: teid.0, ipv4, ipv6 })
    }

    /// The UP function allocates F-TEIDs; but a rule may contain one of its session, and an SMF that restores
    /// a session may contain a previous one (TS 29.244 5.5.1). Packets to an address that is not, or no longer, this UP function's would
    /// not arrive.
    fn check_given(&mut self, teid: Teid, is_local: bool, failed: Rejection) -> Result<(), Rejection> {
        if self.owned.contains(&teid) || self.allocation.teids.contains(&teid) {
            self.allocation.teids.insert(teid);
            return Ok(());
        }
        if !self.restoring {
            return Err(failed.with_cause(Cause::InvalidFTeidAllocationOption));
        }
        if !is_local || !self.teids.claim(teid, self.session) {
            return Err(failed.with_cause(Cause::PfcpSessionRestorationFailure));
        }
        self.allocation.fresh.push(teid);
        self.allocation.teids.insert(teid);
        Ok(())
    }
}
