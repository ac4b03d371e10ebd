//! GTP-U packets, octet by octet.

use std::net::{IpAddr, Ipv4Addr};

use pith_pfcp::gtpu::*;
use proptest::prelude::*;

fn hex(text: &str) -> Vec<u8> {
    hex::decode(text.replace(' ', "")).expect("hex")
}

#[test]
fn a_gpdu_without_options_is_its_payload() {
    let octets = hex("30 ff 0004 00000abc 45000014");
    let packet = Packet::decode(&octets).expect("a packet");
    assert_eq!((packet.message_type, packet.teid), (GtpuMessageType::G_PDU, 0xabc));
    assert_eq!((packet.payload, packet.header_len), (&octets[8..], 8));
    assert_eq!(packet.pdu_session_information(), None);
}

#[test]
fn an_uplink_gpdu_of_ueransim_gives_its_qos_flow() {
    // UERANSIM 3.2.6 sends PDU type 1, QFI 1, and the payload after the extension header.
    let octets = hex("34 ff 000c 00000001 000000 85 01 1001 00 45000014");
    let packet = Packet::decode(&octets).expect("a packet");
    let information = UlPduSessionInformation { qfi: 1, qos_monitoring: None };
    assert_eq!(packet.pdu_session_information(), Some(PduSessionInformation::Uplink(information)));
    assert_eq!((packet.payload, packet.header_len), (&octets[16..], 16));
    assert_eq!(information.gpdu_header(1, 4).expect("short"), octets[..16]);
}

#[test]
fn a_downlink_header_is_written_in_front_of_the_packet() {
    let mut buffer = [vec![0xee; 24], hex("45000014")].concat();
    let information = DlPduSessionInformation { qfi: 9, rqi: true, ppi: None };
    let header = GpduHeader { teid: 0x01020304, pdu_session: Some(information) };
    let start = header.write_before(&mut buffer, 24).expect("room");
    assert_eq!(start, 8);
    assert_eq!(hex::encode(&buffer[start..]), "34ff000c010203040000008501004900".to_owned() + "45000014");
    assert!(buffer[..start].iter().all(|octet| *octet == 0xee), "nothing is written before the header");
}

#[test]
fn a_paging_policy_indicator_makes_the_container_two_units_long() {
    let mut buffer = [vec![0; 20], hex("45")].concat();
    let information = DlPduSessionInformation { qfi: 5, rqi: false, ppi: Some(3) };
    let header = GpduHeader { teid: 1, pdu_session: Some(information) };
    assert_eq!(header.write_before(&mut buffer, 20), Some(0));
    assert_eq!(hex::encode(&buffer[8..20]), "000000850200856000000000");
    let packet = Packet::decode(&buffer).expect("a packet");
    assert_eq!(packet.pdu_session_information(), Some(PduSessionInformation::Downlink(information)));
}

#[test]
fn a_header_without_room_is_not_written() {
    let mut buffer = [0xee; 12];
    let header = GpduHeader { teid: 1, pdu_session: None };
    assert_eq!(header.write_before(&mut buffer, 7), None);
    assert_eq!(header.write_before(&mut buffer, 13), None);
    assert_eq!(buffer, [0xee; 12]);
}

#[test]
fn an_echo_is_answered_with_recovery_zero() {
    let request = hex("32 01 0004 00000000 0007 00 00");
    let packet = Packet::decode(&request).expect("a packet");
    assert_eq!(Signalling::decode(&packet), Ok(Some(Signalling::EchoRequest { sequence: 7 })));
    let mut response = Vec::new();
    Signalling::EchoResponse { sequence: 7 }.encode(&mut response);
    assert_eq!(hex::encode(response), "320200060000000000070000".to_owned() + "0e00");
}

#[test]
fn an_error_indication_names_tunnel_and_peer() {
    let octets = hex("32 1a 0010 00000000 0000 00 00 10 0000abcd 85 0004 c0a80001");
    let indication = ErrorIndication { teid: 0xabcd, peer: IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1)) };
    let packet = Packet::decode(&octets).expect("a packet");
    assert_eq!(Signalling::decode(&packet), Ok(Some(Signalling::ErrorIndication(indication))));
    let mut out = Vec::new();
    Signalling::ErrorIndication(indication).encode(&mut out);
    assert_eq!(out, octets);
}

#[test]
fn an_error_indication_may_carry_the_udp_port_and_private_elements() {
    let octets = hex("36 1a 0018 00000000 0000 00 40 01 0868 00 ff 0002 0001 10 0000abcd 85 0004 c0a80001");
    let octets = [octets[..3].to_vec(), vec![octets.len() as u8 - 8], octets[4..].to_vec()].concat();
    let packet = Packet::decode(&octets).expect("a packet");
    let Ok(Some(Signalling::ErrorIndication(indication))) = Signalling::decode(&packet) else {
        panic!("{packet:?}")
    };
    assert_eq!(indication.teid, 0xabcd);
}

#[test]
fn an_error_indication_without_peer_is_faulty() {
    let octets = hex("32 1a 0009 00000000 0000 00 00 10 0000abcd");
    let packet = Packet::decode(&octets).expect("a packet");
    assert_eq!(Signalling::decode(&packet), Err(GtpuError::InformationElement));
}

#[test]
fn an_extension_header_that_must_be_known_is_reported() {
    let octets = hex("34 ff 0008 00000001 000000 c0 01 0000 00");
    let packet = Packet::decode(&octets).expect("a packet");
    assert_eq!(packet.uncomprehended(|header_type| header_type == 0x85), Some(0xc0));
    let octets = hex("34 ff 0008 00000001 000000 03 01 0000 00");
    assert_eq!(Packet::decode(&octets).expect("a packet").uncomprehended(|_| false), None);
}

#[test]
fn faulty_headers_are_distinguished() {
    let error = |text: &str| Packet::decode(&hex(text)).expect_err("faulty");
    assert_eq!(error("30 ff 0000 000000"), GtpuError::Truncated);
    assert_eq!(error("50 ff 0000 00000000"), GtpuError::Version(0x50));
    assert_eq!(error("20 ff 0000 00000000"), GtpuError::Version(0x20));
    assert_eq!(error("30 ff 0001 00000000"), GtpuError::Truncated);
    assert_eq!(error("34 ff 0004 00000000 00000085"), GtpuError::ExtensionHeader);
    assert_eq!(error("34 ff 0008 00000000 00000085 00000000"), GtpuError::ExtensionHeader);
    assert_eq!(error("34 ff 0008 00000000 00000085 02000000"), GtpuError::ExtensionHeader);
}

proptest! {
    #[test]
    fn encoded_packets_decode(teid: u32, qfi in 0u8..64, rqi: bool, ppi in proptest::option::of(0u8..8), size in 0usize..2000) {
        let information = DlPduSessionInformation { qfi, rqi, ppi };
        let header = GpduHeader { teid, pdu_session: Some(information) };
        let mut buffer = vec![0x55; GpduHeader::MAX_LEN + size];
        let start = header.write_before(&mut buffer, GpduHeader::MAX_LEN).expect("room");
        let packet = Packet::decode(&buffer[start..]).expect("a packet");
        prop_assert_eq!((packet.teid, packet.payload.len()), (teid, size));
        prop_assert_eq!(packet.header_len, header.encoded_len());
        prop_assert_eq!(packet.pdu_session_information(), Some(PduSessionInformation::Downlink(information)));
    }
}
