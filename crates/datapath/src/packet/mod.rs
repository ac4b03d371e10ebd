//! User packets: header fields for rules, segmentation, coalescing, checksums. Pure; no packet can cause a
//! panic.

mod checksum;
mod coalesce;
mod dhcpv6;
mod ecn;
mod entropy;
mod flow;
mod link;
mod neighbour;
mod prefixes;
#[cfg(test)]
#[path = "../../tests/support/rfc6040.rs"]
pub(crate) mod rfc6040;
mod segment;
mod vnet;

pub use checksum::{complete_partial, has_right_checksum, set_ipv4_checksum};
pub use coalesce::{Coalescer, Frame};
pub use dhcpv6::{Dhcpv6Message, Dhcpv6Server, server_duid};
pub use ecn::{mark_congestion, merge_outer_ecn, tos_of};
pub use entropy::source_port;
pub use flow::{Flow, decrement_ttl, is_v4};
pub use link::link_header_len;
pub use neighbour::{Solicitation, neighbour_advertisement, router_advertisement};
pub use prefixes::Prefixes;
pub use segment::{Segment, Train};
pub use vnet::{Gso, VnetHeader};

#[cfg(test)]
pub mod samples;
