//! Violations of the specifications by the core.

use std::fmt;

/// A message or action of the core that a real UE or gNB would reject, discard or fail on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The violated clause, such as `TS 24.501 4.4.4.2`.
    pub clause: &'static str,
    /// Description.
    pub text: String,
}

impl Violation {
    /// A violation of that clause.
    pub fn new(clause: &'static str, text: impl Into<String>) -> Self {
        Self { clause, text: text.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.clause)
    }
}
