//! Mutation of inputs: changes that radio links, UEs, networks and attackers make to messages.
//!
//! A mutation that changes the length of an element may also correct the length fields around it,
//! so that the decoder reaches the data after it. Any octet or pair of octets whose value fits
//! counts as a possible length field.

use crate::corpus::Seed;
use crate::random::Random;
use crate::target::Shape;
use std::ops::Range;

/// Maximum octets of an input.
const LONGEST: usize = 8192;

const OCTETS: [u8; 12] = [0, 1, 2, 4, 0x0f, 0x10, 0x40, 0x7e, 0x7f, 0x80, 0xfe, 0xff];

const WORDS: [u16; 12] = [0, 1, 2, 4, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xfffe, 0xffff];

/// Tokens of JSON, YAML, HTTP and identities.
const TOKENS: &[&str] = &[
    "\"",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1e999",
    "-0",
    "0.5",
    "255",
    "256",
    "65536",
    "4294967296",
    "18446744073709551616",
    "\"\"",
    "{}",
    "[]",
    "\\u0000",
    "\\ud800",
    "\\n",
    "\u{feff}",
    "\u{1F4A9}",
    "\r\n",
    "\r\n\r\n",
    "--",
    "%",
    "%2",
    "%00",
    "%2f",
    "%ff",
    "/",
    "//",
    "..",
    "?",
    "&",
    "=",
    ";",
    "+",
    " ",
    "\t",
    "\n",
    "- ",
    ": ",
    "&a ",
    "*a",
    "!!",
    "|",
    "#",
    "~",
    "imsi-",
    "imsi-999700000000001",
    "suci-0-999-70-",
    "5g-guti-",
    "nai-",
    "999",
    "70",
    "internet",
    "2147483648 Gbps",
    "1 Kbps",
    "[[[[[[[[",
    "{\"a\":{\"a\":",
    "9999-12-31T23:59:60Z",
    "1970-01-01T00:00:00.000000000+23:59",
    "http://",
    "https://[::1]:65536/",
    "AAAA",
    "====",
];

/// Generates inputs from a target's seeds.
pub struct Mutator<'a> {
    shape: Shape,
    seeds: &'a [Seed],
}

impl<'a> Mutator<'a> {
    /// A mutator for inputs of that shape.
    pub fn new(shape: Shape, seeds: &'a [Seed]) -> Self {
        Self { shape, seeds }
    }

    /// A new input.
    pub fn make(&self, random: &mut Random) -> Vec<u8> {
        let seed = random.pick(self.seeds).map(|seed| seed.octets.as_slice()).unwrap_or_default();
        self.mutate(seed, random)
    }

    /// A mutation of that input.
    pub fn mutate(&self, from: &[u8], random: &mut Random) -> Vec<u8> {
        let anew = match self.shape {
            Shape::Choices => random.once_in(2),
            Shape::Octets | Shape::Text => random.once_in(256),
        };
        if anew {
            let length = random.below(400);
            return (0..length).map(|_| random.octet()).collect();
        }
        let mut input = from.to_vec();
        let mut moves = 1 + random.below(2);
        while !random.once_in(3) {
            moves += 1;
        }
        for _ in 0..moves.min(16) {
            self.step(&mut input, random);
        }
        input.truncate(LONGEST);
        input
    }

    fn step(&self, input: &mut Vec<u8>, random: &mut Random) {
        if self.shape == Shape::Text && !random.once_in(3) {
            return self.text_move(input, random);
        }
        match random.below(14) {
            0 => flip(input, random),
            1 => overwrite(input, &[random.octet()], random),
            2 => overwrite(input, &[*random.pick(&OCTETS).unwrap_or(&0)], random),
            3 => overwrite(input, &random.pick(&WORDS).unwrap_or(&0).to_be_bytes(), random),
            4 => add(input, random),
            5 => input.truncate(random.below(input.len())),
            6 => edit_length(input, random),
            7 => resize_element(input, random),
            8 => repeat_element(input, random),
            9 => self.splice(input, random),
            10 => {
                let octets = [random.octet(), random.octet(), random.octet()];
                insert(input, octets.get(..1 + random.below(3)).unwrap_or_default(), random);
            }
            11 => {
                let range = range(input, 8, random);
                remove(input, range, random);
            }
            12 => swap(input, random),
            _ => {
                let piece = input.get(range(input, 32, random)).unwrap_or_default().to_vec();
                insert(input, &piece, random);
            }
        }
    }

