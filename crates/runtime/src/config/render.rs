//! The output of `pith config default`: every setting with its default and documentation.

use super::{Config, Described, Setting};
use serde_json::Value;
use std::fmt::Write;

const HEAD: &str = "\
# Configuration of Pith: every setting with its default. Keep the settings that you change, remove the rest.
# 'pith config check FILE' reports mistakes.
";

/// The default configuration with its documentation, as YAML.
pub fn default_yaml() -> String {
    let value = serde_json::to_value(Config::default()).expect("a configuration has text keys only");
    let mut yaml = HEAD.to_owned();
    section(&mut yaml, Config::SETTINGS, &value, 0);
    yaml
}

fn section(yaml: &mut String, settings: &[Setting], value: &Value, depth: usize) {
    for each in settings {
        if depth == 0 {
            yaml.push('\n');
        }
        for line in each.doc {
            line_at(yaml, depth, &format!("#{line}"));
        }
        setting(yaml, each, &value[each.name], depth);
    }
}

fn setting(yaml: &mut String, setting: &Setting, value: &Value, depth: usize) {
    let name = setting.name;
    match value {
        Value::Null if !setting.inner.is_empty() => {
            line_at(yaml, depth, &format!("# {name}:"));
            setting.inner.iter().for_each(|each| item_setting(yaml, each, depth, 3));
        }
        Value::Null => line_at(yaml, depth, &format!("# {name}:")),
        Value::Object(_) if !setting.inner.is_empty() => {
            line_at(yaml, depth, &format!("{name}:"));
            section(yaml, setting.inner, value, depth + 1);
        }
        Value::Array(items) if !setting.inner.is_empty() && !items.is_empty() => {
            line_at(yaml, depth, &format!("{name}:"));
            items.iter().for_each(|item| list_item(yaml, setting.inner, item, depth + 1));
        }
        Value::Array(_) if !setting.inner.is_empty() => {
            line_at(yaml, depth, &format!("{name}: []"));
            line_at(yaml, depth, "# Settings of each entry:");
            setting.inner.iter().for_each(|each| item_setting(yaml, each, depth, 3));
        }
        Value::Object(entries) if entries.len() > 2 => {
            line_at(yaml, depth, &format!("{name}:"));
            entries
                .iter()
                .for_each(|(key, value)| line_at(yaml, depth + 1, &format!("{key}: {}", flow(value))));
        }
        plain => line_at(yaml, depth, &format!("{name}: {}", flow(plain))),
    }
}

/// The settings of an entry of an empty list, as comments.
fn item_setting(yaml: &mut String, setting: &Setting, depth: usize, indent: usize) {
    let space = " ".repeat(indent);
    for line in setting.doc {
        line_at(yaml, depth, &format!("#{space}#{line}"));
    }
    line_at(yaml, depth, &format!("#{space}{}:", setting.name));
    setting.inner.iter().for_each(|each| item_setting(yaml, each, depth, indent + 2));
}

/// The lines of a list entry; the first line follows a dash.
fn list_item(yaml: &mut String, settings: &[Setting], item: &Value, depth: usize) {
    let start = yaml.len();
    section(yaml, settings, item, depth + 1);
    let dash = start + depth * 2;
    yaml.replace_range(dash..dash + 1, "-");
}

fn line_at(yaml: &mut String, depth: usize, line: &str) {
    writeln!(yaml, "{:indent$}{line}", "", indent = depth * 2).expect("a String takes everything");
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{key}: {}", flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Whether every YAML reader reads the text as a string without quotes.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 8] = ["true", "false", "null", "yes", "no", "on", "off", ""];
    let safe = |b: u8| b.is_ascii_alphanumeric() || b"._/:-".contains(&b);
    text.bytes().all(safe)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.contains(|c: char| !(c.is_ascii_digit() || c == '.' || c == 'e'))
        && !text.ends_with(':')
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
        || text.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_default_parses_to_the_default() {
        let yaml = default_yaml();
        assert_eq!(Config::parse(&yaml, "default").unwrap(), Config::default(), "{yaml}");
    }

    #[test]
    fn every_setting_is_printed_with_its_documentation() {
        fn look(settings: &[Setting], yaml: &str) {
            for setting in settings {
                assert!(setting.doc.iter().all(|line| yaml.contains(line)), "{setting:?}");
                assert!(yaml.contains(&format!("{}:", setting.name)), "{setting:?}");
                look(setting.inner, yaml);
            }
        }
        let yaml = default_yaml();
        look(Config::SETTINGS, &yaml);
    }

    #[test]
    fn ambiguous_texts_are_quoted() {
        for (text, plain) in [
            ("999/70", true),
            ("54min", true),
            ("127.0.0.5:38412", true),
            ("10.45.0.1", true),
            ("000001", false),
            ("1e5", false),
            ("no", false),
            ("1 Gbps", false),
            ("[::1]:80", false),
            ("", false),
        ] {
            assert_eq!(is_plain(text), plain, "{text}");
        }
    }
}
