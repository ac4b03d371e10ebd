//! The SMF driven through its border: inputs in, the ladder out.

mod branching;
mod establishment;
mod standing;
mod upfs;
mod world;
