//! The Internet checksum (RFC 1071).

use super::VnetHeader;
use super::flow::{TCP, UDP, is_v4};

/// A running sum of 16-bit words. Every part except the last must have even length.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds the words of `bytes`; an odd last byte is padded with zero.
    pub fn add(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<4>();
        // The byte order of the words only swaps the bytes of the sum, so native order is used.
        let sum = words.iter().fold(0u64, |sum, word| sum + u64::from(u32::from_ne_bytes(*word)));
        let mut last = [0; 4];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        Self(fold_once(self.0) + fold_once(sum) + u64::from(u32::from_ne_bytes(last)))
    }

    /// Adds a 16-bit word, given as a number.
    pub fn add_word(self, word: u16) -> Self {
        Self(self.0 + u64::from(word.to_be()))
    }

    /// The sum in 16 bits, in wire order.
    pub fn folded(self) -> [u8; 2] {
        let mut sum = fold_once(self.0);
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        (sum as u16).to_ne_bytes()
    }

    /// The checksum: the complement of the sum, in wire order.
    pub fn checksum(self) -> [u8; 2] {
        self.folded().map(|byte| !byte)
    }
}

fn fold_once(sum: u64) -> u64 {
    (sum & 0xffff_ffff) + (sum >> 32)
}

/// The sum of the pseudo header: addresses, protocol and length of the transport packet. `ip` is an IP header
/// with its options or extensions.
pub fn pseudo_header(ip: &[u8], protocol: u8, length: usize) -> Sum {
    let addresses = if is_v4(ip) { ip.get(12..20) } else { ip.get(8..40) };
    let length = length as u32;
    Sum::default()
        .add(addresses.unwrap_or_default())
        .add_word((length >> 16) as u16)
        .add_word(length as u16)
        .add_word(protocol.into())
}

/// The checksum of a transport packet whose checksum field is zero; for UDP never zero itself.
pub fn transport_checksum(ip: &[u8], protocol: u8, header: &[u8], payload: &[u8]) -> [u8; 2] {
    let length = header.len() + payload.len();
    let checksum = pseudo_header(ip, protocol, length).add(header).add(payload).checksum();
    if protocol == UDP && checksum == [0, 0] { [0xff, 0xff] } else { checksum }
}

/// Whether the checksum of a whole transport packet, directly after its IP header, is correct.
pub fn transport_holds(ip: &[u8], protocol: u8, transport: &[u8]) -> bool {
    pseudo_header(ip, protocol, transport.len()).add(transport).checksum() == [0, 0]
}

/// Completes a checksum that the kernel left to the hardware: the field contains the pseudo header's sum.
pub fn complete_partial(header: &VnetHeader, packet: &mut [u8]) {
    let Some((start, field)) = header.partial_checksum() else { return };
    let Some(covered) = packet.get(start..) else { return };
    let mut checksum = Sum::default().add(covered).checksum();
    if checksum == [0, 0] && field == start + 6 {
        checksum = [0xff, 0xff];
    }
    if let Some(place) = packet.get_mut(field..field + 2) {
        place.copy_from_slice(&checksum);
    }
}

/// Whether the header checksum of an IPv4 header is correct.
pub fn has_right_checksum(header: &[u8]) -> bool {
    Sum::default().add(header).checksum() == [0, 0]
}

/// Sets the header checksum of an IPv4 header.
pub fn set_ipv4_checksum(header: &mut [u8]) {
    put(header, 10, &[0, 0]);
    let checksum = Sum::default().add(header).checksum();
    put(header, 10, &checksum);
}

/// Writes `bytes` at `at`, if they fit.
pub fn put(packet: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = packet.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Offset of the checksum in TCP and UDP headers.
pub const fn checksum_offset(protocol: u8) -> usize {
    if protocol == TCP { 16 } else { 6 }
}

#[cfg(test)]
mod tests {
    use super::super::Gso;
    use super::super::samples::{tcp_v4, tcp_v6, udp_v4, with_partial_checksum};
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 literally: words in network order, carry by carry.
    fn reference(bytes: &[u8]) -> [u8; 2] {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        (!(sum as u16)).to_be_bytes()
    }

    #[test]
    fn the_sum_of_rfc_1071_section_3() {
        let sum = Sum::default().add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.folded(), [0xdd, 0xf2]);
    }

    proptest! {
        #[test]
        fn any_bytes_sum_as_the_rfc_says(bytes: Vec<u8>, more: Vec<u8>) {
            let even = &bytes[..bytes.len() & !1];
            let whole = [even, &more].concat();
            prop_assert_eq!(Sum::default().add(even).add(&more).checksum(), reference(&whole));
        }
    }

    #[test]
    fn a_checksum_left_to_the_hardware_is_finished() {
        for (whole, ip_len, protocol) in [
            (tcp_v4(1, 0x10, b"hello"), 20, TCP),
            (tcp_v6(1, 0x10, b"hi"), 40, TCP),
            (udp_v4(b"odd"), 20, UDP),
        ] {
            let mut packet = with_partial_checksum(whole.clone(), ip_len, protocol);
            assert_ne!(packet, whole);
            let offset = checksum_offset(protocol) as u16;
            complete_partial(&VnetHeader::gso(Gso::Udp, 0, ip_len as u16, 0, offset), &mut packet);
            assert_eq!(packet, whole);
        }
    }

    #[test]
    fn a_sum_of_many_parts_keeps_its_carries() {
        let ones = [0xff; 1 << 16];
        let sum = (0..1000).fold(Sum::default(), |sum, _| sum.add(&ones));
        assert_eq!(sum.folded(), [0xff, 0xff]);
    }
}
