//! Reads YAML into a [`Config`], or reports errors with what to do about them.

use super::check::{self, Finding};
use super::position::Positions;
use super::{Config, Described, Setting};
use serde_saphyr::Error as Yaml;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// An error of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("can't read the configuration {}: {source}; 'pith config default > {}' writes one", path.display(), path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file has mistakes, each reported on one line.
    #[error("{}", lines(.0))]
    Wrong(Vec<Wrong>),
}

fn lines(wrongs: &[Wrong]) -> String {
    wrongs.iter().map(Wrong::to_string).collect::<Vec<_>>().join("\n")
}

/// One mistake with its position: `pith.yaml:12:5: sentence`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Name of the file.
    pub file: String,
    /// Line, starting at 1.
    pub line: u64,
    /// Column, starting at 1.
    pub column: u64,
    /// The problem and what to do about it.
    pub sentence: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.sentence)
    }
}

impl Config {
    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { path: path.into(), source };
        let yaml = fs::read_to_string(path).map_err(unreadable)?;
        Self::parse(&yaml, &path.display().to_string())
    }

    /// Reads and checks a text; `file` is the name in error messages.
    pub fn parse(yaml: &str, file: &str) -> Result<Self, ConfigError> {
        let wrong = |(line, column), sentence| Wrong { file: file.into(), line, column, sentence };
        let (config, text, mut wrongs) = read(yaml, &wrong);
        if let Some(config) = config {
            let positions = Positions::of(&text);
            let find = |path: &str| positions.as_ref().map_or((1, 1), |positions| positions.find(path));
            let locate = |Finding { path, sentence }| {
                let position = find(&path);
                wrong(position, with_value(&text, position, sentence))
            };
            let findings = check::findings(&config);
            if findings.is_empty() && wrongs.is_empty() {
                return Ok(config);
            }
            wrongs.extend(findings.into_iter().map(locate));
        }
        wrongs.sort_by_key(|wrong| (wrong.line, wrong.column));
        Err(ConfigError::Wrong(wrongs))
    }
}

/// Largest number of mistakes reported at once.
const MAX_MISTAKES: usize = 32;

/// Reads a text and collects all mistakes: each setting with a mistake is blanked and the rest is read again.
/// Returns the configuration of the rest, if it can be read, and the text with blanked settings, whose line
/// numbers are unchanged.
fn read(yaml: &str, wrong: &dyn Fn((u64, u64), String) -> Wrong) -> (Option<Config>, String, Vec<Wrong>) {
    let (mut text, mut wrongs) = (yaml.to_owned(), Vec::new());
    loop {
        let error = match serde_saphyr::from_str(&text) {
            Ok(config) => return (Some(config), text, wrongs),
            Err(error) => error,
        };
        let at = position(&error);
        let line = usize::try_from(at.0).unwrap_or(1);
        // A section left empty, or an item left incomplete, by blanked settings is no further mistake.
        let item = is_missing(&error).then(|| item_around(yaml, line)).flatten();
        let lacks = item.clone().is_some_and(|item| has_gaps(&text, yaml, item));
        if !lacks && !is_emptied(&text, yaml, line) {
            wrongs.push(wrong(at, with_value(&text, at, sentence(&error))));
        }
        let line = item.map_or(line, |item| item.start);
        let rest = leaves_a_rest(&error).then(|| without(&text, line)).flatten();
        match rest.filter(|_| wrongs.len() < MAX_MISTAKES) {
            Some(rest) => text = rest,
            None => return (None, text, wrongs),
        }
    }
}

/// Whether the error concerns a single setting, so that the rest can still be read.
fn leaves_a_rest(error: &Yaml) -> bool {
    match error {
        Yaml::WithSnippet { error, .. } => leaves_a_rest(error),
        Yaml::Message { .. }
        | Yaml::SerdeUnknownField { .. }
        | Yaml::SerdeMissingField { .. }
        | Yaml::InvalidScalar { .. }
        | Yaml::Unexpected { .. } => true,
        _ => false,
    }
}

fn is_missing(error: &Yaml) -> bool {
    match error {
        Yaml::WithSnippet { error, .. } => is_missing(error),
        error => matches!(error, Yaml::SerdeMissingField { .. }),
    }
}

