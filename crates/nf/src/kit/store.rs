//! Between the UDR and its database.

use super::Subscriber;
use pith_types::Supi;
use std::sync::Arc;

/// What the UDR asks of the database.
///
/// Requests of one shard are carried out in their order; writes of many requests share one
/// commit, and each is answered only after that commit.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreRequest {
    /// One subscriber, whole.
    Subscriber(Supi),
    /// Replace the sequence number (48 bits) of a subscriber's authentication subscription, if it is
    /// still the one that is expected.
    PutSequenceNumber {
        /// Whose.
        supi: Supi,
        /// SQN, the highest used.
        sqn: u64,
        /// What SQN has to be so far; `None` where that does not matter.
        expected: Option<u64>,
    },
    /// One document of a UE: a resource of Nudr_DataRepository that NFs write.
    Document {
        /// Whose.
        supi: Supi,
        /// Its path below the UE, `context-data/amf-3gpp-access`.
        resource: String,
    },
    /// All documents of a UE whose path begins so.
    Documents {
        /// Whose.
        supi: Supi,
        /// The beginning of their paths, `context-data/smf-registrations/`.
        prefix: String,
    },
    /// Create or replace a document.
    PutDocument {
        /// Whose.
        supi: Supi,
        /// Its path below the UE.
        resource: String,
        /// JSON.
        body: String,
    },
    /// Remove a document.
    DeleteDocument {
        /// Whose.
        supi: Supi,
        /// Its path below the UE.
        resource: String,
    },
}

/// What the database answers.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreResponse {
    /// The subscriber, if there is one.
    Subscriber(Option<Arc<Subscriber>>),
    /// The document, if there is one.
    Document(Option<String>),
    /// Paths and bodies.
    Documents(Vec<(String, String)>),
    /// Written; for [`StoreRequest::PutDocument`] whether it is new, for others whether there was
    /// something to change.
    Done {
        /// See above.
        created_or_found: bool,
    },
}

/// The database failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the database failed: {0}")]
pub struct StoreError(pub String);
