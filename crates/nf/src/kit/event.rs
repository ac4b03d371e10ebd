//! What an NF tells the operator: turned to logs and metrics by the shell.

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Every message.
    Debug,
    /// One line a completed procedure.
    Info,
    /// A peer misbehaved.
    Warn,
    /// The operator has to act.
    Error,
}

/// One thing that happened. Personal identities in it are masked by whoever makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// How much it matters.
    pub level: Level,
    /// The procedure by its name in the specifications, `Registration`; empty if none.
    pub procedure: &'static str,
    /// How it came out, for metrics: `ok`, a cause's name.
    pub outcome: &'static str,
    /// The UE as the logs know it (masked SUPI or its id), or empty.
    pub ue: String,
    /// The sentence to read.
    pub text: String,
}
