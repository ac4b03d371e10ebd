//! Signatures of access tokens: JSON Web Signature (RFC 7515) with the algorithms of RFC 7518 that NRFs use.
//!
//! A key belongs to one algorithm: the caller compares [`VerifyingKey::algorithm`] with the token's header,
//! so that a token cannot choose its verification (RFC 8725 3.1).

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use aws_lc_rs::digest;
use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{
    self, ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, ParsedPublicKey,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA512,
};
use std::fmt;

/// Signature algorithms (RFC 7518 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JwsAlgorithm {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
}

impl JwsAlgorithm {
    /// All supported algorithms.
    pub const ALL: [Self; 3] = [Self::Es256, Self::Rs256, Self::Rs512];

    /// The value of `alg`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
            Self::Rs512 => "RS512",
        }
    }

    /// The algorithm with this name; `none` and all others are unsupported.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    fn verification(self) -> &'static dyn signature::VerificationAlgorithm {
        match self {
            Self::Es256 => &ECDSA_P256_SHA256_FIXED,
            Self::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
            Self::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
        }
    }
}

impl fmt::Display for JwsAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The octets are not a key of the algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a key for {0}: ES256 takes P-256, RS256 and RS512 take RSA of 2048 to 8192 bits")]
pub struct NotAKey(pub JwsAlgorithm);

/// A key that verifies signatures of one algorithm.
#[derive(Clone)]
pub struct VerifyingKey {
    algorithm: JwsAlgorithm,
    key: ParsedPublicKey,
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key for {}", self.algorithm)
    }
}

impl VerifyingKey {
    /// An ES256 key from the coordinates of its point (RFC 7518 6.2.1).
    pub fn es256(x: &[u8; 32], y: &[u8; 32]) -> Result<Self, NotAKey> {
        let point = [&[4_u8][..], x, y].concat();
        Self::parse(JwsAlgorithm::Es256, &point)
    }

    /// An RS256 or RS512 key from its modulus and exponent (RFC 7518 6.3.1).
    pub fn rsa(algorithm: JwsAlgorithm, n: &[u8], e: &[u8]) -> Result<Self, NotAKey> {
        let components = PublicKeyComponents { n, e };
        let der: Result<PublicKeyX509Der<'_>, _> = components.as_der();
        match der {
            Ok(der) if algorithm != JwsAlgorithm::Es256 => Self::parse(algorithm, der.as_ref()),
            _ => Err(NotAKey(algorithm)),
        }
    }

    /// A key from DER: `SubjectPublicKeyInfo` (RFC 5280 4.1.2.7).
    pub fn from_der(algorithm: JwsAlgorithm, der: &[u8]) -> Result<Self, NotAKey> {
        Self::parse(algorithm, der)
    }

    fn parse(algorithm: JwsAlgorithm, octets: &[u8]) -> Result<Self, NotAKey> {
        // The modulus alone has 256 octets; the library would refuse a shorter key only at each verification.
        if algorithm != JwsAlgorithm::Es256 && octets.len() <= 256 {
            return Err(NotAKey(algorithm));
        }
        let parsed = ParsedPublicKey::new(algorithm.verification(), octets);
        parsed.map(|key| Self { algorithm, key }).map_err(|_| NotAKey(algorithm))
    }

    /// The algorithm of the key.
    pub const fn algorithm(&self) -> JwsAlgorithm {
        self.algorithm
    }

    /// Verifies the signature of a message.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.key.verify_sig(message, signature).is_ok()
    }
}

