//! 5G-AKA as the AMF sees it; the test generates the UDM's vector.

mod document;
mod eap_aka_prime;
mod residency;

use super::*;
use crate::testing::{self, Bench, Seen, supi};
use pith_crypto::kdf;
use pith_crypto::keys::{KAusf, Rand, ResStar};
use pith_sbi::common::AuthType;
use pith_sbi::nausf_ueauthentication::{
    AuthData, AuthResult, Authenticate, AuthenticationInfo, ConfirmationData, ConfirmationDataResponse,
    DeleteFiveGAkaAuthenticationResult,
};
use pith_sbi::nudm_ueau::{AuthenticationInfoResult, AuthenticationVector, Av5GHeAka};
use pith_sbi::{Hex, Operation, Secret};

const RAND: [u8; 16] = [1; 16];
const XRES_STAR: [u8; 16] = [2; 16];
const K_AUSF: [u8; 32] = [3; 32];
const SERVING_NETWORK: &str = "5G:mnc070.mcc999.3gppnetwork.org";

fn bench() -> Bench<Ausf> {
    let config = AusfConfig { serving_networks: vec![testing::plmn()] };
    Bench::new(Ausf::new(testing::identity(), config, Rng::from_number(1)))
}

fn authenticate(bench: &mut Bench<Ausf>, serving_network: &str) -> Seen {
    let body = AuthenticationInfo::new(supi(), serving_network);
    bench.request(Authenticate { body })
}

fn vector() -> Reply {
    let mut result = AuthenticationInfoResult::new(AuthType::FiveGAka);
    result.supi = Some(supi());
    let vector = Av5GHeAka::new(Hex(RAND), Secret(XRES_STAR), Hex([4; 16]), Secret(K_AUSF));
    result.authentication_vector = Some(AuthenticationVector::FiveGHeAka(vector));
    Ok(Response::AuthenticationInfoResult(Box::new(result)))
}

/// Runs an authentication up to the challenge; returns the id of the context.
fn challenge(bench: &mut Bench<Ausf>) -> String {
    let asked = authenticate(bench, SERVING_NETWORK);
    let seen = bench.reply(asked.call().0, vector());
    let Response::UeAuthenticationCtxCreated(created) = seen.answer() else { panic!("{seen:?}") };
    let AuthData::FiveGAka(challenge) = &created.body.auth_data else { panic!("{created:?}") };
    let hxres_star = kdf::hres_star(&Rand::new(RAND), &ResStar::new(XRES_STAR));
    assert_eq!((challenge.rand, challenge.hxres_star), (Hex(RAND), Hex(*hxres_star.as_bytes())));
    created.location.id().to_owned()
}

fn confirm(bench: &mut Bench<Ausf>, id: &str, res_star: Option<[u8; 16]>) -> Seen {
    let body = ConfirmationData::new(res_star.map(Secret));
    bench.request(FiveGAkaConfirmation { auth_ctx_id: id.into(), body })
}

fn confirmation(seen: &Seen) -> &ConfirmationDataResponse {
    let Response::ConfirmationDataResponse(response) = seen.answer() else { panic!("{seen:?}") };
    response
}

/// Whether a success was reported to the UDM.
fn told_udm(seen: &Seen) -> bool {
    let (_, Request::ConfirmAuth(confirm)) = seen.call() else { panic!("{seen:?}") };
    confirm.body.success
}

#[test]
fn a_correct_res_star_gives_supi_and_k_seaf_and_is_reported_to_the_udm() {
    let mut bench = bench();
    let id = challenge(&mut bench);
    let seen = confirm(&mut bench, &id, Some(XRES_STAR));
    let k_seaf = kdf::k_seaf(&KAusf::new(K_AUSF), SERVING_NETWORK);
    let response = confirmation(&seen);
    assert_eq!(response.auth_result, AuthResult::AuthenticationSuccess);
    assert_eq!(response.supi, Some(supi()));
    assert!(response.kseaf == Some(Secret(*k_seaf.as_bytes())));
    assert!(told_udm(&seen));
    assert_eq!((bench.nf.pending(), bench.timers.len()), (0, 0));
}

#[test]
fn a_wrong_or_absent_res_star_fails_and_gives_no_key() {
    for res_star in [Some([9; 16]), None] {
        let mut bench = bench();
        let id = challenge(&mut bench);
        let seen = confirm(&mut bench, &id, res_star);
        let response = confirmation(&seen);
        assert_eq!(response.auth_result, AuthResult::AuthenticationFailure);
        assert!(response.supi.is_none() && response.kseaf.is_none());
        assert!(!told_udm(&seen));
        assert_eq!(bench.nf.pending(), 0);
    }
}

