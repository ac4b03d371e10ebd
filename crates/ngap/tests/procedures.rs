//! `docs/procedures.md` lists every procedure of TS 38.413, says truly which ones the codec has, and names tests that exist.

#[path = "../../../tests/procedures.rs"]
mod document;
mod samples;

use document::{Row, names, root, rows_of, tables};
use pith_ngap::peek;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The procedure codes of Release 17 (TS 38.413 9.4.7).
const CODES: std::ops::RangeInclusive<u8> = 0..=75;

/// The rows with their procedure codes.
fn rows() -> impl Iterator<Item = (u8, Row)> {
    rows_of("NGAP").into_iter().map(|row| (row["code"].parse().unwrap(), row))
}

/// Names of all tests in the directory's Rust files.
fn tests(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.extend(tests_in(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Names of the functions with the attribute `#[test]`.
fn tests_in(text: &str) -> Vec<String> {
    let (mut found, mut is_test) = (Vec::new(), false);
    for line in text.lines().map(str::trim_start) {
        if line == "#[test]" {
            is_test = true;
        } else if let Some(function) = line.strip_prefix("fn ") {
            found.extend(function.split_once('(').filter(|_| is_test).map(|(name, _)| name.to_owned()));
            is_test = false;
        }
    }
    found
}

#[test]
fn every_procedure_is_listed_once() {
    assert_eq!(rows().map(|(code, _)| code).collect::<Vec<_>>(), CODES.collect::<Vec<_>>());
}

#[test]
fn the_codec_has_what_the_table_says() {
    let samples = samples::all();
    let coded: BTreeSet<u8> =
        samples.iter().map(|message| peek(&message.encode().unwrap()).unwrap().procedure_code).collect();
    for (code, row) in rows() {
        assert_eq!(row["codec"] == "yes", coded.contains(&code), "{row:?}");
    }
}

#[test]
fn only_procedures_with_a_codec_are_carried_out() {
    for (_, row) in rows() {
        match row["Pith"].as_str() {
            "done" | "relayed" | "logged" => assert_eq!(row["codec"], "yes", "{row:?}"),
            "refused" | "ignored" => assert_ne!(row["begun by"], "AMF", "{row:?}"),
            "left out" => assert_eq!(row["begun by"], "AMF", "{row:?}"),
            other => panic!("{other} in {row:?}"),
        }
    }
}

#[test]
fn the_tests_in_all_tables_exist() {
    let mut found = BTreeSet::new();
    tests(&root().join("crates"), &mut found);
    let mut missing = Vec::new();
    for table in tables() {
        for row in table.rows {
            let named = row.get("tests").unwrap_or_else(|| panic!("no tests in '{}'", table.section));
            missing.extend(names(named).filter(|name| !found.contains(*name)).map(str::to_owned));
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn only_functions_with_the_attribute_are_tests() {
    let text = "fn helper() {}\n#[test]\n#[ignore]\nfn one() {}\nfn two() {}\n    #[test]\n    fn three() {}";
    assert_eq!(tests_in(text), ["one", "three"]);
}
