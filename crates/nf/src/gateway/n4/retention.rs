//! Sessions that a UPF retains while the process is started again (TS 29.244 6.2.6.2, 7.4.4.1, 7.4.6; TS 23.527 4.2).
//!
//! ```text
//!  SMF ─> Association Setup Request       Session Retention Information
//!      <─ Association Setup Response      PSREI: the UPF has the sessions
//!      ─> Session Modification Request    for each session of each shard: its rules, and FQ-CSID of this run
//!      ─> Session Set Deletion Request    FQ-CSIDs of former runs: sessions that the SMF does not know
//! ```
//!
//! Each run of the process is a session set with an identifier of its own (CSID). A session gets that of the run which establishes
//! it, and then that of each run which confirms it. So a session that still has the identifier of a former run, when all shards
//! have confirmed theirs, belongs to none: its establishment was in progress when the process ended, or the request for its
//! deletion did not arrive.

use super::{N4Gateway, Purpose};
use crate::kit::{Level, UpfHandle};
use pith_pfcp::Message;
use pith_pfcp::ie::{Cause, CsidNode, FqCsid, PfcpAsRspFlags};
use pith_pfcp::message::{AssociationSetupResponse, SessionRetentionInformation, SessionSetDeletionRequest};
use pith_types::{Seid, ShardId};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// Number of former runs whose sessions are deleted: that of identifiers which an FQ-CSID has room for (TS 29.244 8.2.43).
const FORMER_RUNS: u16 = 15;

/// The node type of an SMF in an FQ-CSID (TS 29.244 table 8.2.43-2).
const SMF_NODE: u8 = 2;

/// A run of a process whose contexts are stored without loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredRun {
    /// The identifier of this run's sessions at UPFs: that of the former run plus 1.
    pub session_set: u16,
    /// A former run's sessions go on: UPFs are requested to retain them.
    pub has_former: bool,
}

/// What a UPF has of former runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Retained {
    /// Perhaps sessions: the UPF was not asked yet.
    Unknown,
    /// Sessions, which these shards have confirmed.
    Sessions(BTreeSet<ShardId>),
    /// Perhaps sessions that no shard knows. They are deleted as many times: a request of the former run may arrive late.
    Orphans(u8),
    /// Nothing.
    Nothing,
}

impl Retained {
    /// Before the first association.
    pub(super) fn at_start(run: Option<StoredRun>) -> Self {
        if run.is_some_and(|run| run.has_former) { Self::Unknown } else { Self::Nothing }
    }
}

impl N4Gateway {
    /// The request to a UPF to retain all sessions of this SMF (TS 29.244 table 7.4.4.1-2). Open5GS's UPF discards a message with it: each second
    /// attempt to associate does not have it.
    pub(super) fn retention_request(&self, peer: usize) -> Option<SessionRetentionInformation> {
        let slot = self.peers.get(peer)?;
        let is_requested = slot.retained == Retained::Unknown && slot.failed_setups % 2 == 0;
        is_requested.then(SessionRetentionInformation::new)
    }

    /// Whether the UPF has retained the sessions that it was requested to.
    pub(super) fn note_retained(&mut self, peer: usize, response: &AssociationSetupResponse) -> bool {
        let flags = response.pfcp_as_rsp_flags.unwrap_or_default();
        let Some(slot) = self.peers.get_mut(peer) else { return false };
        let has_retained = slot.retained == Retained::Unknown && flags.contains(PfcpAsRspFlags::PSREI);
        slot.retained = if has_retained { Retained::Sessions(BTreeSet::new()) } else { Retained::Nothing };
        has_retained
    }

    /// The UPF has lost the sessions, or the SMF ends them.
    pub(super) fn forget_retained(&mut self, peer: usize) {
        if let Some(slot) = self.peers.get_mut(peer) {
            slot.retained = Retained::Nothing;
        }
    }

