//! Limits of JSON documents, checked on a peer's octets before a value is allocated.
//!
//! The check reads each octet once, is not recursive, and allocates only for the names of open objects. It
//! covers the structure of JSON; the parser, which reads the document afterwards, checks literals and
//! numbers.

use std::borrow::Cow;

/// Limits of a document.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Largest nesting of arrays and objects.
    pub depth: usize,
    /// Largest number of values, including arrays and objects.
    pub nodes: usize,
}

/// Limits of an SBI message. The deepest message of Release 17 that Pith uses (NFProfile) has 9 levels; 32
/// leave room for extensions. 32,000 nodes correspond to 16,000 leaves, each within an object.
pub const MESSAGE: Bounds = Bounds { depth: 32, nodes: 32_000 };

/// Largest number of characters of a number; the shortest form of any IEEE 754 double is shorter.
const NUMBER_MAX: usize = 64;

/// The reason why a document is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The text is not JSON.
    #[error("octet {0} is not JSON")]
    Syntax(usize),
    /// The text is not UTF-8 (RFC 8259 8.1).
    #[error("octet {0} is not UTF-8")]
    Encoding(usize),
    /// The nesting is too deep.
    #[error("more than {0} levels of arrays and objects")]
    Depth(usize),
    /// There are too many values.
    #[error("more than {0} values")]
    Nodes(usize),
    /// A number is too long, or exceeds the range of IEEE 754 doubles (RFC 8259 6).
    #[error("the number at octet {0} is out of range")]
    Number(usize),
    /// An object has a duplicate name (TS 33.117 4.3.6.3).
    #[error("the name '{0}' occurs twice in an object")]
    DuplicateName(String),
}

/// Checks a document against its limits, and that names are unique in each object (TS 33.117 4.3.6.3).
pub fn check(document: &[u8], bounds: &Bounds) -> Result<(), Violation> {
    std::str::from_utf8(document).map_err(|error| Violation::Encoding(error.valid_up_to()))?;
    Scan::new(document, bounds).run(Expect::Value)
}

/// Checks consecutive documents, such as one per line; the limits apply to all of them together.
pub fn check_sequence(documents: &[u8], bounds: &Bounds) -> Result<(), Violation> {
    std::str::from_utf8(documents).map_err(|error| Violation::Encoding(error.valid_up_to()))?;
    let mut scan = Scan { sequence: true, ..Scan::new(documents, bounds) };
    scan.run(Expect::EndOfDocument)
}

/// The expected next token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    ValueOrEnd,
    Name,
    NameOrEnd,
    Colon,
    CommaOrEnd,
    EndOfDocument,
}

/// An open array or object.
enum Open {
    Array,
    /// Index of the object's first name in `Scan::names`.
    Object(usize),
}

struct Scan<'a> {
    document: &'a [u8],
    /// Whether further documents may follow.
    sequence: bool,
    at: usize,
    nodes: usize,
    bounds: &'a Bounds,
    open: Vec<Open>,
    /// Names of open objects, unescaped.
    names: Vec<Cow<'a, [u8]>>,
}

impl<'a> Scan<'a> {
    const fn new(document: &'a [u8], bounds: &'a Bounds) -> Self {
        Self { document, sequence: false, at: 0, nodes: 0, bounds, open: Vec::new(), names: Vec::new() }
    }

    fn run(&mut self, begin: Expect) -> Result<(), Violation> {
        let mut expect = begin;
        while let Some(octet) = self.next_token() {
            if self.sequence && expect == Expect::EndOfDocument {
                expect = Expect::Value;
            }
            expect = self.token(expect, octet)?;
        }
        if expect == Expect::EndOfDocument { Ok(()) } else { Err(Violation::Syntax(self.at)) }
    }

    /// The first octet of the next token.
    fn next_token(&mut self) -> Option<u8> {
        let blank = |octet: &&u8| matches!(**octet, b' ' | b'\t' | b'\n' | b'\r');
        let rest = self.document.get(self.at..)?;
        self.at += rest.iter().take_while(blank).count();
        self.document.get(self.at).copied()
    }

