//! The SMF driven through its border: inputs in, the ladder out.

mod branching;
mod establishment;
mod owner;
mod policy;
mod standing;
mod states;
mod upfs;
mod world;
