//! Primary authentication (TS 24.501 5.4.1).

use crate::network::*;
use pith_crypto::sqn::Sqn;
use pith_crypto::{aka, kdf};
use pith_nas::gmm::{AuthenticationReject, AuthenticationRequest};
use pith_nas::ie::NgKsi;
use pith_nas::{GmmCause, GmmMessage};
use pith_ran::ue::{Event, Failure, Input, State};
use std::time::Duration;

fn registering() -> Pair {
    let mut pair = Pair::new();
    pair.input(Input::Register);
    pair.sent.clear();
    pair
}

fn cause_of_failure(pair: &mut Pair) -> GmmCause {
    let GmmMessage::AuthenticationFailure(failure) = pair.plain() else { panic!("AUTHENTICATION FAILURE") };
    failure.cause
}

#[test]
fn a_challenge_is_answered_with_res_star() {
    let mut pair = registering();
    let challenge = pair.challenge(NgKsi::Native(0));
    let vector =
        aka::generate(&algorithm(), challenge.rand.unwrap().into(), Sqn::new(0x41), "8000".parse().unwrap());
    pair.give_plain(challenge);
    let GmmMessage::AuthenticationResponse(response) = pair.plain() else { panic!() };
    assert_eq!(response.res_star, Some(*kdf::five_g_he_av(&vector, SNN).xres_star.as_bytes()));
    pair.assert_clean();
}

#[test]
fn a_retransmitted_challenge_gets_the_same_answer() {
    let mut pair = registering();
    let challenge = pair.challenge(NgKsi::Native(0));
    pair.give_plain(challenge.clone());
    let first = pair.octets();
    pair.give_plain(challenge);
    assert_eq!(pair.octets(), first);
    pair.assert_clean();
}

#[test]
fn a_wrong_mac_is_mac_failure() {
    let mut pair = registering();
    let mut challenge = pair.challenge(NgKsi::Native(0));
    challenge.autn.as_mut().unwrap()[15] ^= 1;
    pair.give_plain(challenge);
    assert_eq!(cause_of_failure(&mut pair), GmmCause::MacFailure);
}

#[test]
fn a_separation_bit_of_0_is_non_5g_authentication() {
    let mut pair = registering();
    let challenge = pair.challenge_of(NgKsi::Native(0), Sqn::new(0x41), "0000".parse().unwrap());
    pair.give_plain(challenge);
    assert_eq!(cause_of_failure(&mut pair), GmmCause::NonFiveGAuthenticationUnacceptable);
}

#[test]
fn a_used_sequence_number_is_a_synch_failure_with_the_highest_sqn_in_auts() {
    let mut pair = Pair::new();
    pair.register();
    let mut challenge = pair.challenge_of(NgKsi::Native(1), Sqn::new(0x41), "8000".parse().unwrap());
    challenge.rand.as_mut().unwrap()[0] ^= 1;
    let rand = challenge.rand.unwrap().into();
    let vector = aka::generate(&algorithm(), rand, Sqn::new(0x41), "8000".parse().unwrap());
    challenge.autn = Some(*vector.autn.as_bytes());
    pair.give_ciphered(challenge);
    let GmmMessage::AuthenticationFailure(failure) = pair.ciphered() else { panic!() };
    assert_eq!(failure.cause, GmmCause::SynchFailure);
    let auts = failure.auts.unwrap().into();
    assert_eq!(aka::check_auts(&algorithm(), &rand, &auts), Ok(Sqn::new(0x41)));
    pair.assert_clean();
}

#[test]
fn an_ng_ksi_in_use_is_refused_and_a_violation() {
    let mut pair = Pair::new();
    pair.register();
    let challenge = pair.challenge(NgKsi::Native(0));
    pair.give_ciphered(challenge);
    let GmmMessage::AuthenticationFailure(failure) = pair.ciphered() else { panic!() };
    assert_eq!(failure.cause, GmmCause::NgKsiAlreadyInUse);
    assert_eq!(pair.violation(), "TS 24.501 5.4.1.3.2");
}

#[test]
fn three_refused_challenges_in_a_row_end_the_connection() {
    let mut pair = registering();
    for _ in 0..3 {
        let mut challenge = pair.challenge(NgKsi::Native(0));
        challenge.autn.as_mut().unwrap()[15] ^= 1;
        pair.give_plain(challenge);
        pair.sent.clear();
    }
    assert_eq!(pair.released, 1);
    assert_eq!(pair.events[0], Event::RegistrationFailed(Failure::NetworkNotAuthenticated));
}

#[test]
fn no_other_challenge_in_t3520_ends_the_connection() {
    let mut pair = registering();
    let mut challenge = pair.challenge(NgKsi::Native(0));
    challenge.autn.as_mut().unwrap()[15] ^= 1;
    pair.give_plain(challenge);
    pair.advance(Duration::from_secs(15));
    assert_eq!(pair.released, 1);
}

#[test]
fn a_valid_challenge_after_an_invalid_one_is_accepted() {
    let mut pair = registering();
    let mut bad = pair.challenge(NgKsi::Native(0));
    bad.autn.as_mut().unwrap()[15] ^= 1;
    pair.give_plain(bad);
    pair.sent.clear();
    let good = pair.challenge(NgKsi::Native(0));
    pair.give_plain(good);
    let GmmMessage::AuthenticationResponse(_) = pair.plain() else { panic!() };
    pair.advance(Duration::from_secs(15));
    assert_eq!(pair.events[0], Event::RegistrationFailed(Failure::NoAnswer), "T3510 runs again");
}

#[test]
fn a_challenge_without_rand_is_a_conditional_ie_error() {
    let mut pair = registering();
    pair.give_plain(AuthenticationRequest::new(NgKsi::Native(0), kdf::ABBA.to_vec()));
    let GmmMessage::GmmStatus(status) = pair.plain() else { panic!() };
    assert_eq!(status.cause, GmmCause::ConditionalIeError);
    assert_eq!(pair.violation(), "TS 24.501 8.2.1");
}

#[test]
fn authentication_reject_makes_the_usim_invalid() {
    let mut pair = registering();
    let challenge = pair.challenge(NgKsi::Native(0));
    pair.give_plain(challenge);
    pair.give_plain(AuthenticationReject::new());
    assert_eq!(pair.events, [Event::RegistrationFailed(Failure::AuthenticationRejected)]);
    assert_eq!(pair.ue.state(), State::Deregistered);
    pair.assert_clean();
}

#[test]
fn an_unsolicited_unprotected_authentication_reject_is_discarded() {
    let mut pair = registering();
    pair.give_plain(AuthenticationReject::new());
    assert_eq!(pair.violation(), "TS 24.501 5.4.1.3.7 m");
    assert_ne!(pair.ue.state(), State::Deregistered);
}