    fn token(&mut self, expect: Expect, octet: u8) -> Result<Expect, Violation> {
        use Expect::*;
        match (expect, octet) {
            (Value | ValueOrEnd, b'{') => self.begin(Open::Object(self.names.len()), NameOrEnd),
            (Value | ValueOrEnd, b'[') => self.begin(Open::Array, ValueOrEnd),
            (Value | ValueOrEnd, b'"') => {
                self.string()?;
                self.end_value(true)
            }
            (Value | ValueOrEnd, b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                self.scalar()?;
                self.end_value(true)
            }
            (Name | NameOrEnd, b'"') => self.name(),
            (Colon, b':') => self.step(Value),
            (CommaOrEnd, b',') => match self.open.last() {
                Some(Open::Object(_)) => self.step(Name),
                _ => self.step(Value),
            },
            (ValueOrEnd | CommaOrEnd, b']') => self.end_array(),
            (NameOrEnd | CommaOrEnd, b'}') => self.end_object(),
            _ => Err(Violation::Syntax(self.at)),
        }
    }

    fn step(&mut self, expect: Expect) -> Result<Expect, Violation> {
        self.at += 1;
        Ok(expect)
    }

    fn begin(&mut self, open: Open, expect: Expect) -> Result<Expect, Violation> {
        if self.open.len() >= self.bounds.depth {
            return Err(Violation::Depth(self.bounds.depth));
        }
        self.count()?;
        self.open.push(open);
        self.step(expect)
    }

    fn end_array(&mut self) -> Result<Expect, Violation> {
        match self.open.pop() {
            Some(Open::Array) => self.at += 1,
            _ => return Err(Violation::Syntax(self.at)),
        }
        self.end_value(false)
    }

    fn end_object(&mut self) -> Result<Expect, Violation> {
        let Some(Open::Object(from)) = self.open.pop() else { return Err(Violation::Syntax(self.at)) };
        let names = self.names.get_mut(from..).unwrap_or_default();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
        if let Some(pair) = twice {
            let shown: String = String::from_utf8_lossy(&pair[0]).chars().take(64).collect();
            return Err(Violation::DuplicateName(shown));
        }
        self.names.truncate(from);
        self.at += 1;
        self.end_value(false)
    }

    fn end_value(&mut self, count: bool) -> Result<Expect, Violation> {
        if count {
            self.count()?;
        }
        Ok(if self.open.is_empty() { Expect::EndOfDocument } else { Expect::CommaOrEnd })
    }

    fn count(&mut self) -> Result<(), Violation> {
        self.nodes += 1;
        if self.nodes > self.bounds.nodes { Err(Violation::Nodes(self.bounds.nodes)) } else { Ok(()) }
    }

    fn name(&mut self) -> Result<Expect, Violation> {
        let from = self.at;
        let escaped = self.string()?;
        let quoted = self.document.get(from..self.at).unwrap_or_default();
        let name = if escaped {
            let text: String = serde_json::from_slice(quoted).map_err(|_| Violation::Syntax(from))?;
            Cow::Owned(text.into_bytes())
        } else {
            Cow::Borrowed(quoted)
        };
        self.names.push(match name {
            Cow::Borrowed(quoted) => Cow::Borrowed(quoted.get(1..quoted.len() - 1).unwrap_or_default()),
            owned => owned,
        });
        Ok(Expect::Colon)
    }

    /// Skips a string; returns whether it has escapes.
    fn string(&mut self) -> Result<bool, Violation> {
        let from = self.at;
        let mut escaped = false;
        let mut octets = self.document.iter().enumerate().skip(from + 1);
        while let Some((at, octet)) = octets.next() {
            match octet {
                b'"' => {
                    self.at = at + 1;
                    return Ok(escaped);
                }
                b'\\' => {
                    escaped = true;
                    octets.next();
                }
                _ => {}
            }
        }
        Err(Violation::Syntax(from))
    }

