//! The SCTP common header (RFC 9260 clause 3.1), and checks of a packet before usrsctp.

/// Length of the common header, in bytes.
const HEADER: usize = 12;
/// Position of the checksum in the header.
const CHECKSUM: std::ops::Range<usize> = 8..12;
/// Shortest valid packet: the common header and the header of one chunk.
const MIN_PACKET: usize = HEADER + 4;

/// Chunk types (RFC 9260 clause 3.2).
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
const ABORT: u8 = 6;
const SHUTDOWN_ACK: u8 = 8;
const ERROR: u8 = 9;
const COOKIE_ECHO: u8 = 10;
const COOKIE_ACK: u8 = 11;
const SHUTDOWN_COMPLETE: u8 = 14;
/// The T bit of ABORT and SHUTDOWN COMPLETE: the sender has no association, and reflects the tag (clause 8.5.1).
const T_BIT: u8 = 1;
/// Error cause Stale Cookie (clause 3.3.10.3).
const STALE_COOKIE: u16 = 3;

/// The checked fields of a received packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub source_port: u16,
    pub destination_port: u16,
    /// The verification tag.
    pub tag: u32,
    /// Whether the tag is that of the sender's side.
    pub is_reflected: bool,
    pub first_chunk: FirstChunk,
}

impl Header {
    /// The ports of the association, the receiver's first.
    pub const fn ports(self) -> Ports {
        Ports { local: self.destination_port, remote: self.source_port }
    }
}

/// The SCTP ports of an association.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Ports {
    pub local: u16,
    pub remote: u16,
}

/// The ports of a packet that is sent.
pub(super) fn ports_of_sent(packet: &[u8]) -> Option<Ports> {
    let [s0, s1, d0, d1] = *packet.first_chunk()?;
    Some(Ports { local: u16::from_be_bytes([s0, s1]), remote: u16::from_be_bytes([d0, d1]) })
}

/// The type of the first chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstChunk {
    Init,
    CookieEcho,
    Other,
}

/// The header of a packet; `None` if it is too short or has a port 0.
pub(super) fn header(packet: &[u8]) -> Option<Header> {
    let [s0, s1, d0, d1, t0, t1, t2, t3, _, _, _, _, kind, flags, _, _] =
        *packet.first_chunk::<MIN_PACKET>()?;
    let header = Header {
        source_port: u16::from_be_bytes([s0, s1]),
        destination_port: u16::from_be_bytes([d0, d1]),
        tag: u32::from_be_bytes([t0, t1, t2, t3]),
        is_reflected: matches!(kind, ABORT | SHUTDOWN_COMPLETE) && flags & T_BIT != 0,
        first_chunk: match kind {
            INIT => FirstChunk::Init,
            COOKIE_ECHO => FirstChunk::CookieEcho,
            _ => FirstChunk::Other,
        },
    };
    (header.source_port != 0 && header.destination_port != 0).then_some(header)
}

/// The sender's tag in a packet that begins with an INIT ACK between these ports (its Initiate Tag, RFC 9260 clause
/// 3.3.3).
pub(super) fn tag_of_init_ack(packet: &[u8], ports: Ports) -> Option<u32> {
    let tag = *packet.get(MIN_PACKET..)?.first_chunk()?;
    let is_init_ack = packet.get(HEADER) == Some(&INIT_ACK) && ports_of_sent(packet) == Some(ports);
    is_init_ack.then_some(u32::from_be_bytes(tag))
}

/// Whether a packet without association answers a COOKIE ECHO: with COOKIE ACK, or a Stale Cookie error. Such a packet
/// is discarded (RFC 9260 clause 8.4, rule 7), unless rules 3 to 5 apply.
pub(super) fn is_stray_cookie_answer(packet: &[u8]) -> bool {
    let chunks = || items(packet.get(HEADER..).unwrap_or_default()).map(|([kind, _], value)| (kind, value));
    let has_own_rule = matches!(chunks().next(), Some((INIT | COOKIE_ECHO, _)))
        || chunks().any(|(kind, _)| kind == SHUTDOWN_ACK);
    let is_stale_cookie = |value| items(value).any(|(cause, _)| u16::from_be_bytes(cause) == STALE_COOKIE);
    let is_answer = |(kind, value)| kind == COOKIE_ACK || kind == ERROR && is_stale_cookie(value);
    !has_own_rule && chunks().any(is_answer)
}

/// The chunks of a packet (clause 3.2), or the error causes of a chunk (clause 3.3.10): the octets before the length,
/// and the value.
fn items(mut rest: &[u8]) -> impl Iterator<Item = ([u8; 2], &[u8])> {
    std::iter::from_fn(move || {
        let [first, second, l0, l1] = *rest.first_chunk()?;
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(([first, second], value))
    })
}

/// A packet with an ABORT without causes (RFC 9260 3.3.7), and still without a checksum.
pub(super) fn abort(source_port: u16, destination_port: u16, tag: u32) -> [u8; MIN_PACKET] {
    let [s0, s1] = source_port.to_be_bytes();
    let [d0, d1] = destination_port.to_be_bytes();
    let [t0, t1, t2, t3] = tag.to_be_bytes();
    [s0, s1, d0, d1, t0, t1, t2, t3, 0, 0, 0, 0, ABORT, 0, 0, 4]
}

