//! Heartbeats in both directions, restart and path failure of an SMF (TS 29.244 6.2.2, TS 23.527 4).
//!
//! ```text
//! SMF  Heartbeat Request   ─▶  Heartbeat Response; another Recovery Time Stamp: the SMF restarted
//!      Heartbeat Response  ◀─  every `heartbeat_interval`; N1 times no response: the path failed
//! ```

use std::net::SocketAddr;
use std::time::Duration;

use pith_pfcp::Header;
use pith_pfcp::ie::{NodeId, NtpSeconds};
use pith_pfcp::message::{HeartbeatRequest, HeartbeatResponse};

use crate::association::{Association, PathState};
use crate::port::{Context, Notice};
use crate::upf::{Purpose, Upf};

impl Upf {
    /// Answers a heartbeat. Unknown peers are handled in `unknown_peers` (TS 29.244 6.2.2.2). Its Recovery Time Stamp counts
    /// only from the PFCP port or the port of the association: a process without privileges at the SMF's address can send
    /// from any other.
    pub(crate) fn heartbeat_request(
        &mut self,
        context: &mut Context<'_>,
        peer: SocketAddr,
        header: &Header,
        request: &HeartbeatRequest,
    ) {
        let is_port =
            |node: &&NodeId| self.associations.get(node).is_some_and(|known| known.is_port(peer.port()));
        let nodes: Vec<_> = self.nodes_at(peer).filter(is_port).cloned().collect();
        for node in &nodes {
            self.path_recovered(context, node);
            self.recovered_at(context, node, request.recovery_time_stamp);
        }
        let response = HeartbeatResponse::new(self.config.recovery_time_stamp());
        context.send(peer, 0, header.sequence, &response.into());
    }

    /// The SMF answered: schedules the next heartbeat.
    pub(crate) fn heartbeat_response(
        &mut self,
        context: &mut Context<'_>,
        node: &NodeId,
        recovery: NtpSeconds,
    ) {
        let next = context.now + self.config.heartbeat_interval;
        let Some(association) = self.associations.get_mut(node) else { return };
        association.next_heartbeat = Some(next);
        self.path_recovered(context, node);
        self.recovered_at(context, node, recovery);
    }

    /// The SMF lives: it has answered, or has sent a heartbeat of its own while its answers were lost.
    fn path_recovered(&mut self, context: &mut Context<'_>, node: &NodeId) {
        let Some(association) = self.associations.get_mut(node) else { return };
        if std::mem::replace(&mut association.path, PathState::Up) != PathState::Up {
            context.notice(Notice::PathRecovered { node: node.clone() });
        }
    }

    /// Deletes the sessions of an SMF with a changed Recovery Time Stamp: it has restarted and lost them. Others of its set may have
    /// them.
    fn recovered_at(&mut self, context: &mut Context<'_>, node: &NodeId, recovery: NtpSeconds) {
        let Some(association) = self.associations.get_mut(node) else { return };
        if !association.recovered_at(context.now, recovery) {
            return;
        }
        let lost = self.sessions.matching(|session| session.node == *node && !self.has_other_smf(session));
        let sessions = self.drop_sessions(context, &lost, "the SMF restarted");
        context.notice(Notice::PeerRestarted { node: node.clone(), sessions });
    }

    /// An SMF did not answer: its sessions are retained for some time, and heartbeats continue.
    pub(crate) fn path_failed(&mut self, context: &mut Context<'_>, node: &NodeId) {
        let next = context.now + self.config.heartbeat_interval;
        let Some(association) = self.associations.get_mut(node) else { return };
        association.next_heartbeat = Some(next);
        if association.path == PathState::Up {
            association.path = PathState::FailedSince(context.now);
            context.notice(Notice::PathFailed { node: node.clone() });
        }
    }

    /// The time of an association's next heartbeat or of its end.
    pub(crate) fn association_due(&self, association: &Association) -> Option<Duration> {
        let given_up = match association.path {
            PathState::Up => None,
            PathState::FailedSince(since) => Some(since + self.config.path_failure_retention),
        };
        association.next_heartbeat.into_iter().chain(given_up).min()
    }

    /// Sends due heartbeats, and ends associations of SMFs that were silent longer than the retention time.
    pub(crate) fn process_association_timers(&mut self, context: &mut Context<'_>) {
        let retention = self.config.path_failure_retention;
        let is_lost = |association: &Association| match association.path {
            PathState::Up => false,
            PathState::FailedSince(since) => since + retention <= context.now,
        };
        let lost: Vec<_> = self
            .associations
            .iter()
            .filter(|(_, each)| is_lost(each))
            .map(|(node, _)| node.clone())
            .collect();
        lost.iter().for_each(|node| self.lose_association(context, node, "the SMF does not answer"));
        let is_due = |due: Option<Duration>| due.is_some_and(|due| due <= context.now);
        let due = self.associations.iter().filter(|(_, each)| is_due(each.next_heartbeat));
        let due: Vec<_> = due.map(|(node, association)| (node.clone(), association.address)).collect();
        due.into_iter().for_each(|(node, address)| self.send_heartbeat(context, node, address));
    }

    fn send_heartbeat(&mut self, context: &mut Context<'_>, node: NodeId, address: SocketAddr) {
        self.associations
            .get_mut(&node)
            .into_iter()
            .for_each(|association| association.next_heartbeat = None);
        let request = HeartbeatRequest::new(self.config.recovery_time_stamp());
        self.request(context, address, 0, &request.into(), Purpose::Heartbeat(node));
    }
}
