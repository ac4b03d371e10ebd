//! Session Management Function (TS 23.501 6.2.2, TS 29.502): PDU sessions, from the UE's request to the
//! UPF's rules.
//!
//! ```text
//!  procedure/establishment.rs   TS 23.502 4.3.2.2.1
//!  procedure/chain.rs           its step 10 with two UPFs
//!  procedure/branching.rs       4.3.5.4, 4.3.5.5: classifiers
//!  procedure/user_plane.rs      activation, deactivation, downlink data
//!  procedure/modification.rs    4.3.3.2, at the PCF's wish
//!  procedure/release.rs         TS 23.502 4.3.4
//! ```

mod config;
mod context;
mod error;
mod n1;
mod n2;
mod n4;
mod n9;
mod pool;
mod procedure;
mod selection;
mod services;
#[cfg(test)]
mod tests;

use crate::kit::{
    Arena, Identity, Input, Inspect, Instant, Key, Level, N4Effect, N4Input, NetworkFunction, Order, Outbox,
    References, Rng, Tag, Target, Timer, TimerKey, UpfHandle,
};
pub use config::{Breakout, DataNetwork, Network, SmfConfig, UpfService};
use context::{FRONT_SEID, Front, SmContext, State};
use pith_pfcp::Message;
use pith_sbi::{Reply, Request};
use pith_types::{Seid, Supi};
use pool::Pools;
use selection::Upfs;
use serde_json::json;
use std::collections::{HashMap, VecDeque};

/// Sessions of a shard at most.
const LIMIT: u32 = 1 << 20;

/// Bits of a session's own part of a SEID that are its place in the table, below [`LIMIT`].
const SEID_PLACE: u64 = LIMIT as u64 - 1;

/// Bits that are random, so that nobody can guess a SEID (TS 33.515 4.2.2.1.2): all others but [`FRONT_SEID`].
const SEID_RANDOM: u64 = 0xffff_ffff_ffff & !SEID_PLACE & !FRONT_SEID;

/// A tag that names no session: whatever the answer is, it changes nothing.
const NOBODY: Tag = Tag { owner: u64::MAX, step: 0 };

/// What the SMF holds, for tests and worlds: all zero once all is quiet and nobody is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SmfAudit {
    /// SM contexts.
    pub contexts: usize,
    /// UE addresses in use.
    pub addresses: usize,
    /// Sessions at UPFs.
    pub n4_sessions: usize,
    /// Policy associations.
    pub policies: usize,
}

/// The SMF of a shard.
pub struct Smf {
    identity: Identity,
    config: SmfConfig,
    rng: Rng,
    /// References of SM contexts, in resource and callback URIs.
    references: References,
    contexts: Arena<SmContext>,
    by_ue: HashMap<(Supi, u8), Key>,
    pools: Pools,
    upfs: Upfs,
    /// Sessions of UPFs that are gone, to be ended.
    lost: VecDeque<(Key, UpfHandle)>,
}

impl Smf {
    /// An SMF.
    pub fn new(identity: Identity, config: SmfConfig, mut rng: Rng) -> Self {
        let references = References::new(&mut rng);
        let (pools, upfs) = (Pools::new(&config, identity.shard.0), Upfs::new(&config));
        let (contexts, by_ue) = (Arena::new(LIMIT), HashMap::new());
        Self { identity, config, rng, references, contexts, by_ue, pools, upfs, lost: VecDeque::new() }
    }

    /// What it holds.
    pub fn audit(&self) -> SmfAudit {
        let contexts = || self.contexts.iter().map(|(_, context)| context);
        SmfAudit {
            contexts: self.contexts.len(),
            addresses: self.pools.in_use(),
            n4_sessions: contexts().map(SmContext::n4_sessions).sum(),
            policies: contexts().filter(|context| context.policy.is_some()).count(),
        }
    }

    /// Makes a call whose answer the session waits for.
    fn call(&mut self, key: Key, target: Target, request: Request, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        context.step += 1;
        out.call(Tag { owner: key.to_u64(), step: context.step }, target, request);
    }

    /// Sends the UPF a request whose answer the session waits for.
    fn ask_upf(&mut self, key: Key, upf: UpfHandle, seid: Seid, message: Message, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        context.step += 1;
        let tag = Tag { owner: key.to_u64(), step: context.step };
        out.n4(N4Effect::Request { tag, upf, seid, message });
    }

    /// The session that an answer is for, if it still waits for that answer.
    fn awaited(&mut self, tag: Tag) -> Option<(Key, &mut SmContext)> {
        let key = Key::from_u64(tag.owner);
        let context = self.contexts.get_mut(key).filter(|context| context.step == tag.step)?;
        Some((key, context))
    }

