//! Headers of the SBI.

use std::borrow::Cow;

/// Headers in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers(Vec<(Cow<'static, str>, String)>);

impl Headers {
    /// Adds a header.
    pub fn push(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    /// Forbids caching, as the response contains a token (RFC 6749 5.1).
    pub(crate) fn forbid_storing(&mut self) {
        self.push("cache-control", "no-store");
        self.push("pragma", "no-cache");
    }

    /// The first value of a name, which is case-insensitive.
    pub fn get(&self, name: &str) -> Option<&str> {
        let named = |(n, _): &&(Cow<'static, str>, String)| n.eq_ignore_ascii_case(name);
        self.0.iter().find(named).map(|(_, value)| value.as_str())
    }

    /// All names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.as_str()))
    }
}
