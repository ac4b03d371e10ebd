//! What all sessions of a shard share, and what a step on one of them may use.

use super::config::{DataNetwork, SmfConfig};
use super::context::{SmContext, UpfSession};
use super::n4;
use super::pool::Pools;
use super::selection::Upfs;
use super::table::Index;
use crate::kit::{ContextIds, Identity, Instant, N4Effect, Outbox, References, Tag, Target, UpfHandle};
use pith_pfcp::Message;
use pith_sbi::Request;
use pith_types::Seid;

/// A tag that names no session: the answer changes nothing.
pub(super) const IGNORED_REPLY: Tag = Tag::new(u64::MAX, 0);

/// Data that all sessions of a shard share.
pub(super) struct Shared {
    pub identity: Identity,
    pub config: SmfConfig,
    /// References of SM contexts, in resource and callback URIs.
    pub references: References,
    /// Sessions by the ids in references.
    pub ids: ContextIds,
    pub index: Index,
    pub pools: Pools,
    pub upfs: Upfs,
    /// Sessions are stored.
    pub stores_sessions: bool,
}

/// What a step may use besides the session's own context.
pub(super) struct Env<'a> {
    pub now: Instant,
    pub identity: &'a Identity,
    pub config: &'a SmfConfig,
    pub references: &'a References,
    pub index: &'a mut Index,
    pub pools: &'a mut Pools,
    pub upfs: &'a mut Upfs,
    /// Sessions are stored.
    pub stores_sessions: bool,
    /// The session was read from its document, and its UPFs have not confirmed it: another SMF of the set may have controlled it until now.
    pub takes_over: bool,
    pub out: &'a mut Outbox,
}

impl Shared {
    /// The environment of a step.
    pub(super) fn env<'a>(&'a mut self, now: Instant, out: &'a mut Outbox) -> Env<'a> {
        Env {
            now,
            identity: &self.identity,
            config: &self.config,
            references: &self.references,
            index: &mut self.index,
            pools: &mut self.pools,
            upfs: &mut self.upfs,
            stores_sessions: self.stores_sessions,
            takes_over: false,
            out,
        }
    }

    /// As [`Shared::env`], for what documents say that a former run, or another SMF of the set, had at UPFs.
    pub(super) fn env_of_former<'a>(&'a mut self, now: Instant, out: &'a mut Outbox) -> Env<'a> {
        Env { takes_over: true, ..self.env(now, out) }
    }
}

impl Env<'_> {
    /// Calls an operation whose answer is ignored, such as the deletion of a resource.
    pub(super) fn notify_nf(&mut self, target: Target, request: impl Into<Request>) {
        self.out.call(IGNORED_REPLY, target, request.into());
    }

    /// Sends a request to a UPF, whose answer is ignored. The gateway retransmits it until the UPF answers.
    pub(super) fn notify_upf(&mut self, upf: UpfHandle, seid: Seid, message: Message) {
        self.out.n4(N4Effect::Request { tag: IGNORED_REPLY, upf, seid, message });
    }

    /// Deletes a session at a UPF. One of a former run is deleted when its UPF is associated, if that may have it. A UPF that has restarted has
    /// lost it: another session may have its SEID. One without a SEID was not established yet.
    pub(super) fn delete_at_upf(&mut self, at: UpfSession) {
        let is_of_former_run = Upfs::is_expected(at.upf);
        if at.seid == Seid(0) {
            return;
        }
        match self.upfs.resolve(at.upf) {
            None if is_of_former_run => self.upfs.deletions.push(at),
            Some(upf) if is_of_former_run && !self.upfs.may_have_sessions(upf) => {}
            _ if self.upfs.has_restarted(at.upf) => {}
            upf => {
                let upf = upf.unwrap_or(at.upf);
                let info = self.upfs.info(upf).filter(|info| self.takes_over && info.shares_sessions);
                let message = info.map_or_else(n4::deletion, |info| n4::deletion_by(info.local_address));
                self.notify_upf(upf, at.seid, message);
            }
        }
    }

    /// As [`Env::delete_at_upf`], if the session was read from its document and the UPF may still have it as another SMF's. Returns whether.
    pub(super) fn delete_taken_over(&mut self, at: UpfSession) -> bool {
        let upf = self.upfs.resolve(at.upf).unwrap_or(at.upf);
        let may_have = self.takes_over && self.upfs.info(upf).is_some_and(|info| info.shares_sessions);
        if may_have {
            self.delete_at_upf(at);
        }
        may_have
    }

    /// The reference of a session in URIs.
    pub(super) fn reference(&self, session: &SmContext) -> String {
        self.references.of_id(session.id)
    }

    /// The configuration of a session's data network.
    pub(super) fn network(&self, session: &SmContext) -> Option<&DataNetwork> {
        self.config.network(&session.dnn, &session.snssai)
    }
}
