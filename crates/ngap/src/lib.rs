//! See the crate's README for its contract.
