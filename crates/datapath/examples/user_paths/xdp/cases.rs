//! What is measured on XDP and beside it.

use pith_upf::qos::Ecn;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrafficDirection {
    Up,
    Down,
}

use TrafficDirection::{Down, Up};

/// What forwards the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Nothing: dropped on reception, the cost of the generator.
    Discard(TrafficDirection),
    /// Plain packets routed by the kernel.
    Kernel,
    /// The same with masquerading.
    Masquerade,
    /// A program that encapsulates or decapsulates without checks.
    Bare(&'static str, TrafficDirection),
    /// Pith.
    Upf(TrafficDirection, Rules),
    /// Pith with NAT, as configured by default.
    Nat(TrafficDirection),
    /// Pith, downlink: outer headers have neither the packet's ECN field nor a source port of its flow.
    PlainOuter,
    /// Pith, downlink, with a limit for all sessions together, in bit/s.
    Shaped(u64),
    /// The same for one session with packets of that ECN field.
    AtAmbr(u64, Ecn),
}

/// The rules of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// Two PDRs, a QoS flow, the session AMBR, a URR.
    Usual,
    /// Each direction also has three PDRs with SDF filters, of which the last one matches.
    Filters,
    /// The URR has a threshold and a quota.
    Quota,
}

impl Case {
    pub fn direction(self) -> TrafficDirection {
        match self {
            Self::Kernel | Self::Masquerade => Up,
            Self::Shaped(_) | Self::AtAmbr(..) | Self::PlainOuter => Down,
            Self::Discard(direction)
            | Self::Bare(_, direction)
            | Self::Upf(direction, _)
            | Self::Nat(direction) => direction,
        }
    }
}

/// Over which sessions and destinations packets are spread.
#[derive(Debug, Clone, Copy)]
pub struct Flows {
    /// Sessions installed; connections of the kernel where it forwards.
    pub installed: u32,
    /// Sessions that packets are distributed over.
    pub active: u32,
    /// Consecutive packets of one session.
    pub train: u32,
    /// Destinations of uplink packets, each packet's another one.
    pub destinations: u32,
}

pub const NONE: Flows = Flows { installed: 0, active: 0, train: 1, destinations: 1 };

/// Each packet is another session's.
pub const fn scattered(sessions: u32) -> Flows {
    Flows { installed: sessions, active: sessions, ..NONE }
}

/// Consecutive packets of a session, as in a TCP window or a video frame.
pub const TRAIN: u32 = 16;
/// Sessions or connections of most rows.
pub const SOME: u32 = 1000;
pub const MANY: u32 = 100_000;
const MANY_DESTINATIONS: u32 = 10_000;

/// A row: name, what forwards, over what.
pub type Named = (&'static str, Case, Flows);

pub fn cases() -> Vec<Named> {
    let connections = |count| Flows { installed: count, destinations: count, ..NONE };
    let to_many = |sessions| Flows { destinations: MANY_DESTINATIONS, ..scattered(sessions) };
    let mut cases = vec![
        ("kernel-forward", Case::Kernel, NONE),
        ("kernel-destinations", Case::Kernel, to_many(0)),
        ("kernel-masquerade", Case::Masquerade, connections(SOME)),
        ("kernel-masquerade-scattered", Case::Masquerade, connections(MANY)),
        ("xdp-decap", Case::Bare("decap", Up), NONE),
        ("xdp-encap", Case::Bare("encap", Down), NONE),
        ("xdp-plain-outer-dl", Case::PlainOuter, trains(SOME, SOME)),
        ("xdp-destinations-ul", Case::Upf(Up, Rules::Usual), to_many(SOME)),
    ];
    let mut both = |names: [&'static str; 2], case: fn(TrafficDirection) -> Case, flows| {
        cases.extend([(names[0], case(Up), flows), (names[1], case(Down), flows)]);
    };
    both(["default-nat-one-ul", "default-nat-one-dl"], Case::Nat, scattered(1));
    both(["default-nat-ul", "default-nat-dl"], Case::Nat, scattered(SOME));
    both(["default-nat-scattered-ul", "default-nat-scattered-dl"], Case::Nat, scattered(MANY));
    for sessions in [1, SOME, MANY] {
        both(["xdp-full-ul", "xdp-full-dl"], usual, trains(sessions, sessions));
    }
    // Whether look-ups slow down with the number of sessions: the touched memory is that of 1,000.
    both(["xdp-installed-ul", "xdp-installed-dl"], usual, trains(MANY, SOME));
    both(["xdp-single-ul", "xdp-single-dl"], usual, scattered(SOME));
    both(["xdp-scattered-ul", "xdp-scattered-dl"], usual, scattered(MANY));
    both(["xdp-filters-ul", "xdp-filters-dl"], |way| Case::Upf(way, Rules::Filters), scattered(SOME));
    both(["xdp-quota-ul", "xdp-quota-dl"], |way| Case::Upf(way, Rules::Quota), scattered(SOME));
    cases
}

pub const fn usual(direction: TrafficDirection) -> Case {
    Case::Upf(direction, Rules::Usual)
}

const fn trains(installed: u32, active: u32) -> Flows {
    Flows { installed, active, train: TRAIN, destinations: 1 }
}
