//! PDU sessions in the AMF: the SMF of each, and the transactions in progress (PDU session routing
//! context, TS 24.501 5.4.5.1).

use super::context::CallId;
use super::delivery::SmfMessage;
use crate::kit::Owner;
use crate::kit::document::{pack_enum, pack_struct};
use bytes::Bytes;
use pith_sbi::Uri;
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdateData};
use pith_types::{Dnn, Snssai};

/// One PDU session of a UE.
#[derive(Debug)]
pub(crate) struct PduSession {
    /// PDU session identity, 1 to 15.
    pub id: u8,
    pub snssai: Snssai,
    pub dnn: Dnn,
    /// Number of the session among all of the UE; part of the SMF's callback URI.
    pub number: CallId,
    /// Its SM context at the SMF; `None` until the SMF has created it.
    pub sm_context: Option<Uri>,
    /// The SMF that sends messages of the session; `None` until its first one.
    pub smf: Option<Owner>,
    /// State of its N3 resources, as far as the AMF knows.
    pub user_plane: UserPlane,
    /// The last request that changed the SMF's state.
    pub last_call: CallId,
    /// Reports in a row that the SMF did not answer.
    pub unheard: u8,
    /// Pending requests to the SMF.
    pub calls: Vec<(CallId, SessionCall)>,
    /// Requests deferred until the SMF has returned the SM context's URI: the SMF's first message
    /// may arrive before its reply.
    pub held: Vec<(SmContextUpdateData, SessionCall)>,
    /// A setup request, deferred until the gNB has released the existing resources.
    pub held_setup: Option<SmfMessage>,
}

/// State of a session's user plane connection (TS 23.501 5.6.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserPlane {
    /// No N3 tunnel.
    Deactivated,
    /// Resources were requested from the gNB.
    Activating,
    /// The gNB has resources.
    Activated,
    /// The release of resources was requested from the gNB, because the SMF requires it.
    Releasing,
    /// The release of resources was requested from the gNB, because the SMF requests a setup of
    /// resources that the gNB has; the setup follows.
    Replacing,
}

/// The purpose of a request to the SMF.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SessionCall {
    /// Create the SM context; on failure the 5GSM message is returned to the UE.
    Create(Bytes),
    /// Forward a 5GSM message of the UE; on failure it is returned to the UE.
    Forward(Bytes),
    /// Report the gNB's answer, or the loss of the user plane; retransmitted if the SMF does not answer.
    Report(Box<SmContextUpdateData>),
}

pack_struct!(PduSession {
    id,
    snssai,
    dnn,
    number,
    sm_context,
    smf,
    user_plane,
    last_call,
    unheard,
    calls,
    held,
    held_setup,
});
pack_enum!(UserPlane {
    0 => Deactivated,
    1 => Activating,
    2 => Activated,
    3 => Releasing,
    4 => Replacing,
});
pack_enum!(SessionCall { 0 => Create(message), 1 => Forward(message), 2 => Report(body) });

impl PduSession {
    /// A session that the UE requests, before the request to the SMF.
    pub fn new(id: u8, snssai: Snssai, dnn: Dnn) -> Self {
        let number = CallId(0);
        Self {
            id,
            snssai,
            dnn,
            number,
            sm_context: None,
            smf: None,
            user_plane: UserPlane::Deactivated,
            last_call: number,
            unheard: 0,
            calls: Vec::new(),
            held: Vec::new(),
            held_setup: None,
        }
    }

    /// Whether the SMF has not yet acknowledged the gNB's result of a setup: the SMF may repeat its request.
    pub fn reports_setup(&self) -> bool {
        self.calls.iter().any(|(_, call)| match call {
            SessionCall::Report(body) => body.n2_sm_info_type == Some(N2SmInfoType::PduResSetupRsp),
            _ => false,
        })
    }

    /// Removes and returns a pending request of this session.
    pub fn take_call(&mut self, call: CallId) -> Option<SessionCall> {
        let at = self.calls.iter().position(|(id, _)| *id == call)?;
        Some(self.calls.swap_remove(at).1)
    }
}
