//! The gateways: they hold connections, and nothing of any UE.
//!
//! [`n2`] ends NGAP associations for the AMFs of all shards, [`n4`] PFCP associations for the
//! SMFs. Both find the shard of a message from the ids in it alone.

pub mod n2;
pub mod n4;
