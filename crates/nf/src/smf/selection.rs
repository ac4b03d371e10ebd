//! UPF selection (TS 23.501 6.3.3.3): by data network, slice and the UE's tracking area, then by priority, weight
//! and load.
//!
//! ```text
//!  the UE's gNB reaches the N3 of an anchor     that anchor alone, or with a classifier for local breakout
//!  the UE's gNB reaches no anchor's N3          an anchor, and an intermediate UPF that the gNB reaches
//! ```

use super::config::{Breakout, Network, SmfConfig, UpfService};
use super::context::{SmContext, UpfSession};
use super::pool::contains;
use crate::kit::document::{Names, pack_struct};
use crate::kit::{UpfHandle, UpfInfo};
use pith_types::{Dnn, Snssai, Tac};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// The UPFs of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    /// The PDU session anchor.
    pub anchor: UpfHandle,
    /// The UPF between anchor and gNB, if there is to be one.
    pub front: Option<FrontPlan>,
}

/// The plan for a UPF between gNB and anchor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FrontPlan {
    /// Handle of the UPF.
    pub upf: UpfHandle,
    /// Whether the gNB reaches the anchor only through this UPF.
    pub is_needed: bool,
    /// Destinations of local breakout; empty for an intermediate UPF.
    pub destinations: Vec<Network>,
}

pack_struct!(Path { anchor, front });
pack_struct!(FrontPlan { upf, is_needed, destinations });

/// An associated UPF.
#[derive(Debug)]
struct Upf {
    info: Arc<UpfInfo>,
    service: UpfService,
    /// The load that it reported, in percent.
    load: u8,
    /// The UPF has requested the release of its association (graceful release): it gets no new sessions.
    is_leaving: bool,
    /// Weighted round-robin: each choice adds the share to it, and the candidate with the highest credit is chosen.
    credit: i64,
}

impl Upf {
    fn serves_network(&self, dnn: &Dnn) -> bool {
        self.service.data_networks.as_ref().is_none_or(|networks| networks.contains(dnn))
    }

    fn serves_slice(&self, snssai: &Snssai) -> bool {
        self.service.slices.as_ref().is_none_or(|slices| slices.contains(snssai))
    }

    /// Whether it serves a tracking area; an unknown area counts as served.
    fn serves_area(&self, tac: Option<Tac>) -> bool {
        let served = |areas: &Vec<Tac>| tac.is_none_or(|tac| areas.contains(&tac));
        self.service.tracking_areas.as_ref().is_none_or(served)
    }

    /// Its weight in the choice among UPFs of equal priority: the configured weight, reduced by its load.
    fn share(&self) -> i64 {
        i64::from(self.service.weight) * i64::from(101 - self.load.min(100))
    }

    fn pool(&self, dnn: &Dnn) -> Option<Network> {
        self.service.pools.iter().find(|(name, ..)| name == dnn).map(|(_, pool, _)| *pool)
    }
}

/// The associated UPFs, and what they serve.
#[derive(Debug)]
pub(super) struct Upfs {
    services: Vec<UpfService>,
    breakouts: Vec<Breakout>,
    /// As [`SmfConfig::peers`].
    peers: Option<Vec<String>>,
    known: BTreeMap<UpfHandle, Upf>,
    /// Names of UPFs of restored sessions. A session that waits for one has a handle made of its place here.
    expected: Vec<String>,
    /// Names of UPFs that restarted, by the handle of the association that ended: their sessions are established again.
    restarted: BTreeMap<UpfHandle, Arc<str>>,
    /// Sessions of a former run to be deleted when their UPFs are associated.
    pub(super) deletions: Vec<UpfSession>,
}

impl Names for Upfs {
    fn upf_name(&self, upf: UpfHandle) -> Option<&str> {
        let known = self.known.get(&upf).map(|upf| upf.info.name.as_str());
        let restarted = || self.restarted.get(&upf).map(|name| &**name);
        known.or_else(restarted).or_else(|| self.expected.get(place_of_expected(upf)?).map(String::as_str))
    }

    fn upf(&self, name: &str) -> Option<UpfHandle> {
        let known = self.known.iter().find(|(_, upf)| upf.info.name == name).map(|(handle, _)| *handle);
        known.or_else(|| self.expected.iter().position(|expected| expected == name).map(handle_of_expected))
    }
}

