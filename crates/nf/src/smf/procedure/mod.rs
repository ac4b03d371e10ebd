//! The procedures of the SMF.

mod establishment;
mod release;
mod user_plane;

pub(super) use release::undo;
