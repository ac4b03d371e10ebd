//! Access tokens (TS 33.501 13.4.1, TS 29.510 6.3.5.2.4), and the keys of NRFs that check them.
//!
//! An input of `access-token` is read twice: as a client sends it, and as header and claims, a line each, that the NRF's key
//! has signed. The second gets behind the signature.

use crate::target::{CheckFailed, ensure, same};
use pith_crypto::jws::{JwsAlgorithm, SigningKey};
use pith_sbi::token::{AccessTokenClaims, KeySet, Producer, Verifier, jwks};
use pith_sbi::{Base64, NfInstanceId, NfType, Operation};
use pith_types::Snssai;
use std::sync::LazyLock;

/// When the tokens of the corpus are valid.
const NOW: u64 = 1_800_000_000;

/// The NRF's key: that of RFC 7515 A.3, whose public half checks the corpus.
static KEY: LazyLock<SigningKey> = LazyLock::new(|| {
    let number = hex::decode("8e9b109e719098bf980487df1f5d77e9cb29606ebed2263b5f57c213df84f4b2");
    let number = number.ok().and_then(|octets| octets.try_into().ok()).expect("64 digits");
    SigningKey::from_number(&number).expect("a number of P-256")
});

static KEYS: LazyLock<KeySet> = LazyLock::new(|| {
    KeySet::from_jwks(&jwks(&[("key-1".into(), KEY.point())])).expect("a key that was just written")
});

/// The header and claims of the one good token in the corpus.
const GOOD: &str = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImtleS0xIiwidHlwIjoiSldUIn0.eyJpc3MiOiIwMDAwMDAwMC0wMDAwLTQwMDAtODAwMC0wMDAwMDAwMDAwMDEiLCJzdWIiOiIwMDAwMDAwMC0wMDAwLTQwMDAtODAwMC0wMDAwMDAwMDAwMDIiLCJhdWQiOiJVRE0iLCJzY29wZSI6Im51ZG0tc2RtIG51ZG0tdWVjbSIsImV4cCI6MTgwMDAwMzYwMH0";

/// A token: nothing is taken that the key did not sign, and what it signed is understood the same again.
pub fn access_token(input: &[u8]) -> Result<(), CheckFailed> {
    let Ok(text) = std::str::from_utf8(input) else { return Ok(()) };
    let mut verifier = Verifier::new(KEYS.clone());
    let verified = verifier.verify(NOW, text);
    let is_good = text.rsplit_once('.').is_some_and(|(signed, _)| signed == GOOD);
    ensure(verified.is_err() || is_good, || "a token is taken that nobody signed".into())?;
    let Some((header, claims)) = text.split_once('\n') else { return Ok(()) };
    let signing_input = format!("{}.{}", base64url(header), base64url(claims));
    match verifier.verify(NOW, &signed(&signing_input)) {
        Ok(claims) => understood(&mut verifier, &claims),
        Err(refusal) => {
            let status = refusal.problem().to_http(None).status;
            ensure((400..500).contains(&status), || format!("the sender's fault, but {status}: {refusal}"))
        }
    }
}

fn understood(verifier: &mut Verifier, claims: &AccessTokenClaims) -> Result<(), CheckFailed> {
    let producer = Producer {
        instances: vec![(NfType::Udm, NfInstanceId(3)), (NfType::Ausf, NfInstanceId(4))],
        plmns: "999/70".parse().into_iter().collect(),
        slices: vec![Snssai::of_sst(1)],
        nf_sets: vec!["set1.udmset.5gc.mnc070.mcc999".into()],
    };
    for operation in Operation::ALL {
        let _ = (producer.admit(claims, &operation.service()), claims.covers(*operation));
    }
    let again = signed(&claims.signing_input(JwsAlgorithm::Es256, "key-1"));
    same(claims, verifier.verify(NOW, &again).map(|claims| (*claims).clone()))
}

fn signed(signing_input: &str) -> String {
    AccessTokenClaims::token(signing_input, &KEY.sign(signing_input.as_bytes()).unwrap_or_default())
}

fn base64url(text: &str) -> String {
    let standard = Base64::from(text.as_bytes().to_vec()).to_string();
    standard.trim_end_matches('=').replace('+', "-").replace('/', "_")
}

/// The keys of an NRF of another vendor: a JWK Set, or PEM.
pub fn token_keys(input: &[u8]) -> Result<(), CheckFailed> {
    let _ = KeySet::from_jwks(input).map(|keys| format!("{keys:?}"));
    let Ok(text) = std::str::from_utf8(input) else { return Ok(()) };
    for algorithm in JwsAlgorithm::ALL {
        let _ = KeySet::from_pem(algorithm, text).map(|keys| format!("{keys:?}"));
    }
    Ok(())
}