/// Whether the CRC32c of a packet is correct (RFC 9260 clause 6.8 and appendix A).
pub(super) fn checksum_holds(packet: &[u8]) -> bool {
    packet.get(CHECKSUM).is_some_and(|sent| sent == checksum(packet))
}

/// Writes the checksum into a packet.
pub(super) fn seal(packet: &mut [u8]) {
    let sum = checksum(packet);
    if let Some(place) = packet.get_mut(CHECKSUM) {
        place.copy_from_slice(&sum);
    }
}

/// CRC32c over the packet with a zero checksum, in transmission order.
fn checksum(packet: &[u8]) -> [u8; 4] {
    let (before, rest) = packet.split_at(packet.len().min(CHECKSUM.start));
    let after = rest.get(CHECKSUM.len()..).unwrap_or_default();
    let sum = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
    crc32c::crc32c_append(sum, after).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A captured INIT from port 63232 to 33659, with a checksum verified by tshark.
    fn init() -> Vec<u8> {
        hex_bytes("f700837b 00000000 289eb8bb 01000014 ea0ed806 00040000 00200040 02de9154")
    }

    fn hex_bytes(text: &str) -> Vec<u8> {
        let digits: String = text.split_whitespace().collect();
        (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
    }

    #[test]
    fn a_header_is_read_in_network_order() {
        let expected = Header {
            source_port: 63232,
            destination_port: 33659,
            tag: 0,
            is_reflected: false,
            first_chunk: FirstChunk::Init,
        };
        assert_eq!(header(&init()), Some(expected));
        let header_of = |packet: &str| header(&hex_bytes(packet)).unwrap();
        let abort = header_of("f700837b 01020304 289eb8bb 06010004");
        assert_eq!((abort.tag, abort.is_reflected), (0x0102_0304, true));
        assert!(!header_of("f700837b 01020304 289eb8bb 06000004").is_reflected);
        assert!(!header_of("f700837b 01020304 289eb8bb 00010004").is_reflected, "DATA has other flags");
    }

    /// A packet with these chunks.
    fn with(chunks: &str) -> Vec<u8> {
        hex_bytes(&format!("f700837b 01020304 289eb8bb {chunks}"))
    }

    /// RFC 9260 8.4.
    #[test]
    fn answers_to_a_cookie_are_found_among_the_chunks() {
        let (cookie_ack, stale, other) = ("0b000004", "0900000c 00030008 00000001", "09000008 00060004");
        for stray in [cookie_ack, stale, &format!("{cookie_ack} 04000004"), &format!("{other} {stale}")] {
            assert!(is_stray_cookie_answer(&with(stray)), "{stray}");
        }
        let two_causes = "09000014 00060005 ff000000 00030008 00000001";
        assert!(is_stray_cookie_answer(&with(two_causes)));
        for own in [
            other,
            "04000004",
            &format!("08000004 {cookie_ack}"),
            &format!("{cookie_ack} 08000004"),
            &format!("0a000008 00000000 {cookie_ack}"),
            &init_chunk(),
            "0b000003",
            "0b00",
            "",
        ] {
            assert!(!is_stray_cookie_answer(&with(own)), "{own}");
        }
    }

    fn init_chunk() -> String {
        init()[12..].iter().map(|octet| format!("{octet:02x}")).collect()
    }

    #[test]
    fn the_tag_of_an_init_ack_is_its_initiate_tag() {
        let ports = Ports { local: 63232, remote: 33659 };
        let packet = with("02000014 ea0ed806 00040000 00200040 02de9154");
        assert_eq!(tag_of_init_ack(&packet, ports), Some(0xea0e_d806));
        assert_eq!(tag_of_init_ack(&packet, Ports { local: 63233, ..ports }), None);
        assert_eq!(tag_of_init_ack(&packet[..18], ports), None);
        assert_eq!(tag_of_init_ack(&init(), ports), None);
    }

    #[test]
    fn packets_too_short_or_with_port_zero_have_no_header() {
        assert_eq!(header(&init()[..15]), None);
        assert_eq!(header(&[]), None);
        let mut from_zero = init();
        from_zero[..2].fill(0);
        assert_eq!(header(&from_zero), None);
    }

    #[test]
    fn the_computed_checksum_is_the_captured_one() {
        let mut packet = init();
        packet[CHECKSUM].fill(0xff);
        seal(&mut packet);
        assert_eq!(packet, init());
    }

    #[test]
    fn any_changed_byte_breaks_the_checksum() {
        let good = init();
        assert!(checksum_holds(&good));
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 0x10;
            assert!(!checksum_holds(&bad), "byte {i}");
        }
    }

    #[test]
    fn truncated_packets_have_no_valid_checksum() {
        for length in 0..12 {
            assert!(!checksum_holds(&vec![0; length]));
        }
    }
}