    /// Inserts a part of another seed, or replaces the end with that of another seed.
    fn splice(&self, input: &mut Vec<u8>, random: &mut Random) {
        let Some(other) = random.pick(self.seeds) else { return };
        if random.once_in(3) {
            let (cut, from) = (random.below(input.len() + 1), random.below(other.octets.len() + 1));
            input.truncate(cut);
            input.extend(other.octets.get(from..).unwrap_or_default());
        } else {
            let piece = other.octets.get(range(&other.octets, 64, random)).unwrap_or_default();
            insert(input, piece, random);
        }
    }

    fn text_move(&self, input: &mut Vec<u8>, random: &mut Random) {
        let token = random.pick(TOKENS).map(|token| token.as_bytes()).unwrap_or_default();
        match random.below(6) {
            0 => put(input, random.below(input.len() + 1), token),
            1 => {
                let number = run_of(input, u8::is_ascii_digit, random);
                input.splice(number, token.iter().copied());
            }
            2 => {
                let word = run_of(input, |octet| octet.is_ascii_alphanumeric() || *octet == b'-', random);
                input.splice(word, token.iter().copied());
            }
            3 => {
                let item = between(input, b",{[\n", random);
                input.drain(item);
            }
            4 => {
                let item = input.get(between(input, b",{[\n", random)).unwrap_or_default().to_vec();
                let times = if random.once_in(16) { 64 } else { 1 };
                put(input, between(input, b",{[\n", random).start, &item.repeat(times));
            }
            _ => {
                let Some(other) = random.pick(self.seeds) else { return };
                let item = other.octets.get(between(&other.octets, b",{[\n", random)).unwrap_or_default();
                let place = between(input, b",{[\n", random);
                input.splice(place, item.iter().copied());
            }
        }
    }
}

/// A range of at most `longest` octets.
fn range(input: &[u8], longest: usize, random: &mut Random) -> Range<usize> {
    let start = random.below(input.len());
    start..(start + 1 + random.below(longest)).min(input.len())
}

fn flip(input: &mut [u8], random: &mut Random) {
    let at = random.below(input.len());
    if let Some(octet) = input.get_mut(at) {
        *octet ^= 1 << random.below(8);
    }
}

fn overwrite(input: &mut [u8], with: &[u8], random: &mut Random) {
    let at = random.below(input.len());
    let places = input.get_mut(at..).unwrap_or_default();
    places.iter_mut().zip(with).for_each(|(place, octet)| *place = *octet);
}

fn add(input: &mut [u8], random: &mut Random) {
    let at = random.below(input.len());
    if let Some(octet) = input.get_mut(at) {
        *octet = octet.wrapping_add(random.below(17) as u8).wrapping_sub(8);
    }
}

fn swap(input: &mut [u8], random: &mut Random) {
    if !input.is_empty() {
        let (one, other) = (random.below(input.len()), random.below(input.len()));
        input.swap(one, other);
    }
}

fn put(input: &mut Vec<u8>, at: usize, octets: &[u8]) {
    let at = at.min(input.len());
    if input.len() + octets.len() <= LONGEST {
        input.splice(at..at, octets.iter().copied());
    }
}

fn insert(input: &mut Vec<u8>, octets: &[u8], random: &mut Random) {
    if input.len() + octets.len() <= LONGEST {
        let at = random.below(input.len() + 1);
        correct_lengths(input, at, octets.len() as i64, random);
        put(input, at, octets);
    }
}

fn remove(input: &mut Vec<u8>, range: Range<usize>, random: &mut Random) {
    if range.end <= input.len() && range.start < range.end {
        correct_lengths(input, range.start, -((range.end - range.start) as i64), random);
        input.drain(range);
    }
}

/// A possible length field, and the range that it covers.
#[derive(Clone, Copy)]
struct Field {
    at: usize,
    wide: bool,
    value: usize,
}

impl Field {
    fn start(self) -> usize {
        self.at + 1 + usize::from(self.wide)
    }

    fn end(self) -> usize {
        self.start() + self.value
    }

    fn write(self, input: &mut [u8], value: usize) {
        let octets = (value as u16).to_be_bytes();
        let octets = if self.wide { &octets[..] } else { &octets[1..] };
        let places = input.get_mut(self.at..).unwrap_or_default();
        places.iter_mut().zip(octets).for_each(|(place, octet)| *place = *octet);
    }
}

/// The possible length field at an offset: its range is not empty and within the input.
fn field_at(input: &[u8], at: usize) -> Option<Field> {
    let first = usize::from(*input.get(at)?);
    let pair = input.get(at + 1).map(|low| first << 8 | usize::from(*low));
    let wide = pair.map(|value| Field { at, wide: true, value });
    let narrow = Field { at, wide: false, value: first };
    wide.into_iter().chain([narrow]).find(|field| field.value > 0 && field.end() <= input.len())
}

fn any_field(input: &[u8], random: &mut Random) -> Option<Field> {
    (0..8).find_map(|_| field_at(input, random.below(input.len())))
}

