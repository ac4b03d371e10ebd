//! See the crate's README for its contract.

mod config;
mod packet;
mod portable;
mod rules;
mod sys;
mod system;
mod ue_tun;

pub use config::{DatapathConfig, StartError, UePool};
pub use pith_upf::qos::{BufferLimits, Enforcement};
pub use portable::PortableDatapath;
pub use ue_tun::UeTun;
