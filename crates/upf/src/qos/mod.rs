//! The QoS engine: who may send now, who waits, and for how long (TS 23.501 5.7.1.8, TS 29.244 5.4.4).
//!
//! Pure: no clock, no threads, no I/O; time is an argument. Every packet path uses it, so that all share
//! bandwidth by the same rules.
//!
//! ```text
//!  packet ─▶ Flow::admit ── green, yellow ─▶ passes; no session that does not queue costs more
//!                │ red
//!                ├─ Enforcement::Police ─▶ dropped
//!                └─ Enforcement::Shape ──▶ Engine::offer ─▶ queues by 5-tuple ─▶ Engine::run
//! ```
//!
//! While a session has packets waiting, those that come after have to be offered too, or they would
//! overtake. When nothing waits any more ([`Engine::waiting`]), it is back on the direct way.
//!
//! Buckets and counters ([`Flow`]) may be shared by threads; an [`Engine`] and what waits in it belong to
//! one. The bounds on all that waits ([`Room`]) are common.

mod admission;
mod bucket;
mod codel;
mod counters;
mod ecn;
mod engine;
mod flow;
mod lane;
mod meter;
mod pool;
mod room;
mod shape;
mod shaper;
mod shared;
mod wheel;

pub use admission::{Promises, Refusal, promised};
pub use bucket::{Bucket, Burst};
pub use counters::{Count, FastCounters, FlowCount, FlowCounters};
pub use ecn::Ecn;
pub use engine::{Arrival, Engine, Hold, Key, Ruling, Whose};
pub use flow::Flow;
pub use meter::{Colour, Meter, MeterSource, Metering, OnHeap};
pub use room::{BufferLimits, Room};
pub use shape::{Aggregates, Enforcement, FlowUsage, Flows, SessionQos};
pub use shaper::Outlet;
pub use shared::{SharedMeters, SharedRate};

/// Nanoseconds on the datapath's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Later than all others.
    pub const NEVER: Self = Self(u64::MAX);
}
