//! Tests of the SMF through its interface: inputs in, the ladder out.

mod absent;
mod branching;
mod collisions;
mod document;
mod emergency;
mod establishment;
mod flow_mobility;
mod flows;
mod handover;
mod ipv6;
mod ladn;
mod modification_request;
mod owner;
mod panic;
mod policy;
mod protocol_errors;
mod refused_transfer;
mod residency;
mod retention;
mod split;
mod standing;
mod states;
mod subscription_change;
mod upf_away;
mod upfs;
mod world;
