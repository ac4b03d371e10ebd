//! The corpus: seed inputs, and all inputs that ever found a bug.
//!
//! `corpus/<target>/*.hex` has one input on each line: a name, a space, hexadecimal digits. `*.txt`
//! has text instead of digits, with the escapes `\n`, `\r`, `\t`, `\\` and `\xNN`. `#` starts a
//! comment. Any other file is one input, unescaped.

use anyhow::{Context, Result, anyhow};
use std::fs;
use std::path::{Path, PathBuf};

/// An input and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// File, and name within the file.
    pub name: String,
    /// The input.
    pub octets: Vec<u8>,
}

/// All inputs of a corpus, sorted by file name.
pub fn read(corpus: &str) -> Result<Vec<Seed>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(corpus);
    let entries = fs::read_dir(&folder).with_context(|| format!("no corpus {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    let mut seeds = Vec::new();
    for file in files {
        seeds.extend(read_file(&file)?);
    }
    Ok(seeds)
}

/// The inputs of a file: one for each line if its name ends in `.hex` or `.txt`, else one.
pub fn read_file(file: &Path) -> Result<Vec<Seed>> {
    let octets = fs::read(file).with_context(|| file.display().to_string())?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let read: fn(&str) -> Option<Vec<u8>> = match file.extension().and_then(|ending| ending.to_str()) {
        Some("hex") => |digits| hex::decode(digits).ok(),
        Some("txt") => unescape,
        _ => return Ok(vec![Seed { name: name.into_owned(), octets }]),
    };
    let text = String::from_utf8(octets).with_context(|| file.display().to_string())?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let seed = |line: &str| {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        let octets = read(value).ok_or_else(|| anyhow!("{name}: {key} can't be read"))?;
        Ok(Seed { name: format!("{name}: {key}"), octets })
    };
    lines.map(seed).collect()
}

/// Octets of escaped text; `None` if an escape is invalid.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut octets = text.bytes();
    while let Some(octet) = octets.next() {
        out.push(match octet {
            b'\\' => match octets.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'\\' => b'\\',
                b'x' => {
                    let mut digit = || char::from(octets.next()?).to_digit(16);
                    (digit()? << 4 | digit()?) as u8
                }
                _ => return None,
            },
            octet => octet,
        });
    }
    Some(out)
}

/// Octets as escaped text, as in a `.txt` file.
pub fn escape(octets: &[u8]) -> String {
    let escaped = |octet: &u8| match octet {
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        b'\\' => "\\\\".to_owned(),
        b' '..=b'~' => char::from(*octet).to_string(),
        octet => format!("\\x{octet:02x}"),
    };
    octets.iter().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_round_trips() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(unescape(&escape(&all)), Some(all));
        assert_eq!(unescape("\\x4"), None);
    }
}
