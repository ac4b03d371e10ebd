//! The QoS engine: admission, queueing and scheduling of packets (TS 23.501 5.7.1.8, TS 29.244 5.4.4).
//!
//! Pure: no clock, no threads, no I/O; time is an argument. Both packet paths use it, so that bandwidth is
//! shared by the same rules.
//!
//! ```text
//!  packet ─▶ MeteredFlow::admit ── green, yellow ─▶ passes; no session that does not queue costs more
//!                │ red
//!                ├─ Enforcement::Police ─▶ dropped
//!                └─ Enforcement::Shape ──▶ Engine::offer ─▶ queues by 5-tuple ─▶ Engine::run
//! ```
//!
//! While a session has queued packets, later packets must be offered, too, to keep the order. When no packet
//! is queued ([`Engine::waiting`]), packets are sent directly again.
//!
//! Threads may share buckets and counters ([`MeteredFlow`]); an [`Engine`] and its packets belong to one thread. The
//! limits of all queued packets ([`Room`]) are shared.

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

pub use admission::{AdmissionRejection, AdmittedRates, guaranteed_rates};
pub use bucket::{Bucket, Burst};
pub use counters::{Count, FastCounters, FlowCount, FlowCounters};
pub use ecn::Ecn;
pub use engine::{Arrival, Engine, Hold, Key, QueueAction, SessionQueue};
pub use flow::MeteredFlow;
pub use meter::{Colour, Meter, MeterSource, Metering, OnHeap};
pub use room::{BufferLimits, Room};
pub use shape::{Aggregates, Enforcement, FlowUsage, Flows, SessionQos};
pub use shaper::Outlet;
pub use shared::{SharedMeters, SharedRate};

/// Nanoseconds on the datapath's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Later than all other times.
    pub const NEVER: Self = Self(u64::MAX);
}
