//! The wording of comments and documents, as far as a program can check it: plain technical terms, doc comments that say
//! more than the item's name, `if` for a choice of two, and one meaning for each name of a type.

use crate::sources::collect;
use anyhow::Result;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Phrases that hide who acts, and colloquial ones, with a replacement. Checked in comments, documents and scripts, as
/// whole words in any case.
const PHRASES: [(&str, &str); 29] = [
    ("whoever", "name the subject"),
    ("nobody", "name the subject"),
    ("somebody", "name the subject"),
    ("everybody", "name the subject"),
    ("is told", "receives, or is notified"),
    ("are told", "receive, or are notified"),
    ("was told", "received, or was notified"),
    ("be told", "receive, or be notified"),
    ("hears", "receives"),
    ("what waits", "pending items"),
    ("who waits", "the waiting thread, or the caller"),
    ("goes nowhere", "is dropped"),
    ("lead nowhere", "do not exist"),
    ("leads nowhere", "does not exist"),
    ("comes to nothing", "fails"),
    ("in the midst", "during"),
    ("rubbish", "invalid data"),
    ("vanishes", "is lost, or disconnects"),
    ("anew", "again"),
    ("any more", "no longer"),
    ("by now", "meanwhile"),
    ("under way", "in progress"),
    ("is asked", "receives a request"),
    ("are asked", "receive a request"),
    ("owes", "has not answered yet"),
    ("owed", "pending"),
    ("runs out", "expires"),
    ("ran out", "expired"),
    ("for people", "human-readable"),
];

/// Doc comments that only ask.
const EMPTY: [&str; 6] = ["Why.", "Which.", "What.", "Who.", "How.", "Where."];

/// Names that had several meanings: at most one type of the product may have each of them.
const UNIQUE: [&str; 12] = [
    "Desk",
    "Flow",
    "Front",
    "Outcome",
    "Parcel",
    "PeerAddress",
    "PeerTransport",
    "Place",
    "QueueWorker",
    "Vacancy",
    "Way",
    "WorkQueue",
];

/// Crates that may still have `match` on a condition.
const MATCHES: [&str; 4] = ["datapath", "ngap", "pfcp", "upf"];

/// All problems of all sources, documents and scripts.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut types = BTreeMap::new();
    let mut sources = Vec::new();
    collect(&root.join("crates"), &mut sources)?;
    collect(&root.join("xtask"), &mut sources)?;
    for path in sources {
        let name = path.strip_prefix(root)?.display().to_string();
        if name.ends_with("xtask/src/voice.rs") {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        source(&name, &text, &mut problems);
        if name.contains("/src/") && !name.contains("/tests") {
            for (at, unique) in unique_types(&text) {
                types.entry(unique).or_insert_with(Vec::new).push(format!("{name}:{at}"));
            }
        }
    }
    for (unique, places) in types.iter().filter(|(_, places)| places.len() > 1) {
        problems.push(format!(
            "{}: several types are named '{unique}': one name, one meaning",
            places.join(", ")
        ));
    }
    for path in prose(root)? {
        let name = path.strip_prefix(root)?.display().to_string();
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for (at, line) in text.lines().enumerate() {
            phrases(&name, at + 1, line, &mut problems);
        }
    }
    Ok(problems)
}

