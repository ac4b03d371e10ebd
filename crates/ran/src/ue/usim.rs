//! The USIM and its data: identity, keys, sequence numbers, concealment (TS 33.102 6.3.3 and Annex
//! C, TS 33.501 Annex C).

use pith_crypto::Algorithm;
use pith_crypto::aka::{self, MacFailure};
use pith_crypto::keys::{Autn, Auts, Ck, Ik, Rand};
use pith_crypto::sqn::UsimSequence;
use pith_crypto::suci::{HomeNetworkPublicKey, encode_msin};
use pith_types::{Plmn, SchemeOutput, Suci, Supi};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use std::sync::Arc;

/// How the UE conceals its SUPI (TS 33.501 C.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concealment {
    /// Null scheme.
    Null,
    /// ECIES with a key of the home network.
    Ecies {
        /// Home Network Public Key Identifier, 1 to 255.
        key_id: u8,
        /// The key, which also determines the profile.
        key: HomeNetworkPublicKey,
    },
}

/// The content of a USIM.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct Subscription {
    pub supi: Supi,
    /// The home network, whose MCC and MNC the SUPI starts with.
    pub home: Plmn,
    /// Routing Indicator, 1 to 4 digits.
    pub routing_indicator: Arc<str>,
    /// Concealment of the SUPI.
    pub concealment: Concealment,
    /// Milenage or TUAK with the subscriber's keys; UEs with the same keys share it.
    pub algorithm: Arc<Algorithm>,
    /// The sequence numbers accepted so far.
    pub sequence: UsimSequence,
    /// Secret seed of ephemeral keys.
    pub seed: [u8; 32],
}

/// The result of a challenge.
pub(crate) struct Answer {
    pub res: pith_crypto::algorithm::Res,
    pub ck: Ck,
    pub ik: Ik,
}

/// Why a challenge is not answered (TS 24.501 5.4.1.3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    MacFailure,
    SeparationBit,
    SynchFailure(Auts),
}

/// A USIM.
pub(crate) struct Usim {
    subscription: Subscription,
    /// Created with the first ephemeral key.
    entropy: Option<Box<ChaCha8Rng>>,
}

impl Usim {
    pub fn new(subscription: Subscription) -> Self {
        Self { subscription, entropy: None }
    }

    pub fn supi(&self) -> &Supi {
        &self.subscription.supi
    }

    /// Verifies a challenge: MAC, freshness, and the separation bit, which the ME itself checks (TS
    /// 33.501 6.1.3.2.0).
    pub fn challenge(&mut self, rand: &Rand, autn: &Autn) -> Result<Answer, Refusal> {
        let Subscription { algorithm, sequence, .. } = &mut self.subscription;
        let challenge =
            aka::check_challenge(algorithm, rand, autn).map_err(|MacFailure| Refusal::MacFailure)?;
        if !challenge.management_field.separation_bit() {
            return Err(Refusal::SeparationBit);
        }
        match sequence.accept(challenge.sqn) {
            Ok(()) => Ok(Answer { res: challenge.res, ck: challenge.ck, ik: challenge.ik }),
            Err(failure) => Err(Refusal::SynchFailure(aka::auts(algorithm, rand, failure.sqn_ms))),
        }
    }

    /// A new SUCI (TS 33.501 6.12.2). If the key can't conceal, the null scheme is used.
    pub fn suci(&mut self) -> Suci {
        let (home_network_key_id, output) = self.conceal().unwrap_or_else(|| (0, self.msin_in_clear()));
        let Subscription { home, routing_indicator, .. } = &self.subscription;
        Suci { plmn: *home, routing_indicator: routing_indicator.clone(), home_network_key_id, output }
    }

    fn conceal(&mut self) -> Option<(u8, SchemeOutput)> {
        let plain = encode_msin(self.msin())?;
        let Concealment::Ecies { key_id, key } = &self.subscription.concealment else { return None };
        let mut ephemeral = [0; 32];
        let seed = self.subscription.seed;
        let entropy = self.entropy.get_or_insert_with(|| Box::new(ChaCha8Rng::from_seed(seed)));
        entropy.fill_bytes(&mut ephemeral);
        let output = key.conceal(&ephemeral, &plain).ok()?;
        Some((*key_id, SchemeOutput::Concealed { scheme: key.profile() as u8, output: output.into() }))
    }

    fn msin_in_clear(&self) -> SchemeOutput {
        SchemeOutput::Null(self.msin().into())
    }

    fn msin(&self) -> &str {
        let home = self.subscription.home;
        let prefix = home.mcc().len() + home.mnc().len();
        self.subscription.supi.imsi().get(prefix..).unwrap_or_default()
    }
}
