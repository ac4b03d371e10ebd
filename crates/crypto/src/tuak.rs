//! TUAK: f1 to f5* with Keccak-f[1600] (TS 35.231).
//!
//! The output lengths are inputs of the hash. They are type parameters here, so that the compiler checks
//! them. 5G AKA uses a 64-bit MAC, 128-bit CK and IK, and a RES of at most 128 bits (TS 33.102 6.3.7).

use zeroize::Zeroizing;

use crate::keys::{ManagementField, Rand, SubscriberKey, SubscriberKey256, Top, Topc};
use crate::sqn::Sqn;

const ALGONAME: &[u8; 7] = b"TUAK1.0";

/// Octets of the permutation's state.
const STATE: usize = 200;
/// Offsets of the inputs, and of the outputs of f2 to f5, in the state (TS 35.231).
mod at {
    pub const INSTANCE: usize = 32;
    pub const ALGONAME: usize = 33;
    pub const RAND: usize = 40;
    pub const AMF: usize = 56;
    pub const SQN: usize = 58;
    pub const KEY: usize = 64;
    pub const PADDING: usize = 96;
    pub const PADDING_END: usize = 135;
    pub const CK: usize = 32;
    pub const IK: usize = 64;
    pub const AK: usize = 96;
}

/// Bits of INSTANCE (TS 35.231); bit 0 is the most significant.
mod instance {
    pub const F1: u8 = 0x00;
    pub const F1_STAR: u8 = 0x80;
    pub const F2345: u8 = 0x40;
    pub const F5_STAR: u8 = 0xc0;
    pub const CK_256: u8 = 0x04;
    pub const IK_256: u8 = 0x02;
    pub const KEY_256: u8 = 0x01;
}

/// K of TUAK: 128 or 256 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TuakKey {
    /// 128 bits.
    Bits128(SubscriberKey),
    /// 256 bits.
    Bits256(SubscriberKey256),
}

impl TuakKey {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bits128(k) => k.as_bytes(),
            Self::Bits256(k) => k.as_bytes(),
        }
    }

    fn instance(&self) -> u8 {
        match self {
            Self::Bits128(_) => 0,
            Self::Bits256(_) => instance::KEY_256,
        }
    }
}

/// The functions of one subscriber.
#[derive(Clone, Debug)]
pub struct Tuak {
    k: TuakKey,
    topc: Topc,
    iterations: u8,
}

/// Outputs of f2 to f5 for one RAND, with `RES`, `CK` and `IK` octets.
pub struct Response<const RES: usize, const CK: usize, const IK: usize> {
    /// RES, by f2.
    pub res: [u8; RES],
    /// CK, by f3.
    pub ck: Zeroizing<[u8; CK]>,
    /// IK, by f4.
    pub ik: Zeroizing<[u8; IK]>,
    /// AK, by f5.
    pub ak: [u8; 6],
}

/// TOPc from the operator's TOP (TS 35.231). `iterations`: see [`Tuak::new`].
pub fn topc_from_top(k: &TuakKey, top: &Top, iterations: u8) -> Topc {
    let mut state = State::new(top.as_bytes(), k.instance(), k);
    state.permute(iterations.max(1));
    Topc::new(state.output::<0, 32>())
}

impl Tuak {
    /// `iterations` is the number of Keccak-f permutations, 1 unless the operator chose more (TS 35.231 5.2);
    /// 0 counts as 1.
    pub fn new(k: TuakKey, topc: Topc, iterations: u8) -> Self {
        Self { k, topc, iterations: iterations.max(1) }
    }

    /// MAC-A of 8, 16 or 32 octets.
    pub fn f1<const MAC: usize>(&self, rand: &Rand, sqn: Sqn, amf: ManagementField) -> [u8; MAC] {
        self.mac(instance::F1, rand, sqn, amf)
    }

