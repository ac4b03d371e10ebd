//! `docs/procedures.md` lists every procedure of TS 38.413, says truly which ones the codec has, and names tests that exist.

mod samples;

use pith_ngap::peek;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The procedure codes of Release 17 (TS 38.413 9.4.7).
const CODES: std::ops::RangeInclusive<u8> = 0..=75;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The cells of each row that begins with a procedure code.
fn rows() -> Vec<(u8, Vec<String>)> {
    let text = fs::read_to_string(root().join("docs/procedures.md")).unwrap();
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let rows = text.lines().filter(|line| line.starts_with('|')).map(cells);
    rows.filter_map(|row: Vec<String>| Some((row[0].parse().ok()?, row))).collect()
}

/// Names of all functions in the crates' Rust files.
fn functions(directory: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn "));
            names.extend(lines.filter_map(|line| Some(line.split_once('(')?.0.to_owned())));
        }
    }
}

#[test]
fn every_procedure_is_listed_once() {
    let listed: Vec<u8> = rows().into_iter().map(|(code, _)| code).collect();
    assert_eq!(listed, CODES.collect::<Vec<_>>());
}

#[test]
fn the_codec_has_what_the_table_says() {
    let samples = samples::all();
    let coded: BTreeSet<u8> =
        samples.iter().map(|message| peek(&message.encode().unwrap()).unwrap().procedure_code).collect();
    for (code, row) in rows() {
        assert_eq!(row[3] == "yes", coded.contains(&code), "{row:?}");
    }
}

#[test]
fn only_procedures_with_a_codec_are_carried_out() {
    for (_, row) in rows() {
        match row[4].as_str() {
            "done" | "relayed" | "logged" => assert_eq!(row[3], "yes", "{row:?}"),
            "refused" | "ignored" => assert_ne!(row[2], "AMF", "{row:?}"),
            "left out" => assert_eq!(row[2], "AMF", "{row:?}"),
            other => panic!("{other} in {row:?}"),
        }
    }
}

#[test]
fn the_tests_exist() {
    let mut names = BTreeSet::new();
    functions(&root().join("crates"), &mut names);
    let tests = rows().into_iter().flat_map(|(_, row)| {
        row[6].split(',').map(|name| name.trim().trim_matches('`').to_owned()).collect::<Vec<_>>()
    });
    let missing: Vec<_> = tests.filter(|name| !name.is_empty() && !names.contains(name)).collect();
    assert_eq!(missing, Vec::<String>::new());
}
