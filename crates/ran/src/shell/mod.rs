//! The shell around the pure state machines: sockets, clock, terminal.

pub mod build;
pub mod cli;
pub mod echo;
pub mod garble;
pub mod links;
pub mod progress;
pub mod report;
pub mod run;
mod services;
mod steps;
pub mod tuns;
pub mod watch;
