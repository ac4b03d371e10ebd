//! What the core did that the specifications forbid.

use std::fmt;

/// Something that a real phone or gNB would have rejected, discarded or stumbled over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The clause that it breaks: `TS 24.501 4.4.4.2`.
    pub clause: &'static str,
    /// What happened.
    pub text: String,
}

impl Violation {
    /// A breach of that clause.
    pub fn new(clause: &'static str, text: impl Into<String>) -> Self {
        Self { clause, text: text.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.clause)
    }
}
