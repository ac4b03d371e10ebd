//! Association set-up, update and release (TS 29.244 6.2.6 to 6.2.8), and deletion of session sets.
//!
//! ```text
//! SMF  Association Setup Request    ─▶  overwrites one of the same Node ID; its sessions go, or are retained. From another port
//!                                       than before, only if the SMF restarted or is silent: a heartbeat asks it
//!      Association Update Request   ─▶  new features of the SMF
//!      Association Release Request  ─▶  its sessions go; always accepted
//!      Association Update Request   ◀─  the operator stops the UPF: please release
//! ```

use std::net::SocketAddr;
use std::time::Duration;

use pith_pfcp::Message;
use pith_pfcp::ie::{Cause, CodedDuration, EntityIpAddress, NodeId, PfcpAsRspFlags, ReleaseRequestFlags};
use pith_pfcp::message::*;

use crate::association::{Association, PathState, up_function_features};
use crate::contract::SessionId;
use crate::port::{Context, Notice};
use crate::session::{PFCP_PORT, Session};
use crate::upf::{ProcedureResult, Purpose, Reply, Upf};

/// Session sets in a request, each with up to 15 identifiers: there is one for each type of node (TS 29.244 8.2.43).
pub(crate) const MAX_FQ_CSIDS: usize = 8;

impl Upf {
    /// Sets up an association (TS 29.244 6.2.6.2.2).
    pub(crate) fn association_setup(
        &mut self,
        context: &mut Context<'_>,
        peer: SocketAddr,
        request: AssociationSetupRequest,
    ) -> ProcedureResult {
        let set = self.set_of_request(&request);
        let node = request.node_id;
        let has_association = self.associations.contains_key(&node);
        let is_full = self.associations.len() >= self.config.max_associations
            || self.nodes_at(peer).count() >= self.config.max_associations_of_peer;
        if !has_association && is_full {
            return Err((0, Cause::NoResourcesAvailable.into()));
        }
        // Sessions of a set outlive the association of their SMF.
        let existed = has_association || self.sessions.count_of(&node) > 0;
        let retained = request.session_retention_information.as_ref();
        self.responses.forget(peer);
        self.former_addresses.remove(&node);
        if existed {
            self.delete_previous_sessions(context, &node, retained);
        }
        let association = Association {
            address: SocketAddr::new(peer.ip(), PFCP_PORT),
            port: peer.port(),
            cp_features: request.cp_function_features.unwrap_or_default(),
            set,
            recovery: None,
            recovery_at_setup: request.recovery_time_stamp,
            has_restarted: false,
            differed_at: None,
            path: PathState::Up,
            next_heartbeat: Some(context.now + self.config.heartbeat_interval),
        };
        self.associations.insert(node.clone(), association);
        context.notice(Notice::AssociationEstablished { node });
        let accepted = Cause::RequestAccepted;
        let response = AssociationSetupResponse::new(
            self.config.node_id.clone(),
            accepted,
            self.config.recovery_time_stamp(),
        );
        let flags = (existed && retained.is_some()).then_some(PfcpAsRspFlags::PSREI);
        let up_function_features = Some(up_function_features(&self.config));
        Ok((
            0,
            AssociationSetupResponse { up_function_features, pfcp_as_rsp_flags: flags, ..response }.into(),
        ))
    }

    /// Whether a set-up may be of another process at the SMF's address: it comes from another port than the SMF's, while the SMF
    /// answers heartbeats and has not restarted. Served, it would delete the SMF's sessions and make that port one of the SMF's.
    /// An SMF may send requests from any port (TS 29.244 4.4.1), so the UPF sends a heartbeat to its PFCP port and discards the
    /// set-up. If the answer shows another Recovery Time Stamp, the repeated set-up is served.
    pub(crate) fn doubts_setup(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        request: &AssociationSetupRequest,
    ) -> bool {
        let node = &request.node_id;
        let Some(association) = self.associations.get_mut(node) else { return false };
        let is_trusted = association.is_port(peer.port())
            || association.has_restarted(now)
            || association.path != PathState::Up;
        if is_trusted || association.address.ip() != peer.ip() {
            return false;
        }
        if association.next_heartbeat.is_some() {
            association.next_heartbeat = Some(now);
        }
        true
    }

    /// Deletes the sessions of an SMF's previous association, except those that it asks to retain.
    fn delete_previous_sessions(
        &mut self,
        context: &mut Context<'_>,
        node: &NodeId,
        retained: Option<&SessionRetentionInformation>,
    ) {
        let lost = self.sessions.matching(|session| {
            session.node == *node && !retained.is_some_and(|retained| retains(retained, session))
        });
        self.drop_sessions(context, &lost, "the SMF set up its association again");
    }