/// The lines, starting at 1, of the list item that contains a line.
fn item_around(yaml: &str, line: usize) -> Option<std::ops::Range<usize>> {
    let lines: Vec<&str> = yaml.lines().collect();
    let is_item = |line: &str| line.trim_start().starts_with("- ");
    let start = (1..=line.min(lines.len())).rev().find(|at| is_item(lines[at - 1]))?;
    let depth = indent(lines[start - 1]);
    let ends = |at: &usize| !lines[at - 1].trim().is_empty() && indent(lines[at - 1]) <= depth;
    let end = (start + 1..=lines.len()).find(ends).unwrap_or(lines.len() + 1);
    (start..end).contains(&line).then_some(start..end)
}

/// Whether a setting on these lines was blanked.
fn has_gaps(text: &str, yaml: &str, lines: std::ops::Range<usize>) -> bool {
    let pairs = text.lines().chain(std::iter::repeat("")).zip(yaml.lines()).enumerate();
    pairs.filter(|(at, _)| lines.contains(&(at + 1))).any(|(_, (now, before))| now.len() < before.len())
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The text with the setting or list item that begins on this line (starting at 1) blanked; `None` if the
/// line is empty.
fn without(text: &str, line: usize) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let at = line.checked_sub(1)?;
    let first = *lines.get(at).filter(|line| !line.trim().is_empty())?;
    let depth = indent(first);
    lines[at] = "";
    for line in &mut lines[at + 1..] {
        // A list may have the same indentation as its key.
        let is_item = indent(line) == depth && line.trim_start().starts_with("- ") && first.ends_with(':');
        let is_inside = line.trim().is_empty() || indent(line) > depth || is_item;
        if !is_inside {
            break;
        }
        *line = "";
    }
    Some(lines.join("\n"))
}

/// Whether the line is a section whose settings were all blanked.
fn is_emptied(text: &str, yaml: &str, line: usize) -> bool {
    let (lines, before): (Vec<&str>, Vec<&str>) = (text.lines().collect(), yaml.lines().collect());
    let Some(first) = lines.get(line.wrapping_sub(1)).filter(|line| line.trim_end().ends_with(':')) else {
        return false;
    };
    let below = |lines: &[&str]| {
        let next = lines.iter().skip(line).find(|line| !line.trim().is_empty());
        next.is_some_and(|next| indent(next) > indent(first) || next.trim_start().starts_with("- "))
    };
    below(&before) && !below(&lines)
}

/// The sentence, followed by the value at that position unless the sentence contains it.
fn with_value(text: &str, (line, column): (u64, u64), sentence: String) -> String {
    let (line, column) = (usize::try_from(line).unwrap_or(1), usize::try_from(column).unwrap_or(1));
    let rest = text.lines().nth(line.saturating_sub(1)).and_then(|line| line.get(column.saturating_sub(1)..));
    let value = rest.unwrap_or_default().split([',', ']', '}', '#']).next().unwrap_or_default().trim();
    let bare = value.trim_matches(['"', '\'']);
    let is_plain =
        !bare.is_empty() && !value.starts_with(['[', '{', '-', '|', '>', '&', '*']) && bare.len() <= 64;
    if !is_plain || value.contains(": ") || value.ends_with(':') || sentence.contains(bare) {
        return sentence;
    }
    format!("{sentence} (here: {bare})")
}

fn position(error: &Yaml) -> (u64, u64) {
    error.location().map_or((1, 1), |location| (location.line(), location.column()))
}

/// The problem and what to do about it.
fn sentence(error: &Yaml) -> String {
    match error {
        Yaml::WithSnippet { error, .. } => sentence(error),
        Yaml::Message { msg, .. } => msg.clone(),
        Yaml::SerdeUnknownField { field, expected, .. } => unknown(field, expected),
        Yaml::SerdeMissingField { field, .. } => format!("'{field}' is missing here: add it"),
        Yaml::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("a key");
            format!("'{key}' occurs a second time: remove one of the two")
        }
        Yaml::InvalidScalar { ty, .. } => format!("{} is needed", scalar(ty)),
        Yaml::Unexpected { expected, .. } => format!("{} is needed", shape(expected)),
        other => {
            let text = other.without_snippet().to_string();
            text.split(" at line ").next().unwrap_or(&text).to_owned()
        }
    }
}

