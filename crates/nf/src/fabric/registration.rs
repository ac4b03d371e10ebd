//! Registration of a shard's NFs with the NRF, and their heart-beats (TS 29.510 5.2.2.2 to 5.2.2.4).

use super::agent::{Hosted, step};
use crate::kit::{Duration, Level, Nf, Outbox, Tag, Target, Timer};
use pith_sbi::common::PatchItem;
use pith_sbi::nnrf_nfmanagement::{DeregisterNfInstance, RegisterNfInstance, UpdateNfInstance};
use pith_sbi::{ApiRoot, Reply, Response};
use std::sync::Arc;

/// Interval of registration attempts while the NRF does not answer.
const RETRY: Duration = Duration::from_millis(200);

/// Heart-beat interval unless the NRF sets another.
const HEART_BEAT: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Registration {
    hosted: Hosted,
    registered: bool,
    heart_beat: Duration,
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
        let list =
            others.map(|hosted| Registration { hosted, registered: false, heart_beat: HEART_BEAT }).collect();
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

    pub(super) fn reply(&mut self, tag: Tag, reply: Reply, out: &mut Outbox) {
        let at = tag.owner as usize;
        match tag.step {
            step::REGISTER => self.registered(at, reply, out),
            step::HEART_BEAT => self.on_heart_beat_reply(at, &reply, out),
            _ => {}
        }
    }

    fn registered(&mut self, at: usize, reply: Reply, out: &mut Outbox) {
        let Some(registration) = self.list.get_mut(at) else { return };
        let profile = match reply {
            Ok(Response::NfProfileCreated(created)) => created.body,
            Ok(Response::NfProfile(profile)) => *profile,
            Ok(_) => return out.start(at as u64, Timer::NrfHeartBeat, RETRY),
            Err(problem) => {
                out.log(Level::Debug, || {
                    format!("{} is not registered yet: {problem}", registration.hosted.nf)
                });
                return out.start(at as u64, Timer::NrfHeartBeat, RETRY);
            }
        };
        registration.registered = true;
        registration.heart_beat =
            profile.heart_beat_timer.map_or(HEART_BEAT, |s| Duration::from_secs(s.into()));
        out.start(at as u64, Timer::NrfHeartBeat, registration.heart_beat);
    }

    /// If the NRF does not know the instance any more, registers it again.
    fn on_heart_beat_reply(&mut self, at: usize, reply: &Reply, out: &mut Outbox) {
        let Some(registration) = self.list.get_mut(at) else { return };
        if reply.as_ref().is_err_and(|problem| problem.status == 404) {
            registration.registered = false;
            return self.register(at, out);
        }
        out.start(at as u64, Timer::NrfHeartBeat, registration.heart_beat);
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
    Tag { owner: at as u64, step }
}
