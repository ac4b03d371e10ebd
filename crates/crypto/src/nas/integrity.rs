//! NAS message authentication codes (TS 33.501 D.3).

use aes::Aes128Enc;
use cmac::{Cmac, Mac};
use zuc::eia3::Eia3Mac;

use super::{IntegrityAlgorithm, MessageInput, uea2_uia2};
use crate::keys::{KNasInt, equal_in_constant_time, part};

/// An integrity algorithm with its key.
#[derive(Clone)]
pub struct NasMac(Inner);

#[derive(Clone)]
enum Inner {
    Nia0,
    Nia1(KNasInt),
    Nia2(Box<Cmac<Aes128Enc>>),
    Nia3(KNasInt),
}

impl NasMac {
    /// Expands the key for the algorithm.
    pub fn new(algorithm: IntegrityAlgorithm, key: &KNasInt) -> Self {
        Self(match algorithm {
            IntegrityAlgorithm::Nia0 => Inner::Nia0,
            IntegrityAlgorithm::Nia1 => Inner::Nia1(key.clone()),
            IntegrityAlgorithm::Nia2 => {
                Inner::Nia2(Box::new(<Cmac<Aes128Enc> as cmac::digest::KeyInit>::new(key.as_bytes().into())))
            }
            IntegrityAlgorithm::Nia3 => Inner::Nia3(key.clone()),
        })
    }

    /// The algorithm.
    pub fn algorithm(&self) -> IntegrityAlgorithm {
        match self.0 {
            Inner::Nia0 => IntegrityAlgorithm::Nia0,
            Inner::Nia1(_) => IntegrityAlgorithm::Nia1,
            Inner::Nia2(_) => IntegrityAlgorithm::Nia2,
            Inner::Nia3(_) => IntegrityAlgorithm::Nia3,
        }
    }

    /// NAS-MAC of `message`, which starts with the NAS sequence number (TS 24.501 4.4.3.3). 128-NIA0 returns
    /// zeros.
    pub fn mac(&self, input: MessageInput, message: &[u8]) -> [u8; 4] {
        match &self.0 {
            Inner::Nia0 => [0; 4],
            Inner::Nia1(key) => uea2_uia2::eia1(key.as_bytes(), input, message),
            Inner::Nia2(cmac) => nia2(cmac, input, message),
            Inner::Nia3(key) => nia3(key.as_bytes(), input, message, 8 * message.len()),
        }
    }

    /// Whether `received` is the NAS-MAC of `message`. 128-NIA0 accepts any MAC (TS 33.501 D.1).
    pub fn verify(&self, input: MessageInput, message: &[u8], received: [u8; 4]) -> bool {
        matches!(self.0, Inner::Nia0) || equal_in_constant_time(&self.mac(input, message), &received)
    }
}

/// The first 32 bits of AES-CMAC over the input and the message (TS 33.401 B.2.3).
fn nia2(cmac: &Cmac<Aes128Enc>, input: MessageInput, message: &[u8]) -> [u8; 4] {
    let mac = cmac.clone().chain_update(input.to_bytes()).chain_update(message);
    part::<0, 4, 16>(&mac.finalize().into_bytes().into())
}

/// 128-EIA3 (TS 35.221 4) of the first `bits` bits of `message`.
pub(super) fn nia3(key: &[u8; 16], input: MessageInput, message: &[u8], bits: usize) -> [u8; 4] {
    let direction = input.direction as u8;
    Eia3Mac::compute(input.count, input.bearer, direction, key, message, bits).to_be_bytes()
}
