//! The gateways: they hold connections, but no UE state.
//!
//! [`n2`] terminates NGAP associations for the AMFs of all shards, [`n4`] PFCP associations for the
//! SMFs. Both find the shard of a message from its ids alone.

pub mod n2;
pub mod n4;
