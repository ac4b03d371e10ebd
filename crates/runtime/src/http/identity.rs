//! The authenticated identity of a peer.

use pith_sbi::{NfInstanceId, NfType};

/// The NF data of a client's certificate (TS 33.310 6.1.3c, RFC 9310). The server puts it into the extensions
/// of each request, as `Arc<PeerIdentity>`; requests without TLS have none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PeerIdentity {
    /// NF instance ids (`urn:uuid:…` in subjectAltName), one for each NF and shard of the process.
    pub instances: Vec<NfInstanceId>,
    /// NF types (`id-pe-nftypes`).
    pub nf_types: Vec<NfType>,
}
