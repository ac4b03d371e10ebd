//! Another implementation of JSON Web Tokens as witness: `jsonwebtoken` verifies what Pith signs, and Pith what it signs.

use super::tests::{NOW, claims, signing_key, token};
use super::*;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use pith_crypto::jws::JwsAlgorithm;
use serde_json::{Value, json};

/// Of an NRF of another vendor, made with OpenSSL for this test.
const RSA: &[u8] = include_bytes!("witness/rsa.pem");
const RSA_PUBLIC: &str = include_str!("witness/rsa.pub.pem");

fn validation(algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.set_audience(&["UDM"]);
    // The times of this test are not those of the clock.
    validation.validate_exp = false;
    validation
}

/// The private key of RFC 7515 A.3 as PKCS #8 (RFC 5208, RFC 5915).
fn pkcs8() -> Vec<u8> {
    let octets =
        |hex: &str| -> Vec<u8> { hex.as_bytes().chunks(2).filter_map(crate::octets::hex_pair).collect() };
    let (x, y) = signing_key().point();
    let head = octets("308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420");
    let number = octets("8e9b109e719098bf980487df1f5d77e9cb29606ebed2263b5f57c213df84f4b2");
    [&head[..], &number, &octets("a144034200"), &[4], &x, &y].concat()
}

/// The token with another character in its signature.
fn spoiled(token: &str) -> String {
    let (head, tail) = token.split_at(token.len() - 10);
    let other = if tail.starts_with('A') { "B" } else { "A" };
    [head, other, &tail[1..]].concat()
}

#[test]
fn another_implementation_verifies_our_tokens() {
    let (x, y) = signing_key().point();
    let key = DecodingKey::from_ec_components(&base64url(&x), &base64url(&y)).unwrap();
    let token = token(&claims());
    let read = decode::<Value>(&token, &key, &validation(Algorithm::ES256)).unwrap();
    assert_eq!(read.claims, serde_json::to_value(claims()).unwrap());
    assert_eq!(read.header.kid.as_deref(), Some("key-1"));
    assert!(decode::<Value>(&spoiled(&token), &key, &validation(Algorithm::ES256)).is_err());
}

#[test]
fn we_verify_tokens_of_another_implementation() {
    let mut header = Header::new(Algorithm::ES256);
    header.kid = Some("key-1".into());
    let theirs = encode(&header, &claims(), &EncodingKey::from_ec_der(&pkcs8())).unwrap();
    let keys = KeySet::from_jwks(&jwks(&[("key-1".into(), signing_key().point())])).unwrap();
    assert_eq!(Verifier::new(keys).verify(NOW, &theirs).as_deref(), Ok(&claims()));
}

#[test]
fn we_verify_rsa_tokens_of_a_foreign_nrf() {
    let private = EncodingKey::from_rsa_pem(RSA).unwrap();
    let public = DecodingKey::from_rsa_pem(RSA_PUBLIC.as_bytes()).unwrap();
    for (theirs, ours, other) in [
        (Algorithm::RS256, JwsAlgorithm::Rs256, JwsAlgorithm::Rs512),
        (Algorithm::RS512, JwsAlgorithm::Rs512, JwsAlgorithm::Rs256),
    ] {
        let token = encode(&Header::new(theirs), &claims(), &private).unwrap();
        assert!(decode::<Value>(&token, &public, &validation(theirs)).is_ok());
        let verifier = |algorithm| Verifier::new(KeySet::from_pem(algorithm, RSA_PUBLIC).unwrap());
        assert_eq!(verifier(ours).verify(NOW, &token).as_deref(), Ok(&claims()), "{theirs:?}");
        assert_eq!(verifier(other).verify(NOW, &token), Err(Refusal::UnknownKey));
        assert_eq!(verifier(ours).verify(NOW, &spoiled(&token)), Err(Refusal::Signature));
    }
}

/// free5GC writes `aud` as a type, Open5GS as a list; a token may carry claims that are not known here.
#[test]
fn claims_of_other_nrfs_are_read() {
    let mut claims = serde_json::to_value(claims()).unwrap();
    claims["aud"] = json!(["UDM"]);
    claims["iat"] = json!(NOW);
    let theirs =
        encode(&Header::new(Algorithm::ES256), &claims, &EncodingKey::from_ec_der(&pkcs8())).unwrap();
    let keys = KeySet::from_jwks(&jwks(&[("key-1".into(), signing_key().point())])).unwrap();
    let read = Verifier::new(keys).verify(NOW, &theirs).unwrap();
    assert_eq!(read.aud, Audience::Instances(vec!["UDM".into()]));
}
