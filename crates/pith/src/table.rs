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

/// A table of objects: the members named first, then whatever else the objects have.
pub fn of_objects(first: &[&str], objects: &[Value]) -> String {
    let mut members: Vec<&str> = Vec::new();
    let all = objects.iter().filter_map(Value::as_object).flat_map(|object| object.keys());
    for member in all {
        if !members.contains(&member.as_str()) {
            members.push(member);
        }
    }
    members.sort_by_key(|member| first.iter().position(|known| known == member).unwrap_or(first.len()));
    let headings: Vec<_> = members.iter().map(|member| heading(member)).collect();
    let row = |object: &Value| members.iter().map(|member| cell(&object[*member])).collect();
    render(&headings, &objects.iter().map(row).collect::<Vec<_>>())
}

/// `amfUeNgapId` as `AMF UE NGAP ID`.
fn heading(member: &str) -> String {
    let mut text = String::new();
    for c in member.chars() {
        if c.is_ascii_uppercase() {
            text.push(' ');
        }
        text.push(c.to_ascii_uppercase());
    }
    text
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
            json!({ "zeta": 1, "supi": "imsi-1", "amfUeNgapId": null, "dnns": ["a", "b"] }),
            json!({ "supi": "imsi-1000", "gnb": { "name": "x" } }),
        ];
        let table = of_objects(&["supi", "amfUeNgapId"], &rows);
        let expected = "\
SUPI       AMF UE NGAP ID  DNNS  ZETA  GNB
imsi-1     -               a, b  1     -
imsi-1000  -               -     -     name x
";
        assert_eq!(table, expected);
    }
}