/// Handles from here on stand for UPFs that have no association yet. The gateway's handles begin at 1.
const FIRST_EXPECTED: u64 = 1 << 63;

const fn handle_of_expected(place: usize) -> UpfHandle {
    UpfHandle(FIRST_EXPECTED + place as u64)
}

fn place_of_expected(upf: UpfHandle) -> Option<usize> {
    upf.0.checked_sub(FIRST_EXPECTED).and_then(|place| usize::try_from(place).ok())
}

/// Names of the UPFs of a document that is being read: a UPF without association becomes an expected one.
pub(super) struct ExpectedUpfs<'a>(std::cell::RefCell<&'a mut Upfs>);

impl<'a> ExpectedUpfs<'a> {
    pub(super) const fn new(upfs: &'a mut Upfs) -> Self {
        Self(std::cell::RefCell::new(upfs))
    }
}

impl Names for ExpectedUpfs<'_> {
    fn upf(&self, name: &str) -> Option<UpfHandle> {
        Some(self.0.borrow_mut().expect(name))
    }
}

impl Upfs {
    /// No UPF is associated yet.
    pub(super) fn new(config: &SmfConfig) -> Self {
        let (services, breakouts) = (config.upfs.clone(), config.breakouts.clone());
        Self {
            services,
            breakouts,
            peers: config.peers.clone(),
            known: BTreeMap::new(),
            expected: Vec::new(),
            restarted: BTreeMap::new(),
            deletions: Vec::new(),
        }
    }

    /// The handle of a UPF that may have no association yet.
    fn expect(&mut self, name: &str) -> UpfHandle {
        self.upf(name).unwrap_or_else(|| {
            self.expected.push(name.into());
            handle_of_expected(self.expected.len() - 1)
        })
    }

    /// The handle of a UPF that has restarted, until it is associated.
    pub(super) fn expect_again(&mut self, upf: UpfHandle) -> Option<UpfHandle> {
        let name = self.upf_name(upf)?.to_owned();
        Some(self.expect(&name))
    }

    /// The name of the UPF of a restored session, if the configuration does not have it any longer.
    pub(super) fn removed(&self, upf: UpfHandle) -> Option<&str> {
        let name = self.upf_name(upf)?;
        let is_removed = self.peers.as_ref().is_some_and(|peers| !peers.iter().any(|peer| peer == name));
        is_removed.then_some(name)
    }

    /// The handle of the association with that UPF; `None` if there is none.
    pub(super) fn resolve(&self, upf: UpfHandle) -> Option<UpfHandle> {
        let name = self.upf_name(upf)?;
        self.upf(name).filter(|upf| self.known.contains_key(upf))
    }

    /// Adds a UPF whose association was set up, or updates its features.
    pub(super) fn insert(&mut self, handle: UpfHandle, info: Arc<UpfInfo>) {
        if let Some(known) = self.known.get_mut(&handle) {
            known.info = info;
            return;
        }
        let service = self.services.iter().find(|service| service.name == info.name);
        let service = service.cloned().unwrap_or_else(|| UpfService::of_all(&info.name));
        self.known.insert(handle, Upf { info, service, load: 0, is_leaving: false, credit: 0 });
    }

    /// The associated UPF whose PFCP entity has this address.
    pub(super) fn at_address(&self, address: std::net::IpAddr) -> Option<UpfHandle> {
        self.known.iter().find(|(_, upf)| upf.info.address == address).map(|(handle, _)| *handle)
    }

    /// Whether a handle stands for a UPF without association: only this shard knows which.
    pub(super) const fn is_expected(upf: UpfHandle) -> bool {
        upf.0 >= FIRST_EXPECTED
    }

    /// The handles of UPFs that have restarted, with their names.
    pub(super) fn restarted(&self) -> Vec<(u64, Arc<str>)> {
        self.restarted.iter().map(|(handle, name)| (handle.0, Arc::clone(name))).collect()
    }

