//! Emergency sessions (TS 23.501 5.16.4.6; TS 23.502 4.3.2.2.1).

use super::super::*;
use super::world::*;
use crate::kit::Timer;
use crate::testing::{ambr, supi};
use pith_nas::ie::PduSessionType;
use pith_nas::{GsmBody, GsmCause};
use pith_sbi::common::UeContextId;
use pith_sbi::nsmf_pdusession::{RequestType, SmContextCreateData};
use pith_sbi::{Cause, Operation, Problem};
use pith_types::{Pei, Snssai};

/// The data network "internet" is that of emergency sessions.
fn with_emergency() -> World {
    let emergency = EmergencyServices {
        dnn: "internet".parse().unwrap(),
        snssai: Snssai::of_sst(1),
        five_qi: 5,
        arp_priority: 1,
    };
    let mut config = SmfConfig { emergency: Some(emergency), ..config() };
    config.data_networks[0].pool.1 = 24;
    World::with(config, &["upf"])
}

fn pei() -> Pei {
    "imei-437081612581615".parse().unwrap()
}

fn emergency(data: &mut SmContextCreateData) {
    data.request_type = Some(RequestType::InitialEmergencyRequest);
}

/// The UE has no SUPI.
fn without_supi(data: &mut SmContextCreateData) {
    emergency(data);
    data.supi = None;
}

/// The UE claims a SUPI.
fn with_claimed_supi(data: &mut SmContextCreateData) {
    emergency(data);
    data.unauthenticated_supi = Some(true);
}

/// The established session of a UE without SUPI.
pub(super) fn without_policy() -> World {
    let mut world = with_emergency();
    world.post_with("internet", establishment(|_| {}), without_supi);
    world.gnb_answers();
    world
}

#[test]
fn a_subscribers_emergency_session_has_the_configured_qos_and_asks_no_udm() {
    let mut world = with_emergency();
    world.post_with("internet", establishment(|_| {}), emergency);
    world.gnb_answers();
    assert_eq!(
        world.take_ladder(),
        "\
amf <- 201
pcf <- CreateSmPolicy
upf <- SessionEstablishmentRequest
amf <- N1N2MessageTransfer
upf <- SessionModificationRequest
amf <- 200"
    );
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert!(session.is_emergency && session.ue.supi() == Some(&supi()));
    assert_eq!((session.subscribed.five_qi, session.subscribed.arp_priority), (5, 1));
    assert_eq!(session.subscribed.ambr, ambr(50), "that of the data network");
}

#[test]
fn a_phone_without_supi_is_known_by_its_pei_and_gets_no_policy() {
    for change in [without_supi, with_claimed_supi] {
        let mut world = with_emergency();
        world.post_with("internet", establishment(|_| {}), change);
        world.gnb_answers();
        assert_eq!(
            world.take_ladder(),
            "\
amf <- 201
upf <- SessionEstablishmentRequest
amf <- N1N2MessageTransfer
upf <- SessionModificationRequest
amf <- 200"
        );
        let GsmBody::PduSessionEstablishmentAccept(_) = &world.n1[0].body else { panic!() };
        let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
        assert_eq!((session.ue.to_string(), session.qos.five_qi), (pei().to_string(), 5));
        let transfer = super::super::consumer::transfer(&session, None, None);
        assert_eq!(transfer.ue_context_id, UeContextId::Pei(pei()));
        assert_eq!(
            world.bench.nf.shared.index.find(&supi().into(), 5),
            None,
            "a claimed SUPI proves nothing"
        );
    }
}

#[test]
fn the_session_of_an_unauthenticated_phone_replaces_none_of_the_subscriber() {
    let mut world = with_emergency();
    world.establish();
    world.gnb_answers();
    world.post_with("internet", establishment(|_| {}), with_claimed_supi);
    assert_eq!(world.bench.nf.audit().contexts, 2);
    world.release_by_amf();
    assert_eq!(world.bench.nf.audit().contexts, 1);
}

#[test]
fn an_emergency_session_does_not_need_the_pcf() {
    let mut world = with_emergency();
    let refusal = Problem::new(Cause::PolicyContextDenied);
    world.script.insert(Operation::CreateSmPolicy, Some(Err(refusal.into())));
    world.post_with("internet", establishment(|_| {}), emergency);
    assert!(matches!(world.n1[0].body, GsmBody::PduSessionEstablishmentAccept(_)));

    let mut world = with_emergency();
    world.script.insert(Operation::CreateSmPolicy, None);
    world.post_with("internet", establishment(|_| {}), emergency);
    world.expire(Timer::SbiGuard);
    assert!(matches!(world.n1[0].body, GsmBody::PduSessionEstablishmentAccept(_)));
}

#[test]
fn a_session_that_is_not_configured_is_refused() {
    let mut world = World::new();
    world.post_with("internet", establishment(|_| {}), emergency);
    assert_eq!(world.reject(), GsmCause::RequestRejectedUnspecified);
    world.is_quiet();
    let mut world = with_emergency();
    world.post_with("internet", establishment(|_| {}), |data| {
        emergency(data);
        data.s_nssai = Some(Snssai::of_sst(9));
    });
    assert_eq!(world.reject(), GsmCause::RequestRejectedUnspecified);
    world.is_quiet();
}

#[test]
fn only_emergency_sessions_do_without_a_supi() {
    for change in [without_supi, with_claimed_supi] {
        let mut world = with_emergency();
        world.post_with("internet", establishment(|_| {}), |data| {
            change(data);
            data.request_type = Some(RequestType::InitialRequest);
        });
        assert_eq!(world.reject(), GsmCause::MessageTypeNotCompatibleWithTheProtocolState);
        world.is_quiet();
    }
}

#[test]
fn the_session_type_is_one_of_the_data_network() {
    let mut world = with_emergency();
    let both = establishment(|request| request.pdu_session_type = Some(PduSessionType::Ipv4v6));
    world.post_with("internet", both, without_supi);
    let GsmBody::PduSessionEstablishmentAccept(accept) = &world.n1[0].body else { panic!() };
    assert_eq!(accept.cause, Some(GsmCause::PduSessionTypeIpv4OnlyAllowed));
}

#[test]
fn the_session_of_an_unauthenticated_phone_stays_one_in_its_document() {
    let world = without_policy();
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert!(session.is_emergency && session.ue.supi().is_none());
}