    /// Whether a report may be of a session that the UPF is about to be requested to retain. It is not answered: cause 72 would
    /// lose it. The UPF repeats it after T1.
    pub(super) fn expects_sessions_of(&self, from: SocketAddr) -> bool {
        let peer = self.peer_at(from).and_then(|peer| self.peers.get(peer));
        peer.is_some_and(|peer| peer.retained == Retained::Unknown)
    }

    /// Adds the identifier of this run's sessions to a request: to each that establishes a session, and to others as long as sessions are
    /// being confirmed.
    pub(super) fn add_session_set(&self, peer: usize, message: &mut Message) {
        let Some(run) = self.config.run else { return };
        let is_confirming =
            || self.peers.get(peer).is_some_and(|peer| matches!(peer.retained, Retained::Sessions(_)));
        match message {
            Message::SessionEstablishmentRequest(request) => {
                request.fq_csids = vec![self.session_sets(vec![run.session_set])];
            }
            Message::SessionModificationRequest(request) if is_confirming() => {
                request.fq_csids = vec![self.session_sets(vec![run.session_set])];
            }
            _ => {}
        }
    }

    fn session_sets(&self, csids: Vec<u16>) -> FqCsid {
        let node = match self.config.address {
            IpAddr::V4(address) => CsidNode::Ipv4(address),
            IpAddr::V6(address) => CsidNode::Ipv6(address),
        };
        FqCsid { node, csids, node_type: Some(SMF_NODE) }
    }

    /// A shard has confirmed all its sessions at that UPF.
    pub(super) fn confirmed(&mut self, shard: ShardId, upf: UpfHandle) {
        let shards = usize::from(self.config.shards);
        let Some(peer) = self.peer_of(upf) else { return };
        let Some(slot) = self.peers.get_mut(peer) else { return };
        let Retained::Sessions(confirmed) = &mut slot.retained else { return };
        confirmed.insert(shard);
        if confirmed.len() >= shards {
            slot.retained = Retained::Orphans(2);
            self.delete_orphans(peer);
        }
    }

    /// Requests the UPF to delete sessions that only former runs have known (TS 29.244 6.2.9), if that is due.
    pub(super) fn delete_orphans(&mut self, peer: usize) {
        let is_due = self.peers.get(peer).is_some_and(|peer| matches!(peer.retained, Retained::Orphans(_)));
        let Some(run) = self.config.run.filter(|_| is_due) else { return };
        let former = (1..=FORMER_RUNS).map(|back| run.session_set.wrapping_sub(back)).collect();
        let mut request = SessionSetDeletionRequest::new(self.node_id());
        request.fq_csids = vec![self.session_sets(former)];
        let message = Message::SessionSetDeletionRequest(request);
        self.request(peer, Purpose::Orphans { peer }, Seid(0), &message);
    }

    /// The UPF has deleted them. After the next heartbeat it is requested once more.
    pub(super) fn orphans_deleted(&mut self, peer: usize, response: &Message) {
        let Message::SessionSetDeletionResponse(response) = response else { return };
        let is_deleted = response.cause == Cause::RequestAccepted;
        let Some(slot) = self.peers.get_mut(peer) else { return };
        slot.retained = match slot.retained {
            Retained::Orphans(times) if is_deleted && times > 1 => Retained::Orphans(times - 1),
            _ => Retained::Nothing,
        };
        if !is_deleted {
            let text = format!(
                "UPF {} deletes no session sets: sessions that this SMF does not know may remain there",
                self.name(peer)
            );
            self.event(Level::Warn, text);
        }
    }

    /// A shard continues after a panic, and does not know which sessions its former run has confirmed: none may be deleted as
    /// unconfirmed.
    pub(super) fn keep_unconfirmed(&mut self) {
        for peer in 0..self.peers.len() {
            let Some(slot) = self.peers.get_mut(peer) else { continue };
            if matches!(slot.retained, Retained::Sessions(_)) {
                slot.retained = Retained::Nothing;
                let text = format!(
                    "UPF {} may keep sessions that this SMF does not know until the next start",
                    self.name(peer)
                );
                self.event(Level::Warn, text);
            }
        }
    }
}
