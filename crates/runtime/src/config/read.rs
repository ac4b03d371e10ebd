//! From YAML to a [`Config`], or to sentences that say what to do.

use super::check::{self, Finding};
use super::place::Places;
use super::{Config, Described, Setting};
use serde_saphyr::Error as Yaml;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("can't read the configuration {}: {source}; 'pith config default > {}' writes one", path.display(), path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What it says is wrong: a line each.
    #[error("{}", lines(.0))]
    Wrong(Vec<Wrong>),
}

fn lines(wrongs: &[Wrong]) -> String {
    wrongs.iter().map(Wrong::to_string).collect::<Vec<_>>().join("\n")
}

/// One thing that is wrong, and where: `pith.yaml:12:5: sentence`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The file as it was named.
    pub file: String,
    /// Line, from 1 up.
    pub line: u64,
    /// Column, from 1 up.
    pub column: u64,
    /// What is wrong and what to do.
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

    /// Reads and checks a text; `file` is the name that errors show.
    pub fn parse(yaml: &str, file: &str) -> Result<Self, ConfigError> {
        let wrong = |(line, column), sentence| Wrong { file: file.into(), line, column, sentence };
        let config: Self = serde_saphyr::from_str(yaml)
            .map_err(|error| ConfigError::Wrong(vec![wrong(place(&error), sentence(&error))]))?;
        let findings = check::findings(&config);
        if findings.is_empty() {
            return Ok(config);
        }
        let places = Places::of(yaml);
        let find = |path: &str| places.as_ref().map_or((1, 1), |places| places.find(path));
        let locate = |Finding { path, sentence }| wrong(find(&path), sentence);
        Err(ConfigError::Wrong(findings.into_iter().map(locate).collect()))
    }
}

fn place(error: &Yaml) -> (u64, u64) {
    error.location().map_or((1, 1), |location| (location.line(), location.column()))
}

/// What is wrong, and what to do about it.
fn sentence(error: &Yaml) -> String {
    match error {
        Yaml::WithSnippet { error, .. } => sentence(error),
        Yaml::Message { msg, .. } => msg.clone(),
        Yaml::SerdeUnknownField { field, expected, .. } => unknown(field, expected),
        Yaml::SerdeMissingField { field, .. } => format!("'{field}' is missing here: add it"),
        Yaml::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("a key");
            format!("'{key}' stands here a second time: remove one of the two")
        }
        Yaml::InvalidScalar { ty, .. } => format!("{} is needed here", scalar(ty)),
        Yaml::Unexpected { expected, .. } => format!("{} is needed here", shape(expected)),
        other => {
            let text = other.without_snippet().to_string();
            text.split(" at line ").next().unwrap_or(&text).to_owned()
        }
    }
}

fn unknown(field: &str, expected: &[&str]) -> String {
    let known = expected.join(", ");
    if let Some(near) = nearest(field, expected.iter().copied()) {
        return format!("there is no setting '{field}' here: did you mean '{near}'? There are {known}");
    }
    match section_of(Config::SETTINGS, field, "") {
        Some(path) => format!("'{field}' does not belong here but in '{path}'. Here there are {known}"),
        None => format!("there is no setting '{field}' here: there are {known}"),
    }
}

/// The path of the section that has a setting of that name.
fn section_of(settings: &[Setting], name: &str, path: &str) -> Option<String> {
    settings.iter().find_map(|setting| {
        let path = if path.is_empty() { setting.name.into() } else { format!("{path}.{}", setting.name) };
        if setting.inner.iter().any(|inner| inner.name == name) {
            return Some(path);
        }
        section_of(setting.inner, name, &path)
    })
}

/// The known name that differs by at most two letters.
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

/// What a value of that type is, to people.
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
        "sequence start" => "a list ('[a, b]', or a line '- a' for each)",
        "string scalar" => "a single value",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(yaml: &str) -> String {
        Config::parse(yaml, "pith.yaml").unwrap_err().to_string()
    }

    #[test]
    fn a_setting_stands_once_and_aliases_do_not_multiply() {
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
    fn errors_name_file_line_and_column() {
        assert_eq!(
            wrong("amf:\n  region: 300\n"),
            "pith.yaml:2:11: a whole number from 0 to 255 is needed here"
        );
        assert_eq!(
            wrong("amf: 5\n"),
            "pith.yaml:1:6: a section (lines 'key: value', indented) is needed here"
        );
    }

    #[test]
    fn a_misspelt_setting_is_told_its_name() {
        let text = wrong("amf:\n  n2:\n    adresses: [10.0.0.1]\n");
        assert!(text.starts_with("pith.yaml:3:5: "), "{text}");
        assert!(text.contains("did you mean 'addresses'?"), "{text}");
    }

    #[test]
    fn a_misplaced_setting_is_told_its_section() {
        assert!(wrong("t3512: 6s\n").contains("in 'amf.timers'"), "{}", wrong("t3512: 6s\n"));
    }

    #[test]
    fn values_say_what_would_be_right() {
        for (yaml, right) in [
            ("network: {plmns: [99970x]}", "such as 999/70"),
            ("amf: {n2: {sctp: tcp}}", "udp:PORT"),
            ("amf: {timers: {t3512: 54}}", "such as 54min"),
            ("amf: {security: {integrity: [nia0]}}", "choose one of nia1, nia2, nia3"),
            ("smf: {data_networks: [{pool: 10.0.0.0/8}]}", "'name' is missing"),
            ("residency: durable", "write soft"),
            ("workers: 1\nworkers: 2", "a second time"),
            ("network: [", ""),
            ("\tnetwork: 1", ""),
        ] {
            assert!(wrong(yaml).contains(right), "{}", wrong(yaml));
            assert!(wrong(yaml).starts_with("pith.yaml:"), "{}", wrong(yaml));
        }
    }

    #[test]
    fn all_findings_are_told_with_their_places() {
        let text = wrong("amf:\n  set: 1024\n  pointer: 64\n");
        assert!(text.contains("pith.yaml:2:8: ") && text.contains("\npith.yaml:3:12: "), "{text}");
    }

    #[test]
    fn a_missing_file_says_how_to_get_one() {
        let error = Config::load(Path::new("/nowhere/pith.yaml")).unwrap_err().to_string();
        assert!(error.contains("pith config default > /nowhere/pith.yaml"), "{error}");
    }
}
