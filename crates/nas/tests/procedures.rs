//! `docs/procedures.md` lists every procedure and every message of TS 24.501, and says truly which ones the codec has.

#[path = "../../../tests/procedures.rs"]
mod document;
mod samples;

use document::{Row, names, rows_of};
use std::collections::{BTreeMap, BTreeSet};

/// 5GMM message types of Release 17 (TS 24.501 table 9.7.1).
const GMM: [(u8, &str); 37] = [
    (0x41, "REGISTRATION REQUEST"),
    (0x42, "REGISTRATION ACCEPT"),
    (0x43, "REGISTRATION COMPLETE"),
    (0x44, "REGISTRATION REJECT"),
    (0x45, "DEREGISTRATION REQUEST (UE originating)"),
    (0x46, "DEREGISTRATION ACCEPT (UE originating)"),
    (0x47, "DEREGISTRATION REQUEST (UE terminated)"),
    (0x48, "DEREGISTRATION ACCEPT (UE terminated)"),
    (0x4c, "SERVICE REQUEST"),
    (0x4d, "SERVICE REJECT"),
    (0x4e, "SERVICE ACCEPT"),
    (0x4f, "CONTROL PLANE SERVICE REQUEST"),
    (0x50, "NETWORK SLICE-SPECIFIC AUTHENTICATION COMMAND"),
    (0x51, "NETWORK SLICE-SPECIFIC AUTHENTICATION COMPLETE"),
    (0x52, "NETWORK SLICE-SPECIFIC AUTHENTICATION RESULT"),
    (0x54, "CONFIGURATION UPDATE COMMAND"),
    (0x55, "CONFIGURATION UPDATE COMPLETE"),
    (0x56, "AUTHENTICATION REQUEST"),
    (0x57, "AUTHENTICATION RESPONSE"),
    (0x58, "AUTHENTICATION REJECT"),
    (0x59, "AUTHENTICATION FAILURE"),
    (0x5a, "AUTHENTICATION RESULT"),
    (0x5b, "IDENTITY REQUEST"),
    (0x5c, "IDENTITY RESPONSE"),
    (0x5d, "SECURITY MODE COMMAND"),
    (0x5e, "SECURITY MODE COMPLETE"),
    (0x5f, "SECURITY MODE REJECT"),
    (0x64, "5GMM STATUS"),
    (0x65, "NOTIFICATION"),
    (0x66, "NOTIFICATION RESPONSE"),
    (0x67, "UL NAS TRANSPORT"),
    (0x68, "DL NAS TRANSPORT"),
    (0x69, "RELAY KEY REQUEST"),
    (0x6a, "RELAY KEY ACCEPT"),
    (0x6b, "RELAY KEY REJECT"),
    (0x6c, "RELAY AUTHENTICATION REQUEST"),
    (0x6d, "RELAY AUTHENTICATION RESPONSE"),
];

/// 5GSM message types of Release 17 (TS 24.501 table 9.7.2).
const GSM: [(u8, &str); 20] = [
    (0xc1, "PDU SESSION ESTABLISHMENT REQUEST"),
    (0xc2, "PDU SESSION ESTABLISHMENT ACCEPT"),
    (0xc3, "PDU SESSION ESTABLISHMENT REJECT"),
    (0xc5, "PDU SESSION AUTHENTICATION COMMAND"),
    (0xc6, "PDU SESSION AUTHENTICATION COMPLETE"),
    (0xc7, "PDU SESSION AUTHENTICATION RESULT"),
    (0xc9, "PDU SESSION MODIFICATION REQUEST"),
    (0xca, "PDU SESSION MODIFICATION REJECT"),
    (0xcb, "PDU SESSION MODIFICATION COMMAND"),
    (0xcc, "PDU SESSION MODIFICATION COMPLETE"),
    (0xcd, "PDU SESSION MODIFICATION COMMAND REJECT"),
    (0xd1, "PDU SESSION RELEASE REQUEST"),
    (0xd2, "PDU SESSION RELEASE REJECT"),
    (0xd3, "PDU SESSION RELEASE COMMAND"),
    (0xd4, "PDU SESSION RELEASE COMPLETE"),
    (0xd6, "5GSM STATUS"),
    (0xd8, "SERVICE-LEVEL AUTHENTICATION COMMAND"),
    (0xd9, "SERVICE-LEVEL AUTHENTICATION COMPLETE"),
    (0xda, "REMOTE UE REPORT"),
    (0xdb, "REMOTE UE REPORT RESPONSE"),
];

