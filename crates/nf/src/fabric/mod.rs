//! The fabric: the NFs of one shard, and the routing of SBI calls.
//!
//! [`Shard`] completes SBI calls that stay on the shard before it returns, so that a procedure
//! crosses all NFs of a process without a queue between threads. [`Agent`] registers the NFs of
//! the process with the NRF, discovers others, and determines the route of each call.

mod absent;
mod access_token;
mod agent;
mod discovery;
pub mod guard;
mod instances;
mod intervals;
mod owner;
mod passage;
mod profile;
mod registration;
mod reselection;
mod restoring;
mod retransmission;
mod shard;
mod take_over;
#[cfg(test)]
mod tests;
mod timers;
mod watch;

pub use access_token::Bearer;
pub use agent::{Agent, AgentConfig, Hosted};
pub use intervals::{Histogram, Intervals};
pub use owner::{shard_of, shard_of_remote};
pub use passage::MoveError;
pub use profile::{ProfileConfig, profile};
pub use restoring::{Portion, Unrestored};
pub use shard::{Shard, ShardEffect, ShardInput};
pub use take_over::{Keeps, TakeOver};
pub use timers::Timers;
