//! gNBs: those that are connected, and those of a former run that are expected to return with their UEs.
//!
//! A gNB that is expected has a handle of its own, which no association has: the connections of its UEs keep it until the gNB performs NG
//! Setup ([`super::n2`], `setup.rs`). Messages to it are discarded by the N2 gateway.

use crate::kit::document::Names;
use crate::kit::{Allowance, Duration, GnbHandle, GnbInfo, Instant};
use pith_types::{Snssai, Tai};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// gNBs, in a fixed order, so that a replay pages them in the order of the recorded run. As a map: those that are connected.
#[derive(Debug, Default)]
pub(crate) struct Gnbs {
    connected: BTreeMap<GnbHandle, Arc<GnbInfo>>,
    expected: BTreeMap<GnbHandle, ExpectedGnb>,
    /// Path switches of gNBs that were refused.
    refusals: BTreeMap<GnbHandle, Allowance>,
    /// Global RAN Node IDs of gNBs whose association has ended, and which may retain their UEs: until they return.
    lost: BTreeMap<GnbHandle, Arc<str>>,
    /// Global RAN Node IDs of gNBs of a former run which may retain UEs that are in CM-IDLE: until they return. Only for documents: no
    /// connection has such a handle.
    left: BTreeMap<GnbHandle, Arc<str>>,
    /// The slices that all connected gNBs of a tracking area together support; made when it is needed.
    slices: OnceCell<BTreeMap<Tai, BTreeSet<Snssai>>>,
}

/// Names of lost gNBs that are kept.
const MAX_LOST: usize = 1024;

/// Refused path switches of a gNB, after which it gets one each [`REFUSAL_INTERVAL`], whatever UE it names: so it can't search for the
/// AMF-UE-NGAP-IDs of other gNBs' UEs.
const REFUSALS: u32 = 16;
const REFUSAL_INTERVAL: Duration = Duration::from_secs(1);

/// A gNB that had connections in a former run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedGnb {
    pub global_id: Arc<str>,
    /// As [`GnbInfo::host`].
    pub host: IpAddr,
}

impl Gnbs {
    pub const fn new() -> Self {
        Self {
            connected: BTreeMap::new(),
            expected: BTreeMap::new(),
            refusals: BTreeMap::new(),
            lost: BTreeMap::new(),
            left: BTreeMap::new(),
            slices: OnceCell::new(),
        }
    }

    /// The handle of a gNB that is expected to return. The N2 gateway counts its handles up from 0.
    pub fn expect(&mut self, gnb: ExpectedGnb) -> GnbHandle {
        if let Some((handle, _)) = self.expected.iter().find(|(_, other)| **other == gnb) {
            return *handle;
        }
        let handle = self.handle_of_absent();
        self.expected.insert(handle, gnb);
        handle
    }

    /// A handle that no gNB has.
    fn handle_of_absent(&self) -> GnbHandle {
        let lowest = self.expected.keys().next().into_iter().chain(self.left.keys().next()).min();
        GnbHandle(lowest.map_or(u64::MAX, |handle| handle.0) - 1)
    }

    /// A handle for documents that name a gNB of a former run, until it returns. `None`: it is connected.
    pub fn note_left(&mut self, global_id: &Arc<str>) -> Option<GnbHandle> {
        if self.connected.values().any(|info| *info.global_id == **global_id) {
            return None;
        }
        if let Some((handle, _)) = self.left.iter().find(|(_, other)| *other == global_id) {
            return Some(*handle);
        }
        let handle = self.handle_of_absent();
        self.left.insert(handle, Arc::clone(global_id));
        Some(handle)
    }

    /// A gNB has returned: its handles in the former run, and whether it is at the same host as then.
    pub fn returned(&mut self, info: &GnbInfo) -> Vec<(GnbHandle, bool)> {
        let is_that = |gnb: &ExpectedGnb| *gnb.global_id == *info.global_id;
        let found = self.expected.iter().filter(|(_, gnb)| is_that(gnb));
        let found = found.map(|(handle, gnb)| (*handle, gnb.host == info.host)).collect();
        self.expected.retain(|_, gnb| !is_that(gnb));
        self.lost.retain(|_, global_id| **global_id != *info.global_id);
        self.left.retain(|_, global_id| **global_id != *info.global_id);
        found
    }

