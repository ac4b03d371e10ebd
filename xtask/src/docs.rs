//! What the documents say of the code: the files, names and links in them are there.

use crate::sources::collect;
use anyhow::Result;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// All problems of all documents.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let code = Code::read(root)?;
    let mut problems = Vec::new();
    for document in documents(root)? {
        let text = fs::read_to_string(&document)?;
        let name = document.strip_prefix(root)?.display().to_string();
        for wrong in quoted(&text).filter(|token| !code.has(token)) {
            problems.push(format!("{name}: '{wrong}' is not in the code"));
        }
        let folder = document.parent().unwrap_or(root);
        for link in links(&text).filter(|link| !folder.join(link).exists()) {
            problems.push(format!("{name}: the link to '{link}' leads nowhere"));
        }
    }
    Ok(problems)
}

fn documents(root: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = vec![root.to_path_buf(), root.join("docs"), root.join("docs/adr")];
    for entry in fs::read_dir(root.join("crates"))? {
        folders.push(entry?.path());
    }
    let mut documents = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "md") {
                documents.push(path);
            }
        }
    }
    documents.sort();
    Ok(documents)
}

/// What the sources are called, and all words in them.
struct Code {
    files: Vec<String>,
    words: HashSet<String>,
}

impl Code {
    fn read(root: &Path) -> Result<Self> {
        let mut paths = Vec::new();
        collect(&root.join("crates"), &mut paths)?;
        collect(&root.join("xtask"), &mut paths)?;
        let (mut files, mut words) = (Vec::new(), HashSet::new());
        for path in paths {
            words.extend(names(&fs::read_to_string(&path)?).map(str::to_owned));
            let file = format!("/{}", path.strip_prefix(root)?.display());
            words.extend(names(&file).map(str::to_owned));
            files.push(file);
        }
        Ok(Self { files, words })
    }

    /// Whether a quoted token, if it names a source file or a path such as `Type::function`, is right.
    fn has(&self, token: &str) -> bool {
        if token.ends_with(".rs") {
            return self.files.iter().any(|file| file.ends_with(&format!("/{token}")));
        }
        !token.contains("::") || names(token).all(|name| self.words.contains(name))
    }
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty())
}

/// The texts between backticks, outside of fenced blocks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2))
}

/// Links to files of the repository.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|link| !link.is_empty() && !link.contains("://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_files_have_to_be_there() {
        let words = ["amf", "Amf", "handle"].map(str::to_owned).into();
        let code = Code { files: vec!["/crates/nf/src/amf/mod.rs".into()], words };
        assert!(code.has("amf/mod.rs") && code.has("Amf::handle") && code.has("anything else"));
        assert!(!code.has("smf/mod.rs") && !code.has("f/mod.rs") && !code.has("Amf::gone"));
    }

    #[test]
    fn code_is_not_prose() {
        let text = "`a::b` and\n```text\n`not::this`\n```\n`c.rs` [x](docs/y.md#z) [w](https://w)";
        assert_eq!(quoted(text).collect::<Vec<_>>(), ["a::b", "c.rs"]);
        assert_eq!(links(text).collect::<Vec<_>>(), ["docs/y.md"]);
    }
}
