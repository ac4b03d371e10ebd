//! What an operator may look at: sessions with what leads to them, and their rules as the datapath has them.

use std::net::IpAddr;

use pith_pfcp::ie::NodeId;

use crate::contract::{self, SessionId, Teid, Tunnel, UeAddress};
use crate::session::{Session, compile};
use crate::upf::Upf;

/// A session, to look at.
#[derive(Debug)]
pub struct SessionView<'a> {
    /// Its id, the UP function's SEID.
    pub id: SessionId,
    /// The SMF's SEID.
    pub cp_seid: u64,
    /// The SMF.
    pub smf: &'a NodeId,
    /// The UE's addresses.
    pub ue: UeAddress,
    /// The data network's name, if the SMF told it.
    pub dnn: Option<String>,
    /// Its own tunnel endpoints.
    pub teids: Vec<Teid>,
    /// Where its packets are sent.
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

/// Whose tunnel a TEID is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TeidOwner {
    /// That session's: the UPF's own TEID, or a peer's that no other session sends to.
    Session(SessionId),
    /// Peers of so many sessions have given it out.
    Several(usize),
    /// Nobody's.
    Nobody,
}

impl Upf {
    /// A session.
    pub fn session(&self, id: SessionId) -> Option<SessionView<'_>> {
        self.sessions.get(id).map(SessionView::from)
    }

    /// The session that has this address, or a prefix with it.
    pub fn session_of_ue(&self, address: IpAddr) -> Option<SessionId> {
        self.sessions.of_ue(address)
    }

    /// The session whose tunnel has this TEID at either end.
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

    /// How many sessions there are.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// A session's rules as the datapath has them.
    pub fn rules(&self, id: SessionId) -> Option<contract::Session> {
        let session = self.sessions.get(id)?;
        compile(id, &session.rules, &session.measurements, &self.config).ok()
    }
}
