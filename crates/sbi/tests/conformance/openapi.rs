//! Validates all examples against 3GPP's OpenAPI files with `tests/openapi/validate.py`.
//!
//! The test is skipped if the files or the Python modules are missing.

use crate::examples::{problems, request, response};
use crate::skipped::skipped;
use pith_sbi::{HttpRequest, Operation};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's root, and the 3GPP files beside or above it.
fn directories() -> (PathBuf, Option<PathBuf>) {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/sbi");
    let openapi = |above: &Path| Some(above.join("shared/3gpp/openapi")).filter(|d| d.is_dir());
    let found = repository.ancestors().find_map(openapi);
    (repository.to_owned(), found)
}

/// Every request, with each of its possible responses.
fn examples() -> Vec<String> {
    let mut lines = Vec::new();
    for &operation in Operation::ALL {
        let http = request(operation).to_http();
        lines.push(http.to_record().to_string());
        for &outcome in operation.info().outcomes {
            lines.push(response(outcome).to_http().to_record(&http).to_string());
        }
    }
    for (operation, problem) in problems() {
        let http = request(operation).to_http();
        lines.push(problem.to_http(Some(operation)).to_record(&http).to_string());
    }
    lines
}

/// The validator's result for a recording; `None` if it cannot be run.
fn validate(name: &str, lines: &[String]) -> Option<(bool, String)> {
    let (repository, openapi) = directories();
    let Some(openapi) = openapi else {
        skipped("no shared/3gpp/openapi");
        return None;
    };
    let recording = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&recording, lines.join("\n")).expect("a recording");
    let output = Command::new("python3")
        .arg(repository.join("tests/openapi/validate.py"))
        .arg("--openapi")
        .arg(openapi)
        .arg(recording)
        .output();
    let Ok(output) = output else {
        skipped("no python3");
        return None;
    };
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        skipped(text.trim());
        return None;
    }
    Some((output.status.success(), text))
}

#[test]
fn all_examples_match_the_openapi_files() {
    if let Some((good, text)) = validate("examples.jsonl", &examples()) {
        assert!(good, "{text}");
    }
}

#[test]
fn the_validator_finds_what_is_wrong() {
    let good = request(Operation::PostSmContexts).to_http();
    let changed = |change: &dyn Fn(&mut HttpRequest)| {
        let mut http = good.clone();
        change(&mut http);
        http.to_record().to_string()
    };
    let replaced = |from: &str, to: &str| {
        let line = good.to_record().to_string();
        assert!(line.contains(from), "{from} is not in {line}");
        line.replace(from, to)
    };
    let lines = [
        changed(&|http| http.path.push('x')),
        changed(&|http| http.query = "x=1".into()),
        changed(&|http| http.content_type = Some("text/plain".into())),
        replaced("\"anType\"", "\"anTypo\""),
        replaced("\"3GPP_ACCESS\"", "\"4GPP_ACCESS\""),
        replaced("\"sst\":1", "\"sst\":256"),
        replaced("\"mcc\":\"999\"", "\"mcc\":\"99\""),
        replaced("[{\"backupAmf\"", "[{\"backup\""),
        replaced("\"content_id\":\"n1SmMsg\"", "\"content_id\":\"n1\""),
    ];
    let Some((good, text)) = validate("wrong.jsonl", &lines) else { return };
    assert!(!good);
    for number in 1..=lines.len() {
        assert!(text.contains(&format!("wrong.jsonl:{number}:")), "line {number}: {text}");
    }
}
