//! Encoding of an MSIN's digits for ECIES (TS 33.501 C.3.1, TS 24.501 9.11.3.4).

/// Two digits per octet, the first in the low half; the last octet of an odd number is filled with 1111.
/// `None` for text that is not one or more decimal digits.
pub fn encode_msin(digits: &str) -> Option<Vec<u8>> {
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let pairs = digits.as_bytes().chunks(2);
    Some(pairs.map(|pair| half(pair.get(1)) << 4 | half(pair.first())).collect())
}

fn half(digit: Option<&u8>) -> u8 {
    digit.map_or(0xf, |digit| digit & 0xf)
}

/// The digits; `None` if a half octet is neither a digit nor the final filler.
pub fn decode_msin(octets: &[u8]) -> Option<String> {
    let mut halves: Vec<u8> = octets.iter().flat_map(|octet| [octet & 0xf, octet >> 4]).collect();
    if halves.last() == Some(&0xf) {
        halves.pop();
    }
    let digits = halves.into_iter().map(|half| char::from_digit(u32::from(half), 10));
    digits.collect::<Option<String>>().filter(|digits| !digits.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_odd_digit_has_a_filler() {
        assert_eq!(encode_msin("001002086"), Some(vec![0x00, 0x01, 0x20, 0x80, 0xf6]));
        assert_eq!(encode_msin("0123456789"), Some(vec![0x10, 0x32, 0x54, 0x76, 0x98]));
    }

    #[test]
    fn non_digits_are_refused() {
        assert_eq!(encode_msin(""), None);
        assert_eq!(encode_msin("12a4"), None);
        assert_eq!(decode_msin(&[]), None);
        assert_eq!(decode_msin(&[0x1f, 0x32]), None);
        assert_eq!(decode_msin(&[0xff]), None);
        assert_eq!(decode_msin(&[0x1a]), None);
    }

    proptest! {
        #[test]
        fn digits_round_trip(digits in "[0-9]{1,10}") {
            let octets = encode_msin(&digits).unwrap();
            prop_assert_eq!(decode_msin(&octets), Some(digits));
        }
    }
}