/// An ES256 private key. Signing draws a nonce from the library's random source, so that only the shell and
/// simulations sign; pure crates request signatures through a trait.
pub struct SigningKey(EcdsaKeyPair);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl SigningKey {
    /// A key from PKCS #8 (RFC 5208).
    pub fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, NotAKey> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8);
        pair.map(Self).map_err(|_| NotAKey(JwsAlgorithm::Es256))
    }

    /// A key from its private value and its point (RFC 7518 6.2.2).
    pub fn from_parts(d: &[u8; 32], x: &[u8; 32], y: &[u8; 32]) -> Result<Self, NotAKey> {
        let point = [&[4_u8][..], x, y].concat();
        let pair = EcdsaKeyPair::from_private_key_and_public_key(&ECDSA_P256_SHA256_FIXED_SIGNING, d, &point);
        pair.map(Self).map_err(|_| NotAKey(JwsAlgorithm::Es256))
    }

    /// A key from its private value alone.
    pub fn from_number(d: &[u8; 32]) -> Result<Self, NotAKey> {
        let not_a_key = |_| NotAKey(JwsAlgorithm::Es256);
        let private =
            PrivateKey::from_private_key(&ECDH_P256, d).map_err(|_| NotAKey(JwsAlgorithm::Es256))?;
        let point = private.compute_public_key().map_err(not_a_key)?;
        let pair = EcdsaKeyPair::from_private_key_and_public_key(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            d,
            point.as_ref(),
        );
        pair.map(Self).map_err(|_| NotAKey(JwsAlgorithm::Es256))
    }

    /// The coordinates of the public point.
    pub fn point(&self) -> ([u8; 32], [u8; 32]) {
        let (mut x, mut y) = ([0; 32], [0; 32]);
        // An uncompressed P-256 point is 65 octets: 4, x, y (SEC 1 2.3.3).
        if let Some((_, coordinates)) = self.0.public_key().as_ref().split_first() {
            x.iter_mut().chain(&mut y).zip(coordinates).for_each(|(octet, from)| *octet = *from);
        }
        (x, y)
    }

    /// Signs a message: 64 octets, R and S (RFC 7518 3.4). `None` if the library fails.
    pub fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let digest = digest::digest(&digest::SHA256, message);
        self.0.sign_digest(&digest).ok().map(|signature| signature.as_ref().to_vec())
    }
}