    /// No gNB is expected any longer: the former handles, and their Global RAN Node IDs.
    pub fn expect_no_more(&mut self) -> Vec<(GnbHandle, Arc<str>)> {
        self.left.clear();
        let expected = std::mem::take(&mut self.expected);
        expected.into_iter().map(|(handle, gnb)| (handle, gnb.global_id)).collect()
    }

    /// A gNB has disconnected. `may_retain_ues`: its name is kept until it returns.
    pub fn disconnect(&mut self, gnb: GnbHandle, may_retain_ues: bool) -> Option<Arc<GnbInfo>> {
        self.refusals.remove(&gnb);
        let info = self.connected.remove(&gnb)?;
        self.slices.take();
        if may_retain_ues && self.lost.len() < MAX_LOST {
            self.lost.insert(gnb, info.global_id.as_str().into());
        }
        Some(info)
    }

    /// Whether the association of that gNB has ended, and the gNB has not returned.
    pub fn is_lost(&self, gnb: GnbHandle) -> bool {
        self.lost.contains_key(&gnb)
    }

    /// Whether the AMF considers a path switch that the gNB requests.
    pub fn may_switch_paths(&mut self, now: Instant, gnb: GnbHandle) -> bool {
        self.refusals.get_mut(&gnb).is_none_or(|refusals| refusals.has_left(now))
    }

    /// A path switch of the gNB is refused.
    pub fn count_refusal(&mut self, now: Instant, gnb: GnbHandle) {
        let full = || Allowance::full(REFUSALS, REFUSAL_INTERVAL, now);
        self.refusals.entry(gnb).or_insert_with(full).take(now);
    }

    /// Whether the gNB serves the tracking area.
    pub fn serves(&self, gnb: GnbHandle, tai: &Tai) -> bool {
        self.connected.get(&gnb).is_some_and(|info| info.supported.iter().any(|(served, _)| served == tai))
    }

    /// Whether connected gNBs support all these slices in a tracking area, or none of them serves it.
    pub fn may_support(&self, tai: &Tai, slices: &[Snssai]) -> bool {
        self.supported(tai).is_none_or(|supported| slices.iter().all(|slice| supported.contains(slice)))
    }

    /// Whether connected gNBs support one of these slices in a tracking area.
    pub fn supports_any(&self, tai: &Tai, slices: &[Snssai]) -> bool {
        !slices.is_empty()
            && self.supported(tai).is_some_and(|supported| slices.iter().any(|it| supported.contains(it)))
    }

    /// The slices of a tracking area, if connected gNBs serve it.
    fn supported(&self, tai: &Tai) -> Option<&BTreeSet<Snssai>> {
        let by_area = self.slices.get_or_init(|| {
            let mut by_area = BTreeMap::<Tai, BTreeSet<Snssai>>::new();
            for (tai, slices) in self.connected.values().flat_map(|info| &info.supported) {
                by_area.entry(*tai).or_default().extend(slices);
            }
            by_area
        });
        by_area.get(tai)
    }

    pub fn is_expecting(&self) -> bool {
        !self.expected.is_empty()
    }
}

impl Deref for Gnbs {
    type Target = BTreeMap<GnbHandle, Arc<GnbInfo>>;

    fn deref(&self) -> &Self::Target {
        &self.connected
    }
}

impl DerefMut for Gnbs {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.slices.take();
        &mut self.connected
    }
}

impl Names for Gnbs {
    fn gnb_name(&self, gnb: GnbHandle) -> Option<&str> {
        let connected = self.connected.get(&gnb).map(|info| info.global_id.as_str());
        let expected = || self.expected.get(&gnb).map(|expected| &*expected.global_id);
        let absent = || self.lost.get(&gnb).or_else(|| self.left.get(&gnb)).map(|global_id| &**global_id);
        connected.or_else(expected).or_else(absent)
    }

    fn gnb_host(&self, gnb: GnbHandle) -> Option<IpAddr> {
        let connected = self.connected.get(&gnb).map(|info| info.host);
        connected.or_else(|| self.expected.get(&gnb).map(|expected| expected.host))
    }

    fn gnb(&self, name: &str) -> Option<GnbHandle> {
        let expected = self.expected.iter().find(|(_, gnb)| *gnb.global_id == *name).map(|(gnb, _)| *gnb);
        let lost = || self.lost.iter().find(|(_, global_id)| ***global_id == *name).map(|(gnb, _)| *gnb);
        expected
            .or_else(|| self.connected.iter().find(|(_, info)| info.global_id == name).map(|(gnb, _)| *gnb))
            .or_else(lost)
    }
}
