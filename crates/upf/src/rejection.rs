//! Rejections of requests, in the terms of the response.

use pith_pfcp::ie::{Cause, FailedRuleId, OffendingIe};
use pith_pfcp::{IeError, IeType};
use pith_types::words_of_name;

/// The content of a rejecting response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    pub cause: Cause,
    pub offending_ie: Option<IeType>,
    /// The first rule that could not be created or modified (TS 29.244 6.3.2.3, 6.3.3.3).
    pub failed_rule: Option<FailedRuleId>,
}

impl Rejection {
    /// A rejection for `cause`.
    pub fn new(cause: Cause) -> Self {
        Rejection { cause, offending_ie: None, failed_rule: None }
    }

    /// The rejection of a rule that cannot be stored or applied.
    pub fn rule(rule: FailedRuleId) -> Self {
        Rejection { failed_rule: Some(rule), ..Rejection::new(Cause::RuleCreationModificationFailure) }
    }

    /// Sets the offending IE.
    pub fn because_of(self, ie_type: IeType) -> Self {
        Rejection { offending_ie: Some(ie_type), ..self }
    }

    /// Replaces the cause.
    pub fn with_cause(self, cause: Cause) -> Self {
        Rejection { cause, ..self }
    }

    /// The Offending IE of the response.
    pub fn offending(&self) -> Option<OffendingIe> {
        self.offending_ie.map(OffendingIe)
    }
}

impl From<Cause> for Rejection {
    fn from(cause: Cause) -> Self {
        Rejection::new(cause)
    }
}

impl From<IeError> for Rejection {
    fn from(error: IeError) -> Self {
        Rejection::new(error.cause()).because_of(error.ie_type)
    }
}

impl std::fmt::Display for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&words_of_name(&format!("{:?}", self.cause)))?;
        if let Some(ie_type) = self.offending_ie {
            write!(f, ", offending IE {ie_type}")?;
        }
        if let Some(rule) = self.failed_rule {
            write!(f, ", failed rule {rule}")?;
        }
        Ok(())
    }
}
