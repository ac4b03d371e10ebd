//! SNOW 3G, the stream cipher (TS 35.216).
//!
//! The S-boxes and the tables of MULα and DIVα are computed at compile time from their polynomials.

/// The generator: a shift register of 16 words in a ring buffer, and three registers.
pub(super) struct Snow3g {
    /// s0 is at index `first`, s15 before it.
    lfsr: [u32; 16],
    first: usize,
    r1: u32,
    r2: u32,
    r3: u32,
}

impl Snow3g {
    /// Initialisation with K0..K3 and IV0..IV3 (TS 35.216 4.1).
    pub(super) fn new(k: [u32; 4], iv: [u32; 4]) -> Self {
        let not = k.map(|word| !word);
        let mut lfsr = [0; 16];
        for (quarter, words) in lfsr.as_chunks_mut::<4>().0.iter_mut().zip([not, k, not, k]) {
            *quarter = words;
        }
        for (at, iv) in [(15, iv[0]), (12, iv[1]), (10, iv[2]), (9, iv[3])] {
            lfsr[at] ^= iv;
        }
        let mut snow = Self { lfsr, first: 0, r1: 0, r2: 0, r3: 0 };
        for _ in 0..32 {
            let f = snow.clock_fsm();
            snow.clock_lfsr(f);
        }
        snow.clock_fsm();
        snow.clock_lfsr(0);
        snow
    }

    /// The next word of the key stream (TS 35.216 4.2).
    pub(super) fn next_word(&mut self) -> u32 {
        let word = self.clock_fsm() ^ self.s(0);
        self.clock_lfsr(0);
        word
    }

    fn s(&self, index: usize) -> u32 {
        self.lfsr[(self.first + index) & 15]
    }

    /// TS 35.216 3.4.4 and 3.4.5; `f` is zero in key stream mode.
    fn clock_lfsr(&mut self, f: u32) {
        let (s0, s11) = (self.s(0), self.s(11));
        let v = s0 << 8
            ^ MUL_ALPHA[(s0 >> 24) as usize]
            ^ self.s(2)
            ^ s11 >> 8
            ^ DIV_ALPHA[(s11 & 0xff) as usize]
            ^ f;
        self.lfsr[self.first & 15] = v;
        self.first += 1;
    }

    /// Clocks the FSM and returns F (TS 35.216 3.4.6).
    fn clock_fsm(&mut self) -> u32 {
        let f = self.s(15).wrapping_add(self.r1) ^ self.r2;
        let r = self.r2.wrapping_add(self.r3 ^ self.s(5));
        self.r3 = substitute(&S2, self.r2);
        self.r2 = substitute(&S1, self.r1);
        self.r1 = r;
        f
    }
}

/// S1 or S2 (TS 35.216 3.3). The table has the contribution of the first octet; that of each later octet is
/// the same, rotated by one octet.
fn substitute(table: &[u32; 256], word: u32) -> u32 {
    let [a, b, c, d] = word.to_be_bytes().map(|octet| table[usize::from(octet)]);
    a ^ b.rotate_right(8) ^ c.rotate_right(16) ^ d.rotate_right(24)
}

static S1: [u32; 256] = mixed(&rijndael_box(), 0x1b);
static S2: [u32; 256] = mixed(&dickson_box(), 0x69);
static MUL_ALPHA: [u32; 256] = powers([23, 245, 48, 239]);
static DIV_ALPHA: [u32; 256] = powers([16, 39, 6, 64]);

/// Contribution of `x` in the first octet to the four octets of S1 or S2: 2, 3, 1 and 1 times its substitute
/// (TS 35.216 3.3.1, 3.3.2).
const fn mixed(substitutes: &[u8; 256], c: u8) -> [u32; 256] {
    let mut table = [0; 256];
    let mut x = 0;
    while x < 256 {
        let one = substitutes[x];
        let two = mul_x(one, c);
        table[x] = u32::from_be_bytes([two, two ^ one, one, one]);
        x += 1;
    }
    table
}

/// S_R, the S-box of Rijndael: the inverse in GF(2^8), then an affine map.
const fn rijndael_box() -> [u8; 256] {
    let mut substitutes = [0; 256];
    let mut x = 0;
    while x < 256 {
        let i = power(x as u8, 254, 0x1b);
        let rotated = i.rotate_left(1) ^ i.rotate_left(2) ^ i.rotate_left(3) ^ i.rotate_left(4);
        substitutes[x] = i ^ rotated ^ 0x63;
        x += 1;
    }
    substitutes
}

/// S_Q: the Dickson polynomial x + x^9 + x^13 + .. + x^49, plus 0x25.
const fn dickson_box() -> [u8; 256] {
    const EXPONENTS: [u32; 9] = [1, 9, 13, 15, 33, 41, 45, 47, 49];
    let mut substitutes = [0x25; 256];
    let mut x = 0;
    while x < 256 {
        let mut term = 0;
        while term < EXPONENTS.len() {
            substitutes[x] ^= power(x as u8, EXPONENTS[term], 0x69);
            term += 1;
        }
        x += 1;
    }
    substitutes
}

/// MULα and DIVα: the octet times x to the power of each exponent (TS 35.216 3.4.2, 3.4.3).
const fn powers(exponents: [u32; 4]) -> [u32; 256] {
    let mut table = [0; 256];
    let mut octet = 0;
    while octet < 256 {
        let mut word = 0;
        let mut i = 0;
        while i < 4 {
            word = word << 8 | mul_x_power(octet as u8, exponents[i], 0xa9) as u32;
            i += 1;
        }
        table[octet] = word;
        octet += 1;
    }
    table
}

/// MULx: `v` times x in GF(2^8), where `c` is what x^8 reduces to (TS 35.216 3.1.1).
const fn mul_x(v: u8, c: u8) -> u8 {
    if v & 0x80 != 0 { v << 1 ^ c } else { v << 1 }
}

/// MULxPOW: `v` times x^i (TS 35.216 3.1.2).
const fn mul_x_power(mut v: u8, i: u32, c: u8) -> u8 {
    let mut done = 0;
    while done < i {
        v = mul_x(v, c);
        done += 1;
    }
    v
}

/// `base` to the power of `exponent` in the same field.
const fn power(base: u8, exponent: u32, c: u8) -> u8 {
    let mut result = 1;
    let mut done = 0;
    while done < exponent {
        result = product(result, base, c);
        done += 1;
    }
    result
}

const fn product(a: u8, mut b: u8, c: u8) -> u8 {
    let mut sum = 0;
    let mut shifted = a;
    while b != 0 {
        if b & 1 == 1 {
            sum ^= shifted;
        }
        shifted = mul_x(shifted, c);
        b >>= 1;
    }
    sum
}
