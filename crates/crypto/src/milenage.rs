//! Milenage: f1 to f5* over AES-128 (TS 35.206).

use aes::Aes128Enc;
use aes::cipher::{BlockEncrypt, KeyInit};

use crate::keys::{Ck, Ik, ManagementField, Op, Opc, Rand, SubscriberKey, part};
use crate::sqn::Sqn;

/// Rotations r1 to r5, in bits (TS 35.206 4.1).
const R: [u32; 5] = [64, 0, 32, 64, 96];
/// Constants c1 to c5 (TS 35.206 4.1).
const C: [u128; 5] = [0, 1, 2, 4, 8];

/// The functions of one subscriber: the key schedule of K, and OPc.
#[derive(Clone)]
pub struct Milenage {
    cipher: Aes128Enc,
    opc: Opc,
}

/// Outputs of f2 to f5 for one RAND.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// RES, by f2.
    pub res: [u8; 8],
    /// CK, by f3.
    pub ck: Ck,
    /// IK, by f4.
    pub ik: Ik,
    /// AK, by f5.
    pub ak: [u8; 6],
}

/// OPc = OP xor E_K(OP) (TS 35.206 4.1).
pub fn opc_from_op(k: &SubscriberKey, op: &Op) -> Opc {
    let cipher = Aes128Enc::new(k.as_bytes().into());
    let op = u128::from_be_bytes(*op.as_bytes());
    Opc::new((op ^ encrypt(&cipher, op)).to_be_bytes())
}

fn encrypt(cipher: &Aes128Enc, block: u128) -> u128 {
    let mut block = block.to_be_bytes().into();
    cipher.encrypt_block(&mut block);
    u128::from_be_bytes(block.into())
}

impl Milenage {
    /// Expands K once for all functions.
    pub fn new(k: &SubscriberKey, opc: &Opc) -> Self {
        Self { cipher: Aes128Enc::new(k.as_bytes().into()), opc: opc.clone() }
    }

    /// MAC-A, which authenticates the network in AUTN.
    pub fn f1(&self, rand: &Rand, sqn: Sqn, amf: ManagementField) -> [u8; 8] {
        part::<0, 8, 16>(&self.out1(rand, sqn, amf))
    }

    /// MAC-S, which authenticates the USIM in AUTS.
    pub fn f1_star(&self, rand: &Rand, sqn: Sqn, amf: ManagementField) -> [u8; 8] {
        part::<8, 8, 16>(&self.out1(rand, sqn, amf))
    }

    /// RES, CK, IK and AK.
    pub fn f2345(&self, rand: &Rand) -> Response {
        let temp = self.temp(rand);
        let out2 = self.out::<2>(temp);
        Response {
            res: part::<8, 8, 16>(&out2),
            ck: Ck::new(self.out::<3>(temp)),
            ik: Ik::new(self.out::<4>(temp)),
            ak: part::<0, 6, 16>(&out2),
        }
    }

    /// AK for resynchronisation.
    pub fn f5_star(&self, rand: &Rand) -> [u8; 6] {
        part::<0, 6, 16>(&self.out::<5>(self.temp(rand)))
    }

    /// TEMP = E_K(RAND xor OPc).
    fn temp(&self, rand: &Rand) -> u128 {
        encrypt(&self.cipher, u128::from_be_bytes(*rand.as_bytes()) ^ self.opc())
    }

    /// OUT1 = E_K(TEMP xor rot(IN1 xor OPc, r1) xor c1) xor OPc.
    fn out1(&self, rand: &Rand, sqn: Sqn, amf: ManagementField) -> [u8; 16] {
        let half = u64::from(sqn) << 16 | u64::from(u16::from_be_bytes(*amf.as_bytes()));
        let in1 = u128::from(half) << 64 | u128::from(half);
        let block = self.temp(rand) ^ (in1 ^ self.opc()).rotate_left(R[0]) ^ C[0];
        (encrypt(&self.cipher, block) ^ self.opc()).to_be_bytes()
    }

    /// OUTi = E_K(rot(TEMP xor OPc, ri) xor ci) xor OPc, for i from 2 to 5.
    fn out<const I: usize>(&self, temp: u128) -> [u8; 16] {
        let block = (temp ^ self.opc()).rotate_left(const { R[I - 1] }) ^ const { C[I - 1] };
        (encrypt(&self.cipher, block) ^ self.opc()).to_be_bytes()
    }

    fn opc(&self) -> u128 {
        u128::from_be_bytes(*self.opc.as_bytes())
    }
}

#[cfg(test)]
mod tests;
