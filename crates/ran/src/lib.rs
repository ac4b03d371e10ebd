//! UEs and gNBs that test a 5G core: pure state machines, written from the UE's and the gNB's side of the
//! specifications and strict about the other side.
//!
//! - [`ue::Ue`]: USIM, 5GMM and 5GSM of one UE (TS 24.501, TS 33.501, TS 33.102).
//! - [`gnb::Gnb`]: NGAP of one gNB (TS 38.413).
//! - [`Ran`]: many of both, with users that follow a [`journey::Plan`], and the user plane.
//! - [`violation::Violation`]: something that a real phone or gNB would not have taken.
//!
//! Nothing here knows sockets, clocks or the system's randomness.

pub mod clock;
pub mod gnb;
mod icmp;
mod ipv4;
pub mod journey;
pub mod ran;
pub mod statistics;
mod udp;
pub mod ue;
pub mod violation;

pub use clock::Instant;
pub use ran::Ran;
pub use violation::Violation;
