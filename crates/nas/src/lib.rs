//! NAS of 5GS (TS 24.501, Release 17): messages between UE and core, and their protection.
//!
//! - [`GmmMessage`] and [`GsmMessage`]: a struct for each message with typed IEs, whose types are in [`ie`].
//! - [`NasError`]: the error in a message, its position, and the cause to answer.
//! - [`NasSecurity`]: security protection, with the NAS COUNTs.
//!
//! The tables of TS 24.501 clause 8 are in `gmm/` and `gsm/`; the `table` module generates structs,
//! decoders and encoders from them.

pub mod cause;
pub mod error;
pub mod gmm;
pub mod gsm;
pub mod header;
pub mod ie;
pub mod security;
mod stored;
mod table;
mod wire;

pub use cause::{GmmCause, GsmCause};
pub use error::{Fault, NasError, Note, Noted};
pub use gmm::GmmMessage;
pub use gsm::{GsmBody, GsmMessage};
pub use header::{Kind, SecurityHeaderType, TemporaryIdentity};
pub use header::{peek, peek_additional_guti, peek_epd, peek_temporary_identity};
pub use security::{NasCount, NasSecurity, Role, SecurityError, Unprotected};
