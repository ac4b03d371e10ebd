//! What operators and tests can read from the AMF.

use super::Amf;
use super::connection::RanContext;
use super::context::{RmState, UeContext};
use super::reachability::{Drx, ExtendedDrx};
use super::session::UserPlane;
use serde_json::{Value, json};

/// Counts of the AMF's state; a simulation compares them when all procedures are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Audit {
    /// UE contexts.
    pub contexts: usize,
    /// Registered contexts.
    pub registered: usize,
    /// Connected contexts.
    pub connected: usize,
    /// UEs with a procedure in progress.
    pub in_procedure: usize,
    /// NG connections, including those that are being released.
    pub connections: usize,
    /// NG connections that are being released.
    pub releasing: usize,
    /// NG connections without a UE that are not being released: always 0.
    pub orphaned_connections: usize,
    /// Subscribers in the index.
    pub supis: usize,
    /// 5G-TMSIs in the index.
    pub tmsis: usize,
    /// Index entries and context ids without a context: always 0.
    pub dangling: usize,
    /// PDU sessions.
    pub sessions: usize,
    /// Pending requests to SMFs.
    pub session_calls: usize,
    /// Running timers of UEs.
    pub timers: usize,
    /// Messages queued for UEs in CM-IDLE.
    pub undelivered: usize,
    /// Connected gNBs.
    pub gnbs: usize,
    /// Unauthenticated UEs.
    pub half_open: usize,
    /// Retained security contexts of deregistered UEs.
    pub retained: usize,
}

impl Amf {
    /// Counts the AMF's state.
    pub fn audit(&self) -> Audit {
        // A packed context is unpacked for it, once.
        let mut audit = Audit::default();
        for (_, ue) in self.ues.iter() {
            audit.registered += usize::from(ue.is_registered());
            audit.connected += usize::from(ue.connection.is_some());
            audit.in_procedure += usize::from(ue.procedure.name() != "Idle" || !ue.mobility.is_idle());
            audit.sessions += ue.sessions.len();
            audit.session_calls += ue.sessions.iter().map(|session| session.calls.len()).sum::<usize>();
            audit.timers += ue.timers().len();
            audit.undelivered += ue.undelivered.len();
        }
        let releasing = |context| matches!(context, RanContext::Releasing | RanContext::Left);
        let connections = || self.shared.connections.iter().map(|(_, connection)| connection);
        let has_context = |id| self.shared.ids.find(id).is_some_and(|key| self.ues.contains(key));
        let ended = self.ended.ids().filter(|id| !has_context(*id)).count();
        let (supis, tmsis) = self.shared.index.len();
        Audit {
            contexts: self.ues.len(),
            connections: self.shared.connections.len(),
            releasing: connections().filter(|connection| releasing(connection.context)).count(),
            orphaned_connections: connections()
                .filter(|connection| connection.ue.is_none() && !releasing(connection.context))
                .count(),
            supis,
            tmsis,
            dangling: self.shared.index.keys().filter(|key| !self.ues.contains(*key)).count()
                + self
                    .shared
                    .ids
                    .len()
                    .abs_diff(self.ues.len() + ended + self.shared.index.retained.stored()),
            gnbs: self.shared.gnbs.len(),
            half_open: self.shared.half_open.len(),
            retained: self.shared.index.retained.len(),
            ..audit
        }
    }

    /// One UE, as shown to an operator.
    pub(super) fn describe(&self, ue: &UeContext) -> Value {
        let connection = ue.connection.and_then(|key| self.shared.connections.get(key));
        let gnb = connection.and_then(|connection| self.shared.gnbs.get(&connection.gnb));
        json!({
            "supi": ue.supi,
            "pei": ue.pei,
            "emergency": ue.is_emergency_registered(),
            "guti": ue.guti.map(|guti| guti.to_string()),
            "rm": match ue.rm { RmState::Registered => "RM-REGISTERED", RmState::Deregistered => "RM-DEREGISTERED" },
            "cm": if connection.is_some() { "CM-CONNECTED" } else { "CM-IDLE" },
            "procedure": ue.procedure.name(),
            "mobility": ue.mobility.name(),
            "gnb": gnb.map(|gnb| &gnb.global_id),
            "amfUeNgapId": connection.map(|connection| connection.id.value()),
            "ranUeNgapId": connection.map(|connection| connection.ran_id.0),
            "tai": ue.location.map(|location| location.tai),
            "cell": ue.location.map(|location| location.cell),
            "allowedNssai": ue.slices.allowed,
            "drx": ue.reachability.drx.map(Drx::frames),
            "extendedDrxMs": ue.reachability.extended_drx.map(ExtendedDrx::cycle_ms),
            "mico": ue.reachability.mico.is_some(),
            "sessions": ue.sessions.iter().map(|session| json!({
                "id": session.id,
                "snssai": session.snssai,
                "dnn": session.dnn,
                "userPlane": match session.user_plane {
                    UserPlane::Activated => "ACTIVATED",
                    UserPlane::Activating => "ACTIVATING",
                    UserPlane::Deactivated | UserPlane::Unannounced => "DEACTIVATED",
                    UserPlane::Releasing | UserPlane::Replacing => "RELEASING",
                },
                "smContext": session.sm_context.as_ref().map(|uri| uri.to_string()),
            })).collect::<Vec<_>>(),
        })
    }
}

#[cfg(any(test, feature = "testing"))]
impl Amf {
    /// The callback reference of a registered subscriber.
    pub fn key_of(&self, supi: &pith_types::Supi) -> String {
        let key = self.shared.index.find_supi(supi).expect("registered");
        self.shared.references.of_id(self.ues.id(key).expect("registered"))
    }

    /// The callback reference of one of the subscriber's sessions.
    pub fn session_reference(&self, supi: &pith_types::Supi, id: u8) -> String {
        let key = self.shared.index.find_supi(supi).expect("registered");
        let ue = self.ues.view(key).expect("registered");
        let session = ue.session(id).expect("established");
        self.shared.references.of_name(&super::consumer::session_name(ue.id, id, session.number))
    }
}
