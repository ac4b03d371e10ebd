//! The octets of messages, reviewed as hexadecimal beside their values, and decoded by a second codec.
//!
//! `tests/witness/nas.py` decodes the same octets with pycrate.

mod samples;

use oxirush_nas::nas_5gs::{Nas5gsMessage, Validate};
use pith_nas::{GmmMessage, GsmMessage};
use std::fmt::Write;

/// Hexadecimal, then the value without absent fields.
fn snapshot(name: &str, octets: &[u8], value: &dyn std::fmt::Debug) -> String {
    let tree = format!("{value:#?}");
    let mut text = format!("{name}\n{}\n", hex::encode(octets));
    for line in tree.lines().filter(|line| !line.ends_with(": None,")) {
        writeln!(text, "{line}").unwrap();
    }
    text
}

#[test]
fn gmm_messages_have_these_octets() {
    let texts = samples::gmm().into_iter().map(|m| snapshot(m.name(), &m.encode(), &m));
    insta::assert_snapshot!("gmm", texts.collect::<Vec<_>>().join("\n"));
}

#[test]
fn gsm_messages_have_these_octets() {
    let texts = samples::gsm().into_iter().map(|m| snapshot(m.body.name(), &m.encode(), &m));
    insta::assert_snapshot!("gsm", texts.collect::<Vec<_>>().join("\n"));
}

#[test]
fn every_sample_reads_back_without_a_note() {
    for message in samples::gmm() {
        let mut notes = Vec::new();
        assert_eq!(GmmMessage::decode_with_notes(&message.encode(), &mut notes), Ok(message));
        assert_eq!(notes, []);
    }
    for message in samples::gsm() {
        let mut notes = Vec::new();
        assert_eq!(GsmMessage::decode_with_notes(&message.encode(), &mut notes), Ok(message));
        assert_eq!(notes, []);
    }
}

#[test]
fn there_is_a_sample_of_every_message() {
    let mut types: Vec<_> = samples::gmm().iter().map(GmmMessage::message_type).collect();
    types.dedup();
    assert_eq!(types.len(), 28);
    assert_eq!(samples::gsm().len(), 16);
}

/// `oxirush-nas` preserves the octets that it decodes, and reports no error.
#[test]
fn a_second_codec_accepts_every_sample() {
    let gmm = samples::gmm().into_iter().map(|m| (m.name(), m.encode()));
    let gsm = samples::gsm().into_iter().map(|m| (m.body.name(), m.encode()));
    for (name, octets) in gmm.chain(gsm) {
        let read = Nas5gsMessage::decode(&octets).unwrap_or_else(|error| panic!("{name}: {error}"));
        let findings = read.validate();
        assert!(findings.is_empty(), "{name} {}: {findings:?}", hex::encode(&octets));
        assert_eq!(read.encode().unwrap(), octets, "{name}");
    }
}

#[test]
fn a_stored_message_round_trips() {
    for message in samples::gmm() {
        let stored = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<GmmMessage>(&stored).unwrap(), message);
        if let GmmMessage::RegistrationRequest(request) = message {
            let stored = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<Box<_>>(&stored).unwrap(), request);
        }
    }
    for message in samples::gsm() {
        let stored = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<GsmMessage>(&stored).unwrap(), message);
    }
    assert!(serde_json::from_str::<GmmMessage>("\"7e004\"").is_err());
    assert!(serde_json::from_str::<GmmMessage>("\"7e00ff\"").is_err());
}