    /// MAC-S of 8, 16 or 32 octets.
    pub fn f1_star<const MAC: usize>(&self, rand: &Rand, sqn: Sqn, amf: ManagementField) -> [u8; MAC] {
        self.mac(instance::F1_STAR, rand, sqn, amf)
    }

    fn mac<const MAC: usize>(&self, function: u8, rand: &Rand, sqn: Sqn, amf: ManagementField) -> [u8; MAC] {
        const { assert!(matches!(MAC, 8 | 16 | 32)) };
        let mut state = self.state(function | MAC as u8, rand);
        state.put(at::AMF, amf.as_bytes());
        state.put(at::SQN, &sqn.to_bytes());
        state.permute(self.iterations);
        state.output::<0, MAC>()
    }

    /// RES of 4, 8, 16 or 32 octets, CK and IK of 16 or 32, and AK.
    pub fn f2345<const RES: usize, const CK: usize, const IK: usize>(
        &self,
        rand: &Rand,
    ) -> Response<RES, CK, IK> {
        const { assert!(matches!(RES, 4 | 8 | 16 | 32)) };
        const { assert!(matches!(CK, 16 | 32) && matches!(IK, 16 | 32)) };
        let lengths = const {
            // The field is 0, 1, 2 or 4 in bits 2 to 4, which equals the number of RES octets, except for 4
            // octets.
            let res = if RES == 4 { 0 } else { RES as u8 };
            let ck = if CK == 32 { instance::CK_256 } else { 0 };
            let ik = if IK == 32 { instance::IK_256 } else { 0 };
            res | ck | ik
        };
        let mut state = self.state(instance::F2345 | lengths, rand);
        state.permute(self.iterations);
        Response {
            res: state.output::<0, RES>(),
            ck: Zeroizing::new(state.output::<{ at::CK }, CK>()),
            ik: Zeroizing::new(state.output::<{ at::IK }, IK>()),
            ak: state.output::<{ at::AK }, 6>(),
        }
    }

    /// AK for resynchronisation.
    pub fn f5_star(&self, rand: &Rand) -> [u8; 6] {
        let mut state = self.state(instance::F5_STAR, rand);
        state.permute(self.iterations);
        state.output::<{ at::AK }, 6>()
    }

    fn state(&self, instance: u8, rand: &Rand) -> State {
        let mut state = State::new(self.topc.as_bytes(), instance | self.k.instance(), &self.k);
        state.put(at::RAND, rand.as_bytes());
        state
    }
}

/// IN and OUT of TS 35.231; every field is stored with reversed octets.
struct State(Zeroizing<[u8; STATE]>);

impl State {
    fn new(top: &[u8; 32], instance: u8, k: &TuakKey) -> Self {
        let mut state = Self(Zeroizing::new([0; STATE]));
        state.put(0, top);
        state.put(at::INSTANCE, &[instance]);
        state.put(at::ALGONAME, ALGONAME);
        state.put(at::KEY, k.as_bytes());
        state.put(at::PADDING, &[0x1f]);
        state.put(at::PADDING_END, &[0x80]);
        state
    }

    fn put(&mut self, at: usize, field: &[u8]) {
        let octets = self.0.iter_mut().skip(at);
        for (octet, value) in octets.zip(field.iter().rev()) {
            *octet = *value;
        }
    }

    fn output<const FROM: usize, const N: usize>(&self) -> [u8; N] {
        const { assert!(FROM + N <= STATE) };
        std::array::from_fn(|i| self.0[FROM + N - 1 - i])
    }

    fn permute(&mut self, iterations: u8) {
        let mut lanes = Zeroizing::new([0u64; 25]);
        for (lane, octets) in lanes.iter_mut().zip(self.0.as_chunks::<8>().0) {
            *lane = u64::from_le_bytes(*octets);
        }
        for _ in 0..iterations {
            keccak::f1600(&mut lanes);
        }
        for (octets, lane) in self.0.as_chunks_mut::<8>().0.iter_mut().zip(lanes.iter()) {
            *octets = lane.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests;