/// Corrects length fields that cover the offset `at`: mostly all candidates, sometimes none.
fn correct_lengths(input: &mut [u8], at: usize, by: i64, random: &mut Random) {
    if random.once_in(3) {
        return;
    }
    let mut from = 0;
    while let Some(field) = (from..at).find_map(|place| field_at(input, place)) {
        from = field.at + 1;
        // Fields whose range ends with the input or soon after the change are the likeliest length fields.
        let likely = field.end() == input.len() || field.end() <= at + 64;
        if field.start() <= at && at < field.end() && likely && !random.once_in(4) {
            let value = (field.value as i64 + by).max(0) as usize;
            field.write(input, value);
            from = field.start();
        }
    }
}

fn edit_length(input: &mut [u8], random: &mut Random) {
    let Some(field) = any_field(input, random) else { return };
    let rest = input.len() - field.start();
    let value = match random.below(6) {
        0 => 0,
        1 => field.value + 1,
        2 => field.value.saturating_sub(1),
        3 => rest,
        4 => rest + 1,
        _ => usize::from(*random.pick(&WORDS).unwrap_or(&0)),
    };
    field.write(input, value);
}

/// Extends or shortens the range of a length field, and updates the field.
fn resize_element(input: &mut Vec<u8>, random: &mut Random) {
    let Some(field) = any_field(input, random) else { return };
    let cut = random.below(field.value + 1);
    if random.once_in(2) {
        correct_lengths(input, field.at, -(cut as i64), random);
        field.write(input, field.value - cut);
        input.drain(field.end() - cut..field.end());
    } else {
        let more = if random.once_in(16) { 300 } else { 1 + random.below(8) };
        correct_lengths(input, field.at, more as i64, random);
        field.write(input, field.value + more);
        let filling = vec![random.octet(); more];
        put(input, field.end(), &filling);
    }
}

/// Removes, repeats or moves an element that has one or two octets of type before its length.
fn repeat_element(input: &mut Vec<u8>, random: &mut Random) {
    let Some(field) = any_field(input, random) else { return };
    let start = field.at.saturating_sub(1 + usize::from(field.wide));
    let element = input.get(start..field.end()).unwrap_or_default().to_vec();
    if random.once_in(3) {
        return remove(input, start..field.end(), random);
    }
    let times = if random.once_in(32) { 40 } else { 1 };
    if input.len() + element.len() * times <= LONGEST {
        let at = if random.once_in(2) { field.end() } else { random.below(input.len()) };
        correct_lengths(input, at, (element.len() * times) as i64, random);
        put(input, at, &element.repeat(times));
    }
}

/// A run of octets of that kind after a random offset; empty if there is none.
fn run_of(input: &[u8], is: impl Fn(&u8) -> bool, random: &mut Random) -> Range<usize> {
    let from = random.below(input.len());
    let tail = input.get(from..).unwrap_or_default();
    let start = tail.iter().position(&is).map_or(input.len(), |at| from + at);
    let run = input.get(start..).unwrap_or_default().iter().take_while(|octet| is(octet)).count();
    start..start + run
}

/// The range between two separators.
fn between(input: &[u8], separators: &[u8], random: &mut Random) -> Range<usize> {
    let from = random.below(input.len());
    let next = |from: usize| {
        let tail = input.get(from..).unwrap_or_default();
        tail.iter().position(|octet| separators.contains(octet)).map_or(input.len(), |at| from + at)
    };
    let start = next(from);
    start..next(start + 1).max(start).min(input.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_reproducible_from_its_seed() {
        let seeds = [Seed { name: String::new(), octets: (0..60).collect() }];
        for shape in [Shape::Octets, Shape::Text, Shape::Choices] {
            let mutator = Mutator::new(shape, &seeds);
            let make = |index| mutator.make(&mut Random::of_input(7, index));
            assert!((0..2000).all(|index| make(index) == make(index)));
            let different: std::collections::BTreeSet<_> = (0..2000).map(make).collect();
            assert!(different.len() > 1500, "{}", different.len());
        }
    }

    #[test]
    fn a_resized_element_updates_the_lengths_around_it() {
        // A PFCP group of one element: type 1, length 6; type 2, length 2.
        let good = [0, 1, 0, 6, 0, 2, 0, 2, 0xaa, 0xbb];
        let whole = |input: &[u8]| {
            let group = field_at(input, 2).filter(|field| field.end() == input.len())?;
            field_at(input, 6).filter(|field| field.end() == group.end() && field.value > 2)
        };
        let grown = (0..2000).filter(|index| {
            let mut input = good.to_vec();
            resize_element(&mut input, &mut Random::of_input(1, *index));
            whole(&input).is_some()
        });
        assert!(grown.count() > 20);
    }
}
