//! The AMF driven through its border: inputs in, the ladder out.

mod initial_registration;
pub(crate) mod world;
