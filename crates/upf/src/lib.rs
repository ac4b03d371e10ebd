//! UPF-C: PFCP sessions become datapath rules (TS 29.244). Pure; see the crate's README for its contract.
//!
//! [`Upf::handle`] takes an [`Input`], calls the [`contract::Datapath`] and leaves [`Effect`]s.

mod association;
mod config;
pub mod contract;
pub mod handover;
mod inspect;
mod load;
mod port;
mod predefined;
mod procedure;
pub mod qos;
mod random;
mod reach;
mod rejection;
mod session;
mod smf_set;
mod teids;
mod transaction;
mod unknown_peers;
mod upf;

pub use config::{Config, GtpuAddress};
pub use inspect::{SessionView, TeidOwner};
pub use port::{Effect, Input, Notice, Severity};
pub use predefined::{PredefinedAction, PredefinedRule, PredefinedRules};
pub use reach::{HostAddresses, PermittedSmf};
pub use upf::Upf;