/// SHA-256.
pub fn sha256(octets: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.iter_mut()
        .zip(digest::digest(&digest::SHA256, octets).as_ref())
        .for_each(|(octet, from)| *octet = *from);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7515 A.3.1: key, signing input, and signature.
    const D: &str = "8e9b109e719098bf980487df1f5d77e9cb29606ebed2263b5f57c213df84f4b2";
    const X: &str = "7fcdce2770f6c45d4183cbee6fdb4b7b580733357be9ef13bacf6e3c7bd15445";
    const Y: &str = "c7f144cd1bbd9b7e872cdfedb9eeb9f4b3695d6ea90b24ad8a4623288588e5ad";
    const INPUT: &[u8] = b"eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    const SIGNATURE: &str = "0ed1215379636c483c2f7f155807d402a3b228033af97c7e17819ac3169ea665c50a07d38c3c70e5d8f12daf084a5480\
        a66590c5f293509a8f3f7f8a83a354d5";

    /// Generated with OpenSSL 3.0: a modulus (the exponent is 65537), and its signatures with SHA-256 and
    /// SHA-512.
    const MODULUS: &str = "ce247b6338fb4434e5281b7f49381d7709dbc330bcec829fe178f23e14757eb74b855bc824c6d252a1219de9a2724e25\
        fa218c2165a19c2f46bd22eeb08649e9def962dbdd09dcf540efdd3a0ae940791fde1f51fad9c573a1a6334451829882\
        ff2842beb9489d95dc567c928aa2027c19cee796a4043edf314eb6762b658fdccbb814d6eee61ffe8a010fa0b5e522f1\
        fe444dce41994959ac2a788fc72cb28a2170cda06a45632aafeab3d4bf6734c9ec0d876e2d471b7a4a6f9f8643c40521\
        91e3cead6d09bd5296c560a1553cbf2e4e41a212db5da7d5a076e77320c49f2652ff06e59d885d3d7c0bea1469c7a1ff\
        d0ed6bce24e7db7dab14bcd9f8a29567";
    const SIGNED: &[u8] = b"header.claims";
    const RS256: &str = "8ea75e9331c0184671f8d617c7c7f05560730a0b3fe7008e9e814347172391281c20de53cf29e88272c5f763a5910cb5\
        555c02e69cc7989fd08149902b6559648bc0796370df06a39b0d516c4b52f1f78f3c08ec5d38271819963ba739040963\
        4864c3858d2c633925422e8dd8f3b39e5faef0ab52a44434352c0c2ddc8e157c694b8bf6a5a01c0d70af84e1159585e3\
        6a9c75bf562b3625e2c419722085429a716e78e9728ee64dcdd14ad7af9fec7ee654f07dfd95abbb3479421346c41b20\
        7265202696461cdd0a5b30cd8fdc85ef9ba96a6a592f1d3db7b79b570906d8a69aa073929da10222632a05f95acb609b\
        e727b132a968dc567f0f3c65208b8c45";
    const RS512: &str = "595633aa04fd643d7206135d6d0a0e204013238991ff8818a81e1c4c866d6c5a2db79d6af7394132521b9a3a9a9f9fb0\
        d94041f4db17f7fdf0489c9ce003512cf4b7ebdfd37b4a8c2fa79c9bf963f50e2d76c45bb319825db665aba7a4edcb9d\
        53228523110177fbd9410bc2f24e46bde4aa14da3e09bfadc2c398a9257171cf5f990c118c2d372bcde4b6a2e16c6b9c\
        9764626099d07a5015993fc731472f0b29ab771809f0d36c15565bd3da0edfecbcdde8bff7cea6038c761923e2235cc0\
        99157af706e18cb292f0cbff8c0f250b78d87a90166927a4de82201677618bcd9a205d1fbc561a6ab1a472b0d5ec54d4\
        2c8e4461bfb440f5f27859489ad42c31";

    fn octets<const N: usize>(text: &str) -> [u8; N] {
        hex::decode(text).unwrap().try_into().unwrap()
    }

    fn rfc_7515() -> (VerifyingKey, SigningKey) {
        let (d, x, y) = (octets(D), octets(X), octets(Y));
        (VerifyingKey::es256(&x, &y).unwrap(), SigningKey::from_parts(&d, &x, &y).unwrap())
    }
    #[test]
    fn a_key_verifies_what_its_private_half_signed_and_nothing_else() {
        let (public, private) = rfc_7515();
        let signature = private.sign(INPUT).unwrap();
        assert_eq!(signature.len(), 64);
        assert!(public.verifies(INPUT, &signature));
        assert!(!public.verifies(&INPUT[1..], &signature));
        let mut spoiled = signature.clone();
        spoiled[40] ^= 1;
        assert!(!public.verifies(INPUT, &spoiled));
        for bad in [&[][..], &signature[..63], &[0; 64]] {
            assert!(!public.verifies(INPUT, bad));
        }
    }

    #[test]
    fn the_number_of_a_key_gives_its_point() {
        let key = SigningKey::from_number(&octets(D)).unwrap();
        assert_eq!(key.point(), (octets(X), octets(Y)));
        assert!(SigningKey::from_number(&[0; 32]).is_err());
    }

    #[test]
    fn the_signature_of_rfc_7515_a_3_is_good() {
        assert!(rfc_7515().0.verifies(INPUT, &octets::<64>(SIGNATURE)));
    }

    #[test]
    fn rsa_signatures_hold_for_their_own_hash_only() {
        let n: [u8; 256] = octets(MODULUS);
        let (rs256, rs512): ([u8; 256], [u8; 256]) = (octets(RS256), octets(RS512));
        let der = [
            &octets::<33>("30820122300d06092a864886f70d01010105000382010f003082010a0282010100")[..],
            &n,
            &[2, 3, 1, 0, 1],
        ]
        .concat();
        for (algorithm, good, other) in
            [(JwsAlgorithm::Rs256, rs256, rs512), (JwsAlgorithm::Rs512, rs512, rs256)]
        {
            let keys = [
                VerifyingKey::rsa(algorithm, &n, &[1, 0, 1]).unwrap(),
                VerifyingKey::from_der(algorithm, &der).unwrap(),
            ];
            for key in keys {
                assert_eq!(key.algorithm(), algorithm);
                assert!(key.verifies(SIGNED, &good) && !key.verifies(SIGNED, &other), "{algorithm}");
            }
        }
    }

    #[test]
    fn keys_of_other_algorithms_are_refused() {
        assert!(VerifyingKey::es256(&[0; 32], &[0; 32]).is_err(), "not a point of the curve");
        assert!(VerifyingKey::rsa(JwsAlgorithm::Rs256, &[0xff; 128], &[1, 0, 1]).is_err(), "1024 bits");
        assert!(VerifyingKey::rsa(JwsAlgorithm::Es256, &octets::<256>(MODULUS), &[1, 0, 1]).is_err());
        assert!(VerifyingKey::from_der(JwsAlgorithm::Rs512, b"nonsense").is_err());
        assert_eq!(JwsAlgorithm::of_name("none"), None);
        assert_eq!(JwsAlgorithm::of_name("HS256"), None);
    }
}
