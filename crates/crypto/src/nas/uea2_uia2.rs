//! 128-EEA1 and 128-EIA1: UEA2 and UIA2 over SNOW 3G (TS 35.215, TS 33.401 B.1.2, B.2.2).

use super::snow3g::Snow3g;
use super::{Direction, MessageInput};

/// UEA2 (TS 35.215 3) with COUNT-C and BEARER of NAS (TS 33.401 B.1.2).
pub(super) fn eea1(key: &[u8; 16], input: MessageInput, octets: &mut [u8]) {
    let bearer = u32::from(input.bearer & 0x1f) << 27 | (input.direction as u32) << 26;
    let mut snow = Snow3g::new(words(key), [bearer, input.count, bearer, input.count]);
    for chunk in octets.chunks_mut(4) {
        for (octet, key) in chunk.iter_mut().zip(snow.next_word().to_be_bytes()) {
            *octet ^= key;
        }
    }
}

/// UIA2 with BEARER in place of FRESH (TS 33.401 B.2.2).
pub(super) fn eia1(key: &[u8; 16], input: MessageInput, message: &[u8]) -> [u8; 4] {
    let fresh = u32::from(input.bearer & 0x1f) << 27;
    uia2(key, input.count, fresh, input.direction, message, 8 * message.len() as u64)
}

/// UIA2 of the first `bits` bits of `message`, which end within its last octet (TS 35.215 4).
pub(super) fn uia2(
    key: &[u8; 16],
    count: u32,
    fresh: u32,
    direction: Direction,
    message: &[u8],
    bits: u64,
) -> [u8; 4] {
    let direction = direction as u32;
    let iv = [fresh ^ direction << 15, count ^ direction << 31, fresh, count];
    let mut snow = Snow3g::new(words(key), iv);
    let p = Multiplier::new(double_word(&mut snow));
    let q = Multiplier::new(double_word(&mut snow));

    let eval = message.chunks(8).fold(0, |eval, chunk| p.times(eval ^ block(chunk)));
    let eval = q.times(eval ^ bits);
    (((eval >> 32) as u32) ^ snow.next_word()).to_be_bytes()
}

/// K0 to K3; the last word of the key is K0 (TS 35.215 3.4, 4.4).
fn words(key: &[u8; 16]) -> [u32; 4] {
    let key = u128::from_be_bytes(*key);
    [key as u32, (key >> 32) as u32, (key >> 64) as u32, (key >> 96) as u32]
}

fn double_word(snow: &mut Snow3g) -> u64 {
    u64::from(snow.next_word()) << 32 | u64::from(snow.next_word())
}

/// Up to eight octets, padded with zero bits.
fn block(chunk: &[u8]) -> u64 {
    let mut block = [0; 8];
    for (octet, value) in block.iter_mut().zip(chunk) {
        *octet = *value;
    }
    u64::from_be_bytes(block)
}

/// Multiplication by a constant in GF(2^64) modulo x^64 + x^4 + x^3 + x + 1 (MUL64, TS 35.215 4.3.4), four
/// bits at a time: its multiples by all polynomials of degree below 4.
struct Multiplier([u64; 16]);

impl Multiplier {
    fn new(value: u64) -> Self {
        let mut multiples = [0; 16];
        for i in 1..16 {
            let odd = if i & 1 == 1 { value } else { 0 };
            multiples[i] = times_x(multiples[i / 2]) ^ odd;
        }
        Self(multiples)
    }

    fn times(&self, factor: u64) -> u64 {
        (0..16).rev().fold(0, |product, nibble| {
            let digit = (factor >> (4 * nibble)) & 0xf;
            let shifted = product << 4 ^ REDUCED[(product >> 60) as usize];
            shifted ^ self.0[digit as usize]
        })
    }
}

/// Reductions of four bits that are shifted out at the top.
static REDUCED: [u64; 16] = {
    let mut reduced = [0; 16];
    let mut bits = 0;
    while bits < 16 {
        let value = bits as u64;
        reduced[bits] = value ^ value << 1 ^ value << 3 ^ value << 4;
        bits += 1;
    }
    reduced
};

fn times_x(value: u64) -> u64 {
    value << 1 ^ if value >> 63 == 1 { 0x1b } else { 0 }
}