    /// Checks that a Node ID is used only from the address that its association was set up from, while that
    /// is alive, and a session only by its SMF. Others are answered that they have no association (TS 29.244
    /// 8.2.1, cause 72), or that the session is unknown (cause 65).
    pub(crate) fn check_node_owner(
        &self,
        peer: SocketAddr,
        message: &Message,
        session: SessionId,
    ) -> Result<(), Cause> {
        let is_other = |node: &NodeId| self.associations.contains_key(node) && !self.owns_node_id(peer, node);
        let is_former = |node: &NodeId| {
            let former = self.former_addresses.get(node).filter(|_| self.sessions.count_of(node) > 0);
            former.is_some_and(|former| *former != peer.ip())
        };
        match message {
            Message::AssociationSetupRequest(AssociationSetupRequest { node_id, .. })
                if is_other(node_id) || is_former(node_id) =>
            {
                Err(Cause::RequestRejected)
            }
            // The release of an unknown association is accepted (TS 29.244 6.2.8.3).
            Message::AssociationReleaseRequest(request) => {
                self.check_port(peer, &request.node_id)?;
                if is_other(&request.node_id) { Err(Cause::NoEstablishedPfcpAssociation) } else { Ok(()) }
            }
            Message::AssociationUpdateRequest(request) => {
                self.check_port(peer, &request.node_id)?;
                self.check_node(peer, &request.node_id)
            }
            Message::SessionSetDeletionRequest(request) => {
                self.check_port(peer, &request.node_id)?;
                self.check_node(peer, &request.node_id)
            }
            // Without a SEID: it may take over the UE address of a session (`delete_stale_sessions`).
            Message::SessionEstablishmentRequest(request) => {
                self.check_port(peer, &request.node_id)?;
                self.check_node(peer, &request.node_id)
            }
            Message::SessionModificationRequest(request) => {
                if self.sessions.get(session).is_some_and(|session| self.takes_over(peer, session, request)) {
                    return Ok(());
                }
                self.check_session(peer, session)?;
                request.node_id.iter().try_for_each(|node| self.check_node(peer, node))
            }
            Message::SessionDeletionRequest(request) => {
                let of_set = |it: &Session| self.is_of_its_set(peer, it, request.node_id.as_ref());
                if self.sessions.get(session).is_some_and(of_set) {
                    return Ok(());
                }
                self.check_session(peer, session)
            }
            _ => Ok(()),
        }
    }

    /// Whether the association of a Node ID was set up from that address.
    pub(crate) fn owns_node_id(&self, peer: SocketAddr, node: &NodeId) -> bool {
        self.associations.get(node).is_some_and(|association| association.address.ip() == peer.ip())
    }

    fn check_node(&self, peer: SocketAddr, node: &NodeId) -> Result<(), Cause> {
        self.owns_node_id(peer, node).then_some(()).ok_or(Cause::NoEstablishedPfcpAssociation)
    }

    /// Checks that a request for all sessions of an SMF, or for a new one, comes from one of the SMF's ports. Requests for an existing session
    /// contain a SEID, which no other process knows.
    fn check_port(&self, peer: SocketAddr, node: &NodeId) -> Result<(), Cause> {
        let is_port = |association: &Association| association.is_port(peer.port());
        let fits = self.associations.get(node).is_none_or(is_port);
        fits.then_some(()).ok_or(Cause::NoEstablishedPfcpAssociation)
    }

    fn check_session(&self, peer: SocketAddr, session: SessionId) -> Result<(), Cause> {
        if self.nodes_at(peer).next().is_none() {
            return Err(Cause::NoEstablishedPfcpAssociation);
        }
        let session = self.sessions.get(session).ok_or(Cause::SessionContextNotFound)?;
        self.owns_node_id(peer, &session.node).then_some(()).ok_or(Cause::SessionContextNotFound)
    }

    /// The SMFs whose associations were set up from that address.
    pub(crate) fn nodes_at(&self, peer: SocketAddr) -> impl Iterator<Item = &NodeId> {
        let at = move |association: &Association| association.address.ip() == peer.ip();
        self.associations.iter().filter(move |(_, association)| at(association)).map(|(node, _)| node)
    }

