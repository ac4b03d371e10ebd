//! Checks that every setting is read by code outside the configuration module.

use pith_runtime::config::{Config, Described as _, Setting};
use std::fs;
use std::path::{Path, PathBuf};

/// The sources that may read settings.
fn sources() -> String {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut text = String::new();
    let mut places: Vec<PathBuf> = vec![crates.join("runtime/src"), crates.join("pith/src")];
    while let Some(place) = places.pop() {
        for entry in fs::read_dir(&place).expect("a folder of sources").flatten() {
            let path = entry.path();
            let is_declaration = path.ends_with("config/check.rs") || path.ends_with("config/read.rs");
            if path.is_dir() {
                places.push(path);
            } else if !is_declaration && path.extension().is_some_and(|extension| extension == "rs") {
                let source = fs::read_to_string(&path).expect("a source");
                text.push_str(source.split("#[cfg(test)]").next().unwrap_or_default());
            }
        }
    }
    text
}

/// The paths of settings that no source reads.
fn unused(settings: &[Setting], path: &str, sources: &str, found: &mut Vec<String>) {
    for setting in settings {
        let path = format!("{path}.{}", setting.name);
        if setting.inner.is_empty() {
            let read = [format!(".{}", setting.name), format!("{{ {}", setting.name)];
            let is_read = read.iter().any(|read| {
                sources.match_indices(read.as_str()).any(|(at, _)| {
                    let rest = sources.get(at + read.len()..).unwrap_or_default();
                    !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
                })
            });
            if !is_read {
                found.push(path);
            }
        } else {
            unused(setting.inner, &path, sources, found);
        }
    }
}

#[test]
fn every_setting_is_read() {
    let mut found = Vec::new();
    unused(Config::SETTINGS, "", &sources(), &mut found);
    assert_eq!(found, [""; 0]);
}

#[test]
fn an_unread_setting_is_found() {
    const LONELY: &[Setting] = &[Setting { name: "t3591", doc: &[], inner: &[] }];
    let mut found = Vec::new();
    unused(LONELY, "", "timers.t35910; timers.t3592", &mut found);
    assert_eq!(found, [".t3591"]);
}
