//! INITIAL UE MESSAGEs of UEs whose block another AMF of the set has.
//!
//! ```text
//!  gNB ── INITIAL UE MESSAGE, 5G-S-TMSI ──> gateway   the other AMF is gone, its lease has not ended: the message waits
//!                                           block passes to this AMF ──> its shard
//!                                           time is over             ──> the other AMF lives, or none has its blocks yet:
//!                                                                        ERROR INDICATION, the UE tries again
//!                                           for the fourth time,
//!                                           and the other AMF lives  ──> as of an unknown UE
//! ```
//!
//! A gNB that has lost an AMF selects another one of its set at once (TS 23.501 5.21.2.2.2), before the blocks have another owner. If
//! the AMF rejected the UE then, it would register again. If the other AMF has returned before its lease ended, no block passes: the gNB
//! releases the UE (TS 38.413 8.7.5, 10.6), which tries again, and selects that AMF. If the store or the machines are slow, the blocks pass
//! later than they should. A gNB that comes again and again with the UE has no association with that AMF.
//!
//! While the store does not answer, or the block's AMF is gone and its blocks have no other owner yet, the UE is sent back each time, however
//! often: it keeps its registration, and is served when the store answers again. A message waits before it is sent back, so that a UE does
//! not return faster than once in that time, and the UE counts its attempts (T3525, TS 24.501 5.6.1.7). A UE for which there is no room gets
//! cause #22 from a shard.

use super::{N2Gateway, N2GatewayEffect};
use crate::kit::{Duration, GnbHandle, Instant, SetInstances, TnlaBinding};
use bytes::Bytes;
use pith_ngap::{Cause, CauseRadioNetwork, peek};
use pith_types::{BlockId, FiveGSTmsi};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Messages that wait; a shard answers further ones.
const MOST_WAITING: usize = 1 << 14;

/// Time in which a UE is sent back `TIMES` times.
const AGAIN: Duration = Duration::from_secs(60);

/// How often a UE is sent back whose AMF lives.
const TIMES: u8 = 3;

/// UEs that were sent back and are remembered; the oldest is forgotten first.
const MOST_SENT_BACK: usize = 1 << 14;

/// Octets of these messages.
const MOST_OCTETS: usize = 8 << 20;

/// Messages that wait for blocks of other AMFs.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    /// How long a message waits; `None` if no AMF has others' blocks.
    patience: Option<Duration>,
    /// The instances of the set.
    pub(super) instances: Arc<SetInstances>,
    waiting: VecDeque<Waiting>,
    octets: usize,
    /// UEs that were sent back, and until when that counts.
    sent_back: VecDeque<(Instant, FiveGSTmsi)>,
    /// How often each of these was.
    times: HashMap<FiveGSTmsi, u8>,
}

#[derive(Debug)]
struct Waiting {
    until: Instant,
    block: BlockId,
    gnb: GnbHandle,
    binding: TnlaBinding,
    pdu: Bytes,
}

impl Elsewhere {
    /// Whether the UE is sent back: not if it was too often recently.
    fn sends_back(&mut self, now: Instant, ue: FiveGSTmsi) -> bool {
        while self.sent_back.len() >= MOST_SENT_BACK
            || self.sent_back.front().is_some_and(|(until, _)| *until <= now)
        {
            let Some((_, old)) = self.sent_back.pop_front() else { break };
            self.times.remove(&old);
        }
        let times = self.times.entry(ue).or_default();
        if *times == 0 {
            self.sent_back.push_back((now + AGAIN, ue));
        }
        let is_sent_back = *times < TIMES;
        *times += u8::from(is_sent_back);
        is_sent_back
    }
}

impl N2Gateway {
    /// The AMF has blocks that other AMFs of its set had, and the 5G-GUTIs of these. Messages for other blocks wait for this time.
    #[must_use]
    pub const fn sharing_blocks(mut self, patience: Duration) -> Self {
        self.elsewhere.patience = Some(patience);
        self
    }

    /// Whether 5G-GUTIs of other AMFs of the set may be of this one's UEs.
    pub(super) const fn shares_blocks(&self) -> bool {
        self.elsewhere.patience.is_some()
    }

    /// Keeps a message if another AMF has its block; returns whether it did.
    pub(super) fn wait_for_owner(
        &mut self,
        block: BlockId,
        gnb: GnbHandle,
        binding: TnlaBinding,
        pdu: &Bytes,
    ) -> bool {
        let Some(patience) = self.elsewhere.patience else { return false };
        let has_room = self.elsewhere.waiting.len() < MOST_WAITING && self.elsewhere.octets < MOST_OCTETS;
        if self.shard_of(block).is_some() || !has_room {
            return false;
        }
        let until = self.admission.now + patience;
        self.elsewhere.octets += pdu.len();
        self.elsewhere.waiting.push_back(Waiting { until, block, gnb, binding, pdu: pdu.clone() });
        true
    }

    /// A block has passed to this AMF: messages for it continue.
    pub(super) fn resume_elsewhere(&mut self, block: BlockId) {
        if self.shard_of(block).is_none() {
            return;
        }
        let waiting = std::mem::take(&mut self.elsewhere.waiting);
        let (ready, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|it| it.block == block);
        self.elsewhere.waiting = others.into();
        for Waiting { gnb, binding, pdu, .. } in ready {
            self.elsewhere.octets -= pdu.len();
            self.route_held(gnb, binding, &pdu);
        }
    }

    /// Messages have waited for too long: their UEs try again, or are unknown.
    pub(super) fn end_elsewhere(&mut self, now: Instant) {
        while let Some(late) = self.elsewhere.waiting.pop_front_if(|waiting| waiting.until <= now) {
            self.elsewhere.octets -= late.pdu.len();
            let Some(peeked) = peek(&late.pdu) else { continue };
            let ue = self.temporary_identity(&peeked);
            let owner = self.config.owners.owner(late.block).instance;
            let may_be_gone = self.elsewhere.instances.may_be_gone(owner);
            if ue.is_some_and(|ue| may_be_gone || self.elsewhere.sends_back(now, ue)) {
                let cause = Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID);
                if let Some(tnla) = self.association_of(late.gnb, late.binding) {
                    self.error_indication(tnla, None, peeked.ran_ue_ngap_id, cause);
                }
                continue;
            }
            self.begin_connection(late.gnb, late.binding, &late.pdu, &peeked);
        }
    }

    /// When the first message has waited for too long.
    pub(super) fn next_late_elsewhere(&self) -> Option<Instant> {
        self.elsewhere.waiting.front().map(|waiting| waiting.until)
    }

    /// A gNB is gone, and its UEs with it.
    pub(super) fn forget_elsewhere(&mut self, gnb: GnbHandle) {
        self.elsewhere.waiting.retain(|waiting| waiting.gnb != gnb);
        self.elsewhere.octets = self.elsewhere.waiting.iter().map(|waiting| waiting.pdu.len()).sum();
    }

    /// Routes an INITIAL UE MESSAGE to a shard.
    pub(super) fn begin_connection(
        &mut self,
        gnb: GnbHandle,
        binding: TnlaBinding,
        pdu: &Bytes,
        peeked: &pith_ngap::Peek<'_>,
    ) {
        let shard = self.shard_of_new(peeked);
        self.end_earlier_connection(gnb, peeked.ran_ue_ngap_id, shard);
        self.out.push(N2GatewayEffect::ToShard {
            shard,
            input: crate::kit::N2Input::Pdu { gnb, binding, pdu: pdu.clone() },
        });
    }
}

#[cfg(test)]
mod tests;
