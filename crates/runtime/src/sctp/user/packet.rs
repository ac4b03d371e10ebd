//! The SCTP common header (RFC 9260 clause 3.1), and checks of a packet before usrsctp.

/// Length of the common header, in bytes.
const HEADER: usize = 12;
/// Position of the checksum in the header.
const CHECKSUM: std::ops::Range<usize> = 8..12;
/// Shortest valid packet: the common header and the header of one chunk.
const MIN_PACKET: usize = HEADER + 4;

/// Chunk type INIT (RFC 9260 clause 3.2).
const INIT: u8 = 1;
/// Chunk type ABORT.
const ABORT: u8 = 6;
/// Chunk type COOKIE ECHO.
const COOKIE_ECHO: u8 = 10;
/// Chunk type COOKIE ACK.
const COOKIE_ACK: u8 = 11;

/// The checked fields of a received packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub source_port: u16,
    pub destination_port: u16,
    pub first_chunk: FirstChunk,
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
    let [s0, s1, d0, d1, .., kind, _, _, _] = *packet.first_chunk::<MIN_PACKET>()?;
    let header = Header {
        source_port: u16::from_be_bytes([s0, s1]),
        destination_port: u16::from_be_bytes([d0, d1]),
        first_chunk: match kind {
            INIT => FirstChunk::Init,
            COOKIE_ECHO => FirstChunk::CookieEcho,
            _ => FirstChunk::Other,
        },
    };
    (header.source_port != 0 && header.destination_port != 0).then_some(header)
}

/// The verification tag of a packet that begins with a COOKIE ACK between these ports: the receiver's tag.
pub(super) fn tag_of_cookie_ack(packet: &[u8], source_port: u16, destination_port: u16) -> Option<u32> {
    let [s0, s1, d0, d1, t0, t1, t2, t3, _, _, _, _, COOKIE_ACK, _, _, _] =
        *packet.first_chunk::<MIN_PACKET>()?
    else {
        return None;
    };
    let ports = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
    (ports == (source_port, destination_port)).then_some(u32::from_be_bytes([t0, t1, t2, t3]))
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
        let expected = Header { source_port: 63232, destination_port: 33659, first_chunk: FirstChunk::Init };
        assert_eq!(header(&init()), Some(expected));
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
