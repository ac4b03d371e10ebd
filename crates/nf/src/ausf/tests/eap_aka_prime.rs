//! EAP-AKA' as the AMF sees it; the test generates the UDM's vector and the UE's packets.

use super::*;
use pith_crypto::eap_aka_prime::{self, Keys};
use pith_crypto::keys::{Ck, Ik};
use pith_sbi::nausf_ueauthentication::{DeleteEapAuthenticationResult, EapAuthMethod, EapSession};
use pith_sbi::nudm_ueau::AvEapAkaPrime;

const RES: [u8; 8] = [5; 8];
const CK_PRIME: [u8; 16] = [6; 16];
const IK_PRIME: [u8; 16] = [7; 16];

const CHALLENGE: u8 = 1;
const AUTHENTICATION_REJECT: u8 = 2;
const SYNCHRONIZATION_FAILURE: u8 = 4;
const NOTIFICATION: u8 = 12;
const CLIENT_ERROR: u8 = 14;

fn keys() -> Keys {
    eap_aka_prime::keys(&Ck::new(CK_PRIME), &Ik::new(IK_PRIME), supi().imsi())
}

fn vector(rand: u8) -> Reply {
    let mut result = AuthenticationInfoResult::new(AuthType::EapAkaPrime);
    result.supi = Some(supi());
    let vector = AvEapAkaPrime::new(
        Hex([rand; 16]),
        "0505050505050505",
        Hex([4; 16]),
        Secret(CK_PRIME),
        Secret(IK_PRIME),
    );
    result.authentication_vector = Some(AuthenticationVector::EapAkaPrime(vector));
    Ok(Response::AuthenticationInfoResult(Box::new(result)))
}

/// An EAP-Response/AKA' of those attributes.
fn response(identifier: u8, subtype: u8, attributes: &[u8]) -> Vec<u8> {
    let mut packet = vec![2, identifier, 0, 8 + attributes.len() as u8, 50, subtype, 0, 0];
    packet.extend(attributes);
    packet
}

/// The correct response, except for the RES.
fn answer(identifier: u8, res: [u8; 8]) -> Vec<u8> {
    let attributes = [&[3, 3, 0, 64], &res[..], &[11, 5, 0, 0], &[0; 16]].concat();
    let mut packet = response(identifier, CHALLENGE, &attributes);
    let mac = eap_aka_prime::at_mac(&keys().k_aut, &packet);
    let at = packet.len() - 16;
    packet[at..].copy_from_slice(&mac);
    packet
}

fn synchronization_failure(identifier: u8) -> Vec<u8> {
    response(identifier, SYNCHRONIZATION_FAILURE, &[&[4, 4][..], &[9; 14], &[24, 1, 0, 1]].concat())
}

/// Runs an authentication up to the challenge; returns the id of the context and the identifier of
/// the request.
pub(super) fn challenged(bench: &mut Bench<Ausf>) -> (String, u8) {
    let asked = authenticate(bench, SERVING_NETWORK);
    let seen = bench.reply(asked.call().0, vector(1));
    let Response::UeAuthenticationCtxCreated(created) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(created.body.auth_type, AuthType::EapAkaPrime);
    let AuthData::Eap(Base64(packet)) = &created.body.auth_data else { panic!("{created:?}") };
    assert!(created.body.links.contains_key("eap-session"));
    assert_eq!((packet[0], packet[4], packet[5]), (1, 50, CHALLENGE));
    (created.location.id().to_owned(), packet[1])
}

fn respond(bench: &mut Bench<Ausf>, id: &str, packet: &[u8]) -> Seen {
    let body = EapSession::new(Some(Base64(packet.to_vec().into())));
    bench.request(EapAuthMethod { auth_ctx_id: id.into(), body })
}

fn session(seen: &Seen) -> (&EapSession, Vec<u8>) {
    let Response::EapSession(session) = seen.answer() else { panic!("{seen:?}") };
    let Some(Base64(packet)) = &session.eap_payload else { panic!("{session:?}") };
    (session, packet.to_vec())
}

/// EAP-Failure is sent to the AMF, and the result to the UDM.
fn assert_failed(bench: &Bench<Ausf>, seen: &Seen, identifier: u8) {
    let (session, packet) = session(seen);
    assert_eq!(session.auth_result, Some(AuthResult::AuthenticationFailure));
    assert_eq!(packet, [4, identifier, 0, 4]);
    assert!(session.kseaf.is_none() && session.supi.is_none());
    assert!(!told_udm(seen));
    assert_eq!((bench.nf.pending(), bench.timers.len()), (0, 0));
}

