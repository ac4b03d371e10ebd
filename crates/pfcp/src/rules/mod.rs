//! The rules of a session: what the CP function creates, updates, removes and queries (TS 29.244 7.5.2 to 7.5.4).

mod bar;
mod far;
mod mar;
mod pdr;
mod qer;
mod srr;
mod traffic_endpoint;
mod urr;

pub use bar::*;
pub use far::*;
pub use mar::*;
pub use pdr::*;
pub use qer::*;
pub use srr::*;
pub use traffic_endpoint::*;
pub use urr::*;
