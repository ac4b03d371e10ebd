//! Messages from other stacks: each decodes without a note and encodes to the same octets.

use pith_nas::ie::PayloadContainerType;
use pith_nas::{GmmMessage, GsmBody, GsmMessage, peek_epd};

struct Captured {
    name: &'static str,
    plain: Vec<u8>,
}

fn captured() -> Vec<Captured> {
    include_str!("data/captured.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let fields: Vec<_> = line.split('\t').collect();
            Captured { name: fields[2], plain: hex::decode(fields[8]).unwrap() }
        })
        .collect()
}

#[test]
fn every_captured_message_encodes_back_to_its_octets() {
    for Captured { name, plain } in captured() {
        if peek_epd(&plain) == Some(0x7e) {
            let mut notes = Vec::new();
            let message = GmmMessage::decode_with_notes(&plain, &mut notes).unwrap();
            assert_eq!(notes, [], "{name} {}", hex::encode(&plain));
            let encoded = message.encode();
            assert_eq!(GmmMessage::decode(&encoded), Ok(message.clone()), "{name}");
            // A network name has several encodings, of which this codec uses one; PacketRusher pads
            // its IMEISV with 0 instead of 15.
            if !matches!(
                message,
                GmmMessage::ConfigurationUpdateCommand(_) | GmmMessage::SecurityModeComplete(_)
            ) {
                assert_eq!(hex::encode(encoded), hex::encode(&plain), "{name}");
            }
        }
    }
}

#[test]
fn every_captured_session_message_encodes_back_to_its_octets() {
    let mut seen = 0;
    for Captured { name, plain } in captured() {
        let (kind, container) = match GmmMessage::decode(&plain).unwrap() {
            GmmMessage::UlNasTransport(m) => (m.payload_container_type, m.payload_container),
            GmmMessage::DlNasTransport(m) => (m.payload_container_type, m.payload_container),
            _ => continue,
        };
        if kind == PayloadContainerType::N1SmInformation {
            let mut notes = Vec::new();
            let message = GsmMessage::decode_with_notes(&container, &mut notes).unwrap();
            assert_eq!(notes, [], "{name} {}", hex::encode(&container));
            let encoded = message.encode();
            assert_eq!(GsmMessage::decode(&encoded), Ok(message.clone()), "{name}");
            // A session AMBR can be encoded in several units, of which this codec uses one.
            if !matches!(message.body, GsmBody::PduSessionEstablishmentAccept(_)) {
                assert_eq!(hex::encode(encoded), hex::encode(&container), "{name}");
            }
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}