    /// Stores the SMF's new features (TS 29.244 6.2.7.2.2).
    pub(crate) fn association_update(&mut self, request: &AssociationUpdateRequest) -> ProcedureResult {
        let unknown = (0, Cause::NoEstablishedPfcpAssociation.into());
        let association = self.associations.get_mut(&request.node_id).ok_or(unknown)?;
        association.cp_features = request.cp_function_features.unwrap_or(association.cp_features);
        let node = self.config.node_id.clone();
        Ok((0, AssociationUpdateResponse::new(node, Cause::RequestAccepted).into()))
    }

    /// Releases an association; always accepted (TS 29.244 6.2.8.3).
    pub(crate) fn association_release(
        &mut self,
        context: &mut Context<'_>,
        request: &AssociationReleaseRequest,
    ) -> Reply {
        self.end_association(context, &request.node_id, "the SMF released its association");
        (0, AssociationReleaseResponse::new(self.config.node_id.clone(), Cause::RequestAccepted).into())
    }

    /// Ends an association and deletes its sessions, except those that another SMF of their set may take over.
    pub(crate) fn lose_association(
        &mut self,
        context: &mut Context<'_>,
        node: &NodeId,
        reason: &'static str,
    ) {
        let Some(association) = self.associations.remove(node) else { return };
        let is_lost = |session: &Session| session.node == *node && !self.has_other_smf(session);
        let lost = self.sessions.matching(|session| is_lost(session) || self.is_orphaned(session));
        let sessions = self.drop_sessions(context, &lost, reason);
        self.former_addresses.retain(|node, _| self.sessions.count_of(node) > 0);
        if self.sessions.count_of(node) > 0 {
            self.former_addresses.insert(node.clone(), association.address.ip());
        }
        context.notice(Notice::AssociationReleased { node: node.clone(), sessions });
    }

    /// Ends an association and deletes its sessions.
    pub(crate) fn end_association(&mut self, context: &mut Context<'_>, node: &NodeId, reason: &'static str) {
        if self.associations.remove(node).is_none() {
            return;
        }
        let lost = self.sessions.matching(|session| session.node == *node || self.is_orphaned(session));
        let sessions = self.drop_sessions(context, &lost, reason);
        context.notice(Notice::AssociationReleased { node: node.clone(), sessions });
    }

    /// Whether neither the session's SMF nor another one of its set has an association.
    fn is_orphaned(&self, session: &Session) -> bool {
        session.set.is_some()
            && !self.associations.contains_key(&session.node)
            && !self.has_other_smf(session)
    }

    /// Deletes the SMF's sessions in the given sets (TS 29.244 7.4.6).
    pub(crate) fn session_set_deletion(
        &mut self,
        context: &mut Context<'_>,
        request: &SessionSetDeletionRequest,
    ) -> ProcedureResult {
        if request.fq_csids.len() > MAX_FQ_CSIDS {
            return Err((0, Cause::NoResourcesAvailable.into()));
        }
        let in_set = |session: &Session| {
            request.fq_csids.iter().any(|set| {
                session
                    .fq_csids
                    .iter()
                    .any(|of| of.node == set.node && of.csids.iter().any(|id| set.csids.contains(id)))
            })
        };
        let lost = self.sessions.matching(|session| session.node == request.node_id && in_set(session));
        self.drop_sessions(context, &lost, "the SMF deleted its session set");
        Ok((0, SessionSetDeletionResponse::new(self.config.node_id.clone(), Cause::RequestAccepted).into()))
    }

    /// Asks every SMF to release its association within `graceful` (TS 29.244 6.2.7.3.1).
    pub(crate) fn ask_for_release(&mut self, context: &mut Context<'_>, graceful: Duration) {
        let addresses: Vec<_> = self.associations.values().map(|association| association.address).collect();
        let request = AssociationUpdateRequest {
            association_release_request: Some(ReleaseRequestFlags::SARR),
            graceful_release_period: (!graceful.is_zero())
                .then(|| CodedDuration::at_least(graceful.as_secs())),
            ..AssociationUpdateRequest::new(self.config.node_id.clone())
        };
        let message = request.into();
        for address in addresses {
            self.request(context, address, 0, &message, Purpose::Release);
        }
    }
}

/// Whether a session is to be retained: it belongs to a given entity, or none is given (TS 29.244 table
/// 7.4.4.1-2).
fn retains(information: &SessionRetentionInformation, session: &Session) -> bool {
    let entities = &information.cp_pfcp_entity_ip_addresses;
    let controls = |entity: &EntityIpAddress| {
        let v4 = entity.ipv4.is_some() && entity.ipv4 == session.cp.ipv4;
        v4 || entity.ipv6.is_some() && entity.ipv6 == session.cp.ipv6
    };
    entities.is_empty() || entities.iter().any(controls)
}
