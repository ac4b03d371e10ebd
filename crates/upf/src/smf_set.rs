//! SMF sets: a session may be controlled by different SMFs of a set, one after another, each with an association of its own (feature MPAS,
//! TS 29.244 5.22.3; TS 23.527 4.3).
//!
//! ```text
//!  SMF 1  Association Setup Request      MPAS, SMF Set ID ─▶     SMF 2  the same set ─▶
//!         Session Establishment Request  ─▶                      a session of the set
//!  SMF 2  Session Modification Request   Node ID, CP F-SEID ─▶   from now on SMF 2 controls it
//!         or Session Deletion Request    Node ID ─▶
//!  SMF 1  does not answer a report:                              the report to SMF 2, with the former CP F-SEID
//!  SMF 2  Session Report Response        CP F-SEID ─▶            from now on SMF 2 controls it
//! ```
//!
//! The operator names the sets (`Config::smf_sets`). An SMF is in a set as it says itself, but only permitted SMFs are served at all; to an
//! SMF that is in no set or in another one, a session is unknown.

use std::net::SocketAddr;

use pith_pfcp::ie::{CpFunctionFeatures, FSeid, NodeId, SmfSetId};
use pith_pfcp::message::{AssociationSetupRequest, SessionModificationRequest, SessionReportResponse};

use crate::contract::SessionId;
use crate::port::Context;
use crate::session::Session;
use crate::upf::Upf;

impl Upf {
    /// The set of an SMF that sets its association up, if the UPF serves that set.
    pub(crate) fn set_of_request(&self, request: &AssociationSetupRequest) -> Option<SmfSetId> {
        let features = request.cp_function_features.unwrap_or_default();
        let set = request.smf_set_id.clone().filter(|_| features.contains(CpFunctionFeatures::MPAS))?;
        self.config.smf_sets.iter().any(|name| *name == set.name()).then_some(set)
    }

    /// The set of an associated SMF.
    pub(crate) fn set_of(&self, node: &NodeId) -> Option<&SmfSetId> {
        self.associations.get(node)?.set.as_ref()
    }

    /// Whether the request moves the session to another SMF of its set, which sends it.
    pub(crate) fn takes_over(
        &self,
        peer: SocketAddr,
        session: &Session,
        request: &SessionModificationRequest,
    ) -> bool {
        request.cp_f_seid.is_some() && self.is_of_its_set(peer, session, request.node_id.as_ref())
    }

    /// Whether a request comes from the SMF of that Node ID, which is in the session's set: it takes the session over, or deletes it before
    /// it has.
    pub(crate) fn is_of_its_set(&self, peer: SocketAddr, session: &Session, node: Option<&NodeId>) -> bool {
        let Some(node) = node else { return false };
        self.owns_node_id(peer, node) && session.set.is_some() && self.set_of(node) == session.set.as_ref()
    }

    /// Whether an SMF may replace this session: it is its own, or of its set.
    pub(crate) fn may_replace(&self, node: &NodeId, session: &Session) -> bool {
        session.node == *node || session.set.is_some() && self.set_of(node) == session.set.as_ref()
    }

    /// Whether another SMF of the session's set has an association, so that the session outlives that of its SMF.
    pub(crate) fn has_other_smf(&self, session: &Session) -> bool {
        self.other_smf(session).is_some()
    }

    /// The address of another SMF of the session's set: preferably one that answers heartbeats.
    fn other_smf(&self, session: &Session) -> Option<SocketAddr> {
        let set = session.set.as_ref()?;
        let others = self
            .associations
            .iter()
            .filter(|(node, association)| **node != session.node && association.set.as_ref() == Some(set));
        others.min_by_key(|(_, association)| !association.is_up()).map(|(_, association)| association.address)
    }

    /// Whether the session's SMF is not to be asked: it has no association, or does not answer heartbeats.
    fn is_abandoned(&self, session: &Session) -> bool {
        self.associations.get(&session.node).is_none_or(|association| !association.is_up())
    }

    /// Where a report is sent, and the former endpoint that it names if that is not the session's SMF.
    pub(crate) fn report_target(&self, session: &Session, tried: Option<SocketAddr>) -> ReportTarget {
        let own = session.cp_address(self.config.n4);
        let is_own_due = tried != Some(own) && !self.is_abandoned(session);
        match self.other_smf(session).filter(|other| !is_own_due && Some(*other) != tried) {
            Some(peer) => ReportTarget { peer, seid: 0, former: Some(session.cp) },
            None => ReportTarget { peer: own, seid: session.cp.seid, former: None },
        }
    }

    /// Another SMF of the set answers the report, with its own endpoint: it controls the session from now on (TS 29.244 5.22.3).
    pub(crate) fn adopt_reporting_smf(
        &mut self,
        context: &mut Context<'_>,
        peer: SocketAddr,
        id: SessionId,
        response: &SessionReportResponse,
    ) {
        let Some(cp) = response.cp_f_seid.filter(|cp| self.check_endpoint(cp).is_ok()) else { return };
        let Some(session) = self.sessions.get(id) else { return };
        let named = |node: &&NodeId| response.node_id.as_ref().is_none_or(|named| named == *node);
        let nodes = self.nodes_at(peer).filter(named);
        let Some(node) = nodes.filter(|node| self.may_replace(node, session)).min().cloned() else { return };
        if let Some(session) = self.sessions.get_mut(id) {
            session.cp = cp;
        }
        self.sessions.move_to(id, &node);
        context.notice(crate::port::Notice::SessionMoved { session: id, node });
    }
}

/// The SMF that gets a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReportTarget {
    /// Its address.
    pub peer: SocketAddr,
    /// Its SEID of the session; 0 if it has none yet.
    pub seid: u64,
    /// The endpoint of the SMF that had the session, if that is another one (Old CP F-SEID).
    pub former: Option<FSeid>,
}