    /// Skips a number or literal.
    fn scalar(&mut self) -> Result<(), Violation> {
        let from = self.at;
        let rest = self.document.get(from..).unwrap_or_default();
        let within = |octet: &&u8| octet.is_ascii_alphanumeric() || b"+-.".contains(octet);
        let length = rest.iter().take(NUMBER_MAX + 1).take_while(within).count();
        self.at = from + length;
        let text = rest.get(..length).unwrap_or_default();
        let literal = text.first().is_some_and(u8::is_ascii_lowercase);
        let digits = text.iter().all(u8::is_ascii_digit) && length < 19;
        if literal || digits {
            return Ok(());
        }
        let value = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
        match value {
            Some(value) if value.is_finite() && length <= NUMBER_MAX => Ok(()),
            _ => Err(Violation::Number(from)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<(), Violation> {
        check(text.as_bytes(), &Bounds { depth: 4, nodes: 20 })
    }

    #[test]
    fn valid_json_passes_the_check() {
        for text in [
            "1",
            "-1.5e-3",
            " null ",
            r#""a\"b""#,
            "[]",
            "{}",
            "[1, [2, {}], \"]\"]",
            r#"{"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}], "c\u0061": true}"#,
            r#"{"": 18446744073709551615, "é": 1e308}"#,
        ] {
            assert_eq!(checked(text), Ok(()), "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn duplicate_names_in_an_object_are_refused_in_any_escaping() {
        for text in [r#"{"a":1,"b":2,"a":3}"#, r#"{"a":1,"\u0061":2}"#, r#"[{"x":{"a":1,"a":1}}]"#] {
            assert_eq!(checked(text), Err(Violation::DuplicateName("a".into())), "{text}");
        }
    }

    #[test]
    fn depth_and_number_of_values_are_bounded() {
        assert_eq!(checked("[[[[]]]]"), Ok(()));
        assert_eq!(checked("[[[[[]]]]]"), Err(Violation::Depth(4)));
        assert_eq!(checked(&"[".repeat(1 << 20)), Err(Violation::Depth(4)));
        let items = |count: usize| format!("[{}]", vec!["0"; count].join(","));
        assert_eq!(checked(&items(19)), Ok(()));
        assert_eq!(checked(&items(20)), Err(Violation::Nodes(20)));
        assert_eq!(checked(&format!("[{}]", vec!["[]"; 20].join(","))), Err(Violation::Nodes(20)));
    }

    #[test]
    fn numbers_are_those_of_ieee_754() {
        for text in ["1e309", "-1e999999999", &"9".repeat(400), &format!("0.{}1", "0".repeat(100))] {
            assert!(matches!(checked(&format!("[{text}]")), Err(Violation::Number(1))), "{text}");
        }
    }

    #[test]
    fn documents_may_follow_each_other_within_the_bounds_of_one() {
        let bounds = Bounds { depth: 2, nodes: 3 };
        for text in ["", "{}\n{}\n", "1 2 3"] {
            assert_eq!(check_sequence(text.as_bytes(), &bounds), Ok(()), "{text}");
        }
        for text in ["{}\n{", "1 2 3 4", "{},{}", "{\"a\":1,\"a\":1}", "{\"a\":[[]]}"] {
            assert!(check_sequence(text.as_bytes(), &bounds).is_err(), "{text}");
        }
    }

    #[test]
    fn invalid_json_is_refused() {
        for text in [
            "",
            " ",
            "[",
            "]",
            "{",
            "}",
            "[1,]",
            "[1 2]",
            "{,}",
            "{1:2}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            "[1}",
            "{\"a\":1]",
            "1 2",
            "\"",
            "\"\\",
            "[\"a\\\"]",
            ":",
            r#"{"\ud800":1}"#,
        ] {
            assert!(checked(text).is_err(), "{text}");
        }
        assert_eq!(check(b"{\"a\":\"\xff\"}", &MESSAGE), Err(Violation::Encoding(6)));
    }
}