fn unknown(field: &str, expected: &[&str]) -> String {
    let known = expected.join(", ");
    if let Some(near) = nearest(field, expected.iter().copied()) {
        return format!(
            "there is no setting '{field}' here: did you mean '{near}'? The settings here are {known}"
        );
    }
    match section_of(Config::SETTINGS, field, "") {
        Some(path) => format!("'{field}' belongs in '{path}'. The settings here are {known}"),
        None => format!("there is no setting '{field}' here: the settings here are {known}"),
    }
}

/// The path of the section that has a setting of this name.
fn section_of(settings: &[Setting], name: &str, path: &str) -> Option<String> {
    settings.iter().find_map(|setting| {
        let path = if path.is_empty() { setting.name.into() } else { format!("{path}.{}", setting.name) };
        if setting.inner.iter().any(|inner| inner.name == name) {
            return Some(path);
        }
        section_of(setting.inner, name, &path)
    })
}

/// The known name with an edit distance of at most two.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (distance(name, known), known))
        .filter(|(distance, known)| *distance <= 2 && *distance < known.len())
        .min()
        .map(|(_, known)| known)
}

/// Levenshtein's edit distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Description of a type's values for users.
fn scalar(ty: &str) -> String {
    match ty {
        "u8" => "a whole number from 0 to 255".into(),
        "u16" => "a whole number from 0 to 65535".into(),
        "u32" | "u64" | "usize" => "a whole number".into(),
        "bool" => "true or false".into(),
        other => format!("a value of the kind '{other}'"),
    }
}

