//! The rules of a session: created, updated, removed and queried by the CP function (TS 29.244 7.5.2 to
//! 7.5.4).

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
