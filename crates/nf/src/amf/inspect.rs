//! What an operator, or a test, sees of the AMF.

use super::Amf;
use super::connection::RanContext;
use super::context::{RmState, UeContext};
use super::session::UserPlane;
use serde_json::{Value, json};

/// How much of everything there is: what a simulated world compares once all is quiet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Audit {
    /// UE contexts.
    pub contexts: usize,
    /// Of those, registered ones.
    pub registered: usize,
    /// Of those, connected ones.
    pub connected: usize,
    /// UEs in a procedure.
    pub in_procedure: usize,
    /// NG connections, those that are being released included.
    pub connections: usize,
    /// NG connections that are being released.
    pub releasing: usize,
    /// NG connections that belong to no UE and are not being released: always 0.
    pub orphaned_connections: usize,
    /// Subscribers in the index.
    pub supis: usize,
    /// 5G-TMSIs in the index.
    pub tmsis: usize,
    /// Entries of the index that lead nowhere: always 0.
    pub dangling: usize,
    /// PDU sessions.
    pub sessions: usize,
    /// Calls to SMFs without an answer yet.
    pub session_calls: usize,
    /// Timers of UEs that run.
    pub timers: usize,
    /// Messages that wait for a UE in CM-IDLE.
    pub undelivered: usize,
    /// gNBs that are up.
    pub gnbs: usize,
    /// UEs that have not proved who they are.
    pub half_open: usize,
    /// Security contexts of UEs that are no longer registered.
    pub retained: usize,
}

impl Amf {
    /// Counts everything.
    pub fn audit(&self) -> Audit {
        let ues = || self.ues.iter().map(|(_, ue)| &**ue);
        let count = |test: fn(&UeContext) -> bool| ues().filter(|ue| test(ue)).count();
        let sum = |size: fn(&UeContext) -> usize| ues().map(size).sum();
        let releasing = |context| context == RanContext::Releasing;
        let connections = || self.shared.connections.iter().map(|(_, connection)| connection);
        let (supis, tmsis) = self.shared.index.len();
        Audit {
            contexts: self.ues.len(),
            registered: count(UeContext::is_registered),
            connected: count(|ue| ue.connection.is_some()),
            in_procedure: count(|ue| ue.procedure.name() != "Idle"),
            connections: self.shared.connections.len(),
            releasing: connections().filter(|connection| releasing(connection.context)).count(),
            orphaned_connections: connections()
                .filter(|connection| connection.ue.is_none() && !releasing(connection.context))
                .count(),
            supis,
            tmsis,
            dangling: self.shared.index.keys().filter(|key| self.ues.get(*key).is_none()).count(),
            sessions: sum(|ue| ue.sessions.len()),
            session_calls: sum(|ue| ue.sessions.iter().map(|session| session.calls.len()).sum()),
            timers: sum(|ue| ue.timers().len()),
            undelivered: sum(|ue| ue.undelivered.len()),
            gnbs: self.shared.gnbs.len(),
            half_open: self.shared.half_open.len(),
            retained: self.shared.index.retained.len(),
        }
    }

    /// One UE as an operator sees it.
    pub(super) fn describe(&self, ue: &UeContext) -> Value {
        let connection = ue.connection.and_then(|key| self.shared.connections.get(key));
        let gnb = connection.and_then(|connection| self.shared.gnbs.get(&connection.gnb));
        json!({
            "supi": ue.supi,
            "pei": ue.pei,
            "guti": ue.guti.map(|guti| guti.to_string()),
            "rm": match ue.rm { RmState::Registered => "RM-REGISTERED", RmState::Deregistered => "RM-DEREGISTERED" },
            "cm": if connection.is_some() { "CM-CONNECTED" } else { "CM-IDLE" },
            "procedure": ue.procedure.name(),
            "gnb": gnb.map(|gnb| &gnb.global_id),
            "amfUeNgapId": connection.map(|connection| connection.id.value()),
            "ranUeNgapId": connection.map(|connection| connection.ran_id.0),
            "tai": ue.location.map(|location| location.tai),
            "cell": ue.location.map(|location| location.cell),
            "allowedNssai": ue.slices.allowed,
            "sessions": ue.sessions.iter().map(|session| json!({
                "id": session.id,
                "snssai": session.snssai,
                "dnn": session.dnn,
                "userPlane": match session.user_plane {
                    UserPlane::Activated => "ACTIVATED",
                    UserPlane::Activating => "ACTIVATING",
                    UserPlane::Deactivated => "DEACTIVATED",
                    UserPlane::Releasing | UserPlane::Replacing => "RELEASING",
                },
                "smContext": session.sm_context.as_ref().map(|uri| uri.to_string()),
            })).collect::<Vec<_>>(),
        })
    }
}

#[cfg(any(test, feature = "testing"))]
impl Amf {
    /// The reference that the callbacks of a registered subscriber have.
    pub fn key_of(&self, supi: &pith_types::Supi) -> String {
        super::consumer::reference(
            &self.shared.config.identity,
            self.shared.index.find_supi(supi).expect("registered"),
        )
    }

    /// The reference that the callback of one of the subscriber's sessions has.
    pub fn session_reference(&self, supi: &pith_types::Supi, id: u8) -> String {
        let key = self.shared.index.find_supi(supi).expect("registered");
        let session = self.ues.get(key).and_then(|ue| ue.session(id)).expect("established");
        format!("{}-{id}-{}", super::consumer::reference(&self.shared.config.identity, key), session.number.0)
    }
}
