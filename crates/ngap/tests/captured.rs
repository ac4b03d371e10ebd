//! PDUs captured from other implementations.

use pith_ngap::transfer::{SetupRequestTransfer, SetupResponseTransfer};
use pith_ngap::{Message, peek};

/// Name in the ASN.1 and octets.
fn captured() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let lines = include_str!("data/captured.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (name, octets) = line.split_once('\t').unwrap();
        (name, hex::decode(octets).unwrap())
    })
}

/// Differences from the tables: the criticality of two IEs in PDUs of free5GC's peer, and the mobility
/// restrictions of requests, which no struct contains.
const OTHERWISE: [&str; 3] =
    ["InitialContextSetupRequest", "DownlinkNASTransport", "InitialContextSetupResponse"];

#[test]
fn every_captured_pdu_is_read_and_written_again() {
    let mut same = 0;
    for (name, octets) in captured() {
        let message = Message::decode(&octets).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!matches!(message, Message::Other(_)), "{name}");
        let encoded = message.encode().unwrap();
        assert_eq!(Message::decode(&encoded).as_ref(), Ok(&message), "{name}");
        assert!(encoded == octets || OTHERWISE.contains(&name), "{name} {}", hex::encode(octets));
        same += usize::from(encoded == octets);
    }
    assert!(same > 160, "{same}");
}

#[test]
fn transfers_of_captured_pdus_are_read_and_written_again() {
    let mut seen = 0;
    for (name, octets) in captured() {
        match Message::decode(&octets) {
            Ok(Message::PduSessionResourceSetupRequest(request)) => {
                for item in request.sessions {
                    let transfer = SetupRequestTransfer::decode(&item.transfer).unwrap();
                    assert_eq!(SetupRequestTransfer::decode(&transfer.encode()), Ok(transfer), "{name}");
                    seen += 1;
                }
            }
            Ok(Message::PduSessionResourceSetupResponse(response)) => {
                for item in response.setup.unwrap_or_default() {
                    let transfer = SetupResponseTransfer::decode(&item.transfer).unwrap();
                    assert_eq!(hex::encode(transfer.encode()), hex::encode(&item.transfer), "{name}");
                    seen += 1;
                }
            }
            _ => {}
        }
    }
    assert!(seen > 4, "{seen}");
}

#[test]
fn a_peek_sees_the_ids_of_every_captured_pdu() {
    for (name, octets) in captured() {
        let seen = peek(&octets).unwrap();
        let message = format!("{:?}", Message::decode(&octets).unwrap());
        assert_eq!(seen.amf_ue_ngap_id.is_some(), message.contains("AmfUeNgapId("), "{name}");
        assert_eq!(seen.ran_ue_ngap_id.is_some(), message.contains("RanUeNgapId("), "{name}");
    }
}
