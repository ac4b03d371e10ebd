//! The shell around the NFs: SCTP, HTTP/2, UDP, timers, storage, configuration, signals.

pub mod api;
pub mod clock;
pub mod config;
pub mod edge;
pub mod events;
pub mod gate;
mod housekeeping;
pub mod http;
pub mod keys;
pub mod lease;
mod log_allowance;
pub mod memory;
pub mod node;
pub mod pki;
mod private_file;
pub mod privileges;
pub mod residency;
pub mod sbi;
pub mod sctp;
pub mod shard;
pub mod signals;
pub mod store;
pub mod token;
mod token_keys;
pub mod udp;
pub mod upf;
pub mod wait;
pub mod work_queue;

#[cfg(test)]
#[path = "../../../tests/skipped.rs"]
mod skipped;