/// Documents and scripts.
fn prose(root: &Path) -> Result<Vec<std::path::PathBuf>> {
    let mut folders =
        vec![root.to_path_buf(), root.join("docs"), root.join("docs/adr"), root.join("scripts")];
    for entry in fs::read_dir(root.join("crates"))? {
        folders.push(entry?.path());
    }
    let mut files = Vec::new();
    for folder in folders {
        let is_scripts = folder.ends_with("scripts");
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let is_document = path.extension().is_some_and(|ending| ending == "md");
            let is_makefile = path.file_name().is_some_and(|name| name == "Makefile");
            if path.is_file() && (is_document || is_makefile || is_scripts) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn source(name: &str, text: &str, problems: &mut Vec<String>) {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let may_match = MATCHES.iter().any(|krate| name.starts_with(&format!("crates/{krate}/")));
    for (at, line) in lines.iter().enumerate() {
        if let Some(comment) = line.strip_prefix("//") {
            phrases(name, at + 1, comment, problems);
            continue;
        }
        if !may_match && (line.starts_with("true =>") || line.starts_with("false =>")) {
            problems.push(format!("{name}:{}: 'match' on a condition: write 'if'", at + 1));
        }
        let effects = [".take().into_iter().for_each(", ".ok().into_iter().for_each("];
        if effects.iter().any(|effect| line.contains(effect)) {
            problems.push(format!("{name}:{}: 'for_each' on an option: write 'if let'", at + 1));
        }
    }
    for at in empty_docs(&lines) {
        problems.push(format!("{name}:{}: a doc comment that repeats the name, or says nothing", at + 1));
    }
}

fn phrases(name: &str, at: usize, line: &str, problems: &mut Vec<String>) {
    let line = line.to_lowercase();
    for (phrase, instead) in PHRASES {
        if has_words(&line, phrase) {
            problems.push(format!("{name}:{at}: '{phrase}': {instead}"));
        }
    }
}

/// Whether a lowercase line contains a phrase as whole words.
fn has_words(line: &str, phrase: &str) -> bool {
    let is_inside = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(phrase).any(|(at, _)| {
        !is_inside(line[..at].chars().next_back()) && !is_inside(line[at + phrase.len()..].chars().next())
    })
}

/// Lines with a doc comment of one line that only asks, or that repeats the name of a private item. (Public items must
/// have a comment.)
fn empty_docs<'a>(lines: &'a [&'a str]) -> impl Iterator<Item = usize> + 'a {
    (0..lines.len()).filter(|&at| {
        let Some(doc) = lines[at].strip_prefix("/// ") else { return false };
        let is_doc = |at: usize| lines.get(at).is_some_and(|line| line.starts_with("///"));
        if is_doc(at + 1) || at.checked_sub(1).is_some_and(is_doc) {
            return false;
        }
        let item = lines[at + 1..].iter().find(|line| !line.starts_with("#[")).copied().unwrap_or_default();
        EMPTY.contains(&doc) || private_name(item).is_some_and(|name| letters(name) == letters(doc))
    })
}

/// The name that a line defines, unless it is public: `fn`, `struct` and so on.
fn private_name(line: &str) -> Option<&str> {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let is_keyword =
        |word: &str| ["fn", "struct", "enum", "trait", "type", "const", "static", "mod"].contains(&word);
    if !is_keyword(words.next()?) {
        return None;
    }
    words.next()
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Definitions of types whose names must be unique, with their lines.
fn unique_types(text: &str) -> impl Iterator<Item = (usize, &'static str)> + '_ {
    text.lines().enumerate().filter_map(|(at, line)| {
        let mut words = line.trim().split(|c: char| !c.is_alphanumeric() && c != '_' && c != '(' && c != ')');
        let keyword = words.find(|word| !word.starts_with("pub") && !["super)", "crate)"].contains(word))?;
        if !["struct", "enum", "trait", "type"].contains(&keyword) {
            return None;
        }
        let name = words.next()?;
        UNIQUE.iter().find(|unique| **unique == name).map(|unique| (at + 1, *unique))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems_of(text: &str) -> Vec<String> {
        let mut problems = Vec::new();
        source("crates/a/src/b.rs", text, &mut problems);
        problems
    }

    #[test]
    fn phrases_are_found_in_comments_and_not_in_code() {
        let problems =
            problems_of("/// The SMF Is Told.\nlet whoever = 1; // whoever\n//! Nobody.\n// renewal");
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("crates/a/src/b.rs:1: 'is told'"));
        assert!(problems[1].starts_with("crates/a/src/b.rs:3: 'nobody'"));
    }

    #[test]
    fn phrases_are_whole_words() {
        assert!(has_words("it is told.", "is told"));
        assert!(!has_words("this told", "is told"));
        assert!(!has_words("is_told", "told"));
        assert!(!has_words("janew", "anew"));
    }

    #[test]
    fn a_doc_comment_may_not_repeat_a_private_name() {
        assert_eq!(problems_of("/// Shard queue.\nstruct ShardQueue;").len(), 1);
        assert_eq!(problems_of("/// Retransmits.\n#[inline]\nfn retransmits() {}").len(), 1);
        assert_eq!(problems_of("/// DNN.\npub dnn: Dnn,").len(), 0);
        assert_eq!(problems_of("/// Shard queue.\n/// Bounded.\nstruct ShardQueue;").len(), 0);
        assert_eq!(problems_of("/// Why.\npub cause: Cause,").len(), 1);
    }

    #[test]
    fn a_choice_of_two_is_an_if() {
        assert_eq!(problems_of("match a {\n    true => b,\n    false => c,\n}").len(), 2);
        assert_eq!(problems_of("match (a, b) {\n    (true, _) => c,\n}").len(), 0);
        assert_eq!(problems_of("self.paused.take().into_iter().for_each(|paused| resume(paused));").len(), 1);
    }

    #[test]
    fn definitions_of_unique_types_are_found() {
        let text = "pub(super) struct Front {\nenum Front {\nuse a::Front;\nlet front = Front {\npub type WorkQueue = u8;";
        let found: Vec<_> = unique_types(text).collect();
        assert_eq!(found, [(1, "Front"), (2, "Front"), (5, "WorkQueue")]);
    }
}
