//! Events for the operator; the shell turns them into logs and metrics.

/// Log level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Every message.
    Debug,
    /// One line for each completed procedure.
    Info,
    /// A peer misbehaved.
    Warn,
    /// The operator must act.
    Error,
}

/// One event. Its creator masks personal identities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Log level.
    pub level: Level,
    /// The procedure by its name in the specifications, `Registration`; empty if none.
    pub procedure: &'static str,
    /// Outcome label for metrics: `ok`, or the name of a cause.
    pub outcome: &'static str,
    /// The UE's name in logs (masked SUPI or its id), or empty.
    pub ue: String,
    /// Text for the log.
    pub text: String,
}
