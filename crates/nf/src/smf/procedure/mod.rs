//! The procedures of the SMF.

mod branching;
mod chain;
mod establishment;
mod modification;
mod release;
mod user_plane;

pub(super) use release::undo;
