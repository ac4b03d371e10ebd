//! PDU sessions in the AMF: the SMF of each, and the transactions in progress (PDU session routing
//! context, TS 24.501 5.4.5.1).

use super::context::CallId;
use super::delivery::SmfMessage;
use crate::kit::document::{Pack, Reader, UnpackError, Writer, pack_enum, pack_struct};
use crate::kit::{Caller, Duration, Owner, may_be_instance};
use bytes::Bytes;
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdateData};
use pith_sbi::{NfInstanceId, Uri};
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
    pub smf: SessionSmf,
    /// State of its N3 resources, as far as the AMF knows.
    pub user_plane: UserPlane,
    /// The last request that changed the user plane at the SMF.
    pub last_call: CallId,
    /// Reports in a row that the SMF did not answer: those of the user plane in the four low bits, those of the UE's presence in a LADN in the
    /// high ones, which are 0 in documents of earlier versions.
    pub unheard: u8,
    /// Pending requests to the SMF.
    pub calls: Vec<(CallId, SessionCall)>,
    /// Requests deferred until the SMF has returned the SM context's URI: the SMF's first message
    /// may arrive before its reply.
    pub held: Vec<(SmContextUpdateData, SessionCall)>,
    /// A setup request, deferred until the gNB has released the existing resources, or the SMF has returned the SM context's URI.
    pub held_setup: Option<SmfMessage>,
}

/// The SMF of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SessionSmf {
    /// Its NF instance: to which the AMF sent CreateSMContext, or which another AMF transferred. `None` if the
    /// configuration gives an address without an instance id.
    pub instance: Option<NfInstanceId>,
    /// The sender of the session's messages; `None` until the first one.
    pub sender: Option<Owner>,
}

/// One octet, with a bit for each field: a document that was written before `instance` existed has the bit of `sender`.
impl Pack for SessionSmf {
    fn pack(&self, writer: &mut Writer<'_>) {
        (u8::from(self.sender.is_some()) | u8::from(self.instance.is_some()) << 1).pack(writer);
        self.sender.iter().for_each(|sender| sender.pack(writer));
        self.instance.iter().for_each(|instance| instance.pack(writer));
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let fields = match reader.octet()? {
            fields @ 0..=3 => fields,
            _ => return Err(reader.malformed("SMF")),
        };
        let sender = if fields & 1 != 0 { Some(Pack::unpack(reader)?) } else { None };
        let instance = if fields & 2 != 0 { Some(Pack::unpack(reader)?) } else { None };
        Ok(Self { instance, sender })
    }
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
    /// resources that the gNB has, or the gNB has those of a former session with the identity; the setup follows.
    Replacing,
    /// Another AMF has served the session, and it may be active there; its SMF does not know that this AMF serves it.
    Unannounced,
}

/// The purpose of a request to the SMF.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SessionCall {
    /// Create the SM context; on failure the 5GSM message is returned to the UE.
    Create(Bytes),
    /// Forward a 5GSM message of the UE; on failure it is returned to the UE.
    Forward(Bytes),
    /// Report the gNB's answer, the loss of the user plane, or where the UE is; retransmitted if the SMF does not answer.
    Report(Box<SmContextUpdateData>),
    /// Select the slice instance whose SMF gets the 5GSM message.
    SelectInstance(Bytes),
    /// Switch the path to a gNB that the UE has left since. A deactivation that followed may have overtaken it: SBI messages have no order.
    LeftSwitch,
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
    5 => Unannounced,
});
pack_enum!(SessionCall {
    0 => Create(message),
    1 => Forward(message),
    2 => Report(body),
    3 => SelectInstance(message),
    4 => LeftSwitch,
});

impl SessionCall {
    /// Whether it is a report of the user plane, or of the UE's presence in a LADN.
    pub const fn is_report(&self) -> bool {
        matches!(self, Self::Report(_))
    }

    /// Whether a later request of the kind supersedes it.
    pub fn is_about_user_plane(&self) -> bool {
        match self {
            Self::Create(_) | Self::SelectInstance(_) | Self::LeftSwitch => true,
            Self::Forward(_) => false,
            Self::Report(body) => !body.is_presence_report(),
        }
    }

