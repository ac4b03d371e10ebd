//! The shell: SCTP, HTTP/2, UDP, timers, storage, configuration, signals.

pub mod api;
pub mod config;
pub mod http;
pub mod keys;
pub mod sctp;
pub mod store;
pub mod token;
