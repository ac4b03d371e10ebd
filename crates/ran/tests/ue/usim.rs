//! Other kinds of USIMs: concealed SUPIs, TUAK.

use crate::network::*;
use pith_crypto::algorithm::ResLength;
use pith_crypto::keys::{Rand, SubscriberKey, Topc};
use pith_crypto::sqn::Sqn;
use pith_crypto::suci::{HomeNetworkPrivateKey, Profile, decode_msin};
use pith_crypto::tuak::{Tuak, TuakKey};
use pith_crypto::{Algorithm, aka, kdf};
use pith_nas::GmmMessage;
use pith_nas::gmm::AuthenticationRequest;
use pith_nas::ie::{MobileIdentity, NgKsi};
use pith_ran::ue::{Concealment, Input, Subscription};
use pith_types::SchemeOutput;

fn scheme_output_of(pair: &mut Pair) -> (u8, u8, Vec<u8>) {
    pair.input(Input::Register);
    let GmmMessage::RegistrationRequest(request) = pair.plain() else { panic!() };
    let MobileIdentity::Suci(suci) = &request.mobile_identity else { panic!("SUCI") };
    let SchemeOutput::Concealed { scheme, output } = &suci.output else { panic!("concealed") };
    (*scheme, suci.home_network_key_id, output.to_vec())
}

#[test]
fn both_profiles_conceal_the_msin_differently_each_time() {
    for profile in [Profile::A, Profile::B] {
        let private = HomeNetworkPrivateKey::new(profile, &[0x42; 32]).unwrap();
        let concealment = Concealment::Ecies { key_id: 27, key: private.public_key().unwrap() };
        let mut pair = Pair::with(Subscription { concealment: concealment.clone(), ..subscription() });
        let (scheme, key_id, output) = scheme_output_of(&mut pair);
        assert_eq!((scheme, key_id), (profile as u8, 27));
        let msin = decode_msin(&private.deconceal(&output).unwrap());
        assert_eq!(msin.as_deref(), Some("0000000001"));
        let mut other = Pair::with(Subscription { concealment, seed: [8; 32], ..subscription() });
        assert_ne!(scheme_output_of(&mut other).2, output);
    }
}

#[test]
fn a_tuak_usim_answers_tuak_challenges() {
    let key = TuakKey::Bits128(SubscriberKey::new([1; 16]));
    let tuak = Algorithm::Tuak(Tuak::new(key, Topc::new([2; 32]), 1), ResLength::Bits64);
    let mut pair = Pair::with(Subscription { algorithm: tuak.clone().into(), ..subscription() });
    pair.input(Input::Register);
    pair.sent.clear();
    let vector = aka::generate(&tuak, Rand::new([3; 16]), Sqn::new(0x41), "8000".parse().unwrap());
    let mut request = AuthenticationRequest::new(NgKsi::Native(0), kdf::ABBA.to_vec());
    request.rand = Some(*vector.rand.as_bytes());
    request.autn = Some(*vector.autn.as_bytes());
    pair.give_plain(request);
    let GmmMessage::AuthenticationResponse(response) = pair.plain() else { panic!() };
    assert_eq!(response.res_star, Some(*kdf::five_g_he_av(&vector, SNN).xres_star.as_bytes()));
}
