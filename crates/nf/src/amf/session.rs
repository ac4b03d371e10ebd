//! PDU sessions as the AMF knows them: the way to each one's SMF, and what is under way
//! (PDU session routing context, TS 24.501 5.4.5.1).

use super::context::CallId;
use super::delivery::Message;
use bytes::Bytes;
use pith_sbi::Uri;
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdateData};
use pith_types::{Dnn, Snssai};

/// One PDU session of a UE.
#[derive(Debug)]
pub(crate) struct PduSession {
    /// PDU session identity, 1 to 15.
    pub id: u8,
    /// Its slice.
    pub snssai: Snssai,
    /// Its data network.
    pub dnn: Dnn,
    /// Which of the UE's sessions it is; in the callback that its SMF has.
    pub number: CallId,
    /// Its SM context at the SMF; `None` until the SMF has made it.
    pub sm_context: Option<Uri>,
    /// Whether it has N3 resources, as far as the AMF knows.
    pub user_plane: UserPlane,
    /// The last call that told the SMF anything.
    pub last_call: CallId,
    /// Reports in a row that the SMF did not answer.
    pub unheard: u8,
    /// Calls to the SMF that are not answered yet.
    pub calls: Vec<(CallId, SessionCall)>,
    /// What waits until the SMF has named the SM context: its first message may be faster than its
    /// answer.
    pub held: Vec<(SmContextUpdateData, SessionCall)>,
    /// Resources to be set up once the gNB has released those that it has.
    pub held_setup: Option<Message>,
}

/// State of a session's user plane connection (TS 23.501 5.6.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserPlane {
    /// No N3 tunnel.
    Deactivated,
    /// The gNB was asked for resources.
    Activating,
    /// The gNB has resources.
    Activated,
    /// The gNB was told to release its resources: the SMF wants it.
    Releasing,
    /// The same, because the SMF wants resources set up that the gNB has: others follow.
    Replacing,
}

/// What a call to the SMF was for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SessionCall {
    /// Make the SM context; the 5GSM message goes back to the UE if that fails.
    Create(Bytes),
    /// Pass on a 5GSM message of the UE, which goes back to it if that fails.
    Forward(Bytes),
    /// Pass on what the gNB answered, or that the user plane is gone; told again if the SMF does not answer.
    Report(Box<SmContextUpdateData>),
}

impl PduSession {
    /// A session that the UE asks for; its SMF has not been asked yet.
    pub fn new(id: u8, snssai: Snssai, dnn: Dnn) -> Self {
        let number = CallId(0);
        Self {
            id,
            snssai,
            dnn,
            number,
            sm_context: None,
            user_plane: UserPlane::Deactivated,
            last_call: number,
            unheard: 0,
            calls: Vec::new(),
            held: Vec::new(),
            held_setup: None,
        }
    }

    /// Whether the SMF has not answered yet to what the gNB made of a setup: it may ask for the same once more.
    pub fn reports_setup(&self) -> bool {
        self.calls.iter().any(|(_, call)| match call {
            SessionCall::Report(body) => body.n2_sm_info_type == Some(N2SmInfoType::PduResSetupRsp),
            _ => false,
        })
    }

    /// Takes out the call of that number, if it is one of this session's.
    pub fn take_call(&mut self, call: CallId) -> Option<SessionCall> {
        let at = self.calls.iter().position(|(id, _)| *id == call)?;
        Some(self.calls.swap_remove(at).1)
    }
}
