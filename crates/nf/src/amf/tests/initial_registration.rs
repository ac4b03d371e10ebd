//! Initial registration with a SUCI, and a PDU session (TS 23.502 4.2.2.2.2, 4.3.2.2.1).

use super::world::{Phone, World, identity};
use pith_nas::ie::{RegistrationKind, UpdateType};

#[test]
fn a_suci_registers_step_by_step() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    assert_eq!(
        world.take_ladder(),
        "\
gnb1 -> InitialUeMessage
ausf <- Authenticate
gnb1 <- DownlinkNasTransport
gnb1 -> UplinkNasTransport
ausf <- FiveGAkaConfirmation
gnb1 <- DownlinkNasTransport
gnb1 -> UplinkNasTransport
udm  <- ThreeGppRegistration
udm  <- GetDataSets
udm  <- SdmSubscribe
pcf  <- CreateAmPolicyAssociation
gnb1 <- InitialContextSetupRequest
gnb1 -> InitialContextSetupResponse
gnb1 -> UplinkNasTransport"
    );
    let (tmsi, connection) = (phone.guti.unwrap().tmsi, phone.amf_id.unwrap());
    assert_eq!(tmsi.block(), connection.block(), "all ids of a UE are of one block");
    assert_eq!(identity().owners.owner(tmsi.block()), identity().owner, "which the shard owns");
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.in_procedure, audit.timers), (1, 1, 0, 0));
}

#[test]
fn a_registered_phone_gets_a_session() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    world.take_ladder();
    phone.establish(&mut world, 5);
    assert_eq!(
        world.take_ladder(),
        "\
gnb1 -> UplinkNasTransport
smf  <- PostSmContexts
nf   -> N1N2MessageTransfer
gnb1 <- PduSessionResourceSetupRequest
nf   <- 200
gnb1 -> PduSessionResourceSetupResponse
smf  <- UpdateSmContext"
    );
    assert_eq!(world.amf.audit().sessions, 1);
}

#[test]
fn sms_over_nas_is_not_allowed() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let mut request = phone.registration_request(RegistrationKind::Initial);
    request.update_type = Some(UpdateType { sms_requested: true, ..UpdateType::default() });
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    let accept = phone.authenticate(&mut world, request);
    assert!(!accept.result.sms_allowed, "no SMSF");
}
