//! The AMF for a UE at a gNB with several (NAS Node Selection Function, TS 38.410 5.5; TS 23.501 6.3.5).
//!
//! A gNB has an endpoint with an association to each AMF: a [`Gnb`] of its own, with the same id. The endpoints of a gNB are consecutive.
//!
//! ```text
//!  5G-S-TMSI of the UE  -> the AMF that serves its AMF Set and Pointer
//!                          if that is gone: another AMF of the set
//!  no identity          -> any AMF
//!  among several        -> by Relative AMF Capacity
//! ```
//!
//! The selected AMF may pass the UE on to another one (AMF re-allocation, TS 23.502 4.2.2.2.3).

use super::{Gnb, PendingOutput, Ran, Signal};
use crate::gnb::{self, N2Stream, UeKey};
use pith_ngap::{InitialUeMessage, Message};
use pith_types::{FiveGSTmsi, RanUeNgapId};

impl Ran {
    /// The number of AMFs to which each gNB connects. A gNB has as many consecutive endpoints.
    pub fn connect_to_amfs(&mut self, amfs: usize) {
        self.amfs = amfs.max(1);
        self.assigned = vec![0; self.gnbs.len()];
        for (at, gnb) in self.gnbs.iter_mut().enumerate() {
            gnb.share_ran_ids((at % self.amfs) as u32, self.amfs as u32);
        }
    }

    /// Number of endpoints that have completed NG Setup.
    pub fn endpoints_up(&self) -> usize {
        self.gnbs.iter().filter(|gnb| gnb.is_up()).count()
    }

    /// Number of gNBs that have completed NG Setup with an AMF.
    pub fn gnbs_up(&self) -> usize {
        self.gnbs.chunks(self.amfs).filter(|endpoints| endpoints.iter().any(Gnb::is_up)).count()
    }

    /// The endpoint at which a UE connects, from now on its gNB.
    pub(super) fn select_endpoint(&mut self, key: UeKey, s_tmsi: Option<&FiveGSTmsi>) -> usize {
        let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) else { return 0 };
        if self.amfs == 1 {
            return subscriber.gnb;
        }
        let first = subscriber.gnb / self.amfs * self.amfs;
        let up: Vec<usize> = (first..first + self.amfs).filter(|at| self.gnbs[*at].is_up()).collect();
        let serves = |at: &&usize, has_pointer: bool| {
            s_tmsi.is_some_and(|s_tmsi| {
                self.gnbs[**at].amf().guamis.iter().any(|guami| {
                    let is_pointer = !has_pointer || guami.amf_id.pointer == s_tmsi.amf_pointer;
                    guami.amf_id.set == s_tmsi.amf_set && is_pointer
                })
            })
        };
        let of = |has_pointer| up.iter().filter(|at| serves(at, has_pointer)).copied().collect::<Vec<_>>();
        let candidates = [of(true), of(false), up.clone()].into_iter().find(|list| !list.is_empty());
        // The fewest UEs in relation to the capacity.
        let rank = |at: &usize| self.assigned[*at] * 255 / u64::from(self.gnbs[*at].amf().capacity.max(1));
        // Without an AMF the UE waits, or fails, at the first endpoint.
        let selected = candidates.and_then(|list| list.into_iter().min_by_key(rank)).unwrap_or(first);
        self.assigned[selected] += 1;
        subscriber.gnb = selected;
        selected
    }

    /// An AMF has a UE's first message rerouted: to the first endpoint of the gNB with an AMF of that set. Without one the UE loses its
    /// connection.
    pub(super) fn reroute(
        &mut self,
        endpoint: usize,
        key: UeKey,
        amf_set: u16,
        message: Box<InitialUeMessage>,
    ) {
        let first = endpoint / self.amfs * self.amfs;
        let target =
            (first..first + self.amfs).find(|at| *at != endpoint && self.gnbs[*at].serves_set(amf_set));
        let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) else { return };
        let Some(target) = target else {
            return self.pending.push_back(PendingOutput::Ue(key, Signal::Released));
        };
        subscriber.gnb = target;
        let input = gnb::Input::Rerouted { ue: key, message };
        self.pending.push_back(PendingOutput::Gnb(target, input));
    }

    /// The AMF of an endpoint has taken over a UE from the AMF of another endpoint of the gNB.
    pub(super) fn redirect(
        &mut self,
        endpoint: usize,
        (old_amf, ran_id): (&str, RanUeNgapId),
        (stream, message): (N2Stream, Box<Message>),
    ) {
        let first = endpoint / self.amfs * self.amfs;
        let mut endpoints = self.gnbs[first..first + self.amfs].iter_mut();
        let found = endpoints.find_map(|gnb| gnb.give_up(old_amf, ran_id));
        if let Some(subscriber) = found.and_then(|it| self.subscribers.get_mut(it.ue().0 as usize)) {
            subscriber.gnb = endpoint;
        }
        let input = gnb::Input::Redirected { found, stream, message };
        self.pending.push_back(PendingOutput::Gnb(endpoint, input));
    }

    /// The endpoints of other gNBs with the same AMF, beginning with the next gNB.
    pub(super) fn neighbours(&self, endpoint: usize) -> impl Iterator<Item = usize> {
        let (amfs, all) = (self.amfs, self.gnbs.len());
        (1..all / amfs).map(move |step| (endpoint + step * amfs) % all)
    }
}
