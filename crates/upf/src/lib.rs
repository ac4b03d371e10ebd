//! See the crate's README for its contract.

pub mod contract;
