//! See the crate's README for its contract.
mod packet;
mod rules;
mod sys;
