//! See the crate's README for its contract.

mod automatic;
mod boundary;
mod config;
mod fib;
mod handover;
pub mod packet;
mod placement;
mod portable;
mod reading;
mod rules;
mod select;
#[cfg(test)]
#[path = "../../../tests/skipped.rs"]
mod skipped;
mod sys;
mod system;
mod ue_tun;
mod xdp;

pub use boundary::{Boundary, Host, Permit, Tenant};
pub use config::{DatapathConfig, PathChoice, StartError, UePool, XdpHook};
pub use fib::Detour;
pub use handover::{Handles, LinkHandle, QueuedOctets, WorkerHandles};
pub use pith_upf::qos::{BufferLimits, Enforcement, SharedRate};
pub use portable::PortableDatapath;
pub use select::{PathReport, UserPlane};
pub use sys::{interface_addresses, monotonic};
pub use system::{
    FirewallRule, Net, NetworkPolicy, PortBlock, PortBlocks, Protocol, StaticRoute, Verdict, parse_network,
};
pub use ue_tun::UeTun;
pub use xdp::{XdpDatapath, XdpError};
