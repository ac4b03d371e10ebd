//! The octets of messages, reviewed as hexadecimal beside their values. Each decodes to the encoded value,
//! conforms to the tables of TS 38.413, and shows its ids to `peek`.
//!
//! `tests/witness/ngap.py` checks the same octets with pycrate and tshark.

mod samples;

use oxirush_ngap::ngap::NGAP_PDU;
use pith_ngap::{Message, NextHop, peek};
use std::fmt::Write;

/// Name and hexadecimal, then the value without absent fields.
fn snapshot(message: &Message) -> String {
    let mut text = format!("{}\n{}\n", message.name(), hex::encode(message.encode().unwrap()));
    for line in format!("{message:#?}").lines().filter(|line| !line.ends_with(": None,")) {
        writeln!(text, "{line}").unwrap();
    }
    text
}

#[test]
fn messages_have_these_octets() {
    let texts: Vec<_> = samples::all().iter().map(snapshot).collect();
    insta::assert_snapshot!("ngap", texts.join("\n"));
}

#[test]
fn every_message_reads_back_as_it_was_written() {
    for message in samples::all() {
        assert_eq!(Message::decode(&message.encode().unwrap()).as_ref(), Ok(&message));
    }
}

#[test]
fn every_message_follows_the_tables() {
    for message in samples::all() {
        let pdu = NGAP_PDU::decode(&message.encode().unwrap()).unwrap();
        assert_eq!(pdu.check().unwrap(), [], "{}", message.name());
    }
}

#[test]
fn a_peek_sees_the_ids_of_every_message() {
    // A reset contains UE ids in lists, but is not UE-associated.
    let is_reset =
        |message: &Message| matches!(message, Message::NgReset(_) | Message::NgResetAcknowledge(_));
    for message in samples::all().into_iter().filter(|message| !is_reset(message)) {
        let octets = message.encode().unwrap();
        let seen = peek(&octets).unwrap();
        let shown = format!("{message:?}");
        assert_eq!(seen.amf_ue_ngap_id.is_some(), shown.contains("AmfUeNgapId("), "{shown}");
        assert_eq!(seen.ran_ue_ngap_id.is_some(), shown.contains("RanUeNgapId("), "{shown}");
    }
}

#[test]
fn the_next_hop_is_not_shown() {
    assert!(!format!("{:?}", NextHop { chaining_count: 3, nh: [0xab; 32] }).contains("171"));
}
