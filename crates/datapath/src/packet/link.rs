//! Ethernet with at most one VLAN tag, as the XDP program reads it.

const ETHERNET_LEN: usize = 14;
const VLAN_LEN: usize = 4;
/// Offset of the EtherType.
const TYPE_AT: usize = 12;
const VLAN: [u8; 2] = [0x81, 0x00];

/// Bytes before the IP packet of a frame; `None` if the frame is shorter.
pub fn link_header_len(frame: &[u8]) -> Option<usize> {
    let kind = frame.get(TYPE_AT..ETHERNET_LEN)?;
    let length = if kind == VLAN { ETHERNET_LEN + VLAN_LEN } else { ETHERNET_LEN };
    (frame.len() >= length).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_part_of_the_header() {
        let frame = [[2; 12].as_slice(), &[0x08, 0], &[0; 20]].concat();
        assert_eq!(link_header_len(&frame), Some(14));
        let tagged = [[2; 12].as_slice(), &[0x81, 0, 0, 7, 0x08, 0], &[0; 20]].concat();
        assert_eq!(link_header_len(&tagged), Some(18));
        assert_eq!([&tagged[..17], &frame[..13]].map(link_header_len), [None, None]);
    }
}