#[test]
fn a_challenge_is_answered_once() {
    let mut bench = bench();
    let id = challenge(&mut bench);
    confirm(&mut bench, &id, Some([9; 16]));
    let again = confirm(&mut bench, &id, Some(XRES_STAR));
    assert_eq!(again.cause(), Some(&Cause::ContextNotFound));
}

#[test]
fn an_unknown_context_is_refused() {
    let mut bench = bench();
    for id in ["", "0", "ffffffffffffffff", "x", "../1"] {
        assert_eq!(confirm(&mut bench, id, Some(XRES_STAR)).problem().status, 404, "{id:?}");
    }
}

#[test]
fn a_response_before_the_vector_is_refused() {
    let mut bench = bench();
    let asked = authenticate(&mut bench, SERVING_NETWORK);
    let id = bench.nf.reference(Key::from_u64(asked.call().0.owner));
    assert_eq!(confirm(&mut bench, &id, Some(XRES_STAR)).problem().status, 404);
    assert_eq!(bench.nf.pending(), 1);
}

#[test]
fn a_challenge_expires() {
    let mut bench = bench();
    let id = challenge(&mut bench);
    assert!(bench.expire(Timer::Expiry).is_empty());
    assert_eq!(bench.nf.pending(), 0);
    assert_eq!(confirm(&mut bench, &id, Some(XRES_STAR)).problem().status, 404);
}

#[test]
fn a_deleted_challenge_can_not_be_answered() {
    let mut bench = bench();
    let auth_ctx_id = challenge(&mut bench);
    let delete = DeleteFiveGAkaAuthenticationResult { auth_ctx_id };
    assert_eq!(bench.request(delete.clone()).answer(), &Response::NoContent);
    assert_eq!(bench.request(delete).problem().status, 404);
    assert_eq!((bench.nf.pending(), bench.timers.len()), (0, 0));
}

#[test]
fn another_serving_network_is_refused() {
    let mut bench = bench();
    for network in ["5G:mnc001.mcc001.3gppnetwork.org", "", "5G:mnc070.mcc999.3gppnetwork.org:x"] {
        let seen = authenticate(&mut bench, network);
        assert_eq!(seen.cause(), Some(&Cause::ServingNetworkNotAuthorized), "{network}");
        assert!(seen.operations().is_empty());
    }
}

#[test]
fn a_refusal_of_the_udm_is_forwarded_with_its_cause() {
    let mut bench = bench();
    let asked = authenticate(&mut bench, SERVING_NETWORK);
    assert_eq!(asked.operations(), [Operation::GenerateAuthData]);
    let problem = Problem::new(Cause::UserNotFound);
    let seen = bench.reply(asked.call().0, Err(problem.into()));
    assert_eq!(seen.cause(), Some(&Cause::UserNotFound));
    assert_eq!(bench.nf.pending(), 0);
}

#[test]
fn a_missing_vector_is_a_network_failure() {
    let mut bench = bench();
    let asked = authenticate(&mut bench, SERVING_NETWORK);
    let mut result = AuthenticationInfoResult::new(AuthType::FiveGAka);
    result.supi = Some(supi());
    let seen = bench.reply(asked.call().0, Ok(Response::AuthenticationInfoResult(Box::new(result))));
    assert_eq!(seen.problem().status, 500);
    assert_eq!(bench.nf.pending(), 0);
}

#[test]
fn unanswered_authentications_are_limited_and_the_newest_stay() {
    let mut bench = bench();
    let oldest = challenge(&mut bench);
    let answered = challenge(&mut bench);
    confirm(&mut bench, &answered, Some(XRES_STAR));
    for _ in 0..MAX_CHALLENGED {
        challenge(&mut bench);
    }
    assert!(bench.nf.pending() <= MAX_CHALLENGED);
    assert_eq!(bench.timers.len(), bench.nf.pending());
    assert_eq!(confirm(&mut bench, &oldest, Some(XRES_STAR)).cause(), Some(&Cause::ContextNotFound));
    let youngest = challenge(&mut bench);
    assert!(confirmation(&confirm(&mut bench, &youngest, Some(XRES_STAR))).kseaf.is_some());
}

/// An AMF of another process that leaves authentications unfinished ends its own.
#[test]
fn a_flood_of_one_amf_does_not_end_the_authentications_of_another() {
    let mut bench = bench();
    bench.caller = testing::client(1);
    let of_other = challenge(&mut bench);
    bench.caller = testing::client(2);
    let oldest = challenge(&mut bench);
    for _ in 0..MAX_CHALLENGED {
        challenge(&mut bench);
    }
    assert!(bench.nf.pending() <= MAX_CHALLENGED);
    assert_eq!(confirm(&mut bench, &oldest, Some(XRES_STAR)).cause(), Some(&Cause::ContextNotFound));
    assert!(confirmation(&confirm(&mut bench, &of_other, Some(XRES_STAR))).kseaf.is_some());
}