/// Clauses of the 5GMM procedures (TS 24.501 5.4 to 5.6).
const GMM_CLAUSES: [&str; 16] = [
    "5.4.1.2", "5.4.1.3", "5.4.2", "5.4.3", "5.4.4", "5.4.5", "5.4.6", "5.4.7", "5.5.1.2", "5.5.1.3",
    "5.5.2", "5.5.3", "5.5.4", "5.6.1", "5.6.2", "5.6.3",
];

/// Clauses of the 5GSM procedures (TS 24.501 6.3 to 6.6).
const GSM_CLAUSES: [&str; 10] =
    ["6.3.1", "6.3.1A", "6.3.2", "6.3.3", "6.4.1", "6.4.2", "6.4.3", "6.5", "6.6.1", "6.6.2"];

struct Protocol {
    section: &'static str,
    types: BTreeMap<u8, &'static str>,
    clauses: &'static [&'static str],
    /// Type and name of each message that the codec has.
    coded: BTreeMap<u8, &'static str>,
}

fn protocols() -> [Protocol; 2] {
    let gmm = samples::gmm().into_iter().map(|message| (message.message_type(), message.name()));
    let gsm = samples::gsm().into_iter().map(|message| (message.body.message_type(), message.body.name()));
    [
        Protocol { section: "5GMM", types: GMM.into(), clauses: &GMM_CLAUSES, coded: gmm.collect() },
        Protocol { section: "5GSM", types: GSM.into(), clauses: &GSM_CLAUSES, coded: gsm.collect() },
    ]
}

impl Protocol {
    fn rows(&self) -> Vec<Row> {
        rows_of(self.section)
    }
}

/// The name as in the codec: `5GMM STATUS` is `GmmStatus`.
fn in_rust_case(name: &str) -> String {
    let mut converted = String::new();
    for word in name.split(|character: char| !character.is_ascii_alphanumeric()) {
        let letters = word.trim_start_matches('5').chars();
        converted.extend(letters.clone().take(1).map(|letter| letter.to_ascii_uppercase()));
        converted.extend(letters.skip(1).map(|letter| letter.to_ascii_lowercase()));
    }
    converted
}

#[test]
fn the_codec_has_the_types_of_the_specification() {
    for Protocol { types, coded, .. } in protocols() {
        for (code, name) in coded {
            assert_eq!(types.get(&code).map(|name| in_rust_case(name)).as_deref(), Some(name), "{code:#x}");
        }
    }
}

#[test]
fn every_message_is_in_a_row() {
    for protocol in protocols() {
        let rows = protocol.rows();
        let listed: BTreeSet<&str> = rows.iter().flat_map(|row| names(&row["messages"])).collect();
        let types: BTreeSet<&str> = protocol.types.values().copied().collect();
        assert_eq!(types.difference(&listed).collect::<Vec<_>>(), Vec::<&&str>::new(), "missing");
        assert_eq!(listed.difference(&types).collect::<Vec<_>>(), Vec::<&&str>::new(), "unknown");
    }
}

#[test]
fn every_procedure_is_in_a_row() {
    for protocol in protocols() {
        let rows = protocol.rows();
        let listed: Vec<&str> = rows.iter().flat_map(|row| names(&row["clause"])).collect();
        for clause in protocol.clauses {
            let is_of = |listed: &&str| listed.strip_prefix(clause).is_some_and(is_below);
            assert!(listed.iter().any(is_of), "{clause}");
        }
    }
}

/// Whether that follows a clause's number in the number of one of its subclauses, or in a range.
fn is_below(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['.', ' '])
}

#[test]
fn only_messages_of_the_codec_are_carried_out() {
    for protocol in protocols() {
        let types = protocol.types.iter().filter(|(code, _)| protocol.coded.contains_key(code));
        let coded: BTreeSet<&str> = types.map(|(_, name)| *name).collect();
        for row in protocol.rows() {
            if row["Pith"] == "done" {
                assert!(names(&row["messages"]).all(|name| coded.contains(name)), "{row:?}");
            }
        }
    }
}

#[test]
fn what_is_carried_out_has_tests_and_what_is_not_has_a_reason() {
    for row in protocols().iter().flat_map(Protocol::rows) {
        match row["Pith"].as_str() {
            "done" => assert_ne!(row["tests"], "", "{row:?}"),
            "in part" => assert!(!row["tests"].is_empty() && !row["remarks"].is_empty(), "{row:?}"),
            "refused" | "left out" => assert_ne!(row["remarks"], "", "{row:?}"),
            other => panic!("{other} in {row:?}"),
        }
    }
}
