//! Definition and list of targets.

use crate::{decoder, state};
use std::time::Duration;

/// A failure other than a panic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckFailed(pub String);

/// Runs an input; panics or returns the failure.
pub type Run = fn(&[u8]) -> Result<(), CheckFailed>;

/// The form of a target's inputs, which determines their mutations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Octets with types and lengths in them.
    Octets,
    /// Text: JSON, YAML, HTTP, identities.
    Text,
    /// Choices: independent octets.
    Choices,
}

/// A decoder, or an NF in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Decodes one message.
    Decoder,
    /// Runs a whole dialogue.
    State,
}

/// Limits of the cost of an input.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Octets of memory, for any input.
    pub memory: u64,
    /// Octets of memory for each octet of the input.
    pub memory_per_octet: u64,
    /// Processor time of the thread.
    pub time: Duration,
}

impl Bounds {
    /// For codecs of octets: every octet may become an element of a growing list, twice.
    pub const CODEC: Bounds =
        Bounds { memory: 64 * 1024, memory_per_octet: 4096, time: Duration::from_millis(20) };
    /// For text.
    pub const TEXT: Bounds = Bounds { memory: 2 << 20, ..Self::CODEC };
    /// For the operator API: a request returns up to 10,000 subscribers, and adds up to a million.
    pub const API: Bounds = Bounds { memory: 256 << 20, time: Duration::from_secs(60), ..Self::CODEC };
    /// For a dialogue.
    pub const DIALOGUE: Bounds =
        Bounds { memory: 256 << 20, memory_per_octet: 1 << 20, time: Duration::from_secs(5) };
}

/// Code that processes external input.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name on the command line, and of its corpus.
    pub name: &'static str,
    /// The properties that it checks.
    pub what: &'static str,
    /// Decoder or dialogue.
    pub kind: Kind,
    /// Form of its inputs.
    pub shape: Shape,
    /// Limits of the cost of an input.
    pub bounds: Bounds,
    /// Runs an input.
    pub run: Run,
}

impl Target {
    /// A decoder of octets.
    pub(crate) const fn codec(name: &'static str, what: &'static str, run: Run) -> Self {
        Self { name, what, kind: Kind::Decoder, shape: Shape::Octets, bounds: Bounds::CODEC, run }
    }

    /// A decoder of text.
    pub(crate) const fn text(name: &'static str, what: &'static str, run: Run) -> Self {
        Self { shape: Shape::Text, bounds: Bounds::TEXT, ..Self::codec(name, what, run) }
    }

    /// A dialogue.
    pub(crate) const fn dialogue(name: &'static str, what: &'static str, run: Run) -> Self {
        Self { name, what, kind: Kind::State, shape: Shape::Choices, bounds: Bounds::DIALOGUE, run }
    }
}

/// All targets, decoders first.
pub fn all() -> impl Iterator<Item = &'static Target> {
    decoder::TARGETS.iter().chain(state::TARGETS)
}

/// The target of that name.
pub fn find(name: &str) -> Option<&'static Target> {
    all().find(|target| target.name == name)
}

/// Returns `what` as a failure if `holds` is false.
pub(crate) fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), CheckFailed> {
    if holds { Ok(()) } else { Err(CheckFailed(what())) }
}

/// A decoded value is the same after encoding and decoding it again.
pub(crate) fn same<T: PartialEq + std::fmt::Debug, E: std::fmt::Debug>(
    value: &T,
    again: Result<T, E>,
) -> Result<(), CheckFailed> {
    match again {
        Ok(again) if again == *value => Ok(()),
        Ok(again) => {
            Err(CheckFailed(format!("decoded again it differs\n  first {value:?}\n  then  {again:?}")))
        }
        Err(error) => Err(CheckFailed(format!("encoded, it can't be decoded: {error:?}\n  {value:?}"))),
    }
}
