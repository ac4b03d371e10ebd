//! UPF-C by its PFCP messages and its datapath's calls. One test binary, since each links the whole crate.

mod admission;
mod association;
mod framed;
mod handover;
mod load;
mod places;
mod predefined;
mod prefix;
mod report;
mod session;
mod smf_set;
mod support;
mod trust;