fn shape(expected: &str) -> &str {
    match expected {
        "mapping start" => "a section (lines 'key: value', indented)",
        "sequence start" => "a list ('[a, b]', or one line '- a' per entry)",
        "string scalar" => "a single value",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Residency;

    fn wrong(yaml: &str) -> String {
        Config::parse(yaml, "pith.yaml").unwrap_err().to_string()
    }

    #[test]
    fn duplicate_settings_and_alias_bombs_are_refused() {
        let text = wrong("workers: 1\nworkers: 2\n");
        assert!(text.contains("a second time"), "{text}");
        let bomb: String = (1..40).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}]\n", n - 1)).collect();
        assert!(Config::parse(&format!("a0: &a0 [x]\n{bomb}"), "f").is_err());
        assert!(Config::parse(&"[".repeat(100_000), "f").is_err());
    }

    #[test]
    fn an_empty_file_is_the_default() {
        assert_eq!(Config::parse("", "pith.yaml").unwrap(), Config::default());
        assert_eq!(Config::parse("# nothing\n", "pith.yaml").unwrap(), Config::default());
    }

    #[test]
    fn contexts_outlive_the_process_if_the_database_does() {
        let residency = |yaml| Config::parse(yaml, "f").unwrap().residency();
        assert_eq!(residency(""), Residency::Durable);
        assert_eq!(residency("store: {path: memory}"), Residency::None);
        assert_eq!(residency("{store: {path: /x.db}, residency: soft}"), Residency::Soft);
        assert_eq!(residency("{store: {path: /x.db}, residency: none}"), Residency::None);
    }

    #[test]
    fn errors_name_file_line_and_column() {
        assert_eq!(
            wrong("amf:\n  region: 300\n"),
            "pith.yaml:2:11: a whole number from 0 to 255 is needed (here: 300)"
        );
        assert_eq!(
            wrong("amf: 5\n"),
            "pith.yaml:1:6: a section (lines 'key: value', indented) is needed (here: 5)"
        );
    }

    #[test]
    fn a_misspelt_setting_gets_a_suggestion() {
        let text = wrong("amf:\n  n2:\n    adresses: [10.0.0.1]\n");
        assert!(text.starts_with("pith.yaml:3:5: "), "{text}");
        assert!(text.contains("did you mean 'addresses'?"), "{text}");
    }

    #[test]
    fn a_misplaced_setting_gets_its_section_named() {
        assert!(wrong("t3512: 6s\n").contains("in 'amf.timers'"), "{}", wrong("t3512: 6s\n"));
    }

    #[test]
    fn errors_show_a_valid_value() {
        for (yaml, right) in [
            ("network: {plmns: [99970x]}", "such as 999/70"),
            ("amf: {n2: {sctp: tcp}}", "udp:PORT"),
            ("amf: {timers: {t3512: 54}}", "such as 54min"),
            ("amf: {security: {integrity: [nia0]}}", "choose one of nia1, nia2, nia3"),
            ("smf: {data_networks: [{pool: 10.0.0.0/8}]}", "'name' is missing"),
            (
                "residency: hard",
                "is not a residency: write auto, none, soft, durable, procedural, stateless, shared or embedded",
            ),
            ("state: {engine: etcd}", "choose one of file, redis"),
            ("state: {write: patch}", "choose one of replace, update"),
            ("state: {redis: {url: localhost}}", "write redis://HOST:PORT"),
            ("state: {redis: {url: 'redis://u:secret@h'}}", "'state.redis.password_file'"),
            ("residency: soft\nstate: {engine: redis, redis: {url: 'redis://10.0.0.1'}}", "write rediss://"),
            (
                "residency: soft\nstate: {engine: redis, redis: {url: 'rediss://10.0.0.1'}}",
                "set 'state.redis.ca'",
            ),
            ("residency: soft\nstate: {engine: redis, redis: {ca: /ca.pem}}", "the URL is without TLS"),
            ("residency: soft\nstate: {engine: redis, sync: batch}", "appendfsync"),
            ("set: {instance: 64}", "0 to 63"),
            ("set: {instance: 1}", "set 'state.engine' to redis"),
            (
                "residency: stateless\nstate: {engine: redis}\nset: {instance: 1}",
                "soft, durable or procedural",
            ),
            ("residency: soft\nstate: {engine: redis}\nset: {instance: 1, lease: 2min}", "500ms to 60s"),
            (
                "residency: soft\nstate: {engine: redis}\nset: {instance: 1}\namf: {pointer: 2}",
                "leave this out",
            ),
            ("residency: soft\nstate: {engine: redis, directory: /x}", "leave this out"),
            ("residency: durable\nstore: {path: memory}", "set 'store.path' to a file"),
            ("state: {sync: always}", "write none or batch"),
            ("workers: 1\nworkers: 2", "a second time"),
            ("network: [", ""),
            ("\tnetwork: 1", ""),
        ] {
            assert!(wrong(yaml).contains(right), "{}", wrong(yaml));
            assert!(wrong(yaml).starts_with("pith.yaml:"), "{}", wrong(yaml));
        }
    }

    #[test]
    fn all_findings_are_reported_with_their_positions() {
        let text = wrong("amf:\n  set: 1024\n  pointer: 64\n");
        assert!(text.contains("pith.yaml:2:8: ") && text.contains("\npith.yaml:3:12: "), "{text}");
    }

    #[test]
    fn all_mistakes_are_reported_at_once_with_their_lines() {
        let text = wrong(
            "amf:\n  region: 300\n  n2:\n    adresses: [10.0.0.1]\nsmf:\n  data_networks:\n  - name: a\n    pool: x\n    \
             mtu: 9\n  - name: b\n    pool: 10.9.0.0/16\n    mtu: 9001\nlog: {level: loud}\nworkers: 65\n",
        );
        let positions: Vec<_> =
            text.lines().map(|line| line.split(": ").next().unwrap_or_default()).collect();
        assert_eq!(
            positions,
            [
                "pith.yaml:2:11",
                "pith.yaml:4:5",
                "pith.yaml:8:11",
                "pith.yaml:12:10",
                "pith.yaml:13:14",
                "pith.yaml:14:10"
            ],
            "{text}"
        );
        assert!(text.contains("an MTU must be 1280 to 9000 (here: 9001)"), "{text}");
    }

    #[test]
    fn a_missing_file_error_names_the_command_that_writes_one() {
        let error = Config::load(Path::new("/nowhere/pith.yaml")).unwrap_err().to_string();
        assert!(error.contains("pith config default > /nowhere/pith.yaml"), "{error}");
    }
}
