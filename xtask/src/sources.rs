//! What the sources may not say: impurity in the pure band, one NF naming another, `unsafe` out of
//! its place, a procedure without its clause.

use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that know no clock, socket, thread, lock or randomness of the system.
const PURE: [&str; 8] = ["types", "crypto", "nas", "ngap", "pfcp", "sbi", "nf", "upf"];

/// What a pure crate may not name.
const IMPURE: [&str; 14] = [
    "std::time::Instant",
    "std::time::SystemTime",
    "SystemTime::now",
    "std::thread",
    "std::fs",
    "std::process",
    "UdpSocket",
    "TcpStream",
    "Mutex",
    "RwLock",
    "tokio",
    "getrandom",
    "SystemRandom",
    "thread_rng",
];

/// Where `unsafe` may stand.
const UNSAFE_HOMES: [&str; 4] =
    ["crates/datapath/", "crates/runtime/", "crates/sctp-shim/", "crates/fuzz/src/alloc.rs"];

const NFS: [&str; 8] = ["amf", "smf", "ausf", "udm", "udr", "pcf", "nrf", "nssf"];

/// All problems of all Rust sources.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    collect(&root.join("crates"), &mut files)?;
    let mut sources = Vec::new();
    for file in files {
        let name = file.strip_prefix(root)?.to_string_lossy().into_owned();
        sources.push((name, fs::read_to_string(&file)?));
    }
    let tests: Vec<String> = sources.iter().flat_map(|(name, text)| test_modules(name, text)).collect();
    let is_test = |name: &str| tests.iter().any(|test| name == format!("{test}.rs") || is_below(name, test));
    let mut problems = Vec::new();
    for (name, text) in sources.iter().filter(|(name, _)| !is_test(name)) {
        purity(name, text, &mut problems);
        isolation(name, text, &mut problems);
        unsafety(name, text, &mut problems);
        citation(name, text, &mut problems);
    }
    Ok(problems)
}

/// Adds all Rust files below a folder.
pub fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn is_below(name: &str, folder: &str) -> bool {
    name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Modules of a file that exist in tests only, as paths without `.rs`: `#[cfg(test)] mod tests;`.
fn test_modules(name: &str, text: &str) -> Vec<String> {
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    let folder = stem.strip_suffix("/mod").or(stem.strip_suffix("/lib")).or(stem.strip_suffix("/main"));
    let folder = folder.unwrap_or(stem);
    let mut modules = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if is_test_attribute(line) {
            let item = lines.by_ref().find(|line| !line.trim_start().starts_with("#[")).unwrap_or_default();
            let module = item.trim().strip_suffix(';').and_then(|item| item.rsplit_once("mod "));
            modules.extend(module.map(|(_, module)| format!("{folder}/{module}")));
        }
    }
    modules
}

/// `#[cfg(test)]`, also with alternatives that no product builds, such as a feature `testing`.
fn is_test_attribute(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("#[cfg(test)]")
        || line.starts_with("#[cfg(any(test,")
        || line.starts_with("#[cfg(all(test,")
}

/// Lines of code with their numbers: comments, and items behind `#[cfg(test)]`, do not count. An item ends where
/// rustfmt has it end: with `;` on its first line, or with a closing bracket as far to the right as its attribute.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    #[derive(PartialEq)]
    enum At {
        Code,
        Attributes(usize),
        Item(usize),
    }
    let mut at = At::Code;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let indent = line.len() - line.trim_start().len();
        let words = line.trim();
        match at {
            At::Code if is_test_attribute(line) => at = At::Attributes(indent),
            At::Code => return (!words.starts_with("//")).then_some((number + 1, line)),
            At::Attributes(_) if words.starts_with("#[") || words.starts_with("//") => {}
            At::Attributes(from) => {
                let whole = words.ends_with(';') || words.ends_with(',') || words.ends_with('}');
                at = if whole { At::Code } else { At::Item(from) };
            }
            At::Item(from) => {
                if indent == from && words.starts_with(['}', ')', ']']) {
                    at = At::Code;
                }
            }
        }
        None
    })
}

fn purity(name: &str, text: &str, problems: &mut Vec<String>) {
    if !PURE.iter().any(|pure| name.starts_with(&format!("crates/{pure}/src/"))) {
        return;
    }
    for (at, line) in code(text) {
        if let Some(word) = IMPURE.iter().find(|word| line.contains(**word)) {
            problems.push(format!(
                "{name}:{at}: '{word}' in the pure band: take it as input, or move it to the shell"
            ));
        }
    }
}

