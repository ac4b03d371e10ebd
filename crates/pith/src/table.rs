//! Tables for people, made of the JSON that programs read.

use serde_json::Value;

/// Rows under headings; columns as wide as they need to be.
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

/// A table of objects: a heading and a JSON pointer (RFC 6901) for each column.
pub fn of_objects(columns: &[(&str, &str)], objects: &[Value]) -> String {
    let headings: Vec<_> = columns.iter().map(|(heading, _)| heading.to_string()).collect();
    let at = |object: &Value, pointer: &str| object.pointer(pointer).map_or_else(|| "-".into(), cell);
    let row = |object: &Value| columns.iter().map(|(_, pointer)| at(object, pointer)).collect();
    render(&headings, &objects.iter().map(row).collect::<Vec<_>>())
}

/// A value in the space of a cell.
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
    fn columns_stand_in_order_and_under_each_other() {
        let rows = [
            json!({ "supi": "imsi-1", "id": null, "dnns": ["a", "b"] }),
            json!({ "supi": "imsi-1000", "gnb": { "name": "x" } }),
        ];
        let columns = [("SUPI", "/supi"), ("ID", "/id"), ("DNNS", "/dnns"), ("GNB", "/gnb/name")];
        let expected = "\
SUPI       ID  DNNS  GNB
imsi-1     -   a, b  -
imsi-1000  -   -     x
";
        assert_eq!(of_objects(&columns, &rows), expected);
    }
}