/// The UE gets the notification, and acknowledges it.
fn assert_notified(bench: &mut Bench<Ausf>, seen: &Seen, id: &str, identifier: u8) {
    let (session, packet) = session(seen);
    assert_eq!(session.auth_result, Some(AuthResult::AuthenticationOngoing));
    let next = identifier.wrapping_add(1);
    assert_eq!(packet, [1, next, 0, 12, 50, NOTIFICATION, 0, 0, 12, 1, 0x40, 0], "general failure");
    assert!(seen.calls().is_empty());
    let heard = respond(bench, id, &response(next, NOTIFICATION, &[]));
    assert_failed(bench, &heard, next);
}

#[test]
fn the_challenge_carries_rand_autn_key_derivation_and_network_name_under_a_mac() {
    let mut bench = bench();
    let asked = authenticate(&mut bench, SERVING_NETWORK);
    let seen = bench.reply(asked.call().0, vector(1));
    let Response::UeAuthenticationCtxCreated(created) = seen.answer() else { panic!("{seen:?}") };
    let AuthData::Eap(Base64(packet)) = &created.body.auth_data else { panic!("{created:?}") };
    let name = [&[23, 9, 0, 32], SERVING_NETWORK.as_bytes()].concat();
    let mut expected = [&[1, 5, 0, 0][..], &RAND, &[2, 5, 0, 0], &[4; 16], &[24, 1, 0, 1], &name].concat();
    expected.extend([11, 5, 0, 0]);
    assert_eq!(packet[8..packet.len() - 16], expected);
    let mut with_zero_mac = packet.to_vec();
    let mac = with_zero_mac.split_off(packet.len() - 16);
    with_zero_mac.extend([0; 16]);
    assert!(eap_aka_prime::check_at_mac(&keys().k_aut, &with_zero_mac, &mac));
}

#[test]
fn a_correct_res_gives_eap_success_supi_and_k_seaf_and_is_reported_to_the_udm() {
    let mut bench = bench();
    let (id, identifier) = challenged(&mut bench);
    let seen = respond(&mut bench, &id, &answer(identifier, RES));
    let (session, packet) = session(&seen);
    assert_eq!(session.auth_result, Some(AuthResult::AuthenticationSuccess));
    assert_eq!(packet, [3, identifier, 0, 4]);
    assert_eq!(session.supi, Some(supi()));
    let k_seaf = kdf::k_seaf(&kdf::k_ausf_from_emsk(&keys().emsk), SERVING_NETWORK);
    assert!(session.kseaf == Some(Secret(*k_seaf.as_bytes())));
    assert!(told_udm(&seen));
    assert_eq!((bench.nf.pending(), bench.timers.len()), (0, 0));
}

#[test]
fn a_wrong_res_mac_or_key_derivation_gets_notification_then_failure() {
    let mut wrong_mac = |identifier| {
        let mut packet = answer(identifier, RES);
        *packet.last_mut().unwrap() ^= 1;
        packet
    };
    let cases: [&mut dyn FnMut(u8) -> Vec<u8>; 5] = [
        &mut |identifier| answer(identifier, [0; 8]),
        &mut wrong_mac,
        &mut |identifier| response(identifier, CHALLENGE, &[24, 1, 0, 1]),
        &mut |identifier| response(identifier, CHALLENGE, &[24, 1, 0, 2]),
        &mut |identifier| response(identifier, 99, &[]),
    ];
    for case in cases {
        let mut bench = bench();
        let (id, identifier) = challenged(&mut bench);
        let seen = respond(&mut bench, &id, &case(identifier));
        assert_notified(&mut bench, &seen, &id, identifier);
    }
}

#[test]
fn a_ue_that_refuses_gets_eap_failure_at_once() {
    let reject = |identifier| response(identifier, AUTHENTICATION_REJECT, &[]);
    let client_error = |identifier| response(identifier, CLIENT_ERROR, &[22, 1, 0, 0]);
    let nak = |identifier| vec![2, identifier, 0, 6, 3, 0];
    for case in [&reject as &dyn Fn(u8) -> Vec<u8>, &client_error, &nak] {
        let mut bench = bench();
        let (id, identifier) = challenged(&mut bench);
        let seen = respond(&mut bench, &id, &case(identifier));
        assert_failed(&bench, &seen, identifier);
    }
}

#[test]
fn a_synchronization_failure_causes_one_more_challenge_in_the_session() {
    let mut bench = bench();
    let (id, identifier) = challenged(&mut bench);
    let seen = respond(&mut bench, &id, &synchronization_failure(identifier));
    let (tag, Request::GenerateAuthData(request)) = seen.call() else { panic!("{seen:?}") };
    let info = request.body.resynchronization_info.clone().unwrap();
    assert_eq!((info.rand, info.auts), (Hex(RAND), Hex([9; 14])));
    assert!(bench.timers.is_empty() && seen.answers().is_empty());

    let seen = bench.reply(tag, vector(2));
    let (ongoing, packet) = session(&seen);
    assert_eq!(ongoing.auth_result, Some(AuthResult::AuthenticationOngoing));
    assert!(ongoing.links.as_ref().unwrap().contains_key("eap-session"));
    let next = identifier.wrapping_add(1);
    assert_eq!((packet[1], &packet[12..28]), (next, &[2; 16][..]), "another identifier, another RAND");

    let seen = respond(&mut bench, &id, &synchronization_failure(next));
    assert_notified(&mut bench, &seen, &id, next);
}

