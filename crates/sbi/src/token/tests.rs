//! Tests of valid tokens and of each kind of invalid token.

use super::*;
use crate::{Operation, ProblemMore, ServiceName};
use pith_crypto::jws::{JwsAlgorithm, SigningKey};

pub(super) const NOW: u64 = 1_800_000_000;
const NRF: NfInstanceId = NfInstanceId(1);
const AMF: NfInstanceId = NfInstanceId(2);
const UDM: NfInstanceId = NfInstanceId(3);

/// The key of RFC 7515 A.3.1.
pub(super) fn signing_key() -> SigningKey {
    let octets = |text| from_base64url(text).unwrap().try_into().unwrap();
    SigningKey::from_parts(
        &octets("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"),
        &octets("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
        &octets("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"),
    )
    .unwrap()
}

fn verifier() -> Verifier {
    let set = jwks(&[("key-1".into(), signing_key().point())]);
    Verifier::new(KeySet::from_jwks(&set).unwrap())
}

pub(super) fn claims() -> AccessTokenClaims {
    AccessTokenClaims::new(NRF, AMF, NfType::Udm, "nudm-sdm nudm-uecm", NOW + 3600)
}

fn token_with(header: &str, claims: &AccessTokenClaims) -> String {
    let json = serde_json::to_vec(claims).unwrap();
    let input = format!("{}.{}", base64url(header.as_bytes()), base64url(&json));
    AccessTokenClaims::token(&input, &signing_key().sign(input.as_bytes()).unwrap())
}

pub(super) fn token(claims: &AccessTokenClaims) -> String {
    let input = claims.signing_input(JwsAlgorithm::Es256, "key-1");
    AccessTokenClaims::token(&input, &signing_key().sign(input.as_bytes()).unwrap())
}

fn plmn() -> Plmn {
    "999/70".parse().unwrap()
}

fn producer() -> Producer {
    Producer {
        instances: vec![(NfType::Udm, UDM), (NfType::Ausf, NfInstanceId(4))],
        plmns: vec![plmn()],
        slices: vec![Snssai::of_sst(1)],
        nf_sets: vec!["set1.udmset.5gc.mnc070.mcc999".into()],
    }
}

#[test]
fn a_signed_token_is_valid_until_it_expires() {
    let (mut verifier, token) = (verifier(), token(&claims()));
    for _ in 0..2 {
        assert_eq!(verifier.verify(NOW, &token).as_deref(), Ok(&claims()));
    }
    assert!(verifier.verify(NOW + 3605, &token).is_ok(), "clocks may differ by ten seconds");
    assert_eq!(verifier.verify(NOW + 3610, &token), Err(Refusal::Expired), "also one that is remembered");
    assert_eq!(self::verifier().verify(NOW + 3610, &token), Err(Refusal::Expired));
}

/// RFC 7519 4.1.5.
#[test]
fn a_token_is_refused_before_its_time() {
    let of =
        |nbf| verifier().verify(NOW, &token(&AccessTokenClaims { nbf: Some(nbf), ..claims() })).map(drop);
    assert_eq!((of(NOW), of(NOW + 10)), (Ok(()), Ok(())), "clocks may differ by ten seconds");
    assert_eq!((of(NOW + 11), of(u64::MAX)), (Err(Refusal::NotYet), Err(Refusal::NotYet)));
}

#[test]
fn a_token_that_never_expires_is_no_overflow() {
    let (mut verifier, token) = (verifier(), token(&AccessTokenClaims { exp: u64::MAX, ..claims() }));
    for _ in 0..2 {
        assert!(verifier.verify(NOW, &token).is_ok());
    }
}

#[test]
fn a_token_of_another_issuer_is_refused() {
    let of = |issuers: &[NfInstanceId]| {
        let keys = KeySet::from_jwks(&jwks(&[("key-1".into(), signing_key().point())])).unwrap();
        Verifier::new(keys.of_issuers(issuers)).verify(NOW, &token(&claims())).map(|_| ())
    };
    assert_eq!(of(&[NRF]), Ok(()));
    assert_eq!(of(&[]), Ok(()), "the id of another vendor's NRF is not known");
    assert_eq!(of(&[AMF]), Err(Refusal::Issuer));
}

#[test]
fn nothing_in_a_token_can_be_changed() {
    let token = token(&claims());
    let mut verifier = verifier();
    for at in 0..token.len() {
        let mut spoiled = token.clone().into_bytes();
        spoiled[at] = if spoiled[at] == b'A' { b'B' } else { b'A' };
        let spoiled = String::from_utf8(spoiled).unwrap();
        assert!(verifier.verify(NOW, &spoiled).is_err(), "octet {at}");
    }
    assert!(verifier.verify(NOW, &token).is_ok());
}

#[test]
fn the_algorithm_is_the_keys_own() {
    let mut verifier = verifier();
    for (header, refusal) in [
        (r#"{"alg":"none","kid":"key-1"}"#, Refusal::UnknownKey),
        (r#"{"alg":"HS256","kid":"key-1"}"#, Refusal::UnknownKey),
        (r#"{"alg":"RS256","kid":"key-1"}"#, Refusal::UnknownKey),
        (r#"{"alg":"ES256","kid":"key-2"}"#, Refusal::UnknownKey),
        (r#"{"alg":"ES256","kid":"key-1","crit":["exp"],"exp":0}"#, Refusal::Form),
        (r#"{"kid":"key-1"}"#, Refusal::Form),
    ] {
        assert_eq!(verifier.verify(NOW, &token_with(header, &claims())), Err(refusal), "{header}");
    }
    assert!(verifier.verify(NOW, &token_with(r#"{"alg":"ES256"}"#, &claims())).is_ok(), "an NRF of one key");
    for bad in ["", ".", "..", "a.b.c", &"x".repeat(10_000), &format!("{}.", token(&claims()))] {
        assert_eq!(verifier.verify(NOW, bad), Err(Refusal::Form), "{bad:.20}");
    }
}

#[test]
fn a_token_of_a_removed_key_is_invalid() {
    let (mut verifier, token) = (verifier(), token(&claims()));
    assert!(verifier.verify(NOW, &token).is_ok());
    verifier.set_keys(KeySet::default());
    assert_eq!(verifier.verify(NOW, &token), Err(Refusal::UnknownKey));
}

#[test]
fn a_token_is_for_its_producer_and_service_only() {
    let admit = |change: fn(&mut AccessTokenClaims), service| {
        let mut claims = claims();
        change(&mut claims);
        producer().admit(&claims, &service)
    };
    assert_eq!(admit(|_| {}, ServiceName::NudmSdm), Ok(()));
    assert_eq!(admit(|_| {}, ServiceName::NudmUeau), Err(Refusal::Scope("nudm-ueau".into())));
    assert_eq!(admit(|_| {}, ServiceName::NausfAuth), Err(Refusal::Audience), "a token of another service");
    assert_eq!(admit(|c| c.aud = NfType::Amf.into(), ServiceName::NudmSdm), Err(Refusal::Audience));
    assert_eq!(admit(|c| c.aud = UDM.into(), ServiceName::NudmSdm), Ok(()));
    assert_eq!(admit(|c| c.aud = NfInstanceId(4).into(), ServiceName::NudmSdm), Err(Refusal::Audience));
    assert_eq!(admit(|c| c.aud = NRF.into(), ServiceName::NudmSdm), Err(Refusal::Audience));
    assert_eq!(admit(|c| c.aud = Audience::Instances(vec!["UDM".into()]), ServiceName::NudmSdm), Ok(()));
    assert_eq!(admit(|c| c.producer_plmn_id = Some(plmn()), ServiceName::NudmSdm), Ok(()));
    let other_plmn = |c: &mut AccessTokenClaims| c.producer_plmn_id = "001/01".parse().ok();
    assert_eq!(admit(other_plmn, ServiceName::NudmSdm), Err(Refusal::Plmn));
    let slices = |c: &mut AccessTokenClaims| c.producer_snssai_list = vec![Snssai::of_sst(2)];
    assert_eq!(admit(slices, ServiceName::NudmSdm), Err(Refusal::Slice));
    let set = |c: &mut AccessTokenClaims| c.producer_nf_set_id = Some("set2.udmset".into());
    assert_eq!(admit(set, ServiceName::NudmSdm), Err(Refusal::NfSet));
}

#[test]
fn additional_scopes_narrow_a_token() {
    let mut claims = claims();
    assert_eq!(claims.covers(Operation::RegisterSmf), Ok(()));
    claims.scope = "nudm-sdm nudm-uecm nudm-uecm:amf-registration:write".into();
    assert_eq!(claims.covers(Operation::ThreeGppRegistration), Ok(()));
    assert_eq!(claims.covers(Operation::GetSmfRegistration), Ok(()), "it has no additional scope");
    assert_eq!(
        claims.covers(Operation::RegisterSmf),
        Err(Refusal::Scope("nudm-uecm:smf-registration:write".into()))
    );
    assert_eq!(claims.covers(Operation::GetAmData), Ok(()), "the other service is whole");
    claims.scope = "nudr-dr nudr-dr:policy-data".into();
    assert!(claims.covers(Operation::QueryAuthSubsData).is_err(), "no keys for a PCF");
    assert_eq!(claims.covers(Operation::ReadSessionManagementPolicyData), Ok(()));
}

#[test]
fn a_refusal_has_status_and_www_authenticate_header() {
    for (refusal, status, header) in [
        (Refusal::Missing(ServiceName::NudrDr), 401, r#"Bearer realm="5GC", scope="nudr-dr""#),
        (Refusal::Expired, 401, r#"Bearer realm="5GC", error="invalid_token""#),
        (
            Refusal::Scope("nudr-dr".into()),
            403,
            r#"Bearer realm="5GC", error="insufficient_scope", scope="nudr-dr""#,
        ),
    ] {
        let http = refusal.problem().to_http(None);
        assert_eq!((http.status, http.headers.get("www-authenticate")), (status, Some(header)));
        assert_eq!(http.content_type.as_deref(), Some("application/problem+json"));
        let root = std::sync::Arc::new(crate::ApiRoot::new(crate::Scheme::Http, "udr"));
        let reply = crate::Response::from_http(Operation::QueryAuthSubsData, &root, &http);
        let problem = reply.unwrap_err();
        assert!(matches!(problem.more, Some(ProblemMore::Challenge(_))), "{problem:?}");
        assert_eq!(problem.is_invalid_token(), status == 401);
    }
}

/// Keys of other vendors' NRFs are in PEM or a JWK Set.
#[test]
fn keys_are_read_from_pem_and_from_a_jwk_set() {
    let (x, y) = signing_key().point();
    let head = "3059301306072a8648ce3d020106082a8648ce3d03010703420004";
    let head: Vec<u8> =
        head.as_bytes().chunks(2).map(|pair| crate::octets::hex_pair(pair).unwrap()).collect();
    let der = crate::Base64::from([&head[..], &x, &y].concat());
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{der}\n-----END PUBLIC KEY-----\n");
    let keys = KeySet::from_pem(JwsAlgorithm::Es256, &pem).unwrap();
    assert!(Verifier::new(keys).verify(NOW, &token(&claims())).is_ok());
    assert!(KeySet::from_pem(JwsAlgorithm::Rs512, &pem).is_err(), "a key is of its own algorithm");
    assert!(matches!(KeySet::from_pem(JwsAlgorithm::Es256, "x"), Err(KeySetError::Form)));
    for bad in
        [r#"{}"#, r#"{"keys":[{"kty":"oct","k":"AA"}]}"#, r#"{"keys":[{"kty":"RSA","n":"AA","e":"AQAB"}]}"#]
    {
        assert!(KeySet::from_jwks(bad.as_bytes()).is_err(), "{bad}");
    }
}

/// RFC 7517 5: keys of other kinds in a set don't spoil the others.
#[test]
fn unknown_keys_in_a_set_are_ignored() {
    let own = jwks(&[("key-1".into(), signing_key().point())]);
    let mut set: serde_json::Value = serde_json::from_slice(&own).unwrap();
    let keys = set["keys"].as_array_mut().unwrap();
    for other in [
        r#"{"kty":"oct","k":"AA"}"#,
        r#"{"kty":"OKP","crv":"Ed25519","x":"AA"}"#,
        r#"{"kty":"EC","crv":"P-256","x":"AA"}"#,
        r#"{"kty":7}"#,
        r#""key""#,
    ] {
        keys.insert(0, serde_json::from_str(other).unwrap());
    }
    let mut verifier = Verifier::new(KeySet::from_jwks(set.to_string().as_bytes()).unwrap());
    assert!(verifier.verify(NOW, &token(&claims())).is_ok());
}
