//! Which crate may depend on which (ARCHITECTURE.md, 'Bands').

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Crates from the top band down; each may use those of the bands above its own and, within its
/// band, those before it.
const BANDS: [(&str, &[&str]); 5] = [
    ("wire", &["types", "crypto", "nas", "ngap", "pfcp", "sbi"]),
    ("pure", &["nf", "upf"]),
    ("shell", &["datapath", "runtime"]),
    ("ran", &["ran", "world", "fuzz"]),
    ("bin", &["pith"]),
];

/// Crates outside the bands: tools for tests that no other crate uses.
const ASIDE: [&str; 1] = ["sctp-shim"];

/// Every dependency that goes down the bands, and every crate that is in no band.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let order: Vec<&str> = BANDS.iter().flat_map(|(_, crates)| crates.iter().copied()).collect();
    let mut problems = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        let path = entry?.path();
        let name =
            path.file_name().and_then(|name| name.to_str()).context("a crate's folder name")?.to_owned();
        let Some(place) = order.iter().position(|other| *other == name) else {
            if !ASIDE.contains(&name.as_str()) {
                problems.push(format!("crates/{name} stands in no band: add it to xtask/src/bands.rs"));
            }
            continue;
        };
        let manifest = fs::read_to_string(path.join("Cargo.toml"))?;
        for used in dependencies(&manifest) {
            if order.iter().position(|other| *other == used).is_none_or(|other| other >= place) {
                problems.push(format!(
                    "crates/{name} depends on pith-{used}, which is not above it in the bands"
                ));
            }
        }
    }
    Ok(problems)
}

/// The crates of this workspace below `[dependencies]`; tests may look anywhere.
fn dependencies(manifest: &str) -> Vec<&str> {
    let own = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let own = own.split("\n[").next().unwrap_or_default();
    own.lines()
        .filter_map(|line| line.strip_prefix("pith-"))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .collect()
}
