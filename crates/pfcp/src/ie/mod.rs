//! Information elements other than groups, by subject (TS 29.244 8.2). Groups are in [`crate::rules`] and
//! [`crate::message`].

pub mod access;
pub mod address;
pub mod buffering;
pub mod cause;
pub mod detection;
pub mod ethernet;
pub mod forwarding;
pub mod interface;
pub(crate) mod macros;
pub mod name;
pub mod node;
pub mod qos;
pub mod session;
pub mod time;
pub mod usage;

pub use access::*;
pub use address::{
    AlternativeSmfIpAddress, Choice, EntityIpAddress, FSeid, FTeid, IpMulticastAddress, PacketEnd,
    RemoteGtpuPeer, SourceIpAddress, UeIpAddress,
};
pub use buffering::*;
pub use cause::*;
pub use detection::*;
pub use ethernet::*;
pub use forwarding::*;
pub use interface::*;
pub use name::*;
pub use node::*;
pub use qos::*;
pub use session::*;
pub use time::*;
pub use usage::*;