    fn is_presence_report(&self) -> bool {
        matches!(self, Self::Report(body) if body.is_presence_report())
    }
}

/// The place of a report's counter in [`PduSession::unheard`].
const fn unheard_shift(report: &SmContextUpdateData) -> u32 {
    if report.is_presence_report() { 4 } else { 0 }
}

/// Requests to the SMF that are not answered or not sent yet, beyond which a session takes no further message of the UE;
/// with reports of the gNB twice as many. Each holds a message of up to 64 kB.
const MAX_OPEN: usize = 8;

/// How often the request to switch the path of an N2 handover is repeated: after 1, 2, 4 and 8 s.
const MAX_COMPLETIONS: u8 = 4;

impl PduSession {
    /// Replies to its requests do not arrive any longer: a deactivation, or an announcement, may be among the requests, and is repeated.
    pub fn lose_calls(&mut self) {
        if !self.calls.is_empty() {
            self.note_active(self.is_unannounced());
            self.calls.clear();
        }
    }

    /// Replies to requests to switch the path do not arrive any longer.
    pub fn forget_left_switches(&mut self) {
        self.calls.retain(|(_, purpose)| *purpose != SessionCall::LeftSwitch);
    }

    /// Whether the SMF may not know that this AMF serves the session: it has not answered.
    pub fn is_unannounced(&self) -> bool {
        let announces =
            |call: &SessionCall| matches!(call, SessionCall::Report(body) if body.serving_nf_id.is_some());
        self.user_plane == UserPlane::Unannounced || self.calls.iter().any(|(_, call)| announces(call))
    }

    /// Another AMF may serve the session: this one does not announce itself to its SMF.
    pub fn forget_announcement(&mut self) {
        if self.is_unannounced() {
            self.user_plane = UserPlane::Deactivated;
            self.calls.clear();
        }
    }

    /// Whether the gNB has resources, or a request for them is pending.
    pub const fn has_user_plane(&self) -> bool {
        !matches!(self.user_plane, UserPlane::Deactivated | UserPlane::Unannounced)
    }

    /// The SMF may have activated it. One that is to be announced stays so, and one of which the gNB has not answered a setup.
    pub const fn note_active(&mut self, is_unannounced: bool) {
        if is_unannounced || matches!(self.user_plane, UserPlane::Unannounced) {
            self.user_plane = UserPlane::Unannounced;
        } else if !matches!(self.user_plane, UserPlane::Activating) {
            self.user_plane = UserPlane::Activated;
        }
    }

    /// A session that the UE requests, before the request to the SMF.
    pub fn new(id: u8, snssai: Snssai, dnn: Dnn) -> Self {
        let number = CallId(0);
        Self {
            id,
            snssai,
            dnn,
            number,
            sm_context: None,
            smf: SessionSmf::default(),
            user_plane: UserPlane::Deactivated,
            last_call: number,
            unheard: 0,
            calls: Vec::new(),
            held: Vec::new(),
            held_setup: None,
        }
    }

    /// Whether the SMF has not answered a report of the UE's presence in its LADN, or does not have it yet.
    pub fn reports_presence(&self) -> bool {
        self.calls.iter().any(|(_, call)| call.is_presence_report())
            || self.held.iter().any(|(_, call)| call.is_presence_report())
    }

    /// Whether the SMF has not yet acknowledged the gNB's result of a setup: the SMF may repeat its request.
    pub fn reports_setup(&self) -> bool {
        self.calls.iter().any(|(_, call)| match call {
            SessionCall::Report(body) => body.n2_sm_info_type == Some(N2SmInfoType::PduResSetupRsp),
            _ => false,
        })
    }

    /// Whether messages of the session are accepted from that NF. The first one is compared with the instance of the SMF,
    /// further ones with the sender of the first. A client that proves no instance id, such as a foreign SMF whose
    /// certificate has none, is compared from its first message on only.
    pub fn admits(&mut self, from: Caller) -> bool {
        let is_its = self.is_of(from);
        if is_its {
            self.smf.sender.get_or_insert(Owner::of(from));
        }
        is_its
    }

