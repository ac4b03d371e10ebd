//! The SMF driven through its border: inputs in, the ladder out.

mod branching;
mod establishment;
mod owner;
mod policy;
mod standing;
mod upfs;
mod world;
