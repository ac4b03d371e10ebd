//! UPF selection (TS 23.501 6.3.3.3): by data network, slice and the UE's tracking area, then by priority, weight
//! and load.
//!
//! ```text
//!  an anchor whose N3 the UE's gNB reaches    alone, or behind a classifier where there is local breakout
//!  none such                                  another anchor, behind a UPF that the gNB reaches
//! ```

use super::config::{Breakout, Network, SmfConfig, UpfService};
use super::context::SmContext;
use crate::kit::{UpfHandle, UpfInfo};
use pith_types::{Dnn, Snssai, Tac};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Through which UPFs a session goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    /// The PDU session anchor.
    pub anchor: UpfHandle,
    /// The UPF between it and the gNB, if there is one.
    pub front: Option<FrontPlan>,
}

/// A UPF that is to stand between gNB and anchor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FrontPlan {
    /// Handle of the UPF.
    pub upf: UpfHandle,
    /// The gNB does not reach the anchor without it.
    pub is_needed: bool,
    /// Destinations of which it is the local anchor; none of an intermediate UPF.
    pub destinations: Vec<Network>,
}

/// A UPF that is associated.
#[derive(Debug)]
struct Upf {
    info: Arc<UpfInfo>,
    service: UpfService,
    /// In percent, as it told.
    load: u8,
    /// It asks to be released: it gets no new sessions.
    is_leaving: bool,
    /// Its claim to the next session, which grows by its share of each choice.
    credit: i64,
}

impl Upf {
    fn serves_network(&self, dnn: &Dnn) -> bool {
        self.service.data_networks.as_ref().is_none_or(|networks| networks.contains(dnn))
    }

    fn serves_slice(&self, snssai: &Snssai) -> bool {
        self.service.slices.as_ref().is_none_or(|slices| slices.contains(snssai))
    }

    /// An unknown area matches.
    fn serves_area(&self, tac: Option<Tac>) -> bool {
        let served = |areas: &Vec<Tac>| tac.is_none_or(|tac| areas.contains(&tac));
        self.service.tracking_areas.as_ref().is_none_or(served)
    }

    /// How many of the sessions are to be its, among others: less the more load it has.
    fn share(&self) -> i64 {
        i64::from(self.service.weight) * i64::from(101 - self.load.min(100))
    }

    fn pool(&self, dnn: &Dnn) -> Option<Network> {
        self.service.pools.iter().find(|(name, ..)| name == dnn).map(|(_, pool, _)| *pool)
    }
}

/// The UPFs that are associated, and what they are for.
#[derive(Debug)]
pub(super) struct Upfs {
    services: Vec<UpfService>,
    breakouts: Vec<Breakout>,
    known: BTreeMap<UpfHandle, Upf>,
}

impl Upfs {
    /// None is associated yet.
    pub(super) fn new(config: &SmfConfig) -> Self {
        let (services, breakouts) = (config.upfs.clone(), config.breakouts.clone());
        Self { services, breakouts, known: BTreeMap::new() }
    }

    /// An association is set up, or its UPF reports its features again.
    pub(super) fn insert(&mut self, handle: UpfHandle, info: Arc<UpfInfo>) {
        if let Some(known) = self.known.get_mut(&handle) {
            known.info = info;
            return;
        }
        let service = self.services.iter().find(|service| service.name == info.name);
        let service = service.cloned().unwrap_or_else(|| UpfService::of_all(&info.name));
        self.known.insert(handle, Upf { info, service, load: 0, is_leaving: false, credit: 0 });
    }

    /// An association ended.
    pub(super) fn remove(&mut self, handle: UpfHandle) {
        self.known.remove(&handle);
    }

    /// A UPF told of its load.
    pub(super) fn note_load(&mut self, handle: UpfHandle, percent: u8) {
        self.known.get_mut(&handle).into_iter().for_each(|upf| upf.load = percent);
    }

    /// A UPF asks to be released.
    pub(super) fn note_leaving(&mut self, handle: UpfHandle) {
        self.known.get_mut(&handle).into_iter().for_each(|upf| upf.is_leaving = true);
    }

    /// What a UPF told with its association.
    pub(super) fn info(&self, handle: UpfHandle) -> Option<&Arc<UpfInfo>> {
        self.known.get(&handle).map(|upf| &upf.info)
    }

    /// UE addresses that only the N6 of this UPF leads to, if it has such.
    pub(super) fn pool(&self, handle: UpfHandle, dnn: &Dnn) -> Option<Network> {
        self.known.get(&handle)?.pool(dnn)
    }

    /// A path for a session that avoids the UPFs that were tried; `None` if UPFs that it needs are missing.
    pub(super) fn choose(&mut self, session: &SmContext, tried: &[UpfHandle]) -> Option<Path> {
        let (dnn, snssai, tac) = (&session.dnn, &session.snssai, session.tac);
        let anchors = |upf: &Upf| upf.serves_network(dnn) && upf.serves_slice(snssai);
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

    /// The first local breakout of the session's data network that can be had.
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
        // Answers to the UE would not come to this UPF.
        if upf.pool(&session.dnn).is_some_and(|pool| self.pool(anchor, &session.dnn) != Some(pool)) {
            return Err(NoClassifier::Pool);
        }
        Ok(*handle)
    }

    /// Of those that will do, one of the lowest priority value; these take turns by their shares.
    fn best(&mut self, tried: &[UpfHandle], will_do: impl Fn(&Upf) -> bool) -> Option<UpfHandle> {
        let will_do =
            |handle: &UpfHandle, upf: &Upf| !upf.is_leaving && !tried.contains(handle) && will_do(upf);
        let candidates = self.known.iter().filter(|(handle, upf)| will_do(handle, upf));
        let priority = candidates.map(|(_, upf)| upf.service.priority).min()?;
        let is_candidate =
            |handle: &UpfHandle, upf: &Upf| will_do(handle, upf) && upf.service.priority == priority;
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

/// Why a UPF can't be a session's classifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoClassifier {
    /// No such UPF.
    #[error("no UPF of that name is associated: 'pith upf list' shows those that are")]
    Unknown,
    /// The session's anchor.
    #[error("that UPF is the session's anchor: all its packets leave there already")]
    IsAnchor,
    /// Going out of service.
    #[error("that UPF goes out of service: it takes no new sessions")]
    Leaving,
    /// Out of reach of the gNB.
    #[error("that UPF does not serve the UE's tracking area: see 'smf.upfs'")]
    Area,
    /// Not in the slice.
    #[error("that UPF does not serve the session's slice: see 'smf.upfs'")]
    Slice,
    /// It has other UE addresses.
    #[error("that UPF has a pool of its own for the data network, to which the UE's address does not belong")]
    Pool,
}
