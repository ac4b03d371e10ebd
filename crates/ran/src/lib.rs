//! UEs and gNBs that test a 5G core: pure state machines, implemented from the UE's and the gNB's
//! side of the specifications, with strict checks of the core.
//!
//! - [`ue::Ue`]: USIM, 5GMM and 5GSM of one UE (TS 24.501, TS 33.501, TS 33.102).
//! - [`gnb::Gnb`]: NGAP of one gNB (TS 38.413).
//! - [`Ran`]: many of both, with users that follow a [`journey::Plan`], and the user plane.
//! - [`violation::Violation`]: a message or action of the core that a real UE or gNB would not accept.
//!
//! This library uses no sockets, clocks or system randomness.

pub mod clock;
pub mod gnb;
mod icmp;
mod ipv4;
mod ipv6;
pub mod journey;
pub mod network;
mod prefix;
pub mod ran;
mod router;
pub mod statistics;
mod udp;
pub mod ue;
pub mod violation;

pub use clock::Instant;
pub use ran::Ran;
pub use violation::Violation;
