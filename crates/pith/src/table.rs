//! Tables, generated from the API's JSON.

use serde_json::Value;

/// Characters of the widest cell: an NF instance ID.
const WIDEST: usize = 36;

/// Rows under headings, with columns of the needed width.
pub fn render(headings: &[String], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.chain(headings.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..headings.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let body: String = rows.iter().map(|row| line(row)).collect();
    line(headings) + &body
}

/// A table of objects: a heading and a JSON pointer for each column.
pub fn of_objects(columns: &[(&str, &str)], objects: &[Value]) -> String {
    let headings: Vec<_> = columns.iter().map(|(heading, _)| heading.to_string()).collect();
    let row = |object: &Value| columns.iter().map(|(_, pointer)| clipped(at(object, pointer))).collect();
    render(&headings, &objects.iter().map(row).collect::<Vec<_>>())
}

/// The cell at a JSON pointer (RFC 6901); `*` selects every item of an array.
fn at(object: &Value, pointer: &str) -> String {
    let Some((list, pointer)) = pointer.split_once("/*") else {
        return object.pointer(pointer).map_or_else(|| "-".into(), cell);
    };
    let items = object.pointer(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    match items {
        [] => "-".into(),
        items => items.iter().map(|item| at(item, pointer)).collect::<Vec<_>>().join(", "),
    }
}

/// A cell of limited width.
fn clipped(cell: String) -> String {
    if cell.chars().count() <= WIDEST {
        return cell;
    }
    cell.chars().take(WIDEST - 1).chain(['…']).collect()
}

/// A value as the text of a cell.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| format!("{name} {}", cell(value)))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_are_ordered_and_aligned() {
        let rows = [
            json!({ "supi": "imsi-1", "id": null, "dnns": ["a", "b"], "sessions": [] }),
            json!({ "supi": "imsi-1000", "gnb": { "name": "x" }, "sessions": [{ "id": 1 }, { "id": 5 }] }),
        ];
        let columns = [
            ("SUPI", "/supi"),
            ("ID", "/id"),
            ("DNNS", "/dnns"),
            ("SESSIONS", "/sessions/*/id"),
            ("GNB", "/gnb/name"),
        ];
        let expected = "\
SUPI       ID  DNNS  SESSIONS  GNB
imsi-1     -   a, b  -         -
imsi-1000  -   -     1, 5      x
";
        assert_eq!(of_objects(&columns, &rows), expected);
    }

    #[test]
    fn a_long_cell_is_truncated() {
        let rows = [json!({ "name": "n".repeat(150) })];
        let table = of_objects(&[("NAME", "/name")], &rows);
        assert_eq!(table.lines().nth(1), Some(&*format!("{}…", "n".repeat(35))));
    }
}
