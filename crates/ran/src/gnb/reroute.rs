//! AMF re-allocation (TS 23.502 4.2.2.2.3): another AMF is to serve a UE that has sent its first message.
//!
//! ```text
//!  gNB                              initial AMF         target AMF
//!   |    INITIAL UE MESSAGE ->          |                   |
//!   | <- REROUTE NAS REQUEST            |                   |      over the gNB (TS 38.413 8.6.5)
//!   |    INITIAL UE MESSAGE, AMF Set ID, what the NSSF told |
//!   |    ------------------------------------------------>  |
//!
//!   |    INITIAL UE MESSAGE ->          |                   |
//!   |                                   |    the UE ->      |      from AMF to AMF
//!   | <- DOWNLINK NAS TRANSPORT or INITIAL CONTEXT SETUP REQUEST, Old AMF
//! ```
//!
//! The gNB has an endpoint for each AMF ([`Gnb`]): the caller passes the UE from one endpoint to the other.

use super::{Gnb, Output, UeContext, UeKey};
use pith_ngap::{Cause, CauseRadioNetwork, InitialUeMessage, Message, RerouteNasRequest};
use pith_types::{AmfUeNgapId, RanUeNgapId};

/// A UE's connection that goes to another AMF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redirected {
    ue: UeKey,
    ran_id: RanUeNgapId,
    is_emergency: bool,
}

impl Redirected {
    /// The UE.
    pub const fn ue(&self) -> UeKey {
        self.ue
    }
}

impl Gnb {
    /// The endpoint is one of several of a gNB: RAN UE NGAP IDs are different at each (TS 38.401 6.2.1).
    pub const fn share_ran_ids(&mut self, place: u32, endpoints: u32) {
        (self.last_ran_id, self.ran_id_step) = (place, endpoints);
    }

    /// Whether an AMF of that AMF Set is at the other end.
    pub fn serves_set(&self, amf_set: u16) -> bool {
        self.is_up() && self.amf.guamis.iter().any(|guami| guami.amf_id.set == amf_set)
    }

    /// REROUTE NAS REQUEST: the UE's first message goes to an AMF of another set.
    pub(super) fn receive_reroute_nas_request(
        &mut self,
        stream: super::N2Stream,
        request: RerouteNasRequest,
    ) {
        let ran_id = request.ran_ue_ngap_id;
        let Some(context) = self.contexts.get(&ran_id) else {
            let cause = Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID);
            return self.indicate_error((request.amf_ue_ngap_id, Some(ran_id)), cause, stream);
        };
        let ue = context.ue;
        if context.is_set_up {
            return self.violation("TS 38.413 8.6.5", "REROUTE NAS REQUEST for a UE with a context");
        }
        match Message::decode(&request.ngap_message) {
            Ok(Message::InitialUeMessage(message)) if message.ran_ue_ngap_id == ran_id => {
                self.let_go(ran_id);
                let message = InitialUeMessage {
                    amf_set_id: Some(request.amf_set_id),
                    allowed_nssai: request.allowed_nssai,
                    reroute: request.reroute,
                    ..message
                };
                self.out.push(Output::Reroute {
                    ue,
                    amf_set: request.amf_set_id,
                    message: Box::new(message),
                });
            }
            _ => self.violation("TS 38.413 9.2.5.5", "NGAP Message is not the UE's INITIAL UE MESSAGE"),
        }
    }

    /// The UE's connection leaves this endpoint. Messages of its AMF may be in transit.
    fn let_go(&mut self, ran_id: RanUeNgapId) -> Option<UeContext> {
        let context = self.contexts.remove(&ran_id)?;
        self.ran_ids.remove(&context.ue);
        self.departed.insert(ran_id, self.now);
        Some(context)
    }

    /// A rerouted message goes to this endpoint's AMF, under a new id.
    pub(super) fn send_rerouted(&mut self, ue: UeKey, message: InitialUeMessage) {
        let is_emergency = message.establishment_cause == Some(pith_ngap::RrcEstablishmentCause::emergency);
        let ran_ue_ngap_id = self.allocate_ran_id();
        self.open(ue, ran_ue_ngap_id, is_emergency);
        let message = InitialUeMessage { ran_ue_ngap_id, ..message };
        self.send(self.stream_for(ran_ue_ngap_id), message.encode());
    }

    /// The AMF whose endpoint has the UE of a message that redirects it to this one.
    pub(super) fn redirected_from(&self, old_amf: Option<&String>, ran_id: RanUeNgapId) -> Option<String> {
        old_amf.filter(|_| !self.contexts.contains_key(&ran_id)).cloned()
    }

    /// The caller has to find the UE of a message.
    pub(super) fn await_redirected(
        &mut self,
        (old_amf, ran_id): (String, RanUeNgapId),
        stream: super::N2Stream,
        message: Message,
    ) {
        self.out.push(Output::Redirect { old_amf, ran_id, stream, message: Box::new(message) });
    }

    /// Gives up a UE that the named AMF has passed on to another one, before it has a context.
    pub fn give_up(&mut self, old_amf: &str, ran_id: RanUeNgapId) -> Option<Redirected> {
        let context = self.contexts.get(&ran_id)?;
        if self.amf.name != old_amf || context.is_set_up {
            return None;
        }
        let UeContext { ue, is_emergency, .. } = self.let_go(ran_id)?;
        Some(Redirected { ue, ran_id, is_emergency })
    }

    /// The first message of the AMF to which a UE was passed on; without the UE if no endpoint has it.
    pub(super) fn receive_redirecting(
        &mut self,
        found: Option<Redirected>,
        stream: super::N2Stream,
        message: Message,
    ) {
        if let Some(Redirected { ue, ran_id, is_emergency }) = found {
            self.open(ue, ran_id, is_emergency);
            return self.dispatch(stream, message);
        }
        let ids = |amf: AmfUeNgapId, ran: RanUeNgapId| (Some(amf), Some(ran));
        let ids = match &message {
            Message::DownlinkNasTransport(it) => ids(it.amf_ue_ngap_id, it.ran_ue_ngap_id),
            Message::InitialContextSetupRequest(it) => ids(it.amf_ue_ngap_id, it.ran_ue_ngap_id),
            _ => (None, None),
        };
        // The UE may have lost its connection meanwhile.
        let cause = Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID);
        self.indicate_error(ids, cause, stream);
    }
}