    fn reply(&mut self, tag: Tag, reply: Reply, out: &mut Outbox) {
        let Some((key, context)) = self.awaited(tag) else { return procedure::undo(reply, out) };
        match context.state {
            State::AwaitingSubscriptionData(from) => self.subscription_data(key, from, reply, out),
            State::AwaitingPolicy => self.policy(key, reply, out),
            State::AwaitingTunnel => self.transferred(key, &reply, out),
            State::AwaitingGnb(towards) => self.gnb_asked(key, towards, &reply, out),
            State::AwaitingResourceRelease => self.release_requested_of_gnb(key, &reply, out),
            _ => self.notified(key, &reply, out),
        }
    }

    fn n4(&mut self, input: N4Input, out: &mut Outbox) {
        match input {
            N4Input::Response { tag, result } => self.upf_answered(tag, result, out),
            N4Input::Request { transaction, seid, message } => {
                self.session_report(transaction, seid, &message, out)
            }
            N4Input::UpfUp { upf, info } => self.upfs.insert(upf, info),
            N4Input::UpfLoad { upf, percent } => self.upfs.note_load(upf, percent),
            N4Input::UpfLeaves { upf } => self.upfs.note_leaving(upf),
            N4Input::UpfDown { upf } => self.upf_lost(upf, out),
        }
    }

    fn timer(&mut self, key: TimerKey, out: &mut Outbox) {
        let owner = Key::from_u64(key.owner);
        match key.timer {
            Timer::T3591 => self.modification_command_again(owner, out),
            Timer::T3592 => self.release_command_again(owner, out),
            Timer::SbiGuard => self.establishment_too_slow(owner, out),
            Timer::PathGrace => self.path_left(owner, out),
            Timer::LostSessions => self.lose_sessions(out),
            _ => {}
        }
    }

    /// The context whose SEID this is, at the anchor or at the front UPF: the SEID holds its place.
    fn by_seid(&self, seid: Seid) -> Option<Key> {
        let seid = Seid(seid.0 & !FRONT_SEID);
        let session = seid.session();
        let key = self.contexts.find((session & SEID_PLACE) as u32, 0, 0)?;
        self.contexts.get(key).filter(|context| context.seid == seid).map(|_| key)
    }

    fn seid(&mut self, key: Key) -> Seid {
        let random = loop {
            // Place 0 must not have SEID 0, which means that there is none.
            match self.rng.next_u64() & SEID_RANDOM {
                0 => {}
                random => break random,
            }
        };
        let session = random | u64::from(key.index());
        Seid::new(self.identity.instance, self.identity.shard, session)
    }

    fn name_of(&self, upf: UpfHandle) -> Option<&str> {
        self.upfs.info(upf).map(|info| info.name.as_str())
    }

    fn log(&self, key: Key, level: Level, out: &mut Outbox, text: impl FnOnce(&SmContext) -> String) {
        if let Some(context) = self.contexts.get(key) {
            let name =
                || format!("{} session {}: {}", context.supi.masked(), context.pdu_session_id, text(context));
            out.log(level, name);
        }
    }
}

impl NetworkFunction for Smf {
    fn handle(&mut self, _now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Request { from, request } => self.request(from, request, out),
            Input::Reply { tag, .. } if tag == NOBODY => {}
            Input::Reply { tag, reply, .. } => self.reply(tag, reply, out),
            Input::N4(input) => self.n4(*input, out),
            Input::Timer(key) => self.timer(key, out),
            Input::N2(_) | Input::Stored { .. } => {}
        }
    }

    fn operate(&mut self, _now: Instant, what: &Order, out: &mut Outbox, list: &mut Vec<serde_json::Value>) {
        let (Order::Branch { supi, pdu_session_id, .. } | Order::Unbranch { supi, pdu_session_id }) = what
        else {
            return;
        };
        let Some(key) = self.session_of(supi, *pdu_session_id) else { return };
        let result = match what {
            Order::Branch { upf, destinations, .. } => self.branch(key, upf, destinations, out),
            _ => self.unbranch(key, out),
        };
        let refusal = result.err().map(|error| error.to_string());
        list.push(json!({ "supi": supi, "pduSessionId": pdu_session_id, "refusal": refusal }));
    }

    fn inspect(&self, what: Inspect, list: &mut Vec<serde_json::Value>) {
        if what != Inspect::Sessions {
            return;
        }
        list.extend(self.contexts.iter().map(|(_, context)| {
            let front = context.front.as_ref();
            json!({
                "supi": context.supi,
                "pduSessionId": context.pdu_session_id,
                "dnn": context.dnn,
                "snssai": context.snssai.to_string(),
                "ipv4": context.address,
                "state": context.state.name(),
                "userPlane": if context.gnb.is_some() { "active" } else { "inactive" },
                "upf": context.anchor.and_then(|session| self.name_of(session.upf)),
                "frontUpf": front.and_then(|front| self.name_of(front.session.upf)),
                "breakouts": front.map(Front::breakouts).unwrap_or_default(),
            })
        }));
    }
}
