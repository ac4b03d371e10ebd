//! The tables of `docs/procedures.md`, for the tests that compare them with the codecs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The cells of a table's row by the names of their columns.
pub type Row = BTreeMap<String, String>;

/// A table, with the heading of its section.
pub struct Table {
    pub section: String,
    pub rows: Vec<Row>,
}

/// The repository's directory.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All tables of the document, in their order.
pub fn tables() -> Vec<Table> {
    let text = fs::read_to_string(root().join("docs/procedures.md")).unwrap();
    let (mut tables, mut section) = (Vec::new(), "");
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix('#') {
            section = heading.trim_start_matches('#').trim();
        } else if line.starts_with('|') {
            let columns = cells(line);
            let rule = lines.next().unwrap_or_default();
            assert!(cells(rule).iter().all(|cell| cell.trim_matches('-').is_empty()), "below {line}");
            let mut rows = Vec::new();
            while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
                let cells = cells(line);
                assert_eq!(cells.len(), columns.len(), "{line}");
                rows.push(columns.iter().cloned().zip(cells).collect());
            }
            tables.push(Table { section: section.to_owned(), rows });
        }
    }
    tables
}

/// The rows of a section's table.
pub fn rows_of(section: &str) -> Vec<Row> {
    let found = tables().into_iter().find(|table| table.section == section);
    found.unwrap_or_else(|| panic!("no table in '{section}'")).rows
}

/// The names in a cell: messages, or tests in code marks.
pub fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split(',').map(|name| name.trim().trim_matches('`')).filter(|name| !name.is_empty())
}

fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches('|');
    let line = line.strip_suffix('|').unwrap_or(line);
    line.split('|').map(|cell| cell.trim().to_owned()).collect()
}
