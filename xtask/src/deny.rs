//! The dependency policy: licences that go with Apache-2.0, and crates that were tried and found
//! wanting.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const LICENCES: [&str; 12] = [
    "Apache-2.0",
    "MIT",
    "MIT-0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "Unicode-3.0",
    "Unlicense",
    "BSL-1.0",
    "CC0-1.0",
];

/// Avoided crates, and why.
const AVOIDED: [(&str, &str); 5] = [
    ("asn1-codecs", "10 to 17 times slower; drops a message for one unknown IE"),
    ("sctp-proto", "no PPID 60, no heartbeats"),
    ("rs-pfcp", "3 µs and 73 allocations a message; drags in command-line crates"),
    ("iceoryx2", "a killed peer goes unnoticed"),
    ("openssl-sys", "one crypto library is enough: aws-lc-rs"),
];

/// Every dependency with a licence that is not on the list, or that is avoided.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("packages in cargo metadata")?;
    Ok(packages.iter().filter_map(problem).collect())
}

fn problem(package: &Value) -> Option<String> {
    let name = package["name"].as_str().unwrap_or_default();
    if let Some((_, why)) = AVOIDED.iter().find(|(avoided, _)| *avoided == name) {
        return Some(format!("{name}: avoided here ({why})"));
    }
    let licence = package["license"].as_str().unwrap_or("none");
    (!allowed(licence))
        .then(|| format!("{name}: licence '{licence}' is not on the list in xtask/src/deny.rs"))
}

/// An SPDX expression: all parts of some alternative are on the list.
fn allowed(expression: &str) -> bool {
    let flat = expression.replace(['(', ')'], " ").replace('/', " OR ");
    flat.split(" AND ").all(|part| {
        part.split(" OR ").any(|licence| {
            let licence = licence.trim().trim_end_matches(" WITH LLVM-exception");
            LICENCES.contains(&licence)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        assert!(allowed("MIT OR Apache-2.0"));
        assert!(allowed("(MIT OR GPL-3.0) AND Unicode-3.0"));
        assert!(allowed("ISC AND (Apache-2.0 OR ISC)"));
        assert!(!allowed("GPL-3.0"));
        assert!(!allowed("MIT AND GPL-2.0"));
        assert!(!allowed("none"));
    }
}
