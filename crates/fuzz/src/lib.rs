//! Fuzz targets: every decoder and every NF, with what must hold whatever comes from outside. See the README.
//!
//! ```text
//!  target   what a target is          decoder/  one message in        state/  dialogues with NFs
//!  corpus   where inputs begin        mutate    how they are spoiled  run     what becomes of them
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
