//! A UE and its gNB that answer as specified.

use pith_nas::ie::{MobileIdentity, RegistrationKind};
use pith_nas::security::Algorithms;
use pith_nas::{GmmMessage, gmm};
use pith_nf::amf::testing::{Phone, World, security_of, transfers};
use pith_nf::kit::GnbHandle;
use pith_ngap::{
    Cause, CauseRadioNetwork, Message, PduSessionResourceReleaseResponse, PduSessionResourceSetupResponse,
    UeContextReleaseComplete, UeContextReleaseRequest, UeNgapIds,
};
use pith_types::Snssai;

/// Delivers messages for the UE and answers them, at most `steps` times.
pub fn follow(world: &mut World, phone: &mut Phone, steps: &mut usize) {
    while *steps > 0 {
        let for_it = |(gnb, _): &(GnbHandle, Message)| *gnb == phone.gnb;
        let Some(at) = world.downlinks.iter().position(for_it) else { return };
        let Some((gnb, message)) = world.downlinks.remove(at) else { return };
        *steps -= 1;
        take(world, phone, gnb, message);
    }
}

fn take(world: &mut World, phone: &mut Phone, gnb: GnbHandle, message: Message) {
    match message {
        Message::UeContextReleaseCommand(_) => {
            release_complete(world, gnb, &message);
            phone.amf_id = None;
        }
        Message::DownlinkNasTransport(message) => {
            phone.amf_id = Some(message.amf_ue_ngap_id);
            take_nas(world, phone, &message.nas_pdu);
        }
        Message::InitialContextSetupRequest(message) => {
            phone.amf_id = Some(message.amf_ue_ngap_id);
            let sessions = message.sessions.unwrap_or_default();
            let ids: Vec<u8> = sessions.iter().map(|item| item.pdu_session_id).collect();
            phone.context_setup_response(world, &ids);
            let nas = message.nas_pdu.into_iter().chain(sessions.into_iter().filter_map(|item| item.nas_pdu));
            nas.for_each(|nas| take_nas(world, phone, &nas));
        }
        Message::PduSessionResourceSetupRequest(message) => {
            let ids: Vec<u8> = message.sessions.iter().map(|item| item.pdu_session_id).collect();
            let response = PduSessionResourceSetupResponse {
                amf_ue_ngap_id: message.amf_ue_ngap_id,
                ran_ue_ngap_id: message.ran_ue_ngap_id,
                setup: Some(transfers(&ids)),
                failed: None,
                diagnostics: None,
            };
            world.ngap(phone.gnb, "PduSessionResourceSetupResponse", response.encode());
        }
        Message::PduSessionResourceReleaseCommand(message) => {
            let released: Vec<u8> = message.sessions.iter().map(|item| item.pdu_session_id).collect();
            let response = PduSessionResourceReleaseResponse {
                amf_ue_ngap_id: message.amf_ue_ngap_id,
                ran_ue_ngap_id: message.ran_ue_ngap_id,
                released: Some(transfers(&released)),
                location: None,
                diagnostics: None,
            };
            world.ngap(phone.gnb, "PduSessionResourceReleaseResponse", response.encode());
        }
        _ => {}
    }
}

/// Decodes a NAS message with the UE's keys, and answers it.
fn take_nas(world: &mut World, phone: &mut Phone, pdu: &[u8]) {
    let Some(message) = open(phone, pdu) else { return };
    let answer: GmmMessage = match message {
        GmmMessage::IdentityRequest(_) => gmm::IdentityResponse::new(Phone::suci()).into(),
        GmmMessage::AuthenticationRequest(_) => Phone::authentication_response().into(),
        GmmMessage::SecurityModeCommand(_) => {
            let mut request = phone.registration_request(RegistrationKind::Initial);
            request.requested_nssai = Some([1, 2].into_iter().map(Snssai::of_sst).collect());
            let complete = phone.security_mode_complete(request);
            return if phone.amf_id.is_some() {
                phone.send_pdu(world, complete)
            };
        }
        GmmMessage::RegistrationAccept(accept) => {
            if let Some(MobileIdentity::FiveGGuti(guti)) = accept.guti {
                phone.guti = Some(guti);
            }
            gmm::RegistrationComplete::new().into()
        }
        GmmMessage::ConfigurationUpdateCommand(_) => gmm::ConfigurationUpdateComplete::new().into(),
        GmmMessage::DeregistrationRequestUeTerminated(_) => {
            gmm::DeregistrationAcceptUeTerminated::new().into()
        }
        _ => return,
    };
    if phone.amf_id.is_some() {
        phone.send(world, answer);
    }
}

/// As `open` of the UE, but messages that can't be decoded are skipped.
fn open(phone: &mut Phone, pdu: &[u8]) -> Option<GmmMessage> {
    match (pdu.get(1)? & 0xf, &mut phone.security) {
        (3 | 4, _) => {
            let GmmMessage::SecurityModeCommand(command) = GmmMessage::decode(pdu.get(7..)?).ok()? else {
                return None;
            };
            let algorithms = Algorithms {
                integrity: command.algorithms.integrity.try_into().ok()?,
                ciphering: command.algorithms.ciphering.try_into().ok()?,
            };
            let mut security = security_of(&phone.supi, algorithms);
            security.unprotect(pdu).ok()?;
            phone.security = Some(security);
            phone.ng_ksi = command.ng_ksi;
            Some(GmmMessage::SecurityModeCommand(command))
        }
        (0, _) => GmmMessage::decode(pdu).ok(),
        (_, Some(security)) => GmmMessage::decode(&security.unprotect(pdu).ok()?.plain).ok(),
        _ => None,
    }
}

/// The gNB requests the release of the UE.
pub fn ask_for_release(world: &mut World, phone: &Phone) {
    let Some(amf_ue_ngap_id) = phone.amf_id else { return };
    let cause = Some(Cause::RadioNetwork(CauseRadioNetwork::user_inactivity));
    let request =
        UeContextReleaseRequest { amf_ue_ngap_id, ran_ue_ngap_id: phone.ran_id, sessions: None, cause };
    world.ngap(phone.gnb, "UeContextReleaseRequest", request.encode());
}

/// A gNB confirms a release.
pub fn release_complete(world: &mut World, gnb: GnbHandle, message: &Message) {
    let Message::UeContextReleaseCommand(command) = message else { return };
    let UeNgapIds::Pair(amf_ue_ngap_id, ran_ue_ngap_id) = command.ids else { return };
    let complete = UeContextReleaseComplete {
        amf_ue_ngap_id,
        ran_ue_ngap_id,
        location: None,
        sessions: None,
        diagnostics: None,
    };
    world.ngap(gnb, "UeContextReleaseComplete", complete.encode());
}
