//! NAS transport: 5GSM messages to and from the SMF (TS 24.501 5.4.5).

use super::{SessionRequest, Ue};
use pith_nas::GsmMessage;
use pith_nas::gmm::{DlNasTransport, UlNasTransport};
use pith_nas::ie::{MappedSnssai, PayloadContainerType, RequestType};

impl Ue {
    /// Sends a 5GSM message that requests a session, with DNN and slice (TS 24.501 5.4.5.2.2).
    pub(super) fn send_gsm_request(&mut self, message: &GsmMessage, request: &SessionRequest) {
        let mut transport = transport_of(message);
        let is_emergency = request.is_emergency || self.settings.service.is_emergency();
        transport.request_type = Some(if is_emergency {
            RequestType::InitialEmergencyRequest
        } else {
            RequestType::InitialRequest
        });
        transport.dnn.clone_from(&request.dnn);
        transport.snssai = request.snssai.map(MappedSnssai::from);
        self.send(&transport.into());
    }

    /// Sends any other 5GSM message.
    pub(super) fn send_gsm(&mut self, message: &GsmMessage) {
        self.send(&transport_of(message).into());
    }

    /// DL NAS TRANSPORT (TS 24.501 5.4.5.3.3).
    pub(super) fn receive_dl_nas_transport(&mut self, transport: &DlNasTransport) {
        if transport.payload_container_type != PayloadContainerType::N1SmInformation {
            return;
        }
        let Some(id) = transport.pdu_session_id else {
            return self.violation("TS 24.501 5.4.5.3.2", "N1 SM information without PDU session ID IE");
        };
        match transport.cause {
            Some(cause) => self.on_not_forwarded(id, cause, &transport.payload_container),
            None => self.receive_gsm(id, &transport.payload_container),
        }
    }
}

fn transport_of(message: &GsmMessage) -> UlNasTransport {
    let mut transport = UlNasTransport::new(PayloadContainerType::N1SmInformation, message.encode());
    transport.pdu_session_id = Some(message.pdu_session_id);
    transport
}
