//! The SMF driven through its border: inputs in, the ladder out.

mod establishment;
mod standing;
mod world;
