//! The values of information elements (TS 24.501 clause 9.11), typed.

pub mod access;
pub mod area;
pub mod capability;
pub mod emergency;
pub mod handover;
pub mod identity;
pub mod network_name;
pub mod nssai;
pub mod payload;
pub mod pco;
pub mod qos_flow;
pub mod qos_rule;
pub mod registration;
pub mod security;
pub mod session;
pub mod session_set;
pub mod time;
pub mod timer;

pub use access::*;
pub use area::*;
pub use capability::*;
pub use emergency::*;
pub use handover::*;
pub use identity::*;
pub use network_name::*;
pub use nssai::*;
pub use payload::*;
pub use pco::*;
pub use qos_flow::*;
pub use qos_rule::*;
pub use registration::*;
pub use security::*;
pub use session::*;
pub use session_set::*;
pub use time::*;
pub use timer::*;

/// A half octet or octet of flags: a struct with a `bool` for each bit (1 to 8).
macro_rules! flags {
    ($(#[$meta:meta])* $name:ident { $( $(#[$fmeta:meta])* $field:ident = $bit:literal ),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $( $(#[$fmeta])* pub $field: bool, )*
        }

        impl $crate::wire::Ie for $name {
            fn decode(value: &[u8]) -> Result<Self, $crate::error::Malformed> {
                let octet = $crate::wire::Cursor(value).u8()?;
                Ok(Self { $( $field: octet >> ($bit - 1) & 1 == 1, )* })
            }
            fn encode(&self, out: &mut Vec<u8>) {
                out.push(0 $( | u8::from(self.$field) << ($bit - 1) )*);
            }
        }
    };
}
pub(crate) use flags;
