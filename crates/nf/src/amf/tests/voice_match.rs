//! The IMS voice over PS indication and UE RADIO CAPABILITY CHECK (TS 23.501 5.16.3.2, TS 23.502 4.2.8a, TS 38.413 8.14.2).

use super::handover_between_amfs::take_message;
use super::world::{GNB, Phone, World, config};
use crate::amf::AmfConfig;
use pith_nas::gmm::{ConfigurationUpdateComplete, RegistrationAccept, RegistrationComplete};
use pith_nas::ie::{RegistrationKind, UpdateType};
use pith_ngap::{
    Cause, CauseProtocol, ErrorIndication, ImsVoiceSupport, UeRadioCapabilityCheckRequest,
    UeRadioCapabilityCheckResponse, UeRadioCapabilityInfoIndication,
};

fn world() -> World {
    World::with(AmfConfig { ims_voice: true, ..config() })
}

fn indicates(accept: &RegistrationAccept) -> bool {
    accept.network_feature_support.as_ref().unwrap().ims_voice_three_gpp
}

/// Registers, up to the gNB's answer to the context setup. Returns whether IMS voice was indicated.
fn registers(world: &mut World, phone: &mut Phone) -> bool {
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(world, nas);
    let accept = phone.authenticate(world, request);
    phone.context_setup_response(world, &[]);
    indicates(&accept)
}

fn answers(world: &mut World, phone: &Phone, ims_voice_support: ImsVoiceSupport) {
    let message = UeRadioCapabilityCheckResponse {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        ims_voice_support,
        diagnostics: None,
    };
    world.ngap(GNB, "UeRadioCapabilityCheckResponse", message.encode());
}

/// The UE registers again. Returns whether IMS voice is indicated.
fn updates(world: &mut World, phone: &mut Phone, has_other_capability: bool) -> bool {
    let mut request = phone.registration_request(RegistrationKind::MobilityUpdating);
    request.update_type = has_other_capability
        .then(|| UpdateType { ng_ran_radio_capability_update: true, ..Default::default() });
    phone.send(world, request);
    let accept = phone.accepted(world);
    phone.send(world, RegistrationComplete::new());
    indicates(&accept)
}

#[test]
fn without_the_setting_ims_voice_is_not_indicated() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    assert!(!registers(&mut world, &mut phone));
    assert!(world.downlinks.is_empty(), "and no gNB gets a request");
    answers(&mut world, &phone, ImsVoiceSupport::not_supported);
    phone.send(&mut world, RegistrationComplete::new());
    assert!(world.downlinks.is_empty());
}

#[test]
fn the_gnb_is_asked_once_whether_the_radio_capability_suffices() {
    let (mut world, mut phone) = (world(), Phone::default());
    assert!(registers(&mut world, &mut phone));
    let request: UeRadioCapabilityCheckRequest = take_message!(world, GNB, UeRadioCapabilityCheckRequest);
    assert_eq!((request.ran_ue_ngap_id, request.ue_radio_capability), (phone.ran_id, None));
    answers(&mut world, &phone, ImsVoiceSupport::supported);
    phone.send(&mut world, RegistrationComplete::new());
    assert!(world.downlinks.is_empty());
    answers(&mut world, &phone, ImsVoiceSupport::not_supported);
    assert!(world.downlinks.is_empty(), "not requested");
    assert!(updates(&mut world, &mut phone, false));
    assert!(world.downlinks.is_empty(), "not asked again");
}

#[test]
fn a_ue_without_the_capability_registers_and_is_told() {
    let (mut world, mut phone) = (world(), Phone::default());
    assert!(registers(&mut world, &mut phone), "it is not known yet");
    world.downlinks.clear();
    answers(&mut world, &phone, ImsVoiceSupport::not_supported);
    assert!(world.downlinks.is_empty(), "after the registration");
    phone.send(&mut world, RegistrationComplete::new());
    let command = phone.take_guti(&mut world);
    assert!(command.indication.unwrap().registration_requested);
    assert!(command.allowed_nssai.is_some(), "a command with a 5G-GUTI alone requests no registration");
    phone.send(&mut world, ConfigurationUpdateComplete::new());
    phone.released(&mut world);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    assert!(!indicates(&phone.accepted(&mut world)));
    phone.send(&mut world, RegistrationComplete::new());
    assert!(world.downlinks.is_empty(), "once");
}

#[test]
fn another_radio_capability_is_checked_again() {
    let (mut world, mut phone) = (world(), Phone::default());
    registers(&mut world, &mut phone);
    world.downlinks.clear();
    answers(&mut world, &phone, ImsVoiceSupport::supported);
    phone.send(&mut world, RegistrationComplete::new());
    phone.release(&mut world);
    let mut request = phone.registration_request(RegistrationKind::MobilityUpdating);
    request.update_type = Some(UpdateType { ng_ran_radio_capability_update: true, ..Default::default() });
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    phone.accepted(&mut world);
    let message = UeRadioCapabilityInfoIndication {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        ue_radio_capability: Some(vec![7; 9]),
    };
    world.ngap(GNB, "UeRadioCapabilityInfoIndication", message.encode());
    phone.context_setup_response(&mut world, &[]);
    let request: UeRadioCapabilityCheckRequest = take_message!(world, GNB, UeRadioCapabilityCheckRequest);
    assert_eq!(request.ue_radio_capability, Some(vec![7; 9]), "the gNB need not ask the UE");
}

/// A gNB that does not know the procedure (TS 38.413 10.3.4.1).
#[test]
fn a_gnb_that_can_not_answer_is_asked_at_the_next_connection() {
    let (mut world, mut phone) = (world(), Phone::default());
    registers(&mut world, &mut phone);
    world.downlinks.clear();
    let cause = Cause::Protocol(CauseProtocol::abstract_syntax_error_reject);
    let message = ErrorIndication {
        amf_ue_ngap_id: phone.amf_id,
        ran_ue_ngap_id: Some(phone.ran_id),
        cause: Some(cause),
        diagnostics: None,
        s_tmsi: None,
    };
    world.ngap(GNB, "ErrorIndication", message.encode());
    phone.send(&mut world, RegistrationComplete::new());
    assert!(world.downlinks.is_empty() && world.amf.audit().connected == 1);
    phone.release(&mut world);
    let nas = phone.service_request(pith_nas::ie::ServiceType::Signalling);
    let nas = phone.initial_nas(nas);
    phone.connect(&mut world, nas);
    phone.receive(&mut world);
    phone.context_setup_response(&mut world, &[]);
    let _: UeRadioCapabilityCheckRequest = take_message!(world, GNB, UeRadioCapabilityCheckRequest);
}

/// A UE with the indication that IMS voice is supported, which is not capable of it: for documents.
pub(super) fn untold() -> World {
    let (mut world, mut phone) = (world(), Phone::default());
    registers(&mut world, &mut phone);
    answers(&mut world, &phone, ImsVoiceSupport::not_supported);
    world
}