    /// Another shard knows that these UPFs have restarted.
    pub(super) fn note_restarted(&mut self, restarted: Vec<(u64, Arc<str>)>) {
        for (handle, name) in restarted {
            self.note_restart(UpfHandle(handle));
            self.restarted.entry(UpfHandle(handle)).or_insert(name);
        }
    }

    /// Removes a UPF that is lost.
    pub(super) fn remove(&mut self, handle: UpfHandle) {
        self.known.remove(&handle);
        self.restarted.remove(&handle);
    }

    /// A UPF has lost its association and sessions, and will be associated again.
    pub(super) fn note_restart(&mut self, handle: UpfHandle) {
        if let Some(upf) = self.known.remove(&handle) {
            self.restarted.insert(handle, upf.info.name.as_str().into());
        }
    }

    /// No session is left of the associations that ended.
    pub(super) fn forget_restarts(&mut self) {
        self.restarted.clear();
    }

    /// Whether sessions of this association wait for another one with the same UPF.
    pub(super) fn has_restarted(&self, handle: UpfHandle) -> bool {
        self.restarted.contains_key(&handle)
    }

    /// Whether a session of this SMF may be at the UPF: retained since the process's former run, or since another SMF of the set had
    /// it.
    pub(super) fn may_have_sessions(&self, handle: UpfHandle) -> bool {
        let is_shared = |upf: &Upf| upf.info.has_retained || upf.info.shares_sessions;
        self.known.get(&handle).is_some_and(is_shared)
    }

    /// The UPFs that have retained the sessions of the process's former run.
    pub(super) fn retaining(&self) -> impl Iterator<Item = UpfHandle> {
        self.known.iter().filter(|(_, upf)| upf.info.has_retained).map(|(handle, _)| *handle)
    }

    /// Whether the UPF has retained the sessions of a former run.
    pub(super) fn has_retained(&self, upf: UpfHandle) -> bool {
        self.known.get(&upf).is_some_and(|upf| upf.info.has_retained)
    }

    /// Records the load that a UPF reported.
    pub(super) fn note_load(&mut self, handle: UpfHandle, percent: u8) {
        if let Some(upf) = self.known.get_mut(&handle) {
            upf.load = percent;
        }
    }

    /// Records that a UPF has requested the release of its association.
    pub(super) fn note_leaving(&mut self, handle: UpfHandle) {
        if let Some(upf) = self.known.get_mut(&handle) {
            upf.is_leaving = true;
        }
    }

    /// What a UPF reported when its association was set up.
    pub(super) fn info(&self, handle: UpfHandle) -> Option<&Arc<UpfInfo>> {
        self.known.get(&handle).map(|upf| &upf.info)
    }

    /// The pool of UE addresses that are routed to this UPF's N6 only, if it has one.
    pub(super) fn pool(&self, handle: UpfHandle, dnn: &Dnn) -> Option<Network> {
        self.known.get(&handle)?.pool(dnn)
    }

    /// Selects the UPFs of a session, without those that were tried before; `None` if no suitable UPF is associated.
    pub(super) fn choose(&mut self, session: &SmContext, tried: &[UpfHandle]) -> Option<Path> {
        let (dnn, snssai, tac) = (&session.dnn, &session.snssai, session.tac);
        // A static address of a UPF's own pool is routed to that UPF only.
        let of_upfs: Vec<_> = self.services.iter().flat_map(|service| &service.pools).cloned().collect();
        let is_routed = |upf: &Upf| {
            let Some(v4) = session.addressing.v4.map(IpAddr::V4) else { return true };
            let has = |(pool, prefix): Network| contains((pool.into(), prefix), v4);
            upf.pool(dnn)
                .map_or_else(|| !of_upfs.iter().any(|(name, pool, _)| name == dnn && has(*pool)), has)
        };
        let anchors = |upf: &Upf| upf.serves_network(dnn) && upf.serves_slice(snssai) && is_routed(upf);
        let near = self.best(tried, |upf| anchors(upf) && upf.serves_area(tac));
        let is_needed = near.is_none();
        let anchor = near.or_else(|| self.best(tried, anchors))?;
        let breakout = self.breakout(session, anchor, tried).map(|plan| FrontPlan { is_needed, ..plan });
        let front = match breakout {
            None if is_needed => {
                let upf = self.best(tried, |upf| upf.serves_slice(snssai) && upf.serves_area(tac))?;
                Some(FrontPlan { upf, is_needed, destinations: Vec::new() })
            }
            breakout => breakout,
        };
        Some(Path { anchor, front })
    }