#[test]
fn a_resynchronised_ue_is_authenticated() {
    let mut bench = bench();
    let (id, identifier) = challenged(&mut bench);
    let seen = respond(&mut bench, &id, &synchronization_failure(identifier));
    bench.reply(seen.call().0, vector(2));
    let seen = respond(&mut bench, &id, &answer(identifier.wrapping_add(1), RES));
    assert_eq!(session(&seen).0.auth_result, Some(AuthResult::AuthenticationSuccess));
    assert_eq!((bench.nf.pending(), bench.timers.len()), (0, 0));
}

#[test]
fn an_invalid_auts_ends_the_authentication_with_the_udms_problem() {
    let mut bench = bench();
    let (id, identifier) = challenged(&mut bench);
    let seen = respond(&mut bench, &id, &synchronization_failure(identifier));
    let problem = Problem::new(Cause::AuthenticationRejected);
    let seen = bench.reply(seen.call().0, Err(problem.into()));
    assert_eq!(seen.cause(), Some(&Cause::AuthenticationRejected));
    assert_eq!((bench.nf.pending(), bench.timers.len()), (0, 0));
}

#[test]
fn responses_are_refused_while_a_vector_is_pending() {
    let mut bench = bench();
    let (id, identifier) = challenged(&mut bench);
    let asked = respond(&mut bench, &id, &synchronization_failure(identifier));
    assert_eq!(respond(&mut bench, &id, &answer(identifier, RES)).problem().status, 404);
    assert!(matches!(bench.reply(asked.call().0, vector(2)).answer(), Response::EapSession(_)));
}

#[test]
fn an_unsolicited_packet_changes_nothing() {
    let mut bench = bench();
    let (id, identifier) = challenged(&mut bench);
    let whole = answer(identifier, RES);
    let mut request = whole.clone();
    request[0] = 1;
    let late = answer(identifier.wrapping_sub(1), RES);
    for packet in [&[][..], &whole[..3], &whole[..whole.len() - 1], &request, &late] {
        assert_eq!(respond(&mut bench, &id, packet).problem().status, 400);
    }
    let seen = respond(&mut bench, &id, &whole);
    assert_eq!(session(&seen).0.auth_result, Some(AuthResult::AuthenticationSuccess));
}

#[test]
fn each_method_has_its_own_sub_resource() {
    let mut bench = bench();
    let (id, identifier) = challenged(&mut bench);
    assert_eq!(confirm(&mut bench, &id, Some(XRES_STAR)).problem().status, 404);
    let wrong = DeleteFiveGAkaAuthenticationResult { auth_ctx_id: id.clone() };
    assert_eq!(bench.request(wrong).problem().status, 404);
    let delete = DeleteEapAuthenticationResult { auth_ctx_id: id.clone() };
    assert_eq!(bench.request(delete).answer(), &Response::NoContent);
    assert_eq!(respond(&mut bench, &id, &answer(identifier, RES)).problem().status, 404);
    assert_eq!((bench.nf.pending(), bench.timers.len()), (0, 0));

    let id = challenge(&mut bench);
    assert_eq!(respond(&mut bench, &id, &answer(identifier, RES)).problem().status, 404);
}

#[test]
fn an_unanswered_authentication_is_deleted() {
    let mut bench = bench();
    let (id, identifier) = challenged(&mut bench);
    assert!(bench.expire(Timer::Expiry).is_empty());
    assert_eq!(bench.nf.pending(), 0);
    assert_eq!(respond(&mut bench, &id, &answer(identifier, RES)).problem().status, 404);
}

#[test]
fn under_overload_an_authentication_that_waits_for_the_udm_goes_on() {
    let mut bench = bench();
    let (id, identifier) = challenged(&mut bench);
    let asked = respond(&mut bench, &id, &synchronization_failure(identifier));
    for _ in 0..MAX_CHALLENGED {
        let call = authenticate(&mut bench, SERVING_NETWORK).call().0;
        bench.reply(call, vector(1)).answer();
    }
    assert!(matches!(bench.reply(asked.call().0, vector(2)).answer(), Response::EapSession(_)));
}

#[test]
fn a_timer_that_fires_late_ends_no_authentication_that_waits_for_the_udm() {
    let mut bench = bench();
    let (id, identifier) = challenged(&mut bench);
    let key = *bench.timers.keys().next().unwrap();
    let asked = respond(&mut bench, &id, &synchronization_failure(identifier));
    assert!(bench.input(Input::Timer(key)).is_empty());
    assert!(matches!(bench.reply(asked.call().0, vector(2)).answer(), Response::EapSession(_)));
}
