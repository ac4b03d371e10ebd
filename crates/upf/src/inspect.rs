//! Inspection by operators: sessions, their keys, and their rules in the datapath.

use std::net::IpAddr;

use pith_pfcp::ie::NodeId;

use crate::contract::{self, SessionId, Teid, Tunnel, UeAddress};
use crate::session::{Session, compile};
use crate::upf::Upf;

/// A view of a session.
#[derive(Debug)]
pub struct SessionView<'a> {
    /// The UP function's SEID.
    pub id: SessionId,
    /// The SMF's SEID.
    pub cp_seid: u64,
    /// The SMF.
    pub smf: &'a NodeId,
    /// The UE's addresses.
    pub ue: UeAddress,
    /// The data network's name, if the SMF provided it.
    pub dnn: Option<String>,
    /// Its own TEIDs.
    pub teids: Vec<Teid>,
    /// The tunnels that its packets are sent into.
    pub tunnels: &'a [Tunnel],
}

impl<'a> From<&'a Session> for SessionView<'a> {
    fn from(session: &'a Session) -> Self {
        SessionView {
            id: session.id,
            cp_seid: session.cp.seid,
            smf: &session.node,
            ue: session.ue,
            dnn: session.dnn.as_ref().map(|dnn| dnn.name().into_owned()),
            teids: session.teids.iter().copied().collect(),
            tunnels: &session.tunnels,
        }
    }
}

/// The owner of a TEID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TeidOwner {
    /// One session: the TEID is the UPF's own, or a peer's that only this session sends to.
    Session(SessionId),
    /// The number of sessions that send to this TEID at different peers.
    Several(usize),
    /// No session.
    Nobody,
}

impl Upf {
    /// The view of a session.
    pub fn session(&self, id: SessionId) -> Option<SessionView<'_>> {
        self.sessions.get(id).map(SessionView::from)
    }

    /// The session with this address, or with a prefix that contains it.
    pub fn session_of_ue(&self, address: IpAddr) -> Option<SessionId> {
        self.sessions.of_ue(address)
    }

    /// The session with this TEID at either end of its tunnels.
    pub fn owner_of_teid(&self, teid: Teid) -> TeidOwner {
        if let Some(own) = self.sessions.teids.owner(teid) {
            return TeidOwner::Session(own);
        }
        let sends_there = |session: &Session| session.tunnels.iter().any(|tunnel| tunnel.teid == teid);
        match *self.sessions.matching(sends_there) {
            [] => TeidOwner::Nobody,
            [one] => TeidOwner::Session(one),
            ref several => TeidOwner::Several(several.len()),
        }
    }

    /// Up to `limit` sessions with ids above `after`, in the order of ids.
    pub fn sessions_after(&self, after: SessionId, limit: usize) -> Vec<SessionView<'_>> {
        let mut ids = self.sessions.matching(|session| session.id > after);
        if limit < ids.len() {
            ids.select_nth_unstable(limit);
            ids.truncate(limit);
        }
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| self.session(id)).collect()
    }

    /// The number of sessions.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// A session's rules in the datapath.
    pub fn rules(&self, id: SessionId) -> Option<contract::Session> {
        let session = self.sessions.get(id)?;
        compile(id, &session.rules, &session.measurements, &self.config).ok()
    }
}
