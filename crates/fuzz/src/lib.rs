//! Fuzz targets: every decoder and every NF, with the properties that must hold for any input. See
//! the README.
//!
//! ```text
//!  target   definition of a target    decoder/  one message in        state/  dialogues with NFs
//!  corpus   seed inputs               mutate    mutation of inputs    run     execution and limits
//! ```

pub mod alloc;
pub mod corpus;
pub mod decoder;
pub mod mutate;
pub mod panic;
pub mod random;
pub mod run;
pub mod state;
pub mod target;
pub mod watchdog;