    /// The first local breakout of the session's data network whose UPF can be the classifier. All destinations of that UPF
    /// are included.
    fn breakout(&self, session: &SmContext, anchor: UpfHandle, tried: &[UpfHandle]) -> Option<FrontPlan> {
        let of_network = || self.breakouts.iter().filter(|breakout| breakout.dnn == session.dnn);
        let (upf, chosen) = of_network().find_map(|breakout| {
            let upf = self.classifier(session, anchor, &breakout.upf).ok()?;
            (!tried.contains(&upf)).then_some((upf, breakout))
        })?;
        let same = of_network().filter(|breakout| breakout.upf == chosen.upf);
        let destinations = same.flat_map(|breakout| breakout.destinations.iter().copied()).collect();
        Some(FrontPlan { upf, is_needed: false, destinations })
    }

    /// The UPF of that name, if it can be classifier and local anchor of the session.
    pub(super) fn classifier(
        &self,
        session: &SmContext,
        anchor: UpfHandle,
        name: &str,
    ) -> Result<UpfHandle, NoClassifier> {
        let mut known = self.known.iter();
        let (handle, upf) = known.find(|(_, upf)| upf.info.name == name).ok_or(NoClassifier::Unknown)?;
        if *handle == anchor {
            return Err(NoClassifier::IsAnchor);
        }
        if upf.is_leaving {
            return Err(NoClassifier::Leaving);
        }
        if !upf.serves_area(session.tac) {
            return Err(NoClassifier::Area);
        }
        if !upf.serves_slice(&session.snssai) {
            return Err(NoClassifier::Slice);
        }
        // Packets to the UE's address would not be routed to this UPF.
        if upf.pool(&session.dnn).is_some_and(|pool| self.pool(anchor, &session.dnn) != Some(pool)) {
            return Err(NoClassifier::Pool);
        }
        Ok(*handle)
    }

    /// Chooses among the suitable UPFs with the lowest priority value, by weighted round-robin.
    fn best(&mut self, tried: &[UpfHandle], is_suitable: impl Fn(&Upf) -> bool) -> Option<UpfHandle> {
        let is_suitable =
            |handle: &UpfHandle, upf: &Upf| !upf.is_leaving && !tried.contains(handle) && is_suitable(upf);
        let candidates = self.known.iter().filter(|(handle, upf)| is_suitable(handle, upf));
        let priority = candidates.map(|(_, upf)| upf.service.priority).min()?;
        let is_candidate =
            |handle: &UpfHandle, upf: &Upf| is_suitable(handle, upf) && upf.service.priority == priority;
        let mut shares = 0;
        let mut best: Option<(i64, UpfHandle)> = None;
        for (handle, upf) in self.known.iter_mut().filter(|(handle, upf)| is_candidate(handle, upf)) {
            upf.credit += upf.share();
            shares += upf.share();
            if best.is_none_or(|(credit, _)| credit < upf.credit) {
                best = Some((upf.credit, *handle));
            }
        }
        let (_, handle) = best?;
        self.known.get_mut(&handle)?.credit -= shares;
        Some(handle)
    }
}

/// The reason why a UPF can't be a session's classifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoClassifier {
    /// No such UPF.
    #[error("no UPF of that name is associated: 'pith upf list' shows those that are")]
    Unknown,
    /// The session's anchor.
    #[error("that UPF is the session's anchor: all its packets leave there already")]
    IsAnchor,
    /// It has requested the release of its association.
    #[error("that UPF is going out of service: it accepts no new sessions")]
    Leaving,
    /// The gNB does not reach it.
    #[error("that UPF does not serve the UE's tracking area: see 'smf.upfs'")]
    Area,
    /// Not in the slice.
    #[error("that UPF does not serve the session's slice: see 'smf.upfs'")]
    Slice,
    /// The UE's address is not of the UPF's own pool.
    #[error("that UPF has its own address pool for the data network, and the UE's address is not in it")]
    Pool,
}
