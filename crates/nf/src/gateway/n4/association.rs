//! PFCP associations and heartbeats (TS 29.244 6.2.2, 6.2.6, 6.2.8).

use super::overload::LoadControl;
use super::{Association, N4Gateway, N4GatewayEffect, Peer, Purpose};
use crate::kit::{Duration, Level, N4Input, Timer, TimerKey, UpfHandle, UpfInfo};
use pith_pfcp::Message;
use pith_pfcp::ie::{Cause, CpFunctionFeatures, NodeId, NtpSeconds, SmfSetId, UpFunctionFeatures};
use pith_pfcp::message::{
    AssociationReleaseRequest, AssociationSetupRequest, AssociationSetupResponse, HeartbeatRequest,
};
use pith_types::{Seid, words_of_name};
use std::net::SocketAddr;
use std::sync::Arc;

/// Why an association is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// The UPF is gone, or one side has released the association.
    End,
    /// The UPF has lost association and sessions, or may have (TS 23.527 4.3.2).
    Restart,
}

impl N4Gateway {
    /// Requests an association with a UPF (TS 29.244 6.2.6.2.1).
    pub(super) fn associate(&mut self, peer: usize) {
        if self.handle_of(peer).is_some() {
            return;
        }
        let mut request = AssociationSetupRequest::new(self.node_id(), self.recovery());
        request.cp_function_features = Some(self.features());
        request.smf_set_id = self.config.smf_set.as_deref().map(SmfSetId::of_name);
        request.session_retention_information = self.retention_request(peer);
        let message = Message::AssociationSetupRequest(request);
        self.request(peer, Purpose::Association { peer }, Seid(0), &message);
    }

    pub(super) fn association_response(&mut self, peer: usize, message: Message) {
        let Message::AssociationSetupResponse(response) = message else { return self.retry_later(peer) };
        if response.cause != Cause::RequestAccepted {
            let name = self.name(peer);
            self.event(
                Level::Warn,
                format!(
                    "UPF {name} refuses the association: {}",
                    words_of_name(&format!("{:?}", response.cause))
                ),
            );
            return self.retry_later(peer);
        }
        let node = response.node_id.clone();
        match self.suitability(peer, &node, response.up_function_features) {
            Ok(()) => {
                let has_retained = self.note_retained(peer, &response);
                let shares_sessions = self.shares_sessions(response.up_function_features);
                let sessions = FormerSessions { has_retained, shares_sessions };
                self.stand(peer, response.recovery_time_stamp, node, sessions);
            }
            Err(why) => {
                self.log_unsuitable(peer, why);
                let message =
                    Message::AssociationReleaseRequest(AssociationReleaseRequest::new(self.node_id()));
                self.request(peer, Purpose::Release { peer }, Seid(0), &message);
                self.start_after(Timer::PfcpAssociationRetry, peer, self.config.heartbeat);
            }
        }
    }

    /// A UPF requests an association (TS 29.244 6.2.6.3).
    pub(super) fn peer_associates(
        &mut self,
        from: SocketAddr,
        sequence: u32,
        request: &AssociationSetupRequest,
    ) {
        let Some(peer) = self.peer_at(from) else { return };
        let suitability = self.suitability(peer, &request.node_id, request.up_function_features);
        self.lose(peer, Loss::Restart, "sets up the association again");
        let cause = if suitability.is_ok() { Cause::RequestAccepted } else { Cause::RequestRejected };
        let mut answer = AssociationSetupResponse::new(self.node_id(), cause, self.recovery());
        answer.cp_function_features = Some(self.features());
        answer.smf_set_id = self.config.smf_set.as_deref().map(SmfSetId::of_name);
        self.answer(from, Seid(0), sequence, &Message::AssociationSetupResponse(answer));
        match suitability {
            Ok(()) => {
                self.forget_retained(peer);
                let shares_sessions = self.shares_sessions(request.up_function_features);
                let sessions = FormerSessions { has_retained: false, shares_sessions };
                self.stand(peer, request.recovery_time_stamp, request.node_id.clone(), sessions);
            }
            Err(why) => {
                self.log_unsuitable(peer, why);
                self.start(Timer::PfcpAssociationRetry, peer);
            }
        }
    }

