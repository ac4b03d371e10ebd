//! What a target is, and which there are.

use crate::{decoder, state};
use std::time::Duration;

/// What is wrong, apart from a panic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken(pub String);

/// How a target takes an input; it panics or returns what is wrong.
pub type Run = fn(&[u8]) -> Result<(), Broken>;

/// What a target's inputs look like, which decides how they are spoiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Octets with types and lengths in them.
    Octets,
    /// Text: JSON, YAML, HTTP, identities.
    Text,
    /// Choices: an octet each, to be drawn from anew.
    Choices,
}

/// A decoder, or an NF in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads one message.
    Decoder,
    /// Lives through a whole dialogue.
    State,
}

/// What an input may cost at most.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Octets of memory asked for, whatever the input.
    pub memory: u64,
    /// Octets of memory asked for, for each octet of the input.
    pub memory_per_octet: u64,
    /// Time.
    pub time: Duration,
}

impl Bounds {
    /// Of a codec of octets: every octet may become an element of a list that grows, twice.
    pub const CODEC: Bounds =
        Bounds { memory: 64 * 1024, memory_per_octet: 4096, time: Duration::from_millis(20) };
    /// Of what is text.
    pub const TEXT: Bounds = Bounds { memory: 2 << 20, ..Self::CODEC };
    /// Of the REST API: a request shows up to 10,000 subscribers, and adds up to a million.
    pub const API: Bounds = Bounds { memory: 256 << 20, time: Duration::from_secs(60), ..Self::CODEC };
    /// Of a dialogue.
    pub const DIALOGUE: Bounds =
        Bounds { memory: 256 << 20, memory_per_octet: 1 << 20, time: Duration::from_secs(5) };
}

/// Something that takes what comes from outside.
#[derive(Clone, Copy)]
pub struct Target {
    /// As on the command line; its corpus has the same name.
    pub name: &'static str,
    /// What it holds against its inputs.
    pub what: &'static str,
    /// Decoder or dialogue.
    pub kind: Kind,
    /// What its inputs look like.
    pub shape: Shape,
    /// What an input may cost.
    pub bounds: Bounds,
    /// Takes an input.
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

/// `what` if it does not hold.
pub(crate) fn demand(holds: bool, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken(what())) }
}

/// A value that was understood once is understood the same when it is written and read again.
pub(crate) fn same<T: PartialEq + std::fmt::Debug, E: std::fmt::Debug>(
    value: &T,
    again: Result<T, E>,
) -> Result<(), Broken> {
    match again {
        Ok(again) if again == *value => Ok(()),
        Ok(again) => Err(Broken(format!("read again it is another\n  first {value:?}\n  then  {again:?}"))),
        Err(error) => Err(Broken(format!("written, it can not be read: {error:?}\n  {value:?}"))),
    }
}
