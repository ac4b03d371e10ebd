//! Registration of a shard's NFs with the NRF, and their heart-beats (TS 29.510 5.2.2.2 to 5.2.2.4).

use super::agent::{Hosted, step};
use crate::kit::{Duration, Level, Nf, Outbox, Tag, Target, Timer};
use pith_sbi::common::PatchItem;
use pith_sbi::nnrf_nfmanagement::{DeregisterNfInstance, RegisterNfInstance, UpdateNfInstance};
use pith_sbi::{ApiRoot, Reply, Response};
use std::sync::Arc;

/// Time before the first retry of a registration or heart-beat; it doubles with each failure, up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_millis(200);

/// An NRF that is back has its NFs again within this time.
const RETRY_MAX: Duration = Duration::from_secs(2);

/// Heart-beat interval unless the NRF sets another.
const HEART_BEAT: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Registration {
    hosted: Hosted,
    registered: bool,
    heart_beat: Duration,
    /// Registrations and heart-beats that failed in a row.
    failures: u32,
}

impl Registration {
    /// How long to wait after one more failure.
    fn next_retry(&mut self) -> Duration {
        let delay = RETRY.saturating_mul(1 << self.failures.min(8)).min(RETRY_MAX);
        self.failures = self.failures.saturating_add(1);
        delay
    }
}

/// The registrations of a shard. The NRF itself does not register.
#[derive(Debug)]
pub(super) struct Registrations {
    nrf: Arc<ApiRoot>,
    list: Vec<Registration>,
}

impl Registrations {
    pub(super) fn new(hosted: Vec<Hosted>, nrf: Arc<ApiRoot>) -> Self {
        let others = hosted.into_iter().filter(|hosted| hosted.nf != Nf::Nrf);
        let list = others
            .map(|hosted| Registration { hosted, registered: false, heart_beat: HEART_BEAT, failures: 0 })
            .collect();
        Self { nrf, list }
    }

    pub(super) fn are_all_done(&self) -> bool {
        self.list.iter().all(|registration| registration.registered)
    }

    pub(super) fn register_all(&self, out: &mut Outbox) {
        (0..self.list.len()).for_each(|at| self.register(at, out));
    }

    fn register(&self, at: usize, out: &mut Outbox) {
        let Some(registration) = self.list.get(at) else { return };
        let body = registration.hosted.profile.clone();
        let request = RegisterNfInstance { nf_instance_id: body.nf_instance_id, body };
        out.call(tag(at, step::REGISTER), Target::Root(Arc::clone(&self.nrf)), request.into());
    }

    pub(super) fn deregister_all(&mut self, out: &mut Outbox) {
        for (at, registration) in self.list.iter_mut().enumerate().filter(|(_, r)| r.registered) {
            registration.registered = false;
            let nf_instance_id = registration.hosted.profile.nf_instance_id;
            let request = DeregisterNfInstance { nf_instance_id };
            out.call(tag(at, step::DEREGISTER), Target::Root(Arc::clone(&self.nrf)), request.into());
            out.stop(at as u64, Timer::NrfHeartBeat);
        }
    }

    /// Handles the NRF's reply; returns whether the NRF has lost its state.
    pub(super) fn reply(&mut self, tag: Tag, reply: Reply, out: &mut Outbox) -> bool {
        let at = tag.owner as usize;
        match tag.step {
            step::REGISTER => self.registered(at, reply, out),
            step::HEART_BEAT => return self.on_heart_beat_reply(at, &reply, out),
            _ => {}
        }
        false
    }

    /// The connection to the NRF broke: a heart-beat shows whether the NRF restarted and lost the registrations.
    pub(super) fn connection_lost(&self, out: &mut Outbox) {
        for (at, _) in self.list.iter().enumerate().filter(|(_, registration)| registration.registered) {
            out.start(at as u64, Timer::NrfHeartBeat, RETRY);
        }
    }

    fn registered(&mut self, at: usize, reply: Reply, out: &mut Outbox) {
        let Some(registration) = self.list.get_mut(at) else { return };
        let profile = match reply {
            Ok(Response::NfProfileCreated(created)) => created.body,
            Ok(Response::NfProfile(profile)) => *profile,
            Ok(_) => return out.start(at as u64, Timer::NrfHeartBeat, registration.next_retry()),
            Err(problem) => {
                // An NRF that refuses will refuse again, so the operator is informed. An NRF that does not answer may still be starting.
                let is_refused = (400..500).contains(&problem.status) && registration.failures == 0;
                let level = if is_refused { Level::Warn } else { Level::Debug };
                out.log(level, || format!("{} is not registered: {problem}", registration.hosted.nf));
                return out.start(at as u64, Timer::NrfHeartBeat, registration.next_retry());
            }
        };
        registration.registered = true;
        registration.failures = 0;
        registration.heart_beat =
            profile.heart_beat_timer.map_or(HEART_BEAT, |s| Duration::from_secs(s.into()));
        out.start(at as u64, Timer::NrfHeartBeat, registration.heart_beat);
    }

    /// Handles the reply to a heart-beat. An NRF that does not know the instance has restarted or given it up: the instance
    /// registers again at once (TS 29.510 5.2.2.3.2). Returns whether that is so.
    fn on_heart_beat_reply(&mut self, at: usize, reply: &Reply, out: &mut Outbox) -> bool {
        let Some(registration) = self.list.get_mut(at) else { return false };
        match reply {
            Ok(_) => {
                registration.failures = 0;
                out.start(at as u64, Timer::NrfHeartBeat, registration.heart_beat);
            }
            Err(problem) if problem.status == 404 => {
                registration.registered = false;
                registration.failures = 0;
                self.register(at, out);
                return true;
            }
            Err(_) => {
                let delay = registration.next_retry().min(registration.heart_beat);
                out.start(at as u64, Timer::NrfHeartBeat, delay);
            }
        }
        false
    }

    /// The heart-beat or retry timer has expired.
    pub(super) fn timer(&self, owner: u64, out: &mut Outbox) {
        let at = owner as usize;
        let Some(registration) = self.list.get(at) else { return };
        if !registration.registered {
            return self.register(at, out);
        }
        let nf_instance_id = registration.hosted.profile.nf_instance_id;
        let body = vec![PatchItem::replace("/nfStatus", "REGISTERED")];
        let request = UpdateNfInstance { nf_instance_id, body };
        out.call(tag(at, step::HEART_BEAT), Target::Root(Arc::clone(&self.nrf)), request.into());
    }
}

fn tag(at: usize, step: u32) -> Tag {
    Tag::new(at as u64, step)
}