    /// Whether that NF may be the SMF of the session.
    pub fn is_of(&self, from: Caller) -> bool {
        match self.smf.sender {
            Some(owner) => owner.admits(from),
            None => self.smf.instance.is_none_or(|instance| may_be_instance(instance, from)),
        }
    }

    /// The instance of its SMF, if it is known, for another AMF.
    pub fn known_smf(&self) -> Option<NfInstanceId> {
        self.smf.instance.or(match self.smf.sender {
            Some(Owner::Client(client)) if client.is_proven => Some(client.instance),
            _ => None,
        })
    }

    /// Whether that call is the one that creates the SM context.
    pub fn creates(&self, call: CallId) -> bool {
        self.calls.iter().any(|(id, purpose)| *id == call && matches!(purpose, SessionCall::Create(_)))
    }

    /// Whether a UPF may send packets of the session to a gNB: the AMF has not requested the deactivation, or the SMF has not answered.
    pub fn may_have_user_plane(&self) -> bool {
        self.user_plane != UserPlane::Deactivated || !self.calls.is_empty()
    }

    /// Whether no further message of the UE is accepted: the SMF has not answered [`MAX_OPEN`] requests.
    pub fn is_busy(&self) -> bool {
        self.calls.len() + self.held.len() >= MAX_OPEN
    }

    /// The SMF has served that request: it has got the reports before it.
    pub fn note_served(&mut self, call: CallId) {
        self.last_call = CallId(self.last_call.0.max(call.0));
    }

    /// The SMF has not answered a report. Returns whether it is to be repeated: reports of each kind are repeated `most` times in a row, so
    /// that those of the UE's presence leave the user plane its repetitions.
    pub fn count_unheard(&mut self, report: &SmContextUpdateData, most: u8) -> bool {
        let shift = unheard_shift(report);
        let counted = (self.unheard >> shift) & 0xf;
        let is_repeated = counted < most.min(0xf);
        self.unheard += u8::from(is_repeated) << shift;
        is_repeated
    }

    /// Whether the SMF has not answered a report of the user plane: it may have another user plane than the AMF.
    pub fn lacks_answer(&self) -> bool {
        let is_open = |call: &SessionCall| call.is_report() && call.is_about_user_plane();
        self.unheard & 0xf != 0 || self.calls.iter().any(|(_, call)| is_open(call))
    }

    /// The request to switch the path of an N2 handover is repeated whatever the SMF has not answered before, and so is the report that follows.
    pub fn forget_unheard(&mut self) {
        self.unheard &= 0xf0;
    }

    /// The SMF has not answered that request, or does not serve at present. Returns the time until it is repeated. The wait for an answer (`is_late`)
    /// counts, too: the SMF has about 20 s in all.
    pub fn count_incomplete(&mut self, is_late: bool) -> Option<Duration> {
        let counted = self.unheard & 0xf;
        if counted >= MAX_COMPLETIONS {
            return None;
        }
        self.unheard += 1 + u8::from(is_late);
        Some(Duration::from_secs(1_u64 << counted))
    }

    /// The SMF has answered a report.
    pub fn note_heard(&mut self, report: &SmContextUpdateData) {
        self.unheard &= !(0xf << unheard_shift(report));
    }

    /// Makes room for a report. A later report supersedes an earlier one, so the oldest is dropped: its request has
    /// been sent, and is not repeated, or is not sent at all.
    pub fn make_room_for_report(&mut self) {
        if self.calls.len() + self.held.len() < 2 * MAX_OPEN {
            return;
        }
        if let Some(at) = self.held.iter().position(|(_, purpose)| purpose.is_report()) {
            self.held.remove(at);
        } else if let Some(at) = self.calls.iter().position(|(_, purpose)| purpose.is_report()) {
            self.calls.remove(at);
        }
    }

    /// Removes and returns a pending request of this session.
    pub fn take_call(&mut self, call: CallId) -> Option<SessionCall> {
        let at = self.calls.iter().position(|(id, _)| *id == call)?;
        Some(self.calls.swap_remove(at).1)
    }
}