    /// Whether a UPF can have sessions: it must allocate F-TEIDs, because this SMF allocates none
    /// (feature FTUP, TS 29.244 5.5.1), and its Node ID must be unique.
    pub(super) fn suitability(
        &self,
        peer: usize,
        node: &NodeId,
        features: Option<UpFunctionFeatures>,
    ) -> Result<(), &'static str> {
        if !features.is_some_and(|features| features.contains(UpFunctionFeatures::FTUP)) {
            return Err(
                "does not allocate F-TEIDs (feature FTUP): enable FTUP in the UPF, or remove it from 'n4.upfs'",
            );
        }
        let has_it =
            |other: &Peer| matches!(&other.association, Association::Up { node: its, .. } if its == node);
        if (0..).zip(&self.peers).any(|(at, other)| at != peer && has_it(other)) {
            Err("has the Node ID of another UPF of 'n4.upfs': configure a different one for each")
        } else {
            Ok(())
        }
    }

    /// Logs once that a UPF is unsuitable, until it becomes suitable.
    pub(super) fn log_unsuitable(&mut self, peer: usize, why: &str) {
        self.give_up_restarted(peer);
        let Some(slot) = self.peers.get_mut(peer) else { return };
        if !std::mem::replace(&mut slot.is_unsuitable, true) {
            let name = self.name(peer);
            self.event(Level::Error, format!("UPF {name} gets no sessions: it {why}"));
        }
    }

    /// The association is established.
    fn stand(&mut self, peer: usize, recovery: NtpSeconds, node: NodeId, sessions: FormerSessions) {
        let FormerSessions { has_retained, shares_sessions } = sessions;
        // This side may also have requested the association.
        self.abandon_requests(peer);
        self.handles += 1;
        let handle = UpfHandle(self.handles);
        let local_address = self.config.address;
        let Some(slot) = self.peers.get_mut(peer) else { return };
        let info = Arc::new(UpfInfo {
            name: slot.config.name.clone(),
            address: slot.config.address.ip(),
            local_address,
            has_retained,
            shares_sessions,
        });
        slot.is_unsuitable = false;
        slot.is_proven = false;
        slot.failed_setups = 0;
        slot.restarted = None;
        slot.association = Association::Up { handle, recovery, node, info: Arc::clone(&info) };
        let of_sessions = if has_retained { ", with its sessions" } else { "" };
        self.event(Level::Info, format!("UPF {} ({}) associated{of_sessions}", info.name, info.address));
        self.send_to_all_shards(|| N4Input::UpfUp { upf: handle, info: Arc::clone(&info) });
        self.start(Timer::PfcpHeartbeat, peer);
    }

    /// Supported features of this CP function (TS 29.244 8.2.58).
    fn features(&self) -> CpFunctionFeatures {
        let of_set = self.config.smf_set.is_some();
        CpFunctionFeatures::LOAD
            | CpFunctionFeatures::OVRL
            | CpFunctionFeatures::default().with(CpFunctionFeatures::MPAS, of_set)
    }

    /// Whether another SMF of the set may have controlled sessions of this one at the UPF.
    fn shares_sessions(&self, features: Option<UpFunctionFeatures>) -> bool {
        let has_feature = features.is_some_and(|it| it.contains(UpFunctionFeatures::MPAS));
        self.config.smf_set.is_some() && has_feature
    }

    /// Sends a heartbeat request to a UPF (TS 29.244 6.2.2).
    pub(super) fn heartbeat(&mut self, peer: usize) {
        if self.handle_of(peer).is_some() {
            let message = Message::HeartbeatRequest(HeartbeatRequest::new(self.recovery()));
            self.request(peer, Purpose::Heartbeat { peer }, Seid(0), &message);
        }
    }

    /// A UPF that restarted has lost its sessions (TS 29.244 6.2.2.2, TS 23.527 4.2).
    pub(super) fn heartbeat_response(&mut self, peer: usize, message: Message) {
        let Message::HeartbeatResponse(response) = message else { return };
        match self.peers.get(peer).map(|peer| &peer.association) {
            Some(Association::Up { recovery, .. }) if *recovery == response.recovery_time_stamp => {
                self.start(Timer::PfcpHeartbeat, peer);
                self.note_proof(peer);
                if let Some(slot) = self.peers.get_mut(peer) {
                    slot.heartbeats += 1;
                }
                self.delete_orphans(peer);
                self.repeat_deletions(peer);
            }
            Some(Association::Up { .. }) => self.associate_again(peer),
            _ => {}
        }
    }

    /// The UPF is lost, or has restarted and does not answer a peer without association (Open5GS): it gets another one now, or its sessions end.
    pub(super) fn heartbeat_unanswered(&mut self, peer: usize) {
        self.lose(peer, Loss::Restart, "does not answer heartbeats");
        self.associate(peer);
    }

    /// The association has ended: notifies the SMFs. After [`Loss::Restart`] the caller sets it up again.
    pub(super) fn lose(&mut self, peer: usize, loss: Loss, why: &str) {
        let Some(upf) = self.handle_of(peer) else { return };
        if let Some(slot) = self.peers.get_mut(peer) {
            slot.association = Association::Down;
            slot.told = LoadControl::default();
            slot.refused = Vec::new();
            self.transactions.forget_answers(slot.config.address);
        }
        self.forget_retained(peer);
        let name = self.name(peer);
        let outcome = match loss {
            Loss::End => "its sessions are lost",
            Loss::Restart => "its sessions are established again if it can be associated",
        };
        self.event(Level::Error, format!("UPF {name} {why}: {outcome}"));
        for of_association in [Timer::PfcpHeartbeat, Timer::PfcpGracefulRelease] {
            self.out.push(N4GatewayEffect::StopTimer(timer(of_association, peer)));
        }
        self.abandon_requests(peer);
        match loss {
            Loss::End => {
                self.send_to_all_shards(|| N4Input::UpfDown { upf });
                self.start(Timer::PfcpAssociationRetry, peer);
            }
            Loss::Restart => {
                if let Some(slot) = self.peers.get_mut(peer) {
                    slot.restarted = Some(upf);
                }
                self.send_to_all_shards(|| N4Input::UpfRestarted { upf });
            }
        }
    }

    /// The association works.
    pub(super) fn note_proof(&mut self, peer: usize) {
        if let Some(slot) = self.peers.get_mut(peer) {
            slot.is_proven = true;
        }
    }

    /// The UPF has lost the association, and answers: it gets another one at once, or after a pause if it had the last one for
    /// a short time only.
    pub(super) fn associate_again(&mut self, peer: usize) {
        self.lose(peer, Loss::Restart, "restarted");
        if self.peers.get(peer).is_some_and(|peer| peer.is_proven) {
            return self.associate(peer);
        }
        self.start(Timer::PfcpAssociationRetry, peer);
    }

    /// A UPF that has lost its association can't be associated: its sessions are lost.
    fn give_up_restarted(&mut self, peer: usize) {
        if let Some(upf) = self.peers.get_mut(peer).and_then(|slot| slot.restarted.take()) {
            let name = self.name(peer);
            self.event(Level::Error, format!("UPF {name} can't be associated again: its sessions are lost"));
            self.send_to_all_shards(|| N4Input::UpfDown { upf });
        }
    }

    /// Abandons pending requests to a peer: their responses no longer have a meaning.
    fn abandon_requests(&mut self, peer: usize) {
        let Some(address) = self.peers.get(peer).map(|peer| peer.config.address) else { return };
        for sequence in self.transactions.pending_to(address) {
            self.abandon(peer, sequence);
        }
    }

    pub(super) fn retry_later(&mut self, peer: usize) {
        self.give_up_restarted(peer);
        if let Some(slot) = self.peers.get_mut(peer) {
            slot.failed_setups += 1;
        }
        let name = self.name(peer);
        self.event(Level::Warn, format!("UPF {name} does not associate yet; trying again"));
        self.start(Timer::PfcpAssociationRetry, peer);
    }

    /// The process is stopping: releases all associations, so that UPFs delete its sessions (TS
    /// 29.244 6.2.8).
    pub(super) fn release_all(&mut self) {
        (0..self.peers.len()).for_each(|peer| self.release(peer));
    }

    /// Requests a UPF to release the association, which ends with the response (TS 29.244 6.2.8.2).
    pub(super) fn release(&mut self, peer: usize) {
        if self.handle_of(peer).is_some() {
            let message = Message::AssociationReleaseRequest(AssociationReleaseRequest::new(self.node_id()));
            self.request(peer, Purpose::Release { peer }, Seid(0), &message);
        }
    }

    pub(super) fn name(&self, peer: usize) -> String {
        self.peers.get(peer).map(|peer| peer.config.name.clone()).unwrap_or_default()
    }

    fn start(&mut self, name: Timer, peer: usize) {
        let after = match name {
            Timer::PfcpAssociationRetry => self.config.heartbeat.min(self.config.t1),
            _ => self.config.heartbeat,
        };
        self.start_after(name, peer, after);
    }

    fn start_after(&mut self, name: Timer, peer: usize, after: Duration) {
        self.out.push(N4GatewayEffect::StartTimer { key: timer(name, peer), after });
    }
}

/// Sessions that a UPF may have when its association is set up.
#[derive(Debug, Clone, Copy)]
struct FormerSessions {
    has_retained: bool,
    shares_sessions: bool,
}

pub(super) fn timer(timer: Timer, peer: usize) -> TimerKey {
    TimerKey { owner: peer as u64, timer }
}
