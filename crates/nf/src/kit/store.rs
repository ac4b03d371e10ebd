//! The interface between the UDR and its database.

use super::Subscriber;
use pith_types::Supi;
use std::sync::Arc;

/// A database request of the UDR.
///
/// Requests of one shard are executed in their order. Writes of many requests share one commit, and
/// each is answered after that commit.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum StoreRequest {
    /// Read one subscriber.
    Subscriber(Supi),
    /// Replace the sequence number (48 bits) of a subscriber's authentication subscription, if the
    /// current one is as expected.
    PutSequenceNumber {
        supi: Supi,
        /// SQN, the highest used.
        sqn: u64,
        /// The expected current SQN; `None` to skip the comparison.
        expected: Option<u64>,
    },
    /// Read one document of a UE: a resource of Nudr_DataRepository that NFs write.
    Document {
        supi: Supi,
        /// Its path below the UE, `context-data/amf-3gpp-access`.
        resource: String,
    },
    /// Read all documents of a UE whose path has the prefix.
    Documents {
        supi: Supi,
        /// For example `context-data/smf-registrations/`.
        prefix: String,
    },
    /// Create or replace a document. A new one needs a subscriber, and room among its siblings
    /// ([`MAX_DOCUMENTS`]).
    PutDocument {
        supi: Supi,
        /// Its path below the UE.
        resource: String,
        /// JSON.
        body: String,
    },
    /// Replace a document, if it is as expected. Otherwise nothing is written, and `created_or_found` is `false`.
    ReplaceDocument {
        supi: Supi,
        /// Its path below the UE.
        resource: String,
        /// The expected document.
        expected: String,
        /// JSON.
        body: String,
    },
    /// Delete a document.
    DeleteDocument {
        supi: Supi,
        /// Its path below the UE.
        resource: String,
    },
    /// Read rows of changed subscribers, in the order of their numbers.
    Changed {
        /// Those with higher numbers.
        after: u64,
        limit: u32,
    },
    /// Delete these rows. A subscriber that has changed again has another row.
    ForgetChanged { numbers: Vec<u64> },
}

/// The result of a database request.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreResponse {
    /// The subscriber, if there is one.
    Subscriber(Option<Arc<Subscriber>>),
    /// The document, if it exists.
    Document(Option<String>),
    /// Paths and bodies.
    Documents(Vec<(String, String)>),
    /// Written.
    Done {
        /// For [`StoreRequest::PutDocument`] whether the document is new; for others whether it existed.
        created_or_found: bool,
    },
    /// Changed subscribers, each with the number of its row.
    Changed(Vec<(u64, Supi)>),
    /// The document is new, and there is no such subscriber: nothing is written.
    NoSubscriber,
    /// The document is new, and its collection is full: nothing is written.
    Full,
}

/// Documents in one collection of a subscriber, such as `context-data/sdm-subscriptions`: a UE has 15 PDU sessions
/// (TS 24.501 9.4), each SMF one registration and one subscription, and an AMF a few.
pub const MAX_DOCUMENTS: usize = 32;

/// The path of the collection that a document is in, with a slash at its end.
pub fn collection_of(resource: &str) -> &str {
    resource.rsplit_once('/').map_or("", |(parent, _)| resource.get(..=parent.len()).unwrap_or_default())
}

/// The database failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the database failed: {0}")]
pub struct StoreError(pub String);