/// NFs meet only through the SBI: no file of one names another's module.
fn isolation(name: &str, text: &str, problems: &mut Vec<String>) {
    let Some(own) = NFS.iter().find(|nf| name.starts_with(&format!("crates/nf/src/{nf}/"))) else { return };
    for (at, line) in code(text) {
        for other in NFS.iter().filter(|nf| nf != &own) {
            if line.contains(&format!("crate::{other}::")) {
                problems.push(format!("{name}:{at}: {own} names {other}: NFs meet only through the SBI"));
            }
        }
    }
}

fn unsafety(name: &str, text: &str, problems: &mut Vec<String>) {
    if UNSAFE_HOMES.iter().any(|home| name.starts_with(home)) {
        return;
    }
    for (at, line) in code(text) {
        if line.contains("unsafe {") || line.contains("unsafe fn") || line.contains("unsafe impl") {
            problems.push(format!("{name}:{at}: 'unsafe' outside {}", UNSAFE_HOMES.join(", ")));
        }
    }
}

/// A procedure file opens with its clauses: `TS 24.501 5.5.1.2`.
fn citation(name: &str, text: &str, problems: &mut Vec<String>) {
    if !name.contains("/procedure/") || name.ends_with("/mod.rs") {
        return;
    }
    let head: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
    if !has_citation(&head) {
        problems.push(format!("{name}:1: the head cites no clause, such as TS 24.501 5.5.1.2"));
    }
}

/// `TS`, a number with a dot, a clause.
fn has_citation(head: &str) -> bool {
    head.match_indices("TS ").any(|(at, _)| {
        let mut words = head[at + 3..].split([' ', ',', ';', ')', '(']);
        let number = words.next().is_some_and(|word| word.len() == 6 && word.as_bytes()[2] == b'.');
        let clause = words.find(|word| !word.is_empty() && *word != "clause" && *word != "clauses");
        number
            && clause.is_some_and(|word| {
                word.starts_with(|first: char| first.is_ascii_digit() || first.is_ascii_uppercase())
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_has_number_and_clause() {
        assert!(has_citation("Registration (TS 23.502 4.2.2.2.2)."));
        assert!(has_citation("TS 24.501 clause 5.5.1"));
        assert!(!has_citation("Registration, see TS 23.502"));
        assert!(!has_citation("Registration"));
    }

    #[test]
    fn impurity_is_seen_in_code_and_not_in_comments_or_tests() {
        let mut problems = Vec::new();
        purity(
            "crates/nf/src/a.rs",
            "// std::thread\nuse std::thread;\n#[cfg(test)]\nuse std::thread;",
            &mut problems,
        );
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with("crates/nf/src/a.rs:2:"));
    }

    #[test]
    fn code_behind_a_test_item_is_seen() {
        let mut problems = Vec::new();
        let text = "\
#[cfg(test)]
mod tests;
use std::thread;
impl A {
    #[cfg(test)]
    #[allow(dead_code)]
    fn b() {
        Mutex::new(0);
    }

    fn c(a: Mutex<u8>) {}
}
#[cfg(test)]
mod more {
    use std::fs;
}
fn d(a: RwLock<u8>) {}
";
        purity("crates/nf/src/a.rs", text, &mut problems);
        let lines: Vec<_> = problems.iter().filter_map(|problem| problem.split(':').nth(1)).collect();
        assert_eq!(lines, ["3", "11", "17"]);
    }

    #[test]
    fn files_of_test_modules_are_known() {
        let text = "#[cfg(test)]\nmod tests;\nmod a;\n#[cfg(any(test, feature = \"testing\"))]\npub mod b;\n";
        assert_eq!(
            test_modules("crates/nf/src/amf/mod.rs", text),
            ["crates/nf/src/amf/tests", "crates/nf/src/amf/b"]
        );
        assert_eq!(test_modules("crates/nf/src/lib.rs", text)[0], "crates/nf/src/tests");
        assert_eq!(test_modules("crates/upf/src/upf.rs", text)[0], "crates/upf/src/upf/tests");
    }

    #[test]
    fn an_nf_may_not_name_another() {
        let mut problems = Vec::new();
        isolation("crates/nf/src/amf/mod.rs", "use crate::smf::Smf;\nuse crate::kit::Input;", &mut problems);
        assert_eq!(problems.len(), 1);
    }
}
