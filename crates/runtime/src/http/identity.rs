//! Who a peer proved to be.

use pith_sbi::{NfInstanceId, NfType};

/// What a client's certificate says of the NF that holds it (TS 33.310 6.1.3c, RFC 9310). The server puts it
/// into the extensions of each request, as `Arc<PeerIdentity>`; without TLS there is none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PeerIdentity {
    /// NF instance ids (`urn:uuid:…` in subjectAltName): one for each NF and shard of the process.
    pub instances: Vec<NfInstanceId>,
    /// NF types (`id-pe-nftypes`).
    pub nf_types: Vec<NfType>,
}
